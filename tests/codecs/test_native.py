"""The fast path: pixels match the Python path, on all levels of vector instructions, and unsupported images are rejected."""

from __future__ import annotations

import ctypes
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.helpers.encoded_images import encoded, exif, smooth_image, tensor
from tests.helpers.native import native_codecs, needs_native, switched_off
from torchdali.codecs.images import decode
from torchdali.codecs.program import ImageProgram
from torchdali.installation import rebuild_command
from torchdali.kernels import native
from torchdali.kernels.exactness import exactly
from torchdali.kernels.limits import limit_pixels
from torchdali.kernels.memory import IN_PLACE
from torchdali.kernels.native import MIRROR, AxisRegion, Filters, ImageOptions, Output, run
from torchdali.kernels.resample import exact
from torchdali.kernels.resample.separable import resize

HEIGHT, WIDTH = 117, 203
PICTURE = smooth_image(HEIGHT, WIDTH)
PLAIN = encoded(PICTURE, "JPEG", quality=90)


def whole(extent: int, start: int = 0) -> AxisRegion:
    return AxisRegion(start, start + extent, extent, 0, extent, start, start + extent)


def window(y: int, x: int, h: int, w: int) -> tuple[AxisRegion, AxisRegion]:
    return whole(h, y), whole(w, x)


def sampled(data: bytes, factors: int) -> bytes:
    """Set other sampling factors of the first component: the same number of blocks in another arrangement."""
    made = bytearray(data)
    made[made.index(b"\xff\xc0") + 11] = factors
    return bytes(made)


def encode_images() -> dict[str, bytes]:
    found = {
        f"{name}, {kind}": encoded(PICTURE, "JPEG", subsampling=name, quality=88, **options)
        for name in ("4:4:4", "4:2:2", "4:2:0")
        for kind, options in {"baseline": {}, "progressive": {"progressive": True}, "restarts": {"restart_marker_rows": 1}}.items()
    }
    for name, factors in (("4:2:0", (0x41, 0x14)), ("4:2:2", (0x12,))):
        even = encoded(smooth_image(128, 256), "JPEG", subsampling=name)
        found |= {f"factors {value:x}": sampled(even, value) for value in factors}
    noise = np.random.default_rng(1).integers(0, 256, PICTURE.shape, np.uint8)
    found["long codes"] = encoded(noise, "JPEG", quality=100)
    found["own codes"] = encoded(PICTURE, "JPEG", quality=97, optimize=True)
    found["gray"] = encoded(Image.fromarray(PICTURE).convert("L"), "JPEG")
    inks = Image.fromarray(np.dstack([PICTURE, PICTURE[::-1, :, :1]]), "CMYK")
    for name in ("4:4:4", "4:2:0"):
        found[f"inks, {name}"] = encoded(inks, "JPEG", subsampling=name, quality=92)
    found["inks, progressive"] = encoded(inks, "JPEG", progressive=True)
    light = found["inks, 4:4:4"]
    start = light.index(b"\xff\xee")
    found["inks without Adobe's mark"] = light[:start] + light[start + 16 :]
    found["YCCK"] = light[: start + 15] + b"\2" + light[start + 16 :]
    found["RGB"] = encoded(PICTURE, "JPEG", keep_rgb=True)
    found["odd"] = encoded(smooth_image(33, 17), "JPEG", subsampling="4:2:0")
    found["one pixel"] = encoded(smooth_image(1, 1), "JPEG")
    for orientation in range(1, 9):
        found[f"orientation {orientation}"] = encoded(PICTURE, "JPEG", exif=exif(orientation))
    return found


PICTURES = encode_images()


def size_of(data: torch.Tensor, upright: bool) -> tuple[int, int] | None:
    (jpeg,) = native_codecs.read_headers([data])
    return None if jpeg is None else jpeg.size(upright)


@needs_native
@pytest.mark.parametrize("fancy", [True, False])
@pytest.mark.parametrize("name", PICTURES)
def test_windows_match_the_whole_image(name: str, fancy: bool) -> None:
    data = tensor(PICTURES[name])
    expected = decode(data, fancy=fancy)
    height, width = expected.shape[:2]
    assert size_of(data, True) == (height, width)
    rng = np.random.default_rng(5)
    options = ImageOptions(fancy=fancy)
    for _ in range(25):
        h, w = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
        y, x = int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1))
        mirror = bool(rng.integers(2))
        found = run(options, data, *window(y, x, h, w), mirror)
        part = expected[y : y + h, x : x + w]
        assert found is not None
        assert torch.equal(found, part.flip(1) if mirror else part), (y, x, h, w, mirror)


