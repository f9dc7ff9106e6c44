"""Importance of a table's columns to a model, from exact Shapley values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.inspection.easy.page import Line
from mercer.inspection.explain import Explanation, explain
from mercer.tables.cells import cells_of
from mercer.tables.encodings import Dates, Encoding, Levels, Numbers
from mercer.tables.frame import part_of
from mercer.tables.unwrap import unwrap

# Largest numbers of explained rows, background rows and kernel factors: a few seconds on one core.
_EXPLAINED_ROWS, _BACKGROUND_ROWS, _MOST_FACTORS = 100, 50, 1_000_000_000


@dataclass(frozen=True, eq=False)
class Importance:
    """Shapley values of a sample of rows, with the background rows that they are compared with."""

    explanation: Any
    background: Any

    @property
    def shares(self) -> dict[str, float]:
        """Share of each column in the mean |Shapley value|, the largest first."""
        sizes = np.asarray(self.explanation.importance)
        sizes = sizes if sizes.ndim == 1 else sizes.mean(axis=1)
        total = float(sizes.sum()) or 1.0
        order = np.argsort(-sizes, kind="stable")
        return {self.explanation.feature_names[j]: float(sizes[j]) / total for j in order}

    def lines(self) -> list[Line]:
        """Return lines with the eight most important columns as bars."""
        shares = {name: share for name, share in self.shares.items() if share > 0}
        if not shares:
            return [("what matters", "no column: f is constant on these rows")]
        shown_shares = [
            (name if len(name) <= 40 else f"{name[:39]}…", share) for name, share in list(shares.items())[:8]
        ]
        name_width = max(len(name) for name, _ in shown_shares)
        largest = shown_shares[0][1] or 1.0
        lines: list[Line] = [
            (
                "" if k else "what matters",
                f"{name:<{name_width}}  {share:>4.0%}  {'█' * round(24 * share / largest)}".rstrip(),
            )
            for k, (name, share) in enumerate(shown_shares)
        ]
        n_others = len(shares) - len(shown_shares)
        unit = f"shares of the mean |Shapley value| of {len(self.explanation)} rows"
        more_text = f"; {n_others} more column{'s' * (n_others > 1)} not shown" if n_others else ""
        return [*lines, ("", unit + more_text)]


def with_numbers(explanation: Explanation, columns: Sequence[Encoding]) -> Explanation:
    """Return the explanation with its cells as numbers where the table reads numbers or dates, dates in seconds.

    A beeswarm plot is coloured by these values. Categories have no colour scale: they become NaN, also if they are
    codes such as 5411. Texts stay texts.
    """
    data = np.array(explanation.data, dtype=object)
    by_name = {encoding.name: encoding for encoding in columns}
    for j, name in enumerate(explanation.feature_names):
        encoding = by_name.get(name)
        if isinstance(encoding, Numbers | Dates):
            data[:, j] = encoding.values(cells_of(data[:, j]))
        elif isinstance(encoding, Levels):
            data[:, j] = np.nan
    return replace(explanation, data=data)


def column_importance(model: Any, X: Any, seed: int, names: list[str] | None = None) -> Importance | None:
    """Compute Shapley values of randomly drawn rows of X; None if the kernel has no exact Shapley values.

    `names` are the column names, for a model that does not know them.
    """
    machine = unwrap(model).machine
    order = np.random.default_rng(seed).permutation(X.shape[0])
    background = part_of(X, order[:_BACKGROUND_ROWS])
    row_cost = len(order[:_BACKGROUND_ROWS]) * max(1, len(getattr(machine, "support_", (1,)))) * machine.n_features_in_
    explained_rows = order[-max(10, min(_EXPLAINED_ROWS, _MOST_FACTORS // row_cost)) :]
    try:
        explanation = explain(model, part_of(X, explained_rows), background)
        return Importance(replace(explanation, feature_names=names or explanation.feature_names), background)
    except (TypeError, ValueError, FloatingPointError):  # the message names the kernels that have them
        return None
