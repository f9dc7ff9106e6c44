"""k-means on points of which only inner products are known (Lloyd's iteration), from starts by k-means++.

    minimise  J = Σ_c Σ_{i in c} w_i ‖φ(x_i) − μ_c‖²  over divisions of the points,  μ_c = Σ_{i in c} w_i φ(x_i)/W_c

An iteration gives every point to its nearest mean, which does not raise J, and then moves the means, which does not
either. A cluster that lost all its points takes the one that costs most where it is, which lowers J too. Where no point
has a nearer mean, single points are moved from cluster a to b as long as that lowers J with both means moved along:

    w W_b/(W_b + w) ‖φ(x) − μ_b‖² < w W_a/(W_a − w) ‖φ(x) − μ_a‖²        Hartigan

which Lloyd's iteration alone does not see. In the end no point can change its cluster to lower J.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.unsupervised.points import Points

# A move of one point must lower J by this share of Σ w‖φ(x)‖², which is more than rounding could.
_MOVE_SHARE = 1e-12
# Moves of single points in a row, after which the means are computed again.
_MOVES_PER_POINT = 2


@dataclass(frozen=True, eq=False)
class Clusters:
    """A division: each point's cluster, each cluster's weight and ‖μ_c‖², and J after every iteration."""

    labels: Indices
    shares: Floats  # n × k: w_i/W_c for the points of c, of which μ_c is the combination
    squares: Floats
    path: list[float]
    converged: bool

    @property
    def inertia(self) -> float:
        return self.path[-1]


def cluster(points: Points, weight: Floats, k: int, n_init: int, max_iter: int, rng: np.random.Generator) -> Clusters:
    """The best of `n_init` runs."""
    runs = (_run(points, weight, _seeded(points, weight, k, rng), k, max_iter) for _ in range(n_init))
    return min(runs, key=lambda found: found.inertia)


def _run(points: Points, weight: Floats, labels: Indices, k: int, max_iter: int) -> Clusters:
    labels, everything = _without_empty(labels, np.zeros(len(labels)), k), np.arange(points.n)
    found: Clusters | None = None
    for _ in range(max_iter + 1):
        shares, squares, distances = _means(points, weight, labels, k)
        inertia = max(float(weight @ distances[everything, labels]), 0.0)
        if found is not None and not inertia < found.inertia:
            return Clusters(found.labels, found.shares, found.squares, found.path, converged=True)
        found = Clusters(labels, shares, squares, [*(found.path if found else []), inertia], converged=False)
        nearest = np.argmin(distances, axis=1)
        own = distances[everything, labels]
        nearest = np.where(distances[everything, nearest] < own, nearest, labels)
        if (nearest == labels).all():
            nearest = _single_moves(points, weight, labels, k)
        if (nearest == labels).all():
            return Clusters(found.labels, found.shares, found.squares, found.path, converged=True)
        labels = _without_empty(nearest, weight * distances[everything, nearest], k)
    assert found is not None
    return found


def _means(points: Points, weight: Floats, labels: Indices, k: int) -> tuple[Floats, Floats, Floats]:
    """w_i/W_c, ‖μ_c‖² and all squared distances from the means."""
    shares = np.zeros((points.n, k))
    shares[np.arange(points.n), labels] = weight / np.bincount(labels, weights=weight, minlength=k)[labels]
    products = points.products(shares)
    squares = np.einsum("ic,ic->c", shares, products)
    return shares, squares, points.squares[:, None] - 2 * products + squares


def _single_moves(points: Points, weight: Floats, labels: Indices, k: int) -> Indices:
    """The clusters after moves of one point each, the best first, that lower J."""
    labels, everything, squares = labels.copy(), np.arange(points.n), points.squares
    masses, counts = np.bincount(labels, weights=weight, minlength=k), np.bincount(labels, minlength=k)
    inside = np.zeros((points.n, k))
    inside[everything, labels] = weight
    sums = points.products(inside)
    least = _MOVE_SHARE * float(weight @ np.abs(squares))
    for _ in range(_MOVES_PER_POINT * points.n):
        lengths = np.bincount(labels, weights=weight * sums[everything, labels], minlength=k) / masses**2
        distances = squares[:, None] - 2 * sums / masses + lengths
        joining = (weight[:, None] * masses / (masses + weight[:, None])) * distances
        joining[everything, labels] = math.inf
        own = masses[labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            leaving = weight * own / (own - weight) * distances[everything, labels]
        gain = np.where(counts[labels] > 1, leaving, -math.inf) - joining.min(axis=1, initial=math.inf)
        i = int(np.argmax(gain))
        if not gain[i] > least:
            break
        old, new, column = labels[i], int(np.argmin(joining[i])), weight[i] * points.column(i)
        sums[:, old] -= column
        sums[:, new] += column
        masses[[old, new]] += [-weight[i], weight[i]]
        counts[[old, new]] += [-1, 1]
        labels[i] = new
    return labels


def _without_empty(labels: Indices, cost: Floats, k: int) -> Indices:
    """The same, but each cluster without points has taken the one that costs most from a cluster that has several."""
    counts = np.bincount(labels, minlength=k)
    if counts.all():
        return labels
    labels, cost = labels.copy(), cost.copy()
    for empty in np.flatnonzero(counts == 0):
        taken = int(np.argmax(np.where(counts[labels] > 1, cost, -math.inf)))
        counts[labels[taken]] -= 1
        labels[taken], counts[empty] = empty, 1
    return labels


def _seeded(points: Points, weight: Floats, k: int, rng: np.random.Generator) -> Indices:
    """The nearest of k seeds: each is drawn by its distance from those before it, the best of some draws.

    Arthur and Vassilvitskii, "k-means++", with as many draws for each seed as they and scikit-learn take.
    """
    squares, draws = points.squares, 2 + int(math.log(k))
    first = int(rng.choice(points.n, p=weight / weight.sum()))
    nearest, labels = _distances(points, squares, first), np.zeros(points.n, dtype=np.intp)
    for seed in range(1, k):
        chances = weight * nearest
        total = float(chances.sum())
        chances = chances / total if total > 0 else weight / weight.sum()
        tried = [_distances(points, squares, int(i)) for i in rng.choice(points.n, size=draws, p=chances)]
        best = min(tried, key=lambda distances: float(weight @ np.minimum(nearest, distances)))
        labels[best < nearest] = seed
        nearest = np.minimum(nearest, best)
    return labels


def _distances(points: Points, squares: Floats, i: int) -> Floats:
    return np.asarray(np.maximum(squares - 2 * points.column(i) + squares[i], 0.0))
