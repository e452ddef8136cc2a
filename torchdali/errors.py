"""Exceptions and warnings of torchdali.

::

    Exception
    ├── KeyError      the operator has no argument of this name (the same class as in DALI)
    ├── TypeError     a node where a constant is required, a nested output, bool(node) ...
    ├── ValueError    an invalid argument value, input count, device or layout
    └── RuntimeError
        ├── PipelineError     a step failed while a pipeline ran; names operator, source line, sample, file
        │   └── PipelineValueError, PipelineTypeError ...   also subclasses of ValueError, TypeError ...
        ├── DecodeError       no decoder can read the bytes
        ├── StoreError        an object store failed, denied access, or changed an object during reading
        └── MissingExtraError an optional package isn't installed; names the extra that installs it

If an operator raises a ``ValueError`` on a sample, the pipeline raises a `PipelineValueError`. Users can catch it as a
``ValueError`` or as a `PipelineError`; see `locate_error`. DALI mostly raises ``RuntimeError``.

When torchdali raises an exception, most of torchdali's own frames are removed from the traceback (`CLEAN_TRACEBACKS`,
`strip_internal_frames`). The traceback keeps all frames of the user's code and the torchdali function that the user
called. It also keeps torchdali's innermost frame if no other frame shows where the error happened. Set
``TORCHDALI_FULL_TRACEBACK=1`` to keep all frames. Removing frames also frees their local variables, for example the
failed batch.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import NamedTuple, TypeVar

from torchdali.installation import extra_command

__all__ = [
    "CLEAN_TRACEBACKS",
    "DecodeError",
    "FusedPart",
    "MissingExtraError",
    "PipelineError",
    "PipelineIndexError",
    "PipelineKeyError",
    "PipelineMemoryError",
    "PipelineNotImplementedError",
    "PipelineTypeError",
    "PipelineValueError",
    "Site",
    "StoreError",
    "batch_level",
    "call_site",
    "did_you_mean",
    "is_batch_level",
    "is_installed",
    "locate_error",
    "note",
    "on_behalf_of",
    "part_of",
    "locate_user_code",
    "self_explanatory",
    "strip_frames",
    "strip_internal_frames",
    "warn",
    "warning_location",
    "warnings_on",
]

T = TypeVar("T")
_E = TypeVar("_E", bound=BaseException)


class PipelineError(RuntimeError):
    """A step of a running pipeline failed."""


class PipelineValueError(PipelineError, ValueError):
    """A step failed with a ``ValueError``."""


class PipelineTypeError(PipelineError, TypeError):
    """A step failed with a ``TypeError``."""


class PipelineIndexError(PipelineError, IndexError):
    """A step failed with an ``IndexError``."""


class PipelineKeyError(PipelineError, KeyError):
    """A step failed with a ``KeyError``."""

    __str__ = RuntimeError.__str__  # KeyError.__str__ puts the message in quotes


class PipelineNotImplementedError(PipelineError, NotImplementedError):
    """A step failed with a ``NotImplementedError``."""


class PipelineMemoryError(PipelineError, MemoryError):
    """A step failed with a ``MemoryError``."""


class DecodeError(RuntimeError):
    """Encoded data cannot be decoded: it is truncated, empty, in an unknown format, or absurdly large."""


class StoreError(RuntimeError):
    """An object store failed, denied access, or changed an object during reading.

    This error doesn't mean that the sample is bad, so `bad_samples` doesn't skip the sample.
    """


class MissingExtraError(RuntimeError):
    """An optional dependency is not installed.

    Args:
        package: Name of the missing package in pip.
        extra: The extra of torchdali that installs the package.
        purpose: The feature that needs the package; the message begins with this text.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"pip install {package}, or all of the extra: {extra_command(extra)}"
        )


class FusedPart:
    """Context manager that records which of several fused operators (run by one call) raised an exception.

    Args:
        index: Index of the operator among the fused operators.
    """

    def __init__(self, index: int) -> None:
        self._index = index

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            error.__dict__.setdefault("part", self._index)


def part_of(error: BaseException) -> int:
    """Return the index of the fused operator that raised the exception, or -1 if no index was recorded."""
    part: int = error.__dict__.get("part", -1)
    return part


