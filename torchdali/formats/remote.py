"""Read byte ranges of objects at fsspec URLs, with many simultaneous requests.

A failed request is repeated after a growing pause; a request that takes too long counts as failed. Data can be cached
in a folder that several processes share. Credentials come only from the sources that fsspec and its packages search
(environment, configuration files), never from arguments. Messages show a URL without its user, password and query.
"""

from __future__ import annotations

import importlib
import itertools
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from torchdali.errors import MissingExtraError, StoreError
from torchdali.forks import ForkSafeLock
from torchdali.formats import stores, urls
from torchdali.formats.daemon_pool import DaemonPool
from torchdali.formats.disk_cache import DiskCache
from torchdali.formats.retries import Hedge, RequestFailed, find_status, repeat
from torchdali.formats.sizes import ByteSize, SizeOrNone
from torchdali.formats.stores import Names, ObjectVersion, Replaced, RequestLimits

__all__ = [
    "UNBOUNDED",
    "NoSuchObject",
    "PendingBytes",
    "Remote",
    "RemoteFile",
    "RemoteOptions",
    "check_range",
    "read_url",
]

T = TypeVar("T")
Bytes = npt.NDArray[np.uint8]

_DEFAULT_IO_AHEAD = SizeOrNone(256_000_000)  # default of `RemoteOptions.io_ahead`
_PRICE = 0.4  # dollars per million GET requests: Amazon's list price for S3 Standard
# HTTP statuses after which the response to a HEAD request doesn't explain the error.
_UNEXPLAINED_STATUSES = (400, 403)
LONGEST_PAUSE = 4.0  # seconds between two attempts
# For small sequential reads: bytes per block, blocks per request, and files read at the same time.
READ_BLOCK, _BLOCKS_PER_REQUEST, _CONCURRENT_FILES = 1 << 20, 4, 8


class NoSuchObject(RuntimeError):
    """The store has no object of the requested name."""


@dataclass(frozen=True)
class RemoteOptions:
    """The arguments of readers for URLs; see `formats.remote`.

    Args:
        io_concurrency: For URLs: maximum number of simultaneous requests.
        io_deadline: For URLs: number of seconds after which a failed request raises an error and isn't repeated.
        io_retries: For URLs: maximum number of repetitions of a request; None for any number within the deadline.
        io_timeout: For URLs: a request fails if no byte arrives for this many seconds.
        io_hedge: For URLs: send a request a second time if the response takes three times as long as usual, and use
            the first response.
        io_ahead: For URLs: number of bytes to request ahead, like ``"256MB"``, in addition to the batches in the
            pipeline's queue. With 0, only the batches in the queue are requested.
        shuffle_window: For containers, with ``random_shuffle``: number of bytes whose records are shuffled together,
            like ``"256MB"``. Ranges of 4 MB are read in random order, with one request per range. The records of as
            many ranges as fit into this number of bytes are shuffled together. None shuffles single records, with one
            request per record.
        cache_dir: For URLs: folder for cached data; several processes of a user may share the folder.
        cache_size: Maximum size of the cache in bytes. A full cache removes data that wasn't used since the reader was
            created. If the cache is still full, no more data is cached.

    Raises:
        ValueError: An option is too small.
    """

    io_concurrency: int = 64
    io_deadline: float = 300.0
    io_retries: int | None = None
    io_timeout: float = 10.0
    io_hedge: bool = False
    io_ahead: SizeOrNone = _DEFAULT_IO_AHEAD
    shuffle_window: ByteSize | None = None
    cache_dir: Annotated[str | None, "path"] = None
    cache_size: int = 10 << 30

    def __post_init__(self) -> None:
        object.__setattr__(self, "io_ahead", SizeOrNone.from_argument(self.io_ahead))
        if self.shuffle_window is not None:
            object.__setattr__(self, "shuffle_window", ByteSize.from_argument(self.shuffle_window))
        minimums = {"io_concurrency": 1, "io_retries": 0, "cache_size": 1, "io_deadline": 0}
        for name, minimum in minimums.items():
            if (value := getattr(self, name)) is not None and value < minimum:
                raise ValueError(f"{name} must be at least {minimum}, got {value}")
        if not self.io_timeout > 0:
            raise ValueError(f"io_timeout must be above 0 seconds, got {self.io_timeout}")

    @property
    def limits(self) -> RequestLimits:
        """The limits on requests, for the packages that access the stores."""
        return RequestLimits(self.io_concurrency, self.io_timeout, _http_settings)


