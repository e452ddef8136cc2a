"""Replacement for DALI's module `backend`: memory settings, library versions, and operator schemas.

In torchdali, the sizes of batches are exact and their memory is pooled by size. So the factors by which DALI's buffers
grow and shrink have no effect: they are only checked, stored and returned.
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

import torchdali.ops  # noqa: F401  the registry holds the operators once they are imported
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


_settings: dict[str, float] = {}  # without effect: checked, kept and returned


def _setting(name: str, default: float, limits: tuple[float, float], *variables: str) -> Callable[[], float]:
    """Return the getter of a setting, whose initial value is from an environment variable."""
    variable = next((each for each in variables if os.environ.get(each)), variables[-1])
    _settings[name] = read_number(variable, default, *limits)
    return lambda: _settings[name]


def _setter(least: float, most: float, *names: str) -> Callable[[float], None]:
    def keep(factor: float, /) -> None:
        """Store a factor, without effect."""
        if not least <= factor <= most:
            raise ValueError(f"{' and '.join(names)}: a factor from {least} to {most}, not {factor}")
        _settings.update(dict.fromkeys(names, float(factor)))

    return keep


_GROWTH = (1.0, 4.0)
_HOST, _DEVICE, _SHRINK = "host growth", "device growth", "host shrink threshold"
GetHostBufferGrowthFactor = _setting(_HOST, 1.1, _GROWTH, "DALI_HOST_BUFFER_GROWTH_FACTOR", "DALI_BUFFER_GROWTH_FACTOR")
GetDeviceBufferGrowthFactor = _setting(
    _DEVICE, 1.1, _GROWTH, "DALI_DEVICE_BUFFER_GROWTH_FACTOR", "DALI_BUFFER_GROWTH_FACTOR"
)
GetHostBufferShrinkThreshold = _setting(_SHRINK, 0.5, (0.0, 1.0), "DALI_HOST_BUFFER_SHRINK_THRESHOLD")
SetHostBufferGrowthFactor = _setter(1, 4, _HOST)
SetDeviceBufferGrowthFactor = _setter(1, 4, _DEVICE)
SetBufferGrowthFactor = _setter(1, 4, _HOST, _DEVICE)
SetHostBufferShrinkThreshold = _setter(0, 1, _SHRINK)


def RestrictPinnedMemUsage() -> bool:
    """Return whether ``DALI_RESTRICT_PINNED_MEM=1`` disables pinned memory for batches."""
    return os.environ.get("DALI_RESTRICT_PINNED_MEM") == "1"


def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Reserve GPU memory in torch's cache, for later tensors.

    Raises:
        RuntimeError: The GPU does not exist, or has not enough memory.
    """
    torch.empty(bytes, dtype=torch.uint8, device=torch.device("cuda", device_id))


def PreallocatePinnedMemory(bytes: int) -> None:
    """Reserve pinned memory in torch's cache, for later batches; raise RuntimeError without a GPU."""
    torch.empty(bytes, dtype=torch.uint8, pin_memory=True)


def ReleaseUnusedMemory() -> None:
    """Free memory that no batch uses: of all pipelines' pools, and torch's cache on GPUs."""
    release_unused()
    torch.cuda.empty_cache()


