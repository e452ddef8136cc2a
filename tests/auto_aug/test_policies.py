"""AutoAugment, RandAugment and TrivialAugment: their random draws, and their execution."""

from __future__ import annotations

import inspect
import itertools
import subprocess
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.helpers import auto_aug as aa
from torchdali import fn, pipeline_def, types
from torchdali.auto_aug import augmentations, auto_augment, rand_augment, trivial_augment
from torchdali.auto_aug.core import Policy

OURS = aa.modules("torchdali")


def drawn(apply: Any, **settings: Any) -> list[list[tuple[int, int]]]:
    return aa.drawn("torchdali", apply, **settings)


def even(counts: Counter[Any], kinds: int) -> bool:
    """Return True if all expected kinds occur equally often, except for chance."""
    assert len(counts) == kinds
    return aa.chi_square(list(counts.values()), [counts.total() / kinds] * kinds) < 4


# ----------------------------------------------------------------- random draws


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_rand_augment_draws(seed: int | None) -> None:
    """Every pair of steps and signs is equally likely, with a seed too; the magnitude is the passed one."""
    found = drawn(
        lambda a, data: rand_augment.apply_rand_augment(
            aa.marks(a, 4, negated=4), data, n=2, m=9, seed=seed
        )
    )
    assert all(len(steps) == 2 for steps in found)
    assert {abs(magnitude) for steps in found for _, magnitude in steps} == {9}
    assert even(Counter((a, b) for (a, _), (b, _) in found), 16)
    assert even(Counter(steps[0] for steps in found), 8)
    assert even(Counter((a[1] > 0, b[1] > 0) for a, b in found), 4)


@pytest.mark.parametrize("seed", [None, 7])
def test_trivial_augment_draws(seed: int | None) -> None:
    found = drawn(
        lambda a, data: trivial_augment.apply_trivial_augment(
            aa.marks(a, 3, negated=1), data, 5, seed=seed
        ),
        runs=8,
    )
    assert all(len(steps) == 1 for steps in found)
    magnitudes = Counter(steps[0] for steps in found if steps[0][0] > 0)
    assert even(magnitudes, 10)
    assert {magnitude for _, magnitude in magnitudes} == {0, 8, 15, 22, 30}  # rounded
    assert even(Counter(steps[0][0] for steps in found), 3)
    assert even(Counter(steps[0][1] for steps in found if steps[0][0] == 0 and steps[0][1]), 8)


@pytest.mark.parametrize("seed", [None, 7])
def test_auto_augment_draws(seed: int | None) -> None:
    """Each sub-policy is equally likely, and each of its steps happens with its probability, independently."""
    m = aa.marks(OURS, 5, negated=1)
    policy = Policy(
        "marks",
        11,
        [
            [(m[0], 0.8, 3), (m[1], 0.3, 7)],
            [(m[2], 1.0, 10)],
            [(m[3], 0.5, 1), (m[4], 0.5, 2), (m[1], 0.25, 5)],
        ],
    )
    found = Counter(
        map(
            tuple,
            drawn(lambda a, data: auto_augment.apply_auto_augment(policy, data, seed=seed), runs=8),
        )
    )
    first, second, third = {(0, 9): 0.4, (0, -9): 0.4}, {(1, 21): 0.3}, {(2, 30): 1.0}
    expected: Counter[Any] = Counter()
    for steps in ((first, second), (third,), ({(3, 3): 0.5}, {(4, 6): 0.5}, {(1, 15): 0.25})):
        for taken in itertools.product(
            *([*step.items(), (None, 1 - sum(step.values()))] for step in steps)
        ):
            kind = tuple(mark for mark, _ in reversed(taken) if mark is not None)
            expected[kind] += found.total() / 3 * float(np.prod([p for _, p in taken]))
    expected = +expected
    assert found.keys() == expected.keys()
    assert aa.chi_square([found[k] for k in expected], list(expected.values())) < 4


def test_the_same_seed_draws_the_same() -> None:
    def apply(seed: int | None) -> Any:
        return lambda a, data: rand_augment.apply_rand_augment(
            aa.marks(a, 4, negated=4), data, n=2, m=9, seed=seed
        )

    first = drawn(apply(5))
    assert drawn(apply(5), seed=99) == first
    assert drawn(apply(6)) != first
    assert drawn(apply(None), seed=3) == drawn(
        apply(None), seed=3, num_threads=1, prefetch_queue_depth=3
    )
    assert drawn(apply(None), seed=3) == drawn(apply(None), seed=3, debug=True)


