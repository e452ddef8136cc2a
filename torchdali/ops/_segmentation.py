"""Operators on segmentation masks: choose random pixels or objects of a mask, and select polygons by mask."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import BatchOutput, Data, InputConstraints, PerSample, one_of
from torchdali.errors import batch_level
from torchdali.kernels.masks import foreground as kernel
from torchdali.kernels.masks.blobs import blobs
from torchdali.kernels.memory import Array
from torchdali.ops._arguments import UnsetFloat, UnsetInt, as_list, match_axes
from torchdali.rng import BatchRng, Rng
from torchdali.tensors import TensorList

__all__ = ["random_mask_pixel", "random_object_bbox", "select_masks"]

_BOX_FORMATS = ("anchor_shape", "start_end", "box")

Blobs = tuple[Array, Array, Array]
"""Label ``(n,)``, start ``(n, d)`` and exclusive end ``(n, d)`` of each object."""
Box = tuple[list[int], list[int], int]
"""Start, exclusive end and label of one object."""

_LABELS = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.uint32,
    torch.int32,
)
_MASKS = (*_LABELS, torch.uint64, torch.int64, torch.float32)


# ---------------------------------------------------------------- random_mask_pixel


def _over_batch(arguments: Mapping[str, Any]) -> str | None:
    return "_any_pixel" if arguments.get("foreground", 0) == 0 else None


@operator(
    name="segmentation.random_mask_pixel", devices=("cpu",), layout="", variant=_over_batch
)  # fmt: skip
def random_mask_pixel(
    mask: Annotated[Tensor, InputConstraints(dtypes=_MASKS)],
    /,
    *,
    foreground: PerSample[int] = 0,
    threshold: PerSample[float] = UnsetFloat(0.0),  # noqa: B008  never changed
    value: PerSample[int] | None = None,
    rng: Rng,
) -> Data:
    """Choose a random pixel of a mask.

    Args:
        mask: Mask with at least one axis: integers, bool or float32.
        foreground: If not 0, the pixel is chosen among the foreground pixels. If this argument is 0 (the default), or
            if the mask has no foreground pixel, the pixel is chosen among all pixels.
        threshold: Pixels with a value above this threshold are foreground. By default 0.
        value: If passed, pixels with this value are foreground. It can't be combined with ``threshold``.

    Returns:
        Coordinates of the pixel: one value per axis, int64.

    Raises:
        RuntimeError: the dtype isn't supported, the mask has no pixels, or both ``threshold`` and ``value`` are passed.
    """
    _check_pixels([mask.shape], threshold, value)
    index = rng.integer(0, mask.numel() - 1)
    if foreground:
        pixels = mask.contiguous().numpy().reshape(-1)
        flags = kernel.above(pixels, threshold) if value is None else kernel.equal(pixels, value)
        count = int(np.count_nonzero(flags))
        index = kernel.nth(flags, rng.integer(0, count - 1)) if count else index
    coordinates = []
    for extent in reversed(mask.shape):
        index, coordinate = divmod(index, extent)
        coordinates.append(coordinate)
    return torch.tensor(coordinates[::-1])


@operator(over="batch", separable=True, devices=("cpu",), layout="")
def _any_pixel(
    mask: Annotated[TensorList, InputConstraints(dtypes=_MASKS)],
    /,
    *,
    foreground: int = 0,
    threshold: PerSample[float] = UnsetFloat(0.0),  # noqa: B008  never changed
    value: PerSample[int] | None = None,
    rng: BatchRng,
) -> Data:
    """Choose a random pixel among all pixels of each mask; see `random_mask_pixel`."""
    if len(mask) and mask.torch_dtype not in _MASKS:
        raise RuntimeError(f"unsupported type of a mask: {mask.dtype}")
    shapes = mask.shape()
    _check_pixels(shapes, threshold, value)
    extents = np.array(shapes, np.int64).reshape(len(shapes), mask.ndim())
    indices = (rng.uniform(1)[:, 0] * extents.prod(1)).astype(np.int64)
    pixels = np.empty_like(extents)
    for axis in reversed(range(extents.shape[1])):
        indices, pixels[:, axis] = np.divmod(indices, extents[:, axis])
    return torch.from_numpy(pixels)


def _check_pixels(shapes: Sequence[Sequence[int]], threshold: Any, value: Any) -> None:
    if value is not None and not isinstance(threshold, UnsetFloat):
        raise batch_level(RuntimeError("pass only one of ``value`` and ``threshold``"))
    for shape in shapes:
        if not math.prod(shape) or not len(shape):
            raise RuntimeError(f"a mask must have at least one pixel, got the shape {tuple(shape)}")


# ---------------------------------------------------------------- random_object_bbox


def _box_outputs(arguments: Any) -> int | None:
    count = (1 if arguments["format"] == "box" else 2) + bool(arguments["output_class"])
    return count if count > 1 else None


class _ObjectFinder:
    """Implementation of `random_object_bbox` that can cache the objects of each label map."""

    def __init__(self) -> None:
        self._blobs: dict[Any, Blobs] = {}

    def __call__(self, mask: Tensor, /, *, rng: Rng, **arguments: Any) -> Any:
        return _choose_box(mask, rng, self._blobs if arguments.pop("cache_objects", False) else None, **arguments)


@operator(
    name="segmentation.random_object_bbox", devices=("cpu",), layout="",
    outputs=_box_outputs, make=_ObjectFinder,
)  # fmt: skip
def random_object_bbox(
    mask: Annotated[Tensor, InputConstraints(dtypes=_LABELS)],
    /,
    *,
    background: PerSample[int] = UnsetInt(0),  # noqa: B008  never changed
    cache_objects: bool = False,
    class_weights: PerSample[list[float]] | None = None,
    classes: PerSample[list[int]] | None = None,
    foreground_prob: PerSample[float] = 1.0,
    format: Annotated[str, one_of(_BOX_FORMATS)] = "anchor_shape",
    ignore_class: bool = False,
    k_largest: int | None = None,
    output_class: bool = False,
    threshold: PerSample[list[int]] | None = None,
    rng: Rng,
) -> Tensor | tuple[Tensor, ...]:
    """Choose a random object of a label map, and return the object's bounding box.

    An object is a connected group of pixels with the same label. Pixels that touch only diagonally aren't connected. An
    object is suitable if its bounding box isn't smaller than ``threshold``. The operator first chooses a label among
    the labels with at least one suitable object, and then chooses one of the label's suitable objects.

    Args:
        mask: Label map with 1 to 6 axes: bool, or integers of up to 32 bits.
        background: Label of the background. By default 0; if ``classes`` contains 0, the default is the smallest class
            minus 1.
        cache_objects: If True, the objects of each map are kept in memory, which saves time if the same map occurs
            again. By default False.
        class_weights: Relative probability of each label in ``classes``. If ``classes`` isn't passed, the weights
            belong to the labels 0, 1, 2 and so on, except the background. By default all labels are equally likely.
        classes: Labels to choose from. By default all labels except the background.
        foreground_prob: Probability of choosing an object. If no object is chosen, the output is the box of the whole
            map. By default 1.
        format: Format of the box. ``"anchor_shape"`` (the default) has two outputs, the start and the shape of the box.
            ``"start_end"`` has two outputs, the start and the end. ``"box"`` has one output, the start followed by the
            end. Ends are exclusive.
        ignore_class: If True, an object is chosen among the objects of all labels, without choosing a label first.
        k_largest: If passed, an object is chosen among the ``k_largest`` objects with the largest boxes: objects of the
            chosen label, or all objects if ``ignore_class`` is True.
        output_class: If True, the operator has an additional output: the object's label, a 0-D int32. If no object was
            chosen, this output is the background's label. By default False.
        threshold: Minimum extent of a suitable object's box, in pixels: one value for all axes, or one per axis. By
            default objects of any size are suitable.

    Returns:
        The box in pixels, int32. Start, end and shape have one value per axis. If the map has no suitable object, the
        box is the whole map.

    Raises:
        RuntimeError: the dtype or the number of axes isn't supported, the format is unknown, ``k_largest`` is below 1,
            ``ignore_class`` is combined with ``classes``, ``class_weights`` or ``output_class``, ``classes`` contains
            the background, a weight is negative, or the numbers of classes and weights differ.
    """
    return _choose_box(
        mask, rng, {} if cache_objects else None, background=background, class_weights=class_weights, classes=classes,
        foreground_prob=foreground_prob, format=format, ignore_class=ignore_class, k_largest=k_largest,
        output_class=output_class, threshold=threshold,
    )  # fmt: skip


def _choose_box(
    mask: Tensor,
    rng: Rng,
    cache: dict[Any, Blobs] | None,
    *,
    background: int = UnsetInt(0),
    class_weights: Any = None,
    classes: Any = None,
    foreground_prob: float = 1.0,
    format: str = "anchor_shape",
    ignore_class: bool = False,
    k_largest: int | None = None,
    output_class: bool = False,
    threshold: Any = None,
) -> Tensor | tuple[Tensor, ...]:
    _check_choice(mask.ndim, format, k_largest)
    if ignore_class and (classes is not None or class_weights is not None or output_class):
        raise RuntimeError(
            "``ignore_class`` cannot be combined with ``classes``, ``class_weights`` and ``output_class``"
        )
    background, weights = _label_weights(background, classes, class_weights)
    min_extents = None if threshold is None else match_axes("threshold", threshold, mask.ndim)
    box: Box | None = None
    if rng.random() < foreground_prob:
        labels = None if weights is None else list(weights)
        objects = _find_objects(mask.contiguous().numpy(), background, labels, cache)
        box = _choose_object(objects, rng, None if ignore_class else weights or {}, min_extents, k_largest)
    start, end, label = box or ([0] * mask.ndim, list(mask.shape), background)
    shape = [e - s for s, e in zip(start, end, strict=True)]
    vectors = {"box": [start + end], "start_end": [start, end], "anchor_shape": [start, shape]}[format]
    outputs = [torch.from_numpy(np.array(vector, np.int32)) for vector in vectors]
    if output_class:
        outputs.append(torch.tensor(_wrap_label(label), dtype=torch.int32))
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _check_choice(ndim: int, form: str, k_largest: int | None) -> None:
    if not 1 <= ndim <= 6:
        raise RuntimeError(f"a label map must have 1 to 6 dimensions, got {ndim}")
    if form not in _BOX_FORMATS:
        raise RuntimeError(f'invalid output format: "{form}"; expected "anchor_shape", "start_end" or "box"')
    if k_largest is not None and k_largest < 1:
        raise RuntimeError(f"``k_largest`` must be at least 1, got {k_largest}")


def _wrap_label(label: int) -> int:
    """Convert a 32-bit label to a signed number."""
    return (label + (1 << 31)) % (1 << 32) - (1 << 31)


def _label_weights(background: int, classes: Any, class_weights: Any) -> tuple[int, dict[int, float] | None]:
    """Return the background's label and the weight of each label.

    The weights are None if all labels except the background are equally likely.
    """
    if classes is None and class_weights is None:
        return background, None
    if classes is None:
        weights = as_list(class_weights)
        labels = [label for label in range(len(weights) + 1) if label != background][: len(weights)]
    else:
        labels = list(as_list(classes))
        weights = [1.0] * len(labels) if class_weights is None else as_list(class_weights)
        if isinstance(background, UnsetInt) and 0 in labels:
            background = min(labels) - 1
    if len(labels) != len(weights) or min(weights, default=0.0) < 0:
        raise RuntimeError(
            f"the shapes of ``classes`` and ``class_weights`` must match, and no weight may be negative, got {labels} "
            f"and {weights}"
        )
    if background in labels:
        raise RuntimeError(f"class label {background} coincides with background label, and is one of the classes")
    total = dict.fromkeys(labels, 0.0)
    for label, weight in zip(labels, weights, strict=True):
        total[label] += weight
    return background, total


def _find_objects(mask: Array, background: int, classes: Sequence[int] | None, cache: dict[Any, Blobs] | None) -> Blobs:
    if cache is None:
        return blobs(mask, background, classes)
    digest = hashlib.blake2b(mask.data, digest_size=32).digest() if mask.size else b""
    key = digest, mask.shape, mask.dtype, background, classes and tuple(classes)
    if key not in cache:
        cache[key] = blobs(mask, background, classes)
    return cache[key]


def _choose_object(
    objects: Blobs,
    rng: Rng,
    weights: dict[int, float] | None,
    min_extents: Sequence[int] | None,
    k_largest: int | None,
) -> Box | None:
    """Choose an object, or return None if no object is suitable.

    Args:
        weights: Weights of the labels. If empty, all labels have the same weight. If None, an object is chosen among
            the objects of all labels.
        min_extents: Minimum extents of a suitable object's box; None for no minimum.
        k_largest: If not None, an object is chosen among the `k_largest` objects with the largest boxes.
    """
    labels, low, high = objects
    if min_extents is not None:
        labels, low, high = (array[(high - low >= min_extents).all(axis=1)] for array in objects)
    if not len(labels):
        return None
    indices: Array = np.arange(len(labels))
    if weights is not None:
        present = sorted(set(labels.tolist()))
        chances = [weights.get(label, 0.0) if weights else 1.0 for label in present]
        if not math.fsum(chances):
            return None
        indices = np.flatnonzero(labels == _draw_value(rng, present, chances))
    if k_largest is not None:
        volumes = (high[indices] - low[indices]).prod(axis=1)
        indices = indices[np.argsort(-volumes, kind="stable")[:k_largest]]
    index = indices[rng.integer(0, len(indices) - 1)]
    return low[index].tolist(), high[index].tolist(), int(labels[index])


def _draw_value(rng: Rng, values: list[int], chances: list[float]) -> int:
    """Draw a value with probabilities proportional to `chances`."""
    remaining = rng.random() * math.fsum(chances)
    for value, chance in zip(values, chances, strict=True):
        remaining -= chance
        if remaining < 0:
            return value
    return next(v for v, chance in zip(reversed(values), reversed(chances), strict=True) if chance)


# ---------------------------------------------------------------- select_masks


@operator(
    name="segmentation.select_masks",
    over="batch",
    separable=True,
    devices=("cpu",),
    layout="",
)
def select_masks(
    mask_ids: Annotated[TensorList, InputConstraints(dtypes=(torch.int32,))],
    polygons: Annotated[TensorList, InputConstraints()],
    vertices: Annotated[TensorList, InputConstraints()],
    /,
    *,
    reindex_masks: bool = False,
) -> tuple[BatchOutput, BatchOutput]:
    """Select the polygons of some masks.

    Args:
        mask_ids: Ids ``(M,)`` of the masks to select, int32. Each id may occur only once. The output polygons are in
            the order of these ids.
        polygons: Polygons ``(N, 3)``, int32. Each row is the mask's id, the index of the polygon's first vertex, and
            the index after the polygon's last vertex. If several polygons have the same id, only the last polygon is
            used, as in DALI.
        vertices: Coordinates ``(V, D)`` of the vertices of all polygons, any dtype.
        reindex_masks: If True, the output polygons have the ids 0, 1, 2 and so on. By default the ids don't change.

    Returns:
        Two outputs: the selected polygons ``(M, 3)``, and the vertices of these polygons, one polygon after the other.

    Raises:
        RuntimeError: the dtype or shape of an input is wrong, an id occurs twice in ``mask_ids`` or has no polygon, or
            a polygon refers to missing vertices.
    """
    if not len(mask_ids):
        return [], []
    _check_polygons(mask_ids, polygons, vertices)
    points = [sample.numpy() for sample in vertices.samples()]
    output_ids: list[int] = []
    ranges: list[tuple[int, int]] = []
    sample_vertices: list[list[Array]] = []
    counts, lengths = [], []
    for ids, sample_polygons, array in zip(mask_ids.tolist(), polygons.tolist(), points, strict=True):
        if len(set(ids)) < len(ids):
            raise RuntimeError(f"mask_ids must not repeat, got {ids}")
        vertex_ranges = _find_vertex_ranges(ids, sample_polygons, len(array))
        ranges += vertex_ranges
        output_ids += range(len(ids)) if reindex_masks else ids
        sample_vertices.append([array[start:end] for start, end in vertex_ranges] or [array[:0]])
        counts.append(len(ids))
        lengths.append(sum([end - start for start, end in vertex_ranges]))
    rows = torch.from_numpy(_number_vertices(output_ids, ranges, counts, lengths))
    chosen = TensorList.from_rows(rows, counts)
    if len({array.shape[1] for array in points}) > 1:
        return chosen, [torch.from_numpy(np.concatenate(pieces)) for pieces in sample_vertices]
    selection = torch.from_numpy(np.concatenate([piece for pieces in sample_vertices for piece in pieces]))
    return chosen, TensorList.from_rows(selection, lengths)


def _number_vertices(
    ids: Sequence[int],
    ranges: Sequence[tuple[int, int]],
    counts: Sequence[int],
    lengths: Sequence[int],
) -> Array:
    """Return the selected polygons ``(n, 3)`` of all samples.

    In each sample, the vertices of the selected polygons are numbered from 0, without gaps.

    Args:
        ids: Ids of the selected polygons.
        ranges: First vertex and exclusive last vertex of each selected polygon in the input.
        counts: Number of selected polygons in each sample.
        lengths: Total number of vertices of the selected polygons in each sample.
    """
    table = np.empty((len(ids), 3), np.int32)
    bounds = np.array(ranges, np.int64).reshape(-1, 2)
    vertex_counts = bounds[:, 1] - bounds[:, 0]
    ends = vertex_counts.cumsum() - (np.cumsum(lengths) - lengths).repeat(counts)
    table[:, 0], table[:, 1], table[:, 2] = ids, ends - vertex_counts, ends
    return table


def _check_polygons(ids: TensorList, polygons: TensorList, vertices: TensorList) -> None:
    for ids_shape, shape, vertices_shape in zip(ids.shape(), polygons.shape(), vertices.shape(), strict=True):
        if len(ids_shape) != 1 or len(vertices_shape) != 2:
            raise RuntimeError(f"mask_ids must be 1D and vertices 2D, got {len(ids_shape)}D and {len(vertices_shape)}D")
        if len(shape) != 2 or shape[1] != 3:
            raise RuntimeError(f"polygons must be int32 (N, 3), got {tuple(shape)}")
    for name, batch in (("mask_ids", ids), ("polygons", polygons)):
        if batch.torch_dtype != torch.int32:
            raise RuntimeError(f"{name} must be int32, got {batch.dtype}")


def _find_vertex_ranges(ids: list[int], polygons: list[list[int]], count: int) -> list[tuple[int, int]]:
    """Return the vertex range of each mask in `ids`. If several polygons belong to a mask, the last polygon is used.

    Args:
        polygons: Id, first vertex and exclusive last vertex of each polygon.
        count: Number of vertices in the sample.

    Raises:
        RuntimeError: a mask has no polygon, or a polygon refers to missing vertices.
    """
    ranges = {}
    masks = set(ids)
    for mask, start, end in polygons:
        if mask in masks:
            if not 0 <= start <= end <= count:
                raise RuntimeError(f"the vertices of mask {mask} must be in [0, {count}), got [{start}, {end})")
            ranges[mask] = start, end
    missing = masks - ranges.keys()
    if missing:
        raise RuntimeError(f"no polygon belongs to mask {min(missing)}")
    return [ranges[mask] for mask in ids]
