"""Operators that warp images: affine maps, rotations, and the effects `water`, `sphere` and `jitter`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import (
    AllFrames,
    Arguments,
    Column,
    Data,
    DType,
    InputConstraints,
    Layout,
    ListOrMatrix,
    Out,
    PerSample,
    per_sample,
)
from torchdali.kernels.device.warp import warp_batch
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.limits import check_pixels
from torchdali.kernels.warp import affine, effects, sample
from torchdali.kernels.window import round_half_away_number
from torchdali.ops._on_device import Images, batch_of, images_of
from torchdali.rng import Rng
from torchdali.tensors import TensorList
from torchdali.types import DALIInterpType

__all__ = ["jitter", "rotate", "sphere", "warp_affine", "water"]

T = TypeVar("T")

_REAL = (torch.uint8, torch.int16, torch.int32, torch.float32)

ImageLike = Annotated[Tensor, InputConstraints(("HWC", "FHWC", "DHWC", "FDHWC"), _REAL)]
Still = Annotated[Tensor, InputConstraints(("HWC",), (torch.uint8, torch.float32))]
_RENAMED = {"output_dtype": "dtype"}


def is_linear(interp_type: DALIInterpType) -> bool:
    """Return True for linear and False for nearest-neighbor interpolation.

    Raises:
        RuntimeError: the interpolation is neither linear nor nearest-neighbor.
    """
    if interp_type not in (DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR):
        raise RuntimeError(f"only nearest and linear interpolation is supported, got {interp_type.name}")
    return interp_type == DALIInterpType.INTERP_LINEAR


def _check_dtype(source: torch.dtype, dtype: torch.dtype | None) -> None:
    allowed = {source, torch.float32} | ({torch.uint8} if source != torch.float32 else set(_REAL))
    if dtype is not None and dtype not in allowed:
        raise RuntimeError(f"dtype {dtype} isn't supported for {source} images")


def canvas_size(size: Sequence[float], lengths: Sequence[int]) -> list[int]:
    """Round the output size `size`. If `size` is empty, return the input's extents `lengths`.

    Raises:
        RuntimeError: `size` isn't one positive number per spatial axis.
    """
    if not size:
        return list(lengths)
    if len(size) != len(lengths):
        raise RuntimeError(f"size must have one value for each of {len(lengths)} spatial axes, got {len(size)}")
    rounded = [round_half_away_number(s) for s in size]
    if min(rounded) <= 0:
        raise RuntimeError(f"size must be positive, got {size}")
    check_pixels(rounded, "the canvas")
    return rounded


def flatten(value: Any) -> Iterator[float]:
    """Yield all numbers of nested lists, as floats."""
    for v in value:
        if isinstance(v, (list, tuple)):
            yield from flatten(v)
        else:
            yield float(v)


def parse_matrices(value: Any, rows: int, columns: int) -> list[list[list[float]]]:
    """Split nested or flat lists of numbers into matrices of `rows` rows and `columns` columns.

    Raises:
        RuntimeError: the lists are empty, the number of elements isn't a multiple of ``rows * columns``, or the
            innermost lists have the wrong length.
    """
    flat = list(flatten(value))
    size = rows * columns
    width = columns
    while isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        value = value[0]
        width = len(value)
    if width not in (columns, size):
        raise RuntimeError(f"matrix must have {columns} columns ({rows} x {columns}), got {width}")
    if not flat or len(flat) % size:
        raise RuntimeError(f"matrix must have {size} elements ({rows} x {columns}), got {len(flat)}")
    return [
        [flat[start + r * columns : start + (r + 1) * columns] for r in range(rows)]
        for start in range(0, len(flat), size)
    ]


def map_frames(x: Tensor, frames: bool, settings: Sequence[T], function: Callable[[Tensor, T], Tensor]) -> Tensor:
    """Call ``function(x, setting)`` for an image, or for each frame of a video with the frame's setting.

    If there is only one setting, all frames have this setting.

    Raises:
        RuntimeError: the number of settings differs from the number of frames.
    """
    if len(settings) == 1:
        return function(x, settings[0])
    if not frames or len(settings) != len(x):
        raise RuntimeError(
            f"the tensor argument contains {len(settings)} per-frame parameters, but there are "
            f"{len(x) if frames else 'no'} frames in the corresponding sample of input 0"
        )
    return torch.stack([function(f, s) for f, s in zip(x, settings, strict=True)])


def _spatial_extents(x: Tensor, layout: str) -> tuple[int, ...]:
    return x.shape[-4:-1] if "D" in layout else x.shape[-3:-1]


@operator(deprecated=_RENAMED, marks=("levels",))
def warp_affine(
    data: ImageLike,
    mtx: Data | None = None,
    /,
    *,
    dtype: DType | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: bool = True,
    matrix: AllFrames[ListOrMatrix] = [],  # noqa: B006  never changed
    size: PerSample[list[float]] = [],  # noqa: B006
    layout: Layout,
    out: Out = None,
) -> ImageLike:
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``.

    Positions are ``(x, y)`` or ``(x, y, z)``, in pixels. All coordinates of the first pixel's center are 0.5.

    Args:
        data: Images, frames or volumes ``(..., [D,] H, W, C)``: uint8, int16, int32 or float32.
        mtx: The affine matrix, passed as an input instead of ``matrix``: ``(2, 3)``, or ``(3, 4)`` for volumes. An
            input with an additional first axis has one matrix per frame.
        dtype: Output dtype: the input's dtype (the default), uint8 or float32. If the input is float32, int16 and int32
            are also supported.
        fill_value: Value of output pixels whose input position is outside the input. By default these pixels repeat the
            input's edge.
        interp_type: Interpolation: ``INTERP_LINEAR`` (the default) or ``INTERP_NN``. Images that become smaller aren't
            smoothed, so they may show aliasing.
        inverse_map: If True (the default), the matrix maps output positions to input positions. Otherwise it maps input
            positions to output positions.
        matrix: The affine matrix, row by row: 6 numbers, or 12 for volumes. Required if ``mtx`` isn't passed.
        size: Output height and width (for volumes depth, height and width), in pixels. By default the input's size.

    Raises:
        RuntimeError: the matrix is missing, or it has the wrong size.
    """
    _check_dtype(data.dtype, dtype)
    lengths = _spatial_extents(data, layout)
    rows = matrix if mtx is None else mtx.tolist()
    axes = len(lengths)
    maps: list[Any] = list(parse_matrices(rows, axes, axes + 1))
    if not inverse_map:
        maps = list(map(affine.invert, maps))
    target, linear = canvas_size(size, lengths), is_linear(interp_type)
    return map_frames(
        data, layout.startswith("F"), maps,
        lambda x, m: affine.warp_affine(x, m, target, linear=linear, fill=fill_value, dtype=dtype, out=out),
    )  # fmt: skip


