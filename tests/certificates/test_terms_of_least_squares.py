"""Terms of the certificate of least squares that large numbers show: Σβ that is not 0, and f that is not f_β."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certificates.test_least_squares_values import FEASIBILITY, Line, dot, fractions, optimum, values
from mercer.certificates.least_squares import SUBOPTIMALITY, certify_outputs, certify_parts, limit_certificate
from mercer.places.ball import Ball, exact
from mercer.problems.least_squares import LeastSquares

LINE = np.array([-1.0, 1.0, 2.0])


def made(y, bias, lam):
    return LeastSquares(np.array(y, dtype=float)[:, None], np.ones(3), np.arange(3), 3, bias, lam)


def column(numbers):
    return exact(np.array([float(number) for number in numbers])[:, None])


def holds(problem, line, w, b, beta):
    """Every claim about P(wx, b) and D(β); a shift of all residuals is handed over by itself."""
    x, lam, w, beta = fractions(line), Fraction(problem.lam), Fraction(w), fractions(beta)
    r = [y - w * a - Fraction(b) for y, a in zip(fractions(problem.Y), x, strict=True)]
    v, rest = dot(x, beta), [e - lam * c for e, c in zip(r, beta, strict=True)]
    near, primal = (w - v) ** 2 / 2 + dot(rest, rest) / (2 * lam), w**2 / 2 + dot(r, r) / (2 * lam)
    left = [e + a * (w - v) for e, a in zip(rest, x, strict=True)]
    one, two, three = (exact(np.array([float(number)])) for number in (primal, primal - near, near))
    proof = certify_parts(
        problem, np.array([b]), np.array([[float(c)] for c in beta]), one, two, three, column(r), column(rest),
        float(np.abs(line).max()), "optimality", shift=Ball(np.array([4.0]), np.array([1.0])),
        dual_gradient=column([e - 5 for e in left]),
    )  # fmt: skip
    best = optimum(problem, line)
    assert Fraction(proof.dual) <= best
    assert Fraction(proof.kkt[SUBOPTIMALITY]) >= primal - best
    assert Fraction(proof.gap) >= near - Fraction(b) * sum(beta)  # P − D(β)
    assert Fraction(proof.kkt[FEASIBILITY]) >= max(left)


@pytest.mark.parametrize("lam", [0.25, 4.0])
@pytest.mark.parametrize("far", [0.0, 8.0, -8.0])
def test_any_coefficients_of_a_line(lam, far):
    """Small integers, whatever Σβ is; all samples may be 0, so that the bias alone is left."""
    problem = made([far + 1, far, far + 3], True, lam)
    for line, w, b, *beta in product((LINE, 0 * LINE), (0.0, 1.0), (0.0, far), (-1.0, 0.5), (0.0, 2.0), (1.0, -1.0)):
        holds(problem, line, w, b, beta)
    holds(problem, 0 * LINE, 0.0, 0.0, (problem.Y[:, 0] / lam).tolist())


def test_a_bias_that_moves_with_the_weights():
    """f = 0 and b = 0 leave residuals with the mean 0, and β is optimal without a bias: D(β) is above the optimum."""
    y = np.array([-1.0, 0.0, 1.0])
    holds(made(y, True, 2.0), LINE, 0.0, 0.0, ((y - 0.375 * LINE) / 2).tolist())


@pytest.mark.parametrize("off", [-0.25, 0.25])
def test_the_length_of_what_f_misses(off):
    """P(f) − P* = ½(1 + 1/λ)(f − f*)² for k = y = 1, of which λ = 63 leaves the norm."""
    problem = LeastSquares(np.ones((1, 1)), np.ones(1), np.arange(1), 1, False, 63.0)
    beta, C = np.full((1, 1), 1 / 64), np.full((1, 1), 1 / 64 + off)
    proof = certify_outputs(problem, Line(np.ones(1)), beta, C, np.zeros((1, 1)), C)
    assert Fraction(proof.kkt[SUBOPTIMALITY]) >= Fraction(64, 126) * Fraction(off) ** 2


@pytest.mark.parametrize("way", [-2.0, 0.5, 2.0])
@pytest.mark.parametrize("lam", [0.25, 4.0])
def test_an_f_that_is_not_that_of_the_coefficients(lam, way):
    """U = KC with other C than β: values are those of either f, and `dual` is at most D(β)."""
    problem = made([1.0, 0.0, 3.0], False, lam)
    for beta in product((0.0, 1.0, -4.0), repeat=3):
        beta = np.array(beta)
        for C in (beta + way * np.eye(3)[0], beta + way * LINE):
            U = np.outer(LINE, LINE) @ C
            proof = certify_outputs(
                problem, Line(LINE), beta[:, None], U[:, None], np.zeros((3, 1)), np.array(C)[:, None]
            )
            primal, dual, left = values(problem, LINE, C, beta, Fraction(0))
            others = values(problem, LINE, beta, beta, Fraction(0))[0]
            assert Fraction(proof.dual) <= dual
            assert Fraction(proof.primal) >= primal
            assert Fraction(proof.kkt[SUBOPTIMALITY]) >= max(primal, others) - optimum(problem, LINE)
            assert Fraction(proof.kkt[FEASIBILITY]) >= max(map(abs, left))


def test_a_risk_that_is_smaller_than_it_seems():
    """At λ = 0 a residual is ½ and seems to be 1; one step along the feature would gain ½·¼."""
    problem = LeastSquares(np.ones((1, 1)), np.ones(1), np.arange(1), 1, False, 0.0)
    residual, gradient = Ball(np.ones((1, 1)), np.full((1, 1), 0.5)), exact(np.full((1, 1), 0.5))
    proof = limit_certificate(problem, residual, gradient, np.ones(1), np.zeros(1))
    assert proof.dual <= 0.5 * 0.25 - 0.5 * 0.25
