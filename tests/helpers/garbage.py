"""Last references, if possible without the garbage collector."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from torchdali.execute.process_state import has_gil

__all__ = ["let_go", "released"]

_PATIENCE = 10.0  # seconds


def let_go() -> None:
    """Free all unreferenced objects.

    With the GIL they are free already. Without it, an object that one thread created and another dropped is freed when the
    first thread runs again, or by a collection.
    """
    if not has_gil():
        gc.collect()


def released(is_gone: Callable[[], bool]) -> bool:
    """Return whether garbage collections free an object; the first one may have no effect.

    `gc.collect` returns immediately while another thread collects, and a thread that has just ended may still hold its
    last references.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        gc.collect()
        if is_gone() or time.monotonic() > deadline:
            return is_gone()
        time.sleep(0.01)
