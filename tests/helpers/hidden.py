"""Packages that appear uninstalled, for the time of a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from torchdali.codecs import _flac, _turbo
from torchdali.kernels.opencv import opencv

LOOKED_FOR = {"av": _flac._av, "cv2": opencv, "simplejpeg": _turbo.library}
"""Functions that import a package once, and remember it."""


@contextmanager
def hidden(*packages: str) -> Iterator[None]:
    """Hide packages from the decoders."""
    with mock.patch.dict(sys.modules, dict.fromkeys(packages)):
        for package in packages:
            LOOKED_FOR[package].cache_clear()
        try:
            yield
        finally:
            for package in packages:
                LOOKED_FOR[package].cache_clear()
