"""Automatic augmentation against the real DALI: pixels, suites and policies, random draws, errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import golden
from tests.helpers import auto_aug as aa

pytestmark = [
    pytest.mark.golden,
    pytest.mark.filterwarnings("ignore"),
]

BOTH = ("torchdali", "nvidia.dali")

EXCEPTIONS = {
    "auto_aug": "with `seed`, DALI draws the operation, the sign and the other values from identical random "
    "sequences, so some operations are never negated; torchdali draws them independently, as both libraries do "
    "without a seed",
}


# ---------------------------------------------------------------- pixels


def images() -> list[aa.Array]:
    """Noise of several shapes, a smooth image, a constant one, and one with few values.

    No translation in the tests ends at half a pixel, where rounding determines the nearest pixel.
    """
    random = np.random.default_rng(3)
    noise = [
        random.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((20, 30), (33, 17), (64, 64))
    ]
    y, x = np.mgrid[0:60, 0:80]
    smooth = np.stack([3 * y + 20, 2 * x + 30, x + y + 10], -1).astype(np.uint8)
    return [
        *noise,
        smooth,
        np.full((8, 9, 3), 77, np.uint8),
        random.choice(np.uint8([0, 3, 250]), (16, 18, 3)),
    ]


WARPS = (
    "rotate",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_x_no_shape",
    "translate_y",
    "translate_y_no_shape",
)
TONES = (
    "auto_contrast", "brightness", "color", "contrast", "equalize", "identity", "invert", "posterize", "sharpness",
    "solarize", "solarize_add",
)  # fmt: skip


def augmented(
    library: str,
    name: str,
    magnitude_bin: int,
    sign: int,
    inputs: list[aa.Array],
    layout: str,
    **arguments: Any,
) -> Any:
    def define(lib: Any, auto_aug: Any, data: Any) -> Any:
        given = dict(arguments)
        if "interp_type" in given:
            given["interp_type"] = getattr(lib.types, given["interp_type"])
        if name in ("translate_x", "translate_y"):
            given["shape"] = data.shape()[1:] if layout == "FHWC" else data.shape()
        signed = auto_aug.signed_bin(magnitude_bin, random_sign=sign)
        augmentation = getattr(auto_aug.augmentations, name)
        return augmentation(data, magnitude_bin=signed, num_magnitude_bins=11, **given)

    return aa.compute(library, define, inputs, layout)[0]


def check_pixels(
    name: str,
    magnitude_bin: int,
    sign: int,
    inputs: list[aa.Array],
    layout: str = "HWC",
    **arguments: Any,
) -> None:
    found, wanted = (
        augmented(library, name, magnitude_bin, sign, inputs, layout, **arguments)
        for library in BOTH
    )
    assert [(f.shape, f.dtype) for f in found] == [(w.shape, w.dtype) for w in wanted]
    differences = np.concatenate(
        [np.abs(f.astype(int) - w).ravel() for f, w in zip(found, wanted, strict=True)]
    )
    assert (differences <= 1).mean() >= 0.999


@pytest.mark.parametrize("name", [*WARPS, *TONES])
@pytest.mark.parametrize(("magnitude_bin", "sign"), [(0, 0), (4, 0), (4, 1), (7, 1), (10, 0)])
def test_pixels(name: str, magnitude_bin: int, sign: int) -> None:
    check_pixels(name, magnitude_bin, sign, images())


@pytest.mark.parametrize("name", WARPS)
@pytest.mark.parametrize(
    "arguments",
    [{"fill_value": None}, {"fill_value": 7, "interp_type": "INTERP_NN"}, {"fill_value": 0}],
    ids=["edge", "nearest", "black"],
)
def test_pixels_of_warps(name: str, arguments: dict[str, Any]) -> None:
    check_pixels(name, 7, 0, images(), **arguments)


def test_a_rotated_canvas_grows() -> None:
    check_pixels("rotate", 9, 1, images(), rotate_keep_size=False)


@pytest.mark.parametrize("name", [*WARPS, *TONES])
def test_pixels_of_videos(name: str) -> None:
    random = np.random.default_rng(4)
    videos = [random.integers(0, 200, (frames, 20, 24, 3), np.uint8) for frames in (3, 2)]
    check_pixels(name, 6, 1, videos, "FHWC")


# ----------------------------------------------------------------- contents of suites and policies


def printed(value: Any) -> str:
    return re.sub(r" at 0x\w+", "", repr(value))


LIMITS: list[dict[str, Any]] = [
    {}, {"use_shape": True}, {"max_translate_abs": 7}, {"max_translate_abs": (7, 9)}, {"max_translate_abs": [1, 2]},
    {"use_shape": True, "max_translate_rel": 0.3}, {"use_shape": True, "max_translate_rel": (0.3, 0.4)},
]  # fmt: skip
SUITES = (
    "get_rand_augment_suite", "get_rand_augment_non_monotonic_suite", "get_trivial_augment_wide_suite",
    "get_image_net_policy", "get_reduced_cifar10_policy", "get_svhn_policy",
)  # fmt: skip


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("suite", SUITES)
def test_suites(suite: str, limits: dict[str, Any]) -> None:
    @golden.answered
    def described(library: str) -> str:
        return printed(getattr(aa.modules(library), suite)(**limits))

    assert described("torchdali") == described("nvidia.dali")


@pytest.mark.parity
def test_reduced_image_net_policy() -> None:
    found, wanted = (aa.modules(library).get_reduced_image_net_policy() for library in BOTH)
    assert printed(found) == printed(wanted)
    assert [len(steps) for steps in found.sub_policies] == [
        len(steps) for steps in wanted.sub_policies
    ]


@pytest.mark.parity
def test_augmentations_are_declared_alike() -> None:
    for name in (*WARPS, *TONES):
        found, wanted = (getattr(aa.modules(library).augmentations, name) for library in BOTH)
        assert printed(found) == printed(wanted)
        for option in ("name", "mag_range", "randomly_negate", "param_device"):
            assert getattr(found, option) == getattr(wanted, option)


PARAMETERS: dict[str, list[float]] = {
    "poster_mask_uint8": [
        -3,
        -1,
        -0.6,
        -0.5,
        0,
        0.4,
        0.5,
        1,
        1.2,
        1.5,
        2.5,
        3.5,
        4,
        6.4,
        7,
        7.5,
        8,
        9,
    ],
    "sharpness_kernel": [-0.9, 0, 0.27, 0.9, 1.5],
    "sharpness_kernel_shifted": [0, 0.1, 1, 1.9],
    "shift_enhance_range": [-0.9, 0, 0.5],
    "solarize_add_shift": [0, 0.5, 4.3, 110, 127],
    "warp_x_param": [0, 0.5, -7],
    "warp_y_param": [0, 0.5, -7],
}


@pytest.mark.parity
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_of_magnitudes(name: str) -> None:
    for magnitude in PARAMETERS[name]:
        found, wanted = (
            np.asarray(getattr(aa.modules(library).augmentations, name)(np.float32(magnitude)))
            for library in BOTH
        )
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


# ----------------------------------------------------------------- random draws

Apply = Callable[[Any, Any], Any]


def policy(auto_aug: Any) -> Any:
    m = aa.marks(auto_aug, 5, negated=2)
    steps = [
        [(m[0], 0.8, 3), (m[1], 0.3, 7)],
        [(m[2], 1.0, 10)],
        [(m[3], 0.5, 1), (m[4], 0.5, 2), (m[0], 0.25, 5)],
    ]
    return auto_aug.Policy("marks", 11, steps)


DRAWS: dict[str, Apply] = {
    "rand": lambda auto_aug, data: auto_aug.apply_rand_augment(aa.marks(auto_aug, 5, negated=3), data, n=2, m=9),
    "trivial": lambda auto_aug, data: auto_aug.apply_trivial_augment(aa.marks(auto_aug, 4, negated=2), data, 7),
    "auto": lambda auto_aug, data: auto_aug.apply_auto_augment(policy(auto_aug), data),
}  # fmt: skip


@pytest.mark.parametrize("case", DRAWS)
def test_draws(case: str) -> None:
    """Augmentations of samples have the same distribution: a chi-square test of two samples."""
    counts = [Counter(map(tuple, aa.drawn(library, DRAWS[case], 500, 8))) for library in BOTH]
    found, wanted = ([c[kind] for kind in sorted(counts[0] | counts[1])] for c in counts)
    assert aa.two_samples(found, wanted) < 4


# --------------------------------------------------------- rejected inputs


def rand(**arguments: Any) -> Apply:
    given = {"n": 1, "m": 3, **arguments}
    return lambda auto_aug, data: auto_aug.apply_rand_augment(
        aa.marks(auto_aug, given.pop("count", 2)), data, **given
    )


def trivial(**arguments: Any) -> Apply:
    given = dict(arguments)
    return lambda auto_aug, data: auto_aug.apply_trivial_augment(
        aa.marks(auto_aug, given.pop("count", 2)), data, **given
    )


def called(name: str, **arguments: Any) -> Apply:
    return lambda auto_aug, data: getattr(auto_aug, name)(data, **arguments)


def mark(options: dict[str, Any], arguments: dict[str, Any]) -> Apply:
    return lambda auto_aug, data: aa.marks(auto_aug, 1)[0].augmentation(**options)(
        data, **arguments
    )


def declared(function: Any) -> Apply:
    return lambda auto_aug, data: auto_aug.augmentation(function)


def sub_policies(*steps: Any, bins: Any = 11) -> Apply:
    def make(auto_aug: Any, data: Any) -> Any:
        plain = auto_aug.augmentation(lambda data, _: data, name="plain")
        known = {"mark": aa.marks(auto_aug, 1)[0], "plain": plain}
        return auto_aug.Policy("p", bins, [[(known.get(s[0], s[0]), *s[1:]) for s in steps]])

    return make


BIN = {"magnitude_bin": 3, "num_magnitude_bins": 11}
REFUSED: dict[str, Apply] = {
    "rand n": rand(n=-1), "rand n float": rand(n=1.5), "rand m": rand(m=-1), "rand m above": rand(m=31),
    "rand m float": rand(m=1.5), "rand bins": rand(num_magnitude_bins=0), "rand bins float": rand(num_magnitude_bins=1.5),
    "rand empty": rand(count=0), "rand argument": rand(foo=1),
    "trivial empty": trivial(count=0), "trivial bins": trivial(num_magnitude_bins=0), "trivial argument": trivial(foo=1),
    "rand_augment excluded": called("rand_augment", n=1, m=3, excluded=["zoom"]),
    "rand_augment rel": called("rand_augment", n=1, m=3, max_translate_rel=0.3),
    "rand_augment abs": called("rand_augment", n=1, m=3, shape=(4, 4), max_translate_abs=3),
    "trivial excluded": called("trivial_augment_wide", excluded=["zoom"]),
    "auto name": called("auto_augment", policy_name="best"), "auto number": called("auto_augment", policy_name=3),
    "auto reduced shape": called("auto_augment", policy_name="reduced_image_net", shape=(4, 4)),
    "auto reduced abs": called("auto_augment", policy_name="reduced_image_net", max_translate_abs=3),
    "auto rel": called("auto_augment", max_translate_rel=0.3),
    "auto empty": lambda auto_aug, data: auto_aug.apply_auto_augment(auto_aug.Policy("p", 11, []), data),
    "auto argument": lambda auto_aug, data: auto_aug.apply_auto_augment(policy(auto_aug), data, foo=1),
    "no bin": mark({}, {"num_magnitude_bins": 11}), "no bins": mark({}, {"magnitude_bin": 3}),
    "bin above": mark({}, {"magnitude_bin": 11, "num_magnitude_bins": 11}),
    "bin float": mark({}, {"magnitude_bin": 1.5, "num_magnitude_bins": 11}),
    "range of three": mark({"mag_range": (0, 1, 2)}, BIN),
    "bins of an array": mark({"mag_range": np.array([1.0, 2.0])}, BIN),
    "device": mark({"param_device": "tpu"}, BIN),
    "no number": mark({"mag_to_param": lambda m: "a"}, BIN), "dict": mark({"mag_to_param": lambda m: {"a": m}}, BIN),
    "missing argument": lambda auto_aug, data: auto_aug.augmentations.translate_x(data, **BIN),
    "signed float": lambda auto_aug, data: auto_aug.signed_bin(2.5),
    "not a function": declared(3), "one argument": declared(lambda data: data), "no arguments": declared(lambda: 1),
    "keyword parameter": declared(lambda data, *, parameter: data),
    "twice": lambda auto_aug, data: auto_aug.augmentation(auto_aug.augmentations.rotate),
    "probability": sub_policies(("mark", 2, 3)), "negative probability": sub_policies(("mark", -1, 3)),
    "probability text": sub_policies(("mark", "a", 3)), "policy bin": sub_policies(("mark", 0.5, 11)),
    "policy bin float": sub_policies(("mark", 0.5, 1.5)), "policy no bin": sub_policies(("mark", 0.5, None)),
    "policy pair": sub_policies(("mark", 0.5)), "policy function": sub_policies((len, 0.5, 3)),
    "policy bins": sub_policies(bins=0), "policy bins float": sub_policies(bins=1.5),
    "select nothing": lambda auto_aug, data: auto_aug.select([], data, data),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_both_refuse(case: str) -> None:
    for library in BOTH:
        with pytest.raises(Exception) as caught:
            aa.compute(
                library,
                lambda lib, auto_aug, data: REFUSED[case](auto_aug, data) and data,
                [np.uint8(0)] * 2,
            )
        assert not isinstance(caught.value, AttributeError)
