"""Evaluation modes of the dynamic mode."""

from __future__ import annotations

import enum
import threading
from types import TracebackType

__all__ = ["EvalMode"]

_current = threading.local()


class EvalMode(enum.Enum):
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
        stack: list[EvalMode] = getattr(_current, "stack", [])
        return stack[-1] if stack else EvalMode.eager

    def __enter__(self) -> EvalMode:
        if not hasattr(_current, "stack"):
            _current.stack = []
        _current.stack.append(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _current.stack.pop()
