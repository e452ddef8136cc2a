"""JPEG decoding by a GPU's hardware engine (A100, H100 and later), with nvImageCodec or nvJPEG.

nvImageCodec is used if it is installed (extra ``nvimgcodec``). The environment variable ``TORCHDALI_NVJPEG`` selects
nvJPEG instead, which the native library calls. With the value ``1``, the nvJPEG library is searched for in the folders
of torchvision and CUDA; another value must be the library's path.

The pixels of an H100's engine differ from libjpeg's pixels by at most one level. Hybrid decoders, which begin on the
CPU, are not used, because their pixels differ by three levels, and because hybrid decoders need as much CPU time as
libjpeg. If an engine rejects an image or fails, the caller decodes the image on the CPU.
"""

from __future__ import annotations

import ctypes
import glob
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._native import Files
from torchdali.kernels.native import library

__all__ = ["DEFAULT_SHARE", "BatchDecoder", "EngineOptions", "JpegEngine", "NvJpeg", "is_available", "open_engine"]

DEFAULT_SHARE = 0.65
"""Share of the images that an engine decodes, the same as in DALI.

The share does not depend on the number of threads. Otherwise, the results would depend on the number of threads, too,
because the pixels of an engine differ from libjpeg's pixels.
"""
SIDE = 1024
"""Height and width of the images for which memory is allocated in advance. Larger images are supported, too."""

_CPU_ONLY = -99999  # nvImageCodec's device number for the CPU
_STATUS = {
    -1: "the library can't be loaded", -2: "the library lacks a function", -3: "the GPU has no engine for JPEGs",
    1: "not initialized (1)", 2: "invalid parameter (2)", 3: "bad JPEG (3)", 4: "JPEG not supported (4)",
    5: "allocation failed (5)", 6: "execution failed (6)", 7: "the GPU has no JPEG engine (7)",
    8: "internal error (8)", 9: "not supported here (9)",
}  # fmt: skip
refusals: dict[torch.device, str] = {}


class EngineOptions(NamedTuple):
    """The maximum size of an engine's batches, and options of the engine.

    Attributes:
        images: Maximum number of images in a batch.
        states: Number of batches that are decoded at the same time.
        fancy: If True, upsample chroma smoothly; if False, repeat chroma samples.
        threads: Number of CPU threads; the engine may use some of these threads.
        sides: Height and width of the images for which memory is allocated in advance.
    """

    images: int
    states: int = 1
    fancy: bool = True
    threads: int = 1
    sides: tuple[int, int] = (SIDE, SIDE)


class JpegEngine(Protocol):
    """A decoder of JPEGs on a device."""

    def decode(self, images: Files, into: Tensor, state: int, stream: int) -> None:
        """Submit images for decoding to RGB bytes; the EXIF orientation is ignored.

        Args:
            images: Table of the dtype `ENCODED`. The files' memory must stay valid until the stream has finished. The
                field `out` is the offset in `into` of an image's pixels ``(H, W, 3)``. The field `code` is set to 0 for
                each image that the engine accepts.
            into: Bytes on the device. No other code may read or write the memory of these images.
            state: Index of the engine's state to use; no other batch may be using this state.
            stream: Handle of the CUDA stream on which the pixels become available; 0 without CUDA.

        Raises:
            RuntimeError: The call failed for all images; later calls may succeed.
        """
        ...


def is_available(device: torch.device) -> bool:
    """Return whether a device may have an engine.

    The device must be a CUDA device, a decoding library must be installed, and no earlier attempt to open the device's
    engine may have failed.
    """
    if device.type != "cuda" or library() is None or device in refusals:
        return False
    if _requested_library():
        return True
    try:
        return importlib.util.find_spec("nvidia.nvimgcodec") is not None
    except ModuleNotFoundError:  # the package nvidia is missing
        return False


def open_engine(device: torch.device, options: EngineOptions) -> JpegEngine:
    """Open the engine of a device.

    If opening fails for another reason than a lack of memory, `is_available` then returns False for the device.

    Raises:
        ImportError: nvImageCodec is not installed.
        RuntimeError: The decoder does not work on this machine, or the GPU has no engine.
    """
    try:
        return NvJpeg(options) if _requested_library() else BatchDecoder(device, options)
    except Exception as error:
        if not isinstance(error, torch.OutOfMemoryError):  # running out of memory may be temporary
            refusals[device] = str(error)
        raise


def _requested_library() -> str:
    """Return the value of ``TORCHDALI_NVJPEG``: "1" for any nvJPEG library, a path, or "" for nvImageCodec."""
    value = os.environ.get("TORCHDALI_NVJPEG", "").strip()
    return "" if value.lower() in ("0", "off", "false", "no") else value


