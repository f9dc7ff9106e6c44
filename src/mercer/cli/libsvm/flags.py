"""Translation of LIBSVM's one-letter options into mercer's long options before argparse reads them.

As in LIBSVM, only the letter after ``-`` counts and the value is the next word, whatever it looks like; ``-q`` takes
none, and ``-w`` contains a class: ``-w1 10``, ``-w-1 2``. An unknown letter is reported as LIBSVM reports it, the
option on stderr and the usage on stdout, with the exit code of wrong usage. Options may also follow the file names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from mercer.cli.machines import KERNELS, LIBSVM_MACHINES
from mercer.cli.terminal import printable

_NUMBERED_OPTIONS: Final = {"--machine": LIBSVM_MACHINES, "--kernel": KERNELS}


def translate(argv: Sequence[str], command: argparse.ArgumentParser) -> list[str]:
    """Return ``argv`` with long options, each joined to its value in one word, and the file names last.

    The parser of the command defines the letters and the options without a value.
    """
    options = [action for action in command._actions if action.option_strings and action.dest != "help"]
    letters = {
        short[1:]: long for *short_forms, long in (names.option_strings for names in options) for short in short_forms
    }
    switches = {option for action in command._actions if action.nargs == 0 for option in action.option_strings}
    usage = command.get_default("one_line_usage")
    words = list(argv)
    out: list[str] = []
    files: list[str] = []
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            files.append(word)
            continue
        if word.startswith("--"):
            if "=" in word or word in switches:
                out.append(word)
            elif words:
                out.append(f"{word}={words.pop(0)}")
            else:  # an option without its value stays last: it must not take the name of a file for it
                return [*files, *out, word]
            continue
        letter = word[1:] if word[1:] in letters else word[1]  # grid.py has options of several letters: -log2c
        if letter not in letters:
            _exit_with_usage(f"Unknown option: -{letter}", usage)
        long = letters[letter]
        if long in switches:
            out.append(long)
            continue
        count = 2 if long == "--target-range" else 1
        if len(words) < count:
            _exit_with_usage(f"mercer: -{letter} needs a value", usage)
        values, words = words[:count], words[count:]
        if long == "--weight":
            out.append(f"--weight={word[2:]}:{values[0]}")
        elif long in _NUMBERED_OPTIONS:
            out.append(f"{long}={_name_of_number(values[0], _NUMBERED_OPTIONS[long])}")
        elif count == 2:
            out.append(f"{long}={','.join(values)}")
        else:
            out.append(f"{long}={values[0]}")
    return out + files


def _name_of_number(text: str, names: Sequence[str]) -> str:
    """Return the name for LIBSVM's number; a name is returned unchanged."""
    return names[int(text)] if text.isdecimal() and int(text) < len(names) else text


def _exit_with_usage(message: str, usage: str) -> NoReturn:
    """Print the error and the usage as LIBSVM does, and exit with code 2."""
    print(printable(message, sys.stderr), file=sys.stderr)
    print(usage)
    raise SystemExit(2)
