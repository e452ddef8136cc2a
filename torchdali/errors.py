"""The exceptions of torchdali, and how it warns.

::

    Exception
    ├── KeyError      an argument that the operator does not have (as DALI raises it)
    ├── TypeError     a node where a constant belongs, a nested output, bool(node) ...
    ├── ValueError    a bad argument value, input count, device or layout
    └── RuntimeError
        ├── PipelineError     a step failed while a pipeline ran; names operator, line, sample, file
        │   └── PipelineValueError, PipelineTypeError ...   also of the class of the operator's error
        ├── DecodeError       bytes that no decoder can read
        ├── StoreError        an object store fails, refuses access, or replaced an object that is being read
        └── MissingExtraError an optional package is not installed; names the extra

An operator that raises ``ValueError`` on a sample makes the pipeline raise an exception that is a ``ValueError`` and a
``PipelineError``, so that both ``except`` clauses meet it; see `locate_error`. DALI mostly raises ``RuntimeError``.

Tracebacks keep the user's frames, and of torchdali's the one that the user called and, if nothing else shows the place,
the last; the others are removed where an exception exits torchdali (`LEAVING`, `strip_internal_frames`), unless
``TORCHDALI_FULL_TRACEBACK=1``. That also frees the objects of the frames: a batch that failed lives no longer than its
error.
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
    "LEAVING",
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
    "place_of",
    "self_explanatory",
    "strip_frames",
    "strip_internal_frames",
    "warn",
    "warning_place",
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

    __str__ = RuntimeError.__str__  # KeyError's shows the text with quotes


class PipelineNotImplementedError(PipelineError, NotImplementedError):
    """A step failed with a ``NotImplementedError``."""


class PipelineMemoryError(PipelineError, MemoryError):
    """A step failed with a ``MemoryError``."""


class DecodeError(RuntimeError):
    """Bytes that cannot be decoded: truncated, empty, of an unknown format, or absurdly large."""


class StoreError(RuntimeError):
    """An object store fails, refuses access, or replaced an object that is being read; never a bad sample."""


class MissingExtraError(RuntimeError):
    """An optional dependency is not installed.

    Args:
        package: The missing package, as pip names it.
        extra: The extra of torchdali that brings it.
        purpose: Its purpose.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"pip install {package}, or all of the extra: {extra_command(extra)}"
        )


class FusedPart:
    """Marks the exceptions that leave its block as exceptions of one of several operators fused into one."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            error.__dict__.setdefault("part", self._index)


def part_of(error: BaseException) -> int:
    """Return which of several fused operators an exception comes from: an index."""
    part: int = error.__dict__.get("part", -1)
    return part


def batch_level(error: _E) -> _E:
    """Mark an exception about properties that the samples of a batch share: arguments, layout, number of axes.

    If all samples fail with one, `bad_samples` does not skip them.
    """
    error.__dict__["batch_level"] = True
    return error


def is_batch_level(*errors: BaseException) -> bool:
    """Return True if all are marked by `batch_level`."""
    return all("batch_level" in error.__dict__ for error in errors)


_KINDS: tuple[tuple[type[BaseException], type[PipelineError]], ...] = (
    (ValueError, PipelineValueError),
    (TypeError, PipelineTypeError),
    (IndexError, PipelineIndexError),
    (KeyError, PipelineKeyError),
    (NotImplementedError, PipelineNotImplementedError),
    (MemoryError, PipelineMemoryError),
)


def locate_error(error: BaseException, place: str, hint: str = "") -> PipelineError:
    """Return an exception that says where another one happened: a `PipelineError`, of the class of that one, too.

    Args:
        error: The operator's error; it becomes the cause.
        place: Operator, sample, file and the user's line.
        hint: The cure.
    """
    classes = (error_class for kind, error_class in _KINDS if isinstance(error, kind))
    kind = next(classes, PipelineError)
    result = self_explanatory(kind(f"{place}\n  {type(error).__name__}: {error}{hint}"))
    if isinstance(error, DecodeError) and not _wants_all():
        error.__cause__ = None  # the message has the reason
    result.__cause__ = strip_frames(error)
    return result


def note(error: BaseException, place: str) -> None:
    """Say in an exception of the user's own code where it happened; it keeps its class and message.

    Python 3.10 has no notes: there it stays unchanged.
    """
    if hasattr(error, "add_note") and place not in getattr(error, "__notes__", ()):
        error.add_note(place)


# ---------------------------------------------------------------- tracebacks

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep  # in a ZIP file, too
_FUTURES = os.path.join(_STANDARD, "concurrent", "futures") + os.sep  # its frames wait for workers
_SYSTEM = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = ("<frozen", _STANDARD, *(os.path.join(sysconfig.get_path(name), "") for name in _SYSTEM))


def is_installed(file: str) -> bool:
    """Return True if a source file is Python's, or belongs to an installed package, and isn't the user's code.

    Folders called ``site-packages`` or ``dist-packages`` hold installed packages: of an environment, of Debian,
    of ``pip install --user``, and those that a ``.pth`` file names. The folder of an editable install is the user's.
    """
    return file.startswith(_INSTALLED) or not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))


def strip_internal_frames(error: BaseException) -> None:
    """Strip internal frames from the traceback of an exception that is about to leave torchdali.

    Call it in an ``except`` block or ``__exit__`` of a function that users call, and let the exception go on: the
    frame of that function stays, as do the user's frames.
    """
    if isinstance(error, StopIteration) or _wants_all():
        return
    if isinstance(error, KeyboardInterrupt):
        self_explanatory(error)
    if error.__traceback__ is not None:
        inner = list(_entries(error.__traceback__.tb_next))
        error.__traceback__.tb_next = _link_traceback(_shown(inner, error))
    if error.__cause__ is not None:
        strip_frames(error.__cause__)


class _Leaving:
    """Strips internal frames from the exceptions that leave its block, see `strip_internal_frames`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            strip_internal_frames(error)


