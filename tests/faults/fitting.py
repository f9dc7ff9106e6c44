"""Slips between what the user gave and what is solved."""

from faults.mutant import CLAIMS, m

FITTING = [
    m(
        "the weights of copies are not summed",
        "mercer/data/merging.py",
        "total = sums_by(member, own, len(first))",
        "total = weight[first]",
        "tests/promises/test_properties.py",
    ),
    m(
        "rows of weight zero count",
        "mercer/data/merging.py",
        "rows = (weight > 0).nonzero()[0]",
        "rows = (weight >= 0).nonzero()[0]",
        "tests/promises/test_properties.py",
    ),
    m(
        "a bounded coefficient is not put onto each copy's bound",
        "mercer/fitting/reports/coefficients.py",
        "own.with_data(np.where((size == whole) | past, own_bound, shared))",
        "own.with_data(shared)",
        "tests/promises/test_contract.py::test_a_bounded_coefficient_is_C_for_every_copy",
    ),
    m(
        "balanced classes are counted, not weighed",
        "mercer/data/labels.py",
        "mass = np.bincount(codes, weights=weight, minlength=len(classes))",
        "mass = np.bincount(codes, weights=1.0 * (weight > 0), minlength=len(classes))",
        "tests/data",
    ),
    m(
        "tol ignores how small the targets are",
        "mercer/fitting/families/dual_machine.py",
        "return min(1.0, largest * max(deviation, _RESOLVED_SHARE))",
        "return 1.0",
        "tests/fitting/test_units.py",
    ),
    m(
        "a training set is not copied",
        "mercer/fitting/pipeline/warm_start.py",
        "    return freeze(X.copy())",
        "    return freeze(X)",
        "tests/fitting/test_warm_start.py",
        "tests/promises/test_callers_arrays.py",
    ),
    m(
        "a warm start forgets the new C",
        "mercer/fitting/pipeline/warm_start.py",
        "beta *= factor[0]",
        "pass",
        "tests/fitting/test_warm_start.py",
    ),
    m(
        "coef_ forgets the kernel's factor",
        "mercer/fitting/reports/coefficients.py",
        "np.ascontiguousarray(recipe.scale * weight_vectors(",
        "np.ascontiguousarray(weight_vectors(",
        CLAIMS,
    ),
]
