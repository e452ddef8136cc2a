"""Compile a dataset's transforms into steps, which are torchdali's own image operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from torchdali.dataloader._notes import (
    NotSupportedError,
    broken_rule_reason,
    name_of,
    own_transform_reason,
    pil_output_reason,
)
from torchdali.dataloader._rules import (
    BYTES,
    NORMALIZED,
    PIL,
    UNIT,
    ImageForm,
    Steps,
    channels_after,
    erasing_of,
    flatten,
    is_torchvision_transform,
    is_v2,
    require,
    steps_of,
)  # fmt: skip
from torchdali.ops._picture_colors import Blur, ColorAdjustment
from torchdali.ops._picture_erasing import Erasing
from torchdali.ops._picture_policies import AutoAugment, RandAugment, TrivialAugment
from torchdali.ops._pictures import ImageTransforms, RandomSteps, TensorConversion

__all__ = ["CompiledTransforms", "compile_augmentations", "compile_transforms"]


# ---------------------------------------------------------------- conversions


def _form_after(t: Any, form: str) -> str | None:
    """Return the form of an image, for example `PIL`, after a conversion; None if the conversion isn't supported."""
    name = type(t).__name__
    if name == "ToTensor":
        return UNIT if form == PIL else None
    if name in ("PILToTensor", "ToImage"):
        return BYTES if form == PIL else form if name == "ToImage" and form != PIL else None
    if name == "ToPureTensor":
        return None if form == PIL else form
    if name in ("ConvertImageDtype", "ToDtype"):
        scales = getattr(t, "scale", True) and t.dtype == torch.float32
        return UNIT if scales and form in (BYTES, UNIT) else None
    return None


