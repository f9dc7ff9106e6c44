"""The residuals in `kkt` are upper bounds for the coefficients and biases that a model publishes, in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from mercer import SVC, NuSVC, RLSRegressor
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


def solve(A, b):
    """Gauss's elimination in fractions, of a matrix that needs no pivots."""
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(len(rows)):
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [v - rows[i][k] * p for v, p in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]
