"""The transforms' base class, `RandomApply`, and transforms that only determine the type of the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from torchdali import fn
from torchdali.experimental.torchvision.v2._checks import check_probability
from torchdali.graph.conditionals import if_return

__all__ = ["DeviceName", "PILToTensor", "RandomApply", "ToPILImage", "ToPureTensor", "Transform"]

DeviceName = Literal["cpu", "gpu"]


class Transform:
    """A step of a `Compose`; a transform cannot be called on its own.

    Args:
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        ValueError: ``device`` is neither ``"cpu"`` nor ``"gpu"``.
    """

    def __init__(self, device: DeviceName = "cpu") -> None:
        if device not in ("cpu", "gpu"):
            raise ValueError(f"device must be 'cpu' or 'gpu', got {device!r}")
        self.device = device

    def apply(self, images: Any, layout: str) -> Any:
        """Return the transformed images.

        Args:
            images: A node of a pipeline, or a batch.
            layout: Layout of the images: ``"HWC"`` or ``"CHW"``.
        """
        return images

    def move_to_device(self, images: Any) -> Any:
        """Return the images on the transform's device. Images on another device are copied."""
        current_device = images.device
        if current_device not in ("cpu", "gpu") or current_device == self.device:
            return images
        return images.gpu() if self.device == "gpu" else images.cpu()

    def __call__(self, data_input: Any) -> Any:
        """Raise an error. Use the transform in a `Compose`; for eager processing, use the functions of `functional`.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            f"{type(self).__name__} cannot be called; put it into Compose([...]), or call the function in v2.functional"
        )

    def __repr__(self) -> str:
        attributes = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({attributes})"


class ToPureTensor(Transform):
    """Make `Compose` return a tensor ``(C, H, W)`` or ``(N, C, H, W)``, with the dtype of the transforms' result."""


class PILToTensor(ToPureTensor):
    """Make `Compose` convert PIL images to uint8 tensors ``(C, H, W)``, with unchanged values."""


class ToPILImage(Transform):
    """Make `Compose` convert tensors ``(C, H, W)`` to PIL images; floats are scaled from the range 0 to 1."""


class RandomApply(Transform):
    """With a probability, apply a list of transforms to an image; otherwise return the image unchanged.

    Args:
        op_list: The transforms.
        p: Probability per image.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        TypeError: ``op_list`` isn't a sequence of transforms. ValueError: ``p`` isn't a number from 0 to 1.
    """

    op_list: list[Transform]
    p: float

    def __init__(self, op_list: Sequence[Callable[..., Any]], p: float = 0.5, device: DeviceName = "cpu") -> None:
        super().__init__(device)
        self.op_list = check_transforms(op_list)
        self.p = check_probability(p)

    def apply(self, images: Any, layout: str) -> Any:
        """Return the images, some of them transformed."""
        images = self.move_to_device(images)

        def apply() -> Any:
            result = images
            for each in self.op_list:
                result = each.apply(each.move_to_device(result), layout)
            return self.move_to_device(result)

        return if_return(fn.random.coin_flip(probability=self.p) == 1, apply, lambda: images)


def check_transforms(op_list: Any) -> list[Transform]:
    """Return the transforms as a list.

    Raises:
        TypeError: ``op_list`` isn't a sequence of transforms.
    """
    if not isinstance(op_list, Sequence) or isinstance(op_list, str):
        raise TypeError(f"op_list must be a list of transforms, got {type(op_list).__name__}")
    for i, each in enumerate(op_list):
        if not isinstance(each, Transform):
            raise TypeError(f"op_list[{i}] must be a transform of torchdali.experimental.torchvision, got {each!r}")
    return list(op_list)
