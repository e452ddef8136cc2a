"""Decoders on "mixed": several images in one call of the library, directly into the memory that is copied to the device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.inside import fused_calls
from tests.helpers.native import switched_off
from torchdali import fn, pipeline_def
from torchdali.execute.output_buffer import Arena
from torchdali.kernels.memory import BufferedResult
from torchdali.kernels.native import library

pytestmark = pytest.mark.skipif(library() is None, reason="needs the library in C")

COUNT = 24
DECODERS: dict[str, Callable[..., Any]] = {
    "whole": lambda data, **how: fn.decoders.image(data, **how),
    "as stored": lambda data, **how: fn.decoders.image(data, **how, adjust_orientation=False),
    "crop": lambda data, **how: fn.decoders.image_crop(data, **how, crop=(20, 25), crop_pos_x=0.2),
    "crop of one axis": lambda data, **how: fn.decoders.image_crop(data, **how, crop_h=12, crop_w=0),
    "random crop": lambda data, **how: fn.decoders.image_random_crop(data, **how, seed=4),
    "small random crop": lambda data, **how: fn.decoders.image_random_crop(
        data, **how, seed=4, random_area=[0.1, 0.2], num_attempts=2
    ),
    "crop at random": lambda data, **how: fn.decoders.image_crop(
        data, **how, crop=(20, 25), crop_pos_x=fn.random.uniform(range=(0.0, 1.0), seed=4)
    ),
    "slice": lambda data, **how: fn.decoders.image_slice(data, **how, rel_start=[0.2, 0.1], rel_shape=[0.5, 0.6]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of JPEGs of all orientations, in gray and CMYK, and a PNG."""
    made = tmp_path_factory.mktemp("mixed") / "class"
    made.mkdir()
    for i in range(COUNT):
        rng = np.random.default_rng(i)
        y, x = np.mgrid[0 : 32 + i, 0 : 60 - i, 0:1][:2] / 9
        waves = 128 + 60 * np.sin(x + rng.uniform(0, 6, 3)) + 50 * np.cos(y * rng.uniform(0.5, 2, 3))
        picture = Image.fromarray(waves.clip(0, 255).astype(np.uint8))
        exif = Image.Exif()
        exif[0x112] = i % 8 + 1 if i % 3 == 0 else 1
        mode = {20: "L", 21: "CMYK"}.get(i, "RGB")
        kind = {"exif": exif, "subsampling": i % 3, "progressive": i == 22} if i != 23 else {}
        picture.convert(mode).save(made / f"{i:02}.{'png' if i == 23 else 'jpg'}", **kind)
    return made.parent


def decoded(
    folder: Path, name: str, device_id: Any, from_files: bool, batches: int = 3, fancy: bool = True, **options: Any
) -> list[torch.Tensor]:
    """Return the results of a decoder for the device, smooth if `fancy`; or, without a device, on the CPU."""
    contents = [np.fromfile(file, np.uint8) for file in sorted(folder.rglob("*.*"))]

    @pipeline_def(batch_size=COUNT, num_threads=2, device_id=device_id, seed=9, **options)
    def define() -> Any:
        if from_files:
            data, _ = fn.readers.file(file_root=str(folder), name="Reader")
        else:
            data = fn.external_source(lambda: contents, batch=True)
        how = {} if device_id is None else {"device": "mixed", "jpeg_fancy_upsampling": fancy}
        return DECODERS[name](data, **how)

    pipe = define()
    try:
        return [s.clone() for _ in range(batches) for s in pipe.run()[0].samples()]
    finally:
        pipe.close()


def plain_by_simplejpeg(folder: Path, name: str, from_files: bool) -> list[torch.Tensor]:
    """Decode with repeated colors, without the library; they differ from smooth ones."""
    pytest.importorskip("simplejpeg", reason="needs simplejpeg: install the extra 'image'")
    with switched_off():
        plain, smooth = (decoded(folder, name, "cpu", from_files, fancy=fancy) for fancy in (False, True))
    assert sum(not torch.equal(a, b) for a, b in zip(plain, smooth, strict=True)) > COUNT
    return plain


@pytest.mark.thin(3)
@pytest.mark.parametrize("fancy", [True, False])
@pytest.mark.parametrize("from_files", [True, False])
@pytest.mark.parametrize("name", DECODERS)
def test_several_images_in_one_call(
    folder: Path, name: str, from_files: bool, fancy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = decoded(folder, name, None, from_files) if fancy else plain_by_simplejpeg(folder, name, from_files)
    calls: list[tuple[int, int, bool]] = []

    def note(tasks: Any, results: Any, out: Any = None, room: Any = None) -> None:
        calls.append((len(tasks), sum(isinstance(r, BufferedResult) for r in results), room is not None))

    fused_calls(monkeypatch, note)
    found = decoded(folder, name, "cpu", from_files, fancy=fancy)
    assert len(found) == len(expected) == 3 * COUNT
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert max(size for size, *_ in calls) > 1  # images that the library rejects are retried one by one
    # Images of one size have slots in a tensor; other images have memory from the second batch on.
    assert name in ("crop", "crop at random") or any(placed > 1 for _, placed, _ in calls)


def test_images_without_a_slot_are_delivered_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a batch is larger than the previous one, the rest needs one more copy."""
    expected = decoded(folder, "whole", None, True)
    reserve, taken = Arena.reserve, []

    def small(arena: Arena, count: int) -> int:
        taken.append(count)
        return -1 if len(taken) % 3 else reserve(arena, count)

    monkeypatch.setattr(Arena, "reserve", small)
    found = decoded(folder, "whole", "cpu", True)
    assert taken and all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_damaged_files_among_the_images(folder: Path, tmp_path: Path, policy: str) -> None:
    (tmp_path / "class").mkdir()
    for i, file in enumerate(sorted(folder.rglob("*.*"))):
        content = file.read_bytes()
        (tmp_path / "class" / file.name).write_bytes(content[: len(content) // (2 if i in (3, 9) else 1)])
    with pytest.raises(Exception, match=r"decoders\.image_crop[\s\S]*0[39]\.jpg"):
        decoded(tmp_path, "crop", "cpu", True)
    options = {"bad_samples": policy}
    expected, found = (decoded(tmp_path, "crop", device, True, **options) for device in (None, "cpu"))
    assert len(found) == len(expected) > 40
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
