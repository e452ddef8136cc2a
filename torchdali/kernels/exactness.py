"""The option ``exact`` of a pipeline.

Some kernels have a faster implementation whose results differ from DALI's. These kernels read the option here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["exactly", "exactness", "use_exactness"]


class _Exactness(threading.local):
    """The value of the option in the calling thread.

    Attributes:
        on: True if results must be identical to DALI's, even if this is slower.
    """

    on = False


exactness = _Exactness()


def use_exactness(on: bool) -> None:
    """Set the option in the calling thread."""
    exactness.on = on


@contextlib.contextmanager
def exactly(on: bool = True) -> Iterator[None]:
    """Set the option in the calling thread inside a ``with`` block."""
    previous = exactness.on
    exactness.on = on
    try:
        yield
    finally:
        exactness.on = previous
