"""Tables of a report: how good a classifier's answers are, and what was done to each column."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Floats, Indices

_WIDEST_MATRIX = 8  # classes; more do not fit beside each other on a terminal
_WIDEST_NAME = 14  # characters
_SHOWN_CLASSES = 20
_WIDEST_TABLE = 20  # columns that get a line each


class ClassFigures:
    """The rows of each class by what they were answered with."""

    def __init__(self, truth: NDArray[Any], answers: NDArray[Any], classes: NDArray[Any]) -> None:
        self.classes = [str(one) for one in classes]
        place = {one: k for k, one in enumerate(classes.tolist())}
        self.matrix: Indices = np.zeros((len(classes), len(classes)), dtype=np.intp)
        for (right, given), count in Counter(zip(truth.tolist(), answers.tolist(), strict=True)).items():
            self.matrix[place[right], place[given]] = count

    @property
    def accuracy(self) -> float:
        return float(self.matrix.trace() / self.matrix.sum())

    @property
    def recall(self) -> Floats:
        """Of each class, the share of its rows that were recognised; NaN for a class without rows."""
        return _shares(self.matrix.diagonal(), self.matrix.sum(axis=1))

    @property
    def precision(self) -> Floats:
        """Of each class, the share of the answers naming it that were right; NaN for a class that none names."""
        return _shares(self.matrix.diagonal(), self.matrix.sum(axis=0))

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall: what a majority does not inflate."""
        return float(np.nanmean(self.recall))

    @property
    def majority(self) -> tuple[str, float]:
        """The largest class, and the accuracy of always answering it."""
        rows = self.matrix.sum(axis=1)
        return self.classes[int(rows.argmax())], float(rows.max() / rows.sum())

    def to_dict(self) -> dict[str, Any]:
        """For a program; None stands for a share of nothing."""
        each = zip(self.classes, self.matrix.sum(axis=1).tolist(), self.precision, self.recall, strict=True)
        return {
            "balanced_accuracy": self.balanced_accuracy,
            "majority": {"class": self.majority[0], "accuracy": self.majority[1]},
            "confusion": {"classes": self.classes, "rows_are": "truth", "counts": self.matrix.tolist()},
            "per_class": {
                name: {"rows": rows, "precision": _or_none(precision), "recall": _or_none(recall)}
                for name, rows, precision, recall in each
            },
        }

    def lines(self, trained: float) -> list[tuple[str, str]]:
        """For a person, with the accuracy on the rows trained on."""
        correct, rows = int(self.matrix.trace()), int(self.matrix.sum())
        largest, share = self.majority
        constant = 1 / np.sum(self.matrix.any(axis=1))
        return [
            ("accuracy", f"{self.accuracy:.1%} of the held-out rows ({correct} of {rows})"),
            ("", f"{trained:.1%} of the training rows; always answering {largest!r}: {share:.1%}"),
            ("balanced", f"{self.balanced_accuracy:.1%} balanced accuracy (a constant answer: {constant:.1%})"),
            *(self._matrix_lines() if len(self.classes) <= _WIDEST_MATRIX else self._class_lines()),
        ]

    def _matrix_lines(self) -> list[tuple[str, str]]:
        names = [_short(name) for name in self.classes]
        first = max(len("precision"), *map(len, names))
        width = max(6, *map(len, names))
        told = [("answers", f"{'truth':<{first}}  {'  '.join(f'{name:>{width}}' for name in names)}  recall")]
        for name, counts, recall in zip(names, self.matrix.tolist(), self.recall, strict=True):
            cells = "  ".join(f"{count:>{width}}" for count in counts)
            told.append(("", f"{name:<{first}}  {cells}  {_percent(recall):>6}"))
        cells = "  ".join(f"{_percent(share):>{width}}" for share in self.precision)
        return [*told, ("", f"{'precision':<{first}}  {cells}")]

    def _class_lines(self) -> list[tuple[str, str]]:
        """The classes recognised worst, and what each was mostly taken for."""
        recall, precision = self.recall, self.precision
        order = np.argsort(np.where(np.isnan(recall), 2, recall), kind="stable")[:_SHOWN_CLASSES]
        names = [_short(name) for name in self.classes]
        first = max(len("class"), *map(len, names))
        told = [("by class", f"{'class':<{first}}  {'rows':>6}  precision  recall  mostly taken for")]
        for k in order:
            wrong = np.where(np.arange(len(names)) == k, 0, self.matrix[k])
            taken = f"{names[int(wrong.argmax())]} ({wrong.max()}×)" if wrong.any() else ""
            shares = f"{_percent(precision[k]):>9}  {_percent(recall[k]):>6}"
            told.append(("", f"{names[k]:<{first}}  {self.matrix[k].sum():>6}  {shares}  {taken}"))
        hidden = len(names) - len(order)
        return [*told, ("", f"and {hidden} more, recognised better")] if hidden else told


def column_lines(told: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What was done to each column, a line for each; in a wide table, one for all to which the same was done."""
    if len(told) > _WIDEST_TABLE:
        alike: dict[str, list[str]] = {}
        for name, what in told:
            alike.setdefault(what, []).append(name)
        told = [(_listed(names), what) for what, names in alike.items()]
    told = [(name or "(no name)", what) for name, what in told]
    width = max(len(name) for name, _ in told)
    return [("" if i else "columns", f"{name:<{width}}  {what}") for i, (name, what) in enumerate(told)]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"


def _shares(parts: Any, wholes: Any) -> Floats:
    out = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=out, where=wholes > 0)
    return out


def _or_none(share: float) -> float | None:
    return None if np.isnan(share) else float(share)


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.1%}"


def _short(name: str) -> str:
    return name if len(name) <= _WIDEST_NAME else f"{name[: _WIDEST_NAME - 1]}…"
