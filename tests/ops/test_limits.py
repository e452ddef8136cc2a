"""Arguments that would cost minutes or gigabytes, and invalid ones: they are rejected immediately, with a message."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.encoded_images import encoded
from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.codecs.images import decode, peek_shape
from torchdali.errors import DecodeError
from torchdali.kernels.exactness import exactness
from torchdali.kernels.limits import MAX_PIXELS, limits

IMAGE = torch.arange(20 * 30 * 3).remainder(251).byte().reshape(20, 30, 3)
NAN, INF = float("nan"), float("inf")

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a huge width": (lambda: fn.resize(IMAGE, resize_x=1e8), "TORCHDALI_MAX_PIXELS"),
    "a huge size": (lambda: fn.resize(IMAGE, size=[1e6, 1e6]), "got 1e.06 x 1e.06"),
    "a size that is no number": (lambda: fn.resize(IMAGE, resize_x=NAN), "got nan x nan"),
    "an infinite size": (lambda: fn.resize(IMAGE, size=[INF, 3]), "got inf x 3"),
    "a region that is no number": (
        lambda: fn.resize(IMAGE, roi_start=[NAN, 0], roi_end=[5, 5], size=[4, 4]),
        "finite numbers",
    ),
    "a huge region": (
        lambda: fn.resize(IMAGE, roi_start=[-1e9, 0], roi_end=[5, 5], size=[9000, 4]),
        "resizing must read at most .* pixels",
    ),
    "a wide window": (lambda: fn.gaussian_blur(IMAGE, window_size=2**31 - 1), "at most 131072"),
    "a wide deviation": (lambda: fn.gaussian_blur(IMAGE, sigma=1e9), "at most 131072"),
    "a deviation that is no number": (lambda: fn.gaussian_blur(IMAGE, sigma=NAN), "wide, got nan"),
    "a window of the laplacian": (lambda: fn.laplacian(IMAGE, window_size=1001), "from 3 to 31"),
    "a crop far beyond the image": (
        lambda: fn.crop(IMAGE, crop=[400_000, 400_000], out_of_bounds_policy="pad"),
        "the window must have at most 1073741824 pixels .*max_pixels.*, got 400000 x 400000",
    ),
    "the same, normalized": (
        lambda: fn.crop_mirror_normalize(IMAGE, crop=[4e5, 4e5], out_of_bounds_policy="pad"),
        "the window must have at most",
    ),
    "the same, with edges repeated": (
        lambda: fn.crop(IMAGE, crop=[400_000, 400_000], out_of_bounds_policy="reflect_101"),
        "the window must have at most",
    ),
    "a slice far beyond the image": (
        lambda: fn.slice(IMAGE, start=[0, 0], shape=[400_000, 400_000], out_of_bounds_policy="pad"),
        "the window must have at most",
    ),
    "a pad": (
        lambda: fn.pad(IMAGE, axes=[0, 1], shape=[400_000, 400_000]),
        "the padded sample must have at most",
    ),
    "a canvas to paste on": (
        lambda: fn.paste(IMAGE, fill_value=[0], ratio=1e5),
        "the canvas must have at most",
    ),
    "a canvas for regions": (
        lambda: fn.multi_paste(IMAGE, in_ids=[0], output_size=[400_000, 400_000]),
        "the canvas of sample 0 must have at most",
    ),
    "a canvas to warp on": (
        lambda: fn.warp_affine(IMAGE, matrix=[1, 0, 0, 0, 1, 0], size=[400_000, 400_000]),
        "the canvas must have at most",
    ),
    "three sizes": (lambda: fn.random_resized_crop(IMAGE, size=[4, 4, 4]), "a non-negative height and width"),
    "a negative size": (lambda: fn.random_resized_crop(IMAGE, size=[-1, 4]), "a non-negative height and width"),
    "an area that is no number": (
        lambda: fn.random_resized_crop(IMAGE, size=[4, 4], random_area=[NAN, 1.0]),
        "must be ranges",
    ),
    "more than all pixels": (lambda: fn.noise.salt_and_pepper(IMAGE, prob=2.0), "prob must be between 0 and 1, got 2.0"),
    "a share that is no number": (
        lambda: fn.noise.salt_and_pepper(IMAGE, salt_vs_pepper=NAN),
        "salt_vs_pepper must be between 0 and 1, got nan",
    ),
    "a chance that is no number": (
        lambda: fn.random.choice(3, p=[NAN, 0.5, 0.5]),
        "probabilities must be between 0 and 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize("argument", [{"batch_size": 2**63}, {"num_threads": 2**31}])
def test_pipelines_reject_huge_numbers(argument: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(argument.values())))):
        Pipeline(**{"batch_size": 1, "num_threads": 1, "device_id": None, **argument})


def test_a_tiny_size_is_one_pixel() -> None:
    assert fn.resize(IMAGE, size=(1e-10, 1e-10)).shape == (1, 1, 3)


@pytest.mark.parametrize(
    "result",
    [
        lambda: fn.water(IMAGE, ampl_x=NAN, fill_value=7.0),
        lambda: fn.water(IMAGE, freq_y=INF, fill_value=7.0),
    ],
)
def test_nan_positions_are_outside(result: Callable[[], Any]) -> None:
    assert (result() == 7).all()


def test_a_nan_fill_value_is_zero() -> None:
    assert fn.rotate(IMAGE, angle=45.0, fill_value=NAN)[0, 0].tolist() == [0, 0, 0]


def test_a_directory_beyond_the_end_of_a_tiff() -> None:
    data = torch.frombuffer(bytearray(b"II+\0\x08\0\0\0" + b"\xff" * 8), dtype=torch.uint8)
    for read in (decode, peek_shape):
        with pytest.raises(DecodeError, match="truncated or damaged"):
            read(data)


def test_a_png_wider_than_libpng_reads_it() -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (2_097_208).to_bytes(4, "big") + (72).to_bytes(4, "big")
    data = torch.frombuffer(bytearray(header + b"\x08\x02\0\0\0" + bytes(200)), dtype=torch.uint8)
    with pytest.raises(DecodeError, match="2097208 x 72 pixels, too many on one side"):
        decode(data)


def test_a_link_to_itself_among_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_bytes(b"one")
    os.symlink("ring.txt", tmp_path / "a" / "ring.txt")
    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(fn.readers.file(file_root=str(tmp_path))[0])
    assert bytes(np.array(pipe.run()[0].at(0))) == b"one"
    pipe.close()


def run(work: Callable[[Any], Any], **options: Any) -> Any:
    """Run a pipeline on one image, as a file and as pixels."""
    pipe = Pipeline(1, 2, None, **options)
    with pipe:
        file = fn.external_source(lambda: [PNG], batch=True)
        pipe.set_outputs(work(file))
    with contextlib.closing(pipe):
        return np.asarray(pipe.run()[0].at(0)).shape


PNG = np.frombuffer(encoded(IMAGE.numpy(), "PNG"), np.uint8)
JPEG = np.frombuffer(encoded(IMAGE.numpy(), "JPEG"), np.uint8)
LARGER: dict[str, Callable[[Any], Any]] = {
    "decoding": fn.decoders.image,
    "decoding a window": lambda file: fn.decoders.image_crop(file, crop=[4, 4]),
    "decoding a JPEG": lambda file: fn.decoders.image(fn.constant(idata=JPEG.tolist(), dtype=types.UINT8)),
    "a resize": lambda file: fn.resize(fn.decoders.image(file), size=[20, 31]),
    "a resize by its longer side": lambda file: fn.resize(fn.decoders.image(file), resize_longer=31),
    "a window": lambda file: fn.crop(fn.decoders.image(file), crop=[20, 31], out_of_bounds_policy="pad"),
    "a canvas": lambda file: fn.warp_affine(fn.decoders.image(file), matrix=[1, 0, 0, 0, 1, 0], size=[20, 31]),
}  # fmt: skip


@pytest.mark.parametrize("more", [{}, {"exec_async": False}])
@pytest.mark.parametrize("case", LARGER)
def test_each_pipeline_has_its_own_limit(case: str, more: dict[str, Any]) -> None:
    least = 599 if "decoding" in case else 600
    with pytest.raises(RuntimeError, match=f"at most {least}.*max_pixels"):
        run(LARGER[case], max_pixels=least, **more)
    assert run(LARGER[case], max_pixels=1000, **more)
    assert run(LARGER[case], **more)
    assert limits.pixels == MAX_PIXELS


def test_a_limit_in_debug_mode() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, debug=True, max_pixels=599)
    def pipe() -> Any:
        return fn.decoders.image(fn.constant(idata=PNG.tolist(), dtype=types.UINT8))

    with pytest.raises(RuntimeError, match="at most 599"):
        pipe().run()
    assert limits.pixels == MAX_PIXELS


@pytest.mark.parametrize("pixels", [0, -1])
def test_a_limit_must_be_positive(pixels: int) -> None:
    with pytest.raises(ValueError, match="max_pixels must be positive"):
        Pipeline(1, 1, None, max_pixels=pixels)


# ---------------------------------------------------------------- exact

BYTES = np.random.default_rng(7).integers(0, 256, (97, 131, 3), np.uint8)


def resized(exact: bool, **more: Any) -> Any:
    """Return bytes and floats of one resize, from a pipeline."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, exact=exact, **more)
    def pipe() -> Any:
        image = fn.external_source(lambda: [BYTES] * 4, layout="HWC")
        return fn.resize(image, size=[40, 60]), fn.resize(image, size=[40, 60], dtype=types.FLOAT)

    made, floats = pipe().run()
    return np.asarray(made.as_array()), np.asarray(floats.as_array())


WAYS: dict[str, dict[str, Any]] = {
    "threads": {},
    "in the user's thread": {"exec_async": False},
    "debug mode": {"debug": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_exact_bytes_are_rounded_once(way: str) -> None:
    made, floats = resized(True, **WAYS[way])
    assert (made == np.rint(floats)).mean() > 0.999  # halves at the ends of rows go up
    quick, _ = resized(False, **WAYS[way])
    assert (quick == np.rint(floats)).mean() < 0.95
    assert not exactness.on


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_settings_reach_other_processes(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform does not {method}")
    more = {"num_processes": 2, "py_start_method": method}
    made, floats = resized(True, **more)
    assert (made == np.rint(floats)).mean() > 0.999
    with pytest.raises(RuntimeError, match=r"at most 599.*max_pixels"):
        run(LARGER["decoding"], max_pixels=599, **more)
