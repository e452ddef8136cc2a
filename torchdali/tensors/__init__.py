"""Tensors and batches with DALI's interface, which contain plain torch tensors.

A `Tensor` is one torch tensor with a layout. A `TensorList` is a batch. It contains one torch tensor whose first
dimension is the batch, one torch tensor per sample, or one block of memory with all samples.
"""

from __future__ import annotations

from torchdali.tensors._batch import TensorList, TensorListCPU, TensorListGPU
from torchdali.tensors._single import Tensor, TensorCPU, TensorGPU

__all__ = ["Tensor", "TensorCPU", "TensorGPU", "TensorList", "TensorListCPU", "TensorListGPU"]
