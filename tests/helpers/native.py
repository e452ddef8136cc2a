"""Tests of the fast path: they are skipped if it isn't installed, and each can be run without it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from torchdali.codecs import _native as native_codecs
from torchdali.kernels import native

__all__ = ["both_paths", "native_codecs", "needs_native", "switched_off"]

needs_native = pytest.mark.skipif(
    native.library() is None, reason=f"fast path: {native.status().text}"
)


@contextmanager
def switched_off() -> Iterator[None]:
    """Use the Python path, also in pipelines that are built meanwhile."""
    found = native.status
    native.status = lambda: native.Status(None, "switched off by a test")
    try:
        yield
    finally:
        native.status = found


def both_paths(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on the fast path, if it is installed, then on the Python path."""

    @functools.wraps(test)
    def run(*values: Any, **arguments: Any) -> None:
        if native.library() is not None:
            test(*values, **arguments)
        with switched_off():
            test(*values, **arguments)

    return run
