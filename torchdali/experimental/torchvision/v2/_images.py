"""Convert PIL images and tensors to batches, and results back to images and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageMode
import torch

from torchdali.kernels.rearrange import make_contiguous
from torchdali.tensors import TensorList

__all__ = [
    "MODES",
    "as_image",
    "batch_of",
    "image_of",
    "layout_of",
    "pixels_of",
    "stack",
    "tensor_of",
]

MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def layout_of(data: Any) -> str:
    """Return the layout: ``"HWC"`` for a PIL image, ``"CHW"`` for a tensor.

    Raises:
        TypeError: the data is neither a PIL image nor a tensor, or the tensor has fewer than three axes.
        ValueError: the image's mode isn't L, RGB or RGBA.
    """
    if isinstance(data, PIL.Image.Image):
        if data.mode not in MODES.values():
            raise ValueError(
                f"images of mode {data.mode} are not supported; convert them to one of {', '.join(MODES.values())}"
            )
        return "HWC"
    if isinstance(data, torch.Tensor):
        if data.ndim < 3:
            raise TypeError(
                f"a tensor must be an image (C, H, W) or several images (..., C, H, W), got the shape "
                f"{tuple(data.shape)}"
            )
        return "CHW"
    raise TypeError(f"the input must be a PIL image or a torch.Tensor, got {type(data)}")


def pixels_of(image: PIL.Image.Image) -> torch.Tensor:
    """Return the pixels of a PIL image, ``(H, W, C)``."""
    array = np.array(image)
    return torch.from_numpy(array[..., None] if array.ndim == 2 else array)


def batch_of(data: Any) -> torch.Tensor:
    """Convert a PIL image to a batch ``(1, H, W, C)``, or a tensor of images to a batch ``(N, C, H, W)``."""
    if isinstance(data, PIL.Image.Image):
        return pixels_of(data)[None]
    batch: torch.Tensor = data.reshape(-1, *data.shape[-3:])
    return batch


def stack(results: TensorList, layout: str, leading: tuple[int, ...]) -> torch.Tensor:
    """Stack the results into one tensor ``(*leading, C, H, W)``.

    Raises:
        RuntimeError: the shapes of the results differ.
    """
    shapes = set(results.shape())
    if len(shapes) > 1:
        raise RuntimeError(
            f"the transforms must return images of one shape for a batch, got "
            f"{' and '.join(map(str, sorted(shapes)[:2]))}; a transform that changes the size must do so for all of "
            f"them"
        )
    images = results.stack()
    if layout == "HWC":
        images = images.movedim(-1, 1)
    return make_contiguous(images).reshape(*leading, *images.shape[1:])


def tensor_of(image: Any) -> torch.Tensor:
    """Convert a PIL image or an array to a tensor ``(C, H, W)``; values and dtype are unchanged, except for bool.

    bool values become 0 and 255 as uint8.
    """
    pixels = np.array(image)
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    tensor = torch.from_numpy(pixels[..., None] if pixels.ndim == 2 else pixels)
    return make_contiguous(tensor.permute(2, 0, 1))


def as_image(tensor: torch.Tensor) -> PIL.Image.Image:
    """Convert a tensor ``(C, H, W)`` or ``(1, C, H, W)`` to a PIL image."""
    if tensor.ndim > 3 and tensor.shape[:-3].numel() == 1:
        tensor = tensor.reshape(tensor.shape[-3:])
    return image_of(tensor.cpu())


def image_of(tensor: torch.Tensor, mode: str | None = None) -> PIL.Image.Image:
    """Convert a tensor ``(C, H, W)`` to a PIL image; floats are multiplied by 255, and clipped to the range 0 to 255.

    Raises:
        TypeError: the dtype is neither uint8 nor a float of up to 32 bits.
        ValueError: the tensor isn't 3-D, or its number of channels doesn't fit the mode.
    """
    if tensor.ndim != 3:
        raise ValueError(f"an image must be a tensor (C, H, W), got the shape {tuple(tensor.shape)}")
    if tensor.is_floating_point() and tensor.dtype != torch.float64:
        tensor = (tensor * 255).clamp(0, 255).to(torch.uint8)
    if tensor.dtype != torch.uint8:
        raise TypeError(f"a tensor of {tensor.dtype} cannot become a PIL image; convert it to uint8 or float32")
    channels = tensor.shape[0]
    kind = mode or MODES.get(channels)
    if kind is None:
        raise ValueError(f"an image of {channels} channels has no default mode; pass mode")
    array = tensor.permute(1, 2, 0).numpy()
    if channels == 1:
        array = array[..., 0]
    descriptor = PIL.ImageMode.getmode(kind) if kind in _PIL_MODES else None
    if descriptor is None or len(descriptor.bands) != channels:
        raise ValueError(f"mode {kind!r} does not fit an image of {channels} channels")
    height, width = array.shape[:2]
    return PIL.Image.frombytes(kind, (width, height), np.ascontiguousarray(array).tobytes())


_PIL_MODES = frozenset(("L", "P", "LA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"))
