"""What ``mercer train`` tells: numbers for a machine, a page for a person."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline

import mercer
from mercer.certificates.certificate import Certificate
from mercer.cli.embedded import Embedded
from mercer.data.labels import every_pair, names_of
from mercer.estimators import SVC

Rows = tuple[NDArray[Any], NDArray[Any]]
_WIDEST_BAR = 60


@dataclass(frozen=True)
class Margin:
    """The geometric margin 1/‖w‖ of one pair of classes, w² = β'Kβ."""

    width: float
    pair: tuple[str, str]


@dataclass(frozen=True)
class TrainingReport:
    """The facts of one run."""

    data: Embedded
    seed: int
    machine: SVC
    n_train: int
    n_test: int
    train_accuracy: float
    correct: int
    largest_class: tuple[str, float]
    mistakes: Counter[tuple[str, str]]
    decision: NDArray[np.float64]
    positive: NDArray[np.bool_]
    free: int
    bounded: int
    margin: Margin
    standardised: bool

    @classmethod
    def of(cls, model: Pipeline, data: Embedded, train: Rows, test: Rows, seed: int) -> TrainingReport:
        """The report on ``model``, fitted to ``train`` and judged on ``test``."""
        machine = model[-1]
        truth, answer = test[1], model.predict(test[0])
        labels, counts = np.unique(truth, return_counts=True)
        free, bounded = _free_and_bounded(machine)
        return cls(
            data=data,
            seed=seed,
            machine=machine,
            n_train=len(train[1]),
            n_test=len(truth),
            train_accuracy=float(np.mean(model.predict(train[0]) == train[1])),
            correct=int(np.sum(answer == truth)),
            largest_class=(str(labels[counts.argmax()]), float(counts.max() / len(truth))),
            mistakes=Counter((str(t), str(a)) for t, a in zip(truth, answer, strict=True) if t != a),
            decision=model.decision_function(test[0]),
            positive=truth == machine.classes_[-1],
            free=free,
            bounded=bounded,
            margin=_narrowest_margin(machine),
            standardised=len(model) > 1,
        )

    @property
    def accuracy(self) -> float:
        """The share of held-out rows answered correctly."""
        return self.correct / self.n_test

    def to_dict(self) -> dict[str, Any]:
        """Plain values; a number that is not finite is null."""
        machine = self.machine
        rows = {str(c): int(np.sum(self.data.y == c)) for c in machine.classes_}
        plain: dict[str, Any] = {
            "mercer": mercer.__version__,
            "data": {"name": self.data.name, "features": self.data.X.shape[1], "rows": rows},
            "split": {"train": self.n_train, "test": self.n_test, "seed": self.seed},
            "standardised": self.standardised,
            "kernel": str(machine.kernel_),
            "parameters": {name: getattr(machine, name) for name in ("C", "kernel", "gamma", "degree", "coef0", "tol")},
            "accuracy": {"test": self.accuracy, "train": self.train_accuracy},
            "support_vectors": {"free": self.free, "bounded": self.bounded},
            "margin": {"width": self.margin.width, "classes": list(self.margin.pair)},
            "converged": bool(machine.converged_),
            "stop_reason": machine.stop_reason_,
            "certificate": machine.certificate_.to_dict(),
        }
        return {key: _without_infinities(value) for key, value in plain.items()}

    def text(self, seconds: dict[str, float], saved: Path) -> str:
        """The page, with the time each step took and where the model was saved."""
        rows, columns = self.data.X.shape
        name, share = self.largest_class
        used = self.free + self.bounded
        listed = [f"{int(np.sum(self.data.y == c))} {c}" for c in self.machine.classes_]
        facts = [
            ("data", f"{self.data.title}: {rows} rows × {columns} features"),
            ("classes", ", ".join(listed)),
            (
                "split",
                f"{self.n_train} rows to train on, {self.n_test} held out (stratified, seed {self.seed})",
            ),
            *([("scaling", "standardised with the training part's means and standard deviations")] * self.standardised),
            ("kernel", _shortened(str(self.machine.kernel_))),
            ("C", f"{self.machine.C:g}"),
            None,
            ("accuracy", f"{self.accuracy:.1%} of the held-out rows ({self.correct} of {self.n_test})"),
            ("", f"{self.train_accuracy:.1%} of the training rows; always answering {name!r}: {share:.1%}"),
            *self._mistake_lines(),
            ("support", f"{used} of {self.n_train} rows: {self.free} free, {self.bounded} at the bound"),
            ("margin", self._margin_line()),
            None,
            *self._certificate_lines(),
            None,
            ("time", " · ".join(f"{name} {lap:.3f} s" for name, lap in seconds.items())),
            (
                "saved",
                f"{saved} ({saved.stat().st_size / 1000:.1f} kB); mercer.load({str(saved)!r}) reads it back",
            ),
        ]
        lines = [f"mercer {mercer.__version__}", ""]
        lines += ["" if fact is None else f"  {fact[0]:<13}{fact[1]}".rstrip() for fact in facts]
        return "\n".join(lines + self._picture())

    def _mistake_lines(self) -> list[tuple[str, str]]:
        worst = self.mistakes.most_common(4)
        if not worst:
            return []
        told = ", ".join(f"{truth} → {answer} ({count}×)" for (truth, answer), count in worst)
        return [("mistakes", told + (", …" if len(self.mistakes) > len(worst) else ""))]

    def _margin_line(self) -> str:
        line = f"1/‖w‖ = {self.margin.width:.4g}"
        return (
            line if len(self.machine.classes_) == 2 else f"{line}, the narrowest: {' against '.join(self.margin.pair)}"
        )

    def _certificate_lines(self) -> list[tuple[str, str]]:
        certificate: Certificate = self.machine.certificate_
        state = "converged" if self.machine.converged_ else "NOT converged"
        title = f"proves {certificate.proves}, in {certificate.precision}"
        if certificate.parts:
            title += f"; sums and maxima over {len(certificate.parts)} pairs of classes"
        lines = [
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
        return lines + [("", f"  {residual:<14.2e} {name}") for name, residual in certificate.kkt.items()]

    def _picture(self) -> list[str]:
        """The held-out rows by their decision value, one character a row while they fit on a line."""
        if len(self.machine.classes_) != 2:
            return []
        negative, positive = (str(c) for c in self.machine.classes_)
        bins = np.clip(np.floor(self.decision / 0.5), -6, 5).astype(int)
        most = int(np.bincount(bins + 6).max())
        scale = max(1, math.ceil(most / _WIDEST_BAR))
        each = "one row each" if scale == 1 else f"{scale} rows each"
        lines = [
            "",
            f"  the held-out rows by f(x) in steps of ½, {each} (● {negative}, ○ {positive})",
            "",
        ]
        for k in range(int(bins.min()), int(bins.max()) + 1):
            here = bins == k
            marks = [math.ceil(np.sum(here & side) / scale) for side in (~self.positive, self.positive)]
            edge = f"{k / 2:+.1f}".replace("-", "−")
            lines.append(f"    {edge} {'●' * marks[0]}{'○' * marks[1]}".rstrip())
        return lines


@dataclass(frozen=True)
class PlainReport:
    """What can be said of every machine: how good it is on held-out rows, its support vectors, its certificate."""

    data: Embedded
    seed: int
    machine: Any
    standardised: bool
    rows: tuple[int, int]
    scores: tuple[float, float]
    errors: tuple[float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; a number that is not finite is null."""
        machine = self.machine
        plain: dict[str, Any] = {
            "mercer": mercer.__version__,
            "data": {"name": self.data.name, "features": self.data.X.shape[1]},
            "split": {"train": self.rows[0], "test": self.rows[1], "seed": self.seed},
            "standardised": self.standardised,
            "machine": type(machine).__name__,
            "kernel": str(machine.kernel_),
            "score": {"train": self.scores[0], "test": self.scores[1]},
            "support_vectors": len(machine.support_),
            "converged": bool(machine.converged_),
            "stop_reason": machine.stop_reason_,
            "certificate": machine.certificate_.to_dict(),
        }
        if self.errors is not None:
            plain["mean_absolute_error"] = {"test": self.errors[0], "median": self.errors[1]}
        return {key: _without_infinities(value) for key, value in plain.items()}

    def text(self, seconds: dict[str, float], saved: Path) -> str:
        """The page."""
        rows, columns = self.data.X.shape
        machine = self.machine
        prices = [name for name in ("C", "nu", "epsilon") if hasattr(machine, name)]
        facts = [
            ("data", f"{self.data.title}: {rows} rows × {columns} features"),
            ("split", f"{self.rows[0]} rows to train on, {self.rows[1]} held out (seed {self.seed})"),
            *([("scaling", "standardised with the training part's means and standard deviations")] * self.standardised),
            (
                "machine",
                f"{type(machine).__name__}, {', '.join(f'{name} = {getattr(machine, name)}' for name in prices)}",
            ),
            ("kernel", _shortened(str(machine.kernel_))),
            None,
            *self._quality(),
            ("support", f"{len(machine.support_)} of {self.rows[0]} rows"),
            None,
            *(("certificate" if not i else "", line) for i, line in enumerate(str(machine.certificate_).split("\n"))),
            ("", f"tol = {machine.tol:g}: {machine.stop_reason_}"),
            None,
            ("time", " · ".join(f"{name} {lap:.3f} s" for name, lap in seconds.items())),
            ("saved", f"{saved} ({saved.stat().st_size / 1000:.1f} kB); mercer.load({str(saved)!r}) reads it back"),
        ]
        lines = ["" if fact is None else f"  {fact[0]:<13}{fact[1]}".rstrip() for fact in facts]
        return "\n".join([f"mercer {mercer.__version__}", "", *lines])

    def _quality(self) -> list[tuple[str, str]]:
        trained, held_out = self.scores
        if self.errors is not None:
            error, guess = self.errors
            return [
                ("R²", f"{held_out:.4g} on the held-out rows, {trained:.4g} on the training rows"),
                ("error", f"{error:.4g} in the mean of the held-out rows; always answering the median: {guess:.4g}"),
            ]
        name = "accuracy" if is_classifier(self.machine) else "normal"
        return [(name, f"{held_out:.1%} of the held-out rows, {trained:.1%} of the training rows")]


def plain_report(model: Pipeline, data: Embedded, train: Rows, test: Rows, seed: int) -> PlainReport:
    """The report on a machine that is not `SVC`; the score is what `score` gives, or the share judged normal."""
    scores = [
        float(model.score(X, y)) if hasattr(model[-1], "score") else float(np.mean(model.predict(X) > 0))
        for X, y in (train, test)
    ]
    errors = None
    if is_regressor(model[-1]):
        misses = [np.abs(test[1] - answer) for answer in (model.predict(test[0]), np.median(train[1]))]
        errors = (float(misses[0].mean()), float(misses[1].mean()))
    sizes = (len(train[1]), len(test[1]))
    return PlainReport(data, seed, model[-1], len(model) > 1, sizes, (scores[0], scores[1]), errors)


def _shortened(text: str) -> str:
    """``text`` with its long fractions rounded to six digits."""
    return re.sub(r"\d+\.\d{7,}(e[-+]\d+)?", lambda number: f"{float(number[0]):.6g}", text)


def _pairs(machine: SVC) -> list[tuple[int, int, NDArray[np.intp], NDArray[np.float64]]]:
    """Of each pair of classes: the two, their support vectors, and the coefficients in its machine."""
    ends = np.cumsum(machine.n_support_)
    members = [np.arange(end - count, end) for end, count in zip(ends, machine.n_support_, strict=True)]
    coefficients = machine.dual_coef_
    found = []
    for i in range(len(members)):
        for j in range(i + 1, len(members)):
            # scikit-learn's layout: row k of dual_coef_ is a class's machine against the k-th of the others.
            beta = np.concatenate([coefficients[j - 1, members[i]], coefficients[i, members[j]]])
            found.append((i, j, np.concatenate([members[i], members[j]]), beta))
    return found


def _free_and_bounded(machine: SVC) -> tuple[int, int]:
    """Support vectors inside their box in some pair's machine, and those at its end in all."""
    free = np.zeros(int(np.sum(machine.n_support_)), dtype=bool)
    box = np.repeat(machine.C * np.asarray(machine.class_weight_), machine.n_support_)
    for _, _, rows, beta in _pairs(machine):
        free[rows] |= (beta != 0) & (np.abs(beta) < box[rows] * (1 - 1e-9))
    return int(free.sum()), int((~free).sum())


def _narrowest_margin(machine: SVC) -> Margin:
    names = [str(c) for c in machine.classes_]
    norms = np.atleast_1d(machine.rkhs_norm_)
    pair, norm = max(zip(every_pair(len(names)), norms, strict=True), key=lambda one: one[1])
    # An indefinite kernel has no feature space: w² may be negative, and there is no margin to speak of.
    return Margin(1 / float(norm) if norm > 0 else math.inf, names_of(pair, names))


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinities(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
