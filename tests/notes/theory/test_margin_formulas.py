"""Bounds by margins and radii against their formulas, leave-one-out errors and enclosing balls computed otherwise."""

import math
from decimal import Decimal

import numpy as np
import pytest

from mercer import SVC, theory
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.problems.novelty import data_description
from notes.theory.decimals import ln, near
from reference.qp import by_every_solver

KERNELS = [Linear(), Gaussian(gamma=0.5), Gaussian(gamma=50.0), Polynomial(degree=2, gamma=1.0, coef0=1.0)]


def test_margin_bounds():
    slacks = np.array([0.0, 0.5, 3.0, 0.0])
    three = 3 * (ln(2 / Decimal("0.1")) / 8).sqrt()
    clipped = theory.soft_margin_bound(slacks, 9.0, 2.0, delta=0.1, margin=0.25)
    near(clipped.value, Decimal("0.375") + 4 * 3 / Decimal("1.0") + three)
    printed = theory.soft_margin_bound(slacks, 9.0, 2.0, delta=0.1, margin=0.25, clipped=False)
    near(printed.value - clipped.value, 0.5)
    near(theory.hard_margin_bound(9.0, 4, 2.0, delta=0.1, margin=0.25).value, clipped.value - 0.375)
    # Slacks and margin in another unit are the same statement.
    other = theory.soft_margin_bound(2 * slacks, 9.0, 4.0, delta=0.1, margin=0.125, target_margin=2.0)
    near(other.value, clipped.value)


@pytest.mark.parametrize("norm", [0.0, 0.3, 1.0, 1.0 + 1e-15, 2.0, 2.1, 37.0, 1e9])
def test_the_grid_of_margins(norm):
    bound = theory.hard_margin_bound(1.0, 1, norm, delta=0.1, grid_from=1.0)
    assert bound.applies is None
    rho = 4.0 / bound.terms["4/(nργ) √tr K"]
    j = round(-math.log2(rho))
    assert norm * 2.0**-j <= 1.0
    assert j == 0 or norm * 2.0 ** -(j - 1) > 1.0  # the largest that will do
    near(bound.terms["3√(ln(2/δ)/2n)"], 3 * (ln(Decimal(2) * (j + 1) * (j + 2) / Decimal("0.1")) / 2).sqrt())


def test_the_shares_of_delta_add_up():
    assert sum(1 / ((j + 1) * (j + 2)) for j in range(10**5)) < 1.0


def leave_one_out_errors(X, y, **options):
    wrong = 0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        wrong += int(
            SVC(kernel="linear", C=np.inf, tol=1e-6, **options).fit(X[rest], y[rest]).predict(X[[i]])[0] != y[i]
        )
    return wrong


@pytest.mark.parametrize("bias", [True, False])
def test_leave_one_out_errors_stay_below_their_bound(bias):
    rng = np.random.default_rng(5)
    for trial in range(6):
        X = rng.normal(size=(12, 2))
        w = rng.normal(size=2)
        f = X @ w + (0.4 if bias else 0.0)
        keep = np.abs(f) > 0.15
        X, y = X[keep], np.where(f[keep] > 0, 1, -1)
        if min(np.bincount(y + 1, minlength=3)[[0, 2]]) < 2:
            continue
        rho = 1 / SVC(kernel="linear", C=np.inf, bias=bias, tol=1e-6).fit(X, y).rkhs_norm_
        radius = theory.enclosing_ball(X, kernel=Linear(), centre="best" if bias else "origin").radius
        bound = theory.leave_one_out_bound(radius, rho, len(y), bias=bias, separable=True)
        assert leave_one_out_errors(X, y, bias=bias) <= bound.value * len(y), trial
        near(bound.value, (4 if bias else 1) * (radius / rho) ** 2 / len(y))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_smallest_enclosing_balls(kernel, n):
    X = np.random.default_rng(n + 10).normal(size=(n, 2))
    K = kernel(X)
    ball = theory.enclosing_ball(X, kernel=kernel)
    if n > 1:
        values = [
            2 * value for value, _ in by_every_solver(data_description(K.diagonal(), np.ones(n), 0.5 / n), K).values()
        ]
        assert min(abs(ball.radius - math.sqrt(value)) for value in values) <= 1e-7 * max(1.0, ball.radius)
    # Every sample lies inside, and the bounds are bounds.
    centre = np.zeros(n)
    centre[ball.rows] = ball.coefficients
    distances = np.sqrt(np.maximum(K.diagonal() - 2 * K @ centre + centre @ K @ centre, 0.0))
    assert distances.max() <= ball.radius_bounds[1] + 1e-9
    assert ball.radius_bounds[0] <= ball.radius <= ball.radius_bounds[1]
    origin = theory.enclosing_ball(X, kernel=kernel, centre="origin")
    assert ball.radius <= origin.radius + 1e-9
    assert origin.radius == max(math.sqrt(kernel(x[None])[0, 0]) for x in X)
    assert origin.radius_bounds[0] < origin.radius < origin.radius_bounds[1] <= origin.radius * (1 + 1e-15)
    assert len(origin.rows) == len(origin.coefficients) == 0
