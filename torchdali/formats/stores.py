"""Send requests to object stores with fsspec's packages.

For S3, Google Cloud and Azure, obstore is used if it is installed. The packages are configured not to repeat requests,
because the module `retries` repeats requests. Obstore, s3fs and fsspec's HTTP client raise an error if a connection
receives no byte for some seconds. Other asynchronous packages can't detect this, so the total time of their requests is
limited.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from torchdali.formats import urls

__all__ = ["ObjectVersion", "Replaced", "call", "get", "list_names", "open_system"]

_HTTP = "fsspec.implementations.http"
_OBSTORE = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "abfs", "abfss": "abfss"}
_obstore_process = 0


class Replaced(ValueError):
    """An object has changed since it was opened."""


class ObjectVersion(NamedTuple):
    """One version of an object.

    Attributes:
        size: Size in bytes; None if the store doesn't send the size.
        etag: ETag; empty if the store doesn't send one.
        changed: Time of the last change, in the store's own format.
    """

    size: int | None = None
    etag: str = ""
    changed: str = ""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> ObjectVersion:
        """Return the version that a store's metadata describes; the keys of the metadata depend on the package."""
        etag = next((str(metadata[name]) for name in ("ETag", "etag", "e_tag", "md5Hash") if metadata.get(name)), "")
        times = ("LastModified", "Last-Modified", "last_modified", "mtime", "created")
        changed = next((str(metadata[name]) for name in times if metadata.get(name)), "")
        total = str(metadata.get("Content-Range") or metadata.get("ContentRange") or "").rpartition("/")[2]
        size = int(total) if total.isdigit() else metadata.get("size")
        return cls(None if size is None else int(size), etag, changed)

    def check(self, other: ObjectVersion) -> None:
        """Check that another version has the same size, and the same ETag or time.

        A time is only compared if at least one version has no ETag. A value that either version lacks isn't compared.

        Raises:
            Replaced: A value differs.
        """
        compared = ("etag",) if self.etag and other.etag else ("changed",)
        for name in ("size", *compared):
            before, after = getattr(self, name), getattr(other, name)
            if before not in (None, "") and after not in (None, "") and before != after:
                raise Replaced(f"its {name} was {before} and is {after}")

    def identity(self, url: str) -> bytes | None:
        """Return bytes that identify the version; None if the store sends neither an ETag nor a time."""
        tag = self.etag or self.changed
        return f"{url}\0{tag}\0{self.size}".encode("utf-8", "surrogateescape") if tag else None

    @property
    def condition(self) -> str | None:
        """ETag for the header ``If-Match``; None if the store sends no ETag, or a weak ETag.

        A weak ETag may stay the same when the object's bytes change.
        """
        return None if not self.etag or self.etag.startswith("W/") else self.etag


class RequestLimits(NamedTuple):
    """Limits on requests, and settings of the HTTP client.

    Attributes:
        concurrency: Maximum number of simultaneous requests.
        timeout: A request fails if no byte arrives for this number of seconds.
        client: Function that returns further settings of the HTTP client.
    """

    concurrency: int
    timeout: float
    client: Callable[[], dict[str, Any]] = dict


def open_system(url: str, limits: RequestLimits, renewed: bool = False) -> Any:
    """Open the file system of a URL.

    Args:
        renewed: If True, open a new file system, which reads the credentials again. If False, an open file system may
            be reused.
    """
    scheme = _OBSTORE.get(url.partition("://")[0])
    registry, conf = importlib.import_module("fsspec.registry"), importlib.import_module("fsspec.config").conf
    cache_options = {"skip_instance_cache": True} if renewed else {}
    if scheme and not conf.get(scheme) and importlib.util.find_spec("obstore") is not None:
        _check_process()
        store = importlib.import_module("obstore.fsspec").FsspecStore
        return store(scheme, **_obstore_settings(scheme, limits), **cache_options)
    package = registry.get_filesystem_class(url.partition("://")[0]).__module__
    settings: dict[str, Any] = {}
    if package.startswith("s3fs"):
        timeouts = {"read_timeout": limits.timeout, "connect_timeout": limits.timeout, "retries": {"max_attempts": 1}}
        settings = {"config_kwargs": {"max_pool_connections": limits.concurrency, **timeouts}}
    elif package == _HTTP:
        settings = {"client_kwargs": _client_settings(limits)}
    system = importlib.import_module("fsspec.core").url_to_fs(url, **settings, **cache_options)[0]
    if package.startswith("s3fs"):
        system.retries = 1
    return system


