"""Bytes of object stores: ranges of what an URL of fsspec names, many requests at a time.

A request that fails is repeated, after a pause that grows; one that takes too long has failed. What was read can be
kept in a folder that several processes share. Credentials come from where fsspec and its packages look for them
(environment, configuration files), never from arguments; messages show an URL without its user, password and query.
"""

from __future__ import annotations

import importlib
import os
import random
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from torchdali.errors import MissingExtraError
from torchdali.forks import ForkSafeLock
from torchdali.formats import urls
from torchdali.formats.daemon_pool import DaemonPool
from torchdali.formats.disk_cache import DiskCache
from torchdali.threads import is_ending

__all__ = ["FAR", "Pending", "Remote", "RemoteFile", "RemoteOptions", "read_url", "start_ranges", "write_url"]

T = TypeVar("T")
Bytes = npt.NDArray[np.uint8]

_GIVEN_UP_AT_ONCE = (
    FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, NotImplementedError, ImportError,
    ValueError, TypeError,
)  # fmt: skip
_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds, of the first repetition and at most
_OBSTORE_TIMEOUT = 30.0  # seconds, of obstore's own; a shorter one needs the event loop
_BLOCK, _AHEAD, _KEPT = 1 << 20, 16, 32  # bytes, and blocks, of small reads one after the other
_GAP = 64 << 10  # bytes; ranges nearer to each other are one request, up to a size


def _is_refused(error: Exception) -> bool:
    """Tell errors that stay when a request is repeated; of statuses of HTTP, too many requests and slowness pass."""
    status = _status(error)
    if status is not None:
        return 400 <= status < 500 and status not in (408, 425, 429)
    return isinstance(error, _GIVEN_UP_AT_ONCE)


def _status(error: Exception) -> int | None:
    """Return the status of HTTP of an error; fsspec says of each that the file is not found, because of the error."""
    status = getattr(error, "status", getattr(error.__cause__, "status", None))
    return status if isinstance(status, int) and status else None


@dataclass(frozen=True)
class RemoteOptions:
    """The arguments of readers for URLs; see `formats.remote`.

    Args:
        io_concurrency: Of URLs: most requests at a time.
        io_retries: Of URLs: how often a request that failed is repeated.
        io_timeout: Of URLs: seconds after which a request has failed, if the store's package can be interrupted.
        cache_dir: Of URLs: folder where what was read is kept; processes of one user may share it.
        cache_size: Bytes that are kept there at most; what was not used for longest goes first.

    Raises:
        ValueError: a number is too small.
    """

    io_concurrency: int = 64
    io_retries: int = 5
    io_timeout: float = 30.0
    cache_dir: Annotated[str | None, "path"] = None
    cache_size: int = 10 << 30

    def __post_init__(self) -> None:
        if self.io_concurrency < 1 or self.io_retries < 0 or self.cache_size < 1:
            raise ValueError(
                f"io_concurrency={self.io_concurrency}, io_retries={self.io_retries}, cache_size={self.cache_size}: "
                "one is too small"
            )
        if not self.io_timeout > 0:
            raise ValueError(f"io_timeout={self.io_timeout}: it is a number of seconds above 0")


class Pending(NamedTuple):
    """Bytes that are on their way.

    Attributes:
        future: Of a range.
        start: Where they begin in it.
        size: How many.
    """

    future: Future[Bytes]
    start: int
    size: int

    def bytes(self) -> Bytes:
        """Wait for them."""
        return self.future.result()[self.start : self.start + self.size]


