"""Operators that choose random crop windows, so that each window contains enough of an image's boxes."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import deprecate, operator
from torchdali.declaration.schema import BatchOutput, Column, InputConstraints, PerSample, one_of
from torchdali.errors import batch_level
from torchdali.kernels.boxes import crop as kernel
from torchdali.kernels.memory import Array
from torchdali.kernels.window import round_half_away_number
from torchdali.ops._arguments import UnsetFlag, as_list
from torchdali.ops._rows import count_remaining, rows_of
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

__all__ = ["random_bbox_crop", "ssd_random_crop"]

_THRESHOLDS = ("iou", "overlap")

BoxBatch = Annotated[TensorList, InputConstraints((), (torch.float32,))]
LabelBatch = Annotated[TensorList, InputConstraints()]
ImageBatch = Annotated[TensorList, InputConstraints(("HWC",), sets_layout=False)]


# ---------------------------------------------------------------- random_bbox_crop


def _crop_outputs(arguments: Any) -> int:
    return 3 + int(arguments["inputs"] == 2) + bool(arguments["output_bbox_indices"])


_DEFAULT_RANGE = [1.0, 1.0]  # default value; the code tests with `is` whether the user passed a list, even an equal one


@operator(
    over="batch", separable=True, devices=("cpu",), layout="",
    outputs=_crop_outputs,
)  # fmt: skip
def random_bbox_crop(
    boxes: BoxBatch,
    labels: LabelBatch | None = None,
    /,
    *,
    all_boxes_above_threshold: bool = True,
    allow_no_crop: bool = True,
    aspect_ratio: list[float] = _DEFAULT_RANGE,
    bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None,
    crop_shape: PerSample[list[int]] | None = None,
    input_shape: PerSample[list[int]] | None = None,
    ltrb: bool = UnsetFlag(True),  # type: ignore[assignment]
    num_attempts: int = 1,
    output_bbox_indices: bool = False,
    quiet: bool = False,
    scaling: list[float] = _DEFAULT_RANGE,
    shape_layout: str | None = None,
    threshold_type: Annotated[str, one_of(_THRESHOLDS)] = "iou",
    thresholds: list[float] = [0.0],  # noqa: B006  never changed
    total_num_attempts: int = -1,
    rng: BatchRng,
) -> BatchOutput | tuple[BatchOutput, ...]:
    """Choose a random window that contains enough of an image's boxes, and return the boxes relative to the window.

    The operator searches for a window in rounds. Each round chooses one of the ``thresholds`` at random, and then makes
    up to ``num_attempts`` attempts to find a window. A window is accepted if its aspect ratio is allowed, the boxes
    reach the threshold, and at least one box is kept (unless the image has no boxes). If ``allow_no_crop`` is True, a
    round may choose the whole image instead of a threshold. The search ends when a window is accepted or the whole
    image is chosen.

    Args:
        boxes: ``(N, 4)`` or ``(N, 6)`` float32 in [0, 1], relative to the image or volume.
        labels: ``(N, ...)`` of any dtype, one label per box. If a box is removed, its label is removed too.
        all_boxes_above_threshold: True if all boxes must reach the threshold; False if one box is enough.
        allow_no_crop: True if a round may choose the whole image, with all of its boxes. This argument has no effect if
            ``crop_shape`` is passed.
        aspect_ratio: Minimum and maximum ratio of the window's width to its height. For volumes, pass two numbers for
            all ratios, or six numbers: the limits of x/y, x/z and y/z. If ``input_shape`` is passed, ratios are
            computed from extents in pixels, otherwise from extents relative to the image. If minimum and maximum are
            equal, the larger extent is random, and the smaller extent is computed from the ratio.
        bbox_layout: Order of a box's numbers: x, y, z for its start, and X, Y, Z for its end or W, H, D for its size.
            Default: ``"xyXY"`` or ``"xyzXYZ"``.
        bbox_prune_threshold: Minimum share of a box that must be in the window, from 0 to 1. Boxes with a smaller share
            and boxes outside of the window are removed. Default: a box is removed if its center is outside of the
            window.
        crop_shape: Extents of the window in pixels, instead of random extents. Requires ``input_shape``.
        input_shape: Extents of the image in pixels.
        ltrb: False if boxes are x, y, width and height, instead of two corners. Deprecated: use ``bbox_layout``.
        num_attempts: Maximum number of attempts per round.
        output_bbox_indices: True to add an output with the int32 indices of the kept boxes.
        quiet: True to suppress the warning about samples for which no window was accepted.
        scaling: Minimum and maximum extent of the window on each axis, relative to the image.
        shape_layout: Order of the extents in ``crop_shape`` and ``input_shape``. Default: ``"WH"`` or ``"WHD"``.
        threshold_type: Quantity that the thresholds apply to: ``"iou"`` is the intersection over union of box and
            window, ``"overlap"`` is the share of a box that is in the window.
        thresholds: Thresholds in [0, 1]. Each round draws one threshold at random.
        total_num_attempts: Number of attempts after which the best window so far is used. Default: -1, no limit.

    Returns:
        Three to five outputs: the window's start, the window's extents, the kept boxes, the labels of the kept boxes
        (if ``labels`` is passed), and the indices of the kept boxes (if ``output_bbox_indices`` is True). Start and
        extents are float32 ``(d,)`` in the order x, y, z. Both are relative to the image, or in pixels if
        ``crop_shape`` is passed. The boxes are clipped to the window, and relative to the window. The window is empty
        if no window had an allowed aspect ratio in ``total_num_attempts`` attempts.

    Raises:
        RuntimeError: an argument is out of range or contradicts another argument, a box is outside of [0, 1], or the
            unlimited search found no window in 100,000 attempts.
    """
    if not len(boxes):
        arguments = {
            "inputs": 1 + (labels is not None),
            "output_bbox_indices": output_bbox_indices,
        }
        return ([],) * _crop_outputs(arguments)
    rows, counts = _rows(boxes)
    axes = rows.shape[1] // 2
    fixed = crop_shape is not None
    if fixed and (scaling is not _DEFAULT_RANGE or aspect_ratio is not _DEFAULT_RANGE or input_shape is None):
        raise batch_level(
            RuntimeError("crop_shape must be passed with input_shape, and without scaling and aspect_ratio")
        )
    rules = _make_rules(
        axes, tuple(thresholds), allow_no_crop and not fixed, tuple(scaling), tuple(aspect_ratio), num_attempts,
        total_num_attempts, threshold_type, all_boxes_above_threshold, bbox_prune_threshold,
    )  # fmt: skip
    order = _get_order(axes, _box_layout(axes, bbox_layout, ltrb))
    packed_boxes = kernel.Boxes(*order.to_corners(rows.numpy()), counts)
    sizes = _parse_extents("input_shape", input_shape, shape_layout, len(counts), axes)
    crops = _parse_extents("crop_shape", crop_shape, shape_layout, len(counts), axes)
    windows = kernel.search(packed_boxes, rules, _AttemptNumbers(rng, 1 + 2 * axes), sizes, crops)
    if not (quiet or windows.found.all()):
        missed = [f"{i} (score {windows.scores[i]:g})" for i in np.flatnonzero(~windows.found)]
        warnings.warn(
            f"random_bbox_crop: no window met the constraints in {total_num_attempts} attempts; sample "
            f"{', '.join(missed)} got the best window",
            stacklevel=2,
        )
    kept_indices, kept_counts, corners = _select_boxes(packed_boxes, windows, rules.prune, sizes if fixed else None)
    columns = [torch.from_numpy(order.from_corners(corners))]
    if labels is not None:
        columns.append(_concat_labels(labels, packed_boxes).index_select(0, torch.from_numpy(kept_indices)))
    if output_bbox_indices:
        firsts = packed_boxes.counts.cumsum() - packed_boxes.counts
        indices = kept_indices - firsts[packed_boxes.owner[kept_indices]]
        columns.append(torch.from_numpy(indices.astype(np.int32)))
    outputs: list[BatchOutput] = [torch.from_numpy(windows.start), torch.from_numpy(windows.extent)]
    outputs += [TensorList.from_rows(column, kept_counts) for column in columns]
    return tuple(outputs)


class _AttemptNumbers:
    """Random numbers for the search for windows.

    Each attempt to find a sample's window uses `width` numbers, which depend only on the sample and on the attempt's
    index.
    """

    def __init__(self, rng: BatchRng, width: int) -> None:
        self._rng, self._width = rng, width

    def __call__(self, samples: Array, begin: int, end: int) -> Array:
        rng = self._rng.pick(samples.tolist()) if begin else self._rng
        rows = rng.uniform((end - begin) * self._width, begin * self._width)
        shaped = rows.reshape(len(samples), end - begin, self._width)
        return np.ascontiguousarray(shaped.transpose(2, 0, 1))


def _rows(boxes: TensorList) -> tuple[Tensor, Sequence[int]]:
    """Return the boxes of all samples in one tensor, and each sample's number of boxes."""
    kind = boxes.torch_dtype
    try:
        rows, counts = rows_of(boxes)
    except (RuntimeError, IndexError):
        rows, counts = torch.empty(0), []
    if kind != torch.float32 or rows.ndim != 2 or rows.shape[1] not in (4, 6):
        shapes = boxes.shape()
        shape = next((s for s in shapes if len(s) != 2 or s[1] != shapes[0][-1]), shapes[0])
        raise RuntimeError(f"boxes must be float32 (N, 4) or (N, 6), got {kind} {shape}")
    return rows, counts


