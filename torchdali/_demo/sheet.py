"""The contact sheet: augmented pictures as the network sees them, a column for each class."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from torchdali._demo.training import MEAN, SIZE, STD

ROWS = 6
GAP = 6
HEAD = 22
ENLARGE = 2


def _picture(image: Tensor) -> Image.Image:
    """Turn a normalized ``(3, H, W)`` image back into a picture."""
    levels = ((image * STD + MEAN) * 255).round().clamp(0, 255).to(torch.uint8)
    side = SIZE * ENLARGE
    return Image.fromarray(levels.permute(1, 2, 0).numpy()).resize((side, side))


def collect(batches: Iterable[tuple[Tensor, Tensor]], classes: int) -> list[list[Tensor]]:
    """Take images until each class has as many as the sheet has rows, or the batches end."""
    found: list[list[Tensor]] = [[] for _ in range(classes)]
    for images, labels in batches:
        for image, label in zip(images, labels.tolist(), strict=True):
            if len(found[label]) < ROWS:
                found[label].append(image)
        if all(len(column) == ROWS for column in found):
            break
    return found


def save(columns: list[list[Tensor]], names: list[str], path: Path) -> None:
    """Write a PNG with one column of pictures a class, its name above it."""
    step = SIZE * ENLARGE + GAP
    sheet = Image.new("RGB", (GAP + step * len(names), HEAD + step * ROWS), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=15)
    for column, (images, name) in enumerate(zip(columns, names, strict=True)):
        left = GAP + column * step
        draw.text((left + step // 2, HEAD // 2), name, "black", font, anchor="mm")
        for row, image in enumerate(images):
            sheet.paste(_picture(image), (left, HEAD + row * step))
    sheet.save(path)
