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
from torchdali.declaration.schema import (
    BatchOutput,
    Column,
    DType,
    InputConstraints,
    PerFrame,
    PerSample,
    SampleIndices,
)
from torchdali.errors import batch_level
from torchdali.kernels.convert import convert
from torchdali.kernels.limits import check_pixels, limits
from torchdali.kernels.memory import Array
from torchdali.kernels.pasting import compute_regions
from torchdali.ops._arrays import arrays_of
from torchdali.tensors import TensorList

__all__ = ["multi_paste"]

_CPU = torch.device("cpu")
_MAX_STACKED_BYTES = 1 << 18  # maximum bytes of a canvas; larger canvases of a batch are allocated as separate tensors
_REAL = (torch.uint8, torch.int16, torch.int32, torch.float32)

ImageBatch = Annotated[TensorList, InputConstraints(("HWC", "FHWC"), _REAL)]
RegionArguments = Mapping[str, "tuple[Any, bool] | None"]
"""The arguments ``in_anchors``, ``out_anchors`` and ``shapes`` by their names.

Each argument is a tuple of its values and a bool, which is True if the values are fractions and False if the values are
in pixels. An argument that the user didn't pass is None.
"""


def _first_layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    return layouts[0]


@operator(
    over="batch", separable=lambda arguments: arguments["in_ids"] is None, layout=_first_layout
)  # fmt: skip
def multi_paste(
    images: ImageBatch,
    /,
    *others: ImageBatch,
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
    request = inputs, dtype, _merge_units(absolute, relative), in_ids, output_size
    pasted_images = paste_by_numpy(*request)
    if pasted_images is None:
        pasted_images = _paste_samples(inputs, dtype, absolute, relative, in_ids, output_size)
    infos = _join_infos(inputs, in_ids)
    layout = images.layout() or "FHWC"[-images.ndim() :]
    if isinstance(pasted_images, Tensor):
        return TensorList.from_dense(pasted_images, layout, source_info=infos)
    kind = dtype or images.torch_dtype
    return TensorList.from_samples(pasted_images, layout, kind, source_info=infos)


def _list_arguments(**arguments: Any) -> dict[str, Any]:
    return {
        name: argument.tolist() if isinstance(argument, np.ndarray) else argument
        for name, argument in arguments.items()
    }


def _check_inputs(inputs: Sequence[TensorList]) -> None:
    kinds = [batch.torch_dtype for batch in inputs]
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise batch_level(
                RuntimeError(f"the inputs must agree in dtype: input 0 is {kinds[0]}, input {i} is {kind}")
            )


def _paste_samples(
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
    columns = [item.samples() for item in inputs]
    count = range(len(columns[0]))
    sources = [
        [column[i] for column in columns] if ids is None else _select_images(columns[0], _sample_value(ids, i), i)
        for i in count
    ]
    common = _common_size(columns) if size is None else None
    shapes = [_canvas_shape(sources[i], columns[0][i], _sample_value(size, i) or common, i) for i in count]
    canvases = _allocate_canvases(shapes, dtype or columns[0][0].dtype, columns[0][0].device) if count else []
    as_arrays = all(_can_use_numpy(item, canvases[0]) for column in columns for item in column)
    for i in count:
        arguments = _merge_units(
            {k: _sample_value(v, i) for k, v in absolute.items()}, {k: _sample_value(v, i) for k, v in relative.items()}
        )
        _paste_sample(*_arrays(canvases[i], sources[i], as_arrays), arguments)
    return canvases


def _join_infos(inputs: Sequence[TensorList], ids: Any) -> list[str] | None:
    """Return the source info (a text about the origin) of each output sample.

    The source infos of the images that are pasted on a canvas are joined with ";". Return None if no input has source
    infos.
    """
    input_infos = [item.source_infos for item in inputs]
    if not any(input_infos):
        return None
    count = range(len(inputs[0]))
    if ids is None:
        sources = [[infos[i] for infos in input_infos if infos] for i in count]
    else:
        sources = [[(input_infos[0] or ())[k] for k in _as_indices(_sample_value(ids, i))] for i in count]
    return [";".join(filter(None, item)) for item in sources]


def _allocate_canvases(
    shapes: Sequence[tuple[int, ...]], dtype: torch.dtype, device: torch.device
) -> Tensor | list[Tensor]:
    """Return one canvas per sample.

    Small canvases of the same shape are allocated as one tensor. Otherwise each canvas is a separate tensor.
    """
    if len(set(shapes)) == 1 and math.prod(shapes[0]) * dtype.itemsize <= _MAX_STACKED_BYTES:
        return torch.zeros((len(shapes), *shapes[0]), dtype=dtype, device=device)
    return [torch.zeros(shape, dtype=dtype, device=device) for shape in shapes]


def _sample_value(value: Any, i: int) -> Any:
    if isinstance(value, Column):
        return value[i]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _as_indices(ids: Any) -> list[int]:
    return [int(k) for k in np.ravel(ids)]


def _select_images(batch: Sequence[Tensor], ids: Any, sample: int) -> list[Tensor]:
    chosen = _as_indices(ids)
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


def _canvas_shape(sources: Sequence[Tensor], image: Tensor, size: Any, sample: int) -> tuple[int, ...]:
    first = sources[0].shape if sources else image.shape
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


def _merge_units(absolute: Mapping[str, Any], relative: Mapping[str, Any]) -> RegionArguments:
    """Combine the arguments that were passed in pixels and the arguments that were passed as fractions."""
    return {
        name: (value, False) if value is not None
        else None if relative[name] is None
        else (relative[name], True)
        for name, value in absolute.items()
    }  # fmt: skip


def _can_use_numpy(source: Tensor, canvas: Tensor) -> bool:
    """Return True if NumPy can copy the image to the canvas. For small images, NumPy is faster than PyTorch."""
    return source.dtype == canvas.dtype and source.device.type == "cpu" and not source.requires_grad


def _arrays(canvas: Tensor, sources: Sequence[Tensor], as_arrays: bool) -> tuple[Any, Sequence[Any]]:
    return (canvas.numpy(), [s.numpy() for s in sources]) if as_arrays else (canvas, sources)


def _paste_sample(canvas: Any, sources: Sequence[Any], arguments: RegionArguments) -> None:
    if not any(v is not None and _nesting_depth(v[0]) == 3 for v in arguments.values()):
        _paste_regions(canvas, sources, arguments)
        return
    if canvas.ndim != 4:
        raise RuntimeError("for images without frames, each argument must be one table of shape (regions, 2)")
    for f in range(len(canvas)):
        frame_arguments = {k: _frame_argument(k, v, f, len(canvas)) for k, v in arguments.items()}
        _paste_regions(canvas[f], [s[f] for s in sources], frame_arguments)


def _frame_argument(name: str, argument: tuple[Any, bool] | None, frame: int, frames: int) -> tuple[Any, bool] | None:
    if argument is None or _nesting_depth(argument[0]) != 3:
        return argument
    values = each_frame_value(name, argument[0], frames)
    return values[frame], argument[1]


def _nesting_depth(value: Any) -> int:
    return 1 + _nesting_depth(value[0]) if isinstance(value, (list, tuple)) and value else 0


def _paste_regions(canvas: Any, sources: Sequence[Any], arguments: RegionArguments) -> None:
    """Paste regions of images on a canvas. Images and canvas are all tensors, or all arrays of the same dtype."""
    for name, argument in arguments.items():
        _check_table(name, argument, len(sources))
    for k, source in enumerate(sources):
        (y, x), (v, u), (h, w) = _find_region(k, source, canvas, arguments)
        region = source[..., y : y + h, x : x + w, :]
        if region.dtype != canvas.dtype:
            region = convert(region, canvas.dtype)
        canvas[..., v : v + h, u : u + w, :] = region


def _find_region(k: int, source: Any, canvas: Any, arguments: RegionArguments) -> Iterator[tuple[int, int]]:
    """Return the k-th region's start in the image, start on the canvas, and extent, in the order y, x.

    Raises:
        RuntimeError: the region reaches outside the image or the canvas.
    """
    image_size, canvas_size = source.shape[-3:-1], canvas.shape[-3:-1]
    start = _as_pixels(arguments["in_anchors"], k, image_size, math.floor) or (0, 0)
    target = _as_pixels(arguments["out_anchors"], k, canvas_size, math.floor) or (0, 0)
    rest = (image_size[0] - start[0], image_size[1] - start[1])
    extent = _as_pixels(arguments["shapes"], k, image_size, math.ceil) or rest
    for anchor, bounds, label in (
        (start, image_size, "input sample"),
        (target, canvas_size, "output bounds"),
    ):
        if not all(0 <= a <= a + e <= n for a, e, n in zip(anchor, extent, bounds, strict=True)):
            raise RuntimeError(
                f"The pasted region must be within {label} of shape {tuple(bounds)}, got shape {extent} at {anchor} "
                f"for the region at index {k}"
            )
    return iter((start, target, extent))


def _check_table(name: str, argument: tuple[Any, bool] | None, count: int) -> None:
    """Check that an argument has two numbers per region, or is a single number."""
    if argument is None or not isinstance(argument[0], (list, tuple)):
        return
    shape: tuple[int, ...] = np.shape(argument[0])
    if shape != (count, 2) and (count or shape[:1] != (0,)):
        raise RuntimeError(f"unexpected shape for argument `{name}`: {shape}; expected (regions, 2), here ({count}, 2)")


def _as_pixels(
    argument: tuple[Any, bool] | None, k: int, lengths: Sequence[int], rounding: Any
) -> tuple[int, int] | None:
    if argument is None:
        return None
    values, relative = argument
    if not isinstance(values, (list, tuple)):
        values = [[values, values]] * (k + 1)
    y, x = values[k]
    if not relative:
        return int(y), int(x)
    if not (0 <= y <= 1 and 0 <= x <= 1):
        raise RuntimeError(f"relative values must be floats in [0, 1] range, got {[y, x]}, for the region at index {k}")
    return rounding(_single_precision(y, lengths[0])), rounding(_single_precision(x, lengths[1]))


def _single_precision(share: float, length: int) -> float:
    """Multiply in float32, as DALI does. The last bit decides whether the product is then rounded up or down."""
    return float(np.float32(share) * np.float32(length))


# ---------------------------------------------------------------- a whole batch


def paste_by_numpy(
    inputs: Sequence[TensorList], dtype: torch.dtype | None, arguments: RegionArguments, ids: Any, size: Any
) -> Tensor | list[Tensor] | None:
    """Paste the regions of a whole batch with NumPy, if all samples have the same number of regions.

    Args:
        ids: The argument ``in_ids``; None to paste one region from each input.
        size: Height and width of the canvases; None for the images' size.

    Returns:
        The canvases. None if the samples have different numbers of regions, frames or channels, if the dtype must be
        converted, or if an argument is wrong.
    """
    columns = [arrays_of(batch) for batch in inputs]
    kind = inputs[0].torch_dtype
    if not len(inputs[0]) or None in columns or kind is None or dtype not in (None, kind):
        return None
    arrays = [array for column in columns for array in column or ()]
    if len({(array.dtype, array.shape[:-3], array.shape[-1:]) for array in arrays}) > 1:
        return None
    try:
        shapes = [array.shape for array in arrays]
        chosen, bounds, sizes = _plan_regions(shapes, len(inputs[0]), arguments, ids, size)
    except (TypeError, ValueError, IndexError):
        return None
    head, tail = arrays[0].shape[:-3], arrays[0].shape[-1:]
    canvases = _allocate_canvases([(*head, *extents, *tail) for extents in sizes.tolist()], kind, _CPU)
    for canvas, ids_, rows in zip(canvases, chosen.tolist(), bounds.tolist(), strict=True):
        result = canvas.numpy()
        for k, (y, x, v, u, h, w) in zip(ids_, rows, strict=True):
            result[..., v : v + h, u : u + w, :] = arrays[k][..., y : y + h, x : x + w, :]
    return canvases


def _plan_regions(
    shapes: Sequence[tuple[int, ...]], count: int, arguments: RegionArguments, ids: Any, size: Any
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
    chosen = np.arange(len(shapes)).reshape(-1, count).T if ids is None else _as_table(ids, 2)
    chosen = np.broadcast_to(chosen, (count, chosen.shape[1])).astype(np.int64)
    if chosen.min(initial=0) < 0:
        raise ValueError("in_ids must not be negative")
    inside = np.array([shape[-3:-1] for shape in shapes])[chosen]
    sizes = inside[:, 0] if size is None else _as_table(size, 2, 2).astype(np.int64)
    if size is None and len({shape[-3:-1] for shape in shapes}) > 1:
        raise ValueError("without output_size, images must have the same size")
    if sizes.ndim != 2 or (sizes.size and sizes.min() < 0) or not inside.size:
        raise ValueError("output_size must be a non-negative height and width, and the input must not be empty")
    if sizes.prod(-1).max(initial=0) > limits.pixels:
        raise ValueError("the canvas is too large")
    sizes = np.broadcast_to(sizes, (count, 2))
    tables = {
        name: None if argument is None else (_region_values(_as_table(argument[0], 3, 2), inside.shape[1]), argument[1])
        for name, argument in arguments.items()
    }
    return chosen, compute_regions(**tables, image_sizes=inside, canvas_sizes=sizes), sizes


def _as_table(value: Any, ndim: int, last: int = 0) -> Array:
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


def _region_values(table: Array, count: int) -> Array:
    """Return the values of `count` regions. Raise a ValueError if the table has values for fewer or more regions."""
    if table.shape[1] != count and table.shape[2] > 1:
        raise ValueError("the number of values must match the number of regions")
    return table[:, :count]
