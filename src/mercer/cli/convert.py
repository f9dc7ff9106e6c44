"""``mercer convert``: convert a model file to another format."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from mercer.cli.formats import check_model_name
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.models import FORMATS, WriteOptions, read_model

_BY_SUFFIX: Final = {entry.suffix: name for name, entry in FORMATS.items() if entry.suffix}
_FORMAT_NAMES: Final = {
    "mercer": ".mercer",
    "libsvm": "LIBSVM",
    "liblinear": "LIBLINEAR",
    "svmlight": "SVMlight",
    "onnx": "ONNX",
    "c": "C",
}
_WRITERS: Final = {name: entry.write for name, entry in FORMATS.items() if entry.write is not None}


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "convert",
        run,
        ("mercer convert heart.model heart.mercer", "a LIBSVM model for mercer.load"),
        ("mercer convert iris.mercer iris.onnx --input float32", "needs the extra onnx"),
        ("mercer convert iris.mercer iris.c --input float32", "one C99 file: iris_predict(x)"),
        ("mercer convert text.mercer text.model --to liblinear", "for a LinearSVC or LinearSVR"),
        description=(
            "Convert .mercer, LIBSVM, LIBLINEAR and SVMlight models to .mercer, LIBSVM, LIBLINEAR, SVMlight, ONNX or C."
        ),
    )
    parser.add_argument("source", metavar="FROM", help="model file; its format is recognised by its content")
    parser.add_argument(
        "output", metavar="TO", type=Path, help="file to write; the suffixes .mercer, .onnx and .c choose the format"
    )
    parser.add_argument(
        "--to",
        choices=_WRITERS,
        help="format to write; default: by the suffix of TO, else LIBLINEAR for linear machines and LIBSVM for others",
    )
    parser.add_argument(
        "--features", type=int, metavar="N", help="number of columns of the data to predict, if FROM does not store it"
    )
    parser.add_argument(
        "--input",
        choices=("float64", "float32"),
        default="float64",
        help="type of X in ONNX and C (float64)",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    if args.to is None:
        check_model_name(args.output)
        suffix = args.output.suffix.lower()
        suggestions = get_close_matches(suffix, _BY_SUFFIX, n=1, cutoff=0.7) if suffix not in _BY_SUFFIX else []
        if suggestions:
            raise ValueError(
                f"{args.output} ends in {suffix}: did you mean {args.output.with_suffix(suggestions[0])}? If the name "
                "is right, name its format with --to"
            )
    model = read_model(args.source)
    target = args.to or _BY_SUFFIX.get(args.output.suffix.lower(), model.native)
    _WRITERS[target](model, args.output, WriteOptions(args.features, args.input))
    if not args.quiet:
        print(printable(f"saved {args.output} in {_FORMAT_NAMES[target]} format"))
