"""Results that are obvious without a computation, for operators whose values are otherwise only compared with the real DALI."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchdali import fn, types
from torchdali.tensors import TensorCPU, TensorList

IMAGE = torch.arange(4 * 5 * 3, dtype=torch.uint8).reshape(4, 5, 3)


def test_a_crop_of_three_extents_crops_the_depth() -> None:
    volume = TensorCPU(torch.arange(6 * 5 * 4 * 1).reshape(6, 5, 4, 1), "DHWC")
    found = fn.crop(volume, crop=[2, 3, 4], crop_pos_z=0.0, crop_pos_y=1.0)
    assert torch.equal(torch.as_tensor(found), torch.as_tensor(volume)[:2, 2:])


def test_a_slice_may_be_empty() -> None:
    assert torch.as_tensor(fn.slice(IMAGE, start=[2], shape=[0], axes=[0])).shape == (0, 5, 3)


@pytest.mark.parametrize(("anchor", "shape"), [([1.0], [2.0, 3.0]), ([1.0, 2.0], [2.0]), ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])])
def test_erase_needs_an_anchor_and_an_extent_for_each_axis(anchor: list[float], shape: list[float]) -> None:
    with pytest.raises(RuntimeError, match="one value per axis and region"):
        fn.erase(IMAGE, anchor=anchor, shape=shape, axes=[0, 1])


def test_zero_contrast_returns_the_center() -> None:
    assert torch.unique(torch.as_tensor(fn.contrast(IMAGE, contrast=0.0))).tolist() == [128]


def test_bgr_is_rgb_in_reverse() -> None:
    gray = {"output_type": types.GRAY}
    one, other = fn.color_space_conversion(IMAGE.flip(-1), image_type=types.BGR, **gray), fn.color_space_conversion(IMAGE, image_type=types.RGB, **gray)
    assert torch.equal(torch.as_tensor(one), torch.as_tensor(other)) and torch.as_tensor(one).shape == (4, 5, 1)


def test_a_centered_anchor_is_the_middle() -> None:
    found = torch.as_tensor(fn.erase(IMAGE + 1, anchor=[2.0, 3.0], shape=[2.0, 4.0], axes=[0, 1], centered_anchor=True))
    assert (found == 0).all(-1).tolist() == [[False, y in (1, 2), y in (1, 2), y in (1, 2), y in (1, 2)] for y in range(4)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_degrees_of_freedom_divide_the_sum(dtype: torch.dtype) -> None:
    values, mean = torch.tensor([0, 2, 4], dtype=dtype), torch.tensor(2.0)
    assert [float(fn.reductions.variance(values, mean, ddof=ddof)) for ddof in (0, 1, 2)] == pytest.approx([8 / 3, 4, 8])


def test_transforms_combine_from_the_first_or_from_the_last() -> None:
    moved, grown = torch.tensor([[1.0, 0, 1], [0, 1, 2]]), torch.tensor([[3.0, 0, 0], [0, 5, 0]])
    first, last = (fn.transforms.combine(moved, grown, reverse_order=reverse) for reverse in (False, True))
    assert torch.as_tensor(first)[:, 2].tolist() == [3.0, 10.0] and torch.as_tensor(last)[:, 2].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", [types.UINT8, types.INT16])
def test_relative_extents_are_rounded_up(dtype: types.DALIDataType) -> None:
    images = TensorList.from_samples([IMAGE + 1], "HWC")
    pasted = fn.multi_paste(images, in_ids=[0], shapes_rel=[[0.6, 0.5]], output_size=[6, 6], dtype=dtype)
    rows, columns = (np.asarray(pasted.samples()[0])[..., 0] != 0).nonzero()
    assert (rows.max(), columns.max()) == (2, 2)
