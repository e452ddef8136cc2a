"""PIL images and tensors as batches, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageMode
import torch

from torchdali.kernels.rearrange import dense
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
    """Return the layout of PIL images, ``"HWC"``, or of tensors, ``"CHW"``.

    Raises:
        TypeError: it is neither. ValueError: an image of another mode than L, RGB and RGBA.
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
                f"a tensor is an image (C, H, W) or several (..., C, H, W); this one is {tuple(data.shape)}"
            )
        return "CHW"
    raise TypeError(f"the input is a PIL image or a torch.Tensor, not {type(data)}")


def pixels_of(image: PIL.Image.Image) -> torch.Tensor:
    """Return the pixels of an image: ``(H, W, C)``."""
    array = np.array(image)
    return torch.from_numpy(array[..., None] if array.ndim == 2 else array)


def batch_of(data: Any) -> torch.Tensor:
    """Return images as one tensor ``(N, H, W, C)`` or ``(N, C, H, W)``, by `layout_of`."""
    if isinstance(data, PIL.Image.Image):
        return pixels_of(data)[None]
    batch: torch.Tensor = data.reshape(-1, *data.shape[-3:])
    return batch


def stack(results: TensorList, layout: str, leading: tuple[int, ...]) -> torch.Tensor:
    """Return results as one tensor ``(*leading, C, H, W)``.

    Raises:
        RuntimeError: their shapes differ.
    """
    shapes = set(results.shape())
    if len(shapes) > 1:
        raise RuntimeError(
            f"the images of a batch came out in different shapes, {' and '.join(map(str, sorted(shapes)[:2]))}: "
            "a transform that changes the size must do so for all of them"
        )
    images = results.stack()
    if layout == "HWC":
        images = images.movedim(-1, 1)
    return dense(images).reshape(*leading, *images.shape[1:])


def tensor_of(image: Any) -> torch.Tensor:
    """Return a PIL image as ``(C, H, W)``, values and type unchanged."""
    pixels = np.array(image)
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    tensor = torch.from_numpy(pixels[..., None] if pixels.ndim == 2 else pixels)
    return dense(tensor.permute(2, 0, 1))


def as_image(tensor: torch.Tensor) -> PIL.Image.Image:
    """Return one image of ``(C, H, W)`` or ``(1, C, H, W)`` as a PIL image."""
    if tensor.ndim > 3 and tensor.shape[:-3].numel() == 1:
        tensor = tensor.reshape(tensor.shape[-3:])
    return image_of(tensor.cpu())


def image_of(tensor: torch.Tensor, mode: str | None = None) -> PIL.Image.Image:
    """Return a tensor ``(C, H, W)`` as a PIL image; floats are scaled from 0 .. 1 and cut off.

    Raises:
        TypeError: an element type without an image mode. ValueError: a shape or a number of channels without one.
    """
    if tensor.ndim != 3:
        raise ValueError(f"an image is a tensor (C, H, W); this one is {tuple(tensor.shape)}")
    if tensor.is_floating_point() and tensor.dtype != torch.float64:
        tensor = (tensor * 255).clamp(0, 255).to(torch.uint8)
    if tensor.dtype != torch.uint8:
        raise TypeError(f"no PIL image is made of {tensor.dtype}: convert it to uint8 or float32")
    channels = tensor.shape[0]
    kind = mode or MODES.get(channels)
    if kind is None:
        raise ValueError(f"an image of {channels} channels has no mode by itself: give mode")
    array = tensor.permute(1, 2, 0).numpy()
    if channels == 1:
        array = array[..., 0]
    descriptor = PIL.ImageMode.getmode(kind) if kind in _KNOWN else None
    if descriptor is None or len(descriptor.bands) != channels:
        raise ValueError(f"mode {kind!r} does not fit an image of {channels} channels")
    height, width = array.shape[:2]
    return PIL.Image.frombytes(kind, (width, height), np.ascontiguousarray(array).tobytes())


_KNOWN = frozenset(("L", "P", "LA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"))
