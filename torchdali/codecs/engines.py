"""JPEGs of a batch by the hardware engine of a GPU (A100, H100 and later): by nvImageCodec, or nvJPEG by our library.

nvImageCodec is used if it is installed (the extra ``nvimgcodec``). ``TORCHDALI_NVJPEG=1`` in the environment asks for
nvJPEG instead, as it comes with torchvision or CUDA; a path says which library. An H100's engine differs from libjpeg
by one level at most. Hybrid ways, which begin on the CPU, differ by three and take as much of the CPU as libjpeg: they
are not used. What an engine refuses or fails on, the caller decodes on the CPU, and has the message from there.
"""

from __future__ import annotations

import ctypes
import glob
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from torchdali.kernels.native import SHARED, library

__all__ = ["BatchDecoder", "Engine", "NvJpeg", "available", "default_share", "open_engine"]

_CPU_ONLY = -99999  # nvImageCodec's number for no device
_CODE = -2  # of `SHARED`
_STATUS = {
    -1: "it cannot be loaded", -2: "it lacks a function", -3: "the GPU has no engine for JPEGs",
    1: "not initialized (1)", 4: "allocation failed (4)", 9: "not supported here (9)",
}  # fmt: skip


class Engine(Protocol):
    """A decoder of JPEGs on a device."""

    def decode(self, encoded: Sequence[Tensor], into: Sequence[Tensor], state: int, stream: int) -> list[bool]:
        """Submit images, to be decoded to RGB bytes as they are stored.

        Args:
            encoded: The bytes of files, which stay in their memory until the stream is done.
            into: For each ``(H, W, 3)`` on the device, where nothing else reads or writes any more.
            state: Number of what the engine works with, which no batch uses any more.
            stream: Handle of the CUDA stream behind which the pixels are there; 0 without.

        Returns:
            For each, whether it was taken.
        """
        ...


def available(device: torch.device) -> bool:
    """Return whether an engine may decode for a device: on CUDA, if there is a library for it."""
    if device.type != "cuda" or library() is None:
        return False
    if _asked():
        return True
    try:
        return importlib.util.find_spec("nvidia.nvimgcodec") is not None
    except ModuleNotFoundError:  # there is no package nvidia
        return False


def default_share(threads: int) -> float:
    """Return the share of an engine beside some threads: what it can do, by what all can do.

    One engine was taken to do as much as 26 threads.
    """
    return round(1 / (1 + threads / 26), 2)


def open_engine(device: torch.device, count: int, threads: int, states: int, fancy: bool) -> Engine:
    """Return the engine of a device.

    Args:
        count: Images of the largest batch.
        threads: Of the CPU that may help.
        states: Batches that are on their way.
        fancy: Upsample colors smoothly, else repeat each.

    Raises:
        ImportError: nvImageCodec is not installed. RuntimeError: it does not work here, or the GPU has no engine.
    """
    return NvJpeg(count, states, fancy) if _asked() else BatchDecoder(device, count, threads, fancy)


def _asked() -> str:
    """Return what the environment asks for of nvJPEG: "1", a file, or nothing."""
    value = os.environ.get("TORCHDALI_NVJPEG", "").strip()
    return "" if value.lower() in ("0", "off", "false", "no") else value


class NvJpeg:
    """nvJPEG, called by our library, for the device that is current.

    Args:
        count: Images of the largest batch.
        states: Batches that are on their way.
        fancy: Upsample colors smoothly.

    Raises:
        RuntimeError: there is no nvJPEG, or it does not work here.
    """

    def __init__(self, count: int, states: int, fancy: bool = True) -> None:
        native = library()
        assert native is not None
        self._library, self._count, self._engine = native, count, None
        failures = []
        for file in _files():
            code = ctypes.c_int()
            self._engine = native.engine_open(os.fsencode(file), fancy, states, ctypes.byref(code))
            if self._engine:
                return
            failures.append(f"{file}: {_words(code.value)}")
        raise RuntimeError("nvJPEG: " + ("; ".join(failures) or "no library libnvjpeg was found"))

    def __del__(self) -> None:
        if self._engine:
            self._library.engine_close(self._engine)

    def decode(self, encoded: Sequence[Tensor], into: Sequence[Tensor], state: int, stream: int) -> list[bool]:
        """Submit images in one call, see `Engine`."""
        table = bytearray(len(encoded) * SHARED.size)
        for i, (data, place) in enumerate(zip(encoded, into, strict=True)):
            height, width, _ = place.shape
            SHARED.pack_into(
                table, i * SHARED.size, data.data_ptr(), data.numel(), place.data_ptr(), height, width, 0, 0
            )  # fmt: skip
        memory = (ctypes.c_char * len(table)).from_buffer(table)
        code = self._library.engine_decode(self._engine, state, memory, len(encoded), self._count, stream)
        if code:
            raise RuntimeError(f"nvJPEG: {_words(code)}")
        return [image[_CODE] == 0 for image in SHARED.iter_unpack(table)]


