"""What classifiers made of two-class problems share: labels, one against one or one against the rest, votes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Floats, Indices, freeze
from mercer.data import samples
from mercer.fitting.coefficients import (
    Bounds,
    conclude_support,
    merged_table,
    own_table,
    table_expansion,
    weight_vector,
)
from mercer.fitting.dual_machine import DualMachine
from mercer.fitting.fit import Fit
from mercer.fitting.margin_report import REST, Separating
from mercer.fitting.no_probabilities import Deciding
from mercer.fitting.tasks import Solved
from mercer.parameters import one_of


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes, the pairs of them that are trained (first against second), and each class's factor on C."""

    labels: np.ndarray
    pairs: list[tuple[int, int]]
    factor: Floats

    def sides(self, pair: tuple[int, int], codes: Indices) -> tuple[Indices, Floats]:
        """Which of these samples a pair is about, and +1 for its first class, −1 for the second."""
        first, second = pair
        rows = np.flatnonzero((codes == first) | (codes == second) | (second == REST))
        return rows, np.where(codes[rows] == first, 1.0, -1.0)

    def members(self, codes: Indices) -> list[Indices]:
        """The samples of each class."""
        return [np.flatnonzero(codes == k) for k in range(len(self.labels))]

    def name(self, pair: tuple[int, int]) -> str:
        first, second = pair
        return f"{self.labels[first]} against {'the rest' if second == REST else self.labels[second]}"


class PairwiseClassifier(Deciding, Separating, ClassifierMixin, DualMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """A classifier of several two-class machines; one adds its parameters and its problems."""

    def _read(self, y: Any) -> tuple[Indices, Classes]:
        labels, codes = samples.labels(y)
        # One pair is oriented so that f > 0 means the second class, several so that it means the first (as
        # scikit-learn).
        if len(labels) == 2:
            pairs = [(1, 0)]
        elif self._function_per_class:
            pairs = [(k, REST) for k in range(len(labels))]
        else:
            pairs = list(combinations(range(len(labels)), 2))
        return codes, Classes(labels, pairs, np.ones(len(labels)))

    def _weigh(self, target: Classes, codes: Indices, weight: Floats) -> tuple[Floats, Classes]:
        factor = samples.class_weights(getattr(self, "class_weight", None), target.labels, codes, weight)
        return weight, replace(target, factor=factor)

    @property
    def _function_per_class(self) -> bool:
        """Of the fit, whatever `multiclass` has been set to since."""
        return bool(getattr(self, "_per_class_", getattr(self, "multiclass", "ovo") != "ovo"))

    def _check_parameters(self) -> None:
        one_of("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        self._check_ties()

    def _check_ties(self) -> None:
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")

    def _conclude_pairs(self, fit: Fit, solved: list[Solved], bounds: Bounds, b: Floats, scale: Any = 1.0) -> None:
        """The fitted attributes; `scale` is a factor on the solutions' coefficients, one for all or for each task."""
        table = merged_table(fit.merged, solved)
        own = own_table(table, fit.merged, bounds)
        for part in (table, own):
            part.data *= np.broadcast_to(scale, len(solved))[part.indices]
        self._conclude_tables(fit, table, own, b)
        self._conclude_duals(fit, solved)

    def _conclude_tables(self, fit: Fit, table: sp.csr_array, own: sp.csr_array, b: Floats) -> None:
        """The same from coefficients of the merged samples, and of the caller's rows, for every output."""
        merged, target = fit.merged, fit.target
        used = np.flatnonzero(np.diff(table.indptr))
        used = used[np.argsort(merged.y[used], kind="stable")]
        self._per_class_ = self._function_per_class
        self.classes_ = freeze(target.labels)
        self.class_weight_ = freeze(target.factor)
        self.intercept_ = freeze(b)
        self._expansion_ = table_expansion(fit, table, used, b)

        # From here on in the caller's rows: classes come one after another.
        codes = merged.y[merged.member]
        order = np.lexsort((merged.rows, codes))
        order = order[np.diff(own.indptr)[order] > 0]
        conclude_support(self, fit, order)
        self.n_support_ = freeze(np.bincount(codes[order], minlength=len(target.labels)).astype(np.int32))
        self.dual_coef_ = freeze(_dual_coef(own[order], codes[order], target))

    # --- prediction ------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes; for more, a score per class ("ovr") or a column per pair ("ovo")."""
        values = self._decision(X)
        if len(self.classes_) == 2:
            return np.asarray(values[:, 0])
        if self._function_per_class or self.decision_function_shape == "ovo":
            return values
        votes, confidence = self._votes(values)
        # The confidence only orders classes of equal votes: it is squeezed into less than half a vote.
        return np.asarray(votes + confidence / (3 * (np.abs(confidence) + 1)))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample; for several classes the one with most votes, the first of them in a tie, or one
        against the rest the one with the largest f."""
        check_is_fitted(self)
        self._check_ties()
        if len(self.classes_) == 2:
            winner = (self._decision(X)[:, 0] >= 0).astype(np.intp)
        elif self.break_ties or self._function_per_class:
            winner = np.argmax(self.decision_function(X), axis=1)
        else:
            winner = np.argmax(self._votes(self._decision(X))[0], axis=1)
        return np.asarray(self.classes_[winner])

    def _votes(self, values: Floats) -> tuple[Floats, Floats]:
        """How many pairs each class wins, and the sum of its decision values."""
        columns = np.ascontiguousarray(values.T)  # hundreds of pairs: each is read in one go
        votes = np.zeros((len(self.classes_), len(values)))
        confidence = np.zeros_like(votes)
        for value, (first, second) in zip(columns, combinations(range(len(self.classes_)), 2), strict=True):
            wins = value > 0
            votes[first] += wins
            votes[second] += ~wins
            confidence[first] += value
            confidence[second] -= value
        return votes.T, confidence.T

    @property
    def coef_(self) -> Any:
        """w, one row per pair of classes; only for a linear kernel."""
        check_is_fitted(self)
        return weight_vector(self)


def _dual_coef(own: sp.csr_array, codes: Indices, target: Classes) -> Floats:
    """LIBSVM's layout: a vector of class c holds its coefficients against the other classes in their order.

    One against the rest has a row per class.
    """
    entries = own.tocoo()
    if len(target.pairs) == 1 or target.pairs[0][1] == REST:
        return np.asarray(own.toarray().T, order="C")
    out = np.zeros((len(target.labels) - 1, own.shape[0]))
    first, second = np.array(target.pairs).T
    vector, pair = entries.row, entries.col
    against = np.where(codes[vector] == first[pair], second[pair] - 1, first[pair])
    out[against, vector] = entries.data
    return out
