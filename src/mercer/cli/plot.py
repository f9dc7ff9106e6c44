"""``mercer plot``: draw the predictions of a model over two features of a data file."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from mercer.cli.data import Data
from mercer.cli.formats import add_data_arguments, add_reading_options, dialect_from_options, integer_from
from mercer.cli.machines import Estimator
from mercer.cli.predict import read_model_and_place_data, read_rows_for, target_unit
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.atomic_write import replacing
from mercer.files.model import Model
from mercer.inspection.displays import DecisionDisplay
from mercer.inspection.displays.drawing import MOST_LEVELS, show_unit
from mercer.inspection.easy.importance import column_importance
from mercer.runtime.optional import require
from mercer.tables.encodings import Dates, DroppedColumn, Encoding, Levels, Numbers, Words
from mercer.tables.frame import Frame
from mercer.tables.reading import known_targets


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "plot",
        run,
        ('mercer plot iris.csv iris.mercer iris.png --target species --features "petal length" "petal width"', ""),
        ("mercer plot heart heart.model heart.svg --features 7 9", "LIBSVM's features 8 and 10"),
        description="Draw a model's predictions over two features of a data file: regions, margins and the rows. Other "
        "features are fixed at their mean or most frequent value.",
        computes=True,
    )
    add_data_arguments(parser, "column of a table with the true values, which colour the points")
    parser.add_argument("model", metavar="MODEL", help="model file: .mercer, LIBSVM, LIBLINEAR or SVMlight")
    parser.add_argument("output", metavar="PICTURE", type=Path, help="file to write: .png, .svg or .pdf")
    parser.add_argument(
        "--features",
        nargs=2,
        default=None,
        metavar=("A", "B"),
        help="two columns, by name or by number from 0; default: the two most important columns of a table, else 0 1",
    )
    add_reading_options(parser)
    parser.add_argument("--resolution", type=integer_from(2, 10_000), default=200, help="points along each axis (200)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    require("matplotlib", "drawing a decision").use("Agg")
    model = read_model_and_place_data(args)
    data = read_rows_for(model, args, dialect_from_options(args))
    # The model inside a calibrated one, whose margins can be drawn.
    estimator = model.table or model.estimator(data.X.shape[1])
    X = model.rows(data.X, data.source, text=data.form == "libsvm")
    X = _model_columns(X, model) if isinstance(X, Frame) else data.X
    names = X.names if isinstance(X, Frame) else data.names
    a, b = _most_important(estimator, X) if args.features is None else (column_index(f, names) for f in args.features)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # the names were just checked
        display = DecisionDisplay.from_estimator(
            estimator, X, _truth(data, estimator), features=(a, b), resolution=args.resolution, names=names
        )
    if isinstance(X, Frame):
        _show_units(display, estimator, (X.names[a], X.names[b]), target_unit(model, data))
    kind = args.output.suffix.removeprefix(".") or "png"
    with replacing(args.output) as file:
        display.figure_.savefig(file, format=kind, dpi=150)
    require("matplotlib.pyplot", "drawing a decision").close(display.figure_)
    if not args.quiet:
        print(printable(f"saved {args.output}"))


def _show_units(display: DecisionDisplay, estimator: Estimator, names: tuple[str, str], unit: str) -> None:
    """Label both axes with the units of their columns, and the colours of a regression with that of the target."""
    units = {column.name: column.unit for column in estimator.columns_ if isinstance(column, Numbers)}
    for axis, name in zip((display.ax_.xaxis, display.ax_.yaxis), names, strict=True):
        if units.get(name):
            show_unit(axis, units[name])
    if unit and is_regressor(estimator):
        show_unit(display.figure_.axes[-1].yaxis, unit)


def _model_columns(frame: Frame, model: Model) -> Frame:
    """Return the columns that the model uses, in its order, with numbers and dates as the model reads them."""
    assert model.table is not None
    columns = [column for column in model.table.columns_ if column.name in frame.names]
    return Frame([column.name for column in columns], [_read_cells(column, frame[column.name]) for column in columns])


def _read_cells(encoding: Encoding, cells: Any) -> Any:
    """Return the cells of a column as the model reads them: numbers, dates, or unchanged."""
    if isinstance(encoding, Numbers):
        return encoding.values(cells)
    if isinstance(encoding, Dates):
        seconds = encoding.values(cells)
        return np.where(
            np.isnan(seconds), np.datetime64("NaT", "us"), (1e6 * np.nan_to_num(seconds)).astype("datetime64[us]")
        )
    return cells


def _most_important(estimator: Estimator, X: Any) -> tuple[int, int]:
    """Return the two columns of a table with the largest Shapley values; for other data the first two."""
    importance = column_importance(estimator, X, 0) if isinstance(X, Frame) else None
    if importance is None:
        return 0, 1
    best = [name for name in importance.shares if name not in _without_axis(estimator)][:2]
    if len(best) < 2:
        count = f"only one, {best[0]!r}" if best else "none"
        raise ValueError(
            f"a picture needs two columns of numbers, dates or at most {MOST_LEVELS} categories, but the model uses "
            f"{count}; mercer explain --plot draws what each column adds to the predictions"
        )
    return X.names.index(best[0]), X.names.index(best[1])


def _without_axis(estimator: Estimator) -> set[str]:
    """Return the columns that a picture cannot use: dropped ones, texts, and categories of too many levels."""
    return {
        column.name
        for column in estimator.columns_
        if isinstance(column, DroppedColumn | Words)
        or (isinstance(column, Levels) and len(column.levels) >= MOST_LEVELS)  # and missing values
    }


def _truth(data: Data, estimator: Estimator) -> Any:
    """Return the true class or number of each row; None if the file has none, and for novelty detection."""
    classes, numbers = getattr(estimator, "classes_", None), is_regressor(estimator)
    if data.y is None or (classes is None and not numbers):
        return None
    out = np.full(len(data.y), np.nan) if numbers else np.full(len(data.y), None, dtype=object)
    rows, truth = known_targets(data.y, classes, numbers, data.source, data.target or "y")
    out[rows] = truth
    return out


def column_index(text: str, names: Any) -> int:
    """Return the index of a column that is given by its name or by its number from 0."""
    if names is not None and text in names:
        return int(names.index(text))
    if not text.isdecimal():
        names_text = "" if names is None else f"; the columns are {', '.join(map(repr, names))}"
        raise ValueError(f"there is no column {text!r}{names_text}")
    return int(text)
