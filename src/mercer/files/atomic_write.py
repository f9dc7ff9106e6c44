"""Replacing a file so that, whatever happens, its path holds the old bytes or the new, never a mixture."""

from __future__ import annotations

import os
import re
import secrets
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file beside ``path`` for writing; it takes the place of ``path`` only if the block succeeds.

    A symbolic link stays a link and its target is replaced. Where there was a file, the new one has its mode, its group
    if that may be given, and on Linux its access control list, so that what was private stays private. A path that
    holds anything but a regular file is refused. Where the system has files without names, the new one gets its name at
    the end, so that a process that is killed leaves nothing. Elsewhere it may leave a file with a name, which the next
    one that writes here removes.
    """
    target = checked_target(path)
    _remove_leftovers(target)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor, named = _new_file(temporary)
    except OSError as error:  # nobody knows the temporary file by name
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            _keep_access(descriptor, target)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not named:
                _name(file.fileno(), temporary)
            if os.name == "posix":
                os.replace(temporary, target)  # before the lock goes
        if os.name != "posix":
            os.replace(temporary, target)  # Windows renames no open file
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def _new_file(temporary: Path) -> tuple[int, bool]:
    """A new file, open and locked, and whether it has its name already. Mode 0o666 lets the umask decide."""
    nameless = getattr(os, "O_TMPFILE", 0)
    if nameless and Path("/proc/self/fd").is_dir():
        with suppress(OSError):  # of file systems that have no such files
            descriptor = os.open(temporary.parent, os.O_WRONLY | nameless, 0o666)
            _lock(descriptor)
            return descriptor, False
    # O_EXCL: never write through what somebody else left under this name.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    _lock(descriptor)
    return descriptor, True


def _keep_access(descriptor: int, target: Path) -> None:
    """Give the new file the mode, group and access control list of the one that it replaces, before it has a byte.

    If the group cannot be kept, the new file's group may do no more than everybody.
    """
    if os.name != "posix" or not target.exists():
        return
    old, new = target.stat(), os.fstat(descriptor)
    mode = stat.S_IMODE(old.st_mode) & 0o777
    same_group = old.st_gid == new.st_gid
    if not same_group:
        with suppress(OSError):  # not a group of this user
            os.fchown(descriptor, -1, old.st_gid)
            same_group = True
    entries = _access_list(target)
    if entries is not None:  # beside which the bits of the group are a mask; setting it sets all bits
        mode &= 0o700
    elif not same_group:
        mode = mode & ~0o070 | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)
    _set_access_list(descriptor, entries if same_group else _with_group_as_others(entries))


_ACCESS_LIST = "system.posix_acl_access"
# Of each entry: its tag, its permissions, and whose they are. The first four bytes are the version.
_ENTRY = struct.Struct("<HHI")
_OWNING_GROUP, _OTHERS = 0x04, 0x20


def _access_list(target: Path) -> bytes | None:
    """The access control list of a file as Linux stores it; None where there is none."""
    if sys.platform == "linux":
        with suppress(OSError):  # none, or the file system has no lists
            return os.getxattr(target, _ACCESS_LIST)
    return None


def _set_access_list(descriptor: int, entries: bytes | None) -> None:
    """Give a file a list, or take away the one that it has from its folder's default; mode bits follow the list."""
    if sys.platform == "linux":
        with suppress(OSError):  # without its list the file is its owner's alone
            if entries is None:
                os.removexattr(descriptor, _ACCESS_LIST)
            else:
                os.setxattr(descriptor, _ACCESS_LIST, entries)


def _with_group_as_others(entries: bytes | None) -> bytes | None:
    """A list whose owning group may do no more than everybody."""
    if entries is None:
        return None
    found = list(_ENTRY.iter_unpack(entries[4:]))
    others = next(permissions for tag, permissions, _ in found if tag == _OTHERS)
    lowered = [(tag, own & others if tag == _OWNING_GROUP else own, whose) for tag, own, whose in found]
    return entries[:4] + b"".join(_ENTRY.pack(*entry) for entry in lowered)


def _name(descriptor: int, temporary: Path) -> None:
    folder = os.open(temporary.parent, os.O_RDONLY)
    try:
        # With a folder given, Python calls linkat, which follows the link in /proc to the file.
        os.link(f"/proc/self/fd/{descriptor}", temporary.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _lock(descriptor: int) -> bool:
    """Lock a file; False if the process that writes it lives. Windows removes no open file anyway."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove what processes that were killed while writing this file have left."""
    name = re.compile(rf"\.{re.escape(target.name[:100])}\.[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for entry in os.scandir(target.parent):
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    descriptor = os.open(entry.path, os.O_RDONLY)
                    try:
                        if _lock(descriptor):
                            os.unlink(entry.path)
                    finally:
                        os.close(descriptor)


def checked_target(path: str | os.PathLike[str]) -> Path:
    """Where saving to ``path`` will write; a place that cannot be written to is refused, best before any work."""
    if os.fspath(path) == "":
        raise FileNotFoundError("the path to save to is empty; give a file name such as 'model.mercer'")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"cannot save to {str(target)!r}: it is a directory; give a file name")
    if target.exists() and not target.is_file():
        raise OSError(f"cannot save to {str(target)!r}: it is a device, pipe or socket; give a file name")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {os.fspath(path)!r}: there is no folder {str(target.parent)!r}; make it"
        )
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"cannot save to {os.fspath(path)!r}: {str(target.parent)!r} may not be written to")
    return target


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
