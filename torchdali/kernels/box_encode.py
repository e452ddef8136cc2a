"""Match boxes with anchors, as single-shot detectors are trained on them."""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.scratch import scratch

__all__ = ["Anchors", "center_size", "matches"]


class Anchors:
    """Anchors of a detector.

    Args:
        corners: ``(M, 4)``, left, top, right and bottom.
    """

    def __init__(self, corners: Tensor) -> None:
        self.corners = corners
        # Turned round, since max and argmax return the first of equal values, and the last one counts.
        self.turned = corners.flip(0).t().contiguous()
        left, top, right, bottom = self.turned
        self.areas = (right - left) * (bottom - top)

    def __len__(self) -> int:
        return len(self.corners)


def matches(boxes: Tensor, anchors: Anchors, criteria: float) -> tuple[Tensor, Tensor]:
    """Match anchors with boxes (Liu et al., "SSD: Single Shot MultiBox Detector", 2016).

    An anchor belongs to the box with which it has the largest intersection over union, if that is above a
    threshold. Each box also gets its best anchor, whatever they have in common. Of equal ones, the last counts.

    Args:
        boxes: ``(N, 4)``, left, top, right and bottom; N > 0.
        anchors: M of them.
        criteria: The threshold.

    Returns:
        Anchors that have a box ``(K,)``, and their boxes ``(K,)``: indices.
    """
    union = _overlap(boxes.detach().flip(0), anchors)
    best = (union.numpy() if union.device.type == "cpu" else union).argmax(1).tolist()
    own = {anchor: place for place, anchor in reversed(list(enumerate(best)))}
    taken = union.amax(0) > criteria
    places = boxes.new_tensor(list(own), dtype=torch.int64)
    taken[places] = True
    found = taken.nonzero()[:, 0]
    box = union.index_select(1, found).argmax(0)
    box[torch.searchsorted(found, places)] = boxes.new_tensor(list(own.values()), dtype=torch.int64)
    return len(anchors) - 1 - found, len(boxes) - 1 - box


def _overlap(boxes: Tensor, anchors: Anchors) -> Tensor:
    """Return intersection over union ``(N, M)``; 0 where it is not defined."""
    left, top, right, bottom = boxes.t().unsqueeze(2).unbind()
    low_x, low_y, high_x, high_y = anchors.turned.unbind()
    width, height, other = (_memory(boxes, anchors, part) for part in ("width", "height", "other"))
    for low, high, least, greatest, side in (
        (left, right, low_x, high_x, width),
        (top, bottom, low_y, high_y, height),
    ):
        torch.minimum(high, greatest, out=side)
        side.sub_(torch.maximum(low, least, out=other)).clamp_(min=0)
    inside = width.mul_(height)
    torch.add((right - left) * (bottom - top), anchors.areas, out=other)
    return inside.div_(other.sub_(inside)).nan_to_num_(nan=0.0)


def _memory(boxes: Tensor, anchors: Anchors, purpose: str) -> Tensor:
    """Return uninitialised memory for a number a box and anchor; on the CPU, what was used before."""
    shape = len(boxes), len(anchors)
    if boxes.device.type == "cpu" and boxes.dtype == torch.float32:
        return scratch(shape, f"box_encode {purpose}")
    return boxes.new_empty(shape)


def center_size(boxes: Tensor) -> Tensor:
    """Return centre and size of boxes given by corners; ``(..., 4)``."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat(((low + high) * 0.5, high - low), -1)
