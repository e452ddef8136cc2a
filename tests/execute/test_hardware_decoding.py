"""Decoding of a share of the images by nvImageCodec, with its CPU decoders, which need no driver."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.inside import decodes_by_hardware
from tests.helpers.native import native_codecs
from tests.pretend import accelerator, inner
from torchdali import fn, pipeline_def
from torchdali.codecs import engines
from torchdali.codecs.engines import DEFAULT_SHARE, BatchDecoder, EngineOptions, is_available
from torchdali.execute import hardware_decoding
from torchdali.kernels.native import ImageOptions, library
from torchdali.tensors.buffer_pool import BufferPool

pytest.importorskip("nvidia.nvimgcodec", reason="needs the extra nvimgcodec")
pytestmark = pytest.mark.skipif(library() is None, reason="without the library in C, there is no engine")

CPU = torch.device("cpu")
OTHERS = ("cmyk.jpg", "png.png", "deep.png", "progressive.jpg")  # which the CPU decodes


def _encoded(name: str, picture: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, {"jpg": "JPEG", "png": "PNG"}[name.rpartition(".")[2]], **options)
    return file.getvalue()


def write_images(folder: Path) -> list[str]:
    """Write JPEGs of all orientations and color spaces, and other files."""
    made: dict[str, bytes] = {}
    for i in range(12):
        rng = np.random.default_rng(i)
        y, x = np.mgrid[0 : 30 + i, 0 : 45 - i, 0:1][:2] / 7
        pixels = 128 + 60 * np.sin(x + rng.uniform(0, 6, 3)) + 50 * np.cos(y * rng.uniform(0.5, 2, 3))
        picture = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        exif = Image.Exif()
        exif[0x112] = i % 8 + 1
        made[f"{i:02}.jpg"] = _encoded("x.jpg", picture, exif=exif, subsampling=i % 3)
    made["gray.jpg"] = _encoded("x.jpg", picture.convert("L"))
    made["cmyk.jpg"] = _encoded("x.jpg", picture.convert("CMYK"))
    made["progressive.jpg"] = _encoded("x.jpg", picture, progressive=True)
    made["png.png"] = _encoded("x.png", picture)
    made["deep.png"] = _encoded("x.png", Image.fromarray(np.arange(600, dtype=np.uint16).reshape(20, 30) * 109))
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return [str(folder / name) for name in made]


def is_chosen(data: torch.Tensor, share: float, upright: bool = False) -> bool:
    return 0 <= int(native_codecs.examine([data], ImageOptions(upright=upright)).rows["lot"][0]) < native_codecs.lot_limit(share)


class CountingDecoder:
    """Decoders that count the images."""

    decoded = 0

    def __init__(self, device: torch.device, work: EngineOptions) -> None:
        self._decoder = BatchDecoder(CPU, work)

    def decode(self, images: Any, into: Any, state: int, stream: int) -> None:
        host = torch.empty(into.shape, dtype=torch.uint8)
        self._decoder.decode(images, host, state, stream)
        for code, start, height, width in images[["code", "out", "height", "width"]].tolist():
            if not code:
                into[start : start + height * width * 3].copy_(host[start : start + height * width * 3])
        CountingDecoder.decoded += int((images["code"] == 0).sum())


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[CountingDecoder]]:
    monkeypatch.setattr(CountingDecoder, "decoded", 0)
    monkeypatch.setattr(engines, "BatchDecoder", CountingDecoder)
    decodes_by_hardware(monkeypatch)
    yield CountingDecoder


def decoded(
    files: list[str], device_id: Any, batches: int = 1, load: float | None = 1.0, fancy: bool = True, **arguments: Any
) -> list[Any]:
    """Return the pixels of batches."""
    options = {k: arguments.pop(k) for k in ("bad_samples", "num_processes", "batch_size") if k in arguments}

    @pipeline_def(batch_size=options.pop("batch_size", len(files)), num_threads=2, device_id=device_id, **options)
    def define() -> Any:
        encoded, _ = fn.readers.file(files=files, name="Reader")
        where = "cpu" if device_id is None else "mixed"
        share = {} if load is None else {"hw_decoder_load": load}
        return fn.decoders.image(encoded, device=where, jpeg_fancy_upsampling=fancy, **share, **arguments)

    pipe = define()
    try:
        found: list[Any] = []
        for _ in range(batches):
            (images,) = pipe.run()
            found += [inner(s) + 0 for s in images.samples()]
        return found
    finally:
        pipe.close()


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("upright", [True, False])
def test_pixels_match_the_cpu(tmp_path: Path, upright: bool) -> None:
    files = write_images(tmp_path)
    found = decoded(files, "cpu", 3, adjust_orientation=upright)
    assert same(found, decoded(files, None, 3, adjust_orientation=upright))
    turned = sum(i % 8 > 0 for i in range(12)) if upright else 0  # which the CPU decodes
    assert CountingDecoder.decoded >= 3 * (len(files) - len(OTHERS) - turned)  # more batches may be in flight


def test_colors_are_repeated(tmp_path: Path) -> None:
    files = write_images(tmp_path)
    plain = decoded(files, "cpu", fancy=False)
    assert CountingDecoder.decoded
    assert same(plain, decoded(files, "cpu", load=0.0, fancy=False))
    smooth = decoded(files, None, fancy=False)  # on the CPU it has no effect
    assert same(smooth, decoded(files, None))
    assert sum(not torch.equal(a, b) for a, b in zip(plain, smooth, strict=True)) == 9  # 4:2:2 and 4:2:0


@pytest.mark.parametrize("first", [True, False])
def test_an_engine_has_one_upsampling_mode(tmp_path: Path, first: bool) -> None:
    """The first decoder selects the mode; the CPU decodes all images of another mode."""
    files = write_images(tmp_path)

    @pipeline_def(batch_size=len(files), num_threads=2, device_id="cpu")
    def define() -> Any:
        encoded, _ = fn.readers.file(files=files, name="Reader")
        return tuple(
            fn.decoders.image(encoded, device="mixed", hw_decoder_load=1.0, jpeg_fancy_upsampling=fancy)
            for fancy in (first, not first, first)
        )

    pipe = define()
    outputs = [[s + 0 for s in batch.samples()] for batch in pipe.run()]
    said = [line for line in pipe.explain().splitlines() if line.startswith("fast path: ")]
    pipe.close()
    assert CountingDecoder.decoded
    for found, fancy in zip(outputs, (first, not first, first), strict=True):
        assert same(found, decoded(files, "cpu", load=0.0, fancy=fancy))
    assert ["the device decodes images" in line for line in said] == [True, False], said  # the third equals the first


def test_a_share_of_images_is_decoded_by_the_engine(tmp_path: Path) -> None:
    files = write_images(tmp_path)
    expected = sum(is_chosen(torch.from_numpy(np.fromfile(f, np.uint8)), 0.5, True) for f in files)
    assert 0 < expected < 13
    assert same(decoded(files, "cpu", load=0.5), decoded(files, None))
    assert CountingDecoder.decoded % expected == 0 and CountingDecoder.decoded
    CountingDecoder.decoded = 0
    assert same(decoded(files, "cpu", load=0.0), decoded(files, None))
    assert CountingDecoder.decoded == 0


@pytest.mark.parametrize("beside", [False, True])
def test_explain_describes_the_engine(tmp_path: Path, beside: bool) -> None:
    """A decoder that is alone in its chain decodes several images in one call of the library; next to another decoder, it does not."""

    @pipeline_def(batch_size=4, num_threads=1, device_id="cpu")
    def define() -> Any:
        encoded, _ = fn.readers.file(files=write_images(tmp_path), name="Reader")
        images = fn.decoders.image(encoded, device="mixed", hw_decoder_load=0.5)
        return (images, fn.decoders.image(encoded, device="mixed", adjust_orientation=False)) if beside else images

    lines = [line for line in define().explain().splitlines() if line.startswith("fast path: ")]
    said = "in a branch or a chain with other operators, and the device decodes images"
    expected = [said, said] if beside else ["in one call, except for images that the device decodes, up to the output"]
    assert len(lines) == len(expected) and all(line.endswith(end) for line, end in zip(lines, expected, strict=True)), lines


def test_the_default_share(tmp_path: Path) -> None:
    """Regression: calls without `hw_decoder_load` raised a KeyError on an H100."""
    files = write_images(tmp_path)
    expected = sum(is_chosen(torch.from_numpy(np.fromfile(f, np.uint8)), DEFAULT_SHARE, True) for f in files)
    assert same(decoded(files, "cpu", load=None), decoded(files, None, load=None))
    assert CountingDecoder.decoded % expected == 0 and CountingDecoder.decoded


@pytest.mark.parametrize("arguments", [{"dtype": torch.float32}, {"output_type": "gray"}])
def test_the_cpu_decodes_unsupported_outputs(tmp_path: Path, arguments: dict[str, Any]) -> None:
    from torchdali import types

    arguments = {k: types.GRAY if v == "gray" else v for k, v in arguments.items()}
    files = write_images(tmp_path)[:3]
    assert same(decoded(files, "cpu", **arguments), decoded(files, None, **arguments))
    assert CountingDecoder.decoded == 0


def _damage(file: str) -> None:
    content = Path(file).read_bytes()
    Path(file).write_bytes(content[: len(content) // 2])


def test_damaged_files_are_named(tmp_path: Path) -> None:
    files = write_images(tmp_path)
    _damage(files[3])
    with pytest.raises(Exception, match=r"decoders\.image[\s\S]*03\.jpg") as error:
        decoded(files, "cpu")
    with pytest.raises(type(error.value)) as expected:
        decoded(files, None)
    assert str(error.value) == str(expected.value)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_damaged_files_are_skipped(tmp_path: Path, policy: str) -> None:
    files = write_images(tmp_path)
    for k in (0, 3, 4):
        _damage(files[k])
    found = decoded(files, "cpu", 2, bad_samples=policy)
    assert same(found, decoded(files, None, 2, bad_samples=policy))
    assert CountingDecoder.decoded


def test_the_cpu_decodes_images_that_the_engine_failed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_images(tmp_path)
    def refuse(self: CountingDecoder, images: Any, *rest: Any) -> None:
        images["code"] = 1

    monkeypatch.setattr(CountingDecoder, "decode", refuse)
    assert same(decoded(files, "cpu"), decoded(files, None))


def test_a_broken_decoder_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("no driver")

    monkeypatch.setattr(engines, "BatchDecoder", fails)
    files = write_images(tmp_path)
    with pytest.warns(UserWarning, match="no driver") as said:
        assert same(decoded(files, "cpu", 3), decoded(files, None, 3))
    assert len(said) == 1


@pytest.mark.slow
def test_decoding_in_worker_processes(tmp_path: Path) -> None:
    files = write_images(tmp_path)
    assert same(decoded(files, "cpu", 2, num_processes=2), decoded(files, None, 2))
    assert CountingDecoder.decoded


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [4, 17])
def test_decoding_on_a_mock_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_size: int) -> None:
    """Buffers are reused only after the host has observed their events."""
    files = write_images(tmp_path)
    expected = decoded(files, None, 8, batch_size=batch_size)
    with accelerator(lag=5) as gpu:
        decodes_by_hardware(monkeypatch)
        found = decoded(files, 0, 8, load=0.6, batch_size=batch_size)
        assert same(found, expected)
        assert CountingDecoder.decoded
        assert not gpu.report.races, "\n".join(gpu.report.races)


def test_buffers_are_reused_after_their_event_was_observed() -> None:
    class Event:
        done = waited = False

        def query(self) -> bool:
            return self.done

        def synchronize(self) -> None:
            self.waited = True

    event = Event()

    class Stream:
        device, stream = CPU, None

        def record(self) -> Event:
            return event

        def wait_for(self, event: Any) -> None: ...

    decoding = hardware_decoding.HardwareDecoding(Stream(), BufferPool(), 4, 1, [])  # type: ignore[arg-type]
    arena = decoding._allocate_arena
    first = arena(1000)
    assert event.waited  # fresh memory may still be in use, too
    decoding.recycle(first, None)
    second = arena(1000)
    assert second.data_ptr() != first.data_ptr()
    event.done = True
    assert arena(1000).data_ptr() == first.data_ptr()


def test_the_engine_is_for_cuda_and_some_files(tmp_path: Path) -> None:
    assert not is_available(CPU)
    assert is_available(torch.device("cuda", 0))
    chosen = {Path(f).name: is_chosen(torch.from_numpy(np.fromfile(f, np.uint8)), 1.0) for f in write_images(tmp_path)}
    assert [name for name, yes in chosen.items() if not yes] == ["cmyk.jpg", "progressive.jpg", "png.png", "deep.png"]
    assert not is_chosen(torch.tensor([255, 216, 255], dtype=torch.uint8), 1.0)


def _with_frame(content: bytes, marker: int, sampling: int) -> torch.Tensor:
    """Return a JPEG with another frame type, and other sampling factors of luma and chroma."""
    data = bytearray(content)
    frame = data.index(b"\xff\xc0")
    data[frame + 1], data[frame + 11] = marker, sampling
    return torch.frombuffer(data, dtype=torch.uint8)


FRAMES = {
    "4:4:4": (0xC0, 0x11, True), "4:2:2": (0xC0, 0x21, True), "4:4:0": (0xC0, 0x12, True), "4:2:0": (0xC0, 0x22, True),
    "4:1:1": (0xC0, 0x41, False), "4:1:0": (0xC0, 0x42, False), "extended": (0xC1, 0x22, False), "progressive": (0xC2, 0x22, False),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_frames_that_engines_decode(name: str) -> None:
    """Otherwise, other images would be drawn in vain, and one thread would decode them at the end of each batch."""
    marker, sampling, expected = FRAMES[name]
    data = _with_frame(_encoded("x.jpg", Image.new("RGB", (32, 24)), subsampling=0), marker, sampling)
    (file,) = native_codecs.examine([data], ImageOptions()).rows
    assert (file["lot"] >= 0) == expected and file["sampling"] == (sampling if expected else 0)


def test_the_engine_prepares_for_its_share() -> None:
    constants = {"hw_decoder_load": 0.5, "preallocate_width_hint": 500, "jpeg_fancy_upsampling": False}
    edge: Any = SimpleNamespace(source=SimpleNamespace(constants=constants))
    work = hardware_decoding._work_of([edge], 100, 3)
    assert work.images == 60 and work.sides == (engines.SIDE, 500) and not work.fancy and work.threads == 3


def test_a_device_without_an_engine_is_queried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fails(device: torch.device, work: EngineOptions) -> None:
        calls.append(device)
        raise RuntimeError("no engine")

    gpu = torch.device("cuda", 0)
    monkeypatch.setattr(engines, "BatchDecoder", fails)
    monkeypatch.delenv("TORCHDALI_NVJPEG", raising=False)
    assert is_available(gpu)
    with pytest.raises(RuntimeError, match="no engine"):
        engines.open_engine(gpu, EngineOptions(4))
    assert not is_available(gpu) and is_available(torch.device("cuda", 1)) and calls == [gpu]


@pytest.mark.parametrize(("code", "words"), [(4, "JPEG not supported (4)"), (5, "allocation failed (5)"), (7, "the GPU has no JPEG engine (7)"), (99, "status 99")])
def test_messages_of_nvjpeg(code: int, words: str) -> None:
    assert engines._describe_status(code) == words
