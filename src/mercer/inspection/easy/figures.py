"""How good answers to rows are that a model has not seen: shares of classes, errors of numbers, and their noise."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.inspection.easy.page import WIDTH
from mercer.samples.arrays import Floats, Indices
from mercer.tables.dialect import quantity

Facts = dict[str, Any]  # by name, for a program


class ClassFigures:
    """The rows of each class by what they were answered with; `weighed` if all classes were to count alike."""

    def __init__(
        self, truth: NDArray[Any], answers: NDArray[Any], classes: NDArray[Any], weighed: bool = False
    ) -> None:
        self.weighed = weighed
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
    def standard_errors(self) -> tuple[float, float]:
        """Of the accuracy and the balanced accuracy: how much another draw of as many rows would change them."""
        rows, share = self.matrix.sum(axis=1), self.accuracy
        there = rows > 0
        recall = self.recall[there]
        balanced = np.sqrt(np.sum(recall * (1 - recall) / rows[there])) / there.sum()
        return float(np.sqrt(share * (1 - share) / rows.sum())), float(balanced)

    @property
    def constant(self) -> float:
        """The balanced accuracy of always the same answer."""
        return 1.0 / int(np.sum(self.matrix.any(axis=1)))

    @property
    def is_useless(self) -> bool:
        """Whether it is hardly better, class by class, than always the same answer, or only by chance."""
        return len(self.classes) > 1 and self.balanced_accuracy < self.constant + max(0.05, 2 * self.standard_errors[1])

    @property
    def headline(self) -> str:
        """In one sentence."""
        noise = f"(± {100 * self.standard_errors[self.weighed]:.1f})"
        if self.weighed:
            told = f"{self.balanced_accuracy:.1%} {noise} balanced accuracy on rows it had not seen; "
            return f"{told}a constant answer: {self.constant:.1%}"
        largest, share = self.majority
        return f"right for {self.accuracy:.1%} {noise} of rows it had not seen; always {largest!r}: {share:.1%}"

    @property
    def majority(self) -> tuple[str, float]:
        """The largest class, and the accuracy of always answering it."""
        rows = self.matrix.sum(axis=1)
        return self.classes[int(rows.argmax())], float(rows.max() / rows.sum())

    def to_dict(self) -> Facts:
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

    def lines(self, trained: float | None = None) -> list[tuple[str, str]]:
        """For a person, with the accuracy on the rows trained on."""
        correct, rows = int(self.matrix.trace()), int(self.matrix.sum())
        largest, share = self.majority
        of_training = "" if trained is None else f"{trained:.1%} of the training rows; "
        names = [_short(name) for name in self.classes]
        fits = (len(names) + 1) * max(8, *(len(name) + 2 for name in names)) + 24 <= WIDTH
        return [
            ("accuracy", f"{self.accuracy:.1%} of the held-out rows ({correct} of {rows})"),
            ("", f"{of_training}always answering {largest!r}: {share:.1%}"),
            ("balanced", f"{self.balanced_accuracy:.1%} balanced accuracy (a constant answer: {self.constant:.1%})"),
            *(self._matrix_lines() if len(self.classes) <= 8 and fits else self._class_lines()),
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
        order = np.argsort(np.where(np.isnan(recall), 2, recall), kind="stable")[:20]
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


class NumberFigures:
    """Errors of numbers that were predicted, beside those of always the same answer."""

    def __init__(self, truth: Any, answers: Any, usual: Any, unit: str = "") -> None:
        self.truth, self.answers = np.asarray(truth, dtype=np.float64), np.asarray(answers, dtype=np.float64)
        self.usual, self.unit = usual, unit

    @property
    def r2(self) -> float:
        """1 − (squared errors)/(squared deviations from the mean); NaN where y never changes."""
        off = float(((self.truth - self.truth.mean()) ** 2).sum())
        return float(1 - ((self.truth - self.answers) ** 2).sum() / off) if off > 0 else float("nan")

    @property
    def standard_error(self) -> float:
        """Of R², a ratio of two means: that of e² − (1 − R²) d² over the mean of d² (Cochran 1977, 6.4)."""
        e, d = (self.truth - self.answers) ** 2, (self.truth - self.truth.mean()) ** 2
        if not d.sum() > 0 or len(e) < 2:
            return float("nan")
        return float(np.std(e - (1 - self.r2) * d, ddof=1) / np.sqrt(len(e)) / d.mean())

    @property
    def error(self) -> float:
        """The mean of |y − f(x)|."""
        return float(np.abs(self.truth - self.answers).mean())

    @property
    def usual_error(self) -> float:
        """That of always answering the median of the rows trained on."""
        return float(np.abs(self.truth - self.usual).mean())

    @property
    def is_useless(self) -> bool:
        """Whether it is hardly better than always the same answer, or only by chance."""
        return not self.r2 > max(0.05, 2 * self.standard_error)

    @property
    def headline(self) -> str:
        """In one sentence."""
        return (
            f"R² {self.r2:.3f} (± {self.standard_error:.3f}) on rows it had not seen; off by "
            f"{quantity(self.error, self.unit)}, always the median by {quantity(self.usual_error, self.unit)}"
        )

    def to_dict(self) -> Facts:
        """For a program."""
        return {"mean_absolute_error": {"test": self.error, "median": self.usual_error}}

    def lines(self, trained: float | None = None) -> list[tuple[str, str]]:
        """For a person, with R² on the rows trained on."""
        of_training = "" if trained is None else f", {trained:.4g} on the training rows"
        usual = quantity(self.usual_error, self.unit)
        return [
            ("R²", f"{self.r2:.4g} on the held-out rows{of_training}"),
            (
                "error",
                f"{quantity(self.error, self.unit)} in the mean of the held-out rows; always the median: {usual}",
            ),
        ]


def _shares(parts: Any, wholes: Any) -> Floats:
    out = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=out, where=wholes > 0)
    return out


def _or_none(share: float) -> float | None:
    return None if np.isnan(share) else float(share)


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.1%}"


def _short(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:13]}…"
