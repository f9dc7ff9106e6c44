"""mercer.certify: α from other libraries, from formulas, and α that are no solution."""

import numpy as np
import pytest
import sklearn.svm
from scipy.optimize import minimize

import mercer
from mercer.kernels import Gaussian, Spectrum
from mercer.problems.classification import soft_margin, squared_soft_margin
from mercer.problems.novelty import data_description
from mercer.problems.regression import epsilon_insensitive
from reference.qp import by_clarabel

rng = np.random.default_rng(1)
X = rng.normal(size=(50, 2))
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=50) > 0, "b", "a")
S = np.where(Y == "b", 1.0, -1.0)


def alpha_of(model):
    alpha = np.zeros(len(Y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


def test_scikit_learns():
    for tol in (1e-2, 1e-8):
        other = sklearn.svm.SVC(C=2.0, gamma=0.5, tol=tol).fit(X, Y)
        found = mercer.certify(mercer.SVC(gamma=0.5, C=2.0), X, Y, alpha_of(other))
        own = mercer.SVC(C=2.0, gamma=0.5, tol=1e-10).fit(X, Y).certificate_
        assert found.dual <= own.primal
        assert found.primal >= own.dual
        assert found.primal - own.dual <= (found.gap + own.gap) * (1 + 1e-9) + 1e-12
        # Its kernel values are float32 numbers, so that its last digits are not what tol says.
        assert found.violation <= 2 * tol + 1e-6
        assert found.b[0] == pytest.approx(other.intercept_[0], abs=10 * tol + 1e-6)
        assert found.proves == "optimality"


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_quadratic_programs(slack, bias):
    C = rng.uniform(0.5, 2.0, size=50)
    problem = (squared_soft_margin if slack == "l2" else soft_margin)(S, C)
    problem = problem if bias else problem.without_bias()
    K = Gaussian(gamma=0.5)(X)
    value, beta = by_clarabel(problem, K)
    found = mercer.certify(mercer.SVC(kernel="precomputed", slack=slack, bias=bias), K, Y, S * beta, sample_weight=C)
    assert found.dual == pytest.approx(value, rel=1e-7)
    assert found.gap <= 1e-6 * value
    assert found.primal >= value * (1 - 1e-9)


def test_any_feasible_alpha_gives_bounds():
    best = mercer.SVC(C=1.0, gamma=0.5, tol=1e-10).fit(X, Y).certificate_
    for seed in range(5):
        wish = np.random.default_rng(seed).random(50)
        beta = soft_margin(S, np.ones(50)).nearest_feasible(S * wish)
        found = mercer.certify(mercer.SVC(gamma=0.5), X, Y, S * beta)
        assert found.dual <= best.primal
        assert found.primal >= best.dual
        assert found.gap >= found.primal - found.dual - 1e-9


@pytest.mark.parametrize("bias", [True, False, "regularized"])
def test_the_hard_margin(bias):
    """Any α bounds clarabel's ½‖w‖² from below, and from above where it separates; clarabel's own to many digits."""
    far = np.abs(X[:, 0]) > 0.1
    Z, y = X[far], np.where(X[far, 0] > 0, 1.0, -1.0)
    K = Gaussian(gamma=0.5)(Z)
    problem = soft_margin(y, np.full(len(y), np.inf))
    value, beta = by_clarabel(problem if bias is True else problem.without_bias(), K + (bias == "regularized"))
    machine = mercer.SVC(C=np.inf, gamma=0.5, bias=bias)
    best = mercer.certify(machine, Z, y, y * beta)
    assert best.gap <= 1e-4 * value
    assert best.dual <= value * (1 + 1e-9)
    assert best.primal >= value * (1 - 1e-9)
    np.testing.assert_allclose(mercer.certify(machine, Z, y, 7 * y * beta).primal, best.primal, rtol=1e-6)  # no scale
    separating = 0
    for seed in range(10):
        wish = np.abs(y * beta + 0.3 * np.random.default_rng(seed).random(len(y)) * beta.max())
        other = y * wish if bias is not True else problem.nearest_feasible(y * wish)
        found = mercer.certify(machine, Z, y, y * other)
        energy = other @ (K + (bias == "regularized")) @ other
        assert np.abs(other).sum() - 0.5 * energy <= found.dual <= value * (1 + 1e-9)
        assert found.primal >= value * (1 - 1e-9)
        separating += np.isfinite(found.primal)
    assert separating
    # No margin: equal points of two classes, whose dual has no upper bound.
    with pytest.raises(mercer.errors.NotSeparableError):
        mercer.certify(machine, [[0.0], [0.0]], [0, 1], [1.0, 1.0])
    none = mercer.certify(mercer.SVC(C=np.inf, kernel="linear"), [[0.0], [2.0], [1.0]], [0, 0, 1], [0.5, 0.5, 1.0])
    assert none.primal == np.inf


def test_the_regularised_bias():
    _, beta = by_clarabel(soft_margin(S, np.ones(50)).without_bias(), Gaussian(gamma=0.5)(X) + 1.0)
    found = mercer.certify(mercer.SVC(gamma=0.5, bias="regularized"), X, Y, S * beta)
    assert found.gap <= 1e-6 * found.dual


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SVR", {"C": 2.0, "epsilon": 0.05}),
        ("NuSVR", {"nu": 0.3, "C": 2.0}),
        ("OneClassSVM", {"nu": 0.3}),
        ("NuSVC", {"nu": 0.4}),
    ],
)
def test_other_machines_of_scikit_learn(name, options):
    y = Y if name == "NuSVC" else X[:, 0] ** 2
    other = getattr(sklearn.svm, name)(gamma=0.5, tol=1e-8, **options).fit(X, y)
    coefficients = np.zeros(50)
    coefficients[other.support_] = other.dual_coef_[0]
    machine = getattr(mercer, name)(gamma=0.5, tol=1e-9, **options)
    found = mercer.certify(machine, X, y, np.abs(coefficients) if name == "NuSVC" else coefficients)
    assert found.gap <= 1e-5 * abs(found.dual)
    assert found.violation <= 1e-5
    own = machine.fit(X, y).certificate_
    assert found.primal == pytest.approx(own.primal, rel=1e-4)
    assert found.b == pytest.approx(own.b, abs=1e-4)


