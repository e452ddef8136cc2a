"""The operator `box_encoder`, which assigns boxes to the anchors of a detector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Data, InputConstraints
from torchdali.kernels.boxes.encode import Anchors, center_size, match_boxes
from torchdali.kernels.memory import Array

__all__ = ["box_encoder"]


class _EncoderConstants:
    """Values that `box_encoder` computes once for all samples.

    Raises:
        RuntimeError: an argument is out of range or has the wrong length.
    """

    def __init__(
        self,
        device: torch.device,
        anchors: list[float],
        offset: bool,
        criteria: float = 0.5,
        means: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        scale: float = 1.0,
        stds: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    ) -> None:
        if not 0 <= criteria <= 1:
            raise RuntimeError(f"criteria must be in [0, 1], got {criteria}")
        if len(means) != 4 or len(stds) != 4 or 0 in stds:
            raise RuntimeError(
                f"means and stds must have 4 numbers each, and stds must not contain 0, got "
                f"{list(means)} and {list(stds)}"
            )
        if not anchors or len(anchors) % 4:
            raise RuntimeError(f"anchors must be a multiple of 4 numbers, at least 4, got {len(anchors)} numbers")
        self.criteria, self.offset, self.scale = criteria, offset, scale
        corners = torch.tensor(anchors, dtype=torch.float32, device=device).reshape(-1, 4)
        self.anchors, center_sizes = Anchors(corners), center_size(corners)
        self.centers, self.sizes = (center_sizes * scale).chunk(2, 1)
        self.unmatched = torch.zeros_like(center_sizes) if offset else center_sizes
        """The encoded boxes of a sample in which no anchor has a box."""
        self.means, self.stds = center_sizes.new_tensor(means), center_sizes.new_tensor(stds)

        on_cpu = device.type == "cpu"
        self.arrays = [x.numpy() for x in (center_sizes * scale, self.means, self.stds) if on_cpu]

    def offsets(self, boxes: Tensor, indices: Tensor) -> Tensor:
        """Return the offsets of boxes from their anchors.

        Args:
            boxes: ``(K, 4)``, center and size.
            indices: ``(K,)``: index of each box's anchor.
        """
        boxes, size = boxes * self.scale, self.sizes[indices]
        center_offsets = (boxes[:, :2] - self.centers[indices]) / size
        return (torch.cat((center_offsets, (boxes[:, 2:] / size).log()), 1) - self.means) / self.stds

    def offsets_of_arrays(self, boxes: Array, indices: Array) -> Array:
        """Compute `offsets` with NumPy.

        PyTorch releases the GIL in each call, and threads then wait to get the GIL back. NumPy keeps the GIL in small
        calls.
        """
        anchors, means, stds = self.arrays
        matched_anchors, result = anchors[indices], boxes * np.float32(self.scale)
        result[:, :2] -= matched_anchors[:, :2]
        result[:, :2] /= matched_anchors[:, 2:]
        result[:, 2:] = torch.from_numpy(result[:, 2:] / matched_anchors[:, 2:]).log_().numpy()
        result -= means
        result /= stds
        return result


class _Encoder:
    """Implementation of `box_encoder`. It caches the values that are the same for all samples."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._constants: _EncoderConstants | None = None

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
        key = boxes.device, anchors, offset, settings
        constants = self._constants
        if constants is None or key != self._key:
            constants = self._constants = _EncoderConstants(boxes.device, anchors, offset, **settings)
            self._key = key
        return _encode(boxes, labels, constants)


@operator(layout="", make=_Encoder)
def box_encoder(
    boxes: Annotated[Tensor, InputConstraints((), (torch.float32,))],
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
    """Assign boxes to the anchors of a single-shot detector (SSD).

    Each anchor gets the box with the largest intersection over union, if the intersection over union is above
    ``criteria``. In addition, each box is assigned to the anchor with the largest intersection over union, even if it
    is below ``criteria``. If several boxes or anchors are equally good, the last one is used.

    Args:
        boxes: ``(N, 4)`` float32: left, top, right and bottom.
        labels: ``(N,)`` int32, one label per box. 0 is reserved for anchors without a box.
        anchors: ``4 * M`` numbers: left, top, right and bottom of M anchors.
        criteria: Threshold of the intersection over union, in [0, 1].
        means: Four numbers that are subtracted from the offsets of x, y, width and height. Default: 0.
        offset: True to return offsets from the anchors instead of boxes: for x and y,
            ``((box_center - anchor_center) / anchor_size - mean) / std``; for width and height,
            ``(log(box_size / anchor_size) - mean) / std``. The offsets of anchors without a box are 0.
        scale: Factor that boxes and anchors are multiplied with before offsets are computed.
        stds: Four numbers by which the offsets of x, y, width and height are divided; they must not be 0. Default: 1.

    Returns:
        Two outputs: the encoded boxes ``(M, 4)`` float32 and their labels ``(M,)`` int32. An encoded box is the center
        x, center y, width and height of the anchor's box, or of the anchor itself if the anchor has no box. The label
        of an anchor without a box is 0.

    Raises:
        RuntimeError: an argument is out of range or has the wrong length, ``labels`` isn't int32, or there are fewer
            labels than boxes.
    """
    settings = {"criteria": criteria, "means": means, "scale": scale, "stds": stds}
    return _Encoder()(boxes, labels, anchors=anchors, offset=offset, **settings)


def _encode(boxes: Tensor, labels: Tensor, constants: _EncoderConstants) -> tuple[Tensor, Tensor]:
    _check_boxes(boxes, labels)
    result, encoded_labels = constants.unmatched.clone(), labels.new_zeros(len(constants.anchors))
    if boxes.numel():
        indices, box = match_boxes(boxes, constants.anchors, constants.criteria)
        on_cpu = boxes.device.type == labels.device.type == "cpu"
        if on_cpu and not boxes.requires_grad:
            matched = _center_size_array(boxes.numpy()[box])
            if constants.offset:
                matched = constants.offsets_of_arrays(matched, indices)
            result.numpy()[indices] = matched
            encoded_labels.numpy()[indices] = labels.numpy().reshape(-1)[box]
        else:
            anchor_indices, box_indices = (torch.from_numpy(array).to(boxes.device) for array in (indices, box))
            matched_boxes = center_size(boxes[box_indices])
            result[anchor_indices] = (
                constants.offsets(matched_boxes, anchor_indices) if constants.offset else matched_boxes
            )
            encoded_labels[anchor_indices] = labels.reshape(-1)[box_indices]
    return result, encoded_labels


def _center_size_array(boxes: Array) -> Array:
    """Compute `center_size` with NumPy."""
    low, high = boxes[:, :2], boxes[:, 2:]
    return np.concatenate(((low + high) * np.float32(0.5), high - low), 1)


def _check_boxes(boxes: Tensor, labels: Tensor) -> None:
    if boxes.numel() and (boxes.ndim != 2 or boxes.shape[1] != 4):
        raise RuntimeError(f"boxes must have the shape (N, 4), got {tuple(boxes.shape)}")
    if labels.dtype != torch.int32 or labels.numel() < boxes.numel() // 4:
        raise RuntimeError(
            f"labels must be int32, one per box, got {labels.dtype} {tuple(labels.shape)} for {len(boxes)} boxes"
        )
