"""Operators of the CPU that are faster together: decoders, crops, resizes and normalizations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from torchdali.declaration.registry import registry
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import edges
from torchdali.graph.rewrite._nodes import (
    NATIVE_DECODERS,
    OF_THE_CROP,
    OWN,
    arguments_of,
    constants_of,
    copy_node,
    fuse,
    is_rgb_decoder,
    pairs_of,
    parts_of,
    rebuild,
    scope_of,
)
from torchdali.kernels.native import library

__all__ = ["finish_together", "fuse_decoding", "fuse_native", "fuse_resizing"]


def fuse_decoding(graph: Graph, scaled: bool) -> Graph:
    """Fuse image decoders into the random crop after them, where nothing else needs the whole image.

    Of a JPEG only the rows down to the end of the crop are decoded; the pixels are the same, and the crop draws
    the same random numbers as before. If `scaled`, large photos are decoded at the smallest scale that
    still has the pixels the crop needs.
    """
    given = {"scaled": True} if scaled else {}
    for decoder in ("decoders.image", NATIVE_DECODERS["decoders.image"]):  # the second with a flip
        graph = fuse(graph, decoder, "random_resized_crop", "_decode_random_resized_crop", given)
    return graph


def fuse_resizing(graph: Graph) -> Graph:
    """Fuse a resize into the crop, mirror and normalization after it, where nothing else needs its result.

    Of the resized image only what the crop keeps is computed, and of the JPEG only the rows decoded that it needs,
    if an image decoder comes before; the pixels are the same.
    """
    resizing = "_resize_crop_mirror_normalize"
    graph = fuse(graph, "resize", "crop_mirror_normalize", resizing)
    return fuse(graph, "decoders.image", resizing, "_decode_resize_crop_mirror_normalize")


def fuse_native(graph: Graph, exact: bool) -> Graph:
    """Fuse what is one call of the fast path, where that is used; pixels are at most a level off.

    What one operator does of it, or two that the other functions fuse, calls the fast path by itself. Left out if
    results are to be `exact`: `resize_crop_mirror`, which rounds the places of pixels in its own way.
    """
    if library() is None:
        return graph
    graph = fuse(
        graph, "_decode_random_resized_crop", "crop_mirror_normalize", "_decode_random_resized_crop_normalize"
    )  # fmt: skip
    graph = _decode_natively(graph)
    for decoder in NATIVE_DECODERS.values():
        graph = fuse(graph, decoder, "resize", decoder, {"resizes": True})
        pairs = pairs_of(graph, decoder, "resize_crop_mirror", ("cpu", "cpu"))
        pairs = {node: before for node, before in pairs.items() if not exact and _mirrors_columns_alone(node)}
        graph = rebuild(graph, pairs, decoder, {"resizes": True, "normalizes": True, **_BYTES}) if pairs else graph
        graph = fuse(graph, decoder, "crop_mirror_normalize", decoder, {"normalizes": True})
        given = {"resizes": True, "normalizes": True}
        graph = fuse(graph, decoder, "_resize_crop_mirror_normalize", decoder, given)
    return graph


def _mirrors_columns_alone(node: Node) -> bool:
    """Return whether a `resize_crop_mirror` makes bytes, and never reverses the order of the rows."""
    mirror = node.per_sample.get("mirror")
    source = None if mirror is None else mirror.source
    by_coin = source is not None and source.operator.name == "random.coin_flip"
    return not arguments_of(node) & OWN and (by_coin or (mirror is None and node.constants.get("mirror", 0) in (0, 1)))


def _decode_natively(graph: Graph) -> Graph:
    """Replace decoders of RGB bytes by operators that call the fast path."""
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        made = copy_node(node, new)
        if is_rgb_decoder(node):
            made.operator = registry[NATIVE_DECODERS[node.operator.name]]
            made.constants = {k: v for k, v in constants_of(node).items() if k != "output_type"}
            made.parts = parts_of(node)
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def finish_together(graph: Graph, exact: bool) -> Graph:
    """Make `crop`, `flip` and `normalize` of decoded images parts of one `crop_mirror_normalize`, for the fast path.

    A `flip` between decoder and resize becomes a part of the decoder, unless results are to be `exact`: the filter adds
    up in the other order. Nothing is changed but what begins with a decoder
    of RGB bytes, of whose result nothing else has a use.
    """
    if library() is None:
        return graph
    uses = Counter(edge for node in graph.nodes for edge in edges(node))
    uses.update(graph.outputs)
    following = {edge: node for node in graph.nodes for edge in node.inputs if edge is not None and uses[edge] == 1}
    new: dict[DataNode, DataNode] = {}
    nodes: dict[Node, None] = {}
    images: dict[DataNode, Node] = {}  # edges of bytes, and what makes them
    for node in graph.nodes:
        edge = node.inputs[0] if node.inputs else None
        before = images.get(edge) if edge is not None and uses[edge] == 1 else None
        if before is not None and not _together(node, before, new):
            before = None
        resizes = not exact and _is_resize(following.get(node.outputs[0]) if node.outputs else None)
        made = None if before is None else _joined(node, before, new, resizes)
        if made is not None and before is not None and made.inputs[0] is not before.outputs[0]:
            nodes.pop(before)
        made = made or copy_node(node, new)
        nodes[made] = None
        if is_rgb_decoder(made) or (before is not None and _keeps_bytes(made)):
            images[node.outputs[0]] = made
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _together(node: Node, before: Node, new: Mapping[DataNode, DataNode]) -> bool:
    """Return whether a node runs on the CPU, where and when the copied one before it does."""
    scope = tuple((id(new[condition.edge]), condition.value) for condition in node.scope)
    return node.device == before.device == "cpu" and scope == scope_of(before)


_OF_THE_FINISH = {"dtype", "mean", "mirror", "output_layout", "scale", "shift", "std"}
_BYTES = {"dtype": torch.uint8, "output_layout": "HWC"}


def _keeps_bytes(node: Node) -> bool:
    """Return whether an operator makes images of bytes, channels last, of such images."""
    name = node.operator.name
    if name in NATIVE_DECODERS.values():
        return True
    if name == "crop_mirror_normalize":
        usual = OF_THE_CROP | {"mirror", "seed", *_BYTES}
        return node.constants.items() >= _BYTES.items() and arguments_of(node) <= usual
    return name in ("resize", "random_resized_crop") and not arguments_of(node) & OWN


_Finish = tuple[dict[str, Any], dict[str, DataNode]]
"""Constants and per-sample arguments of `crop_mirror_normalize`."""


def _finishing(node: Node) -> _Finish | None:
    """Return what a node is as `crop_mirror_normalize`, or None."""
    name, given = node.operator.name, constants_of(node)
    per_sample = dict(node.per_sample)
    if name == "crop" and arguments_of(node) <= OF_THE_CROP | {"seed"}:
        return {**given, **_BYTES}, per_sample
    if name == "flip" and not per_sample.keys() - {"horizontal"}:
        if given.pop("vertical", 0) or given.keys() - {"horizontal", "depthwise"}:
            return None
        if "horizontal" in per_sample:
            return dict(_BYTES), {"mirror": per_sample["horizontal"]}
        return {**_BYTES, "mirror": given.get("horizontal", 1)}, {}
    if name == "normalize" and not per_sample:
        found = _normalizing(given)
        return None if found is None else (found, {})
    usual = OF_THE_CROP | _OF_THE_FINISH
    if name == "crop_mirror_normalize" and given.keys() <= usual and not per_sample.keys() - OF_THE_CROP - {"mirror"}:
        return given, per_sample
    return None


def _normalizing(given: dict[str, Any]) -> dict[str, Any] | None:
    """Return what `normalize` by given numbers, of each channel or of all, is as `crop_mirror_normalize`; or None."""
    if given.keys() - {"axes", "axis_names", "dtype", "epsilon", "mean", "scale", "shift", "stddev"}:
        return None
    if "mean" not in given or "stddev" not in given or given.get("dtype") not in _NORMALIZED:
        return None
    mean, deviation = (np.asarray(given[name], np.float64) for name in ("mean", "stddev"))
    of_channels = (
        given.get("axes") in ([0, 1], (0, 1))
        or given.get("axis_names") == "HW"
        or not given.keys() & {"axes", "axis_names"}  # taken from the shape (1, 1, 3)
    )
    for values in (mean, deviation):
        if values.size != 1 and not (of_channels and values.shape == (1, 1, 3)):
            return None
    divisor = np.sqrt(deviation**2 + given.get("epsilon", 0.0))
    if not (divisor > 0).all():
        return None
    return {
        "dtype": given.get("dtype", torch.float32), "output_layout": "HWC", "mean": mean.ravel().tolist(),
        "std": divisor.ravel().tolist(), "scale": given.get("scale", 1.0), "shift": given.get("shift", 0.0),
    }  # fmt: skip


_NORMALIZED = (None, torch.float32, torch.float16, torch.uint8, torch.int8)


def _is_resize(node: Node | None) -> bool:
    return node is not None and node.operator.name in ("resize", "random_resized_crop")


def _joined(node: Node, before: Node, new: dict[DataNode, DataNode], resizes: bool) -> Node | None:
    """Copy a node as what it is together with the copied one before it, or as `crop_mirror_normalize`; or None.

    Args:
        resizes: A resize comes next.
    """
    if node.operator.name == "crop" and before.operator.name == "decoders.image":
        return _cropped(node, before, new)
    finishing = _finishing(node)
    if finishing is None:
        return None
    constants, edges_by_name = finishing
    if node.operator.name == "flip" and resizes and is_rgb_decoder(before):
        return _flipped(node, before, new, finishing)
    per_sample = {name: new[edge] for name, edge in edges_by_name.items()}
    parts, joins = parts_of(node), False
    inputs: tuple[DataNode | None, ...] = tuple(before.outputs)
    if before.operator.name == "crop_mirror_normalize":
        earlier, later = arguments_of(before), {*constants, *per_sample}
        crops_twice = earlier & OF_THE_CROP and later & OF_THE_CROP
        turned_before = "mirror" in earlier and later & (OF_THE_CROP | {"mirror"})
        if not crops_twice and not turned_before and _fits_colors(constants):
            kept = {k: v for k, v in before.constants.items() if k not in _BYTES}
            constants, per_sample = {**kept, **constants}, {**before.per_sample, **per_sample}
            inputs, joins = before.inputs, True
            parts = before.parts if earlier & OF_THE_CROP else parts  # what may fail is the crop
    if not joins and node.operator.name == "crop_mirror_normalize":
        return None
    made = copy_node(node, new)
    made.operator, made.inputs, made.parts = registry["crop_mirror_normalize"], inputs, parts
    made.constants, made.per_sample = constants, per_sample
    return made


def _flipped(node: Node, decoder: Node, new: dict[DataNode, DataNode], finishing: _Finish) -> Node:
    """Copy a flip of the columns as one operator with the copied decoder before it."""
    made = copy_node(node, new)
    made.operator, made.inputs = registry[NATIVE_DECODERS[decoder.operator.name]], decoder.inputs
    constants, edges_by_name = finishing
    given = {k: v for k, v in constants_of(decoder).items() if k != "output_type"}
    made.constants = {**given, "flipped": constants.get("mirror", 0)}
    made.per_sample = dict(decoder.per_sample)
    if "mirror" in edges_by_name:
        made.per_sample["flipped"] = new[edges_by_name["mirror"]]
        del made.constants["flipped"]
    made.parts, made.stream = (*parts_of(decoder), *parts_of(node)), decoder.stream
    return made


def _fits_colors(constants: Mapping[str, Any]) -> bool:
    """Return whether the numbers of a `crop_mirror_normalize` are those of three channels."""
    values = (constants.get(name, [0.0]) for name in ("mean", "std"))
    return all(isinstance(each, list) and len(each) in (1, 3) for each in values)


def _cropped(node: Node, decoder: Node, new: dict[DataNode, DataNode]) -> Node | None:
    """Copy a crop as one operator with the copied decoder before it, or return None."""
    if not arguments_of(node) <= OF_THE_CROP | {"seed"}:
        return None
    made = copy_node(node, new)
    made.operator, made.inputs = registry["_decode_crop"], decoder.inputs
    takes = made.operator.schema.arguments
    given = {**constants_of(decoder), **constants_of(node), "cropped": True}
    made.constants = {k: v for k, v in given.items() if k in takes}
    made.per_sample = {**decoder.per_sample, **made.per_sample}
    made.parts = (*parts_of(decoder), *parts_of(node))
    return made
