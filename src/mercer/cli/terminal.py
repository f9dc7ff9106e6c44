"""Text on the terminal: help with examples, characters that the console can show, warnings, errors, timings."""

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

EXIT_CODES_HELP = "exit codes: 0 done, 1 failed (one line on standard error says why), 2 wrong usage, 130 interrupted"
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


class ExamplesFormatter(argparse.HelpFormatter):
    """Help formatter that keeps line breaks, as in examples, and names the value of an option once."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def format_examples(*lines: tuple[str, str], closing: str = "") -> str:
    """Format pairs (command, purpose), with the purpose next to a short command and below a long one."""
    width = max((len(command) for command, _ in lines if len(command) <= 56), default=56)
    formatted = []
    for command, purpose in lines:
        gap = " " * (width - len(command)) if len(command) <= width else f"\n  {'':{width}}"
        formatted.append(f"  {command}{gap}  {purpose}" if purpose else f"  {command}")
    return "\n".join(["examples:", *formatted, *(["", closing] if closing else [])])


# argparse has no public name for this type.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Subparsers,
    name: str,
    run: Callable[[argparse.Namespace], None],
    *examples: tuple[str, str],
    closing: str = "",
    files: str = "",
    computes: bool = False,
    **options: Any,
) -> argparse.ArgumentParser:
    """Add a subcommand that calls `run`, with examples in its help, and return its parser.

    `files` names the file arguments of the LIBSVM program that the command replaces, for LIBSVM's one-line usage.
    A command that `computes` has the option --device.
    """
    epilog = format_examples(*examples, closing=closing)
    parser = commands.add_parser(name, allow_abbrev=False, formatter_class=ExamplesFormatter, epilog=epilog, **options)
    usage = f"usage: mercer {name} [options] {files}; see mercer {name} --help" if files else None
    if computes:
        text = "device to compute on (default: the value of MERCER_DEVICE, or cpu)"
        parser.add_argument("--device", metavar="NAME", help=text)
    parser.set_defaults(device=None, computes=computes, run=run, parser=parser, one_line_usage=usage)
    return parser


def printable(text: str, stream: TextIO | None = None) -> str:
    """Return ``text`` as a stream (default: standard output) can show it.

    Control characters become escapes, and characters that the stream cannot encode are spelt in ASCII. Every text that
    may contain a part of a file, or a file name, is printed through this function.
    """
    text = escape_controls(text)
    encoding = (sys.stdout if stream is None else stream).encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


# Messages of the library name Python parameters; the command line shows the options in their place.
_OPTION_WORDING = {
    "in categorical or drop": "with --categorical or --drop",
    "in numeric if that is right, else write": "with --numeric if that is right, else write",
    "in numeric if that is right, else in categorical": "with --numeric if that is right, else with --categorical",
    "in categorical if that is right, else in numeric": "with --categorical if that is right, else with --numeric",
    "in categorical if that is right, else in drop": "with --categorical if that is right, else with --drop",
    "in categorical to give each level a column, or in drop": "with --categorical to give each level a column, or with "
    "--drop",
    "or name it in drop": "or name it with --drop",
    "in text if that is right, else in drop": "with --text if that is right, else with --drop",
    "in the parameter text to use": "with --text to use",
    "class_weight='balanced'": "--class-weight balanced",
    "machine='svc'": "--machine svc",
    "machine='svr'": "--machine svr",
    "easy and tune search": "mercer easy and mercer tune search",
    "easy names such rows": "mercer easy names such rows",
    **dict.fromkeys(
        (
            f"predict new rows with predict or {other}; explain says why"
            for other in ("predict_proba", "predict_interval")
        ),
        "predict new rows with mercer predict NEW.csv MODEL; mercer explain MODEL NEW.csv says why",
    ),
    "in drop if that is right, else in only, categorical or text": "with --drop if that is right, else with --only, "
    "--categorical or --text",
    "in drop if that is right, else in numeric, categorical or text": "with --drop if that is right, else with "
    "--numeric, --categorical or --text",
    "in numeric, categorical or drop": "with --numeric, --categorical or --drop",
    "in only, categorical or text": "with --only, --categorical or --text",
    "missing='drop'": "--missing drop",
    "model.table.columns_told() lists all": "--verbose lists all",
    "correct or empty the cell": "correct or empty the cell (--na names marks of missing values)",
    " (a frame: as numbers)": "",
    "add 1 to every index, or read it in Python with first_index=0": "add 1 to every index of the file",
}


def as_options(text: str) -> str:
    """Return a message with the options of the command line in place of Python parameters."""
    for parameters, options in _OPTION_WORDING.items():
        text = text.replace(parameters, options)
    return text


def round_fractions(text: str) -> str:
    """Round long fractions in ``text`` to six digits, so that a gamma of 0.24999999999999994 is shown as 0.25."""
    return re.sub(r"\d+\.\d{7,}(e[-+]\d+)?", lambda number: f"{float(number[0]):.6g}", text)


def show_warning(text: str) -> None:
    """Print a warning as one line on standard error, unless this command has printed the same text before."""
    line = f"mercer: warning: {as_options(' '.join(text.split()))}"
    if line not in _SHOWN:
        _SHOWN.add(line)
        wipe_line()
        print_error(line)


_SHOWN: set[str] = set()


def reset_warnings() -> None:
    """Forget which warnings were shown, at the start of a command."""
    _SHOWN.clear()


def print_error(line: str) -> None:
    """Print one line on standard error; a terminal gets it wrapped to 100 columns."""
    line = printable(line, sys.stderr)
    if sys.stderr.isatty():
        line = "\n".join(
            textwrap.wrap(line, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        )
    print(line, file=sys.stderr)


class Clock:
    """Stopwatch: seconds of each lap, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._start_time = self._last_time = time.perf_counter()

    def lap(self, name: str) -> None:
        """Store the seconds since the previous lap, or since the start."""
        now = time.perf_counter()
        self.laps[name] = now - self._last_time
        self._last_time = now

    @property
    def total(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start_time
