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
    """Let modules of `torchdali.kernels` use OpenCV, or only torch; skip the test if OpenCV is missing."""
    if library == "opencv":
        pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
        yield
        return
    kernels = [importlib.import_module(f"torchdali.kernels.{name}") for name in modules]
    found = [(kernel, name) for kernel in kernels for name in ("opencv", "opencv_for") if hasattr(kernel, name)]
    assert {kernel for kernel, _ in found} == {*kernels}
    patches = [mock.patch.object(kernel, name, lambda *x: None) for kernel, name in found]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()
