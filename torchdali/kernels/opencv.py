"""Access OpenCV, which is an optional dependency.

Some kernels use OpenCV on the CPU where PyTorch would need several passes over the data.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from torch import Tensor

from torchdali.kernels.memory import is_plain

__all__ = ["opencv", "opencv_for"]

_WARNINGS = 3  # OpenCV's number for its default log level


@functools.cache
def opencv() -> Any:
    """Return the module ``cv2``, or None if OpenCV isn't installed.

    The first call disables OpenCV's threads and messages. Pipelines have their own threads, and OpenCV's threads
    busy-wait for the next image, which takes up to a sixth of the CPU time. OpenCV's warnings about damaged images
    don't name the file. The number of threads and the log level apply to the whole process, so they are changed only if
    they have their default values.
    """
    try:
        cv2 = importlib.import_module("cv2")
    except ImportError:
        return None
    if cv2.getNumThreads() == cv2.getNumberOfCPUs():  # the program hasn't changed the default
        # The number is 0 because with 1, OpenCV 4 waits for threads that don't exist in a forked process.
        cv2.setNumThreads(0)
    log = getattr(cv2.utils, "logging", cv2)  # which module has the functions depends on the version
    if log.getLogLevel() == _WARNINGS:
        log.setLogLevel(0)
    return cv2


def opencv_for(x: Tensor) -> Any:
    """Return ``cv2`` if OpenCV is installed and can process the tensor, else None.

    OpenCV can't process tensors on devices, tensors that need gradients, empty tensors, or tensors in a compiled graph.
    """
    return opencv() if is_plain(x) and x.numel() else None
