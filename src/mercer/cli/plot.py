"""``mercer plot``: the decision of a model over two features of a data file, as a picture."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from mercer.cli.data import Data, read_data
from mercer.cli.formats import add_data
from mercer.cli.machines import Estimator
from mercer.cli.predict import model_beside
from mercer.cli.terminal import Subparsers, add_command
from mercer.displays import DecisionDisplay
from mercer.files.atomic_write import replacing
from mercer.runtime.optional import require
from mercer.tables.estimator import as_pipeline, used_columns
from mercer.tables.reading import known_truth


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "plot",
        run,
        ('mercer plot iris.csv iris.mercer iris.png --target species --features "petal length" "petal width"', ""),
        ("mercer plot heart heart.model heart.svg --features 7 9", "LIBSVM's features 8 and 10"),
        description="Draw a model's decision over two features of a data file: regions, margins and the rows. "
        "Other features are held at their mean.",
        computes=True,
    )
    add_data(parser, "the column of a table that holds the truth, for colours")
    parser.add_argument("model", metavar="MODEL", help="a .mercer file, or a LIBSVM, LIBLINEAR or SVMlight model")
    parser.add_argument("output", metavar="PICTURE", type=Path, help="its ending decides the kind: .png, .svg, .pdf")
    parser.add_argument("--features", nargs=2, default=None, metavar=("A", "B"), help="names or numbers from 0 (0 1)")
    parser.add_argument("--resolution", type=int, default=200, help="points along each axis (200)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> None:
    require("matplotlib", "drawing a decision").use("Agg")
    model = model_beside(args.model, args.file)
    wanted = model.feature_names if model.table is None else used_columns(model.table)
    piped = None if model.table is None else as_pipeline(model.table)
    data = read_data(args.file, args.format, args.target, training=False, wanted=wanted)
    estimator = piped or model.estimator(data.X.shape[1])
    a, b = (0, 1) if args.features is None else (column_called(text, data.names) for text in args.features)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were just compared
        display = DecisionDisplay.from_estimator(
            estimator,
            data.X,
            _truth(data, estimator),
            features=(a, b),
            resolution=args.resolution,
            names=data.names,
        )
    kind = args.output.suffix.removeprefix(".") or "png"
    with replacing(args.output) as file:
        display.figure_.savefig(file, format=kind, dpi=150)
    require("matplotlib.pyplot", "drawing a decision").close(display.figure_)
    if not args.quiet:
        print(f"saved {args.output}")


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
