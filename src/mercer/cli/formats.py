"""Formats of data files, names of the built-in data sets, and options for reading data; imports no library."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from mercer.files.endings import OTHER_MODELS, OTHER_PROGRAMS
from mercer.tables.dialect import TABLE_FORMATS, Dialect

_FORMATS: Final = {**TABLE_FORMATS, ".npz": "npz"}
_COMPRESSED: Final = (".gz", ".bz2", ".xz")
_SEPARATORS: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "blank": " ", "space": " ", "pipe": "|"}
_OTHER_DATA: Final = (*OTHER_PROGRAMS, ".npy", ".mat", ".arff", ".dta")
_NAMES: Final = {
    "libsvm": "LIBSVM text",
    "npz": "NumPy arrays",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "excel": "Excel",
}
_CSV_OPTIONS: Final = ("separator", "decimal", "encoding")  # without meaning for formats that store numbers
READING_OPTIONS: Final = (*_CSV_OPTIONS, "na", "sheet")
DATA_KINDS: Final = "LIBSVM text, .csv, .xlsx, .parquet, .arrow or .npz"
FORMATS: Final = ("libsvm", *dict.fromkeys(_FORMATS.values()))
# Data sets that come with scikit-learn, for trying mercer without a file.
TITLES: Final = {
    "breast_cancer": "breast cancer Wisconsin (diagnostic)",
    "digits": "handwritten digits, 8 × 8 pixels",
    "wine": "wine recognition, three growers",
    "iris": "Fisher's iris",
}


def format_of(path: str, form: str | None) -> str:
    """Return the given format, or the one that the file name suggests; raise for a folder or an unsupported format."""
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{path} is a folder; name a file")
    suffix = strip_compression(path).suffix.lower()
    if form is None and suffix in _OTHER_DATA:
        raise ValueError(
            f"{path}: mercer does not read {suffix} files; save the table as .csv, .xlsx, .parquet or .npz first (in "
            "pandas: frame.to_csv), or name the file's format with --format"
        )
    return form or _FORMATS.get(suffix, "libsvm")


def strip_compression(path: str) -> Path:
    """Return the file name without the suffix of a compressed file, such as .gz."""
    file = Path(path)
    return file.with_suffix("") if is_compressed(path) else file


def is_compressed(path: str) -> bool:
    """Return True if the file name has the suffix of a compressed file."""
    return Path(path).suffix.lower() in _COMPRESSED


def check_model_name(path: Path, *converted: str) -> None:
    """Raise if the suffix is one that mercer does not write, or that only ``mercer convert`` writes (`converted`)."""
    suffix = path.suffix.lower()
    if suffix in converted:
        raise ValueError(f"{path}: save the model as .mercer first; mercer convert then turns it into {suffix}")
    if suffix in OTHER_MODELS:
        raise ValueError(
            f"{path}: mercer does not write {suffix} models; it writes .mercer, .onnx and .c, and for any other "
            "suffix, such as .model, LIBSVM's or LIBLINEAR's format"
        )


def add_data_arguments(
    parser: argparse.ArgumentParser,
    target: str,
    data: str = f"{DATA_KINDS}; - is standard input",
    nargs: str | None = None,
) -> None:
    """Add the argument DATA and the options --format and --target; `data` and `target` are help texts."""
    parser.add_argument("file", nargs=nargs, metavar="DATA", help=data)
    parser.add_argument("--format", choices=FORMATS, help="format of DATA; default: by its suffix, else LIBSVM text")
    parser.add_argument("--target", metavar="COLUMN", help=target)


def add_reading_options(group: argparse._ActionsContainer) -> None:
    """Add the options that every command reading tables has."""
    group.add_argument(
        "--separator",
        type=_parse_separator,
        metavar="MARK",
        help="character between the cells of a CSV file, or tab; default: guessed",
    )
    group.add_argument(
        "--decimal",
        choices=(",", "."),
        metavar="MARK",
        help="decimal mark of a CSV file, a comma or a point; default: guessed",
    )
    group.add_argument(
        "--na",
        type=_parse_marks,
        metavar="MARKS",
        help="further marks of missing values, separated by commas, such as unknown,- (empty cells, NA and the like "
        "always count as missing)",
    )
    group.add_argument("--sheet", metavar="NAME", help="sheet of an Excel file; default: the first that has cells")
    group.add_argument(
        "--encoding",
        help="encoding of a CSV file; default: UTF-8 or UTF-16, else Windows-1252 if the file looks like it",
    )


def dialect_from_options(args: argparse.Namespace) -> Dialect:
    """Return the CSV settings that the options give; raise for an option that the file's format has no use for."""
    form = format_of(args.file, args.format)
    if form not in ("csv", "tsv"):
        useful_options = {"parquet": ("sheet",), "arrow": ("sheet",), "excel": ()}.get(form, ("na", "sheet"))
        useless = given_options(args, (*_CSV_OPTIONS, *useful_options))
        if useless:
            file_type = "Excel" if useless[0] == "--sheet" else "CSV"
            raise ValueError(
                f"{useless[0]} is for {file_type} files, but {args.file} is read as {_NAMES[form]}: leave it out"
            )
    elif given_options(args, ("sheet",)):
        raise ValueError(f"--sheet is for Excel files, but {args.file} is a CSV file: leave it out")
    return Dialect(args.separator, args.decimal, args.encoding, na=args.na)


def check_text_output(path: str) -> None:
    """Raise if the suffix of an output file promises another format than the text that is written."""
    suffix = Path(path).suffix.lower()
    if is_compressed(path) or _FORMATS.get(suffix, "csv") not in ("csv", "tsv"):
        raise ValueError(f"{path}: the output is text, not a {suffix} file; for a table name a .csv file")


def parse_share(text: str) -> float:
    """Return a number between 0 and 1, both excluded; for argparse."""
    try:
        share = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1") from None
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return share


def integer_from(least: int, largest: int) -> Callable[[str], int]:
    """Return a function that reads an integer between two others, both included; for argparse."""

    def parse(text: str) -> int:
        if not re.fullmatch("[+-]?[0-9]{1,20}", text) or not least <= int(text) <= largest:
            raise argparse.ArgumentTypeError(f"{text} is not an integer from {least} to {largest}")
        return int(text)

    return parse


parse_seed = integer_from(0, 2**32 - 1)


def given_options(args: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Return the options among `names` whose value differs from the default, as the user types them."""
    changed_options = []
    for action in args.parser._actions:
        if action.dest in names and action.option_strings:
            default = action.default
            if isinstance(default, str) and callable(action.type):  # argparse converts a default only when it is used
                default = action.type(default)
            if getattr(args, action.dest) != default:
                changed_options.append(action.option_strings[-1])
    return changed_options


def _parse_marks(text: str) -> str:
    """Split marks of missing values at commas; return one per line."""
    return "\n".join(filter(None, (mark.strip() for mark in text.split(","))))


def _parse_separator(text: str) -> str:
    """Return the character that a word such as tab stands for, or the character itself."""
    separator = _SEPARATORS.get(text.lower(), text)
    if len(separator) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one character, nor one of {', '.join(_SEPARATORS)}")
    return separator
