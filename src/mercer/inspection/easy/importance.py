"""What matters to a model of a table: the columns by their exact Shapley values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.inspection.easy.page import Line
from mercer.inspection.explain import Explanation, explain
from mercer.tables.cells import as_numbers, as_seconds
from mercer.tables.encodings import Dates, Encoding, Numbers
from mercer.tables.frame import part_of
from mercer.tables.unwrap import ask

# Rows, rows that they are compared with, and kernel factors at most: a few seconds of one core.
_EXPLAINED, _BACKGROUND, _WORK = 100, 50, 1_000_000_000


@dataclass(frozen=True, eq=False)
class Importance:
    """Shapley values of some rows, and the rows that they are compared with."""

    explanation: Any
    background: Any

    @property
    def shares(self) -> dict[str, float]:
        """Of each column, its share of the mean |Shapley value|, the largest first."""
        sizes = np.asarray(self.explanation.importance)
        sizes = sizes if sizes.ndim == 1 else sizes.mean(axis=1)
        whole = float(sizes.sum()) or 1.0
        order = np.argsort(-sizes, kind="stable")
        return {self.explanation.feature_names[j]: float(sizes[j]) / whole for j in order}

    def lines(self) -> list[Line]:
        """The first eight, as bars."""
        shares = {name: share for name, share in self.shares.items() if share > 0}
        if not shares:
            return [("what matters", "no column does: f is the same for all of these rows")]
        shown = [(name if len(name) <= 40 else f"{name[:39]}…", share) for name, share in list(shares.items())[:8]]
        wide = max(len(name) for name, _ in shown)
        most = shown[0][1] or 1.0
        lines: list[Line] = [
            ("" if k else "what matters", f"{name:<{wide}}  {share:>4.0%}  {'█' * round(24 * share / most)}".rstrip())
            for k, (name, share) in enumerate(shown)
        ]
        rest = len(shares) - len(shown)
        told = f"shares of the mean |Shapley value| of {len(self.explanation)} rows"
        more = f"; and {rest} more column{'s' * (rest > 1)}" if rest else ""
        return [*lines, ("", told + more)]


def with_numbers(explanation: Explanation, columns: Sequence[Encoding]) -> Explanation:
    """The explanation with cells as a table's columns read them: numbers, also of texts, and dates in seconds.

    A swarm is coloured by them; texts would count as categories, which are neither low nor high.
    """
    data = np.array(explanation.data, dtype=object)
    by_name = {one.name: one for one in columns}
    for j, name in enumerate(explanation.feature_names):
        one = by_name.get(name)
        if isinstance(one, Numbers):
            data[:, j] = as_numbers(data[:, j])[0]
        elif isinstance(one, Dates):
            data[:, j] = as_seconds(data[:, j], one.form)[0]
    return replace(explanation, data=data)


def importance_of(model: Any, X: Any, seed: int, names: list[str] | None = None) -> Importance | None:
    """What matters in rows of X that are drawn; None where a kernel has no exact Shapley values.

    `names` are those of the columns, where the model does not know them.
    """
    machine = ask(model).machine
    order = np.random.default_rng(seed).permutation(X.shape[0])
    background = part_of(X, order[:_BACKGROUND])
    each = len(order[:_BACKGROUND]) * max(1, len(getattr(machine, "support_", (1,)))) * machine.n_features_in_
    some = order[-max(10, min(_EXPLAINED, _WORK // each)) :]
    try:
        found = explain(model, part_of(X, some), background)
        return Importance(replace(found, feature_names=names or found.feature_names), background)
    except (TypeError, ValueError, FloatingPointError):  # its message tells which kernels have them
        return None
