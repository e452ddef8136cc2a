"""Gradients: every operator whose maths is differentiable passes `torch.autograd.gradcheck` when called on tensors.

One row an operator. Where DALI's operator takes no float64, or computes in float32 whatever it takes, the check is in
float32; its step is then large (0.25), which is exact for operators that are linear in their input, and smaller where
they are not.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

import torchdali.ops
from torchdali import fn, types
from torchdali.declaration.registry import registry
from torchdali.kernels import memory
from torchdali.tensors import TensorList

DOUBLE, SINGLE = torch.float64, torch.float32
_LINEAR, _CURVED = 0.25, 1e-2  # steps in float32


@dataclass(frozen=True)
class Case:
    """Call of an operator: shape and layout of its inputs, arguments, and what gradcheck needs."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = (5, 6, 3)
    layout: str = "HWC"
    dtype: torch.dtype = SINGLE
    step: float = _LINEAR
    inputs: int = 1
    others: tuple[torch.Tensor, ...] = ()
    distinct: bool = (
        False  # values far apart: order statistics have no gradient where two are equal
    )

    def __str__(self) -> str:
        given = ",".join(
            f"{k}={v}" for k, v in self.arguments.items() if not isinstance(v, torch.Tensor)
        )
        return f"{self.name}-{self.layout}-{given}"[:90]


FRAMES, PLANAR, VOLUME = (2, 4, 5, 3), (3, 5, 6), (3, 4, 5, 2)
TURN = [0.9, 0.2, 0.3, -0.1, 1.1, 0.4]
PERSPECTIVE = [0.9, 0.1, 0.3, -0.1, 1.1, 0.2, 0.01, 0.02, 1.0]
X, Y = torch.meshgrid(torch.linspace(0.7, 4.9, 4), torch.linspace(0.3, 3.6, 3), indexing="xy")
WINDOW = torch.tensor([[0.1, -0.2, 0.3], [0.4, 0.5, -0.6]])

Row = tuple[str, dict[str, Any]]


def _double(name: str, **arguments: Any) -> Case:
    return Case(name, arguments, dtype=DOUBLE, step=1e-6)


