"""How much optimality is violated."""

import numpy as np
import pytest

from mercer.problems.dual_problem import violation


@pytest.mark.parametrize("n_groups", [0, 1, 2])
def test_a_gradient_that_is_not_a_number_is_no_optimum(n_groups):
    h, everything, group = np.array([1.0, np.nan, 0.5]), np.ones(3, dtype=bool), np.zeros(3, dtype=np.int32)
    assert violation(h, everything, everything, group, n_groups)[0] == np.inf