def _obstore_settings(scheme: str, limits: RequestLimits) -> dict[str, Any]:
    timeout = timedelta(seconds=limits.timeout)
    options: dict[str, Any] = {"read_timeout": timeout, "connect_timeout": timeout, "timeout": timedelta(minutes=10)}
    endpoint = os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", ""))
    if scheme == "s3" and endpoint.startswith("http://"):
        options["allow_http"] = True
    settings: dict[str, Any] = {"client_options": options, "retry_config": {"max_retries": 0}}
    profile = not {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE", "AWS_WEB_IDENTITY_TOKEN_FILE"} & set(os.environ)
    if scheme == "s3" and profile and importlib.util.find_spec("boto3") is not None:
        with contextlib.suppress(Exception):  # if boto3 has no credentials, obstore uses the machine's credentials
            provider = importlib.import_module("obstore.auth.boto3").Boto3CredentialProvider()
            provider()  # the provider renews expiring credentials and supports profiles
            settings["credential_provider"] = provider
    return settings


def _client_settings(limits: RequestLimits) -> dict[str, Any]:
    """Return the settings of fsspec's HTTP client: the user's settings, and the settings that this module needs."""
    aiohttp = importlib.import_module("aiohttp")
    conf = importlib.import_module("fsspec.config").conf
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.timeout, sock_read=limits.timeout)
    user_settings = {k: v for name in ("http", "https") for k, v in conf.get(name, {}).get("client_kwargs", {}).items()}
    own_settings = limits.client()
    traces = [*user_settings.get("trace_configs", ()), *own_settings.get("trace_configs", ())]
    return {"timeout": timeout, **user_settings, **own_settings, "trace_configs": traces}


def call(system: Any, timeout: float, name: str, *arguments: Any, **keywords: Any) -> Any:
    """Call a method of a file system. Only asynchronous file systems support `timeout`, in seconds."""
    if not system.async_impl:
        return getattr(system, name)(*arguments, **keywords)
    return _run(system, timeout, getattr(system, f"_{name}")(*arguments, **keywords))


def _run(system: Any, timeout: float | None, coroutine: Any) -> Any:
    async def await_result() -> Any:
        return await coroutine

    return importlib.import_module("fsspec.asyn").sync(system.loop, await_result, timeout=timeout)


def get(
    system: Any, path: str, start: int, count: int | None, version: ObjectVersion | None, timeout: float
) -> tuple[Any, ObjectVersion]:
    """Read a range or a whole object with one request.

    Args:
        start: Offset of the range.
        count: Number of bytes; None for the whole object.
        version: The version to read; None for any version.
        timeout: The request fails if no byte arrives for this number of seconds. If an asynchronous package can't
            detect this, the total time is limited instead. File systems that aren't asynchronous have no limit.

    Returns:
        A buffer, and the version that the store sent.
    """
    if hasattr(system, "_construct_store"):
        return _get_by_obstore(system, path, start, count, version)
    condition = None if version is None else version.condition
    if hasattr(system, "_call_s3"):
        return _run(system, None, _get_by_s3fs(system, path, start, count, condition))  # type: ignore[no-any-return]
    if type(system).__module__ == _HTTP:
        headers = dict(system.kwargs.get("headers", {}))
        headers |= {} if count is None else {"Accept-Encoding": "identity"}
        headers |= {} if condition is None else {"If-Match": condition}
        byte_range = {} if count is None else {"start": start, "end": start + count}
        body = call(system, 0, "cat_file", path, headers=headers, **byte_range)
        return body, ObjectVersion.of(body.headers)
    if count is None and system.async_impl:
        return bytes(call(system, 3 * timeout, "cat_file", path)), ObjectVersion()
    end = urls.MAX_BYTES + 1 if count is None else start + count  # one byte more than allowed, to detect larger objects
    # A limit on the total time, because fsspec's other packages don't detect that no bytes arrive.
    total_timeout = 3 * timeout + (count or 0) / 1e6
    return bytes(call(system, total_timeout, "cat_file", path, start=start, end=end)), ObjectVersion()


