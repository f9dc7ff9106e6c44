"""``mercer train``: svm-train for LIBSVM text; a model and a report on held-out rows for tables and embedded sets."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mercer.cli.formats import (
    DATA_KINDS,
    FORMATS,
    TITLES,
    add_reading_options,
    check_model_name,
    format_of,
    given_options,
    parse_seed,
    parse_share,
)
from mercer.cli.machines import AUTO, MACHINES, class_weights, machine_name
from mercer.cli.terminal import Clock, Subparsers, add_command
from mercer.runtime.progress import waiting

if TYPE_CHECKING:
    from mercer.cli.libsvm.train_text import LibsvmTraining
    from mercer.cli.train_table import TableTraining
    from mercer.samples.arrays import Floats


# Options that name columns; each may be given several times, or with several names separated by commas.
_COLUMNS = {
    "drop": "column to leave out; here and below: may be repeated, or give several names separated by commas",
    "only": "column to learn from; all others are left out",
    "categorical": "column of categories, such as codes that look like numbers",
    "numeric": "column of numbers, whatever its name suggests; words in it count as missing values",
    "text": "column of free text, whose words are used",
}

# Options for reading a table and for its columns, which are meaningless for other data.
TABLE_OPTIONS = (*_COLUMNS, "missing", "standardise", "separator", "decimal", "na", "encoding")


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "train",
        run,
        ("mercer train iris.csv --target species", "prints a report and saves iris.mercer"),
        ("mercer train houses.csv --target price --C 10", "a target of numbers: a regression"),
        ("mercer train iris.csv --target species --kernel laplacian --folds 10", "cross-validation"),
        ("mercer train houses.csv --target price --machine quantile_svr --quantile 0.9", "predicts the 90% quantile"),
        ("mercer train -s 0 -c 10 -g 0.1 -w1 2 heart heart.model", "same as svm-train"),
        ("mercer train heart heart.mercer", "LIBSVM text, saved with a certificate"),
        usage="mercer train [options] [DATA [MODEL]]",
        add_help=False,
        description="Train a support vector machine. On a LIBSVM text file this does what svm-train does, with the "
        "same options, output and model file. On a table (CSV, Excel, Parquet, Arrow, .npz) it encodes every column as "
        "numbers, trains on a part of the rows, prints how well the model predicts the rest, trains again on all "
        "rows, and saves a .mercer model with its certificate. Without a file it does this with a data set that comes "
        "with scikit-learn.",
        closing="Every option of svm-train works: -s -t -d -g -r -c -n -p -m -e -h -b -wi -v -q.",
        files="[data_file [model_file]]",
        computes=True,
    )
    parser.add_argument("--help", action="help", help="show this message and exit (-h is svm-train's shrinking)")
    parser.add_argument("file", nargs="?", metavar="DATA", help=f"{DATA_KINDS}, or a folder; - for standard input")
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        type=Path,
        help="file to save the model in: .mercer, or for LIBSVM text also LIBSVM's format",
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data",
        choices=TITLES,
        default="breast_cancer",
        help="built-in data set to use if no file is given (breast_cancer)",
    )
    data.add_argument("--cluster", metavar="ADDRESS", help="address of a Dask scheduler; DATA is then a folder")
    data.add_argument(
        "--test-size",
        type=parse_share,
        default=0.25,
        metavar="SHARE",
        help="share of a table's rows to hold out (0.25)",
    )
    data.add_argument(
        "--keep-split", action="store_true", help="save the model that was tested, which has not seen the held-out rows"
    )
    add_table_options(data)
    machine = parser.add_argument_group("machine")
    add_machine_options(machine)
    machine.add_argument(
        "-W", "--weight-file", metavar="FILE", help="file with the weight of each row of LIBSVM text, one per line"
    )
    machine.add_argument(
        "-v",
        "--folds",
        type=int,
        metavar="K",
        help="print a K-fold cross-validation instead of saving a model; at least 2",
    )
    add_output_options(parser.add_argument_group("output"))


def add_output_options(output: argparse._ArgumentGroup) -> None:
    """Add the options for the model file and for what is printed."""
    output.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="MODEL",
        help="file to save the model in; default: DATA.model, for tables DATA.mercer",
    )
    style = output.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print the report as JSON")
    style.add_argument("--verbose", action="store_true", help="print a longer report, and progress while training")
    style.add_argument("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")


def add_table_options(data: argparse._ArgumentGroup) -> None:
    """Add the options for reading a table and for its columns."""
    data.add_argument("--format", choices=FORMATS, help="format of DATA; default: by its suffix, else LIBSVM text")
    data.add_argument("--target", metavar="COLUMN", help="column to predict; required for tables")
    for name, text in _COLUMNS.items():
        data.add_argument(f"--{name}", action="append", default=[], metavar="COLUMN", help=text)
    data.add_argument(
        "--missing",
        choices=("impute", "drop"),
        default="impute",
        help="fill in and mark missing values of a table, or leave out rows that have any (impute)",
    )
    add_reading_options(data)
    data.add_argument("--seed", type=parse_seed, default=0, help="random seed of the split and of cross-validation (0)")
    data.add_argument(
        "--no-standardise", dest="standardise", action="store_false", help="do not standardise a table's columns"
    )


def add_machine_options(machine: argparse._ArgumentGroup) -> None:
    """Add the options for the machine, its kernel and parameters, and the solver."""
    add = machine.add_argument
    add(
        "-s",
        "--machine",
        type=machine_name,
        metavar="NAME",
        help=f"auto, svc, svr, or one of {', '.join(MACHINES)}; c_svc to nu_svr are -s 0 to 4, and only .mercer files "
        "can store the others; default: for tables auto, which chooses by the target; else c_svc",
    )
    add(
        "-t",
        "--kernel",
        default="rbf",
        help="linear, poly, rbf, sigmoid, precomputed (-t 0 to 4); or chi2, cosine, laplacian, matern, "
        "rational_quadratic, tanimoto, which only .mercer files can store (rbf)",
    )
    add("-d", "--degree", type=int, default=3, help="degree of the kernel poly (3)")
    add(
        "-g",
        "--gamma",
        type=_parse_gamma,
        help="kernel coefficient: a number, scale, auto or median (LIBSVM text: 1/largest index; tables: scale)",
    )
    add("-r", "--coef0", type=float, default=0.0, help="constant in the kernels poly and sigmoid (0)")
    add(
        "-c",
        "--C",
        type=float,
        default=1.0,
        help="penalty C of c_svc, epsilon_svr, nu_svr, linear_svc, linear_svr and quantile_svr (1)",
    )
    add("-n", "--nu", type=float, default=0.5, help="parameter nu of nu_svc, one_class, nu_svr and svdd (0.5)")
    add("-p", "--epsilon", type=float, default=0.1, help="half-width of the tube of epsilon_svr and linear_svr (0.1)")
    add("--slack", choices=("l1", "l2"), help="penalty of c_svc on slack variables: linear or squared (l1)")
    add(
        "--bias",
        choices=("free", "none", "regularized", "regularised"),
        metavar="{free,none,regularized}",
        help="bias b of most machines; rls has no regularized bias (free)",
    )
    add(
        "--multiclass",
        choices=("ovo", "ovr", "crammer-singer", "weston-watkins"),
        help="for c_svc: pairs of classes (ovo), each class against the rest (ovr), or all at once; for linear_svc: "
        "ovr or crammer-singer",
    )
    add(
        "--loss",
        help="loss of linear_svc, linear_svr or epsilon_svr, such as hinge, huber, squared_epsilon_insensitive",
    )
    add("--lam", type=float, help="regularisation parameter λ of rls and rls_classifier (1)")
    add("--quantile", type=parse_share, help="quantile that quantile_svr predicts (0.5)")
    add("-m", "--cache-size", type=float, default=1000, metavar="MB", help="memory for training (1000)")
    add(
        "-e",
        "--tol",
        type=float,
        default=1e-3,
        help="violation of the optimality conditions at which training stops (0.001). LIBSVM text is trained to a "
        "tenth of it (nu_svc: a hundredth), but not below 1e-6 unless -e is smaller, so that the objective agrees with "
        "LIBSVM's to six digits",
    )
    add(
        "-h",
        "--shrinking",
        type=int,
        choices=(0, 1),
        default=1,
        help="shrinking: 1 sets aside rows whose coefficients no longer change (1)",
    )
    add(
        "-b",
        "--probability",
        type=int,
        choices=(0, 1),
        default=0,
        help="1: learn probabilities, or for a regression on a table prediction intervals, by five folds (0)",
    )
    add(
        "-w",
        "--weight",
        type=_parse_weight,
        action="append",
        default=[],
        metavar="CLASS:W",
        help="multiply C of a class by W; also -wCLASS W",
    )
    add(
        "--class-weight",
        choices=("balanced",),
        help="balanced: C of each class in inverse proportion to its number of rows, so that a rare class counts as "
        "much as a frequent one",
    )


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    resolve_output(args)
    if args.file is None:
        useless_options = (*(name for name in TABLE_OPTIONS if name != "standardise"), "target", "format")
        refuse_unused_options(
            args,
            useless_options,
            f"files, but no file is given: name one, or leave the option out to train on {args.data}",
        )
    else:
        refuse_unused_options(args, ("data",), f"training without a file, but {args.file} is given")
    if args.cluster or (args.file and Path(args.file).is_dir()):
        from mercer.cli.train_folder import train_folder

        args.machine = "c_svc" if args.machine in (None, AUTO) else args.machine
        useless_options = (*TABLE_OPTIONS, "test_size", "keep_split")
        refuse_unused_options(args, useless_options, f"a table in memory, but {args.file} is a folder")
        train_folder(args)
        return
    training = _training_for(args)
    if args.folds is None:
        from mercer.files.atomic_write import check_save_path

        check_save_path(training.path)  # fail now rather than after an hour of training
    clock = Clock()
    with waiting(f"reading {args.file}", args.quiet or args.json or args.file in (None, "-")):
        data = training.read()
    weights, unknown = class_weights(args.weight, set(data.y.tolist()))
    if unknown:
        training.report_unknown_classes(unknown, data)
    model = training.model(data, args.class_weight or weights)
    sample_weight = read_weights(args, len(data.y))
    if args.folds is not None:
        from mercer.cli.folds import cross_validation_report

        print(cross_validation_report(args, model, data))
        return
    if training.finish_single_class(data):
        return
    train, test = training.split(data)
    clock.lap("load")
    with waiting(f"training on {len(train[1]):,} rows", args.quiet or args.json, verbose=args.verbose):
        training.fit(model, train, **sample_weight)
    clock.lap("fit")
    training.conclude(model, data, train, test, clock)


def refuse_unused_options(args: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Exit with an error if an option is given that would have no effect."""
    if useless_options := given_options(args, names):
        args.parser.error(f"{useless_options[0]} is for {reason}")


