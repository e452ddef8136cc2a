"""Safe access to files in folders that other users may also write to.

A name in a shared folder may be a link to another file, a pipe without a writer, or a file of another user that stays
locked. Therefore, this module opens only regular files that belong to this user and have no second hard link, replaces
a file only when the new content is complete, and waits only a few seconds for a lock.
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
    "FileLock",
    "close_on_error",
    "describe_free_space",
    "new_file",
    "open_folder",
    "open_for_reading",
    "open_own",
    "read_into",
    "write_atomically",
]  # fmt: skip

ROOT_USER = 0  # files of root are trusted, since root can change all files anyway
PATIENCE = 3.0  # seconds to wait for a lock
_MIN_PAUSE, _MAX_PAUSE = 0.0002, 0.002  # seconds between two attempts to get a lock
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_COMMON_FLAGS: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_SAFE_FLAGS = _COMMON_FLAGS | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)  # opening a pipe doesn't wait for a writer
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON_FLAGS | _NO_FOLLOW


def open_folder(path: str, *, must_own: bool) -> int:
    """Open a folder. If the folder doesn't exist, create the folder with access only for this user.

    Args:
        must_own: True if torchdali, not the user, chose the folder's name. The folder must then belong to this user,
            and must not be a link.

    Returns:
        A descriptor of the folder.

    Raises:
        OSError: The folder cannot be opened or created.
    """
    os.makedirs(path, 0o700, exist_ok=True)
    if must_own and os.path.islink(path):
        raise OSError(errno.ELOOP, "must not be a symbolic link", path)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _COMMON_FLAGS | (_NO_FOLLOW if must_own else 0))
    with close_on_error(descriptor):
        if must_own:
            _check_owner(descriptor, descriptor)
    return descriptor


def open_own(name: str, flags: int, folder: int) -> int:
    """Open a regular file of this user, or create a file that only this user may read.

    Args:
        flags: Flags of `os.open`.

    Returns:
        A descriptor of the file.

    Raises:
        OSError: The file doesn't exist, isn't a regular file, has a second name (a hard link), or belongs to another
            user.
    """
    try:
        descriptor = os.open(name, flags | _SAFE_FLAGS, 0o600, dir_fd=folder)
    except OSError as error:
        reason = "must not be a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise OSError(error.errno, reason, name) from None
    with close_on_error(descriptor):
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "must be a regular file", name)
        if status.st_nlink > 1:
            raise OSError(errno.EMLINK, "must not have a second hard link", name)
        _check_owner(descriptor, folder, name)
    return descriptor


@contextlib.contextmanager
def close_on_error(descriptor: int) -> Iterator[None]:
    """Close a descriptor if the block raises an exception."""
    try:
        yield
    except BaseException:
        os.close(descriptor)
        raise


def _check_owner(descriptor: int, folder: int, name: str | None = None) -> None:
    owner = os.fstat(descriptor).st_uid
    if owner not in (os.geteuid(), ROOT_USER) and owner != _owner_of_new_files(folder):
        raise OSError(errno.EPERM, f"must belong to user {os.geteuid()}, but belongs to user {owner}", name)


def _owner_of_new_files(folder: int) -> int | None:
    """Return the owner of files that this user creates in a folder; on network drives, this may be another user."""
    name = _temporary_name()
    try:
        descriptor = os.open(name, _NEW_FILE_FLAGS, 0o600, dir_fd=folder)
    except OSError:
        return None
    try:
        return os.fstat(descriptor).st_uid
    finally:
        os.close(descriptor)
        os.unlink(name, dir_fd=folder)


def _temporary_name() -> str:
    return f"{secrets.token_hex(8)}.part"


def open_for_reading(path: str) -> BinaryIO:
    """Open a file that the user named, for reading.

    The file may be a link or belong to another user. The file must not be a named pipe, because opening a pipe waits
    for a writer.

    Raises:
        OSError: The file cannot be opened, or is a named pipe.
    """
    # The shell replaces `<(command)` by a pipe in one of these folders.
    is_process_substitution = path.startswith(("/dev/", "/proc/"))
    if stat.S_ISFIFO(os.stat(path).st_mode) and not is_process_substitution:
        raise OSError(errno.EINVAL, "must not be a pipe", path)
    return open(path, "rb")


def new_file(path: str, _flags: int = 0) -> int:
    """Create a new file for writing. Pass this function as ``opener`` to `open`.

    Raises:
        FileExistsError: The path exists.
    """
    return os.open(path, _NEW_FILE_FLAGS, 0o666)


def write_atomically(
    name: str, pieces: Iterable[Any], *, folder: int | None = None, mode: int | None = None, durable: bool = False
) -> None:
    """Write a new file, and then rename it over the old file.

    After a crash, or if the disk is full, the old file is intact.

    Args:
        name: Name of the file in `folder`; a path if `folder` is None.
        mode: Permissions of the file. If None, and the old file belongs to this user, the new file has the same
            permissions. Otherwise, the umask determines the permissions.
        durable: Wait until the data is on the disk.

    Raises:
        OSError: The file cannot be written.
    """
    temporary = os.path.join(os.path.dirname(name), _temporary_name())
    descriptor = os.open(temporary, _NEW_FILE_FLAGS, 0o666 if mode is None else mode, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            if mode is None and hasattr(os, "fchmod"):
                _copy_mode(name, descriptor)
            if durable:
                os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _copy_mode(name: str, descriptor: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(name)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            os.fchmod(descriptor, status.st_mode & 0o777)


def read_into(descriptor: int, memory: memoryview, offset: int) -> bool:
    """Fill memory with bytes of a file; return whether the file has enough bytes."""
    while len(memory):
        count = os.preadv(descriptor, [memory], offset)
        if not count:
            return False
        memory, offset = memory[count:], offset + count
    return True


def describe_free_space(error: OSError, folder: str) -> str:
    """Return a text about the free space in a folder; "" if the error isn't about missing space."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return ""
    return f", and {disk.f_frsize * disk.f_bavail:,} are free in {folder}; free space there, or pass another folder"


class FileLock:
    """The lock of a file.

    `hold` waits a few seconds for the lock. After a timeout, later calls try only once, until a call gets the lock.

    Args:
        name: Name of the file, for the warning.
        per_descriptor: If True, the lock belongs to the opened file (flock(2)); if False, to the process (lockf(3)).
    """

    def __init__(self, name: str, per_descriptor: bool = False) -> None:
        self._name, self._per_descriptor, self._patience = name, per_descriptor, PATIENCE
        self._warned = False

    @contextlib.contextmanager
    def hold(self, descriptor: int) -> Iterator[None]:
        """Hold the lock while the block runs.

        Raises:
            TimeoutError: Another process holds the lock. The first time, a warning is issued, too.
            OSError: The file cannot be locked.
        """
        import fcntl

        lock = fcntl.flock if self._per_descriptor else fcntl.lockf
        deadline, pause = time.monotonic() + self._patience, _MIN_PAUSE
        while True:
            try:
                lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except (BlockingIOError, PermissionError):
                if time.monotonic() >= deadline:
                    self._raise_timeout()
            time.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)
        self._patience = PATIENCE
        try:
            yield
        finally:
            lock(descriptor, fcntl.LOCK_UN)

    def _raise_timeout(self) -> None:
        self._patience = 0.0
        if not self._warned:
            self._warned = True
            warn(
                f"another process keeps {self._name} locked for more than {PATIENCE:g} s (a suspended process keeps "
                f"its lock); nothing more is cached there until the lock is released"
            )
        raise TimeoutError(errno.ETIMEDOUT, "another process keeps it locked", self._name)
