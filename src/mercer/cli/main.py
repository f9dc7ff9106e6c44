"""The entry point of ``mercer``: picks the subcommand, and turns errors into one line and an exit code.

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
    EXIT_CODES,
    WithExamples,
    as_options,
    examples,
    forget_warnings,
    printable,
    show_warning,
    tell_error,
)

# Each is a module of this room, which is loaded when its command is given.
_COMMANDS = {
    "train": "train a machine and save it",
    "predict": "predict with a trained model",
    "tune": "find C and gamma by cross-validation, as grid.py does",
    "easy": "a table in, a tuned, judged and explained model out; on LIBSVM text what easy.py does",
    "explain": "say what matters to a model, and why it answers as it does",
    "scale": "scale the features of a LIBSVM text file",
    "svm_learn": "train as SVMlight does",
    "svm_classify": "evaluate a model as SVMlight does",
    "checkdata": "say whether a LIBSVM text file is sound",
    "subset": "draw rows of a LIBSVM text file",
    "inspect": "tell what a model file holds",
    "convert": "convert a model to another format",
    "plot": "draw the decision of a model",
    "toy": "an exact SVM under your hand, in the browser",
    "install-libsvm-names": "programs called svm-train and so on",
}
# Modules of commands that are called otherwise than the command.
_HOMES = {
    "scale": "libsvm.scale",
    "install-libsvm-names": "libsvm.install_names",
    "svm_learn": "svmlight.learn",
    "svm_classify": "svmlight.classify",
    "checkdata": "libsvm.checkdata",
    "subset": "libsvm.subset",
}
# What the library raises for data, parameters and files it cannot work with. Anything else is a defect, and
# its traceback is what a bug report needs.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError, NotImplementedError)


def command(argv: Sequence[str] | None = None) -> NoReturn:
    """Be the process ``mercer``.

    It ends when all is written, without taking apart what is in memory: a fifth of the time of a small command.
    """
    code = main(argv)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # whoever read it has left
            stream.flush()
    atexit._run_exitfuncs()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``mercer`` with the arguments ``argv`` (those of the process if None) and return its exit code."""
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, *thresholds[1:])  # importing makes much and frees little: a tenth of a start's time
    try:
        return _main(argv)
    except KeyboardInterrupt:  # also while libraries are loaded
        print("mercer: interrupted", file=sys.stderr)
        return 130
    finally:
        gc.set_threshold(*thresholds)


def _main(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    parser, commands = _parser(words[0] if words else "")
    own = commands.get(words[0]) if words else None
    if own is not None and own.get_default("one_line_usage"):
        words[1:] = translate(words[1:], own)
    if not words:
        parser.print_help(sys.stderr)
        parser.exit(2)
    if own is None and not words[0].startswith("-"):
        parser.error(f"there is no command {words[0]!r}{_meant(words[0], commands)}; see mercer --help")
    if own is None and words[0].partition("=")[0] not in parser._option_string_actions:
        parser.error(f"unknown option {words[0]}{_meant(words[0], parser._option_string_actions)}; see mercer --help")
    args, unknown = parser.parse_known_args(words)
    if unknown:
        options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        meant = _meant(options[0], args.parser._option_string_actions) if options else ""
        told = (
            f"unknown option {printable(options[0])}{meant}"
            if options
            else f"one file too many: {printable(unknown[0])}"
        )
        args.parser.error(f"{told}; see mercer {args.command} --help")
    try:
        with warnings.catch_warnings():
            forget_warnings()
            warnings.showwarning = _show_warning
            warnings.simplefilter("default", UserWarning)  # meant for whoever runs the command, whatever -W says
            with mercer.config_context(device=args.device):
                if args.computes:
                    _check_device()
                args.run(args)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output (head, less) has left; Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except _EXPECTED as error:
        tell_error(f"mercer {args.command}: error: {_one_line(error)}")
        return 1
    return 0


def _check_device() -> None:
    """Raise at once if the device that was asked for is not known, before anything is read or written."""
    from mercer.samples.engine import configured  # here, since it loads NumPy

    configured()


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _parser(given: str) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser, and those of the commands by name; only the given one has its options."""
    parser = argparse.ArgumentParser(
        prog="mercer",
        formatter_class=WithExamples,
        description="Kernel machines that are exact, fast and certified.",
        epilog=examples(
            ("mercer train", "try it, on a data set that comes along"),
            ("mercer easy iris.csv --target species", "a table of your own: all of it in one command"),
            ("mercer train iris.csv --target species -o plain.mercer", "train alone, with every option"),
            ("mercer train -c 10 -g 0.1 heart", "what svm-train -c 10 -g 0.1 heart does"),
            ("mercer inspect iris.mercer", "what the model is, proves and costs"),
            ("mercer predict new.csv iris.mercer", "predict"),
            ("mercer COMMAND --help", "the options of a command"),
            after=EXIT_CODES,
        ),
    )
    parser.add_argument("--version", action="version", version=f"mercer {mercer.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in _COMMANDS.items():
        if name == given:
            import_module(f"mercer.cli.{_HOMES.get(name, name)}").register(commands)
        else:
            commands.add_parser(name, help=purpose)
    return parser, commands.choices


def _one_line(error: BaseException) -> str:
    told = str(error)
    if isinstance(error, MemoryError):
        told = (
            "the data need more memory than this computer has left (packed files unpack to many times their size); "
            f"take fewer rows or columns, or more memory{f': {told}' if told else ''}"
        )
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        told = f"can't open {os.fsdecode(error.filename)}: {error.strerror}"
    text = as_options(" ".join(told.split()))
    return text or type(error).__name__


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    show_warning(str(message))
