"""What ``mercer train`` tells of a model and the rows held out: numbers for a machine, a page for a person."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import r2_score

import mercer
from mercer.cli.data import Data
from mercer.cli.machines import Estimator, machine_of
from mercer.cli.terminal import Clock, as_options, rounded
from mercer.estimators import SVC
from mercer.estimators.fitting.reports.dual_margins import free_and_bounded
from mercer.inspection.easy.figures import ClassFigures, Facts, NumberFigures
from mercer.inspection.easy.hints import hints_on, search_gains, spread_ratio
from mercer.inspection.easy.importance import Importance, importance_of
from mercer.inspection.easy.page import (
    Line,
    certificate_facts,
    certificate_lines,
    hint_lines,
    page,
    table_facts,
    table_lines,
)
from mercer.samples.arrays import Floats
from mercer.samples.labels import every_pair, names_of
from mercer.tables.choice import guesses
from mercer.tables.dialect import from_text, quantity, units_told
from mercer.tables.estimator import Tabular, table_in
from mercer.tables.frame import Frame

Rows = tuple[Any, Any]


@dataclass(frozen=True)
class Report:
    """How good a model is on held-out rows, what matters to it, and the certificate of the one that is saved."""

    model: Estimator  # which was judged
    data: Data
    train: Rows
    test: Rows
    args: argparse.Namespace
    answers: tuple[NDArray[Any], NDArray[Any]]  # to the rows trained on, and to those held out
    decisions: Floats | None  # of the rows held out, where two classes are told apart
    hints: tuple[str, ...] = ()
    last: Estimator = None  # which is saved, and the rows that it has seen
    rows_seen: int = 0
    importance: Importance | None = None
    seconds: dict[str, float] | None = None

    def saved(self, last: Estimator, rows_seen: int, clock: Clock) -> Report:
        """The same, with the model that is saved and what matters to it."""
        matters = None if self.args.quiet else importance_of(last, self.data.X, self.args.seed, self.data.names)
        clock.lap("explain")
        return replace(self, last=last, rows_seen=rows_seen, importance=matters, seconds=clock.laps)

    @property
    def machine(self) -> Estimator:
        """The one that is saved."""
        return machine_of(self.last)

    @property
    def table(self) -> Tabular | None:
        """What reads a table's columns."""
        return table_in(self.last)

    @property
    def standardised(self) -> bool:
        return bool(self.args.standardise)

    @property
    def figures(self) -> ClassFigures | NumberFigures | None:
        """Of the held-out rows; None for novelties, of which there is no truth."""
        machine = machine_of(self.model)
        if is_classifier(machine):
            weighed = bool(self.args.class_weight)
            return ClassFigures(self.test[1], self.answers[1], machine.classes_, weighed)
        if is_regressor(machine):
            unit = from_text(self.data.dialect.units).get(str(self.data.target), "")
            return NumberFigures(self.test[1], self.answers[1], np.median(self.train[1]), unit)
        return None

    # --- for a program -----------------------------------------------------------------------------------------------

    def to_dict(self) -> Facts:
        """Plain values; a number that is not finite is null."""
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
        if not is_classifier(self.machine):
            return {}
        return {"rows": {str(c): int(np.sum(self.data.y == c)) for c in self.machine.classes_}}

    def _columns(self) -> Facts:
        """What was done to each column, and to the target."""
        table = self.table
        if table is None:
            return {}
        found: Facts = {
            "columns": table_facts(table),
            "rows_dropped": table.n_rows_dropped_,
            "read_as": self.data.dialect.to_dict(),
        }
        if is_regressor(self.machine):
            found["target"] = {"mean": table.target_mean_, "scale": table.target_scale_}
        return found

    def _figures(self) -> Facts:
        trained, held_out = self._scores()
        machine, figures = self.machine, self.figures
        found: Facts = {
            "machine": type(machine).__name__,
            **({"kernel": str(machine.kernel_)} if hasattr(machine, "kernel") else {}),
            "accuracy" if isinstance(figures, ClassFigures) else "score": {"test": held_out, "train": trained},
            **({} if figures is None else figures.to_dict()),
        }
        if not _is_plain_svc(machine):
            count = {"support_vectors": len(machine.support_)} if hasattr(machine, "support_") else {}
            return found | {"score": {"train": trained, "test": held_out}} | count
        free, bounded = _counts(machine)
        width, pair = _narrowest_margin(machine)
        names = ("C", "kernel", "gamma", "degree", "coef0", "tol")
        return found | {
            "parameters": {name: getattr(machine, name) for name in names},
            "support_vectors": {"free": free, "bounded": bounded},
            "margin": {"width": width, "classes": list(pair)},
        }

    def _scores(self) -> list[float]:
        """Of the rows trained on and those held out: R², the share answered correctly, or the share judged normal."""
        truths = (self.train[1], self.test[1])
        if is_regressor(self.machine):
            return [float(r2_score(*pair)) for pair in zip(truths, self.answers, strict=True)]
        if is_classifier(self.machine):
            return [float(np.mean(truth == answer)) for truth, answer in zip(truths, self.answers, strict=True)]
        return [float(np.mean(answer > 0)) for answer in self.answers]

    # --- for a person ------------------------------------------------------------------------------------------------

    def text(self, saved: Path) -> str:
        """The page: how good it is, what matters, what was done, and what is proven."""
        rows, columns = self.data.X.shape
        seen = f"all {rows:,} rows" if self.rows_seen == rows else f"{self.rows_seen:,} of {rows:,} rows"
        size = f"{saved.stat().st_size / 1000:.1f} kB"
        facts: list[Line] = [
            *self._quality(),
            None,
            *([] if self.importance is None else self.importance.lines()),
            None,
            *self._class_lines(),
            ("split", f"{len(self.train[1]):,} rows to train on, {len(self.test[1]):,} held out ({self._drawn})"),
            *self._column_lines(),
            *self._machine_lines(),
            None,
            *(self._all_of_it() if self.args.verbose else certificate_lines(self.machine)),
            None,
            ("saved", f"{saved} ({size}), trained on {seen}; mercer.load({str(saved)!r}) reads it back"),
            *hint_lines([as_options(hint) for hint in self.hints]),
        ]
        title = f"mercer {mercer.__version__}: {self.data.title}, {rows:,} rows × {columns} features"
        return "\n".join([title, "", *page(facts), *(self._picture() if self.args.verbose else [])])

    @property
    def _drawn(self) -> str:
        return f"stratified, seed {self.args.seed}" if is_classifier(self.machine) else f"seed {self.args.seed}"

    def _class_lines(self) -> list[Line]:
        if not is_classifier(self.machine):
            told = "" if self.data.kind is None else self.data.kind.told
            return [("kind", as_options(told))] if told else []
        return [("classes", ", ".join(f"{int(np.sum(self.data.y == c)):,} {c}" for c in self.machine.classes_))]

    def _quality(self) -> list[Line]:
        trained, held_out = self._scores()
        if self.figures is None:
            return [("normal", f"{held_out:.1%} of the held-out rows, {trained:.1%} of the training rows")]
        return list(self.figures.lines(trained))

    def _column_lines(self) -> list[Line]:
        table = self.table
        if table is None:
            return [("scaling", "standardised with means and standard deviations")] if self.standardised else []
        guessed = guesses(self.data.X, table.columns_, table.wishes()) if isinstance(self.data.X, Frame) else {}
        described = table_lines(table, guessed, self.args.verbose)
        lines: list[Line] = [line and (line[0], as_options(line[1])) for line in described]
        encoding = self.data.dialect.encoding
        if encoding not in (None, "utf-8"):
            lines.insert(0, ("read as", f"{encoding}, which --encoding changes"))
        units = from_text(self.data.dialect.units)
        if units:
            lines.append(("units", f"{units_told(units)}: numbers, read without them"))
        if table.n_rows_dropped_:
            lines.append(("", f"{table.n_rows_dropped_} rows with missing values not trained on"))
        if is_regressor(self.machine) and self.standardised:
            mean, scale = quantity(table.target_mean_), quantity(table.target_scale_)
            told = f"standardised: mean {mean}, standard deviation {scale}, in which C, epsilon and the certificate are"
            lines.append(("target", told))
        return lines

    def _machine_lines(self) -> list[Line]:
        machine = self.machine
        names = ("C", "nu", "epsilon", "quantiles", "lam")
        given = ((name, getattr(machine, name, None)) for name in names)
        prices = [f"{name} = {v:g}" if isinstance(v, float) else f"{name} = {v}" for name, v in given if v is not None]
        kernel = [rounded(str(machine.kernel_))] if hasattr(machine, "kernel") else []
        return [("machine", ", ".join([type(machine).__name__, *prices, *kernel]))]

    def _all_of_it(self) -> list[Line]:
        """The certificate with every condition, support vectors, margin and times."""
        machine = self.machine
        certificate = machine.certificate_
        state = "converged" if machine.converged_ else f"NOT converged: {machine.stop_reason_}"
        title = certificate.verdict
        if certificate.parts:
            title += f"; sums and maxima over {len(certificate.parts)} machines"
        asked = f"tol = {machine.tol:g}: " if hasattr(machine, "tol") else ""
        lines: list[Line] = [
            ("certificate", title),
            ("", f"primal value     {certificate.primal:<14.8g} no dual value is larger"),
            ("", f"dual value       {certificate.dual:<14.8g} reached"),
            ("", f"gap              {certificate.gap:<14.2e} {certificate.relative_gap:.1e} of the dual value"),
            ("", f"violation        {certificate.violation:<14.2e} {asked}{state}"),
            ("", "the largest residual of each KKT condition:"),
            *(("", f"  {residual:<14.2e} {name}") for name, residual in certificate.kkt.items()),
            *self._support_lines(),
            None,
        ]
        laps = self.seconds or {}
        return [*lines, ("time", " · ".join(f"{name} {lap:.3f} s" for name, lap in laps.items()))]

    def _support_lines(self) -> list[Line]:
        machine = self.machine
        if not hasattr(machine, "support_"):
            return []
        if not _is_plain_svc(machine):
            return [("support", f"{len(machine.support_)} of {self.rows_seen} rows")]
        free, bounded = _counts(machine)
        width, pair = _narrowest_margin(machine)
        narrowest = "" if len(machine.classes_) == 2 else f", the narrowest: {' against '.join(pair)}"
        return [
            ("support", f"{free + bounded} of {self.rows_seen} rows: {free} free, {bounded} at the bound"),
            ("margin", f"1/‖w‖ = {width:.4g}{narrowest}"),
        ]

    def _picture(self) -> list[str]:
        """The held-out rows by their decision value, one character a row while they fit on a line."""
        if self.decisions is None:
            return []
        classes = machine_of(self.model).classes_
        negative, positive = (str(c) for c in classes)
        is_positive = self.test[1] == classes[-1]
        bins = np.clip(np.floor(self.decisions / 0.5), -6, 5).astype(int)
        most = int(np.bincount(bins + 6).max())
        scale = max(1, math.ceil(most / 60))
        each = "one row each" if scale == 1 else f"{scale} rows each"
        lines = ["", f"  the held-out rows by f(x) in steps of ½, {each} (● {negative}, ○ {positive})", ""]
        for k in range(int(bins.min()), int(bins.max()) + 1):
            here = bins == k
            marks = [math.ceil(np.sum(here & side) / scale) for side in (~is_positive, is_positive)]
            edge = f"{k / 2:+.1f}".replace("-", "−")
            lines.append(f"    {edge} {'●' * marks[0]}{'○' * marks[1]}".rstrip())
        return lines


