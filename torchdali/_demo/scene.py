"""Compute the image of the reference's examples: a balloon over a lake."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["BOXES", "mask", "scene"]

Array = npt.NDArray[Any]

HEIGHT, WIDTH = 160, 240
_BALLOON = (166.0, 52.0, 27.0)  # x and y of the center, and radius, in pixels
BOXES = ((0.58, 0.155, 0.805, 0.64), (0.0, 0.25, 0.45, 0.65))
"""Left, top, right and bottom of the balloon and of a hill, as fractions of the image's width and height."""
_HORIZON = 104
_FINE = 3  # the image is drawn larger by this factor, and then averaged, to avoid jagged edges


@functools.cache
def scene() -> Array:
    """Return the image, ``(HEIGHT, WIDTH, 3)`` uint8 RGB."""
    rng = np.random.default_rng(11)
    y, x = np.mgrid[0 : HEIGHT * _FINE, 0 : WIDTH * _FINE] / _FINE
    image = _sky(y, _clouds(rng, *y.shape))
    for level, height, octaves, nearness in ((76, 30, 7, 0.2), (90, 15, 8, 0.6), (99, 7, 8, 1.0)):
        _hills(image, rng, y, level, height, octaves, nearness)
    _balloon(image, y, x)
    _lake(image, rng)
    image = image.reshape(HEIGHT, _FINE, WIDTH, _FINE, 3).mean((1, 3))
    grain = rng.normal(0, 2.0, image.shape)
    return np.asarray((image + grain).clip(0, 255).round().astype(np.uint8))


def mask() -> Array:
    """Return for each pixel the number of the box that contains the pixel, or 0 for no box; ``(HEIGHT, WIDTH)``."""
    pixels = np.zeros((HEIGHT, WIDTH), np.int32)
    for number, (left, top, right, bottom) in enumerate(BOXES, 1):
        rows, columns = (
            slice(int(top * HEIGHT), int(bottom * HEIGHT)),
            slice(int(left * WIDTH), int(right * WIDTH)),
        )
        pixels[rows, columns] = number
    return pixels


def _noise(rng: np.random.Generator, height: int, width: int, octaves: int, falloff: float = 2.0) -> Array:
    """Return smooth noise with zero mean: bumps of all sizes, where smaller bumps are lower."""
    total = np.zeros((height, width))
    for octave in range(octaves):
        rows, columns = min(2**octave + 1, height), min(2 ** (octave + 1) + 1, width)
        grid = rng.normal(size=(rows, columns))
        positions = np.linspace(0, columns - 1, width)
        wide = np.stack([np.interp(positions, np.arange(columns), row) for row in grid])
        positions = np.linspace(0, rows - 1, height)
        total += np.stack([np.interp(positions, np.arange(rows), c) for c in wide.T], 1) / falloff**octave
    return total


def _clouds(rng: np.random.Generator, height: int, width: int) -> Array:
    return (_noise(rng, height, width, 8, 1.8) * 0.7 - 0.25).clip(0, 1)[..., None]


def _sky(y: Array, clouds: Array) -> Array:
    height = (y / _HORIZON).clip(0, 1)[..., None]
    blue, haze = np.array([70.0, 130, 205]), np.array([250.0, 214, 170])
    clear = blue + (haze - blue) * height**1.6
    return np.asarray(clear + (np.array([255.0, 246, 238]) - clear) * clouds * 0.8)


def _hills(
    image: Array,
    rng: np.random.Generator,
    y: Array,
    level: int,
    height: int,
    octaves: int,
    nearness: float,
) -> None:
    """Draw a range of hills. The hills are greener for larger values of ``nearness``, from 0 to 1."""
    ridge = level - height * _noise(rng, 2, y.shape[1], octaves)[0].clip(-1.2, 2.0)
    trees = _noise(rng, y.shape[0], y.shape[1], 9, 1.25)[..., None]
    color = np.array([122.0, 132, 160]) * (1 - nearness) + np.array([46.0, 92, 48]) * nearness
    inside = (y >= ridge) & (y < _HORIZON)
    image[inside] = (color * (1 + 0.12 * trees))[inside]


def _balloon(image: Array, y: Array, x: Array) -> None:
    """Draw a striped balloon, lit from the left, and its basket."""
    left, top, radius = _BALLOON
    u, v = (x - left) / radius, (y - top) / (radius * np.where(y > top, 1.25, 1.0))
    u = u / np.where(y > top, 1 - 0.25 * v.clip(0, 1), 1.0)
    inside = u**2 + v**2 < 1
    stripe = np.floor(np.arcsin((u / np.sqrt((1 - v**2).clip(1e-3))).clip(-1, 1)) * 7 / np.pi + 0.5) % 3
    colors = np.array([[214.0, 42, 38], [246, 196, 52], [244, 240, 228]])[stripe.astype(int)]
    light = (0.72 - 0.38 * u + 0.25 * np.sqrt((1 - u**2 - v**2).clip(0)))[..., None]
    image[inside] = (colors * light)[inside]
    basket = (abs(x - left) < 4) & (abs(y - top - 46) < 3.5)
    ropes = (abs(abs(x - left) - 3.5) < 0.6) & (y > top + 32) & (y < top + 46)
    image[basket | ropes] = np.array([92.0, 60, 36])


def _lake(image: Array, rng: np.random.Generator) -> None:
    """Draw a lake whose waves reflect the scene above the horizon."""
    first, width = _HORIZON * _FINE, WIDTH * _FINE
    rows = np.arange(first, HEIGHT * _FINE)
    waves = _FINE * _noise(rng, len(rows), width // 8, 8, 1.3).repeat(8, 1)
    source = (2 * first - rows[:, None] - 1 + 3 * waves).round().astype(int).clip(0, first - 1)
    columns = (np.arange(width) + waves.round().astype(int)).clip(0, width - 1)
    deep = np.array([24.0, 58, 84])
    share = np.linspace(0.25, 0.6, len(rows))[:, None, None]
    image[first:] = image[source, columns] * (1 - share) + deep * share + 2 * waves[..., None]
