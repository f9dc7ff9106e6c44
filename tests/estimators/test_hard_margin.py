"""The hard margin: closed forms where it exists, evidence where it does not."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC
from mercer.kernels import FromFunction
from mercer.runtime.errors import NotSeparableError
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
    assert model.certificate_.primal == pytest.approx(0.5 / expected**2, rel=1e-8)  # ½‖w‖², in its own scale
    assert model.certificate_.dual == pytest.approx(0.5 / expected**2, rel=1e-8)
    assert model.certificate_.b[0] == pytest.approx(model.decision_function(np.median(X, axis=0)[None])[0], abs=1e-8)


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


def test_overlap_that_rounding_blurs_is_undecided():
    """Random labels in the plane: no conic separates them, says a linear program; the hulls meet up to rounding."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.random(60) > 0.5
    a, b = X.T
    conics = np.column_stack([np.ones(60), a, b, a * a, a * b, b * b])
    signed = np.where(y, 1.0, -1.0)[:, None] * conics
    assert linprog(np.zeros(6), A_ub=-signed, b_ub=-np.ones(60), bounds=(None, None)).status == 2  # infeasible
    with pytest.raises(NotSeparableError, match=r"undecided \(rounding floor\)") as caught:
        hard(kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X, y)
    assert caught.value.verdict == "undecided"
    assert caught.value.margin_bounds[0] == 0
    assert caught.value.margin_bounds[1] < 1e-6


def test_a_gaussian_separates_whatever_is_distinct():
    """Hulls that meet to rounding prove nothing of a kernel under which distinct samples are independent."""
    with pytest.raises(NotSeparableError, match="undecided") as caught:
        hard(kernel="rbf", gamma=1.0).fit([[0.0], [1e-9], [1.0], [2.0]], [0, 1, 0, 1])
    low, high = caught.value.margin_bounds
    assert caught.value.verdict == "undecided"
    assert low == 0
    assert high > 1e-10


