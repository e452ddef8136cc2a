"""Share open video files among threads, and cache the index of each file."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchdali.codecs.video import VideoDecoder, VideoIndex, index_video
from torchdali.errors import DecodeError

__all__ = ["VideoFiles", "index_file"]

_MAX_IDLE = 8  # maximum number of idle decoders that stay open


def index_file(path: str) -> VideoIndex:
    """Return the index of a file. The index is built again only if the file has changed.

    Raises:
        DecodeError: The file cannot be read.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise DecodeError(f"{path}: {error.strerror}") from None
    return _index_file(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=65536)
def _index_file(path: str, size: int, modified: int) -> VideoIndex:
    return index_video(path)


class VideoFiles:
    """Open decoders of video files. Each decoder is used by one thread at a time.

    The most recently used decoders stay open. The arguments are options of `VideoDecoder`.
    """

    def __init__(self, color: str = "RGB", fast: bool = False, upright: bool = False) -> None:
        self._color, self._fast, self._upright = color, fast, upright
        self._idle: list[tuple[str, VideoDecoder]] = []
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"color": self._color, "fast": self._fast, "upright": self._upright}

    def __setstate__(self, state: dict[str, Any]) -> None:
        VideoFiles.__init__(self, **state)

    @contextmanager
    def lend(self, path: str) -> Iterator[VideoDecoder]:
        """Provide a decoder of a file for a ``with`` block. If the block raises an exception, the decoder is closed."""
        decoder = self._pop_idle(path) or VideoDecoder(
            path, index_file(path), color=self._color, fast=self._fast, upright=self._upright
        )
        try:
            yield decoder
        except BaseException:
            decoder.close()
            raise
        self._return_idle(path, decoder)

    def _pop_idle(self, path: str) -> VideoDecoder | None:
        with self._lock:
            for index, (name, decoder) in enumerate(self._idle):
                if name == path:
                    del self._idle[index]
                    return decoder
        return None

    def _return_idle(self, path: str, decoder: VideoDecoder) -> None:
        with self._lock:
            self._idle.append((path, decoder))
            oldest = self._idle.pop(0)[1] if len(self._idle) > _MAX_IDLE else None
        if oldest is not None:
            oldest.close()
