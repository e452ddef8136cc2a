"""The setting ``exact`` of a pipeline, for kernels with a faster implementation whose results differ from DALI's."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["exactly", "exactness", "use_exactness"]


class _Exactness(threading.local):
    """The setting of the calling thread.

    Attributes:
        on: True if results must be identical to DALI's, even if this is slower.
    """

    on = False


exactness = _Exactness()


def use_exactness(on: bool) -> None:
    """Change the setting of the calling thread."""
    exactness.on = on


@contextlib.contextmanager
def exactly(on: bool = True) -> Iterator[None]:
    """Change the setting of the calling thread inside of a ``with`` block."""
    before = exactness.on
    exactness.on = on
    try:
        yield
    finally:
        exactness.on = before
