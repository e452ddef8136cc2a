"""Evaluation modes of the dynamic mode."""

from __future__ import annotations

import enum

from torchdali.experimental.dynamic._scoped import Scoped, innermost

__all__ = ["EvalMode"]


class EvalMode(Scoped, enum.Enum):
    """Determines when operators run and raise errors. Use a mode in a ``with`` statement to set it for the block.

    Arguments are checked at the call in every mode.

    Attributes:
        deferred: Operators run when a result is used (its values, shape or dtype). Errors are raised at this point, and
            name the line of the call.
        eager: Operators on single tensors run at the call. Calls on batches may be collected, and run together when a
            result is used.
        sync_cpu: Operators on the CPU finish before the call returns; work on an accelerator may continue.
        sync_full: Operators on all devices finish before the call returns.
        default: The same as ``eager``.
    """

    deferred = 1
    eager = 2
    sync_cpu = 3
    sync_full = 4
    default = eager

    @staticmethod
    def current() -> EvalMode:
        """Return the mode of the innermost ``with`` block of this thread, or ``eager``."""
        return innermost(EvalMode) or EvalMode.eager
