"""The operator `multi_paste`: paste regions of several images on canvases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.calls.preparing import each_frame_value
from torchdali.declaration.schema import BatchOutput, Column, DType, PerFrame, PerSample, SampleIndices, Takes
from torchdali.errors import batch_level
from torchdali.kernels.convert import convert
from torchdali.kernels.limits import check_pixels, limits
from torchdali.kernels.memory import Array
from torchdali.kernels.pasting import compute_regions
from torchdali.ops._arrays import arrays_of
from torchdali.tensors import TensorList

__all__ = ["multi_paste"]

_CPU = torch.device("cpu")
_WHOLE = 1 << 18  # maximum bytes of a canvas; larger canvases of a batch are allocated as separate tensors
_REAL = (torch.uint8, torch.int16, torch.int32, torch.float32)

Pictures = Annotated[TensorList, Takes(("HWC", "FHWC"), _REAL)]
Places = Mapping[str, "tuple[Any, bool] | None"]
"""The arguments ``in_anchors``, ``out_anchors`` and ``shapes`` by their names.

Each argument is a tuple of its values and a bool, which is True if the values are fractions and False if the values are
in pixels. An argument that the user didn't pass is None.
"""


def _single(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    return layouts[0]


@operator(
    over="batch", separable=lambda arguments: arguments["in_ids"] is None, layout=_single
)  # fmt: skip
def multi_paste(
    images: Pictures,
    /,
    *others: Pictures,
    dtype: DType | None = None,
    in_anchors: PerFrame[Any] | None = None,
    in_anchors_rel: PerFrame[Any] | None = None,
    in_ids: PerSample[SampleIndices] | None = None,
    out_anchors: PerFrame[Any] | None = None,
    out_anchors_rel: PerFrame[Any] | None = None,
    output_size: PerSample[list[int]] | None = None,
    shapes: PerFrame[Any] | None = None,
    shapes_rel: PerFrame[Any] | None = None,
) -> BatchOutput:
    """Paste regions of several images on a canvas of zeros. Later regions cover earlier regions.

    With ``in_ids``, each canvas contains one region for each index in ``in_ids``, cut from the sample with this index.
    Without ``in_ids``, each canvas contains one region from each input. Anchors and shapes are ``(regions, 2)`` per
    sample, in the order y, x.

    Args:
        images: Images or frames ``(..., H, W, C)``: uint8, int16, int32 or float32.
        others: More inputs with images of the same dtype.
        dtype: Output dtype; values are rounded and saturated. By default the input's dtype.
        in_anchors: Upper left corner of each region in its image, in pixels. By default (0, 0).
        in_anchors_rel: Upper left corner of each region as a fraction of its image, instead of ``in_anchors``. The
            pixel position is rounded down.
        in_ids: Indices of the samples from which the regions are cut. With ``in_ids``, only one input may be passed.
        out_anchors: Upper left corner of each region on the canvas, in pixels. By default (0, 0).
        out_anchors_rel: Upper left corner of each region as a fraction of the canvas, instead of ``out_anchors``. The
            pixel position is rounded down.
        output_size: Height and width of the canvas, in pixels. By default the size of the images, which must then all
            have the same size.
        shapes: Height and width of each region, in pixels. By default a region extends to the end of its image.
        shapes_rel: Height and width of each region as fractions of its image, instead of ``shapes``. The pixel size is
            rounded up.

    Raises:
        RuntimeError: a region reaches outside its image or the canvas, or arguments contradict each other.
    """
    absolute = _list_arguments(in_anchors=in_anchors, out_anchors=out_anchors, shapes=shapes)
    relative = _list_arguments(in_anchors=in_anchors_rel, out_anchors=out_anchors_rel, shapes=shapes_rel)
    for name in absolute:
        if absolute[name] is not None and relative[name] is not None:
            raise batch_level(RuntimeError(f"{name} and {name}_rel cannot be specified together"))
    if in_ids is not None and others:
        raise RuntimeError(f"in_ids needs exactly one input, got {1 + len(others)}")
    inputs = [images, *others]
    _check_inputs(inputs)
    request = inputs, dtype, _places(absolute, relative), in_ids, output_size
    pasted_images = paste_by_numpy(*request)
    if pasted_images is None:
        pasted_images = _one_by_one(inputs, dtype, absolute, relative, in_ids, output_size)
    infos = _joined_infos(inputs, in_ids)
    layout = images.layout() or "FHWC"[-images.ndim() :]
    if isinstance(pasted_images, Tensor):
        return TensorList.from_dense(pasted_images, layout, source_info=infos)
    kind = dtype or images.torch_dtype
    return TensorList.from_samples(pasted_images, layout, kind, source_info=infos)


def _list_arguments(**places: Any) -> dict[str, Any]:
    return {name: place.tolist() if isinstance(place, np.ndarray) else place for name, place in places.items()}


def _check_inputs(inputs: Sequence[TensorList]) -> None:
    kinds = [each.torch_dtype for each in inputs]
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise batch_level(
                RuntimeError(f"the inputs must agree in dtype: input 0 is {kinds[0]}, input {i} is {kind}")
            )


def _one_by_one(
    inputs: Sequence[TensorList],
    dtype: torch.dtype | None,
    absolute: Mapping[str, Any],
    relative: Mapping[str, Any],
    ids: Any,
    size: Any,
) -> Tensor | list[Tensor]:
    """Paste the regions sample by sample. This function supports all arguments, and raises an error if one is invalid.

    Args:
        absolute: Values of ``in_anchors``, ``out_anchors`` and ``shapes``.
        relative: Values of ``in_anchors_rel``, ``out_anchors_rel`` and ``shapes_rel``. The keys are the names without
            the suffix ``_rel``.
    """
    columns = [each.samples() for each in inputs]
    count = range(len(columns[0]))
    sources = [[column[i] for column in columns] if ids is None else _pick(columns[0], _at(ids, i), i) for i in count]
    common = _common_size(columns) if size is None else None
    shapes = [_canvas(sources[i], columns[0][i], _at(size, i) or common, i) for i in count]
    canvases = _zeros(shapes, dtype or columns[0][0].dtype, columns[0][0].device) if count else []
    as_arrays = all(_is_plain(each, canvases[0]) for column in columns for each in column)
    for i in count:
        places = _places({k: _at(v, i) for k, v in absolute.items()}, {k: _at(v, i) for k, v in relative.items()})
        _compose(*_arrays(canvases[i], sources[i], as_arrays), places)
    return canvases


def _joined_infos(inputs: Sequence[TensorList], ids: Any) -> list[str] | None:
    """Return the source info (a text about the origin) of each output sample.

    The source infos of the images that are pasted on a canvas are joined with ";". Return None if no input has source
    infos.
    """
    known = [each.source_infos for each in inputs]
    if not any(known):
        return None
    count = range(len(inputs[0]))
    if ids is None:
        sources = [[infos[i] for infos in known if infos] for i in count]
    else:
        sources = [[(known[0] or ())[k] for k in _indices(_at(ids, i))] for i in count]
    return [";".join(filter(None, each)) for each in sources]


def _zeros(shapes: Sequence[tuple[int, ...]], dtype: torch.dtype, device: torch.device) -> Tensor | list[Tensor]:
    """Return one canvas per sample.

    Small canvases of the same shape are allocated as one tensor. Otherwise each canvas is a separate tensor.
    """
    if len(set(shapes)) == 1 and math.prod(shapes[0]) * dtype.itemsize <= _WHOLE:
        return torch.zeros((len(shapes), *shapes[0]), dtype=dtype, device=device)
    return [torch.zeros(shape, dtype=dtype, device=device) for shape in shapes]


def _at(value: Any, i: int) -> Any:
    if isinstance(value, Column):
        return value[i]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _indices(ids: Any) -> list[int]:
    return [int(k) for k in np.ravel(ids)]


def _pick(batch: Sequence[Tensor], ids: Any, sample: int) -> list[Tensor]:
    chosen = _indices(ids)
    for k in chosen:
        if not 0 <= k < len(batch):
            raise RuntimeError(
                f"the `in_idx` must be in range [0, {len(batch)}), for sample {sample}. Got in_idx: {k}. Input "
                f"batch size is: {len(batch)}."
            )
    return [batch[k] for k in chosen]


def _common_size(columns: Sequence[Sequence[Tensor]]) -> tuple[int, int]:
    """Return the height and width that all images have.

    Raises:
        RuntimeError: the images have different sizes.
    """
    sizes = sorted({(s.shape[-3], s.shape[-2]) for column in columns for s in column})
    if len(sizes) > 1:
        raise batch_level(
            RuntimeError(
                f"if the `output_size` is not specified, all the input samples must have the same shape. Got {sizes}"
            )
        )
    return sizes[0] if sizes else (0, 0)


def _canvas(sources: Sequence[Tensor], own: Tensor, size: Any, sample: int) -> tuple[int, ...]:
    first = sources[0].shape if sources else own.shape
    if len(size) < 2 or min(size) < 0:
        raise RuntimeError(
            f"the `output_size` must be non-negative, height and width, got {list(size)} (sample {sample})"
        )
    check_pixels(size, f"the canvas of sample {sample}")
    if len({s.shape[:-3] for s in sources}) > 1:
        raise RuntimeError(f"the inputs have different number of frames for sample {sample}")
    channels = sorted({s.shape[-1] for s in sources})
    if len(channels) > 1:
        raise RuntimeError(
            f"all regions pasted into given output sample must have the same number of channels, got {channels} "
            f"(sample {sample})"
        )
    return (*first[:-3], int(size[0]), int(size[1]), first[-1])


def _places(absolute: Mapping[str, Any], relative: Mapping[str, Any]) -> Places:
    """Combine the arguments that were passed in pixels and the arguments that were passed as fractions."""
    return {
        name: (value, False) if value is not None
        else None if relative[name] is None
        else (relative[name], True)
        for name, value in absolute.items()
    }  # fmt: skip


def _is_plain(source: Tensor, canvas: Tensor) -> bool:
    """Return True if NumPy can copy the image to the canvas. For small images, NumPy is faster than PyTorch."""
    return source.dtype == canvas.dtype and source.device.type == "cpu" and not source.requires_grad


def _arrays(canvas: Tensor, sources: Sequence[Tensor], as_arrays: bool) -> tuple[Any, Sequence[Any]]:
    return (canvas.numpy(), [s.numpy() for s in sources]) if as_arrays else (canvas, sources)


def _compose(canvas: Any, sources: Sequence[Any], places: Places) -> None:
    if not any(v is not None and _depth(v[0]) == 3 for v in places.values()):
        _paste_all(canvas, sources, places)
        return
    if canvas.ndim != 4:
        raise RuntimeError("for images without frames, each argument must be one table of shape (regions, 2)")
    for f in range(len(canvas)):
        now = {k: _of_frame(k, v, f, len(canvas)) for k, v in places.items()}
        _paste_all(canvas[f], [s[f] for s in sources], now)


def _of_frame(name: str, place: tuple[Any, bool] | None, frame: int, frames: int) -> tuple[Any, bool] | None:
    if place is None or _depth(place[0]) != 3:
        return place
    values = each_frame_value(name, place[0], frames)
    return values[frame], place[1]


def _depth(value: Any) -> int:
    return 1 + _depth(value[0]) if isinstance(value, (list, tuple)) and value else 0


def _paste_all(canvas: Any, sources: Sequence[Any], places: Places) -> None:
    """Paste regions of images on a canvas. Images and canvas are all tensors, or all arrays of the same dtype."""
    for name, place in places.items():
        _check_table(name, place, len(sources))
    for k, source in enumerate(sources):
        (y, x), (v, u), (h, w) = _region(k, source, canvas, places)
        region = source[..., y : y + h, x : x + w, :]
        if region.dtype != canvas.dtype:
            region = convert(region, canvas.dtype)
        canvas[..., v : v + h, u : u + w, :] = region


def _region(k: int, source: Any, canvas: Any, places: Places) -> Iterator[tuple[int, int]]:
    """Return the k-th region's start in the image, start on the canvas, and extent, in the order y, x.

    Raises:
        RuntimeError: the region reaches outside the image or the canvas.
    """
    inside, outside = source.shape[-3:-1], canvas.shape[-3:-1]
    start = _pair(places["in_anchors"], k, inside, math.floor) or (0, 0)
    target = _pair(places["out_anchors"], k, outside, math.floor) or (0, 0)
    rest = (inside[0] - start[0], inside[1] - start[1])
    extent = _pair(places["shapes"], k, inside, math.ceil) or rest
    for anchor, bounds, where in (
        (start, inside, "input sample"),
        (target, outside, "output bounds"),
    ):
        if not all(0 <= a <= a + e <= n for a, e, n in zip(anchor, extent, bounds, strict=True)):
            raise RuntimeError(
                f"The pasted region must be within {where} of shape {tuple(bounds)}, got shape {extent} at {anchor} "
                f"for the region at index {k}"
            )
    return iter((start, target, extent))


def _check_table(name: str, place: tuple[Any, bool] | None, count: int) -> None:
    """Check that an argument has two numbers per region, or is a single number."""
    if place is None or not isinstance(place[0], (list, tuple)):
        return
    shape: tuple[int, ...] = np.shape(place[0])
    if shape != (count, 2) and (count or shape[:1] != (0,)):
        raise RuntimeError(f"unexpected shape for argument `{name}`: {shape}; expected (regions, 2), here ({count}, 2)")


def _pair(place: tuple[Any, bool] | None, k: int, lengths: Sequence[int], whole: Any) -> tuple[int, int] | None:
    if place is None:
        return None
    values, relative = place
    if not isinstance(values, (list, tuple)):
        values = [[values, values]] * (k + 1)
    y, x = values[k]
    if not relative:
        return int(y), int(x)
    if not (0 <= y <= 1 and 0 <= x <= 1):
        raise RuntimeError(f"relative values must be floats in [0, 1] range, got {[y, x]}, for the region at index {k}")
    return whole(_single_precision(y, lengths[0])), whole(_single_precision(x, lengths[1]))


def _single_precision(share: float, length: int) -> float:
    """Multiply in float32, as DALI does. The last bit decides whether the product is then rounded up or down."""
    return float(np.float32(share) * np.float32(length))


# ---------------------------------------------------------------- a whole batch


def paste_by_numpy(
    inputs: Sequence[TensorList], dtype: torch.dtype | None, places: Places, ids: Any, size: Any
) -> Tensor | list[Tensor] | None:
    """Paste the regions of a whole batch with NumPy, if all samples have the same number of regions.

    Args:
        ids: The argument ``in_ids``; None to paste one region from each input.
        size: Height and width of the canvases; None for the images' size.

    Returns:
        The canvases. None if the samples have different numbers of regions, frames or channels, if the dtype must be
        converted, or if an argument is wrong.
    """
    columns = [arrays_of(each) for each in inputs]
    kind = inputs[0].torch_dtype
    if not len(inputs[0]) or None in columns or kind is None or dtype not in (None, kind):
        return None
    arrays = [array for column in columns for array in column or ()]
    if len({(array.dtype, array.shape[:-3], array.shape[-1:]) for array in arrays}) > 1:
        return None
    try:
        form = [array.shape for array in arrays]
        chosen, bounds, sizes = _plan(form, len(inputs[0]), places, ids, size)
    except (TypeError, ValueError, IndexError):
        return None
    head, tail = arrays[0].shape[:-3], arrays[0].shape[-1:]
    canvases = _zeros([(*head, *extents, *tail) for extents in sizes.tolist()], kind, _CPU)
    for canvas, ids_, rows in zip(canvases, chosen.tolist(), bounds.tolist(), strict=True):
        result = canvas.numpy()
        for k, (y, x, v, u, h, w) in zip(ids_, rows, strict=True):
            result[..., v : v + h, u : u + w, :] = arrays[k][..., y : y + h, x : x + w, :]
    return canvases


def _plan(
    shapes: Sequence[tuple[int, ...]], count: int, places: Places, ids: Any, size: Any
) -> tuple[Array, Array, Array]:
    """Return the image of each region, the positions of the regions, and the sizes of the canvases.

    Args:
        shapes: Shapes of all images: first the images of the first input, then the images of the second input, and so
            on.
        count: Number of samples per input.
        ids, size: See `paste_by_numpy`.

    Raises:
        ValueError: the samples have different numbers of regions, or an argument is wrong.
    """
    chosen = np.arange(len(shapes)).reshape(-1, count).T if ids is None else _table(ids, 2)
    chosen = np.broadcast_to(chosen, (count, chosen.shape[1])).astype(np.int64)
    if chosen.min(initial=0) < 0:
        raise ValueError("in_ids must not be negative")
    inside = np.array([shape[-3:-1] for shape in shapes])[chosen]
    sizes = inside[:, 0] if size is None else _table(size, 2, 2).astype(np.int64)
    if size is None and len({shape[-3:-1] for shape in shapes}) > 1:
        raise ValueError("without output_size, images must have the same size")
    if sizes.ndim != 2 or (sizes.size and sizes.min() < 0) or not inside.size:
        raise ValueError("output_size must be a non-negative height and width, and the input must not be empty")
    if sizes.prod(-1).max(initial=0) > limits.pixels:
        raise ValueError("the canvas is too large")
    sizes = np.broadcast_to(sizes, (count, 2))
    tables = {
        name: None if place is None else (_each(_table(place[0], 3, 2), inside.shape[1]), place[1])
        for name, place in places.items()
    }
    return chosen, compute_regions(**tables, image_sizes=inside, canvas_sizes=sizes), sizes


def _table(value: Any, ndim: int, last: int = 0) -> Array:
    """Return an argument as an array with one row per sample, or a single row for all samples.

    Args:
        value: Value of the argument. A single number per sample applies to all regions and axes.
        ndim: Number of axes of the array.
        last: Required extent of the last axis; 0 for any extent.
    """
    rows = np.array(value if isinstance(value, Column) else [value], np.float64)
    if rows.ndim == 1 and not (last and ndim == 2):
        return rows.reshape(-1, *[1] * (ndim - 1))
    if rows.ndim != ndim or last not in (0, rows.shape[-1]):
        raise ValueError(f"a table must have {ndim} axes and {last} numbers per row")
    return rows


def _each(table: Array, count: int) -> Array:
    """Return the values of `count` regions. Raise a ValueError if the table has values for fewer or more regions."""
    if table.shape[1] != count and table.shape[2] > 1:
        raise ValueError("the number of values must match the number of regions")
    return table[:, :count]
