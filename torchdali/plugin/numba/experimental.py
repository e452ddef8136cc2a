"""`NumbaFunction`: an operator that calls a Python function, compiled to machine code by Numba."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from torchdali import fn, types
from torchdali.types import DALIDataType

__all__ = ["NumbaFunction"]

_MAX_DIMENSIONS = 6
_MAX_ARRAYS = 6


class NumbaFunction:
    """Operator that calls a Python function. Numba compiles the function, which then runs without the GIL.

    The operator allocates arrays for the outputs and calls ``run_fn(*outputs, *inputs)``, which writes the outputs. If
    ``setup_fn`` isn't passed, each output has the shape of the input with the same index.

    Args:
        run_fn: Function that takes one array per output, followed by one array per input. If ``batch_processing`` is
            True, each argument is a tuple with one array per sample instead.
        out_types: `DALIDataType` of each output.
        in_types: `DALIDataType` of each input. An input of another dtype raises an error.
        outs_ndim: Number of axes of each output.
        ins_ndim: Number of axes of each input.
        setup_fn: Function ``setup_fn(outs, ins)`` that is called once per batch and writes the outputs' shapes.
            ``outs[k][i]`` is the shape of output ``k`` for sample ``i``, and ``ins[k][i]`` the shape of input ``k``.
        device: Must be ``"cpu"``; functions for GPUs are not supported.
        batch_processing: True to call ``run_fn`` once per batch, instead of once per sample.
        blocks: Accepted without effect. In DALI: number of blocks on the GPU.
        threads_per_block: Accepted without effect. In DALI: number of threads per block on the GPU.
        kwargs: Arguments that every operator has: ``name`` and ``preserve``.

    Raises:
        ImportError: Numba is not installed.
        ValueError: `out_types` and `outs_ndim`, or `in_types` and `ins_ndim`, differ in length; there are too many
            outputs, inputs or axes; or the device isn't ``"cpu"``.
        TypeError: a type is not a `DALIDataType`.
    """

    schema_name = "NumbaFunction"

    def __init__(
        self,
        run_fn: Callable[..., Any],
        out_types: Sequence[DALIDataType] | DALIDataType,
        in_types: Sequence[DALIDataType] | DALIDataType,
        outs_ndim: Sequence[int] | int,
        ins_ndim: Sequence[int] | int,
        setup_fn: Callable[..., Any] | None = None,
        device: str = "cpu",
        batch_processing: bool = False,
        blocks: Any = None,
        threads_per_block: Any = None,
        **kwargs: Any,
    ) -> None:
        if device != "cpu":
            raise ValueError(f"device of numba_function must be 'cpu', got {device!r}")
        self._out_types, self._in_types = _numpy_types(out_types), _numpy_types(in_types)
        self._outs_ndim, self._ins_ndim = _as_list(outs_ndim), _as_list(ins_ndim)
        _check_counts("output", self._out_types, self._outs_ndim)
        _check_counts("input", self._in_types, self._ins_ndim)
        self._run, self._setup = _compile(run_fn), setup_fn and _compile(setup_fn)
        self._batch_processing, self._kwargs, self._device = batch_processing, kwargs, device

    @property
    def device(self) -> str:
        """The device that the function runs on, ``"cpu"``."""
        return self._device

    @property
    def preserve(self) -> bool:
        """True if the operator runs even if no output of the pipeline needs its result."""
        return bool(self._kwargs.get("preserve", False))

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Add the operator to the pipeline; return a node, or a list of nodes for several outputs.

        Raises:
            ValueError: the number of inputs isn't the number of ``in_types``.
        """
        if len(inputs) != len(self._in_types):
            raise ValueError(
                f"numba_function must get the declared number of inputs, {len(self._in_types)}, got {len(inputs)}"
            )
        return fn.torch_python_function(
            *inputs, function=self._call, batch_processing=True, num_outputs=len(self._out_types),
            **self._kwargs, **kwargs,
        )  # fmt: skip

    def _call(self, *columns: Sequence[torch.Tensor]) -> Any:
        ins = [[np.ascontiguousarray(sample.numpy()) for sample in column] for column in columns]
        for k, column in enumerate(ins):
            _check_arrays(k, column, self._in_types[k], self._ins_ndim[k])
        shapes = self._find_shapes(ins)
        outs = [
            [np.empty(shape, dtype) for shape in column] for column, dtype in zip(shapes, self._out_types, strict=True)
        ]
        if self._batch_processing:
            self._run(*map(tuple, outs), *map(tuple, ins))
        else:
            for sample in zip(*outs, *ins, strict=True):
                self._run(*sample)
        outputs = tuple([torch.from_numpy(array) for array in column] for column in outs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _find_shapes(self, ins: list[list[np.ndarray[Any, Any]]]) -> list[list[tuple[int, ...]]]:
        """Return the outputs' shapes, one list per output with one shape per sample."""
        shapes_in = [np.array([array.shape for array in column], np.int64) for column in ins]
        if self._setup is None:
            if len(self._out_types) > len(ins) or any(
                shapes_in[k].shape[1] != n for k, n in enumerate(self._outs_ndim)
            ):
                raise ValueError("setup_fn must be passed if the outputs' shapes differ from the inputs' shapes")
            shapes_out = shapes_in[: len(self._out_types)]
        else:
            shapes_out = [np.zeros((len(ins[0]), n), np.int64) for n in self._outs_ndim]
            self._setup(tuple(shapes_out), tuple(shapes_in))
        return [[tuple(map(int, shape)) for shape in column] for column in shapes_out]


@functools.lru_cache(maxsize=256)
def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        numba = importlib.import_module("numba")
    except ImportError as error:
        raise ImportError("numba_function needs Numba: pip install numba") from error
    compiled: Callable[..., Any] = numba.njit(nogil=True)(function)
    return compiled


def _as_list(value: Any) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _numpy_types(value: Any) -> list[np.dtype[Any]]:
    values = value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(each, DALIDataType) for each in values):
        raise TypeError(f"element types must be DALIDataType, for example types.UINT8, got {values!r}")
    return [torch.empty(0, dtype=types.to_torch_dtype(each)).numpy().dtype for each in values]


def _check_counts(role: str, dtypes: Sequence[Any], dimensions: Sequence[int]) -> None:
    if len(dtypes) != len(dimensions):
        raise ValueError(
            f"the numbers of {role} types and {role} dimensions must be equal, got {len(dtypes)} and {len(dimensions)}"
        )
    if len(dtypes) > _MAX_ARRAYS:
        raise ValueError(f"numba_function must have at most {_MAX_ARRAYS} {role}s, got {len(dtypes)}")
    for n in dimensions:
        if not 0 <= n <= _MAX_DIMENSIONS:
            raise ValueError(f"an {role} must have 0 to {_MAX_DIMENSIONS} dimensions, got {n}")


def _check_arrays(k: int, arrays: Sequence[np.ndarray[Any, Any]], dtype: np.dtype[Any], ndim: int) -> None:
    for array in arrays[:1]:
        if array.dtype != dtype:
            raise TypeError(f"input {k} must have the declared type {dtype}, got {array.dtype}")
        if array.ndim != ndim:
            raise ValueError(f"input {k} must have the declared {ndim} dimensions, got {array.ndim}")
