"""What the HTML report shows of a model: curves of dependence, the rows it misses most, and how reliable it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.inspection.easy.figures import WIDE, ClassFigures, NumberFigures
from mercer.inspection.easy.svg import Label, percent, quantity, tick_places
from mercer.inspection.explain import explain, partial_dependence
from mercer.samples.arrays import Floats, Indices
from mercer.tables.axis import Axis
from mercer.tables.cells import is_missing
from mercer.tables.encodings import DroppedColumn, Words
from mercer.tables.units import TIME, format_clock
from mercer.tables.unwrap import unwrap

if TYPE_CHECKING:
    from mercer.inspection.easy.easy_model import EasyModel

_MEAN_ROWS, _CURVE_POINTS = 100, 30  # rows of a mean, points of a curve
_MOST_LEVELS, _MOST_CLASSES = 12, 5  # categories in a picture, classes in a picture
MOST_OUTLIERS = 3  # outliers among the rows that are shown
_MISSED_ROWS, _REASONS_PER_ROW = 8, 3  # rows that are shown, and columns for each
_BINS, _LEAST_IN_BIN = 10, 5  # points of a calibration curve, and rows in each
_LEAST_ROWS = 30  # held-out rows of a calibration curve
_SURE_PROBABILITY = 0.8


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean prediction for the values of one column, by name of what is predicted."""

    name: str
    x: Floats  # coordinates of numbers and dates, rising
    x_ticks: list[float]
    x_label: Label
    categories: list[str]  # in place of coordinates
    hidden: int  # number of categories that are not shown
    lines: list[tuple[str, Floats]]
    seen: Floats  # coordinates of rows of the table
    span: tuple[float, float]  # ends of the vertical axis, shared by all curves
    ticks: list[float]
    tick: Label
    show: Label
    caption: str


def dependence_curves(model: EasyModel, names: Sequence[str]) -> list[Curve]:
    """Return a curve for each of the columns that has an axis: not for texts.

    A point is the mean over up to a hundred rows of the prediction if the column had this value in all of them.
    """
    frame, seed = model.training.frame, model.training.options["random_state"]
    rows = frame.rows(np.sort(np.random.default_rng(seed).permutation(len(frame))[:_MEAN_ROWS]))
    encodings = {encoding.name: encoding for encoding in model.table.columns_}
    unwrapped = unwrap(model.model)
    drawn_axes = []
    for name in names:
        if isinstance(encodings[name], DroppedColumn | Words):
            continue
        j = unwrapped.names.index(name)
        result = partial_dependence(model.model, rows, j, grid_resolution=_CURVE_POINTS, individual=True)
        axis = Axis.of(name, result.grid[0], encodings[name])
        drawn_axes.append((name, axis, unwrapped.axis(frame, j), _mean_predictions(model, result.individual)))
    if not drawn_axes:
        return []
    shown_outputs = _shown_outputs(model, [means for *_, means in drawn_axes])
    ends = np.concatenate([means[:, [k for _, k in shown_outputs]].ravel() for *_, means in drawn_axes])
    low, high = float(ends.min()), float(ends.max())
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    if isinstance(model.figures, ClassFigures):
        span = max(0.0, low - margin), min(1.0, high + margin)
        show = tick = percent
        ticks = tick_places(*span)
        caption = "mean probability" if len(shown_outputs) > 1 else f"mean probability of {shown_outputs[0][0]!r}"
    else:
        unit = model.figures.unit
        span, caption = (low - margin, high + margin), f"mean prediction{_in_unit(unit)}"
        ticks = tick_places(*span, unit=unit)
        show = partial(quantity, unit=unit)
        tick = show if unit == TIME else quantity
    curves = []
    for name, axis, training_axis, means in drawn_axes:
        lines = [(title, means[:, k]) for title, k in shown_outputs]
        column_unit = getattr(encodings[name], "unit", "")
        curves.append(_curve(name, column_unit, axis, training_axis, lines, span, ticks, tick, show, caption))
    return curves


