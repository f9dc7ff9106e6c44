"""``mercer train``: fits a classifier, tests it on rows it has not seen, reports, and saves the model."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.cli.embedded import TITLES, embedded
from mercer.cli.report import TrainingReport
from mercer.estimators import SVC
from mercer.files import save

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def register(commands: Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "train",
        help="train a classifier and report how good it is",
        description="Train a support vector classifier on a data set that comes with scikit-learn, test it "
        "on a part held out, print a report with the certificate of optimality, and save the model.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="not available in this version", default=argparse.SUPPRESS
    )
    data = parser.add_argument_group("data")
    data.add_argument("--data", choices=TITLES, default="breast_cancer", help="embedded data set")
    data.add_argument("--test-size", type=_share, default=0.25, metavar="SHARE", help="share of the rows held out")
    data.add_argument("--seed", type=int, default=0, help="of the random split")
    machine = parser.add_argument_group("machine")
    machine.add_argument("--C", type=float, default=1.0, help="price of an error")
    machine.add_argument("--kernel", default="rbf", help="rbf, linear, poly, sigmoid, laplacian, ...")
    machine.add_argument("--gamma", type=_gamma, default="scale", help="a number, scale or auto")
    machine.add_argument("--degree", type=int, default=3, help="of the kernel poly")
    machine.add_argument("--coef0", type=float, default=0.0, help="of the kernels poly and sigmoid")
    machine.add_argument("--tol", type=float, default=1e-3, help="largest violation of optimality to stop at")
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", type=Path, default=Path("model.mercer"), metavar="FILE", help="model file")
    style = output.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print the report as JSON")
    style.add_argument("--quiet", action="store_true", help="print nothing but warnings and errors")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> None:
    """Carry out the subcommand."""
    if hasattr(args, "file"):
        args.parser.error(
            f"cannot train on {args.file!r}: mercer {mercer.__version__} does not read data files yet; leave "
            f"FILE out to train on embedded data (--data {', '.join(TITLES)}), or use mercer.SVC in Python"
        )
    clock = _Clock()
    data = embedded(args.data)
    X_train, X_test, y_train, y_test = train_test_split(
        data.X, data.y, test_size=args.test_size, stratify=data.y, random_state=args.seed
    )
    clock.lap("load")
    machine = SVC(C=args.C, kernel=args.kernel, gamma=args.gamma, degree=args.degree, coef0=args.coef0, tol=args.tol)
    model = Pipeline([("standardise", StandardScaler()), ("machine", machine)])
    model.fit(X_train, y_train)
    clock.lap("fit")
    report = TrainingReport.of(model, data, (X_train, y_train), (X_test, y_test), args.seed)
    clock.lap("test")
    save(model, args.output)
    clock.lap("save")
    if args.json:
        print(json.dumps(report.to_dict() | {"seconds": clock.laps, "model_file": str(args.output)}, indent=2))
    elif not args.quiet:
        print(_printable(report.text(clock.laps, args.output)))


class _Clock:
    """Seconds since the lap before, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return share


def _gamma(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_ASCII = str.maketrans(
    {
        "γ": "gamma",
        "‖": "||",
        "×": "x",
        "·": "-",
        "−": "-",
        "≤": "<=",
        "●": "x",
        "○": "o",
        "→": "->",
        "…": "...",
        "½": "1/2",
    }
)


def _printable(text: str) -> str:
    """``text`` as far as the terminal can show it: some consoles know no Greek."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text
