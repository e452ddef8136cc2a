"""Convert between the color spaces RGB, BGR, YCbCr and gray."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from torchdali.kernels.color.affine import Matrix
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.folding import fold
from torchdali.kernels.memory import prepare_out
from torchdali.kernels.opencv import opencv_for

__all__ = ["gray", "space_matrix", "swap_red_and_blue"]


def swap_red_and_blue(x: Tensor, out: Tensor | None = None) -> Tensor:
    """Exchange the first and last channel of uint8 pixels ``(..., 3)``. The result is written to `out` if it fits."""
    result = prepare_out(out, x.shape, x.dtype, x.device)
    if (cv2 := opencv_for(x)) is None:
        return torch.index_select(x, -1, _reversed_channels(x.device), out=result)
    row = x.contiguous().view(1, -1, 3).numpy()
    cv2.cvtColor(row, cv2.COLOR_RGB2BGR, result.view(1, -1, 3).numpy())
    return result


@device_cache(maxsize=16)
@fold
def _reversed_channels(device: torch.device) -> Tensor:
    return torch.tensor([2, 1, 0], device=device)


_GRAY = (0.299, 0.587, 0.114)
_GRAY_STEPS = (9798 / 32768, 19235 / 32768, 3735 / 32768)  # the rounded weights that OpenCV and DALI use


def gray(x: Tensor, blue_first: bool, out: Tensor | None = None) -> Tensor:
    """Return the luma ``(..., 1)`` of uint8 pixels ``(..., 3)``, equal to DALI's.

    Args:
        blue_first: True for BGR, False for RGB.
        out: Tensor to which the result is written if it fits.
    """
    result = prepare_out(out, (*x.shape[:-1], 1), x.dtype, x.device)
    if (cv2 := opencv_for(x)) is not None:
        code = cv2.COLOR_BGR2GRAY if blue_first else cv2.COLOR_RGB2GRAY
        cv2.cvtColor(x.contiguous().view(1, -1, 3).numpy(), code, result.view(1, -1).numpy())
        return result
    # float32 represents the products exactly, because they are multiples of 2**-15 below 256.
    luma = torch.mv(x.reshape(-1, 3).to(torch.float32), _gray_steps(blue_first, x.device))
    return result.copy_(luma.add_(0.5).to(torch.int16).view(result.shape))


@device_cache(maxsize=16)
@fold
def _gray_steps(blue_first: bool, device: torch.device) -> Tensor:
    return torch.tensor(_GRAY_STEPS[:: -1 if blue_first else 1], device=device)


# BT.601 in studio range: luma 16..235, chroma 16..240.
_YCBCR: Matrix = (
    (65.481 / 255, 128.553 / 255, 24.966 / 255),
    (-37.797 / 255, -74.203 / 255, 112.0 / 255),
    (112.0 / 255, -93.786 / 255, -18.214 / 255),
)
_YCBCR_OFFSET = (16.0, 128.0, 128.0)


@functools.cache
@fold
def space_matrix(source: str, target: str) -> tuple[Matrix, tuple[float, ...]]:
    """Return the matrix and the offset that convert a color space to another.

    The color spaces are RGB, BGR, YCbCr (BT.601, studio range) and GRAY.

    Raises:
        ValueError: a color space is unknown.
    """
    if source == target:
        size = 1 if source == "GRAY" else 3
        return tuple(tuple(float(i == j) for j in range(size)) for i in range(size)), (0.0,) * size
    first, shift = _to_rgb(source)
    second, offset = _from_rgb(target)
    total = second @ first
    total_offset = second @ shift + offset
    return tuple(map(tuple, total.tolist())), tuple(total_offset.tolist())


def _from_rgb(target: str) -> tuple[Tensor, Tensor]:
    rows: dict[str, tuple[Matrix, tuple[float, ...]]] = {
        "RGB": (((1, 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0)),
        "BGR": (((0, 0, 1), (0, 1, 0), (1, 0, 0)), (0, 0, 0)),
        "YCbCr": (_YCBCR, _YCBCR_OFFSET),
        "GRAY": ((_GRAY,), (0,)),
    }
    if target not in rows:
        raise ValueError(f"the color space must be one of {', '.join(rows)}, got {target!r}")
    matrix, offset = rows[target]
    return torch.tensor(matrix, dtype=torch.float64), torch.tensor(offset, dtype=torch.float64)


def _to_rgb(source: str) -> tuple[Tensor, Tensor]:
    if source == "GRAY":
        return torch.ones(3, 1, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    matrix, offset = _from_rgb(source)
    inverse = torch.linalg.inv(matrix)
    return inverse, -(inverse @ offset)
