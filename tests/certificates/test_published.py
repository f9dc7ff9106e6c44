"""The residuals in `kkt` are upper bounds for the coefficients and biases that a model publishes, in fractions."""

from fractions import Fraction
from operator import mul

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    SVC,
    SVR,
    KernelMachineClassifier,
    KernelMachineRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    RLSClassifier,
    RLSClassifierCV,
    RLSRegressor,
    RLSRegressorCV,
)
from mercer.certificates import least_squares
from mercer.certificates.joint import row_residuals
from mercer.runtime.errors import NotSeparableError

BOX, EQUALITY = "dual feasibility: box", "dual feasibility: equality"
SUBOPTIMALITY = "primal value above the optimum"


def fractions(values):
    return [Fraction(float(value)) for value in values]


def coefficients(model, n):
    """One list of fractions for each output, over all rows."""
    out = np.zeros((len(np.atleast_2d(model.dual_coef_)), n))
    out[:, model.support_] = model.dual_coef_
    return [fractions(row) for row in out]


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("multiclass", ["crammer_singer", "weston_watkins"])
def test_joint_machines(multiclass, bias, repeated):
    """Σ_k β_ik = 0 of every row, Σ_i β_ik = 0 of every class with a bias, and the box of every row."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, C = 24, float(10.0 ** rng.integers(-2, 6))
        X, y, w = rng.normal(size=(n, 2)), rng.integers(0, 4, n), 10.0 ** rng.uniform(-3, 3, n)
        y[:4] = range(4)
        if repeated:
            X[12:], y[12:] = X[:12], y[:12]
        model = SVC(C=C, multiclass=multiclass, bias=bias, gamma=1.0).fit(X, y, sample_weight=w)
        columns = coefficients(model, n)
        rows = list(zip(*columns, strict=True))
        sums = [abs(sum(row)) for row in rows] + ([abs(sum(column)) for column in columns] if bias else [])
        assert max(sums) <= Fraction(model.certificate_.kkt[EQUALITY])
        alphas = [[-row[k] for k in range(4) if k != y[i]] for i, row in enumerate(rows)]
        spent = [sum(alpha) if multiclass == "crammer_singer" else max(alpha) for alpha in alphas]
        bounds = [
            Fraction(C) * weight * (1 + Fraction(2, 2**53)) for weight in fractions(w)
        ]  # products of C are rounded
        outside = max(max(a - c, -min(alpha)) for a, c, alpha in zip(spent, bounds, alphas, strict=True))
        assert outside <= Fraction(model.certificate_.kkt[BOX])


def test_residuals_of_a_row_that_only_rounding_keeps_inside():
    """0.1 + 0.2 − 0.3 is 5.6e-17 in float64, and 2.8e-17 in truth."""
    beta = np.array([[0.3, -0.1, -0.2]])
    true = sum(fractions(beta[0]))
    box, equality = row_residuals(beta, np.array([0]), np.array([0.3]), shared=True)
    assert true != 0
    assert abs(true) <= Fraction(equality)
    assert Fraction(0.1) + Fraction(0.2) - Fraction(0.3) <= Fraction(box) <= Fraction(1, 2**54)
    assert row_residuals(beta, np.array([0]), np.array([0.3]), shared=False)[0] == 0
    assert row_residuals(-beta, np.array([0]), np.array([0.3]), shared=False)[0] == 0.2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [-1, 3])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_hard_margins(kernel, max_iter):
    """y f(x) ≥ 1, with equality where there is a coefficient, and Σβ = 0: of f with its one b."""
    fits = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.integers(-40, 40, size=(8, 2)) / 16.0
        y = (X[:, 0] > 0).astype(int)
        X[:, 0] += np.where(y, 0.5, -0.5) * 2.0 ** -int(rng.integers(1, 20))
        try:
            model = SVC(C=np.inf, kernel=kernel, gamma=1.0, coef0=1.0, degree=2, max_iter=max_iter).fit(X, y)
        except (NotSeparableError, ValueError):  # one class, or not decided
            continue
        fits += 1
        (beta,), exact = coefficients(model, 8), [fractions(row) for row in X]
        inner = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in exact] for p in exact]
        K = inner if kernel == "linear" else [[(v + 1) ** 2 for v in row] for row in inner]
        b = Fraction(float(model.intercept_[0]))
        margins = [(1 if y[i] else -1) * (sum(k * c for k, c in zip(K[i], beta, strict=True)) + b) for i in range(8)]
        kkt = model.certificate_.kkt
        assert max(1 - m for m in margins) <= Fraction(kkt["primal feasibility"])
        assert max(m - 1 for m, c in zip(margins, beta, strict=True) if c) <= Fraction(kkt["complementary slackness"])
        assert abs(sum(beta)) <= Fraction(kkt[EQUALITY])
    assert fits >= 10


def test_nu_machines_after_the_division():
    """Σβ = 0 of coefficients that were divided by ρ, each quotient rounded."""
    missed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, size=(12, 1)).astype(float)
        y = rng.permutation(np.arange(12) % 2)
        model = NuSVC(gamma=2.0, nu=0.5).fit(X + 0.25 * y[:, None], y)  # sums of 3, which are exact before the division
        total = abs(sum(coefficients(model, 12)[0]))
        missed += total > 0
        assert total <= Fraction(model.certificate_.kkt[EQUALITY])
    assert missed > 10


def test_least_squares_with_repeated_rows():
    """P of `dual_coef_`, whose sums over three equal rows are rounded, above the optimum; K has integer values."""
    rounded = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.concatenate([np.zeros(3), rng.permutation(np.arange(1, 12))[:3]])[:, None]
        size, lam = float(10.0 ** rng.integers(3, 7)), float(2.0 ** -rng.integers(0, 14))
        t = np.concatenate([[size, -size, 0.3], rng.normal(size=3)])
        model = RLSRegressor(lam, kernel="poly", degree=2, gamma=1.0, coef0=1.0, bias=False).fit(X, t)
        x, y = X.ravel().astype(int).tolist(), fractions(t)
        K = [[Fraction((a * b + 1) ** 2) for b in x] for a in x]

        def value(beta, K=K, y=y, lam=Fraction(lam)):
            f = [sum(k * c for k, c in zip(row, beta, strict=True)) for row in K]
            energy = sum(c * v for c, v in zip(beta, f, strict=True))
            return energy / 2 + sum((a - v) ** 2 for a, v in zip(y, f, strict=True)) / (2 * lam)

        best = solve([[K[i][j] + Fraction(lam) * (i == j) for j in range(6)] for i in range(6)], y)
        above = value(fractions(model.dual_coef_)) - value(best)
        assert 0 <= above <= Fraction(model.certificate_.kkt[SUBOPTIMALITY])
        rounded += above > 0
    assert rounded > 6


def repeated_rows(seed, kind):
    """(X, classes, weights): each of a few small integers occurs several times, mostly with the same class."""
    rng = np.random.default_rng(seed)
    x = np.r_[np.arange(4), rng.integers(0, 4, 14)]
    y = np.where(rng.random(18) < 0.8, x // 2, 1 - x // 2)
    return x[:, None].astype(float), y, rng.uniform(0.5, 2.0, 18) if kind == "mild" else 10.0 ** rng.uniform(-4, 4, 18)


MACHINES = {
    **{f"RLSClassifier({lam:g})": RLSClassifier(lam) for lam in (1e-2, 1.0, 1e2, 1e5)},
    "RLSClassifierCV": RLSClassifierCV([10.0, 1e3]),
    **{f"RLSRegressor({lam:g})": RLSRegressor(lam) for lam in (1e-2, 1e2)},
    "RLSRegressor, linear": RLSRegressor(1e2, kernel="linear"),
    "RLSRegressor, eigen": RLSRegressor(1e2, solver="eigen"),
    "RLSRegressor, cg": RLSRegressor(1e2, solver="cg"),
    "RLSRegressorCV": RLSRegressorCV([10.0, 1e3]),
    **{f"SVC({C:g})": SVC(C=C) for C in (1e-2, 1e2)},
    **{f"SVC({C:g}), squared": SVC(C=C, slack="l2") for C in (1e-3, 1.0, 1e3)},
    "NuSVC": NuSVC(nu="auto"),
    "SVR": SVR(epsilon=0.1),
    "SVR, squared": SVR(epsilon=0.1, C=0.01, loss="squared_epsilon_insensitive"),
    "SVR, huber": SVR(C=10.0, loss="huber"),
    "SVR, expectile": SVR(C=0.1, loss="expectile"),
    "NuSVR": NuSVR(),
    "QuantileSVR": QuantileSVR(quantiles=0.3),
    "OneClassSVM": OneClassSVM(nu=0.5),
    "KernelMachineClassifier": KernelMachineClassifier("hinge", lam=1.0),
    "KernelMachineRegressor": KernelMachineRegressor("absolute", lam=1.0),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["mild", "wide"])
@pytest.mark.parametrize("name", MACHINES)
def test_sums_of_copies(name, kind):
    """|Σβ − total| of rows that share the coefficient of their sample, by weights that rounding cannot divide."""
    for seed in range(8):
        X, y, w = repeated_rows(seed, kind)
        model = clone(MACHINES[name]).set_params(gamma=0.5).fit(X, y, sample_weight=w)
        total = sum(fractions(w)) / 2 if name == "OneClassSVM" else Fraction(0)
        missed = abs(sum(fractions(np.ravel(model.dual_coef_))) - total)
        assert missed <= Fraction(model.certificate_.kkt[EQUALITY])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("lam", [1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("kernel", ["poly", "linear"])
def test_values_of_copies_in_least_squares(kernel, lam):
    """P, D, the gap and the residuals of the rows' own coefficients, with integers for kernel values."""
    for seed in range(8):
        X, y, w = repeated_rows(seed, "wide" if seed % 2 else "mild")
        model = RLSClassifier(lam, kernel=kernel, degree=2, gamma=1.0, coef0=1.0).fit(X, y, sample_weight=w)
        x, t = X.ravel().astype(int).tolist(), [Fraction(1 if label else -1) for label in y]
        beta, d = fractions(np.ravel(model.dual_coef_)), [Fraction(lam) / v for v in fractions(w)]
        K = [[Fraction((a * c + 1) ** 2 if kernel == "poly" else a * c) for c in x] for a in x]
        u, b, c = [sum(map(mul, row, beta)) for row in K], Fraction(float(model.intercept_[0])), model.certificate_
        own = [a - v - e * q for a, v, e, q in zip(t, u, d, beta, strict=True)]  # y − f − dβ of f_β
        f, energy = u, sum(map(mul, beta, u))
        norm = energy
        if kernel == "linear":  # P is that of the weights
            norm = Fraction(float(model.coef_[0, 0])) ** 2
            f = [v * Fraction(float(model.coef_[0, 0])) for v in x]
        primal = norm / 2 + sum((a - v - b) ** 2 / (2 * e) for a, v, e in zip(t, f, d, strict=True))
        dual = sum(map(mul, t, beta)) - energy / 2 - sum(e * q * q for e, q in zip(d, beta, strict=True)) / 2
        assert abs(sum(beta)) <= Fraction(c.kkt[EQUALITY])
        assert primal <= Fraction(c.primal)
        assert primal - dual <= Fraction(c.gap)
        assert max(own) - min(own) <= Fraction(c.violation)
        assert max(abs(v - b) for v in own) <= Fraction(c.kkt["primal feasibility"])


def test_a_fit_that_only_its_copies_keep_from_the_accuracy_has_not_converged(monkeypatch):
    X, y, w = repeated_rows(1, "wide")
    model = RLSClassifier(100.0, kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X, y, sample_weight=w)
    reached = model.certificate_.kkt[SUBOPTIMALITY] / model.certificate_.primal
    monkeypatch.setattr(least_squares, "EXACT_GAP", 1.01 * reached)
    assert model.fit(X, y, sample_weight=w).converged_
    assert model.residual_ == model.certificate_.violation
    monkeypatch.setattr(least_squares, "EXACT_GAP", 0.99 * reached)
    with pytest.warns(ConvergenceWarning, match="rounding floor"):
        model.fit(X, y, sample_weight=w)
    assert not model.converged_


def solve(A, b):
    """Gauss's elimination in fractions, of a matrix that needs no pivots."""
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(len(rows)):
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [v - rows[i][k] * p for v, p in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]
