"""Last references, without the garbage collector where that is possible."""

from __future__ import annotations

import gc

from torchdali.execute.process_state import has_gil

__all__ = ["let_go"]


def let_go() -> None:
    """Let everything go that nobody refers to.

    With the GIL it has gone already. Without it, what one thread made and another one dropped goes when the first one
    runs again, or with a collection.
    """
    if not has_gil():
        gc.collect()