_COLOUR: list[Row] = [
    ("brightness", {"brightness": 1.3, "brightness_shift": 0.1}),
    ("brightness_contrast", {"brightness": 0.7, "contrast": 1.4, "contrast_center": 0.4}),
    ("contrast", {"contrast": 0.6}),
    ("color_twist", {"brightness": 1.2, "contrast": 0.8, "hue": 40.0, "saturation": 1.5}),
    ("hsv", {"hue": 30.0, "saturation": 0.5, "value": 1.2, "dtype": types.FLOAT}),
    ("hue", {"hue": 120.0}),
    ("saturation", {"saturation": 0.3}),
]
_WINDOWS: list[Row] = [
    ("crop", {"crop": [4, 5], "crop_pos_x": 0.2}),
    ("crop", {"crop": [8, 9], "out_of_bounds_policy": "pad", "fill_values": [0.5]}),
    ("crop", {"crop": [8, 9], "out_of_bounds_policy": "reflect_101"}),
    ("crop_mirror_normalize", {"crop": [4, 5], "mean": [0.4], "std": [0.2], "mirror": 1}),
    ("crop_mirror_normalize", {"mean": [0.1, 0.2, 0.3], "std": [1.0, 2.0, 0.5], "output_layout": "HWC", "scale": 2.0}),
    ("crop_mirror_normalize", {"crop": [8, 9], "out_of_bounds_policy": "pad", "pad_output": True, "std": [0.5]}),
    ("erase", {"anchor": [1.0, 2.0], "shape": [2.0, 3.0], "fill_value": 0.5}),
    ("flip", {"horizontal": 1, "vertical": 1}),
    ("grid_mask", {"tile": 3, "angle": 0.3}),
    ("pad", {"axes": [0, 1], "align": [4, 4], "fill_value": 0.5}),
    ("pad", {"axes": [0], "shape": [6]}),
    ("slice", {"start": [1, 2], "shape": [3, 4], "axes": [0, 1]}),
    ("slice", {"start": [-1, 2], "end": [3, 9], "axes": [0, 1], "out_of_bounds_policy": "pad"}),
    ("multi_paste", {"in_ids": [0, 0], "output_size": [9, 10], "out_anchors": [[0, 0], [3, 3]]}),
    ("random_resized_crop", {"size": [4, 5], "seed": 3}),
]  # fmt: skip
_RESIZED: list[Row] = [
    ("resize", {"size": [4, 5]}),
    ("resize", {"size": [9, 10], "interp_type": types.INTERP_CUBIC}),
    ("resize", {"resize_shorter": 4, "interp_type": types.INTERP_LANCZOS3}),
    (
        "resize",
        {"size": [3, 9], "antialias": False, "roi_start": [0.5, 1.0], "roi_end": [5.5, 6.0]},
    ),
    ("resize", {"size": [9, 4], "interp_type": types.INTERP_NN}),
    ("resize_crop_mirror", {"size": [5, 8], "crop": [4, 4], "mirror": 1}),
    ("tensor_resize", {"sizes": [4, 9, 3]}),
    ("tensor_resize", {"scales": [0.5], "axes": [1], "interp_type": types.INTERP_GAUSSIAN}),
]
_WARPED: list[Row] = [
    ("rotate", {"angle": 30.0}),
    ("rotate", {"angle": -50.0, "fill_value": 0.5, "keep_size": True}),
    ("rotate", {"angle": 10.0, "interp_type": types.INTERP_NN, "fill_value": 0.0}),
    ("warp_affine", {"matrix": TURN}),
    ("warp_affine", {"matrix": TURN, "fill_value": 0.5, "size": [9, 5], "inverse_map": False}),
    ("experimental.warp_perspective", {"matrix": PERSPECTIVE}),
    ("experimental.warp_perspective", {"matrix": PERSPECTIVE, "border_mode": "wrap"}),
    ("experimental.warp_perspective", {"matrix": PERSPECTIVE, "border_mode": "reflect_101"}),
    ("experimental.warp_perspective", {"matrix": PERSPECTIVE, "interp_type": types.INTERP_CUBIC}),
    ("experimental.warp_perspective", {"matrix": PERSPECTIVE, "interp_type": types.INTERP_NN}),
    ("experimental.warp_perspective", {"matrix": PERSPECTIVE, "fill_value": [0.1, 0.2, 0.3]}),
    ("water", {"ampl_x": 2.0, "freq_x": 0.7, "interp_type": types.INTERP_LINEAR}),
    ("water", {"ampl_y": 2.0, "freq_y": 0.7}),
    ("sphere", {"interp_type": types.INTERP_LINEAR}),
    ("jitter", {"nDegree": 4, "seed": 3}),
]
_FILTERED: list[Row] = [
    ("gaussian_blur", {"window_size": [3, 5]}),
    ("gaussian_blur", {"sigma": 1.0, "dtype": types.FLOAT}),
    ("laplacian", {"window_size": [3]}),
    ("laplacian", {"window_size": [5], "smoothing_size": [1], "scale": [0.5]}),
]
_REDUCED = {
    "sum": _LINEAR,
    "mean": _LINEAR,
    "mean_square": _LINEAR,
    "rms": _CURVED,
    "max": 1e-3,
    "min": 1e-3,
}
_MOVED: list[Row] = [
    ("copy", {}),
    ("cast", {"dtype": types.FLOAT64}),
    ("expand_dims", {"axes": [1]}),
    ("reinterpret", {"layout": "XYZ"}),
    ("reshape", {"shape": [15, 6]}),
    ("squeeze", {"axes": []}),
    ("transpose", {"perm": [2, 0, 1]}),
    ("permute_batch", {"indices": [0]}),
]

