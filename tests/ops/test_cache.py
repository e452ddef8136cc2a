"""fn.cache: bit-identical results, no repeated reads, changed files, budgets, several processes, and rejected arguments."""

from __future__ import annotations

import json
import os
import shutil
import wave
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.containers import write_tar
from tests.helpers.encoded_images import encoded, smooth_image
from tests.helpers.object_server import ObjectServer, object_server
from tests.helpers.own_process import in_own_process
from torchdali import fn, pipeline_def, types
from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Data
from torchdali.formats import recordio, tar, tfrecord
from torchdali.formats.remote import Remote
from torchdali.formats.sizes import ByteSize
from torchdali.ops._readers.file import FileDataset
from torchdali.tfrecord import FixedLenFeature, string

COUNT = 10


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("images")
    for i in range(COUNT):
        (root / f"class{i % 3}").mkdir(exist_ok=True)
        (root / f"class{i % 3}" / f"{i}.png").write_bytes(encoded(smooth_image(40 + i, 60 - i), "PNG"))
    return root


@pytest.fixture
def own_images(images: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(images, tmp_path / "own"))


def build(function: Callable[[], Any], **options: Any) -> Any:
    given = {"batch_size": 4, "num_threads": 1, "device_id": None, "seed": 7, **options}
    return pipeline_def(**given)(function)()


def samples(pipe: Any, batches: int) -> list[list[torch.Tensor]]:
    """Return copies of the samples of each output, one after the other."""
    found: list[list[torch.Tensor]] = []
    for _ in range(batches):
        for i, output in enumerate(pipe.run()):
            if len(found) <= i:
                found.append([])
            found[i] += [torch.tensor(np.array(sample)) for sample in output]
    return found


