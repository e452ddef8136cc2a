"""Features of TFRecord files: the values that `fn.readers.tfrecord` extracts from each record.

``FixedLenFeature((), string, "")`` is a file as bytes, ``FixedLenFeature([1], int64, -1)`` a number,
``VarLenFeature(float32, 0.0)`` as many as the record has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, overload

__all__ = ["Feature", "Features", "FixedLenFeature", "VarLenFeature", "float32", "int64", "string"]

int64: int = 0
string: int = 1
float32: int = 2
"""The types of features."""

_NAMES = {int64: "int64", string: "string", float32: "float32"}
_DEFAULTS: dict[int, tuple[type, ...]] = {int64: (int,), string: (str,), float32: (float,)}


class Feature(NamedTuple):
    """A feature to extract; made by `FixedLenFeature` and `VarLenFeature`.

    Attributes:
        fixed: The shape is the same in all records.
        shape: All of it if fixed, otherwise the shape of one of many values.
        dtype: `int64`, `string` or `float32`.
        default: For records without the feature.
    """

    fixed: bool
    shape: tuple[int, ...]
    dtype: int
    default: Any

    @property
    def kind(self) -> str:
        """Name of the type."""
        return _NAMES[self.dtype]


def _feature(fixed: bool, shape: Any, dtype: Any, default: Any) -> Feature:
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(f"the shape of a feature is a list of numbers, not {shape!r}")
    if dtype not in _NAMES:
        raise TypeError(f"the type of a feature is tfrecord.int64, string or float32, not {dtype!r}")
    if not isinstance(default, _DEFAULTS[dtype]):
        raise RuntimeError(
            f"invalid type for default value: {default!r} is a {type(default).__name__}, "
            f"and the feature of {_NAMES[dtype]}"
        )
    return Feature(fixed, tuple(int(extent) for extent in shape), int(dtype), default)


def FixedLenFeature(shape: Sequence[int], dtype: int, default_value: Any, /) -> Feature:
    """Extract a feature of one shape in all records.

    Args:
        shape: ``()`` for a string, which is delivered as 1-D bytes, or for a number.
        dtype: `string`, `int64` or `float32`.
        default_value: For records that do not have it; it comes as a scalar.

    Raises:
        TypeError: shape or type are something else.
        RuntimeError: the default is not of the type.
    """
    return _feature(True, shape, dtype, default_value)


@overload
def VarLenFeature(dtype: int, default_value: Any, /) -> Feature: ...
@overload
def VarLenFeature(partial_shape: Sequence[int], dtype: int, default_value: Any, /) -> Feature: ...
def VarLenFeature(*arguments: Any) -> Feature:
    """Extract a feature with more or fewer values per record.

    Args:
        partial_shape: Shape of one of the values, for example ``[4]`` for boxes; ``[]`` by default.
        dtype: `string`, `int64` or `float32`.
        default_value: For records that do not have it; it comes as a scalar.

    Raises:
        TypeError: another number of arguments, or shape or type are something else.
        RuntimeError: the default is not of the type.
    """
    if len(arguments) == 2:
        return _feature(False, (), *arguments)
    if len(arguments) == 3:
        return _feature(False, *arguments)
    raise TypeError("VarLenFeature takes (dtype, default_value) or (partial_shape, dtype, default_value)")


class Features(dict[str, Feature]):
    """The features of a reader by their names."""

    @classmethod
    def from_argument(cls, value: Any) -> Features:
        """Check the arguments of a reader; saved pipelines hold lists in place of `Feature`s.

        Raises:
            TypeError: no dictionary of features.
        """
        if not isinstance(value, Mapping):
            raise TypeError("features is a dictionary of names and tfrecord.Feature")
        return cls({name: _check_feature(name, feature) for name, feature in value.items()})


def _check_feature(name: str, value: Any) -> Feature:
    if isinstance(value, Feature):
        return value
    if isinstance(value, list) and len(value) == len(Feature._fields):
        fixed, shape, dtype, default = value
        return Feature(fixed, tuple(shape), dtype, default)
    raise TypeError(
        f'Expected `torchdali.tfrecord.Feature` for the "{name}", but got {type(value)}. Use '
        "`torchdali.tfrecord.FixedLenFeature` or `torchdali.tfrecord.VarLenFeature` to define the features to extract."
    )
