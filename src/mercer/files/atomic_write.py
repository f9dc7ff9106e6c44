"""Atomic replacement of files: whatever happens, a path holds the old bytes or the new ones, never a mixture."""

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
    """Open a new file for writing; it takes the place of ``path`` only if the block succeeds.

    A symbolic link stays a link, and its target is replaced. The new file takes over the mode of the old one, its group
    if permitted, and on Linux its access control list, so that a private file stays private. A path that is not a
    regular file is refused. If the system has unnamed files (O_TMPFILE), the new file gets its name at the end, and a
    process that is killed leaves nothing behind. On other systems it may leave a temporary file next to ``path``,
    which the next call for the same path removes.
    """
    target = check_save_path(path)
    _remove_leftovers(target)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor, has_name = _new_file(temporary)
    except OSError as error:  # the user does not know the name of the temporary file
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            _keep_access(descriptor, target)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not has_name:
                _link(file.fileno(), temporary)
            if os.name == "posix":
                os.replace(temporary, target)  # while the file is still locked
        if os.name != "posix":
            os.replace(temporary, target)  # Windows cannot rename an open file
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def _new_file(temporary: Path) -> tuple[int, bool]:
    """Create and lock a new file; return its descriptor, and whether it has its name already.

    The file is created with mode 0o666, from which the process's umask removes permissions.
    """
    unnamed_flag = getattr(os, "O_TMPFILE", 0)
    if unnamed_flag and Path("/proc/self/fd").is_dir():
        with suppress(OSError):  # the file system does not support unnamed files
            descriptor = os.open(temporary.parent, os.O_WRONLY | unnamed_flag, 0o666)
            _lock(descriptor)
            return descriptor, False
    # O_EXCL: do not write into a file or link that another user placed under this name.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    _lock(descriptor)
    return descriptor, True


def _keep_access(descriptor: int, target: Path) -> None:
    """Give the new, still empty file the mode, group and access control list of the file that it replaces.

    If the group cannot be kept, the new group gets no more permissions than all other users.
    """
    if os.name != "posix" or not target.exists():
        return
    old_status, new_status = target.stat(), os.fstat(descriptor)
    mode = stat.S_IMODE(old_status.st_mode) & 0o777
    has_same_group = old_status.st_gid == new_status.st_gid
    if not has_same_group:
        with suppress(OSError):  # if this user is not a member of the group, the group stays as it is
            os.fchown(descriptor, -1, old_status.st_gid)
            has_same_group = True
    entries = _access_list(target)
    if entries is not None:  # the group bits are then a mask; setting the list sets all bits
        mode &= 0o700
    elif not has_same_group:
        mode = mode & ~0o070 | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)
    _set_access_list(descriptor, entries if has_same_group else _limit_group(entries))


_ACCESS_LIST = "system.posix_acl_access"
# Entry of an access control list: tag, permissions, user or group. A list begins with four bytes of version.
_ENTRY = struct.Struct("<HHI")
_OWNING_GROUP, _OTHERS = 0x04, 0x20


def _access_list(target: Path) -> bytes | None:
    """Return the access control list of a file as Linux stores it; None if it has none."""
    if sys.platform == "linux":
        with suppress(OSError):  # no list, or none supported by the file system
            return os.getxattr(target, _ACCESS_LIST)
    return None


def _set_access_list(descriptor: int, entries: bytes | None) -> None:
    """Set the access control list of a file; None removes one inherited from its folder. Mode bits follow the list."""
    if sys.platform == "linux":
        with suppress(OSError):  # without its list, only the owner has access
            if entries is None:
                os.removexattr(descriptor, _ACCESS_LIST)
            else:
                os.setxattr(descriptor, _ACCESS_LIST, entries)


def _limit_group(entries: bytes | None) -> bytes | None:
    """Return a list in which the owning group has no more permissions than all other users."""
    if entries is None:
        return None
    unpacked_entries = list(_ENTRY.iter_unpack(entries[4:]))
    others = next(permissions for tag, permissions, _ in unpacked_entries if tag == _OTHERS)
    limited_entries = [
        (tag, bits & others if tag == _OWNING_GROUP else bits, owner) for tag, bits, owner in unpacked_entries
    ]
    return entries[:4] + b"".join(_ENTRY.pack(*entry) for entry in limited_entries)


def _link(descriptor: int, temporary: Path) -> None:
    """Give an unnamed file its name."""
    folder = os.open(temporary.parent, os.O_RDONLY)
    try:
        # With dst_dir_fd, Python calls linkat, which follows the link in /proc to the file.
        os.link(f"/proc/self/fd/{descriptor}", temporary.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _lock(descriptor: int) -> bool:
    """Lock a file; return False if another process is still writing it. Windows never removes an open file anyway."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of processes that were killed while writing this file."""
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


def check_save_path(path: str | os.PathLike[str]) -> Path:
    """Return the file that saving to ``path`` writes; raise if that is impossible, before any work is done."""
    if os.fspath(path) == "":
        raise FileNotFoundError("cannot save to an empty path; give a file name such as 'model.mercer'")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"cannot save to {str(target)!r}: it is a directory; give a file name")
    if target.exists() and not target.is_file():
        raise OSError(f"cannot save to {str(target)!r}: it is a device, pipe or socket; give a file name")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {os.fspath(path)!r}: the folder {str(target.parent)!r} does not exist; create it first"
        )
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"cannot save to {os.fspath(path)!r}: the folder {str(target.parent)!r} is not writable")
    return target


def _sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable; Windows cannot open folders and does not need this."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems refuse to sync a folder; the file itself is already safe
    finally:
        os.close(descriptor)