LEAVING = _Leaving()


def strip_frames(error: _E) -> _E:
    """Strip internal frames from a stored exception and its causes; return it."""
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen and not _wants_all():
        seen.add(id(current))
        current.__traceback__ = _link_traceback(_shown(list(_entries(current.__traceback__)), current))
        current = current.__cause__
    return error


def self_explanatory(error: _E) -> _E:
    """Mark an exception whose message says where it happened: none of torchdali's frames is shown."""
    error.__dict__["self_explanatory"] = True
    return error


def _wants_all() -> bool:
    return os.environ.get("TORCHDALI_FULL_TRACEBACK", "0") not in ("", "0")


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _shown(entries: Sequence[TracebackType], error: BaseException) -> list[TracebackType]:
    """Return the entries to keep: not the insides, but for the last of them if nothing else shows the place."""
    kinds = [_kind(entry.tb_frame.f_code.co_filename) for entry in entries]
    inside = [i for i, kind in enumerate(kinds) if kind == "inside"]
    if inside and "self_explanatory" not in error.__dict__ and "shown" not in kinds[inside[-1] :]:
        kinds[inside[-1]] = "shown"
    return [entry for entry, kind in zip(entries, kinds, strict=True) if kind != "inside"]


@functools.lru_cache(maxsize=1024)
def _kind(file: str) -> str:
    """Return "inside" for torchdali, "library" for other packages, otherwise "shown"."""
    if file.startswith((_FUTURES, _PACKAGE)):
        return "inside"
    return "library" if is_installed(file) else "shown"


def place_of(frame: FrameType | None) -> str:
    """Return the innermost line of the user's in which a thread is; empty if it is in none."""
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


def did_you_mean(name: str, names: Iterable[str], most: int = 1) -> str:
    """Return the end of a message about an unknown name: similar ones of `names`; empty without any."""
    near = [] if name.startswith("__") else difflib.get_close_matches(name, names, most)
    return f"; did you mean {', '.join(near)}?" if near else ""


def hint_for_folder(path: str) -> str:
    """Return the end of a message about a folder that is not there: the nearest one that is; empty if it is there."""
    if path.startswith("~"):
        return "; '~' isn't expanded here: use os.path.expanduser"
    parent, name = os.path.split(os.path.abspath(path))
    while not os.path.isdir(parent) and parent != os.path.dirname(parent):
        parent, name = os.path.split(parent)
    near = did_you_mean(name, os.listdir(parent)) if os.access(parent, os.R_OK) else ""
    return "" if os.path.exists(path) else f"; the nearest existing folder is {parent!r}{near}"


# ---------------------------------------------------------------- warnings

_line: ContextVar[tuple[str, int] | None] = ContextVar("torchdali.line", default=None)


@contextlib.contextmanager
def warnings_on(file: str, line: int) -> Iterator[None]:
    """Let `warn` show a line of the user's, for a while, in this thread and in copies of its context."""
    token = _line.set((file, line))
    try:
        yield
    finally:
        _line.reset(token)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn on the user's line: the line of `warnings_on`, otherwise the one that called torchdali."""
    place = _line.get()
    if place is not None:
        warnings.warn_explicit(text, category, *place)
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def warning_place() -> tuple[str, int]:
    """Return the file and line that `warn` would show now, for a warning that another thread may give later."""
    return _line.get() or call_site()[:2]


class Site(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str


def call_site() -> Site:
    """Return the line that called torchdali."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def on_behalf_of(site: Site, function: Callable[[], T]) -> T:
    """Call a function of torchdali for a call of the user's that came before: nodes and warnings name its line."""
    with warnings_on(site.file, site.line):
        return function()


def _is_ours(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    is_generated = frame.f_code.co_filename == "<string>"  # by `dataclass`, in the module of the class
    return (
        frame.f_code.co_filename.startswith(_PACKAGE)
        or (is_generated and module.startswith("torchdali."))
        or module.startswith("torch.utils.data.")  # base classes of `DataLoader` and of its iterators
    )
