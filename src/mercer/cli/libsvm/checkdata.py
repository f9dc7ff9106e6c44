"""``mercer checkdata``: checkdata.py, which says whether a text file is in LIBSVM's format."""

from __future__ import annotations

import argparse

from mercer.cli.terminal import Subparsers, add_command


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "checkdata",
        run,
        ("mercer checkdata heart", "the first fault, by line and column, and exit code 1"),
        usage="mercer checkdata DATA",
        description="Read a LIBSVM text file as training would, and say what is wrong with it, as checkdata.py does.",
    )
    parser.add_argument("file", metavar="DATA", help="LIBSVM text; - is standard input")


def run(args: argparse.Namespace) -> None:
    import io
    import sys

    from mercer.files.libsvm_text import content_of, read_labelled_text

    content = sys.stdin.buffer.read() if args.file == "-" else content_of(args.file)
    if bytes(content[-1:]) not in (b"", b"\n"):
        raise ValueError(f"{args.file}: the last line does not end with a newline, without which svm-train reads on")
    text = read_labelled_text(io.BytesIO(bytes(content)), first_index=0)
    if text.X.shape[0] == 0:
        raise ValueError(f"{args.file} holds no rows")
    print("No error.")
