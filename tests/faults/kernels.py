"""Slips that would change kernel values, or which of them are used."""

from faults.mutant import CLAIMS, m

KERNELS = [
    m(
        "a squared distance is summed with one product only",
        "mercer/kernels/distances.py",
        "strip *= -2.0",
        "strip *= -1.0",
        "tests/kernels/test_kernel_values.py",
    ),
    m(
        "distances that cancelled are kept",
        "mercer/kernels/distances.py",
        "_CANCELLED_SHARE = 1e-4",
        "_CANCELLED_SHARE = 0.0",
        "tests/kernels/test_gaussian.py",
        "tests/kernels/test_kernel_invariants.py",
        CLAIMS,
    ),
    m(
        "σ without the 2",
        "mercer/kernels/radial.py",
        "min(0.5 / float(length)",
        "min(1.0 / float(length)",
        "tests/kernels/test_kernel_values.py",
        "tests/kernels/test_gaussian.py",
    ),
    m(
        "Matérn 5/2 with a wrong coefficient",
        "mercer/kernels/radial.py",
        "1.0 + t + t**2 / 3.0",
        "1.0 + t + t**2 / 2.0",
        "tests/kernels/test_kernel_values.py",
    ),
    m(
        "cosine divides by the square of the length",
        "mercer/kernels/matrices.py",
        'X /= _or_one(np.sqrt(np.einsum("ij,ij->i", X, X)))[:, None]',
        'X /= _or_one(np.einsum("ij,ij->i", X, X))[:, None]',
        "tests/kernels/test_kernel_values.py",
    ),
    m(
        "an odd power loses a factor",
        "mercer/kernels/recipe.py",
        "            if n % 2:\n                result *= t",
        "            if n % 2 == 0:\n                result *= t",
        "tests/kernels/test_kernel_values.py",
    ),
    m(
        "a sum of a kernel with itself loses its constants",
        "mercer/kernels/recipe.py",
        "left.scale + right.scale, left.constant + right.constant",
        "left.scale + right.scale, left.constant",
        "tests/kernels/test_lowering.py",
    ),
    m(
        "kept rows are stale after a shrink",
        "mercer/gram/host_field.py",
        "{r: column[positions] for r, column",
        "{r: column[: len(positions)] for r, column",
        "tests/gram/test_gram_and_field.py::test_u_stays_right_after_a_shrink",
    ),
    m(
        "a kept row is found under its neighbour's number",
        "mercer/gram/tiled_field.py",
        "self._next, np.arange(len(sources))",
        "self._next, np.arange(len(sources))[::-1]",
        "tests/gram/test_kept_rows.py",
    ),
]
