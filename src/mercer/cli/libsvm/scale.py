"""``mercer scale``: svm-scale."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mercer.cli.data import read_data
from mercer.cli.formats import format_of
from mercer.cli.libsvm.flags import SCALE
from mercer.cli.libsvm.scaling import Scaling
from mercer.cli.terminal import Subparsers, add_command

_ROWS_AT_ONCE = 4096


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "scale",
        run,
        ("mercer scale -s ranges train > train.scaled", ""),
        ("mercer scale -r ranges test > test.scaled", "with the ranges of the training rows"),
        description="Scale every feature to [lower, upper] as svm-scale does; the result goes to standard output. "
        "Tables need none of this: mercer train standardises their columns and keeps how in the model.",
        letters=SCALE,
        files="data_file",
    )
    parser.add_argument("file", metavar="DATA", help="LIBSVM text; - is standard input")
    parser.add_argument("--lower", type=float, default=-1.0, help="of every feature, -l (-1)")
    parser.add_argument("--upper", type=float, default=1.0, help="of every feature, -u (1)")
    parser.add_argument(
        "--target-range", type=_two, metavar="LOWER,UPPER", help="scale the targets too, -y LOWER UPPER"
    )
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--save", metavar="RANGES", help="write the ranges, for --restore, -s")
    files.add_argument("--restore", metavar="RANGES", help="use the ranges of another file, -r")
    parser.add_argument("--quiet", action="store_true", help="no warnings (-q)")


def run(args: argparse.Namespace) -> None:
    if format_of(args.file, None) != "libsvm":
        raise ValueError(
            f"{args.file} is a table, and svm-scale's ranges are for LIBSVM text; mercer train standardises a table's "
            "columns itself and keeps how in the model"
        )
    data = read_data(args.file, "libsvm")
    if args.restore is not None:
        scaling = Scaling.load(args.restore)
        dropped = scaling.varying_without_range(data.X) if data.X.shape[0] else []
        for j in [] if args.quiet else dropped:
            print(
                f"WARNING: feature index {j} appeared in file {args.file} was not seen in the scaling factor file "
                f"{args.restore}. The feature is ignored.",
                file=sys.stderr,
            )
    else:
        scaling = Scaling.of(data.X, data.y, args.lower, args.upper, args.target_range)
        if args.save is not None:
            scaling.save(args.save)
    written = _write(scaling, data.X, data.y)
    if written > data.X.nnz and not args.quiet:
        print(
            f"WARNING: original #nonzeros {data.X.nnz}\n       > new      #nonzeros {written}\n"
            "If feature values are non-negative and sparse, use -l 0 rather than the default -l -1",
            file=sys.stderr,
        )


def _write(scaling: Scaling, X: Any, y: Any) -> int:
    """Every row on standard output; how many values that were."""
    targets = scaling.targets(y).tolist()
    written = 0
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        lines = []
        for label, row in zip(targets[start:], scaling.rows(X[start : start + _ROWS_AT_ONCE]).tolist(), strict=False):
            pairs = [f"{j}:{value:g} " for j, value in enumerate(row, 1) if value != 0]
            written += len(pairs)
            lines.append(f"{label:.17g} {''.join(pairs)}\n")
        sys.stdout.write("".join(lines))
    return written


def _two(text: str) -> tuple[float, float]:
    try:
        lower, upper = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers, LOWER,UPPER") from None
    return lower, upper
