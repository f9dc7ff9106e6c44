"""``mercer install-libsvm-names``: install programs called svm-train, svm-predict and svm-scale.

Scripts written for LIBSVM, such as grid.py and easy.py, look for these names; each program runs the mercer command.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.files.atomic_write import replacing

_NAMES: Final = {"svm-train": "train", "svm-predict": "predict", "svm-scale": "scale"}
_MARK: Final = "# written by mercer install-libsvm-names"


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "install-libsvm-names",
        run,
        ("mercer install-libsvm-names names", "writes names/svm-train and the others"),
        ("python grid.py -svmtrain names/svm-train heart", "LIBSVM's grid search, computed by mercer"),
        description="Write programs called svm-train, svm-predict and svm-scale, which run mercer train, predict and "
        "scale, so that scripts written for LIBSVM, such as its grid.py and easy.py, run unchanged. Files of these "
        "names that this command did not write are not overwritten.",
    )
    parser.add_argument(
        "folder", metavar="DIR", type=Path, help="folder for the programs; it is created if it does not exist"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    if os.name != "posix":
        raise NotImplementedError(
            "these programs are shell scripts and need a POSIX system; on Windows call mercer train itself"
        )
    paths = {args.folder / name: command for name, command in _NAMES.items()}
    foreign_paths = [str(path) for path in paths if not _is_ours(path)]
    if foreign_paths:
        raise FileExistsError(
            f"{', '.join(foreign_paths)} already exists and was not written by this command; remove it, or name "
            "another folder"
        )
    args.folder.mkdir(parents=True, exist_ok=True)
    for path, command in paths.items():
        with replacing(path) as file:
            file.write(_script(command).encode())
            os.chmod(file.fileno(), 0o777 & ~_umask())
        if not args.quiet:
            print(printable(f"wrote {path}, which runs mercer {command}"))


def _is_ours(path: Path) -> bool:
    """Return True if the path does not exist, or is a file that this command wrote."""
    if not os.path.lexists(path):
        return True
    return path.is_file() and not path.is_symlink() and _MARK.encode() in path.read_bytes()[:4096].splitlines()


def _script(command: str) -> str:
    """Return a shell script that runs a command of mercer."""
    # A #! line cannot name an interpreter whose path has blanks or is long, so sh starts it.
    python = sys.executable.replace("'", "'\\''")
    code = f'import sys; from mercer.cli.main import command; command(["{command}", *sys.argv[1:]])'
    return f"#!/bin/sh\n{_MARK}\nexec '{python}' -c '{code}' \"$@\"\n"


def _umask() -> int:
    """Return the permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
