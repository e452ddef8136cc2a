"""Canvases that are covered by the regions pasted on them, and positions of regions."""

import numpy as np
import pytest

from torchdali.kernels.pasting import covered, regions

GRID = [[0, 0, 2, 3], [0, 3, 2, 4], [2, 0, 3, 3], [2, 3, 3, 4]]  # y, x, height and width: 5 x 7 in all


def painted(rectangles, size):
    canvas = np.zeros(size, bool)
    for y, x, h, w in rectangles:
        canvas[y : y + h, x : x + w] = True
    return canvas.all()


def as_found(rectangles):
    targets = np.array(rectangles, np.int64).reshape(1, -1, 4)
    return np.concatenate((np.zeros_like(targets[..., :2]), targets), -1)


@pytest.mark.parametrize(
    "rectangles",
    [
        GRID,
        GRID[::-1],
        GRID[:3],
        [*GRID, [0, 0, 0, 0]],
        [*GRID[:2], GRID[1], [2, 0, 3, 3], [2, 3, 3, 3]],
        [[0, 0, 5, 7]],
        [[0, 0, 5, 6]],
        [[0, 0, 5, 7], [0, 0, 0, 7]],
        [[0, 0, 2, 7], [1, 0, 3, 7]],  # as many pixels, but some of them twice
    ],
)
def test_a_canvas_is_covered_when_no_pixel_is_left(rectangles):
    assert bool(covered(as_found(rectangles), np.array([[5, 7]]))[0]) == painted(rectangles, (5, 7))


def test_what_is_said_to_be_covered_is():
    rng = np.random.default_rng(0)
    count = 0
    for _ in range(2000):
        corners = rng.integers(0, 3, (3, 2))
        rectangles = np.concatenate((corners, rng.integers(0, 4 - corners)), 1)
        if covered(as_found(rectangles), np.array([[3, 3]]))[0]:
            count += 1
            assert painted(rectangles, (3, 3))
    assert count > 5


def test_regions_end_where_the_image_ends():
    inside, outside = np.full((1, 1, 2), 8), np.array([[9, 9]])
    anchors = np.array([[[3.0, 5.0]]]), False
    share = np.array([[[0.25, 0.5]]]), True
    found = regions(in_anchors=anchors, out_anchors=share, shapes=None, inside=inside, outside=outside)
    assert found.tolist() == [[[3, 5, 2, 4, 5, 3]]]
    with pytest.raises(ValueError, match="outside"):
        regions(in_anchors=None, out_anchors=share, shapes=None, inside=inside, outside=outside)
