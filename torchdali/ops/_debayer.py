"""The operator `debayer`, which computes RGB images from the raw images of a camera's sensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import InputConstraints, Layout, Out, PerFrame, one_of
from torchdali.kernels.color import debayer as kernels

__all__ = ["debayer"]

_ALGORITHMS = {f"{name}_ocv": name for name in kernels.ALGORITHMS}
_DEVICE_DEFAULT = "default_npp"

Mosaic = Annotated[Tensor, InputConstraints(("HW", "HWC", "FHW", "FHWC"), (torch.uint8, torch.uint16))]


def _with_channels(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    return layouts[0] and layouts[0].removesuffix("C") + "C"


@operator(layout=_with_channels)
def debayer(
    image: Mosaic,
    /,
    *,
    algorithm: Annotated[str, one_of(_ALGORITHMS, [_DEVICE_DEFAULT])] | None = None,
    blue_position: PerFrame[list[int]],
    layout: Layout,
    out: Out = None,
) -> Mosaic:
    """Compute the colors of a Bayer mosaic: an image whose pixels each have only a red, a green or a blue value.

    As in DALI, the order of the output's channels depends on the algorithm. The algorithms with the suffix ``_ocv``
    (OpenCV's algorithms) write the color at ``blue_position`` to the *first* channel, and the color at the opposite
    corner of the 2x2 cell to the third channel. ``default_npp`` writes the color at ``blue_position`` to the third
    channel.

    Args:
        image: ``(H, W)``, ``(H, W, 1)`` or sequences of these images, uint8 or uint16. Height and width must be even.
        algorithm: ``bilinear_ocv`` uses the mean of neighboring pixels of the same color, and is the default on the
            CPU. ``edgeaware_ocv`` interpolates green in the direction of the smaller gradient. ``vng_ocv`` uses a
            variable number of gradients (Chang, Cheung and Pang 1999), for uint8 only. ``gray_ocv`` returns one
            channel, the luma of the result of ``bilinear_ocv``. ``default_npp`` uses the mean of neighboring pixels of
            the same color; it is available only on accelerators, and is the default there.
        blue_position: Row and column, 0 or 1, of the blue pixel in each 2x2 cell: ``(0, 0)`` for BGGR, ``(0, 1)`` for
            GBRG, ``(1, 0)`` for GRBG, ``(1, 1)`` for RGGB. If you pass one number, it is both row and column.

    Returns:
        Images ``(..., H, W, 3)``, or ``(..., H, W, 1)`` for ``gray_ocv``, in the input's dtype.

    Raises:
        RuntimeError: the dtype isn't supported, height or width is odd or 0, the image has several channels, the
            position is outside of the cell, or the algorithm is unknown or not available.
    """
    mosaic = _drop_channel_axis(image, layout)
    first = _parse_position(blue_position)
    chosen = (algorithm or "").lower() or _default_algorithm(image)
    if chosen == _DEVICE_DEFAULT:
        first = 1 - first[0], 1 - first[1]  # so that the color at `blue_position` is written to the third channel
    name = _kernel_name(chosen, image)
    shape = (*mosaic.shape, 1 if name == "gray" else 3)
    if out is None or out.shape != shape or out.dtype != image.dtype:
        out = torch.empty(shape, dtype=image.dtype, device=image.device)
    kernels.debayer(mosaic, first, name, out)
    return out


def _drop_channel_axis(image: Tensor, layout: str) -> Tensor:
    if layout.endswith("C"):
        if image.shape[-1] != 1:
            raise RuntimeError(
                f"debayer: images must have one channel, got {image.shape[-1]}. Sequences must have the layout FHW"
            )
        image = image.squeeze(-1)
    height, width = image.shape[-2:]
    if height % 2 or width % 2 or not height * width:
        raise RuntimeError(f"debayer: height and width must be even and positive, got {height} x {width}")
    return image


def _parse_position(value: Any) -> tuple[int, int]:
    position = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(position) == 1:
        position *= 2
    if len(position) != 2 or any(index not in (0, 1) for index in position):
        raise RuntimeError(f"debayer: blue_position must be a row and a column in a 2x2 cell, got {value}")
    return position[0], position[1]


def _default_algorithm(image: Tensor) -> str:
    return "bilinear_ocv" if image.device.type == "cpu" else _DEVICE_DEFAULT


def _kernel_name(algorithm: str, image: Tensor) -> str:
    """Return the name of an algorithm's kernel.

    Raises:
        RuntimeError: the algorithm is unknown, or doesn't support the image's device or dtype.
    """
    if algorithm == _DEVICE_DEFAULT:
        if image.device.type == "cpu":
            raise RuntimeError(f"debayer: {algorithm} runs only on accelerators")
        return "bilinear"
    name = _ALGORITHMS.get(algorithm)
    if name is None:
        supported = ", ".join((*_ALGORITHMS, _DEVICE_DEFAULT))
        raise RuntimeError(f"debayer: algorithm must be one of {supported}, got {algorithm!r}")
    if name == "vng" and image.dtype != torch.uint8:
        raise RuntimeError(f"debayer: {algorithm} needs uint8 images, got {image.dtype}")
    return name