def test_the_ball():
    problem = data_description(np.ones(50), np.ones(50), 0.3)
    value, beta = by_clarabel(problem, Gaussian(gamma=0.5)(X))
    found = mercer.certify(mercer.SVDD(nu=0.3, gamma=0.5), X, None, beta)
    assert found.dual == pytest.approx(value, rel=1e-7)
    assert found.gap <= 1e-6 * value


def test_several_classes_and_equal_rows():
    Z, y = np.vstack([X, X[:5]]), np.r_[np.arange(50) % 3, np.arange(5) % 3]
    model = mercer.SVC(gamma=0.5, tol=1e-9).fit(Z, y)
    columns = np.zeros((55, 3))
    for k, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = np.flatnonzero((y == first) | (y == second))
        other = sklearn.svm.SVC(gamma=0.5, tol=1e-9).fit(Z[rows], y[rows])
        columns[rows[other.support_], k] = np.abs(other.dual_coef_[0])
    found = mercer.certify(mercer.SVC(gamma=0.5), Z, y, columns)
    assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert len(found.parts) == 3
    assert found.gap <= 1e-4


def test_what_is_no_alpha():
    good = alpha_of(sklearn.svm.SVC(C=1.0, gamma=0.5).fit(X, Y))
    negative = good.copy()
    negative[0] = -1.0
    for alpha, options, message in [
        (good, {"C": 0.5}, r"outside of its box by 0\.5: it must be between 0 and 0\.5"),
        (-good, {}, "outside of its box"),
        (negative, {}, r"alpha\[0\] = -1 lies outside of its box by 1: it must be between 0 and 1"),
        (np.abs(S - 1) / 4, {}, "is not 0, as a machine with bias requires"),
        (good[:-1], {}, "for each of the 50 samples"),
        (0 * good, {"C": np.inf}, "0 everywhere"),
        (good, {"slack": "l3"}, "must be one of"),
        (good, {"multiclass": "crammer-singer"}, "joint machine"),
        (
            np.c_[good, good],
            {"multiclass": "weston_watkins"},
            "SVC with multiclass='weston_watkins' is a joint machine",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            mercer.certify(mercer.SVC(gamma=0.5, **options), X, Y, alpha)
    with pytest.raises(ValueError, match="a column for each of the 3 problems"):
        mercer.certify(mercer.SVC(gamma=0.5), X, np.arange(50) % 3, good)
    with pytest.raises(ValueError, match="10"):
        mercer.certify(mercer.SVC(gamma=0.5), X[:10], Y, good)
    with pytest.raises(ValueError, match=r"alpha\[0\] = .* must be 0"):
        mercer.certify(mercer.SVC(gamma=0.5), X, Y, good + 1e-3, sample_weight=np.arange(50) > 0)
    with pytest.raises(ValueError, match="must have the sum 10 on each side"):
        mercer.certify(mercer.NuSVR(nu=0.4, gamma=0.5), X, X[:, 0], np.r_[1.0, np.zeros(49)])
    for other in (sklearn.svm.SVC(), mercer.LinearSVC(), "rbf"):
        with pytest.raises(TypeError, match="machine of mercer with dual variables α"):
            mercer.certify(other, X, Y, good)


def test_strings():
    words, labels = ["ab", "abab", "ba", "bbb"], [0, 0, 1, 1]
    model = mercer.SVC(kernel=Spectrum(1), C=1.0, tol=1e-8).fit(words, labels)
    alpha = np.zeros(4)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert mercer.certify(mercer.SVC(kernel=Spectrum(1)), words, labels, alpha).gap < 1e-6


def test_matrices_for_a_solver_of_quadratic_programs():
    problem = soft_margin(S[:12], np.ones(12))
    P, q, A, totals, lower, upper = problem.matrices(Gaussian(gamma=0.5)(X[:12]))
    found = minimize(
        lambda b: 0.5 * b @ P @ b + q @ b,
        np.zeros(12),
        jac=lambda b: P @ b + q,
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": lambda b: A @ b - totals, "jac": lambda b: A},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    own = mercer.SVC(C=1.0, gamma=0.5, tol=1e-10).fit(X[:12], Y[:12]).certificate_.dual
    assert -found.fun == pytest.approx(own, rel=1e-7)
    with pytest.raises(ValueError, match="K must be square"):
        problem.matrices(np.eye(11))
    twins = epsilon_insensitive(X[:3, 0], np.ones(3), 0.1)
    assert twins.matrices(np.eye(3)).P.shape == (6, 6)
