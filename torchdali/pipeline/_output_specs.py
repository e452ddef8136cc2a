"""Declared dtype, number of dimensions and layout of a pipeline's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchdali.tensors import TensorList
from torchdali.types import NO_TYPE, DALIDataType

__all__ = ["OutputSpecs"]


@dataclass(frozen=True)
class OutputSpecs:
    """The declared dtype, number of dimensions and layout of a pipeline's outputs.

    Each field is one value for all outputs, a list with one value per output, or None for no check.

    Raises:
        TypeError: A declaration has the wrong type.
        ValueError: A declaration is ``NO_TYPE``, or a negative number of dimensions.
    """

    dtype: Any = None
    ndim: Any = None
    layout: Any = None

    def __post_init__(self) -> None:
        _check("output_dtype", self.dtype, DALIDataType, "a types.DALIDataType")
        _check("output_ndim", self.ndim, int, "an int")
        _check("output_layout", self.layout, str, "a string")
        for dtype in _values(self.dtype):
            if dtype is NO_TYPE:
                raise ValueError("output_dtype cannot be types.NO_TYPE; omit it, or pass None")
        for ndim in _values(self.ndim):
            if ndim is not None and ndim < 0:
                raise ValueError(f"output_ndim must be non-negative, got {ndim}")

    @property
    def is_declared(self) -> bool:
        """True if at least one property is declared."""
        return any(value is not None for value in (self.dtype, self.ndim, self.layout))

    def per_output(self, count: int) -> list[tuple[DALIDataType | None, int | None, str | None]]:
        """Return a tuple of dtype, number of dimensions and layout for each output.

        Raises:
            RuntimeError: A list's length isn't the number of outputs.
        """
        columns = [_spread(value, count) for value in (self.dtype, self.ndim, self.layout)]
        if any(len(column) != count for column in columns):
            raise RuntimeError(
                f"Lengths of output_dtype={self.dtype}, output_ndim={self.ndim}, output_layout={self.layout} and of "
                f"the {count} outputs do not match: pass one value for all outputs, or a list with one per output"
            )
        return list(zip(*columns, strict=True))

    def check(self, outputs: Sequence[TensorList]) -> None:
        """Raise RuntimeError if an output doesn't match its declaration."""
        for i, (output, spec) in enumerate(zip(outputs, self.per_output(len(outputs)), strict=True)):
            dtype, ndim, layout = spec
            if dtype is not None and output.dtype != dtype:
                _refuse(i, "Data type", dtype.name, output.dtype.name)
            if ndim is not None and len(output) and output.ndim() != ndim:
                _refuse(i, "Number of dimensions", ndim, output.ndim())
            if layout and output.layout() != layout:
                _refuse(i, "Layout", layout, output.layout())


def _check(name: str, value: Any, kind: type, expected: str) -> None:
    for item in _values(value):
        if item is not None and not isinstance(item, kind):
            raise TypeError(f"{name} must be either {expected}, a list of these, or None; found {item!r}")


def _values(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _spread(value: Any, count: int) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value] * count


def _refuse(index: int, property_name: str, spec: object, value: object) -> None:
    raise RuntimeError(
        f"{property_name} in the output_idx={index} does not match. Expected: {spec}. Received: {value}."
    )
