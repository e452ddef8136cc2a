"""``torchdali demo --keep DIR``: generate the small files that the documentation's recipes read."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import sys
import tarfile
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from torchdali._demo.pictures import SHAPES
from torchdali.installation import extra_command

__all__ = ["PARTS", "RecipeFiles", "keep", "write"]

Pixels = npt.NDArray[np.uint8]

_CLASSES = {"cat": ((200, 60, 40), "heart"), "dog": ((40, 80, 200), "star")}  # background color, and shape
_TRAIN, _VAL = (13, 12), (5, 5)  # images of each class
_RECORDS = 20  # number of photos, which is also the number of audio files, videos and arrays
_LARGE = 40  # pixels; photos with a wider box get the tag "large"


def _save(path: Path, pixels: Pixels) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, quality=95)  # only JPEGs have a quality


def _write_images(root: Path) -> None:
    """Write images into ``images/train`` and ``images/val``, each with a folder per class."""
    random = np.random.default_rng(1)
    for part, counts in (("train", _TRAIN), ("val", _VAL)):
        for (name, (color, shape)), count in zip(_CLASSES.items(), counts, strict=True):
            for i in range(count):
                _save(root / "images" / part / name / f"{i:03}.jpg", _draw_image(random, color, shape, (96, 80 + i)))


def _draw_image(random: np.random.Generator, color: tuple[int, int, int], shape: str, size: tuple[int, int]) -> Pixels:
    """Draw a green shape on a noisy background; the shape and the background's color depend on the class."""
    pixels = np.array(color) + random.normal(0, 10, (size[1], size[0], 3))
    mask = Image.new("L", size)
    points, _ = SHAPES[shape][0]
    radius = min(size) * random.uniform(0.3, 0.4)
    center = [(side / 2 + random.uniform(-0.1, 0.1) * side) for side in size]
    ImageDraw.Draw(mask).polygon([(center[0] + radius * x, center[1] + radius * y) for x, y in points], fill=60)
    pixels[..., 1] += np.asarray(mask)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def _write_photos(root: Path) -> None:
    """Write photos of a bright box on black, a mask for each photo, the boxes in COCO format, and a CSV table."""
    random = np.random.default_rng(2)
    images, annotations, rows = [], [], []
    for i in range(_RECORDS):
        height, width = 100 + i, 120
        top, left, size = int(random.integers(10, 40)), int(random.integers(10, 50)), 30 + i
        pixels, mask = np.zeros((height, width, 3), np.uint8), np.zeros((height, width), np.uint8)
        box = (slice(top, top + size), slice(left, left + size))
        pixels[box], mask[box] = (250, 250 * (i % 2), 0), 1
        _save(root / "photos" / f"{i:03}.jpg", pixels)
        _save(root / "masks" / f"{i:03}.png", mask)
        images.append({"id": i, "file_name": f"{i:03}.jpg", "width": width, "height": height})
        annotations.append(_annotation(i, (left, top, size, size)))
        tags = ["box", *(["yellow"] if i % 2 else []), *(["large"] if size > _LARGE else [])]
        rows.append([f"photos/{i:03}.jpg", ("red", "yellow")[i % 2], size, " ".join(tags)])
    categories = [{"id": 1, "name": "red"}, {"id": 2, "name": "yellow"}]
    text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
    (root / "annotations.json").write_text(text)
    with (root / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["path", "label", "width", "tags"], *rows])


def _annotation(number: int, box: tuple[int, int, int, int]) -> dict[str, Any]:
    ids = {"id": number, "image_id": number, "category_id": 1 + number % 2}
    return {**ids, "bbox": list(box), "area": box[2] * box[3], "iscrowd": 0}


