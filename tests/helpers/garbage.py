"""Last references, without the garbage collector where that is possible."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from torchdali.execute.process_state import has_gil

__all__ = ["let_go", "released"]

_PATIENCE = 10.0  # seconds


def let_go() -> None:
    """Let everything go that nobody refers to.

    With the GIL it has gone already. Without it, what one thread made and another one dropped goes when the first one
    runs again, or with a collection.
    """
    if not has_gil():
        gc.collect()


def released(is_gone: Callable[[], bool]) -> bool:
    """Return whether something goes with garbage collections; the first one may do nothing.

    `gc.collect` returns at once while another thread collects, and a thread that has just ended may still hold its
    last references.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        gc.collect()
        if is_gone() or time.monotonic() > deadline:
            return is_gone()
        time.sleep(0.01)
