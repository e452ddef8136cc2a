"""Results that can be told without computing them, of operators whose values only the real DALI checks otherwise."""

from __future__ import annotations

import pytest
import torch

from torchdali import fn, types
from torchdali.tensors import TensorCPU

IMAGE = torch.arange(4 * 5 * 3, dtype=torch.uint8).reshape(4, 5, 3)


def test_a_crop_of_three_extents_crops_the_depth() -> None:
    volume = TensorCPU(torch.arange(6 * 5 * 4 * 1).reshape(6, 5, 4, 1), "DHWC")
    found = fn.crop(volume, crop=[2, 3, 4], crop_pos_z=0.0, crop_pos_y=1.0)
    assert torch.equal(torch.as_tensor(found), torch.as_tensor(volume)[:2, 2:])


def test_a_slice_may_be_empty() -> None:
    assert torch.as_tensor(fn.slice(IMAGE, start=[2], shape=[0], axes=[0])).shape == (0, 5, 3)


@pytest.mark.parametrize(("anchor", "shape"), [([1.0], [2.0, 3.0]), ([1.0, 2.0], [2.0]), ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])])
def test_erase_wants_an_anchor_and_an_extent_for_each_axis(anchor: list[float], shape: list[float]) -> None:
    with pytest.raises(RuntimeError, match="anchors and"):
        fn.erase(IMAGE, anchor=anchor, shape=shape, axes=[0, 1])


def test_without_contrast_all_is_the_middle() -> None:
    assert torch.unique(torch.as_tensor(fn.contrast(IMAGE, contrast=0.0))).tolist() == [128]


def test_bgr_is_rgb_in_reverse() -> None:
    gray = {"output_type": types.GRAY}
    one, other = fn.color_space_conversion(IMAGE.flip(-1), image_type=types.BGR, **gray), fn.color_space_conversion(IMAGE, image_type=types.RGB, **gray)
    assert torch.equal(torch.as_tensor(one), torch.as_tensor(other)) and torch.as_tensor(one).shape == (4, 5, 1)
