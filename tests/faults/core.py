"""Slips in the compiled core; each is built with CMake and Ninja."""

from faults.mutant import CLAIMS, m

CORE = [
    m(
        "the core's loss loses its half",
        "core/solve/findings.cpp",
        "const double loss = r * best - 0.5 * d * best * best;",
        "const double loss = r * best - d * best * best;",
        "tests/certificates/test_linear.py",
    ),
    m(
        "the core's share forgets the rounding of f",
        "core/solve/findings.cpp",
        "below = loss_at(r - error, d, lower, upper, beta), above = loss_at(r + error, d, lower, upper, beta)",
        "below = loss_at(r, d, lower, upper, beta), above = below",
        "tests/core/test_findings.py",
    ),
    m(
        "a bound is open from the wrong side",
        "core/solve/findings.cpp",
        "if (low) lower_to(residual - error, &to->bottom);",
        "if (up) lower_to(residual - error, &to->bottom);",
        "tests/certificates/test_linear.py",
    ),
    m(
        "the gap forgets the rounding of f",
        "core/solve/dual_findings.cpp",
        "accumulate(p, b, error, d,",
        "accumulate(p, b, 0.0 * error, d,",
        CLAIMS,
    ),
    m(
        "the gradient's error forgets the error of u",
        "core/solve/dual_findings.cpp",
        "at.error[at.row[i]] + 2.0 * kEps * size",
        "2.0 * kEps * size",
        CLAIMS,
    ),
    m(
        "the bias of a pair is a sum",
        "core/solve/findings.hpp",
        "return sum / static_cast<double>(free);",
        "return sum;",
        "tests/solvers/dual/test_pairs.py::test_each_certificate_is_the_naive_one",
    ),
    m(
        "a pair's curvature counts the product once",
        "core/solve/smo.cpp",
        "curvature(kii + kjj - 2.0 * kij",
        "curvature(kii + kjj - kij",
        "tests/core/test_smo.py::test_one_step_is_the_optimum_of_a_pair",
    ),
    m(
        "a pair step ignores the room of its second variable",
        "core/solve/smo.cpp",
        "const double room_j = beta(j) - in_.lower[j];",
        "const double room_j = in_.upper[j] - in_.lower[j];",
        "tests/core/test_smo.py::test_bounded_variables_lie_exactly_on_their_bounds",
        "tests/core/test_smo.py::test_smo_agrees_with_a_naive_one_on_every_level",
    ),
    m(
        "a strip is not cleared before it is used again",
        "core/gram/sparse_blocks.cpp",
        "for (std::int64_t e = from; e < end; ++e) data_[place(",
        "for (std::int64_t e = from + 1; e < end; ++e) data_[place(",
        "tests/gram/test_sparse_values.py::test_wide_samples_have_the_values_of_narrow_ones",
    ),
    m(
        "a sparse row's norm is its neighbour's",
        "core/gram/sparse_blocks.cpp",
        "norms_[r] = samples_.norms[rows[r]];",
        "norms_[r] = samples_.norms[rows[0]];",
        "tests/gram/test_sparse_values.py::test_wide_samples_have_the_values_of_narrow_ones",
    ),
]
