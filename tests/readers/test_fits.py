"""experimental.readers.fits: the real DALI's needs a GPU; astropy writes the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import fn, pipeline_def, types

fits = pytest.importorskip("astropy.io.fits", reason="the extra `astronomy` is not installed")


def write(path: Path, *images: Any) -> str:
    units = [fits.PrimaryHDU(), *(i if isinstance(i, fits.hdu.base._BaseHDU) else fits.ImageHDU(i) for i in images)]
    fits.HDUList(units).writeto(path)
    return str(path)


def read(batch_size: int = 1, **arguments: Any) -> list[list[torch.Tensor]]:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None)
    def define() -> Any:
        outputs = fn.experimental.readers.fits(**arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    with define() as pipe:
        return [list(output.samples()) for output in pipe.run()]


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_types(tmp_path: Path, dtype: str) -> None:
    image = np.arange(6).astype(dtype).reshape(2, 3)
    found = read(files=[write(tmp_path / "a.fits", image)])[0][0].numpy()
    assert found.dtype == image.dtype and (found == image).all()


@pytest.mark.parametrize("kind", ["RICE_1", "GZIP_1", "GZIP_2", "HCOMPRESS_1", "PLIO_1"])
def test_compressed_images(tmp_path: Path, kind: str) -> None:
    image = np.random.default_rng(0).integers(0, 100, (20, 30)).astype(np.int16)
    path = write(tmp_path / "a.fits", fits.CompImageHDU(image, compression_type=kind))
    assert (read(files=[path])[0][0].numpy() == image).all()


def test_several_hdus_of_different_dtypes(tmp_path: Path) -> None:
    images = [np.ones((2, 3), np.int16), np.full((4, 1, 2), 7.5, np.float32)]
    path = write(tmp_path / "a.fits", *images)
    first, second = read(files=[path], hdu_indices=[3, 2], dtypes=[types.FLOAT64, types.UINT8])
    assert first[0].dtype == torch.float64 and first[0].shape == (4, 1, 2) and (first[0] == 7.5).all()
    assert second[0].dtype == torch.uint8 and second[0].tolist() == [[1] * 3] * 2


def test_scaled_values(tmp_path: Path) -> None:
    path = write(tmp_path / "a.fits", np.arange(3, dtype=np.int16))
    with fits.open(path, mode="update", do_not_scale_image_data=True) as units:
        units[1].header["BSCALE"], units[1].header["BZERO"] = 2.0, 1.0
    assert read(files=[path])[0][0].tolist() == [1.0, 3.0, 5.0]


def test_files_of_a_folder(tmp_path: Path) -> None:
    for i in range(3):
        write(tmp_path / f"{i}.fits", np.full((1,), i, np.int16))
    (tmp_path / "list.txt").write_text("2.fits\n0.fits\n")
    assert [int(x) for x in read(batch_size=3, file_root=str(tmp_path))[0]] == [0, 1, 2]
    assert [int(x) for x in read(batch_size=2, file_list=str(tmp_path / "list.txt"))[0]] == [2, 0]


def damaged(tmp_path: Path, kind: str) -> str:
    if kind == "table":
        return write(tmp_path / "a.fits", fits.BinTableHDU.from_columns([fits.Column("a", "E", array=np.ones(3))]))
    path = write(tmp_path / "a.fits", np.ones((40, 40), np.int16))
    if kind == "truncated":
        Path(path).write_bytes(Path(path).read_bytes()[:6000])
    if kind == "junk":
        Path(path).write_bytes(b"nothing")
    return path


@pytest.mark.parametrize("kind, indices, match", [
    ("table", [2], "a table in HDU 2"), ("truncated", [2], "truncated"), ("junk", [2], "SIMPLE"), ("", [1], "no image"),
    ("", [3], "no HDU 3"), ("", [0], "at least 1"), ("", [], "at least 1"),
])  # fmt: skip
def test_unreadable_urls_are_errors(tmp_path: Path, kind: str, indices: list[int], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        read(files=[damaged(tmp_path, kind)], hdu_indices=indices)


@pytest.mark.parametrize("arguments, match", [({}, "pass file_root"), ({"files": ["a"], "file_list": "b"}, "not both"), ({"files": ["a"], "dtypes": [types.INT16] * 2}, "1 and 2")])
def test_refused_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        read(**arguments)


@pytest.mark.parametrize("count", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_changed_bytes(tmp_path: Path, count: int) -> None:
    whole = Path(write(tmp_path / "a.fits", np.arange(50, dtype=np.int16))).read_bytes()
    rng, read_, refused = np.random.default_rng(1), 0, 0
    used = np.flatnonzero(np.frombuffer(whole, np.uint8))
    for _ in range(count):
        data = bytearray(whole)
        for place in rng.choice(used, rng.integers(1, 4)):
            data[place] = rng.integers(256)
        (tmp_path / "b.fits").write_bytes(data[: rng.integers(len(data))] if rng.random() < 0.2 else data)
        try:
            fn.experimental.readers.fits.implementation(files=[str(tmp_path / "b.fits")]).read(0)
            read_ += 1
        except RuntimeError:
            refused += 1
    assert read_ and refused


def test_for_a_gpu(tmp_path: Path) -> None:
    """Files are read on the CPU, and delivered on the device."""
    from tests.pretend import accelerator, inner

    images = [np.arange(6 * k, dtype=np.int16).reshape(2, -1) for k in (1, 2)]
    files = [write(tmp_path / f"{k}.fits", image) for k, image in enumerate(images)]

    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def define() -> Any:
        return fn.experimental.readers.fits(files=files, device="gpu") + 1

    with accelerator() as gpu:
        pipe = define()
        (found,) = pipe.run()
        assert {sample.device.type for sample in found.samples()} == {"cuda"}
        for sample, image in zip(found.samples(), images, strict=True):
            assert (inner(sample).numpy() == image + 1).all()
        pipe.close()
        del found, sample
        assert not gpu.report.races
