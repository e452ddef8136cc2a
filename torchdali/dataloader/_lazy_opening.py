"""Let Pillow open JPEGs as lazy images while a `DataLoader` loads samples.

The user's dataset runs unchanged. To open lazy images, this module replaces Pillow's function for JPEGs in Pillow's
registry of formats, and some functions of torchvision. PyTorch's workers keep the replacements. In the main process,
the functions are replaced only while the dataset of a loader without workers loads a batch, and only the thread that
loads the batch gets lazy images.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from torchdali.dataloader._pristine import find_image_change
from torchdali.kernels.native import status as native_status

__all__ = ["LazyFetcher", "LazyOpening", "Patience", "WorkerInitializer"]


class WorkerInitializer:
    """A ``worker_init_fn`` that calls the user's function, and then lets the worker open JPEGs as lazy images.

    Args:
        worker_init_fn: The user's function; None if there isn't one.
        context: Multiprocessing context that starts the workers; None for Python's default.
    """

    def __init__(self, worker_init_fn: Callable[[int], None] | None, context: Any) -> None:
        self._worker_init_fn = worker_init_fn
        if (context or multiprocessing).get_start_method() == "fork":  # forked workers inherit the imported modules
            if "PIL.Image" in sys.modules:
                import torchdali.dataloader._lazy_images  # noqa: F401
            LazyOpening()

    def __call__(self, worker: int) -> None:
        if self._worker_init_fn is not None:
            self._worker_init_fn(worker)
        LazyOpening(in_all_threads=True).__enter__()


class LazyFetcher:
    """A wrapper of PyTorch's fetcher. While the fetcher loads a batch, JPEGs are opened as lazy images.

    Args:
        fetcher: PyTorch's object that loads batches from the dataset.
        patience: Counter that ends lazy opening if the dataset opens no images.
    """

    def __init__(self, fetcher: Any, patience: Patience) -> None:
        self._fetcher, self._patience, self._opening = fetcher, patience, LazyOpening()

    def fetch(self, indices: Any) -> Any:
        with self._opening:
            batch = self._fetcher.fetch(indices)
        self._patience.update(self._opening.is_used)
        if not self._patience.remaining:
            self.fetch = self._fetcher.fetch  # type: ignore[method-assign]
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fetcher, name)


class Patience:
    """Counter of consecutive batches for which no image was opened. After four of them, lazy opening ends.

    Attributes:
        remaining: Remaining number of consecutive batches without an image until lazy opening ends.
    """

    def __init__(self) -> None:
        self.remaining = 4

    def update(self, has_images: bool) -> None:
        """Count a batch; start counting again if an image was opened for the batch."""
        self.remaining = 4 if has_images else self.remaining - 1


class LazyOpening:
    """Context manager in which Pillow opens JPEGs as lazy images.

    If the native library is missing, or if the user changed Pillow's code before the object was created, the context
    manager does nothing.

    Args:
        in_all_threads: True to open lazy images in all threads; False to do so only in the thread that enters the
            block.

    Attributes:
        is_used: True if an image was opened since the block was entered.
    """

    def __init__(self, in_all_threads: bool = False) -> None:
        self.is_used, self._thread, self._in_all_threads = False, 0, in_all_threads
        self._replacements = self._find_replacements()

    def _find_replacements(self) -> list[_Replacement]:
        try:
            from PIL import Image, JpegImagePlugin
        except ImportError:
            return []
        opener, accept = Image.OPEN.get("JPEG", (None, None))
        if native_status().library is None or opener is not JpegImagePlugin.jpeg_factory or find_image_change():
            return []

        def open_lazily(fp: Any, filename: Any) -> Any:
            from torchdali.dataloader._lazy_images import make_lazy  # imported late because it imports the operators

            image = opener(fp, filename)
            self.is_used = True
            return make_lazy(image) if self._is_active() else image

        found: list[tuple[Any, str, Any]] = [(Image.OPEN, "JPEG", (open_lazily, accept))]
        if "torchvision.transforms" in sys.modules:
            from torchdali.dataloader._lazy_colors import color_replacements
            from torchdali.dataloader._lazy_compose import compose_replacements

            found += [*color_replacements(), *compose_replacements(self._is_active)]
        return [_Replacement(owner, name, value, _current_value(owner, name)) for owner, name, value in found]

    def _is_active(self) -> bool:
        return self._in_all_threads or self._thread == threading.get_ident()

    def __enter__(self) -> LazyOpening:
        self.is_used = False
        try:
            if self._replacements and _active.setdefault("", self) is self:  # False if another thread is in its block
                self._thread = threading.get_ident()
                for each in self._replacements:
                    each.swap(each.original, each.value)
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        try:
            self._restore()
        except BaseException:  # an interrupt may have stopped the first call
            self._restore()
            raise

    def _restore(self) -> None:
        """Restore the original functions that this object has replaced and not restored yet."""
        if _active.get("") is self:
            for each in self._replacements:
                each.swap(each.value, each.original)
            self._thread = 0
            del _active[""]


_active: dict[str, LazyOpening] = {}  # the active object, if any; an interrupt could leave a lock locked


class _Replacement(NamedTuple):
    """The temporary replacement of a class attribute or of a dictionary's value.

    Attributes:
        owner: The class or the dictionary, for example the namespace of a module.
        name: Name of the attribute, or key in the dictionary.
        value: The replacement.
        original: The original value; None if the name doesn't exist.
    """

    owner: Any
    name: Any
    value: Any
    original: Any

    def swap(self, expected: Any, value: Any) -> None:
        """Set a new value if the current value is `expected`; do nothing if the program has set a different value."""
        if _current_value(self.owner, self.name) is not expected:
            return
        if isinstance(self.owner, type):
            setattr(self.owner, self.name, value)
        elif value is None:
            del self.owner[self.name]
        else:
            self.owner[self.name] = value


def _current_value(owner: Any, name: Any) -> Any:
    return (vars(owner) if isinstance(owner, type) else owner).get(name)
