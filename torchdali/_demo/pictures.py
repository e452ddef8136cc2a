"""Draw the demo's labeled images: ten shapes with random sizes, positions, rotations, colors and textures.

Only the shape determines the class. Colors, textures and clutter are independent of the class, so a network has to
recognize the outline.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Array = NDArray[np.float32]
Points = list[tuple[float, float]]
Outline = list[tuple[Points, int]]  # polygons in [-1, 1], each filled (1) or cut out (0)


def _array(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _circle(radius: float = 1.0, x: float = 0.0) -> Points:
    turns = np.linspace(0, 2 * math.pi, 64, endpoint=False)
    return [(x + radius * math.cos(turn), radius * math.sin(turn)) for turn in turns]


def _corners(count: int, inner: float = 1.0) -> Points:
    steps = count if inner == 1.0 else 2 * count
    radii = [1.0 if step % 2 == 0 else inner for step in range(steps)]
    turns = [2 * math.pi * step / steps for step in range(steps)]
    return [(r * math.sin(t), -r * math.cos(t)) for r, t in zip(radii, turns, strict=True)]


def _cross() -> Points:
    a, b = 1.0, 0.33
    right = [(b, -a), (b, -b), (a, -b), (a, b), (b, b), (b, a)]
    return right + [(-x, -y) for x, y in right]


def _heart() -> Points:
    def point(t: float) -> tuple[float, float]:
        y = 13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)
        return math.sin(t) ** 3, -(y + 2.5) / 15

    return [point(t) for t in np.linspace(0, 2 * math.pi, 80, endpoint=False)]


def _spiral() -> Points:
    turns = np.linspace(0.6, 5 * math.pi, 120)
    arm = [(t / (5 * math.pi), t) for t in turns]
    outer = [(r * math.cos(t), r * math.sin(t)) for r, t in arm]
    inner = [((r - 0.17) * math.cos(t), (r - 0.17) * math.sin(t)) for r, t in arm]
    return outer + inner[::-1]


def _arrow() -> Points:
    return [(0, -1), (0.8, 0), (0.3, 0), (0.3, 1), (-0.3, 1), (-0.3, 0), (-0.8, 0)]


SHAPES: dict[str, Outline] = {
    "arrow": [(_arrow(), 1)],
    "crescent": [(_circle(), 1), (_circle(0.85, 0.5), 0)],
    "cross": [(_cross(), 1)],
    "disc": [(_circle(), 1)],
    "heart": [(_heart(), 1)],
    "ring": [(_circle(), 1), (_circle(0.55), 0)],
    "spiral": [(_spiral(), 1)],
    "square": [(_corners(4), 1)],
    "star": [(_corners(5, 0.42), 1)],
    "triangle": [(_corners(3), 1)],
}


def _plain(x: Array, y: Array, rng: np.random.Generator) -> Array:
    return np.zeros_like(x)


def _slope(x: Array, y: Array, rng: np.random.Generator) -> Array:
    turn = rng.uniform(0, 2 * math.pi)
    along = x * math.cos(turn) + y * math.sin(turn)
    return _array((along - along.min()) / np.ptp(along))


def _stripes(x: Array, y: Array, rng: np.random.Generator) -> Array:
    turn, period = rng.uniform(0, math.pi), rng.uniform(10, 30)
    phase = (x * math.cos(turn) + y * math.sin(turn)) * 2 * math.pi / period
    return _array(0.5 + 0.5 * np.sin(phase))


def _dots(x: Array, y: Array, rng: np.random.Generator) -> Array:
    period = rng.uniform(12, 28)
    wave = np.sin(x * 2 * math.pi / period) * np.sin(y * 2 * math.pi / period)
    return _array(wave > 0.35)


def _clouds(x: Array, y: Array, rng: np.random.Generator) -> Array:
    coarse = Image.fromarray(rng.uniform(0, 1, (6, 8)).astype(np.float32), "F")
    size = (x.shape[1], x.shape[0])
    return _array(coarse.resize(size, Image.Resampling.BICUBIC)).clip(0, 1)


TEXTURES: tuple[Callable[[Array, Array, np.random.Generator], Array], ...] = (
    _plain,
    _slope,
    _stripes,
    _dots,
    _clouds,
)


def _surface(size: tuple[int, int], color: Array, rng: np.random.Generator) -> Array:
    """Return a random texture that varies between a color and a similar color, ``(H, W, 3)``."""
    y, x = _array(np.mgrid[: size[1], : size[0]])
    blend = TEXTURES[rng.integers(len(TEXTURES))](x, y, rng)[..., None]
    similar = _array(np.clip(color + rng.normal(0, 18, 3), 0, 255))
    return color + (similar - color) * blend


def _mask(outline: Outline, size: tuple[int, int], rng: np.random.Generator) -> Array:
    """Return how much of each pixel a randomly placed shape covers, from 0 to 1, ``(H, W, 1)``."""
    short = min(size)
    radius = rng.uniform(0.28, 0.44) * short
    centre = [rng.uniform(0.9 * radius, side - 0.9 * radius) for side in size]
    turn, squeeze = rng.uniform(-0.7, 0.7), rng.uniform(0.8, 1.0)
    cos, sin = radius * math.cos(turn), radius * math.sin(turn)
    image = Image.new("L", (2 * size[0], 2 * size[1]))
    draw = ImageDraw.Draw(image)
    for points, fill in outline:
        vertices = [
            (
                2 * (centre[0] + x * squeeze * cos - y * sin),
                2 * (centre[1] + x * squeeze * sin + y * cos),
            )
            for x, y in points
        ]
        draw.polygon(vertices, fill=255 * fill)
    return _array(_array(image.reduce(2))[..., None] / 255)


def _clutter(pixels: Array, rng: np.random.Generator) -> Image.Image:
    """Draw random lines over an image."""
    image = Image.fromarray(pixels.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(rng.integers(2, 7)):
        x, y = rng.uniform(0, image.width), rng.uniform(0, image.height)
        dx, dy = rng.normal(0, 30, 2)
        color = tuple(int(value) for value in rng.integers(0, 256, 3))
        draw.line((x, y, x + dx, y + dy), fill=color, width=int(rng.integers(1, 5)))
    return image


def _colors(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return two random colors that differ enough in brightness to make an outline visible."""
    first = rng.uniform(0, 255, 3)
    while True:
        second = rng.uniform(0, 255, 3)
        if abs(first.mean() - second.mean()) > 60:
            return _array(first), _array(second)


def draw(name: str, rng: np.random.Generator) -> Image.Image:
    """Draw one image of a shape, 180 to 320 pixels per side."""
    size = (int(rng.integers(180, 321)), int(rng.integers(180, 321)))
    background, foreground = _colors(rng)
    mask = _mask(SHAPES[name], size, rng)
    pixels = _surface(size, background, rng) * (1 - mask) + _surface(size, foreground, rng) * mask
    pixels += rng.normal(0, rng.uniform(2, 12), (*pixels.shape[:2], 1))
    return _clutter(np.clip(pixels, 0, 255), rng)


def write(root: Path, per_class: int, seed: int) -> None:
    """Write ``per_class`` JPEG files of each shape into one folder per shape."""
    rng = np.random.default_rng(seed)
    for name in SHAPES:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(per_class):
            draw(name, rng).save(folder / f"{number:03d}.jpg", quality=88)
