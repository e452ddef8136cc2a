"""Check the layouts of an operator's inputs, and assume a layout if none is set."""

from __future__ import annotations

from collections.abc import Sequence

from torchdali.declaration.registry import Operator
from torchdali.declaration.schema import InputConstraints
from torchdali.tensors import TensorList
from torchdali.tensors._storage import SeparateSamples

__all__ = [
    "assume_layout",
    "channel_mistake",
    "check_layout",
    "matching_layout",
    "number_of_axes",
    "resolve_layout",
    "resolve_layouts",
]

_MAX_CHANNELS = 4  # largest number of channels of common images


def check_layout(name: str, constraints: InputConstraints, layout: str, index: int) -> None:
    """Raise ValueError if an operator doesn't accept a layout."""
    if layout and constraints.layouts and layout not in constraints.layouts:
        raise ValueError(
            f'operator {name!r}: the layout "{layout}" does not match any of the allowed layouts for input '
            f"{index}, {', '.join(constraints.layouts)}"
        )


def assume_layout(name: str, constraints: InputConstraints, ndim: int) -> str:
    """Return the first layout with `ndim` axes that an operator accepts; "" if the operator accepts any layout.

    Raises:
        ValueError: The operator accepts no layout with `ndim` axes.
    """
    for layout in constraints.layouts:
        if len(layout) == ndim:
            return layout
    if constraints.layouts:
        hint = "; decode the bytes of a file first, with fn.decoders.image" if ndim == 1 else ""
        raise ValueError(
            f"operator {name!r}: the number of dimensions {ndim} does not match any of the allowed layouts, "
            f"{', '.join(constraints.layouts)}{hint}"
        )
    return ""


def resolve_layout(declared: Operator, layout: str, ndim: int | None) -> str:
    """Return the first input's layout, on which the outputs' layouts depend.

    If the layout is unset, return the operator's first layout with the input's number of axes; "" if the operator has
    none.
    """
    inputs = declared.schema.inputs
    if layout or ndim is None or not inputs or not inputs[0].constraints.sets_layout:
        return layout
    return next((each for each in inputs[0].constraints.layouts if len(each) == ndim), "")


def resolve_layouts(declared: Operator, inputs: Sequence[TensorList | None]) -> tuple[str, ...]:
    """Return the layouts of all inputs. If the first input has no layout, assume a layout as in `resolve_layout`."""
    layouts = ["" if v is None else v.layout() for v in inputs]
    first = inputs[0] if inputs else None
    if first is not None and not layouts[0] and declared.schema.inputs[0].constraints.layouts:
        layouts[0] = resolve_layout(declared, "", number_of_axes(first))
    return tuple(layouts)


def channel_mistake(declared: Operator, shape: Sequence[int]) -> str:
    """Return a warning if an operator would confuse channels with rows or mix channels without a layout; else ""."""
    if len(shape) != 3 or not declared.schema.inputs:
        return ""
    constraints = declared.schema.inputs[0].constraints
    channels_first = shape[0] in (1, 3, 4) and min(shape[1:]) > _MAX_CHANNELS
    channels_last = shape[2] in (3, 4) and min(shape[:2]) > _MAX_CHANNELS
    subject = f"samples of the shape {tuple(shape)} without a layout"
    if constraints.every_axis and (channels_last or (channels_first and shape[0] > 1)):
        layout = "CHW" if channels_first else "HWC"
        return (
            f"{subject} are filtered along all three axes, including the channels, which mixes the colors. Name "
            f'the axes where the data enters the pipeline: layout="{layout}"'
        )
    if not channels_first or next((each for each in constraints.layouts if len(each) == 3), "") != "HWC":
        return ""
    return (
        f"{subject} are interpreted as HWC, images of {shape[0]} rows. If the channels come first, pass "
        'layout="CHW" where the data enters the pipeline'
    )


def number_of_axes(batch: TensorList) -> int | None:
    """Return the number of axes of the samples; None if no sample exists."""
    storage = batch.current_storage()
    if not isinstance(storage, SeparateSamples) or storage.arrays is not None:
        return batch.ndim()
    return next((sample.ndim for sample in batch.samples() if sample is not None), None)


def matching_layout(layout: str, ndim: int) -> str:
    """Return a layout if it has `ndim` axes; otherwise "", because the operator has changed the number of axes."""
    return layout if len(layout) == ndim else ""
