"""Files in folders that other users may also write to.

A name in a shared folder may be a link to another file, a pipe without a writer, or a file of another user that stays
locked. This module opens only regular files that belong to this user and have one name, replaces files only when the
new data is complete, and waits only a few seconds for a lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from torchdali.errors import warn

__all__ = [
    "FileLock", "close_on_error", "new_file", "open_folder", "open_named", "open_own", "read_into", "room",
    "write_whole",
]  # fmt: skip

_ROOT = 0  # root can read and write all files anyway
PATIENCE = 3.0  # seconds to wait for a lock
_SHORTEST, _LONGEST = 0.0002, 0.002  # seconds between two attempts
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
_PLAIN: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CAREFUL = _PLAIN | _NO_LINK | getattr(os, "O_NONBLOCK", 0)  # don't wait for a pipe's writer
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN | _NO_LINK


def open_folder(path: str, *, own: bool) -> int:
    """Open a folder; if it doesn't exist, create it with access only for this user.

    Args:
        path: Path of the folder.
        own: The folder's name was chosen by torchdali, not by the user: it must not be a link, and must belong to this
            user.

    Raises:
        OSError: the folder cannot be opened or created.
    """
    os.makedirs(path, 0o700, exist_ok=True)
    if own and os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a symbolic link", path)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _PLAIN | (_NO_LINK if own else 0))
    with close_on_error(descriptor):
        if own:
            _check_owner(descriptor, descriptor)
    return descriptor


def open_own(name: str, flags: int, folder: int) -> int:
    """Open a regular file of this user, or create a file that only this user may read.

    Args:
        name: Name of the file in the folder.
        flags: Flags of `os.open`.
        folder: Descriptor of the folder.

    Raises:
        OSError: the file doesn't exist, isn't a regular file, has a second name, or belongs to another user.
    """
    try:
        descriptor = os.open(name, flags | _CAREFUL, 0o600, dir_fd=folder)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise OSError(error.errno, reason, name) from None
    with close_on_error(descriptor):
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "must be a regular file", name)
        if status.st_nlink > 1:
            raise OSError(errno.EMLINK, "it has another name as well, by a hard link", name)
        _check_owner(descriptor, folder, name)
    return descriptor


@contextlib.contextmanager
def close_on_error(descriptor: int) -> Iterator[None]:
    """Close a descriptor if the block raises."""
    try:
        yield
    except BaseException:
        os.close(descriptor)
        raise


def _check_owner(descriptor: int, folder: int, name: str | None = None) -> None:
    owner = os.fstat(descriptor).st_uid
    if owner not in (os.geteuid(), _ROOT) and owner != _owner_of_new_files(folder):
        raise OSError(errno.EPERM, f"it belongs to user {owner}, and this is user {os.geteuid()}", name)


def _owner_of_new_files(folder: int) -> int | None:
    """Return the owner of new files in a folder: on network drives, the owner may be another user."""
    name = _unused_name()
    try:
        descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    except OSError:
        return None
    try:
        return os.fstat(descriptor).st_uid
    finally:
        os.close(descriptor)
        os.unlink(name, dir_fd=folder)


def _unused_name() -> str:
    return f"{secrets.token_hex(8)}.part"


def open_named(path: str) -> BinaryIO:
    """Open a user's file for reading. It may be a link or belong to another user, but must not be a named pipe.

    Raises:
        OSError: the file cannot be opened, or is a pipe, which might never have a writer.
    """
    is_of_a_shell = path.startswith(("/dev/", "/proc/"))  # <(command)
    if stat.S_ISFIFO(os.stat(path).st_mode) and not is_of_a_shell:
        raise OSError(errno.EINVAL, "it is a pipe", path)
    return open(path, "rb")


def new_file(path: str, _flags: int = 0) -> int:
    """Create a new file for writing; an ``opener`` for `open`.

    Raises:
        FileExistsError: the path exists.
    """
    return os.open(path, _NEW, 0o666)


def write_whole(
    name: str, pieces: Iterable[Any], *, folder: int | None = None, mode: int | None = None, lasting: bool = False
) -> None:
    """Write a new file, then rename it over the old file, so that a full disk or a crash keeps the old file intact.

    Args:
        name: Name in `folder`; a path if `folder` is None.
        pieces: Content of the file.
        folder: Descriptor of a folder.
        mode: Permissions; if None, the permissions of the replaced file if it belongs to this user, else the umask's
            default.
        lasting: Wait until the data is on the disk.

    Raises:
        OSError: the file cannot be written.
    """
    beside = os.path.join(os.path.dirname(name), _unused_name())
    descriptor = os.open(beside, _NEW, 0o666 if mode is None else mode, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            if mode is None and hasattr(os, "fchmod"):
                _copy_mode(name, descriptor)
            if lasting:
                os.fsync(descriptor)
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


def _copy_mode(name: str, descriptor: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(name)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            os.fchmod(descriptor, status.st_mode & 0o777)


def read_into(descriptor: int, memory: memoryview, offset: int) -> bool:
    """Fill memory from a file; return whether the file had enough bytes."""
    while len(memory):
        count = os.preadv(descriptor, [memory], offset)
        if not count:
            return False
        memory, offset = memory[count:], offset + count
    return True


def room(error: OSError, folder: str) -> str:
    """Describe a folder's free space, and the remedy, if an error is about space."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return ""
    return f", and {disk.f_frsize * disk.f_bavail:,} are free in {folder}: make room there, or take another"


class FileLock:
    """The lock of a file. `hold` waits for it a few seconds; after a timeout, it does not wait until the lock was free.

    Args:
        name: Name of the file, for the warning.
        by_opening: The lock belongs to the open file (flock(2)), not to the process (lockf(3)).
    """

    def __init__(self, name: str, by_opening: bool = False) -> None:
        self._name, self._by_opening, self._patience = name, by_opening, PATIENCE
        self._warned = False

    @contextlib.contextmanager
    def hold(self, descriptor: int) -> Iterator[None]:
        """Hold the lock.

        Raises:
            TimeoutError: another process holds the lock; the first time, there is also a warning.
            OSError: the file cannot be locked.
        """
        import fcntl

        lock = fcntl.flock if self._by_opening else fcntl.lockf
        deadline, pause = time.monotonic() + self._patience, _SHORTEST
        while True:
            try:
                lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except (BlockingIOError, PermissionError):
                if time.monotonic() >= deadline:
                    self._give_up()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        self._patience = PATIENCE
        try:
            yield
        finally:
            lock(descriptor, fcntl.LOCK_UN)

    def _give_up(self) -> None:
        self._patience = 0.0
        if not self._warned:
            self._warned = True
            warn(
                f"another process keeps {self._name} locked for more than {PATIENCE:g} s (one that is stopped does so "
                "until it goes on): nothing more is kept there before the lock is free"
            )
        raise TimeoutError(errno.ETIMEDOUT, "another process keeps it locked", self._name)