@functools.lru_cache(maxsize=64)
def _make_rules(
    axes: int, thresholds: Sequence[float], no_crop: bool, scaling: Sequence[float], ratio: Sequence[float],
    attempts: int, total: int, kind: str, all_boxes: bool, prune: float | None,
) -> kernel.Rules:  # fmt: skip
    if not thresholds or not all(0 <= threshold <= 1 for threshold in thresholds):
        raise batch_level(RuntimeError(f"thresholds must be one or more values in [0, 1], got {list(thresholds)}"))
    if prune is not None and not 0 <= prune <= 1:
        raise batch_level(RuntimeError(f"bbox_prune_threshold must be in [0, 1], got {prune}"))
    if kind not in _THRESHOLDS:
        raise batch_level(RuntimeError(f"threshold_type must be 'iou' or 'overlap', got {kind!r}"))
    if attempts < 1 or (total < 1 and total != -1):
        raise batch_level(
            RuntimeError(f"num_attempts and total_num_attempts must be positive, got {attempts} and {total}")
        )
    if len(scaling) != 2 or not 0 <= scaling[0] <= scaling[1]:
        raise batch_level(
            RuntimeError(f"scaling must be a range [low, high] with 0 <= low <= high, got {list(scaling)}")
        )
    return kernel.Rules(
        thresholds, no_crop, (scaling[0], scaling[1]), _parse_ratios(axes, ratio), attempts,
        None if total == -1 else total, kind == "overlap", all_boxes, prune=prune,
    )  # fmt: skip


