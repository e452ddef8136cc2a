"""Indexing of pipeline nodes, such as ``node[0, :, 1:n, newaxis("C")]``.

Positions in an index are constants, or nodes with one value per sample (``n`` in this example). An index is recorded as
text in which ``n0``, ``n1`` and so on represent the per-sample positions; the example becomes
``subscript(node, index="0, :, 1:n0, +C", n0=n)``.
"""

from __future__ import annotations

import functools
import operator as op
from collections.abc import Callable, Sequence
from dataclasses import make_dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias

from torch import Tensor

from torchdali import types
from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.registry import define_expression, lookup
from torchdali.declaration.schema import Arguments, Data, Layout, PerSample, shares
from torchdali.errors import batch_level
from torchdali.graph.nodes import DataNode, NewAxis
from torchdali.tensors import TensorList

__all__: list[str] = []

_MAX_POSITIONS = 16  # greatest number of positions that are passed per sample

PerSampleIndices = make_dataclass(
    "PerSampleIndices", [(f"n{i}", PerSample[int] | None, None) for i in range(_MAX_POSITIONS)]
)

Position: TypeAlias = "int | str | None"
"""Position in an axis: a number, the name of a per-sample argument such as "n0", or None for an omitted bound."""


class ElementItem(NamedTuple):
    """Index of one element of an axis; the axis is removed."""

    position: Position


class RangeItem(NamedTuple):
    """Range of an axis; negative positions count from the axis's end."""

    start: Position
    stop: Position
    step: Position


class NewAxisItem(NamedTuple):
    """A new axis of extent 1; the name is "" for an unnamed axis."""

    name: str


class EllipsisItem(NamedTuple):
    """All elements of all remaining axes: ``...``."""


Item: TypeAlias = "ElementItem | RangeItem | NewAxisItem | EllipsisItem"
_FULL_RANGE = RangeItem(None, None, None)


# ---------------------------------------------------------------- recording


@define_expression("subscript")
def _record(data: Any, index: Any) -> Any:
    """Record the expression ``data[index]`` as an operator of the pipeline.

    Raises:
        TypeError: the index has an unsupported type.
        ValueError: only some of the new axes have a name, a name isn't one character, or too many positions are passed
            per sample.
        IndexError: the index contains several ``...``.
    """
    positions: dict[str, Any] = {}
    entries = index if isinstance(index, tuple) else (index,)
    items = [_as_item(entry, positions) for entry in entries]
    names = [item.name for item in items if isinstance(item, NewAxisItem)]
    if any(names) and not all(names):
        raise ValueError("pass a name for all new axes or for none")
    if sum(isinstance(item, EllipsisItem) for item in items) > 1:
        raise IndexError("an index can have only one `...`")
    if not items:
        return data
    return lookup("_subscript")(data, index=_format_index(items), **positions)


def _as_item(entry: Any, positions: dict[str, Any]) -> Item:
    if isinstance(entry, NewAxis):
        return NewAxisItem(_check_axis_name(entry.name))
    if entry is Ellipsis:
        return EllipsisItem()
    if entry is None:
        return _FULL_RANGE
    if isinstance(entry, slice):
        return RangeItem(*[_as_position(p, int, positions) for p in (entry.start, entry.stop, entry.step)])
    return ElementItem(_as_position(entry, op.index, positions))


def _check_axis_name(name: str | None) -> str:
    if name is None:
        return ""
    if not isinstance(name, str):
        raise TypeError(f"the name of an axis must be a character, got {type(name).__name__}")
    if len(name) != 1:
        raise ValueError(f"the name of an axis must be one character, got {name!r}")
    return name


def _as_position(entry: Any, convert: Callable[[Any], int], positions: dict[str, Any]) -> Position:
    if entry is None:
        return None
    if isinstance(entry, (DataNode, TensorList)):
        if len(positions) == _MAX_POSITIONS:
            raise ValueError(f"an index can have at most {_MAX_POSITIONS} per-sample positions")
        positions[name := f"n{len(positions)}"] = entry
        return name
    try:
        return int(entry) if isinstance(entry, types.ScalarConstant) else convert(entry)
    except (TypeError, ValueError):
        raise TypeError(f"an index must be an integer, a range, newaxis or a node, got {entry!r}") from None


# ---------------------------------------------------------------- as text


def _format_index(items: Sequence[Item]) -> str:
    return ", ".join(map(_format_item, items))


def _format_item(item: Item) -> str:
    if isinstance(item, EllipsisItem):
        return "..."
    if isinstance(item, NewAxisItem):
        return f"+{item.name}"
    if isinstance(item, ElementItem):
        return str(item.position)
    start, stop, step = ("" if p is None else str(p) for p in item)
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