CASES = [
    *(Case(name, arguments) for name, arguments in [*_COLOUR, *_WINDOWS, *_RESIZED, *_WARPED]),
    *(Case(name, arguments, FRAMES, "FHWC") for name, arguments in [_COLOUR[3], _WINDOWS[0], _RESIZED[0], _WARPED[0]]),
    Case("crop_mirror_normalize", {"output_layout": "FCHW", "mirror": 1, "std": [0.5]}, FRAMES, "FHWC"),
    *(Case(name, arguments, PLANAR, "CHW") for name, arguments in [_WINDOWS[0], _WINDOWS[3], _RESIZED[0], _WARPED[5]]),
    Case("element_extract", {"element_map": [1]}, FRAMES, "FHWC", DOUBLE, 1e-6),
    Case("sequence_rearrange", {"new_order": [1, 0, 1]}, FRAMES, "FHWC", DOUBLE, 1e-6),
    *(Case(name, arguments) for name, arguments in _FILTERED[1:2]),
    *(_double(name, **arguments) for name, arguments in [_FILTERED[0], *_FILTERED[2:], *_MOVED]),
    _double("crop", crop=[4, 5]),
    _double("flip"),
    _double("slice", start=[1, 2], shape=[3, 4], axes=[0, 1]),
    _double("erase", anchor=[1.0, 2.0], shape=[2.0, 3.0], axes=[0, 1]),
    Case("warp_affine", {"matrix": [1, 0.1, 0, 0.2, 0, 1, 0.1, 0.3, 0.1, 0, 0.9, 0.1]}, VOLUME, "DHWC"),
    Case("rotate", {"angle": 20.0, "axis": [0.3, 0.4, 1.0]}, VOLUME, "DHWC"),
    Case("resize", {"size": [3, 7, 4]}, VOLUME, "DHWC"),
    Case("filter", {"border": "reflect_101"}, others=(WINDOW,)),
    Case("filter", {"mode": "valid", "anchor": [0, 1]}, PLANAR, "CHW", others=(WINDOW,)),
    Case("filter", {"border": "constant"}, others=(WINDOW, torch.tensor(0.5))),
    Case("experimental.remap", {}, others=(X, Y)),
    Case("experimental.remap", {"pixel_origin": "center"}, dtype=DOUBLE, step=1e-6, others=(X, Y)),
    Case("experimental.remap", {"interp": types.INTERP_CUBIC}, FRAMES, "FHWC", others=(X, Y)),
    Case("experimental.median_blur", {"window_size": [3, 3]}, dtype=DOUBLE, step=1e-6, distinct=True),
    Case("experimental.dilate", {"mask_size": [3, 3], "iterations": 2}, dtype=DOUBLE, step=1e-6, distinct=True),
    Case("experimental.erode", {"mask_size": [2, 3], "border_mode": "reflect"}, dtype=DOUBLE, step=1e-6, distinct=True),
    Case("normalize", {"mean": 0.4, "stddev": 0.3}),
    Case("normalize", {"axes": [0, 1]}, step=_CURVED),
    Case("normalize", {"batch": True, "ddof": 1, "epsilon": 0.01}, step=_CURVED),
    Case("normalize", {"mean": 0.5, "scale": 2.0, "shift": 0.1}, step=_CURVED),
    Case("noise.gaussian", {"stddev": 0.2, "mean": 0.1, "seed": 3}),
    Case("noise.salt_and_pepper", {"prob": 0.3, "seed": 3}),
    *(Case(f"reductions.{name}", {"axes": [0, 1]}, step=step, distinct=True) for name, step in _REDUCED.items()),
    *(Case(f"reductions.{name}", {"keep_dims": True}, step=step, distinct=True) for name, step in _REDUCED.items()),
    *(
        Case(f"reductions.{name}", {"axes": [0]}, step=_CURVED, others=(torch.full((1, 6, 3), 0.5),))
        for name in ("std_dev", "variance")
    ),
    Case("cat", {"axis": 1}, dtype=DOUBLE, step=1e-6, inputs=2),
    Case("stack", {"axis": 2}, dtype=DOUBLE, step=1e-6, inputs=2),
    Case("coord_transform", {"M": [0.9, 0.2, -0.1, 1.1, 0.4, 0.5], "T": [1.0, 2.0, 3.0]}, (5, 2), ""),
    Case("coord_transform", {"MT": TURN}, (5, 2), ""),
    Case("coord_flip", {"flip_y": 1}, (5, 2), ""),
    Case("bb_flip", {"horizontal": 1, "vertical": 1}, (5, 4), ""),
    Case("bb_flip", {"ltrb": True}, (5, 4), ""),
    Case("bbox_paste", {"ratio": 2.0, "paste_x": 0.3}, (5, 4), ""),
    *(Case("spectrogram", {"window_length": 6, "window_step": 3, "power": power}, (20,), "t", step=1e-3) for power in (1, 2)),
    Case("spectrogram", {"window_length": 6, "window_step": 3, "nfft": 8, "center_windows": False}, (20,), "t", step=1e-3),
    Case("power_spectrum", {}, (20,), "t", step=1e-3),
    Case("mel_filter_bank", {"nfilter": 3, "normalize": False}, (9, 4), "ft"),
    Case("mfcc", {"n_mfcc": 4, "lifter": 3.0}, (9, 4), "ft"),
    Case("to_decibels", {"reference": 1.0}, (9, 4), "ft", step=1e-3),
    Case("audio_resample", {"scale": 1.5}, (20,), "t"),
    Case("audio_resample", {"scale": 1.23457}, (20, 2), "tc"),
    *(_double("preemphasis_filter", border=border, dtype=types.FLOAT64) for border in ("zero", "clamp", "reflect")),
    Case("bbox_rotate", {"angle": 20.0, "input_shape": [60, 80], "bbox_layout": "xyWH", "remove_threshold": 0.0},
         (4, 4), "", step=1e-3),
]  # fmt: skip

