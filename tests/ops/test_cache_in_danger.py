"""fn.cache in shared folders, on full or damaged disks, and with files whose change is hard to detect."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.formats.test_shared_folder import AS_ROOT, HOLD, PLANTED
from tests.helpers.own_process import in_own_process
from torchdali import fn, pipeline_def
from torchdali.formats import sample_store, shared_folder
from torchdali.formats.sample_store import DiskStore, MemoryStore, encode_tensors
from torchdali.formats.storage import file_identity
from torchdali.plugin.pytorch.loader import Loader

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fn.cache needs locks of files")

HEADER, LENGTH = sample_store._HEADER, sample_store._ENTRY_SIZE  # of a file, and of an entry
COUNT = 4


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("images")
    (root / "a").mkdir()
    for i in range(COUNT):
        Image.fromarray(np.full((20, 30, 3), 10 * i, np.uint8)).save(root / "a" / f"{i}.png")
    return root


def pipeline(root: Path | str, **keep: Any) -> Any:
    @pipeline_def(batch_size=COUNT, num_threads=1, num_processes=1, device_id=None, prefetch_queue_depth=1)
    def define() -> Any:
        files, _ = fn.readers.file(file_root=str(root))
        return fn.cache(fn.decoders.image(files), **keep)

    return define()


def run(root: Path | str, batches: int = 2, **keep: Any) -> str:
    """Run a pipeline, check its pixels, and return its line of statistics."""
    pipe = pipeline(root, **keep)
    for _ in range(batches):
        found = np.asarray(pipe.run()[0].as_tensor())
        assert (found == np.arange(0, 10 * COUNT, 10)[:, None, None, None]).all()
    line: str = pipe.stats().caches[0]
    pipe.close()
    return line


def files_of(folder: Path) -> tuple[Path, Path]:
    (samples,), (index,) = folder.glob("*.samples"), folder.glob("*.index")
    return samples, index


# ---------------------------------------------------------------- a folder of several users


@pytest.mark.parametrize("ending", ["samples", "index"])
@pytest.mark.parametrize("what", PLANTED)
def test_planted_entries_are_errors_of_build(what: str, ending: str, images: Path, tmp_path: Path) -> None:
    if what in ("a device", "a file of somebody else") and not AS_ROOT:
        pytest.skip("only root can make it")
    run(images, path=tmp_path / "known")
    (known,) = (tmp_path / "known").glob(f"*.{ending}")  # anybody can compute its name
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious" * 5000)
    (tmp_path / "shared").mkdir()
    try:
        PLANTED[what][0](tmp_path / "shared" / known.name, precious)
    except PermissionError:
        pytest.skip("this system does not let it be made")
    with pytest.raises(RuntimeError, match=f"cannot create the cache .*{known.name}: .*or use another folder"):
        pipeline(images, path=tmp_path / "shared").build()
    assert precious.read_bytes() == b"precious" * 5000 and not (tmp_path / "new").exists()


def test_files_and_folder_are_accessible_only_by_their_user(images: Path, tmp_path: Path) -> None:
    run(images, path=tmp_path / "cache")
    assert tmp_path.joinpath("cache").stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in files_of(tmp_path / "cache")] == [0o600, 0o600]


def test_a_folder_may_be_a_link_of_the_user(images: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to("disk")
    run(images, path=tmp_path / "cache")
    assert "0 misses" in run(images, path=tmp_path / "disk")


def test_a_relative_folder_is_resolved_once(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pipe = pipeline(images, path="cache")
    pipe.build()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    pipe.run()
    assert str(tmp_path / "cache") in pipe.stats().caches[0] and not list((tmp_path / "elsewhere").iterdir())


# ---------------------------------------------------------------- locks


@pytest.mark.parametrize("how", ["LOCK_SH", "LOCK_EX"])
@pytest.mark.parametrize("new", [True, False])
def test_a_lock_of_another_process_blocks_no_pipeline(
    new: bool, how: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_folder, "PATIENCE", 0.05)
    run(images, path=tmp_path / "cache")
    samples, index = files_of(tmp_path / "cache")
    if new:  # the folder is empty, and the lock is held from the start
        samples.write_bytes(b"")
        index.write_bytes(b"")
    own = shutil.copytree(images, tmp_path / "own")  # other files, which are computed and cached
    command = [sys.executable, "-c", HOLD, str(index), "lockf", how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline()
        with pytest.warns(UserWarning, match=f"another process keeps {index} locked") as told:
            assert "were skipped" in run(own, path=tmp_path / "cache")
        assert len(told) == 1
        other.communicate()
    run(own, path=tmp_path / "cache")
    assert "0 misses" in run(own, path=tmp_path / "cache")


def a_writer_that_is_stopped(folder: str) -> tuple[bool, int]:
    """Suspend a process during a sample; return the result of `put` in this process, and the final number of samples."""
    ready, here = os.pipe()
    pid = os.fork()
    if not pid:
        write = os.pwrite

        def announced(descriptor: int, data: Any, offset: int) -> int:
            os.write(here, b".")
            os.kill(os.getpid(), signal.SIGSTOP)
            os.pwrite = write
            return write(descriptor, data, offset)

        os.pwrite = announced
        DiskStore(folder, "store", None).put(b"1" * 16, [torch.ones(10)])
        os._exit(0)
    os.read(ready, 1)
    os.waitpid(pid, os.WUNTRACED)
    shared_folder.PATIENCE = 0.05
    warnings.simplefilter("ignore")
    store = DiskStore(folder, "store", None)
    kept = store.put(b"2" * 16, [torch.zeros(10)])
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    assert store.put(b"2" * 16, [torch.zeros(10)])
    return kept, len(store)


@pytest.mark.slow
def test_a_suspended_writer_blocks_no_other_writer(tmp_path: Path) -> None:
    call = f"a_writer_that_is_stopped({str(tmp_path)!r})"
    assert in_own_process("tests.ops.test_cache_in_danger", call) == (False, 2)


# --------------------------------------------------------------------- identity of files


def _replaced(path: Path) -> None:
    """Replace a file like `rsync -a`."""
    path.with_suffix(".new").write_bytes(path.read_bytes()[::-1])
    os.utime(path.with_suffix(".new"), ns=(0, path.stat().st_mtime_ns))
    path.with_suffix(".new").replace(path)


def _written_to(path: Path) -> None:
    """Replace a file like `cp -p`."""
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(0, before.st_mtime_ns))
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # the file system's clock ticks
        os.utime(path, ns=(0, before.st_mtime_ns))


def _turned(path: Path) -> None:
    """Replace a link `current` to another version of the data."""
    other = path.parent.with_name("other")
    shutil.copytree(path.parent.resolve(), other)
    path.parent.unlink()
    path.parent.symlink_to(other)


CHANGES = {
    "replaced by a file of its size and time": _replaced,
    "written to, with its time": _written_to,
    "a link turned": _turned,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_replaced_file_of_equal_path_size_and_time_is_detected(change: str, tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "current").symlink_to("v1")
    path = tmp_path / "current" / "file"
    path.write_bytes(b"content")
    os.utime(path, ns=(0, 10**18))
    before, known = file_identity(str(path)), path.stat()
    assert before == file_identity(str(path))
    CHANGES[change](path)
    after = path.stat()
    assert (known.st_size, known.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    assert file_identity(str(path)) != before


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_link_to_another_version_is_detected(where: str, tmp_path: Path) -> None:
    for version, value in (("v1", 1), ("v2", 2)):
        (tmp_path / version).mkdir()
        np.save(tmp_path / version / "a.npy", np.full(10, value, np.float32))
        os.utime(tmp_path / version / "a.npy", (1e9, 1e9))
    (tmp_path / "current").symlink_to("v1")
    keep: dict[str, Any] = {"bytes": "1MB"} if where == "memory" else {"path": tmp_path / "cache"}

    @pipeline_def(batch_size=1, num_threads=1, num_processes=1, device_id=None, prefetch_queue_depth=1)
    def define() -> Any:
        return fn.cache(fn.readers.numpy(files=[str(tmp_path / "current" / "a.npy")]) * 1, **keep)

    pipe = define()
    assert [float(pipe.run()[0].at(0)[0]) for _ in range(2)] == [1, 1]
    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to("v2")
    assert [float(pipe.run()[0].at(0)[0]) for _ in range(3)][-1] == 2


# -------------------------------------------------------------------------------- wrong sizes

ENTRY, SUM = struct.Struct("<16sQQI"), struct.Struct("<I")
KEY = b"k" * 16
CLAIMS = {
    "a size of a terabyte": (0, 1 << 40), "a size of 2**63": (0, 1 << 63), "all sizes": (0, (1 << 64) - 1),
    "an offset of 2**62": (1 << 62, 64), "an offset of 2**63": (1 << 63, 64), "both": ((1 << 64) - 1, (1 << 64) - 1),
    "one byte too many": (0, 65), "nothing": (0, 0),
}  # fmt: skip
HEADS = {
    "an unknown type": b"\x01\xc8\x01" + struct.pack("<q", 4), "many dimensions": b"\x01\x00\xff" + bytes(61),
    "a negative extent": b"\x01\x00\x01" + struct.pack("<q", -1), "two of them": b"\x01\x00\x02" + struct.pack("<qq", -4, -4),
    "large extents": b"\x01\x00\x02" + struct.pack("<qq", 1 << 62, 1 << 62), "one too large": b"\x01\x00\x01" + struct.pack("<q", 65),
    "too many tensors": b"\xff" * 64, "no end": b"\x09" + bytes(2),
}  # fmt: skip


def written(folder: Path, offset: int, size: int, data: bytes) -> None:
    """Write a store with one entry, whose checksums are correct."""
    entry = ENTRY.pack(KEY, offset, size, zlib.crc32(data[offset : offset + size]))
    (folder / "store.samples").write_bytes(data)
    (folder / "store.index").write_bytes(HEADER + entry + SUM.pack(zlib.crc32(entry)))
    for path in files_of(folder):
        path.chmod(0o600)


def check_store(folder: Path) -> None:
    """Check that the entry is ignored and replaced."""
    value = torch.arange(100)
    for limit in (None, 10_000):
        store = DiskStore(str(folder), "store", limit)
        assert store.get(KEY) is None or limit
        assert store.put(KEY, [value])
        found = store.get(KEY)
        assert found is not None and torch.equal(found[0], value) and not store.is_full
    assert store.bytes < 10_000 and len(DiskStore(str(folder), "store", None)) == 1


@pytest.mark.parametrize("claim", CLAIMS)
def test_an_entry_with_a_wrong_size_is_ignored(claim: str, tmp_path: Path) -> None:
    written(tmp_path, *CLAIMS[claim], bytes(64))
    check_store(tmp_path)


@pytest.mark.parametrize("head", HEADS)
def test_a_sample_that_contains_no_tensors_is_ignored(head: str, tmp_path: Path) -> None:
    data = HEADS[head].ljust(64, b"\0") + bytes(64)
    written(tmp_path, 0, len(data), data)
    check_store(tmp_path)


def test_a_sample_of_other_outputs_is_recomputed(images: Path, tmp_path: Path) -> None:
    run(images, path=tmp_path)
    samples, index = files_of(tmp_path)
    entries = index.read_bytes()[LENGTH:]
    data = b"".join(map(bytes, encode_tensors([torch.zeros(3), torch.zeros(3)])))  # of two outputs instead of one
    samples.write_bytes(data)
    changed = HEADER
    for start in range(0, len(entries), LENGTH):
        entry = ENTRY.pack(entries[start : start + 16], 0, len(data), zlib.crc32(data))
        changed += entry + SUM.pack(zlib.crc32(entry))
    index.write_bytes(changed)
    assert f"{COUNT} misses" in run(images, path=tmp_path)
    assert "0 misses" in run(images, path=tmp_path)


@pytest.mark.parametrize("ending", ["samples", "index"])
def test_a_file_with_a_large_hole(ending: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_store, "LARGEST_INDEX", LENGTH << 16)
    run(images, path=tmp_path)
    os.truncate(next(tmp_path.glob(f"*.{ending}")), 1 << 38)
    pipe = pipeline(images, path=tmp_path)
    pipe.build()
    assert "4 samples" in pipe.stats().caches[0]
    run(images, path=tmp_path)


def test_every_bit_of_the_files_may_flip(images: Path, tmp_path: Path) -> None:
    store, values = DiskStore(str(tmp_path), "store", None), {bytes([i]) * 16: torch.arange(i, 8 + i) for i in range(2)}
    for key, value in values.items():
        assert store.put(key, [value])
    for path in files_of(tmp_path):
        whole = path.read_bytes()
        for place in range(0, len(whole), 2):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
            store = DiskStore(str(tmp_path), "store", None)
            assert all(
                found is None or torch.equal(found[0], value)
                for key, value in values.items()
                for found in [store.get(key)]
            )
        path.write_bytes(whole)


# ---------------------------------------------------------- disk space


def fill_disk(monkeypatch: pytest.MonkeyPatch, code: int = errno.ENOSPC) -> None:
    def full(descriptor: int, data: Any, offset: int) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pwrite", full)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize("limit", [{}, {"bytes": "1MB"}])
def test_a_full_disk_warns_once(
    limit: dict[str, Any], code: int, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch, code)
    with pytest.warns(UserWarning, match="cannot store a sample of [0-9,]+ bytes in") as told:
        run(images, path=tmp_path / "cache", **limit)
    assert len(told) == 1
    cure = f"are free in {tmp_path / 'cache'}; free space there, or pass another folder"
    assert (cure in str(told[0].message)) == (code != errno.EIO)


def test_no_disk_space_for_the_files_themselves(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "abc.samples")

    monkeypatch.setattr(sample_store, "open_own", full)
    with pytest.raises(
        RuntimeError, match=r"cannot create the cache .*abc\.samples: No space .* are free in .*; free space there"
    ):
        pipeline(images, path=tmp_path).build()


def test_a_nearly_full_disk_is_reported(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = os.statvfs(tmp_path)
    full = os.statvfs_result((*room[:3], room.f_bfree // 100, 1, *room[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.warns(
        UserWarning, match=r"but 0 of 0 are free in .* \(a tenth of the disk stays free unless you pass `bytes`"
    ):
        run(images, path=tmp_path)


@pytest.mark.parametrize("size", [2**62, 2**63 - 1, 2**63, 10**30])
def test_more_memory_than_the_machine_can_have(size: int, images: Path) -> None:
    with pytest.raises(
        RuntimeError, match=f"fn.cache cannot allocate {size:,} bytes of memory: .*`bytes` is the most memory"
    ):
        pipeline(images, bytes=size).build()


def files_of_no_size(root: str, folder: str) -> list[str]:
    """Run pipelines in a process whose files are limited to 100 bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    said: list[str] = []
    sys.unraisablehook = lambda found: said.append(f"ignored {found.exc_value!r}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    for keep in ({"path": folder}, {"bytes": 1000}):
        try:
            run(root, **keep)
        except RuntimeError as error:
            said.append(str(error).splitlines()[-1])
    return said


@pytest.mark.slow
def test_a_limit_on_files_is_one_error(images: Path, tmp_path: Path) -> None:
    call = f"files_of_no_size({str(images)!r}, {str(tmp_path)!r})"
    said = in_own_process("tests.ops.test_cache_in_danger", call)
    assert len(said) == 2
    assert all("fn.cache cannot allocate shared memory" in each and "ulimit -f" in each for each in said)


@pytest.mark.thin(2)
@pytest.mark.parametrize("processes", [1, 2])
def test_a_cache_that_stores_nothing_warns(processes: int, images: Path) -> None:
    @pipeline_def(batch_size=COUNT, num_threads=2, num_processes=processes, device_id=None)
    def define() -> Any:
        return fn.cache(fn.decoders.image(fn.readers.file(file_root=str(images))[0]), bytes=100)

    pipe = define()
    with pytest.warns(UserWarning, match="a sample needs 1,920 bytes, but 100 of 100 are free in memory"):
        pipe.run()
        pipe.run()
    pipe.close()


@pytest.mark.parametrize("cache", ["features", "8XB", "lots", "", 0, -1, 1.5, True])
def test_a_loader_lists_valid_cache_arguments(cache: Any, images: Path) -> None:
    with pytest.raises(ValueError, match=r"cache must be a size in memory .* or a folder"):
        Loader.from_folder(str(images), batch_size=2, train=False, cache=cache)


# ----------------------------------------------------------------- pixels after a cache


RESIZES: dict[str, Callable[[Any], Any]] = {
    "resize": lambda x: fn.resize(x, size=[13, 17]),
    "random_resized_crop": lambda x: fn.random_resized_crop(x, size=[13, 17], seed=1),
    "resize_crop_mirror": lambda x: fn.resize_crop_mirror(x, size=[23, 27], crop=[13, 17]),
    "resize, crop": lambda x: fn.crop(fn.resize(x, size=[33, 37]), crop=[13, 17]),
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("what", RESIZES)
def test_resized_bytes_after_a_cache(what: str, exact: bool, tmp_path: Path) -> None:
    """As documented in docs/cache.md: at most a level off, and equal with `exact`."""
    noise = np.random.default_rng(1)
    for i in range(3):
        Image.fromarray(noise.integers(0, 255, (15, 20, 3), np.uint8)).resize((80, 60), 2).save(tmp_path / f"{i}.jpg")

    def batch(keep: bool) -> Any:
        @pipeline_def(batch_size=3, num_threads=1, num_processes=1, device_id=None, exact=exact, seed=1)
        def define() -> Any:
            image = fn.decoders.image(fn.readers.file(files=sorted(map(str, tmp_path.glob("*.jpg"))))[0])
            return RESIZES[what](fn.cache(image, bytes="1MB") if keep else image)

        return np.asarray(define().run()[0].as_tensor()).astype(int)

    assert abs(batch(True) - batch(False)).max() <= (0 if exact else 1)


def test_a_store_removed_by_another_process_is_not_used(images: Path, tmp_path: Path) -> None:
    pipe = pipeline(images, path=tmp_path / "cache")
    pipe.run()
    shutil.rmtree(tmp_path / "cache")
    for _ in range(2):
        pipe.run()
    pipe.close()
    assert "4 samples" in run(images, path=tmp_path / "cache")


def test_a_memory_store_rejects_samples_beyond_its_size() -> None:
    store = MemoryStore(1000)
    assert store.put(KEY, [torch.arange(20)]) and store.get(KEY) is not None
    assert not store.put(b"l" * 16, [torch.arange(100)])