@operator(deprecated=_RENAMED, marks=("levels",))
def rotate(
    data: ImageLike,
    /,
    *,
    angle: AllFrames[float],
    axis: AllFrames[ListOrMatrix] | None = None,
    dtype: DType | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    keep_size: bool = False,
    size: PerSample[list[float]] = [],  # noqa: B006  never changed
    layout: Layout,
    out: Out = None,
) -> ImageLike:
    """Rotate images or frames counter-clockwise around their center, or volumes around an axis.

    Args:
        data: Images, frames or volumes ``(..., [D,] H, W, C)``: uint8, int16, int32 or float32.
        angle: Angle, in degrees: one number, or one number per frame.
        axis: Direction ``(x, y, z)`` of the axis around which volumes are rotated. Has no effect on images.
        dtype: Output dtype: the input's dtype (the default), uint8 or float32. If the input is float32, int16 and int32
            are also supported.
        fill_value: Value of pixels outside the rotated image. By default these pixels repeat the image's edge.
        interp_type: Interpolation: ``INTERP_LINEAR`` (the default) or ``INTERP_NN``.
        keep_size: If True, the output has the input's size. By default the output is large enough for the whole rotated
            image.
        size: Output height and width (for volumes depth, height and width), in pixels. By default ``keep_size``
            determines the size.

    Raises:
        RuntimeError: ``axis`` isn't passed for a volume.
    """
    _check_dtype(data.dtype, dtype)
    lengths = _spatial_extents(data, layout)
    rotations = _rotations(angle, axis, len(lengths))
    if size or keep_size:
        target = canvas_size(size, lengths)
    else:
        target = [max(s) for s in zip(*(affine.rotated_size(t, lengths) for t in rotations), strict=True)]
    linear = is_linear(interp_type)
    maps = [affine.rotation_map(t, lengths, target) for t in rotations]
    return map_frames(
        data, layout.startswith("F"), maps,
        lambda x, m: affine.warp_affine(x, m, target, linear=linear, fill=fill_value, dtype=dtype, out=out),
    )  # fmt: skip