def _get_by_obstore(
    system: Any, path: str, start: int, count: int | None, version: ObjectVersion | None
) -> tuple[Any, ObjectVersion]:
    """Read with obstore in the calling thread. An event loop would take twice the CPU time."""
    bucket, name = system._split_path(path)
    options: dict[str, Any] = {} if version is None or version.condition is None else {"if_match": version.condition}
    if count is not None:
        options["range"] = (start, start + count)
    response = system._construct_store(bucket).get(name, options=options)
    if count is None and response.meta["size"] > urls.MAX_BYTES:
        raise urls.TooLarge
    return response.bytes(), ObjectVersion.of(response.meta)


def _check_process() -> None:
    """Raise NotImplementedError if this process was forked from a process that has used obstore.

    Obstore's threads don't exist in a forked process, so requests of the forked process would never finish.
    """
    global _obstore_process
    if _obstore_process not in (0, os.getpid()):
        raise NotImplementedError(
            "obstore can't be used in a process that was forked from one that has used it: start worker processes "
            'with multiprocessing_context="spawn", or read in the main process'
        )
    _obstore_process = os.getpid()


async def _get_by_s3fs(
    system: Any, path: str, start: int, count: int | None, condition: str | None
) -> tuple[bytes, ObjectVersion]:
    bucket, key, _ = system.split_path(path)
    options = {} if condition is None else {"IfMatch": condition}
    if count is not None:
        options["Range"] = f"bytes={start}-{start + count - 1}"
    response = await system._call_s3("get_object", Bucket=bucket, Key=key, **options)
    async with response["Body"] as body:
        return await body.read(), ObjectVersion.of(response)


# ---------------------------------------------------------------- listings

Names = tuple[set[str], set[str]]
"""Names of folders, and names of objects."""


def list_names(system: Any, path: str, timeout: float) -> Names:
    """Return the names of a folder's subfolders, and the names of the folder's objects.

    Stores need about one request per thousand names, so listing a store has no time limit. Web servers need a single
    request, which must finish within `timeout` seconds.
    """
    if hasattr(system, "_iterdir"):  # s3fs returns entries page by page
        result: Names = importlib.import_module("fsspec.asyn").sync(system.loop, _stream_names, system, path)
        return result
    is_web_page = type(system).__module__ == _HTTP
    entries = call(system, timeout, "ls", path, detail=True) if is_web_page else system.ls(path, detail=True)
    names: Names = set(), set()
    for entry in entries:
        _add_name(entry, path, names)
    system.invalidate_cache(path)  # to save memory: fsspec caches the whole listing
    return names


async def _stream_names(system: Any, path: str) -> Names:
    bucket, key, _ = system.split_path(path)
    prefix, is_empty = f"{key.rstrip('/')}/" if key else "", True
    names: Names = set(), set()
    try:
        async for entry in system._iterdir(bucket, prefix=prefix):
            is_empty = False
            _add_name(entry, path, names)
    except Exception as error:
        raise importlib.import_module("s3fs.errors").translate_boto_error(error) from None
    if is_empty:
        raise FileNotFoundError(path)
    return names


def _add_name(entry: Any, path: str, names: Names) -> None:
    """Add the name of a folder's entry. Skip the folder itself, which some stores list, too."""
    name = entry["name"].rstrip("/")
    if name != path.rstrip("/"):
        names[0 if entry["type"] == "directory" else 1].add(name.rpartition("/")[2])
