"""Lazy images in the samples of a `DataLoader`: an entry in Pillow's registry of formats opens JPEGs as lazy images.

The user's own code runs unchanged. In the main process, functions are replaced only while the dataset of a loader
without workers loads samples, and the replacements are active only in that thread.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from torchdali.dataloader._pristine import find_image_change
from torchdali.kernels.native import status as native_status

__all__ = ["FetchLazily", "InitWorker", "LazyOpening", "Patience"]


class InitWorker:
    """A ``worker_init_fn`` that calls the user's function, and then makes a worker process open JPEGs as lazy images.

    Args:
        worker_init_fn: The user's function.
        context: Context that starts the processes; None for Python's default.
    """

    def __init__(self, worker_init_fn: Callable[[int], None] | None, context: Any) -> None:
        self._worker_init_fn = worker_init_fn
        if (context or multiprocessing).get_start_method() == "fork":  # the workers inherit all imports and checks
            if "PIL.Image" in sys.modules:
                import torchdali.dataloader._lazy_images  # noqa: F401
            LazyOpening()

    def __call__(self, worker: int) -> None:
        if self._worker_init_fn is not None:
            self._worker_init_fn(worker)
        LazyOpening(in_all_threads=True).__enter__()


class FetchLazily:
    """A wrapper of PyTorch's fetcher, during whose calls JPEGs are opened as lazy images.

    Args:
        fetcher: PyTorch's fetcher.
        patience: The loader's patience.
    """

    def __init__(self, fetcher: Any, patience: Patience) -> None:
        self._fetcher, self._patience, self._opening = fetcher, patience, LazyOpening()

    def fetch(self, indices: Any) -> Any:
        """Fetch a batch."""
        with self._opening:
            batch = self._fetcher.fetch(indices)
        self._patience.note(self._opening.is_used)
        if not self._patience.left:
            self.fetch = self._fetcher.fetch  # type: ignore[method-assign]
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fetcher, name)


class Patience:
    """Counter of batches without images, which decides how long lazy opening stays enabled.

    Attributes:
        left: Number of further batches without an image after which lazy opening ends.
    """

    def __init__(self) -> None:
        self.left = 4

    def note(self, has_images: bool) -> None:
        """Record a batch."""
        self.left = 4 if has_images else self.left - 1


class LazyOpening:
    """A context manager within which Pillow opens JPEGs as lazy images.

    Pillow and torchvision must be unchanged when the object is created.

    Args:
        in_all_threads: Open lazy images in all threads; otherwise only in the thread that enters the block.

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
        return [_Replacement(owner, name, value, _value_of(owner, name)) for owner, name, value in found]

    def _is_active(self) -> bool:
        return self._in_all_threads or self._thread == threading.get_ident()

    def __enter__(self) -> LazyOpening:
        self.is_used = False
        try:
            if self._replacements and _users.setdefault("", self) is self:  # False if another thread uses replacements
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
        except BaseException:  # an interrupt: finish the work
            self._restore()
            raise

    def _restore(self) -> None:
        """Undo the replacements of this object that are still in place."""
        if _users.get("") is self:
            for each in self._replacements:
                each.swap(each.value, each.original)
            self._thread = 0
            del _users[""]


_users: dict[str, LazyOpening] = {}  # at most one entry; not a lock, which an interrupt could leave locked


class _Replacement(NamedTuple):
    """A value that temporarily replaces the value of a name.

    Attributes:
        owner: A class, or a dictionary such as a module's.
        name: The name, or the key in the dictionary.
        value: The replacement.
        original: The original value; None if the name doesn't exist.
    """

    owner: Any
    name: Any
    value: Any
    original: Any

    def swap(self, present: Any, value: Any) -> None:
        """Replace the present value, unless the program has set a different value."""
        if _value_of(self.owner, self.name) is not present:
            return
        if isinstance(self.owner, type):
            setattr(self.owner, self.name, value)
        elif value is None:
            del self.owner[self.name]
        else:
            self.owner[self.name] = value


def _value_of(owner: Any, name: Any) -> Any:
    return (vars(owner) if isinstance(owner, type) else owner).get(name)
