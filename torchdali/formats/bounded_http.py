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


_QUIET = 10.0  # seconds; used if the session has no read timeout
_SLOWEST = 10_000  # the average over each read timeout must not be lower


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
                self._body = await self._content()
            except BaseException:
                self.close()
                raise
        return await super().read()

    async def _content(self) -> bytes:
        quiet = (self._session.timeout.sock_read if self._session else None) or _QUIET
        parts, size, begin, since = [], 0, time.monotonic(), 0
        async for part in self.content.iter_any():
            size += len(part)
            if time.monotonic() > begin + quiet:
                if size - since < _SLOWEST * quiet:
                    raise TimeoutError(f"only {size - since} bytes arrived in {quiet:.0f} s")
                begin, since = time.monotonic(), size
            if size > urls.MAX_BYTES:
                whole = self.status == 200 and "Range" in self.request_info.headers
                raise urls.TooLarge(
                    "the whole file, which the server sent instead of the requested range," if whole else "the response"
                )
            parts.append(part)
        body = Body(b"".join(parts))
        body.headers = self.headers
        return body


def refuse_other_hosts() -> aiohttp.TraceConfig:
    """Return a trace configuration that stops redirections to other servers.

    Redirections to the servers in the environment variable TORCHDALI_REDIRECT_HOSTS are allowed.
    """
    traces = aiohttp.TraceConfig()
    traces.on_request_redirect.append(_check_redirect)
    return traces


async def _check_redirect(
    _session: aiohttp.ClientSession, _context: SimpleNamespace, about: aiohttp.TraceRequestRedirectParams
) -> None:
    headers = about.response.headers
    to = about.response.url.join(URL(headers.get("Location") or headers.get("URI") or ""))
    allowed = os.environ.get("TORCHDALI_REDIRECT_HOSTS", "").split(",")
    upgraded = (about.url.scheme, to.scheme) == ("http", "https") and to.is_default_port()
    same = to.host == about.url.host and (to.port == about.url.port or upgraded)
    if not same and to.host not in allowed and "*" not in allowed:
        raise PermissionError(
            f"the server must not redirect to another host, got {to.host}:{to.port}. "
            f"If you trust this host, read its URL, or set TORCHDALI_REDIRECT_HOSTS={to.host} in the environment"
        )
