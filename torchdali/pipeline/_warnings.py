"""Warn about graphs that probably don't compute the intended result."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torchdali.calls.layouts import channel_mistake
from torchdali.graph.nodes import DataNode, Graph, Node

__all__ = ["scale_mistake", "warn_of_likely_mistakes"]

_ANY_AXES = frozenset(("ConvertImageDtype", "Identity", "ToDtype"))
"""Transforms of torchvision for which the order of the axes doesn't matter."""


def warn_of_likely_mistakes(graph: Graph) -> None:
    """Warn about operators whose results are probably wrong. The warning points to the user's line."""
    for node in graph.nodes:
        text = _RULES.get(node.operator.name, _check_nothing)(node) or _check_channels(node) or _check_bytes(node)
        if text and node.lines:
            line = node.lines[0]
            text = f"{node.operator.name}: {text}"
            warnings.warn_explicit(text, UserWarning, line.file, line.line)
    for edge in graph.outputs:
        if edge.source is not None and edge.source.lines and (text := _check_text(edge)):
            line = edge.source.lines[0]
            warnings.warn_explicit(text, UserWarning, line.file, line.line)


def _check_text(edge: DataNode) -> str:
    """Return a warning if an output of a Python dataset is a short text, probably a label; otherwise ""."""
    value = _find_dataset_value(edge)
    if not isinstance(value, str) or len(value.split()) > _MAX_WORDS or {".", "/", "\\"} & set(value):
        return ""
    return (
        f"readers.dataset: the output {value!r} is text, so the output is its bytes, as uint8. For labels, return "
        f"integers from the dataset: names.index(label)"
    )


_MAX_WORDS = 3  # longer texts aren't taken for labels


def _find_dataset_value(edge: DataNode) -> Any:
    """Return the value of an edge in the first sample, if the edge is an output of a Python dataset; otherwise None."""
    source = edge.source
    if source is None or source.operator.name != "readers.dataset":
        return None
    dataset = source.constants["dataset"]
    return dataset.leaves(source.constants.get("columns"))[edge.index].value(dataset.first)


def _check_nothing(node: Node) -> str:
    return ""


def _check_channels(node: Node) -> str:
    """Return a warning if images of a Python dataset have channels first, but no layout; otherwise ""."""
    edge = node.inputs[0] if node.inputs else None
    if edge is None or edge.source is None or edge.source.constants.get("layouts"):
        return ""
    return channel_mistake(node.operator, getattr(_find_dataset_value(edge), "shape", ()))


def _check_bytes(node: Node) -> str:
    """Return a warning if an operator on pixels receives the encoded bytes of files; otherwise "".

    Most operators on pixels reject these bytes. The other operators would process the bytes as pixels.
    """
    edge = node.inputs[0] if node.inputs else None
    if not node.operator.has("pixels") or edge is None or edge.source is None or edge.index:
        return ""
    if not edge.source.operator.has("encoded"):
        return ""
    return f"its input is bytes of files from {edge.source.operator.name}; decode them first, with fn.decoders.image"


def _check_scales(node: Node) -> str:
    """Return a warning if the mean and standard deviation of uint8 images are on the scale 0 to 1; otherwise ""."""
    constants, path = node.constants, _find_decoder_path(node)
    if path is None or any("dtype" in each.constants for each in path) or {"scale", "shift"} & constants.keys():
        return ""
    return scale_mistake(constants.get("mean"), constants.get("std"))


def scale_mistake(mean: Any, std: Any) -> str:
    """Return a warning if `mean` and `std` are between 0 and 1, which is wrong for uint8 images; otherwise ""."""
    if not (_is_in_unit_range(mean) and _is_in_unit_range(std)):
        return ""
    return f"mean={mean} and std={std} are on the scale 0 to 1, but pixels are bytes, 0 to 255: multiply both by 255"


def _check_axes(node: Node) -> str:
    """Return a warning if transforms of torchvision receive decoded images, which have channels last; otherwise ""."""
    function, path = node.constants["function"], _find_decoder_path(node)
    steps = getattr(function, "transforms", [function])
    names = [type(step).__name__ for step in steps]
    if (
        path is None
        or any(each.operator.has("view") for each in path)
        or not all(type(step).__module__.startswith("torchvision.transforms") for step in steps)
        or "Lambda" in names
        or _ANY_AXES.issuperset(names)
    ):
        return ""
    return (
        f"{type(function).__name__} of torchvision expects (C, H, W), but these images are (H, W, C): call it after "
        'crop_mirror_normalize(images, output_layout="CHW"), or after transpose(images, perm=[2, 0, 1])'
    )


_RULES = {"crop_mirror_normalize": _check_scales, "torch_python_function": _check_axes}


def _is_in_unit_range(numbers: Any) -> bool:
    values = numbers if isinstance(numbers, Sequence) else [numbers]
    return all(isinstance(v, (int, float)) and 0 < v < 1 for v in values)


def _find_decoder_path(node: Node) -> list[Node] | None:
    """Return the nodes from the image decoder to a node; None without an image decoder.

    The result is also None if an operator after the decoder changes the range of the values.
    """
    path: list[Node] = []
    while node.inputs and node.inputs[0] is not None and node.inputs[0].source is not None:
        node = node.inputs[0].source
        path.append(node)
        if node.operator.name.startswith("decoders.image"):
            return path
        if not node.operator.has("levels", "bytes"):
            return None
    return None
