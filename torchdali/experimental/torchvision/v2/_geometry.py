"""Transforms that change an image's size or geometry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from torchdali import fn
from torchdali.experimental.torchvision.v2._checks import (
    InterpolationMode,
    check_fill,
    check_interpolation,
    check_padding,
    check_probability,
    check_range,
    check_size,
    interp_type,
)
from torchdali.experimental.torchvision.v2._transform import DeviceName, Transform
from torchdali.ops import _vision
from torchdali.ops._vision import PADDING_POLICIES

__all__ = [
    "CenterCrop", "Crop", "Pad", "RandomCrop", "RandomHorizontalFlip", "RandomResizedCrop", "RandomVerticalFlip",
    "Resize", "ResizedCrop",
]  # fmt: skip

PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]


# The type is Any because torchdali itself passes some arguments of these operators. Type checkers would report that
# these arguments are missing.
_resize: Any = _vision.vision_resize
_center_crop: Any = _vision.vision_center_crop
_pad: Any = _vision.vision_pad
_random_crop: Any = _vision.vision_random_crop


class Resize(Transform):
    """Resize images.

    Args:
        size: ``[height, width]``; or one number, the length of the shorter side (the longer side then follows from the
            aspect ratio, rounded down); or None, to use only ``max_size``.
        interpolation: NEAREST, BILINEAR, BICUBIC or LANCZOS, or the number that Pillow uses for one of these filters.
        max_size: Greatest length of the longer side if ``size`` is one number; length of the longer side if ``size`` is
            None.
        antialias: Widen the filter if the image shrinks. None means False.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        ValueError: the size is invalid or not positive; ``max_size`` is passed with a size of two numbers, or is not
            above ``size``; or the interpolation is unknown.
        NotImplementedError: the interpolation is not supported.
    """

    size: list[int]
    interpolation: InterpolationMode
    max_size: int | None
    antialias: bool

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
        device: DeviceName = "cpu",
    ) -> None:
        super().__init__(device)
        self.size = _check_target(size, max_size)
        self.interpolation = check_interpolation(interpolation)
        self.max_size, self.antialias = max_size, bool(antialias)
        self._filter = interp_type(self.interpolation)

    def apply(self, images: Any, layout: str) -> Any:
        """Return resized images."""
        if len(self.size) == 2:
            return fn.resize(images, size=self.size, interp_type=self._filter, antialias=self.antialias)
        return _resize(
            images, size=self.size[0] if self.size else None, max_size=self.max_size,
            interp_type=self._filter, antialias=self.antialias,
        )  # fmt: skip


def _check_target(size: Any, max_size: Any) -> list[int]:
    """Return the checked size: ``[height, width]``, ``[length of the shorter side]``, or ``[]`` if ``size`` is None."""
    if max_size is not None and (isinstance(max_size, bool) or not isinstance(max_size, int)):
        raise ValueError(f"max_size must be an int or None, got {max_size!r}")
    if size is None:
        if max_size is None:
            raise ValueError("max_size must be passed if size is None")
        if max_size <= 0:
            raise ValueError(f"max_size must be positive, not {max_size}")
        return []
    try:
        both = check_size(size)
    except TypeError as error:
        raise ValueError(str(error)) from None
    count = 1 if isinstance(size, int) else len(size)
    if max_size is not None and count == 2:
        raise ValueError(f"max_size requires a single size, the length of the shorter side, got size={size!r}")
    if max_size is not None and max_size <= both[0]:
        raise ValueError(f"max_size must be above {both[0]}, the size of the shorter side, got {max_size}")
    return both[:count]


class CenterCrop(Transform):
    """Crop the center of images; pixels outside of a smaller image are 0.

    Args:
        size: ``[height, width]``, or one number for both.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        TypeError, ValueError: the size isn't one or two positive ints.
    """

    size: list[int]

    def __init__(self, size: int | Sequence[int], device: DeviceName = "cpu") -> None:
        super().__init__(device)
        self.size = check_size(size)

    def apply(self, images: Any, layout: str) -> Any:
        """Return the center of images."""
        return _center_crop(images, size=self.size)


class Crop(Transform):
    """Crop a window; pixels outside of the image are 0."""

    def __init__(self, top: int, left: int, height: int, width: int, device: DeviceName = "cpu") -> None:
        super().__init__(device)
        for name, value in (("top", top), ("left", left), ("height", height), ("width", width)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an int, got {value!r}")
        self.start, self.size = [top, left], check_size((height, width), "(height, width)")

    def apply(self, images: Any, layout: str) -> Any:
        """Return the window of images."""
        return fn.slice(images, start=self.start, shape=self.size, axis_names="HW", out_of_bounds_policy="pad")


class ResizedCrop(Transform):
    """Crop a window, and resize it."""

    def __init__(self, crop: Crop, resize: Resize) -> None:
        super().__init__(crop.device)
        self.crop, self.resize = crop, resize

    def apply(self, images: Any, layout: str) -> Any:
        """Return the resized window of images."""
        return self.resize.apply(self.crop.apply(images, layout), layout)


class Pad(Transform):
    """Add borders to images.

    Args:
        padding: One number for all sides; two numbers, for left and right, and for top and bottom; or four numbers, for
            left, top, right and bottom.
        fill: Color of the border: one number, or one number per channel. None means 0. A dict maps the image's class
            (``torch.Tensor`` or ``PIL.Image.Image``) or ``"others"`` to a color.
        padding_mode: ``"constant"``; ``"edge"``, which repeats the outermost pixel; ``"symmetric"``, which mirrors the
            image at its edge; or ``"reflect"``, which mirrors the image without repeating the outermost pixel.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        TypeError, ValueError: an argument is invalid, or the padding is negative.
    """

    padding: list[int]
    fill: dict[Any, Any] | float | int | Sequence[float] | None

    def __init__(
        self,
        padding: int | Sequence[int],
        fill: float | Sequence[float] | Mapping[Any, Any] | None = 0,
        padding_mode: PaddingMode = "constant",
        device: DeviceName = "cpu",
    ) -> None:
        super().__init__(device)
        self.padding = check_padding(padding)
        self.padding_mode = _check_mode(padding_mode)
        self.fill = dict(fill) if isinstance(fill, Mapping) else fill
        if isinstance(self.fill, dict):
            for value in self.fill.values():
                check_fill(value)
        else:
            check_fill(fill)

    def apply(self, images: Any, layout: str) -> Any:
        """Return images with borders."""
        return _pad(images, padding=self.padding, fill=self._fill(layout), padding_mode=self.padding_mode)

    def _fill(self, layout: str) -> list[float]:
        if not isinstance(self.fill, dict):
            return check_fill(self.fill)
        name = "Tensor" if layout == "CHW" else "Image"
        for kind, value in self.fill.items():
            if getattr(kind, "__name__", kind) == name:
                return check_fill(value)
        return check_fill(self.fill.get("others"))


def _check_mode(mode: Any) -> PaddingMode:
    if mode not in PADDING_POLICIES:
        raise ValueError(f"padding_mode must be one of {', '.join(map(repr, PADDING_POLICIES))}, got {mode!r}")
    padding: PaddingMode = mode
    return padding


class RandomCrop(Transform):
    """Crop a window at a random position.

    Args:
        size: ``[height, width]``, or one number for both.
        padding: Borders that are added first: one, two or four numbers, as for `Pad`, or a sequence of one number; None
            for no borders.
        pad_if_needed: Pad an image on both sides if it is smaller than the window.
        fill: Color of the borders: one number, or one number per channel. None means 0.
        padding_mode: See `Pad`.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        TypeError, ValueError: an argument is invalid.
        RuntimeError: when the transform is applied, an image is smaller than the window.
    """

    size: list[int]
    padding: list[int]
    pad_if_needed: bool
    fill: list[float]

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: float | Sequence[float] | None = 0,
        padding_mode: PaddingMode = "constant",
        device: DeviceName = "cpu",
    ) -> None:
        super().__init__(device)
        self.size = check_size(size)
        self.padding = [0] * 4 if padding is None else check_padding(padding, (1, 2, 4))
        if not isinstance(pad_if_needed, bool):
            raise TypeError(f"pad_if_needed must be a bool, got {pad_if_needed!r}")
        self.pad_if_needed, self.fill = pad_if_needed, check_fill(fill)
        self.padding_mode = _check_mode(padding_mode)

    def apply(self, images: Any, layout: str) -> Any:
        """Return a window of each image."""
        return _random_crop(
            images, size=self.size, padding=self.padding, pad_if_needed=self.pad_if_needed, fill=self.fill,
            padding_mode=self.padding_mode,
        )  # fmt: skip


class RandomResizedCrop(Transform):
    """Crop a window of random area and aspect ratio, and resize it.

    Args:
        size: ``[height, width]`` of the result, or one number for both.
        scale: Smallest and greatest area of the window, as fractions of the image's area.
        ratio: Smallest and greatest aspect ratio, ``width / height``.
        interpolation, antialias: See `Resize`.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        TypeError, ValueError: an argument is invalid.
        NotImplementedError: the interpolation is not supported.
    """

    size: list[int]
    scale: tuple[float, float]
    ratio: tuple[float, float]
    interpolation: InterpolationMode
    antialias: bool

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
        device: DeviceName = "cpu",
    ) -> None:
        super().__init__(device)
        self.size = check_size(size)
        self.scale, self.ratio = _check_positive(scale, "scale"), _check_positive(ratio, "ratio")
        self.interpolation = check_interpolation(interpolation)
        self.antialias = bool(antialias)
        self._filter = interp_type(self.interpolation)

    def apply(self, images: Any, layout: str) -> Any:
        """Return a resized window of each image."""
        return fn.random_resized_crop(
            images, size=self.size, random_area=list(self.scale), random_aspect_ratio=list(self.ratio),
            interp_type=self._filter, antialias=self.antialias,
        )  # fmt: skip


def _check_positive(values: Any, name: str) -> tuple[float, float]:
    low, high = check_range(values, name, TypeError)
    if low <= 0:
        raise ValueError(f"{name} must be positive, not {values!r}")
    return low, high


class RandomHorizontalFlip(Transform):
    """Mirror each image left to right with a probability.

    Args:
        p: Probability per image.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        ValueError: ``p`` isn't a number from 0 to 1.
    """

    p: float

    _direction = "horizontal"

    def __init__(self, p: float = 0.5, device: DeviceName = "cpu") -> None:
        super().__init__(device)
        self.p = check_probability(p)

    def apply(self, images: Any, layout: str) -> Any:
        """Return the images, some of them mirrored."""
        chosen: Any = fn.random.coin_flip(probability=self.p)
        horizontal, vertical = (chosen, 0) if self._direction == "horizontal" else (0, chosen)
        return fn.flip(images, horizontal=horizontal, vertical=vertical)


class RandomVerticalFlip(RandomHorizontalFlip):
    """Mirror each image top to bottom with a probability.

    Args:
        p: Probability per image.
        device: ``"cpu"`` or ``"gpu"``.

    Raises:
        ValueError: ``p`` isn't a number from 0 to 1.
    """

    _direction = "vertical"
