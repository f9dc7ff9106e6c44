"""Calibration curves from decision values to probabilities, one for each decision function, and class probabilities.

    isotonic      P(+ | f) is the nondecreasing function with the smallest squared error, linear between its corners
    venn-abers    isotonic regression with the new sample added once in each class
    temperature   one T > 0 for all decision functions, by maximum likelihood: P(+ | f) = 1 / (1 + exp(−f/T)) with the
                  targets of the sigmoid, or softmax(f/T) with one function per class against the rest, which keeps the
                  machine's predictions

The sigmoid is in the module `sigmoid`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.isotonic import IsotonicRegression

from mercer.calibration.coupling import couple
from mercer.calibration.sigmoid import Sigmoids, fit_sigmoids, logistic, soft_targets
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.samples.labels import REST, Pair, class_pairs, pair_members


class Curves(Protocol):
    """Calibration curves: the probability of the positive side of every decision function, called output below."""

    def probabilities(self, f: Floats) -> Floats:
        """Return the probability of the positive side; f and the result have a column for each output."""
        return np.column_stack([self.output_probability(k, f[:, k]) for k in range(f.shape[1])])

    def output_probability(self, k: int, f: Floats) -> Floats:
        """Return P of the positive side of output k at its decision values f."""


@dataclass(frozen=True, eq=False)
class IsotonicCurves(Curves):
    """Isotonic curves by their corners; those of output k are starts[k] to starts[k + 1]."""

    STORED_NAME: ClassVar[str] = "Steps"  # name in model files

    f: Floats
    p: Floats
    starts: Indices

    def output_probability(self, k: int, f: Floats) -> Floats:
        """Return P of the positive side of output k."""
        corners = slice(self.starts[k], self.starts[k + 1])
        return np.interp(f, self.f[corners], self.p[corners])


def fit_isotonic(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> IsotonicCurves:
    """Fit the curves of several outputs, whose values are concatenated and begin at `starts`."""
    corners = []
    for begin, end in zip(starts, np.append(starts[1:], len(f)), strict=True):
        part = slice(begin, end)
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(f[part], positive[part].astype(float), weight[part])
        corners.append((fitted.X_thresholds_, fitted.y_thresholds_))
    sizes = np.array([0, *(len(x) for x, _ in corners)])
    return IsotonicCurves(
        np.concatenate([x for x, _ in corners]), np.concatenate([p for _, p in corners]), np.cumsum(sizes)
    )


_LOG_RANGE = np.log(1e9)  # largest difference between log T and the logarithm of the largest |f|


def fit_temperature(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> Sigmoids:
    """Fit sigmoids of several outputs with one slope 1/T and no offset; values are as in `fit_isotonic`."""
    target = soft_targets(positive, weight, starts)
    slope = _best_slope(f, lambda t: float((weight * (np.logaddexp(0.0, t) - target * t)).sum()))
    return Sigmoids(np.full(len(starts), slope), np.zeros(len(starts)))


@dataclass(frozen=True, eq=False)
class Softmax:
    """p = softmax(slope · f), with one function for each class."""

    slope: Floats

    def probabilities(self, f: Floats) -> Floats:
        """Return P of each class; f has a column for each."""
        return np.asarray(softmax(self.slope * f, axis=1))

    def output_probability(self, k: int, f: Floats) -> Floats:
        """Return P of class k against a class whose function is 0."""
        return logistic(self.slope[k] * f)


def fit_softmax(f: Floats, codes: Indices, weight: Floats) -> Softmax:
    """Fit the temperature of a softmax to decision values with a column for each class, and the class of each sample.

    The targets are the labels themselves: with Platt's softened targets, every sample far inside its class would cost
    likelihood. If no sample is misclassified, the likelihood has no maximum in T, and T is chosen such that the sample
    nearest to the boundary has odds of n + 1 to 1.
    """
    rows = np.arange(len(f))
    others = f.copy()
    others[rows, codes] = -np.inf
    smallest_margin = float((f[rows, codes] - others.max(axis=1)).min())

    def loss(t: Floats) -> float:
        return float((weight * (logsumexp(t, axis=1) - t[rows, codes])).sum())

    max_slope = np.log(weight.sum() + 1.0) / smallest_margin if smallest_margin > 0 else np.inf
    return Softmax(np.full(f.shape[1], min(_best_slope(f, loss), max_slope)))


def _best_slope(f: Floats, loss: Callable[[Floats], float]) -> float:
    """Return the slope 1/T with the smallest loss of f/T."""
    unit = float(np.abs(f).max(initial=0.0)) or 1.0
    scaled = f / unit
    # The loss is convex in the slope, so it has one minimum in its logarithm too. If the machine ranks the wrong way
    # round, the minimum is at slope 0, and the smallest slope of the range makes all probabilities equal.
    minimum = minimize_scalar(
        lambda log_slope: loss(np.exp(log_slope) * scaled),
        bounds=(-_LOG_RANGE, _LOG_RANGE),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(np.exp(minimum.x)) / unit


# Values of f that differ by less than this share of the largest count as equal, so that rounding does not order them.
_EQUAL_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class VennAbers(Curves):
    """Isotonic regression with the new sample added, once as negative and once as positive (Vovk, Petej).

    The fields are the sorted distinct values of each output, with the cumulative weights W and positive weights S.
    If a sample of weight 1 and label c is added between ranks i and r, the isotonic value at the added sample is

        p_c = max over a ≤ i of min over b ≥ r of (S_b − S_a + c) / (W_b − W_a + 1).

    One of p₀ and p₁ is perfectly calibrated for exchangeable samples, without further assumptions; p₁ / (1 − p₀ + p₁)
    is the single number with the smallest loss, whichever of p₀ and p₁ is calibrated. Each p_c is a slope between two
    lower convex hulls: that of the points (W, S) left of the sample, and that of the points right of it.
    """

    f: Floats
    W: Floats
    S: Floats
    starts: Indices  # f[starts[k] : starts[k + 1]] are the values of output k; W and S have one more entry for each k
    unit: Floats  # unit of each output, of which the values are integer multiples

    def output_probability(self, k: int, f: Floats) -> Floats:
        """Return P of the positive side of output k."""
        low, high = self.interval(k, f)
        return np.asarray(high / (1.0 - low + high))

    def interval(self, k: int, f: Floats) -> tuple[Floats, Floats]:
        """Return p₀ and p₁ of the positive side of output k."""
        begin, end = self.starts[k], self.starts[k + 1]
        values = self.f[begin:end]
        sum_rows = slice(begin + k, end + k + 1)
        W, S = self.W[sum_rows], self.S[sum_rows]
        distinct, index = np.unique(np.rint(f / self.unit[k]), return_inverse=True)
        i, r = np.searchsorted(values, distinct, side="left"), np.searchsorted(values, distinct, side="right")
        left, right = _Hull(W, S), _Hull(-W[::-1], S[::-1])
        mirrored_r = len(W) - 1 - r
        p0, p1 = (_isotonic_value(left, right, i, mirrored_r, label)[index] for label in (0.0, 1.0))
        return p0, p1


def fit_venn_abers(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> VennAbers:
    """Fit the curves of several outputs, whose values are concatenated and begin at `starts`."""
    values, W, S, units = [], [], [], []
    for begin, end in zip(starts, np.append(starts[1:], len(f)), strict=True):
        rows = begin + np.flatnonzero(weight[begin:end] > 0)
        units.append(_EQUAL_SHARE * float(np.abs(f[rows]).max(initial=0.0)) or 1.0)
        distinct, index = np.unique(np.rint(f[rows] / units[-1]), return_inverse=True)
        values.append(distinct)
        W.append(np.append(0.0, np.cumsum(np.bincount(index, weight[rows]))))
        S.append(np.append(0.0, np.cumsum(np.bincount(index, weight[rows] * positive[rows]))))
    sizes = np.cumsum([0, *map(len, values)])
    return VennAbers(np.concatenate(values), np.concatenate(W), np.concatenate(S), sizes, np.array(units))


def _isotonic_value(left: _Hull, right: _Hull, i: Indices, r: Indices, label: float) -> Floats:
    """Return p_c for every new sample: the largest t with min_b (S_b − t W_b) + c − t ≥ min_a (S_a − t W_a).

    c is `label`. Bisection finds a and b, and p_c is computed as their quotient: with integer weights, equal p_c are
    then equal to the last bit, which matters because prediction sets rank samples by p_c.
    """
    low, high = np.zeros(len(i)), np.ones(len(i))
    for _ in range(60):
        t = (low + high) / 2.0
        a, b = left.lowest(i, t), right.lowest(r, -t)
        # W of the right hull is mirrored: S_b − t W_b = S + t (−W)
        is_feasible = (right.S[b] + t * right.W[b]) + label - t >= left.S[a] - t * left.W[a]
        low, high = np.where(is_feasible, t, low), np.where(is_feasible, high, t)
    t = (low + high) / 2.0
    a, b = left.lowest(i, t), right.lowest(r, -t)
    return np.asarray((right.S[b] - left.S[a] + label) / (1.0 - right.W[b] - left.W[a]))


class _Hull:
    """Lower convex hulls of the points (W, S): hull i is that of the first i + 1 points.

    Each hull is a path of edges to the left: from point i to its next corner, and on from corner to corner.
    """

    def __init__(self, W: Floats, S: Floats) -> None:
        self.W, self.S = W, S
        n = len(W)
        w, s = W.tolist(), S.tolist()
        next_corner, edge_slope = [0] * n, [-np.inf] * n
        for i in range(1, n):
            j = i - 1
            slope = (s[i] - s[j]) / (w[i] - w[j])
            while slope <= edge_slope[j]:  # corner j lies above the line to i
                j = next_corner[j]
                slope = (s[i] - s[j]) / (w[i] - w[j])
            next_corner[i], edge_slope[i] = j, slope
        # Entry k has the corner after 2^k edges to the left, and the slope of the last of them.
        self._corner = [np.array(next_corner, dtype=np.intp)]
        self._slope = [np.array(edge_slope)]
        for _ in range(max(1, n.bit_length())):
            corner, last = self._corner[-1], self._slope[-1]
            self._corner.append(corner[corner])
            self._slope.append(last[corner])

    def lowest(self, i: Indices, t: Floats) -> Indices:
        """Return the index among the first i + 1 points with the smallest S − tW, left of all edges steeper than t."""
        for corner, slope in zip(reversed(self._corner), reversed(self._slope), strict=True):
            i = np.where(slope[i] > t, corner[i], i)
        return i


FitCurves = Callable[[Floats, Flags, Floats, Indices], Curves]
METHODS: dict[str, FitCurves] = {
    "sigmoid": fit_sigmoids,
    "isotonic": fit_isotonic,
    "temperature": fit_temperature,
    "venn-abers": fit_venn_abers,
}


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """Class probabilities from the decision values of a machine."""

    curves: Curves
    n_classes: int
    against_rest: bool

    def __call__(self, f: Floats) -> Floats:
        """Return the probability of each class."""
        p = self.curves.probabilities(f)
        if self.n_classes == 2:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        if not self.against_rest:
            return couple(p, self.n_classes)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / self.n_classes)

    def scores(self, f: Floats) -> Floats:
        """Return how well each sample fits each class.

        For two classes the score is ±f. One against the rest, it is the probability against the rest. One against one,
        it is the smallest probability against another class, which depends only on the pairs that the class is in.
        """
        p = self.curves.probabilities(f)
        if self.n_classes == 2:
            return np.column_stack([-f[:, 0], f[:, 0]])
        if self.against_rest:
            return p
        out = np.ones((len(f), self.n_classes))
        for column, (first, second) in enumerate(class_pairs(self.n_classes)):
            out[:, first] = np.minimum(out[:, first], p[:, column])
            out[:, second] = np.minimum(out[:, second], 1.0 - p[:, column])
        return out

    def true_class_scores(self, f: Floats, codes: Indices) -> Floats:
        """Return how well each sample fits its true class, from the decision functions of that class only."""
        if self.n_classes == 2 or self.against_rest:
            return self.scores(f)[np.arange(len(f)), codes]
        out = np.ones(len(f))
        members = [np.flatnonzero(codes == k) for k in range(self.n_classes)]
        for column, (first, second) in enumerate(class_pairs(self.n_classes)):
            rows = np.concatenate([members[first], members[second]])
            p = self.curves.output_probability(column, f[rows, column])
            out[rows] = np.minimum(out[rows], np.where(codes[rows] == first, p, 1.0 - p))
        return out


def fit_curves(
    method: str, f: Floats, codes: Indices, weight: Floats, pairs: list[Pair], n_classes: int
) -> ClassProbabilities:
    """Fit the curve of each decision function to its values at the samples of its two classes.

    f has a column for each of `pairs`, and `codes` are the classes of the samples.
    """
    is_against_rest = pairs[0][1] == REST
    if method == "temperature" and is_against_rest and n_classes > 2:
        has_weight = weight > 0
        softmax = fit_softmax(f[has_weight], codes[has_weight], weight[has_weight])
        return ClassProbabilities(softmax, n_classes, is_against_rest)
    values, positive, weights, starts = [], [], [], [0]
    for column, pair in enumerate(pairs):
        rows, sides = pair_members(pair, codes)
        rows, sides = rows[weight[rows] > 0], sides[weight[rows] > 0]
        values.append(f[rows, column])
        positive.append(sides > 0)
        weights.append(weight[rows])
        starts.append(starts[-1] + len(rows))
    fit = METHODS[method]
    curves = fit(np.concatenate(values), np.concatenate(positive), np.concatenate(weights), np.array(starts[:-1]))
    return ClassProbabilities(curves, n_classes, is_against_rest)


def libsvm_probabilities(machine: Any, X: Any) -> Floats:
    """Return class probabilities by the sigmoids of LIBSVM's -b 1, P = 1 / (1 + exp(A f + B)) for each pair.

    The probabilities agree with LIBSVM's programs except for the last digits: LIBSVM stops its iteration for coupling
    early.
    """
    curves = Sigmoids(-np.asarray(machine.probA_), -np.asarray(machine.probB_))
    return ClassProbabilities(curves, len(machine.classes_), against_rest=False)(machine._decision(X))
