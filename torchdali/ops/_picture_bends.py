"""Steps that reproduce torchvision's rotations, affine transforms and distortions; see `_picture_steps`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms import functional as F
from torchvision.transforms.functional import _get_inverse_affine_matrix, _get_perspective_coeffs
from torchvision.transforms.v2.functional import _geometry

from torchdali.codecs import pixel_steps
from torchdali.ops._picture_steps import NativePixelStep, Size, Steps, levels
from torchdali.rng import Rng

__all__ = [
    "FILTERS",
    "AffineParams",
    "GeometricOptions",
    "Perspective",
    "RandomAffine",
    "RandomRotation",
    "affine",
    "apply_affine",
]

FILTERS = ("nearest", "bilinear", "bicubic")
Range = tuple[float, float]
Point = tuple[float, ...]


class GeometricOptions(NamedTuple):
    """Interpolation and fill color of a geometric transform.

    Attributes:
        interpolation: torchvision's interpolation mode.
        fill: Color of pixels outside the image.
        is_v2: True for a transform of `transforms.v2`. The matrices of v1 and v2 transforms differ in the last bits.
    """

    interpolation: InterpolationMode
    fill: Any
    is_v2: bool = False


class AffineParams(NamedTuple):
    """An affine transformation, with torchvision's parameters."""

    angle: float
    translate: tuple[int, int]
    scale: float
    shear: tuple[float, float]


def affine(size: Size, params: AffineParams, center: Point | None, options: GeometricOptions) -> bytes:
    """Encode an affine transformation as a pixel step of the native library.

    Args:
        center: x and y of the fixed point; None for the image's center.
    """
    x, y = (size[1] * 0.5, size[0] * 0.5) if center is None else center
    matrix_of = _geometry._get_inverse_affine_matrix if options.is_v2 else _get_inverse_affine_matrix
    matrix = matrix_of([x, y], params.angle, list(params.translate), params.scale, list(params.shear))
    return pixel_steps.affine(size, matrix, options.interpolation.value, levels(options.fill))


def apply_affine(
    image: Image.Image, params: AffineParams, center: Point | None, options: GeometricOptions
) -> Image.Image:
    function = v2.functional.affine if options.is_v2 else F.affine
    transformed: Image.Image = function(
        image, params.angle, list(params.translate), params.scale, list(params.shear),
        options.interpolation, options.fill, None if center is None else list(center),
    )  # fmt: skip
    return transformed


@dataclass(frozen=True)
class RandomRotation(NativePixelStep):
    """Rotate an image by a random angle."""

    degrees: Range
    expand: bool
    center: Point | None
    options: GeometricOptions

    def draw(self, size: Size, rng: Rng) -> float:
        return rng.uniform(*self.degrees)

    def encode(self, size: Size, drawn: float) -> Steps:
        name, fill = self.options.interpolation.value, levels(self.options.fill)
        return pixel_steps.rotation(size, drawn, self.expand, self.center, name, fill)

    def apply(self, image: Image.Image, drawn: float) -> Image.Image:
        center = None if self.center is None else list(self.center)
        rotated: Image.Image = F.rotate(
            image, drawn, self.options.interpolation, self.expand, center, self.options.fill
        )
        return rotated


@dataclass(frozen=True)
class RandomAffine(NativePixelStep):
    """Rotate, translate, scale and shear an image by random values.

    Attributes:
        degrees: Range of the rotation angle.
        translate: Maximum translation, as fractions of the width and the height; None for no translation.
        scale: Range of the scale factor; None for no scaling.
        shear: Ranges of the shear angles: two values for x, or four values for x and y; None for no shear.
        center: x and y of the fixed point; None for the image's center.
        options: Interpolation and fill color.
    """

    degrees: Range
    translate: Range | None
    scale: Range | None
    shear: tuple[float, ...] | None
    center: Point | None
    options: GeometricOptions

    def draw(self, size: Size, rng: Rng) -> AffineParams:
        angle, translation = rng.uniform(*self.degrees), (0, 0)
        if self.translate is not None:
            limits = self.translate[0] * size[1], self.translate[1] * size[0]
            translation = round(rng.uniform(-limits[0], limits[0])), round(rng.uniform(-limits[1], limits[1]))
        scale = 1.0 if self.scale is None else rng.uniform(*self.scale)
        shear = [rng.uniform(*self.shear[k : k + 2]) for k in range(0, len(self.shear), 2)] if self.shear else []
        x, y = [*shear, 0.0, 0.0][:2]
        return AffineParams(angle, translation, scale, (x, y))

    def encode(self, size: Size, drawn: AffineParams) -> Steps:
        return affine(size, drawn, self.center, self.options), size

    def apply(self, image: Image.Image, drawn: AffineParams) -> Image.Image:
        return apply_affine(image, drawn, self.center, self.options)


def _perspective(corners: Sequence[Sequence[int]], new_corners: Sequence[Sequence[int]]) -> list[float]:
    """Return the coefficients, rounded to float32, that map positions in the result to positions in the image.

    Args:
        corners: x and y of the image's corners.
        new_corners: x and y of the same corners in the result.
    """
    rows = [
        row
        for (x, y), (u, v) in zip(new_corners, corners, strict=True)
        for row in ((x, y, 1, 0, 0, 0, -u * x, -u * y), (0, 0, 0, x, y, 1, -v * x, -v * y))
    ]
    with suppress(np.linalg.LinAlgError):  # raised if corners coincide
        solved = np.linalg.solve(np.array(rows, np.float64), np.array(corners, np.float64).reshape(8))
        if np.abs(solved).min() > 1e-9:  # a smaller coefficient is a rounding error of an exact zero
            rounded: list[float] = solved.astype(np.float32).tolist()
            return rounded
    numbers: list[float] = _get_perspective_coeffs(corners, new_corners)  # five times slower than `np.linalg.solve`
    return numbers


@dataclass(frozen=True)
class Perspective(NativePixelStep):
    """Distort the perspective: move each corner inwards by a random distance.

    Attributes:
        distortion: Maximum distance, as a fraction of half the height and half the width.
        options: Interpolation and fill color.
    """

    distortion: float
    options: GeometricOptions

    def draw(self, size: Size, rng: Rng) -> tuple[list[list[int]], list[list[int]]]:
        """Choose random new positions of the image's corners.

        Return the old and the new positions (x and y), clockwise from the upper left corner.
        """
        bottom, right = size[0] - 1, size[1] - 1
        max_y, max_x = (int(self.distortion * (extent // 2)) for extent in size)
        new_corners = [
            [rng.integer(*x), rng.integer(*y)]
            for x, y in (
                ((0, max_x), (0, max_y)), ((right - max_x, right), (0, max_y)),
                ((right - max_x, right), (bottom - max_y, bottom)), ((0, max_x), (bottom - max_y, bottom)),
            )
        ]  # fmt: skip
        return [[0, 0], [right, 0], [right, bottom], [0, bottom]], new_corners

    def encode(self, size: Size, drawn: Any) -> Steps:
        return pixel_steps.affine(
            size, _perspective(*drawn), self.options.interpolation.value, levels(self.options.fill)
        ), size

    def apply(self, image: Image.Image, drawn: Any) -> Image.Image:
        distorted: Image.Image = F.perspective(image, *drawn, self.options.interpolation, self.options.fill)
        return distorted
