"""Replacing a file so that, whatever happens, its path holds the old bytes or the new, never a mixture."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file beside ``path`` for writing; it takes the place of ``path`` only if the block succeeds.

    A symbolic link stays a link and its target is replaced. A path that holds anything but a regular file is
    refused.
    """
    target = checked_target(path)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    # O_EXCL: never write through what somebody else left under this name. Mode 0o666 lets the umask decide.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)
    except OSError as error:  # nobody knows the temporary file by name
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def checked_target(path: str | os.PathLike[str]) -> Path:
    """Where saving to ``path`` will write; a place that cannot be written to is refused, best before any work."""
    if os.fspath(path) == "":
        raise FileNotFoundError("the path to save to is empty; give a file name such as 'model.mercer'")
    target = Path(os.path.realpath(path))
    _refuse_what_is_no_file(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {os.fspath(path)!r}: there is no folder {str(target.parent)!r}; make it"
        )
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"cannot save to {os.fspath(path)!r}: {str(target.parent)!r} may not be written to")
    return target


def _refuse_what_is_no_file(target: Path) -> None:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"cannot save to {str(target)!r}: it is a directory; give a file name")
    if not stat.S_ISREG(mode):
        raise OSError(f"cannot save to {str(target)!r}: it is a device, pipe or socket; give a file name")


def _sync_folder(folder: Path) -> None:
    # The rename is durable only once the folder is; Windows cannot open folders and needs no such step.
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems refuse to sync a folder; the file itself is already safe
    finally:
        os.close(descriptor)