def _write_archives(root: Path) -> None:
    """Write two tar archives of the photos, in WebDataset's format."""
    (root / "archives").mkdir()
    half = _RECORDS // 2
    for shard in range(2):
        with tarfile.open(root / "archives" / f"{shard:03}.tar", "w") as archive:
            for i in range(half * shard, half * shard + half):
                jpeg = (root / "photos" / f"{i:03}.jpg").read_bytes()
                for extension, content in (("jpg", jpeg), ("cls", str(i % 2).encode())):
                    member = tarfile.TarInfo(f"{i:03}.{extension}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


def _write_sounds(root: Path) -> None:
    """Write audio files of 0.4 to 0.8 s with a low or high tone."""
    random = np.random.default_rng(3)
    for name, frequency in (("high", 2000), ("low", 300)):
        (root / "sounds" / name).mkdir(parents=True)
        for i in range(_RECORDS // 2):
            times = np.arange(int(random.integers(6400, 12800))) / 16000
            with wave.open(str(root / "sounds" / name / f"{i}.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes((np.sin(2 * np.pi * frequency * times) * 8000).astype("<i2").tobytes())


def _write_clips(root: Path) -> None:
    """Write videos of a box that moves left or right."""
    import av

    for name, step in (("left", -3), ("right", 3)):
        (root / "clips" / name).mkdir(parents=True)
        for i in range(_RECORDS // 2):
            with av.open(str(root / "clips" / name / f"{i}.mp4"), "w") as file:
                stream = file.add_stream("mpeg4", rate=10)
                stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
                for number in range(8):
                    pixels = np.zeros((48, 64, 3), np.uint8)
                    left = 26 + i % 3 + step * (number - 4)
                    pixels[16:32, left : left + 12] = 255
                    file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
                file.mux(stream.encode())


def _write_arrays(root: Path) -> None:
    """Write images and labels into an HDF5 file."""
    import h5py

    with h5py.File(root / "arrays.h5", "w") as file:
        file["images"] = np.random.default_rng(4).integers(0, 255, (_RECORDS, 48, 48, 3), np.uint8)
        file["labels"] = np.arange(_RECORDS) % 2


class RecipeFiles(NamedTuple):
    """Files that some recipes read.

    Attributes:
        path: Path of the first file or folder; the files are written if this path is missing.
        files: Description of the files.
        write: Function that writes the files into a folder.
        package: The module that ``write`` needs, and the extra that installs it; two empty strings if none is needed.
    """

    path: str
    files: str
    write: Callable[[Path], None]
    package: tuple[str, str] = ("", "")


PARTS = (
    RecipeFiles("images", "images/train and images/val, 25 and 10 images of 2 classes", _write_images),
    RecipeFiles("photos", "photos, masks, annotations.json, table.csv, 20 of each", _write_photos),
    RecipeFiles("archives", "archives of the photos", _write_archives),
    RecipeFiles("sounds", "sounds, 20 of 2 classes", _write_sounds),
    RecipeFiles("clips", "clips, 20 videos of 2 classes", _write_clips, ("av", "video")),
    RecipeFiles("arrays.h5", "arrays.h5, 20 images", _write_arrays, ("h5py", "h5py")),
)


def write(root: Path) -> list[RecipeFiles]:
    """Write all missing files, and return the entries of `PARTS` that need a package that isn't installed."""
    skipped = []
    for part in PARTS:
        if (root / part.path).exists():
            continue
        if part.package[0] and importlib.util.find_spec(part.package[0]) is None:
            skipped.append(part)
        else:
            part.write(root)
    return skipped


def keep(root: Path) -> int:
    """Write all files into a new folder, or the missing files into an existing folder.

    Print a report, and return the exit status: 1 if the folder contains other files.
    """
    is_empty = not root.exists() or (root.is_dir() and not any(root.iterdir()))
    if not is_empty and not all((root / part.path).exists() for part in PARTS if not part.package[0]):
        print(f"torchdali demo: {root} already exists and has other contents; pass a new folder", file=sys.stderr)
        return 1
    root.mkdir(parents=True, exist_ok=True)
    skipped = write(root)
    print(f"Files for the recipes in {root}:")
    for part in PARTS:
        print(f"  {part.files}" + (f": skipped, needs {extra_command(part.package[1])}" if part in skipped else ""))
    print(f"Next: cd {root}, paste a recipe into a file there, and run it. Recipes: {_RECIPES}")
    return 0


_RECIPES = "https://github.com/torchdali/torchdali/blob/main/docs/recipes/tasks.md"
