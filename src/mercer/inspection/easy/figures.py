"""Scores of predictions on held-out rows: accuracy of classes, errors of numbers, and their standard errors."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.inspection.easy.page import WIDTH
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.tables.dialect import format_quantity

Facts = dict[str, Any]  # plain values by name, as in a JSON report
WIDE = 1.96  # standard deviations of a normal 95 % interval


class ClassFigures:
    """Confusion matrix of a classifier and the scores that follow from it.

    Rows of `matrix` are true classes, columns predicted ones. With `weighed`, training gave all classes the same total
    weight, and the headline is the balanced accuracy.
    """

    def __init__(
        self, truth: NDArray[Any], answers: NDArray[Any], classes: NDArray[Any], weighed: bool = False
    ) -> None:
        self.weighed = weighed
        self.classes = [str(item) for item in classes]
        index = {label: k for k, label in enumerate(classes.tolist())}
        self.matrix: Indices = np.zeros((len(classes), len(classes)), dtype=np.intp)
        for (true, predicted), count in Counter(zip(truth.tolist(), answers.tolist(), strict=True)).items():
            self.matrix[index[true], index[predicted]] = count

    @property
    def accuracy(self) -> float:
        """Share of rows that are predicted correctly."""
        return float(self.matrix.trace() / self.matrix.sum())

    @property
    def recall(self) -> Floats:
        """Recall of each class: the share of its rows that are predicted correctly; NaN for a class without rows."""
        return _shares(self.matrix.diagonal(), self.matrix.sum(axis=1))

    @property
    def precision(self) -> Floats:
        """Precision of each class: the share of its predictions that are right; NaN if it is never predicted."""
        return _shares(self.matrix.diagonal(), self.matrix.sum(axis=0))

    @property
    def hardest(self) -> int:
        """Index of the class with the smallest F1 score, the harmonic mean of recall and precision."""
        found, rows = self.matrix.diagonal(), self.matrix.sum(axis=1)
        scores = _shares(2 * found, rows + self.matrix.sum(axis=0))
        return int(np.nanargmin(np.where(rows > 0, scores, np.nan)))

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes, which a large class does not inflate."""
        return float(np.nanmean(self.recall))

    @property
    def standard_errors(self) -> tuple[float, float]:
        """Standard errors of the accuracy and of the balanced accuracy over draws of the same number of rows.

        Each share counts one more correct and one more wrong row (Laplace), so the errors of a perfect model are not 0.
        """
        n_correct, rows = self.matrix.diagonal(), self.matrix.sum(axis=1)
        n_correct, rows = n_correct[rows > 0], rows[rows > 0]
        balanced_error = np.sqrt(np.sum(_variance(n_correct, rows) / rows)) / len(rows)
        return float(np.sqrt(_variance(n_correct.sum(), rows.sum()) / rows.sum())), float(balanced_error)

    @property
    def half_width(self) -> float:
        """Half the width of a 95 % interval of the main score."""
        return WIDE * self.standard_errors[self.weighed]

    @property
    def constant(self) -> float:
        """Balanced accuracy of always predicting the same class."""
        return 1.0 / int(np.sum(self.matrix.any(axis=1)))

    @property
    def is_useless(self) -> bool:
        """True if the balanced accuracy is hardly or not significantly better than that of a constant prediction."""
        return len(self.classes) > 1 and self.balanced_accuracy < self.constant + max(0.05, 2 * self.standard_errors[1])

    @property
    def headline(self) -> str:
        """The main score and its baseline, in one sentence."""
        noise = f"(± {100 * self.half_width:.1f})"
        if self.weighed:
            score = f"balanced accuracy {self.balanced_accuracy:.1%} {noise} on held-out rows"
            return f"{score} (always predicting one class: {self.constant:.1%})"
        largest, share = self.majority
        score = f"accuracy {self.accuracy:.1%} {noise} on held-out rows"
        return f"{score} (always predicting {largest!r}: {share:.1%})"

    @property
    def majority(self) -> tuple[str, float]:
        """The largest class, and the accuracy of always predicting it."""
        rows = self.matrix.sum(axis=1)
        return self.classes[int(rows.argmax())], float(rows.max() / rows.sum())

    def to_dict(self) -> Facts:
        """Return the scores as plain values; None stands for an undefined precision or recall."""
        per_class = zip(self.classes, self.matrix.sum(axis=1).tolist(), self.precision, self.recall, strict=True)
        return {
            "balanced_accuracy": self.balanced_accuracy,
            "majority": {"class": self.majority[0], "accuracy": self.majority[1]},
            "confusion": {"classes": self.classes, "rows_are": "truth", "counts": self.matrix.tolist()},
            "per_class": {
                name: {"rows": rows, "precision": _or_none(precision), "recall": _or_none(recall)}
                for name, rows, precision, recall in per_class
            },
        }

    def lines(self, trained: float | None = None) -> list[tuple[str, str]]:
        """Return the lines of the report; `trained` is the accuracy on the training rows."""
        correct, rows = int(self.matrix.trace()), int(self.matrix.sum())
        largest, share = self.majority
        constant = f"{self.constant:.1%}"
        of_training = "" if trained is None else f"{trained:.1%} of the training rows; "
        names = [_short(name) for name in self.classes]
        fits = (len(names) + 1) * max(8, *(len(name) + 2 for name in names)) + 24 <= WIDTH
        return [
            ("accuracy", f"{self.accuracy:.1%} of the held-out rows ({correct} of {rows})"),
            ("", f"{of_training}always predicting {largest!r}: {share:.1%} of the held-out rows"),
            ("balanced", f"{self.balanced_accuracy:.1%} balanced accuracy (always predicting one class: {constant})"),
            *(self._matrix_lines() if len(self.classes) <= 8 and fits else self._class_lines()),
        ]

    def _matrix_lines(self) -> list[tuple[str, str]]:
        names = [_short(name) for name in self.classes]
        first = max(len("precision"), *map(len, names))
        width = max(6, *map(len, names))
        lines = [
            ("confusion", f"{'':<{first}}  {'predicted':>{width}}"),
            ("", f"{'truth':<{first}}  {'  '.join(f'{name:>{width}}' for name in names)}  recall"),
        ]
        for name, counts, recall in zip(names, self.matrix.tolist(), self.recall, strict=True):
            cells = "  ".join(f"{count:>{width}}" for count in counts)
            lines.append(("", f"{name:<{first}}  {cells}  {_percent(recall):>6}"))
        cells = "  ".join(f"{_percent(share):>{width}}" for share in self.precision)
        return [*lines, ("", f"{'precision':<{first}}  {cells}")]

    def _class_lines(self) -> list[tuple[str, str]]:
        """Return lines for the 20 classes with the lowest recall, each with the class it is mostly confused with."""
        recall, precision = self.recall, self.precision
        order = np.argsort(np.where(np.isnan(recall), 2, recall), kind="stable")[:20]
        names = [_short(name) for name in self.classes]
        first = max(len("class"), *map(len, names))
        lines = [("by class", f"{'class':<{first}}  {'rows':>6}  precision  recall  mostly confused with")]
        for k in order:
            wrong = np.where(np.arange(len(names)) == k, 0, self.matrix[k])
            confused = f"{names[int(wrong.argmax())]} ({wrong.max()}×)" if wrong.any() else ""
            shares = f"{_percent(precision[k]):>9}  {_percent(recall[k]):>6}"
            lines.append(("", f"{names[k]:<{first}}  {self.matrix[k].sum():>6}  {shares}  {confused}"))
        hidden = len(names) - len(order)
        return [*lines, ("", f"and {hidden} more classes, with higher recall")] if hidden else lines


