"""Make 12-megapixel photos from smaller ones, since no test data has any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image

SIZE = (4000, 3000)
NOISE = 5.0
QUALITY = 90


def enlarge(source: Path, target: Path, seed: int) -> None:
    """Write an image enlarged to 4000 x 3000 with the grain of a sensor.

    Without the grain an enlarged image is so smooth that its file is a fifth of a real photo's,
    and decoding it is too easy.
    """
    with PIL.Image.open(source) as image:
        pixels = image.convert("RGB").resize(SIZE, PIL.Image.Resampling.BICUBIC)
    grain = np.random.default_rng(seed).normal(0, NOISE, (SIZE[1], SIZE[0], 1))
    noisy = np.clip(np.asarray(pixels) + grain.astype(np.float32), 0, 255).astype(np.uint8)
    PIL.Image.fromarray(noisy).save(target, "JPEG", quality=QUALITY)


def make(root: Path, target: Path, count: int) -> None:
    """Write ``count`` photos made from the images below ``root``, as two classes."""
    files = sorted(path for path in root.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    for number, source in enumerate(files[:: max(1, len(files) // count)][:count]):
        folder = target / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        enlarge(source, folder / f"{number:03d}.jpg", number)
