"""The problem that every linear machine solves: a loss per sample, ½‖w‖², and three ways to treat the bias.

    minimise  ½‖w‖² (+ ½(b/B)² if the bias is regularised) + Σ loss_i(p_i − x_i'w − b)
    loss_i(r) = max over t in [lower_i, upper_i] of  r t − ε_i|t| − d_i t²/2
    maximise  p'β − Σ ε_i|β_i| − ½‖X'β‖² (− ½(BΣβ)²) − ½Σ d_iβ_i²    over the box, with Σβ = 0 if b is unregularised

| machine | p | box | ε | d |
|---|---|---|---|---|
| hinge, y = ±1 | y | [0, C_i] or [−C_i, 0] | 0 | 0 |
| squared hinge, C_i ξ² | y | [0, ∞) or (−∞, 0] | 0 | 1/(2C_i) |
| ε-insensitive | y | [−C_i, C_i] | ε | 0 |
| squared ε-insensitive, C_i ξ² | y | (−∞, ∞) | ε | 1/(2C_i) |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """A linear machine's problem, with one variable per sample.

    `bias` is the value B of the bias feature: inf means that b is free, 0 that there is no b.
    """

    p: Floats
    lower: Floats
    upper: Floats
    d: Floats
    epsilon: Floats
    bias: float

    @property
    def exact_bias(self) -> bool:
        """True if b is free, so that Σβ = 0."""
        return self.bias == np.inf

    @cached_property
    def max_slope(self) -> Floats:
        """Largest slope of each loss: the wider half of the box, or 1/d for a squared loss, whose box is infinite."""
        half_width = np.maximum(self.upper, -self.lower)
        with np.errstate(divide="ignore"):
            return np.where(np.isfinite(half_width), half_width, 1.0 / self.d)

    def value(self, beta: Floats, energy: float) -> float:
        """Return the dual value of β, where energy = ‖X'β‖² (+ (BΣβ)²)."""
        separable = beta * (self.p - 0.5 * self.d * beta) - self.epsilon * np.abs(beta)
        return float(separable.sum()) - 0.5 * energy

    def first(self, m: int, factor: float) -> LinearProblem:
        """Return the problem of the first m samples, each with `factor` times its weight."""
        with np.errstate(invalid="ignore"):
            box = self.lower[:m] * factor, self.upper[:m] * factor
            return LinearProblem(self.p[:m], *box, self.d[:m] / factor, self.epsilon[:m], self.bias)

    def balanced(self, beta: Floats) -> Floats:
        """Return β with the sum that the bias requires: zero if b is free, otherwise any.

        The excess is taken from the free variables in proportion to their distance from the bound, so that none
        reaches its bound unless all do; only the rest is taken from variables at a bound.
        (`DualProblem.nearest_feasible` spreads it evenly instead, which moves more variables onto their bounds.)
        """
        if not self.exact_bias:
            return beta
        beta = beta.copy()
        for only_free in (True, False):
            excess = float(beta.sum())
            # A smaller excess is rounding: correcting it would only move variables off their bounds.
            if abs(excess) <= 1e-14 * float(np.abs(beta).sum()):
                break
            slack = beta - self.lower if excess > 0 else self.upper - beta
            if not np.isfinite(slack).all():
                slack = np.where(np.isfinite(slack), slack, np.abs(beta) + abs(excess))
            if only_free:
                slack = np.where((beta > self.lower) & (beta < self.upper), slack, 0.0)
            total = float(slack.sum())
            if total > 0:
                beta -= np.sign(excess) * slack * min(1.0, abs(excess) / total)
                beta = np.clip(beta, self.lower, self.upper)
        return np.asarray(beta)

    @cached_property
    def dual(self) -> DualProblem:
        """The equivalent DualProblem with K = XX'; with ε > 0 a sample has two variables, β⁺ and −β⁻."""
        n, group = len(self.p), 0 if self.exact_bias else -1
        totals = np.zeros(1 if self.exact_bias else 0)
        row = np.arange(n)
        if not self.epsilon.any():
            return DualProblem(self.p, self.lower, self.upper, self.d, row, np.full(n, group, dtype=np.int32), totals)
        zero = np.zeros(n)
        return DualProblem(
            p=np.r_[self.p - self.epsilon, self.p + self.epsilon],
            lower=np.r_[zero, self.lower],
            upper=np.r_[self.upper, zero],
            d=np.r_[self.d, self.d],
            row=np.r_[row, row],
            group=np.full(2 * n, group, dtype=np.int32),
            totals=totals,
        )

    def dual_variables(self, beta: Floats) -> Floats:
        """Return β as the variables of `dual`."""
        return np.r_[np.maximum(beta, 0.0), np.minimum(beta, 0.0)] if self.epsilon.any() else beta


def hinge(y: Floats, C: Floats, bias: float, squared: bool) -> LinearProblem:
    """Build the classification problem, y = ±1, with C_i times the hinge loss or its square."""
    bound = np.full(len(y), np.inf) if squared else C
    return LinearProblem(
        p=y,
        lower=np.where(y > 0, 0.0, -bound),
        upper=np.where(y > 0, bound, 0.0),
        d=0.5 / C if squared else np.zeros(len(y)),
        epsilon=np.zeros(len(y)),
        bias=bias,
    )


def epsilon_insensitive(y: Floats, C: Floats, epsilon: float, bias: float, squared: bool) -> LinearProblem:
    """Build the regression problem with the loss C_i max(0, |y − f| − ε), or C_i times its square."""
    bound = np.full(len(y), np.inf) if squared else C
    return LinearProblem(
        p=y,
        lower=-bound,
        upper=bound,
        d=0.5 / C if squared else np.zeros(len(y)),
        epsilon=np.full(len(y), epsilon),
        bias=bias,
    )
