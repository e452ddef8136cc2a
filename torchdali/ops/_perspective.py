"""Operators that warp images by a perspective or by maps of positions: `warp_perspective` and `remap`."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import (
    AllFrames,
    Arguments,
    Data,
    InputConstraints,
    Layout,
    ListOrMatrix,
    Out,
    PerSample,
    one_of,
    per_sample,
)
from torchdali.kernels.convert import convert_number
from torchdali.kernels.device.warp import warp_batch
from torchdali.kernels.folding import fold
from torchdali.kernels.limits import check_not_empty
from torchdali.kernels.warp import perspective as kernel
from torchdali.kernels.warp.perspective import BORDERS, sample_at
from torchdali.ops._on_device import batch_of, images_of
from torchdali.ops._warp import canvas_size, canvas_sizes, map_frames, parse_matrices
from torchdali.tensors import TensorList
from torchdali.types import DALIInterpType

__all__ = ["remap", "warp_perspective"]

_ORIGINS = ("corner", "center")

_MODES = {
    DALIInterpType.INTERP_NN: "nearest",
    DALIInterpType.INTERP_LINEAR: "bilinear",
    DALIInterpType.INTERP_CUBIC: "bicubic",
}
_REAL = (torch.uint8, torch.int16, torch.uint16, torch.float32)
Matrix = list[list[float]]
ImageLike = Annotated[Tensor, InputConstraints(("HW", "HWC", "FHWC", "CHW", "FCHW"), _REAL, channel_last=True)]


def _interpolation_mode(interp: DALIInterpType) -> str:
    if interp not in _MODES:
        raise RuntimeError(f"interp_type must be INTERP_NN, INTERP_LINEAR or INTERP_CUBIC, got {interp.name}")
    return _MODES[interp]


def _check_origin(origin: str) -> None:
    if origin not in _ORIGINS:
        raise ValueError(f"pixel_origin must be 'corner' or 'center', got {origin!r}")


@operator(name="experimental.warp_perspective")
def warp_perspective(
    image: ImageLike,
    matrix_input: Data | None = None,
    /,
    *,
    border_mode: Annotated[str, one_of(BORDERS)] = "constant",
    fill_value: list[float] = [],  # noqa: B006  never changed
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: bool = True,
    matrix: AllFrames[ListOrMatrix] = [],  # noqa: B006
    pixel_origin: Annotated[str, one_of(_ORIGINS)] = "corner",
    size: PerSample[list[float]] = [],  # noqa: B006
    layout: Layout,
    out: Out = None,
) -> ImageLike:
    """Warp images by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = M (x, y, 1)``.

    Only for int16 images with ``INTERP_LINEAR``, input positions are rounded to 1/32 pixel, as in DALI.

    Args:
        image: Images ``(..., H, W, C)`` or ``(H, W)``: uint8, int16, uint16 or float32.
        matrix_input: The matrix ``(3, 3)``, passed as an input instead of ``matrix``. An input with an additional first
            axis has one matrix per frame.
        border_mode: Value of pixels outside the image. ``"constant"`` (the default): ``fill_value``; ``"replicate"``:
            the edge; ``"wrap"``: the image repeated; ``"reflect"``: the image mirrored, and the edge repeated;
            ``"reflect_101"``: the image mirrored without repeating the edge.
        fill_value: Value of pixels outside the image for ``"constant"``: one value, or one value per channel. By
            default 0.
        interp_type: Interpolation: ``INTERP_LINEAR`` (the default), ``INTERP_NN`` or ``INTERP_CUBIC``.
        inverse_map: If True (the default), the matrix maps output positions to input positions. Otherwise it maps input
            positions to output positions.
        matrix: The matrix, row by row: 9 numbers. Required if ``matrix_input`` isn't passed.
        pixel_origin: Point of a pixel that has integer coordinates: ``"corner"`` (the default) is the pixel's upper
            left corner, ``"center"`` is the pixel's center.
        size: Output height and width, in pixels. By default the input's size.

    Raises:
        RuntimeError: the matrix doesn't have 9 numbers, both ``matrix`` and ``matrix_input`` are passed, or the number
            of fill values is wrong.
    """
    if image.dim() == 2:
        image = image[..., None]
    check_not_empty(image.shape[-3:-1], image.shape, "warp_perspective")
    fill = _check_arguments(pixel_origin, border_mode, fill_value, image.shape[-1])
    if matrix_input is not None and len(matrix):
        raise RuntimeError("pass the matrix either as an input or as the argument `matrix`, not both")
    frame_matrices = parse_matrices(matrix if matrix_input is None else matrix_input.tolist(), 3, 3)
    maps = [_center_matrix(m, inverse_map, pixel_origin) for m in frame_matrices]
    target, mode = canvas_size(size, image.shape[-3:-1]), _interpolation_mode(interp_type)
    result = map_frames(
        image, layout.startswith("F"), maps,
        lambda x, m: kernel.warp_perspective(x, m, target, mode=mode, border=border_mode, fill=fill, out=out),
    )  # fmt: skip
    return result[..., 0] if layout == "HW" else result


def _check_arguments(origin: str, border: str, fill: list[float], channels: int) -> list[float]:
    """Check arguments of `warp_perspective`, and return the fill values."""
    _check_origin(origin)
    if border not in BORDERS:
        raise ValueError(f"border_mode must be one of {', '.join(BORDERS)}, got {border!r}")
    if len(fill) not in (0, 1, channels):
        raise RuntimeError(f"fill_value must have one value or {channels}, got {len(fill)}")
    return fill or [0.0]


@chunk(warp_perspective, "device", per_sample=("matrix", "size"))
def _warp_on_device(image: TensorList, matrix_input: TensorList | None = None, *, a: Arguments) -> Any:
    images = images_of(image, a.layout, floats=True)
    if images is None or matrix_input is not None:
        return NotImplemented
    fill = _check_arguments(a.pixel_origin, a.border_mode, a.fill_value, images.channels)
    sample_matrices = [parse_matrices(group, 3, 3) for group in per_sample(a.matrix, len(image))]
    if any(len(group) != 1 for group in sample_matrices):
        return NotImplemented
    maps = np.array([_center_matrix(group[0], a.inverse_map, a.pixel_origin) for group in sample_matrices])
    extents = np.array(canvas_sizes(a.size, images), np.int64).T
    kind = images.flat.dtype
    colors = [convert_number(float(value), kind) for value in fill]
    flat = warp_batch(*images[:4], maps, extents, _interpolation_mode(a.interp_type), a.border_mode, colors, kind)
    return batch_of(flat, extents, images.channels)


@fold
def _center_matrix(matrix: Matrix, inverse_map: bool, origin: str) -> Matrix:
    """Return the matrix that maps output positions to input positions, with pixel centers at integer coordinates."""
    result = matrix
    if not inverse_map:
        result = torch.linalg.inv(torch.tensor(matrix, dtype=torch.float64)).tolist()
    if origin == "center":
        return result
    u, v, w = ([a, b, (a + b) / 2 + c] for a, b, c in result)
    return [[a - g / 2 for a, g in zip(row, w, strict=True)] for row in (u, v)] + [w]


Mapped = Annotated[Tensor, InputConstraints(("HWC", "FHWC"))]


@operator(name="experimental.remap")
def remap(
    image: Mapped,
    mapx: Data,
    mapy: Data,
    /,
    *,
    interp: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    pixel_origin: Annotated[str, one_of(_ORIGINS)] = "corner",
) -> Mapped:
    """Sample images at the positions in two maps: ``out(x, y) = in(mapx(x, y), mapy(x, y))``.

    Pixels outside of the image are 0.

    Args:
        image: Images ``(..., H, W, C)``.
        mapx: Horizontal positions in pixels, ``(h, w)`` or ``(h, w, 1)``. An input with an additional first axis has
            one map per frame.
        mapy: Vertical positions in pixels, with the shape of ``mapx``.
        interp: Interpolation: ``INTERP_LINEAR`` (the default), ``INTERP_NN`` or ``INTERP_CUBIC``.
        pixel_origin: Point of a pixel that has integer coordinates: ``"corner"`` (the default) is the pixel's upper
            left corner, ``"center"`` is the pixel's center.

    Raises:
        RuntimeError: the maps have different shapes, or the numbers of maps and frames differ.
    """
    _check_origin(pixel_origin)
    check_not_empty(image.shape[-3:-1], image.shape, "remap")
    if mapx.shape != mapy.shape:
        raise RuntimeError(f"mapx and mapy must have the same shape, got {(*mapx.shape,)} and {(*mapy.shape,)}")
    x, y = (_as_plane(m, image) - (0.5 if pixel_origin == "corner" else 0.0) for m in (mapx, mapy))
    mode = _interpolation_mode(interp)
    if x.dim() == 2:
        return sample_at(image, (x, y), mode=mode)
    return torch.stack([sample_at(f, (u, v), mode=mode) for f, u, v in zip(image, x, y, strict=True)])


def _as_plane(plane: Tensor, image: Tensor) -> Tensor:
    """Convert a map to float32 ``(h, w)``, or ``(frames, h, w)``; NaN becomes a position outside of the image."""
    per_frame = image.dim() == 4 and plane.dim() > 2 and len(plane) == len(image)
    if plane.dim() == 3 + per_frame and plane.shape[-1] == 1:
        plane = plane.squeeze(-1)
    if plane.dim() != 2 + per_frame:
        raise RuntimeError(
            f"maps must be 2-D, or have one 2-D map per frame, got shape {(*plane.shape,)} for an "
            f"image of shape {(*image.shape,)}"
        )
    return plane.to(torch.float32).nan_to_num(nan=-(2.0**30))
