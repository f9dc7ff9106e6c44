"""``mercer checkdata``: check whether a text file is in LIBSVM's format, as checkdata.py does."""

from __future__ import annotations

import argparse
import io

from mercer.cli.terminal import Subparsers, add_command


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "checkdata",
        run,
        ("mercer checkdata heart", "prints the first error with its line and column"),
        usage="mercer checkdata DATA",
        description="Read a LIBSVM text file as training would and print its first error, as checkdata.py does.",
    )
    parser.add_argument("file", metavar="DATA", help="LIBSVM text; - is standard input")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    import sys

    from mercer.files.libsvm_text import read_bytes_unpacked, read_labelled_text

    content = sys.stdin.buffer.read() if args.file == "-" else read_bytes_unpacked(args.file)
    if bytes(content[-1:]) not in (b"", b"\n"):
        raise ValueError(f"{args.file}: the last line must end with a newline for svm-train")
    text = read_labelled_text(_NamedBytes(content, "<stdin>" if args.file == "-" else args.file), first_index=0)
    if text.X.shape[0] == 0:
        raise ValueError(f"{args.file} contains no rows")
    print("No error.")


class _NamedBytes(io.BytesIO):
    """The bytes of a file, under the name that error messages show."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name
