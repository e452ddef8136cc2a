"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch

from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def read(
    filepaths: _T,
    /,
    *,
    device: Literal['cpu'] | None = None,
    dont_use_mmap: bool = False,
    name: str | None = None,
    use_o_direct: bool = False,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
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
