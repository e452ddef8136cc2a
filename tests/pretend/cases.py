"""Calls of every operator that runs on an accelerator, as expressions over nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
import torch

from torchdali import fn, math, types
from torchdali.declaration.registry import registry
from torchdali.execute import stages
from torchdali.pipeline import Pipeline
from torchdali.reference._examples import EXAMPLES

BATCH = 3
MEAN = "mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0]"

UNARY = ["fabs", "floor", "ceil", "sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    **{f"math.{name}": (f"math.{name}(unit)",) for name in UNARY},
    "math.acosh": ("math.acosh(unit + 1.0)",),
    **{f"math.{name}": (f"math.{name}(numbers, 2.5)", f"math.{name}(numbers, numbers)") for name in ("min", "max", "atan2", "fpow", "pow")},
    "math.abs": ("math.abs(numbers - 3)",),
    "math.clamp": ("math.clamp(numbers, 2, 4)",),
    **{
        f"math.{name}": (f"image {sign} 3", f"ints {sign} ints", f"ints {sign} shift", f"image {sign} start")
        for name, sign in {
            "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "eq": "==", "ne": "!=",
            "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&", "or": "|", "xor": "^", "lshift": "<<",
            "rshift": ">>",
        }.items()
        if name != "mod"
    },
    "math.invert": ("~ints",), "math.pos": ("+ints",), "math.neg": ("-numbers",),
    "_subscript": ("image[1:9, 2]", "image[-5:, :, 0]", "image[:, start : start + 4]"),
    "_row": ("fn.shapes(image)[0]",),
    "crop_mirror_normalize": (
        f"fn.crop_mirror_normalize(image, crop=[20, 24], mirror=flip, dtype=types.FLOAT16, {MEAN})",
        f"fn.crop_mirror_normalize(same, mirror=flip, {MEAN})",
        f"fn.crop_mirror_normalize(fn.cast(image, dtype=types.FLOAT), mirror=flip, crop=[20, 24], {MEAN})",
        f"fn.crop_mirror_normalize(same, mirror=flip, output_layout='HWC', crop=[20, 24], crop_pos_x=place, {MEAN})",
        "fn.crop_mirror_normalize(image, crop=[90, 90], dtype=types.UINT8, out_of_bounds_policy='pad', fill_values=[7.0], pad_output=True)",
    ),
    "random_resized_crop": (
        "fn.random_resized_crop(image, size=[24, 32], interp_type=types.INTERP_NN)",
        "fn.random_resized_crop(image, size=[24, 32])",
        "fn.random_resized_crop(image, size=[24, 32], interp_type=types.INTERP_CUBIC, antialias=False)",
        "fn.random_resized_crop(fn.cast(image, dtype=types.FLOAT), size=[24, 32])",
    ),
    "resize": (
        "fn.resize(image, size=[24, 32])",
        "fn.resize(same, resize_shorter=20.0 + 10 * place)",
        "fn.resize(image, size=[24, 32], interp_type=types.INTERP_NN)",
        "fn.resize(image, resize_x=-33, roi_start=[0.1, 0.2], roi_end=[0.9, 1.1], roi_relative=True, interp_type=types.INTERP_NN, dtype=types.FLOAT)",
        "fn.resize(fn.cast(same, dtype=types.FLOAT), size=[24, 132], interp_type=types.INTERP_NN)",
        "fn.resize(image, size=[24, 32], dtype=types.FLOAT, mode='not_smaller')",
        "fn.resize(fn.cast(image, dtype=types.FLOAT) * 3.7, resize_shorter=20.0 + 10 * place)",
    ),
    "paste": ("fn.paste(image, ratio=1.0 + place, min_canvas_size=47.5, paste_x=place, fill_value=[7])", "fn.paste(same, ratio=1.5, fill_value=[1, 2, 3])"),
    "multi_paste": (
        "fn.multi_paste(image, in_ids=[2, 0], output_size=[90, 80], out_anchors=[[5, 3], [20, 9]])",
        "fn.multi_paste(same, fn.flip(same), in_anchors_rel=[[0.1, 0.2], [0.3, 0.4]], shapes_rel=[[0.5, 0.5], [0.2, 0.3]], dtype=types.INT16)",
        "fn.multi_paste(fn.cast(image, dtype=types.FLOAT), fn.cast(same, dtype=types.FLOAT), output_size=[90, 80], shapes=[[9, 8], [7, 6]])",
    ),
    "experimental.warp_perspective": (
        "fn.experimental.warp_perspective(image, matrix=[0.5, 0.1, 3, 0, 0.6, 2, 0.001, 0, 1], interp_type=types.INTERP_NN, pixel_origin='center', fill_value=[9, 80, 300])",
        "fn.experimental.warp_perspective(same, matrix=[0.5, 0.1, 3, 0, 0.6, 2, 0.001, 0, 1], interp_type=types.INTERP_CUBIC, inverse_map=False, border_mode='replicate')",
        "fn.experimental.warp_perspective(image, matrix=[1.5, 0.1, -9, 0, 1.6, -8, 0.001, 0, 1], size=[60, 50], border_mode='reflect_101')",
        "fn.experimental.warp_perspective(image, matrix=fn.stack(1.0 + place, place, place, place, 1.0 + place, place, 0.001 * place, 0.0 * place, 1.0), border_mode='wrap')",
    ),
    "cat": ("fn.cat(image, image, image, axis=2)", "fn.cat(fn.cast(image, dtype=types.FLOAT), fn.cast(image[3:9], dtype=types.FLOAT), axis=0)"),
    "stack": ("fn.stack(image, image, image, axis=-1, axis_name='D')", "fn.stack(sound, sound)"),
    "experimental.resize": ("fn.experimental.resize(image, size=[20, 30], interp_type=types.INTERP_NN)",),
    "spectrogram": (
        "fn.spectrogram(sound, window_length=100, window_step=30, nfft=128, layout='tf', power=1)",
        "fn.spectrogram(sound, window_length=2048, reflect_padding=False)",
        "fn.spectrogram(sound, window_length=64, window_step=100, center_windows=False, window_fn=[0.5] * 64)",
    ),
    "mel_filter_bank": ("fn.mel_filter_bank(fn.spectrogram(sound, layout='tf', window_length=64), nfilter=20)",),
    "to_decibels": ("fn.to_decibels(fn.spectrogram(sound), multiplier=20.0, reference=3.0)", "fn.to_decibels(sound)"),
    "mfcc": ("fn.mfcc(fn.spectrogram(sound, layout='tf', window_length=64), axis=1, n_mfcc=7, lifter=3.0)",),
    "flip": (
        "fn.flip(fn.cast(image, dtype=types.FLOAT), horizontal=flip, vertical=1)",
        "fn.flip(image, horizontal=flip)", "fn.flip(same, vertical=flip, horizontal=1)"),
    "color_twist": ("fn.color_twist(image, hue=90 * place, brightness=0.5 + place)", "fn.color_twist(same, saturation=place)"),
    "brightness_contrast": ("fn.brightness_contrast(same, brightness=0.5 + place)",),
    "hsv": ("fn.hsv(image, hue=90 * place, saturation=place, value=0.5 + place)", "fn.hsv(same, value=1.5)"),
    "hue": ("fn.hue(image, hue=90 * place)", "fn.hue(same, hue=30.0)"),
    "saturation": ("fn.saturation(image, saturation=place)",),
    "brightness": ("fn.brightness(image, brightness=0.5 + place, brightness_shift=0.1)", "fn.brightness(fn.cast(image, dtype=types.FLOAT), brightness=2.0)"),
    "contrast": ("fn.contrast(image, contrast=0.5 + place, contrast_center=90.0)", "fn.contrast(same, contrast=1.5, dtype=types.FLOAT)"),
    "warp_affine": ("fn.warp_affine(image, matrix=[0.5, 0.1, 3, 0, 0.6, 2], dtype=types.FLOAT, fill_value=300.0)",),
    "water": ("fn.water(image, ampl_x=5.5, phase_y=0.3, mask=flip)", "fn.water(fn.cast(same, dtype=types.FLOAT), interp_type=types.INTERP_LINEAR, fill_value=-3.5)"),
    "sphere": ("fn.sphere(image, mask=flip, fill_value=300.0)", "fn.sphere(fn.cast(image, dtype=types.FLOAT), interp_type=types.INTERP_LINEAR)"),
    "jitter": ("fn.jitter(image, nDegree=7, mask=flip, fill_value=90.0)", "fn.jitter(same, nDegree=300)", "fn.jitter(fn.cast(image, dtype=types.INT16))"),
    "experimental.median_blur": ("fn.experimental.median_blur(image, window_size=[5, 3])", "fn.experimental.median_blur(same, window_size=1 + 2 * start)"),
    "clahe": (
        "fn.clahe(same, clip_limit=0.0, tiles_x=5, tiles_y=5)", "fn.clahe(image[:, :, 0:1], clip_limit=3.0, tiles_x=4, tiles_y=3)",
        "fn.clahe(image, clip_limit=2.0, tiles_x=2, tiles_y=7, luma_only=False)",
    ),
    "jpeg_compression_distortion": ("fn.jpeg_compression_distortion(image, quality=20 * start)", "fn.jpeg_compression_distortion(same, quality=101)"),
    "grid_mask": (
        "fn.grid_mask(image, tile=10 + start, ratio=0.4, angle=place, shift_x=90 * place)", "fn.grid_mask(mosaic, tile=8, angle=1.0)",
        "fn.grid_mask(fn.transpose(fn.cast(image, dtype=types.FLOAT), perm=[2, 0, 1]), tile=9, shift_y=2.5)",
    ),
    "rotate": (
        "fn.rotate(fn.cast(image, dtype=types.FLOAT), angle=90 * place, interp_type=types.INTERP_NN, fill_value=-8.5)",
        "fn.rotate(image, angle=90 * place, fill_value=0)", "fn.rotate(same, angle=90 * place, keep_size=True)"),
    "laplacian": (
        "fn.laplacian(image, window_size=[3, 5], smoothing_size=1, scale=[0.5, 0.25])",
        "fn.laplacian(same, dtype=types.FLOAT, normalized_kernel=True, window_size=7)",
        "fn.laplacian(fn.cast(image, dtype=types.FLOAT), scale=0.1 + place)",
    ),
    "filter": (
        "fn.filter(fn.cast(image, dtype=types.FLOAT), np.float32([[0.1, 0.2, -0.5], [0.3, 0.2, 0.1]]), border='edge')",
        "fn.filter(same, np.float32([[0.1, 0.2, -0.5], [0.3, 0.2, 0.1]]), anchor=[0, 2], border='wrap', dtype=types.FLOAT)",
    ),
    "gaussian_blur": (
        "fn.gaussian_blur(image, sigma=1.0 + place, dtype=types.FLOAT)", "fn.gaussian_blur(fn.cast(image, dtype=types.FLOAT), window_size=[3, 7])",
        "fn.gaussian_blur(image, sigma=1.0 + place)", "fn.gaussian_blur(same, window_size=5)"),
    "cast": ("fn.cast(image, dtype=types.FLOAT16)", "fn.cast(same, dtype=types.INT32)"),
    "erase": ("fn.erase(same, anchor=[3.0, 4.0], shape=fn.stack(5.0 + place, 6.0 + place), axis_names='HW')",
              "fn.erase(image, anchor=[3.0, 4.0, 20.0, 9.0], shape=[5.0, 60.0, 4.0, 8.0], fill_value=[7.0, 300.0, 9.0])",
              "fn.erase(image, anchor=[0.2], shape=[0.3], axis_names='W', normalized=True, fill_value=90 * place)"),
    "color_space_conversion": tuple(
        f"fn.color_space_conversion({data}, image_type=types.{a}, output_type=types.{b})"
        for data, a, b in (
            ("image", "RGB", "GRAY"), ("image", "BGR", "GRAY"), ("image", "RGB", "YCbCr"), ("image", "YCbCr", "BGR"), ("image", "RGB", "BGR"),
            ("image", "RGB", "RGB"), ("image[:, :, 0:1]", "GRAY", "RGB"), ("image[:, :, 0:1]", "GRAY", "YCbCr"),
        )
    ),
    "permute_batch": ("fn.permute_batch(image, indices=[2, 0, 0])",),
    "normalize": (
        "fn.normalize(image, batch=False)", "fn.normalize(same, axis_names='HW')",
        "fn.normalize(image, axis_names='HW', ddof=1, scale=64, shift=128, dtype=types.UINT8)",
        "fn.normalize(image[:, :, 0], axes=[1], epsilon=2.0)",
        "fn.normalize(fn.cast(image, dtype=types.INT16), axis_names='HW', mean=[[[9.0, 7.0, 300.0]]])",
        "fn.normalize(image, mean=90 * place, stddev=3.0)", "fn.normalize(image, mean=9.0, stddev=3.0, dtype=types.INT8)",
    ),
    "_normalize_batch": (
        "fn.normalize(image, batch=True)", "fn.normalize(same, batch=True, axis_names='HW')",
        "fn.normalize(image, batch=True, axis_names='HW', stddev=9.0)", "fn.normalize(image, batch=True, axis_names='HWC', ddof=3, mean=4.0)",
    ),
    "crop": (
        "fn.crop(fn.cast(image, dtype=types.FLOAT), crop=[60, 24], out_of_bounds_policy='pad', fill_values=[-3.5])",
        "fn.crop(image, crop=[20, 24], crop_pos_x=place)", "fn.crop(same, crop=[20, 24], crop_pos_y=place)"),
    "debayer": ("fn.debayer(mosaic, blue_position=[0, 0], algorithm='bilinear_ocv')",),
    "roi_random_crop": ("fn.roi_random_crop(image, crop_shape=[20, 20], roi_start=[5, 9], roi_end=[12, 13])",),
    "random_crop_generator": ("fn.random_crop_generator(sides, random_area=[0.3, 0.6])",),
    "element_extract": ("fn.element_extract(fn.reshape(image, layout='FHW'), element_map=[0, 30])",),
    **{f"random.{name}": (f"fn.random.{name}(shape=[3], device='gpu')",) for name in ("uniform", "normal", "coin_flip")},
    **{name: (f"fn.{name}(shape=[2, 3], device='gpu')",) for name in ("ones", "zeros")},
    "full": ("fn.full(7, shape=[2, 3], device='gpu')", "fn.full(numbers, shape=[2, 5])"),
    "constant": ("fn.constant(fdata=[1.0, 2.0, 3.0, 4.0], shape=[2, 2], device='gpu')",),
    "_to_device": ("image",),
    "slice": (
        "fn.slice(image, place, 0.2, axes=[0])",
        "fn.slice(same, rel_start=[0.5, 0.1], rel_end=[1.2, 1.3], out_of_bounds_policy='pad', fill_values=[9.0])",
        "fn.slice(image, start=start, shape=[20], axis_names='H', out_of_bounds_policy='trim_to_shape')",
    ),
    "pad": (
        "fn.pad(image)",
        "fn.pad(image, axis_names='W', align=16, fill_value=300 * place)", "fn.pad(image, axes=[2], shape=[4])"),
    "equalize": ("fn.equalize(same)",),
    "lookup_table": ("fn.lookup_table(image, keys=[7, 90], values=[1.5, 2.0], default_value=-1.0)",),
    "noise.gaussian": ("fn.noise.gaussian(same, stddev=90 * place, mean=5.0)",),
    "noise.salt_and_pepper": (
        "fn.noise.salt_and_pepper(image, prob=place, salt_vs_pepper=0.2 + place, per_channel=True)",
        "fn.noise.salt_and_pepper(same, prob=0.3, salt_val=200.0, pepper_val=33.4)",
    ),
    **{
        f"reductions.{name}": (f"fn.reductions.{name}(image)", f"fn.reductions.{name}(same, axis_names='HW', keep_dims=True)", f"fn.reductions.{name}(image, axes=[1])")
        for name in ("sum", "mean", "mean_square", "rms", "max", "min")
    },
    **{
        f"reductions.{name}": (
            f"fn.reductions.{name}(image, fn.reductions.mean(image))",
            f"fn.reductions.{name}(image, fn.reductions.mean(image, axes=[0, 1]), axes=[0, 1], ddof=1)",
        )
        for name in ("variance", "std_dev")
    },
    "uniform": ("fn.uniform(range=[0.0, 1.0], device='gpu')",),
}
"""More than the examples of the reference; and those for which the reference has none."""

OWN_CALLS = frozenset(
    ["crop", "debayer", "roi_random_crop", "random_crop_generator", "element_extract", "constant", "full", "ones", "zeros", "random.uniform", "random.normal", "random.coin_flip", "crop_mirror_normalize"]
)
"""Operators whose example is not for these data, or not for an accelerator."""

NOT_HERE = {
    "python_function": "calls the user's function with arrays of the CPU",
    "dl_tensor_python_function": "DLPack, which the pretence does not have",
    "experimental.debayer": "an old name",
    "experimental.audio_resample": "an old name",
    "experimental.equalize": "an old name",
    "experimental.filter": "an old name",
    "experimental.tensor_resize": "an old name",
    "fast_resize_crop_mirror": "an old name",
    "coin_flip": "an old name",
    "normal_distribution": "an old name",
    "uniform": "an old name",
    "math.mod": "an old name",
    "_auto_contrast": "of automatic augmentation, which runs on the CPU",
    "_contrast_around_mean": "of automatic augmentation, which runs on the CPU",
    "_solarize": "of automatic augmentation, which runs on the CPU",
    "_solarize_add": "of automatic augmentation, which runs on the CPU",
    "experimental.inflate": "takes compressed bytes, which its own tests make",
    "decoders.inflate": "takes compressed bytes, which its own tests make",
    "_merge": "branches are tested with the random graphs",
    "_choose": "branches are tested with the random graphs",
    "_shape": "looks at no data",
    "_row": "looks at no data",
    "_not": "conditions are on the CPU",
    "_logical": "conditions are on the CPU",
    "_case": "conditions are on the CPU",
}


def operators() -> list[str]:
    """Return the operators that may run on an accelerator."""
    return [name for name, o in registry.items() if "gpu" in o.options.devices and o.kind in ("sample", "batch")]


def calls(name: str) -> list[str]:
    """Return expressions that call an operator."""
    found = list(EXPRESSIONS.get(name, ()))
    if name in EXAMPLES and name not in OWN_CALLS:
        found.insert(0, EXAMPLES[name])
    return found


def images(same: bool = False, seed: int = 0) -> list[Any]:
    """Smooth pictures of about 40 x 50."""
    found = []
    for i in range(BATCH):
        h, w = (40, 50) if same else (40 + 5 * i, 50 - 3 * i)
        y, x = np.mgrid[0:h, 0:w].astype(np.float32) / 9
        rng = np.random.default_rng(seed + i)
        phases = rng.uniform(0, 6, 3).astype(np.float32)
        picture = 128 + 60 * np.sin(x[..., None] + phases) + 50 * np.cos(y[..., None] * phases)
        found.append((picture + rng.normal(0, 5, (h, w, 3))).clip(0, 255).astype(np.uint8))
    return found


def _namespace(device: str) -> dict[str, Any]:
    def node(values: Sequence[Any], layout: str = "", where: str = device) -> Any:
        found = fn.external_source(source=lambda: list(values), layout=layout or None)
        return found.gpu() if where == "gpu" else found

    rng = np.random.default_rng(3)
    y, x = np.mgrid[0:40, 0:50].astype(np.float32)
    boxes = np.float32([[0.5, 0.15, 0.8, 0.64], [0.0, 0.25, 0.45, 0.65]])
    sound = [np.sin(np.arange(900 + 50 * i) / (3 + i)).astype(np.float32) for i in range(BATCH)]
    return {
        "fn": fn, "types": types, "math": math, "np": np, "torch": torch,
        "image": node(images(), "HWC"),
        "same": node(images(same=True), "HWC"),
        "boxes": node([boxes] * BATCH),
        "labels": node([np.int32([1, 2])] * BATCH),
        "mosaic": node([im[:, :, 0][:38, :40].copy() for im in images()], "HW"),
        "mask": node([(im[..., 0] > 128).astype(np.int32) for im in images(True)], "HW"),
        "points": node([np.float32([[10, 20], [16, 5], [30, 9]])] * BATCH),
        "mapx": node([x + 3 * np.sin(y / 8)] * BATCH),
        "mapy": node([y + 3 * np.sin(x / 8)] * BATCH),
        "sound": node(sound),
        "numbers": node([np.float32([3, 1, 4, 1, 5])] * BATCH),
        "unit": node([rng.uniform(0.1, 0.9, 6).astype(np.float32) for _ in range(BATCH)]),
        "ints": node([np.int32([7, 12, 3, 1])] * BATCH),
        "sides": node([np.int64([40 + i, 50]) for i in range(BATCH)]),
        "shift": node([np.int32(1 + i) for i in range(BATCH)]),
        "start": node([np.int32(1 + i) for i in range(BATCH)], where="cpu"),
        "place": node([np.float32(0.3 * i) for i in range(BATCH)], where="cpu"),
        "flip": node([np.int32(i % 2) for i in range(BATCH)], where="cpu"),
        "folder": "",
    }  # fmt: skip


def run(call: str, device_id: int | str, batches: int = 2) -> tuple[list[Any], set[str]]:
    """Run a call in a pipeline with its data on the device.

    Returns:
        The outputs of the last batch, and the operators that ran on the device.
    """
    seen: set[str] = set()
    step: Callable[..., Any] = stages.run_step

    def noted(batch: Any, node: Any, *rest: Any) -> Any:
        if node.device == "gpu":
            seen.add(node.operator.name)
        return step(batch, node, *rest)

    pipe = Pipeline(BATCH, 1, device_id, seed=5)
    with pipe:
        results = eval(call, _namespace("gpu"))
        pipe.set_outputs(*results if isinstance(results, (list, tuple)) else [results])
    try:
        with mock.patch.object(stages, "run_step", noted):
            for _ in range(batches):
                outputs: Any = pipe.run()
        return list(outputs), seen
    finally:
        pipe.close()