@functools.lru_cache(maxsize=1024)
def _parse_index(index: str) -> tuple[Item, ...]:
    return tuple(map(_parse_item, index.split(", ")))


def _parse_item(text: str) -> Item:
    if text == "...":
        return EllipsisItem()
    if text.startswith("+"):
        return NewAxisItem(text[1:])
    if ":" not in text:
        return ElementItem(_parse_position(text))
    positions = [_parse_position(p) for p in text.split(":")]
    return RangeItem(*positions, *[None] * (3 - len(positions)))


def _parse_position(text: str) -> Position:
    return (text if text.startswith("n") else int(text)) if text else None


# ---------------------------------------------------------------- running


@functools.lru_cache(maxsize=1024)
def _expand_index(index: str, ndim: int) -> list[Item]:
    """Parse an index for data with `ndim` axes, and replace ``...`` by ranges over whole axes.

    Raises:
        RuntimeError: there are more indices than axes.
    """
    items = _parse_index(index)
    used = sum(isinstance(item, (ElementItem, RangeItem)) for item in items)
    if used > ndim:
        raise batch_level(RuntimeError(f"too many indices: {used} indices, not enough dimensions ({ndim})"))
    expanded: list[Item] = []
    for item in items:
        expanded += [_FULL_RANGE] * (ndim - used) if isinstance(item, EllipsisItem) else [item]
    return expanded


def _layout(layouts: tuple[str, ...], arguments: Any) -> str:
    layout, index = layouts[0], arguments["index"]
    names = [item.name for item in _parse_index(index) if isinstance(item, NewAxisItem)]
    if not layout or not all(names):
        return "".join(names)
    axes = iter(layout)
    result = ""
    for item in _expand_index(index, len(layout)):
        name = item.name if isinstance(item, NewAxisItem) else next(axes)
        result += "" if isinstance(item, ElementItem) else name
    return result + "".join(axes)


@operator(name="_subscript", title="subscript", layout=_layout, marks=("view",))
def subscript(
    data: Data,
    /,
    *,
    index: str,
    layout: Layout,
    **positions: Annotated[Any, shares(PerSampleIndices)],
) -> Data:
    """Select elements and ranges along the axes.

    Args:
        data: Data of any shape and dtype.
        index: The index as text; see the module's docstring.
        positions: The positions that are passed per sample.

    Raises:
        RuntimeError: an index is outside of its axis, or isn't an integer scalar; there are more indices than axes; a
            step is 0; or new axes are named in data without a layout.
    """
    return _subscript(data, index, positions, layout, first=0)


@chunk(subscript)
def _subscript_batch(data: Tensor, a: Arguments) -> Tensor:
    return _subscript(data, a.index, {}, a.layout, first=1)


def _subscript(data: Tensor, index: str, positions: dict[str, Any], layout: str, first: int) -> Tensor:
    """Apply an index to the data's axes, starting with axis `first`."""
    axis = first
    for item in _expand_index(index, data.ndim - first):
        if isinstance(item, ElementItem):
            data = _select_element(data, axis, _resolve_position(item.position, positions))
        elif isinstance(item, NewAxisItem):
            if item.name and not layout and data.ndim > axis:
                raise batch_level(RuntimeError("to name new axes, the data must have a layout"))
            data, axis = data.unsqueeze(axis), axis + 1
        elif isinstance(item, RangeItem):
            if item != _FULL_RANGE:
                data = _select_range(data, axis, *[_resolve_position(p, positions) for p in item])
            axis += 1
    return data


def _resolve_position(position: Position, positions: dict[str, Any]) -> Any:
    if not isinstance(position, str):
        return position
    number = positions[position]
    if type(number) is not int:
        got = "an array" if isinstance(number, list) else repr(number)
        raise batch_level(RuntimeError(f"a per-sample index must be an integer without axes, got {got}"))
    return number


def _select_element(data: Tensor, axis: int, index: int) -> Tensor:
    extent = data.shape[axis]
    if not -extent <= index < extent:
        raise RuntimeError(f"index {index} is out of range for an axis of {extent} elements")
    return data.select(axis, index)


def _select_range(data: Tensor, axis: int, start: Any, stop: Any, step: Any) -> Tensor:
    if step == 0:
        raise batch_level(RuntimeError("step cannot be zero in a range"))
    chosen = range(data.shape[axis])[slice(start, stop, step)]
    if not chosen:
        return data.narrow(axis, 0, 0)
    if chosen.step == 1:
        return data.narrow(axis, chosen[0], len(chosen))
    leading = (slice(None),) * axis
    if chosen.step > 0:
        return data[(*leading, slice(chosen[0], chosen[-1] + 1, chosen.step))]
    return data[(*leading, slice(chosen[-1], chosen[0] + 1, -chosen.step))].flip(axis)
