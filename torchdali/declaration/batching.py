"""The interface of batched implementations, and the values of per-sample arguments as columns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from torchdali.kernels.memory import SharedBuffer

__all__ = [
    "MAX_CHUNK_BYTES",
    "Arguments",
    "ChunkResults",
    "Column",
    "EncodedImplementation",
    "argument_names",
    "split_arguments",
    "per_sample",
    "shape_values",
    "truth",
]


class Column(Sequence[Any]):
    """The values of a per-sample argument, as an array and as Python numbers.

    A column is created from an array or from numbers. An array is converted when the numbers are first needed.

    Args:
        values: An array or tensor ``(N, ...)``, or a list of numbers or nested lists of numbers. Nested lists may have
            different lengths.

    Attributes:
        per_frame: True if each value is a list with one value per frame of the sample.
        uploaded: The values as a tensor on a device; None if the values weren't copied to a device.
    """

    __slots__ = ("_source", "_values", "per_frame", "uploaded")

    def __init__(self, values: npt.NDArray[Any] | torch.Tensor | Sequence[Any]) -> None:
        self._source: npt.NDArray[Any] | torch.Tensor | None = None
        self._values: list[Any] | None = None
        self.per_frame = False
        self.uploaded: torch.Tensor | None = None
        if isinstance(values, (np.ndarray, torch.Tensor)):
            self._source = values
        else:
            self._values = list(values)

    @classmethod
    def of(cls, values: torch.Tensor) -> Column:
        """Create a column from a tensor ``(N, ...)``."""
        if values.is_cpu and values.dtype != torch.bfloat16:
            return cls(values)
        return cls(values.tolist())

    @property
    def _array(self) -> npt.NDArray[Any] | None:
        source = self._source  # read once, because another thread may replace the attribute
        if isinstance(source, torch.Tensor):  # converted to an array at its first use
            source = self._source = source.detach().numpy()
        return source

    @property
    def values(self) -> list[Any]:
        """The values as Python numbers and lists. Don't change the lists."""
        if self._values is None:
            assert self._array is not None
            self._values = self._array.tolist()
        return self._values

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Dtype of the array; None if the column was created from a list."""
        return None if self._array is None else self._array.dtype

    def rows(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a new array of the values, one row per sample.

        Raises:
            RuntimeError: The shapes of the values differ.
        """
        if self._array is not None:
            return self._array.astype(dtype)
        try:
            return np.array(self._values, dtype)
        except ValueError:
            shapes = {np.shape(value) for value in self.values}
            if len(shapes) < 2:
                raise
            raise RuntimeError(
                "the values of an argument must have one shape in a batch, got " + ", ".join(map(str, sorted(shapes)))
            ) from None

    def shape_values(self, axes: int | None, name: str) -> Column:
        """Return the values with the number of axes that the argument declares.

        If the argument is a number, arrays with one element become numbers. If the argument is a list, numbers become
        lists with one element.

        Args:
            axes: Number of axes of the argument's values, see `schema.Argument`.
            name: Name of the argument.

        Raises:
            RuntimeError: The argument is a number and a value doesn't have exactly one element, or the argument is a
                list and a value is a matrix.
        """
        one_number = self._source is not None and self._source.ndim == 1
        if axes is None or self.per_frame or (axes == 0 and one_number):
            return self
        if self._array is None:
            return Column([shape_values(value, axes, name, i) for i, value in enumerate(self.values)])
        if one_number:
            return Column(self._array[:, None])
        if axes == 0:
            if self._array.size != len(self._array):
                raise _misshapen(name, axes, self._array.shape[1:])
            return Column(self._array.reshape(-1))
        if axes == 1 and self._array.ndim > 2:
            raise _misshapen(name, axes, self._array.shape[1:])
        return self

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, list):
            return Column([self.values[k] for k in i] if self._array is None else self._array[i])
        if isinstance(i, slice):
            return Column(self.values[i] if self._array is None else self._array[i])
        return self.values[i]

    def __len__(self) -> int:
        return len(self.values) if self._source is None else self._source.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self._values if self._array is None else self._array
        return np.array(values, dtype) if copy else np.asarray(values, dtype)

    def __repr__(self) -> str:
        return f"Column({self.values})"


def shape_values(value: Any, axes: int | None, name: str, sample: int | None = None) -> Any:
    """Convert one value, a number or a nested list, like `Column.shape_values`."""
    if axes and not isinstance(value, list):
        return value if value is None else [value]
    if axes == 1 and value and isinstance(value[0], list):
        raise _misshapen(name, axes, np.shape(value), sample)
    if axes == 0 and isinstance(value, list):
        elements = np.asarray(value)
        if elements.size != 1:
            raise _misshapen(name, axes, elements.shape, sample)
        return elements.reshape(()).tolist()
    return value


