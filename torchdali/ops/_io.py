"""The operator that reads files whose paths are the input data."""

from __future__ import annotations

import os
from typing import Annotated

import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.codecs.files import read_file
from torchdali.declaration.schema import Data, Takes

__all__ = ["read"]

Path = Annotated[Tensor, Takes(dtypes=(torch.uint8, torch.int8))]


@operator(name="io.file.read", layout="", devices=("cpu",))
def read(filepaths: Path, /, *, dont_use_mmap: bool = False, use_o_direct: bool = False) -> Data:
    """Read the files whose paths are the samples.

    Args:
        filepaths: The path of a file, as the bytes of its text: uint8 (or int8), 1D.
        dont_use_mmap: Read the files instead of mapping them into memory.
        use_o_direct: Bypass the system's cache if the file system supports it; has an effect only with
            ``dont_use_mmap``.

    Returns:
        The bytes of the file, ``(n,)`` uint8.

    Raises:
        RuntimeError: the path is not 1D text, or the file cannot be read, or is empty (unless ``dont_use_mmap``).
    """
    if filepaths.ndim != 1:
        raise RuntimeError(f"a path is 1D text, not {filepaths.ndim}D")
    path = os.fsdecode(bytes(filepaths.numpy()).partition(b"\0")[0])
    return read_file(path.removeprefix("file://"), mapped=not dont_use_mmap, direct=use_o_direct)
