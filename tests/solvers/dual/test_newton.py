"""Newton steps on a face reach its optimum, stay in the box and keep the equalities."""

import numpy as np
import pytest

from mercer.solvers.dual.newton import newton_on_face
from reference.certificate import dual_value
from reference.problems import c_svc, gram_matrix


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.01, 0.3, 1e3])
def test_it_ends_at_the_optimum_of_a_face(C, bias):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat([1.0, -1.0], 20)
    K, problem = gram_matrix("rbf", X, gamma=0.5), c_svc(y, C)
    problem = problem if bias else problem.without_bias()
    before = 0.5 * C * y
    after = newton_on_face(problem, np.arange(40), K, problem.gradient(before, K @ before), before)
    free = (after > problem.lower) & (after < problem.upper)
    h = problem.gradient(after, K @ after)[free]
    assert (after >= problem.lower).all()
    assert (after <= problem.upper).all()
    assert free.sum() < 40  # the box was met
    if bias:
        assert abs(after.sum()) <= 1e-12 * C * 40
    np.testing.assert_allclose(h - (h.mean() if bias else 0.0), 0.0, atol=1e-7)
    assert dual_value(problem, K, after) > dual_value(problem, K, before)
    np.testing.assert_array_equal(before, 0.5 * C * y)
