"""Error terms of the certificate of feature weights, each of which decides one of these claims, in fractions."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from certificates.test_terms_of_sums import made, solve
from mercer.certificates.weights import _combination, _suboptimality_bound, _values, certify_weights_limit
from mercer.kernels import Linear
from mercer.places import gram_for
from mercer.places.ball import Ball, exact
from mercer.problems.least_squares import LeastSquares


def fractions(values):
    return [Fraction(value) for value in np.ravel(values).tolist()]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def inside(ball, truth):
    """Whether each true number lies in its ball."""
    low, high = (fractions(end) for end in (ball.value, ball.error))
    return all(abs(value - true) <= error for value, error, true in zip(low, high, truth, strict=True))


@pytest.mark.parametrize(
    ("x", "centre", "w", "b"),
    [
        ([1.0, 2.0**-66], [1.0, 2.0**-66], [1.0, 1.0], -1.0),  # cancels except for what extended precision loses
        ([1.0, 1.0], [1.0, 0.0], [2.0**-53, 2.0**-53], 1.0),  # 1 + ε/2 + ε/2, rounded to even twice
        ([1.0, 1.0], [1.0, 0.0], [2.0**-53 * (1 + 2.0**-13), 2.0**-53], 1.0),  # and in extended precision before
        ([0.1, 0.7], [0.1, 0.7], [0.3, -0.9], 0.01),
        ([1e8, 1e-8], [1e8, 1e-8], [0.1, 0.1], 1e-3),
    ],
)
def test_a_bias_that_moves_with_the_centre(x, centre, w, b):
    """f + b at one sample."""
    linear, W, centre = gram_for(Linear(), np.array([x])).linear, np.array(w)[:, None], np.array(centre)
    assert inside(_values(linear, W, np.full(1, b), centre), [Fraction(b) + dot(fractions(x), fractions(w))])


@pytest.mark.parametrize("beta", [[1.0, 2.0**-60, 2.0**-60], [1.0, 0.1, 0.7], [0.3, -0.1, 1e-17]])
@pytest.mark.parametrize("member", [[0, 0, 0], [0, 1, 2]])
@pytest.mark.parametrize("far", [False, True])
def test_a_combination_of_rows(beta, member, far):
    """scale·Σ β_i x_i, where rows share a sample or the samples are their centre, and sums of β are rounded."""
    x, beta, member = np.full((max(member) + 1, 1), 3.0), np.array(beta)[:, None], np.array(member)
    problem = LeastSquares(np.zeros((3, 1)), np.ones(3), member, len(x), far, 1.0)
    totals = np.array([float(sum(fractions(beta)))]) if far else np.zeros(1)
    linear = gram_for(2.0 * Linear(), x).linear
    found = _combination(problem, linear, beta, totals, np.full(1, 3.0) if far else None)
    assert inside(found, [6 * sum(fractions(beta))])


def test_a_combination_whose_four_roundings_add_up():
    """Σβ, its product with the centre, the sum with Σβ(x − c) and the product with scale are all rounded downwards."""
    c, t, scale = map(float.fromhex, ("0x1.00000096d8f32p+0", "0x1.0000004314560p+0", "0x1.0000006703f4dp+0"))
    x, beta = np.array([[c], [c + 1]]), np.array([[t], [2.0**-53]])
    problem = LeastSquares(np.zeros((2, 1)), np.ones(2), np.arange(2), 2, True, 1.0)
    linear = gram_for(scale * Linear(), x).linear
    found = _combination(problem, linear, beta, np.array([t]), np.full(1, c))
    assert inside(found, [Fraction(scale) * dot(fractions(x), fractions(beta))])


def test_coefficients_of_many_copies_of_a_sample():
    """A sum over many rows that are below half a unit of the first."""
    n = 4000
    beta = np.full((n, 1), 0.99 * 2.0**-53)
    beta[0] = 1.0
    problem = LeastSquares(np.zeros((n, 1)), np.ones(n), np.zeros(n, dtype=np.intp), 1, False, 1.0)
    found = _combination(problem, gram_for(Linear(), np.ones((1, 1))).linear, beta, np.zeros(1), None)
    assert inside(found, [sum(fractions(beta))])


def test_a_sum_over_many_rows_is_rounded():
    """Xᵀ(y − 0) of many targets that are below half a unit of the first; at λ = 0 it is the gradient."""
    n = 4000
    y = np.full((n, 1), 0.99 * 2.0**-53)
    y[0] = 1.0
    problem = LeastSquares(y, np.ones(n), np.arange(n), n, False, 0.0)
    proof = certify_weights_limit(
        problem, gram_for(Linear(), np.ones((n, 1))).linear, np.zeros((1, 1)), np.zeros(1), None
    )
    assert Fraction(proof.kkt["normal equations"]) >= sum(fractions(y))


def lost(problem, x, w, b, scale):
    """P(w, b) − P* of one feature, in fractions."""
    weight, y, x = fractions(problem.weight), fractions(problem.Y), fractions(x)
    lam, scale, mass = Fraction(problem.lam), Fraction(scale), sum(fractions(problem.weight))

    def primal(w, b):
        residuals = [t - w * s - b for s, t in zip(x, y, strict=True)]
        return w * w / (2 * scale) + dot(weight, [r * r for r in residuals]) / (2 * lam)

    sides = [dot(weight, [s * s for s in x]) + lam / scale, dot(weight, x)], [dot(weight, x), mass]
    right = [dot(weight, [s * t for s, t in zip(x, y, strict=True)]), dot(weight, y)]
    best = solve(sides, right) if problem.bias else [right[0] / sides[0][0], Fraction(0)]
    return primal(Fraction(w), Fraction(b)) - primal(*best)


def bound(problem, x, w, b, beta, scale, error=0.0):
    """The bound on P − P* from numbers of which all but w − scale·Xᵀβ are exact; that is off by its error."""
    linear = gram_for(scale * Linear(), x[:, None]).linear
    residual = exact(problem.Y - w * x[:, None] - b)
    rest = residual - exact(problem.lam) / problem.weight[:, None] * beta[:, None]
    squares = rest.square().inner(problem.weight[:, None], axis=0) / (2 * problem.lam)
    apart = Ball(np.full((1, 1), w - scale * (x @ beta) - error), np.full((1, 1), abs(error)))
    totals = np.array([beta.sum()]) if problem.bias else np.zeros(1)
    near = Ball(np.full(1, np.inf), np.zeros(1))
    return float(_suboptimality_bound(problem, linear, residual, apart, squares, near, totals, linear.sums(problem))[0])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize("error", [0.0, 2.0, -2.0])
def test_any_coefficients_bound_the_distance_from_the_optimum(bias, scale, error):
    """Small integers, and coefficients that are those of the residuals, or not, or do not add up to 0."""
    x, y, lam = np.array([1.0, 2.0, 4.0, 9.0]), np.array([3.0, 5.0, 8.0, 16.0]), 0.5
    problem = LeastSquares(y[:, None], np.array([1.0, 2.0, 1.0, 4.0]), np.arange(4), 4, bias, lam)
    for w in (-1.0, 1.5, 2.0):
        for b in (0.0, -1.0, 1.0) if bias else (0.0,):
            right = problem.weight / lam * (y - w * x - b)
            centred = right - problem.weight / 8 * right.sum()
            zero, along = np.zeros(4), np.array([w / (scale * x[0]), 0.0, 0.0, 0.0])
            for beta in (right, centred, zero, along, centred + 1.0, centred - 1.0, right / 2, centred + np.eye(4)[3]):
                assert lost(problem, x, w, b, scale) <= Fraction(bound(problem, x, w, b, beta, scale, error))


def test_a_sum_of_coefficients_that_only_the_bias_shows():
    """y − f − b = (0, 2) = λβ, where Σβ = 1 and the gradient by w is 0: b is 1 away from its best value."""
    x, beta = np.array([-1.0, 1.0]), np.array([0.0, 1.0])
    problem = LeastSquares(np.array([[-2.0], [2.0]]), np.ones(2), np.arange(2), 2, True, 2.0)
    assert lost(problem, x, 1.0, -1.0, 1.0) == Fraction(1, 2)
    assert bound(problem, x, 1.0, -1.0, beta, 1.0) >= 0.5


@pytest.mark.parametrize("square", [2e300, 3e300, 5e300, 7e300])
def test_a_least_curvature_that_underflows(square):
    """Twice the same feature, and λ/(Σx² + λ) has few digits; P − P* = a² at w − v = (a, −a)."""
    problem, a = LeastSquares(np.ones((1, 1)), np.ones(1), np.arange(1), 1, False, 1e-12), 2.0**200
    sums = made([[square, square], [square, square]], [0.0, 0.0], 1.0, [0.0] * 4)
    none, apart = exact(np.zeros(1)), exact(np.array([[a], [-a]]))
    near = Ball(np.full(1, np.inf), np.zeros(1))
    above = _suboptimality_bound(
        problem, SimpleNamespace(scale=1.0), exact(np.zeros((1, 1))), apart, none, near, np.zeros(1), sums
    )
    assert Fraction(a) ** 2 <= Fraction(float(above[0]))
