"""``mercer train``: svm-train for LIBSVM text; for tables and the embedded sets a report on rows held out."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.arrays import is_sparse
from mercer.cli import svm_train
from mercer.cli.data import FORMATS, Data, format_of, read_data
from mercer.cli.embedded import TITLES, Embedded, embedded
from mercer.cli.examples import WithExamples, examples
from mercer.cli.folds import checked, deal
from mercer.cli.libsvm_flags import MACHINES, TRAIN, translate
from mercer.cli.machines import CLASSIFIERS, REGRESSORS, build, class_weights
from mercer.cli.printable import printable
from mercer.cli.report import TrainingReport, plain_report
from mercer.cli.waiting import waiting
from mercer.files import save
from mercer.files.atomic_write import checked_target

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_USAGE = "usage: mercer train [options] [data_file [model_file]]; mercer train --help tells them all"


def translated(argv: list[str]) -> list[str]:
    """The arguments without LIBSVM's letters."""
    return translate(argv, TRAIN, _USAGE)


def register(commands: Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "train",
        usage="mercer train [options] [DATA [MODEL]]",
        add_help=False,
        allow_abbrev=False,
        help="train a machine and save it",
        description="Train a support vector machine. On a LIBSVM text file this does what svm-train does, with the "
        "same options, output and model file. On a table (CSV, .npz, Parquet), or on a data set that comes with "
        "scikit-learn where no file is given, it standardises the columns, holds out a part, prints a report with "
        "the certificate of optimality, and saves a .mercer model.",
        formatter_class=WithExamples,
        epilog=examples(
            ("mercer train iris.csv --target species", "a report, and iris.mercer"),
            ("mercer train houses.csv --target price --machine epsilon_svr --C 100 --epsilon 5", ""),
            ("mercer train iris.csv --target species --kernel laplacian --folds 10", "cross-validation"),
            ("mercer train -s 0 -c 10 -g 0.1 -w1 2 heart heart.model", "as svm-train"),
            ("mercer train heart heart.mercer", "LIBSVM text in, a model with its certificate out"),
            after="Every option of svm-train works: -s -t -d -g -r -c -n -p -m -e -h -b -wi -v -q.",
        ),
    )
    parser.add_argument("--help", action="help", help="show this message and exit (-h is svm-train's shrinking)")
    parser.add_argument("file", nargs="?", metavar="DATA", help="LIBSVM text, .csv, .npz or .parquet; - is stdin")
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        type=Path,
        help="where to save; of LIBSVM text .mercer or LIBSVM's format, of tables .mercer",
    )
    _data_options(parser.add_argument_group("data"))
    _machine_options(parser.add_argument_group("machine"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        type=Path,
        metavar="MODEL",
        help="the same as MODEL (-o); default: DATA.model, or .mercer for tables",
    )
    style = output.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print the report as JSON")
    style.add_argument("--quiet", action="store_true", help="print nothing but warnings and errors (-q)")
    parser.set_defaults(run=run, parser=parser)


def _data_options(data: Any) -> None:
    data.add_argument(
        "--data", choices=TITLES, default="breast_cancer", help="embedded set, where no file is given (breast_cancer)"
    )
    data.add_argument("--format", choices=FORMATS, help="of DATA; default: as its name suggests, else LIBSVM text")
    data.add_argument("--target", metavar="COLUMN", help="the column to learn; tables need one")
    data.add_argument(
        "--test-size", type=_share, default=0.25, metavar="SHARE", help="of a table's rows to hold out (0.25)"
    )
    data.add_argument("--seed", type=int, default=0, help="of the split and of cross-validation (0)")
    data.add_argument(
        "--no-standardise", dest="standardise", action="store_false", help="leave a table's columns as they are"
    )


def _machine_options(machine: Any) -> None:
    add = machine.add_argument
    add("--machine", choices=MACHINES, default="c_svc", help="kind of machine, -s 0 to 4 (c_svc)")
    add(
        "--kernel",
        default="rbf",
        help="-t 0 to 4: linear, poly, rbf, sigmoid, precomputed; or chi2, cosine, laplacian, matern, "
        "rational_quadratic, tanimoto, which only .mercer models hold (rbf)",
    )
    add("--degree", type=int, default=3, help="of the kernel poly, -d (3)")
    add("--gamma", type=_gamma, help="-g: a number, scale, auto or median; LIBSVM text: 1/largest index, tables: scale")
    add("--coef0", type=float, default=0.0, help="of the kernels poly and sigmoid, -r (0)")
    add("--C", type=float, default=1.0, help="price of an error, of c_svc, epsilon_svr and nu_svr, -c (1)")
    add("--nu", type=float, default=0.5, help="of nu_svc, one_class and nu_svr, -n (0.5)")
    add("--epsilon", type=float, default=0.1, help="half-width of epsilon_svr's tube, -p (0.1)")
    add("--cache-size", type=float, default=1000, metavar="MB", help="memory for a fit, -m (1000)")
    add(
        "--tol",
        type=float,
        default=1e-3,
        help="largest violation of optimality to stop at, -e (0.001). On LIBSVM text a tenth of it is reached (nu_svc: "
        "a hundredth), but nothing below 1e-6 that was not asked for, so that the objective is LIBSVM's to six digits",
    )
    add("--shrinking", type=int, choices=(0, 1), default=1, help="leave settled rows aside, -h (1)")
    add(
        "--probability",
        type=int,
        choices=(0, 1),
        default=0,
        help="fit probabilities by five folds, -b; LIBSVM text only (0)",
    )
    add(
        "--weight", type=_weight, action="append", default=[], metavar="CLASS:W", help="C of a class times W, -wCLASS W"
    )
    add("--folds", type=int, metavar="K", help="K-fold cross-validation instead of a model, -v; at least 2")


def run(args: argparse.Namespace) -> None:
    """Carry out the subcommand."""
    if args.model is not None and args.output is not None:
        args.parser.error(f"the model's file is named twice: {args.model} and {args.output}")
    args.output = args.output or args.model
    if args.file is not None and format_of(args.file, args.format) == "libsvm":
        svm_train.run(args)
        return
    if args.probability:
        raise ValueError("-b 1 works on LIBSVM text; in Python, sklearn.calibration.CalibratedClassifierCV does it")
    if args.kernel == "precomputed":
        raise ValueError("a precomputed kernel is read from LIBSVM text, whose rows are 0:i 1:K(x_i, x_1) ...")
    output = args.output or _default_output(args)
    if args.folds is None:
        checked_target(output)  # better now than after an hour of training
    clock = _Clock()
    data = _load(args)
    model = _pipeline(args, data)
    if args.folds is not None:
        _cross_validate(args, model, data)
        return
    classes = args.machine in CLASSIFIERS
    if classes:
        labels, counts = np.unique(data.y, return_counts=True)
        if len(labels) > 1 and counts.min() < 2:
            lonely = str(labels[np.argmin(counts)])
            quantity = "; if the target is a quantity, add --machine epsilon_svr" if data.y.dtype.kind in "iuf" else ""
            raise ValueError(
                f"{data.source}: the class {lonely!r} has a single row, which cannot be both trained on and held out; "
                f"leave it out or add rows{quantity}"
            )
    X_train, X_test, y_train, y_test = train_test_split(
        data.X, data.y, test_size=args.test_size, stratify=data.y if classes else None, random_state=args.seed
    )
    clock.lap("load")
    with waiting(f"training on {len(y_train):,} rows", args.quiet or args.json):
        model.fit(X_train, y_train)
    clock.lap("fit")
    train, test = (X_train, y_train), (X_test, y_test)
    shown: Any = (
        TrainingReport.of(model, _named(data), train, test, args.seed)
        if args.machine == "c_svc"
        else plain_report(model, _named(data), train, test, args.seed)
    )
    clock.lap("test")
    _remember_names(model, data.names)
    save(model, output)
    clock.lap("save")
    if args.json:
        print(json.dumps(shown.to_dict() | {"seconds": clock.laps, "model_file": str(output)}, indent=2))
    elif not args.quiet:
        print(printable(shown.text(clock.laps, output)))


def _load(args: argparse.Namespace) -> Data:
    if args.file is None:
        table = embedded(args.data)
        return Data(table.name, "embedded", table.X, table.y)
    data = read_data(args.file, args.format, args.target)
    if args.machine in REGRESSORS and data.y.dtype.kind not in "biuf":
        raise ValueError(f"{data.source}: the target {args.target!r} holds names, but regression needs numbers")
    if args.machine in CLASSIFIERS and data.y.dtype.kind == "f" and (data.y % 1 != 0).any():
        some = data.y[np.argmax(data.y % 1 != 0)]
        raise ValueError(
            f"{data.source}: the target holds numbers such as {some:g}, which are no classes; for regression add "
            "--machine epsilon_svr (-s 3)"
        )
    return data


def _named(data: Data) -> Embedded:
    title = TITLES.get(data.source, data.source) if data.form == "embedded" else data.source
    return Embedded(data.source, title, data.X, data.y)


def _pipeline(args: argparse.Namespace, data: Data) -> Pipeline:
    weights, unknown = class_weights(args.weight, np.unique(data.y))
    if unknown:
        raise ValueError(f"--weight names {', '.join(map(repr, unknown))}, which no row of {data.source} has")
    gamma = "scale" if args.gamma is None else args.gamma
    machine = build(args, gamma, weights)
    if not args.standardise:
        return Pipeline([("machine", machine)])
    return Pipeline([("standardise", StandardScaler(with_mean=not is_sparse(data.X))), ("machine", machine)])


def _remember_names(model: Pipeline, names: list[str] | None) -> None:
    """So that a later table may have its columns in another order."""
    if names is not None:
        model[0].feature_names_in_ = np.array(names, dtype=object)


def _default_output(args: argparse.Namespace) -> Path:
    if args.file is None:
        return Path("model.mercer")
    return Path("standard_input.mercer" if args.file == "-" else f"{Path(args.file).stem}.mercer")


def _cross_validate(args: argparse.Namespace, model: Pipeline, data: Data) -> None:
    k = checked(args.folds, len(data.y))
    classes = args.machine in CLASSIFIERS
    splits = list(deal(len(data.y), k, args.seed, data.y if classes else None))
    with waiting(f"{k}-fold cross-validation", args.quiet or args.json):
        answer = cross_val_predict(model, data.X, data.y, cv=splits)
    print(svm_train.cross_validation_text(args, k, data.y, answer))


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


def _weight(text: str) -> tuple[str, float]:
    label, colon, weight = text.rpartition(":")
    try:
        if colon and label:
            return label, float(weight)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not CLASS:W with a number W")