WITHOUT = {
    "batch_permutation": "has no data", "decoders.audio": "bytes only", "nonsilent_region": "gives indices", "cast_like": "as cast", "color_space_conversion": "bytes only",
    "constant": "has no data", "experimental.resize": "runs on the GPU only; the body is that of resize",
    "full": "has no data", "full_like": "looks at the shape only", "get_property": "not data",
    "noise.shot": "draws from a distribution that depends on the data", "ones": "has no data",
    "ones_like": "looks at the shape only", "paste": "bytes only", "peek_image_shape": "bytes only",
    "per_frame": "passes on what it is given", "random_crop_generator": "takes a shape",
    "roi_random_crop": "takes shapes", "shapes": "looks at the shape only", "zeros": "has no data",
    "zeros_like": "looks at the shape only", "lookup_table": "integers only", "one_hot": "gives classes",
}  # fmt: skip
"""Operators of the same families without a gradient, and why."""

_FAMILIES = (
    "_audio", "_levels", "_spectra", "_color", "_coordinates", "_crop", "_erase", "_filters", "_flip", "_generic", "_multi_paste", "_noise",
    "_normalize", "_pad", "_paste", "_perspective", "_random_crop", "_reductions", "_reshape", "_resize", "_sequence",
    "_shape", "_slice", "_warp",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads that wake up for a hundred numbers take longer than the sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _function(name: str) -> Callable[..., Any]:
    found: Any = fn
    for part in name.split("."):
        found = getattr(found, part)
    made: Callable[..., Any] = found
    return made


def _values(case: Case) -> list[torch.Tensor]:
    count = torch.Size(case.shape).numel()
    generator = torch.Generator().manual_seed(7)
    found = []
    for _ in range(case.inputs):
        if case.distinct:
            values = torch.randperm(count, generator=generator) / count
        else:
            values = torch.rand(count, generator=generator) * 0.8 + 0.1
        found.append(values.to(case.dtype).view(case.shape).requires_grad_())
    return found


def _run(case: Case, *inputs: torch.Tensor) -> torch.Tensor:
    """Call an operator on batches of one sample, which carry layouts."""
    batches = [TensorList.from_samples([x], case.layout) for x in inputs]
    others = [TensorList.from_samples([x]) for x in case.others]
    made = _function(case.name)(*batches, *others, **case.arguments)
    result: torch.Tensor = made.samples()[0]
    return result


def _check(case: Case, function: Callable[..., torch.Tensor]) -> None:
    atol, rtol = (1e-5, 1e-4) if case.dtype == DOUBLE else (2e-3, 5e-3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Input #")  # it is not double precision
        assert torch.autograd.gradcheck(
            function, _values(case), eps=case.step, atol=atol, rtol=rtol, nondet_tol=1e-6
        )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients(case: Case) -> None:
    inputs = _values(case)
    result = _run(case, *inputs)
    assert result.dtype.is_floating_point and result.requires_grad
    before = [x.detach().clone() for x in inputs]
    _check(case, functools.partial(_run, case))
    assert all(torch.equal(a, b) for a, b in zip(before, inputs, strict=True))


@pytest.mark.parametrize("case", [case for case in CASES if case.layout == "HWC"], ids=str)
def test_results_do_not_depend_on_gradients(case: Case) -> None:
    inputs = _values(case)
    plain = _run(case, *[x.detach() for x in inputs])
    torch.testing.assert_close(_run(case, *inputs).detach(), plain, rtol=1e-5, atol=1e-5)


LARGE = [
    case
    for case in CASES
    if case.layout == "HWC" and not case.distinct and case.inputs == 1 and case.step == _LINEAR
    and not {"crop", "size", "roi_start", "output_size", "shape", "sizes"} & case.arguments.keys()
]  # fmt: skip


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_large_images_take_other_ways_with_the_same_gradients(case: Case) -> None:
    """Operators that are linear (with an offset): a step along a direction shows its derivative."""
    large = replace(case, shape=(500, 400, 3))
    (image,) = _values(large)
    step = torch.rand(large.shape, generator=torch.Generator().manual_seed(1)) * 0.1
    result = _run(large, image)
    plain, moved = _run(large, image.detach()), _run(large, image.detach() + step)
    far = (result.detach() - plain).abs() > 1e-4 + 1e-4 * plain.abs()
    assert far.float().mean() < 5e-4  # rounding decides which of two pixels is the nearest
    weights = torch.rand(result.shape, generator=torch.Generator().manual_seed(2))
    (gradient,) = torch.autograd.grad((result * weights).sum(), image)
    wanted = ((moved.double() - plain) * weights).sum()
    torch.testing.assert_close((gradient.double() * step).sum(), wanted, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if "tensor" in registry[c.name].chunks and not (c.others or "batch" in c.arguments)],
    ids=str,
)
def test_batches_that_are_one_tensor_have_the_same_gradients(case: Case) -> None:
    stacks = [torch.stack([x.detach(), x.detach() + 1]).requires_grad_() for x in _values(case)]
    made = _function(case.name)(
        *[TensorList.from_dense(x, case.layout) for x in stacks], **case.arguments
    )
    made.stacked().square().sum().backward()
    for i in range(2):
        singles = [x[i].detach().requires_grad_() for x in stacks]
        _run(case, *singles).square().sum().backward()
        for whole, single in zip(stacks, singles, strict=True):
            assert whole.grad is not None and single.grad is not None
            torch.testing.assert_close(whole.grad[i], single.grad)


def test_plain_tensors_have_gradients_too() -> None:
    image = torch.rand(6, 7, 3, requires_grad=True)
    made = fn.normalize(
        fn.gaussian_blur(fn.rotate(image, angle=20.0), window_size=3), mean=0.5, stddev=0.2
    )
    made.square().sum().backward()
    assert image.grad is not None and image.grad.abs().sum() > 0


def test_batches_have_gradients() -> None:
    images = [torch.rand(5 + i, 6, 3, requires_grad=True) for i in range(3)]
    made = fn.crop_mirror_normalize(TensorList.from_samples(images, "HWC"), crop=[4, 4], std=[0.5])
    torch.stack(made.samples()).sum().backward()
    assert [float(image.grad.sum()) for image in images if image.grad is not None] == [96.0] * 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.uint8])