def read_weights(args: argparse.Namespace, n: int) -> dict[str, Floats]:
    """Return the argument `sample_weight` of fit from the file that -W names, or nothing without -W."""
    if args.weight_file is None:
        return {}
    if args.folds is not None or args.probability or format_of(args.file, args.format) != "libsvm":
        raise ValueError(
            "-W is for models of LIBSVM text; it cannot be used with tables, nor with -v or -b 1, whose folds have "
            "no weights"
        )
    import numpy as np

    words = Path(args.weight_file).read_text(encoding="ascii", errors="replace").split()
    if len(words) != n:
        raise ValueError(f"{args.weight_file} contains {len(words)} weights, but {args.file} has {n} rows")
    try:
        return {"sample_weight": np.array([float(word) for word in words])}
    except ValueError as error:
        raise ValueError(f"{args.weight_file}: {error}") from None


def resolve_output(args: argparse.Namespace) -> None:
    """Set `args.output` to the model file; exit with an error for an invalid name or a misused --class-weight."""
    if args.model is not None and args.output is not None:
        args.parser.error(f"the model's file is named twice: {args.model} and {args.output}")
    args.output = args.output or args.model
    if args.output is not None:
        check_model_name(args.output, ".onnx", ".c")
    weighted_machines = [name for name, (_, option_names) in MACHINES.items() if "class_weight" in option_names]
    if args.class_weight and (args.weight or args.machine not in (*weighted_machines, AUTO, None)):
        args.parser.error(
            f"--class-weight balanced is for {', '.join(weighted_machines)}, and cannot be combined with --weight"
        )


def _training_for(args: argparse.Namespace) -> LibsvmTraining | TableTraining:
    """Return the training for the kind of data: its reading, its defaults and its report.

    The modules are imported here because a table needs more of scikit-learn than LIBSVM text.
    """
    if args.file is not None and format_of(args.file, args.format) == "libsvm":
        from mercer.cli.libsvm.train_text import LibsvmTraining

        args.machine = "c_svc" if args.machine in (None, AUTO) else args.machine
        refuse_unused_options(
            args, (*TABLE_OPTIONS, "test_size", "keep_split"), f"tables, but {args.file} is LIBSVM text"
        )
        return LibsvmTraining(args)
    from mercer.cli.train_table import TableTraining

    args.machine = args.machine or AUTO
    return TableTraining(args)


def _parse_gamma(text: str) -> float | str:
    """Return a number, or a word such as scale unchanged."""
    try:
        return float(text)
    except ValueError:
        return text


def _parse_weight(text: str) -> tuple[str, float]:
    """Return the class and the weight of CLASS:W."""
    label, colon, weight = text.rpartition(":")
    try:
        if colon and label:
            return label, float(weight)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not of the form CLASS:W with a number W")
