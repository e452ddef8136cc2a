"""Pipelines with a device stage on a mock accelerator: values, races, and the detection of missing waits."""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.execute.test_random_graphs import BATCH, Grower
from tests.helpers import proxy_data
from tests.helpers.inside import fused_calls, storage_of, with_blocks_from
from tests.pretend import Accelerator, accelerator, inner
from tests.pretend.pictures import write_images
from torchdali import Loader, fn, pipeline_def, types
from torchdali.execute.device_stream import DeviceStream
from torchdali.execute.output_buffer import Arena
from torchdali.kernels.memory import IN_PLACE
from torchdali.plugin.pytorch import DALIClassificationIterator, feed_ndarray
from torchdali.plugin.pytorch.experimental import proxy
from torchdali.tensors.buffer_pool import BufferPool

pytestmark = pytest.mark.slow  # the quick tests are in test_pretence and test_operators

LONG = pytest.mark.skipif(
    not os.environ.get("TORCHDALI_LONG_TESTS"), reason="takes ten minutes and more: set TORCHDALI_LONG_TESTS"
)
DEPTH = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("pictures"), 16)


@pytest.fixture
def gpu() -> Iterator[Accelerator]:
    with accelerator(devices=2) as made:
        yield made


def races(gpu: Accelerator) -> str:
    gc.collect()
    return "\n".join(gpu.report.races)


def train(
    folder: Path, device_id: Any, where: str = "mixed", seed: int = 1, batch_size: int = 4, **options: Any
) -> Any:
    """Training of classifiers; ``where`` selects the copy to the device: ``"mixed"``, ``"bytes"`` or ``"floats"``."""

    @pipeline_def(
        batch_size=batch_size, num_threads=2, device_id=device_id, seed=seed, prefetch_queue_depth=DEPTH, **options
    )
    def define() -> Any:
        files, labels = fn.readers.file(file_root=str(folder), random_shuffle=True, name="Reader")
        images = fn.decoders.image(files, device="mixed" if where == "mixed" else "cpu")
        images = fn.random_resized_crop(images, size=[24, 32])
        images = images.gpu() if where == "bytes" else images
        images = fn.crop_mirror_normalize(
            images, mirror=fn.random.coin_flip(), mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0], dtype=types.FLOAT
        )
        # The host would wait for a label copied from pageable memory, which would hide races.
        return images.gpu() if where == "floats" else images, labels if where == "floats" else labels.gpu()

    return define()


def delivered(pipe: Any, count: int) -> list[tuple[Any, Any]]:
    iterator = DALIClassificationIterator(pipe, reader_name="Reader", auto_reset=True)
    found = []
    while len(found) < count:
        for batch in iterator:
            found.append((batch[0]["data"] + 0, batch[0]["label"] + 0))  # on the user's stream
    pipe.close()
    return found[:count]


@pytest.mark.parametrize("where", ["mixed", "bytes", "floats"])
def test_training_matches_the_cpu(folder: Path, where: str) -> None:
    expected = delivered(train(folder, "cpu", where), 3)
    with accelerator() as gpu:
        found = delivered(train(folder, 0, where), 3)
        for (images, labels), (ours, our_labels) in zip(expected, found, strict=True):
            assert ours.device == torch.device("cuda", 0)
            assert torch.equal(labels, inner(our_labels))
            inside = slice(4, -4) if where == "mixed" else slice(None)  # see test_operators
            assert (images - inner(ours))[..., inside, inside].abs().max() < 1.01 / 57
        del found, ours, our_labels
        assert not races(gpu)


@pytest.mark.parametrize("where", ["mixed", "bytes", "floats"])
@pytest.mark.parametrize("options", [{}, {"exec_async": False, "exec_pipelined": False}, {"max_streams": 1}])
def test_other_devices_are_not_used(folder: Path, where: str, options: dict[str, Any]) -> None:
    """A context takes half a gigabyte: ranks must not create one on device 0, whichever device the script has set."""
    with accelerator(devices=3) as gpu:
        found = delivered(train(folder, 2, where, **options), 3)
        images = found[0][0]
        images + 0
        del found, images
        assert gpu.contexts == {2}
        assert not races(gpu)


