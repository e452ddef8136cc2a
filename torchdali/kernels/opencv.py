"""OpenCV, if it is installed: some kernels use it on the CPU where torch needs several passes."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from torch import Tensor

from torchdali.kernels.memory import is_plain

__all__ = ["opencv", "opencv_for"]

_WARNINGS = 3  # OpenCV's number for the level that it begins with


@functools.cache
def opencv() -> Any:
    """Return the module ``cv2``, or None. At its first use here it is told to start no threads, and to print nothing.

    Pipelines have theirs, and OpenCV's wait actively for the next image: up to a sixth of the CPU time. Its warnings of
    damaged images name no file. The number of threads and the log level are shared by the process: settings of the
    program stay.
    """
    try:
        cv2 = importlib.import_module("cv2")
    except ImportError:
        return None
    if cv2.getNumThreads() == cv2.getNumberOfCPUs():  # nobody has chosen
        # Not 1: OpenCV 4 then waits for its threads to end, which a forked process does not have.
        cv2.setNumThreads(0)
    log = getattr(cv2.utils, "logging", cv2)  # before and since OpenCV 4.11
    if log.getLogLevel() == _WARNINGS:
        log.setLogLevel(0)
    return cv2


def opencv_for(x: Tensor) -> Any:
    """Return ``cv2`` if it can work on a tensor; it knows no devices, gradients, compilers, or empty images."""
    return opencv() if is_plain(x) and x.numel() else None
