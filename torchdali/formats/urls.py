"""Distinguish URLs from paths, hide the secrets of URLs in messages, and limit the size of responses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torchdali.environment import read_number

__all__ = ["BLOCK", "MAX_BYTES", "TooLarge", "has_secret", "is_url", "redact", "redact_text", "represent"]

BLOCK = 8 << 20
"""Size of a block in bytes; objects are cached in blocks."""

MAX_BYTES = max(BLOCK, read_number("TORCHDALI_MAX_URL_BYTES", 256 << 20, 1))
"""Maximum number of bytes of an object, a record or a listing that is read from a URL."""

_USER = re.compile(r"(?<=://)[^/@?#]*@")
_QUERY = re.compile(r"[?#].*", re.DOTALL)
_SCHEME = r"[A-Za-z][A-Za-z0-9+.:-]+://"
_URL_IN_TEXT = re.compile(_SCHEME + r"[^\s'\"<>]+")

is_url: Callable[[str], Any] = re.compile(_SCHEME).match
"""Return whether a text is a URL, not a path."""


class TooLarge(ValueError):
    """A response from a URL has too many bytes."""

    def __init__(self, subject: str = "the response") -> None:
        super().__init__(
            f"{subject} has more than {MAX_BYTES:,} bytes, the limit for one read of a URL. To change the limit, set "
            f"TORCHDALI_MAX_URL_BYTES in the environment"
        )


def redact(url: str) -> str:
    """Return a URL for a message: user, password and query are hidden."""
    if not is_url(url):
        return url
    return _QUERY.sub("?...", _USER.sub("...@", url))


def redact_text(text: str) -> str:
    """Hide user, password and query of each URL in a text."""
    return _URL_IN_TEXT.sub(lambda url: redact(url[0]), text)


def has_secret(url: str) -> bool:
    """Return whether a URL has a user, a password, or a query, which may contain a signature."""
    return bool(is_url(url)) and redact(url) != url


def represent(value: Any) -> str:
    """Return the `repr` of an argument for a message; user, password and query of URLs are hidden."""
    return repr(_redact_nested(value))


def _redact_nested(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_redact_nested, value))
    return redact(value) if isinstance(value, str) else value
