"""Evaluation modes of the dynamic mode."""

from __future__ import annotations

import enum

from torchdali.experimental.dynamic._scoped import Scoped, innermost

__all__ = ["EvalMode"]


class EvalMode(Scoped, enum.Enum):
    """Time at which operators are evaluated and their errors raised; a context that sets it.

    Arguments are checked at the call in every mode.

    Attributes:
        deferred: When a result is asked for (its values, shape or element type). Errors are raised there and
            name the line of the call.
        eager: At the call for single tensors. Calls on batches may be collected and run together until a result
            is asked for.
        sync_cpu: Before the call returns, on the CPU; work on an accelerator may go on.
        sync_full: Before the call returns, on all devices.
        default: ``eager``.
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