@pytest.mark.parametrize("offset", [1e9, 1e13, 1e15])
def test_the_violation_counts_what_rounding_does_to_a_large_bias(offset):
    X = np.array([[offset], [offset + 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = hard(kernel="linear", tol=1e-3).fit(X, [0, 1])
    beta, x, b = ([Fraction(v) for v in a.ravel().tolist()] for a in (model.dual_coef_, X, model.intercept_))
    rows = model.support_.tolist()
    f = [sum((c * x[j] * z for c, j in zip(beta, rows, strict=True)), b[0]) for z in x]
    assert max(1 + f[0], 1 - f[1]) <= model.certificate_.violation
    assert model.converged_ == (model.certificate_.violation <= 1e-3)
    assert model.converged_ == (offset < 1e12)


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


def test_a_price_beside_the_hard_margin_is_refused():
    with pytest.raises(ValueError, match="C=inf"):
        SVC(C=np.inf, theta=0.1).fit([[0.0], [3.0]], [0, 1])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ([1000.0, 1000.001, 1000.002], [1000.01, 1000.011], 0.004),
        ([1.7e9, 1.7e9 + 30, 1.7e9 + 60], [1.7e9 + 140, 1.7e9 + 3600], 40.0),  # seconds
        ([1e12, 0.0, 1.0], [-2.0, -3.0], 1.0),  # one outlier, far from where the classes meet
        ([1e-9, 2e-9], [5e-9, 6e-9], 1.5e-9),
    ],
)
def test_margins_far_from_the_origin_and_small_ones(low, high, expected):
    X, y = np.array([*low, *high])[:, None], np.repeat([0, 1], [len(low), len(high)])
    model = hard(tol=1e-6, kernel="linear").fit(X, y)
    assert model.converged_
    assert 1 / model.rkhs_norm_ == pytest.approx(expected, rel=1e-5)
    assert np.sqrt(0.5 / model.certificate_.primal) <= expected * (1 + 1e-9)
    assert np.sqrt(0.5 / model.certificate_.dual) >= expected * (1 - 1e-9)


@given(st.integers(0, 10**6), st.floats(-4, 3), st.booleans())
@settings(max_examples=40, deadline=None)
def test_not_separable_is_said_only_where_it_is_true(seed, decades, overlap):
    """Two clouds on a line, at any scale and offset: separable exactly if the gap between them is there."""
    rng = np.random.default_rng(seed)
    scale = 10.0**decades
    below, above = -rng.exponential(size=8), rng.exponential(size=8)
    gap = rng.uniform(1e-3, 1.0)
    x = np.r_[below - below.max(), above - above.min() + gap]
    y = np.repeat([0, 1], 8)
    if overlap:
        y[[0, 7]] = [1, 0]
    X = scale * x[:, None] + 1e3 * scale * rng.normal()
    margin_of_x = 0.5 * (X[8:].min() - X[:8].max())
    if overlap and y[np.argsort(x)].tolist() != sorted(y.tolist()):
        with pytest.raises(NotSeparableError, match="does not exist"):
            hard(tol=1e-3, kernel="linear").fit(X, y)
    elif not overlap:
        model = hard(tol=1e-5, kernel="linear").fit(X, y)
        assert 1 / model.rkhs_norm_ == pytest.approx(margin_of_x, rel=1e-4)
        assert model.score(X, y) == 1.0


@pytest.mark.parametrize("bias", [False, "regularized"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scale", [1.0, 1e-2])
def test_without_a_free_bias_it_is_the_textbook_problem(bias, kernel, scale):
    rng = np.random.default_rng(5)
    y = np.repeat([-1.0, 1.0], 15)
    X = scale * (rng.normal(size=(30, 3)) + 4 * y[:, None])
    gamma = 0.3 / scale**2
    model = hard(tol=1e-8, bias=bias, kernel=kernel, gamma=gamma).fit(X, y)
    K = gram_matrix(kernel, X, gamma=gamma) + float(bias == "regularized")
    Phi = root(K)
    m = Phi.shape[1]
    half, w = minimise(np.eye(m), np.zeros(m), np.zeros((0, m)), np.zeros(0), y[:, None] * Phi, np.ones(30))
    assert model.converged_
    assert model.certificate_.primal == pytest.approx(half, rel=1e-5)
    assert model.certificate_.dual == pytest.approx(half, rel=1e-5)
    assert model.certificate_.gap >= 0
    np.testing.assert_allclose(model.decision_function(X), Phi @ w, atol=2e-5)
    assert (y * model.decision_function(X)).min() == pytest.approx(1.0, abs=1e-6)


def test_no_plane_through_the_origin():
    """Both classes on one side of it: separable with a bias, and proven not to be without."""
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 0, 1, 1]
    assert margin(hard(kernel="linear").fit(X, y)) == pytest.approx(0.5)
    with pytest.raises(NotSeparableError, match="no margin above") as caught:
        hard(kernel="linear", bias=False).fit(X, y)
    assert caught.value.verdict == "not separable"
    assert caught.value.margin_bounds[1] <= 1e-6


def exact_length(rows, weights):
    """The length of a combination of rows, from exact rational numbers."""
    total = [sum(w * x for w, x in zip(weights, column, strict=True)) for column in zip(*rows, strict=True)]
    return math.sqrt(sum(t * t for t in total))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("bias", [True, False, "regularized"])
def test_the_cited_combinations_meet(bias, kernel, seed):
    """φ written out, and the verdict of a linear program: with one common b, without b, or with a constant feature."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    X, y = rng.normal(size=(n, 2)) + rng.normal(size=2), rng.integers(0, 2, n)
    y[:2] = [0, 1]
    a, b = X.T
    phi = (
        X if kernel == "linear" else np.column_stack([np.full(n, 2.0), 2 * a, 2 * b, a * a, np.sqrt(2) * a * b, b * b])
    )
    signed = np.where(y, 1.0, -1.0)[:, None] * (phi if bias is False else np.column_stack([phi, np.ones(n)]))
    d = signed.shape[1]
    separable = linprog(np.zeros(d), A_ub=-signed, b_ub=-np.ones(n), bounds=(None, None)).status == 0
    # (⟨x, z⟩ + 2)² is ⟨φ(x), φ(z)⟩.
    model = SVC(C=np.inf, kernel=kernel, degree=2, gamma=1.0, coef0=2.0, bias=bias)
    if separable:
        assert model.fit(X, y).converged_
        assert model.score(X, y) == 1.0
        return
    with pytest.raises(NotSeparableError) as caught:
        model.fit(X, y)
    error = caught.value
    assert error.verdict == ("not separable" if kernel == "linear" else "undecided")
    low, high = error.margin_bounds
    assert low == 0.0
    (rows1, weights1), (rows0, weights0) = error.combinations
    assert (y[rows1] == 1).all()
    assert (y[rows0] == 0).all()
    sums = [weights1.sum() + weights0.sum()] if bias is False else [weights1.sum(), weights0.sum()]
    assert sums == pytest.approx(np.ones(len(sums)), rel=1e-12)
    rows = [[Fraction(v) for v in phi[i]] for i in (*rows1, *rows0)]
    length = exact_length(rows, [Fraction(w) for w in (*weights1, *-weights0)])
    size = np.sqrt((phi**2).sum(axis=1).max())
    # A regularised b lets the two sums differ by the bound, before each becomes 1.
    bound = {False: high, True: 2 * high, "regularized": 2 * high * (1 + 2 * size)}[bias]
    assert length <= bound + 1e-15 * size
    if kernel == "linear":
        assert high <= 4e-8 * np.sqrt(size**2 + 1)
        assert ("origin of feature space" if bias is False else "meet in feature space") in str(error)


def test_one_sample_of_each_class_on_the_same_side_of_the_origin():
    """1 and 2 do not meet; −1 and 2 have the origin between them, at a third of the way."""
    with pytest.raises(NotSeparableError, match="origin of feature space") as caught:
        hard(kernel="linear", bias=False).fit([[1.0], [2.0]], [0, 1])
    (rows1, weights1), (rows0, weights0) = caught.value.combinations
    assert (rows1.tolist(), rows0.tolist()) == ([1], [0])
    assert weights1 == pytest.approx([1 / 3], abs=1e-7)
    assert weights0 == pytest.approx([2 / 3], abs=1e-7)


def test_nobody_separates_xor_with_a_regularised_bias():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), [0, 0, 1, 1]
    with pytest.raises(NotSeparableError, match="does not exist") as caught:
        hard(kernel="linear", bias="regularized").fit(X, y)
    assert caught.value.verdict == "not separable"
    for _, weights in caught.value.combinations:
        np.testing.assert_allclose(weights, 0.5)


@pytest.mark.parametrize("solver", ["decomposition", "chunking", "qp"])
def test_every_solver_finds_it(solver):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    expected = hard(tol=1e-6, gamma=0.5).fit(X, y)
    found = hard(tol=1e-4, gamma=0.5, solver=solver, cache_size=0.05 if solver == "chunking" else 100).fit(X, y)
    assert found.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-4)


@pytest.mark.parametrize(
    ("seed", "bias"), [(2, False), (4, False), (22, False), (32, False), (9, "regularized"), (136, "regularized")]
)
@pytest.mark.parametrize("solver", ["qp", "qp:piqp"])
def test_an_outside_solver_does_not_call_separable_samples_undecided(solver, seed, bias):
    """Multipliers of all sizes, far below the C at which they are looked for."""
    pytest.importorskip({"qp": "clarabel", "qp:piqp": "piqp"}[solver])
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    found = SVC(C=np.inf, gamma=5.0, bias=bias, solver=solver).fit(X, y)
    assert found.converged_
    K = gram_matrix("rbf", X, gamma=5.0) + float(bias == "regularized")
    beta = np.zeros(60)
    beta[found.support_] = found.dual_coef_[0]
    assert (np.where(y, 1.0, -1.0) * (K @ beta)).min() >= 1 - 1.01e-3  # tol
    own = SVC(C=np.inf, gamma=5.0, bias=bias).fit(X, y)
    assert found.certificate_.dual <= own.certificate_.primal * (1 + 1e-9)
    assert found.certificate_.primal >= own.certificate_.dual * (1 - 1e-9)


@pytest.mark.parametrize("size", [1e-100, 1e-60, 1e60])
def test_without_a_bias_on_very_small_and_large_features(size):
    """½‖w‖² of features times s is that of the features divided by s²; its square would overflow."""
    X = np.array([[1.0, 0.2], [2.0, -0.3], [-1.0, 0.1], [-3.0, 0.5]])
    y = np.array([1, 1, 0, 0])
    plain = SVC(C=np.inf, kernel="linear", bias=False, tol=1e-6).fit(X, y)
    scaled = SVC(C=np.inf, kernel="linear", bias=False, tol=1e-6).fit(size * X, y)
    for name in ("primal", "dual"):
        told = getattr(scaled.certificate_, name) * size * size
        assert told == pytest.approx(getattr(plain.certificate_, name), rel=1e-5)


def test_values_below_float64_end_with_an_error(capfd):
    """K of samples of 1e-160 has hardly a digit; the search for a tolerance went on for minutes, and LAPACK printed."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.5 * y
    with pytest.raises(FloatingPointError, match="scale the features"):
        hard(kernel="linear").fit(1e-160 * X, y)
    assert capfd.readouterr() == ("", "")


def test_a_stalled_default_solver_is_not_advised_to_be_the_default():
    """Near copies across classes under a polynomial of degree 3, by which rounding ends the steps."""
    rng = np.random.default_rng(1)
    d = int(rng.integers(1, 4))
    X, y = rng.normal(size=(14, d)), rng.random(14) > 0.5
    X = X * 10.0 ** rng.integers(-2, 3)
    k = int(rng.integers(1, 5))
    X[:k] = X[-k:] + 10.0 ** -rng.integers(6, 14) * rng.normal(size=(k, d))
    with pytest.raises(
        NotSeparableError, match=r"undecided .*Scale the features, raise gamma, or use a finite C"
    ) as told:
        hard(tol=1e-3, kernel="poly", gamma=1.0, coef0=1.0, bias="regularized").fit(X, y)
    assert "solver='auto'" not in str(told.value)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear"},
        {"gamma": 0.5},
        {"gamma": 5.0, "slack": "l2"},
        {"gamma": 5.0, "bias": "regularized"},
        {"kernel": "linear", "bias": False},
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_samples_are_added_and_forgotten(options, classes):
    """The margin of all samples is that of one fit, whichever way they came."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.digitize(X[:, 0], [0.0] if classes == 2 else [-0.5, 0.5])
    if options.get("bias") is False and classes == 3:
        X[:, 1] = 1.0  # a plane through the origin has its b here
    whole = hard(tol=1e-6, **options).fit(X, y)
    added = hard(tol=1e-6, **options).partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    more, labels = np.concatenate([X, 1.1 * X[:2]]), np.concatenate([y, y[:2]])
    fewer = hard(tol=1e-6, warm_start=True, **options).fit(more, labels).forget([60, 61])
    for model in (added, fewer):
        assert model.converged_
        assert model.certificate_.proves == "optimality"
        np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=2e-5)
        assert model.certificate_.dual <= whole.certificate_.primal
        assert whole.certificate_.dual <= model.certificate_.primal


@pytest.mark.parametrize("offset", [-7.0, 0.0, 5.0])
def test_residuals_of_a_solved_margin_are_small_whatever_its_bias(offset):
    """Margins of the machine are compared with ρ of its hulls, not with its bias."""
    X, y = np.array([[-2.0], [-1.0], [1.0], [3.0]]) + offset, np.array([-1, -1, 1, 1])
    model = SVC(C=math.inf, kernel="linear", tol=1e-9).fit(X, y)
    assert model.intercept_[0] == pytest.approx(-offset, abs=1e-6)
    assert max(model.certificate_.kkt.values()) < 1e-5
