"""Transforms of an image's values."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from torchdali import fn
from torchdali.experimental.torchvision.v2._checks import check_probability, check_range
from torchdali.experimental.torchvision.v2._transform import DeviceName, Transform
from torchdali.ops._vision import vision_color, vision_gray

__all__ = ["ColorJitter", "GaussianBlur", "Grayscale", "Normalize", "RandomGrayscale"]


class Normalize(Transform):
    """Subtract a mean per channel and divide by a standard deviation per channel; the result is float32.

    Args:
        mean: A sequence with one mean per channel, or with one mean for all channels.
        std: A sequence with one standard deviation per channel, or with one standard deviation for all channels.
        inplace: Must be False.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        TypeError: ``mean`` or ``std`` isn't a sequence.
        ValueError: ``mean`` or ``std`` is empty, or ``std`` contains 0.
        NotImplementedError: ``inplace`` is True.
    """

    mean: list[float]
    std: list[float]

    def __init__(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        inplace: bool = False,
        device: DeviceName = "cpu",
    ) -> None:
        super().__init__(device)
        for name, values in (("mean", mean), ("std", std)):
            if not isinstance(values, Sequence) or isinstance(values, str):
                raise TypeError(f"{name} must be a sequence of numbers, got {values!r}")
        if inplace:
            raise NotImplementedError("inplace is not supported")
        self.mean, self.std = [float(v) for v in mean], [float(v) for v in std]
        if not self.mean or not self.std:
            raise ValueError("mean and std must have at least one value")
        if 0 in self.std:
            raise ValueError(f"std must not be 0, got {list(std)}")

    def apply(self, images: Any, layout: str) -> Any:
        """Return normalized images."""
        return fn.crop_mirror_normalize(images, mean=self.mean, std=self.std, output_layout=layout)


class Grayscale(Transform):
    """Convert images to grayscale.

    Args:
        num_output_channels: 1; or 3, for three equal channels.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        ValueError: ``num_output_channels`` is neither 1 nor 3.
    """

    def __init__(self, num_output_channels: int = 1, device: DeviceName = "cpu") -> None:
        super().__init__(device)
        if num_output_channels not in (1, 3):
            raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels!r}")
        self.num_output_channels = num_output_channels

    def apply(self, images: Any, layout: str) -> Any:
        """Return gray images."""
        return vision_gray(images, channels=self.num_output_channels)


class RandomGrayscale(Transform):
    """Convert each image to grayscale with a probability; the number of channels doesn't change.

    Args:
        p: Probability per image.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        ValueError: ``p`` isn't a number from 0 to 1.
    """

    p: float

    def __init__(self, p: float = 0.1, device: DeviceName = "cpu") -> None:
        super().__init__(device)
        self.p = check_probability(p)

    def apply(self, images: Any, layout: str) -> Any:
        """Return the images, some of them gray."""
        chosen: Any = fn.random.coin_flip(probability=self.p)
        return vision_gray(images, wanted=chosen)


class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue randomly, with the operation of `fn.color_twist`.

    Args:
        brightness: Range of the factors: a number ``b`` means from ``max(0, 1 - b)`` to ``1 + b``; or ``(min, max)``.
        contrast: Range of the factors, like ``brightness``. A factor scales the distance of each value from half of the
            value range.
        saturation: Range of the factors, like ``brightness``.
        hue: Range of the hue rotations, in full turns: a number ``h`` up to 0.5 means from ``-h`` to ``h``; or
            ``(min, max)``. Hue is rotated in the YIQ color space, while torchvision uses HSV.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        ValueError: a factor is negative, or a hue rotation is below -0.5 or above 0.5.
    """

    brightness: tuple[float, float]
    contrast: tuple[float, float]
    saturation: tuple[float, float]
    hue: tuple[float, float]

    def __init__(
        self,
        brightness: float | Sequence[float] | None = 0.0,
        contrast: float | Sequence[float] | None = 0.0,
        saturation: float | Sequence[float] | None = 0.0,
        hue: float | Sequence[float] | None = 0.0,
        device: DeviceName = "cpu",
    ) -> None:
        super().__init__(device)
        self.brightness = _check_factors(brightness, "brightness")
        self.contrast = _check_factors(contrast, "contrast")
        self.saturation = _check_factors(saturation, "saturation")
        self.hue = _check_hue(hue)

    def apply(self, images: Any, layout: str) -> Any:
        """Return the images with changed colors."""
        turn = tuple(360 * share for share in self.hue)
        return vision_color(
            images, brightness=_draw(self.brightness), contrast=_draw(self.contrast),
            saturation=_draw(self.saturation), hue=_draw(turn),
        )  # fmt: skip


def _check_factors(value: Any, name: str) -> tuple[float, float]:
    if isinstance(value, Real):
        if value < 0:
            raise ValueError(f"{name} must not be negative, got {value!r}")
        return max(0.0, 1 - float(value)), 1 + float(value)
    low, high = check_range(value, name)
    if low < 0:
        raise ValueError(f"{name} must not be negative, got {value!r}")
    return low, high


def _check_hue(value: Any) -> tuple[float, float]:
    low, high = (-float(value), float(value)) if isinstance(value, Real) else check_range(value, "hue")
    if not -0.5 <= low <= high <= 0.5:
        raise ValueError(f"hue must be from 0 to 0.5, or (min, max) from -0.5 to 0.5, got {value!r}")
    return low, high


def _draw(values: Sequence[float]) -> Any:
    """Return the number if the range contains only one number; otherwise a node that draws a number per sample."""
    low, high = values
    return low if low == high else fn.random.uniform(range=[low, high])


class GaussianBlur(Transform):
    """Blur images with a Gaussian window; at the borders, the image's pixels are reflected.

    Args:
        kernel_size: Size of the window in pixels, an odd number; or two sizes, for height and width, as in DALI.
        sigma: Standard deviation in pixels; or ``(min, max)``, to draw a random standard deviation per image.
        device: ``"cpu"`` or ``"gpu"``.
        seed: Seed for drawing the standard deviations; -1 means the seed of the `Compose`.

    Raises:
        ValueError: a window size is even or not positive, or ``sigma`` is not positive or not a valid range.
    """

    kernel_size: list[int]
    sigma: tuple[float, float]
    seed: int

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        sigma: float | Sequence[float] = (0.1, 2.0),
        device: DeviceName = "cpu",
        seed: int = -1,
    ) -> None:
        super().__init__(device)
        self.kernel_size, self.sigma, self.seed = _check_kernel_size(kernel_size), _check_sigma(sigma), seed

    def apply(self, images: Any, layout: str) -> Any:
        """Return blurred images."""
        low, high = self.sigma
        drawn = low if low == high else fn.random.uniform(range=[low, high], seed=self.seed)
        return fn.gaussian_blur(images, window_size=self.kernel_size, sigma=drawn)


def _check_kernel_size(value: Any) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) not in (1, 2) or not all(
        isinstance(v, int) and not isinstance(v, bool) and v > 0 and v % 2 for v in values
    ):
        raise ValueError(f"kernel_size must be one or two odd positive ints, got {value!r}")
    return [values[0], values[-1]]


def _check_sigma(value: Any) -> tuple[float, float]:
    if isinstance(value, Real) and not isinstance(value, bool):
        value = (value, value)
    low, high = check_range(value, "sigma")
    if low <= 0:
        raise ValueError(f"sigma must be positive, not {value!r}")
    return low, high
