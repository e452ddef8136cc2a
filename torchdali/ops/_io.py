"""The operator `io.file.read`, which reads files. Its input contains the paths of the files."""

from __future__ import annotations

import os
from typing import Annotated

import torch
from torch import Tensor

from torchdali.calls.decorators import operator
from torchdali.codecs.files import read_file
from torchdali.declaration.schema import Data, InputConstraints

__all__ = ["read"]

Path = Annotated[Tensor, InputConstraints(dtypes=(torch.uint8, torch.int8))]


@operator(name="io.file.read", layout="", devices=("cpu",))
def read(filepaths: Path, /, *, dont_use_mmap: bool = False, use_o_direct: bool = False) -> Data:
    """Read files; each sample of the input is the path of a file.

    Args:
        filepaths: Path of a file as bytes, ``(n,)`` uint8 or int8.
        dont_use_mmap: True to read the file into memory; False (the default) to map it into memory.
        use_o_direct: True to bypass the system's file cache, if the file system supports it. It has an effect only if
            ``dont_use_mmap`` is True.

    Returns:
        The bytes of the file, ``(n,)`` uint8.

    Raises:
        RuntimeError: the path isn't 1D, the file can't be read, or the file is empty and ``dont_use_mmap`` is False.
    """
    if filepaths.ndim != 1:
        raise RuntimeError(f"a path must be 1D text, got {filepaths.ndim}D")
    path = os.fsdecode(bytes(filepaths.numpy()).partition(b"\0")[0])
    return read_file(path.removeprefix("file://"), mapped=not dont_use_mmap, direct=use_o_direct)
