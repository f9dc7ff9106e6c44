"""Claims from sums over the samples, against the problem in fractions that the true sums make.

The sums are small integers whose declared errors are large, or floats without an error whose products are rounded. The
true ones are the most that an error allows in one direction.
"""

from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.least_squares import SUBOPTIMALITY
from mercer.certificates.sums import certify_sums, least_curvature
from mercer.places.sums import Sums


def solve(A, b):
    """Solve Ax = b by elimination, in fractions."""
    rows = [[*row, value] for row, value in zip(A, b, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(len(rows)):
            if i != k:
                share = rows[i][k] / rows[k][k]
                rows[i] = [a - share * c for a, c in zip(rows[i], rows[k], strict=True)]
    return [row[-1] / row[k] for k, row in enumerate(rows)]


def true_products(sums, signs):
    """M = Σ w zz' of z = (1, x − origin, y − origin) with M_jk off by signs_j signs_k e_j e_k, in fractions."""
    d = len(sums.x)
    M = np.zeros((d + 2, d + 2), dtype=object)
    M[0, 0], M[d + 1, d + 1] = sums.weight, sums.yy[0]
    M[0, 1:] = M[1:, 0] = [*sums.rest_x.tolist(), sums.rest_y[0]]
    M[1 : d + 1, 1 : d + 1] = sums.xx
    M[1 : d + 1, d + 1] = M[d + 1, 1 : d + 1] = sums.xy[:, 0]
    e, whole = [Fraction(v) * s for v, s in zip(sums.error.tolist(), signs[1:], strict=True)], signs[0]
    return [[Fraction(float(M[j, k])) + whole * e[j] * e[k] for k in range(d + 2)] for j in range(d + 2)]


def objective(sums, M, w, b, lam, scale):
    """P(w, b) of one output, with c the bias about the origin."""
    d = len(w)
    z = [-w_j for w_j in w]
    c = b - Fraction(float(sums.y[0])) + sum(Fraction(float(x)) * v for x, v in zip(sums.x, w, strict=True))
    z = [-c if sums.bias else Fraction(0), *z, Fraction(1)]
    risk = sum(z[j] * z[k] * M[j][k] for j in range(d + 2) for k in range(d + 2))
    norm = sum(v * v for v in w)
    return (norm + risk / lam) / (2 * scale) if lam else risk / 2


def normal_equations(sums, M, lam):
    """A and g of Aw = g, after the bias is eliminated."""
    d = len(sums.x)

    def centred(j, k):
        return M[j][k] - M[j][0] * M[0][k] / M[0][0] if sums.bias else M[j][k]

    A = [[centred(j, k) + (lam if j == k else 0) for k in range(1, d + 1)] for j in range(1, d + 1)]
    return A, [centred(j, d + 1) for j in range(1, d + 1)]


def optimum(sums, M, lam, scale):
    A, g = normal_equations(sums, M, lam)
    best = solve(A, g) if A else []
    c = (M[0][-1] - sum(M[0][k + 1] * v for k, v in enumerate(best))) / M[0][0]
    b = c + Fraction(float(sums.y[0])) - sum(Fraction(float(x)) * v for x, v in zip(sums.x, best, strict=True))
    return best, objective(sums, M, best, b if sums.bias else Fraction(0), lam, scale)


def holds(sums, W, lam, scale=1.0):
    """Every claim of one output, for the sums themselves and for each direction of their errors."""
    proof = certify_sums(sums, W, lam, scale)
    w, b = [Fraction(v) for v in W[:, 0].tolist()], Fraction(proof.b[0]) if sums.bias else Fraction(0)
    lam, scale, above = Fraction(lam), Fraction(scale), Fraction(proof.kkt[SUBOPTIMALITY])
    for signs in directions(len(sums.error)) if sums.error.any() else [[0] * (len(sums.error) + 1)]:
        M = true_products(sums, signs)
        value = objective(sums, M, w, b, lam, scale)
        assert value <= Fraction(proof.primal)
        A, g = normal_equations(sums, M, lam)
        slopes = [t - sum(a * v for a, v in zip(row, w, strict=True)) for row, t in zip(A, g, strict=True)]
        assert max(map(abs, slopes), default=Fraction(0)) <= Fraction(proof.violation)
        if lam:
            _, least = optimum(sums, M, lam, scale)
            assert value - least <= above
            assert proof.dual == -np.inf or Fraction(proof.dual) <= least
        else:  # a step along one feature, with the bias that is best for it
            c = b - Fraction(float(sums.y[0])) + sum(Fraction(float(x)) * v for x, v in zip(sums.x, w, strict=True))
            rest = M[0][-1] - sum(M[0][k + 1] * v for k, v in enumerate(w))
            tilt = (c * M[0][0] - rest) ** 2 / (2 * M[0][0]) if sums.bias else Fraction(0)
            diagonal = [Fraction(float(sums.xx[k, k])) for k in range(len(w))]
            gains = [s * s / (2 * a) for s, a in zip(slopes, diagonal, strict=True) if a]
            assert max(gains, default=Fraction(0)) + tilt <= above
            assert Fraction(proof.dual) <= value - max(gains, default=Fraction(0))
    return proof


def directions(n):
    """Signs of a whole error and of its factors."""
    for whole in (1, -1):
        for bits in range(2 ** (n - 1)):
            yield [whole, 1, *(1 if bits >> k & 1 else -1 for k in range(n - 1))]


def made(xx, xy, yy, error, weight=1.0, bias=False, x=0.0, y=0.0, rest_x=0.0, rest_y=0.0):
    d = len(xx)
    return Sums(
        weight, np.full(d, x), np.full(1, y), np.array(xx, dtype=float), np.array(xy, dtype=float)[:, None],
        np.full(1, yy), bias, np.full(d, rest_x), np.full(1, rest_y), np.array(error, dtype=float),
    )  # fmt: skip


@pytest.mark.parametrize("error", [(0.0, 0.5, 0.0), (0.0, 0.0, 0.5), (0.0, 0.5, 0.25), (0.0, 2.0**-20, 2.0**-20)])
@pytest.mark.parametrize("lam", [1.0, 0.125, 0.0])
@pytest.mark.parametrize("w", [0.0, 1.0, -3.0, 0.5])
def test_sums_that_are_known_up_to_an_error(error, lam, w):
    """One feature: Σx² = 2, Σxy = 2 − w, so that w = 1 solves the equations at λ = 0."""
    holds(made([[2.0]], [2.0], 8.0, error), np.full((1, 1), w), lam, 4.0)


@pytest.mark.parametrize("error", [(0.5, 0.0, 0.0), (0.25, 0.5, 0.0), (0.25, 0.0, 0.5), (0.0, 0.5, 0.5)])
@pytest.mark.parametrize("lam", [1.0, 0.125, 0.0])
@pytest.mark.parametrize("rest", [0.0, 0.5])
def test_a_bias_that_is_known_up_to_an_error(error, lam, rest):
    sums = made([[2.0]], [2.0], 8.0, error, weight=4.0, bias=True, x=1.0, y=2.0, rest_x=0.0, rest_y=rest)
    for w in (0.0, 1.0, -2.0):
        holds(sums, np.full((1, 1), w), lam)


@pytest.mark.parametrize("seed", range(30))
def test_sums_of_two_features(seed):
    """Features that are almost the same one, in units that differ: eigenvalues decide the distance from the optimum."""
    rng = np.random.default_rng(seed)
    units, near = np.array([1.0, 10.0 ** rng.integers(-6, 7)]), 2.0 ** -int(rng.integers(2, 24))
    xx = np.array([[1.0, 1 - near], [1 - near, 1.0]]) * units[:, None] * units
    best = rng.normal(size=2) / units
    xy = xx @ best
    yy = float(best @ xy) + 1.0
    W = (best * (1 + rng.choice([0.0, 1e-9, 0.1]) * rng.normal(size=2)))[:, None]
    size = float(rng.choice([0.0, 0.01, 0.3])) * np.sqrt(near)
    holds(made(xx, xy, yy, [0.0, *(size * units), size]), W, float(10.0 ** rng.integers(-9, 3)))


@pytest.mark.parametrize("seed", range(60))
def test_sums_without_an_error_are_rounded(seed):
    """Floats whose products float64 rounds, and a bias far from zero."""
    rng = np.random.default_rng(seed)
    d, bias = int(rng.integers(1, 3)), bool(seed % 2)
    A = rng.normal(size=(d + 2, d + 2))
    M = A.T @ A
    far = 10.0 ** rng.integers(0, 12)
    sums = Sums(
        float(rng.uniform(0.5, 9)), rng.normal(size=d) * far, rng.normal(size=1) * far, M[:d, :d], M[:d, d:-1],
        M[d:-1, d][:1] * (1 + 2.0**-40), bias, np.zeros(d), np.zeros(1), np.zeros(d + 2),
    )  # fmt: skip
    lam = float(rng.choice([0.0, 1e-6, 0.3, 7.0]))
    A, g = normal_equations(sums, true_products(sums, [0] * (d + 3)), Fraction(lam))
    W = np.array([float(v) for v in solve(A, g)]).reshape(d, 1)
    holds(sums, W * (1 + rng.choice([0.0, 2.0**-52, 1e-3])), lam, float(rng.choice([1.0, 0.3])))


@pytest.mark.parametrize("near", [0.0, 2.0**-52, 2.0**-40, 0.25])
@pytest.mark.parametrize("error", [0.0, 2.0**-21, 0.25])
def test_the_least_eigenvalue_is_a_lower_bound(near, error):
    """[[1, c], [c, 1]] has the least eigenvalue 1 − c, which errors of both squares make smaller by 2e²."""
    sums = made([[1.0, 1 - near], [1 - near, 1.0]], [0.0, 0.0], 0.0, [0.0, error, error, 0.0])
    least = Fraction(least_curvature(sums, 0.0, np.ones(2)))
    assert least <= Fraction(near) - 2 * Fraction(error) ** 2
    assert error or least >= Fraction(near) - Fraction(1, 2**40)


def test_a_sum_of_errors_is_rounded():
    """Many errors e_k|w_k| below half a unit of the first, e₀|w₀| = 1; all sums are 0."""
    d = 1024
    error = np.array([0.0, 1.0, *[0.99 * 2.0**-53] * (d - 1), 0.0])
    proof = certify_sums(made(np.zeros((d, d)), np.zeros(d), 0.0, error), np.ones((d, 1)), 0.0)
    assert Fraction(proof.violation) >= sum(map(Fraction, error.tolist()))


@pytest.mark.parametrize("square", [2e13, 3e13, 5e13, 7e13])
def test_a_least_curvature_that_underflows(square):
    """Twice the same feature, at λ so small that λ/(Σx² + λ) has few digits; the gradient is along w = (1, −1)."""
    lam, slope, scale = 1e-300, 1e-140, 1e200
    sums = made([[square, square], [square, square]], [slope, -slope], 1.0, [0.0] * 4)
    holds(sums, np.zeros((2, 1)), lam, scale)
