"""The programs of ``docs/recipes`` and ``docs/first_script.md``, and the data that they read."""

from __future__ import annotations

import csv
import io
import json
import re
import tarfile
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tests.helpers.pages import ROOT

__all__ = ["Recipe", "make_data", "recipes"]

_SECTION = re.compile(r"^## (?P<title>[^\n]*)\n(?P<text>.*?)^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALLED = re.compile(r"`pip install ([^`]*)`")
_PRINTED = re.compile(r"\bprint\(.*\)\s+# -> (.*)")
_LAUNCHED = re.compile(r"# (torchrun|accelerate launch) .*2 train.py\n")


@dataclass(frozen=True)
class Recipe:
    """A program of a page.

    Attributes:
        page: Path of the page, below the root.
        title: Heading.
        packages: Names of packages to install, as the text has them, such as ``torchdali[video]``.
        code: The program.
    """

    page: str
    title: str
    packages: tuple[str, ...]
    code: str

    @property
    def printed(self) -> list[str]:
        """Lines that it prints, in their order."""
        return _PRINTED.findall(self.code)

    @property
    def processes(self) -> int:
        """Number of processes that run it."""
        return 2 if _LAUNCHED.match(self.code) else 1


def recipes() -> list[Recipe]:
    """Find the programs of all pages."""
    return [
        Recipe(str(page.relative_to(ROOT)), m["title"], tuple(" ".join(_INSTALLED.findall(m["text"])).split()), m["code"])
        for page in [ROOT / "docs" / "first_script.md", *sorted((ROOT / "docs" / "recipes").glob("*.md"))]
        for m in _SECTION.finditer(page.read_text(encoding="utf-8"))
    ]


# ------------------------------------------------------------ data


def make_data(root: Path) -> None:
    """Make the folders and files that the pages name: 25 pictures to train on, 10 to validate, 20 records of the others."""
    random = np.random.default_rng(1)
    for part, counts in (("train", (13, 12)), ("val", (5, 5))):
        for name, color, count in zip(("cat", "dog"), ((200, 60, 40), (40, 80, 200)), counts, strict=True):
            for i in range(count):
                _save(root / "images" / part / name / f"{i:03}.jpg", _noise(random, color, 80 + i, 96))
    _photos(root, random)
    _archives(root)
    _sounds(root, random)


def _noise(random: np.random.Generator, color: tuple[int, int, int], height: int, width: int) -> np.ndarray:
    noise = random.normal(0, 10, (height, width, 3))
    return np.clip(np.array(color) + noise, 0, 255).astype(np.uint8)


def _save(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **({"quality": 95} if path.suffix == ".jpg" else {}))


def _photos(root: Path, random: np.random.Generator) -> None:
    """Make photos of a bright box on black, with a mask of the box, an annotation like COCO's, and a line of a table."""
    images, annotations, rows = [], [], []
    for i in range(20):
        height, width = 100 + i, 120
        top, left, size = int(random.integers(10, 40)), int(random.integers(10, 50)), 30 + i
        pixels, mask = np.zeros((height, width, 3), np.uint8), np.zeros((height, width), np.uint8)
        box = (slice(top, top + size), slice(left, left + size))
        pixels[box], mask[box] = (250, 250 * (i % 2), 0), 1
        _save(root / "photos" / f"{i:03}.jpg", pixels)
        _save(root / "masks" / f"{i:03}.png", mask)
        images.append({"id": i, "file_name": f"{i:03}.jpg", "width": width, "height": height})
        annotations.append({"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": [left, top, size, size], "iscrowd": 0, "area": size**2})
        tags = ["box", *(["yellow"] if i % 2 else []), *(["large"] if size > 40 else [])]
        rows.append([f"photos/{i:03}.jpg", ("red", "yellow")[i % 2], size, " ".join(tags)])
    categories = [{"id": 1, "name": "red"}, {"id": 2, "name": "yellow"}]
    text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
    (root / "annotations.json").write_text(text)
    with (root / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["path", "label", "width", "tags"], *rows])


def _archives(root: Path) -> None:
    (root / "archives").mkdir()
    for shard in range(2):
        with tarfile.open(root / "archives" / f"{shard:03}.tar", "w") as archive:
            for i in range(10 * shard, 10 * shard + 10):
                picture = (root / "photos" / f"{i:03}.jpg").read_bytes()
                for extension, content in (("jpg", picture), ("cls", str(i % 2).encode())):
                    member = tarfile.TarInfo(f"{i:03}.{extension}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


def _sounds(root: Path, random: np.random.Generator) -> None:
    """Make sounds of 0.4 to 0.8 s, low or high."""
    for name, frequency in (("high", 2000), ("low", 300)):
        (root / "sounds" / name).mkdir(parents=True)
        for i in range(10):
            times = np.arange(int(random.integers(6400, 12800))) / 16000
            with wave.open(str(root / "sounds" / name / f"{i}.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes((np.sin(2 * np.pi * frequency * times) * 8000).astype("<i2").tobytes())


def make_clips(root: Path) -> None:
    """Make videos of a box that moves to the left or to the right; needs `av`."""
    import av

    for name, step in (("left", -3), ("right", 3)):
        (root / "clips" / name).mkdir(parents=True)
        for i in range(10):
            with av.open(str(root / "clips" / name / f"{i}.mp4"), "w") as file:
                stream = file.add_stream("mpeg4", rate=10)
                stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
                for number in range(8):
                    pixels = np.zeros((48, 64, 3), np.uint8)
                    left = 26 + i % 3 + step * (number - 4)
                    pixels[16:32, left : left + 12] = 255
                    file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
                file.mux(stream.encode())


def make_arrays(root: Path) -> None:
    """Make a file of HDF5; needs `h5py`."""
    import h5py

    with h5py.File(root / "arrays.h5", "w") as file:
        file["images"] = np.random.default_rng(2).integers(0, 255, (20, 48, 48, 3), np.uint8)
        file["labels"] = np.arange(20) % 2
