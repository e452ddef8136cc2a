"""Cases of `benchmarks.operators`: operators on images, written once in DALI's API for both sides.

`operator_cases_small` has those on boxes, masks, points and others.

Arguments that a training pipeline draws for each sample are drawn here too, so that nothing is gained by keeping what
was computed for one constant. Left out is what the real DALI has for GPUs only (remap, jitter, median_blur, dilate,
erode), and what only makes a view of an image.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .operator_inputs import SIZED, SIZES

Call = Callable[..., Any]
"""Takes an `Api` and the outputs of the source, and returns one node or several."""


@dataclass(frozen=True)
class Api:
    """One side's modules, and the extent of the images."""

    fn: Any
    types: Any
    math: Any
    height: int
    width: int

    def uniform(self, low: float, high: float, **options: Any) -> Any:
        """A number of its own for each sample."""
        return self.fn.random.uniform(range=[low, high], **options)

    def named(self, name: str) -> Any:
        """The function of a dotted operator name; AttributeError where the side has none."""
        found = self.fn
        for part in name.split("."):
            found = getattr(found, part)
        return found


@dataclass(frozen=True)
class Case:
    """One way of using one operator.

    Attributes:
        operator: Dotted name.
        call: Adds it to a pipeline.
        variant: What tells the case from others of the operator.
        dtype: Of the images or masks.
        feed: What the source delivers (`operator_inputs.FEEDS`).
    """

    operator: str
    call: Call
    variant: str = ""
    dtype: str = "uint8"
    feed: str = "image"

    @property
    def sizes(self) -> tuple[str, ...]:
        """Sizes of its images or masks; what is small has one, called like the feed."""
        return tuple(SIZES) if self.feed in SIZED else (self.feed,)

    @property
    def name(self) -> str:
        """Operator and variant: unique."""
        return f"{self.operator} {self.variant}".strip()


def plain(operator: str, variant: str = "", dtype: str = "uint8", **arguments: Any) -> Case:
    """All inputs, constant arguments."""
    return Case(operator, lambda api, x: api.named(operator)(x, **arguments), variant, dtype)


def draw(operator: str, variant: str = "", dtype: str = "uint8", **ranges: Any) -> Case:
    """Pairs of numbers are ranges to draw from, for each sample; the rest is constant."""

    def call(api: Api, x: Any) -> Any:
        arguments = {k: api.uniform(*v) if isinstance(v, tuple) else v for k, v in ranges.items()}
        return api.named(operator)(x, **arguments)

    return Case(operator, call, variant, dtype)


def _space(source: str, target: str) -> Case:
    def call(api: Api, x: Any) -> Any:
        spaces = {
            "image_type": getattr(api.types, source),
            "output_type": getattr(api.types, target),
        }
        return api.fn.color_space_conversion(x, **spaces)

    return Case("color_space_conversion", call, f"{source} to {target}")


def _interpolate(operator: str, interpolation: str, variant: str, **arguments: Any) -> Case:
    def call(api: Api, x: Any) -> Any:
        return api.named(operator)(x, interp_type=getattr(api.types, interpolation), **arguments)

    return Case(operator, call, variant)


def _cast(source: str, target: str) -> Case:
    def call(api: Api, x: Any) -> Any:
        return api.fn.cast(x, dtype=getattr(api.types, target))

    return Case("cast", call, f"{source} to {target.lower()}", source)