def _curve(
    name: str,
    unit: str,
    axis: Axis,
    training_axis: Axis,
    lines: list[tuple[str, Floats]],
    span: tuple[float, float],
    y_ticks: list[float],
    tick: Label,
    show: Label,
    caption: str,
) -> Curve:
    """Return the curve of one column; `tick` writes ticks of the vertical axis, `show` values in the text."""
    training_places = (
        training_axis.places[np.isfinite(training_axis.places)] if training_axis.kind == axis.kind else np.zeros(0)
    )
    if axis.kind == "category":
        counts = np.bincount(training_axis.places.astype(np.intp), minlength=len(training_axis.levels))
        count_of_level = dict(zip(training_axis.levels, counts.tolist(), strict=True))
        order = sorted(range(len(axis.cells)), key=lambda k: -count_of_level.get(_level(axis, k), 0))
        kept = order[:_MOST_LEVELS]
        categories = [_level(axis, k) or "missing" for k in kept]
        lines = [(title, line[kept]) for title, line in lines]
        empty = np.zeros(0)
        n_hidden = len(order) - len(kept)
        return Curve(
            name, empty, [], str, categories, n_hidden, lines, training_places, span, y_ticks, tick, show, caption
        )
    rising_order = np.argsort(axis.places)
    x, lines = axis.places[rising_order], [(title, line[rising_order]) for title, line in lines]
    low, high = float(x[0]), float(x[-1])
    if axis.kind == "date":
        ticks = np.linspace(low, high, 3).tolist()
        label: Label = _year_month if high - low > 120 else _day
    else:
        ticks, label = tick_places(low, high, unit=unit), (format_clock if unit == TIME else _plain)
    caption = f"{caption} by {name}{_in_unit(unit)}"
    return Curve(name, x, ticks, label, [], 0, lines, training_places, span, y_ticks, tick, show, caption)


def _in_unit(unit: str) -> str:
    return f" in {unit}" if unit and unit != TIME else ""


def _level(axis: Axis, k: int) -> str | None:
    return axis.levels[int(axis.places[k])]


def _mean_predictions(model: EasyModel, f: Any) -> Floats:
    """Return the mean over the rows of a number, or of the probability of each class, at each point."""
    if isinstance(model.figures, NumberFigures):
        return np.asarray(f.mean(axis=0)[:, None])
    n, points = f.shape[:2]
    return np.asarray(model.model.probabilities_(f.reshape(n * points, -1)).reshape(n, points, -1).mean(axis=0))


def _shown_outputs(model: EasyModel, means: list[Floats]) -> list[tuple[str, int]]:
    """Return name and index of each output to draw: the second of two classes, the five of many that vary most."""
    if isinstance(model.figures, NumberFigures):
        return [("", 0)]
    names = model.figures.classes
    spread = np.sum([np.ptp(curve, axis=0) for curve in means], axis=0)
    places = [1] if len(names) == 2 else sorted(np.argsort(-spread, kind="stable")[:_MOST_CLASSES].tolist())
    return [(names[k], k) for k in places]


def _plain(value: float) -> str:
    return (f"{value:,.6g}" if abs(value) >= 1e4 else f"{value:.6g}").replace("-", "−")


def _day(days: float) -> str:
    return str(np.datetime64(round(days), "D"))


def _year_month(days: float) -> str:
    return str(np.datetime64(round(days), "D"))[:7]


def shades_of(column: Any) -> Floats:
    """Return numbers as shares of the way from their 5 % to their 95 % quantile; NaN if they are not numbers."""
    try:
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full(len(column), np.nan)
    finite_values = values[np.isfinite(values)]
    if not len(finite_values):
        return np.full(len(values), np.nan)
    low, high = np.quantile(finite_values, (0.05, 0.95))
    if low == high:
        low, high = float(finite_values.min()), float(finite_values.max())
    return np.where(np.isfinite(values), np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0), np.nan)


@dataclass(frozen=True)
class MissedRow:
    """A held-out row with a wrong prediction; `reasons` are names of columns, their cells and what they added."""

    number: int  # counted from 1
    truth: str
    answer: str
    detail: str
    is_outlier: bool
    reasons: list[tuple[str, str, str]]


def missed_rows(model: EasyModel) -> list[MissedRow]:
    """Return the held-out rows with the worst predictions, and the columns that explain these predictions."""
    held_out, figures = model.training.held_out, model.figures
    probabilities = None
    if isinstance(figures, NumberFigures):
        errors = np.abs(held_out.truth - held_out.answers)
        order = np.argsort(-errors, kind="stable")
        outliers = order[figures.outlying[order]][:MOST_OUTLIERS]
        others = order[~figures.outlying[order] & (errors[order] > 0)]
        worst = np.append(outliers, others)[:_MISSED_ROWS]
    else:
        probabilities = _probabilities(model)
        wrong_rows = np.flatnonzero(held_out.truth != held_out.answers)
        if probabilities is not None:
            codes = _codes(model, held_out.truth)
            wrong_rows = wrong_rows[np.argsort(probabilities[wrong_rows, codes[wrong_rows]], kind="stable")]
        worst = wrong_rows[:_MISSED_ROWS]
    reasons = _reasons(model, worst)
    outlying_rows = set() if model.outliers is None else set(model.outliers.rows.tolist())
    rows = []
    for i in worst.tolist():
        truth, answer, detail = held_out.truth[i], held_out.answers[i], ""
        if isinstance(figures, NumberFigures):
            detail = f", off by {quantity(abs(float(truth - answer)), figures.unit)}"
            truth, answer = (quantity(float(value), figures.unit) for value in (truth, answer))
        elif probabilities is not None:
            p = float(probabilities[i, _codes(model, held_out.answers[i : i + 1])[0]])
            detail = f" ({shown_probability(p)} probable)"
        row = int(held_out.rows[i])
        rows.append(MissedRow(row + 1, str(truth), str(answer), detail, row in outlying_rows, reasons.get(i, [])))
    return rows


