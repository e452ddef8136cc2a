"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
from os import PathLike
from typing import Any, Literal, overload

import torch as _torch

from torchdali.experimental.dynamic._batch import Batch
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import DeviceLike
from torchdali.experimental.dynamic._dtypes import DType
from torchdali.experimental.dynamic._readers import Reader
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._tensor import Tensor
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

@overload
def read(
    filepaths: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dont_use_mmap: _bool = False,
    use_o_direct: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Read the files that the samples name.

    Args:
        filepaths: The path of a file, as the bytes of its text: uint8 (or int8), 1D.
        dont_use_mmap: Read the files instead of mapping them into memory.
        use_o_direct: Read past the system's cache, where the file system can; counts only with
            ``dont_use_mmap``.

    Returns:
        The bytes of the file, ``(n,)`` uint8.

    Raises:
        RuntimeError: the path is not 1D text, or the file cannot be read, or is empty (unless ``dont_use_mmap``).
    """
    ...

@overload
def read(
    filepaths: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dont_use_mmap: _bool = False,
    use_o_direct: _bool = False,
    torch: _bool = False,
) -> Any:
    """Read the files that the samples name.

    Args:
        filepaths: The path of a file, as the bytes of its text: uint8 (or int8), 1D.
        dont_use_mmap: Read the files instead of mapping them into memory.
        use_o_direct: Read past the system's cache, where the file system can; counts only with
            ``dont_use_mmap``.

    Returns:
        The bytes of the file, ``(n,)`` uint8.

    Raises:
        RuntimeError: the path is not 1D text, or the file cannot be read, or is empty (unless ``dont_use_mmap``).
    """
    ...
