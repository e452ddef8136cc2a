"""nvJPEG called by our library: a mock nvJPEG, which decodes late and out of order, on a mock accelerator."""

from __future__ import annotations

import ctypes
import gc
import io
import shutil
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks import gpu as developers
from tests.helpers.inside import decodes_by_hardware
from tests.helpers.native import native_codecs
from tests.pretend import accelerator, inner
from tests.pretend.pictures import write_images
from tests.pretend.streams import Event, Memory, Stamp, Stream, state
from tests.pretend.tensor import PretendTensor
from tests.pretend.test_budgets import BUDGETS, define
from torchdali import fn, pipeline_def
from torchdali.codecs import engines
from torchdali.codecs.engines import NvJpeg
from torchdali.execute.hardware_decoding import HardwareDecoding
from torchdali.execute.stages import StageRunner
from torchdali.execute.sync import CallerQueue
from torchdali.kernels.native import library

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(library() is None or shutil.which("cc") is None, reason="needs the library in C, and a compiler"),
]
COUNT, BATCH = 22, 8


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nvjpeg") / "libnvjpeg.so"
    source = Path(__file__).with_name("nvjpeg.c")
    command = ["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(made), "-ljpeg"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"libjpeg's headers are not there: {done.stderr[:200]}")
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return JPEGs, of which every fifth has an odd width and one is progressive, and a PNG."""
    folder = tmp_path_factory.mktemp("pictures")
    made = []
    for i in range(COUNT):
        rng = np.random.default_rng(i)
        y, x = np.mgrid[0 : 40 + i, 0 : 50 + 2 * i + (i % 5 == 0), 0:1][:2] / 9
        pixels = 128 + 60 * np.sin(x + rng.uniform(0, 6, 3)) + 50 * np.cos(y * rng.uniform(0.5, 2, 3))
        content = io.BytesIO()
        picture = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        kind: dict[str, Any] = {"subsampling": i % 3, "progressive": i == 7}
        picture.save(content, "PNG" if i == 9 else "JPEG", **({} if i == 9 else kind))
        made.append(str(folder / f"{i:02}.{'png' if i == 9 else 'jpg'}"))
        Path(made[-1]).write_bytes(content.getvalue())
    return made


class Pretended:
    """The mock nvJPEG: pending results are written when a stream or the host waits for an event."""

    def __init__(self, file: Path) -> None:
        self.functions, self.wrong = ctypes.CDLL(str(file)), 0

    def write(self) -> None:
        self.wrong += self.functions.pretend_write()


@pytest.fixture
def engine(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pretended]:
    made = Pretended(file)
    made.functions.pretend_write()
    misused = ctypes.c_int.in_dll(made.functions, "pretend_misused")
    misused.value = 0
    monkeypatch.setenv("TORCHDALI_NVJPEG", str(file))
    wait, synchronize, query, decode = Stream.wait_event, Event.synchronize, Event.query, NvJpeg.decode

    def wait_event(stream: Stream, event: Event) -> None:
        made.write()
        wait(stream, event)

    def synchronized(event: Event) -> None:
        made.write()
        synchronize(event)

    def queried(event: Event) -> bool:
        done = query(event)
        if done:
            made.write()
        return done

    def decoded(self: NvJpeg, images: Any, into: Any, number: int, stream: int) -> None:
        assert isinstance(into, PretendTensor)
        note({into.memory})
        decode(self, images, inner(into), number, stream)

    def read(memory: Memory, stream: Stream, stamp: Stamp) -> None:
        if id(memory) in written and not stream.knows(written[id(memory)]):
            state().report.race(f"stream {stream.id} uses what the engine writes without a wait")
        reading(memory, stream, stamp)

    def note(arenas: set[Memory]) -> None:
        """Engines overtake streams: the host must have observed the end of all earlier uses. Other operations write next to them."""
        own = state()
        with own.lock:
            for memory in arenas:
                for stream, tick in [*memory.reads, *([memory.write] if memory.write else [])]:
                    if own.host[stream] < tick:
                        own.report.race(f"the engine writes to memory that stream {stream} may use")
                written[id(memory)] = own.current().tick()
                kept.append(memory)

    reading = Memory.read
    written: dict[int, Stamp] = {}
    kept: list[Memory] = []  # no other object gets the same id
    monkeypatch.setattr(Memory, "read", read)
    monkeypatch.setattr(Stream, "wait_event", wait_event)
    monkeypatch.setattr(Event, "synchronize", synchronized)
    monkeypatch.setattr(Event, "query", queried)
    monkeypatch.setattr(NvJpeg, "decode", decoded)
    yield made
    gc.collect()
    assert not misused.value
    made.functions.pretend_write()
    kept.clear()


def run(
    files: list[str], device_id: Any, what: str, batches: int = 6, fancy: bool = True, load: Any = 0.7, **options: Any
) -> list[torch.Tensor]:
    """Return batches: images, whole or resized windows of them, each with its number."""
    share = {} if load is None else {"hw_decoder_load": load}

    @pipeline_def(**{"batch_size": BATCH, "num_threads": 2, "device_id": device_id, "seed": 5, **options})
    def define() -> Any:
        data, labels = fn.readers.file(files=files, labels=list(range(len(files))), name="Reader")
        how: dict[str, Any] = {"device": "cpu" if device_id is None else "mixed", "jpeg_fancy_upsampling": fancy}
        if what == "crop":
            images = fn.decoders.image_random_crop(data, **how, **share)
            images = fn.resize(images, size=[32, 40])
        else:
            images = fn.decoders.image(data, **how, **share)
        if what == "train":
            images = fn.random_resized_crop(images, size=[32, 40])
        if what == "validate":
            images = fn.resize(images, resize_shorter=44)
        if what != "whole":
            crop = {"crop": (36, 36)} if what == "validate" else {}
            images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **crop)
        return images, labels

    pipe = define()
    try:
        found = []
        for _ in range(batches):
            images, labels = pipe.run()
            found += [inner(s) + 0 for s in images.samples()]
            assert len(images) == len(labels)
        return found
    finally:
        pipe.close()


def on_device(files: list[str], what: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[torch.Tensor]:
    with accelerator(lag=4) as gpu:
        decodes_by_hardware(monkeypatch)
        found = run(files, 0, what, **options)
        assert not gpu.report.races, "\n".join(gpu.report.races)
        assert not gpu.report.total("spin"), gpu.report.lines("spin")
        return found


def test_whole_images_match_the_cpu(
    files: list[str], engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(files, None, "whole")
    found = on_device(files, "whole", monkeypatch)
    assert len(found) == len(expected)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert engine.functions.pretend_batches() >= 6 and not engine.wrong
    assert engine.functions.pretend_allocated() <= 2 * 3  # once per state, and once more if it was too small


def test_colors_are_repeated(files: list[str], engine: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    before = engine.functions.pretend_batches()
    expected = run(files, "cpu", "whole", fancy=False)
    found = on_device(files, "whole", monkeypatch, fancy=False)
    assert engine.functions.pretend_batches() > before and not engine.wrong
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    smooth = run(files, None, "whole")
    assert sum(not torch.equal(a, b) for a, b in zip(found, smooth, strict=True)) > len(found) / 2


@pytest.mark.parametrize("fancy", [True, False])
@pytest.mark.parametrize("what", ["train", "crop", "validate"])
def test_regions_that_the_engine_decodes(
    files: list[str], what: str, fancy: bool, engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = engine.functions.pretend_batches()
    expected = run(files, "cpu", what, fancy=fancy)
    found = on_device(files, what, monkeypatch, fancy=fancy)
    assert engine.functions.pretend_batches() > before and not engine.wrong
    inside = slice(4, -4)
    for a, b in zip(found, expected, strict=True):
        assert (a - b)[:, inside, inside].abs().max() <= 2


@pytest.mark.parametrize("name", BUDGETS)
def test_benchmark_pipelines_match_the_cpu(
    tmp_path: Path, name: str, engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run with the engine's share, without an engine, and on the CPU."""
    root = write_images(tmp_path, 16, side=300)

    def values(device_id: Any) -> list[torch.Tensor]:
        pipe = pipeline_def(define(name), batch_size=BATCH, num_threads=2, device_id=device_id, seed=3)(root=str(root))
        batches = [[inner(s) + 0 for s in batch.samples()] for _ in range(3) for batch in pipe.run()]
        pipe.close()
        return [sample for batch in batches for sample in batch]

    expected = values("cpu")
    for shares in (False, True):
        before = engine.functions.pretend_batches()
        with accelerator(lag=4) as gpu:
            decodes_by_hardware(monkeypatch, lambda device, shares=shares: shares and device.type == "cuda")
            found = values(0)
            assert not gpu.report.races, "\n".join(gpu.report.races)
        uses = name not in ("late", "bytes")
        assert (engine.functions.pretend_batches() > before) == (shares and uses) and not engine.wrong
        for a, b in zip(found, expected, strict=True):
            if a.ndim < 3:
                assert torch.equal(a, b)
                continue
            levels = (a.double() - b).abs() * (57.5 if a.is_floating_point() else 1)
            inside = levels[..., 4:-4, 4:-4] if a.is_floating_point() else levels[4:-4, 4:-4]
            most, share = (3.1, 0.05) if name == "colors" else (2.1, 1e-3)  # `color_twist` adds the levels of channels
            assert inside.max() <= most and (inside > 1.1).double().mean() < share


def test_other_devices_are_not_used(files: list[str], engine: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    with accelerator(devices=2, lag=4) as gpu:
        decodes_by_hardware(monkeypatch)
        found = run(files, 1, "train")
        assert len(found) and gpu.contexts == {1}


def test_synchronous_pipelines_wake_when_a_slow_engine_is_done(
    files: list[str], engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that waits for a batch runs its steps, and wakes without its polling interval."""
    asleep, names = threading.Event(), set()
    run_next, decode, run_step = CallerQueue.run_next, NvJpeg.decode, StageRunner._run_step

    def wait(queue: CallerQueue, timeout: float) -> None:
        if not queue._tasks:
            asleep.set()
        run_next(queue, timeout=60)

    def decode_with_delay(*given: Any) -> None:
        assert asleep.wait(60)
        asleep.clear()
        decode(*given)

    def note_thread(self: StageRunner, *given: Any) -> None:
        names.add(threading.current_thread())
        run_step(self, *given)

    monkeypatch.setattr(CallerQueue, "run_next", wait)
    monkeypatch.setattr(NvJpeg, "decode", decode_with_delay)
    monkeypatch.setattr(StageRunner, "_run_step", note_thread)
    started = time.monotonic()
    found = on_device(files, "train", monkeypatch, batches=3, exec_async=False, exec_pipelined=False)
    assert len(found) == 3 * BATCH and names == {threading.current_thread()}
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("call", [1, 3])
def test_a_failed_call_loses_no_image(
    files: list[str], call: int, engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = ctypes.c_int.in_dll(engine.functions, "pretend_calls")
    calls.value = 0
    monkeypatch.setenv("PRETEND_NVJPEG_FAILS", str(call))
    expected = run(files, None, "whole")
    with pytest.warns(UserWarning, match=r"failed \(6\)[\s\S]*the CPU decoded it") as said:
        found = on_device(files, "whole", monkeypatch)
    assert len(said) == 1
    assert calls.value >= 6  # the engine decodes the later batches
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_an_engine_that_fails_repeatedly_is_disabled(
    files: list[str], engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is disabled only after its other states are done."""
    calls = ctypes.c_int.in_dll(engine.functions, "pretend_calls")
    calls.value = 0
    monkeypatch.setenv("PRETEND_NVJPEG_FAILS_FROM", "3")
    expected = run(files, None, "whole")
    with pytest.warns(UserWarning, match="the CPU decodes all images") as said:
        found = on_device(files, "whole", monkeypatch)
    assert len(said) == 2 and calls.value == 5
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_share_does_not_depend_on_the_threads(
    files: list[str], threads: int, engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise pixels would depend on threads, as an engine differs from libjpeg by a level."""
    with mock.patch.object(native_codecs, "lot_limit", wraps=native_codecs.lot_limit) as lot_limit:
        on_device(files, "whole", monkeypatch, batches=1, load=None, num_threads=threads)
    assert {call.args for call in lot_limit.call_args_list} == {(engines.DEFAULT_SHARE,)}


@pytest.mark.parametrize("reason", ["no engine", "no library", "another library"])
def test_without_an_engine_the_cpu_decodes_all(
    files: list[str], reason: str, engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == "no engine":
        monkeypatch.setenv("PRETEND_NVJPEG_NO_ENGINE", "1")
    else:
        found = library()
        assert found is not None
        monkeypatch.setenv("TORCHDALI_NVJPEG", found.file if reason == "another library" else "/none/libnvjpeg.so")
    expected = run(files, None, "whole", 2)
    with pytest.warns(UserWarning, match={"no engine": "no engine", "no library": "loaded"}.get(reason, "lacks")):
        found = on_device(files, "whole", monkeypatch, batches=2)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_without_memory_on_the_device_the_cpu_decodes_all(
    files: list[str], engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, used: int) -> Any:
        raise torch.cuda.OutOfMemoryError("out of memory")

    monkeypatch.setattr(HardwareDecoding, "_allocate_arena", full)
    expected = run(files, None, "whole", 3)
    with pytest.warns(UserWarning, match="out of memory") as said:
        found = on_device(files, "whole", monkeypatch, batches=3)
    assert len(said) == 2  # the first batch, and the warning
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_damaged_files_are_named(
    files: list[str], tmp_path: Path, engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "damaged.jpg"
    damaged.write_bytes(Path(files[2]).read_bytes()[:500])
    with warnings.catch_warnings(), pytest.raises(Exception, match=r"damaged\.jpg"):
        on_device([*files[:2], str(damaged), *files[3:]], "whole", monkeypatch)
    found = on_device([*files[:2], str(damaged), *files[3:]], "whole", monkeypatch, bad_samples="skip")
    assert len(found) > 30 and not engine.wrong


def test_the_benchmark_reports_the_engine(
    files: list[str], engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`benchmarks.gpu`, part `path`: all its checks of a real GPU, and its output for the mock GPU."""
    jpegs = Path(files[0]).parent
    sizes = developers.Sizes(batch=BATCH, batches=4, threads=2, size=24, copied=1 << 10, spin=0)
    with accelerator(lag=4) as gpu:
        decodes_by_hardware(monkeypatch, lambda device: device.type == "cuda")
        found = dict(developers.path(jpegs, sizes))
        assert not gpu.report.races, "\n".join(gpu.report.races)
    taken = COUNT - 2 - 5  # neither the PNG and the progressive image, nor the odd ones, which it rejects
    for colors in ("repeated colors, ", "smooth colors, "):
        assert found[colors + "of"] == COUNT - 2 and found[colors + "taken"] == taken
        assert found[colors + "levels"] == 0
    assert found["damaged file, as before"] == taken - 1 and found["good again, as before"] == taken
    assert found["mixed pipeline, levels from the CPU's"] <= 1.01 and found["bytes pipeline, levels from the CPU's"] <= 1.01
    assert found["dynamic mode, wrong"] == 0
    assert not found["graphs beside a pipeline, thread_local"]
    assert "not permitted" in found["graphs beside a pipeline, global"]


def test_memory_that_is_used_too_early_is_detected(
    files: list[str], engine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check of the tests: without the wait for the engine, kernels read incomplete data."""
    from torchdali.execute.device_stream import DeviceStream

    monkeypatch.setattr(DeviceStream, "wait_for", lambda self, event: None)
    with accelerator(lag=4) as gpu:
        decodes_by_hardware(monkeypatch)
        run(files, 0, "train")
        assert any("without a wait" in race for race in gpu.report.races)
