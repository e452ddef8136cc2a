"""Calls of every operator, as text. `values` defines the names in them; ``device`` is the device of the call.

One row per operator, for all tests of every operator (laws, gradients, graphs, a mock GPU), for the
benchmarks and for the reference (``docs/reference``), which shows the first call of a row as the operator's example. More
calls follow: one for each path through the implementation, and one on `small_floats` if there is a gradient.
`tests.test_calls` fails if an operator has no row.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

__all__ = ["BATCH", "CALLS", "FLOATS", "ON_PAGES", "calls", "images", "names_of", "small_floats", "values"]

BATCH = 3
MEAN = "mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0]"
TURN = "matrix=[0.9, 0.2, 0.3, -0.1, 1.1, 0.4]"
BENT = "matrix=[0.9, 0.1, 0.3, -0.1, 1.1, 0.2, 0.01, 0.02, 1.0]"
UNARY = ["fabs", "floor", "ceil", "sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]

CALLS: dict[str, tuple[str, ...]] = {
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
    "_subscript": ("same[3:30, :, 0]", "image[1:9, 2]", "image[-5:, :, 0]", "image[:, start : start + 4]"),
    "crop_mirror_normalize": (
        "fn.crop_mirror_normalize(image, crop=[112, 112], mirror=1, dtype=types.FLOAT, mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0])",
        "fn.crop_mirror_normalize(same)", "fn.crop_mirror_normalize(same, mean=place)", "fn.crop_mirror_normalize(same, mirror=1, std=[2.0])", "fn.crop_mirror_normalize(same, mean=[3.0], scale=0.5)", "fn.crop_mirror_normalize(same, crop=[20, 24], crop_pos_x=place, mirror=flip)", "fn.crop_mirror_normalize(same, dtype=types.UINT8)",
        f"fn.crop_mirror_normalize(image, crop=[20, 24], mirror=flip, dtype=types.FLOAT16, {MEAN})",
        f"fn.crop_mirror_normalize(same, mirror=flip, {MEAN})",
        f"fn.crop_mirror_normalize(fn.cast(image, dtype=types.FLOAT), mirror=flip, crop=[20, 24], {MEAN})",
        f"fn.crop_mirror_normalize(same, mirror=flip, output_layout='HWC', crop=[20, 24], crop_pos_x=place, {MEAN})",
        "fn.crop_mirror_normalize(image, crop=[90, 90], dtype=types.UINT8, out_of_bounds_policy='pad', fill_values=[7.0], pad_output=True)",
        *(f"fn.crop_mirror_normalize({data}, crop=[4, 5], mean=[0.4], std=[0.2], mirror=1)" for data in ("pixels", "planes")),
        "fn.crop_mirror_normalize(pixels, mean=[0.1, 0.2, 0.3], std=[1.0, 2.0, 0.5], output_layout='HWC', scale=2.0)",
        "fn.crop_mirror_normalize(pixels, crop=[8, 9], out_of_bounds_policy='pad', pad_output=True, std=[0.5])",
        "fn.crop_mirror_normalize(frames, output_layout='FCHW', mirror=1, std=[0.5])",
    ),
    "random_resized_crop": (
        "fn.random_resized_crop(image, size=[112, 112], random_area=[0.3, 0.6])",
        "fn.random_resized_crop(image, size=[24, 32], interp_type=types.INTERP_NN)",
        "fn.random_resized_crop(image, size=[24, 32])",
        "fn.random_resized_crop(image, size=[24, 32], interp_type=types.INTERP_CUBIC, antialias=False)",
        "fn.random_resized_crop(fn.cast(image, dtype=types.FLOAT), size=[24, 32])",
        "fn.random_resized_crop(pixels, size=[4, 5], seed=3)",
    ),
    "resize": (
        "fn.resize(image, size=[80, 200], interp_type=types.INTERP_CUBIC)",
        "fn.resize(image, resize_x=start)", "fn.resize(same, size=start)", "fn.resize(same, resize_x=-100, interp_type=types.INTERP_NN)",
        "fn.resize(image, size=[24, 32])",
        "fn.resize(same, resize_shorter=20.0 + 10 * place)",
        "fn.resize(image, size=[24, 32], interp_type=types.INTERP_NN)",
        "fn.resize(image, resize_x=-33, roi_start=[0.1, 0.2], roi_end=[0.9, 1.1], roi_relative=True, interp_type=types.INTERP_NN, dtype=types.FLOAT)",
        "fn.resize(fn.cast(same, dtype=types.FLOAT), size=[24, 132], interp_type=types.INTERP_NN)",
        "fn.resize(image, size=[24, 32], dtype=types.FLOAT, mode='not_smaller')",
        "fn.resize(fn.cast(image, dtype=types.FLOAT) * 3.7, resize_shorter=20.0 + 10 * place)",
        *(f"fn.resize({data}, size=[4, 5])" for data in ("pixels", "frames", "planes")),
        "fn.resize(pixels, size=[9, 10], interp_type=types.INTERP_CUBIC)", "fn.resize(pixels, resize_shorter=4, interp_type=types.INTERP_LANCZOS3)",
        "fn.resize(pixels, size=[3, 9], antialias=False, roi_start=[0.5, 1.0], roi_end=[5.5, 6.0])",
        "fn.resize(pixels, size=[9, 4], interp_type=types.INTERP_NN)", "fn.resize(volume, size=[3, 7, 4])",
    ),
    "paste": ("fn.paste(image, ratio=1.4, paste_x=0.2, paste_y=0.7, fill_value=[60, 80, 120])", "fn.paste(image, ratio=1.0 + place, min_canvas_size=47.5, paste_x=place, fill_value=[7])", "fn.paste(same, ratio=1.5, fill_value=[1, 2, 3])"),
    "multi_paste": (
        "fn.multi_paste(image, fn.resize(image, size=[80, 120]), out_anchors=[[0, 0], [70, 10]], output_size=[160, 240])",
        "fn.multi_paste(image, in_ids=[2, 0], output_size=[90, 80], out_anchors=[[5, 3], [20, 9]])",
        "fn.multi_paste(same, fn.flip(same), in_anchors_rel=[[0.1, 0.2], [0.3, 0.4]], shapes_rel=[[0.5, 0.5], [0.2, 0.3]], dtype=types.INT16)",
        "fn.multi_paste(fn.cast(image, dtype=types.FLOAT), fn.cast(same, dtype=types.FLOAT), output_size=[90, 80], shapes=[[9, 8], [7, 6]])",
        "fn.multi_paste(pixels, in_ids=[0, 0], output_size=[9, 10], out_anchors=[[0, 0], [3, 3]])",
    ),
    "experimental.warp_perspective": (
        "fn.experimental.warp_perspective(image, matrix=[1.0, 0.3, -20.0, 0.0, 1.2, -10.0, 0.0, 0.003, 1.0])",
        "fn.experimental.warp_perspective(image, matrix=[0.5, 0.1, 3, 0, 0.6, 2, 0.001, 0, 1], interp_type=types.INTERP_NN, pixel_origin='center', fill_value=[9, 80, 300])",
        "fn.experimental.warp_perspective(same, matrix=[0.5, 0.1, 3, 0, 0.6, 2, 0.001, 0, 1], interp_type=types.INTERP_CUBIC, inverse_map=False, border_mode='replicate')",
        "fn.experimental.warp_perspective(image, matrix=[1.5, 0.1, -9, 0, 1.6, -8, 0.001, 0, 1], size=[60, 50], border_mode='reflect_101')",
        "fn.experimental.warp_perspective(image, matrix=fn.stack(1.0 + place, place, place, place, 1.0 + place, place, 0.001 * place, 0.0 * place, 1.0), border_mode='wrap')",
        f"fn.experimental.warp_perspective(pixels, {BENT})", f"fn.experimental.warp_perspective(planes, {BENT})",
        *(f"fn.experimental.warp_perspective(pixels, {BENT}, {how})" for how in (
            "border_mode='wrap'", "border_mode='reflect_101'", "interp_type=types.INTERP_CUBIC", "interp_type=types.INTERP_NN", "fill_value=[0.1, 0.2, 0.3]",
        )),
    ),
    "cat": (
        'fn.cat(image, fn.flip(image), axis_name="W")',
        "fn.cat(same, same, axis=1)", "fn.cat(image, image, image, axis=2)", "fn.cat(fn.cast(image, dtype=types.FLOAT), fn.cast(image[3:9], dtype=types.FLOAT), axis=0)",
        "fn.cat(exact, ranks, axis=1)",
    ),
    "stack": (
        "fn.stack(image, fn.flip(image))",
        "fn.stack(image, image, image, axis=-1, axis_name='D')", "fn.stack(sound, sound)",
        "fn.stack(exact, ranks, axis=2)",
    ),
    "experimental.resize": ("fn.experimental.resize(image.gpu(), resize_shorter=80.0)", "fn.experimental.resize(image, size=[20, 30], interp_type=types.INTERP_NN)",),
    "spectrogram": (
        "fn.spectrogram(sound, window_length=256, window_step=128)",
        "fn.spectrogram(sound, window_length=100, window_step=30, nfft=128, layout='tf', power=1)",
        "fn.spectrogram(sound, window_length=2048, reflect_padding=False)",
        "fn.spectrogram(sound, window_length=64, window_step=100, center_windows=False, window_fn=[0.5] * 64)",
        *(f"fn.spectrogram(wave, window_length=6, window_step=3, power={power})" for power in (1, 2)),
        "fn.spectrogram(wave, window_length=6, window_step=3, nfft=8, center_windows=False)",
    ),
    "mel_filter_bank": (
        "fn.mel_filter_bank(fn.spectrogram(sound), sample_rate=8000.0, nfilter=40)",
        "fn.mel_filter_bank(fn.spectrogram(sound, layout='tf', window_length=64), nfilter=20)",
        "fn.mel_filter_bank(bands, nfilter=3, normalize=False)",
    ),
    "to_decibels": (
        "fn.to_decibels(fn.spectrogram(sound), cutoff_db=-80.0)",
        "fn.to_decibels(fn.spectrogram(sound), multiplier=20.0, reference=3.0)", "fn.to_decibels(sound)",
        "fn.to_decibels(bands, reference=1.0)",
    ),
    "mfcc": (
        "fn.mfcc(fn.to_decibels(fn.mel_filter_bank(fn.spectrogram(sound), sample_rate=8000.0)), n_mfcc=13)",
        "fn.mfcc(fn.spectrogram(sound, layout='tf', window_length=64), axis=1, n_mfcc=7, lifter=3.0)",
        "fn.mfcc(bands, n_mfcc=4, lifter=3.0)",
    ),
    "flip": (
        "fn.flip(image, horizontal=1, vertical=1)",
        "fn.flip(same, vertical=1, horizontal=0)", "fn.flip(same, horizontal=0)", "fn.flip(fn.cast(same, dtype=types.UINT16), horizontal=flip)",
        "fn.flip(fn.cast(image, dtype=types.FLOAT), horizontal=flip, vertical=1)",
        "fn.flip(image, horizontal=flip)", "fn.flip(same, vertical=flip, horizontal=1)",
        "fn.flip(pixels, horizontal=1, vertical=1)", "fn.flip(exact)",
    ),
    "color_twist": (
        "fn.color_twist(image, hue=60.0, saturation=1.5, contrast=1.2, brightness=0.9)",
        "fn.color_twist(same, hue=90 * place, brightness=0.5 + place, contrast=place)", "fn.color_twist(same, saturation=0.3)",
        "fn.color_twist(image, contrast=place)",
        "fn.color_twist(image, hue=90 * place, brightness=0.5 + place)", "fn.color_twist(same, saturation=place)",
        *(f"fn.color_twist({data}, brightness=1.2, contrast=0.8, hue=40.0, saturation=1.5)" for data in ("pixels", "frames")),
    ),
    "brightness_contrast": (
        "fn.brightness_contrast(image, brightness=1.2, contrast=1.5)",
        "fn.brightness_contrast(same, brightness=start, contrast=place)", "fn.brightness_contrast(same, brightness=1.3, contrast=0.7)",
        "fn.brightness_contrast(same, brightness=0.5 + place)",
        "fn.brightness_contrast(pixels, brightness=0.7, contrast=1.4, contrast_center=0.4)",
    ),
    "hsv": (
        "fn.hsv(image, hue=120.0, saturation=0.8, value=1.1)",
        "fn.hsv(same, hue=90 * place, saturation=place, value=1.1)",
        "fn.hsv(same, hue=start)", "fn.hsv(image, saturation=place)",
        "fn.hsv(image, hue=90 * place, saturation=place, value=0.5 + place)", "fn.hsv(same, value=1.5)",
        "fn.hsv(pixels, hue=30.0, saturation=0.5, value=1.2, dtype=types.FLOAT)",
    ),
    "hue": (
        "fn.hue(image, hue=90.0)",
        "fn.hue(same, hue=90 * place, dtype=types.FLOAT)",
        "fn.hue(image, hue=90 * place)", "fn.hue(same, hue=30.0)",
        "fn.hue(pixels, hue=120.0)",
    ),
    "saturation": (
        "fn.saturation(image, saturation=0.3)",
        "fn.saturation(same, saturation=place)",
        "fn.saturation(image, saturation=place)",
        "fn.saturation(pixels, saturation=0.3)",
    ),
    "brightness": (
        "fn.brightness(image, brightness=1.3, brightness_shift=0.1)",
        "fn.brightness(image, brightness=start)", "fn.brightness(same, brightness=0.9, brightness_shift=place)", "fn.brightness(fn.cast(same, dtype=types.INT16), brightness=place)", "fn.brightness(same, brightness=place, dtype=types.FLOAT)",
        "fn.brightness(image, brightness=0.5 + place, brightness_shift=0.1)", "fn.brightness(same, brightness=0.5 + place, brightness_shift=0.1)", "fn.brightness(fn.cast(image, dtype=types.FLOAT), brightness=2.0)",
        "fn.brightness(pixels, brightness=1.3, brightness_shift=0.1)",
    ),
    "contrast": (
        "fn.contrast(image, contrast=1.8, contrast_center=110.0)",
        "fn.contrast(same, contrast=place)", "fn.contrast(same, contrast=1.2, contrast_center=place)", "fn.contrast(fn.cast(same, dtype=types.FLOAT), contrast=start)",
        "fn.contrast(image, contrast=0.5 + place, contrast_center=90.0)", "fn.contrast(same, contrast=1.5, dtype=types.FLOAT)",
        "fn.contrast(pixels, contrast=0.6)",
    ),
    "warp_affine": (
        "fn.warp_affine(image, matrix=[1.0, 0.3, 0.0, 0.0, 1.2, -10.0], fill_value=0)",
        "fn.warp_affine(image, matrix=[0.5, 0.1, 3, 0, 0.6, 2], dtype=types.FLOAT, fill_value=300.0)",
        f"fn.warp_affine(pixels, {TURN})", f"fn.warp_affine(pixels, {TURN}, fill_value=0.5, size=[9, 5], inverse_map=False)",
        "fn.warp_affine(volume, matrix=[1, 0.1, 0, 0.2, 0, 1, 0.1, 0.3, 0.1, 0, 0.9, 0.1])",
    ),
    "water": (
        "fn.water(image, ampl_x=6.0, ampl_y=4.0, freq_x=0.08, freq_y=0.06)",
        "fn.water(image, ampl_x=5.5, phase_y=0.3, mask=flip)", "fn.water(fn.cast(same, dtype=types.FLOAT), interp_type=types.INTERP_LINEAR, fill_value=-3.5)",
        "fn.water(pixels, ampl_x=2.0, freq_x=0.7, interp_type=types.INTERP_LINEAR)", "fn.water(pixels, ampl_y=2.0, freq_y=0.7)",
    ),
    "sphere": (
        "fn.sphere(image)",
        "fn.sphere(image, mask=flip, fill_value=300.0)", "fn.sphere(fn.cast(image, dtype=types.FLOAT), interp_type=types.INTERP_LINEAR)",
        "fn.sphere(pixels, interp_type=types.INTERP_LINEAR)",
    ),
    "jitter": (
        "fn.jitter(image, nDegree=6)",
        "fn.jitter(image, nDegree=7, mask=flip, fill_value=90.0)", "fn.jitter(same, nDegree=300)", "fn.jitter(fn.cast(image, dtype=types.INT16))",
        "fn.jitter(pixels, nDegree=4, seed=3)",
    ),
    "experimental.median_blur": (
        "fn.experimental.median_blur(image, window_size=[7, 7])",
        "fn.experimental.median_blur(image, window_size=[5, 3])", "fn.experimental.median_blur(same, window_size=1 + 2 * start)",
        "fn.experimental.median_blur(ranks, window_size=[3, 3])",
    ),
    "clahe": (
        "fn.clahe(image, clip_limit=4.0, tiles_x=6, tiles_y=4)",
        "fn.clahe(same, clip_limit=0.0, tiles_x=5, tiles_y=5)", "fn.clahe(image[:, :, 0:1], clip_limit=3.0, tiles_x=4, tiles_y=3)",
        "fn.clahe(image, clip_limit=2.0, tiles_x=2, tiles_y=7, luma_only=False)",
    ),
    "jpeg_compression_distortion": ("fn.jpeg_compression_distortion(image, quality=8)", "fn.jpeg_compression_distortion(image, quality=20 * start)", "fn.jpeg_compression_distortion(same, quality=101)"),
    "grid_mask": (
        "fn.grid_mask(image, tile=32, ratio=0.4, angle=0.3)",
        "fn.grid_mask(image, tile=10 + start, ratio=0.4, angle=place, shift_x=90 * place)", "fn.grid_mask(mosaic, tile=8, angle=1.0)",
        "fn.grid_mask(fn.transpose(fn.cast(image, dtype=types.FLOAT), perm=[2, 0, 1]), tile=9, shift_y=2.5)",
        "fn.grid_mask(pixels, tile=3, angle=0.3)",
    ),
    "rotate": (
        "fn.rotate(image, angle=25.0, fill_value=0)",
        "fn.rotate(same, angle=start)",
        "fn.rotate(fn.cast(image, dtype=types.FLOAT), angle=90 * place, interp_type=types.INTERP_NN, fill_value=-8.5)",
        "fn.rotate(image, angle=90 * place, fill_value=0)", "fn.rotate(same, angle=90 * place, keep_size=True)",
        "fn.rotate(pixels, angle=30.0)", "fn.rotate(pixels, angle=-50.0, fill_value=0.5, keep_size=True)",
        "fn.rotate(pixels, angle=10.0, interp_type=types.INTERP_NN, fill_value=0.0)",
        "fn.rotate(frames, angle=30.0)", "fn.rotate(volume, angle=20.0, axis=[0.3, 0.4, 1.0])",
    ),
    "laplacian": (
        "fn.laplacian(image, window_size=3, scale=3.0)",
        "fn.laplacian(image, window_size=[3, 5], smoothing_size=1, scale=[0.5, 0.25])",
        "fn.laplacian(same, dtype=types.FLOAT, normalized_kernel=True, window_size=7)",
        "fn.laplacian(fn.cast(image, dtype=types.FLOAT), scale=0.1 + place)",
        "fn.laplacian(exact, window_size=[3])", "fn.laplacian(exact, window_size=[5], smoothing_size=[1], scale=[0.5])",
    ),
    "filter": (
        "fn.filter(image, types.Constant(np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)))",
        "fn.filter(fn.cast(image, dtype=types.FLOAT), np.float32([[0.1, 0.2, -0.5], [0.3, 0.2, 0.1]]), border='edge')",
        "fn.filter(same, np.float32([[0.1, 0.2, -0.5], [0.3, 0.2, 0.1]]), anchor=[0, 2], border='wrap', dtype=types.FLOAT)",
        "fn.filter(pixels, window, border='reflect_101')", "fn.filter(planes, window, mode='valid', anchor=[0, 1])", "fn.filter(pixels, window, place, border='constant')",
    ),
    "gaussian_blur": (
        "fn.gaussian_blur(image, sigma=2.5)",
        "fn.gaussian_blur(image, sigma=1.0 + place, dtype=types.FLOAT)", "fn.gaussian_blur(fn.cast(image, dtype=types.FLOAT), window_size=[3, 7])",
        "fn.gaussian_blur(image, sigma=1.0 + place)", "fn.gaussian_blur(same, window_size=5)",
        "fn.gaussian_blur(exact, window_size=[3, 5])", "fn.gaussian_blur(pixels, sigma=1.0, dtype=types.FLOAT)",
    ),
    "cast": (
        "fn.cast(image, dtype=types.FLOAT)",
        "fn.cast(image, dtype=types.FLOAT16)", "fn.cast(same, dtype=types.INT32)",
        "fn.cast(exact, dtype=types.FLOAT64)",
    ),
    "erase": (
        'fn.erase(image, anchor=[30.0, 20.0, 90.0, 140.0], shape=[40.0, 50.0, 40.0, 60.0], axis_names="HW", fill_value=[128.0])',
        "fn.erase(same, anchor=[3, 4, 20, 30], shape=[10, 5, 100, 9], fill_value=[1, 2, 3])", "fn.erase(same, shape=[20, 5], fill_value=[7])", "fn.erase(same)", "fn.erase(fn.cast(same, dtype=types.FLOAT), anchor=fn.stack(place, place), shape=[0.3, 0.3], axis_names='HW', normalized=True, fill_value=start)",
        "fn.erase(same, anchor=[3.0, 4.0], shape=fn.stack(5.0 + place, 6.0 + place), axis_names='HW')",
              "fn.erase(image, anchor=[3.0, 4.0, 20.0, 9.0], shape=[5.0, 60.0, 4.0, 8.0], fill_value=[7.0, 300.0, 9.0])",
              "fn.erase(image, anchor=[0.2], shape=[0.3], axis_names='W', normalized=True, fill_value=90 * place)",
        "fn.erase(pixels, anchor=[1.0, 2.0], shape=[2.0, 3.0], fill_value=0.5)", "fn.erase(exact, anchor=[1.0, 2.0], shape=[2.0, 3.0], axes=[0, 1])",
    ),
    "color_space_conversion": tuple(
        f"fn.color_space_conversion({data}, image_type=types.{a}, output_type=types.{b})"
        for data, a, b in (
            ("image", "RGB", "YCbCr"), ("image", "RGB", "GRAY"), ("image", "BGR", "GRAY"), ("image", "YCbCr", "BGR"), ("image", "RGB", "BGR"),
            ("same", "RGB", "BGR"), ("same", "RGB", "GRAY"), ("same", "RGB", "YCbCr"), ("same", "RGB", "RGB"),
            ("image", "RGB", "RGB"), ("image[:, :, 0:1]", "GRAY", "RGB"), ("image[:, :, 0:1]", "GRAY", "YCbCr"),
        )
    ),
    "permute_batch": (
        "fn.permute_batch(image, indices=fn.batch_permutation(no_fixed_points=True))",
        "fn.permute_batch(image, indices=[2, 0, 0])",
        "fn.permute_batch(exact, indices=[2, 0, 0])",
    ),
    "normalize": (
        'fn.normalize(image, axis_names="HW")',
        "fn.normalize(same, mean=100.0, stddev=50.0)", "fn.normalize(same, mean=place, stddev=start, dtype=types.UINT8, shift=9.0)",
        "fn.normalize(image, batch=False)", "fn.normalize(same, axis_names='HW')",
        "fn.normalize(image, axis_names='HW', ddof=1, scale=64, shift=128, dtype=types.UINT8)",
        "fn.normalize(image[:, :, 0], axes=[1], epsilon=2.0)",
        "fn.normalize(fn.cast(image, dtype=types.INT16), axis_names='HW', mean=[[[9.0, 7.0, 300.0]]])",
        "fn.normalize(image, mean=90 * place, stddev=3.0)", "fn.normalize(image, mean=9.0, stddev=3.0, dtype=types.INT8)",
        "fn.normalize(pixels, mean=0.4, stddev=0.3)", "fn.normalize(pixels, axes=[0, 1])",
        "fn.normalize(pixels, mean=0.5, scale=2.0, shift=0.1)",
    ),
    "_normalize_batch": (
        "fn.normalize(image, batch=True)", "fn.normalize(same, batch=True, axis_names='HW')",
        "fn.normalize(image, batch=True, axis_names='HW', stddev=9.0)", "fn.normalize(image, batch=True, axis_names='HWC', ddof=3, mean=4.0)",
        "fn.normalize(pixels, batch=True, ddof=1, epsilon=0.01)",
    ),
    "crop": (
        "fn.crop(image, crop=[112, 112], crop_pos_x=0.8, crop_pos_y=0.2)",
        "fn.crop(same, crop_w=start, crop_h=2)", "fn.crop(fn.cast(same, dtype=types.UINT16), crop=[20, 24], crop_pos_x=place, crop_pos_y=place)",
        "fn.crop(fn.cast(image, dtype=types.FLOAT), crop=[60, 24], out_of_bounds_policy='pad', fill_values=[-3.5])",
        "fn.crop(image, crop=[20, 24], crop_pos_x=place)", "fn.crop(same, crop=[20, 24], crop_pos_y=place)",
        *(f"fn.crop({data}, crop=[4, 5], crop_pos_x=0.2)" for data in ("pixels", "frames", "planes")),
        "fn.crop(exact, crop=[4, 5])", "fn.crop(pixels, crop=[8, 9], out_of_bounds_policy='pad', fill_values=[0.5])",
        "fn.crop(pixels, crop=[8, 9], out_of_bounds_policy='reflect_101')",
    ),
    "debayer": ("fn.debayer(mosaic, blue_position=[0, 0])", "fn.debayer(mosaic, blue_position=[0, 0], algorithm='bilinear_ocv')",),
    "roi_random_crop": ("fn.roi_random_crop(image, crop_shape=[80, 80], roi_start=[25, 139], roi_end=[102, 193])", "fn.roi_random_crop(image, crop_shape=[20, 20], roi_start=[5, 9], roi_end=[12, 13])",),
    "random_crop_generator": ("fn.random_crop_generator(image.shape(), random_area=[0.3, 0.6])", "fn.random_crop_generator(sides, random_area=[0.3, 0.6])",),
    "element_extract": (
        'fn.element_extract(fn.reshape(image, layout="FHW"), element_map=[0, 80])',
        "fn.element_extract(fn.reshape(image, layout='FHW'), element_map=[0, 30])",
        "fn.element_extract(exact_frames, element_map=[1])",
    ),
    "random.uniform": ("fn.random.uniform(range=[-15.0, 15.0])", "fn.random.uniform(shape=[3], device=device)"),
    "random.normal": ("fn.random.normal(mean=10.0, stddev=2.0, shape=[3])", "fn.random.normal(shape=[3], device=device)"),
    **{name: (f"fn.{name}(shape=[2, 3])", f"fn.{name}(shape=[2, 3], device=device)") for name in ("ones", "zeros")},
    "full": (
        "fn.full(7, shape=[2, 3])",
        "fn.full(7, shape=[2, 3], device=device)", "fn.full(numbers, shape=[2, 5])",
        "fn.full(wave, shape=[2, 20])",
    ),
    "constant": ("fn.constant(fdata=[1.0, 2.0, 3.0, 4.0], shape=[2, 2])", "fn.constant(fdata=[1.0, 2.0, 3.0, 4.0], shape=[2, 2], device=device)",),
    "_to_device": ("image",),
    "slice": (
        'fn.slice(image, rel_start=[0.5, 0.1], rel_end=[0.9, 0.7], axis_names="WH")',
        "fn.slice(same, start=[3, 9], shape=[30, 20])", "fn.slice(same, rel_start=fn.stack(place, 0.5 * place), rel_shape=[0.4, 0.5])", "fn.slice(same, fn.stack(0.5 * place, place), [0.5, 0.4], axis_names='HW')", "fn.slice(same, fn.stack(9 * place, place), [9, 20.0], axes=[1, 0], normalized_anchor=False, normalized_shape=False)", "fn.slice(fn.cast(same, dtype=types.INT16), start=start, shape=[20], axis_names='W')",
        "fn.slice(image, place, 0.2, axes=[0])",
        "fn.slice(same, rel_start=[0.5, 0.1], rel_end=[1.2, 1.3], out_of_bounds_policy='pad', fill_values=[9.0])",
        "fn.slice(image, start=start, shape=[20], axis_names='H', out_of_bounds_policy='trim_to_shape')",
        "fn.slice(pixels, start=[1, 2], shape=[3, 4], axes=[0, 1])", "fn.slice(exact, start=[1, 2], shape=[3, 4], axes=[0, 1])",
        "fn.slice(pixels, start=[-1, 2], end=[3, 9], axes=[0, 1], out_of_bounds_policy='pad')",
    ),
    "pad": (
        'fn.pad(image, axis_names="HW", shape=[200, 280], fill_value=90.0)',
        "fn.pad(image)",
        "fn.pad(image, axis_names='W', align=16, fill_value=300 * place)", "fn.pad(image, axes=[2], shape=[4])",
        "fn.pad(pixels, axes=[0, 1], align=[4, 4], fill_value=0.5)", "fn.pad(pixels, axes=[0], shape=[6])",
    ),
    "equalize": ("fn.equalize(image)", "fn.equalize(same)",),
    "lookup_table": (
        "fn.lookup_table(image, keys=list(range(256)), values=list(range(255, -1, -1)), dtype=types.UINT8)",
        "fn.lookup_table(same, keys=[3, 5], values=[1.5, 2.5], default_value=7.0)",
        "fn.lookup_table(image, keys=[7, 90], values=[1.5, 2.0], default_value=-1.0)",),
    "noise.gaussian": (
        "fn.noise.gaussian(image, stddev=25.0)",
        "fn.noise.gaussian(same, stddev=90 * place, mean=5.0)",
        "fn.noise.gaussian(pixels, stddev=0.2, mean=0.1, seed=3)",
    ),
    "noise.salt_and_pepper": (
        "fn.noise.salt_and_pepper(image, prob=0.05)",
        "fn.noise.salt_and_pepper(image, prob=place, salt_vs_pepper=0.2 + place, per_channel=True)",
        "fn.noise.salt_and_pepper(same, prob=0.3, salt_val=200.0, pepper_val=33.4)",
        "fn.noise.salt_and_pepper(pixels, prob=0.3, seed=3)",
    ),
    **{
        f"reductions.{name}": (f"fn.reductions.{name}({example})", f"fn.reductions.{name}(image)", f"fn.reductions.{name}(same, axis_names='HW', keep_dims=True)", f"fn.reductions.{name}(image, axes=[1])",
            f"fn.reductions.{name}({floats}, axes=[0, 1])", f"fn.reductions.{name}({floats}, keep_dims=True)")
        for name, example, floats in (
            ("sum", "image, axis_names=\"C\", keep_dims=True", "pixels"), ("mean", "image, axis_names=\"HW\"", "pixels"), ("mean_square", "numbers", "pixels"),
            ("rms", "numbers", "pixels"), ("max", "numbers", "apart"), ("min", "numbers", "apart"),
        )
    },
    **{
        f"reductions.{name}": (
            f"fn.reductions.{name}(numbers, fn.reductions.mean(numbers){more})",
            f"fn.reductions.{name}(image, fn.reductions.mean(image))",
            f"fn.reductions.{name}(image, fn.reductions.mean(image, axes=[0, 1]), axes=[0, 1], ddof=1)",
            f"fn.reductions.{name}(pixels, middle, axes=[0])",
        )
        for name, more in (("variance", ", ddof=1"), ("std_dev", ""))
    },
    "uniform": ("fn.uniform(range=[0.0, 1.0], device=device)",),
    "copy": (
        "fn.copy(image)",
        "fn.copy(same)", "fn.copy(fn.cast(same, dtype=types.FLOAT))",
        "fn.copy(exact)",
    ), "transpose": (
        "fn.transpose(image, perm=[1, 0, 2])",
        "fn.transpose(same, perm=[2, 0, 1])", "fn.transpose(fn.cast(same, dtype=types.INT16), perm=[1, 0, 2])",
        "fn.transpose(exact, perm=[2, 0, 1])",
    ),
    "segmentation.select_masks": ("fn.segmentation.select_masks(types.Constant(np.int32([1])), types.Constant(np.int32([[0, 0, 2], [1, 2, 4]])), types.Constant(np.float32([[0, 0], [1, 0], [5, 5], [6, 7]])))", "fn.segmentation.select_masks(chosen, polygons, vertices)", "fn.segmentation.select_masks(chosen, polygons, vertices, reindex_masks=True)"),
    "zeros_like": ("fn.zeros_like(image)", "fn.zeros_like(same, dtype=types.INT16)",), "ones_like": ("fn.ones_like(image, dtype=types.FLOAT)", "fn.ones_like(same)",),
    "random.coin_flip": ("fn.random.coin_flip(probability=0.3)", "fn.random.coin_flip(shape=[3], device=device)", "fn.random.coin_flip(probability=place, device=device)"),
    "resize_crop_mirror": ("fn.resize_crop_mirror(image, resize_shorter=120.0, crop=[112, 112], mirror=1)", "fn.resize_crop_mirror(pixels, size=[5, 8], crop=[4, 4], mirror=1)",),
    "tensor_resize": ('fn.tensor_resize(image, axis_names="HW", scales=[1.25, 0.5])', "fn.tensor_resize(pixels, sizes=[4, 9, 3])", "fn.tensor_resize(pixels, scales=[0.5], axes=[1], interp_type=types.INTERP_GAUSSIAN)",),
    "experimental.dilate": ("fn.experimental.dilate(image, mask_size=[5, 5])", "fn.experimental.dilate(ranks, mask_size=[3, 3], iterations=2)",),
    "experimental.erode": ("fn.experimental.erode(image, mask_size=[5, 5])", "fn.experimental.erode(ranks, mask_size=[2, 3], border_mode='reflect')",),
    "sequence_rearrange": ('fn.sequence_rearrange(fn.reshape(image, layout="FHW"), new_order=[2, 0, 0])', "fn.sequence_rearrange(exact_frames, new_order=[1, 0, 1])",),
    "experimental.remap": (
        "fn.experimental.remap(image, mapx, mapy)",
        "fn.experimental.remap(pixels, columns, rows)", "fn.experimental.remap(exact, columns, rows, pixel_origin='center')",
        "fn.experimental.remap(frames, columns, rows, interp=types.INTERP_CUBIC)",
    ),
    "coord_transform": ("fn.coord_transform(points, MT=fn.transforms.rotation(angle=25.0, center=[120.0, 80.0]))", "fn.coord_transform(spots, M=[0.9, 0.2, -0.1, 1.1, 0.4, 0.5], T=[1.0, 2.0, 3.0])", "fn.coord_transform(spots, MT=[0.9, 0.2, 0.3, -0.1, 1.1, 0.4])",),
    "coord_flip": ("fn.coord_flip(points, flip_x=1, center_x=120.0)", "fn.coord_flip(spots, flip_y=1)",),
    "bb_flip": ("fn.bb_flip(boxes, ltrb=True, horizontal=1)", "fn.bb_flip(sizes, horizontal=1, vertical=1)", "fn.bb_flip(sizes, ltrb=True)",),
    "box_encoder": ("fn.box_encoder(boxes, labels, anchors=[0.5, 0.1, 0.9, 0.7, 0.0, 0.3, 0.5, 0.7])", "fn.box_encoder(corners, labels, anchors=[0.5, 0.1, 0.9, 0.7, 0.0, 0.3, 0.5, 0.7])",),
    "cast_like": ("fn.cast_like(image, numbers)", "fn.cast_like(exact, ranks)",),
    "bbox_paste": ("fn.bbox_paste(boxes, ltrb=True, ratio=1.4, paste_x=0.2, paste_y=0.7)", "fn.bbox_paste(sizes, ratio=2.0, paste_x=0.3)",),
    "bbox_rotate": ('fn.bbox_rotate(boxes, labels, angle=25.0, input_shape=image.shape(), bbox_layout="xyXY", shape_layout="HWC")', "fn.bbox_rotate(sizes, angle=20.0, input_shape=[60, 80], bbox_layout='xyWH', remove_threshold=0.0)",),
    "power_spectrum": ("fn.power_spectrum(sound)", "fn.power_spectrum(wave)",),
    "audio_resample": ("fn.audio_resample(sound, in_rate=8000.0, out_rate=16000.0)", "fn.audio_resample(wave, scale=1.5)", "fn.audio_resample(stereo, scale=1.23457)",),
    "preemphasis_filter": ("fn.preemphasis_filter(sound, preemph_coeff=0.9)", *(f"fn.preemphasis_filter(exact, border='{border}', dtype=types.FLOAT64)" for border in ("zero", "clamp", "reflect")),),
    "expand_dims": ('fn.expand_dims(image, axes=[0], new_axis_names="F")', "fn.expand_dims(exact, axes=[1])",),
    "reinterpret": ("fn.reinterpret(numbers, dtype=types.UINT8)", "fn.reinterpret(exact, layout='XYZ')",),
    "reshape": ('fn.reshape(image, shape=[-1, 3], layout="XC")', "fn.reshape(exact, shape=[15, 6])",),
    "squeeze": ("fn.squeeze(fn.expand_dims(image, axes=[0]), axes=[0])", "fn.squeeze(exact, axes=[])",),
    "cache": ('fn.cache(fn.decoders.image(fn.readers.file(file_root=folder)[0]), bytes="1GB")',),
    "decoders.image": ("fn.decoders.image(jpeg, output_type=types.GRAY)",),
    "decoders.image_crop": ("fn.decoders.image_crop(jpeg, crop=[112, 112], crop_pos_x=0.8)",),
    "decoders.image_random_crop": ("fn.decoders.image_random_crop(jpeg, random_area=[0.3, 0.6])",),
    "decoders.image_slice": ('fn.decoders.image_slice(jpeg, rel_start=[0.5, 0.1], rel_end=[0.9, 0.7], axis_names="WH")',),
    "noise.shot": ("fn.noise.shot(image, factor=15.0)",),
    "python_function": ("fn.python_function(image, function=lambda x: 255 - x)",),
    "ssd_random_crop": ("fn.ssd_random_crop(image, boxes, labels, num_attempts=10, seed=4)",),
    "torch_python_function": ("fn.torch_python_function(image, function=lambda x: x.flip(-1))",),
    "batch_permutation": ("fn.batch_permutation(no_fixed_points=True)",),
    "decoders.audio": ("fn.decoders.audio(wav, sample_rate=16000.0, downmix=True)",),
    "decoders.video": ("fn.decoders.video(film, start_frame=2, sequence_length=3, stride=4)",),
    "decoders.numpy": ('fn.decoders.numpy(fn.io.file.read(np.frombuffer(f"{folder}/numbers.npy".encode(), np.uint8)))',),
    "dl_tensor_python_function": ("fn.dl_tensor_python_function(image, function=lambda batch: batch)",),
    "dump_image": ('fn.dump_image(image, suffix="seen")',),
    "decoders.inflate": ('fn.decoders.inflate(np.frombuffer(b"Phello", np.uint8), shape=[5])',),
    "experimental.inputs.video": ('fn.experimental.inputs.video(name="camera", sequence_length=3)',),
    "experimental.readers.fits": ('fn.experimental.readers.fits(files=[f"{folder}/stars.fits"], hdu_indices=[1])',),
    "experimental.readers.video": ('fn.experimental.readers.video(filenames=[f"{folder}/film.gif"], sequence_length=3, enable_timestamps=True)',),
    "external_source": ("fn.external_source(source=lambda: [np.zeros(3), np.ones(3)])",),
    "full_like": ("fn.full_like(image, 7)",),
    "get_property": ('fn.get_property(image, key="layout")',),
    "io.file.read": ('fn.io.file.read(np.frombuffer(f"{folder}/class0/image.jpg".encode(), np.uint8))',),
    "nonsilent_region": ("fn.nonsilent_region(sound, window_length=256)",),
    "one_hot": ("fn.one_hot(labels, num_classes=4)",),
    "optical_flow": ('fn.optical_flow(fn.stack(image, fn.rotate(image, angle=2.0, keep_size=True), axis_name="F").gpu())',),
    "peek_image_shape": ("fn.peek_image_shape(jpeg)",),
    "per_frame": ("fn.per_frame(numbers)",),
    "random.beta": ("fn.random.beta(alpha=2.0, beta=5.0)",),
    "random.choice": ("fn.random.choice(numbers, shape=[2])",),
    "random_bbox_crop": ('fn.random_bbox_crop(boxes, labels, bbox_layout="xyXY", thresholds=[0.1, 0.5], scaling=[0.3, 1.0])',),
    "readers.caffe": ('fn.readers.caffe(path=f"{folder}/caffe")',),
    "readers.caffe2": ('fn.readers.caffe2(path=f"{folder}/caffe2", label_type=0)',),
    "readers.coco": ('fn.readers.coco(file_root=folder, annotations_file=f"{folder}/annotations.json", ratio=True)',),
    "readers.file": ("fn.readers.file(file_root=folder, random_shuffle=True)",),
    "readers.numpy": ("fn.readers.numpy(file_root=folder, roi_shape=[2])",),
    "readers.sequence": ("fn.readers.sequence(file_root=folder, sequence_length=1)",),
    "readers.mxnet": ('fn.readers.mxnet(path=f"{folder}/images.rec")',),
    "readers.mixture": ("fn.readers.mixture(sources=[WeightedReader(fn.readers.file, repeat=2, file_root=folder)], random_shuffle=True)",),
    "readers.stream": ("fn.readers.stream(dataset=[(1, 2.5), (3, 4.5)])",),
    "readers.mds": ('fn.readers.mds(path=f"{folder}/mds", columns=["image", "label"])["label"]',),
    "readers.table": ('fn.readers.table(paths=[f"{folder}/images.parquet"], columns=["image", "label"])["label"]',),
    "readers.nemo_asr": ('fn.readers.nemo_asr(manifest_filepaths=f"{folder}/manifest.json", sample_rate=16000.0)',),
    "readers.dataset": ("fn.readers.dataset(dataset=[(1, 2.5), (3, 4.5)])",),
    "readers.tfrecord": ('fn.readers.tfrecord(path=f"{folder}/images.tfrecord", features={"image": tfrecord.FixedLenFeature((), tfrecord.string, "")})["image"]',),
    "readers.video": ('fn.readers.video(filenames=[f"{folder}/film.gif"], sequence_length=3, labels=[1])',),
    "readers.video_resize": ('fn.readers.video_resize(filenames=[f"{folder}/film.gif"], sequence_length=3, resize_shorter=40.0)',),
    "readers.webdataset": ('fn.readers.webdataset(paths=f"{folder}/images.tar", ext=["jpg", "cls"])',),
    "segmentation.random_mask_pixel": ("fn.segmentation.random_mask_pixel(mask, foreground=1)",),
    "segmentation.random_object_bbox": ('fn.segmentation.random_object_bbox(mask, format="start_end", foreground_prob=0.9)',),
    "shapes": ("fn.shapes(image)",),
    "transforms.combine": ("fn.transforms.combine(fn.transforms.scale(scale=[2.0, 2.0]), fn.transforms.rotation(angle=25.0))",),
    "transforms.crop": ("fn.transforms.crop(from_end=[240.0, 160.0], to_end=[1.0, 1.0])",),
    "transforms.rotation": ("fn.transforms.rotation(angle=25.0, center=[120.0, 80.0])",),
    "transforms.scale": ("fn.transforms.scale(scale=[2.0, 0.5])",),
    "transforms.shear": ("fn.transforms.shear(angles=[10.0, 0.0])",),
    "transforms.translation": ("fn.transforms.translation(offset=[30.0, -10.0])",),
}
"""Rows: the example of each public operator in the reference, then other calls; those on names of `small_floats` come last."""

ON_PAGES = frozenset(
    ["crop", "debayer", "roi_random_crop", "random_crop_generator", "element_extract", "constant", "full", "ones", "zeros", "random.uniform", "random.normal", "random.coin_flip", "crop_mirror_normalize"]
)
"""Operators whose example is for the reference alone, as its image is larger, or it has no device."""


def calls(name: str) -> tuple[str, ...]:
    """Return the calls of an operator on `values`."""
    return CALLS.get(name, ())[name in ON_PAGES :]


def images(same: bool = False, seed: int = 0) -> list[Any]:
    """Return smooth images of about 40 x 50 pixels."""
    found = []
    for i in range(BATCH):
        h, w = (40, 50) if same else (40 + 5 * i, 50 - 3 * i)
        y, x = np.mgrid[0:h, 0:w].astype(np.float32) / 9
        rng = np.random.default_rng(seed + i)
        phases = rng.uniform(0, 6, 3).astype(np.float32)
        picture = 128 + 60 * np.sin(x[..., None] + phases) + 50 * np.cos(y[..., None] * phases)
        found.append((picture + rng.normal(0, 5, (h, w, 3))).clip(0, 255).astype(np.uint8))
    return found


def small_floats() -> dict[str, tuple[list[Any], str]]:
    """Return the inputs of gradient checks, between 0.1 and 0.9: samples and layout of each name."""
    rng, single, double = np.random.default_rng(7), np.float32, np.float64
    kinds: dict[str, tuple[tuple[int, ...], str, Any]] = {
        "pixels": ((5, 6, 3), "HWC", single), "exact": ((5, 6, 3), "HWC", double), "frames": ((2, 4, 5, 3), "FHWC", single),
        "exact_frames": ((2, 4, 5, 3), "FHWC", double), "planes": ((3, 5, 6), "CHW", single), "volume": ((3, 4, 5, 2), "DHWC", single),
        "wave": ((20,), "t", single), "stereo": ((20, 2), "tc", single), "bands": ((9, 4), "ft", single), "spots": ((5, 2), "", single),
        "sizes": ((5, 4), "", single),
    }  # fmt: skip
    ranks = [rng.permutation(90).reshape(5, 6, 3) / 90 for _ in range(BATCH)]  # order statistics have no gradient if two are equal
    return {name: ([rng.uniform(0.1, 0.9, shape).astype(kind) for _ in range(BATCH)], layout) for name, (shape, layout, kind) in kinds.items()} | {
        "ranks": (ranks, "HWC"), "apart": ([each.astype(single) for each in ranks], "HWC"),
        "corners": ([np.sort(rng.uniform(0.1, 0.9, (2, 2, 2)), 1).reshape(2, 4).astype(single) for _ in range(BATCH)], ""),
    }


def names_of(call: str) -> set[str]:
    """Return the names in a call that may refer to values."""
    return set(re.findall(r"(?<![.\w])\w+\b(?!=)", call))


def _float_calls() -> dict[str, tuple[str, ...]]:
    names = small_floats().keys()
    found = {name: tuple(call for call in row if names_of(call) & names) for name, row in CALLS.items()}
    return {name: row for name, row in found.items() if row}


FLOATS = _float_calls()
"""Calls on small floats, whose gradients `tests.ops.test_gradients` checks; the laws hold for them, too."""


def values() -> dict[str, tuple[list[Any], str]]:
    """Return samples and layout of each name: small images of several sizes and of one size, and their parameters."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[0:40, 0:50].astype(np.float32)
    boxes = np.float32([[0.5, 0.15, 0.8, 0.64], [0.0, 0.25, 0.45, 0.65]])
    samples: dict[str, list[Any]] = {
        "boxes": [boxes] * BATCH,
        "labels": [np.int32([1, 2])] * BATCH,
        "points": [np.float32([[10, 20], [16, 5], [30, 9]])] * BATCH,
        "mapx": [x + 3 * np.sin(y / 8)] * BATCH,
        "mapy": [y + 3 * np.sin(x / 8)] * BATCH,
        "sound": [np.sin(np.arange(900 + 50 * i) / (3 + i)).astype(np.float32) for i in range(BATCH)],
        "numbers": [np.float32([3, 1, 4, 1, 5])] * BATCH,
        "unit": [rng.uniform(0.1, 0.9, 6).astype(np.float32) for _ in range(BATCH)],
        "ints": [np.int32([7, 12, 3, 1])] * BATCH,
        "sides": [np.int64([40 + i, 50]) for i in range(BATCH)],
        "shift": [np.int32(1 + i) for i in range(BATCH)],
        "start": [np.int32(1 + i) for i in range(BATCH)],
        "place": [np.float32(0.3 * i) for i in range(BATCH)],
        "flip": [np.int32(i % 2) for i in range(BATCH)],
        "chosen": [np.int32([1]), np.int32([1, 0]), np.int32([0])],
        "polygons": [np.int32([[0, 0, 2], [1, 2, 4]])] * BATCH,
        "vertices": [np.float32([[0, 0], [1, 0], [5, 5], [6, 7 + i]]) for i in range(BATCH)],
        "window": [np.float32([[0.1, -0.2, 0.3], [0.4, 0.5, -0.6]])] * BATCH,
        "columns": [np.tile(np.linspace(0.7, 4.9, 4, dtype=np.float32), (3, 1))] * BATCH,
        "rows": [np.tile(np.linspace(0.3, 3.6, 3, dtype=np.float32)[:, None], (1, 4))] * BATCH,
        "middle": [np.full((1, 6, 3), 0.5, np.float32)] * BATCH,
    }
    return {
        "image": (images(), "HWC"), "same": (images(same=True), "HWC"),
        "mosaic": ([im[:, :, 0][:38, :40].copy() for im in images()], "HW"),
        "mask": ([(im[..., 0] > 128).astype(np.int32) for im in images(True)], "HW"),
        **{name: (given, "") for name, given in samples.items()}, **small_floats(),
    }  # fmt: skip
