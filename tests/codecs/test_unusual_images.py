"""Unusual images: their pixels in every form, errors of rejected images, and no uninitialized memory in results."""

from __future__ import annotations

import io
import random
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.encoded_images import GRAY, LOSSLESS, RGB, RGB16, Array, encoded, png, tensor, tiff
from tests.helpers.unusual_images import TIFFS, UNUSUAL
from torchdali import Pipeline, fn, types
from torchdali.codecs import images
from torchdali.codecs.image_crops import decode_crop, decode_upper
from torchdali.errors import DecodeError, MissingExtraError
from torchdali.installation import extra_command
from torchdali.kernels.convert import full_scale

for library in ("tifffile", "imagecodecs"):
    pytest.importorskip(library, reason=f"needs {library}: install the extra 'tiff'")
pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")


def own(pixels: Array) -> Array:
    """Return pixels with a channel axis."""
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


@pytest.mark.parametrize("name", UNUSUAL)
def test_every_value_is_decoded(name: str, capfd: Any) -> None:
    data, expected = UNUSUAL[name]
    expected = own(expected)
    dtype = torch.from_numpy(expected[:1].copy()).dtype
    decoded = images.decode(tensor(data), output_type="ANY_DATA", dtype=dtype)
    assert decoded.dtype == dtype and decoded.is_contiguous()
    np.testing.assert_array_equal(decoded.numpy(), expected)
    assert capfd.readouterr().err == ""


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", UNUSUAL)
def test_types_and_colors(name: str) -> None:
    data, expected = UNUSUAL[name]
    expected = own(expected)
    colors = expected[:, :, :3] if expected.shape[2] >= 3 else expected[:, :, :1].repeat(3, axis=2)
    source = full_scale(torch.from_numpy(expected[:1].copy()).dtype)
    for dtype in (torch.uint8, torch.uint16, torch.float32):
        largest = full_scale(dtype)
        floats = largest == 1
        limits = (-np.inf, np.inf) if floats else (0, largest)
        levels = colors.astype(np.float64) / source * largest
        allowed = 1e-6 if floats else 0.51
        rgb = images.decode(tensor(data), dtype=dtype)
        assert np.abs(rgb.numpy() - levels.clip(*limits)).max() <= allowed
        bgr = images.decode(tensor(data), output_type="BGR", dtype=dtype)
        assert np.array_equal(bgr.numpy(), rgb.numpy()[:, :, ::-1])
        gray = images.decode(tensor(data), output_type="GRAY", dtype=dtype).numpy()
        luma = levels @ [0.299, 0.587, 0.114] if expected.shape[2] >= 3 else levels[:, :, 0]
        assert np.abs(gray[:, :, 0] - luma.clip(*limits)).max() <= 1.01 * largest / 255
        ycbcr = images.decode(tensor(data), output_type="YCbCr", dtype=dtype).numpy()
        assert np.abs(ycbcr[:, :, 0] - ((luma * 219 + largest * 16) / 255).clip(*limits)).max() <= 1.6 * largest / 255


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", UNUSUAL)
def test_parts_match_the_whole_image(name: str) -> None:
    data = tensor(UNUSUAL[name][0])
    whole = images.decode(data)
    height, width, _ = whole.shape
    assert torch.equal(decode_upper(data, height // 2)[: height // 2], whole[: height // 2])
    for window in ((0, 0, height, width), (height // 3, width // 4, height // 2, width // 2)):
        y, x, h, w = window
        assert torch.equal(decode_crop(data, *window), whole[y : y + h, x : x + w])


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", UNUSUAL)
def test_peek_returns_the_shape(name: str) -> None:
    for output_type in ["RGB", "GRAY", "ANY_DATA"]:
        data = UNUSUAL[name][0]
        assert images.peek_shape(data, image_type=output_type) == images.decode(tensor(data), output_type=output_type).shape


@pytest.mark.parametrize("name", ["gif", "tiff planes of 10 bits", "bmp 4444, header of 124", "tga"])
def test_operators(name: str) -> None:
    data = tensor(UNUSUAL[name][0])
    whole = fn.decoders.image(data)
    height, width, _ = whole.shape
    assert fn.peek_image_shape(data).tolist() == [height, width, 3]
    assert torch.equal(fn.decoders.image_crop(data, crop=(4, 5), crop_pos_x=0.0, crop_pos_y=0.0), whole[:4, :5])
    slice = fn.decoders.image_slice(data, start=(1, 2), shape=(3, 4), axes=(0, 1))
    assert torch.equal(slice, whole[1:4, 2:6])
    deep = fn.decoders.image(data, output_type=types.ANY_DATA, dtype=types.UINT16)
    assert deep.dtype == torch.uint16 and deep.shape[:2] == (height, width)


REFUSED = {
    "JPEG 2000": (tiff(GRAY, 1, tags={259: [34712]}), r"compression 34712 \(JPEG 2000\), 1 samples of 8 bits in one plane"),
    "LERC": (tiff(RGB16, 2, tags={259: [34887]}), r"compression 34887 \(LERC\), 3 samples of 16 bits"),
    "unknown": (tiff(RGB16, 2, tags={259: [4242]}), r"compression 4242 \(unknown\)"),
    "JPEG XL of tiles": (tiff(RGB, 2, tile=16, tags={259: [50002]}), r"compression 50002 \(JPEG XL\).* tiles of 16 x 16"),
    "depths": (tiff(RGB, 2, tags={258: [5, 6, 5]}), r"3 samples of 5, 6 bits"),
    "complex": (tiff(RGB16.astype(np.uint64), 2, tags={339: [6] * 3}), r"64 bits.* sample format 6 \(complex\)"),
    "planes": (tiff(RGB16, 2, planar=True, tags={259: [34712]}), r"16 bits in planes.* photometric 2 \(RGB\)"),
    "mask": (tiff(GRAY, 4), r"photometric 4 \(mask\)"),
    "Lab of 16 bits": (tiff(RGB16, 8, tags={259: [34712]}), r"photometric 8 \(Lab\)"),
    "24 bits": (tiff(RGB16.astype(np.uint32), 2, bits=24), r"samples of 24 bits.*disagree on the byte order"),
    "strips": (tiff(RGB, 2, tags={273: [16]}), "must have 3 strips or tiles, got 1"),
    "beyond": (tiff(RGB, 2, deflate=True, tags={273: [16, 99999, 16]}), "the data ends before the image does"),
    "tag": (tiff(RGB, 2)[:-30], "tag 273 is beyond the end of the file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_describe_rejected_images(name: str, capfd: Any) -> None:
    data, text = REFUSED[name]
    with pytest.raises(DecodeError, match=text) as caught:
        images.decode(tensor(data))
    assert "\n" not in str(caught.value) and "format TIFF" in str(caught.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("missing", ["tifffile", "imagecodecs"])
def test_the_error_names_the_missing_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    command = re.escape(extra_command("tiff"))
    with pytest.raises(MissingExtraError, match=f"3 samples of 10 bits in planes.*{missing}.*{command}"):
        images.decode(tensor(TIFFS["tiff planes of 10 bits"][0]))
    for name in ("tiff inks as JPEG", "tiff old JPEG", "tiff palette of 2 colors", "tiff gray of 4 bits"):
        images.decode(tensor(TIFFS[name][0]))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("damaged, or a variant, of two"), "damaged, or a variant, of two"),
        (RuntimeError("[x] /build/decode_jpeg.cpp:44] Expected, or not, a JPEG\nframe #0"), "Expected, or not, a JPEG"),
        (RuntimeError("Exception raised from f at /build/f.cpp:9"), "Exception raised from f at /build/f.cpp:9"),
        (KeyError(50013), "KeyError 50013"),
        (EOFError(), "EOFError"),
    ],
)
def test_errors_keep_their_cause(error: Exception, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> None:
        raise error

    monkeypatch.setattr(images, "decode_file", fails)
    with pytest.raises(DecodeError) as caught:
        images.decode(tensor(LOSSLESS["png"][0]))
    assert str(caught.value).startswith(f"cannot decode image: {text} (format PNG")


def inside(png_header: bytes) -> bytes:
    """Return an icon that states 16 x 16 pixels, and contains a PNG."""
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, 16, 16, 0, 0, 1, 32, len(png_header), 22) + png_header


@pytest.mark.parametrize("mode", ["L", "LA", "P", "1", "RGB", "RGBA", "I;16"])
def test_an_apple_icon_contains_an_image_of_any_mode(mode: str) -> None:
    held = Image.fromarray(RGB).resize((16, 16)).convert(mode)
    held = encoded(held, "PNG")
    data = b"icns" + struct.pack(">I4sI", 16 + len(held), b"icp4", 8 + len(held)) + held
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        wanted = np.array(image.convert("RGBA"))
    assert images.peek_shape(tensor(data), image_type="ANY_DATA") == (16, 16, 4)
    np.testing.assert_array_equal(images.decode(tensor(data), output_type="ANY_DATA").numpy(), wanted)
    np.testing.assert_array_equal(images.decode(tensor(data)).numpy(), wanted[:, :, :3])


def claiming(data: bytes, offset: int, form: str, *numbers: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, offset, *numbers)
    return bytes(changed)


HUGE = {
    "gif": claiming(UNUSUAL["gif"][0], 6, "<HH", 60000, 60000),
    "tga": claiming(UNUSUAL["tga"][0], 12, "<HH", 60000, 60000),
    "dds": claiming(UNUSUAL["dds"][0], 12, "<II", 60000, 60000),
    "icon": inside(claiming(png(RGB, 2, 8), 16, ">II", 60000, 60000)),
    "tiles": tiff(RGB, 2, tile=16, tags={322: [60000], 323: [60000]}),
    "tiles of planes": tiff(RGB16, 2, tile=16, planar=True, deflate=True, tags={322: [1 << 20], 323: [1 << 20]}),
    "bmp": claiming(UNUSUAL["bmp 4444, header of 124"][0], 18, "<ii", 60000, 60000),
}


@pytest.mark.parametrize("name", HUGE)
def test_absurd_sizes_are_rejected_before_memory_is_allocated(name: str) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for call in (images.decode, images.peek_shape):
        with pytest.raises(DecodeError, match=r"too many|exceeds limit|could not be opened|unknown format"):
            call(tensor(HUGE[name]))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


@pytest.mark.parametrize("format", ["EPS", "PDF", "IM"])
def test_unsupported_formats_are_errors(format: str) -> None:
    with pytest.raises(DecodeError, match="unknown format"):
        images.decode(tensor(encoded(RGB, format)))


def test_the_file_name_does_not_select_the_format(tmp_path: Path) -> None:
    content = {"a.jpg": UNUSUAL["gif"][0], "b.png": UNUSUAL["tga"][0], "c.bmp": encoded(RGB, "TIFF"), "d.tif": UNUSUAL["dds"][0]}
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    pipe = Pipeline(batch_size=len(content), num_threads=1, device_id=None)
    with pipe:
        encoded_files, _ = fn.readers.file(files=[str(tmp_path / name) for name in content])
        pipe.set_outputs(fn.decoders.image(encoded_files), fn.peek_image_shape(encoded_files))
    pixels, shapes = pipe.run()
    for index, data in enumerate(content.values()):
        assert np.array_equal(np.array(pixels[index]), images.decode(tensor(data)).numpy())
        assert tuple(np.array(shapes[index])) == RGB.shape


# ----------------------------------------------------------------------- uninitialized memory


class Poison:
    """NumPy's and torch's fresh memory, filled with one byte."""

    def __init__(self, byte: int) -> None:
        self._byte = byte
        self._numpy, self._torch = np.empty, torch.empty

    def numpy(self, *arguments: Any, **options: Any) -> Any:
        made = self._numpy(*arguments, **options)
        if made.dtype != object:
            made.reshape(-1).view(np.uint8)[...] = self._byte
        return made

    def torch(self, *arguments: Any, **options: Any) -> Any:
        made = self._torch(*arguments, **options)
        made.view(-1).view(torch.uint8).fill_(self._byte)
        return made


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", [*UNUSUAL, *LOSSLESS])
def test_results_contain_no_uninitialized_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tensor((UNUSUAL | LOSSLESS)[name][0])
    expected = images.decode(data, output_type="ANY_DATA")
    for byte in (0x11, 0xEE):
        with monkeypatch.context() as patched:
            poison = Poison(byte)
            patched.setattr(np, "empty", poison.numpy)
            patched.setattr(torch, "empty", poison.torch)
            assert torch.equal(images.decode(data, output_type="ANY_DATA"), expected)


COUNT = 2600


def damaged() -> Iterator[bytes]:
    """Yield files with bytes changed, mostly in the directory, truncated, or repeated."""
    seeds = [data for data, _ in (UNUSUAL | LOSSLESS).values()]
    chance = random.Random(7)
    for number in range(COUNT):
        data = bytearray(seeds[number % len(seeds)])
        for _ in range(chance.choice((1, 1, 2, 4))):
            entry = _entry(chance, data)
            if entry and chance.random() < 0.6:
                form, offset = chance.choice([("H", 2), ("I", 4), ("I", 8), ("H", 8)])
                value = chance.choice([0, 1, 2, 3, 7, 8, 255, 65535, len(data), chance.randrange(65536)])
                struct.pack_into("<" + form, data, entry + offset, value & 0xFFFF if form == "H" else value)
            elif chance.random() < 0.3:
                del data[chance.randrange(1, 1 + len(data)) :]
            else:
                offset = chance.randrange(min(len(data), chance.choice((64, 300, 1 << 20))))
                data[offset : offset + 4] = chance.randbytes(chance.randrange(1, 6))
        yield bytes(data)


def _entry(chance: random.Random, data: bytearray) -> int:
    """Return the offset of an entry of a TIFF's directory; 0 in other files."""
    if data[:4] != b"II*\0" or len(data) < 8:
        return 0
    start = int.from_bytes(data[4:8], "little")
    count = int.from_bytes(data[start : start + 2], "little")
    entry = start + 2 + 12 * chance.randrange(max(1, min(count, 30)))
    return entry if entry + 12 <= len(data) else 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the C library's allocator fills memory by MALLOC_PERTURB_ on Linux")
def test_results_contain_no_memory_of_the_libraries() -> None:
    """The allocator fills memory with one of two bytes: results and errors must be the same."""
    results = []
    for byte in ("17", "238"):
        surroundings = {"MALLOC_PERTURB_": byte, "PYTHONMALLOC": "malloc", "OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(sys.path)}
        command = [sys.executable, "-m", "tests.codecs.test_unusual_images"]
        root = Path(__file__).parents[2]
        ran = subprocess.run(command, env=surroundings, cwd=root, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]
        results.append(ran.stdout.split("\n"))
    assert results[0] == results[1]
    decoded = sum(line not in ("", "refused") for line in results[0])
    assert COUNT // 10 < decoded < COUNT


def child() -> None:
    """Decode the damaged files, and print the result of each."""
    import hashlib
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    torch.set_num_threads(1)
    for data in damaged():
        try:
            height, width, _ = images.peek_shape(data)
            if height * width > 1 << 22:
                raise DecodeError("takes too long for a test")
            pixels = images.decode(tensor(data), output_type="ANY_DATA", dtype=torch.uint16)
            print(tuple(pixels.shape), hashlib.md5(pixels.numpy().tobytes()).hexdigest())
        except (DecodeError, MissingExtraError):
            print("refused")


if __name__ == "__main__":
    child()