def _parse_ratios(axes: int, values: Sequence[float]) -> tuple[tuple[int, int, float, float], ...]:
    if len(values) not in (2, 6) or not all(0 <= a <= b for a, b in zip(values[::2], values[1::2], strict=True)):
        raise batch_level(
            RuntimeError(
                f"aspect_ratio must be one or three ranges [low, high] with 0 <= low <= high, got {list(values)}"
            )
        )
    pairs = list(itertools.combinations(range(axes), 2))
    ranges = list(zip(values[::2], values[1::2], strict=True))[: len(pairs)] * (1 if len(values) == 6 else len(pairs))
    return tuple((first, second, *limits) for (first, second), limits in zip(pairs, ranges, strict=True))


def _box_layout(axes: int, layout: str | None, ltrb: bool) -> str:
    if layout is None:
        return "xyz"[:axes] + ("XYZ" if ltrb else "WHD")[:axes]
    if not isinstance(ltrb, UnsetFlag):
        raise batch_level(RuntimeError("ltrb and bbox_layout cannot be used together; ltrb is deprecated"))
    if sorted(layout) not in (sorted("xyz"[:axes] + ends[:axes]) for ends in ("XYZ", "WHD")):
        raise batch_level(
            RuntimeError(
                f"bbox_layout must be a permutation of 'xyXY' or 'xyWH' (3-D: 'xyzXYZ' or "
                f"'xyzWHD'), got {layout!r} for {axes}-D boxes"
            )
        )
    return layout


