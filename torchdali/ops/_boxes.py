"""Boxes and the anchors of detectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.kernels.box_encode import Anchors, center_size, matches
from torchdali.operator import operator
from torchdali.schema import Data, Takes

__all__ = ["box_encoder"]


def _no_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    return ""


class _Encoder:
    """Encodes boxes; keeps the anchors as a tensor."""

    def __init__(self) -> None:
        self._of: tuple[list[float] | None, torch.device | None] = None, None
        self._known: tuple[Anchors, Tensor] | None = None

    def __call__(
        self,
        boxes: Tensor,
        labels: Tensor,
        /,
        *,
        anchors: list[float],
        offset: bool = False,
        **settings: Any,
    ) -> tuple[Tensor, Tensor]:
        known = self._known
        if known is None or self._of[0] is not anchors or self._of[1] != boxes.device:
            known = self._known = _anchors(anchors, offset, boxes.device)
            self._of = anchors, boxes.device
        return _encoded(boxes, labels, *known, offset, **settings)


@operator(layout=_no_layout, make=_Encoder)
def box_encoder(
    boxes: Annotated[Tensor, Takes((), (torch.float32,))],
    labels: Data,
    /,
    *,
    anchors: list[float],
    criteria: float = 0.5,
    means: list[float] = [0.0, 0.0, 0.0, 0.0],  # noqa: B006  never changed
    offset: bool = False,
    scale: float = 1.0,
    stds: list[float] = [1.0, 1.0, 1.0, 1.0],  # noqa: B006
) -> tuple[Data, Data]:
    """Assign boxes to the anchors of a single-shot detector.

    An anchor gets the box with which its intersection over union is the largest, if that is above ``criteria``.
    The best anchor of each box gets it in any case. Of equal ones, the last counts.

    Args:
        boxes: ``(N, 4)`` float32: left, top, right and bottom.
        labels: ``(N,)`` int32, not 0.
        anchors: M times left, top, right and bottom.
        criteria: Threshold, in [0, 1].
        means: Of the offsets: subtracted from x, y, width and height.
        offset: Return offsets ``((center - anchor's) / anchor's size - mean) / std`` and
            ``(log(size / anchor's size) - mean) / std`` instead of boxes; 0 for anchors without a box.
        scale: Applied to boxes and anchors before offsets are computed.
        stds: Of the offsets, which are divided by them; not 0.

    Returns:
        ``(M, 4)`` float32: centre x, centre y, width and height of the box (of the anchor itself where it has
        none); and ``(M,)`` int32: its label, 0 for none.

    Raises:
        RuntimeError: arguments out of range or of a wrong length, labels that are not int32 or too few.
    """
    settings = {"criteria": criteria, "means": means, "scale": scale, "stds": stds}
    return _Encoder()(boxes, labels, anchors=anchors, offset=offset, **settings)


def _encoded(
    boxes: Tensor,
    labels: Tensor,
    anchors: Anchors,
    without: Tensor,
    offset: bool,
    criteria: float = 0.5,
    means: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    scale: float = 1.0,
    stds: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
) -> tuple[Tensor, Tensor]:
    _check_encoder(criteria, means, stds, boxes, labels)
    result, names = without.clone(), labels.new_zeros(len(anchors))
    if boxes.numel():
        found, box = matches(boxes, anchors, criteria)
        matched = center_size(boxes)[box]
        if offset:
            matched = _offsets(
                matched * scale, center_size(anchors.corners[found]) * scale, means, stds
            )
        result[found], names[found] = matched, labels.reshape(-1)[box]
    return result, names


def _anchors(numbers: list[float], offset: bool, device: torch.device) -> tuple[Anchors, Tensor]:
    """Return anchors, and what the result is where none of them has a box."""
    if not numbers or len(numbers) % 4:
        raise RuntimeError(
            f"anchors must be a multiple of 4 numbers, at least 4, not {len(numbers)}"
        )
    anchors = torch.tensor(numbers, dtype=torch.float32, device=device).reshape(-1, 4)
    return Anchors(anchors), torch.zeros_like(anchors) if offset else center_size(anchors)


def _check_encoder(
    criteria: float, means: Sequence[float], stds: Sequence[float], boxes: Tensor, labels: Tensor
) -> None:
    if not 0 <= criteria <= 1:
        raise RuntimeError(f"criteria must be in [0, 1], not {criteria}")
    if len(means) != 4 or len(stds) != 4 or 0 in stds:
        raise RuntimeError(
            f"means {list(means)} and stds {list(stds)} are 4 numbers each, the stds not 0"
        )
    if boxes.numel() and (boxes.ndim != 2 or boxes.shape[1] != 4):
        raise RuntimeError(f"boxes are (N, 4), not {tuple(boxes.shape)}")
    if labels.dtype != torch.int32 or labels.numel() < boxes.numel() // 4:
        raise RuntimeError(
            f"labels are int32, one a box, not {labels.dtype} {tuple(labels.shape)} for {len(boxes)} boxes"
        )


def _offsets(
    boxes: Tensor, anchors: Tensor, means: Sequence[float], stds: Sequence[float]
) -> Tensor:
    place = (boxes[:, :2] - anchors[:, :2]) / anchors[:, 2:]
    size = (boxes[:, 2:] / anchors[:, 2:]).log()
    return (torch.cat((place, size), 1) - boxes.new_tensor(means)) / boxes.new_tensor(stds)
