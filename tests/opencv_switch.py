"""Run kernels with and without OpenCV."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

LIBRARIES = ("opencv", "torch")


@contextmanager
def computing_with(library: str, *modules: str) -> Iterator[None]:
    """Let modules of `torchdali.kernels` use OpenCV, or torch alone; skips where OpenCV is missing."""
    if library == "opencv":
        pytest.importorskip("cv2", reason="needs OpenCV: pip install 'torchdali[image]'")
        yield
        return
    kernels = [importlib.import_module(f"torchdali.kernels.{name}") for name in modules]
    patches = [mock.patch.object(kernel, "opencv_for", lambda x: None) for kernel in kernels]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()
