"""Random calls of operators: layouts, dtypes, ragged batches, constants and per-sample values, valid and invalid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.check import Array

Rng = np.random.Generator
Batch = tuple[list[Array], str]
Make = Callable[[Rng], Batch]
SAMPLES = 3


@dataclass(frozen=True)
class Each:
    """Values of an argument, one array per sample."""

    samples: list[Array]


@dataclass(frozen=True)
class Member:
    """A member of ``types``."""

    name: str


@dataclass(frozen=True)
class Call:
    """One call: an operator on batches, or an expression of the nodes ``a``, ``b`` and ``c``."""

    seed: int
    name: str
    inputs: Sequence[Batch] = ()
    arguments: dict[str, Any] = field(default_factory=dict)
    expression: str = ""
    runs: int = 1


class Draw(NamedTuple):
    """A function that draws a value, and the dtype of a tensor of these values; None: constants only."""

    of: Callable[[Rng], Any]
    kind: str | None = None


class Spec(NamedTuple):
    """Inputs and arguments of an operator; those in ``needed`` are rarely omitted."""

    inputs: Sequence[Make]
    arguments: dict[str, Draw]
    needed: Sequence[str] = ()


def pick(rng: Rng, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def number(low: float, high: float, digits: int = 2) -> Draw:
    return Draw(lambda rng: float(round(rng.uniform(low, high), digits)), "float32")


def whole(low: int, high: int) -> Draw:
    return Draw(lambda rng: int(rng.integers(low, high + 1)), "int32")


def listed(draw: Draw, *lengths: int) -> Draw:
    return Draw(lambda rng: [draw.of(rng) for _ in range(pick(rng, lengths))], draw.kind)


def constant(draw: Draw) -> Draw:
    """Return the same, but never per-sample values."""
    return Draw(draw.of)


def one_of(*values: Any) -> Draw:
    return Draw(lambda rng: pick(rng, values))


def members(names: str) -> Draw:
    return one_of(*map(Member, names.split()))


def array(rng: Rng, shape: tuple[int, ...], kind: str) -> Array:
    if kind.startswith("float"):
        return (rng.normal(size=shape) * 20).astype(kind)
    low = 0 if kind.startswith(("u", "b")) else -100
    return rng.integers(low, 2 if kind == "bool" else 200, shape).astype(kind)


EXTENTS = {"F": 4, "D": 5}  # upper limit of these axes' extents; the limit of others is 25


def images(layouts: str, kinds: str = "uint8 uint8 float32 int16", channels: str = "1334") -> Make:
    """Draw images, volumes or sequences of any sizes; ``-`` are images of three axes without a layout."""

    def draw(rng: Rng) -> Batch:
        layout, kind = pick(rng, layouts.split()).strip("-"), pick(rng, kinds.split())
        count = int(pick(rng, channels))

        def extent(axis: str) -> int:
            return count if axis == "C" else int(rng.integers(1, EXTENTS.get(axis, 25)))

        shapes = [tuple(map(extent, layout or "HWC")) for _ in range(SAMPLES)]
        return [array(rng, shape, kind) for shape in shapes], layout

    return draw


def arrays(kinds: str = "float32 uint8 int32 int16", axes: str = "1234", most: int = 6, least: int = 1) -> Make:  # fmt: skip
    """Draw arrays of one number of axes, with and without a layout."""

    def draw(rng: Rng) -> Batch:
        count, kind = int(pick(rng, axes)), pick(rng, kinds.split())
        shapes = rng.integers(least, most + 1, (SAMPLES, count)).tolist()
        layout = pick(rng, ("", "", "HWC"[:count] if count < 4 else "FHWC", "ABCD"[:count]))
        return [array(rng, tuple(shape), kind) for shape in shapes], layout

    return draw


def floats(*shape: int) -> Make:
    """Draw arrays of one shape."""
    return lambda rng: ([*rng.uniform(-2, 2, (SAMPLES, *shape)).astype(np.float32)], "")


def boxes(rng: Rng) -> Batch:
    starts = [rng.uniform(0, 0.5, (rng.integers(0, 5), 2)) for _ in range(SAMPLES)]
    ends = [start + rng.uniform(0.01, 0.5, start.shape) for start in starts]
    return [np.hstack(pair).astype(np.float32) for pair in zip(starts, ends, strict=True)], ""


BOOL = one_of(True, False)
ANY = members("UINT8 INT16 INT32 FLOAT FLOAT16 INT8 UINT16 INT64 BOOL FLOAT64")
TYPE = members("UINT8 FLOAT INT16 INT32")
FILTER = members(
    "INTERP_NN INTERP_LINEAR INTERP_CUBIC INTERP_TRIANGULAR INTERP_LANCZOS3 INTERP_GAUSSIAN"
)
WARPED = members("INTERP_NN INTERP_LINEAR")
AXES = constant(listed(whole(-4, 3), 0, 1, 1, 2, 2, 3))
NAMES = one_of("H", "HW", "W", "C", "WH", "D", "F", "A", "AB", "")
PICTURE = images("HWC HWC CHW FHWC HW -")
VOLUME = images("HWC HWC FHWC DHWC HW CHW -")
FILL = listed(number(0, 200), 1, 3)
CROP = {
    "crop": listed(number(1, 30, 0), 2, 2, 2, 3, 1), "crop_pos_x": number(-0.1, 1.1), "crop_pos_y": number(0, 1),
    "rounding": one_of("round", "truncate", "x"), "out_of_bounds_policy": one_of("pad", "trim_to_shape", "error"),
    "fill_values": FILL, "dtype": members("UINT8 FLOAT"),
}  # fmt: skip
REDUCED = {"axes": AXES, "axis_names": NAMES, "keep_dims": BOOL}
LEVELS = {"dtype": TYPE, "brightness": number(0, 3), "brightness_shift": number(-1, 1)}
CONTRAST = {"dtype": TYPE, "contrast": number(0, 3), "contrast_center": number(0, 200)}
COLORS = {"dtype": TYPE, "hue": number(-180, 180), "saturation": number(0, 3)}
MATRIX = {"center": listed(number(-9, 9), 2, 3), "reverse_order": BOOL}
SHAPES = {
    "shape": listed(one_of(-1, 2, 1, 4), 1, 2, 3),
    "layout": one_of("AB", "H", "", "ABC"),
    "src_dims": constant(listed(whole(-1, 3), 1, 2, 3)),
}
SPECS: dict[str, Spec] = {
    "audio_resample": Spec([arrays("float32 int16", "12", 60)], {"scale": number(0.2, 3), "out_length": constant(whole(1, 90)), "quality": one_of(0.0, 50.0, 100.0, 101.0), "dtype": TYPE}),
    "bb_flip": Spec([boxes], {"horizontal": whole(0, 1), "vertical": whole(0, 1), "ltrb": BOOL}),
    "brightness": Spec([VOLUME], LEVELS),
    "brightness_contrast": Spec([VOLUME], LEVELS | CONTRAST),
    "cast": Spec([arrays("float32 uint8 int32 bool int64 float16")], {"dtype": ANY}, ["dtype"]),
    "cat": Spec([arrays(), arrays()], {"axis": constant(whole(-4, 4)), "axis_name": one_of("H", "C", "A")}),
    "color_space_conversion": Spec([images("HWC FHWC", "uint8", "331")], {"image_type": members("RGB BGR GRAY YCbCr"), "output_type": members("RGB BGR GRAY YCbCr")}, ["image_type", "output_type"]),
    "color_twist": Spec([images("HWC FHWC CHW", channels="3")], COLORS | {"brightness": number(0, 3), "contrast": number(0, 3)}),
    "contrast": Spec([VOLUME], CONTRAST),
    "coord_flip": Spec([floats(4, 2), ], {"flip_x": whole(0, 1), "flip_y": whole(0, 1), "center_x": number(0, 1), "layout": one_of("x", "xy", "yx", "xyz")}),
    "crop": Spec([VOLUME], CROP, ["crop"]),
    "crop_mirror_normalize": Spec([PICTURE], CROP | {"mean": listed(number(0, 128), 1, 3), "std": listed(number(1, 90), 1, 3), "mirror": whole(0, 1), "output_layout": one_of("CHW", "HWC", "FCHW", "HW"), "pad_output": BOOL, "scale": number(0.5, 2), "shift": number(-9, 9), "dtype": members("FLOAT FLOAT16 UINT8")}),
    "equalize": Spec([images("HWC HW FHWC CHW", "uint8")], {}),
    "erase": Spec([VOLUME], {"anchor": listed(number(0, 12), 1, 2, 2), "shape": listed(number(1, 10), 1, 2, 2), "axis_names": one_of("HW", "W", "C"), "fill_value": FILL, "normalized": BOOL, "centered_anchor": BOOL}, ["anchor", "shape"]),
    "expand_dims": Spec([arrays()], {"axes": AXES, "new_axis_names": one_of("A", "N", "XY", "ABC")}, ["axes"]),
    "filter": Spec([images("HWC HW FHWC"), floats(3, 5)], {"border": one_of("reflect_101", "reflect_1001", "edge", "wrap", "clamp", "fill"), "mode": one_of("same", "valid"), "dtype": members("FLOAT")}),
    "flip": Spec([VOLUME], {"horizontal": whole(0, 1), "vertical": whole(0, 1), "depthwise": whole(0, 1)}),
    "gaussian_blur": Spec([VOLUME], {"sigma": listed(number(0, 4), 1, 1, 2, 3), "window_size": listed(whole(0, 9), 1, 1, 2), "dtype": members("FLOAT")}, ["sigma"]),
    "grid_mask": Spec([images("HWC")], {"angle": number(-3, 3), "ratio": number(0, 1), "shift_x": number(-9, 9), "tile": whole(1, 30)}),
    "hsv": Spec([images("HWC FHWC CHW", channels="3")], COLORS | {"value": number(0, 3)}),
    "laplacian": Spec([VOLUME], {"window_size": listed(whole(1, 9), 1, 2), "smoothing_size": listed(whole(1, 9), 1, 2), "scale": number(0, 2), "normalized_kernel": BOOL, "dtype": members("FLOAT")}),
    "lookup_table": Spec([arrays("uint8 int32 int16 float32")], {"keys": constant(listed(whole(0, 200), 3)), "values": constant(listed(number(0, 99), 3)), "default_value": constant(number(0, 9)), "dtype": ANY}, ["keys", "values"]),
    "mel_filter_bank": Spec([arrays("float32", "223", 40)], {"freq_high": constant(number(1000, 9000, 0)), "mel_formula": one_of("slaney", "htk"), "nfilter": constant(whole(1, 20)), "normalize": BOOL, "sample_rate": constant(number(8000, 44100, 0))}),
    "normalize": Spec([arrays()], {"axes": AXES, "axis_names": NAMES, "batch": BOOL, "ddof": constant(whole(0, 2)), "epsilon": constant(number(0, 1)), "mean": constant(number(0, 90)), "stddev": constant(number(0.1, 50)), "scale": constant(number(0.5, 60))}),
    "one_hot": Spec([arrays("int32 uint8 int64", "12")], {"axis": constant(whole(-3, 3)), "axis_name": one_of("C", "O"), "num_classes": constant(whole(1, 12)), "on_value": constant(number(1, 9)), "dtype": ANY}),
    "pad": Spec([arrays()], {"align": listed(whole(1, 8), 1, 2), "axes": AXES, "axis_names": NAMES, "fill_value": constant(number(-9, 99)), "shape": listed(whole(-1, 9), 1, 2, 3)}),
    "permute_batch": Spec([arrays()], {"indices": constant(listed(whole(-1, 3), 3))}, ["indices"]),
    "power_spectrum": Spec([arrays("float32", "12", 40)], {"axis": constant(whole(-2, 2)), "nfft": constant(whole(1, 60)), "power": one_of(1, 2, 3)}),
    "preemphasis_filter": Spec([arrays("float32 int16", "12", 40, 2)], {"border": one_of("clamp", "zero", "reflect", "x"), "preemph_coeff": number(0, 1), "dtype": members("FLOAT")}),
    "random.uniform": Spec([], {"range": Draw(lambda rng: sorted(rng.uniform(-9, 9, 2).round(2).tolist()), "float32"), "values": listed(number(0, 9), 1, 3), "shape": listed(whole(0, 4), 1, 2), "dtype": ANY}),
    "random_resized_crop": Spec([PICTURE], {"size": listed(whole(1, 20), 1, 2), "interp_type": FILTER, "antialias": BOOL}, ["size"]),
    "reductions.max": Spec([arrays()], REDUCED),
    "reductions.mean": Spec([arrays()], REDUCED | {"dtype": members("FLOAT")}),
    "reductions.std_dev": Spec([arrays("float32 int16", "2", least=2), floats()], {"ddof": constant(whole(0, 1)), "keep_dims": BOOL}),
    "reductions.sum": Spec([arrays()], REDUCED | {"dtype": members("FLOAT INT64 INT32")}),
    "reinterpret": Spec([arrays(most=4)], {**SHAPES, "dtype": members("UINT8 INT16 FLOAT INT32")}),
    "reshape": Spec([arrays(most=4)], SHAPES),
    "resize": Spec([PICTURE], {"size": listed(number(1, 40, 1), 1, 2, 2, 3), "mode": one_of("default", "stretch", "not_larger", "not_smaller"), "max_size": listed(number(5, 60, 0), 1, 2), "interp_type": FILTER, "min_filter": FILTER, "antialias": BOOL, "subpixel_scale": BOOL, "dtype": members("FLOAT")}, ["size"]),
    "resize_shorter": Spec([PICTURE], {"resize_shorter": number(1, 40, 1), "max_size": number(5, 60, 0), "interp_type": FILTER}, ["resize_shorter"]),
    "rotate": Spec([images("HWC FHWC HW DHWC")], {"angle": number(-200, 200), "fill_value": constant(number(0, 200)), "interp_type": WARPED, "keep_size": BOOL, "axis": listed(number(-1, 1), 3)}, ["angle"]),
    "sequence_rearrange": Spec([images("FHWC FHWC HWC")], {"new_order": listed(one_of(0, 0, 0, 1), 1, 2, 3)}, ["new_order"]),
    "slice": Spec([VOLUME], {"axes": AXES, "axis_names": NAMES, "start": listed(whole(-3, 12), 1, 2, 2), "end": listed(whole(1, 24), 1, 2, 2), "rel_start": listed(number(-0.2, 0.8), 1, 2), "rel_shape": listed(number(0, 1), 1, 2), "out_of_bounds_policy": one_of("pad", "trim_to_shape", "error"), "fill_values": FILL}),
    "spectrogram": Spec([arrays("float32", "112", 300)], {"center_windows": BOOL, "layout": one_of("ft", "tf", "x"), "nfft": constant(whole(16, 64)), "power": one_of(1, 2, 3), "reflect_padding": BOOL, "window_length": constant(whole(1, 20)), "window_step": constant(whole(0, 40))}),
    "squeeze": Spec([arrays(most=2)], {"axes": AXES, "axis_names": NAMES}),
    "stack": Spec([arrays(), arrays()], {"axis": constant(whole(-4, 4)), "axis_name": one_of("H", "C", "A", "N")}),
    "to_decibels": Spec([arrays()], {"cutoff_db": constant(number(-90, 0)), "multiplier": constant(number(1, 20)), "reference": constant(number(0, 2))}),
    "transforms.rotation": Spec([], MATRIX | {"angle": number(-180, 180), "axis": listed(number(-1, 1), 3)}, ["angle"]),
    "transforms.scale": Spec([floats(2, 3)], MATRIX | {"scale": listed(number(0.1, 3), 1, 2, 3), "ndim": one_of(1, 2, 3)}, ["scale"]),
    "transforms.shear": Spec([], MATRIX | {"shear": listed(number(-2, 2), 2, 6, 1)}, ["shear"]),
    "transforms.translation": Spec([floats(2, 3)], {"offset": listed(number(-9, 9), 1, 2, 3), "reverse_order": BOOL}, ["offset"]),
    "transpose": Spec([arrays()], {"perm": Draw(lambda rng: rng.permutation(pick(rng, (1, 2, 3, 3, 4))).tolist()), "output_layout": one_of("", "CHW", "BA"), "transpose_layout": BOOL}),
    "warp_affine": Spec([images("HWC FHWC HW")], {"matrix": listed(number(-2, 2), 6, 6, 6, 12, 3), "size": listed(number(1, 40, 0), 2, 3), "fill_value": constant(number(0, 200)), "interp_type": WARPED, "inverse_map": BOOL}, ["matrix"]),
    "noise.gaussian": Spec([VOLUME], {"mean": number(0, 9), "stddev": number(0, 9)}),
}  # fmt: skip
ALTERNATIVES = (
    "axes axis_names",
    "axis axis_name",
    "start rel_start",
    "end rel_shape",
    "range values",
)
"""Arguments of which a call rarely gets more than one."""


def chosen(rng: Rng, arguments: dict[str, Draw], needed: Sequence[str] = ()) -> dict[str, Any]:
    """Draw which arguments a call has, and their values."""
    keys = rng.permutation(list(arguments))[: pick(rng, (0, 1, 1, 2, 2, 3, 4))].tolist()
    keys += [each for each in needed if each not in keys and rng.random() < 0.97]
    if rng.random() < 0.9:
        for group in ALTERNATIVES:
            for each in [key for key in keys if key in group.split()][1:]:
                keys.remove(each)
    found = {}
    for key in keys:
        draw = arguments[key]
        values = [draw.of(rng) for _ in range(SAMPLES)]
        per_sample = (
            draw.kind is not None and len({np.shape(v) for v in values}) == 1 and rng.random() < 0.3
        )
        found[key] = Each([np.array(v, draw.kind) for v in values]) if per_sample else values[0]
    return found


def operator_call(seed: int, folder: Path) -> Call:
    rng = np.random.default_rng(seed)
    name = pick(rng, list(SPECS))
    inputs = [make(rng) for make in SPECS[name].inputs]
    if name in ("cat", "stack") and rng.random() < 0.9:
        inputs[1] = [sample[::-1].copy() for sample in inputs[0][0]], pick(rng, ("", inputs[0][1]))
    return Call(seed, name, inputs, chosen(rng, SPECS[name].arguments, SPECS[name].needed))


# ---------------------------------------------------------------- expressions

KINDS = ["uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "float16", "bool"]
BINARY = ["+", "-", "*", "/", "//", "&", "|", "^", "<", "<=", "==", "!=", ">", ">="]
UNARY = ["sin", "cos", "abs", "sqrt", "exp", "log", "floor", "ceil", "tanh", "cbrt", "log2", "atan", "asinh"]
LEAVES = ["3", "-2", "2.5", "True", "0", "200", "types.Constant(7)", "types.Constant(np.uint8(5))", "types.Constant([1,2,3])"]
INDICES = ["0", "-1", "2", ":", "1:", "-2:", ":3", "-3:-1", "::2", "b", "b:", ":b"]


def expression_call(seed: int, folder: Path) -> Call:
    rng = np.random.default_rng(seed)
    if rng.random() < 0.3:
        axes = pick(rng, "123")
        where = ", ".join(pick(rng, INDICES) for _ in range(pick(rng, (1, 1, 2, 3))))
        counts = [np.array(v, np.int32) for v in rng.integers(0, 2, SAMPLES)]
        return Call(
            seed, "expression", [arrays(axes=axes)(rng), (counts, "")], expression=f"a[{where}]"
        )
    shape = pick(rng, ((), (3,), (2, 3), (1, 3)))
    inputs: list[Batch] = []
    for _ in range(3):
        kind, own = pick(rng, KINDS), shape if rng.random() < 0.7 else pick(rng, ((), (3,), (2, 1)))
        inputs.append(([array(rng, own, kind) for _ in range(SAMPLES)], ""))
    return Call(seed, "expression", inputs, expression=_tree(rng, pick(rng, (1, 1, 2)), "a"))


def _tree(rng: Rng, depth: int, first: str = "") -> str:
    if not depth:
        return first or str(pick(rng, ("a", "b", "c", "a", "b", "c", pick(rng, LEAVES))))
    one = _tree(rng, depth - 1, first)
    kind = rng.random()
    if kind < 0.65:
        return f"({one} {pick(rng, BINARY)} {_tree(rng, depth - 1)})"
    if kind < 0.85:
        return f"math.{pick(rng, UNARY)}({one})" if kind < 0.8 else f"(-{one})"
    return f"math.{pick(rng, ('min', 'max', 'pow', 'atan2'))}({one}, {_tree(rng, depth - 1)})"
