"""Messages of invalid augmentations and policies name the rule, the location and the value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from torchdali import fn, pipeline_def, types
from torchdali.auto_aug import augmentations as a
from torchdali.auto_aug import auto_augment, rand_augment, trivial_augment
from torchdali.auto_aug.core import Policy, augmentation


@augmentation(mag_range=(0, 10))
def strong(data: Any, magnitude: Any, extra: Any) -> Any:
    return data


@augmentation(mag_range=(0, 10), mag_to_param=lambda m: np.zeros(2 if m < 5 else 3, np.uint8))
def ragged(data: Any, parameter: Any) -> Any:
    return data


@augmentation(mag_range=(0, 10), mag_to_param=lambda m: fn.transforms.shear(shear=[m, m]))
def of_nodes(data: Any, parameter: Any) -> Any:
    return data


def traced(use: Callable[[Any], Any]) -> Callable[[], Any]:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def pipe() -> Any:
        return use(types.Constant(np.zeros((4, 4, 3), np.uint8)))

    return pipe


def binned(each: Any) -> Callable[[], Any]:
    return traced(lambda data: each(data, magnitude_bin=3, num_magnitude_bins=11))


def of_policy(*steps: Any) -> Callable[[], Any]:
    return lambda: Policy("P", 9, [steps])


CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: augmentation(strong), TypeError, "applied to already decorated Augmentation.*`strong.augmentation"),
    (lambda: augmentation(lambda x, *, y: x), TypeError, r"accepts 1 positional argument\(s\).*two"),
    (binned(strong), ValueError, "`strong` requires `extra` argument, not provided.*: extra"),
    (binned(of_nodes), TypeError, "`of_nodes`.*must return.*`np.ndarray`"),
    (traced(lambda x: ragged(x, magnitude_bin=fn.random.uniform(values=[1, 2], dtype=types.INT32),
                             num_magnitude_bins=11)),
     ValueError, r"`ragged`.*same type and shape.*\(2,\).*\(3,\) and type uint8"),
    (traced(lambda x: auto_augment.apply_auto_augment(Policy("P", 9, []), x)), ValueError, "empty policy.*'P'"),
    (traced(lambda x: auto_augment.apply_auto_augment(auto_augment.get_image_net_policy(True), x)),
     ValueError, "`shape`.*`apply_auto_augment`"),
    (traced(lambda x: auto_augment.apply_auto_augment(auto_augment.get_image_net_policy(), x, shhape=1)),
     ValueError, "`shhape` is not used by any.*`apply_auto_augment`"),
    (traced(lambda x: rand_augment.apply_rand_augment([], x, 1, 20)), ValueError, "`augmentations`.*empty"),
    (traced(lambda x: trivial_augment.apply_trivial_augment([], x)), ValueError, "`augmentations`.*empty"),
    (traced(lambda x: rand_augment.rand_augment(x, n=None, m=1)), ValueError, "`n`.*non-negative integer.*None"),
    (traced(lambda x: rand_augment.rand_augment(x, n=1, m=31)), ValueError, r"`m`.*\[0, 30\].*31"),
    (lambda: Policy("P", 0.5, []), ValueError, "`num_magnitude_bins`.*0.5"),
    (lambda: Policy("P", 9, a.rotate), TypeError, "`sub_policies` must be a list or tuple"),
    (lambda: Policy("P", 9, [a.rotate]), TypeError, "list or tuple.*Augmentation"),
    (of_policy((a.rotate, a.shear_x)), TypeError, r"\(augmentation, probability, magnitude\). Got"),
    (of_policy((0.5, a.rotate, 3)), TypeError, "instance of Augmentation. Got `0.5`"),
    (of_policy((a.rotate, 2, 2)), ValueError, r"Probability of.*`rotate`.*`\[0, 1\]`.*`2`"),
    (of_policy((strong, 1, -1)), ValueError, r"`strong`.*`\[0, 8\]`.*`-1`"),
    (of_policy((strong, 1, None)), ValueError, "`strong`.*magnitude bin is required"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "kind", "facts"), CASES, ids=[c[2][:40] for c in CASES])
def test_wrong_use_is_an_error(use: Callable[[], Any], kind: type[Exception], facts: str) -> None:
    with pytest.raises(kind) as caught:
        use()
    assert re.search(facts, str(caught.value), re.DOTALL), caught.value