@needs_native
def test_not_upright_and_fast() -> None:
    data = tensor(PICTURES["orientation 6"])
    expected = decode(data, adjust_orientation=False)
    found = run(ImageOptions(upright=False), data, *window(3, 5, 50, 60), False)
    assert found is not None and torch.equal(found, expected[3:53, 5:65])
    assert size_of(data, False) == tuple(expected.shape[:2])
    pytest.importorskip("simplejpeg", reason="needs simplejpeg: install the extra 'image'")
    plain = tensor(PLAIN)
    quick = run(ImageOptions(fast=True), plain, *window(0, 0, HEIGHT, WIDTH), False)
    assert quick is not None and torch.equal(quick, decode(plain, fast=True))


SIZES = [(1, 1), (2, 300), (300, 1), (32, 40), (60, 100), (117, 203), (150, 260), (40, 260), (200, 64)]
REGIONS = [
    ((0.0, 117.0), (0.0, 203.0)), ((10.0, 101.5), (180.25, 3.0)), ((-4.0, 120.0), (-3.5, 203.0)), ((90.0, 10.0), (20.0, 30.0)),
    ((-40.0, -20.0), (250.0, 300.0)),
]  # fmt: skip


@pytest.mark.thin(5)
@needs_native
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ["linear", "triangular", "cubic", "nn"])
@pytest.mark.parametrize("antialias", [True, False])
def test_pixels_match_exact_resizing(name: str, size: tuple[int, int], antialias: bool) -> None:
    data = tensor(PLAIN)
    pixels = decode(data)
    options = ImageOptions(filters=Filters(name, name, antialias))
    for roi in REGIONS:
        with exactly(), switched_off():
            expected = resize(pixels, size, roi=roi, min_filter=name, mag_filter=name, antialias=antialias)
        lines = [AxisRegion(*region, n, 0, n, 0, length) for region, n, length in zip(roi, size, (HEIGHT, WIDTH), strict=True)]
        found = run(options, data, lines[0], lines[1], False)
        assert found is not None
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        parts = [line._replace(start=line.size // 3, extent=(line.size + 1) // 2) for line in lines]
        (top, height), (left, width) = ((p.start, p.extent) for p in parts)
        part = run(options, data, parts[0], parts[1], True)
        assert part is not None and torch.equal(part, found[top : top + height, left : left + width].flip(1))
        of_pixels = run(options, pixels, parts[0], parts[1], True)
        assert of_pixels is not None and torch.equal(of_pixels, part)


@needs_native
@pytest.mark.parametrize("filters", [("triangular", "cubic"), ("linear", "cubic"), ("nn", "linear"), ("cubic", "nn")], ids=str)
@pytest.mark.parametrize("size", [(60, 300), (300, 60)], ids=str)
def test_exact_resizing_of_pixels(size: tuple[int, int], filters: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arguments: Any) -> Tensor | None:
        calls.append(run(*arguments))
        return calls[-1]

    monkeypatch.setattr(exact, "run", counted)
    pixels, windows = torch.from_numpy(PICTURE), [(n // 4, n // 2) for n in size]
    with exactly():
        for roi, parts in ((None, None), (REGIONS[1], windows)):
            with switched_off():
                expected = resize(pixels, size, roi=roi, min_filter=filters[0], mag_filter=filters[1], windows=parts)
            found = resize(pixels, size, roi=roi, min_filter=filters[0], mag_filter=filters[1], windows=parts)
            assert torch.equal(found, expected)
    assert [made is not None for made in calls] == [False, True] * 2


@needs_native
def test_other_dtypes_use_the_python_path() -> None:
    options, lines = ImageOptions(), window(0, 0, 8, 8)
    pixels = torch.zeros(8, 8, 3, dtype=torch.uint8)
    assert run(options, pixels, *lines, False) is not None
    for other in (pixels[..., :1].clone(), pixels.float(), pixels.flip(1)[:, ::2], pixels[:4], pixels[:, :4].clone()):
        assert run(options, other, *lines, False) is None
    with limit_pixels(63):
        assert run(options, pixels, *lines, False) is None


@needs_native
@pytest.mark.parametrize("planar", [True, False])
def test_pixels_are_mirrored_and_normalized(planar: bool) -> None:
    pixels = torch.from_numpy(PICTURE)
    factor, offset = (0.5, 0.25, 2.0), (-1.0, 3.0, 0.125)  # products without rounding
    values = torch.arange(256.0) * torch.tensor(factor)[:, None] + torch.tensor(offset)[:, None]
    options = ImageOptions(output=Output.from_table(values, planar, scaling=(factor, offset)))
    found = run(options, pixels, *window(5, 7, 100, 150), True)
    expected = pixels[5:105, 7:157].flip(1) * torch.tensor(factor) + torch.tensor(offset)
    assert found is not None and torch.equal(found, expected.permute(2, 0, 1) if planar else expected)


@needs_native
@pytest.mark.parametrize("size", [(32, 40), (60, 100), (150, 260)], ids=str)
@pytest.mark.parametrize("antialias", [True, False])
def test_pixels_are_within_a_level_of_the_python_path(size: tuple[int, int], antialias: bool) -> None:
    data = tensor(PLAIN)
    expected = resize(decode(data), size, antialias=antialias)
    lines = AxisRegion(0, HEIGHT, size[0], 0, size[0], 0, HEIGHT), AxisRegion(0, WIDTH, size[1], 0, size[1], 0, WIDTH)
    found = run(ImageOptions(filters=Filters(antialias=antialias)), data, *lines, False)
    assert found is not None
    close(found, expected)


def close(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    off = (found.int() - expected.int()).abs()
    assert off.max() <= 1
    assert off.float().mean() < 0.2


@needs_native
def test_a_window_of_a_pixel_and_a_filter_wider_than_the_window() -> None:
    data = tensor(PLAIN)
    pixels = decode(data)
    for inside in (True, False):
        options = ImageOptions(filters=Filters(inside=inside))
        one = run(options, data, AxisRegion(9, 10, 5, 0, 5, 9, 10), AxisRegion(20, 21, 4, 0, 4, 20, 21), False)
        assert one is not None and torch.equal(one, pixels[9:10, 20:21].expand(5, 4, 3))
        small = run(options, data, AxisRegion(9, 40, 1, 0, 1, 9, 40), AxisRegion(20, 120, 1, 0, 1, 20, 120), False)
        assert small is not None and small.shape == (1, 1, 3)
        if not inside:
            close(small, resize(pixels[9:40, 20:120].contiguous(), (1, 1)))


def values(dtype: torch.dtype) -> Tensor:
    levels = torch.arange(256, dtype=torch.float32)
    return torch.stack([levels / 2, levels / 4 + 1, 100 - levels / 8]).to(dtype)


@needs_native
@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.int8])
def test_types_and_layouts(dtype: torch.dtype, planar: bool) -> None:
    data, table = tensor(PLAIN), values(dtype)
    rows, columns = AxisRegion(0, HEIGHT, 40, 0, 40, 0, HEIGHT), AxisRegion(0, WIDTH, 50, 0, 50, 0, WIDTH)
    levels = run(ImageOptions(), data, rows, columns, True)
    assert levels is not None
    expected = torch.stack([table[c][levels[:, :, c].int()] for c in range(3)], 0 if planar else 2)
    (jpeg,) = native_codecs.read_headers([data])
    assert jpeg is not None
    options = ImageOptions(output=Output.from_table(table, planar))
    program = ImageProgram(rows, columns, None, 1, MIRROR, options)
    out = torch.empty((1, *expected.shape), dtype=dtype)
    assert native_codecs.run_programs([jpeg], [program], out) == [IN_PLACE] and torch.equal(out[0], expected)
    (other,) = native_codecs.run_programs([jpeg], [program], torch.empty(1, 3, dtype=dtype))
    assert torch.equal(other, expected)


@needs_native
def test_scaling_equals_the_table() -> None:
    data = tensor(PLAIN)
    factor, offset = (0.5, 0.25, 2.0), (-1.0, 3.0, 0.5)
    table = torch.arange(256.0)[None] * torch.tensor(factor)[:, None] + torch.tensor(offset)[:, None]
    lines = AxisRegion(0, HEIGHT, 40, 0, 40, 0, HEIGHT), AxisRegion(0, WIDTH, 57, 0, 57, 0, WIDTH)
    by_table = run(ImageOptions(output=Output.from_table(table, True)), data, *lines, False)
    scaled = run(ImageOptions(output=Output.from_table(table, True, scaling=(factor, offset))), data, *lines, False)
    assert by_table is not None and scaled is not None and torch.equal(by_table, scaled)


@needs_native
@pytest.mark.parametrize("name", ["linear", "cubic"])
def test_all_vector_levels_give_equal_results(name: str) -> None:
    data = tensor(PLAIN)
    found = []
    for level in range(3):
        output = Output.from_table(values(torch.float32), True, scaling=((0.3, 0.2, 0.1), (1.0, -2.0, 3.0)))
        options = ImageOptions(filters=Filters(name, name), output=output)
        options.set_level(level)
        for size in ((50, 61), (130, 300)):
            lines = AxisRegion(1.5, 100.25, size[0], 0, size[0], 0, HEIGHT), AxisRegion(3, 199, size[1], 0, size[1], 0, WIDTH)
            found.append(run(options, data, *lines, False))
    for other in (2, 4):
        assert all(torch.equal(a, b) for a, b in zip(found[:2], found[other : other + 2], strict=True))


def marked(marker: int) -> bytes:
    data = bytearray(PLAIN)
    data[data.index(b"\xff\xc0") + 1] = marker
    return bytes(data)


RESTARTS = PICTURES["4:2:0, restarts"]
REFUSED = {
    "nothing": b"",
    "a PNG": encoded(PICTURE, "PNG"),
    "arithmetic coding": marked(0xC9),
    "lossless": marked(0xC3),
    "unusual subsampling": sampled(PLAIN, 0x31),
    "cut": PLAIN[:-500],
    "cut, with an end": PLAIN[:-500] + b"\xff\xd9",
    "something behind it": PLAIN + b"more",
    "rubbish before the scan": PLAIN.replace(b"\xff\xda", b"rubbish\xff\xda"),
    "a restart out of turn": RESTARTS.replace(b"\xff\xd1", b"\xff\xd2"),
    "a restart missing": RESTARTS.replace(b"\xff\xd1", b""),
    "zeros before the end": PLAIN[:-2] + bytes(3) + PLAIN[-2:],
    "header alone": PLAIN[: PLAIN.index(b"\xff\xda")] + b"\xff\xd9",
    "scans missing": b"",
}


def cut_progressive() -> bytes:
    data = PICTURES["4:2:0, progressive"]
    third = [i for i in range(len(data) - 1) if data[i : i + 2] == b"\xff\xda"][2]
    tables = data.rfind(b"\xff\xc4", 0, third)
    return data[:tables] + b"\xff\xd9"


REFUSED["scans missing"] = cut_progressive()


@needs_native
@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_images_are_rejected(name: str) -> None:
    data = tensor(REFUSED[name])
    assert run(ImageOptions(), data, *window(0, 0, HEIGHT, WIDTH), False) is None
    lines = AxisRegion(0, HEIGHT, 40, 0, 40, 0, HEIGHT), AxisRegion(0, WIDTH, 50, 0, 50, 0, WIDTH)
    assert run(ImageOptions(), data, *lines, False) is None


@needs_native
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (AxisRegion(0, 10, 10, 0, 11, 0, 10), whole(20)),
        (AxisRegion(0, 10, 10, -1, 5, 0, 10), whole(20)),
        (AxisRegion(0, 10, 10, 0, 10, 0, HEIGHT + 1), whole(20)),
        (whole(20), AxisRegion(0, 10, 10, 0, 10, -1, WIDTH)),
        (whole(20), AxisRegion(0, 10, 0, 0, 0, 0, WIDTH)),
        (whole(20), AxisRegion(0, 1e12, 10, 0, 10, 0, WIDTH)),
        (whole(20), AxisRegion(0, float("nan"), 10, 0, 10, 0, WIDTH)),
        (whole(20), AxisRegion(5, 5, 10, 0, 10, 0, WIDTH)),
        (AxisRegion(0, 1, 1 << 26, 0, 10, 0, HEIGHT), whole(20)),
        (AxisRegion(-1e7, 1e7, 4000, 0, 4000, 0, HEIGHT), whole(20)),  # of 8193 weights each
    ],
)
def test_invalid_arguments_are_rejected(rows: AxisRegion, columns: AxisRegion) -> None:
    assert run(ImageOptions(), tensor(PLAIN), rows, columns, False) is None


@needs_native
def test_unsupported_tensors_are_rejected() -> None:
    data = tensor(PLAIN)
    for other in (data.view(1, -1), data[::2], data.to(torch.int16)):
        assert size_of(other, True) is None
        assert run(ImageOptions(), other, *window(0, 0, 8, 8), False) is None
    with pytest.raises(ValueError, match=r"\(3, 256\)"):
        Output.from_table(torch.zeros(3, 255, dtype=torch.uint8), False)


# ----------------------------------------------------------------- detection


def status(monkeypatch: pytest.MonkeyPatch, file: Path, **environment: str) -> native.Status:
    monkeypatch.delenv("TORCHDALI_NATIVE", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(native, "FILE", file)
    return native.status.__wrapped__()


@pytest.mark.parametrize("value", ["0", "off", "False", " no "])
def test_switched_off(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = status(monkeypatch, native.FILE, TORCHDALI_NATIVE=value)
    assert found.library is None and "TORCHDALI_NATIVE" in found.text and not found.broken


def test_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = status(monkeypatch, tmp_path / "libtorchdali.so")
    assert found.library is None and not found.broken
    for part in ("not built", "C compiler", "libjpeg-turbo's headers", rebuild_command()):
        assert part in found.text


def test_an_invalid_library_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libtorchdali.so").write_bytes(b"no library")
    found = status(monkeypatch, tmp_path / "libtorchdali.so")
    assert found.library is None and found.broken
    assert "cannot be loaded" in found.text and rebuild_command() in found.text


def test_a_library_without_the_interface_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    found = status(monkeypatch, Path(torch._C.__file__))
    assert found.library is None and found.broken and "tdn_abi" in found.text


@pytest.mark.parametrize("version", [native.ABI - 1, native.ABI + 1])
def test_another_interface_version_is_reported(version: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libtorchdali.so").write_bytes(b"")
    monkeypatch.setattr(ctypes, "CDLL", lambda file: SimpleNamespace(tdn_abi=lambda: version))
    found = status(monkeypatch, tmp_path / "libtorchdali.so")
    assert found.library is None and found.broken
    assert f"interface version {native.ABI}, got {version}" in found.text and rebuild_command() in found.text


def test_the_header_has_the_expected_version() -> None:
    header = (Path(__file__).resolve().parents[2] / "native" / "src" / "native.h").read_text(encoding="utf-8")
    assert f"#define TDN_ABI {native.ABI}\n" in header


def test_switched_off_the_library_computes_nothing() -> None:
    with switched_off():
        assert native.library() is None
        assert size_of(tensor(PLAIN), True) is None
        assert run(ImageOptions(), tensor(PLAIN), *window(0, 0, 8, 8), False) is None


@needs_native
def test_images_beyond_the_pixel_limit_are_rejected() -> None:
    lines = whole(HEIGHT), whole(WIDTH)
    with limit_pixels(HEIGHT * WIDTH):
        assert run(ImageOptions(), tensor(PLAIN), *lines, False) is not None
        larger = lines[0]._replace(size=WIDTH, extent=WIDTH), lines[1]
        assert run(ImageOptions(), tensor(PLAIN), *larger, False) is None
    with limit_pixels(HEIGHT * WIDTH - 1):
        assert run(ImageOptions(), tensor(PLAIN), whole(8), whole(8), False) is None


@needs_native
def test_more_scans_than_allowed_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    data, lines = tensor(PICTURES["4:2:0, progressive"]), (whole(HEIGHT), whole(WIDTH))
    scans = PICTURES["4:2:0, progressive"].count(b"\xff\xda")
    monkeypatch.setattr(native, "MAX_SCANS", scans)
    assert run(ImageOptions(), data, *lines, False) is not None
    monkeypatch.setattr(native, "MAX_SCANS", scans - 1)
    assert run(ImageOptions(), data, *lines, False) is None


@needs_native
def test_files_are_read_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The common path reads everything other than a regular file with a JPEG of one or three channels."""
    good, turned, png, empty, fifo = (tmp_path / name for name in ("\u00e9.jpg", "turned.jpg", "a.png", "empty", "fifo"))
    good.write_bytes(PLAIN)
    turned.write_bytes(PICTURES["orientation 6"])
    png.write_bytes(encoded(PICTURE, "PNG"))
    empty.touch()
    names = [good, tmp_path / "missing", turned, png, empty, tmp_path, good]
    if hasattr(os, "mkfifo"):
        os.mkfifo(fifo)
        names.append(fifo)
    found = native_codecs.read_headers([*map(str, names), None, tensor(PLAIN)])
    sizes = [each and (each.size(True), each.size(False), each.length) for each in found]
    plain = ((HEIGHT, WIDTH), (HEIGHT, WIDTH), len(PLAIN))
    as_turned = ((WIDTH, HEIGHT), (HEIGHT, WIDTH), len(PICTURES["orientation 6"]))
    assert sizes == [plain, None, as_turned, None, None, None, plain, *[None] * (len(names) - 7), None, plain]
    assert native_codecs.read_headers(["a\0b.jpg", str(good)]) == [None, None]
    program = ImageProgram.of(HEIGHT, WIDTH)
    (pixels, *left) = native_codecs.run_programs(found[:3], [program, program, None])
    assert left == [None, None] and pixels is not None and torch.equal(pixels, decode(tensor(PLAIN)))
    large = tmp_path / "large.jpg"  # than the memory of three files
    large.write_bytes(PLAIN + bytes(2 << 20))
    assert [each is not None for each in native_codecs.read_headers([str(good), str(large), str(good)])] == [True, False, True]


@needs_native
@pytest.mark.parametrize("kind", ["fits", "another size", "another type", "not contiguous"])
def test_results_are_written_into_fitting_memory(kind: str) -> None:
    """Images that the library rejects, and images of another size, do not modify their slots."""
    data = [tensor(PLAIN), tensor(PLAIN[: len(PLAIN) // 2] + b"\xff\xd9"), tensor(PICTURES["gray"]), tensor(PLAIN)]
    whole = ImageProgram.of(HEIGHT, WIDTH)
    size = (HEIGHT, WIDTH + 1) if kind == "another size" else (HEIGHT, WIDTH)
    out = torch.full((4, *size, 3), 7, dtype=torch.int16 if kind == "another type" else torch.uint8)
    out = out.transpose(1, 2).contiguous().transpose(1, 2) if kind == "not contiguous" else out
    results = native_codecs.run_programs(native_codecs.read_headers(data), [whole, whole, whole, whole.crop(1, 2, 5, 7)], out)
    assert results[1] is None and torch.equal(results[3], decode(data[3])[1:6, 2:9])
    for i in (0, 2):
        assert (results[i] is IN_PLACE) == (kind == "fits")
        assert torch.equal(out[i] if kind == "fits" else results[i], decode(data[i]))
    assert (out[3] == 7).all()


@needs_native
def test_each_of_several_images_has_its_own_result() -> None:
    data = [tensor(PLAIN), tensor(PLAIN[: len(PLAIN) // 2] + b"\xff\xd9"), tensor(PICTURES["gray"])]
    found = native_codecs.read_headers(data)
    programs = [ImageProgram.of(HEIGHT, WIDTH)] * 3
    results = native_codecs.run_programs(found, programs)
    assert results[1] is None
    for i in (0, 2):
        assert torch.equal(results[i], decode(data[i]))
    with limit_pixels(100):
        assert native_codecs.run_programs(found, programs) == [None] * 3


@pytest.mark.thin(5)
@needs_native
@pytest.mark.parametrize("fancy", [True, False])
@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_windows_of_scaled_images_match_the_whole_image(name: str, scale: int, fancy: bool) -> None:
    data = tensor(PICTURES[name])
    header = native_codecs.read_headers([data])[0]
    assert header is not None
    height, width = -(-header.height // scale), -(-header.width // scale)
    options = ImageOptions(fancy=fancy)

    def part(y: int, x: int, h: int, w: int) -> Any:
        return native_codecs.run_programs([header], [ImageProgram(*window(y, x, h, w), None, scale, 0, options)])[0]

    expected = part(0, 0, height, width)
    if header.orientation != 1 or "inks" in name or name == "YCCK":
        assert expected is None
        return
    with Image.open(io.BytesIO(PICTURES[name])) as image:
        image.draft("RGB", (max(1, header.width // scale), max(1, header.height // scale)))
        by_pillow = torch.from_numpy(np.array(image.convert("RGB")))
    assert expected is not None
    if fancy and by_pillow.shape == expected.shape:  # it doesn't scale the smallest image
        assert (expected.int() - by_pillow.int()).abs().max() <= 1
    rng = np.random.default_rng(5)
    for _ in range(10):
        h, w = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
        y, x = int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1))
        found = part(y, x, h, w)
        assert found is not None and torch.equal(found, expected[y : y + h, x : x + w]), (y, x, h, w)