class Remote:
    """Connection of one reader with object stores.

    Args:
        options: Requests at a time, repetitions, cache.
    """

    def __init__(self, options: RemoteOptions | None = None) -> None:
        self.options = options or RemoteOptions()
        self._pool = DaemonPool(self.options.io_concurrency, "torchdali-remote")
        self._systems: dict[tuple[int, str], Any] = {}
        self._lock = ForkSafeLock()
        _check_fsspec()
        self._cache: DiskCache | None = None
        if self.options.cache_dir is not None:
            self._cache = DiskCache(self.options.cache_dir, self.options.cache_size)
        self._by_ranges = 0  # bytes of all objects that are read by ranges
        self._coming: dict[tuple[int, str], Future[bytes]] = {}  # of each process

    def open(self, size: int) -> None:
        """Count an object that will be read by ranges."""
        with self._lock:
            self._by_ranges += size

    def start(self, url: str, start: int = 0, count: int | None = None, kind: str = "") -> Pending:
        """Start to read a range, or all of an object.

        Args:
            kind: What tells this version of the object from others, for the cache.
        """
        future = self._pool.submit(self.read, url, start, count, kind)
        return Pending(future, 0, FAR if count is None else count)

    def read(self, url: str, start: int = 0, count: int | None = None, kind: str = "") -> Bytes:
        """Read a range, or all of an object.

        Raises:
            RuntimeError: it cannot be read.
        """
        data: Any
        if self._cache is None:
            data = self._repeated(url, lambda: self._get(url, start, count))
        elif count is None or not kind or self._by_ranges > self.options.cache_size:
            data = self._cached(self._cache, url, start, count, kind, 0, count)
        else:
            data = self._from_blocks(self._cache, url, start, count, kind)
        if isinstance(data, bytes):  # may be somebody else's, too
            return np.frombuffer(bytearray(data), np.uint8)
        return np.asarray(_Owned(data))

    def head(self, url: str, count: int) -> Bytes:
        """Read the first bytes of an object, fewer if it has no more."""

        def get() -> bytes:
            system, path = self._system(url)
            return bytes(self._call(system, "cat_file", path, start=0, end=count))[:count]

        return np.frombuffer(bytearray(self._repeated(url, get)), np.uint8)

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Let a thread call a function, which makes requests."""
        return self._pool.submit(function)

    def _from_blocks(self, cache: DiskCache, url: str, start: int, count: int, kind: str) -> bytes:
        """Read a range of large blocks that are kept: a shuffled epoch asks for each of them once."""
        size, parts = int(kind.rpartition("\n")[2]), []
        for block in range(start // urls.BLOCK * urls.BLOCK, start + count, urls.BLOCK):
            first, last = max(start - block, 0), min(start + count - block, urls.BLOCK)
            length = min(urls.BLOCK, size - block)
            parts.append(self._cached(cache, url, block, length, kind, first, last - first))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _cached(
        self, cache: DiskCache, url: str, start: int, count: int | None, kind: str, first: int,
        part: int | None,
    ) -> bytes:  # fmt: skip
        """Return a part of what the cache has of an object, which is read into it first if it is not there."""
        key = f"{url}\n{kind}\n{start}\n{count}"
        data = cache.get(key, first, part)
        if data is not None and (part is None or len(data) == part):
            return data
        # Hand-over: who puts the future here reads; the others wait for that, which a thread has begun already.
        mine: Future[bytes] = Future()
        future = self._coming.setdefault((os.getpid(), key), mine)
        if future is mine:
            try:
                whole = cache.get(key)  # somebody may have read it since
                if whole is None or (count is not None and len(whole) != count):
                    whole = bytes(self._repeated(url, lambda: self._get(url, start, count)))
                    cache.put(key, whole)
                mine.set_result(whole)
            except BaseException as error:
                mine.set_exception(error)
            finally:
                del self._coming[os.getpid(), key]
        return future.result()[first : None if part is None else first + part]

    def _get(self, url: str, start: int, count: int | None) -> Any:
        """Return a buffer: bytes, or one of obstore's that nobody else has."""
        if count is not None and count > urls.MAX_BYTES:
            raise urls.TooLarge("a record")
        system, path = self._system(url)
        if count == 0:
            return b""
        if hasattr(system, "_construct_store") and self.options.io_timeout >= _OBSTORE_TIMEOUT:
            data: Any = _of_obstore(system, path, start, count)
        elif count is not None:
            data = bytes(self._call(system, "cat_file", path, start=start, end=start + count))
        elif system.async_impl:  # web servers are stopped at the limit; others tell truly how much they send
            data = bytes(self._call(system, "cat_file", path))
        else:
            data = bytes(self._call(system, "cat_file", path, start=0, end=urls.MAX_BYTES + 1))
        if len(data) > urls.MAX_BYTES:
            raise urls.TooLarge
        return data if count is None else _part(data, start, count)

    def _system(self, url: str) -> tuple[Any, str]:
        """Return the file system of an URL, one a server or bucket for all threads, and the path in it."""
        place = _PLACE(url)
        place_name = os.getpid(), url if place is None else place[0]  # no file system can be used in a forked process
        with self._lock:
            if place_name not in self._systems:
                core = importlib.import_module("fsspec.core")
                settings = _settings(url, self.options)
                self._systems[place_name] = core.url_to_fs(url, **settings)[0]
            system = self._systems[place_name]
        return system, system._strip_protocol(url)

    def _call(self, system: Any, name: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of a file system, with a time limit if it is asynchronous."""
        if not system.async_impl:
            return getattr(system, name)(*arguments, **named)
        asyn = importlib.import_module("fsspec.asyn")
        method, limit = getattr(system, f"_{name}"), self.options.io_timeout
        return asyn.sync(system.loop, method, *arguments, timeout=limit, **named)

    def _repeated(self, url: str, request: Callable[[], T]) -> T:
        for attempt in range(self.options.io_retries + 1):
            try:
                return request()
            except Exception as error:
                last = error
                refused = _is_refused(error)
                if refused:
                    break
                if is_ending():
                    break
                if attempt < self.options.io_retries:
                    time.sleep(min(_PAUSE * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.5))
        reason = urls.shown_in_text(f"{type(last).__name__}: {last}")
        if urls.has_secret(url):  # a message may have any part of it
            reason = type(last).__name__
        if isinstance(last, urls.TooLarge):
            reason = str(last)
        if _status(last) not in (None, 404):
            reason = f"the server answers with status {_status(last)}"
        tried = "" if refused else f", after {attempt + 1} attempts"
        raise RuntimeError(f"cannot read {urls.shown(url)}{tried}: {reason}") from None

    def info(self, url: str) -> dict[str, Any]:
        """Return what the store knows of an object: its size, and as a rule a mark of its version.

        Raises:
            RuntimeError: there is no such object.
        """
        system, path = self._repeated(url, lambda: self._system(url))
        facts: dict[str, Any] = self._repeated(url, lambda: self._call(system, "info", path))
        return facts

    def contents(self, url: str) -> tuple[list[str], list[str]]:
        """List the folders and the objects of a folder, each in the order of their names' bytes.

        Raises:
            RuntimeError: it cannot be listed.
        """
        system, path = self._repeated(url, lambda: self._system(url))
        folders, objects = self._repeated(url, lambda: self._names(system, path))
        return sorted(folders, key=_encoded), sorted(objects, key=_encoded)

    def _names(self, system: Any, path: str) -> Names:
        """List a folder; stores, but for web servers, take a request for every thousand names or so, and as long."""
        if hasattr(system, "_iterdir"):  # s3fs gives entries page by page
            streamed: Names = importlib.import_module("fsspec.asyn").sync(system.loop, _streamed, system, path)
            return streamed
        is_a_page = type(system).__module__ == _HTTP
        entries = self._call(system, "ls", path, detail=True) if is_a_page else system.ls(path, detail=True)
        names: Names = set(), set()
        for entry in entries:
            _add(entry, path, names)
        system.invalidate_cache(path)  # of a million names one copy is enough
        return names

    def map(self, function: Callable[[str], T], objects: Iterable[str]) -> list[T]:
        """Call a function, which makes requests, on several URLs at a time."""
        return self._pool.map(function, objects)

    def write(self, url: str, content: bytes) -> None:
        """Write an object."""
        system, path = self._repeated(url, lambda: self._system(url))
        self._repeated(url, lambda: self._call(system, "pipe_file", path, content))


class _Owned:
    """Memory of a buffer that nobody else has, for an array that may be written to."""

    def __init__(self, buffer: Any) -> None:
        self._buffer, view = buffer, np.frombuffer(buffer, np.uint8)
        self.__array_interface__ = view.__array_interface__ | {"data": (view.ctypes.data, False)}


def _part(data: Any, start: int, count: int) -> Any:
    if len(data) > count:  # a server that does not know ranges
        data = bytes(data)[start : start + count]
    if len(data) != count:
        raise OSError(f"{len(data)} bytes arrived of {count} at {start}")
    return data


def _of_obstore(system: Any, path: str, start: int, count: int | None) -> Any:
    """Read a range, or all of an object, in this thread: by way of an event loop it takes twice the CPU time."""
    bucket, name = system._split_path(path)
    store = system._construct_store(bucket)
    if count is None:
        answer = store.get(name)
        if answer.meta["size"] > urls.MAX_BYTES:
            raise urls.TooLarge
        return answer.bytes()
    return store.get_range(name, start=start, length=count)


FAR = 1 << 62
"""More bytes than there are."""


_HTTP = "fsspec.implementations.http"
_PLACE = re.compile(r"[^:]+://[^/]*/").match


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


Names = tuple[set[str], set[str]]
"""Of folders, and of objects."""


async def _streamed(system: Any, path: str) -> Names:
    bucket, key, _ = system.split_path(path)
    prefix, empty = f"{key.rstrip('/')}/" if key else "", True
    names: Names = set(), set()
    try:
        async for entry in system._iterdir(bucket, prefix=prefix):
            empty = False
            _add(entry, path, names)
    except Exception as error:
        raise importlib.import_module("s3fs.errors").translate_boto_error(error) from None
    if empty:
        raise FileNotFoundError(path)
    return names


def _add(entry: Any, path: str, names: Names) -> None:
    """Add the name of an entry of a folder; some stores list the folder itself, too."""
    name = entry["name"].rstrip("/")
    if name != path.rstrip("/"):
        names[0 if entry["type"] == "directory" else 1].add(name.rpartition("/")[2])


def _check_fsspec() -> None:
    try:
        importlib.import_module("fsspec")
    except ImportError:
        raise MissingExtraError("fsspec", "remote", "reading from URLs") from None


def _settings(url: str, options: RemoteOptions) -> dict[str, Any]:
    """Return what a store's package must know to keep to the options."""
    registry = importlib.import_module("fsspec.registry")
    package = registry.get_filesystem_class(url.partition("://")[0]).__module__
    if package.startswith("s3fs"):
        return {"config_kwargs": {"max_pool_connections": options.io_concurrency}}
    if package.startswith("obstore"):  # by itself it repeats a request ten times
        return {"retry_config": {"max_retries": 0}}
    if package == _HTTP:
        return {"client_kwargs": {**_configured("http"), **_configured("https"), "response_class": _bounded_response()}}
    return {}


def _configured(protocol: str) -> dict[str, Any]:
    """Return what the user's configuration of fsspec gives to the client of a protocol."""
    arguments: dict[str, Any] = importlib.import_module("fsspec.config").conf.get(protocol, {}).get("client_kwargs", {})
    return arguments


def _bounded_response() -> type:
    from torchdali.formats.bounded_http import BoundedResponse

    return BoundedResponse


_MARKS = ("ETag", "etag", "md5Hash", "LastModified", "mtime", "last_modified", "created")


class RemoteFile:
    """An object that is read by ranges.

    Args:
        remote: What reads.
        url: Of the object.
    """

    identity = None  # nothing tells, at once, when it changes

    def __init__(self, remote: Remote, url: str) -> None:
        self._remote, self._url, self.path = remote, url, urls.shown(url)
        info = remote.info(url)
        size = info.get("size")
        if size is None:
            raise RuntimeError(f"cannot read {self.path} by ranges: the store does not tell its size")
        self.size = int(size)
        remote.open(self.size)
        self._kind = "\n".join(str(info[mark]) for mark in _MARKS if info.get(mark)) + f"\n{size}"
        self._blocks: OrderedDict[int, Pending] = OrderedDict()
        self._process = os.getpid()
        self._lock = ForkSafeLock()

    def read(self, offset: int, count: int) -> Bytes:
        """Return a range; of a small one the blocks around it are kept, and those that follow are read ahead."""
        self._check(offset, count)
        if count > _BLOCK:
            return self._remote.read(self._url, offset, count, self._kind)
        first, last = offset // _BLOCK, max(offset, offset + count - 1) // _BLOCK
        parts = [self._block(number).bytes() for number in range(first, last + 1)]
        whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return whole[offset - first * _BLOCK :][:count]

    def _check(self, offset: int, count: int) -> None:
        if offset < 0 or count < 0 or offset + count > self.size:
            raise RuntimeError(f"cannot read {count} bytes at offset {offset} of {self.path}: it has {self.size} bytes")

    def _block(self, number: int) -> Pending:
        with self._lock:
            if self._process != os.getpid():  # in a forked process nobody reads what its parent began
                self._blocks.clear()
                self._process = os.getpid()
            in_order = number == 0 or number - 1 in self._blocks
            last = (self.size - 1) // _BLOCK if in_order else number
            for each in range(number, min(last, number + _AHEAD) + 1):
                if each not in self._blocks:
                    start = each * _BLOCK
                    count = max(0, min(_BLOCK, self.size - start))
                    self._blocks[each] = self.start(start, count)
            self._blocks.move_to_end(number)
            while len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
            return self._blocks[number]

    def start(self, offset: int, count: int) -> Pending:
        """Start to read a range."""
        self._check(offset, count)
        return self._remote.start(self._url, offset, count, self._kind)


def start_ranges(files: Sequence[Any], ranges: Sequence[tuple[int, int, int]]) -> list[Pending]:
    """Start to read ranges of several files; those that lie close together are one request.

    Args:
        files: `RemoteFile`s, or others with `read`.
        ranges: File, offset and number of bytes of each.
    """
    parts: list[Pending | None] = [None] * len(ranges)
    group: list[int] = []
    begin = end = file = -1
    for place in sorted(range(len(ranges)), key=ranges.__getitem__):
        at, offset, count = ranges[place]
        stop = offset + count
        if at != file or offset > end + _GAP or max(stop, end) - begin > urls.BLOCK:
            _start_group(files, ranges, group, begin, end, parts)
            group, file, begin, end = [], at, offset, offset
        group.append(place)
        end = max(end, stop)
    _start_group(files, ranges, group, begin, end, parts)
    return [pending for pending in parts if pending is not None]


def _start_group(
    files: Sequence[Any], ranges: Sequence[tuple[int, int, int]], group: Sequence[int], begin: int, end: int,
    parts: list[Pending | None],
) -> None:  # fmt: skip
    if not group:
        return
    future = _future(files[ranges[group[0]][0]], begin, end - begin)
    for place in group:
        _, offset, count = ranges[place]
        parts[place] = Pending(future, offset - begin, count)


def _future(file: Any, offset: int, count: int) -> Future[Bytes]:
    future: Future[Bytes] = Future()
    try:
        if isinstance(file, RemoteFile):
            return file.start(offset, count).future
        future.set_result(file.read(offset, count))
    except RuntimeError as error:  # of the records that want it
        future.set_exception(error)
    return future


def read_url(url: str) -> bytes:
    """Read a small object, such as an index."""
    return Remote(RemoteOptions(io_concurrency=1)).read(url).tobytes()


def write_url(url: str, content: bytes) -> None:
    """Write a small object."""
    Remote(RemoteOptions(io_concurrency=1)).write(url, content)
