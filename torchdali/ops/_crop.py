"""Windows of images: crop, and crop with mirroring and normalisation."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.kernels.convert import convert
from torchdali.kernels.normalise import affine, normalise_planar
from torchdali.kernels.window import anchor, cut
from torchdali.operator import operator
from torchdali.schema import IMAGE_LAYOUTS, DType, Layout, Out, PerSample, Takes, shares

__all__ = ["crop", "crop_mirror_normalize", "crop_window"]

Picture = Annotated[Tensor, Takes(IMAGE_LAYOUTS)]

_RENAMED = {"image_type": None, "output_dtype": "dtype"}


def crop_window(
    shape: tuple[int, ...],
    layout: str,
    *,
    crop: PerSample[list[float]] | None = None,
    crop_d: PerSample[float] = 0.0,
    crop_h: PerSample[float] = 0.0,
    crop_w: PerSample[float] = 0.0,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    rounding: str = "round",
) -> tuple[list[int], list[int], list[int]]:
    """Return axes, starts and extents of the window that the arguments of the crop family describe.

    Args:
        shape: Of the image.
        layout: Of the image.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers.
        crop_d: Its depth, where ``crop`` is not given.
        crop_h: Its height.
        crop_w: Its width.
        crop_pos_x: Where it lies: 0 is at the left edge, 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        rounding: How the start is made an integer: ``"round"`` or ``"truncate"``.

    Raises:
        RuntimeError: contradictory sizes.
    """
    sizes = _window_sizes(crop, crop_d, crop_h, crop_w)
    places = {"D": crop_pos_z, "H": crop_pos_y, "W": crop_pos_x}
    axes, starts, extents = [], [], []
    for name, size in sizes.items():
        axis = layout.find(name)
        if axis >= 0 and size > 0:
            axes.append(axis)
            extents.append(int(size))
            starts.append(anchor(places[name], shape[axis], int(size), rounding))
    return axes, starts, extents


def _window_sizes(crop: list[float] | None, d: float, h: float, w: float) -> dict[str, float]:
    if crop is not None:
        if h or w or d:
            raise RuntimeError("crop cannot be combined with crop_h, crop_w and crop_d")
        if not 2 <= len(crop) <= 3:
            raise RuntimeError(f"crop has 2 elements (H, W) or 3 (D, H, W), not {len(crop)}")
        return dict(zip("DHW"[-len(crop) :], crop, strict=True))
    if bool(h) != bool(w):
        raise RuntimeError("crop_h and crop_w must be given together")
    return {"D": d, "H": h, "W": w}


@operator(deprecated=_RENAMED)
def crop(
    data: Picture,
    /,
    *,
    dtype: DType | None = None,
    fill_values: list[float] = [0.0],  # noqa: B006  never changed
    out_of_bounds_policy: str = "error",
    layout: Layout,
    **window: Annotated[Any, shares(crop_window)],
) -> Picture:
    """Cut a window out of images, frames or volumes.

    Args:
        data: Images, frames or volumes in any layout.
        dtype: Of the output, converted by truncation; the input's own when None.
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel.
        out_of_bounds_policy: For windows that reach outside: ``"error"``, ``"pad"`` or ``"trim_to_shape"``.
    """
    axes, starts, extents = crop_window(data.shape, layout, **window)
    result = cut(
        data, axes, starts, extents,
        policy=out_of_bounds_policy, fill=fill_values, channel=layout.find("C"),
    )  # fmt: skip
    return result if dtype is None else convert(result, dtype, rounding="truncate")


def _planar(layouts: tuple[str, ...], arguments: Any) -> str:
    return str(arguments["output_layout"])


@operator(deprecated=_RENAMED, layout=_planar)
def crop_mirror_normalize(
    data: Picture,
    /,
    *,
    dtype: DType = torch.float32,
    fill_values: list[float] = [0.0],  # noqa: B006  never changed
    mean: PerSample[list[float]] = [0.0],  # noqa: B006
    mirror: PerSample[int] = 0,
    out_of_bounds_policy: str = "error",
    output_layout: str = "CHW",
    pad_output: bool = False,
    scale: float = 1.0,
    shift: float = 0.0,
    std: PerSample[list[float]] = [1.0],  # noqa: B006
    layout: Layout,
    out: Out = None,
    **window: Annotated[Any, shares(crop_window)],
) -> Picture:
    """Crop, mirror, normalise and transpose.

    ``out = (in - mean) / std * scale + shift``; what lies outside the image is ``fill_values``, not normalised.

    Args:
        data: Images, frames or volumes in any layout.
        dtype: Of the output: float32, float16, uint8 or int8 (rounded, saturated).
        fill_values: Outside of the image, one value or one a channel.
        mean: One value, or one a channel.
        mirror: Reverse the rows when not 0.
        out_of_bounds_policy: For windows that reach outside: ``"error"``, ``"pad"`` or ``"trim_to_shape"``.
        output_layout: Order of the output's axes: a permutation of the input's.
        pad_output: Add channels of ``fill_values`` up to a power of two.
        scale: Multiplies the normalised value.
        shift: Is added to it.
        std: One value, or one a channel.
    """
    axes, starts, extents = crop_window(data.shape, layout, **window)
    factor, offset = affine(tuple(mean), tuple(std), scale, shift, data.device)
    inside = not any(
        s < 0 or s + e > data.shape[a] for a, s, e in zip(axes, starts, extents, strict=True)
    )
    if inside and layout == "HWC" and output_layout == "CHW" and dtype == torch.float32 and not pad_output:
        for a, s, e in zip(axes, starts, extents, strict=True):
            data = data.narrow(a, s, e)
        if out is not None and out.shape != (data.shape[2], data.shape[0], data.shape[1]):
            out = None
        return normalise_planar(data, factor, offset, bool(mirror), out)
    raise NotImplementedError
