"""What ``mercer train`` tells of a model and the rows held out: numbers for a machine, a page for a person."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import r2_score

import mercer
from mercer.arrays import Floats, Indices
from mercer.certificates.certificate import Certificate
from mercer.cli.data import Data
from mercer.cli.machines import Estimator, machine_of
from mercer.cli.terminal import rounded
from mercer.data.labels import every_pair, names_of
from mercer.estimators import SVC
from mercer.fitting.reports.dual_margins import free_and_bounded
from mercer.tables.dialect import from_text, units_told
from mercer.tables.estimator import Tabular

Rows = tuple[Any, Any]
Facts = dict[str, Any]  # by name, for a program
Line = tuple[str, str] | None  # a name and what is said of it; None is an empty line


@dataclass(frozen=True)
class Report:
    """What can be said of every machine: how good it is on held-out rows, its support vectors, its certificate."""

    model: Estimator
    data: Data
    train: Rows
    test: Rows
    seed: int
    answers: tuple[NDArray[Any], NDArray[Any]]  # to the rows trained on, and to those held out

    @property
    def machine(self) -> Estimator:
        return machine_of(self.model)

    @property
    def standardised(self) -> bool:
        return bool(self.model.standardise) if isinstance(self.model, Tabular) else len(self.model) > 1

    def to_dict(self) -> Facts:
        """Plain values; a number that is not finite is null."""
        machine = self.machine
        plain = {
            "mercer": mercer.__version__,
            "data": {"name": self.data.source, "features": self.data.X.shape[1]} | self._classes(),
            "split": {"train": len(self.train[1]), "test": len(self.test[1]), "seed": self.seed},
            "standardised": self.standardised,
            **self._columns(),
            **self._figures(),
            "converged": bool(machine.converged_),
            "stop_reason": machine.stop_reason_,
            "certificate": machine.certificate_.to_dict() | {"verdict": machine.certificate_.verdict},
            **self._errors(),
        }
        return {key: _without_infinities(value) for key, value in plain.items()}

    def text(self, seconds: dict[str, float], saved: Path) -> str:
        """The page, with the time each step took and where the model was saved."""
        rows, columns = self.data.X.shape
        facts: list[Line] = [
            ("data", f"{self.data.title}: {rows} rows × {columns} features"),
            *self._class_lines(),
            ("split", f"{len(self.train[1])} rows to train on, {len(self.test[1])} held out ({self._drawn})"),
            *self._column_lines(),
            *self._machine_lines(),
            None,
            *self._quality(),
            *self._support_lines(),
            None,
            *self._certificate_lines(),
            None,
            ("time", " · ".join(f"{name} {lap:.3f} s" for name, lap in seconds.items())),
            ("saved", f"{saved} ({saved.stat().st_size / 1000:.1f} kB); mercer.load({str(saved)!r}) reads it back"),
        ]
        lines = ["" if fact is None else f"  {fact[0]:<13}{fact[1]}".rstrip() for fact in facts]
        return "\n".join([f"mercer {mercer.__version__}", "", *lines, *self._picture()])

    def _classes(self) -> Facts:
        return {}

    def _columns(self) -> Facts:
        """What was done to each column, and to the target."""
        if not isinstance(self.model, Tabular):
            return {}
        found: Facts = {
            "columns": {one.name: one.description for one in self.model.columns_},
            "rows_dropped": self.model.n_rows_dropped_,
            "read_as": self.data.dialect.to_dict(),
        }
        if is_regressor(self.machine):
            found["target"] = {"mean": self.model.target_mean_, "scale": self.model.target_scale_}
        return found

    def _column_lines(self) -> list[Line]:
        if not isinstance(self.model, Tabular):
            told = "standardised with the training part's means and standard deviations"
            return [("scaling", told)] if self.standardised else []
        lines: list[Line] = list(column_lines([(one.name, one.description) for one in self.model.columns_]))
        encoding = self.data.dialect.encoding
        if encoding not in (None, "utf-8"):
            lines.insert(0, ("read as", f"{encoding}, which --encoding changes"))
        units = from_text(self.data.dialect.units)
        if units:
            lines.append(("units", f"{units_told(units)}: numbers, read without them"))
        if self.model.n_rows_dropped_:
            lines.append(("", f"{self.model.n_rows_dropped_} rows with holes not trained on"))
        if is_regressor(self.machine) and self.standardised:
            mean, scale = self.model.target_mean_, self.model.target_scale_
            told = f"standardised: mean {mean:.4g}, standard deviation {scale:.4g}, in which C, epsilon and"
            lines += [("target", told), ("", "the certificate are; the figures below are in its own unit")]
        return lines

    def _figures(self) -> Facts:
        trained, held_out = self._scores()
        return {
            "machine": type(self.machine).__name__,
            **({"kernel": str(self.machine.kernel_)} if hasattr(self.machine, "kernel") else {}),
            "score": {"train": trained, "test": held_out},
            **({"support_vectors": len(self.machine.support_)} if hasattr(self.machine, "support_") else {}),
            **(self._class_figures.to_dict() if is_classifier(self.machine) else {}),
        }

    @property
    def _class_figures(self) -> ClassFigures:
        return ClassFigures(self.test[1], self.answers[1], self.machine.classes_)

    def _errors(self) -> Facts:
        """Of a regression: the mean absolute error, and that of always answering the median."""
        if not is_regressor(self.machine):
            return {}
        misses = [np.abs(self.test[1] - answer) for answer in (self.answers[1], np.median(self.train[1]))]
        return {"mean_absolute_error": {"test": float(misses[0].mean()), "median": float(misses[1].mean())}}

    def _scores(self) -> list[float]:
        """Of the rows trained on and those held out: R², the share answered correctly, or the share judged normal."""
        truths = (self.train[1], self.test[1])
        if is_regressor(self.machine):
            return [float(r2_score(*pair)) for pair in zip(truths, self.answers, strict=True)]
        if is_classifier(self.machine):
            return [float(np.mean(truth == answer)) for truth, answer in zip(truths, self.answers, strict=True)]
        return [float(np.mean(answer > 0)) for answer in self.answers]

    @property
    def _drawn(self) -> str:
        return f"seed {self.seed}"

    def _class_lines(self) -> list[Line]:
        return []

    def _machine_lines(self) -> list[Line]:
        machine = self.machine
        names = ("C", "nu", "epsilon", "quantiles", "lam")
        prices = [f"{name} = {getattr(machine, name)}" for name in names if getattr(machine, name, None) is not None]
        kernel = [_kernel_line(machine)] if hasattr(machine, "kernel") else []
        return [("machine", f"{type(machine).__name__}, {', '.join(prices)}"), *kernel]

    def _quality(self) -> list[Line]:
        trained, held_out = self._scores()
        errors = self._errors().get("mean_absolute_error")
        if errors is not None:
            error, guess = errors["test"], errors["median"]
            return [
                ("R²", f"{held_out:.4g} on the held-out rows, {trained:.4g} on the training rows"),
                ("error", f"{error:.4g} in the mean of the held-out rows; always answering the median: {guess:.4g}"),
            ]
        if is_classifier(self.machine):
            return list(self._class_figures.lines(trained))
        return [("normal", f"{held_out:.1%} of the held-out rows, {trained:.1%} of the training rows")]

    def _support_lines(self) -> list[Line]:
        if not hasattr(self.machine, "support_"):
            return []
        return [("support", f"{len(self.machine.support_)} of {len(self.train[1])} rows")]

    def _certificate_lines(self) -> list[Line]:
        machine = self.machine
        told = str(machine.certificate_).split("\n")
        lines: list[Line] = [("certificate" if not i else "", line) for i, line in enumerate(told)]
        asked = f"tol = {machine.tol:g}: " if hasattr(machine, "tol") else ""
        return [*lines, ("", f"{asked}{machine.stop_reason_}")]

    def _picture(self) -> list[str]:
        return []


@dataclass(frozen=True)
class SVCReport(Report):
    """What can be said of SVC besides: its classes, mistakes, free and bounded vectors and narrowest margin."""

    decisions: NDArray[np.float64]  # of the rows held out

    def _classes(self) -> Facts:
        return {"rows": {str(c): int(np.sum(self.data.y == c)) for c in self.machine.classes_}}

    def _figures(self) -> Facts:
        machine = self.machine
        trained, held_out = self._scores()
        free, bounded = _counts(machine)
        width, pair = _narrowest_margin(machine)
        return {
            "kernel": str(machine.kernel_),
            "parameters": {name: getattr(machine, name) for name in ("C", "kernel", "gamma", "degree", "coef0", "tol")},
            "accuracy": {"test": held_out, "train": trained},
            **self._class_figures.to_dict(),
            "support_vectors": {"free": free, "bounded": bounded},
            "margin": {"width": width, "classes": list(pair)},
        }

    @property
    def _drawn(self) -> str:
        return f"stratified, seed {self.seed}"

    def _class_lines(self) -> list[Line]:
        return [("classes", ", ".join(f"{int(np.sum(self.data.y == c))} {c}" for c in self.machine.classes_))]

    def _machine_lines(self) -> list[Line]:
        return [_kernel_line(self.machine), ("C", f"{self.machine.C:g}")]

    def _support_lines(self) -> list[Line]:
        free, bounded = _counts(self.machine)
        width, pair = _narrowest_margin(self.machine)
        narrowest = "" if len(self.machine.classes_) == 2 else f", the narrowest: {' against '.join(pair)}"
        return [
            ("support", f"{free + bounded} of {len(self.train[1])} rows: {free} free, {bounded} at the bound"),
            ("margin", f"1/‖w‖ = {width:.4g}{narrowest}"),
        ]

    def _certificate_lines(self) -> list[Line]:
        certificate: Certificate = self.machine.certificate_
        state = "converged" if self.machine.converged_ else "NOT converged"
        title = certificate.verdict
        if certificate.parts:
            title += f"; sums and maxima over {len(certificate.parts)} pairs of classes"
        lines: list[Line] = [
            ("certificate", title),
            ("", f"primal value     {certificate.primal:<14.8g} no dual value is larger"),
            ("", f"dual value       {certificate.dual:<14.8g} reached"),
            (
                "",
                f"gap              {certificate.gap:<14.2e} {certificate.relative_gap:.1e} of the dual value",
            ),
            ("", f"violation        {certificate.violation:<14.2e} tol = {self.machine.tol:g}: {state}"),
            ("", "the largest residual of each KKT condition:"),
        ]
        if not self.machine.converged_:
            lines.insert(5, ("", f"why it stopped: {self.machine.stop_reason_}"))
        return [*lines, *(("", f"  {residual:<14.2e} {name}") for name, residual in certificate.kkt.items())]

    def _picture(self) -> list[str]:
        """The held-out rows by their decision value, one character a row while they fit on a line."""
        if len(self.machine.classes_) != 2:
            return []
        negative, positive = (str(c) for c in self.machine.classes_)
        is_positive = self.test[1] == self.machine.classes_[-1]
        bins = np.clip(np.floor(self.decisions / 0.5), -6, 5).astype(int)
        most = int(np.bincount(bins + 6).max())
        scale = max(1, math.ceil(most / 60))
        each = "one row each" if scale == 1 else f"{scale} rows each"
        lines = [
            "",
            f"  the held-out rows by f(x) in steps of ½, {each} (● {negative}, ○ {positive})",
            "",
        ]
        for k in range(int(bins.min()), int(bins.max()) + 1):
            here = bins == k
            marks = [math.ceil(np.sum(here & side) / scale) for side in (~is_positive, is_positive)]
            edge = f"{k / 2:+.1f}".replace("-", "−")
            lines.append(f"    {edge} {'●' * marks[0]}{'○' * marks[1]}".rstrip())
        return lines


def report_on(model: Estimator, data: Data, train: Rows, test: Rows, seed: int) -> Report:
    """The report on ``model``, fitted to ``train`` and judged on ``test``."""
    answers = (model.predict(train[0]), model.predict(test[0]))
    machine = machine_of(model)
    if isinstance(machine, SVC) and machine.multiclass == "ovo":
        return SVCReport(model, data, train, test, seed, answers, model.decision_function(test[0]))
    return Report(model, data, train, test, seed, answers)


def _kernel_line(machine: Estimator) -> Line:
    return "kernel", rounded(str(machine.kernel_))


def _counts(machine: SVC) -> tuple[int, int]:
    counts = free_and_bounded(machine)
    assert counts is not None  # it was trained here
    return counts


def _narrowest_margin(machine: SVC) -> tuple[float, tuple[str, str]]:
    """The smallest geometric margin 1/‖w‖ of a pair of classes, and the pair."""
    names = [str(c) for c in machine.classes_]
    norms = np.atleast_1d(machine.rkhs_norm_)
    pair, norm = max(zip(every_pair(len(names)), norms, strict=True), key=lambda one: one[1])
    # An indefinite kernel has no feature space: w² may be negative, and there is no margin to speak of.
    return (1 / float(norm) if norm > 0 else math.inf), names_of(pair, names)


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinities(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


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

    def lines(self, trained: float) -> list[tuple[str, str]]:
        """For a person, with the accuracy on the rows trained on."""
        correct, rows = int(self.matrix.trace()), int(self.matrix.sum())
        largest, share = self.majority
        constant = 1 / np.sum(self.matrix.any(axis=1))
        return [
            ("accuracy", f"{self.accuracy:.1%} of the held-out rows ({correct} of {rows})"),
            ("", f"{trained:.1%} of the training rows; always answering {largest!r}: {share:.1%}"),
            ("balanced", f"{self.balanced_accuracy:.1%} balanced accuracy (a constant answer: {constant:.1%})"),
            # More do not fit beside each other on a terminal.
            *(self._matrix_lines() if len(self.classes) <= 8 else self._class_lines()),
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


def column_lines(told: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What was done to each column, a line for each; in a wide table, one for all to which the same was done."""
    if len(told) > 20:
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
    return name if len(name) <= 14 else f"{name[:13]}…"