# ---------------------------------------------------------------- pipelines of images

METHODS: dict[str, Any] = {
    "rand": lambda data, **given: rand_augment.rand_augment(data, n=2, m=9, **given),
    "rand, not monotonic": lambda data, **given: rand_augment.rand_augment(
        data, 3, 20, monotonic_mag=False, **given
    ),
    "trivial": trivial_augment.trivial_augment_wide,
    "image_net": auto_augment.auto_augment,
    "image_net by name": auto_augment.auto_augment_image_net,
    "cifar10": lambda data, **given: auto_augment.auto_augment(data, "reduced_cifar10", **given),
    "svhn": lambda data, **given: auto_augment.auto_augment(data, "svhn", **given),
    "reduced": lambda data, shape=None, **given: auto_augment.auto_augment(
        data, "reduced_image_net", **given
    ),
}


def images(*shape: int, batch: int = 48) -> list[aa.Array]:
    random = np.random.default_rng(1)
    return [
        random.integers(0, 256, (*shape[:-2], shape[-2] + k % 3, shape[-1], 3), np.uint8)
        for k in range(batch)
    ]


@pytest.mark.thin(5)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", ["nothing", "shape", "shapes"])
def test_images_keep_their_shape(method: str, given: str) -> None:
    inputs = images(24, 32)

    def define(lib: Any, auto_aug: Any, data: Any) -> Any:
        shapes = {"nothing": None, "shape": (24, 32), "shapes": data.shape()}
        return METHODS[method](data, shape=shapes[given])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = aa.compute("torchdali", define, inputs, "HWC")[0]
    assert [(f.shape, f.dtype) for f in found] == [(i.shape, i.dtype) for i in inputs]
    changed = sum(not np.array_equal(f, i) for f, i in zip(found, inputs, strict=True))
    assert changed > len(inputs) / 3


@pytest.mark.parametrize("method", METHODS)
def test_videos(method: str) -> None:
    inputs = images(2, 16, 20, batch=24)
    found = aa.compute(
        "torchdali", lambda lib, auto_aug, data: METHODS[method](data), inputs, "FHWC"
    )[0]
    assert [f.shape for f in found] == [i.shape for i in inputs]


@pytest.mark.parametrize("method", ["rand", "trivial", "image_net"])
def test_results_do_not_depend_on_the_execution_mode(method: str) -> None:
    inputs = images(24, 32)

    def pixels(to_gpu: bool = False, **settings: Any) -> Any:
        def define(lib: Any, auto_aug: Any, data: Any) -> Any:
            return METHODS[method](data.gpu()).cpu() if to_gpu else METHODS[method](data)

        return aa.compute("torchdali", define, inputs, "HWC", **settings)[0]

    wanted = pixels()
    for settings in (
        {"num_threads": 1},
        {"prefetch_queue_depth": 4},
        {"debug": True},
        {"to_gpu": True, "device_id": "cpu"},
    ):
        for found, image in zip(pixels(**settings), wanted, strict=True):
            np.testing.assert_array_equal(found, image)


def test_limits_of_translations_reach_the_pixels() -> None:
    """A white image moves by at most 3 pixels, and the border becomes black."""
    white = [np.full((40, 40, 3), 255, np.uint8)] * 64
    suite = [
        a
        for a in rand_augment.get_rand_augment_suite(max_translate_abs=(0, 3))
        if "translate" in a.name
    ]

    def define(lib: Any, auto_aug: Any, data: Any) -> Any:
        return rand_augment.apply_rand_augment(suite, data, n=1, m=30, fill_value=0)

    found = aa.compute("torchdali", define, white, "HWC")[0]
    kinds = Counter(((f[:, 0] == 0).all(), (f[:, -1] == 0).all()) for f in found)
    assert kinds.keys() == {
        (True, False),
        (False, True),
        (False, False),
    }  # to the right, the left, not along y
    assert {int((f[0] == 0).sum()) for f in found} == {0, 9}


def test_excluded_augmentations_are_not_drawn() -> None:
    names = [a.name for a in rand_augment.get_rand_augment_suite()]
    inputs = images(16, 16)

    def define(lib: Any, auto_aug: Any, data: Any) -> Any:
        rest = [name for name in names if name not in ("identity", "invert")]
        return rand_augment.rand_augment(
            data, 1, 5, excluded=rest
        ), trivial_augment.trivial_augment_wide(data, excluded=rest)

    for found in aa.compute("torchdali", define, inputs, "HWC"):
        for result, image in zip(found, inputs, strict=True):
            np.testing.assert_array_equal(result, image)


