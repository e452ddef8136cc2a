"""Image files for pipelines on a mock accelerator."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image


def write_images(folder: Path, count: int, side: int = 60) -> Path:
    """Write smooth JPEG images of different sizes, in two classes."""
    for i in range(count):
        rng = np.random.default_rng(i)
        h, w = rng.integers(side - 15, side + 15, 2)
        y, x = np.mgrid[0:h, 0:w, 0:1][:2] / 9
        picture = 128 + 60 * np.sin(x + rng.uniform(0, 6, 3)) + 50 * np.cos(y * rng.uniform(0.5, 2, 3))
        buffer = io.BytesIO()
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=90)
        path = folder / str(i % 2) / f"{i:04}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(buffer.getvalue())
    return folder
