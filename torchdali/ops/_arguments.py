"""Functions for arguments that have a value per axis or select axes, and classes of sentinel defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Unset", "UnsetFlag", "UnsetFloat", "UnsetInt", "as_list", "axes_by_name", "indices", "match_axes"]


class Unset(str):
    """Sentinel default of a text argument. Unlike a `str`, it shows that the user didn't pass the argument."""

    __slots__ = ()


def as_list(value: Any) -> Sequence[Any]:
    """Return a list or tuple unchanged, and any other value as a list of one value."""
    return value if isinstance(value, (list, tuple)) else [value]


def match_axes(name: str, values: Any, count: int) -> list[Any]:
    """Return one value per axis: the values, or a single value repeated.

    Args:
        name: Name of the argument, for the error message.
        values: One value, or a list of values.

    Raises:
        RuntimeError: the number of values is neither 1 nor the number of axes.
    """
    items = list(as_list(values))
    if len(items) == 1:
        return items * count
    if len(items) != count:
        raise RuntimeError(f'argument "{name}" expected shape {count} but got {len(items)} values for {count} axes')
    return items


def indices(axes: Sequence[int], ndim: int) -> list[int]:
    """Convert axes to non-negative indices; return all axes if `axes` is empty.

    Raises:
        RuntimeError: an axis doesn't exist, or occurs twice.
    """
    if not axes:
        return list(range(ndim))
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise RuntimeError(f"axis {axis} out of range. Expected range is [{-ndim}, {ndim - 1}] for a {ndim}D input")
    result = [int(axis) % ndim for axis in axes]
    if len(set(result)) < len(result):
        raise RuntimeError(f"an axis occurs more than once in axes={list(axes)}")
    return result


def axes_by_name(names: str, layout: str, ndim: int) -> list[int]:
    """Return the indices of named axes in a layout; all axes if `names` is empty.

    Raises:
        RuntimeError: a name isn't in the layout.
    """
    missing = [name for name in names if name not in layout]
    if missing:
        raise RuntimeError(f"axis {missing[0]!r} isn't in the layout {layout!r} of the {ndim}D input")
    return [layout.index(name) for name in names] if names else list(range(ndim))


class UnsetInt(int):
    """Sentinel default of an integer argument; see `Unset`."""

    __slots__ = ()


class UnsetFloat(float):
    """Sentinel default of a float argument; see `Unset`."""

    __slots__ = ()


class UnsetFlag(int):
    """Sentinel default of a bool argument; see `Unset`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(bool(self))