class NumberFigures:
    """R² and mean absolute error of a regression, compared with always predicting the median `usual`.

    `outlying` marks rows that are so far off that they decide both; `without_outliers` has the figures of the others.
    """

    def __init__(self, truth: Any, answers: Any, usual: Any, unit: str = "", outlying: Flags | None = None) -> None:
        self.truth, self.answers = np.asarray(truth, dtype=np.float64), np.asarray(answers, dtype=np.float64)
        self.usual, self.unit = np.broadcast_to(usual, self.truth.shape), unit
        self.outlying = np.zeros(self.truth.shape, dtype=bool) if outlying is None else outlying

    @property
    def without_outliers(self) -> NumberFigures:
        """Figures of the rows that are not outlying."""
        is_inside = ~self.outlying
        return NumberFigures(self.truth[is_inside], self.answers[is_inside], self.usual[is_inside], self.unit)

    @property
    def r2(self) -> float:
        """R² = 1 − Σ(y − f)²/Σ(y − ȳ)²; NaN for a constant y."""
        total_squares = float(((self.truth - self.truth.mean()) ** 2).sum())
        return (
            float(1 - ((self.truth - self.answers) ** 2).sum() / total_squares) if total_squares > 0 else float("nan")
        )

    @property
    def standard_error(self) -> float:
        """Standard error of R², a ratio of two means: that of e² − (1 − R²) d² over mean d² (Cochran 1977, 6.4)."""
        e, d = (self.truth - self.answers) ** 2, (self.truth - self.truth.mean()) ** 2
        if not d.sum() > 0 or len(e) < 2:
            return float("nan")
        return float(np.std(e - (1 - self.r2) * d, ddof=1) / np.sqrt(len(e)) / d.mean())

    @property
    def half_width(self) -> float:
        """Half the width of a 95 % interval of R²."""
        return WIDE * self.standard_error

    @property
    def error(self) -> float:
        """Mean absolute error: the mean of |y − f(x)|."""
        return float(np.abs(self.truth - self.answers).mean())

    @property
    def usual_error(self) -> float:
        """Mean absolute error of always predicting the median of the training rows."""
        return float(np.abs(self.truth - self.usual).mean())

    @property
    def is_useless(self) -> bool:
        """True if R² without outliers is hardly or not significantly above 0, that of a constant prediction."""
        rest = self.without_outliers
        return not rest.r2 > max(0.05, 2 * rest.standard_error)

    @property
    def headline(self) -> str:
        """The main scores and their baseline, in one sentence."""
        rest, outlying = self.without_outliers, int(self.outlying.sum())
        error, usual = format_quantity(rest.error, self.unit), format_quantity(rest.usual_error, self.unit)
        rows, them = ("rows are", "them") if outlying > 1 else ("row is", "it")
        remark = f" if {outlying} outlying {rows} left out ({self.r2:.3f} with {them})" if outlying else ""
        return (
            f"R² {rest.r2:.3f} (± {rest.half_width:.3f}) on held-out rows{remark}; mean absolute error {error} "
            f"(always predicting the median: {usual})"
        )

    def to_dict(self) -> Facts:
        """Return the errors as plain values."""
        facts: Facts = {"mean_absolute_error": {"test": self.error, "median": self.usual_error}}
        if self.outlying.any():
            rest = self.without_outliers
            facts["without_outliers"] = {"r2": rest.r2} | rest.to_dict()
        return facts

    def lines(self, trained: NumberFigures | None = None) -> list[tuple[str, str]]:
        """Return the lines of the report; `trained` has the figures of the training rows."""
        of_training = ""
        if trained is not None:
            which_rows = "training rows that are not outlying" if trained.outlying.any() else "training rows"
            of_training = f", {trained.without_outliers.r2:.4g} on the {which_rows}"
        rest, outlying = self.without_outliers, int(self.outlying.sum())
        error, usual = format_quantity(rest.error, self.unit), format_quantity(rest.usual_error, self.unit)
        scored_rows = "held-out rows that are not outlying" if outlying else "held-out rows"
        lines = [
            ("R²", f"{rest.r2:.4g} on the {scored_rows}{of_training}"),
            ("error", f"{error} on average over the {scored_rows} (always predicting the median: {usual})"),
        ]
        if outlying:
            error, usual = format_quantity(self.error, self.unit), format_quantity(self.usual_error, self.unit)
            rows = f"{outlying} outlying row{'s' * (outlying > 1)}"
            lines.append(("", f"with the {rows} R² is {self.r2:.4g}, the error {error} (the median's: {usual})"))
        return lines


def _variance(n_correct: Any, rows: Any) -> Any:
    """Return the variance p(1 − p) of a row being correct, with p = (n_correct + 1) / (rows + 2)."""
    share = (n_correct + 1) / (rows + 2)
    return share * (1 - share)


def _shares(parts: Any, totals: Any) -> Floats:
    out = np.full(len(parts), np.nan)
    np.divide(parts, totals, out=out, where=totals > 0)
    return out


def _or_none(share: float) -> float | None:
    return None if np.isnan(share) else float(share)


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.1%}"


def _short(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:13]}…"
