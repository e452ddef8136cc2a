"""Copies between orders of axes, compared with torch's."""

from __future__ import annotations

import itertools
from unittest import mock

import pytest
import torch

from torchdali.kernels import rearrange

pytest.importorskip("cv2", reason="only OpenCV has copies of its own")

TYPES = (torch.uint8, torch.bool, torch.bfloat16, torch.float32, torch.int64, torch.float64)
SHAPES = (
    (70, 80, 3),
    (4, 65, 70),
    (61, 66, 2),
    (150, 160),
    (3, 60, 70, 3),
    (2, 3, 64, 70),
    (1, 130, 140),
    (130, 140, 1),
)


def _numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    draw = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, shape, generator=draw).to(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_copies_in_every_order_match_torch(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    whole = _numbers(tuple(n + 3 for n in shape), dtype)
    window = whole[tuple(slice(1, 1 + n) for n in shape)]
    for x in (_numbers(shape, dtype), window):
        for order in itertools.permutations(range(len(shape))):
            expected = torch.empty([shape[axis] for axis in order], dtype=dtype).copy_(
                x.permute(order)
            )
            for made in (
                rearrange.make_contiguous(x.permute(order)),
                rearrange.copy_to(torch.zeros_like(expected), x.permute(order)),
            ):
                assert made.is_contiguous()
                assert torch.equal(made, expected), (order, x.stride())


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 2, 0), (1, 0, 2), (0, 2, 1)], ids=str)
def test_opencv_handles_the_orders_of_images(order: tuple[int, int, int]) -> None:
    x = _numbers((100, 110, 3) if order != (1, 2, 0) else (3, 100, 110), torch.uint8).permute(order)
    with mock.patch.object(torch.Tensor, "copy_", side_effect=AssertionError("left to torch")):
        made = rearrange.make_contiguous(x)
    assert torch.equal(made, x)


def test_bits_of_floats_are_preserved() -> None:
    bits = torch.arange(0x7F800001, 0x7F800001 + 100 * 100 * 3, dtype=torch.int32).view(100, 100, 3)
    made = rearrange.make_contiguous(bits.view(torch.float32).permute(2, 0, 1))
    assert torch.equal(made.view(torch.int32), bits.permute(2, 0, 1).contiguous())


def test_gradients_pass() -> None:
    x = torch.rand(80, 80, 3, requires_grad=True)
    rearrange.make_contiguous(x.permute(2, 0, 1)).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones_like(x))
