"""The hard margin: closed forms where it exists, evidence where it does not."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mercer import SVC
from mercer.errors import NotSeparableError
from mercer.kernels import FromFunction
from reference.machines import minimise, root
from reference.problems import gram_matrix


def hard(tol=1e-10, **parameters):
    return SVC(C=np.inf, tol=tol, **parameters)


def margin(model):
    return 1.0 / np.linalg.norm(model.coef_[0])


@pytest.mark.parametrize(
    ("X", "y", "expected"),
    [
        ([[0.0], [3.0]], [0, 1], 1.5),
        ([[0.0], [1.0], [3.0], [9.0]], [0, 0, 1, 1], 1.0),
        ([[0.0, 0.0], [3.0, 4.0]], [0, 1], 2.5),
        # A point and a segment that it looks at from the side: the distance from (0, 2) to y = 0.
        ([[0.0, 2.0], [-1.0, 0.0], [1.0, 0.0]], [1, 0, 0], 1.0),
        # Two parallel segments, so that the nearest points are not unique but the margin is.
        ([[-1.0, 0.0], [1.0, 0.0], [-1.0, 3.0], [1.0, 3.0]], [0, 0, 1, 1], 1.5),
        # A class with one support vector among several samples, far from the others.
        ([[0.0, 0.0], [-9.0, 0.0], [2.0, 1.0], [2.0, -1.0]], [0, 0, 1, 1], 1.0),
    ],
)
def test_closed_forms(X, y, expected):
    model = hard(kernel="linear").fit(X, y)
    assert margin(model) == pytest.approx(expected, rel=1e-9)
    y = np.where(np.array(y) == 1, 1.0, -1.0)
    f = y * model.decision_function(X)
    assert f.min() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(f[model.support_], 1.0, atol=1e-9)
    assert model.certificate_.gap >= 0
    assert model.certificate_.gap <= 1e-9 * abs(model.certificate_.dual)
    assert -2 * model.certificate_.primal > 0  # the proof that the classes are apart


def test_two_points_of_a_gaussian():
    """Two points at squared distance s in input space are √(2 − 2exp(−γs)) apart in feature space."""
    model = hard(gamma=0.5).fit([[0.0], [1.0]], [0, 1])
    distance = np.sqrt(2 - 2 * np.exp(-0.5))
    alpha = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(alpha, 2 / distance**2, rtol=1e-9)
    assert alpha.sum() == pytest.approx((2 / distance) ** 2, rel=1e-9)  # 1/ρ² = Σα


def test_it_is_the_solution_of_the_textbook_problem():
    X, y = load_iris(return_X_y=True)
    keep = np.r_[0:50, 50:100]
    X, y = X[keep], np.where(y[keep] == 1, 1.0, -1.0)
    K = gram_matrix("rbf", X, gamma=0.3)
    model = hard(gamma=0.3).fit(X, y)
    Phi = root(K)
    m = Phi.shape[1]
    P = np.diag(np.r_[np.ones(m), 0.0])
    A = y[:, None] * np.column_stack([Phi, np.ones(len(y))])
    half, x = minimise(P, np.zeros(m + 1), np.zeros((0, m + 1)), np.zeros(0), A, np.ones(len(y)))
    assert np.abs(model.dual_coef_).sum() == pytest.approx(2 * half, rel=1e-6)  # Σα = ‖w‖²
    np.testing.assert_allclose(model.decision_function(X), Phi @ x[:m] + x[m], atol=1e-5)


def test_several_classes_and_the_rest():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0], [11.0, 0.0], [0.0, 10.0], [1.0, 11.0]])
    y = [0, 0, 1, 1, 2, 2]
    assert hard(kernel="linear").fit(X, y).score(X, y) == 1.0
    model = hard(kernel="linear", multiclass="ovr").fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.coef_.shape == (3, 2)


def test_the_limit_of_the_2_norm_machine():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    f = hard(gamma=0.5).fit(X, y).decision_function(X)
    errors = [np.abs(SVC(C=C, slack="l2", gamma=0.5, tol=1e-9).fit(X, y).decision_function(X) - f).max() for C in LARGE]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-4


LARGE = (1e2, 1e4, 1e7)


def test_weights_change_nothing_but_zero_ones():
    X = np.array([[0.0], [1.0], [3.0], [2.0]])
    y = [0, 0, 1, 1]
    weighted = hard(kernel="linear").fit(X, y, sample_weight=[1.0, 5.0, 0.3, 0.0])
    assert margin(weighted) == pytest.approx(1.0, rel=1e-9)


def test_overlap_is_proven():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=300) > 0).astype(int)
    with pytest.raises(NotSeparableError, match=r"C=inf.*does not exist.*no margin above.*finite C") as caught:
        hard(tol=1e-3, kernel="linear").fit(X, y)
    error = caught.value
    assert error.verdict == "not separable"
    (rows1, weights1), (rows0, weights0) = error.combinations
    assert (y[rows1] == 1).all()
    assert (y[rows0] == 0).all()
    for weights in (weights1, weights0):
        assert (weights > 0).all()
        assert weights.sum() == pytest.approx(1.0)
    apart = np.linalg.norm(weights1 @ X[rows1] - weights0 @ X[rows0])
    largest = np.sqrt((X**2).sum(axis=1).max())
    assert apart <= 1e-5 * largest  # ‖w‖² below 1e-10 of max k(x, x)
    assert error.margin_bounds[1] == pytest.approx(apart / 2, abs=1e-7 * largest)
    assert error.margin_bounds[0] == 0.0


@pytest.mark.parametrize("kernel", ["rbf", "linear", FromFunction(lambda X, Z: 1 / 0)])
def test_one_sample_with_both_labels_needs_no_kernel(kernel):
    X = np.random.default_rng(1).normal(size=(20, 2))
    X[7], X[15] = X[3], X[3]
    y = np.arange(20) % 2
    y[[3, 7, 15]] = [0, 1, 1]
    with pytest.raises(
        NotSeparableError, match=r"rows \[3, 7, 15\] hold the same sample with different labels"
    ) as caught:
        hard(kernel=kernel).fit(X, y)
    assert [rows.tolist() for rows in caught.value.rows] == [[3, 7, 15]]


def test_both_labels_with_no_weight_is_no_clash():
    X = np.array([[0.0], [1.0], [1.0], [3.0]])
    assert margin(hard(kernel="linear").fit(X, [0, 0, 1, 1], sample_weight=[1, 1, 0, 1])) == pytest.approx(1.0)


def test_undecided_when_limits_come_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=200) > 0
    with pytest.raises(NotSeparableError, match=r"undecided \(max_iter\): the margin lies between 0 and") as caught:
        SVC(C=np.inf, gamma=10.0, max_iter=3).fit(X, y)
    assert caught.value.verdict == "undecided"
    low, high = caught.value.margin_bounds
    true = 1 / np.sqrt(np.abs(hard(gamma=10.0).fit(X, y).dual_coef_).sum())
    assert low <= true <= high


def test_a_failed_fit_leaves_the_old_one():
    model = hard(kernel="linear").fit([[0.0], [3.0]], [0, 1])
    with pytest.raises(NotSeparableError):
        model.fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    assert margin(model) == pytest.approx(1.5)


@pytest.mark.parametrize("parameters", [{"bias": False}, {"bias": "regularized"}, {"lam": 0.1}])
def test_what_the_hulls_do_not_solve_is_refused(parameters):
    with pytest.raises(ValueError, match="C=inf"):
        SVC(C=np.inf, **parameters).fit([[0.0], [3.0]], [0, 1])
