"""``mercer easy``: tune, test, explain and save a model for a table; on LIBSVM text, do what easy.py does."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from mercer.cli.formats import DATA_KINDS, READING_OPTIONS, check_model_name, format_of, given_options
from mercer.cli.terminal import Subparsers, add_command, as_options, printable
from mercer.cli.train import TABLE_OPTIONS, add_output_options, add_table_options, refuse_unused_options
from mercer.cli.tune import add_grid_options
from mercer.runtime.progress import waiting

_KINDS = ("auto", "svc", "svr")
TEXT_OPTIONS = ("log2c", "log2g", "folds", "skip", "cache_size", "tol")


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "easy",
        run,
        ("mercer easy iris.csv --target species", "prints a report and saves iris.mercer"),
        ("mercer easy houses.csv --target price --drop id -o price.mercer", "a target of numbers: a regression"),
        ("mercer easy iris.csv --target species --html iris.html", "also writes a page with pictures, to send"),
        ("mercer easy heart", "LIBSVM text: writes heart.range, heart.out, heart.model"),
        ("mercer easy --skip train test", "also writes test.predict"),
        usage="mercer easy [options] DATA [TEST]",
        description="Turn a table into a model in one command: read it, search for parameters, test on rows that "
        "neither training nor the search has seen, train on all rows, learn probabilities or intervals, find the "
        "columns that matter, and save. On LIBSVM text do what easy.py does: scale every feature to [-1, 1], search "
        "for C and gamma by cross-validation, train on all rows, and predict a test file. This writes DATA.range for "
        "mercer scale, DATA.out with the results of the search, DATA.model for svm-predict, and TEST.predict.",
        files="training_file [testing_file]",
        computes=True,
    )
    parser.add_argument("file", metavar="DATA", help=DATA_KINDS)
    parser.add_argument("test", nargs="?", metavar="TEST", help="LIBSVM text to predict, if DATA is LIBSVM text")
    table = parser.add_argument_group("options for tables")
    add_table_options(table)
    table.add_argument(
        "--machine", choices=_KINDS, default="auto", help="classification (svc) or regression (svr) (auto)"
    )
    table.add_argument(
        "--class-weight",
        choices=("auto", "balanced", "none"),
        default="auto",
        help="balanced: all classes count alike, however rare; auto: balanced if a class is very rare (auto)",
    )
    output = parser.add_argument_group("output")
    add_output_options(output)
    output.add_argument("--html", type=Path, metavar="FILE", help="write the report of a table with pictures as HTML")
    text = parser.add_argument_group("options for LIBSVM text")
    add_grid_options(text)
    text.add_argument("-m", "--cache-size", type=float, default=1000, metavar="MB", help="memory for the search (1000)")
    text.add_argument(
        "-e",
        "--tol",
        type=float,
        default=1e-3,
        help="violation of the optimality conditions at which training stops (0.001)",
    )


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    if format_of(args.file, args.format) == "libsvm":
        from mercer.cli.libsvm.easy import run_text

        useless_options = (*TABLE_OPTIONS, "target", "machine", "class_weight", "output", "json", "verbose", "html")
        refuse_unused_options(args, useless_options, f"tables, but {args.file} is LIBSVM text")
        run_text(args)
    else:
        _run_table(args)


def _run_table(args: argparse.Namespace) -> None:
    """Train a model on a table, save it, and print the report."""
    import json

    from mercer.cli.train_table import check_same_target, column_parameters, model_path, read_frame, save_with_dialect
    from mercer.files.atomic_write import check_save_path
    from mercer.inspection.easy.easy import run_easy
    from mercer.inspection.easy.target import TargetKind
    from mercer.tables.dialect import units_from_text
    from mercer.tables.frame import frame_of

    refuse_unused_options(
        args, TEXT_OPTIONS, f"LIBSVM text, but {args.file} is a table; mercer tune has this option for tables"
    )
    if args.test is not None and args.target is None and not Path(args.test).exists():
        raise ValueError(f"{args.file} is a table: name the column to predict with --target {shlex.quote(args.test)}")
    if args.test is not None:
        raise ValueError(
            f"{args.file} is a table: leave {args.test} out, and predict it with mercer predict {args.test} MODEL"
        )
    path = model_path(args)
    check_model_name(path, ".onnx", ".c")
    for file in filter(None, (path, args.html)):
        check_save_path(file)  # fail now rather than after the search
    is_silent = args.quiet or args.json
    with waiting(printable(f"reading {args.file}"), is_silent or args.file == "-"):
        data = read_frame(args, {"auto": None, "svc": False, "svr": True}[args.machine])
    check_same_target(args, path)
    weight = None if args.class_weight == "none" else args.class_weight
    with waiting(f"searching and training on {len(data.y):,} rows", is_silent, verbose=args.verbose):
        result = run_easy(
            frame_of(data.X),
            data.y,
            data.target or "y",
            data.kind or TargetKind(False),
            column_parameters(args, data),
            weight,
            args.seed,
            unit=units_from_text(data.dialect.units).get(str(data.target), ""),
            source=data.source,
            machine=args.machine,
            command=shlex.join(["mercer", *args.words]),
            path_suffices=args.file != "-" and not given_options(args, ("format", *READING_OPTIONS)),
        )
    save_with_dialect(result.model, data, path)
    if args.html is not None:
        result.report(args.html)
    if args.json:
        print(json.dumps(result.to_dict() | {"model_file": str(path)}, indent=2))
    elif not args.quiet:
        saved_text = f"{path} ({path.stat().st_size / 1000:.1f} kB); mercer.load({str(path)!r}) reads it back"

        def say(sentence: str) -> str:
            return as_options(sentence).replace(" MODEL", f" {shlex.quote(str(path))}")

        print(printable(result.text(saved_text, args.verbose, say)))
        if args.html is not None:
            print(printable(f"  report       {args.html}"))
