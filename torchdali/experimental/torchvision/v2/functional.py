"""The transforms as functions of PIL images (L, RGB, RGBA) and tensors ``(..., C, H, W)``.

The functions run eagerly. For a PIL image, a function returns a PIL image. For a tensor, a function returns a tensor
with the same leading axes. With ``device="gpu"``, a function computes on the accelerator, and returns a tensor on the
accelerator.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
import torch

from torchdali import fn
from torchdali.experimental.torchvision.v2._checks import InterpolationMode
from torchdali.experimental.torchvision.v2._color import GaussianBlur, Grayscale, Normalize
from torchdali.experimental.torchvision.v2._geometry import (
    CenterCrop,
    Crop,
    Pad,
    PaddingMode,
    Resize,
    ResizedCrop,
)
from torchdali.experimental.torchvision.v2._images import (
    as_image,
    batch_of,
    image_of,
    layout_of,
    stack,
    tensor_of,
)
from torchdali.experimental.torchvision.v2._transform import Transform
from torchdali.tensors import TensorList

__all__ = [
    "center_crop", "crop", "gaussian_blur", "get_dimensions", "get_image_size", "get_size", "horizontal_flip",
    "normalize", "pad", "pil_to_tensor", "resize", "resized_crop", "rgb_to_grayscale", "to_grayscale", "to_pil_image",
    "to_tensor", "vertical_flip",
]  # fmt: skip


class _FlipBoth(Transform):
    def __init__(self, horizontal: int, vertical: int) -> None:
        super().__init__()
        self._axes = (horizontal, vertical)

    def apply(self, images: Any, layout: str) -> Any:
        return fn.flip(images, horizontal=self._axes[0], vertical=self._axes[1])


def _apply_eagerly(transform: Transform, data: Any, device: Any) -> Any:
    """Apply a transform to a PIL image or a tensor, eagerly."""
    layout = layout_of(data)
    batch = batch_of(data).to(_torch_device(device, data))
    outputs = transform.apply(TensorList.from_dense(batch, layout), layout)
    if isinstance(data, PIL.Image.Image):
        return as_image(stack(outputs, layout, ()))
    return stack(outputs, layout, tuple(data.shape[:-3]))


def _torch_device(device: Any, data: Any) -> torch.device:
    kind = getattr(device, "device_type", None) or str(device)
    if kind.startswith("cpu"):
        return torch.device("cpu")
    if kind.startswith(("gpu", "cuda")):
        if isinstance(data, torch.Tensor) and data.is_cuda:
            return data.device
        return torch.device(kind.replace("gpu", "cuda"))
    raise ValueError(f"device must be 'cpu' or 'gpu', got {device!r}")


def center_crop(inpt: Any, output_size: int | list[int], device: Any = "cpu") -> Any:
    """Crop the center of an image; see `CenterCrop`."""
    return _apply_eagerly(CenterCrop(output_size), inpt, device)


def crop(inpt: Any, top: int, left: int, height: int, width: int, device: Any = "cpu") -> Any:
    """Crop a window; pixels outside of the image are 0.

    Raises:
        TypeError: a coordinate isn't an int. ValueError: the height or width isn't positive.
    """
    return _apply_eagerly(Crop(top, left, height, width), inpt, device)


def gaussian_blur(
    inpt: Any,
    kernel_size: int | Sequence[int],
    sigma: float | Sequence[float] = (0.1, 2.0),
    device: Any = "cpu",
) -> Any:
    """Blur an image; see `GaussianBlur`.

    If ``sigma`` is a range, Python's `random` draws one value from the range for the whole call.
    """
    blur = GaussianBlur(kernel_size, sigma)
    chosen = random.uniform(*blur.sigma)
    blur.sigma = (chosen, chosen)
    return _apply_eagerly(blur, inpt, device)


def get_dimensions(inpt: Any) -> list[int]:
    """Return ``[channels, height, width]`` of a PIL image or a tensor; a tensor ``(H, W)`` has one channel.

    Raises:
        TypeError: the input is neither a PIL image nor a tensor, or the tensor has fewer than two axes.
    """
    if isinstance(inpt, PIL.Image.Image):
        return [len(inpt.getbands()), inpt.height, inpt.width]
    shape = _shape(inpt)
    return [shape[-3] if len(shape) > 2 else 1, *shape[-2:]]


def get_size(inpt: Any) -> list[int]:
    """Return the image's ``[height, width]``; see `get_dimensions`."""
    return get_dimensions(inpt)[1:]


def get_image_size(inpt: Any) -> list[int]:
    """Return the image's ``[width, height]``; see `get_dimensions`."""
    return get_dimensions(inpt)[:0:-1]


