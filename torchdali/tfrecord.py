"""Features of TFRecord files: the values that `fn.readers.tfrecord` extracts.

Examples: ``FixedLenFeature((), string, "")`` extracts bytes, such as an encoded image. ``FixedLenFeature([1], int64,
-1)`` extracts one number. ``VarLenFeature(float32, 0.0)`` extracts all numbers of the feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, overload

__all__ = ["Feature", "Features", "FixedLenFeature", "VarLenFeature", "float32", "int64", "string"]

int64: int = 0
string: int = 1
float32: int = 2
"""The dtypes of features."""

_NAMES = {int64: "int64", string: "string", float32: "float32"}
_DEFAULTS: dict[int, tuple[type, ...]] = {int64: (int,), string: (str,), float32: (float,)}


class Feature(NamedTuple):
    """A feature to extract, created by `FixedLenFeature` or `VarLenFeature`.

    Attributes:
        fixed: True if the shape is the same in all records.
        shape: Shape of the feature if `fixed`; otherwise the shape of a single value.
        dtype: `int64`, `string` or `float32`.
        default: Value for records without the feature.
    """

    fixed: bool
    shape: tuple[int, ...]
    dtype: int
    default: Any

    @property
    def kind(self) -> str:
        """Name of the dtype."""
        return _NAMES[self.dtype]


def _feature(fixed: bool, shape: Any, dtype: Any, default: Any) -> Feature:
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(f"the shape of a feature must be a list of numbers, got {shape!r}")
    if dtype not in _NAMES:
        raise TypeError(f"the type of a feature must be tfrecord.int64, string or float32, got {dtype!r}")
    if not isinstance(default, _DEFAULTS[dtype]):
        raise RuntimeError(
            f"invalid type for default value: must be of {_NAMES[dtype]}, got {default!r}, a {type(default).__name__}"
        )
    return Feature(fixed, tuple(int(extent) for extent in shape), int(dtype), default)


def FixedLenFeature(shape: Sequence[int], dtype: int, default_value: Any, /) -> Feature:
    """Extract a feature that has the same shape in all records.

    Args:
        shape: Shape of the output. ``()`` for a single number, or for a string, which is returned as 1-D bytes.
        dtype: `string`, `int64` or `float32`.
        default_value: Value for records without the feature. A number is returned as a scalar, regardless of `shape`.

    Raises:
        TypeError: `shape` is not a sequence, or `dtype` is not a feature dtype.
        RuntimeError: The type of `default_value` doesn't match `dtype`.
    """
    return _feature(True, shape, dtype, default_value)


@overload
def VarLenFeature(dtype: int, default_value: Any, /) -> Feature: ...
@overload
def VarLenFeature(partial_shape: Sequence[int], dtype: int, default_value: Any, /) -> Feature: ...
def VarLenFeature(*arguments: Any) -> Feature:
    """Extract a feature whose number of values differs between records.

    Args:
        partial_shape: Shape of a single value, for example ``[4]`` for boxes; ``[]`` by default.
        dtype: `int64` or `float32`. `string` is accepted, but a record that has the feature then raises an error.
        default_value: Must match `dtype`. For records without the feature, the output is an empty tensor, or this
            value if `dtype` is `string`.

    Raises:
        TypeError: The number of arguments is wrong, `partial_shape` is not a sequence, or `dtype` is not a feature
            dtype.
        RuntimeError: The type of `default_value` doesn't match `dtype`.
    """
    if len(arguments) == 2:
        return _feature(False, (), *arguments)
    if len(arguments) == 3:
        return _feature(False, *arguments)
    raise TypeError("VarLenFeature takes (dtype, default_value) or (partial_shape, dtype, default_value)")


class Features(dict[str, Feature]):
    """A dictionary of a reader's features, with the features' names as keys."""

    @classmethod
    def from_argument(cls, value: Any) -> Features:
        """Check a reader's `features` argument.

        In saved pipelines, the values are lists in place of `Feature` objects.

        Raises:
            TypeError: The argument is not a dictionary of features.
        """
        if not isinstance(value, Mapping):
            raise TypeError("features must be a dictionary of names and tfrecord.Feature")
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
