"""Answers of web servers, of which no more is read than `urls.MAX_BYTES`, whatever the server says or sends."""

from __future__ import annotations

import aiohttp

from torchdali.formats import urls

__all__ = ["BoundedResponse"]


class BoundedResponse(aiohttp.ClientResponse):
    """An answer whose content is counted as it arrives, after it was decompressed."""

    async def read(self) -> bytes:
        """Return the content.

        Raises:
            TooLarge: there is more of it.
        """
        if self._body is None:
            try:
                self._body = await self._content()
            except BaseException:
                self.close()
                raise
        return await super().read()

    async def _content(self) -> bytes:
        parts, size = [], 0
        async for part in self.content.iter_any():
            size += len(part)
            if size > urls.MAX_BYTES:
                whole = self.status == 200 and "Range" in self.request_info.headers
                raise urls.TooLarge("all of it, though a part was asked for," if whole else "it")
            parts.append(part)
        return b"".join(parts)