def _words(code: int) -> str:
    return _STATUS.get(code, f"status {code}")


def _files() -> Iterator[str]:
    """Yield where nvJPEG may lie, the best first."""
    setting = _asked()
    if os.path.sep in setting:
        yield setting
        return
    patterns = (
        "nvidia/nvjpeg/lib/libnvjpeg.so*", "nvidia/cu1*/lib/libnvjpeg.so*", "torchvision.libs/libnvjpeg*",
        "lib64/libnvjpeg.so*", "targets/*/lib/libnvjpeg.so*",
    )  # fmt: skip
    for place in (*sys.path, os.environ.get("CUDA_HOME", "/usr/local/cuda")):
        for pattern in patterns:
            yield from sorted(glob.glob(os.path.join(glob.escape(place or "."), pattern)), reverse=True)


class BatchDecoder:
    """nvImageCodec on a device.

    Args:
        device: CUDA, or the CPU: nvImageCodec's own decoders there, which serve to test this.
        count: Images of the largest batch, for which it prepares memory.
        threads: Of the pipeline; it gets a quarter of them, and four at most, to read headers.
        fancy: Upsample colors smoothly.

    Raises:
        ImportError: it is not installed. RuntimeError: it does not work here, or the GPU has no engine for JPEGs.
    """

    def __init__(self, device: torch.device, count: int = 1, threads: int = 1, fancy: bool = True) -> None:
        codec: Any = importlib.import_module("nvidia.nvimgcodec")
        kinds = codec.BackendKind
        on_gpu = device.type == "cuda"
        self._codec = codec
        self._decoder = codec.Decoder(
            device_id=device.index or 0 if on_gpu else _CPU_ONLY,
            max_num_cpu_threads=max(1, min(4, threads // 4)),
            backends=[codec.Backend(kinds.HW_GPU_ONLY if on_gpu else kinds.CPU_ONLY)],
            options=f":fancy_upsampling={fancy:d} nvjpeg_hw_decoder:preallocate_batch_size={count}",
        )
        self._parameters = codec.DecodeParams(apply_exif_orientation=False, color_spec=codec.ColorSpec.SRGB)

    def decode(self, encoded: Sequence[Tensor], into: Sequence[Tensor], state: int, stream: int) -> list[bool]:
        """Submit images, see `Engine`; it has states of its own."""
        codec = self._codec
        streams, images, numbers = [], [], []
        for i, (data, place) in enumerate(zip(encoded, into, strict=True)):
            try:
                streams.append(codec.CodeStream(data.numpy()))
            except Exception:  # it raises what it likes for what it cannot parse
                continue
            images.append(codec.as_image(place.numpy() if place.is_cpu else place, stream))
            numbers.append(i)
        results = [False] * len(encoded)
        if not streams:
            return results
        decoded = self._decoder.decode(streams, images=images, params=self._parameters, cuda_stream=stream)
        for i, image in zip(numbers, decoded, strict=True):
            results[i] = image is not None and _is_in(image, into[i])
        return results


def _is_in(image: Any, place: Tensor) -> bool:
    """Return whether an image lies where it was to be put; otherwise copy it there, if it fits."""
    if tuple(image.shape) != tuple(place.shape):
        return False
    interface = image.__array_interface__ if place.is_cpu else image.__cuda_array_interface__
    if interface["data"][0] != place.data_ptr():
        place.copy_(torch.as_tensor(image, device=place.device))
    return True
