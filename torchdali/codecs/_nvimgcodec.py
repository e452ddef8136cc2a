"""JPEGs of a batch by NVIDIA's nvImageCodec, if it is installed (the extra ``nvimgcodec``).

On a GPU its hardware engine decodes them, if the GPU has one; an H100's differs from libjpeg by one level at most. Its
hybrid way, which begins on the CPU, differs by three and takes as much of the CPU as libjpeg: it is not used. It says
of an image no more than that it failed: the caller decodes that again on the CPU, and has the message from there.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import threading
import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchdali.codecs._image_headers import encoded_view, jpeg_frame
from torchdali.errors import DecodeError

__all__ = ["BatchDecoder", "available", "is_chosen"]

_SEQUENTIAL = (0xC0, 0xC1)
_TAIL = 256  # bytes at the end of a file, which are of its pixels
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # that ends a scan
_FRAMES = (*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0))
_CPU_ONLY = -99999  # nvImageCodec's number for no device


def available(device: torch.device) -> bool:
    """Return whether nvImageCodec decodes for a device: where it is installed, for CUDA."""
    if device.type != "cuda":
        return False
    try:
        return importlib.util.find_spec("nvidia.nvimgcodec") is not None
    except ModuleNotFoundError:  # there is no package nvidia
        return False


def is_chosen(data: Tensor, share: float) -> bool:
    """Return whether an image is among the share that nvImageCodec decodes.

    It depends on the bytes alone, so that an image is always decoded by the same decoder, whatever batch it is in. Only
    JPEGs of one sequential scan, of 8 bits, gray or YCbCr, are: others take nvJPEG's slow ways, or come out in other
    colors. Neither are those that are cut short or have markers amid their pixels, which it may take for whole.
    """
    view = encoded_view(data)
    if share <= 0 or bytes(view[:2]) != b"\xff\xd8":
        return False
    try:
        _, _, channels, _, adobe, frame = jpeg_frame(view)
    except (DecodeError, IndexError):
        return False  # the CPU's decoder has the message
    usual = channels in (1, 3) and not adobe and view[frame + 1] in _SEQUENTIAL
    if not usual or view[frame + 4] != 8 or zlib.crc32(view[-_TAIL:]) >= share * 2**32:
        return False
    return _has_one_scan(view, frame)


def _has_one_scan(view: memoryview, frame: int) -> bool:
    """Return whether one scan follows a JPEG's frame header, and the end of the image follows that."""
    position = frame
    while position + 4 < len(view) and view[position] == 0xFF:
        scan = view[position + 1] == 0xDA
        position += 2 + (view[position + 2] << 8 | view[position + 3])
        if scan:
            found = _MARKER.search(view, position)
            return found is not None and found[0] == b"\xff\xd9"
        if position + 4 < len(view) and view[position + 1] in _FRAMES:
            return False
    return False


class BatchDecoder:
    """A decoder on a device.

    Args:
        device: CUDA, or the CPU: nvImageCodec's own decoders there, which serve to test this.

    Raises:
        ImportError: it is not installed. RuntimeError: it does not work here, or the GPU has no engine for JPEGs.
    """

    def __init__(self, device: torch.device) -> None:
        codec: Any = importlib.import_module("nvidia.nvimgcodec")
        kinds = codec.BackendKind
        on_gpu = device.type == "cuda"
        self._codec = codec
        self._decoder = codec.Decoder(
            device_id=device.index or 0 if on_gpu else _CPU_ONLY,
            max_num_cpu_threads=1,
            backends=[codec.Backend(kinds.HW_GPU_ONLY if on_gpu else kinds.CPU_ONLY)],
            options=":fancy_upsampling=1",  # as on the CPU
        )
        self._lock = threading.Lock()

    def decode(self, encoded: Sequence[Tensor], into: Sequence[Tensor], upright: bool, stream: int = 0) -> list[bool]:
        """Decode images to RGB bytes.

        Args:
            encoded: The bytes of files.
            into: For each ``(H, W, 3)`` on the device, where nothing else reads or writes any more.
            upright: Turn them as their EXIF blocks say.
            stream: Handle of the CUDA stream behind which the pixels are there.

        Returns:
            For each, whether it was decoded.
        """
        codec = self._codec
        parameters = codec.DecodeParams(apply_exif_orientation=upright, color_spec=codec.ColorSpec.SRGB)
        streams, images, numbers = [], [], []
        for i, (data, place) in enumerate(zip(encoded, into, strict=True)):
            try:
                streams.append(codec.CodeStream(data.numpy()))
            except Exception:  # it raises what it likes for what it cannot parse
                continue
            images.append(codec.as_image(place.numpy() if place.is_cpu else place, stream))
            numbers.append(i)
        found = [False] * len(encoded)
        if not streams:
            return found
        with self._lock:  # one batch at a time; it has threads of its own
            made = self._decoder.decode(streams, images=images, params=parameters, cuda_stream=stream)
        for i, image in zip(numbers, made, strict=True):
            found[i] = image is not None and _is_in(image, into[i])
        return found


def _is_in(image: Any, place: Tensor) -> bool:
    """Return whether an image lies where it was to be put; otherwise copy it there, if it fits."""
    if tuple(image.shape) != tuple(place.shape):
        return False
    interface = image.__array_interface__ if place.is_cpu else image.__cuda_array_interface__
    if interface["data"][0] != place.data_ptr():
        place.copy_(torch.as_tensor(image, device=place.device))
    return True