class _NumberOrder:
    """Converts boxes from a layout (an order of a box's numbers) to starts and ends, and back."""

    def __init__(self, axes: int, layout: str) -> None:
        self._has_size = "W" in layout
        names = "xyz"[:axes] + ("WHD" if self._has_size else "XYZ")[:axes]
        self._columns = [layout.index(name) for name in names]
        self._inverse = [names.index(name) for name in layout]
        self._is_identity = layout == names

    def to_corners(self, boxes: Array) -> tuple[Array, Array]:
        """Return the starts and ends ``(n, axes)`` of boxes.

        Raises:
            RuntimeError: a box is outside of the image.
        """
        ordered = boxes if self._is_identity else boxes[:, self._columns]
        axes = len(self._columns) // 2
        low, high = ordered[:, :axes], ordered[:, axes:]
        high = low + high if self._has_size else high
        if len(boxes) and not (_is_normalized(low) and _is_normalized(high)):
            inside = ((low >= 0) & (low <= 1) & (high >= 0) & (high <= 1)).all(axis=1)
            raise RuntimeError(f"boxes must be in [0, 1], got {boxes[~inside][0].tolist()}")
        return low, high

    def from_corners(self, corners: tuple[Array, Array]) -> Array:
        """Convert starts and ends to boxes in this layout."""
        low, high = corners
        numbers = np.concatenate((low, high - low if self._has_size else high), axis=1)
        return numbers if self._is_identity else numbers[:, self._inverse]


_get_order = functools.lru_cache(maxsize=64)(_NumberOrder)


def _is_normalized(numbers: Array) -> bool:
    return bool(numbers.min() >= 0 and numbers.max() <= 1)


def _parse_extents(name: str, value: Any, layout: str | None, count: int, axes: int) -> Array | None:
    """Convert the argument ``input_shape`` or ``crop_shape`` to an array ``(count, axes)`` in the order x, y, z.

    Return None if the user didn't pass the argument.
    """
    if value is not None and not isinstance(value, Column):
        return _shared_extents(name, tuple(as_list(value)), layout, axes).repeat(count, 0)
    rows = None if value is None else [tuple(as_list(row)) for row in value]
    return _convert_extents(name, rows, layout, axes)


@functools.lru_cache(maxsize=64)
def _shared_extents(name: str, row: tuple[int, ...], layout: str | None, axes: int) -> Array:
    extents = _convert_extents(name, [row], layout, axes)
    assert extents is not None
    return extents


def _convert_extents(name: str, rows: Sequence[tuple[int, ...]] | None, layout: str | None, axes: int) -> Array | None:
    names = "WHD"[:axes]
    layout = names if layout is None else layout
    if sorted(layout) != sorted(names):
        raise batch_level(RuntimeError(f"shape_layout must be a permutation of {names}, got {layout!r}"))
    if rows is None:
        return None
    if any(len(row) != axes for row in rows) or any(n < (name == "input_shape") for row in rows for n in row):
        raise RuntimeError(f"{name} must have {axes} extents in the order {layout}, got {list(rows[0])}")
    return np.array(rows)[:, [layout.index(n) for n in names]]


def _select_boxes(
    boxes: kernel.Boxes, windows: kernel.Windows, prune: float | None, sizes: Array | None
) -> tuple[Array, list[int], tuple[Array, Array]]:
    """Select the boxes that the windows keep.

    Returns:
        Indices of the kept boxes among all boxes of the batch, each sample's number of kept boxes, and the starts and
        ends of the kept boxes relative to their windows.
    """
    low, high = windows.start, windows.start + windows.extent
    if sizes is not None:
        scale = sizes.astype(np.float32)
        low, high = low / scale, high / scale
    mask = kernel.keep_boxes(boxes, low, high, prune)
    if np.count_nonzero(windows.whole):
        mask |= windows.whole[boxes.owner]
    indices = mask.nonzero()[0]
    corners = kernel.move_boxes(boxes, indices, low, high, windows.whole)
    return indices, count_remaining(mask, boxes.counts, boxes.owner), corners


def _concat_labels(labels: TensorList, boxes: kernel.Boxes) -> Tensor:
    """Return the labels of all boxes in one tensor. If a sample has more labels than boxes, only the first are used.

    Raises:
        RuntimeError: a sample has fewer labels than boxes.
    """
    counts = boxes.counts.tolist()
    label_counts: Sequence[int] = [0] * len(counts)
    if labels.ndim():
        rows, label_counts = rows_of(labels)
        if label_counts == counts:
            return rows
    if any(label_count < count for label_count, count in zip(label_counts, counts, strict=True)):
        raise RuntimeError("random_bbox_crop: each box must have a label, got fewer labels than boxes")
    return torch.cat([sample[:count] for sample, count in zip(labels.samples(), counts, strict=True)])


