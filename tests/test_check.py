"""Tests of `tests.check` itself: it finds operators with one error each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from tests.check import PerSample, Result, check
from torchdali import fn
from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Image
from torchdali.declaration.schema import PerSample as Per

IMAGES = [np.arange(h * 12, dtype=np.uint8).reshape(h, 4, 3) for h in (2, 3, 3)]


def expected(dtype: Any = np.uint8, layout: str = "HWC") -> list[Result]:
    return [Result([(x // 2).astype(dtype) for x in IMAGES], layout)]


def right(image: Image, /, *, by: Per[int] = 2) -> Image:
    return image // by


def changes_its_input(image: Image, /, *, by: Per[int] = 2) -> Image:
    return image.floor_divide_(by).clone()


def shares_memory(image: Image, /, *, by: Per[int] = 1) -> Image:
    return image if by == 1 else image // by


def wrong_dtype(image: Image, /, *, by: Per[int] = 2) -> Image:
    return (image // by).to(torch.int16)


def wrong_shape(image: Image, /, *, by: Per[int] = 2) -> Image:
    return (image // by)[:1]


def wrong_value(image: Image, /, *, by: Per[int] = 2) -> Image:
    return image // (by + 1)


def depends_on_neighbours(images: Any, /, *, by: Any = 2) -> Any:
    least = min(int(x.min()) for x in images.samples())
    return [x // 2 + least - int(x.min()) + len(images) - 3 for x in images.samples()]


def wrong_when_stacked(images: Any, /, *, by: Any = 2) -> Any:
    dense = images.dense()
    whole = dense is not None and dense.ndim == 4 and len(dense) > 1
    return [x // (3 if whole else 2) for x in images.samples()]


@pytest.fixture
def declare(own_operators: None) -> Iterator[Callable[..., str]]:
    """Declare an operator for the time of one test; return its name."""
    declared = []

    def add(body: Callable[..., Any], **options: Any) -> str:
        declared.append(operator(name=f"wrong_{body.__name__}", **options)(body).operator.name)
        return declared[-1]

    yield add
    for name in declared:
        delattr(fn, name)


WRONG = [
    (changes_its_input, {}, "changed its input"),
    (wrong_dtype, {}, "int16 instead of uint8"),
    (wrong_shape, {}, "shape (1, 4, 3) instead of (2, 4, 3)"),
    (wrong_value, {}, "of the values within"),
    (right, {"layout": lambda layouts, arguments: "WHC"}, "layout 'WHC' instead of 'HWC'"),
    (depends_on_neighbours, {"over": "batch", "separable": True}, "sample 0 alone"),
    (wrong_when_stacked, {"over": "batch", "separable": True}, "a uniform batch"),
]


@pytest.mark.parametrize(
    ("body", "options", "message"), WRONG, ids=lambda v: getattr(v, "__name__", None)
)
def test_finds_wrong_operators(
    declare: Callable[..., str], body: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        check(declare(body, **options), [IMAGES], {}, "HWC", expected=expected())


def test_one_case_of_a_kind_runs_in_every_mode(declare: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(image: Image, /, *, by: Per[int] = 2) -> Image:
        calls.append(by)
        return image // by

    def count(by: Any) -> int:
        calls.clear()
        check(name, [IMAGES], {"by": by}, "HWC", expected=[Result([x // by for x in IMAGES], "HWC")])
        return len(calls)

    monkeypatch.delenv("TORCHDALI_ALL_WAYS", raising=False)
    name = declare(counted)
    in_a_pipeline = 2 * len(IMAGES)  # and the prefetched batch
    assert count(2) > in_a_pipeline >= count(3)
    monkeypatch.setenv("TORCHDALI_ALL_WAYS", "1")
    assert count(3) > in_a_pipeline


def test_finds_results_that_share_memory_with_inputs(
    declare: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchdali.calls.dispatch.copy_returned_inputs", lambda declared, outputs, inputs: outputs)
    with pytest.raises(AssertionError, match="shares memory with an input"):
        check(declare(shares_memory), [IMAGES], {}, "HWC", expected=[Result(IMAGES, "HWC")])


def test_a_result_that_is_an_input_is_copied(declare: Callable[..., str]) -> None:
    name = declare(shares_memory)
    assert check(name, [IMAGES], {}, "HWC", expected=[Result(IMAGES, "HWC")]) == 1.0


@pytest.mark.parametrize("by", [2, PerSample([2, 2, 2])])
def test_accepts_a_correct_operator(declare: Callable[..., str], by: Any) -> None:
    assert check(declare(right), [IMAGES], {"by": by}, "HWC", expected=expected()) == 1.0


def test_does_not_modify_its_cases(declare: Callable[..., str]) -> None:
    before = [x.copy() for x in IMAGES]
    check(declare(right), [IMAGES], {}, "HWC", expected=expected())
    for x, y in zip(before, IMAGES, strict=True):
        np.testing.assert_array_equal(x, y)