def judged(model: Estimator, data: Data, train: Rows, test: Rows, args: argparse.Namespace) -> Report:
    """The report on ``model``, fitted to ``train`` and judged on ``test``."""
    answers = (model.predict(train[0]), model.predict(test[0]))
    machine = machine_of(model)
    two = _is_plain_svc(machine) and len(machine.classes_) == 2
    found = Report(model, data, train, test, args, answers, model.decision_function(test[0]) if two else None)
    if args.quiet or found.figures is None:
        return found
    columns = model.columns_ if isinstance(model, Tabular) else []
    weighed = bool(args.class_weight or args.weight)
    hints = hints_on(
        found.figures,
        test[1] if data.form == "embedded" else data.y,  # whose order is known
        data.target or "y",
        columns,
        weighed=weighed,
        ratio=1.0 if args.standardise else spread_ratio(machine_rows(model, train[0])),
    )
    gain = search_gains(model, train, args.seed) if args.C == 1 and args.gamma is None else None
    return replace(found, hints=(*hints, *([gain] if gain else [])))


def machine_rows(model: Estimator, X: Any) -> Any:
    """The rows as the machine sees them."""
    if isinstance(model, Tabular):
        return model.encode(X)
    return model[:-1].transform(X) if len(model) > 1 else X


def _is_plain_svc(machine: Estimator) -> bool:
    return isinstance(machine, SVC) and machine.multiclass == "ovo"


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
