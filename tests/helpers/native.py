"""Tests of the native path: where it is not installed they are left out, and each can be run without it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from torchdali.codecs import _native

needs_native = pytest.mark.skipif(
    _native.library() is None, reason=f"torchdali-native: {_native.status().text}"
)


@contextmanager
def switched_off() -> Iterator[None]:
    """Take Python's way, in pipelines that are built meanwhile too."""
    found = _native.status
    _native.status = lambda: _native.Status(None, "switched off by a test")
    try:
        yield
    finally:
        _native.status = found


def both_ways(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on the native path, where that is used, then on Python's way."""

    @functools.wraps(test)
    def run(*values: Any, **arguments: Any) -> None:
        if _native.library() is not None:
            test(*values, **arguments)
        with switched_off():
            test(*values, **arguments)

    return run
