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
from torchdali.kernels.device.tables import has_kernels
from torchdali.kernels.native import library
from torchdali.plan import edges
from torchdali.registry import registry
from torchdali.types import DALIImageType, DALIInterpType

__all__ = [
    "decode_windows", "finish_together", "fuse_decoding", "fuse_native", "fuse_on_device", "fuse_resizing",
    "merge_identical", "share_decoding",
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
    graph = _decode_natively(graph, _WINDOW_DECODERS)
    for first, second, both in _NATIVE:
        graph = _fuse(graph, first, second, both)
    for decoder in _WINDOW_DECODERS.values():
        graph = _fuse(graph, decoder, "resize", decoder, {"resizes": True})
        graph = _fuse(graph, decoder, "crop_mirror_normalize", decoder, {"normalizes": True})
        given = {"resizes": True, "normalizes": True}
        graph = _fuse(graph, decoder, "_resize_crop_mirror_normalize", decoder, given)
    return _decode_natively(graph, {"decoders.image": "_decode_image"})


def _decode_natively(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Replace decoders of RGB bytes by operators that call the native path."""
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        made = _copy(node, new)
        if node.operator.name in names and _is_rgb_decoder(node):
            made.operator = registry[names[node.operator.name]]
            made.constants = {k: v for k, v in _constants(node).items() if k != "output_type"}
            made.parts = _parts(node)
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _is_rgb_decoder(node: Node) -> bool:
    """Return whether a node decodes images to RGB bytes on the CPU."""
    is_rgb = node.constants.get("output_type", DALIImageType.RGB) == DALIImageType.RGB
    of_bytes = "dtype" not in node.constants and not {"dtype", "output_type"} & node.per_sample.keys()
    return node.operator.name in _DECODERS and node.device == "cpu" and is_rgb and of_bytes


_WINDOW_DECODERS = {
    "decoders.image_crop": "_decode_crop",
    "decoders.image_random_crop": "_decode_random_crop",
    "decoders.image_slice": "_decode_slice",
}
_DECODERS = {"decoders.image", *_WINDOW_DECODERS}


_NATIVE = (
    (
        "_decode_random_resized_crop",
        "crop_mirror_normalize",
        "_decode_random_resized_crop_normalize",
    ),
    ("decoders.image", "resize", "_decode_resize"),
    ("decoders.image", "crop_mirror_normalize", "_decode_crop_mirror_normalize"),
)


def finish_together(graph: Graph) -> Graph:
    """Make `crop`, `flip` and `normalize` of decoded images parts of one `crop_mirror_normalize`, for the native path.

    Nothing is changed but what begins with a decoder of RGB bytes, of whose result nothing else has a use.
    """
    if library() is None:
        return graph
    uses = Counter(edge for node in graph.nodes for edge in edges(node))
    uses.update(graph.outputs)
    new: dict[DataNode, DataNode] = {}
    nodes: dict[Node, None] = {}
    images: dict[DataNode, Node] = {}  # edges of bytes, and what makes them
    for node in graph.nodes:
        edge = node.inputs[0] if node.inputs else None
        before = images.get(edge) if edge is not None and uses[edge] == 1 else None
        if before is not None and not _together(node, before, new):
            before = None
        made = None if before is None else _joined(node, before, new)
        if made is not None and before is not None and made.inputs[0] is not before.outputs[0]:
            nodes.pop(before)
        made = made or _copy(node, new)
        nodes[made] = None
        if _is_rgb_decoder(made) or (before is not None and _keeps_bytes(made)):
            images[node.outputs[0]] = made
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _together(node: Node, before: Node, new: Mapping[DataNode, DataNode]) -> bool:
    """Return whether a node runs on the CPU, where and when the copied one before it does."""
    scope = tuple((id(new[condition.edge]), condition.value) for condition in node.scope)
    return node.device == before.device == "cpu" and scope == _scope(before)


_OF_THE_CROP = {"crop", "crop_d", "crop_h", "crop_w", "crop_pos_x", "crop_pos_y", "crop_pos_z", "rounding"}
_OF_THE_FINISH = {"dtype", "mean", "mirror", "output_layout", "scale", "shift", "std"}
_BYTES = {"dtype": torch.uint8, "output_layout": "HWC"}


def _keeps_bytes(node: Node) -> bool:
    """Return whether an operator makes images of bytes, channels last, of such images."""
    name = node.operator.name
    if name == "_decode_crop":
        return True
    if name == "crop_mirror_normalize":
        usual = _OF_THE_CROP | {"mirror", "seed", *_BYTES}
        return node.constants.items() >= _BYTES.items() and _arguments(node) <= usual
    return name in ("resize", "random_resized_crop") and not _arguments(node) & _OWN


_Finish = tuple[dict[str, Any], dict[str, DataNode]]
"""Constants and per-sample arguments of `crop_mirror_normalize`."""


def _finishing(node: Node) -> _Finish | None:
    """Return what a node is as `crop_mirror_normalize`, or None."""
    name, given = node.operator.name, _constants(node)
    per_sample = dict(node.per_sample)
    if name == "crop" and _arguments(node) <= _OF_THE_CROP | {"seed"}:
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
    usual = _OF_THE_CROP | _OF_THE_FINISH
    if name == "crop_mirror_normalize" and given.keys() <= usual and not per_sample.keys() - _OF_THE_CROP - {"mirror"}:
        return given, per_sample
    return None


def _normalizing(given: dict[str, Any]) -> dict[str, Any] | None:
    """Return what `normalize` by given numbers, of each channel or of all, is as `crop_mirror_normalize`; or None."""
    if given.keys() - {"axes", "axis_names", "dtype", "epsilon", "mean", "scale", "shift", "stddev"}:
        return None
    if "mean" not in given or "stddev" not in given or given.get("dtype") not in _NORMALIZED:
        return None
    mean, deviation = (np.asarray(given[name], np.float64) for name in ("mean", "stddev"))
    of_channels = given.get("axes") in ([0, 1], (0, 1)) or given.get("axis_names") == "HW"
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


def _joined(node: Node, before: Node, new: dict[DataNode, DataNode]) -> Node | None:
    """Copy a node as what it is together with the copied one before it, or as `crop_mirror_normalize`; or None."""
    if node.operator.name == "crop" and before.operator.name == "decoders.image":
        return _cropped(node, before, new)
    finishing = _finishing(node)
    if finishing is None:
        return None
    constants, edges_by_name = finishing
    per_sample = {name: new[edge] for name, edge in edges_by_name.items()}
    parts, joins = _parts(node), False
    inputs: tuple[DataNode | None, ...] = tuple(before.outputs)
    if before.operator.name == "crop_mirror_normalize":
        earlier, later = _arguments(before), {*constants, *per_sample}
        crops_twice = earlier & _OF_THE_CROP and later & _OF_THE_CROP
        turned_before = "mirror" in earlier and later & (_OF_THE_CROP | {"mirror"})
        if not crops_twice and not turned_before and _fits_colors(constants):
            kept = {k: v for k, v in before.constants.items() if k not in _BYTES}
            constants, per_sample = {**kept, **constants}, {**before.per_sample, **per_sample}
            inputs, joins = before.inputs, True
            parts = before.parts if earlier & _OF_THE_CROP else parts  # what may fail is the crop
    if not joins and node.operator.name == "crop_mirror_normalize":
        return None
    made = _copy(node, new)
    made.operator, made.inputs, made.parts = registry["crop_mirror_normalize"], inputs, parts
    made.constants, made.per_sample = constants, per_sample
    return made


def _fits_colors(constants: Mapping[str, Any]) -> bool:
    """Return whether the numbers of a `crop_mirror_normalize` are those of three channels."""
    values = (constants.get(name, [0.0]) for name in ("mean", "std"))
    return all(isinstance(each, list) and len(each) in (1, 3) for each in values)


def _cropped(node: Node, decoder: Node, new: dict[DataNode, DataNode]) -> Node | None:
    """Copy a crop as one operator with the copied decoder before it, or return None."""
    if not _arguments(node) <= _OF_THE_CROP | {"seed"}:
        return None
    made = _copy(node, new)
    made.operator, made.inputs = registry["_decode_crop"], decoder.inputs
    takes = made.operator.schema.arguments
    given = {**_constants(decoder), **_constants(node), "cropped": True}
    made.constants = {k: v for k, v in given.items() if k in takes}
    made.per_sample = {**decoder.per_sample, **made.per_sample}
    made.parts = (*_parts(decoder), *_parts(node))
    return made


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


def fuse_on_device(graph: Graph, device: torch.device | None) -> Graph:
    """Fuse a resize of decoded images into the normalization after it, where the kernels for batches run.

    The pixels are the same, but where rounding decides.
    """
    if device is None or not has_kernels(device):
        return graph
    pairs = _pairs(graph, "resize", "crop_mirror_normalize", ("gpu", "gpu"))
    pairs = {n: r for n, r in pairs.items() if _resizes_to_one_size(r) and _normalizes_alike(n)}
    return _rebuild(graph, pairs, "_resize_crop_mirror_normalize", {}) if pairs else graph


def _resizes_to_one_size(resize: Node) -> bool:
    """Return whether a resize takes bytes from a decoder and gives images of one size, by filters that kernels have."""
    edge = resize.inputs[0]
    before = edge.source if edge is not None else None
    filters = {resize.constants.get(name) for name in ("interp_type", "mag_filter", "min_filter")}
    if before is None or before.device != "mixed" or DALIInterpType.INTERP_NN in filters:
        return False
    if before.operator.name == "_decode_seen":  # which tells the size of what a crop shows
        return True
    size = resize.constants.get("size", [0.0])
    return (
        before.operator.name in _DECODERS | {"_decode_share"}
        and before.constants.get("dtype") in (None, torch.uint8)
        and not (resize.per_sample or {"dtype", "output_type"} & before.per_sample.keys())
        and min(size) > 0
        and not {"max_size", "mode", "subpixel_scale"} & resize.constants.keys()
    )


def _normalizes_alike(last: Node) -> bool:
    """Return whether a `crop_mirror_normalize` cuts the same window out of images of one size, to floats."""
    given = last.operator.arguments(last.constants)
    return (
        last.per_sample.keys() <= {"mirror"}
        and given["dtype"] in (torch.float32, torch.float16)
        and given["output_layout"] in ("CHW", "HWC")
        and given["out_of_bounds_policy"] == "error"
        and not given["pad_output"]
    )


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
        and not (second == "resize" and _arguments(node) & _OWN)
        and not (first == "_decode_crop" and _arguments(node) & _OF_THE_CROP)
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
