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


def video(
    *,
    sequence_length: int,
    blocking: bool = False,
    device: Literal['cpu', 'mixed'] | None = None,
    last_sequence_policy: Literal['partial', 'pad'] = 'partial',
    name: str | None = None,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    no_copy: bool = False,
    preserve: Any = ...,
) -> DataNode:
    """Cut videos that `Pipeline.feed_input` gives into sequences, by the package av (extra ``video``).

    Each batch holds sequences of one video, the last of them fewer.

    Args:
        affine: Accepted: threads of DALI's that keep to their cores.
        blocking: Wait for a video; otherwise a run without one is an error.
        last_sequence_policy: The last sequence of a video: ``"partial"``, shorter, or ``"pad"``, filled with
            zeros.
        no_copy: Accepted; what is fed is copied.
        sequence_length: Frames of a sequence.

    Returns:
        ``(F, H, W, 3)`` uint8.

    Raises:
        RuntimeError: another policy, a length that is not positive; while running, nothing was fed, or not one video.
        DecodeError: the video cannot be decoded.
    """
    ...
