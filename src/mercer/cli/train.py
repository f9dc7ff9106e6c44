"""``mercer train``: svm-train for LIBSVM text; for tables and the embedded sets a report on rows held out."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mercer.cli.formats import FORMATS, TITLES, add_flags, expect_model_name, format_of, given_options
from mercer.cli.machines import AUTO, MACHINES, class_weights, machine_name
from mercer.cli.terminal import Clock, Subparsers, add_command
from mercer.runtime.progress import waiting

if TYPE_CHECKING:
    from mercer.cli.libsvm.train_text import LibsvmText
    from mercer.cli.train_table import Table
    from mercer.samples.arrays import Floats


# Each may be given several times, or with several names between commas.
_COLUMNS = {
    "drop": "a table's column to leave out; may be repeated, or names between commas, here and below",
    "only": "a column to learn from, and no other",
    "categorical": "a column of categories, such as codes that look like numbers",
    "numeric": "a column of numbers, whatever it is called; words among them are missing values",
    "text": "a column of texts whose words are counted",
}

# What becomes of a table's columns and how it is read: without meaning for data that has neither.
TABLE_OPTIONS = (*_COLUMNS, "missing", "standardise", "separator", "decimal", "na", "encoding")


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "train",
        run,
        ("mercer train iris.csv --target species", "a report, and iris.mercer"),
        ("mercer train houses.csv --target price --C 10", "numbers: a regression"),
        ("mercer train iris.csv --target species --kernel laplacian --folds 10", "cross-validation"),
        ("mercer train houses.csv --target price --machine quantile_svr --quantile 0.9", "a quantile"),
        ("mercer train -s 0 -c 10 -g 0.1 -w1 2 heart heart.model", "as svm-train"),
        ("mercer train heart heart.mercer", "LIBSVM text in, a model with its certificate out"),
        usage="mercer train [options] [DATA [MODEL]]",
        add_help=False,
        description="Train a support vector machine. On a LIBSVM text file this does what svm-train does, with the "
        "same options, output and model file. On a table (CSV, .npz, Parquet), or on a data set that comes with "
        "scikit-learn where no file is given, it turns every column into numbers, whatever it holds, holds out a part, "
        "prints how well that was predicted, trains again on all rows, and saves a .mercer model with its certificate.",
        after="Every option of svm-train works: -s -t -d -g -r -c -n -p -m -e -h -b -wi -v -q.",
        files="[data_file [model_file]]",
        computes=True,
    )
    parser.add_argument("--help", action="help", help="show this message and exit (-h is svm-train's shrinking)")
    parser.add_argument(
        "file", nargs="?", metavar="DATA", help="LIBSVM text, .csv, .npz or .parquet, or a folder; - is stdin"
    )
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        type=Path,
        help="where to save; of LIBSVM text .mercer or LIBSVM's format, of tables .mercer",
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data", choices=TITLES, default="breast_cancer", help="embedded set, where no file is given (breast_cancer)"
    )
    data.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler; DATA is then a folder")
    data.add_argument(
        "--test-size", type=_share, default=0.25, metavar="SHARE", help="of a table's rows to hold out (0.25)"
    )
    data.add_argument(
        "--keep-split", action="store_true", help="save the model that was judged, which has not seen the rows held out"
    )
    add_table_options(data)
    machine = parser.add_argument_group("machine")
    add_machine_options(machine)
    machine.add_argument(
        "-W", "--weight-file", metavar="FILE", help="a weight for each row of LIBSVM text, a line each"
    )
    machine.add_argument(
        "-v", "--folds", type=int, metavar="K", help="K-fold cross-validation instead of a model; at least 2"
    )
    add_output_options(parser.add_argument_group("output"))


def add_output_options(output: argparse._ArgumentGroup) -> None:
    """Where the model goes, and what is printed."""
    output.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="MODEL",
        help="the same as MODEL; default: DATA.model, or .mercer for tables",
    )
    style = output.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print the report as JSON")
    style.add_argument(
        "--verbose", action="store_true", help="print all there is to tell, and a line a second meanwhile"
    )
    style.add_argument("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")


def add_table_options(data: argparse._ArgumentGroup) -> None:
    """How a table is read, and what becomes of its columns."""
    data.add_argument("--format", choices=FORMATS, help="of DATA; default: as its name suggests, else LIBSVM text")
    data.add_argument("--target", metavar="COLUMN", help="the column to learn; tables need one")
    for name, what in _COLUMNS.items():
        data.add_argument(f"--{name}", action="append", default=[], metavar="COLUMN", help=what)
    data.add_argument(
        "--missing",
        choices=("impute", "drop"),
        default="impute",
        help="what becomes of a table's missing values: filled and marked, or their rows not trained on (impute)",
    )
    add_flags(data)
    data.add_argument("--seed", type=int, default=0, help="of the split and of cross-validation (0)")
    data.add_argument(
        "--no-standardise", dest="standardise", action="store_false", help="leave a table's columns as they are"
    )


def add_machine_options(machine: argparse._ArgumentGroup) -> None:
    """The machine, its kernel and its parameters, and what a fit may take."""
    add = machine.add_argument
    add(
        "-s",
        "--machine",
        type=machine_name,
        metavar="NAME",
        help=f"auto, svc, svr, or one of {', '.join(MACHINES)}; the first five of these are -s 0 to 4, and only "
        ".mercer models hold the others; default: auto for tables, which goes by the target, else c_svc",
    )
    add(
        "-t",
        "--kernel",
        default="rbf",
        help="-t 0 to 4: linear, poly, rbf, sigmoid, precomputed; or chi2, cosine, laplacian, matern, "
        "rational_quadratic, tanimoto, which only .mercer models hold (rbf)",
    )
    add("-d", "--degree", type=int, default=3, help="of the kernel poly (3)")
    add(
        "-g",
        "--gamma",
        type=_gamma,
        help="a number, scale, auto or median; LIBSVM text: 1/largest index, tables: scale",
    )
    add("-r", "--coef0", type=float, default=0.0, help="of the kernels poly and sigmoid (0)")
    add("-c", "--C", type=float, default=1.0, help="price of an error, of c_svc, epsilon_svr and nu_svr (1)")
    add("-n", "--nu", type=float, default=0.5, help="of nu_svc, one_class and nu_svr (0.5)")
    add("-p", "--epsilon", type=float, default=0.1, help="half-width of epsilon_svr's tube (0.1)")
    add("--slack", choices=("l1", "l2"), help="of c_svc: errors or squared errors (l1)")
    add(
        "--bias",
        choices=("free", "none", "regularized", "regularised"),
        metavar="{free,none,regularized}",
        help="of most machines; rls has no regularized one (free)",
    )
    add(
        "--multiclass",
        choices=("ovo", "ovr", "crammer-singer", "weston-watkins"),
        help="of c_svc: pairs of classes (ovo), each against the rest, or all at once; linear_svc: ovr, crammer-singer",
    )
    add("--loss", help="of linear_svc, linear_svr and epsilon_svr: such as hinge, huber, squared_epsilon_insensitive")
    add("--lam", type=float, help="λ of rls and rls_classifier (1)")
    add("--quantile", type=_share, help="of quantile_svr (0.5)")
    add("-m", "--cache-size", type=float, default=1000, metavar="MB", help="memory for a fit (1000)")
    add(
        "-e",
        "--tol",
        type=float,
        default=1e-3,
        help="largest violation of optimality to stop at (0.001). On LIBSVM text a tenth of it is reached (nu_svc: "
        "a hundredth), but nothing below 1e-6 that was not asked for, so that the objective is LIBSVM's to six digits",
    )
    add("-h", "--shrinking", type=int, choices=(0, 1), default=1, help="leave settled rows aside (1)")
    add(
        "-b",
        "--probability",
        type=int,
        choices=(0, 1),
        default=0,
        help="probabilities, and intervals of a table's regression, by five folds (0)",
    )
    add(
        "-w",
        "--weight",
        type=_weight,
        action="append",
        default=[],
        metavar="CLASS:W",
        help="C of a class times W, -wCLASS W",
    )
    add(
        "--class-weight",
        choices=("balanced",),
        help="balanced: C of each class in inverse proportion to its rows, so that a rare class counts as much",
    )


def run(args: argparse.Namespace) -> None:
    settle(args)
    if args.file is None:
        unused = (*(name for name in TABLE_OPTIONS if name != "standardise"), "target", "format")
        expect_no_options(args, unused, f"a file, and none is given: name one, or train on {args.data} without it")
    else:
        expect_no_options(args, ("data",), f"training without a file, and {args.file} is given")
    if args.cluster or (args.file and Path(args.file).is_dir()):
        from mercer.cli.train_folder import train_folder

        args.machine = "c_svc" if args.machine in (None, AUTO) else args.machine
        unused = (*TABLE_OPTIONS, "test_size", "keep_split")
        expect_no_options(args, unused, f"a table in memory, and {args.file} is a folder")
        train_folder(args)
        return
    training = _training(args)
    if args.folds is None:
        from mercer.files.atomic_write import checked_target

        checked_target(training.path)  # better now than after an hour of training
    clock = Clock()
    with waiting(f"reading {args.file}", args.quiet or args.json or args.file in (None, "-")):
        data = training.read()
    weights, unknown = class_weights(args.weight, set(data.y.tolist()))
    if unknown:
        training.unknown_classes(unknown, data)
    model = training.model(data, args.class_weight or weights)
    own = weights_in(args, len(data.y))
    if args.folds is not None:
        from mercer.cli.folds import cross_validated

        print(cross_validated(args, model, data))
        return
    if training.is_settled(data):
        return
    train, test = training.split(data)
    clock.lap("load")
    with waiting(f"training on {len(train[1]):,} rows", args.quiet or args.json, verbose=args.verbose):
        training.fit(model, train, **own)
    clock.lap("fit")
    training.conclude(model, data, train, test, clock)


def expect_no_options(args: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Leave with an error for an option that would do nothing."""
    if unused := given_options(args, names):
        args.parser.error(f"{unused[0]} is for {reason}")