def _shape(inpt: Any) -> tuple[int, ...]:
    """Return the shape of a torch tensor or of a dynamic mode's tensor."""
    if not isinstance(inpt, torch.Tensor) and not hasattr(inpt, "evaluate"):
        raise TypeError(f"the input must be a PIL image or a tensor, got {type(inpt)}")
    shape = tuple(inpt.shape)
    if len(shape) < 2:
        raise TypeError(f"an image must have at least 2 axes, got {len(shape)}")
    return shape


def horizontal_flip(inpt: Any, device: Any = "cpu") -> Any:
    """Mirror an image left to right."""
    return _apply_eagerly(_FlipBoth(horizontal=1, vertical=0), inpt, device)


def vertical_flip(inpt: Any, device: Any = "cpu") -> Any:
    """Mirror an image top to bottom."""
    return _apply_eagerly(_FlipBoth(horizontal=0, vertical=1), inpt, device)


def normalize(
    input_data: Any,
    mean: list[float],
    std: list[float],
    inplace: bool = False,
    device: Any = "cpu",
) -> Any:
    """Normalize a tensor; see `Normalize`.

    Raises:
        TypeError: the input isn't a tensor.
    """
    if not isinstance(input_data, torch.Tensor):
        raise TypeError(f"the input of normalize must be a torch.Tensor, got {type(input_data)}")
    return _apply_eagerly(Normalize(mean, std, inplace), input_data, device)


def pad(
    inpt: Any,
    padding: int | Sequence[int],
    fill: float | Sequence[float] | None = 0,
    padding_mode: PaddingMode = "constant",
    device: Any = "cpu",
) -> Any:
    """Add borders to an image; see `Pad`."""
    return _apply_eagerly(Pad(padding, fill, padding_mode), inpt, device)


def pil_to_tensor(inpt: Any) -> torch.Tensor:
    """Convert a PIL image to a tensor ``(C, H, W)``; values are unchanged.

    Raises:
        TypeError: the input isn't a PIL image.
    """
    if not isinstance(inpt, PIL.Image.Image):
        raise TypeError(f"the input of pil_to_tensor must be a PIL image, got {type(inpt)}")
    return tensor_of(inpt)


def resize(
    inpt: Any,
    size: int | Sequence[int] | None,
    interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
    device: Any = "cpu",
) -> Any:
    """Resize an image; see `Resize`."""
    return _apply_eagerly(Resize(size, interpolation, max_size, antialias), inpt, device)


def resized_crop(
    inpt: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
    device: Any = "cpu",
) -> Any:
    """Crop a window and resize it; see `crop` and `Resize`."""
    window = Crop(top, left, height, width)
    target = Resize(size, interpolation, None, antialias)
    target.size = [target.size[0], target.size[-1]]
    return _apply_eagerly(ResizedCrop(window, target), inpt, device)


def to_grayscale(inpt: Any, num_output_channels: int = 1, device: Any = "cpu") -> Any:
    """Convert an image to grayscale; see `Grayscale`."""
    return _apply_eagerly(Grayscale(num_output_channels), inpt, device)


def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1, device: Any = "cpu") -> Any:
    """Convert an image to grayscale; see `Grayscale`."""
    return to_grayscale(inpt, num_output_channels, device)


def to_pil_image(inpt: torch.Tensor, mode: str | None = None, input_layout: str = "CHW") -> PIL.Image.Image:
    """Convert a tensor to a PIL image; floats are multiplied by 255, and clipped to the range 0 to 255.

    Args:
        inpt: An image ``(C, H, W)`` or ``(H, W, C)``, see ``input_layout``; uint8, float32 or float16.
        mode: Mode of the PIL image; by default, L, RGB or RGBA, depending on the number of channels.
        input_layout: ``"CHW"`` or ``"HWC"``.

    Raises:
        TypeError: the input isn't a tensor, or its dtype is unsupported. ValueError: the shape or ``mode`` doesn't fit.
    """
    if not isinstance(inpt, torch.Tensor):
        raise TypeError(f"the input of to_pil_image must be a torch.Tensor, got {type(inpt)}")
    if input_layout not in ("CHW", "HWC"):
        raise ValueError(f"input_layout must be 'CHW' or 'HWC', got {input_layout!r}")
    if input_layout == "HWC" and inpt.ndim == 3:
        inpt = inpt.permute(2, 0, 1)
    return image_of(inpt.detach().cpu(), mode)


def to_tensor(inpt: Any) -> torch.Tensor:
    """Convert a PIL image or an array ``(H, W[, C])`` to a tensor ``(C, H, W)``.

    uint8 values become float32 values from 0 to 1. Values of other dtypes are unchanged.

    Raises:
        TypeError: the input is neither a PIL image nor a NumPy array.
    """
    if not isinstance(inpt, (PIL.Image.Image, np.ndarray)):
        raise TypeError(f"the input of to_tensor must be a PIL image or a NumPy array, got {type(inpt)}")
    tensor = tensor_of(inpt)
    return tensor.to(torch.float32) / 255 if tensor.dtype == torch.uint8 else tensor
