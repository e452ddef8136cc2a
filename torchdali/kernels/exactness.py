"""The switch ``exact`` of a pipeline, for the kernels that have a faster way whose bytes differ from DALI's."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["exactly", "exactness", "use_exactness"]


class _Exactness(threading.local):
    """Of the calling thread.

    Attributes:
        on: Bytes must be DALI's, at any cost.
    """

    on = False


exactness = _Exactness()


def use_exactness(on: bool) -> None:
    """Set the switch for the calling thread."""
    exactness.on = on


@contextlib.contextmanager
def exactly(on: bool = True) -> Iterator[None]:
    """Set the switch in the calling thread for a while."""
    before = exactness.on
    exactness.on = on
    try:
        yield
    finally:
        exactness.on = before
