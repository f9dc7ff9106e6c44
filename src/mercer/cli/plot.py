"""``mercer plot``: the decision of a model over two features of a data file, as a picture."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from mercer.cli.data import Data
from mercer.cli.formats import add_data, add_flags, asked_for
from mercer.cli.machines import Estimator
from mercer.cli.predict import model_beside, read_truths
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.atomic_write import replacing
from mercer.files.model import Model
from mercer.inspection.displays import DecisionDisplay
from mercer.inspection.easy.importance import importance_of
from mercer.runtime.optional import require
from mercer.tables.cells import as_numbers, as_seconds
from mercer.tables.encodings import Dates, Encoding, Numbers, Words
from mercer.tables.frame import Frame
from mercer.tables.reading import known_truth


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "plot",
        run,
        ('mercer plot iris.csv iris.mercer iris.png --target species --features "petal length" "petal width"', ""),
        ("mercer plot heart heart.model heart.svg --features 7 9", "LIBSVM's features 8 and 10"),
        description="Draw a model's decision over two features of a data file: regions, margins and the rows. "
        "Other features are held at their mean or most frequent value.",
        computes=True,
    )
    add_data(parser, "the column of a table that holds the truth, for colours")
    parser.add_argument("model", metavar="MODEL", help="a .mercer file, or a LIBSVM, LIBLINEAR or SVMlight model")
    parser.add_argument("output", metavar="PICTURE", type=Path, help="its ending decides the kind: .png, .svg, .pdf")
    parser.add_argument(
        "--features",
        nargs=2,
        default=None,
        metavar=("A", "B"),
        help="names or numbers from 0; default: the two columns of a table that matter most, else 0 1",
    )
    add_flags(parser)
    parser.add_argument("--resolution", type=int, default=200, help="points along each axis (200)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> None:
    require("matplotlib", "drawing a decision").use("Agg")
    model = model_beside(args.model, args.file)
    data = read_truths(model, args, asked_for(args))
    estimator = model.table or model.estimator(data.X.shape[1])  # whose margins a calibration hides
    X = model.rows(data.X, data.source, text=data.form == "libsvm")
    X = _learnt_from(X, model) if isinstance(X, Frame) else data.X
    names = X.names if isinstance(X, Frame) else data.names
    a, b = _two_that_matter(estimator, X) if args.features is None else (column_called(f, names) for f in args.features)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were just compared
        display = DecisionDisplay.from_estimator(
            estimator, X, _truth(data, estimator), features=(a, b), resolution=args.resolution, names=names
        )
    kind = args.output.suffix.removeprefix(".") or "png"
    with replacing(args.output) as file:
        display.figure_.savefig(file, format=kind, dpi=150)
    require("matplotlib.pyplot", "drawing a decision").close(display.figure_)
    if not args.quiet:
        print(printable(f"saved {args.output}"))


def _learnt_from(frame: Frame, model: Model) -> Frame:
    """The columns that the model knows, in its order, and no others: what it reads as numbers or dates is such."""
    assert model.table is not None
    known = [one for one in model.table.columns_ if one.name in frame.names]
    return Frame([one.name for one in known], [_as_read(one, frame[one.name]) for one in known])


def _as_read(one: Encoding, cells: Any) -> Any:
    if isinstance(one, Numbers):
        return as_numbers(cells)[0]
    if isinstance(one, Dates):
        seconds = as_seconds(cells, one.form)[0]
        return np.where(
            np.isnan(seconds), np.datetime64("NaT", "us"), (1e6 * np.nan_to_num(seconds)).astype("datetime64[us]")
        )
    return cells


def _two_that_matter(estimator: Estimator, X: Any) -> tuple[int, int]:
    """Of a table the two columns with the largest Shapley values, of other data the first two."""
    found = importance_of(estimator, X, 0) if isinstance(X, Frame) else None
    if found is None:
        return 0, 1
    texts = {one.name for one in estimator.columns_ if isinstance(one, Words)}  # which have no place on an axis
    best = [name for name in found.shares if name not in texts][:2]
    if len(best) < 2:
        told = ", ".join(map(repr, sorted(texts)))
        raise ValueError(
            f"a picture has two axes, and texts have no place on one: beside {told} there are {len(best)} columns"
        )
    return X.names.index(best[0]), X.names.index(best[1])


def _truth(data: Data, estimator: Estimator) -> Any:
    """The class of each row as the model calls it, or its number; None where the file does not tell, or for novelty."""
    classes, numbers = getattr(estimator, "classes_", None), is_regressor(estimator)
    if data.y is None or (classes is None and not numbers):
        return None
    out = np.full(len(data.y), np.nan) if numbers else np.full(len(data.y), None, dtype=object)
    rows, truth = known_truth(data.y, classes, numbers, data.source, data.target or "y")
    out[rows] = truth
    return out


def column_called(text: str, names: Any) -> int:
    """The place of a column that is given by its name or its number from 0 on."""
    if names is not None and text in names:
        return int(names.index(text))
    if not text.isdecimal():
        known = "" if names is None else f"; there are {', '.join(map(repr, names))}"
        raise ValueError(f"no column is called {text!r}{known}")
    return int(text)
