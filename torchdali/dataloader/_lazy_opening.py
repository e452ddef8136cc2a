"""Lazy images where a `DataLoader` makes its samples: Pillow's registry of formats opens JPEGs as lazy images.

A program's own code runs unchanged. Nothing is registered in its main process, except while a dataset of a loader
without workers makes a sample, and then only for that thread.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from torchdali.pipeline import native_status

__all__ = ["FetchLazily", "InitWorker", "lazy_images"]


@contextlib.contextmanager
def lazy_images() -> Iterator[_Opener | None]:
    """Open JPEGs as lazy images in this thread, until the block is left; the value is what opens them, if it can."""
    opener, restore = _install(threading.get_ident())
    try:
        yield opener
    finally:
        restore()


class InitWorker:
    """A ``worker_init_fn`` that opens JPEGs as lazy images in a worker process, after the user's has run.

    Args:
        worker_init_fn: The user's.
    """

    def __init__(self, worker_init_fn: Callable[[int], None] | None) -> None:
        self._worker_init_fn = worker_init_fn

    def __call__(self, worker: int) -> None:
        if self._worker_init_fn is not None:
            self._worker_init_fn(worker)
        _install()


class FetchLazily:
    """A fetcher of torch's `DataLoader`, whose dataset opens JPEGs as lazy images, if it opens any.

    Args:
        fetcher: torch's.
    """

    def __init__(self, fetcher: Any) -> None:
        self._fetcher, self._left = fetcher, _PATIENCE
        if "torchvision.transforms" in sys.modules:
            from torchdali.dataloader._lazy_compose import forget_rows

            forget_rows()  # functions may have been replaced since the last loop

    def fetch(self, indices: Any) -> Any:
        """Make the samples of a batch."""
        with lazy_images() as opener:
            batch = self._fetcher.fetch(indices)
        self._left = _PATIENCE if opener is not None and opener.is_used else self._left - 1
        if not self._left:
            self.fetch = self._fetcher.fetch  # type: ignore[method-assign]
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fetcher, name)


class _Opener:
    """Opens JPEGs as Pillow does, and makes them lazy.

    Args:
        opener: Pillow's.
        thread: The thread whose images are lazy; None for all threads.

    Attributes:
        is_used: It has opened an image.
    """

    is_used = False

    def __init__(self, opener: Callable[[Any, Any], Any], thread: int | None) -> None:
        from torchdali.dataloader._lazy_images import make_lazy  # which imports Pillow

        self._open, self._thread, self._make_lazy = opener, thread, make_lazy

    def __call__(self, fp: Any, filename: Any) -> Any:
        image = self._open(fp, filename)
        self.is_used = True
        return self._make_lazy(image) if self._thread in (None, threading.get_ident()) else image


_PATIENCE = 4  # batches without an image, after which no more are expected


def _install(thread: int | None = None) -> tuple[_Opener | None, Callable[[], None]]:
    """Register the opener for lazy images, if Pillow is unchanged; return it, and the function that undoes it."""
    try:
        from PIL import Image, JpegImagePlugin
    except ImportError:
        return None, _nothing
    previous = Image.OPEN.get("JPEG", (None, None))
    if native_status().library is None or previous[0] is not JpegImagePlugin.jpeg_factory or not _is_pristine():
        return None, _nothing
    opener = _Opener(previous[0], thread)
    if _installed.setdefault("opener", opener) is not opener:
        return None, _nothing  # another thread was faster
    Image.register_open("JPEG", opener, previous[1])
    restore_calls = _replace_calls(thread)

    def restore() -> None:
        restore_calls()
        if Image.OPEN["JPEG"][0] is opener:
            Image.OPEN["JPEG"] = previous
        _installed.clear()

    return opener, restore


def _replace_calls(thread: int | None) -> Callable[[], None]:
    if "torchvision.transforms" not in sys.modules:
        return _nothing
    from torchdali.dataloader._lazy_compose import replace_calls

    return replace_calls(lambda: thread in (None, threading.get_ident()))


def _nothing() -> None:
    """Undo nothing."""


_installed: dict[str, _Opener] = {}


def _is_pristine() -> bool:
    """Return whether the functions that open and change images are Pillow's own."""
    from PIL import Image, ImageFile, JpegImagePlugin

    owners = [(Image, Image.Image), (ImageFile, ImageFile.ImageFile), (JpegImagePlugin, JpegImagePlugin.JpegImageFile)]
    functions: list[Any] = [(Image, Image.open), (JpegImagePlugin, JpegImagePlugin.jpeg_factory)]
    for module, kind in owners:
        functions += [(module, each) for each in vars(kind).values() if isinstance(each, types.FunctionType)]
    return all(getattr(function, "__globals__", None) is vars(module) for module, function in functions)