def _codes(model: EasyModel, labels: Any) -> Indices:
    places = {label: k for k, label in enumerate(model.classes_.tolist())}
    return np.array([places[label] for label in labels.tolist()], dtype=np.intp)


def _probabilities(model: EasyModel) -> Floats | None:
    """Return probabilities for the held-out rows; None if a class has too few rows for reliable ones."""
    try:
        return model.training.held_out.probabilities(model.training.frame, model.training.options["random_state"])
    except ValueError:
        return None


def _reasons(model: EasyModel, worst: Indices) -> dict[int, list[tuple[str, str, str]]]:
    """Return the columns with the largest Shapley values of each held-out row, by the model that predicted it."""
    training, held_out = model.training, model.training.held_out
    reasons: dict[int, list[tuple[str, str, str]]] = {}
    for k, part in enumerate(held_out.models):
        worst_of_fold = worst[held_out.fold[worst] == k]
        if not len(worst_of_fold):
            continue
        background = training.frame.rows(held_out.background(k, training.options["random_state"]))
        frame = training.frame.rows(held_out.rows[worst_of_fold])
        try:
            explanation = explain(part, frame, background)
        except (TypeError, ValueError, FloatingPointError):  # the kernel has no exact Shapley values
            continue
        for place, i in enumerate(worst_of_fold.tolist()):
            answer = held_out.answers[i]
            class_explanation = explanation if explanation.classes is None else explanation.of_class(answer)
            values = class_explanation.values[place]
            main_columns = [j for j in np.argsort(-np.abs(values), kind="stable")[:_REASONS_PER_ROW] if values[j] != 0]
            names = explanation.feature_names
            reasons[i] = [
                (names[j], shown_cell(frame[names[j]][place]), _added(model, values[j], str(answer)))
                for j in main_columns
            ]
    return reasons


def _added(model: EasyModel, value: float, answer: str) -> str:
    if isinstance(model.figures, NumberFigures):
        return f"{'+' if value >= 0 else '−'}{quantity(abs(value), model.figures.unit)}"
    return f"for {answer!r}" if value >= 0 else f"against {answer!r}"


def shown_cell(cell: Any) -> str:
    """Return a cell of a table as text of at most 60 characters."""
    if is_missing(cell):
        return "missing"
    if isinstance(cell, float | np.floating):
        return _plain(float(cell))
    text = " ".join(str(cell).split()).removesuffix(" 00:00:00").removesuffix("T00:00:00.000000")
    return text if len(text) <= 60 else f"{text[:59]}…"


def shown_probability(p: float) -> str:
    """Return a probability as a percentage that is neither 0% nor 100%."""
    if p > 0.99:
        return "> 99%"
    return "< 1%" if p < 0.01 else percent(p)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predicted probabilities of held-out rows, in bins, and how often they came true."""

    of: str  # class or classes whose probability it is
    predicted: Floats
    happened: Floats
    low: Floats  # ends of 95 % intervals
    high: Floats
    n_sure: int
    right_when_sure: float


def reliability(model: EasyModel) -> Reliability | None:
    """Compare probabilities with what happened; None if there are too few held-out rows.

    The probabilities are those of the second of two classes, and of each class if there are more.
    """
    p, truth = _probabilities(model), model.training.held_out.truth
    if p is None or len(truth) < _LEAST_ROWS:
        return None
    is_class = _codes(model, truth)[:, None] == np.arange(p.shape[1])
    is_confident = p.max(axis=1) >= _SURE_PROBABILITY
    is_right = is_class[np.arange(len(p)), p.argmax(axis=1)]
    predicted, is_true = (p[:, 1], is_class[:, 1]) if p.shape[1] == 2 else (p.ravel(), is_class.ravel())
    class_text = repr(str(model.classes_[1])) if p.shape[1] == 2 else "each class"
    bins = np.minimum((predicted * _BINS).astype(np.intp), _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    has_enough = counts >= _LEAST_IN_BIN
    means, shares = (
        np.bincount(bins, weights=values, minlength=_BINS)[has_enough] / counts[has_enough]
        for values in (predicted, is_true)
    )
    low, high = _wilson_interval(shares, counts[has_enough])
    return Reliability(
        class_text,
        means,
        shares,
        low,
        high,
        int(is_confident.sum()),
        float(is_right[is_confident].mean()) if is_confident.any() else np.nan,
    )


def _wilson_interval(share: Floats, n: Indices) -> tuple[Floats, Floats]:
    """95 % interval of a probability with this share among n draws (Wilson 1927)."""
    z2 = WIDE**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half_width = WIDE * np.sqrt(share * (1 - share) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return np.maximum(0.0, middle - half_width), np.minimum(1.0, middle + half_width)
