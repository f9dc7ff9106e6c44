"""What a person at a terminal reads: help with examples, text that the console can show, warnings, seconds."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any, TextIO, TypeAlias

from mercer.runtime.control_characters import escape_controls
from mercer.runtime.progress import wipe_line

EXIT_CODES = "exit codes: 0 done, 1 failed (one line on standard error says why), 2 wrong usage, 130 interrupted"
_ASCII = str.maketrans(
    {
        "γ": "gamma",
        "‖": "||",
        "×": "x",
        "·": "-",
        "−": "-",
        "≤": "<=",
        "●": "x",
        "○": "o",
        "→": "->",
        "…": "...",
        "½": "1/2",
        "²": "^2",
        "±": "+-",
        "█": "#",
    }
)


class WithExamples(argparse.HelpFormatter):
    """Leaves texts that have lines of their own, such as examples, as they are; tells an option's value once."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def examples(*lines: tuple[str, str], after: str = "") -> str:
    """Commands, each with what it is for: beside it, or below one that is long."""
    width = max((len(command) for command, _ in lines if len(command) <= 56), default=56)
    shown = []
    for command, purpose in lines:
        gap = " " * (width - len(command)) if len(command) <= width else f"\n  {'':{width}}"
        shown.append(f"  {command}{gap}  {purpose}" if purpose else f"  {command}")
    return "\n".join(["examples:", *shown, *(["", after] if after else [])])


# Of argparse, whose own name is private.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Subparsers,
    name: str,
    run: Callable[[argparse.Namespace], None],
    *shown: tuple[str, str],
    after: str = "",
    files: str = "",
    computes: bool = False,
    **options: Any,
) -> argparse.ArgumentParser:
    """The parser of a subcommand that `run` carries out.

    It has examples. Where it takes the place of a program of LIBSVM's, `files` are what that reads and writes. One that
    `computes` can be told where.
    """
    epilog = examples(*shown, after=after)
    parser = commands.add_parser(name, allow_abbrev=False, formatter_class=WithExamples, epilog=epilog, **options)
    usage = f"usage: mercer {name} [options] {files}; see mercer {name} --help" if files else None
    if computes:
        told = "where to compute (default: what MERCER_DEVICE says, or cpu, which is this machine)"
        parser.add_argument("--device", metavar="NAME", help=told)
    parser.set_defaults(device=None, computes=computes, run=run, parser=parser, one_line_usage=usage)
    return parser


def printable(text: str, stream: TextIO | None = None) -> str:
    """``text`` for standard output or another stream: control characters as escapes, spelt out what it cannot encode.

    Whatever may hold text of a file, or a name of one, is printed through here.
    """
    text = escape_controls(text)
    encoding = (sys.stdout if stream is None else stream).encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


# How parameters of `mercer.tabular` are named in its messages, and how the options for them are.
_AS_OPTIONS = {
    "in categorical or drop": "with --categorical or --drop",
    "in numeric if that is right, else in categorical": "with --numeric if that is right, else with --categorical",
    "in categorical if that is right, else in numeric": "with --categorical if that is right, else with --numeric",
    "in text if that is right, else in drop": "with --text if that is right, else with --drop",
    "name texts in text to count their words": "--text counts the words of a column",
    "class_weight='balanced'": "--class-weight balanced",
    "machine='svc'": "--machine svc",
    "machine='svr'": "--machine svr",
    "easy and tune search": "mercer easy and mercer tune search",
    **dict.fromkeys(
        (f"predict new rows, and ask why: predict, {sure}, explain" for sure in ("predict_proba", "predict_interval")),
        "mercer predict NEW.csv MODEL; mercer explain MODEL NEW.csv says why",
    ),
    "in drop if that is right, else in only, categorical or text": "with --drop if that is right, else with --only, "
    "--categorical or --text",
    "in only, categorical or text": "with --only, --categorical or --text",
    "missing='drop'": "--missing drop",
    "model.table.columns_told() lists all": "--verbose tells all",
    "correct or empty the cell": "correct or empty the cell (--na names marks of missing values)",
    " (a frame: as numbers)": "",
    "add 1 to every index, or read it in Python with first_index=0": "add 1 to every index of the file",
}


def as_options(text: str) -> str:
    """A message about parameters, with the options of the command line in their place."""
    for parameters, options in _AS_OPTIONS.items():
        text = text.replace(parameters, options)
    return text


def rounded(text: str) -> str:
    """``text`` with its long fractions rounded to six digits: a kernel's gamma of 0.24999999999999994 is 0.25."""
    return re.sub(r"\d+\.\d{7,}(e[-+]\d+)?", lambda number: f"{float(number[0]):.6g}", text)


def show_warning(text: str) -> None:
    """One line on standard error, the same text only once in a command."""
    line = f"mercer: warning: {as_options(' '.join(text.split()))}"
    if line not in _SHOWN:
        _SHOWN.add(line)
        wipe_line()
        tell_error(line)


_SHOWN: set[str] = set()


def forget_warnings() -> None:
    """A new command begins."""
    _SHOWN.clear()


def tell_error(line: str) -> None:
    """On standard error: one line in a pipe, and on a terminal lines of at most 100 columns."""
    line = printable(line, sys.stderr)
    if sys.stderr.isatty():
        line = "\n".join(
            textwrap.wrap(line, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        )
    print(line, file=sys.stderr)


class Clock:
    """Seconds since the lap before, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._begun = self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now

    @property
    def total(self) -> float:
        return time.perf_counter() - self._begun