def _http_settings() -> dict[str, Any]:
    from torchdali.formats.bounded_http import BoundedResponse, refuse_other_hosts

    return {"response_class": BoundedResponse, "trace_configs": [refuse_other_hosts()]}


class PendingBytes(NamedTuple):
    """Bytes that were requested, and may not have arrived yet.

    Attributes:
        future: Future of a range that contains the bytes.
        start: Offset of the bytes in the range.
        size: Number of bytes.
    """

    future: Future[Bytes]
    start: int
    size: int

    def bytes(self) -> Bytes:
        """Wait for the bytes and return them."""
        return self.future.result()[self.start : self.start + self.size]


class Remote:
    """A reader's connections to object stores.

    Args:
        options: Limits of requests, repetitions, and the cache.
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
        self._hedge = Hedge(self.options.io_concurrency) if self.options.io_hedge else None
        # Total size and number of the objects that were read. They start with a guess.
        self._total_size, self._object_count = 1 << 17, 1
        self._requests, self._received, self._repeated = 0, 0, 0
        self._expected_versions: dict[str, ObjectVersion] = {}
        self._renewed_servers: set[tuple[int, str]] = set()
        self._pending: dict[tuple[int, str], Future[bytes]] = {}  # keys: process id and cache key

    @property
    def mean_size(self) -> float:
        """Mean size of the objects that were read so far, in bytes."""
        return self._total_size / self._object_count

    @property
    def is_busy(self) -> bool:
        """True if the number of waiting requests exceeds the number of threads."""
        return self._pool.queued_count > self.options.io_concurrency

    def start(
        self, url: str, start: int = 0, count: int | None = None, version: ObjectVersion | None = None,
        exact: bool = False,
    ) -> PendingBytes:  # fmt: skip
        """Start to read a range or a whole object; see `read` for the arguments."""
        future = self._pool.submit(self.read, url, start, count, version, exact)
        return PendingBytes(future, 0, UNBOUNDED if count is None else count)

    def read(
        self, url: str, start: int = 0, count: int | None = None, version: ObjectVersion | None = None,
        exact: bool = False,
    ) -> Bytes:  # fmt: skip
        """Read a range or a whole object.

        Args:
            url: URL of the object.
            start: Offset of the range.
            count: Number of bytes; None for all bytes from `start` on.
            version: Expected version of the object; a different version is an error.
            exact: If True, cache exactly this range. If False, read and cache all large blocks that contain bytes of
                the range.

        Raises:
            NoSuchObject: The object does not exist.
            StoreError: The store fails, or the object was replaced.
            RuntimeError: The object cannot be read.
        """
        data: Any
        version = version or self._expected_versions.get(url)
        if self._cache is None:
            data = self._fetch(url, start, count, version)
        elif exact or count is None or version is None:
            data = self._read_cached(self._cache, url, start, count, version, 0, count)
        else:
            data = self._read_blocks(self._cache, url, start, count, version)
        if isinstance(data, bytes):  # copy the bytes, because other threads may use the same object
            return np.frombuffer(bytearray(data), np.uint8)
        return np.asarray(_WritableView(data))

    def head(self, url: str, count: int) -> tuple[Bytes, ObjectVersion]:
        """Return the first `count` bytes of an object, and the object's version.

        If the object has fewer than `count` bytes, return all of its bytes.
        """

        def get() -> tuple[bytes, ObjectVersion]:
            system, path = self._system(url)
            data, version = stores.get(system, path, 0, count, None, self.options.io_timeout)
            self._expected_versions.get(url, ObjectVersion()).check(version)
            return bytes(data)[:count], version

        data, version = self._repeat(url, get)
        return np.frombuffer(bytearray(data), np.uint8), version

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Run a function that sends requests, in a thread of the pool."""
        return self._pool.submit(function)

    def _read_blocks(self, cache: DiskCache, url: str, start: int, count: int, version: ObjectVersion) -> bytes:
        """Read a range from large cached blocks, so that a shuffled epoch requests each block once."""
        parts = []
        for block in range(start // urls.BLOCK * urls.BLOCK, start + count, urls.BLOCK):
            first, last = max(start - block, 0), min(start + count - block, urls.BLOCK)
            length = min(urls.BLOCK, (version.size or 0) - block)
            parts.append(self._read_cached(cache, url, block, length, version, first, last - first))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_cached(
        self, cache: DiskCache, url: str, start: int, count: int | None, version: ObjectVersion | None, part_start: int,
        part_size: int | None,
    ) -> bytes:  # fmt: skip
        """Return bytes of an object from the cache.

        The cache stores whole ranges of an object. If the cache doesn't have the range of `count` bytes from `start`
        on, the range is read from the store and cached first.

        Args:
            part_start: Offset of the returned bytes in the range.
            part_size: Number of returned bytes; None for all bytes of the range from `part_start` on.
        """
        version_key = "" if version is None else f"{version.etag or version.changed}\n{version.size}"
        key = f"{url}\n{version_key}\n{start}\n{count}"
        data = cache.get(key, part_start, part_size)
        if data is not None and (part_size is None or len(data) == part_size):
            return data
        if cache.is_full:
            return bytes(self._fetch(url, start + part_start, part_size, version))
        # The first thread stores its future in `_pending` and reads the data. Other threads wait for this future.
        own_future: Future[bytes] = Future()
        future = self._pending.setdefault((os.getpid(), key), own_future)
        if future is own_future:
            try:
                with cache.downloading(key):
                    content = cache.get(key)  # another process may have cached the data meanwhile
                    if content is None or (count is not None and len(content) != count):
                        content = bytes(self._fetch(url, start, count, version))
                        cache.put(key, content)
                own_future.set_result(content)
            except BaseException as error:
                own_future.set_exception(error)
            finally:
                del self._pending[os.getpid(), key]
        return future.result()[part_start : None if part_size is None else part_start + part_size]

    def _fetch(self, url: str, start: int, count: int | None, version: ObjectVersion | None) -> Any:
        """Read a range or object from the store.

        The result is a `bytes` object, or a buffer from obstore. No other object refers to the buffer.
        """

        def get() -> Any:
            if count is not None and count > urls.MAX_BYTES:
                raise urls.TooLarge("a record")
            system, path = self._system(url)
            if count == 0:
                return b""
            data, found = stores.get(system, path, start, count, version, self.options.io_timeout)
            if version is not None:
                version.check(found)
            if len(data) > urls.MAX_BYTES:
                raise urls.TooLarge
            return data if count is None else _extract_range(data, start, count)

        hedge = self._hedge
        data = self._repeat(url, get if hedge is None else lambda: hedge.send(get), version)
        self._total_size, self._object_count = self._total_size + len(data), self._object_count + 1
        self._received += len(data)
        return data

    def _system(self, url: str) -> tuple[Any, str]:
        """Return the file system of a URL, and the object's path in that file system.

        All threads share one file system per server or bucket.
        """
        server = self._server_key(url)
        with self._lock:
            if server not in self._systems:
                self._systems[server] = stores.open_system(url, self.options.limits, server in self._renewed_servers)
            system = self._systems[server]
        return system, system._strip_protocol(url)

    def _server_key(self, url: str) -> tuple[int, str]:
        match = _match_server(url)
        return os.getpid(), url if match is None else match[0]  # a forked process cannot use its parent's file system

    def _renew(self, url: str) -> None:
        """Discard the file system of a URL. The next request opens a new file system with the current credentials."""
        with self._lock:
            server = self._server_key(url)
            self._renewed_servers.add(server)
            self._systems.pop(server, None)

    def _repeat(self, url: str, request: Callable[[], T], version: ObjectVersion | None = None) -> T:
        options, attempts = self.options, itertools.count()

        def send() -> T:
            with self._lock:
                self._requests += 1
                self._repeated += next(attempts) > 0
            return request()

        try:
            return repeat(send, options.io_deadline, options.io_retries, LONGEST_PAUSE, lambda: self._renew(url))
        except RequestFailed as failure:
            raise _request_error(url, failure, version is not None) from None

    def info(self, url: str) -> ObjectVersion:
        """Return the version of an object.

        Raises:
            RuntimeError: The object does not exist.
        """

        def request_version() -> ObjectVersion:
            system, path = self._system(url)
            try:
                return ObjectVersion.of(stores.call(system, self.options.io_timeout, "info", path))
            except Exception as error:
                if find_status(error) not in _UNEXPLAINED_STATUSES:
                    raise
            return stores.get(system, path, 0, 1, None, self.options.io_timeout)[1]

        return self._repeat(url, request_version)

    def identity(self, url: str) -> bytes | None:
        """Return the identity of an object's current version.

        Later, `read` raises an error if the object has another version. The identity is None if the object does not
        exist, or if the store sends neither an ETag nor a time.
        """
        if url not in self._expected_versions:
            try:
                self._expected_versions[url] = self.info(url)
            except NoSuchObject:
                return None
        return self._expected_versions[url].identity(url)

    def summary(self, samples: int) -> str:
        """Return a line of text with the number of requests and bytes, and their price.

        Args:
            samples: Number of delivered samples.
        """
        requests_per_sample = self._requests / max(1, samples)
        return (
            f"stores: {self._requests:,} requests, {self._repeated:,} of them again, "
            f"{self._received / 2**20:,.1f} MiB; a million samples cost {requests_per_sample * _PRICE:,.2f} dollars "
            f"at {_PRICE} dollars for a million requests"
        )

    def list_folder(self, url: str) -> tuple[list[str], list[str]]:
        """Return the names of a folder's subfolders, and the names of the folder's objects.

        Both lists are sorted by the names' bytes.

        Raises:
            RuntimeError: The folder cannot be listed.
        """

        def request_names() -> Names:
            return stores.list_names(*self._system(url), self.options.io_timeout)

        folders, objects = self._repeat(url, request_names)
        return sorted(folders, key=_encode_url), sorted(objects, key=_encode_url)

    def map(self, function: Callable[[str], T], objects: Iterable[str]) -> list[T]:
        """Call a function for each URL in the threads of the pool, and return the results."""
        return [future.result() for future in [self._pool.submit(function, each) for each in objects]]

    def write(self, url: str, content: bytes) -> None:
        """Write an object."""
        self._send(url, "pipe_file", lambda path: (path, content))

    def upload(self, url: str, file: str) -> None:
        """Upload a file as an object."""
        self._send(url, "put_file", lambda path: (file, path))

    def remove(self, url: str) -> None:
        """Remove an object."""
        self._send(url, "rm_file", lambda path: (path,))

    def _send(self, url: str, name: str, arguments: Callable[[str], tuple[Any, ...]]) -> None:
        def send() -> None:
            system, path = self._system(url)
            stores.call(system, 0, name, *arguments(path))

        self._repeat(url, send)


def _request_error(url: str, failure: RequestFailed, is_open: bool) -> RuntimeError:
    """Return the error for a failed request.

    If the object is missing or too large, and `is_open` is False, the error isn't a `StoreError`, so that a reader may
    skip the sample. All other errors are of the type `StoreError`.
    """
    error, status = failure.reason, failure.status
    text = str(error).partition("\n")[0]
    reason = urls.redact_text(f"{type(error).__name__}: {text}")
    if "kind: Timeout" in str(error):
        reason = "Timeout"
    if urls.has_secret(url):  # the message may contain any part of the URL
        reason = type(error).__name__
    if isinstance(error, urls.TooLarge):
        reason = str(error)
    elif isinstance(error.__cause__, PermissionError):
        reason = str(error.__cause__)
    if status not in (None, 404):
        reason = f"the server's response has status {status}"
    tried = f", after {failure.attempts} attempts" if failure.attempts else ""
    error_type: type[RuntimeError] = StoreError
    if isinstance(error, Replaced) or (is_open and status in (412, 416)) or type(error).__name__ == "PreconditionError":
        detail = f": {error}" if isinstance(error, Replaced) else ""
        return StoreError(f"{urls.redact(url)} was replaced while torchdali read it{detail}. Open the pipeline again")
    if not is_open and isinstance(error, FileNotFoundError) and status in (None, 404):
        error_type = NoSuchObject
    elif not is_open and (isinstance(error, urls.TooLarge) or status == 410):
        error_type = RuntimeError
    return error_type(f"cannot read {urls.redact(url)}{tried}: {reason}")


class _WritableView:
    """Lets NumPy view a buffer as writable memory; no other object may refer to the buffer."""

    def __init__(self, buffer: Any) -> None:
        self._buffer, view = buffer, np.frombuffer(buffer, np.uint8)
        self.__array_interface__ = view.__array_interface__ | {"data": (view.ctypes.data, False)}


def _extract_range(data: Any, start: int, count: int) -> Any:
    if len(data) > count:  # the server does not support ranges
        data = bytes(data)[start : start + count]
    if len(data) != count:
        raise OSError(f"only {len(data)} of {count} bytes arrived from offset {start}")
    return data


UNBOUNDED = 1 << 62
"""A number of bytes that is larger than any object."""


_match_server = re.compile(r"[^:]+://[^/]*/").match


def _encode_url(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _check_fsspec() -> None:
    try:
        importlib.import_module("fsspec")
    except ImportError:
        raise MissingExtraError("fsspec", "remote", "reading from URLs") from None


class RemoteFile:
    """An object in a store whose bytes are read by ranges.

    Args:
        remote: Connection that reads the object.
        url: URL of the object.
        version: Version to read; None requests the current version from the store.
    """

    def __init__(self, remote: Remote, url: str, version: ObjectVersion | None = None) -> None:
        self.remote, self._url, self.path = remote, url, urls.redact(url)
        self.version = version or remote.info(url)
        if self.version.size is None:
            raise RuntimeError(f"cannot read {self.path} by ranges: the store does not report its size")
        self.size = self.version.size
        self._blocks: OrderedDict[int, PendingBytes] = OrderedDict()
        self._blocks_ahead = max(_BLOCKS_PER_REQUEST, remote.options.io_ahead // _CONCURRENT_FILES // READ_BLOCK)
        self._latest_block = -1
        self._process = os.getpid()
        self._lock = ForkSafeLock()

    @property
    def identity(self) -> bytes | None:
        """Identity of the version; None if the store sends neither an ETag nor a time."""
        return self.version.identity(self._url)

    def read(self, offset: int, count: int) -> Bytes:
        """Return a range of bytes.

        For a small range, read and store all blocks that contain bytes of the range, and request the following blocks
        if blocks are read in order.
        """
        check_range(self, offset, count)
        first, last = offset // READ_BLOCK, max(offset, offset + count - 1) // READ_BLOCK
        if count > READ_BLOCK * (self._blocks_ahead if first in self._blocks else 1):
            return self.remote.read(self._url, offset, count, self.version)
        parts = [self._get_block(number).bytes() for number in range(first, last + 1)]
        parts[-1] = parts[-1][: offset + count - last * READ_BLOCK]
        parts[0] = parts[0][offset - first * READ_BLOCK :]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _get_block(self, number: int) -> PendingBytes:
        with self._lock:
            if self._process != os.getpid():  # a forked process doesn't continue its parent's reads
                self._blocks.clear()
                self._process = os.getpid()
            if number not in self._blocks or number != self._latest_block:
                self._request_blocks(number)
                self._latest_block = number
            return self._blocks[number]

    def _request_blocks(self, number: int) -> None:
        """Request a block. If blocks are read in order, also request the following blocks, several per request."""
        bounds, end = [number, number + 1], max(1, -(-self.size // READ_BLOCK))
        if number == 0 or number - 1 in self._blocks:
            bounds += range(
                (number // _BLOCKS_PER_REQUEST + 1) * _BLOCKS_PER_REQUEST,
                number + self._blocks_ahead + _BLOCKS_PER_REQUEST,
                _BLOCKS_PER_REQUEST,
            )
        for first, last in itertools.pairwise(bounds):
            missing = [each for each in range(first, min(last, end)) if each not in self._blocks]
            if missing:
                start, stop = missing[0] * READ_BLOCK, min((missing[-1] + 1) * READ_BLOCK, self.size)
                future = self.start(start, stop - start).future
                self._blocks |= {each: PendingBytes(future, each * READ_BLOCK - start, READ_BLOCK) for each in missing}
        # Drop the oldest blocks. If blocks are read in order, only newer blocks are needed from now on.
        while len(self._blocks) > self._blocks_ahead + 3 * _BLOCKS_PER_REQUEST:
            self._blocks.popitem(last=False)

    def start(self, offset: int, count: int, exact: bool = False) -> PendingBytes:
        """Start to read a range; see `Remote.read`."""
        check_range(self, offset, count)
        return self.remote.start(self._url, offset, count, self.version, exact)


def check_range(file: Any, offset: int, count: int) -> None:
    """Raise RuntimeError if a range isn't inside a file."""
    if offset < 0 or count < 0 or offset + count > file.size:
        raise RuntimeError(f"cannot read {count} bytes at offset {offset} of {file.path}: it has {file.size} bytes")


def read_url(url: str, remote: Remote | None = None) -> bytes:
    """Read a small object, for example an index."""
    return bytes((remote or Remote(RemoteOptions(io_concurrency=1)))._fetch(url, 0, None, None))