def _rotations(angle: Any, axis: Any, dims: int) -> list[list[list[float]]]:
    angles = list(flatten([angle]))
    if dims == 2:
        return [affine.rotation(a) for a in angles]
    if axis is None:
        raise RuntimeError("axis is required to rotate volumes")
    flat = list(flatten(axis))
    if not flat or len(flat) % 3:
        raise RuntimeError(f"axis must have 3 elements (x, y, z), got {len(flat)}")
    axes = [flat[i : i + 3] for i in range(0, len(flat), 3)]
    angles = angles * len(axes) if len(angles) == 1 else angles
    axes = axes * len(angles) if len(axes) == 1 else axes
    return [affine.rotation(a, x) for a, x in zip(angles, axes, strict=True)]


# ---------------------------------------------------------------- whole batches on an accelerator


@chunk(warp_affine, "device", per_sample=("matrix", "size"))
def _warp_on_device(data: TensorList, mtx: TensorList | None = None, *, a: Arguments) -> Any:
    images = images_of(data, a.layout, floats=True)
    if images is None or mtx is not None:
        return NotImplemented
    sample_matrices = [parse_matrices(group, 2, 3) for group in per_sample(a.matrix, len(data))]
    if any(len(group) != 1 for group in sample_matrices):
        return NotImplemented
    maps = [group[0] if a.inverse_map else affine.invert(group[0]) for group in sample_matrices]
    sizes = canvas_sizes(a.size, images)
    return _warp_batch(images, maps, sizes, a.interp_type, a.fill_value, a.dtype)


@chunk(rotate, "device", per_sample=("angle", "size"))
def _rotate_on_device(data: TensorList, a: Arguments) -> Any:
    images = images_of(data, a.layout, floats=True)
    if images is None:
        return NotImplemented
    sample_rotations = [_rotations(group, None, 2) for group in per_sample(a.angle, len(data))]
    if any(len(group) != 1 for group in sample_rotations):
        return NotImplemented
    rotations, lengths = [group[0] for group in sample_rotations], images.sides.T.tolist()
    pairs = zip(rotations, lengths, strict=True)
    fixed = isinstance(a.size, Column) or a.size or a.keep_size
    sizes = canvas_sizes(a.size, images) if fixed else [affine.rotated_size(*pair) for pair in pairs]
    maps = [affine.rotation_map(*group) for group in zip(rotations, lengths, sizes, strict=True)]
    return _warp_batch(images, maps, sizes, a.interp_type, a.fill_value, a.dtype)


def canvas_sizes(size: Any | Column, images: Images) -> list[list[int]]:
    """Return the output size of each image; see `canvas_size`."""
    lengths = images.sides.T.tolist()
    sizes = per_sample(size, len(lengths))
    return [canvas_size(*pair) for pair in zip(sizes, lengths, strict=True)]


def _warp_batch(
    images: Images, maps: Sequence[Any], sizes: list[list[int]], interp_type: DALIInterpType, fill_value: float | None,
    dtype: torch.dtype | None,
) -> Any:  # fmt: skip
    linear, kind = is_linear(interp_type), images.flat.dtype
    _check_dtype(kind, dtype)
    if dtype not in (None, torch.uint8, torch.float32):
        return NotImplemented
    extents = np.array(sizes, np.int64).T
    flat = warp_batch(
        *images[:4], np.array(maps, np.float64), extents, "bilinear" if linear else "nearest",
        "replicate" if fill_value is None else "constant", [sample.convert_fill(fill_value or 0.0, kind)],
        dtype or kind,
    )  # fmt: skip
    return batch_of(flat, extents, images.channels)


# ---------------------------------------------------------------- displacements


@device_cache(maxsize=4)  # images of a dataset often have the same size
def _water_grid(height: int, width: int, device: torch.device, linear: bool, *waves: tuple[float, float]) -> Tensor:
    return _build_grid(effects.water_positions(height, width, device, *waves), height, width, linear)


@device_cache(maxsize=4)
def _sphere_grid(height: int, width: int, device: torch.device, linear: bool) -> Tensor:
    return _build_grid(effects.sphere_positions(height, width, device), height, width, linear)


def _build_grid(positions: Sequence[Tensor], height: int, width: int, linear: bool) -> Tensor:
    if linear:
        return sample.to_grid(positions, (height, width))
    return sample.nearest_index(positions, (height, width), bordered=True)


