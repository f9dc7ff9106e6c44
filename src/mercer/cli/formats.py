"""What data files are called, the sets that come along, and the options of data; known before any library is loaded."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mercer.files.endings import OTHER_MODELS, OTHER_PROGRAMS
from mercer.tables.dialect import Dialect

_FORMATS: Final = {".csv": "csv", ".tsv": "tsv", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}
_PACKED: Final = (".gz", ".bz2", ".xz")
_SEPARATORS: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "blank": " ", "space": " ", "pipe": "|"}
_OTHER_DATA: Final = (*OTHER_PROGRAMS, ".xls", ".xlsx", ".ods", ".feather", ".arrow", ".npy", ".mat", ".arff", ".dta")
_NAMES: Final = {"libsvm": "LIBSVM text", "npz": "NumPy arrays", "parquet": "Parquet"}
_OF_CSV: Final = ("separator", "decimal", "encoding")  # what only cells that are texts need
KINDS: Final = "LIBSVM text, .csv, .npz or .parquet"
FORMATS: Final = ("libsvm", *dict.fromkeys(_FORMATS.values()))
# The sets that come with scikit-learn, for trying mercer without a file.
TITLES: Final = {
    "breast_cancer": "breast cancer Wisconsin (diagnostic)",
    "digits": "handwritten digits, 8 × 8 pixels",
    "wine": "wine recognition, three growers",
    "iris": "Fisher's iris",
}


def format_of(path: str, form: str | None) -> str:
    """The format asked for, or what the name suggests; ValueError for a folder, and for what is not read."""
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{path} is a folder; name a file")
    suffix = plain_name(path).suffix.lower()
    if form is None and suffix in _OTHER_DATA:
        raise ValueError(
            f"{path}: files that end in {suffix} are not read; write the table as .csv, .parquet or .npz first (in "
            "pandas: frame.to_csv), or say with --format what the file is"
        )
    return form or _FORMATS.get(suffix, "libsvm")


def plain_name(path: str) -> Path:
    """The name without what says that the file is packed."""
    file = Path(path)
    return file.with_suffix("") if is_packed(path) else file


def is_packed(path: str) -> bool:
    """Whether the name says that the file is packed."""
    return Path(path).suffix.lower() in _PACKED


def expect_model_name(path: Path, *converted: str) -> None:
    """Raise ValueError for a name that promises what is not written, or is written by ``mercer convert`` alone."""
    suffix = path.suffix.lower()
    if suffix in converted:
        raise ValueError(f"{path}: save the model as .mercer, and mercer convert makes {suffix} of it")
    if suffix in OTHER_MODELS:
        raise ValueError(
            f"{path}: models that end in {suffix} are not written; .mercer, .onnx and .c are, and any other ending, "
            "such as .model, stands for LIBSVM's or LIBLINEAR's format"
        )


def add_data(
    parser: argparse.ArgumentParser, target: str, told: str = f"{KINDS}; - is standard input", nargs: str | None = None
) -> None:
    """DATA, what it is, and the column that `target` tells of."""
    parser.add_argument("file", nargs=nargs, metavar="DATA", help=told)
    parser.add_argument("--format", choices=FORMATS, help="of DATA; default: as its name suggests, else LIBSVM text")
    parser.add_argument("--target", metavar="COLUMN", help=target)


def add_flags(group: argparse._ActionsContainer) -> None:
    """The options of every command that reads tables."""
    group.add_argument(
        "--separator", type=_separator, metavar="MARK", help="between a CSV's cells, or tab; default: as its lines show"
    )
    group.add_argument("--decimal", choices=(",", "."), help="mark of a CSV's fractions; default: as its numbers show")
    group.add_argument(
        "--na",
        type=_marks,
        metavar="MARKS",
        help="between commas, what marks a missing value in a table beside blanks, NA and the like, such as k.A.,-",
    )
    group.add_argument("--encoding", help="of a CSV; default: UTF-8 or -16, else Windows-1252 if it looks like that")


def asked_for(args: argparse.Namespace) -> Dialect:
    """Read how a table is written off the flags; ValueError for a flag that the file's format has no use for."""
    form = format_of(args.file, args.format)
    if form not in ("csv", "tsv"):
        unused = given_options(args, _OF_CSV if form == "parquet" else (*_OF_CSV, "na"))
        if unused:
            raise ValueError(f"{unused[0]} is for CSV files, and {args.file} is read as {_NAMES[form]}: leave it out")
    return Dialect(args.separator, args.decimal, args.encoding, na=args.na)


def given_options(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """List the options among `names` whose value differs from the default, as they are written."""
    found = []
    for action in args.parser._actions:
        if action.dest in names and action.option_strings:
            usual = action.default
            if isinstance(usual, str) and callable(action.type):  # as argparse makes a value of it
                usual = action.type(usual)
            if getattr(args, action.dest) != usual:
                found.append(action.option_strings[-1])
    return found


def _marks(text: str) -> str:
    return "\n".join(filter(None, (mark.strip() for mark in text.split(","))))


def _separator(text: str) -> str:
    found = _SEPARATORS.get(text.lower(), text)
    if len(found) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one character, nor one of {', '.join(_SEPARATORS)}")
    return found
