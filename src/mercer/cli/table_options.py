"""The options of every command that reads tables: how a CSV file is written, where the file itself does not tell."""

from __future__ import annotations

import argparse
from typing import Any, Final

from mercer.tables.dialect import Dialect

_NAMES: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "blank": " ", "space": " ", "pipe": "|"}


def add_flags(group: Any) -> None:
    """The options of every command that reads tables."""
    group.add_argument(
        "--separator", type=_separator, metavar="MARK", help="between a CSV's cells, or tab; default: as its lines show"
    )
    group.add_argument("--decimal", choices=(",", "."), help="mark of a CSV's fractions; default: as its numbers show")
    group.add_argument(
        "--na",
        type=_marks,
        metavar="MARKS",
        help="between commas, what stands for a hole in a table's cells beside blanks, NA and the like, such as k.A.,-",
    )
    group.add_argument("--encoding", help="of a CSV; default: UTF-8 or -16, else Windows-1252 if it looks like that")


def asked_for(args: argparse.Namespace) -> Dialect:
    """What the flags say."""
    return Dialect(args.separator, args.decimal, args.encoding, na=args.na)


def _marks(text: str) -> str:
    return "\n".join(filter(None, (mark.strip() for mark in text.split(","))))


def _separator(text: str) -> str:
    found = _NAMES.get(text.lower(), text)
    if len(found) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one character, nor one of {', '.join(_NAMES)}")
    return found
