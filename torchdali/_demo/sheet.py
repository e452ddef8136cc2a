"""The demo's contact sheet: augmented images as the network sees them, in one column per class."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PIL import Image
from torch import Tensor

from torchdali._demo.training import MEAN, SIZE, STD
from torchdali.pictures import Tile, TileRow, contact_table

ROWS = 6
ENLARGE = 2


def _to_pil_image(image: Tensor) -> Image.Image:
    """Convert a normalized image ``(3, H, W)`` back to a PIL image."""
    levels = ((image * STD + MEAN) * 255).round().clamp(0, 255).byte()
    side = SIZE * ENLARGE
    return Image.fromarray(levels.permute(1, 2, 0).numpy()).resize((side, side))


def collect(batches: Iterable[tuple[Tensor, Tensor]], classes: int) -> list[list[Tensor]]:
    """Collect images until each class has `ROWS` images or the batches end; return the images by class."""
    columns: list[list[Tensor]] = [[] for _ in range(classes)]
    for images, labels in batches:
        for image, label in zip(images, labels.tolist(), strict=True):
            if len(columns[label]) < ROWS:
                columns[label].append(image)
        if all(len(column) == ROWS for column in columns):
            break
    return columns


def save(columns: list[list[Tensor]], names: list[str], path: Path) -> None:
    """Write a PNG with one column of images per class, below the class's name."""
    blank = Tile(Image.new("RGB", (SIZE * ENLARGE, SIZE * ENLARGE), "white"))
    rows = [
        TileRow(
            [Tile(_to_pil_image(images[k])) if k < len(images) else blank for images in columns],
            "",
            names if k == 0 else (),
        )
        for k in range(ROWS)
    ]
    contact_table(rows).save(path)