def _displace(image: Tensor, grid: Tensor, linear: bool, fill: float) -> Tensor:
    if not image.numel():
        return image.clone()
    sample_pixels = sample.sample_linear if linear else sample.sample_nearest
    return sample_pixels(image, grid, fill, image.dtype)


@operator(marks=("bytes",))
def water(
    image: Still,
    /,
    *,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    fill_value: float = 0.0,
    freq_x: float = math.pi / 64,
    freq_y: float = math.pi / 64,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: PerSample[int] = 1,
    phase_x: float = 0.0,
    phase_y: float = 0.0,
) -> Still:
    """Distort images with waves, as if seen through moving water.

    ``out(x, y) = in(x + ampl_x sin(freq_x y + phase_x), y + ampl_y cos(freq_y x + phase_y))``

    Args:
        image: Images ``(H, W, C)``: uint8 or float32.
        ampl_x: Amplitude of the displacement in x, in pixels. By default 10.
        ampl_y: Amplitude of the displacement in y, in pixels. By default 10.
        fill_value: Value of pixels that come from outside the image. By default 0.
        freq_x: Frequency of the displacement in x, in radians per pixel. By default pi / 64.
        freq_y: Frequency of the displacement in y, in radians per pixel. By default pi / 64.
        interp_type: Interpolation: ``INTERP_NN`` (the default) or ``INTERP_LINEAR``.
        mask: Whether to distort the image: 0 returns the image unchanged. By default 1.
        phase_x: Phase of the displacement in x, in radians. By default 0.
        phase_y: Phase of the displacement in y, in radians. By default 0.
    """
    linear = is_linear(interp_type)
    if not mask:
        return image
    waves = (ampl_x, ampl_y), (freq_x, freq_y), (phase_x, phase_y)
    grid = _water_grid(*image.shape[:2], image.device, linear, *waves)
    return _displace(image, grid, linear, fill_value)


@operator(marks=("bytes",))
def sphere(
    image: Still,
    /,
    *,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: PerSample[int] = 1,
) -> Still:
    """Distort images as if they were wrapped around a sphere.

    An output pixel at distance ``d`` from the center gets the value of the input pixel at distance ``d * d`` in the
    same direction. The unit of distances is half the image's longer side.

    Args:
        image: Images ``(H, W, C)``: uint8 or float32.
        fill_value: Value of pixels that come from outside the image. By default 0.
        interp_type: Interpolation: ``INTERP_NN`` (the default) or ``INTERP_LINEAR``.
        mask: Whether to distort the image: 0 returns the image unchanged. By default 1.
    """
    linear = is_linear(interp_type)
    if not mask:
        return image
    return _displace(image, _sphere_grid(*image.shape[:2], image.device, linear), linear, fill_value)


@operator(marks=("bytes",))
def jitter(
    image: Annotated[Tensor, InputConstraints(("HWC",))],
    /,
    *,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: PerSample[int] = 1,
    nDegree: int = 2,
    rng: Rng,
) -> Still:
    """Replace each pixel by a random nearby pixel.

    The offset of the nearby pixel is a random integer from ``-(nDegree // 2)`` to ``nDegree // 2`` in x and in y.

    Args:
        image: Images ``(H, W, C)``.
        fill_value: Value of pixels that come from outside the image. By default 0.
        interp_type: ``INTERP_NN`` (the default) or ``INTERP_LINEAR``. It has no effect, because offsets are integers.
        mask: Whether to change the image: 0 returns the image unchanged. By default 1.
        nDegree: Width of the range of offsets, in pixels. By default 2.
    """
    if not mask:
        return image
    is_linear(interp_type)
    height, width = image.shape[:2]
    x, y = torch.from_numpy(_random_offsets(height, width, nDegree, rng)).to(image.device, torch.float32)
    x += torch.arange(width, device=image.device) + 0.5
    y += torch.arange(height, device=image.device)[:, None] + 0.5
    return sample.sample(image, (x, y), linear=False, fill=fill_value)


def _random_offsets(height: int, width: int, degree: int, rng: Rng) -> npt.NDArray[np.int32]:
    """Draw the random offsets in x and y of all pixels, ``(2, H, W)``."""
    shape = 2, height, width
    return rng.generator().integers(-(degree // 2), degree // 2 + 1, shape, dtype=np.int32)