def _normalization(t: Any, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    mean, std = _channel_values(t.mean, channels), _channel_values(t.std, channels)
    require(all(std), f"std must not be 0, got {t.std}")
    return mean, std


def _channel_values(values: Any, channels: int) -> tuple[float, ...]:
    """Convert one value for all channels, or one value per channel, to floats as torchvision does."""
    converted = torch.as_tensor(values, dtype=torch.float32).numpy()
    is_valid = converted.ndim < 2 and converted.size in (1, channels)
    require(is_valid, f"mean and std must have 1 or {channels} values, got shape {converted.shape}")
    return tuple(converted.reshape(-1).tolist())


# ---------------------------------------------------------------- all transforms of a dataset


@dataclass(frozen=True)
class CompiledTransforms:
    """The result of compiling a dataset's transforms.

    Attributes:
        transforms: The compiled transforms; None if a transform isn't supported.
        supported: Names of the supported transforms before the first unsupported transform.
        reason: The first unsupported transform, and the reason.
    """

    transforms: ImageTransforms | None
    supported: tuple[str, ...]
    reason: str = ""


@dataclass
class _Draft:
    """The result of compiling a dataset's transforms, up to the transform that is compiled next.

    Attributes:
        image: Form and number of channels of the next transform's input.
        steps: Steps on the image.
        ends: Steps that erase rectangles of the float tensor. They run after all other steps.
        normalization: Mean and standard deviation; (None, None) if there was no `Normalize`.
        multiplies: True if the conversion to floats multiplies by 1/255; False if it divides by 255.
    """

    image: ImageForm
    steps: list[Any] = field(default_factory=list)
    ends: list[Erasing] = field(default_factory=list)
    normalization: tuple[Any, Any] = (None, None)
    multiplies: bool = False

    def add(self, t: Any) -> None:
        """Compile one more transform.

        Raises:
            NotSupportedError, ValueError: the transform, or one of its values, is not supported.
        """
        form, channels = self.image
        if not is_torchvision_transform(t):
            raise NotSupportedError(own_transform_reason(t))
        name, new_form = type(t).__name__, _form_after(t, form)
        if new_form is not None:
            self.image = self.image._replace(form=new_form)
            self.multiplies |= is_v2(t) and form == BYTES and new_form == UNIT
        elif name == "Normalize" and form == UNIT:
            mean, std = self.normalization = _normalization(t, channels)
            self.image = self.image._replace(form=NORMALIZED)
            self.ends = [replace(each, mean=mean, std=std) for each in self.ends]
        elif name == "RandomErasing" and form in (UNIT, NORMALIZED):
            self.ends.append(erasing_of(t, self.image))
        else:
            require(not self.ends, "follows an erasing")
            steps = steps_of(t, self.image)
            blurred = any(isinstance(step, Blur) for step in _flatten_steps([*self.steps, *steps]))
            require(
                not (blurred and any(map(_is_discontinuous, _flatten_steps(steps)))),
                "could amplify a blur's rounding by several levels",
            )
            self.steps += steps
            self.image = self.image._replace(channels=channels_after(steps, channels))

    def finish(self) -> ImageTransforms:
        """Return the compiled transforms.

        Raises:
            NotSupportedError: the transforms return PIL images.
        """
        if self.image.form == PIL:
            raise NotSupportedError(pil_output_reason())
        is_unit, channels = self.image.form != BYTES, self.image.channels
        conversion = TensorConversion(is_unit, *self.normalization, channels, self.multiplies)
        return ImageTransforms(tuple(self.steps), conversion, tuple(self.ends))


def compile_transforms(transform: Any, channels: int = 3) -> CompiledTransforms:
    """Compile a dataset's transforms for PIL images with `channels` channels."""
    t, supported, draft = transform, list[str](), _Draft(ImageForm(PIL, channels))
    try:
        dtype = torch.get_default_dtype()
        require(dtype is torch.float32, f"torch.get_default_dtype() must be torch.float32, got {dtype}")
        for t in flatten(transform):
            draft.add(t)
            supported.append(name_of(t))
        return CompiledTransforms(draft.finish(), tuple(supported))
    except NotSupportedError as reason:
        return CompiledTransforms(None, tuple(supported), str(reason))
    except Exception as error:  # a rule doesn't support a value; torchvision's own code may support it
        return CompiledTransforms(None, tuple(supported), broken_rule_reason(t, error))


def compile_augmentations(transform: Any) -> ImageTransforms:
    """Compile transforms for the argument `augment` of `Loader.from_folder`.

    Raises:
        TypeError: a transform isn't supported.
        ValueError: a transform crops, converts or normalizes the images, which the loader already does.
    """
    image, steps = ImageForm(PIL, 3), list[Any]()
    for t in flatten(transform):
        name = name_of(t)
        if is_torchvision_transform(t) and (_form_after(t, PIL) or name in _HANDLED_BY_LOADER):
            raise ValueError(f"remove {name} from augment: size, mean and std already crop and normalize the images")
        try:
            new_steps = steps_of(t, image)
            require(channels_after(new_steps, 3) == 3, "the images must keep 3 channels")
        except Exception as error:
            raise TypeError(f"{name} must be a supported transform: {error}") from error
        steps += new_steps
    return ImageTransforms(tuple(steps))


_HANDLED_BY_LOADER = ("RandomResizedCrop", "Normalize", "ConvertImageDtype", "ToDtype", "ToPureTensor")


def _flatten_steps(steps: Steps) -> Iterator[Any]:
    """Yield all steps, including the nested steps of random choices and random orders."""
    for step in steps:
        if isinstance(step, RandomSteps):
            yield from _flatten_steps([each for row in step.rows for each in row])
        else:
            yield step


def _is_discontinuous(step: Any) -> bool:
    """Return True if a step can map two adjacent pixel values to distant values."""
    if isinstance(step, ColorAdjustment):
        return step.name in ("autocontrast", "equalize", "posterize") or (step.name == "solarize" and step.value != 128)
    return isinstance(step, (AutoAugment, RandAugment, TrivialAugment))
