"""Venn–Abers prediction: P(+ | f) by isotonic regression with the new sample added, once as −, once as + (Vovk, Petej).

With y₁ … y_m in the order of f, sums S and weights W of the first of them, and a sample of weight 1 and label c added
between place i and place r, the isotonic value at the added sample is

    p_c = max over a ≤ i of min over b ≥ r of (S_b − S_a + c) / (W_b − W_a + 1).

(p₀, p₁) holds the truth with a guarantee that needs no assumption but exchangeable samples; p₁ / (1 − p₀ + p₁) is the
one number that loses least whichever of the two is right. Each p_c is a slope between two lower hulls of the points
(W, S): those left of the sample and those right of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Flags, Floats, Indices

# Values of f that differ by less than this share of the largest count as equal: rounding must not decide their order.
_EQUAL_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class VennAbers:
    """The sorted distinct values of each output, with the sums of weights and of positive weights up to each."""

    f: Floats
    W: Floats
    S: Floats
    starts: Indices  # output k has the values starts[k] to starts[k + 1], and one more sum than values
    unit: Floats  # of each output: its values are whole multiples

    def probabilities(self, f: Floats) -> Floats:
        """P of each output's positive side; f has a column for each output."""
        return np.column_stack([self.of_plane(k, f[:, k]) for k in range(f.shape[1])])

    def of_plane(self, k: int, f: Floats) -> Floats:
        """P of one output's positive side."""
        low, high = self.interval(k, f)
        return np.asarray(high / (1.0 - low + high))

    def interval(self, k: int, f: Floats) -> tuple[Floats, Floats]:
        """p₀ and p₁ of one output's positive side."""
        begin, end = self.starts[k], self.starts[k + 1]
        values = self.f[begin:end]
        sums = slice(begin + k, end + k + 1)
        W, S = self.W[sums], self.S[sums]
        asked, place = np.unique(np.rint(f / self.unit[k]), return_inverse=True)
        i, r = np.searchsorted(values, asked, side="left"), np.searchsorted(values, asked, side="right")
        left, right = _Hull(W, S), _Hull(-W[::-1], S[::-1])
        mirrored = len(W) - 1 - r
        return _slope(left, right, i, mirrored, 0.0)[place], _slope(left, right, i, mirrored, 1.0)[place]


def fit_venn_abers(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> VennAbers:
    """Several outputs, whose values stand one after another and begin at `starts`."""
    values, W, S, units = [], [], [], []
    for begin, end in zip(starts, np.append(starts[1:], len(f)), strict=True):
        mine = begin + np.flatnonzero(weight[begin:end] > 0)
        units.append(_EQUAL_SHARE * float(np.abs(f[mine]).max(initial=0.0)) or 1.0)
        distinct, place = np.unique(np.rint(f[mine] / units[-1]), return_inverse=True)
        values.append(distinct)
        W.append(np.append(0.0, np.cumsum(np.bincount(place, weight[mine]))))
        S.append(np.append(0.0, np.cumsum(np.bincount(place, weight[mine] * positive[mine]))))
    sizes = np.cumsum([0, *map(len, values)])
    return VennAbers(np.concatenate(values), np.concatenate(W), np.concatenate(S), sizes, np.array(units))


def _slope(left: _Hull, right: _Hull, i: Indices, r: Indices, label: float) -> Floats:
    """p_c at every place: the largest t with min_b (S_b − t W_b) + c − t ≥ min_a (S_a − t W_a)."""
    low, high = np.zeros(len(i)), np.ones(len(i))
    for _ in range(60):  # halvings of [0, 1]: p is then known to the last digit
        t = (low + high) / 2.0
        a, b = left.lowest(i, t), right.lowest(r, -t)
        # W of the right hull is mirrored: S_b − t W_b = S + t (−W)
        reached = (right.S[b] + t * right.W[b]) + label - t >= left.S[a] - t * left.W[a]
        low, high = np.where(reached, t, low), np.where(reached, high, t)
    return (low + high) / 2.0


class _Hull:
    """The lower convex hulls of the first i + 1 points, for every i: each point's next corner to the left."""

    def __init__(self, W: Floats, S: Floats) -> None:
        self.W, self.S = W, S
        n = len(W)
        before, slope = np.zeros(n, dtype=np.intp), np.full(n, -np.inf)
        w, s = W.tolist(), S.tolist()
        parent, steep = before.tolist(), slope.tolist()
        for i in range(1, n):
            j = i - 1
            steepness = (s[i] - s[j]) / (w[i] - w[j])
            while steepness <= steep[j]:  # corner j lies above the line to i
                j = parent[j]
                steepness = (s[i] - s[j]) / (w[i] - w[j])
            parent[i], steep[i] = j, steepness
        self._corner = [np.array(parent, dtype=np.intp)]
        self._slope = [np.array(steep)]  # of the last of 2^k edges to the left
        for _ in range(max(1, n.bit_length())):
            corner, last = self._corner[-1], self._slope[-1]
            self._corner.append(corner[corner])
            self._slope.append(last[corner])

    def lowest(self, i: Indices, t: Floats) -> Indices:
        """The point among the first i + 1 at which S − t W is least: left over all edges steeper than t."""
        for corner, slope in zip(reversed(self._corner), reversed(self._slope), strict=True):
            i = np.where(slope[i] > t, corner[i], i)
        return i
