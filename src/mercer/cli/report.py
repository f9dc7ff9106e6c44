"""Report of ``mercer train`` on a model and its held-out rows, as text or as JSON."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import r2_score

import mercer
from mercer.cli.data import Data
from mercer.cli.machines import Estimator, machine_of
from mercer.cli.terminal import Clock, as_options, round_fractions
from mercer.estimators import SVC
from mercer.estimators.fitting.reports.dual_margins import count_free_and_bounded
from mercer.inspection.easy.figures import ClassFigures, Facts, NumberFigures
from mercer.inspection.easy.hints import spread_ratio, suggest_next, suggest_search
from mercer.inspection.easy.importance import Importance, column_importance
from mercer.inspection.easy.outliers import Outliers
from mercer.inspection.easy.page import (
    Line,
    certificate_facts,
    certificate_lines,
    column_facts,
    hint_lines,
    page,
    table_lines,
)
from mercer.samples.arrays import Floats
from mercer.samples.labels import class_pairs, side_labels
from mercer.tables.choice import guesses, target_guesses
from mercer.tables.dialect import describe_units, format_quantity, units_from_text
from mercer.tables.estimator import Tabular, table_in
from mercer.tables.frame import Frame

Rows = tuple[Any, Any]


@dataclass(frozen=True)
class Report:
    """Scores of a model on held-out rows, the importance of its columns, and the certificate of the saved model."""

    model: Estimator  # the model that the held-out rows test
    data: Data
    train: Rows
    test: Rows
    args: argparse.Namespace
    answers: tuple[NDArray[Any], NDArray[Any]]  # predictions for the training rows and the held-out rows
    decisions: Floats | None  # decision values of the held-out rows, for two classes
    hints: tuple[str, ...] = ()
    last: Estimator = None  # the model that is saved
    rows_seen: int = 0  # number of rows that it was trained on
    importance: Importance | None = None
    seconds: dict[str, float] | None = None

    def with_saved_model(self, last: Estimator, rows_seen: int, clock: Clock) -> Report:
        """Return a copy with the model that is saved and the importance of its columns."""
        importance = None if self.args.quiet else column_importance(last, self.data.X, self.args.seed, self.data.names)
        clock.lap("explain")
        return replace(self, last=last, rows_seen=rows_seen, importance=importance, seconds=clock.laps)

    @property
    def machine(self) -> Estimator:
        """Machine inside the saved model."""
        return machine_of(self.last)

    @property
    def table(self) -> Tabular | None:
        """Saved model of a table; None for other data."""
        return table_in(self.last)

    @property
    def standardised(self) -> bool:
        """True if the columns are standardised."""
        return bool(self.args.standardise)

    @property
    def figures(self) -> ClassFigures | NumberFigures | None:
        """Scores of the held-out rows; None for novelty detection, which has no true classes."""
        machine = machine_of(self.model)
        if is_classifier(machine):
            return ClassFigures(self.test[1], self.answers[1], machine.classes_, bool(self.args.class_weight))
        return self._number_figures[1] if is_regressor(machine) else None

    @cached_property
    def _number_figures(self) -> list[NumberFigures]:
        """Scores of a regression for the training rows and the held-out rows, with the rows that would decide them."""
        unit = units_from_text(self.data.dialect.units).get(str(self.data.target), "")
        figures = []
        for (X, y), answers in zip((self.train, self.test), self.answers, strict=True):
            errors = np.abs(y - answers)
            outliers = Outliers.find(machine_rows(self.model, X), y, errors, errors)
            is_outlying = np.isin(np.arange(len(y)), outliers.rows)
            figures.append(NumberFigures(y, answers, np.median(self.train[1]), unit, is_outlying))
        return figures

    # --- for a program -----------------------------------------------------------------------------------------------

    def to_dict(self) -> Facts:
        """Return the report as plain values for JSON; a number that is not finite is null."""
        machine = self.machine
        plain = {
            "mercer": mercer.__version__,
            "data": {"name": self.data.source, "features": self.data.X.shape[1]} | self._classes(),
            "split": {"train": len(self.train[1]), "test": len(self.test[1]), "seed": self.args.seed},
            "rows_seen": self.rows_seen,
            "standardised": self.standardised,
            **self._columns(),
            **self._figures(),
            "importance": None if self.importance is None else self.importance.shares,
            "hints": [as_options(hint) for hint in self.hints],
            "converged": bool(machine.converged_),
            "stop_reason": machine.stop_reason_,
            "certificate": certificate_facts(machine),
        }
        return {key: _without_infinities(value) for key, value in plain.items()}

    def _classes(self) -> Facts:
        """Return the number of rows of each class, for JSON."""
        if not is_classifier(self.machine):
            return {}
        return {"rows": {str(c): int(np.sum(self.data.y == c)) for c in self.machine.classes_}}

    def _columns(self) -> Facts:
        """Return the encoding of each column, and of the target, for JSON."""
        table = self.table
        if table is None:
            return {}
        facts: Facts = {
            "columns": column_facts(table),
            "rows_dropped": table.n_rows_dropped_,
            "read_as": self.data.dialect.to_dict(),
        }
        if is_regressor(self.machine):
            facts["target"] = {"mean": table.target_mean_, "scale": table.target_scale_}
        return facts

    def _figures(self) -> Facts:
        """Return the machine, its scores, its parameters and its support vectors, for JSON."""
        trained, held_out = self._scores()
        machine, figures = self.machine, self.figures
        facts: Facts = {
            "machine": type(machine).__name__,
            **({"kernel": str(machine.kernel_)} if hasattr(machine, "kernel") else {}),
            "accuracy" if isinstance(figures, ClassFigures) else "score": {"test": held_out, "train": trained},
            **({} if figures is None else figures.to_dict()),
        }
        if not _is_plain_svc(machine):
            count = {"support_vectors": len(machine.support_)} if hasattr(machine, "support_") else {}
            return facts | {"score": {"train": trained, "test": held_out}} | count
        free, bounded = _support_counts(machine)
        width, pair = _narrowest_margin(machine)
        names = ("C", "kernel", "gamma", "degree", "coef0", "tol")
        return facts | {
            "parameters": {name: getattr(machine, name) for name in names},
            "support_vectors": {"free": free, "bounded": bounded},
            "margin": {"width": width, "classes": list(pair)},
        }

    def _scores(self) -> list[float]:
        """Return R², the accuracy, or the share judged normal, for the training rows and the held-out rows."""
        truths = (self.train[1], self.test[1])
        if is_regressor(self.machine):
            return [float(r2_score(*pair)) for pair in zip(truths, self.answers, strict=True)]
        if is_classifier(self.machine):
            return [float(np.mean(truth == answer)) for truth, answer in zip(truths, self.answers, strict=True)]
        return [float(np.mean(answer > 0)) for answer in self.answers]

    # --- for a person ------------------------------------------------------------------------------------------------

    def text(self, saved: Path) -> str:
        """Return the report as text: scores, importance of columns, the training, and the certificate."""
        rows, columns = self.data.X.shape
        trained_rows = f"all {rows:,} rows" if self.rows_seen == rows else f"{self.rows_seen:,} of {rows:,} rows"
        size = f"{saved.stat().st_size / 1000:.1f} kB"
        facts: list[Line] = [
            *self._score_lines(),
            None,
            *([] if self.importance is None else self.importance.lines()),
            None,
            *self._class_lines(),
            (
                "split",
                f"{len(self.train[1]):,} rows to train on, {len(self.test[1]):,} held out ({self._split_method})",
            ),
            *self._column_lines(),
            *self._machine_lines(),
            None,
            *(self._verbose_lines() if self.args.verbose else certificate_lines(self.machine)),
            None,
            ("saved", f"{saved} ({size}), trained on {trained_rows}; mercer.load({str(saved)!r}) reads it back"),
            *hint_lines([as_options(hint) for hint in self.hints]),
        ]
        title = f"mercer {mercer.__version__}: {self.data.title}, {rows:,} rows × {columns} features"
        return "\n".join([title, "", *page(facts), *(self._picture() if self.args.verbose else [])])

    @property
    def _split_method(self) -> str:
        return f"stratified, seed {self.args.seed}" if is_classifier(self.machine) else f"seed {self.args.seed}"

    def _class_lines(self) -> list[Line]:
        """Return a line on the rows of each class, or on the choice of a regression."""
        if not is_classifier(self.machine):
            reason = "" if self.data.kind is None else self.data.kind.reason
            return [("kind", as_options(reason))] if reason else []
        return [("classes", ", ".join(f"{int(np.sum(self.data.y == c)):,} {c}" for c in self.machine.classes_))]

    def _score_lines(self) -> list[Line]:
        """Return lines on the scores of the held-out rows."""
        trained, held_out = self._scores()
        if self.figures is None:
            return [("normal", f"{held_out:.1%} of the held-out rows, {trained:.1%} of the training rows")]
        if isinstance(self.figures, NumberFigures):
            return list(self.figures.lines(self._number_figures[0]))
        return list(self.figures.lines(trained))

    def _column_lines(self) -> list[Line]:
        """Return lines on how the columns and the target were read and encoded."""
        table = self.table
        if table is None:
            return [("scaling", "standardised with means and standard deviations")] if self.standardised else []
        guess_messages = (
            guesses(self.data.X, table.columns_, table.column_options()) if isinstance(self.data.X, Frame) else {}
        )
        guess_messages |= target_guesses(self.data.y, self.data.target or "y")
        table_text = table_lines(table, guess_messages, self.args.verbose)
        lines: list[Line] = [line and (line[0], as_options(line[1])) for line in table_text]
        encoding = self.data.dialect.encoding
        if encoding not in (None, "utf-8", "utf-8-sig"):
            lines.insert(0, ("read as", f"{encoding} (--encoding changes this)"))
        units = units_from_text(self.data.dialect.units)
        if units:
            lines.append(("units", f"{describe_units(units)}: read as numbers, without the unit"))
        if table.n_rows_dropped_:
            lines.append(("", f"{table.n_rows_dropped_} rows with missing values were not used for training"))
        if is_regressor(self.machine) and self.standardised:
            mean, scale = format_quantity(table.target_mean_), format_quantity(table.target_scale_)
            text = (
                f"standardised (mean {mean}, standard deviation {scale}); C, epsilon and the certificate refer to the "
                "standardised target"
            )
            lines.append(("target", text))
        return lines

    def _machine_lines(self) -> list[Line]:
        """Return a line on the machine, its parameters and its kernel."""
        machine = self.machine
        names = ("C", "nu", "epsilon", "quantiles", "lam")
        values = ((name, getattr(machine, name, None)) for name in names)
        parameters = [
            f"{name} = {v:g}" if isinstance(v, float) else f"{name} = {v}" for name, v in values if v is not None
        ]
        kernel = [round_fractions(str(machine.kernel_))] if hasattr(machine, "kernel") else []
        return [("machine", ", ".join([type(machine).__name__, *parameters, *kernel]))]

    def _verbose_lines(self) -> list[Line]:
        """Return lines on the certificate with every KKT condition, on support vectors, margin and times."""
        machine = self.machine
        certificate = machine.certificate_
        state = "converged" if machine.converged_ else f"NOT converged: {machine.stop_reason_}"
        parts = f"values are sums over {len(certificate.parts)} sub-problems, and residuals are maxima:"
        tol = f"tol = {machine.tol:g}: " if hasattr(machine, "tol") else ""
        lines: list[Line] = [
            ("certificate", certificate.verdict),
            *([("", parts)] if certificate.parts else []),
            ("", f"primal value     {certificate.primal:<14.8g} upper bound on every dual value"),
            ("", f"dual value       {certificate.dual:<14.8g} reached by this solution"),
            ("", f"gap              {certificate.gap:<14.2e} {certificate.relative_gap:.1e} of the dual value"),
            ("", f"violation        {certificate.violation:<14.2e} {tol}{state}"),
            ("", "largest residual of each KKT condition:"),
            *(("", f"  {residual:<14.2e} {name}") for name, residual in certificate.kkt.items()),
            *self._support_lines(),
            None,
        ]
        laps = self.seconds or {}
        return [*lines, ("time", " · ".join(f"{name} {lap:.3f} s" for name, lap in laps.items()))]

    def _support_lines(self) -> list[Line]:
        """Return lines on the support vectors and the margin."""
        machine = self.machine
        if not hasattr(machine, "support_"):
            return []
        if not _is_plain_svc(machine):
            return [("support", f"{len(machine.support_)} of {self.rows_seen} rows")]
        free, bounded = _support_counts(machine)
        width, pair = _narrowest_margin(machine)
        narrowest = "" if len(machine.classes_) == 2 else f" ({' against '.join(pair)}, the narrowest)"
        return [
            ("support", f"{free + bounded} of {self.rows_seen} rows: {free} free, {bounded} at the bound"),
            ("margin", f"1/‖w‖ = {width:.4g}{narrowest}"),
        ]

    def _picture(self) -> list[str]:
        """Return a histogram of the held-out rows by decision value, with one mark for each row if it fits."""
        if self.decisions is None:
            return []
        classes = machine_of(self.model).classes_
        negative, positive = (str(c) for c in classes)
        is_positive = self.test[1] == classes[-1]
        bins = np.clip(np.floor(self.decisions / 0.5), -6, 5).astype(int)
        largest_bin = int(np.bincount(bins + 6).max())
        rows_per_mark = max(1, math.ceil(largest_bin / 60))
        mark_text = "one mark per row" if rows_per_mark == 1 else f"one mark per {rows_per_mark} rows"
        lines = ["", f"  held-out rows by f(x) in steps of ½, {mark_text} (● {negative}, ○ {positive})", ""]
        for k in range(int(bins.min()), int(bins.max()) + 1):
            in_bin = bins == k
            marks = [math.ceil(np.sum(in_bin & side) / rows_per_mark) for side in (~is_positive, is_positive)]
            edge = f"{k / 2:+.1f}".replace("-", "−")
            lines.append(f"    {edge} {'●' * marks[0]}{'○' * marks[1]}".rstrip())
        return lines


def evaluate_model(model: Estimator, data: Data, train: Rows, test: Rows, args: argparse.Namespace) -> Report:
    """Return the report on ``model``, which was fitted to ``train``, with its scores on ``test``."""
    answers = (model.predict(train[0]), model.predict(test[0]))
    machine = machine_of(model)
    has_decisions = _is_plain_svc(machine) and len(machine.classes_) == 2
    report = Report(
        model, data, train, test, args, answers, model.decision_function(test[0]) if has_decisions else None
    )
    if args.quiet or report.figures is None:
        return report
    columns = model.columns_ if isinstance(model, Tabular) else []
    has_class_weights = bool(args.class_weight or args.weight)
    # Hints on the order of rows are for the user's own files: the held-out rows of an embedded set are shuffled.
    ordered_targets = test[1] if data.form == "embedded" else data.y
    hints = suggest_next(
        report.figures,
        ordered_targets,
        data.target or "y",
        columns,
        weighed=has_class_weights,
        ratio=1.0 if args.standardise else spread_ratio(machine_rows(model, train[0])),
    )
    gain = suggest_search(model, train, args.seed) if args.C == 1 and args.gamma is None else None
    return replace(report, hints=(*hints, *([gain] if gain else [])))


def machine_rows(model: Estimator, X: Any) -> Any:
    """Return the rows as the machine inside the model receives them."""
    if isinstance(model, Tabular):
        return model.encode(X)
    return model[:-1].transform(X) if len(model) > 1 else X


def _is_plain_svc(machine: Estimator) -> bool:
    """Return whether the machine is an SVC with a hyperplane for each pair of classes."""
    return isinstance(machine, SVC) and machine.multiclass == "ovo"


def _support_counts(machine: SVC) -> tuple[int, int]:
    """Return the numbers of free and of bounded support vectors."""
    counts = count_free_and_bounded(machine)
    assert counts is not None  # known for a machine that was just trained
    return counts


def _narrowest_margin(machine: SVC) -> tuple[float, tuple[str, str]]:
    """Return the smallest geometric margin 1/‖w‖ over the pairs of classes, and its pair."""
    names = [str(c) for c in machine.classes_]
    norms = np.atleast_1d(machine.rkhs_norm_)
    pair, norm = max(zip(class_pairs(len(names)), norms, strict=True), key=lambda item: item[1])
    # An indefinite kernel has no feature space: ‖w‖² may be negative, and the margin is undefined.
    return (1 / float(norm) if norm > 0 else math.inf), side_labels(pair, names)


def _without_infinities(value: Any) -> Any:
    """Replace numbers that are not finite by None, also inside dictionaries and lists."""
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinities(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
