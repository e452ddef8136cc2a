"""`imread`: read and decode image files."""

from __future__ import annotations

import inspect
import os
from typing import Any

from torchdali.declaration.registry import registry
from torchdali.experimental.dynamic._batch import as_batch
from torchdali.experimental.dynamic._functions import function_of
from torchdali.experimental.dynamic._value import LazyValue

__all__ = ["imread"]

_read, _decode = function_of(registry["io.file.read"]), function_of(registry["decoders.image"])


def imread(filepaths: Any, *, device: Any = "cpu", **arguments: Any) -> Any:
    """Read and decode one image, or several.

    Args:
        filepaths: A path or a list of paths; or the bytes of one path as a uint8 tensor, or of several paths as a
            batch.
        device: ``"cpu"`` or ``"gpu"``.
        arguments: Arguments of `decoders.image`.

    Returns:
        A `Tensor` ``(H, W, C)`` for one path, a `Batch` for several paths.

    Raises:
        OSError: A file can't be read.
        RuntimeError: A file isn't an image.
    """
    if not isinstance(filepaths, (str, bytes, os.PathLike, LazyValue)):
        names = [_as_bytes(path) for path in filepaths]
        return _decode(_read(as_batch(names)), device=device, **arguments)
    name = filepaths if isinstance(filepaths, LazyValue) else _as_bytes(filepaths)
    return _decode(_read(name), device=device, **arguments)


def _signature() -> inspect.Signature:
    imread_parameters = list(inspect.signature(imread).parameters.values())[:-1]
    imread_parameters[0] = imread_parameters[0].replace(kind=inspect.Parameter.POSITIONAL_ONLY)
    parameters = inspect.signature(_decode).parameters.values()
    excluded = ("batch_size", "torch", *(p.name for p in imread_parameters))
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in excluded]
    return inspect.Signature([*imread_parameters, *named])


vars(imread)["__signature__"] = _signature()


def _as_bytes(path: Any) -> bytes:
    return os.fsencode(os.fspath(path))
