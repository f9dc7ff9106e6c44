"""Gradient, index sets and bias at a given α, by loops; constraint qualifications, by hand and by random directions."""

import numpy as np
import pytest

from mercer import SVC
from mercer.kernels import Gaussian
from mercer.notes.teaching import SmallProblem, constraint_qualification, soft_margin_primal

rng = np.random.default_rng(3)
X = rng.normal(size=(12, 2))
Y = np.where(X[:, 0] + rng.normal(size=12) > 0, 1, -1)
K = np.array([[np.exp(-0.5 * np.sum((a - b) ** 2)) for b in X] for a in X])


def feasible(C):
    """A feasible α with some entries 0, some free and some C."""
    alpha = np.zeros(12)
    up, down = np.flatnonzero(Y > 0), np.flatnonzero(Y < 0)
    alpha[up[0]] = alpha[down[0]] = C
    alpha[up[1]] = alpha[down[1]] = 0.25 * C
    return alpha


@pytest.mark.parametrize("C", [0.5, 3.0])
def test_gradient_index_sets_and_interval_by_loops(C):
    alpha = feasible(C)
    problem = SmallProblem(K, Y.astype(float), C)
    gradient, masks = problem.gradient(alpha), problem.index_sets(alpha)
    up, down = [], []
    for i in range(12):
        slope = 1 - Y[i] * sum(Y[j] * alpha[j] * K[i, j] for j in range(12))
        assert gradient[i] == pytest.approx(slope, abs=1e-12)
        low, high = (0, C) if Y[i] > 0 else (-C, 0)
        up += [i] if Y[i] * alpha[i] < high else []
        down += [i] if Y[i] * alpha[i] > low else []
    assert [np.flatnonzero(mask).tolist() for mask in masks] == [up, down]
    top = max(Y[i] * gradient[i] for i in up)
    bottom = min(Y[i] * gradient[i] for i in down)
    assert problem.b_interval(alpha) == (top, bottom)
    assert problem.violation_and_b(alpha, gradient)[0] == max(0.0, top - bottom) > 0
    pairs = sum(alpha[i] * alpha[j] * Y[i] * Y[j] * K[i, j] for i in range(12) for j in range(12))
    assert problem.dual(alpha) == pytest.approx(alpha.sum() - 0.5 * pairs)


def test_a_small_problem_of_other_labels_and_lists():
    values = [[4.0, -4.0], [-4.0, 4.0]]
    for labels in ([0, 1], ["a", "b"], np.float32([-1, 1])):
        problem = SmallProblem(values, labels, 1.0)
        assert problem.gradient(np.array([0.5, 0.25])).tolist() == [1 - (2.0 + 1.0), 1 - (2.0 + 1.0)]
    with pytest.raises(ValueError, match="alpha is infeasible: Σ y_iα_i"):
        problem.b_interval(np.array([0.5, 0.25]))
    with pytest.raises(ValueError, match="K must have a finite row and column for each of 3 labels"):
        SmallProblem(values, [1, 1, -1], 1.0)
    with pytest.raises(ValueError, match="C=-1"):
        SmallProblem(values, [1, -1], -1.0)


def test_every_bias_of_the_interval_is_optimal():
    """At the optimum without free vectors, each b between the ends has the least Σ slack; outside it grows."""
    Z, y = np.array([[0.0], [0.0], [1.0], [1.0], [3.0], [3.0]]), np.array([1, 1, 1, -1, -1, -1])
    values = 1e-6 * (Z @ Z.T)  # so little curvature that every α is at a bound
    model = SVC(C=1.0, kernel="precomputed", tol=1e-10).fit(values, y)
    alpha = np.zeros(6)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    low, high = SmallProblem(values, y, 1.0).b_interval(alpha)
    assert high - low > 1.0

    def slack(b):
        return np.maximum(0, 1 - y * (values @ (y * alpha) + b)).sum()

    assert slack(low) == pytest.approx(slack(high)) == pytest.approx(slack(0.5 * (low + high)))
    assert slack(low - 0.1) > slack(low) + 0.05
    assert slack(high + 0.1) > slack(high) + 0.05


def test_active_constraints_of_the_soft_margin():
    """The gradients of the primal's active constraints are independent where each sample has one of its own."""
    program = soft_margin_primal(Gaussian(gamma=0.5)(X), Y, C=1.0)
    point = np.concatenate([np.zeros(12), np.ones(12), [0.0]])  # w = 0, ξ = 1: all margins active, no slack at 0
    active = program.G[np.isclose(program.G @ point, program.h)]
    assert len(active) == 12
    found = constraint_qualification(active)
    assert found.kuhn_tucker
    assert (active @ found.direction < 0).all()


def test_lemma_3_1_on_random_gradients():
    """Kuhn–Tucker implies Mangasarian–Fromowitz; v is what it must be, and where there is none, no random v is."""
    kinds = set()
    for _ in range(200):
        d, m, e = rng.integers(2, 5), rng.integers(1, 6), rng.integers(0, 3)
        g, h = rng.integers(-2, 3, size=(m, d)).astype(float), rng.integers(-2, 3, size=(e, d)).astype(float)
        found = constraint_qualification(g, equalities=h) if e else constraint_qualification(g)
        both, holds = np.vstack([h, g]), found.direction is not None
        independent = e == 0 or np.linalg.matrix_rank(h) == e  # NumPy 2.0 has no rank for a matrix without rows
        assert found.kuhn_tucker == (np.linalg.matrix_rank(both) == len(both))
        assert holds or not found.kuhn_tucker
        kinds.add((found.kuhn_tucker, holds))
        if holds:
            assert independent
            assert np.abs(h @ found.direction).max(initial=0.0) < 1e-9
            assert (g @ found.direction < 0).all()
        elif independent:
            null = np.linalg.svd(h)[2][e:] if e else np.eye(d)
            candidates = rng.normal(size=(2000, len(null))) @ null
            assert not (candidates @ g.T < -1e-6).all(axis=1).any()
    assert kinds == {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_length_of_a_gradient_does_not_matter(scale):
    found = constraint_qualification([[3.0 * scale, 4.0 * scale], [0.0, 1.0]])
    assert found.kuhn_tucker
    assert (np.array([[3.0, 4.0], [0.0, 1.0]]) @ found.direction < 0).all()
    assert constraint_qualification([[scale, 0.0], [-1.0, 0.0]]) == (False, None)


@pytest.mark.parametrize("off", [1e-9, 1e-11])
def test_a_direction_keeps_equalities_that_are_nearly_parallel(off):
    """⟨h_1, v⟩ = ⟨h_2, v⟩ = 0 leaves v = 0 only, and a solver's tolerance must not hide that."""
    nearly = [[1.0, off], [1.0, 3 * off]]
    assert constraint_qualification([[0.0, -1.0]], equalities=nearly) == (False, None)
    away = constraint_qualification([[1.0, 1.0 + 1e-9]], equalities=[[1.0, 1.0]])  # independent, but hardly
    assert away.kuhn_tucker
    assert away.direction @ [1.0, 1.0 + 1e-9] < 0


def test_gradients_that_are_no_matrix_are_refused():
    with pytest.raises(ValueError, match="row of finite numbers per constraint"):
        constraint_qualification([1.0, 2.0])
    with pytest.raises(ValueError, match="both need one for each variable"):
        constraint_qualification([[1.0, 2.0]], equalities=[[1.0]])