def batch_level(error: _E) -> _E:
    """Mark an exception whose cause all samples of a batch share, and return the exception.

    The cause is an argument, the layout, or the number of axes. If all samples of a batch fail with marked exceptions,
    `bad_samples` doesn't skip the samples.
    """
    error.__dict__["batch_level"] = True
    return error


def is_batch_level(*errors: BaseException) -> bool:
    """Return True if `batch_level` marked all of these exceptions."""
    return all("batch_level" in error.__dict__ for error in errors)


_KINDS: tuple[tuple[type[BaseException], type[PipelineError]], ...] = (
    (ValueError, PipelineValueError),
    (TypeError, PipelineTypeError),
    (IndexError, PipelineIndexError),
    (KeyError, PipelineKeyError),
    (NotImplementedError, PipelineNotImplementedError),
    (MemoryError, PipelineMemoryError),
)


def locate_error(error: BaseException, location: str, hint: str = "") -> PipelineError:
    """Return a `PipelineError` that says where an operator's error happened.

    The result is also an instance of the error's builtin class, for example of ``ValueError``.

    Args:
        error: The operator's error; it becomes the result's ``__cause__``.
        location: Text that names the operator, the sample, the file and the line of the user's code.
        hint: Text that says how to fix the error.
    """
    classes = (error_class for kind, error_class in _KINDS if isinstance(error, kind))
    kind = next(classes, PipelineError)
    result = self_explanatory(kind(f"{location}\n  {type(error).__name__}: {error}{hint}"))
    if isinstance(error, DecodeError) and not _wants_full_traceback():
        error.__cause__ = None  # the message already contains the cause's text
    result.__cause__ = strip_frames(error)
    return result


def note(error: BaseException, location: str) -> None:
    """Add a note to an exception of the user's code: the place where the exception was raised.

    The exception's class and message don't change. In Python 3.10, which has no notes, this function does nothing.
    """
    if hasattr(error, "add_note") and location not in getattr(error, "__notes__", ()):
        error.add_note(location)


# ---------------------------------------------------------------- tracebacks

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep  # may be inside a ZIP file
_FUTURES = os.path.join(_STANDARD, "concurrent", "futures") + os.sep  # these frames only wait for workers
_SYSTEM = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = ("<frozen", _STANDARD, *(os.path.join(sysconfig.get_path(name), "") for name in _SYSTEM))


def is_installed(file: str) -> bool:
    """Return True if a source file belongs to Python or to an installed package, rather than to the user's code.

    All files in folders called ``site-packages`` or ``dist-packages`` belong to installed packages, wherever the folder
    is. A package installed in editable mode counts as the user's code.
    """
    return file.startswith(_INSTALLED) or not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))


def strip_internal_frames(error: BaseException) -> None:
    """Remove torchdali's internal frames from the traceback of an exception that is about to leave torchdali.

    Functions that users call must call this function in an ``except`` block, which then re-raises the exception, or in
    ``__exit__``. The traceback keeps the frame of the calling function and all frames of the user's code.
    """
    if isinstance(error, StopIteration) or _wants_full_traceback():
        return
    if isinstance(error, KeyboardInterrupt):
        self_explanatory(error)
    if error.__traceback__ is not None:
        inner = list(_entries(error.__traceback__.tb_next))
        error.__traceback__.tb_next = _link_traceback(_visible_entries(inner, error))
    if error.__cause__ is not None:
        strip_frames(error.__cause__)


class _TracebackCleaner:
    """Context manager that calls `strip_internal_frames` on exceptions that leave its block."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            strip_internal_frames(error)


CLEAN_TRACEBACKS = _TracebackCleaner()


def strip_frames(error: _E) -> _E:
    """Remove torchdali's internal frames from a stored exception and its causes, and return the exception."""
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen and not _wants_full_traceback():
        seen.add(id(current))
        current.__traceback__ = _link_traceback(_visible_entries(list(_entries(current.__traceback__)), current))
        current = current.__cause__
    return error


def self_explanatory(error: _E) -> _E:
    """Mark an exception whose message says where the error happened, and return the exception.

    `strip_frames` and `strip_internal_frames` then also remove torchdali's innermost frame.
    """
    error.__dict__["self_explanatory"] = True
    return error