def _misshapen(name: str, axes: int, shape: tuple[int, ...], sample: int | None = None) -> RuntimeError:
    suffix = "" if sample is None else f" of sample {sample}"
    value = f"the value{suffix} has the shape {tuple(shape)}"
    if not axes:
        return RuntimeError(f"argument {name!r} must be one number per sample, but {value}")
    return RuntimeError(
        f"argument {name!r} must be one row of numbers per sample, but {value}: input with dimension {len(shape)} "
        "cannot be converted to dimension 1"
    )


def per_sample(value: Any, size: int) -> Sequence[Any]:
    """Return one value per sample: the values of a `Column`, or a constant repeated `size` times."""
    return value.values if isinstance(value, Column) else [value] * size


def split_arguments(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one dictionary of arguments per sample. If no argument is a `Column`, return only one dictionary."""
    columns = {k: v for k, v in arguments.items() if isinstance(v, Column)}
    rows = zip(*columns.values(), strict=True)
    return [{**arguments, **dict(zip(columns, row, strict=True))} for row in rows] if columns else [dict(arguments)]


class Arguments:
    """All arguments of an operator, as attributes, for a batched implementation (one that processes several samples).

    The implementation receives this object as ``a``. If the call passes the argument ``angle`` per sample, ``a.angle``
    is a `Column`. Otherwise, ``a.angle`` is the value for all samples. Arguments that the call omits have their
    defaults.

    The attribute ``out`` is memory for the results, or None. The attribute ``empty`` is a function that allocates
    memory, see `Allocator`. The attributes ``layout`` and ``rng`` exist if the operator uses them.
    """

    __slots__ = ("_passed", "_values")

    def __init__(self, defaults: Mapping[str, Any], passed: Mapping[str, Any], extras: Mapping[str, Any]) -> None:
        self._passed, self._values = passed, {**defaults, **passed, **extras}

    def __getattr__(self, name: str) -> Any:
        return self._values[name]

    def of(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the passed arguments that a function accepts as keyword-only arguments."""
        names = argument_names(function)
        return {name: value for name, value in self._passed.items() if name in names}


@functools.cache
def argument_names(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a function's keyword-only arguments."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


MAX_CHUNK_BYTES = 1 << 22
"""Largest number of bytes that a batched implementation processes in one call: about the size of the CPU's cache."""


class ChunkResults(NamedTuple):
    """Results of several samples.

    Attributes:
        outputs: For each output, one item per sample. Items of skipped samples are ignored.
        skipped: Indices of samples that weren't processed. The caller must process these samples one by one.
    """

    outputs: tuple[Any, ...]
    skipped: Sequence[int] = ()


class EncodedImplementation(Protocol):
    """A batched implementation for encoded samples, for example image files."""

    def __call__(
        self,
        sources: Sequence[torch.Tensor | str | None],
        out: torch.Tensor | None,
        rngs: Sequence[Any] | None,
        values: Mapping[str, Sequence[Any]],
        buffer: SharedBuffer | None = None,
    ) -> ChunkResults:
        """Decode several samples.

        The method skips samples that it can't decode. The caller processes the skipped samples one by one, so that an
        error names the sample. The result for a decoded sample is a tensor, or `IN_PLACE` if the method has written the
        sample into `out`, or a pair of an offset in `buffer` and a shape.

        Args:
            sources: For each sample, the encoded bytes, a file's path, or None to skip the sample.
            out: Memory ``(N, ...)`` for results that have this shape; None if there is no memory.
            rngs: Random numbers of each sample; None if the operator isn't random.
            values: For each per-sample argument, one value per sample.
            buffer: Memory for the other results. For an image that the device will decode, the method stores the
                encoded bytes with ``buffer.share``.
        """
        ...


def truth(value: Any) -> bool:
    """Return the truth of a condition's value; a number is true if it isn't 0.

    Raises:
        RuntimeError: The value isn't a scalar.
    """
    if isinstance(value, list):
        raise RuntimeError(
            "Conditions inside `if` statements are restricted to scalar (0-d tensors) inputs, that are placed on CPU. "
            f"Got a {_depth(value)}-d input as a condition of the `if` statement. "
            "Index it, for example label[0] for the label of a reader."
        )
    return bool(value)


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        depth, value = depth + 1, value[0] if value else None
    return depth
