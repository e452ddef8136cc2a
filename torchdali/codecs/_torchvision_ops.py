"""torchvision's image operators, loaded without importing torchvision.

Loading the operators' library takes milliseconds; importing torchvision takes more than a second. Both register the
same operators ``torch.ops.image.*``. The library is loaded once, when the first operator is requested.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from torchdali.forks import ForkSafeLock

__all__ = ["image_operator"]

_lock = ForkSafeLock()
_loaded: bool | None = None


def image_operator(name: str) -> Callable[..., Any] | None:
    """Return ``torch.ops.image.<name>``; None if torchvision is not installed or does not work."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load_library() or _import_torchvision()
    if not _loaded:
        return None
    try:
        operator: Callable[..., Any] = getattr(torch.ops.image, name).default
    except AttributeError:
        return None
    return operator


def _load_library() -> bool:
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return False
    for library in sorted(Path(spec.origin).parent.glob("image*.so")):
        try:
            torch.ops.load_library(str(library))
        except Exception:  # RuntimeError or OSError if torchvision was built for another version of torch
            continue
        if hasattr(torch.ops.image, "decode_jpeg"):
            return True
    return False


def _import_torchvision() -> bool:
    try:
        importlib.import_module("torchvision.io")
        return hasattr(torch.ops.image, "decode_jpeg")
    except Exception:
        return False
