"""Primal, dual, gap and residuals of least squares against their values at β and b, in fractions.

K is the linear kernel of a few numbers, and products with it are exact up to the errors that are declared.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.least_squares import certify_outputs
from mercer.problems.least_squares import LeastSquares

EQUALITY, FEASIBILITY = "dual feasibility: equality", "primal feasibility"


def fractions(values):
    return [Fraction(value) for value in np.ravel(values).tolist()]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


@dataclass
class Line:
    """The linear kernel of numbers x, whose lengths are |x|."""

    x: np.ndarray
    positive_definite: str = "yes"

    @property
    def entry_bounds(self):
        return np.abs(self.x)


def product(x, c, way):
    """Kc within the errors that are returned beside it: `way` times the error of each is added."""
    true = [a * dot(fractions(x), fractions(c)) for a in fractions(x)]
    values = np.array([float(v) for v in true])
    sizes = np.abs(x) * (np.abs(x) @ np.abs(c))
    errors = (np.abs(way) + 2.0**-50) * sizes + 1e-320
    return values + way * sizes, errors


def drawn(seed):
    rng = np.random.default_rng(seed)
    n, bias = int(rng.integers(1, 6)), bool(rng.random() < 0.5)
    member = rng.integers(0, n, n) if rng.random() < 0.4 else np.arange(n)
    member = np.unique(member, return_inverse=True)[1]
    x = rng.normal(size=member.max() + 1) * rng.choice([0.0, 1.0, 1e5, 1e-100])
    y = rng.normal(size=n) * rng.choice([0.0, 1.0, 1e9, 1e-140]) + rng.choice([0.0, 1e8])
    weight, lam = rng.uniform(0.5, 2.0, n) * rng.choice([1.0, 1e-6]), float(rng.choice([1.0, 1e-8, 1e7]))
    beta = rng.normal(size=n) * rng.choice([0.0, 1.0, 1e7, 1e-150])
    if rng.random() < 0.6:  # nearly r = dβ
        beta = weight / lam * (y - (np.average(y, weights=weight) if bias else 0.0))
        x = x * rng.choice([0.0, 1e-9])
    if bias and rng.random() < 0.7 and n > 1:
        beta[-1] = -beta[:-1].sum() * (1 + int(rng.integers(-1, 2)) * 2.0**-51)
    way = rng.choice([0.0, 1e-3, -1e-3]) * rng.choice([-1.0, 1.0], len(x))
    return LeastSquares(y[:, None], weight, member, len(x), bias, lam), x, beta, way


def values(problem, x, c, beta, b):
    """P(f, b) of f = Kc, and D(β) of f_β, with rows that share a sample."""
    lam, weight, y = Fraction(problem.lam), fractions(problem.weight), fractions(problem.Y)
    rows = [fractions(x)[k] for k in problem.member]
    w, v = dot(fractions(x), fractions(c)), dot(rows, fractions(beta))  # weights of f and of f_β
    r = [t - a * w - b for t, a in zip(y, rows, strict=True)]
    primal = w * w / 2 + dot(weight, [e * e for e in r]) / (2 * lam)
    curved = sum(lam / a * c * c for a, c in zip(weight, fractions(beta), strict=True))
    dual = dot(y, fractions(beta)) - v * v / 2 - curved / 2
    left = [t - a * v - b - lam / q * c for t, a, q, c in zip(y, rows, weight, fractions(beta), strict=True)]
    return primal, dual, left


def optimum(problem, x):
    """min P over a line and, with a bias, b: normal equations of one or two unknowns."""
    lam, weight, y = Fraction(problem.lam), fractions(problem.weight), fractions(problem.Y)
    rows, ones = [fractions(x)[k] for k in problem.member], [Fraction(1)] * len(y)

    def inner(a, c):
        return sum(q * s * t for q, s, t in zip(weight, a, c, strict=True))

    xx, xo, oo, xy, oy = (inner(*p) for p in ((rows, rows), (rows, ones), (ones, ones), (rows, y), (ones, y)))
    if problem.bias:
        w = (xy - xo * oy / oo) / (xx - xo * xo / oo + lam)
        b = (oy - xo * w) / oo
    else:
        w, b = xy / (xx + lam), Fraction(0)
    r = [t - a * w - b for t, a in zip(y, rows, strict=True)]
    return w * w / 2 + inner(r, r) / (2 * lam)


@pytest.mark.parametrize("part", range(8))
def test_values_of_random_problems(part):
    for seed in range(150 * part, 150 * (part + 1)):
        problem, x, beta, way = drawn(seed)
        c = np.bincount(problem.member, weights=beta, minlength=len(x))
        u, errors = product(x, c, way)
        proof = certify_outputs(problem, Line(x), beta[:, None], u[:, None], errors[:, None], c[:, None])
        b = Fraction(proof.b[0]) if problem.bias else Fraction(0)
        primal, dual, left = values(problem, x, c, beta, b)
        best, total = optimum(problem, x), abs(sum(fractions(beta)))
        assert Fraction(proof.primal) >= primal
        assert Fraction(proof.dual) <= best
        assert Fraction(proof.gap) >= primal - best
        assert Fraction(proof.kkt["primal value above the optimum"]) >= primal - best
        assert Fraction(proof.kkt[FEASIBILITY]) >= max(map(abs, left))
        if problem.bias:
            assert Fraction(proof.kkt[EQUALITY]) >= total
            assert Fraction(proof.violation) >= max(left) - min(left)
        if not problem.bias or not total:
            assert Fraction(proof.dual) <= dual
            assert Fraction(proof.gap) >= primal - dual


def test_a_residual_that_cancels():
    """y − (f + dβ) = −1 for d = 1 and y = f = 2⁵⁴, where 1 is lost."""
    big = np.full((1, 1), 2.0**54)
    problem = LeastSquares(big, np.ones(1), np.arange(1), 1, False, 1.0)
    proof = certify_outputs(problem, Line(np.ones(1)), np.ones((1, 1)), big, np.zeros((1, 1)), np.ones((1, 1)))
    assert proof.kkt[FEASIBILITY] >= 1


def test_a_quotient_that_underflows():
    """d = λ/w has a dozen digits, which a large β shows: y − dβ seems to be 0."""
    for k in range(40):
        problem = LeastSquares(np.full((1, 1), 1e-5), np.full(1, 1e10), np.arange(1), 1, False, (1 + k / 41) * 1e-300)
        beta, zero = np.full((1, 1), 1e-5 / (problem.lam / 1e10)), np.zeros((1, 1))
        proof = certify_outputs(problem, Line(np.zeros(1)), beta, zero, zero, beta)
        true = Fraction(1e-5) - Fraction(problem.lam) / Fraction(1e10) * Fraction(beta[0, 0])
        assert Fraction(proof.kkt[FEASIBILITY]) >= abs(true)