class NvJpeg:
    """nvJPEG on the current device, called by the native library.

    Raises:
        RuntimeError: nvJPEG is missing, or does not work on this machine.
    """

    def __init__(self, options: EngineOptions) -> None:
        native = library()
        assert native is not None
        self._library, self._options, self._engine = native, options, None
        failures = []
        for file in _find_libraries():
            code = ctypes.c_int()
            self._engine = native.engine_open(os.fsencode(file), options.fancy, options.states, ctypes.byref(code))
            if self._engine:
                return
            failures.append(f"{file}: {_describe_status(code.value)}")
        raise RuntimeError("nvJPEG: " + ("; ".join(failures) or "the library libnvjpeg was not found"))

    def __del__(self) -> None:
        if self._engine:
            self._library.engine_close(self._engine)

    def decode(self, images: Files, into: Tensor, state: int, stream: int) -> None:
        """Submit images in a single call; see `JpegEngine`."""
        table = images.copy()
        table["out"] += np.uint64(into.data_ptr())
        code = self._library.engine_decode(
            self._engine, state, table.ctypes.data, len(table), self._options.images, *self._options.sides, stream
        )
        images["code"] = table["code"]
        if code:
            raise RuntimeError(f"nvJPEG: {_describe_status(code)}")


def _describe_status(code: int) -> str:
    return _STATUS.get(code, f"status {code}")


def _find_libraries() -> Iterator[str]:
    """Yield possible paths of the nvJPEG library, the preferred path first."""
    setting = _requested_library()
    if os.path.sep in setting:
        yield setting
        return
    patterns = (
        "nvidia/nvjpeg/lib/libnvjpeg.so*", "nvidia/cu1*/lib/libnvjpeg.so*", "torchvision.libs/libnvjpeg*",
        "lib64/libnvjpeg.so*", "targets/*/lib/libnvjpeg.so*",
    )  # fmt: skip
    for folder in (*sys.path, os.environ.get("CUDA_HOME", "/usr/local/cuda")):
        for pattern in patterns:
            yield from sorted(glob.glob(os.path.join(glob.escape(folder or "."), pattern)), reverse=True)


class BatchDecoder:
    """nvImageCodec on a device.

    Args:
        device: CUDA device; or the CPU, on which nvImageCodec uses its CPU decoders (for tests).
        options: See `EngineOptions`. To read headers, the decoder uses a quarter of the threads, at most four.

    Raises:
        ImportError: nvImageCodec is not installed.
        RuntimeError: nvImageCodec does not work on this machine, or the GPU has no engine for JPEGs.
    """

    def __init__(self, device: torch.device, options: EngineOptions) -> None:
        codec: Any = importlib.import_module("nvidia.nvimgcodec")
        kinds = codec.BackendKind
        on_gpu = device.type == "cuda"
        self._codec = codec
        self._decoder = codec.Decoder(
            device_id=device.index or 0 if on_gpu else _CPU_ONLY,
            max_num_cpu_threads=max(1, min(4, options.threads // 4)),
            backends=[codec.Backend(kinds.HW_GPU_ONLY if on_gpu else kinds.CPU_ONLY)],
            options=f":fancy_upsampling={options.fancy:d} nvjpeg_hw_decoder:preallocate_batch_size={options.images}",
        )
        self._parameters = codec.DecodeParams(apply_exif_orientation=False, color_spec=codec.ColorSpec.SRGB)

    def decode(self, images: Files, into: Tensor, state: int, stream: int) -> None:
        """Submit images; see `JpegEngine`. `state` is ignored, since nvImageCodec manages its own states."""
        codec = self._codec
        streams, targets, views, indices = [], [], [], []
        for i, (data, length, start, height, width) in enumerate(images[_FIELDS].tolist()):
            memory = np.frombuffer((ctypes.c_uint8 * length).from_address(data), np.uint8)
            try:
                streams.append(codec.CodeStream(memory))
            except Exception:  # nvImageCodec raises exceptions of various classes for images that it cannot parse
                continue
            view = into[start : start + height * width * 3].view(height, width, 3)
            targets.append(codec.as_image(view.numpy() if view.is_cpu else view, stream))
            views.append(view)
            indices.append(i)
        images["code"] = 1
        if not streams:
            return
        decoded = self._decoder.decode(streams, images=targets, params=self._parameters, cuda_stream=stream)
        for i, image, view in zip(indices, decoded, views, strict=True):
            images["code"][i] = image is None or not _copy_to(image, view)


_FIELDS = ["data", "length", "out", "height", "width"]


def _copy_to(image: Any, target: Tensor) -> bool:
    """Copy an image to its destination, unless the image is already there. Return False if the shapes differ."""
    if tuple(image.shape) != tuple(target.shape):
        return False
    interface = image.__array_interface__ if target.is_cpu else image.__cuda_array_interface__
    if interface["data"][0] != target.data_ptr():
        target.copy_(torch.as_tensor(image, device=target.device))
    return True