def same(one: list[list[torch.Tensor]], other: list[list[torch.Tensor]]) -> bool:
    return len(one) == len(other) and all(
        len(a) == len(b) and all(x.dtype == y.dtype and torch.equal(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(one, other, strict=True)
    )


def cached(root: Path, keep: dict[str, Any] | None, **reader: Any) -> Callable[[], Any]:
    def define() -> Any:
        files, labels = fn.readers.file(file_root=str(root), name="Reader", **reader)
        resized = fn.resize(fn.decoders.image(files), size=[24, 32])
        kept = resized if keep is None else fn.cache(resized, **keep)
        return kept, fn.flip(kept, horizontal=fn.random.coin_flip()), labels

    return define


def places(tmp_path: Path) -> dict[str, dict[str, Any]]:
    return {"memory": {"bytes": "1MB"}, "disk": {"path": tmp_path / "kept"}, "disk, budget": {"path": tmp_path / "b", "bytes": "1MB"}}


class Reads:
    """Counts reads of files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        read = FileDataset.read

        def counted(dataset: FileDataset, index: Any) -> Any:
            self.paths.append(dataset.info(index))
            return read(dataset, index)

        monkeypatch.setattr(FileDataset, "read", counted)

    def take(self) -> int:
        count = len(self.paths)
        self.paths.clear()
        return count


# -------------------------------------------------------------------------- outputs


@pytest.mark.parametrize("where", ["memory", "disk", "disk, budget"])
@pytest.mark.parametrize("threads", [1, 3])
def test_samples_are_the_same_with_and_without_a_cache(
    where: str, threads: int, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = {"random_shuffle": True, "pad_last_batch": True}
    expected = samples(build(cached(images, None, **reader)), 12)
    reads = Reads(monkeypatch)
    pipe = build(cached(images, places(tmp_path)[where], **reader), num_threads=threads)
    assert same(samples(pipe, 12), expected)
    # Several threads may concurrently compute a record that is twice in a batch: the last one, which pads it.
    assert COUNT <= reads.take() <= (COUNT if threads == 1 else COUNT + 2)
    assert pipe.reader_meta("Reader")["epoch_size"] == COUNT
    assert pipe.classes == ["class0", "class1", "class2"]


def test_a_cached_sample_may_be_written_to(images: Path) -> None:
    pipe = build(cached(images, {"bytes": "1MB"}), batch_size=COUNT, prefetch_queue_depth=1)
    first = pipe.run()[0]
    before = [np.array(sample) for sample in first]
    for batch in (first, pipe.run()[0]):  # computed and cached
        for sample in batch:
            torch.from_dlpack(sample).zero_()
    assert all(np.array_equal(a, b) for a, b in zip(before, pipe.run()[0], strict=True))


def test_labels_may_be_cached_too(own_images: Path) -> None:
    def define() -> Any:
        files, labels = fn.readers.file(file_root=str(own_images))
        return tuple(fn.cache(fn.decoders.image(files), labels * 2, bytes="1MB"))

    def labels_of(pipe: Any) -> list[int]:
        return [int(label) for label in samples(pipe, 4)[1]]

    assert labels_of(build(define, batch_size=5)) == [0, 0, 0, 0, 2, 2, 2, 4, 4, 4] * 2


def test_one_record_is_read_again_for_uncached_outputs(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def define(keep: bool) -> Any:
        files, labels = fn.readers.file(file_root=str(images), random_shuffle=True)
        decoded = fn.decoders.image(files)
        small, large = fn.resize(decoded, size=[8, 8]), fn.resize(decoded, size=[16, 16])
        if keep:
            small, large = fn.cache(small, bytes="1MB"), fn.cache(large, bytes="1MB")
        return small, files, large, labels

    assert same(samples(build(lambda: define(True)), 5), samples(build(lambda: define(False)), 5))


def test_a_cache_after_a_cache(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def define(keep: bool) -> Any:
        files, _ = fn.readers.file(file_root=str(images))
        decoded = fn.decoders.image(files)
        if keep:
            decoded = fn.cache(decoded, bytes="1MB")
        resized = fn.resize(decoded, size=[16, 16])
        return fn.cache(resized, bytes="1MB") if keep else resized

    reads = Reads(monkeypatch)
    pipe = build(lambda: define(True))
    found = samples(pipe, 5)
    assert reads.take() == COUNT
    assert same(found, samples(build(lambda: define(False)), 5))
    assert len(pipe.stats().caches) == 1


def test_conditions_and_constants_before_a_cache(images: Path) -> None:
    def define(keep: bool) -> Any:
        files, labels = fn.readers.file(file_root=str(images))
        decoded = fn.decoders.image(files)
        if fn.reductions.max(labels) == 1:
            turned = fn.flip(decoded)
        else:
            turned = decoded + types.Constant(3, dtype=types.UINT8)
        return fn.cache(turned, bytes="1MB") if keep else turned

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, enable_conditionals=True)
    def pipe(keep: bool) -> Any:
        return define(keep)

    assert same(samples(pipe(True), 6), samples(pipe(False), 6))


def test_without_a_pipeline_cache_returns_its_inputs() -> None:
    image = torch.arange(6)
    assert torch.equal(fn.cache(image, bytes=1), image)
    one, other = fn.cache(image, image + 1, path="nowhere")
    assert torch.equal(one, image) and torch.equal(other, image + 1)
    assert not os.path.exists("nowhere")


def test_samples_larger_than_the_cache_are_reported(images: Path) -> None:
    pipe = build(lambda: fn.cache(fn.readers.file(file_root=str(images))[0], bytes=100))
    with pytest.warns(UserWarning, match="a sample needs .* bytes, but 100 of 100 are free in memory") as warnings:
        samples(pipe, 3)
    assert len(warnings) == 1


# ---------------------------------------------------------------- readers


def containers(root: Path) -> dict[str, Callable[[], Any]]:
    """Write images into containers of each kind; return functions that read and decode them."""
    data = [encoded(smooth_image(30 + i, 40), "PNG") for i in range(5)]
    with open(root / "a.tfrecord", "wb") as file:
        for each in data:
            tfrecord.write_record(file, tfrecord.write_example({"image": each, "label": [1]}))
    with open(root / "a.tar", "wb") as file:
        for i, each in enumerate(data):
            tar.write_member(file, f"{i}.png", each)
            tar.write_member(file, f"{i}.cls", b"%d" % i)
        tar.write_end(file)
    with open(root / "a.rec", "wb") as file:
        for i, each in enumerate(data):
            recordio.write_image(file, each, [float(i)])
    for i in range(5):
        np.save(root / f"{i}.npy", np.full((2, i + 1), i, np.float32))
    (root / "pictures").mkdir()
    for i, each in enumerate(data):
        (root / "pictures" / f"{i}.png").write_bytes(each)
    images = [{"id": i, "file_name": f"{min(i, 3)}.png", "width": 40, "height": 30 + min(i, 3)} for i in range(5)]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [i, 1, 5, 6]} for i in range(5)]
    annotations = {"images": images, "annotations": boxes, "categories": [{"id": 1}]}
    (root / "boxes.json").write_text(json.dumps(annotations))
    entries = []
    for i in range(5):
        with wave.open(str(root / f"{min(i, 3)}.wav"), "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            sound.writeframes(np.full(400 + i, 100 * i, np.int16).tobytes())
        entry = {"audio_filepath": str(root / f"{min(i, 3)}.wav"), "duration": 0.05, "text": f"word {i}"}
        entries.append(json.dumps(entry))
    (root / "sounds.json").write_text("\n".join(entries))
    (root / "films" / "a").mkdir(parents=True)
    for i in range(6):
        Image.fromarray(smooth_image(20, 30) // (i + 1)).save(root / "films" / "a" / f"{i}.png")
    return {
        "tfrecord": lambda: fn.decoders.image(fn.readers.tfrecord(path=str(root / "a.tfrecord"), features={"image": FixedLenFeature((), string, "")})["image"]),
        "webdataset": lambda: tuple(fn.readers.webdataset(paths=str(root / "a.tar"), ext=["png", "cls"])),
        "mxnet": lambda: tuple(fn.readers.mxnet(path=str(root / "a.rec"))),
        "numpy": lambda: fn.readers.numpy(file_root=str(root), file_filter="*.npy"),
        "coco": lambda: tuple(fn.readers.coco(file_root=str(root / "pictures"), annotations_file=str(root / "boxes.json"))),
        "nemo_asr": lambda: tuple(fn.readers.nemo_asr(manifest_filepaths=[str(root / "sounds.json")], read_text=True)),
        "sequence": lambda: fn.readers.sequence(file_root=str(root / "films"), sequence_length=2, step=1),
    }


@pytest.mark.parametrize("reader", ["tfrecord", "webdataset", "mxnet", "numpy", "coco", "nemo_asr", "sequence"])
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_other_readers(reader: str, where: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    define = containers(tmp_path / "data")[reader]

    def kept() -> Any:
        found = define()
        kept = fn.cache(*found if isinstance(found, tuple) else (found,), **places(tmp_path)[where])
        return tuple(kept) if isinstance(kept, list) else kept

    pipe = build(kept, batch_size=5)
    assert same(samples(pipe, 3), samples(build(define, batch_size=5), 3))
    assert " 5 misses; 5 samples" in pipe.stats().caches[0]


def test_a_cached_sample_has_the_layout_that_an_operator_assumed(tmp_path: Path) -> None:
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", np.full((9 + i, 8, 3), i, np.uint8))

    def define(keep: bool) -> Any:
        arrays = fn.resize(fn.readers.numpy(file_root=str(tmp_path)), size=[5, 6])
        return fn.cache(arrays, bytes="1MB") if keep else arrays

    for keep in (False, True):
        pipe = build(lambda keep=keep: define(keep), batch_size=3)
        assert [pipe.run()[0].layout() for _ in range(2)] == ["HWC", "HWC"]


# ----------------------------------------------------------------- cached data


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_changed_file_is_read_again(where: str, own_images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    define = cached(own_images, places(tmp_path)[where])
    pipe = build(define, batch_size=COUNT, prefetch_queue_depth=1)
    samples(pipe, 2)
    path = own_images / "class1" / "4.png"
    Image.fromarray(smooth_image(40, 60)[::-1].copy()).save(path)
    reads = Reads(monkeypatch)
    found = samples(pipe, 3)
    assert set(reads.paths) == {str(path)}
    assert same([x[-COUNT:] for x in found[:1]], samples(build(cached(own_images, None), batch_size=COUNT), 1)[:1])


def test_the_next_run_uses_samples_on_disk(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = {"path": tmp_path / "kept"}
    expected = samples(build(cached(images, keep)), 5)
    reads = Reads(monkeypatch)
    pipe = build(cached(images, keep))
    assert same(samples(pipe, 5), expected)
    assert reads.take() == 0
    assert "hits (100.0%), 0 misses; 10 samples" in pipe.stats().caches[0]
    assert len(list((tmp_path / "kept").iterdir())) == 2
    samples(build(lambda: fn.cache(fn.readers.file(file_root=str(images))[0], **keep)), 3)  # other operators
    assert reads.take() >= COUNT
    assert len(list((tmp_path / "kept").iterdir())) == 4


@pytest.mark.parametrize("ending", ["samples", "index"])
@pytest.mark.parametrize("how", ["damaged", "cut off", "empty"])
def test_damaged_samples_on_disk_are_recomputed(ending: str, how: str, images: Path, tmp_path: Path) -> None:
    keep = {"path": tmp_path / "kept"}
    expected = samples(build(cached(images, keep)), 5)
    (path,) = (tmp_path / "kept").glob(f"*.{ending}")
    data = bytearray(path.read_bytes())
    if how == "damaged":
        data[len(data) // 2] ^= 1
    path.write_bytes({"damaged": data, "cut off": data[: len(data) // 2], "empty": b""}[how])
    for _ in range(2):
        assert same(samples(build(cached(images, keep)), 5), expected)
    pipe = build(cached(images, keep))
    assert same(samples(pipe, 5), expected)
    assert ", 0 misses" in pipe.stats().caches[0]  # bad samples have been replaced


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_closed_pipeline_holds_no_memory_and_reports_its_statistics(where: str, images: Path, tmp_path: Path) -> None:
    pipe = build(cached(images, places(tmp_path)[where]))
    (kept,) = pipe._planned.caches
    samples(pipe, 5)
    alive, stats, explained = weakref.ref(kept.store), pipe.stats().caches, pipe.explain()
    pipe.close()
    assert alive() is None
    assert pipe.stats().caches[0].rpartition(" samples,")[2] == stats[0].rpartition(" samples,")[2]
    assert pipe.explain() == explained
    pipe.close()


def test_two_pipelines_share_a_folder(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(monkeypatch)
    one, other = (build(cached(images, {"path": tmp_path}), batch_size=COUNT, prefetch_queue_depth=1) for _ in range(2))
    found = samples(one, 1)
    reads.take()
    assert same(samples(other, 1), found)
    assert reads.take() == 0
    del one
    assert same(samples(other, 1)[:1], found[:1])


@pytest.mark.parametrize("where", ["memory", "disk, budget"])
def test_the_cache_does_not_exceed_its_budget(where: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    each = 64 + 24 * 32 * 3
    keep = {**places(tmp_path)[where], "bytes": 4 * each + 100}
    reads = Reads(monkeypatch)
    pipe = build(cached(images, keep), batch_size=COUNT, prefetch_queue_depth=1)
    expected = samples(build(cached(images, None), batch_size=COUNT), 3)
    reads.take()
    assert same(samples(pipe, 3)[:1], expected[:1])
    assert reads.take() in (COUNT + 2 * 6, COUNT + 3 * 6)  # the batch ahead
    assert "4 samples" in pipe.stats().caches[0] and "the cache is full, and " in pipe.stats().caches[0]
    if "path" in keep:
        (path,) = (tmp_path / "b").glob("*.samples")
        assert path.stat().st_size == 4 * each


def test_a_full_disk_ends_caching(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite

    def full(descriptor: int, data: Any, offset: int) -> int:
        if len(data) > 1000:
            raise OSError(28, "No space left on device")
        return write(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.warns(UserWarning, match="cannot store a sample of .*: No space left"):
        found = samples(build(cached(images, {"path": tmp_path})), 5)
    assert same(found, samples(build(cached(images, None)), 5))


@pytest.mark.parametrize(
    ("given", "size"),
    [(5, 5), ("5", 5), ("8GB", 8 * 10**9), ("8 GiB", 8 << 30), ("1.5MB", 1_500_000), ("500kb", 500_000), ("2TiB", 2 << 40)],
)
def test_sizes(given: Any, size: int) -> None:
    assert ByteSize.from_argument(given) == size


# ------------------------------------------------------------------- statistics


def test_stats_and_explain(images: Path, tmp_path: Path) -> None:
    pipe = build(cached(images, {"path": tmp_path, "bytes": "2MiB"}), batch_size=COUNT, prefetch_queue_depth=1)
    samples(pipe, 2)
    text = str(pipe.stats())
    assert "cache: 10 hits (50.0%), 10 misses; 10 samples, 0.0 of 2.0 MiB in " + str(tmp_path) in text
    explained = pipe.explain()
    assert f"cache in {tmp_path}" in explained and "2 MiB at most" in explained
    after = explained[explained.index("cache in ") :]
    assert "readers.file" in after and "resize" in after and "flip" not in after
    assert build(lambda: fn.readers.file(file_root=str(images))[0]).stats().caches == ()


def test_a_damaged_image_is_blamed_on_its_decoder(own_images: Path) -> None:
    path = own_images / "class1" / "4.png"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(RuntimeError, match=r"operator 'decoders.image' failed on sample 1 of batch 1 \(.*4.png\)\n.*test_cache.py"):
        samples(build(cached(own_images, {"bytes": "1MB"})), 3)
    pipe = build(cached(own_images, {"bytes": "1MB"}), bad_samples="skip")
    assert len(samples(pipe, 5)[0]) == 18
    assert len(pipe.bad_sample_report()) == 2


def test_the_reader_reports_a_missing_file(own_images: Path) -> None:
    pipe = build(cached(own_images, {"bytes": "1MB"}))
    pipe.build()
    (own_images / "class1" / "4.png").unlink()
    with pytest.raises(RuntimeError, match=r"operator 'readers.file' failed .*(?s:.*)No such file"):
        samples(pipe, 3)


def test_a_checkpoint_continues(images: Path) -> None:
    define = cached(images, {"bytes": "1MB"}, random_shuffle=True)
    pipe = build(define)
    samples(pipe, 3)
    state = pipe.state_dict()
    expected = samples(pipe, 4)
    other = build(cached(images, {"bytes": "2MB"}, random_shuffle=True))
    other.load_state_dict(state)
    assert same(samples(other, 4), expected)


# ------------------------------------------------------------- rejected arguments


@operator(name="_doubled_in_tests")
def _doubled_in_tests(x: Data, /) -> Data:
    """Double."""
    return x * 2


def images_of(root: Path) -> Any:
    return fn.decoders.image(fn.readers.file(file_root=str(root))[0])


MEMORY = {"bytes": "1MB"}
REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "random": (
        lambda root: fn.cache(fn.crop(images_of(root), crop=(8, 8), crop_pos_x=fn.random.uniform()), **MEMORY),
        r"'random.uniform' draws random numbers(?s:.*)test_cache.py(?s:.*)The cache is here(?s:.*)test_cache.py",
    ),
    "random decoder": (
        lambda root: fn.cache(fn.decoders.image_random_crop(fn.readers.file(file_root=str(root))[0]), **MEMORY),
        "'decoders.image_random_crop' draws random numbers",
    ),
    "source": (
        lambda root: fn.cache(fn.external_source(source=lambda: [np.zeros(3)] * 4), **MEMORY),
        "'external_source' comes from Python",
    ),
    "data set": (
        lambda root: fn.cache(fn.readers.dataset(dataset=[1, 2, 3]), **MEMORY),
        "'readers.dataset' comes from Python",
    ),
    "function": (
        lambda root: fn.cache(fn.python_function(images_of(root), function=lambda x: x), **MEMORY),
        "'python_function' calls a function",
    ),
    "batch": (
        lambda root: fn.cache(fn.permute_batch(images_of(root), indices=[3, 2, 1, 0]), **MEMORY),
        "'permute_batch' processes the entire batch",
    ),
    "two readers": (
        lambda root: fn.cache(fn.cat(images_of(root), images_of(root)), **MEMORY),
        "is one of 2 readers before the cache",
    ),
    "none": (lambda root: fn.cache(fn.zeros(shape=[3]), **MEMORY), "has no reader before it"),
    "files": (
        lambda root: fn.cache(fn.io.file.read(fn.readers.file(file_root=str(root))[0]), **MEMORY),
        "'io.file.read' reads files that the cache can't track",
    ),
    "own, on disk": (
        lambda root: fn.cache(_doubled_in_tests.operator.function(images_of(root)), path=root / "kept"),
        "'_doubled_in_tests' is declared outside torchdali",
    ),
    "nowhere": (lambda root: fn.cache(images_of(root)), "to cache in memory, or path="),
    "size": (lambda root: fn.cache(images_of(root), bytes="much"), "a size must be .*'much'"),
    "no bytes": (lambda root: fn.cache(images_of(root), bytes=0), "a size must be .*got 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nodes_that_cannot_be_cached_are_rejected(case: str, images: Path) -> None:
    define, message = REFUSED[case]
    with pytest.raises((RuntimeError, ValueError), match=message):
        build(lambda: define(images)).build()


def test_a_branch_is_rejected(images: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, enable_conditionals=True)
    def define() -> Any:
        files, _ = fn.readers.file(file_root=str(images))
        decoded = fn.decoders.image(files)
        if fn.random.coin_flip(dtype=types.BOOL):
            decoded = fn.cache(decoded, bytes="1MB")
        return decoded

    with pytest.raises(RuntimeError, match="is in a branch"):
        define().build()


def test_device_nodes_are_rejected(images: Path) -> None:
    def define() -> Any:
        return fn.cache(fn.decoders.image(fn.readers.file(file_root=str(images))[0], device="mixed").cpu(), bytes="1MB")

    with pytest.raises(RuntimeError, match="runs on 'mixed', but samples are cached on the CPU"):
        build(define, device_id="cpu").build()


def test_results_of_a_user_operator_are_cached_in_memory(images: Path) -> None:
    def define() -> Any:
        return fn.cache(_doubled_in_tests.operator.function(images_of(images)), bytes="1MB")

    expected = samples(build(lambda: _doubled_in_tests.operator.function(images_of(images))), 5)
    assert same(samples(build(define), 5), expected)


def test_a_folder_that_cannot_be_created_is_an_error(images: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="cannot create the cache"):
        build(cached(images, {"path": tmp_path / "file" / "kept"})).build()


def test_other_files_in_the_folder_are_not_modified(images: Path, tmp_path: Path) -> None:
    samples(build(cached(images, {"path": tmp_path})), 1)
    (path,) = tmp_path.glob("*.index")
    path.write_bytes(b"something else, of another program, which is long enough")
    with pytest.raises(RuntimeError, match="isn't a cache of this version"):
        build(cached(images, {"path": tmp_path})).build()
    assert path.read_bytes().startswith(b"something else")


# ---------------------------------------------------------------- processes


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_stores_of_killed_processes_are_valid(where: str, tmp_path: Path) -> None:
    found = in_own_process("tests.helpers.killed_caches", f"stores({str(tmp_path)!r}, 200, {where!r})")
    assert found["wrong"] == 0 and found["killed"] == 200 and found["read"] > 2000


@pytest.mark.slow
def test_killed_pipelines_leave_valid_caches(tmp_path: Path) -> None:
    root = tmp_path / "images" / "class"
    root.mkdir(parents=True)
    for i in range(40):
        (root / f"{i}.png").write_bytes(encoded(smooth_image(40 + i, 60 - i % 5), "PNG"))
    found = in_own_process("tests.helpers.killed_caches", f"pipelines({str(root.parent)!r}, {str(tmp_path)!r}, 100)")
    assert found["wrong"] == 0 and found["killed"] == 200
    assert found["hits"] > 500 and found["misses"] > 500  # killed in the middle


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_replicas_share_a_cache(where: str, method: str, images: Path, tmp_path: Path) -> None:
    reader = {"random_shuffle": True}
    expected = samples(build(cached(images, None, **reader)), 20)
    pipe = build(cached(images, places(tmp_path)[where], **reader), num_threads=2, num_processes=2, py_start_method=method)
    assert same(samples(pipe, 20), expected)
    assert "2 worker processes" in pipe.explain()
    (line,) = pipe.stats().caches
    misses = int(line.split(" hits")[1].split(", ")[1].split(" misses")[0])
    assert "10 samples" in line and COUNT <= misses <= 2 * COUNT  # both may compute a sample concurrently
    pipe.close()


# ------------------------------------------------------------- remote data


def far(place: str, kind: str, keep: dict[str, Any], **reader: Any) -> Callable[[], Any]:
    def define() -> Any:
        if kind == "tar":
            data = fn.readers.webdataset(paths=[f"{place}/a.tar"], ext=["png"], name="Reader", **reader)
        else:
            data = fn.readers.file(files=[f"{place}/{i}.png" for i in range(COUNT)], name="Reader", **reader)[0]
        return fn.cache(fn.resize(fn.decoders.image(data), size=[24, 32]), **keep)

    return define


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ObjectServer]:
    pytest.importorskip("aiohttp", reason="fsspec reads web servers by aiohttp")
    contents = [encoded(smooth_image(40 + i, 60 - i), "PNG") for i in range(COUNT)]
    write_tar(tmp_path / "a.tar", [(f"{i}.png", content) for i, content in enumerate(contents)])
    with object_server() as server:
        server.objects = {"a.tar": (tmp_path / "a.tar").read_bytes(), **{f"{i}.png": c for i, c in enumerate(contents)}}
        server.tags = True
        yield server


@pytest.mark.parametrize("where", ["memory", "disk"])
@pytest.mark.parametrize("kind", ["tar", "file"])
def test_cached_samples_of_a_url_send_no_requests(kind: str, where: str, store: ObjectServer, tmp_path: Path) -> None:
    keep = places(tmp_path)[where]
    reader = {"random_shuffle": True, "pad_last_batch": True}
    with build(far(store.url, kind, keep, **reader)) as pipe:
        first = samples(pipe, 3)
        store.requests.clear()
        assert not same(first, samples(pipe, 3))  # another order
        assert not store.requests
        assert "20 misses" not in pipe.stats().caches[0] and " 10 samples" in pipe.stats().caches[0]
    with build(far(store.url, kind, keep, **reader)) as pipe:
        assert same(samples(pipe, 3), first)
        asked = {method for method, path, _ in store.requests if path.endswith(".png")}
        assert asked == ({"HEAD", "GET"} if where == "memory" else {"HEAD"}) if kind == "file" else not asked


@pytest.mark.parametrize("kind", ["tar", "file"])
def test_a_replaced_object_is_recomputed(kind: str, store: ObjectServer, tmp_path: Path) -> None:
    keep = places(tmp_path)["disk"]
    with build(far(store.url, kind, keep)) as pipe:
        first = samples(pipe, 2)
    content = encoded(smooth_image(70, 50), "PNG")
    write_tar(tmp_path / "b.tar", [(f"{i}.png", content) for i in range(COUNT)])
    store.objects |= {"a.tar": (tmp_path / "b.tar").read_bytes(), "3.png": content}
    with build(far(store.url, kind, keep)) as pipe:
        second = samples(pipe, 2)
    changed = [not torch.equal(a, b) for a, b in zip(first[0], second[0], strict=True)]
    assert changed[:COUNT] == ([True] * 8 if kind == "tar" else [i == 3 for i in range(8)])


def test_an_object_replaced_between_two_requests_is_not_cached(store: ObjectServer, tmp_path: Path) -> None:
    remote = Remote()
    assert remote.identity(f"{store.url}/3.png") and remote.identity(f"{store.url}/none.png") is None
    store.objects["3.png"] = store.objects["4.png"]
    with pytest.raises(RuntimeError, match="was replaced while torchdali read it"):
        remote.read(f"{store.url}/3.png")


def test_a_store_without_versions_is_rejected(store: ObjectServer) -> None:
    store.tags = False
    for kind in ("tar", "file"):
        with pytest.raises(RuntimeError, match="the store sends neither an ETag nor a modification time"):
            build(far(store.url, kind, {"bytes": "1MB"})).build()