def _crop(api: Api, x: Any) -> Any:
    corner = {"crop_pos_x": api.uniform(0, 1), "crop_pos_y": api.uniform(0, 1)}
    return api.fn.crop(x, crop=(api.height * 7 // 8, api.width * 7 // 8), **corner)


def _normalize(crop: bool, dtype: str, layout: str) -> Call:
    def call(api: Api, x: Any) -> Any:
        crop_arguments = {"crop": (api.height * 7 // 8, api.width * 7 // 8)} if crop else {}
        return api.fn.crop_mirror_normalize(
            x, dtype=getattr(api.types, dtype), output_layout=layout, mean=[123.7, 116.3, 103.5],
            std=[58.4, 57.1, 57.4], mirror=api.fn.random.coin_flip(), **crop_arguments,
        )  # fmt: skip

    return call


def _resize(interpolation: str, factor: float) -> Call:
    def call(api: Api, x: Any) -> Any:
        size = [round(api.height * factor), round(api.width * factor)]
        return api.fn.resize(x, size=size, interp_type=getattr(api.types, interpolation))

    return call


def _rotate(interpolation: str, **arguments: Any) -> Call:
    def call(api: Api, x: Any) -> Any:
        interp = getattr(api.types, interpolation)
        return api.fn.rotate(x, angle=api.uniform(-30, 30), interp_type=interp, **arguments)

    return call


def _affine(interpolation: str) -> Call:
    def call(api: Api, x: Any) -> Any:
        center = (api.width / 2, api.height / 2)
        matrix = api.fn.transforms.rotation(angle=api.uniform(-30, 30), center=center)
        return api.fn.warp_affine(x, matrix=matrix, fill_value=0, interp_type=getattr(api.types, interpolation))

    return call


def _perspective(interpolation: str) -> Call:
    def call(api: Api, x: Any) -> Any:
        return api.fn.experimental.warp_perspective(
            x, matrix=[1.02, 0.1, -9.0, 0.05, 0.97, 3.0, 1e-4, -5e-5, 1.0],
            interp_type=getattr(api.types, interpolation),
        )  # fmt: skip

    return call


def _erase(api: Api, x: Any) -> Any:
    anchor = api.uniform(0, 0.6, shape=[2])
    return api.fn.erase(x, anchor=anchor, shape=[0.3, 0.3], axis_names="HW", normalized=True, fill_value=[100])


def _slice(api: Api, x: Any) -> Any:
    anchor = api.uniform(0, 0.5, shape=[2])
    return api.fn.slice(x, anchor, [0.5, 0.5], axis_names="HW")


def _resize_crop(api: Api, x: Any) -> Any:
    return api.fn.resize_crop_mirror(
        x, resize_shorter=api.height * 0.6, crop=(api.height // 2, api.height // 2), mirror=1
    )


def _flip(horizontal: int, vertical: int) -> Call:
    return lambda api, x: api.fn.flip(x, horizontal=horizontal, vertical=vertical)


def _look_up(api: Api, x: Any) -> Any:
    values = [(i * 7) % 256 for i in range(256)]
    return api.fn.lookup_table(x, keys=list(range(256)), values=values, dtype=api.types.UINT8)


def _debayer(api: Api, x: Any) -> Any:
    return api.fn.experimental.debayer(x[:, :, 0], blue_position=[0, 0])


def _filter(api: Api, x: Any) -> Any:
    window = np.linspace(0, 1, 9, dtype=np.float32).reshape(3, 3) / 4.5
    return api.fn.filter(x, api.types.Constant(window, device="cpu"))


def _paste(api: Api, x: Any) -> Any:
    return api.fn.paste(x, ratio=1.25, fill_value=[100, 110, 120], paste_x=0.5, paste_y=0.5)


def _spread(operator: str, variant: str = "", **axes: Any) -> Case:
    """Of what lies around the mean, which is computed too."""

    def call(api: Api, x: Any) -> Any:
        return api.named(operator)(x, api.fn.reductions.mean(x, **axes), **axes)

    return Case(operator, call, variant)


def _twist(dtype: str) -> Case:
    ranges = {
        "brightness": (0.8, 1.2),
        "contrast": (0.8, 1.2),
        "hue": (-20, 20),
        "saturation": (0.5, 1.5),
    }
    return draw("color_twist", dtype, dtype, **ranges)


_SPACES = (
    ("RGB", "GRAY"), ("RGB", "BGR"), ("RGB", "YCbCr"), ("YCbCr", "RGB"), ("GRAY", "RGB"),
)  # fmt: skip
_RESIZES = (
    ("INTERP_LINEAR", 0.5), ("INTERP_LINEAR", 1.25), ("INTERP_NN", 0.5), ("INTERP_CUBIC", 0.5),
    ("INTERP_TRIANGULAR", 0.5), ("INTERP_LANCZOS3", 0.5),
)  # fmt: skip
_REDUCTIONS = ("sum", "mean", "mean_square", "rms", "max", "min")


def _short(interpolation: str) -> str:
    return interpolation.removeprefix("INTERP_").lower()


CASES: tuple[Case, ...] = (
    draw("brightness", "uint8", brightness=(0.5, 1.5)),
    draw("brightness", "float32", "float32", brightness=(0.5, 1.5)),
    draw("contrast", contrast=(0.5, 1.5)),
    draw("brightness_contrast", brightness=(0.5, 1.5), contrast=(0.5, 1.5)),
    draw("hue", hue=(-30, 30)),
    draw("saturation", saturation=(0.5, 1.5)),
    draw("hsv", hue=(-30, 30), saturation=(0.5, 1.5), value=(0.8, 1.2)),
    _twist("uint8"),
    _twist("float32"),
    *(_space(*spaces) for spaces in _SPACES if spaces[0] != "GRAY"),
    plain("equalize"),
    plain("clahe", tiles_x=8, tiles_y=8, clip_limit=2.0),
    Case("lookup_table", _look_up),
    Case("experimental.debayer", _debayer),
    draw("jpeg_compression_distortion", quality=60),
    *(Case("resize", _resize(i, f), f"{_short(i)} x{f}") for i, f in _RESIZES),
    Case("resize", _resize("INTERP_LINEAR", 0.5), "linear x0.5 float32", "float32"),
    plain("random_resized_crop", size=[224, 224]),
    Case("resize_crop_mirror", _resize_crop),
    Case("crop", _crop),
    Case("crop_mirror_normalize", _normalize(True, "FLOAT", "CHW"), "crop, float CHW"),
    Case("crop_mirror_normalize", _normalize(False, "FLOAT", "CHW"), "float CHW"),
    Case("crop_mirror_normalize", _normalize(False, "FLOAT", "HWC"), "float HWC"),
    Case("slice", _slice),
    Case("flip", _flip(1, 0), "horizontal"),
    Case("flip", _flip(0, 1), "vertical"),
    Case("rotate", _rotate("INTERP_LINEAR", keep_size=True, fill_value=0), "linear"),
    Case("rotate", _rotate("INTERP_LINEAR", fill_value=0), "linear, canvas grows"),
    Case("rotate", _rotate("INTERP_NN", keep_size=True, fill_value=0), "nn"),
    Case("rotate", _rotate("INTERP_LINEAR", keep_size=True), "linear, edge repeated"),
    Case("warp_affine", _affine("INTERP_LINEAR"), "linear"),
    Case("warp_affine", _affine("INTERP_NN"), "nn"),
    Case("experimental.warp_perspective", _perspective("INTERP_LINEAR"), "linear"),
    Case("experimental.warp_perspective", _perspective("INTERP_NN"), "nn"),
    _interpolate("water", "INTERP_LINEAR", "linear"),
    _interpolate("water", "INTERP_NN", "nn"),
    _interpolate("sphere", "INTERP_LINEAR", "linear"),
    _interpolate("sphere", "INTERP_NN", "nn"),
    Case("erase", _erase),
    draw("grid_mask", tile=40, ratio=0.5, angle=(0, 1), shift_x=(0, 40), shift_y=(0, 40)),
    Case("paste", _paste),
    Case("pad", lambda api, x: api.fn.pad(x, axis_names="HW", align=[256, 256], fill_value=7)),
    Case("transpose", lambda api, x: api.fn.transpose(x, perm=[2, 0, 1]), "to CHW"),
    Case("cat", lambda api, x: api.fn.cat(x, x, axis=0), "rows"),
    Case("stack", lambda api, x: api.fn.stack(x, x)),
    plain("copy"),
    _cast("uint8", "FLOAT"),
    _cast("float32", "UINT8"),
    plain("gaussian_blur", "window 9", window_size=9),
    draw("gaussian_blur", "sigma drawn", sigma=(0.5, 2.0)),
    plain("gaussian_blur", "float32", "float32", window_size=9),
    plain("laplacian", window_size=3),
    Case("filter", _filter, "3 x 3"),
    plain("noise.gaussian", stddev=20.0),
    plain("noise.salt_and_pepper", prob=0.05),
    plain("noise.shot", factor=20.0),
    plain("normalize", "of the image"),
    plain("normalize", "of the image, float32", "float32"),
    plain("normalize", "of each channel", axis_names="HW"),
    plain("normalize", "given", mean=118.0, stddev=58.0),
    plain("normalize", "of the batch", batch=True),
    *(plain(f"reductions.{name}") for name in _REDUCTIONS),
    *(_spread(f"reductions.{name}") for name in ("variance", "std_dev")),
    *(_spread(f"reductions.{name}", "rows and columns", axes=[0, 1]) for name in ("variance", "std_dev")),
    *(plain(f"reductions.{name}", "rows and columns", axes=[0, 1]) for name in ("mean", "max")),
)  # fmt: skip
