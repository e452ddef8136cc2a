"""The operator `decoders.inflate`, which decompresses LZ4 data."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.codecs.signatures import describe_content
from torchdali.declaration.schema import Data, DType, InputConstraints, PerSample, shares
from torchdali.errors import MissingExtraError

__all__ = ["inflate"]

Compressed = Annotated[Tensor, InputConstraints((), (torch.uint8,))]
_CHUNKED = "_inflate_chunks"
_MAX_CHUNK_BYTES = 1 << 31  # LZ4's limit


def _variant(arguments: Mapping[str, Any]) -> str | None:
    return _CHUNKED if "chunk_offsets" in arguments or "chunk_sizes" in arguments else None


def _chunk_layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    layout = arguments["layout"]
    return arguments["sequence_axis_name"] + layout if layout else ""


def inflating(
    data: Tensor,
    *,
    shape: PerSample[list[int]],
    algorithm: str = "LZ4",
    check_output_size: bool = False,
    chunk_offsets: PerSample[list[int]] | None = None,
    chunk_sizes: PerSample[list[int]] | None = None,
    dtype: DType = torch.uint8,
    layout: str = "",
    sequence_axis_name: str = "F",
) -> Tensor:
    """Decompress one LZ4 block, or several chunks that are an LZ4 block each.

    Args:
        shape: Shape of the decompressed block, or of each decompressed chunk.
        algorithm: Compression algorithm. It must be ``"LZ4"``.
        check_output_size: Accepted without effect: the size of the decompressed data is always checked.
        chunk_offsets: Offset of each chunk in the data, in bytes. If you pass only ``chunk_sizes``, each chunk begins
            at the end of the previous chunk.
        chunk_sizes: Size of each compressed chunk in bytes. If you pass only ``chunk_offsets``, each chunk ends at the
            offset of the next chunk.
        dtype: Output dtype. Default: uint8.
        layout: Layout of the decompressed block, or of each decompressed chunk. Default: no layout.
        sequence_axis_name: Letter that is added to ``layout`` for the axis of the chunks. It is used only if the data
            has chunks and ``layout`` is passed.
    """
    if algorithm.upper() != "LZ4":
        raise RuntimeError(
            f"Unknown inflate algorithm was specified for `algorithm` argument: {algorithm!r}; pass 'LZ4'"
        )
    if data.ndim != 1:
        raise RuntimeError(f"compressed data must have one dimension, got {data.ndim}")
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size > _MAX_CHUNK_BYTES:
        raise RuntimeError(f"shape must describe a chunk of 0 to {_MAX_CHUNK_BYTES} bytes, got {shape}")
    content = data.cpu().contiguous().numpy()
    bounds = _chunk_bounds(len(content), chunk_offsets, chunk_sizes)
    chunked = chunk_offsets is not None or chunk_sizes is not None
    if size * len(bounds) > max(_ALWAYS_ALLOWED, len(content) * _MAX_RATIO):
        raise RuntimeError(
            f"{len(content)} bytes cannot be {len(bounds)} chunks of the shape {shape}: LZ4 compresses at most "
            f"{_MAX_RATIO}:1"
        )
    decompressed = np.empty((len(bounds), size), np.uint8)
    for row, (begin, end) in zip(decompressed, bounds, strict=True):
        row[:] = np.frombuffer(_decompress(content[begin:end].tobytes(), size), np.uint8)
    result = torch.from_numpy(decompressed).view(-1).view(dtype).reshape([len(bounds), *shape])
    return (result if chunked else result[0]).to(data.device)


# Output size in bytes that is always accepted, and LZ4's maximum compression ratio.
_ALWAYS_ALLOWED, _MAX_RATIO = (1 << 20, 256)


@operator(name="decoders.inflate", layout=lambda layouts, arguments: arguments["layout"], variant=_variant)
def inflate(data: Compressed, /, **arguments: Annotated[Any, shares(inflating)]) -> Data:
    """Decompress LZ4 blocks on the CPU. This operator needs the package lz4 (extra ``inflate``).

    Args:
        data: Compressed bytes, ``(n,)`` uint8: one block, or one block per chunk if ``chunk_offsets`` or
            ``chunk_sizes`` is passed.

    Returns:
        Decompressed data of the shape ``shape``, or ``(chunks, *shape)`` if ``chunk_offsets`` or ``chunk_sizes`` is
        passed.

    Raises:
        RuntimeError: the data is damaged, its decompressed size isn't the size of ``shape``, a chunk is outside of the
            data, or an argument is invalid.
        MissingExtraError: lz4 is not installed.
    """
    return inflating(data, **arguments)


@operator(name=_CHUNKED, layout=_chunk_layout)
def _inflate_chunks(data: Compressed, /, **arguments: Annotated[Any, shares(inflating)]) -> Data:
    return inflating(data, **arguments)


def _chunk_bounds(count: int, offsets: list[int] | None, sizes: list[int] | None) -> list[tuple[int, int]]:
    """Return the start and the end of each chunk in the compressed data, in bytes.

    Raises:
        RuntimeError: the numbers of offsets and sizes differ, or a chunk is outside of the data.
    """
    if offsets is None and sizes is None:
        return [(0, count)]
    if offsets is None:
        assert sizes is not None
        ends = np.cumsum(sizes).tolist()
        begins = [0, *ends[:-1]] if ends else []
    else:
        begins = offsets
        if sizes is not None and len(sizes) != len(offsets):
            raise RuntimeError(
                f"chunk_offsets and chunk_sizes must have equal lengths, got {len(offsets)} and {len(sizes)}"
            )
        ends = [*offsets[1:], count] if sizes is None else [o + s for o, s in zip(offsets, sizes, strict=True)]
    bounds = list(zip(begins, ends, strict=True))
    for begin, end in bounds:
        if not 0 <= begin <= end <= count:
            raise RuntimeError(
                f"chunks must be inside the input of {count} bytes, got a chunk from byte {begin} to {end}"
            )
    return bounds


def _decompress(data: bytes, size: int) -> bytes:
    try:
        block = importlib.import_module("lz4.block")
    except ImportError:
        raise MissingExtraError("lz4", "inflate", "decompressing LZ4") from None
    try:
        content: bytes = block.decompress(data, uncompressed_size=size) if size or data else b""
    except (block.LZ4BlockError, ValueError, MemoryError) as error:
        raise RuntimeError(f"cannot decompress {len(data)} bytes to {size}: {error}{describe_content(data)}") from None
    if len(content) != size:
        raise RuntimeError(f"a decompressed chunk must have {size} bytes, as its shape says, got {len(content)}")
    return content
