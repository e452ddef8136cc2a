"""Regions of images at positions."""

import numpy as np
import pytest

from torchdali.kernels.pasting import compute_regions


def test_regions_end_where_the_image_ends():
    inside, outside = np.full((1, 1, 2), 8), np.array([[9, 9]])
    anchors = np.array([[[3.0, 5.0]]]), False
    share = np.array([[[0.25, 0.5]]]), True
    found = compute_regions(in_anchors=anchors, out_anchors=share, shapes=None, image_sizes=inside, canvas_sizes=outside)
    assert found.tolist() == [[[3, 5, 2, 4, 5, 3]]]
    with pytest.raises(ValueError, match="within the image"):
        compute_regions(in_anchors=None, out_anchors=share, shapes=None, image_sizes=inside, canvas_sizes=outside)