def weights_in(args: argparse.Namespace, n: int) -> dict[str, Floats]:
    """What -W adds to a fit."""
    if args.weight_file is None:
        return {}
    if args.folds is not None or args.probability or format_of(args.file, args.format) != "libsvm":
        raise ValueError(
            "-W is for a model of LIBSVM text: not with -v or -b 1, whose folds have no weights, nor tables"
        )
    import numpy as np

    words = Path(args.weight_file).read_text(encoding="ascii", errors="replace").split()
    if len(words) != n:
        raise ValueError(f"{args.weight_file} holds {len(words)} weights, but {args.file} has {n} rows")
    try:
        return {"sample_weight": np.array([float(word) for word in words])}
    except ValueError as error:
        raise ValueError(f"{args.weight_file}: {error}") from None


def settle(args: argparse.Namespace) -> None:
    """Let -o be the file of the model, and leave with an error for a name or a --class-weight that cannot be."""
    if args.model is not None and args.output is not None:
        args.parser.error(f"the model's file is named twice: {args.model} and {args.output}")
    args.output = args.output or args.model
    if args.output is not None:
        expect_model_name(args.output, ".onnx", ".c")
    weighted = [name for name, (_, taken) in MACHINES.items() if "class_weight" in taken]
    if args.class_weight and (args.weight or args.machine not in (*weighted, AUTO, None)):
        args.parser.error(f"--class-weight balanced is for {', '.join(weighted)}, and takes the place of --weight")


def _training(args: argparse.Namespace) -> LibsvmText | Table:
    """What differs between kinds of data: how they are read, what is taken where nothing is said, and what is told.

    Only what the given kind needs is loaded, since a table needs more of scikit-learn than text.
    """
    if args.file is not None and format_of(args.file, args.format) == "libsvm":
        from mercer.cli.libsvm.train_text import LibsvmText

        args.machine = "c_svc" if args.machine in (None, AUTO) else args.machine
        expect_no_options(args, (*TABLE_OPTIONS, "test_size", "keep_split"), f"tables, and {args.file} is LIBSVM text")
        return LibsvmText(args)
    from mercer.cli.train_table import Table

    args.machine = args.machine or AUTO
    return Table(args)


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
