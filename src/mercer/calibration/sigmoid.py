"""Platt's sigmoid: P(+ | f) = 1 / (1 + exp(−(a f + b))), with a ≥ 0, for many outputs together.

a and b maximise the likelihood of softened targets, (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2) (Lin, Lin, Weng 2007), with
N₊ and N₋ the weight on each side. A slope below zero would say that the machine ranks the wrong way round; the best
slope that does not is then 0, and the probability a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Flags, Floats, Indices

_MOST_STEPS = 100
# The gradient that ends the search, as a share of the weight. Steps are Newton's, so the next digit costs one more.
_FLAT = 1e-10


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """One sigmoid for each output."""

    slope: Floats
    offset: Floats

    def probabilities(self, f: Floats) -> Floats:
        """P of each output's positive side; f has a column for each output."""
        return logistic(self.slope * f + self.offset)


def fit_sigmoids(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> Sigmoids:
    """The sigmoids of several outputs, whose values stand one after another and begin at `starts`."""
    total = _Sums(starts, len(f))
    target, mass = soft_targets(positive, weight, starts), total(weight)
    unit = np.maximum.reduceat(np.abs(f), starts)  # so that a is near 1 whatever the unit of f
    unit[unit == 0] = 1.0
    scaled = f / total.spread(unit)

    share = total(weight * target) / mass
    slope, offset = np.zeros(len(starts)), np.log(share / (1.0 - share))
    constant = offset.copy()
    value = _loss(scaled, target, weight, slope, offset, total)
    going = np.ones(len(starts), dtype=bool)
    for _ in range(_MOST_STEPS):
        p = logistic(total.spread(slope) * scaled + total.spread(offset))
        error, curvature = weight * (p - target), weight * p * (1.0 - p)
        g = np.stack([total(error * scaled), total(error)])
        going &= np.abs(g).max(axis=0) > _FLAT * mass
        if not going.any():
            break
        haa, hab, hbb = total(curvature * scaled**2), total(curvature * scaled), total(curvature)
        ridge = 1e-12 * (haa + hbb) + np.finfo(float).tiny
        haa, hbb = haa + ridge, hbb + ridge
        determinant = haa * hbb - hab * hab
        step = np.where(going, [(hab * g[1] - hbb * g[0]) / determinant, (hab * g[0] - haa * g[1]) / determinant], 0.0)
        descent, length = (step * g).sum(axis=0), np.ones(len(starts))
        for _ in range(40):
            tried = _loss(scaled, target, weight, slope + length * step[0], offset + length * step[1], total)
            worse = going & ~(tried <= value + 1e-4 * length * descent)
            if not worse.any():
                break
            length[worse] /= 2.0
        length[worse] = 0.0  # nothing better is left for these but rounding
        going &= ~worse
        slope, offset = slope + length * step[0], offset + length * step[1]
        value = np.where(length > 0, tried, value)
    flipped = slope < 0
    slope[flipped], offset[flipped] = 0.0, constant[flipped]
    return Sigmoids(slope / unit, offset)


def soft_targets(positive: Flags, weight: Floats, starts: Indices) -> Floats:
    """Platt's targets: a little less than 1 on the positive side of an output, a little more than 0 on the other."""
    total = _Sums(starts, len(positive))
    mass, mass_positive = total(weight), total(weight * positive)
    high, low = (mass_positive + 1.0) / (mass_positive + 2.0), 1.0 / (mass - mass_positive + 2.0)
    return np.where(positive, total.spread(high), total.spread(low))


def logistic(t: Floats) -> Floats:
    """1 / (1 + exp(−t))."""
    small = np.exp(-np.abs(t))
    return np.asarray(np.where(t >= 0, 1.0, small) / (1.0 + small))


def _loss(f: Floats, target: Floats, weight: Floats, slope: Floats, offset: Floats, total: _Sums) -> Floats:
    t = total.spread(slope) * f + total.spread(offset)
    return total(weight * (np.logaddexp(0.0, t) - target * t))


class _Sums:
    """Sums over the values of each output."""

    def __init__(self, starts: Indices, n: int) -> None:
        self._starts = starts
        self._output = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n)))

    def __call__(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self._starts))

    def spread(self, values: Floats) -> Floats:
        """One number for each output at the places of its values."""
        return np.asarray(values[self._output])
