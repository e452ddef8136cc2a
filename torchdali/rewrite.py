"""Replace operators of a graph by one that does their work together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any

import numpy as np
import torch

from torchdali.codecs._nvimgcodec import available
from torchdali.graph import Condition, DataNode, Graph, Node
from torchdali.kernels.native import library
from torchdali.plan import edges
from torchdali.registry import registry
from torchdali.types import DALIImageType

__all__ = [
    "decode_windows", "fuse_decoding", "fuse_native", "fuse_resizing", "merge_identical", "share_decoding",
]  # fmt: skip


def merge_identical(graph: Graph) -> Graph:
    """Compute once what several nodes of a graph would compute alike.

    Nodes are alike if they have the same operator, device, inputs, arguments and conditions. Kept apart are readers
    and sources, nodes that the user named, what has a side effect or a memory of its own, calls of Python functions,
    and random operators without a seed of their own.
    """
    known: dict[Hashable, Node] = {}
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        value = _only_value(node, new)
        if value is not None:
            new[node.outputs[0]] = value
            continue
        key = _key(node, new)
        same = None if key is None else known.get(key)
        if same is None:
            made = _copy(node, new)
            nodes.append(made)
            if key is not None:
                known[key] = made
        else:
            new.update(zip(node.outputs, same.outputs, strict=True))
    if len(nodes) == len(graph.nodes):
        return graph
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _only_value(node: Node, new: Mapping[DataNode, DataNode]) -> DataNode | None:
    """Return the value that both branches of an `if` turn out to have; None if `node` is not the end of one."""
    values = {id(new[e]): new[e] for e in node.inputs if e is not None}
    is_end = node.operator.name == "_merge" and len(node.inputs) == 2
    return next(iter(values.values())) if is_end and len(values) == 1 else None


def _key(node: Node, new: Mapping[DataNode, DataNode]) -> Hashable | None:
    """Return what nodes that compute alike have in common; None for one to keep apart."""
    declared = node.operator
    named_by_user = not node.name.startswith("__")
    if (
        declared.kind not in ("sample", "batch")
        or declared.options.make
        or node.preserve
        or named_by_user
    ):
        return None
    if declared.schema.random and node.constants.get("seed", -1) == -1:
        return None
    try:
        constants = frozenset((k, _comparable(v)) for k, v in node.constants.items())
    except TypeError:
        return None
    inputs = tuple(None if e is None else id(new[e]) for e in node.inputs)
    per_sample = frozenset((k, id(new[e])) for k, e in node.per_sample.items())
    scope = tuple((id(new[c.edge]), c.value) for c in node.scope)
    return declared, node.device, len(node.outputs), inputs, constants, per_sample, scope


def _comparable(value: Any) -> Hashable:
    """Return a key that values have in common if they are equal, type and all; TypeError for an object."""
    kind = type(value)
    if isinstance(value, (list, tuple)):
        return kind, tuple(map(_comparable, value))
    if isinstance(value, torch.Tensor):
        value = value.numpy(force=True)
    if isinstance(value, (np.ndarray, np.generic)):
        return kind, str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, float):
        return kind, value.hex()  # tells -0.0 from 0.0
    if value is None or isinstance(value, (bool, int, str, bytes, Enum, torch.dtype)):
        return kind, value
    raise TypeError(f"{kind.__name__} objects are not compared")


def fuse_decoding(graph: Graph, scaled: bool) -> Graph:
    """Fuse image decoders into the random crop after them, where nothing else needs the whole image.

    Of a JPEG only the rows down to the end of the crop are decoded; the pixels are the same, and the crop draws
    the same random numbers as before. If `scaled`, large photos are decoded at the smallest scale that
    still has the pixels the crop needs.
    """
    given = {"scaled": True} if scaled else {}
    return _fuse(
        graph, "decoders.image", "random_resized_crop", "_decode_random_resized_crop", given
    )


def fuse_resizing(graph: Graph) -> Graph:
    """Fuse a resize into the crop, mirror and normalization after it, where nothing else needs its result.

    Of the resized image only what the crop keeps is computed, and of the JPEG only the rows decoded that it needs,
    if an image decoder comes before; the pixels are the same.
    """
    resizing = "_resize_crop_mirror_normalize"
    graph = _fuse(graph, "resize", "crop_mirror_normalize", resizing)
    return _fuse(graph, "decoders.image", resizing, "_decode_resize_crop_mirror_normalize")


def fuse_native(graph: Graph) -> Graph:
    """Fuse what is one call of the native path, where that is used; pixels are at most a level off.

    What one operator does of it, or two that the other functions fuse, calls the native path by itself.
    """
    if library() is None:
        return graph
    for first, second, both in _NATIVE:
        graph = _fuse(graph, first, second, both)
    return _decode_natively(graph)


def _decode_natively(graph: Graph) -> Graph:
    """Replace decoders of RGB bytes, which nothing was fused into, by one that calls the native path."""
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        made = _copy(node, new)
        given = {k: v for k, v in _constants(node).items() if k != "output_type"}
        is_rgb = node.constants.get("output_type", DALIImageType.RGB) == DALIImageType.RGB
        is_usual = is_rgb and node.device == "cpu" and not {*given, *node.per_sample} & _OTHERWISE
        if node.operator.name == "decoders.image" and is_usual:
            made.operator, made.constants = registry["_decode_image"], given
            made.parts = _parts(node)
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


_OTHERWISE = {"dtype", "output_type", "save_attrs"}  # given per sample, or at all


_NATIVE = (
    (
        "_decode_random_resized_crop",
        "crop_mirror_normalize",
        "_decode_random_resized_crop_normalize",
    ),
    (
        "decoders.image_random_crop",
        "_resize_crop_mirror_normalize",
        "_decode_random_crop_resize_normalize",
    ),
    ("decoders.image", "resize", "_decode_resize"),
    ("decoders.image", "crop_mirror_normalize", "_decode_crop_mirror_normalize"),
)


def share_decoding(graph: Graph, device: torch.device | None) -> Graph:
    """Let a decoder on the device decode a share of the images that are decoded for it, where there is one."""
    shared = {
        node
        for node in graph.nodes
        if node.operator.name == "decoders.image" and node.device == "mixed" and _is_shareable(node)
    }
    if device is None or not shared or not available(device):
        return graph
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        made = _copy(node, new)
        if node in shared:
            made.operator = registry["_decode_share"]
            made.parts = _parts(node)
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _is_shareable(node: Node) -> bool:
    """Return whether a decoder makes RGB bytes, and may leave some to the device."""
    given = node.operator.arguments(node.constants)
    usual = given["dtype"] is torch.uint8 and given["output_type"].name == "RGB"
    return usual and not node.per_sample and given["hw_decoder_load"] > 0


def decode_windows(graph: Graph, device: torch.device | None) -> Graph:
    """Decode on the CPU only what a resize or a random crop on the device looks at of an image."""
    graph = _decode_random_windows(graph)
    # On the CPU whole images are resized by other kernels than regions, to other values.
    return graph if device is None or device.type == "cpu" else _decode_seen(graph)


def _decode_seen(graph: Graph) -> Graph:
    """Decode only what a resize sees of which the crop after it keeps a part; resize to that part.

    The pixels are the same, but where rounding decides.
    """
    decoders = _pairs(graph, "decoders.image", "resize", ("mixed", "gpu"))
    crops = {
        resize: crop
        for name in ("crop", "crop_mirror_normalize")
        for crop, resize in _pairs(graph, "resize", name, ("gpu", "gpu")).items()
        if resize in decoders and _sees_a_part(decoders[resize], resize, crop)
    }
    if not crops:
        return graph
    resizes = {decoders[resize]: resize for resize in crops}
    new: dict[DataNode, DataNode] = {}
    regions: dict[Node, dict[str, DataNode]] = {}
    nodes = []
    for node in graph.nodes:
        made = _copy(node, new)
        if node in resizes:
            resize = resizes[node]
            crop = crops[resize]
            made.operator = registry["_decode_seen"]
            takes, given = made.operator.schema.arguments, (node, resize, crop)
            found = {k: v for each in given for k, v in _constants(each).items()}
            made.constants = {k: v for k, v in found.items() if k in takes}
            names = "size", "roi_start", "roi_end"
            numbers = [DataNode(f"{made.name}_{n}", "cpu", made, i) for i, n in enumerate(names, 1)]
            made.outputs = (*made.outputs, *numbers)
            regions[resize] = dict(zip(names, numbers, strict=True))
            made.parts = tuple(part for each in given for part in _parts(each))
        elif node in regions:
            made.constants = {k: v for k, v in node.constants.items() if k in _OF_THE_RESIZE}
            made.per_sample = regions[node]
            made.parts = _parts(node)
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


_SIZES = {
    "max_size", "mode", "resize_longer", "resize_shorter", "resize_x", "resize_y", "size", "subpixel_scale",
}  # fmt: skip
_WINDOWS = {"crop", "crop_h", "crop_w"}
_PLACES = {"crop_d", "crop_pos_x", "crop_pos_y", "crop_pos_z", "rounding"}


def _sees_a_part(decoder: Node, resize: Node, crop: Node) -> bool:
    """Return whether the sizes of a linear resize of RGB bytes, and the window of a crop, are constants."""
    is_rgb = decoder.constants.get("output_type", DALIImageType.RGB) == DALIImageType.RGB
    return (
        is_rgb
        and not (decoder.per_sample or resize.per_sample or decoder.scope)
        and resize.constants.keys() <= _SIZES | {"antialias"}
        and not _WINDOWS.isdisjoint(crop.constants)
        and crop.per_sample.keys().isdisjoint(_WINDOWS | _PLACES)
    )


def _decode_random_windows(graph: Graph) -> Graph:
    """Decode only the window, on the CPU, that a random crop on the device takes of an image, and resize it there.

    The window is the same, and so are the pixels, but for the outermost lines, which `resize` computes more exactly.
    Where the crop looks beyond its window, nothing is replaced.
    """
    pairs = _pairs(graph, "decoders.image", "random_resized_crop", ("mixed", "gpu"))
    pairs = {crop: decoder for crop, decoder in pairs.items() if _takes_the_window(crop, decoder)}
    if not pairs:
        return graph
    crops = {decoder: crop for crop, decoder in pairs.items()}
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        made = _copy(node, new)
        if node in crops:
            crop = crops[node]
            made.operator = registry["decoders.image_random_crop"]
            window = {k: v for k, v in _constants(crop).items() if k in _OF_THE_WINDOW}
            takes = made.operator.schema.arguments
            made.constants = {k: v for k, v in {**_constants(node), **window}.items() if k in takes}
            made.stream = crop.stream
        elif node in pairs:
            made.operator = registry["resize"]
            given = {k: v for k, v in _constants(node).items() if k in _OF_THE_RESIZE}
            height, width = node.constants["size"] * (3 - len(node.constants["size"]))
            made.constants = {**given, "size": [float(height), float(width)]}
        made.parts = _parts(node)
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


_OF_THE_RESIZE = {"antialias", "dtype"}
_RANGES = "random_area", "random_aspect_ratio"
_OF_THE_WINDOW = {"num_attempts", *_RANGES, "seed", "size"}
_LEAST = 32  # pixels of a side; below, `random_resized_crop` looks beyond its window


def _takes_the_window(crop: Node, decoder: Node) -> bool:
    """Return whether a random crop resizes its window alone, linearly, of RGB bytes."""
    size = crop.constants.get("size", ())
    is_rgb = decoder.constants.get("output_type", DALIImageType.RGB) == DALIImageType.RGB
    return (
        is_rgb
        and not (crop.per_sample or decoder.per_sample)
        and crop.constants.keys() <= _OF_THE_RESIZE | _OF_THE_WINDOW
        and 1 <= len(size) <= 2
        and min(size) >= _LEAST
        and crop.constants.get("dtype") in (None, torch.uint8)
        and all(map(_is_range, (crop.constants.get(name) for name in _RANGES)))
    )


def _is_range(values: Any) -> bool:
    """Return whether an argument is None or a range of positive numbers; the crop itself has the errors for others."""
    return values is None or (len(values) == 2 and 0 < values[0] <= values[1])


def _fuse(
    graph: Graph, first: str, second: str, both: str, given: Mapping[str, Any] | None = None
) -> Graph:
    pairs = _pairs(graph, first, second, ("cpu", "cpu"))
    return _rebuild(graph, pairs, both, given or {}) if pairs else graph


def _pairs(graph: Graph, first: str, second: str, devices: tuple[str, str]) -> dict[Node, Node]:
    """Find nodes of two operators, the second of which is all that uses the first."""
    uses = Counter(edge for node in graph.nodes for edge in edges(node))
    uses.update(graph.outputs)
    return {
        node: before
        for node in graph.nodes
        if node.operator.name == second
        and (before := _input_of(node, first, devices)) is not None
        and uses[before.outputs[0]] == 1
        and len(before.outputs) == 1
        and _scope(before) == _scope(node)
        and not _arguments(before) & (_arguments(node) | _OWN)
    }


_OWN = {
    "dtype",
    "save_attrs",
}  # would mean something else, or nothing, in the operator that does both


def _arguments(node: Node) -> set[str]:
    return {*node.constants, *node.per_sample}


def _input_of(node: Node, name: str, devices: tuple[str, str]) -> Node | None:
    """Return the operator before a node, if it has this name and they run on these devices."""
    edge = node.inputs[0]
    before = edge.source if edge is not None else None
    if before is None or before.operator.name != name:
        return None
    return before if (before.device, node.device) == devices else None


def _scope(node: Node) -> tuple[tuple[int, bool | int], ...]:
    """Return the conditions of a node so that equal ones of two nodes are equal."""
    return tuple((id(condition.edge), condition.value) for condition in node.scope)


def _constants(node: Node) -> dict[str, Any]:
    """Return the constants of a node, without a seed that it has no use for."""
    unused = () if node.operator.schema.random else ("seed",)
    return {k: v for k, v in node.constants.items() if k not in unused}


def _parts(node: Node) -> tuple[Node, ...]:
    return node.parts or (node,)


def _rebuild(
    graph: Graph, pairs: Mapping[Node, Node], name: str, given: Mapping[str, Any]
) -> Graph:
    """Copy a graph with each pair as one node."""
    dropped = set(pairs.values())
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        if node in dropped:
            continue
        before = pairs.get(node)
        made = _copy(node, new, before)
        if before:
            made.operator = registry[name]
            made.constants = {**_constants(before), **_constants(node), **given}
            made.parts = (*_parts(before), *_parts(node))
            made.stream = before.stream if before.operator.schema.random else node.stream
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _copy(node: Node, new: dict[DataNode, DataNode], before: Node | None = None) -> Node:
    """Copy a node into a graph whose edges are in `new`, and add its own; with the inputs of the one before it."""
    inputs = (before or node).inputs
    per_sample = {**(before.per_sample if before else {}), **node.per_sample}
    made = Node(
        node.operator,
        node.name,
        node.device,
        tuple(None if e is None else new[e] for e in inputs),
        node.constants,
        {k: new[e] for k, e in per_sample.items()},
        node.lines,
        tuple(Condition(new[c.edge], c.value) for c in node.scope),
        node.preserve,
        node.stream,
    )
    made.outputs = tuple(
        DataNode(o.name, o.device, made, o.index, o.ndim, o.dtype, o.layout) for o in node.outputs
    )
    made.parts = node.parts
    new.update(zip(node.outputs, made.outputs, strict=True))
    return made
