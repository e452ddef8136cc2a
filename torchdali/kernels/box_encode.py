"""Match boxes with anchors, as single-shot detectors are trained on them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["center_size", "matches"]


def matches(boxes: Tensor, anchors: Tensor, criteria: float) -> tuple[Tensor, Tensor]:
    """Match anchors with boxes (Liu et al., "SSD: Single Shot MultiBox Detector", 2016).

    An anchor belongs to the box with which it has the largest intersection over union, if that is above a
    threshold. Each box also gets its best anchor, whatever they have in common. Of equal ones, the last counts.

    Args:
        boxes: ``(N, 4)``, left, top, right and bottom; N > 0.
        anchors: ``(M, 4)``, likewise.
        criteria: The threshold.

    Returns:
        Anchors that have a box ``(K,)``, and their boxes ``(K,)``: indices.
    """
    # Both are turned round, since max and argmax return the first of equal values.
    union = _overlap(boxes.flip(0), anchors.flip(0))
    largest, box = union.max(0)
    taken = largest > criteria
    best = union.argmax(1).tolist()
    own = {anchor: place for place, anchor in reversed(list(enumerate(best)))}
    places = boxes.new_tensor(list(own), dtype=torch.int64)
    taken[places], box[places] = True, boxes.new_tensor(list(own.values()), dtype=torch.int64)
    found = taken.nonzero()[:, 0]
    return len(anchors) - 1 - found, len(boxes) - 1 - box[found]


def _overlap(boxes: Tensor, anchors: Tensor) -> Tensor:
    """Return intersection over union ``(N, M)``; 0 where it is not defined."""
    left, top, right, bottom = boxes.t().unsqueeze(2).unbind()
    low_x, low_y, high_x, high_y = anchors.t().contiguous().unbind()
    width = torch.minimum(right, high_x).sub_(torch.maximum(left, low_x)).clamp_(min=0)
    height = torch.minimum(bottom, high_y).sub_(torch.maximum(top, low_y)).clamp_(min=0)
    inside = width.mul_(height)
    areas = (right - left) * (bottom - top) + (high_x - low_x) * (high_y - low_y)
    return inside.div_(areas.sub_(inside)).nan_to_num_(nan=0.0)


def center_size(boxes: Tensor) -> Tensor:
    """Return centre and size of boxes given by corners; ``(..., 4)``."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat(((low + high) * 0.5, high - low), -1)
