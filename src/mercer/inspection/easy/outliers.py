"""Rows of a regression that lie so far off the model that their targets are probably wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances

from mercer.samples.arrays import Flags, Floats, Indices
from mercer.tables.target_scale import is_concentrated

_COMPARED_ROWS = 2000  # rows among which nearest neighbours are sought
_EQUAL_DISTANCE = 1e-6  # distance up to which standardised rows are equal
FAR = 20.0  # multiples of the median error: 13 standard deviations of normal errors
_MOST_SHARE = (
    0.05  # share of the rows, except for a single one; more are a heavy tail, which says nothing about single rows
)


def flag_large_errors(errors: Floats) -> Flags:
    """Return which absolute errors are more than 20 times their median; none if more than a twentieth would be."""
    is_far: Flags = errors > FAR * float(np.median(errors))
    return is_far if is_far.sum() <= max(1, _MOST_SHARE * len(errors)) else np.zeros(len(errors), dtype=bool)


def is_isolated(X: Any, rows: Indices) -> Flags:
    """Return which of `rows` lie more than three times as far from their nearest neighbour as 99 % of the rows do."""
    if not len(rows):
        return np.zeros(0, dtype=bool)
    sampled_rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _COMPARED_ROWS)).astype(np.intp)
    limit = np.quantile(_nearest(X, np.setdiff1d(sampled_rows, rows), sampled_rows), 0.99)
    return np.asarray(_nearest(X, rows, sampled_rows) > 3.0 * limit + _EQUAL_DISTANCE)


def _nearest(X: Any, rows: Indices, others: Indices) -> Floats:
    """Distance of each of `rows` to the nearest of `others` that is another row."""
    distances = euclidean_distances(X[rows], X[others])
    distances[rows[:, None] == others] = np.inf
    return np.asarray(distances.min(axis=1))


@dataclass(frozen=True)
class Outliers:
    """Rows whose targets a model misses by more than 20 times its median error, though it was trained on them."""

    rows: Indices

    @classmethod
    def find(cls, X: Any, y: Floats, held_out_errors: Floats, training_errors: Floats) -> Outliers:
        """Find outlying targets from the absolute errors of held-out predictions and of the model trained on all rows.

        A row whose target the model fits once it is trained on that row is not an outlier, nor is a row unlike all
        others in X, whose target may be right. If three quarters of the targets are the same number, no row is an
        outlier: the other targets are then what the model has to predict.
        """
        if is_concentrated(y):
            return cls(np.zeros(0, dtype=np.intp))
        limit = FAR * float(np.median(held_out_errors))
        rows = np.flatnonzero(flag_large_errors(held_out_errors) & (training_errors > limit))
        return cls(rows[~is_isolated(X, rows)])

    def __len__(self) -> int:
        return len(self.rows)

    def row_names(self) -> str:
        """Return the first rows as text, counted from 1."""
        names = ", ".join(str(row + 1) for row in self.rows[:6])
        return f"row{'s' * (len(self) > 1)} {names}{', …' * (len(self) > 6)}"

    def describe(self) -> str:
        """Describe the outliers in one sentence."""
        verb, their = ("is", "its") if len(self) == 1 else ("are", "their")
        return (
            f"{len(self)} row{'s' * (len(self) > 1)} {verb} more than {FAR:.0f} times as far off as the median of the "
            f"rest: {self.row_names()}; the model ignores {their} size"
        )
