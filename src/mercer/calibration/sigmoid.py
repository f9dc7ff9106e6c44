"""Platt's sigmoid: P(+ | f) = 1 / (1 + exp(−(a f + b))), with a ≥ 0, fitted for many outputs together.

a and b maximise the likelihood of softened targets, (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2) (Lin, Lin, Weng 2007), with
N₊ and N₋ the weight on each side. If the best slope is negative, the machine ranks the wrong way round; the slope is
then 0, and the probability a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.samples.arrays import Flags, Floats, Indices


@dataclass(frozen=True)
class NewtonOptions:
    """Options of Newton's method for the likelihood of a sigmoid."""

    gradient_tol: float = 1e-10  # largest derivative at which the method stops, relative to the total weight
    ridge: float = 1e-12  # number added to the Hessian's diagonal, relative to its trace
    halvings: int = 40  # maximal number of step halvings
    absolute: bool = False  # whether `gradient_tol` and `ridge` are absolute, without an allowance for rounding


# LIBSVM's options: it stops earlier, and the same options give the same printed digits.
AS_LIBSVM = NewtonOptions(gradient_tol=1e-5, ridge=1e-12, halvings=34, absolute=True)


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """One sigmoid for each output."""

    slope: Floats
    offset: Floats

    def probabilities(self, f: Floats) -> Floats:
        """Return P of the positive side of each output; f has a column for each."""
        return logistic(self.slope * f + self.offset)

    def output_probability(self, k: int, f: Floats) -> Floats:
        """Return P of the positive side of output k."""
        return logistic(self.slope[k] * f + self.offset[k])


def fit_sigmoids(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> Sigmoids:
    """Fit the sigmoids of several outputs, whose values are concatenated and begin at `starts`."""
    unit = np.maximum.reduceat(np.abs(f), starts)  # the fitted slope then does not depend on the unit of f
    unit[unit == 0] = 1.0
    target = soft_targets(positive, weight, starts)
    share = np.add.reduceat(weight * target, starts) / np.add.reduceat(weight, starts)
    constant = np.log(share / (1.0 - share))  # the best offset for a slope of 0
    values = np.stack([f / unit[_outputs(starts, len(f))], target, weight])
    slope, offset = maximize_likelihood(values, starts, constant, NewtonOptions())
    is_negative = slope < 0
    slope[is_negative], offset[is_negative] = 0.0, constant[is_negative]
    return Sigmoids(slope / unit, offset)


def maximize_likelihood(
    values: Floats, starts: Indices, offset: Floats, options: NewtonOptions
) -> tuple[Floats, Floats]:
    """Return the slope a, of either sign, and the offset b of each output, starting from a = 0 and b = `offset`.

    `values` has three rows: f, the targets and the weights.
    """
    n, ends = len(starts), np.append(starts[1:], values.shape[1])
    slope, offset, active = np.zeros(n), offset.copy(), np.arange(n)
    for _ in range(100):  # as in LIBSVM
        # Only outputs that have not converged are computed.
        columns = np.concatenate([np.arange(a, b) for a, b in zip(starts[active], ends[active], strict=True)])
        sizes = ends[active] - starts[active]
        active_values = values if len(active) == n else values[:, columns]
        has_moved, (slope[active], offset[active]) = _newton_step(
            active_values, np.cumsum(sizes) - sizes, slope[active], offset[active], options
        )
        active = active[has_moved]
        if len(active) == 0:
            break
    return slope, offset


def _newton_step(
    values: Floats, starts: Indices, slope: Floats, offset: Floats, options: NewtonOptions
) -> tuple[Flags, tuple[Floats, Floats]]:
    """Take a Newton step for each output, halved until the likelihood rises enough.

    Return a mask of the outputs that moved, and the new a (slope) and b (offset) of all outputs.
    """
    f, target, weight = values
    output = _outputs(starts, len(f))

    def total(terms: Floats) -> Floats:
        return np.asarray(np.add.reduceat(terms, starts))

    def loss(t: Floats, small: Floats) -> Floats:
        return total(weight * (np.maximum(t, 0.0) + np.log1p(small) - target * t))

    t = slope[output] * f + offset[output]
    small = np.exp(-np.abs(t))
    p = np.where(t >= 0, 1.0, small) / (1.0 + small)
    error, curvature = weight * (p - target), weight * p * (1.0 - p)
    ga, gb = total(error * f), total(error)
    unit = 1.0 if options.absolute else total(weight)
    is_active = np.maximum(np.abs(ga), np.abs(gb)) > options.gradient_tol * unit
    haa, hab, hbb = total(curvature * f**2), total(curvature * f), total(curvature)
    ridge = options.ridge * (1.0 if options.absolute else haa + hbb) + np.finfo(float).tiny
    haa, hbb = haa + ridge, hbb + ridge
    determinant = haa * hbb - hab * hab
    da = np.where(is_active, (hab * gb - hbb * ga) / determinant, 0.0)
    db = np.where(is_active, (hab * ga - haa * gb) / determinant, 0.0)
    descent, value, length = da * ga + db * gb, loss(t, small), np.ones(len(starts))
    rounding = 0.0 if options.absolute else 4 * np.finfo(float).eps * np.abs(value)
    for _ in range(options.halvings):
        t = (slope + length * da)[output] * f + (offset + length * db)[output]
        trial_value = loss(t, np.exp(-np.abs(t)))
        is_worse = is_active & ~(trial_value <= value + 1e-4 * length * descent + rounding)
        if not is_worse.any():
            break
        length[is_worse] /= 2.0
    length[is_worse] = 0.0
    return is_active & ~is_worse, (slope + length * da, offset + length * db)


def _outputs(starts: Indices, n: int) -> Indices:
    """Return the output to which each value belongs."""
    return np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n)))


def soft_targets(positive: Flags, weight: Floats, starts: Indices) -> Floats:
    """Return Platt's targets: a little below 1 on the positive side of an output, a little above 0 on the other."""
    output = _outputs(starts, len(positive))
    mass, mass_positive = np.add.reduceat(weight, starts), np.add.reduceat(weight * positive, starts)
    high, low = (mass_positive + 1.0) / (mass_positive + 2.0), 1.0 / (mass - mass_positive + 2.0)
    return np.where(positive, high[output], low[output])


def logistic(t: Floats) -> Floats:
    """Return 1 / (1 + exp(−t)) without overflow."""
    small = np.exp(-np.abs(t))
    return np.asarray(np.where(t >= 0, 1.0, small) / (1.0 + small))