SEEN = {
    "shorter side": ({"resize_shorter": 24}, {"crop": (16, 18)}),
    "grown": ({"resize_shorter": 90}, {"crop": (30, 30)}),
    "mirrored, at a corner": ({"size": [-30.0, 30.0]}, {"crop": (12, 20), "crop_pos_y": 0.0, "crop_pos_x": 1.0}),
    "without antialiasing": ({"resize_x": 20, "antialias": False}, {"crop_h": 9.0, "crop_w": 11.0}),
}


@pytest.mark.parametrize("name", SEEN)
def test_only_the_region_of_a_crop_is_decoded(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer bytes are copied, and the values are equal up to rounding."""
    resize, crop = SEEN[name]

    def run() -> tuple[torch.Tensor, int]:
        @pipeline_def(batch_size=8, num_threads=2, device_id=0, seed=3, exec_pipelined=False)
        def define() -> Any:
            files, _ = fn.readers.file(file_root=str(folder))
            images = fn.decoders.image(files, device="mixed", jpeg_fancy_upsampling=True)  # repeated colors differ by rounding twice as often
            images = fn.resize(images, **resize)
            return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **crop)

        with accelerator() as gpu:
            pipe = define()
            found = [inner(pipe.run()[0].as_tensor().torch()).clone() for _ in range(2)]
            pipe.close()
            assert not races(gpu)
            return torch.cat(found), gpu.report.bytes["upload pinned"]

    seen, fewer = run()
    monkeypatch.setattr("torchdali.graph.rewrite._on_device._decode_cropped", lambda graph: graph)
    whole, more = run()
    assert fewer < 0.9 * more
    assert (seen - whole).abs().max() <= 1 and (seen != whole).float().mean() < 0.01


def test_writing_to_a_slot_during_its_copy_is_reported(gpu: Accelerator) -> None:
    """Check of the tests: NumPy writes to pinned buffers, which torch does not observe."""
    memory = torch.empty(1 << 22, dtype=torch.uint8, pin_memory=True)
    arena = Arena(memory)
    arena.put(torch.zeros(9, dtype=torch.uint8))
    assert not races(gpu)
    there, _ = DeviceStream(torch.device("cuda", 0)).copy_arena(arena, ())
    Arena(memory).put(torch.zeros(9, dtype=torch.uint8))  # the same memory, as if by the next batch
    assert "may still be read" in races(gpu)
    del there


def test_copies_are_done_when_a_stream_is_closed(gpu: Accelerator) -> None:
    """The memory is freed next, and torch doesn't track copies that start inside a block."""
    memory = torch.empty(1 << 22, dtype=torch.uint8, pin_memory=True)
    arena = Arena(memory)
    arena.put(torch.zeros(9, dtype=torch.uint8))
    ours = DeviceStream(torch.device("cuda", 0))
    there, _ = ours.copy_arena(arena, ())
    ours.close()
    Arena(memory).put(torch.zeros(9, dtype=torch.uint8))
    assert not races(gpu)
    del there


def test_buffers_accept_empty_samples() -> None:
    """Empty samples occupy no slot of the buffer, like results outside of the buffer."""
    arena = Arena(torch.zeros(1 << 22, dtype=torch.uint8))
    samples = [torch.full((size,), i, dtype=torch.uint8) for i, size in enumerate((0, 0, 3 << 20, 5))]
    stored = list(map(arena.put, samples))
    assert stored[2:] == list(map(arena.put, map(arena.sample, stored[2:])))  # the buffers exist
    packed = arena.pack(stored, "", None)
    assert packed is not None and [len(s) for s in packed.samples()] == [0, 0, 3 << 20, 5]
    assert packed.samples()[2].float().mean() == 2 and packed.samples()[3].tolist() == [3] * 5
    stored[3] = arena.put(torch.zeros(5))  # of another dtype, in place of a bad sample
    assert arena.pack(stored, "", None) is None


@pytest.mark.parametrize("train", [True, False])
def test_from_folder_delivers_to_its_device(folder: Path, gpu: Accelerator, train: bool) -> None:
    options: dict[str, Any] = {"train": train, "size": 24, "batch_size": 4, "num_threads": 2, "seed": 3}
    for loop in range(2):
        with (
            Loader.from_folder(folder, **options) as on_cpu,
            Loader.from_folder(folder, device_id=0, **options) as ours,
        ):
            pairs = list(zip(on_cpu, ours, strict=True))
        for (images, labels), (there, theirs) in pairs:
            assert str(there.device) == str(theirs.device) == "cuda:0", loop
            assert torch.equal(labels, inner(theirs).cpu())
            assert torch.allclose(images, inner(there).cpu(), atol=2e-6)


def test_from_folder_decodes_into_pinned_memory(
    folder: Path, gpu: Accelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One library call decodes several images; the first batch's shape is unknown."""
    locked: list[bool] = []

    def note(tasks: Any, results: Any, out: Any, room: Any) -> None:
        locked.extend(result is IN_PLACE and out.is_pinned() for result in results)

    fused_calls(monkeypatch, note)
    with Loader.from_folder(folder, train=True, size=24, batch_size=4, num_threads=2, seed=3, device_id=0) as loader:
        for _ in range(3):
            assert len(list(loader)) == 4
    assert locked.count(True) >= 4 * 8 and not gpu.report.pageable


def test_the_second_device(folder: Path) -> None:
    with accelerator(devices=2) as gpu:
        found = delivered(train(folder, 1), 2)
        assert {t.device.index for pair in found for t in pair} == {1}
        del found
        assert not races(gpu)


def test_two_concurrent_pipelines(folder: Path, gpu: Accelerator) -> None:
    """Training and validation share caches, not streams."""
    pipes = [train(folder, 0, seed=seed) for seed in (1, 2)]
    kept = [pipe.run() for _ in range(2) for pipe in pipes]
    for pipe in pipes:
        pipe.close()
    del kept
    assert not races(gpu)


def test_ranks_have_a_device_each(folder: Path, gpu: Accelerator) -> None:
    pipes = [train(folder, rank) for rank in range(2)]
    for rank, pipe in enumerate(pipes):
        images, labels = pipe.run()
        assert {s.device.index for s in (*images.samples(), *labels.samples())} == {rank}
        del images, labels
        pipe.close()
    assert not races(gpu)


def ranked(files: list[str], rank: int, device_id: Any) -> Any:
    """Train on the shard of a rank; the label of an image is its index."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=device_id, seed=7 + rank, prefetch_queue_depth=DEPTH)
    def define() -> Any:
        data, labels = fn.readers.file(
            files=files, labels=list(range(len(files))), random_shuffle=True, shard_id=rank, num_shards=2, name="Reader"
        )
        images = fn.random_resized_crop(fn.decoders.image(data, device="mixed"), size=[32, 40])
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip()), labels.gpu()

    return define()


def test_two_ranks_train_concurrently(folder: Path) -> None:
    """As with DDP: a thread of each rank with a current device of its own, in step; shards are disjoint in each epoch."""
    files = sorted(map(str, folder.rglob("*.jpg")))
    expected = [delivered(ranked(files, rank, "cpu"), 4) for rank in range(2)]
    found: list[Any] = [None, None]

    with accelerator(devices=2, lag=9) as gpu:
        in_step = threading.Barrier(2, timeout=60)

        def train_rank(rank: int) -> None:
            torch.cuda.set_device(rank)
            iterator = DALIClassificationIterator(ranked(files, rank, rank), reader_name="Reader", auto_reset=True)
            seen = []
            for _ in range(2):
                for batch in iterator:
                    seen.append((batch[0]["data"] + 0, batch[0]["label"] + 0))
                    in_step.wait()
            found[rank] = seen

        with ThreadPoolExecutor(2) as ranks:
            list(ranks.map(train_rank, range(2)))
        for rank, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            assert len(ours) == len(theirs)
            for (images, labels), (cpu_images, cpu_labels) in zip(ours, theirs, strict=True):
                assert images.device == labels.device == torch.device("cuda", rank)
                assert torch.equal(inner(labels), cpu_labels)
                assert (inner(images) - cpu_images)[..., 4:-4, 4:-4].abs().max() <= 1.01
        for epoch in range(2):
            numbers = [int(n) for ours in found for _, labels in ours[2 * epoch : 2 * epoch + 2] for n in inner(labels)]
            assert sorted(numbers) == list(range(len(files)))
        found.clear()
        del ours, images, labels
        assert not races(gpu)


@pytest.mark.parametrize("mode", ["thread_local", "global"])
def test_cuda_graphs_captured_during_a_pipeline(folder: Path, gpu: Accelerator, mode: str) -> None:
    """A pipeline's threads query events: in the default capture mode the queries fail, and `docs/gpu.md` names the other mode."""
    pipe, graph = train(folder, 0), torch.cuda.CUDAGraph()
    pipe.run()
    static = torch.zeros(9, device="cuda")

    def drain() -> str:
        try:
            for _ in range(3):
                pipe.run()
        except RuntimeError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(1) as helper, torch.cuda.graph(graph, capture_error_mode=mode):
        static.add_(1)
        failure = helper.submit(drain).result(60)
    graph.replay()
    assert ("not permitted when stream is capturing" in failure) == (mode == "global"), failure
    pipe.close()
    del static
    assert not races(gpu)


def test_immediately_dropped_batches(folder: Path, gpu: Accelerator) -> None:
    pipe = train(folder, 0, "floats")
    iterator = DALIClassificationIterator(pipe, reader_name="Reader", auto_reset=True)
    for _ in range(5):
        for batch in iterator:
            batch[0]["data"].sum()
            del batch
    pipe.close()
    del iterator
    assert not races(gpu)


def test_a_missing_wait_is_reported(folder: Path, gpu: Accelerator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check of the tests: without the wait at the hand-over, the user reads incomplete data."""
    monkeypatch.setattr(DeviceStream, "hand_over", lambda self, *given: None)
    found = delivered(train(folder, 0, "floats"), 1)
    del found
    assert "without a wait" in races(gpu)


def test_a_missing_wait_for_a_copy_is_reported(folder: Path, gpu: Accelerator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check of the tests: kernels that do not wait for the copy stream."""
    monkeypatch.setattr(DeviceStream, "_wait_for_copies", lambda self, *given: None)
    found = delivered(train(folder, 0), 1)
    del found
    assert "without a wait" in races(gpu)


@pytest.mark.parametrize("options", [{"max_streams": 1}, {"default_cuda_stream_priority": -1}])
def test_requested_streams(folder: Path, gpu: Accelerator, options: dict[str, int]) -> None:
    found = delivered(train(folder, 0, **options), 3)
    del found
    assert not races(gpu)


def test_memory_that_is_not_recorded_is_reported(
    folder: Path, gpu: Accelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.pretend.PretendTensor.record_stream", lambda self, stream: None)
    delivered(train(folder, 0, "floats"), 1)
    assert "let go" in races(gpu)


def test_a_buffer_reused_too_early_is_reported(
    folder: Path, gpu: Accelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large batches come from a pool, and are copied directly from its blocks."""
    monkeypatch.setattr(DeviceStream, "keep_until", lambda self, *given: None)
    pool = "torchdali.tensors.buffer_pool.BufferPool._smallest"
    monkeypatch.setattr(pool, 1 << 10)
    delivered(train(folder, 0, "floats", batch_size=8), 8)
    assert "may still be read" in races(gpu)


def test_pooled_buffers_wait_for_their_copies(folder: Path, gpu: Accelerator, monkeypatch: pytest.MonkeyPatch) -> None:
    with_blocks_from(monkeypatch, BufferPool, 1 << 10)
    delivered(train(folder, 0, "floats", batch_size=8), 8)
    assert not races(gpu)


def _fed(given: Any, debug: bool = False, **options: Any) -> Any:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0, debug=debug)
    def define() -> Any:
        return fn.external_source(source=lambda: given, device="gpu", **options) + 1

    pipe = define()
    pipe.build()
    return pipe


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("form", ["list", "dense", "host"])
def test_external_sources(gpu: Accelerator, form: str, debug: bool) -> None:
    values = torch.arange(12, dtype=torch.float32).view(2, 6)
    given = {"dense": gpu.tensor(values), "list": [gpu.tensor(v) for v in values], "host": values.numpy()}[form]
    pipe = _fed(given, debug)
    for _ in range(3):
        (found,) = pipe.run()
        assert torch.equal(torch.stack([inner(s) for s in found.samples()]), values + 1)
        del found
    pipe.close()
    assert not races(gpu)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("device", ["gpu", "cpu"])
@pytest.mark.parametrize("copy", [False, True])
def test_the_host_does_not_wait_for_sources_on_the_accelerator(gpu: Accelerator, debug: bool, device: str, copy: bool) -> None:
    """The training step may be on the source's stream: kernels must wait for it, but the host must not."""
    side = torch.cuda.Stream()

    def source() -> list[torch.Tensor]:
        return [torch.ones(3, device="cuda") * i for i in range(2)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=0, debug=debug)
    def define() -> Any:
        return fn.external_source(source=source, device=device, no_copy=not copy) * 2

    with torch.cuda.stream(side):
        pipe = define()
        for _ in range(3):
            (found,) = pipe.run()
            assert [inner(s).tolist() for s in found.samples()] == [[0, 0, 0], [2, 2, 2]]
            del found
        pipe.close()
    assert not [line for kind, line in gpu.report.sites if kind == "sync" and "convert.py" in line]
    assert not races(gpu)


def test_external_source_on_its_own_stream(gpu: Accelerator) -> None:
    side = torch.cuda.Stream()

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def define() -> Any:
        return fn.external_source(name="data", device="gpu") * 2

    pipe = define()
    pipe.build()

    def feed() -> None:
        with torch.cuda.stream(side):
            made = [torch.ones(3, device="cuda") for _ in range(2)]
        pipe.feed_input("data", made, cuda_stream=side)

    for _ in range(pipe.input_feed_count("data")):
        feed()
    for _ in range(3):
        (found,) = pipe.run()
        feed()
        assert inner(found.samples()[0]).tolist() == [2, 2, 2]
        del found
    pipe.close()
    assert not races(gpu)


def test_outputs_for_a_passed_stream(folder: Path, gpu: Accelerator) -> None:
    side = torch.cuda.Stream()
    pipe = train(folder, 0)
    for _ in range(2):
        images, _ = pipe.run(side)
        with torch.cuda.stream(side):
            images.samples()[0].sum()
        del images, _
    pipe.close()
    assert not races(gpu)


@pytest.mark.parametrize("own_stream", [False, True])
def test_feed_ndarray(folder: Path, gpu: Accelerator, own_stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock does not observe copies to an address; the target is a tensor here."""
    side = torch.cuda.Stream() if own_stream else None
    target = torch.zeros((4, 3, 24, 32), device="cuda")
    if side is not None:
        side.wait_stream(torch.cuda.current_stream())
    memory = {1: target.view(-1)}
    as_tensor = torch.as_tensor
    monkeypatch.setattr(type(target), "data_ptr", lambda self: 1)
    monkeypatch.setattr(
        torch,
        "as_tensor",
        lambda x, *args, **kw: (
            memory[1].view(torch.uint8)
            if hasattr(x, "__cuda_array_interface__") and not isinstance(x, torch.Tensor)
            else as_tensor(x, *args, **kw)
        ),
    )
    pipe = train(folder, 0)
    (images, _) = pipe.run()
    feed_ndarray(images, target, cuda_stream=side)
    if side is not None:
        torch.cuda.current_stream().wait_stream(side)
    target + 1
    assert torch.equal(inner(target), torch.stack([inner(s) for s in images.samples()]))
    pipe.close()
    del images, _
    assert not races(gpu)


class _OnDevice(Grower):
    """Random graphs whose data is on the device."""

    def source(self) -> Any:
        return super().source().gpu()

    def python(self) -> Any:
        return fn.copy(self.pick())


def _graph(seed: int, device_id: Any, **arguments: Any) -> list[list[Any]]:
    @pipeline_def(**{"batch_size": BATCH, "device_id": device_id, "seed": seed, "num_threads": 2, **arguments})
    def define() -> Any:
        return _OnDevice(seed).grow()

    pipe = define()
    found = []
    for _ in range(3):
        outputs = pipe.run()
        found.append([torch.stack([inner(s) for s in o.samples()]) for o in outputs])
        del outputs
    pipe.close()
    return found


def _check_graphs(seeds: range) -> None:
    for seed in seeds:
        expected = _graph(seed, "cpu")
        rng = random.Random(seed)
        schedule = {
            "prefetch_queue_depth": rng.randint(1, 4), "num_threads": rng.randint(1, 3), "max_streams": rng.choice([1, 2]),
            "exec_async": rng.random() < 0.8,
        }  # fmt: skip
        with accelerator(lag=rng.randint(0, 8)) as gpu:
            found = _graph(seed, 0, **schedule)
            for batch, pair in enumerate(zip(expected, found, strict=True)):
                for a, b in zip(*pair, strict=True):
                    assert torch.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True), f"graph {seed}, batch {batch}"
            assert not (said := races(gpu)), f"graph {seed}, {schedule}: {said}"


def test_random_graphs() -> None:
    _check_graphs(range(3))


@pytest.mark.parametrize("first", [0, *[pytest.param(i, marks=LONG) for i in range(100, 1000, 100)]])
def test_a_thousand_random_schedules(first: int) -> None:
    """Random graphs, depths, threads and streams, and events with random delays."""
    _check_graphs(range(first + 3, first + 103))


WAYS: list[dict[str, Any]] = [
    {"num_workers": 0},
    *({"num_workers": 1, "multiprocessing_context": how} for how in ("fork", "spawn")),
]


@pytest.mark.parametrize("way", WAYS)
def test_the_proxy(gpu: Accelerator, way: dict[str, Any]) -> None:
    """The server in this process receives samples of other processes, and copies them to the device."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=1, seed=3)
    def define() -> Any:
        return fn.external_source(name="x").gpu() * 2

    with proxy.DALIServer(define()) as server:
        loader: Any = proxy.DataLoader(server, proxy_data.Made(server.proxy, proxy_data.plain), batch_size=4, **way)
        found = [batch + 0 for batch in loader]
    assert {batch.device for batch in found} == {torch.device("cuda", 1)}
    assert [inner(batch)[:, 0].tolist() for batch in found] == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]
    del found
    assert not races(gpu)


def test_dynamic_mode(gpu: Accelerator) -> None:
    from torchdali import dynamic

    given = dynamic.as_batch([np.full((4, 5, 3), 9 * i, np.uint8) for i in range(3)], layout="HWC")
    found = dynamic.flip(dynamic.brightness(given.gpu() if hasattr(given, "gpu") else given, brightness=2.0))
    assert [int(inner(s).max()) for s in storage_of(found).samples()] == [0, 18, 36]
    del found, given
    assert not races(gpu)


DECODERS = {
    "image": {},
    "image_crop": {"crop": [20, 24]},
    "image_slice": {"start": [3, 4], "shape": [10, 11], "axes": [0, 1]},
    "image_random_crop": {},
}


def decoded(name: str, encoded: Any, **options: Any) -> list[np.ndarray]:
    """Decode in the dynamic mode, and check that the result is on the requested device."""
    from torchdali import dynamic

    rng = {"rng": dynamic.random.RNG(3)} if name == "image_random_crop" else {}
    image = getattr(dynamic.decoders, name)(encoded, **DECODERS[name], **rng, **options)
    device = options.get("device", "cpu")
    assert image.device.device_type == image.evaluate().device.device_type == device and image.layout == "HWC"
    tensors = image.tensors if isinstance(image, dynamic.Batch) else [image]
    return [np.asarray(each.cpu()) for each in tensors]


@pytest.mark.parametrize("mode", ["eager", "deferred", "sync_full"])
@pytest.mark.parametrize("name", DECODERS)
def test_decoders_of_the_dynamic_mode(gpu: Accelerator, folder: Path, name: str, mode: str) -> None:
    from torchdali import dynamic

    files = [np.fromfile(path, np.uint8) for path in sorted(folder.rglob("*.jpg"))[:3]]
    with getattr(dynamic.EvalMode, mode):
        for encoded in (dynamic.as_batch(files), dynamic.as_tensor(files[1]), dynamic.as_batch(files).gpu()):
            wanted = decoded(name, encoded.cpu())
            smooth = decoded(name, encoded, device="gpu", jpeg_fancy_upsampling=True)
            assert all(map(np.array_equal, smooth, wanted))
            assert not all(map(np.array_equal, decoded(name, encoded, device="gpu"), wanted))  # see docs/gpu.md
    assert not races(gpu)


def test_colors_of_decoders_in_the_dynamic_mode(gpu: Accelerator, folder: Path) -> None:
    from torchdali import dynamic

    files = [np.fromfile(path, np.uint8) for path in sorted(folder.rglob("*.jpg"))[:3]]

    @pipeline_def(batch_size=3, num_threads=2, device_id=0)
    def define() -> Any:
        return fn.decoders.image(fn.external_source(lambda: files), device="mixed")

    with define() as pipe:
        wanted = [inner(sample).numpy() for sample in pipe.run()[0].samples()]
    assert all(map(np.array_equal, decoded("image", dynamic.as_batch(files), device="gpu"), wanted))


@pytest.mark.parametrize("capture", [False, True])
def test_decoders_of_the_dynamic_mode_and_later_operators(gpu: Accelerator, folder: Path, capture: bool) -> None:
    """Run on the accelerator that each call names, with values that are already there."""
    from torchdali import dynamic

    found: dict[str, list[np.ndarray]] = {}
    for device in ("cpu", "gpu:1", "gpu:0"):
        offset = dynamic.as_batch([np.full((1, 1, 1), 7 * i, np.float32) for i in range(4)]).to_device(device)
        reader = dynamic.readers.File(file_root=str(folder))
        found[device] = []
        for encoded, _ in reader.next_epoch(batch_size=4, capture=capture):
            images = dynamic.decoders.image(encoded, device=device, jpeg_fancy_upsampling=True)
            turned = dynamic.flip(images, horizontal=1) + offset
            assert str(turned.device) == device == str(turned.evaluate().device)
            found[device] += [np.asarray(each.cpu()) for each in (*images.tensors, *turned.tensors)]
    assert all(map(np.array_equal, found["gpu:0"], found["cpu"])) and len(found["cpu"]) == 32
    assert all(map(np.array_equal, found["gpu:1"], found["cpu"]))
    assert not races(gpu)


def test_decoders_of_the_dynamic_mode_accept_only_gpu(gpu: Accelerator) -> None:
    """As in DALI, which has no device ``"mixed"`` there."""
    from torchdali import dynamic

    with pytest.raises(ValueError, match="mixed"):
        dynamic.decoders.image(dynamic.as_tensor(np.zeros(9, np.uint8)), device="mixed")


def test_a_stream_of_another_accelerator_in_the_dynamic_mode(gpu: Accelerator) -> None:
    from torchdali import dynamic

    other = dynamic.Stream(device_id=1)
    assert other.device_id == 1
    for given in (other, torch.cuda.Stream(1)):
        with pytest.raises(ValueError, match="must belong to the accelerator 0, got a stream of the accelerator 1"):
            dynamic.EvalContext(device_id=0, cuda_stream=given)
        with pytest.raises(ValueError, match="must belong to the accelerator 0, got a stream of the accelerator 1"):
            dynamic.set_default_stream(given, device_id=0)
    assert dynamic.EvalContext(device_id=1, cuda_stream=other).cuda_stream is other
    with pytest.raises(TypeError, match="a stream must be"):
        dynamic.EvalContext(cuda_stream="1")
