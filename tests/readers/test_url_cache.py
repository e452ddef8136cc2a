"""The disk cache of URLs: damage, planted files, locks, full disks."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.formats.test_shared_folder import AS_ROOT, HOLD, PLANTED
from torchdali.formats import disk_cache, shared_folder
from torchdali.formats.disk_cache import DiskCache

pytestmark = pytest.mark.skipif(os.name == "nt", reason="cache_dir needs locks of files")

SIZES = (0, 1, 99, 100, 101, 250, 1000)
PARTS = ((0, None), (0, 1), (99, 2), (100, 100), (150, 60), (0, 100), (240, 1000), (5000, 10), (7, 0))


def content(size: int) -> bytes:
    return bytes(i * 7 % 251 for i in range(size))


def only_file(folder: Path) -> Path:
    (path,) = (path for path in (folder / "torchdali").iterdir() if len(path.name) == 64)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.setattr(disk_cache, "CHUNK", 100)
    return DiskCache(str(tmp_path), 100_000)


@pytest.mark.parametrize("size", SIZES)
def test_parts_match_the_string(size: int, cache: DiskCache) -> None:
    data = content(size)
    cache.put("key", data)
    for start, count in PARTS:
        assert cache.get("key", start, count) == data[start : None if count is None else start + count]


def _flipped(place: int) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        at = place % max(1, len(data))
        return data[:at] + bytes([data[at] ^ 1 << place % 8]) + data[at + 1 :]

    return damage


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    **{f"bit in byte {place}": _flipped(place) for place in (0, 50, 99, 100, 103, 104, 204, 300, -1, -4, -5)},
    **{f"{count} bytes lost": lambda data, count=count: data[: len(data) - count] for count in (1, 3, 4, 5, 50, 104, 105, 208)},  # type: ignore[misc]
    "empty": lambda data: b"", "zeros": lambda data: bytes(len(data)), "longer": lambda data: data + bytes(4),
    "longer by a chunk": lambda data: data + data[:104], "chunks swapped": lambda data: data[104:208] + data[:104] + data[208:],
    "without its sums": lambda data: content(250), "another file": lambda data: b"something else",
}  # fmt: skip


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("size", [0, 250, 300])
def test_damaged_blocks_are_ignored(size: int, how: str, cache: DiskCache, tmp_path: Path) -> None:
    data = content(size)
    cache.put("key", data)
    path = only_file(tmp_path)
    whole = path.read_bytes()
    damaged = DAMAGE[how](whole)
    if damaged == whole:
        pytest.skip("nothing to damage")
    for start, count in PARTS:
        path.write_bytes(damaged)
        assert cache.get("key", start, count) in (None, data[start : None if count is None else start + count])
    assert cache.get("key") is None
    cache.put("key", data)
    assert cache.get("key") == data


def test_formats_without_checksums_use_other_files(cache: DiskCache, tmp_path: Path) -> None:
    cache.put("key", b"x")
    assert only_file(tmp_path).name != hashlib.sha256(b"key").hexdigest()


def test_the_file_of_another_key_is_ignored(cache: DiskCache, tmp_path: Path) -> None:
    cache.put("one", content(150))
    path = only_file(tmp_path)
    swapped = path.read_bytes()
    path.unlink()
    cache.put("other", content(150)[::-1])
    only_file(tmp_path).write_bytes(swapped)
    assert cache.get("other") is None


@pytest.mark.parametrize("what", [what for what in PLANTED if what != "a folder"])
def test_planted_entries_are_replaced_and_not_read(what: str, cache: DiskCache, tmp_path: Path) -> None:
    if what in ("a device", "a file of somebody else") and not AS_ROOT:
        pytest.skip("only root can make it")
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    cache.put("key", b"mine")
    path = only_file(tmp_path)
    path.unlink()
    try:
        PLANTED[what][0](path, precious)
    except PermissionError:
        pytest.skip("this system does not let it be made")
    assert cache.get("key") is None
    cache.put("key", b"mine")
    assert cache.get("key") == b"mine" and precious.read_bytes() == b"precious"


@pytest.mark.parametrize("what", ["a link", "a link to nothing", "a hard link", "a pipe", "a folder"])
def test_a_planted_lock_warns_once(what: str, cache: DiskCache, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    PLANTED[what][0](tmp_path / "torchdali" / "lock", precious)
    with pytest.warns(UserWarning, match="cache_dir: cannot store .* bytes in .*torchdali: lock: ") as told:
        for _ in range(3):
            cache.put("key", b"x")
    assert len(told) == 1 and cache.get("key") is None and precious.read_bytes() == b"precious"


def test_the_folder_must_not_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "film.part").write_bytes(b"precious")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "torchdali").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeError, match=r"cannot create cache_dir .*torchdali: must not be a symbolic link"):
        DiskCache(str(tmp_path / "cache"), 10)
    assert (tmp_path / "elsewhere" / "film.part").exists()


@pytest.mark.skipif(not AS_ROOT, reason="only root can give folders away")
def test_a_folder_of_another_user_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "torchdali").mkdir(mode=0o777)
    os.chown(tmp_path / "torchdali", 12345, 12345)
    with pytest.raises(RuntimeError, match="belongs to user 12345"):
        DiskCache(str(tmp_path), 10)


@pytest.mark.parametrize("how", ["LOCK_SH", "LOCK_EX"])
def test_waiting_for_another_process_lock_times_out(
    how: str, cache: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_folder, "PATIENCE", 0.05)
    cache = DiskCache(str(tmp_path), 100_000)
    cache.put("old", b"x")
    lock = tmp_path / "torchdali" / "lock"
    command = [sys.executable, "-c", HOLD, str(lock), "flock", how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline()
        with pytest.warns(UserWarning, match=f"another process keeps {lock} locked") as told:
            for i in range(3):
                cache.put(f"{i}", b"x")
        assert len(told) == 1 and cache.get("old") == b"x" and cache.get("0") is None
        other.communicate()
    cache.put("0", b"x")
    assert cache.get("0") == b"x"


@pytest.mark.parametrize("damage", [b"", b"x", b"9" * 12, bytes(12), b"\xff" * 8 + b"1234", b"1" * 100])
def test_a_damaged_total_is_recomputed(damage: bytes, tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), 1000)
    for i in range(30):
        (tmp_path / "torchdali" / "lock").write_bytes(damage)
        cache.put(str(i), bytes(90))
        kept = [path for path in (tmp_path / "torchdali").iterdir() if len(path.name) == 64]
        assert kept and sum(path.stat().st_size for path in kept) <= 1000
        assert cache.get(str(i)) == (bytes(90) if i < 10 else None)


def test_a_folder_named_like_a_block_does_not_fill_the_cache(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), 1000)
    (tmp_path / "torchdali" / ("0" * 64)).mkdir()
    (tmp_path / "torchdali" / ("1" * 64)).symlink_to(tmp_path / "nothing")
    for i in range(30):
        cache.put(str(i), bytes(90))
    assert cache.get("8") == bytes(90) and cache.is_full


def test_a_full_disk_warns_once(cache: DiskCache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk_cache, "write_atomically", full)
    with pytest.warns(
        UserWarning, match=f"cannot store 5 bytes in .*: No space left on device, and [0-9,]+ are free in {tmp_path}"
    ) as told:
        cache.put("key", b"x")
        cache.put("key", b"x")
    assert len(told) == 1 and cache.get("key") is None


def test_a_read_only_cache_is_read(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("key", b"x")

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", refused)
    assert cache.get("key") == b"x"


def test_a_relative_folder_is_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    cache = DiskCache("cache", 1000)
    monkeypatch.chdir(tmp_path / "elsewhere")
    cache.put("key", b"x")
    assert cache.get("key") == b"x" and not list((tmp_path / "elsewhere").iterdir())
