"""Replacement for DALI's module `backend`: memory settings, library versions, and operator schemas.

DALI's buffers grow and shrink by factors that a program can set. torchdali allocates the exact size of each batch, and
reuses memory of the same size. Therefore, the factors have no effect; they are only checked, stored and returned.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import torchdali.ops  # noqa: F401  adds the operators to the registry
from torchdali import types
from torchdali.declaration.registry import Operator, registry
from torchdali.declaration.schema import COMMON, STATE
from torchdali.environment import read_number
from torchdali.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from torchdali.tensors.buffer_pool import release_unused

__all__ = [
    "GetCudaVersion", "GetCufftVersion", "GetDeviceBufferGrowthFactor", "GetHostBufferGrowthFactor",
    "GetHostBufferShrinkThreshold", "GetNppVersion", "GetNvimgcodecVersion", "GetNvjpegVersion",
    "GetOpenCVVersion", "GetSchema", "LoadDirectory", "LoadLibrary", "OpSchema", "PreallocateDeviceMemory",
    "PreallocatePinnedMemory", "RegisteredCPUOps", "RegisteredGPUOps", "RegisteredMixedOps",
    "ReleaseUnusedMemory", "RestrictPinnedMemUsage", "SetBufferGrowthFactor", "SetDeviceBufferGrowthFactor",
    "SetHostBufferGrowthFactor", "SetHostBufferShrinkThreshold", "Stream", "TensorCPU", "TensorGPU",
    "TensorListCPU", "TensorListGPU", "TryGetSchema", "check_cuda_runtime", "types",
]  # fmt: skip


# ---------------------------------------------------------------- memory


_settings: dict[str, float] = {}  # values without effect


def _define_setting(name: str, default: float, limits: tuple[float, float], *variables: str) -> Callable[[], float]:
    """Define a setting; return the function that reads it.

    Args:
        default: Initial value if none of the environment variables is set.
        limits: Minimum and maximum.
        variables: Environment variables that may contain the initial value. The first variable that is set is used.
    """
    variable = next((each for each in variables if os.environ.get(each)), variables[-1])
    _settings[name] = read_number(variable, default, *limits)
    return lambda: _settings[name]


def _create_setter(minimum: float, maximum: float, *names: str) -> Callable[[float], None]:
    def store(factor: float, /) -> None:
        """Store a factor, which has no effect."""
        if not minimum <= factor <= maximum:
            raise ValueError(f"{' and '.join(names)} must be from {minimum} to {maximum}, got {factor}")
        _settings.update(dict.fromkeys(names, float(factor)))

    return store


_GROWTH = (1.0, 4.0)
_HOST, _DEVICE, _SHRINK = "host growth", "device growth", "host shrink threshold"
GetHostBufferGrowthFactor = _define_setting(
    _HOST, 1.1, _GROWTH, "DALI_HOST_BUFFER_GROWTH_FACTOR", "DALI_BUFFER_GROWTH_FACTOR"
)
GetDeviceBufferGrowthFactor = _define_setting(
    _DEVICE, 1.1, _GROWTH, "DALI_DEVICE_BUFFER_GROWTH_FACTOR", "DALI_BUFFER_GROWTH_FACTOR"
)
GetHostBufferShrinkThreshold = _define_setting(_SHRINK, 0.5, (0.0, 1.0), "DALI_HOST_BUFFER_SHRINK_THRESHOLD")
SetHostBufferGrowthFactor = _create_setter(1, 4, _HOST)
SetDeviceBufferGrowthFactor = _create_setter(1, 4, _DEVICE)
SetBufferGrowthFactor = _create_setter(1, 4, _HOST, _DEVICE)
SetHostBufferShrinkThreshold = _create_setter(0, 1, _SHRINK)


def RestrictPinnedMemUsage() -> bool:
    """Return True if the environment variable ``DALI_RESTRICT_PINNED_MEM=1`` disables pinned memory for batches."""
    return os.environ.get("DALI_RESTRICT_PINNED_MEM") == "1"


def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Reserve GPU memory in PyTorch's cache, for tensors that are created later.

    Args:
        bytes: Number of bytes.
        device_id: Index of the GPU.

    Raises:
        RuntimeError: the GPU does not exist or does not have enough memory.
    """
    torch.empty(bytes, dtype=torch.uint8, device=torch.device("cuda", device_id))


