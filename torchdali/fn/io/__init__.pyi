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


from . import file as file