class Stream:
    """A stream of a GPU.

    Args:
        device_id: The GPU's number.

    Raises:
        RuntimeError: the GPU does not exist.
    """

    def __init__(self, device_id: int, /) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("a stream needs a CUDA-capable GPU, and there is none")
        self._stream: Any = torch.cuda.Stream(device_id)
        self._device_id = device_id

    @property
    def device_id(self) -> int:
        """The GPU's number."""
        return self._device_id

    @property
    def handle(self) -> int:
        """The stream's address."""
        return int(self._stream.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


# ---------------------------------------------------------------- versions


def check_cuda_runtime() -> None:
    """Do nothing: torch brings its CUDA runtime, and fails by itself if the driver is too old."""


def GetCudaVersion() -> int:
    """Return the CUDA version of torch as 1000 * major + 10 * minor; 0 without CUDA."""
    version = torch.version.cuda
    if version is None:
        return 0
    major, minor = version.split(".")[:2]
    return 1000 * int(major) + 10 * int(minor)


__cuda_version__ = GetCudaVersion()


def _not_linked() -> int:
    """Return -1: not linked."""
    return -1


GetCufftVersion = GetNppVersion = GetNvimgcodecVersion = GetNvjpegVersion = _not_linked


def GetOpenCVVersion() -> str:
    """Return the version of OpenCV; empty if it is not installed."""
    if importlib.util.find_spec("cv2") is None:
        return ""
    import cv2

    return str(cv2.__version__)


# ---------------------------------------------------------------- plugins


def LoadLibrary(lib_path: str, global_symbols: bool = False, allow_fail: bool = False) -> None:
    """Run a Python file that declares operators.

    Args:
        lib_path: The file. DALI's binary plugins cannot be loaded.
        global_symbols: Accepted, without effect.
        allow_fail: Warn instead of raising.

    Raises:
        RuntimeError: The file can't be loaded.
    """
    try:
        _run(Path(lib_path))
    except Exception as error:
        if not allow_fail:
            raise RuntimeError(f"failed to load the library {lib_path}: {error}") from error
        warnings.warn(f"failed to load the library {lib_path}: {error}", stacklevel=2)


def LoadDirectory(dir_path: str, global_symbols: bool = False, allow_fail: bool = False) -> None:
    """Run the Python files of a folder, in the order of their names; see `LoadLibrary`."""
    for path in sorted(Path(dir_path).glob("*.py")):
        LoadLibrary(str(path), global_symbols, allow_fail)


def _run(path: Path) -> None:
    if path.suffix != ".py":
        raise RuntimeError(
            "it is not a Python file; a custom operator is a Python function declared with torchdali.operator"
        )
    spec = importlib.util.spec_from_file_location(f"torchdali_plugin_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


# ---------------------------------------------------------------- schemas


class OpSchema:
    """The declaration of an operator, with DALI's methods."""

    def __init__(self, operator: Operator) -> None:
        self._operator, self._schema = operator, operator.schema

    def Name(self) -> str:
        """Return the schema's name, for example ``readers__File``."""
        return self._operator.schema_name

    def OperatorName(self) -> str:
        """Return the class name in `ops`."""
        return self._operator.class_name

    def ModulePath(self) -> list[str]:
        """Return the namespaces in `fn`."""
        return self._operator.name.split(".")[:-1]

    def Dox(self) -> str:
        """Return the documentation."""
        return self._operator.body.__doc__ or ""

    def MinNumInput(self) -> int:
        """Return the least number of inputs."""
        return self._schema.input_range[0]

    def MaxNumInput(self) -> int:
        """Return the greatest number of inputs."""
        return self._schema.input_range[1]

    def GetInputName(self, index: int, /) -> str:
        """Return the name of an input."""
        return self._schema.input(index).name

    def GetSupportedLayouts(self, index: int, /) -> list[str]:
        """Return the layouts that an input takes; empty for any."""
        return list(self._schema.input(index).takes.layouts)

    def GetSupportedBackends(self) -> list[str]:
        """Return the devices."""
        return list(self._operator.options.devices)

    def GetArgumentNames(self, include_hidden: bool = False) -> list[str]:
        """Return the names of the arguments."""
        own = [a.name for a in self._schema.arguments.values() if include_hidden or not a.hidden]
        return sorted({*own, *COMMON})

    def HasArgument(self, name: str, /) -> bool:
        """Return whether the argument exists, including deprecated arguments."""
        random = (STATE,) if self._schema.random else ()
        return name in {*self._schema.arguments, *self._schema.deprecated, *COMMON, *random}

    def IsArgumentOptional(self, arg_name: str) -> bool:
        """Return whether an argument has a default."""
        return arg_name in COMMON or not self._schema.arguments[arg_name].required

    def IsTensorArgument(self, name: str, /) -> bool:
        """Return whether an argument may be given per sample."""
        return name in self._schema.arguments and self._schema.arguments[name].edge is not None

    def IsDeprecatedArg(self, name: str, /) -> bool:
        """Return whether an argument is the old name of another argument, or has no effect any more."""
        return name in self._schema.deprecated


def _index_operators() -> dict[str, Operator]:
    return {operator.schema_name: operator for operator in registry.values()}


def TryGetSchema(name: str, follow_aliases: bool = False) -> OpSchema | None:
    """Return the schema of an operator, for example ``readers__File``, or None."""
    operator = _index_operators().get(name)
    return None if operator is None else OpSchema(operator)


def GetSchema(name: str, follow_aliases: bool = False) -> OpSchema:
    """Return the schema of an operator, for example ``readers__File``; raise KeyError for an unknown operator."""
    schema = TryGetSchema(name)
    if schema is None:
        raise KeyError(f"no operator has the schema {name!r}")
    return schema


def _on(device: str, internal: bool) -> list[str]:
    return sorted(
        name
        for name, operator in _index_operators().items()
        if device in operator.options.devices and (internal or not operator.hidden)
    )


def RegisteredCPUOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of the operators that run on the CPU."""
    return _on("cpu", internal_ops)


def RegisteredGPUOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of the operators that run on the accelerator."""
    return _on("gpu", internal_ops)


def RegisteredMixedOps(internal_ops: bool = False) -> list[str]:
    """Return the schema names of the operators that take CPU data to the accelerator."""
    return _on("mixed", internal_ops)
