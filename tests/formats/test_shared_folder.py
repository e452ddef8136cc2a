"""Files in folders that others may write to: opening, writing, and waiting for locks."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchdali.formats import shared_folder
from torchdali.formats.shared_folder import FileLock, new_file, open_folder, open_own, read_into, write_atomically

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders are not opened there")

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    descriptor = open_folder(str(tmp_path / "shared"), must_own=False)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def path(tmp_path: Path, folder: int) -> Path:
    """Return the path of a private file."""
    return tmp_path / "shared" / "name"


def _of_somebody_else(path: Path) -> None:
    path.write_bytes(b"theirs")
    os.chown(path, 12345, 12345)
    path.chmod(0o666)


PLANTED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a link": (lambda path, precious: path.symlink_to(precious), "must not be a symbolic link"),
    "a link to nothing": (
        lambda path, precious: path.symlink_to(precious.with_name("new")),
        "must not be a symbolic link",
    ),
    "a link to itself": (lambda path, precious: path.symlink_to(path), "must not be a symbolic link"),
    "a hard link": (lambda path, precious: os.link(precious, path), "second hard link"),
    "a pipe": (lambda path, precious: os.mkfifo(path), "must be a regular file"),
    "a folder": (lambda path, precious: path.mkdir(), "."),
    "a device": (
        lambda path, precious: os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5)),
        "must be a regular file",
    ),
    "a file of somebody else": (lambda path, precious: _of_somebody_else(path), "belongs to user 12345"),
}
WAYS = {"read": os.O_RDONLY, "write": os.O_RDWR | os.O_CREAT, "rewrite": os.O_RDWR | os.O_CREAT | os.O_TRUNC}


@pytest.mark.parametrize("way", ["read", "write"])
@pytest.mark.parametrize("planted", PLANTED)
def test_planted_links_and_pipes_are_not_opened(planted: str, way: str, path: Path, folder: int, tmp_path: Path) -> None:
    if planted in ("a device", "a file of somebody else") and not AS_ROOT:
        pytest.skip("only root can make it")
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    plant, reason = PLANTED[planted]
    try:
        plant(path, precious)
    except PermissionError:
        pytest.skip("this system does not let it be made")
    if (planted, way) == ("a folder", "read"):
        reason = "must be a regular file"
    with pytest.raises(OSError, match=reason):
        open_own(path.name, WAYS[way], folder)
    assert precious.read_bytes() == b"precious" and not (tmp_path / "new").exists()


@pytest.mark.parametrize("planted", PLANTED)
def test_a_written_file_replaces_planted_entries(planted: str, path: Path, folder: int, tmp_path: Path) -> None:
    if planted in ("a device", "a file of somebody else") and not AS_ROOT:
        pytest.skip("only root can make it")
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    try:
        PLANTED[planted][0](path, precious)
    except PermissionError:
        pytest.skip("this system does not let it be made")
    if planted == "a folder":
        with pytest.raises(OSError):
            write_atomically(str(path), [b"ours"])
    else:
        write_atomically(str(path), [b"ou", b"rs"])
        assert path.read_bytes() == b"ours" and not path.is_symlink()
        assert path.stat().st_mode & 0o022 == 0 and path.stat().st_uid == os.geteuid()
    assert precious.read_bytes() == b"precious" and not (tmp_path / "new").exists()
    assert not list(path.parent.glob("*.part"))


def test_private_files_are_readable_only_by_their_user(path: Path, folder: int) -> None:
    os.close(open_own(path.name, os.O_RDWR | os.O_CREAT, folder))
    os.close(open_own(path.name, os.O_RDONLY, folder))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_folder_of_the_user_may_be_a_link_and_one_of_torchdali_may_not(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    os.close(open_folder(str(tmp_path / "link"), must_own=False))
    with pytest.raises(OSError, match="symbolic link"):
        open_folder(str(tmp_path / "link"), must_own=True)


@pytest.mark.skipif(not AS_ROOT, reason="only root can give folders away")
def test_a_folder_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    os.close(open_folder(str(tmp_path / "theirs"), must_own=False))
    with pytest.raises(OSError, match="belongs to user 12345"):
        open_folder(str(tmp_path / "theirs"), must_own=True)


def test_on_drives_that_change_the_owner_files_count_as_ours(
    path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"x")
    monkeypatch.setattr(os, "geteuid", lambda: 4321)  # as for root on a network drive that maps it to nobody
    monkeypatch.setattr(shared_folder, "ROOT_USER", -1)
    os.close(open_own(path.name, os.O_RDONLY, folder))
    assert [each.name for each in path.parent.iterdir()] == [path.name]


# ---------------------------------------------------------------- whole files


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_the_umask(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_atomically(str(tmp_path / "file"), [b"x"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o640)
    write_atomically(str(tmp_path / "file"), [b"new"], durable=True)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match="No space"):
        write_atomically(str(tmp_path / "file"), pieces())
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_new_file_is_new(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "file").write_bytes(b"x")
    for name in ("link", "file"):
        with pytest.raises(FileExistsError):
            new_file(str(tmp_path / name))
    assert not (tmp_path / "target").exists()
    with open(tmp_path / "new", "wb", opener=new_file) as file:
        file.write(b"y")


@pytest.mark.parametrize(("size", "whole"), [(0, True), (1, True), (95, True), (100, True), (101, False)])
def test_memory_is_filled_by_several_reads(
    size: int, whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, memory = bytes(range(103)), bytearray(size)
    (tmp_path / "file").write_bytes(data)
    at_once = os.preadv
    monkeypatch.setattr(
        os, "preadv", lambda file, parts, offset: at_once(file, [parts[0][:10]], offset)
    )  # the system has a limit
    with open(tmp_path / "file", "rb") as file:
        assert read_into(file.fileno(), memoryview(memory), 3) == whole
    assert not whole or memory == data[3 : 3 + size]


# ---------------------------------------------------------------- locks

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "rb" if sys.argv[3] == "LOCK_SH" else "r+b")
getattr(fcntl, sys.argv[2])(file, getattr(fcntl, sys.argv[3]))
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["LOCK_SH", "LOCK_EX"])
@pytest.mark.parametrize("call", ["lockf", "flock"])
def test_only_the_first_call_waits_for_a_held_lock(
    call: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_folder, "PATIENCE", 0.05)
    waits: list[float] = []
    monkeypatch.setattr(shared_folder.time, "sleep", waits.append)  # type: ignore[attr-defined]
    path = tmp_path / "file"
    path.write_bytes(b"")
    lock = FileLock(str(path), per_descriptor=call == "flock")
    command = [sys.executable, "-c", HOLD, str(path), call, how]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
        open(path, "r+b") as file,
    ):
        assert other.stdout is not None and other.stdout.readline()
        counts = []
        with pytest.warns(UserWarning, match=f"another process keeps {path} locked") as warnings:
            for _ in range(3):
                with pytest.raises(TimeoutError), lock.hold(file.fileno()):
                    raise AssertionError("it is held")
                counts.append(len(waits))
        assert len(warnings) == 1 and 0 < counts[0] == counts[2]  # only the first call waits
        other.communicate()
        with lock.hold(file.fileno()):
            pass


def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    path, inside, most = tmp_path / "file", [0], [0]
    path.write_bytes(b"")
    lock = FileLock(str(path), per_descriptor=True)

    def work() -> None:
        for _ in range(50):
            with open(path, "r+b") as file, lock.hold(file.fileno()):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