def test_memory_that_a_thread_keeps_belongs_to_no_graph(dtype: torch.dtype) -> None:
    x = torch.rand(9, 8, 3).mul(255).to(dtype)
    if dtype.is_floating_point:
        x.requires_grad_()
        fn.resize(x, size=[4, 5], dtype=types.FLOAT).sum().backward()
        assert x.grad is not None and x.grad.abs().sum() > 0
    if dtype in (torch.float32, torch.uint8):
        fn.normalize(x, dtype=types.FLOAT)
        fn.crop_mirror_normalize(x, std=[2.0], dtype=types.FLOAT)
    again = fn.resize(torch.zeros(9, 8, 3, dtype=torch.uint8), size=[4, 5], dtype=types.FLOAT)
    assert not again.requires_grad and memory._memory.kept


def test_a_wrong_gradient_is_noticed() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2.1

    with pytest.raises(GradcheckError):
        _check(Case("copy"), Doubled.apply)


def test_every_operator_of_these_families_is_considered() -> None:
    modules = {f"{torchdali.ops.__name__}.{family}" for family in _FAMILIES}
    names = {
        name for name, operator in registry.items()
        if operator.body.__module__ in modules and not operator.hidden and not operator.instead
    }  # fmt: skip
    checked = {case.name for case in CASES}
    missing = sorted(names - checked - WITHOUT.keys())
    assert not missing, "operators without a row in CASES or a reason in WITHOUT"
    assert not WITHOUT.keys() & checked
