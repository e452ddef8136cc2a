"""Operators on sequences: extract frames, reorder frames, and mark data as per-frame values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, BatchOutput, Data, InputConstraints, Layout, Out, PerSample
from torchdali.errors import batch_level
from torchdali.kernels.device_cache import device_cache
from torchdali.ops._arguments import as_list
from torchdali.tensors import TensorList

__all__ = ["element_extract", "per_frame", "sequence_rearrange"]

Batch = Annotated[TensorList, InputConstraints()]
Elements = Tensor | tuple[Tensor, ...]


def _extracted_layouts(layouts: tuple[str, ...], arguments: Any) -> tuple[str, ...]:
    return (layouts[0][1:],) * len(arguments["element_map"])


def _count(arguments: Any) -> int | None:
    count = len(arguments["element_map"])
    return None if count <= 1 else count


@operator(outputs=_count, layout=_extracted_layouts, marks=("view",))
def element_extract(data: Data, /, *, element_map: list[int], layout: Layout) -> Elements:
    """Extract frames from a sequence; each frame is a separate output.

    Args:
        data: Sequences ``(F, ...)`` with at least two axes.
        element_map: Indices of the frames to extract.

    Raises:
        RuntimeError: the data isn't a sequence, or doesn't have a frame with one of these indices.
    """
    _check_elements(data.shape, element_map, layout)
    frames = tuple(data.select(0, i) for i in element_map)
    return frames if len(frames) > 1 else frames[0]


@chunk(element_extract)
def _extract_batch(data: Tensor, a: Arguments) -> Any:
    _check_elements(data.shape[1:], a.element_map, a.layout)
    frames = tuple(data.select(1, i).clone(memory_format=torch.contiguous_format) for i in a.element_map)
    return frames if len(frames) > 1 else frames[0]


def _check_elements(shape: Sequence[int], element_map: list[int], layout: str) -> None:
    if len(shape) < 2:
        raise RuntimeError(
            "input must have at least two dimensions - outermost for sequence and at least one for data elements. "
            f"It has {len(shape)}"
        )
    if layout and not layout.startswith("F"):
        raise RuntimeError(f"input layout must describe a sequence - it must start with 'F', got '{layout}' instead.")
    if not element_map:
        raise batch_level(RuntimeError("element_map is empty"))
    for frame in element_map:
        if frame < 0:
            raise RuntimeError(f"negative indices in `element_map` are not allowed, found: {frame}")
        if frame >= shape[0]:
            raise RuntimeError(
                f"index `{frame}` from `element_map` is out of bounds for sample with sequence length equal "
                f"`{shape[0]}`"
            )


@operator
def sequence_rearrange(data: Data, /, *, new_order: PerSample[list[int]], layout: Layout, out: Out = None) -> Data:
    """Reorder the frames of a sequence.

    Args:
        data: Sequences ``(F, ...)`` with at least two axes.
        new_order: For each frame of the output, the index of the input frame. Frames may be repeated or omitted.

    Raises:
        RuntimeError: the data isn't a sequence, ``new_order`` is empty, or the data doesn't have a frame with one of
            these indices.
    """
    order = _check_order(data.shape, new_order, layout)
    if out is not None and out.shape == (len(order), *data.shape[1:]) and out.dtype == data.dtype:
        return torch.index_select(data, 0, _index(tuple(order), data.device), out=out)
    return data.index_select(0, _index(tuple(order), data.device))


@chunk(sequence_rearrange)
def _rearrange_batch(data: Tensor, a: Arguments) -> Tensor:
    order = _check_order(data.shape[1:], a.new_order, a.layout)
    return data.index_select(1, _index(tuple(order), data.device))


def _check_order(shape: Sequence[int], new_order: Any, layout: str) -> Sequence[int]:
    _check_sequence(shape, layout)
    order = as_list(new_order)
    if not order:
        raise RuntimeError(
            f"empty result sequences are not allowed: an empty `new_order` for sample of shape {tuple(shape)} is not "
            "allowed"
        )
    if not all(isinstance(frame, int) for frame in order):
        raise RuntimeError(
            f"new_order: input with dimension {np.ndim(order)} cannot be converted to dimension 1, frame numbers"
        )
    for i, frame in enumerate(order):
        if not 0 <= frame < shape[0]:
            raise RuntimeError(
                f"new_order[{i}] must be between 0 and input_sequence_length = {shape[0]} for sample of shape "
                f"{tuple(shape)}, but it is: {frame}"
            )
    return order


@device_cache(maxsize=64)
def _index(order: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(order, device=device)


def _check_sequence(shape: Sequence[int], layout: str) -> None:
    if layout and not layout.startswith("F"):
        raise RuntimeError(
            "expected sequence as the input, where outermost dimension represents frames dimension `F`, "
            f'got data with layout = "{layout}"'
        )
    if len(shape) < 2:
        raise RuntimeError(f"a sequence must have at least two dimensions, frames and elements, got {len(shape)}")


@operator(over="batch", separable=True, marks=("view",))
def per_frame(data: Batch, /, *, replace: bool = False) -> BatchOutput:
    """Mark data as per-frame values, to pass it as an argument of an operator that processes sequences.

    Args:
        data: Values ``(F, ...)``: one per frame.
        replace: If True, the first letter of the layout is replaced by F. By default the layout must already start with
            F, or be empty.

    Raises:
        RuntimeError: the data has no axes, or the layout doesn't start with F and ``replace`` is False.
    """
    if data.ndim() == 0 and len(data):
        raise RuntimeError("data without axes cannot have one value per frame")
    layout = data.layout()
    if layout and layout[0] != "F" and not replace:
        raise RuntimeError(f"the layout of values per frame must start with 'F', got {layout!r}")
    marked = type(data)(data)
    marked.set_layout("F" + (layout[1:] or "*" * (data.ndim() - 1)))
    return marked
