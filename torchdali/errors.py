"""The exceptions of torchdali.

::

    Exception
    ├── KeyError      an argument that the operator does not have (as DALI raises it)
    ├── TypeError     a node where a constant belongs, a nested output, bool(node) ...
    ├── ValueError    a bad argument value, input count, device or layout
    └── RuntimeError
        ├── PipelineError     a step failed while a pipeline ran; names operator, line, sample, file
        ├── DecodeError       bytes that no decoder can read
        └── MissingExtraError an optional package is not installed; names the extra

The class follows the reason, as in DALI: an operator that raises ``ValueError`` on a sample makes the
pipeline raise a ``ValueError``; see `located`.
"""

from __future__ import annotations

__all__ = [
    "FIRST_PART",
    "DecodeError",
    "MissingExtraError",
    "PipelineError",
    "located",
    "note",
    "of_first_part",
]


class PipelineError(RuntimeError):
    """A step of a running pipeline failed."""


class DecodeError(RuntimeError):
    """Bytes that cannot be decoded: truncated, empty, of an unknown format, or absurdly large."""


class MissingExtraError(RuntimeError):
    """An optional dependency is not installed.

    Args:
        package: What is missing, as pip names it.
        extra: The extra of torchdali that brings it.
        purpose: What it is needed for.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"pip install 'torchdali[{extra}]'"
        )


class _FirstPart:
    """Marks the exceptions that leave its block as those of the first of two operators fused into one."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            error.__dict__["of_first_part"] = True


FIRST_PART = _FirstPart()


def of_first_part(error: BaseException) -> bool:
    """Whether an exception left a block of `FIRST_PART`."""
    return "of_first_part" in error.__dict__


_KEPT = (ValueError, TypeError, IndexError, KeyError, NotImplementedError, MemoryError)


def located(error: BaseException, place: str) -> Exception:
    """Return an exception that says where another one happened, of the class that DALI would raise.

    Args:
        error: What an operator raised; it becomes the cause.
        place: Operator, sample, file and the user's line.
    """
    kind = next((k for k in _KEPT if isinstance(error, k)), PipelineError)
    made = kind(f"{place}\n  {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def note(error: BaseException, place: str) -> None:
    """Say in an exception of the user's own code where it happened; it keeps its class and message.

    Python 3.10 has no notes: there it stays as it is.
    """
    if hasattr(error, "add_note") and place not in getattr(error, "__notes__", ()):
        error.add_note(place)