def PreallocatePinnedMemory(bytes: int) -> None:
    """Reserve pinned memory in PyTorch's cache, for batches that are created later.

    Raises:
        RuntimeError: PyTorch finds no GPU.
    """
    torch.empty(bytes, dtype=torch.uint8, pin_memory=True)


def ReleaseUnusedMemory() -> None:
    """Free unused memory: the memory that all pipelines have pooled, and PyTorch's cache of GPU memory."""
    release_unused()
    torch.cuda.empty_cache()


class Stream:
    """A new CUDA stream.

    Args:
        device_id: Index of the GPU.

    Raises:
        RuntimeError: the GPU does not exist.
    """

    def __init__(self, device_id: int, /) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("a stream needs a CUDA-capable GPU, but none was found")
        self._stream: Any = torch.cuda.Stream(device_id)
        self._device_id = device_id

    @property
    def device_id(self) -> int:
        """Index of the GPU."""
        return self._device_id

    @property
    def handle(self) -> int:
        """The stream's handle, a ``cudaStream_t`` as an integer."""
        return int(self._stream.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


# ---------------------------------------------------------------- versions


def check_cuda_runtime() -> None:
    """Do nothing, because PyTorch includes a CUDA runtime, and raises an error if the driver is too old."""


def GetCudaVersion() -> int:
    """Return PyTorch's CUDA version as 1000 * major + 10 * minor; 0 if PyTorch was built without CUDA."""
    version = torch.version.cuda
    if version is None:
        return 0
    major, minor = version.split(".")[:2]
    return 1000 * int(major) + 10 * int(minor)


__cuda_version__ = GetCudaVersion()


def _not_linked() -> int:
    """Return -1, DALI's version number of a library that isn't linked."""
    return -1


GetCufftVersion = GetNppVersion = GetNvimgcodecVersion = GetNvjpegVersion = _not_linked


def GetOpenCVVersion() -> str:
    """Return the version of OpenCV; an empty string if OpenCV is not installed."""
    if importlib.util.find_spec("cv2") is None:
        return ""
    import cv2

    return str(cv2.__version__)


# ---------------------------------------------------------------- plugins


def LoadLibrary(lib_path: str, global_symbols: bool = False, allow_fail: bool = False) -> None:
    """Run a Python file that declares operators.

    Args:
        lib_path: Path of the file. DALI's binary plugins can't be loaded.
        global_symbols: Accepted without effect.
        allow_fail: True to warn, instead of raising an error, if the file can't be loaded.

    Raises:
        RuntimeError: the file can't be loaded, and ``allow_fail`` is False.
    """
    try:
        _run(Path(lib_path))
    except Exception as error:
        if not allow_fail:
            raise RuntimeError(f"failed to load the library {lib_path}: {error}") from error
        warnings.warn(f"failed to load the library {lib_path}: {error}", stacklevel=2)


def LoadDirectory(dir_path: str, global_symbols: bool = False, allow_fail: bool = False) -> None:
    """Run all Python files of a folder, in alphabetical order; see `LoadLibrary`."""
    for path in sorted(Path(dir_path).glob("*.py")):
        LoadLibrary(str(path), global_symbols, allow_fail)


def _run(path: Path) -> None:
    if path.suffix != ".py":
        raise RuntimeError(
            "a plugin must be a Python file; declare custom operators as Python functions with torchdali.operator"
        )
    spec = importlib.util.spec_from_file_location(f"torchdali_plugin_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


# ---------------------------------------------------------------- schemas


class OpSchema:
    """The schema of an operator (its name, inputs and arguments), with the methods of DALI's `OpSchema`."""

    def __init__(self, operator: Operator) -> None:
        self._operator, self._schema = operator, operator.schema

    def Name(self) -> str:
        """Return the schema's name, for example ``readers__File``."""
        return self._operator.schema_name

    def OperatorName(self) -> str:
        """Return the name of the operator's class in `ops`, for example ``File``."""
        return self._operator.class_name

    def ModulePath(self) -> list[str]:
        """Return the operator's namespaces in `fn`, for example ``["readers"]``."""
        return self._operator.name.split(".")[:-1]

    def Dox(self) -> str:
        """Return the operator's docstring."""
        return self._operator.implementation.__doc__ or ""

    def MinNumInput(self) -> int:
        """Return the minimum number of inputs."""
        return self._schema.input_range[0]

    def MaxNumInput(self) -> int:
        """Return the maximum number of inputs."""
        return self._schema.input_range[1]

    def GetInputName(self, index: int, /) -> str:
        """Return the name of an input."""
        return self._schema.input(index).name

    def GetSupportedLayouts(self, index: int, /) -> list[str]:
        """Return the layouts that an input may have; an empty list means any layout."""
        return list(self._schema.input(index).constraints.layouts)

    def GetSupportedBackends(self) -> list[str]:
        """Return the devices that the operator runs on: ``"cpu"``, ``"gpu"`` or ``"mixed"``."""
        return list(self._operator.options.devices)

    def GetArgumentNames(self, include_hidden: bool = False) -> list[str]:
        """Return the names of the arguments, sorted, including the arguments that all operators have."""
        names = [a.name for a in self._schema.arguments.values() if include_hidden or not a.hidden]
        return sorted({*names, *COMMON})

    def HasArgument(self, name: str, /) -> bool:
        """Return True if the operator has the argument, even if the argument is deprecated."""
        random = (STATE,) if self._schema.random else ()
        return name in {*self._schema.arguments, *self._schema.deprecated, *COMMON, *random}

    def IsArgumentOptional(self, arg_name: str) -> bool:
        """Return True if the argument has a default."""
        return arg_name in COMMON or not self._schema.arguments[arg_name].required

    def IsTensorArgument(self, name: str, /) -> bool:
        """Return True if the argument may be an operator's output, with a value for each sample."""
        return name in self._schema.arguments and self._schema.arguments[name].edge is not None

    def IsDeprecatedArg(self, name: str, /) -> bool:
        """Return True if the argument is the old name of another argument, or no longer has an effect."""
        return name in self._schema.deprecated


def _index_operators() -> dict[str, Operator]:
    return {operator.schema_name: operator for operator in registry.values()}


def TryGetSchema(name: str, follow_aliases: bool = False) -> OpSchema | None:
    """Return the schema with this name, for example ``readers__File``; None if no operator has the schema."""
    operator = _index_operators().get(name)
    return None if operator is None else OpSchema(operator)


def GetSchema(name: str, follow_aliases: bool = False) -> OpSchema:
    """Return the schema with this name, for example ``readers__File``.

    Raises:
        KeyError: no operator has the schema.
    """
    schema = TryGetSchema(name)
    if schema is None:
        raise KeyError(f"no operator has the schema {name!r}")
    return schema


def _list_operators(device: str, internal: bool) -> list[str]:
    return sorted(
        name
        for name, operator in _index_operators().items()
        if device in operator.options.devices and (internal or not operator.hidden)
    )


def RegisteredCPUOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of the operators that run on the CPU."""
    return _list_operators("cpu", internal_ops)


def RegisteredGPUOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of the operators that run on the accelerator."""
    return _list_operators("gpu", internal_ops)


def RegisteredMixedOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of the operators that read CPU data and return data on the accelerator."""
    return _list_operators("mixed", internal_ops)
