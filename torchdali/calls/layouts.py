"""Layouts and numbers of axes of an operator's inputs: check them, and assume those that are unset."""

from __future__ import annotations

from collections.abc import Sequence

from torchdali.declaration.registry import Operator
from torchdali.declaration.schema import Takes
from torchdali.tensors import TensorList
from torchdali.tensors._storage import SeparateSamples

__all__ = [
    "assume_layout",
    "channel_mistake",
    "check_layout",
    "fitting",
    "number_of_axes",
    "taken_layout",
    "taken_layouts",
]

_MOST_CHANNELS = 4  # largest number of channels of usual images


def check_layout(name: str, takes: Takes, layout: str, index: int) -> None:
    """Refuse a layout that an operator doesn't take.

    Raises:
        ValueError: as an error of the operator.
    """
    if layout and takes.layouts and layout not in takes.layouts:
        raise ValueError(
            f'operator {name!r}: the layout "{layout}" does not match any of the allowed layouts for input '
            f"{index}, {', '.join(takes.layouts)}"
        )


def assume_layout(name: str, takes: Takes, ndim: int) -> str:
    """Return the first layout of so many axes that an operator takes; "" if it takes any.

    Raises:
        ValueError: it takes none of so many.
    """
    for layout in takes.layouts:
        if len(layout) == ndim:
            return layout
    if takes.layouts:
        hint = "; the bytes of a file are decoded first, by fn.decoders.image" if ndim == 1 else ""
        raise ValueError(
            f"operator {name!r}: the number of dimensions {ndim} does not match any of the allowed layouts, "
            f"{', '.join(takes.layouts)}{hint}"
        )
    return ""


def taken_layout(declared: Operator, layout: str, ndim: int | None) -> str:
    """Return the layout from which the outputs' layouts follow, for a first input with this number of axes.

    An unset one is the first of that length that the operator takes.
    """
    inputs = declared.schema.inputs
    if layout or ndim is None or not inputs or not inputs[0].takes.names:
        return layout
    return next((each for each in inputs[0].takes.layouts if len(each) == ndim), "")


def taken_layouts(declared: Operator, inputs: Sequence[TensorList | None]) -> tuple[str, ...]:
    """Return the layouts of a batch of each input; see `taken_layout`."""
    layouts = ["" if v is None else v.layout() for v in inputs]
    first = inputs[0] if inputs else None
    if first is not None and not layouts[0] and declared.schema.inputs[0].takes.layouts:
        layouts[0] = taken_layout(declared, "", number_of_axes(first))
    return tuple(layouts)


def channel_mistake(declared: Operator, shape: Sequence[int]) -> str:
    """Explain the error if an operator takes channels for rows, or mixes them, without a layout; empty for others."""
    if len(shape) != 3 or not declared.schema.inputs:
        return ""
    takes = declared.schema.inputs[0].takes
    first = shape[0] in (1, 3, 4) and min(shape[1:]) > _MOST_CHANNELS
    last = shape[2] in (3, 4) and min(shape[:2]) > _MOST_CHANNELS
    of_samples = f"samples of the shape {tuple(shape)} without a layout"
    if takes.every_axis and (last or (first and shape[0] > 1)):
        layout = "CHW" if first else "HWC"
        return (
            f"{of_samples} are filtered along all three axes, that of the channels too, which mixes the colors. Say "
            f'where they come from which axis is which: layout="{layout}"'
        )
    if not first or next((each for each in takes.layouts if len(each) == 3), "") != "HWC":
        return ""
    return (
        f"{of_samples} are taken for HWC, images of {shape[0]} rows. If their channels come first, say so where they "
        'come from: layout="CHW"'
    )


def number_of_axes(batch: TensorList) -> int | None:
    """Return the number of axes of the samples, or None if there are none."""
    stored = batch.current_storage()
    if not isinstance(stored, SeparateSamples) or stored.arrays is not None:
        return batch.ndim()
    return next((sample.ndim for sample in batch.samples() if sample is not None), None)


def fitting(layout: str, ndim: int) -> str:
    """Return the layout; none if the operator turned out to change the number of axes."""
    return layout if len(layout) == ndim else ""
