"""Images of a batch that a decoder on the device decodes, beside those that threads of the CPU do.

The operator `_decode_share` returns the encoded bytes of the images that it leaves to the device. When the chain is
done, one call decodes them into an arena of ours, and one copy puts them together with the others.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchdali.codecs._nvimgcodec import BatchDecoder
from torchdali.codecs.images import decode, peek_header
from torchdali.execute.device_stream import DeviceStream
from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.tensors._storage import Packed

__all__ = ["Decoded", "HardwareDecoding", "is_shared", "mark"]

_EMPTY = torch.empty((0, 0, 3), dtype=torch.uint8)


class Decoded(NamedTuple):
    """Images in an arena.

    Attributes:
        arena: Its elements.
        used: How many of them.
        places: By sample: the file's bytes, where its image starts, and its shape.
    """

    arena: Tensor
    used: int
    places: dict[int, tuple[Tensor, int, tuple[int, int, int]]]


def is_shared(edge: DataNode) -> bool:
    """Return whether a decoder on the device makes some of the samples of an edge."""
    return edge.source is not None and edge.source.operator.name == "_decode_share"


class HardwareDecoding:
    """The decoder of a pipeline's device, and its memory.

    Args:
        device_stream: Where pixels go.
    """

    def __init__(self, device_stream: DeviceStream) -> None:
        self._device_stream = device_stream
        self._decoder: BatchDecoder | None = None
        self._tried = False
        self._free: list[tuple[Tensor, Any]] = []
        self._lock = threading.Lock()

    def decode(self, results: list[Any], upright: bool, failures: dict[int, BaseException]) -> Decoded | None:
        """Decode what a chain left encoded. Must run inside the device stream's `context`.

        Args:
            results: Of `_decode_share`; images that the device does not decode are put into it, decoded by the CPU.
            upright: Turn images as their EXIF blocks say.
            failures: Errors of samples: those of which the CPU can make nothing, either, are added.

        Returns:
            The images; None where there are none.
        """
        given = {i: r for i, r in enumerate(results) if r is not None and r.ndim == 1}
        given = {i: data for i, data in given.items() if i not in failures}
        places, used = _places(given, upright)
        if not places:
            self._on_the_cpu(given, results, upright, failures)
            return None
        arena = self._arena(used)
        decoded = self._decoded(arena, places, upright)
        left = {i: data for i, data in given.items() if i not in decoded}
        self._on_the_cpu(left, results, upright, failures)
        if not decoded:
            self._give_back(arena)
            return None
        return Decoded(arena, used, {i: places[i] for i in decoded})

    def _decoded(self, arena: Tensor, places: Mapping[int, Any], upright: bool) -> set[int]:
        """Decode on the device; return the samples for which that worked."""
        decoder = self._get_decoder()
        if decoder is None:
            return set()
        into = [_view(arena, start, shape) for _, start, shape in places.values()]
        stream = self._device_stream.stream
        found = decoder.decode(
            [data for data, *_ in places.values()], into, upright, stream.cuda_stream if stream else 0
        )  # fmt: skip
        return {i for i, good in zip(places, found, strict=True) if good}

    def _get_decoder(self) -> BatchDecoder | None:
        with self._lock:
            if not self._tried:
                self._tried = True
                device = self._device_stream.device
                assert device is not None
                try:
                    self._decoder = BatchDecoder(device)
                except Exception as error:  # drivers and libraries fail in ways of their own
                    warnings.warn(
                        f"nvImageCodec is installed but has no engine for JPEGs on {device}: {error}; the CPU decodes "
                        "all images. With hw_decoder_load=0 it is not asked.",
                        stacklevel=2,
                    )
            return self._decoder

    def _on_the_cpu(
        self, given: Mapping[int, Tensor], results: list[Any], upright: bool, failures: dict[int, BaseException]
    ) -> None:  # fmt: skip
        for i, data in given.items():
            try:
                results[i] = decode(data, adjust_orientation=upright)
            except Exception as error:
                failures[i] = error

    def join(self, batch: TensorList, decoded: Decoded, places: Mapping[int, int]) -> TensorList:
        """Put images together. Must run inside the device stream's `context`.

        Args:
            batch: Those of the CPU, on the device; empty ones in place of the others.
            decoded: The others.
            places: Which of them belongs to which sample of the batch.
        """
        shapes, stored, dense = batch.shape(), batch.stored(), batch.dense()
        if isinstance(stored, Packed):
            flat, offsets = stored.flat, list(stored.offsets)
        else:
            parts = [s.reshape(-1) for s in batch.samples()] if dense is None else [dense.reshape(-1)]
            sizes = [math.prod(shape) for shape in shapes]
            flat, offsets = torch.cat(parts), [sum(sizes[:i]) for i in range(len(sizes))]
        for i, number in places.items():
            _, start, shape = decoded.places[number]
            offsets[i], shapes[i] = flat.numel() + start, shape
        whole = torch.cat([flat, decoded.arena[: decoded.used]])
        self._give_back(decoded.arena)
        return TensorList.from_packed(whole, offsets, shapes, batch.layout(), batch.source_infos)

    def _arena(self, used: int) -> Tensor:
        """Return memory that no kernel uses any more.

        Not fresh from torch's allocator, nor after an event that is only enqueued: engines that decode do not keep to
        the order of streams, so the host must have seen that the work before is done.
        """
        with self._lock:
            for k, (arena, event) in enumerate(self._free):
                if arena.numel() >= used and (event is None or event.query()):
                    return self._free.pop(k)[0]
            # Those that are too small, and done, are not needed again.
            self._free = [(a, e) for a, e in self._free if a.numel() >= used or not (e is None or e.query())]
        made = torch.empty(used + used // 4, dtype=torch.uint8, device=self._device_stream.device)
        event = self._device_stream.record()
        if event is not None:
            event.synchronize()  # rare: only where no arena is large enough
        return made

    def _give_back(self, arena: Tensor) -> None:
        """Keep an arena for a later batch, which may write to it when what is enqueued now is done."""
        with self._lock:
            self._free.append((arena, self._device_stream.record()))


def mark(results: list[Any], decoded: Decoded) -> dict[int, int]:
    """Put empty images in place of files that were decoded; return which is which.

    Samples that failed may have been dropped or replaced: a file is known by being the same object.
    """
    known = {id(data): number for number, (data, *_) in decoded.places.items()}
    found = {i: known[id(r)] for i, r in enumerate(results) if id(r) in known}
    for i in found:
        results[i] = _EMPTY
    return found


def _places(given: Mapping[int, Tensor], upright: bool) -> tuple[dict[int, Any], int]:
    """Return where images go in an arena, and its size."""
    places: dict[int, tuple[Tensor, int, tuple[int, int, int]]] = {}
    used = 0
    for i, data in given.items():
        height, width = peek_header(data).size(upright)
        places[i] = data, used, (height, width, 3)
        used += -(-height * width * 3 // 256) * 256
    return places, used


def _view(arena: Tensor, start: int, shape: Sequence[int]) -> Tensor:
    return arena[start : start + math.prod(shape)].view(*shape)
