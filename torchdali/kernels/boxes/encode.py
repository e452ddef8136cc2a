"""Match boxes with anchors (the boxes that a single-shot detector starts from), to train the detector."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import Array

__all__ = ["Anchors", "center_size", "match_boxes"]


class Anchors:
    """The anchors of a detector, with precomputed values for `match_boxes`.

    Args:
        corners: Anchors ``(M, 4)``: left, top, right and bottom.
    """

    def __init__(self, corners: Tensor) -> None:
        self.corners = corners
        # The anchors are reversed, because max and argmax return the first of equal values, and DALI uses the last.
        flipped = corners.flip(0).t()
        self.low, self.high = (side.unsqueeze(1).contiguous() for side in (flipped[:2], flipped[2:]))
        """Lower and upper corners of the reversed anchors, ``(2, 1, M)`` each."""
        self.areas = (flipped[2] - flipped[0]) * (flipped[3] - flipped[1])
        self.has_valid_areas = bool((self.areas > 0).all() and self.areas.isfinite().all())

    def __len__(self) -> int:
        return len(self.corners)


def match_boxes(boxes: Tensor, anchors: Anchors, criteria: float) -> tuple[Array, Array]:
    """Match anchors with boxes (Liu et al., "SSD: Single Shot MultiBox Detector", 2016).

    For each anchor, the box with the largest intersection over union is found. If this ratio is above a threshold, the
    box is the anchor's match. In addition, each box is matched with the anchor with the largest ratio, regardless of
    the threshold. Among boxes or anchors with equal ratios, the last one is chosen.

    Args:
        boxes: Boxes ``(N, 4)``: left, top, right and bottom; N > 0.
        criteria: Threshold for the intersection over union.

    Returns:
        Indices of the matched anchors, ``(K,)``, and indices of their boxes, ``(K,)``.
    """
    if boxes.device.type == "cpu":
        iou = _overlap(boxes.detach().numpy(), anchors)
    else:
        iou = _overlap_on_device(boxes.detach(), anchors).cpu().numpy()
    best = iou.argmax(1)
    has_box = iou.max(0) > np.float32(criteria)
    has_box[best] = True
    indices = np.flatnonzero(has_box)
    box = len(iou) - 1 - iou.take(indices, 1)[::-1].argmax(0)
    box[np.searchsorted(indices, best)] = np.arange(len(best))  # NumPy keeps the last value of a repeated index
    return len(anchors) - 1 - indices, box


def _overlap(boxes: Array, anchors: Anchors) -> Array:
    """Return the intersection over union of boxes and reversed anchors, ``(N, M)``; undefined values are 0."""
    corners = boxes.T[:, :, None]
    area = (corners[2] - corners[0]) * (corners[3] - corners[1])
    # PyTorch is faster for large arrays. NumPy is used for small arrays, because NumPy keeps the GIL.
    memory = torch.empty((4, len(boxes), len(anchors)), dtype=torch.float32)
    planes, sides = memory.numpy(), memory[2:]
    torch.maximum(torch.from_numpy(corners[:2]), anchors.low, out=memory[:2])
    torch.minimum(torch.from_numpy(corners[2:]), anchors.high, out=sides).sub_(memory[:2])
    sides.clamp_(min=0)
    inside: Array = np.multiply(planes[2], planes[3], out=planes[2])
    union = np.add(area, anchors.areas.numpy(), out=planes[0])
    union -= inside
    if anchors.has_valid_areas and (area >= 0).all():
        inside /= union
    else:
        with np.errstate(invalid="ignore"):
            inside /= union
        inside[np.isnan(inside)] = 0
    return inside


def _overlap_on_device(boxes: Tensor, anchors: Anchors) -> Tensor:
    """Compute `_overlap` on an accelerator."""
    corners = boxes.t().unsqueeze(2)
    low, high = corners[:2], corners[2:]
    sides = (torch.minimum(high, anchors.high) - torch.maximum(low, anchors.low)).clamp_(min=0)
    inside = sides[0] * sides[1]
    area = (high[0] - low[0]) * (high[1] - low[1])
    return inside.div_(area + anchors.areas - inside).nan_to_num_(nan=0.0)


def center_size(boxes: Tensor) -> Tensor:
    """Convert boxes ``(..., 4)`` from corners to center and size."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat(((low + high) * 0.5, high - low), -1)