def test_the_identity_is_drawn_too() -> None:
    with pytest.warns(UserWarning, match="n=0"):
        found = aa.compute(
            "torchdali",
            lambda lib, a, data: a.apply_rand_augment([], data, n=0, m=3),
            images(4, 4),
            "HWC",
        )
    np.testing.assert_array_equal(found[0][0], images(4, 4)[0])


# ---------------------------------------------------------------- single augmentations

EXACT: dict[str, tuple[int, Any]] = {
    "invert": (0, lambda x: 255 - x),
    "identity": (0, lambda x: x),
    "posterize": (10, lambda x: x & 0xF0),
    "solarize": (5, lambda x: np.where(x < 128, x, 255 - x)),
    "solarize_add": (10, lambda x: np.where(x < 128, x + 110, x)),
    "auto_contrast": (
        0,
        lambda x: np.rint((x - x.min((0, 1))) * (255 / (x.max((0, 1)) - x.min((0, 1))))),
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_values(name: str) -> None:
    magnitude_bin, reference = EXACT[name]
    inputs = [np.random.default_rng(2).integers(3, 240, (9, 7, 3)).astype(np.uint8)]

    def define(lib: Any, auto_aug: Any, data: Any) -> Any:
        signed = auto_aug.signed_bin(magnitude_bin, random_sign=0)
        return getattr(augmentations, name)(data, magnitude_bin=signed, num_magnitude_bins=11)

    found = aa.compute("torchdali", define, inputs, "HWC")[0][0]
    assert np.abs(found.astype(float) - reference(inputs[0].astype(int))).max() <= (
        name == "auto_contrast"
    )


@pytest.mark.parametrize("threshold", [0, 1, 127.5, 128, 255, 255.5, 256, 300])
def test_thresholds_of_solarize(threshold: float) -> None:
    every = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    solarize = augmentations.solarize.augmentation(np.array([threshold], np.float32))
    found = aa.compute(
        "torchdali", lambda lib, a, data: solarize(data, magnitude_bin=0), [every], "HWC"
    )[0][0]
    np.testing.assert_array_equal(found, np.where(every < threshold, every, 255 - every))


@pytest.mark.parametrize("name", ["auto_contrast", "contrast", "solarize", "solarize_add"])
def test_color_operations_reject_other_dtypes_than_uint8(name: str) -> None:
    def define(lib: Any, auto_aug: Any, data: Any) -> Any:
        return getattr(augmentations, name)(
            data, magnitude_bin=auto_aug.signed_bin(1), num_magnitude_bins=11
        )

    with pytest.raises(RuntimeError, match="unsupported input type: float32"):
        aa.compute("torchdali", define, [np.zeros((4, 4, 3), np.float32)], "HWC")


def test_shifts_of_solarize_add() -> None:
    with pytest.raises(ValueError, match="from 0 to 127"):
        augmentations.solarize_add_shift(128)


# ---------------------------------------------------------------- the package


def test_public_functions_name_their_arguments() -> None:
    """Each parameter of the methods is described in its own docstring or in the one that it refers to."""
    for function in (
        rand_augment.rand_augment,
        trivial_augment.trivial_augment_wide,
        auto_augment.auto_augment,
    ):
        missing = [
            name
            for name in inspect.signature(function).parameters
            if f"    {name}: " not in inspect.cleandoc(function.__doc__ or "")  # Python 3.13 removes the indentation
        ]
        assert missing == []


@pytest.mark.slow
def test_import_torchdali_does_not_load_auto_aug() -> None:
    """The package is imported when it is used."""
    code = "import sys, torchdali; assert 'torchdali.auto_aug' not in sys.modules; torchdali.auto_aug.rand_augment.rand_augment"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_augmentations_work_outside_of_a_policy() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define():
        data = fn.constant(idata=200, shape=[4, 4, 3], dtype=types.UINT8, layout="HWC")
        return augmentations.invert(data), augmentations.posterize(
            data, magnitude_bin=10, num_magnitude_bins=11
        )

    inverted, posterized = define().run()
    assert np.asarray(inverted.at(0)).max() == 55
    assert np.asarray(posterized.at(1)).min() == 192
