"""``mercer easy``: all of it in one command; on LIBSVM text what easy.py does."""

from __future__ import annotations

import argparse

from mercer.cli.formats import KINDS, expect_model_name, format_of
from mercer.cli.terminal import Subparsers, add_command, as_options, printable
from mercer.cli.train import TABLE_OPTIONS, add_output_options, add_table_options, expect_no_options
from mercer.cli.tune import add_grid_options
from mercer.runtime.progress import waiting

_KINDS = ("auto", "svc", "svr")
TEXT_OPTIONS = ("log2c", "log2g", "folds", "skip", "cache_size", "tol")


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "easy",
        run,
        ("mercer easy iris.csv --target species", "a report, and iris.mercer"),
        ("mercer easy houses.csv --target price --drop id -o price.mercer", "numbers: a regression"),
        ("mercer easy heart", "LIBSVM text: heart.range, heart.out, heart.model"),
        ("mercer easy --skip train test", "and test.predict"),
        usage="mercer easy [options] DATA [TEST]",
        description="From a table to a model in one command: read it, search for parameters, judge on rows that "
        "neither training nor the search has seen, train on all rows, learn probabilities or intervals, tell which "
        "columns matter, and save. On LIBSVM text it does what easy.py does: scale every feature to [-1, 1], find C "
        "and gamma by cross-validation, train on all rows, and predict a test file. It writes DATA.range for mercer "
        "scale, DATA.out with the rates of the search, DATA.model for svm-predict, and TEST.predict.",
        files="training_file [testing_file]",
        computes=True,
    )
    parser.add_argument("file", metavar="DATA", help=KINDS)
    parser.add_argument("test", nargs="?", metavar="TEST", help="LIBSVM text to predict, if DATA is LIBSVM text")
    table = parser.add_argument_group("of a table")
    add_table_options(table)
    table.add_argument("--machine", choices=_KINDS, default="auto", help="classes or numbers (auto)")
    table.add_argument(
        "--class-weight",
        choices=("auto", "balanced", "none"),
        default="auto",
        help="whether all classes count alike, however rare; auto: where one is very rare (auto)",
    )
    add_output_options(parser.add_argument_group("output"))
    text = parser.add_argument_group("of LIBSVM text")
    add_grid_options(text)
    text.add_argument("-m", "--cache-size", type=float, default=1000, metavar="MB", help="memory for the search (1000)")
    text.add_argument(
        "-e", "--tol", type=float, default=1e-3, help="largest violation of optimality to stop at (0.001)"
    )


def run(args: argparse.Namespace) -> None:
    if format_of(args.file, args.format) == "libsvm":
        from mercer.cli.libsvm.easy import run_text

        unused = (*TABLE_OPTIONS, "target", "machine", "class_weight", "output", "json", "verbose")
        expect_no_options(args, unused, f"tables, and {args.file} is LIBSVM text")
        run_text(args)
    else:
        _run_table(args)


def _run_table(args: argparse.Namespace) -> None:
    import json

    from mercer.cli.train_table import model_path, of_columns, read_frame, save_table
    from mercer.files.atomic_write import checked_target
    from mercer.inspection.easy.easy import easy_of
    from mercer.inspection.easy.target import Kind
    from mercer.tables.dialect import from_text
    from mercer.tables.frame import frame_of

    expect_no_options(args, TEXT_OPTIONS, f"LIBSVM text, and {args.file} is a table; mercer tune has them for tables")
    if args.test is not None:
        raise ValueError(
            f"{args.file} is a table, and mercer predict {args.test} predicts another; leave {args.test} out"
        )
    path = model_path(args)
    expect_model_name(path, ".onnx", ".c")
    checked_target(path)  # better now than after a search
    silent = args.quiet or args.json
    with waiting(printable(f"reading {args.file}"), silent or args.file == "-"):
        data = read_frame(args, {"auto": None, "svc": False, "svr": True}[args.machine])
    weight = None if args.class_weight == "none" else args.class_weight
    with waiting(f"searching and training on {len(data.y):,} rows", silent, verbose=args.verbose):
        found = easy_of(
            frame_of(data.X),
            data.y,
            data.target or "y",
            data.kind or Kind(False),
            of_columns(args, data),
            weight,
            args.seed,
            unit=from_text(data.dialect.units).get(str(data.target), ""),
            source=data.source,
        )
    save_table(found.model, data, path)
    if args.json:
        print(json.dumps(found.to_dict() | {"model_file": str(path)}, indent=2))
    elif not args.quiet:
        saved = f"{path} ({path.stat().st_size / 1000:.1f} kB); mercer.load({str(path)!r}) reads it back"
        print(printable(found.text(saved, args.verbose, as_options)))