def _wants_full_traceback() -> bool:
    return os.environ.get("TORCHDALI_FULL_TRACEBACK", "0") not in ("", "0")


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _visible_entries(entries: Sequence[TracebackType], error: BaseException) -> list[TracebackType]:
    """Return a traceback without torchdali's entries.

    The last entry of torchdali is kept if no entry of the user's code follows, unless `self_explanatory` has marked the
    exception.
    """
    kinds = [_kind(entry.tb_frame.f_code.co_filename) for entry in entries]
    inside = [i for i, kind in enumerate(kinds) if kind == "inside"]
    if inside and "self_explanatory" not in error.__dict__ and "shown" not in kinds[inside[-1] :]:
        kinds[inside[-1]] = "shown"
    return [entry for entry, kind in zip(entries, kinds, strict=True) if kind != "inside"]


@functools.lru_cache(maxsize=1024)
def _kind(file: str) -> str:
    """Return "inside" for a file of torchdali, "library" for other installed packages, "shown" for the user's code."""
    if file.startswith((_FUTURES, _PACKAGE)):
        return "inside"
    return "library" if is_installed(file) else "shown"


def locate_user_code(frame: FrameType | None) -> str:
    """Return the innermost line of the user's code in a frame's stack, or "" if the stack has no code of the user."""
    while frame is not None and _kind(frame.f_code.co_filename) != "shown":
        frame = frame.f_back
    return (
        "" if frame is None else f'File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}'
    )


def _link_traceback(entries: Sequence[TracebackType]) -> TracebackType | None:
    following = None
    for entry in reversed(entries):
        entry.tb_next, following = following, entry
    return following


def did_you_mean(name: str, names: Iterable[str], count: int = 1) -> str:
    """Return the end of a message about an unknown name: a suggestion of similar names, or "" without similar names."""
    matches = [] if name.startswith("__") else difflib.get_close_matches(name, names, count)
    return f"; did you mean {', '.join(matches)}?" if matches else ""


def hint_for_folder(path: str) -> str:
    """Return the end of a message about a missing folder, or "" if the path exists.

    The text names the nearest existing parent folder, and a similar name in that folder.
    """
    if path.startswith("~"):
        return "; '~' isn't expanded here: use os.path.expanduser"
    parent, name = os.path.split(os.path.abspath(path))
    while not os.path.isdir(parent) and parent != os.path.dirname(parent):
        parent, name = os.path.split(parent)
    suggestion = did_you_mean(name, os.listdir(parent)) if os.access(parent, os.R_OK) else ""
    return "" if os.path.exists(path) else f"; the nearest existing folder is {parent!r}{suggestion}"


# ---------------------------------------------------------------- warnings

_warning_line: ContextVar[tuple[str, int] | None] = ContextVar("torchdali.line", default=None)


@contextlib.contextmanager
def warnings_on(file: str, line: int) -> Iterator[None]:
    """Context manager. Within its block, the warnings of `warn` point to this line of the user's code.

    This also applies to copies of the current `contextvars` context, for example in other threads.
    """
    token = _warning_line.set((file, line))
    try:
        yield
    finally:
        _warning_line.reset(token)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to a line of the user's code.

    If the program is in a block of `warnings_on`, the warning points to the line that was passed to `warnings_on`;
    otherwise, to the line that called torchdali.
    """
    location = _warning_line.get()
    if location is not None:
        warnings.warn_explicit(text, category, *location)
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def warning_location() -> tuple[str, int]:
    """Return the file and line that `warn` would show now, for a warning that another thread may issue later."""
    return _warning_line.get() or call_site()[:2]


class Site(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str


def call_site() -> Site:
    """Return the line of the user's code that called torchdali."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def on_behalf_of(site: Site, function: Callable[[], T]) -> T:
    """Call a function as if an earlier line of the user's code had called it.

    Nodes and warnings that the function creates show that line.
    """
    with warnings_on(site.file, site.line):
        return function()


def _is_ours(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    is_generated = frame.f_code.co_filename == "<string>"  # code that `dataclass` generated
    return (
        frame.f_code.co_filename.startswith(_PACKAGE)
        or (is_generated and module.startswith("torchdali."))
        or module.startswith("torch.utils.data.")  # base classes of `DataLoader` and of its iterators
    )