# ---------------------------------------------------------------- ssd_random_crop

_SSD = (0.1, 0.3, 0.5, 0.7, 0.9, 0.0)


@operator(
    over="batch", separable=True, devices=("cpu",),
    layout=lambda layouts, arguments: layouts[:1],
)  # fmt: skip
def ssd_random_crop(
    images: ImageBatch,
    boxes: BoxBatch,
    labels: LabelBatch,
    /,
    *,
    num_attempts: int = 1,
    rng: BatchRng,
) -> tuple[BatchOutput, BatchOutput, BatchOutput]:
    """Crop images and their boxes at random, as in the training of single-shot detectors (SSD).

    Deprecated: use `random_bbox_crop`. This operator is equivalent to `random_bbox_crop` with the thresholds 0, 0.1,
    0.3, 0.5, 0.7 and 0.9, ``scaling`` from 0.3 to 1, and ``aspect_ratio`` from 0.5 to 2 without ``input_shape``.

    Args:
        images: ``(H, W, C)`` of any dtype.
        boxes: ``(N, 4)`` float32: left, top, right and bottom, relative to the image.
        labels: ``(N, ...)`` of any dtype, one label per box.
        num_attempts: Number of attempts to find a window before another threshold is chosen.

    Returns:
        The cropped images, the boxes whose centers are in the window, and the labels of these boxes. The boxes are
        relative to the window.
    """
    if not len(boxes):
        return [], [], []
    rows, counts = _rows(boxes)
    if rows.shape[1] != 4:
        raise RuntimeError(f"boxes must have the shape (N, 4), got {boxes.shape()[0]}")
    numbers = rows.numpy()
    packed_boxes = kernel.Boxes(numbers[:, :2], numbers[:, 2:], counts)
    rules = kernel.Rules(
        _SSD, True, (0.3, 1.0), _parse_ratios(2, [0.5, 2.0]), max(num_attempts, 1), None, continue_round=True
    )
    windows = kernel.search(packed_boxes, rules, _AttemptNumbers(rng, 5))
    kept_indices, kept_counts, corners = _select_boxes(packed_boxes, windows, None, None)
    kept_boxes = TensorList.from_rows(torch.from_numpy(np.concatenate(corners, axis=1)), kept_counts)
    kept_labels = _select_labels(labels, packed_boxes, kept_indices, kept_counts)
    image_windows = zip(images.samples(), windows.start.tolist(), windows.extent.tolist(), strict=True)
    cut = [_crop_image(image, *start, *extent) for image, start, extent in image_windows]
    return cut, kept_boxes, kept_labels


deprecate(ssd_random_crop, "random_bbox_crop")


def _select_labels(
    labels: TensorList, boxes: kernel.Boxes, kept_indices: Array, kept_counts: Sequence[int]
) -> TensorList:
    """Return the labels of the kept boxes. As in DALI, a sample may have fewer labels than boxes."""
    counts = boxes.counts.tolist()
    label_counts = [len(sample) if sample.ndim else 0 for sample in labels.samples()]
    if all(label_count >= count for label_count, count in zip(label_counts, counts, strict=True)):
        rows = _concat_labels(labels, boxes).index_select(0, torch.from_numpy(kept_indices))
        return TensorList.from_rows(rows, kept_counts)
    firsts = np.repeat(np.cumsum([0, *counts[:-1]]), kept_counts)
    sample_indices = np.split(kept_indices - firsts, np.cumsum(kept_counts)[:-1])
    samples = zip(labels.samples(), sample_indices, label_counts, strict=True)
    return TensorList.from_samples([s[torch.from_numpy(p[p < n])] for s, p, n in samples])


def _crop_image(image: Tensor, x: float, y: float, width: float, height: float) -> Tensor:
    """Crop an image to a window whose position and size are relative to the image."""
    rows, columns = image.shape[:2]
    top, bottom = (round_half_away_number(edge * rows) for edge in (y, y + height))
    left, right = (round_half_away_number(edge * columns) for edge in (x, x + width))
    return image[top:bottom, left:right].clone(memory_format=torch.contiguous_format)
