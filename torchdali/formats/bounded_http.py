"""Limit the responses of web servers to `urls.MAX_BYTES`.

A server may send more bytes than it declares, so the received bytes are counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from types import SimpleNamespace

import aiohttp
from yarl import URL

from torchdali.formats import urls

__all__ = ["BoundedResponse", "refuse_other_hosts"]


_DEFAULT_TIMEOUT = 10.0  # seconds; used if the session has no read timeout
_MIN_BYTES_PER_SECOND = 10_000  # the average over each read timeout must not be lower


class Body(bytes):
    """Content of a response, with the response's headers as an attribute."""

    headers: Mapping[str, str]


class BoundedResponse(aiohttp.ClientResponse):
    """A response that counts the bytes of its decompressed content while they arrive."""

    async def read(self) -> bytes:
        """Return the content.

        Raises:
            TooLarge: The content has more than `urls.MAX_BYTES` bytes.
            TimeoutError: The content arrives too slowly.
        """
        if self._body is None:
            try:
                self._body = await self._read_content()
            except BaseException:
                self.close()
                raise
        return await super().read()

    async def _read_content(self) -> bytes:
        timeout = (self._session.timeout.sock_read if self._session else None) or _DEFAULT_TIMEOUT
        chunks, size, checked_at, checked_size = [], 0, time.monotonic(), 0
        async for chunk in self.content.iter_any():
            size += len(chunk)
            if time.monotonic() > checked_at + timeout:
                if size - checked_size < _MIN_BYTES_PER_SECOND * timeout:
                    raise TimeoutError(f"only {size - checked_size} bytes arrived in {timeout:.0f} s")
                checked_at, checked_size = time.monotonic(), size
            if size > urls.MAX_BYTES:
                is_whole_file = self.status == 200 and "Range" in self.request_info.headers
                raise urls.TooLarge(
                    "the whole file, which the server sent instead of the requested range,"
                    if is_whole_file
                    else "the response"
                )
            chunks.append(chunk)
        body = Body(b"".join(chunks))
        body.headers = self.headers
        return body


def refuse_other_hosts() -> aiohttp.TraceConfig:
    """Return a trace configuration that stops redirections to other servers.

    Redirections to the servers in the environment variable TORCHDALI_REDIRECT_HOSTS are allowed.
    """
    config = aiohttp.TraceConfig()
    config.on_request_redirect.append(_check_redirect)
    return config


async def _check_redirect(
    _session: aiohttp.ClientSession, _context: SimpleNamespace, redirect: aiohttp.TraceRequestRedirectParams
) -> None:
    headers = redirect.response.headers
    target = redirect.response.url.join(URL(headers.get("Location") or headers.get("URI") or ""))
    allowed = os.environ.get("TORCHDALI_REDIRECT_HOSTS", "").split(",")
    is_upgrade = (redirect.url.scheme, target.scheme) == ("http", "https") and target.is_default_port()
    is_same_host = target.host == redirect.url.host and (target.port == redirect.url.port or is_upgrade)
    if not is_same_host and target.host not in allowed and "*" not in allowed:
        raise PermissionError(
            f"the server must not redirect to another host, got {target.host}:{target.port}. "
            f"If you trust this host, read its URL, or set TORCHDALI_REDIRECT_HOSTS={target.host} in the environment"
        )
