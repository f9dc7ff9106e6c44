"""The entry point of ``mercer``: runs the subcommand and turns an error into one line and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import mercer
from mercer.cli.libsvm.flags import translate
from mercer.cli.terminal import (
    EXIT_CODES_HELP,
    ExamplesFormatter,
    as_options,
    format_examples,
    print_error,
    printable,
    reset_warnings,
    show_warning,
)

# Commands and what they do. The module of a command is imported when the command is given.
_COMMANDS = {
    "train": "train a model and save it",
    "predict": "predict with a trained model",
    "tune": "search for C and gamma by cross-validation, as grid.py does",
    "easy": "tune, test, explain and save a model for a table; on LIBSVM text, do what easy.py does",
    "explain": "show which columns matter to a model, and why it predicts what it does",
    "scale": "scale the features of a LIBSVM text file",
    "svm_learn": "train as SVMlight's svm_learn does",
    "svm_classify": "evaluate a model as SVMlight's svm_classify does",
    "checkdata": "check a LIBSVM text file for errors",
    "subset": "draw a random subset of the rows of a LIBSVM text file",
    "inspect": "show what a model file contains",
    "convert": "convert a model to another format",
    "plot": "draw a model's predictions over two features",
    "toy": "play with an exact SVM in the browser",
    "install-libsvm-names": "install programs called svm-train, svm-predict and svm-scale",
}
# Modules whose name differs from that of their command.
_MODULES = {
    "scale": "libsvm.scale",
    "install-libsvm-names": "libsvm.install_names",
    "svm_learn": "svmlight.learn",
    "svm_classify": "svmlight.classify",
    "checkdata": "libsvm.checkdata",
    "subset": "libsvm.subset",
}
# Exceptions that the library raises for data, parameters and files that it cannot work with. Any other exception is
# a defect, and its traceback belongs in a bug report.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError, NotImplementedError)


def command(argv: Sequence[str] | None = None) -> NoReturn:
    """Run ``mercer`` as a process.

    The process ends as soon as its output is written, without the interpreter's clean-up, which takes a fifth of the
    time of a small command.
    """
    code = main(argv)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader of the pipe has closed it
            stream.flush()
    atexit._run_exitfuncs()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``mercer`` with the arguments ``argv`` (default: those of the process) and return its exit code."""
    thresholds = gc.get_threshold()
    # Imports free little memory, and collecting it takes a tenth of the start-up time.
    gc.set_threshold(100_000, *thresholds[1:])
    try:
        return _main(argv)
    except KeyboardInterrupt:  # also during imports
        print("mercer: interrupted", file=sys.stderr)
        return 130
    finally:
        gc.set_threshold(*thresholds)


def _main(argv: Sequence[str] | None) -> int:
    """Parse the arguments and run the subcommand; return the exit code."""
    command_line = list(sys.argv[1:] if argv is None else argv)
    words = command_line.copy()
    parser, commands = _build_parsers(words[0] if words else "")
    subparser = commands.get(words[0]) if words else None
    if subparser is not None and subparser.get_default("one_line_usage"):
        words[1:] = translate(words[1:], subparser)
    if not words:
        parser.print_help(sys.stderr)
        parser.exit(2)
    if subparser is None and not words[0].startswith("-"):
        parser.error(f"there is no command {words[0]!r}{_suggestion(words[0], commands)}; see mercer --help")
    if subparser is None and words[0].partition("=")[0] not in parser._option_string_actions:
        suggestion = _suggestion(words[0], parser._option_string_actions)
        parser.error(f"unknown option {words[0]}{suggestion}; see mercer --help")
    args, unknown = parser.parse_known_args(words)
    args.words = command_line
    if unknown:
        options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        suggestion = _suggestion(options[0], args.parser._option_string_actions) if options else ""
        message = (
            f"unknown option {printable(options[0])}{suggestion}"
            if options
            else f"one file too many: {printable(unknown[0])}"
        )
        args.parser.error(f"{message}; see mercer {args.command} --help")
    try:
        with warnings.catch_warnings():
            reset_warnings()
            warnings.showwarning = _show_warning
            warnings.simplefilter("default", UserWarning)  # shown to the user whatever -W says
            with mercer.config_context(device=args.device):
                if args.computes:
                    _check_device()
                args.run(args)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output (head, less) has closed it; Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except _EXPECTED as error:
        print_error(f"mercer {args.command}: error: {_one_line(error)}")
        return 1
    return 0


def _check_device() -> None:
    """Raise if the device is unknown, before anything is read or written."""
    from mercer.samples.engine import configured_engine  # imported here because it loads NumPy

    configured_engine()


def _suggestion(word: str, known_words: Iterable[str]) -> str:
    """Return " (did you mean …?)" for the known word nearest to ``word``, or nothing."""
    similar_words = get_close_matches(word, list(known_words), n=1)
    return f" (did you mean {similar_words[0]}?)" if similar_words else ""


def _build_parsers(chosen: str) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser, and those of all commands by name; only that of the command `chosen` has its options."""
    parser = argparse.ArgumentParser(
        prog="mercer",
        formatter_class=ExamplesFormatter,
        description="Kernel machines that are exact, fast and certified.",
        epilog=format_examples(
            ("mercer train", "try it on a built-in data set"),
            ("mercer easy iris.csv --target species", "your own table, everything in one command"),
            ("mercer train iris.csv --target species -o plain.mercer", "only train, with every option"),
            ("mercer train -c 10 -g 0.1 heart", "same as svm-train -c 10 -g 0.1 heart"),
            ("mercer inspect iris.mercer", "what the model contains, proves and costs"),
            ("mercer predict new.csv iris.mercer", "predict new rows"),
            ("mercer COMMAND --help", "the options of a command"),
            closing=EXIT_CODES_HELP,
        ),
    )
    parser.add_argument("--version", action="version", version=f"mercer {mercer.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in _COMMANDS.items():
        if name == chosen:
            import_module(f"mercer.cli.{_MODULES.get(name, name)}").register(commands)
        else:
            commands.add_parser(name, help=purpose)
    return parser, commands.choices


def _one_line(error: BaseException) -> str:
    """Return the message of an error as one line, in words of the command line."""
    message = str(error)
    if isinstance(error, MemoryError):
        message = (
            "the data need more memory than this computer has left (compressed files unpack to many times their size); "
            f"use fewer rows or columns, or a computer with more memory{f': {message}' if message else ''}"
        )
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        message = f"can't open {os.fsdecode(error.filename)}: {error.strerror}"
    text = as_options(" ".join(message.split()))
    return text or type(error).__name__


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    show_warning(str(message))
