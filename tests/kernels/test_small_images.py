"""Small images of a batch are mirrored in one call; each must equal a single call."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchdali.kernels.mirror import mirror_each
from torchdali.kernels.normalize import affine, normalize_each_into

AXES: dict[str, list[list[int]]] = {
    "none": [[]] * 6,
    "columns of some": [[1], [], [1], [1], [], []],
    "columns of all": [[1]] * 6,
    "all ways": [[], [0], [1], [0, 1], [1], []],
    "channels too": [[2], [0, 2], [], [1, 2], [0, 1, 2], [2]],
}


def batch(height: int, width: int, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    """Return six noise images."""
    made = torch.randint(0, 256, (6, height, width, 3), generator=torch.Generator().manual_seed(2))
    return made.to(dtype)


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
@pytest.mark.parametrize("side", [1, 9, 100], ids="side {}".format)
@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int64, torch.float16, torch.bfloat16], ids=str
)
def test_images_mirrored_in_a_batch(dtype: torch.dtype, side: int, axes: list[list[int]]) -> None:
    """A batch that is mirrored in groups equals images mirrored one by one, with and without an output tensor."""
    images = batch(side, side + 3, dtype)
    expected = torch.stack([image.flip(some) for image, some in zip(images, axes, strict=True)])
    out = torch.empty_like(images)
    assert mirror_each(images, axes, out) is out
    assert torch.equal(out, expected)
    assert torch.equal(mirror_each(images, axes), expected)
    assert torch.equal(images, batch(side, side + 3, dtype))


@pytest.mark.parametrize("planar", [True, False], ids=["CHW", "HWC"])
@pytest.mark.parametrize("windows", ["whole", "cut alike", "cut each"])
@pytest.mark.parametrize("side", [9, 40, 100], ids="side {}".format)
def test_images_normalized_in_a_batch(side: int, windows: str, planar: bool) -> None:
    """Images that are normalized and mirrored in one call are bit-identical to images normalized one by one."""
    whole = batch(side, side).numpy()
    images = {
        "whole": whole,
        "cut alike": whole[:, 1:, : side - 1],
        "cut each": [image[k % 2 : side - 1 + k % 2, 1:] for k, image in enumerate(whole)],
    }[windows]
    kept = [image.copy() for image in images]
    mirrored = [True, False, False, True, True, False]
    scaling = affine((120.0, 110.0, 100.0), (60.0, 50.0, 70.0), 1.0, 0.0, 3, 3)
    height, width, _ = images[0].shape
    shape = (3, height, width) if planar else (height, width, 3)
    order = (1, 2, 0) if planar else (0, 1, 2)
    out = torch.empty(6, *shape)
    normalize_each_into(out, images, scaling, mirrored, order)
    for result, image, reverse in zip(out, images, mirrored, strict=True):
        alone = torch.empty(1, *shape)
        normalize_each_into(alone, image[None], scaling, [reverse], order)
        assert torch.equal(result, alone[0])
        # Compare with the definition, too, in case both have the same error.
        by_hand = (image[:, :: -1 if reverse else 1] - np.float32([120, 110, 100])) / np.float32(
            [60, 50, 70]
        )
        seen = result.permute(order) if planar else result
        np.testing.assert_allclose(seen.numpy(), by_hand, atol=2e-5)
    assert all(np.array_equal(a, b) for a, b in zip(images, kept, strict=True))
