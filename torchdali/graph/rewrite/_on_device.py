"""Fuse operators on a device with each other or with the decoder before them.

The fused operators compute fewer pixels, or launch fewer kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from torchdali.codecs.engines import DEFAULT_SHARE, is_available
from torchdali.declaration.registry import registry
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.rewrite._nodes import (
    CHAINS,
    DECODERS,
    constants_of,
    copy_node,
    find_pairs,
    parts_of,
    rebuild,
    returns_rgb,
)
from torchdali.kernels.device.tables import has_kernels
from torchdali.tensors.dtypes import DALIInterpType

__all__ = ["decode_windows", "fuse_resizing", "set_shares", "share_decoding"]


def set_shares(graph: Graph, device: torch.device | None) -> Graph:
    """Set, for each "mixed" decoder, the fraction of its images that the device's hardware decoder decodes.

    Without a hardware decoder, the fraction is 0. A hardware decoder supports only one method of upsampling colors at a
    time, so the first "mixed" decoder in the graph determines the method. For decoders with the other method, the
    fraction is 0, and the CPU decodes their images.
    """
    mixed = [node for node in graph.nodes if node.operator.name in _SHAREABLE and node.device == "mixed"]
    if not mixed:
        return graph
    default = DEFAULT_SHARE if device is not None and is_available(device) else 0.0
    new: dict[DataNode, DataNode] = {}
    nodes, fancy = [], None
    for node in graph.nodes:
        copy = copy_node(node, new)
        if node in mixed:
            share = float(node.constants.get("hw_decoder_load", default)) if default and _returns_bytes(node) else 0.0
            upsampling = node.constants.get("jpeg_fancy_upsampling", True)
            fancy = upsampling if fancy is None and share else fancy
            share = share if upsampling == fancy else 0.0
            copy.constants = {**node.constants, "hw_decoder_load": share}
            copy.parts = parts_of(node)
        nodes.append(copy)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


_SHAREABLE = ("decoders.image", "decoders.image_random_crop")


def _returns_bytes(node: Node) -> bool:
    """Return whether a decoder returns uint8 RGB images, and has no per-sample arguments."""
    arguments = node.operator.arguments(node.constants)
    return arguments["dtype"] is torch.uint8 and arguments["output_type"].name == "RGB" and not node.per_sample


def share_decoding(graph: Graph) -> Graph:
    """Replace decoders by operators that use the hardware decoder, if `set_shares` has set a fraction above 0."""
    shared = [node for node in graph.nodes if node.operator.name == "decoders.image" and _is_shared(node)]
    return _replace_decoders(graph, {node: _ShareDecoder("_decode_share", (node,)) for node in shared})


class _ShareDecoder(NamedTuple):
    """The replacement of a decoder: an operator that sends a fraction of the images to the hardware decoder.

    Attributes:
        operator: Name of the new operator.
        originals: The nodes whose constants the operator uses.
        resize: A node that resizes the decoded images, if the new operator computes per-sample arguments for this node;
            otherwise None.
        resize_arguments: Names of the per-sample arguments for `resize`.
    """

    operator: str
    originals: tuple[Node, ...]
    resize: Node | None = None
    resize_arguments: tuple[str, ...] = ()


def _replace_decoders(graph: Graph, shares: Mapping[Node, _ShareDecoder]) -> Graph:
    """Replace decoders, and pass the per-sample arguments that the new operators compute to the resizes after them."""
    if not shares:
        return graph
    new: dict[DataNode, DataNode] = {}
    regions: dict[Node, dict[str, DataNode]] = {}
    nodes = []
    for node in graph.nodes:
        copy = copy_node(node, new)
        if node in shares:
            share = shares[node]
            copy.operator = registry[share.operator]
            accepted = copy.operator.schema.arguments
            constants = {k: v for each in share.originals for k, v in constants_of(each).items()}
            copy.constants = {k: v for k, v in constants.items() if k in accepted}
            copy.parts = tuple(part for each in share.originals for part in parts_of(each))
            resize_arguments = [
                DataNode(f"{copy.name}_{name}", "cpu", copy, i) for i, name in enumerate(share.resize_arguments, 1)
            ]
            copy.outputs = (*copy.outputs, *resize_arguments)
            if share.resize is not None:
                regions[share.resize] = dict(zip(share.resize_arguments, resize_arguments, strict=True))
        elif node in regions:
            if "size" in regions[node]:
                copy.constants = {k: v for k, v in node.constants.items() if k in _RESIZE_ARGUMENTS}
            copy.per_sample = regions[node]
            copy.parts = parts_of(node)
        nodes.append(copy)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _is_shared(node: Node) -> bool:
    return node.device == "mixed" and bool(node.constants.get("hw_decoder_load", 0.0) > 0)


def decode_windows(graph: Graph, device: torch.device | None) -> Graph:
    """Decode on the CPU only the region of an image that a resize or random crop on the device uses."""
    graph = _decode_regions(_decode_random_windows(graph))
    # On the CPU, one kernel resizes whole images and another one resizes regions, and their results differ.
    return graph if device is None or device.type == "cpu" else _decode_cropped(graph)


def fuse_resizing(graph: Graph, device: torch.device | None) -> Graph:
    """Fuse a resize with the crop, mirror and normalization after it, so that only the crop's region is resized.

    On the CPU, the pixels stay the same. On an accelerator, only resizes of decoded images are fused, and the pixels
    stay the same up to rounding.
    """
    pairs = find_pairs(graph, "resize", "crop_mirror_normalize", ("cpu", "cpu"))
    if device is not None and has_kernels(device):
        device_pairs = find_pairs(graph, "resize", "crop_mirror_normalize", ("gpu", "gpu"))
        pairs |= {n: r for n, r in device_pairs.items() if _can_fuse_resize(r) and _can_fuse_normalize(n)}
    return rebuild(graph, pairs, "_resize_crop_mirror_normalize") if pairs else graph


def _can_fuse_resize(resize: Node) -> bool:
    """Return whether the device's kernels can run a resize.

    The inputs must be decoded uint8 images, all outputs must have one size, and the kernels must support the filters.
    """
    edge = resize.inputs[0]
    producer = edge.source if edge is not None else None
    filters = {resize.constants.get(name) for name in ("interp_type", "mag_filter", "min_filter")}
    if producer is None or producer.device != "mixed" or DALIInterpType.INTERP_NN in filters:
        return False
    if producer.operator.has("shared") and "size" in resize.per_sample:  # `_decode_cropped` has changed this resize
        return True
    size = resize.constants.get("size", [0.0])
    return (
        (producer.operator.name in DECODERS | CHAINS or producer.operator.has("shared"))
        and producer.constants.get("dtype") in (None, torch.uint8)
        and not (resize.per_sample.keys() - {*_REGIONS} or {"dtype", "output_type"} & producer.per_sample.keys())
        and min(size) > 0
        and not {"max_size", "mode", "subpixel_scale"} & resize.constants.keys()
    )


def _can_fuse_normalize(last: Node) -> bool:
    """Return whether a `crop_mirror_normalize` returns floats, and crops the same region of all images."""
    arguments = last.operator.arguments(last.constants)
    return (
        last.per_sample.keys() <= {"mirror"}
        and arguments["dtype"] in (torch.float32, torch.float16)
        and arguments["output_layout"] in ("CHW", "HWC")
        and arguments["out_of_bounds_policy"] == "error"
        and not arguments["pad_output"]
    )


def _decode_cropped(graph: Graph) -> Graph:
    """Decode and resize only the region that the following crop keeps.

    The pixels are the same up to rounding.
    """
    decoders = find_pairs(graph, "decoders.image", "resize", ("mixed", "gpu"))
    crops = {
        resize: crop
        for name in ("crop", "crop_mirror_normalize")
        for crop, resize in find_pairs(graph, "resize", name, ("gpu", "gpu")).items()
        if resize in decoders and _has_constant_sizes(decoders[resize], resize, crop)
    }
    return _replace_decoders(graph, {
        decoders[resize]: _ShareDecoder("_decode_share", (decoders[resize], resize, crop), resize, ("size", *_REGIONS))
        for resize, crop in crops.items()
    })  # fmt: skip


_RESIZE_SIZES = {
    "max_size", "mode", "resize_longer", "resize_shorter", "resize_x", "resize_y", "size", "subpixel_scale",
}  # fmt: skip
_CROP_SIZES = {"crop", "crop_h", "crop_w"}
_CROP_POSITIONS = {"crop_d", "crop_pos_x", "crop_pos_y", "crop_pos_z", "rounding"}


def _has_constant_sizes(decoder: Node, resize: Node, crop: Node) -> bool:
    """Return whether a crop of constant size follows a linear resize of RGB images to a constant size."""
    return (
        returns_rgb(decoder)
        and not (decoder.per_sample or resize.per_sample or decoder.scope)
        and resize.constants.keys() <= _RESIZE_SIZES | {"antialias"}
        and not _CROP_SIZES.isdisjoint(crop.constants)
        and crop.per_sample.keys().isdisjoint(_CROP_SIZES | _CROP_POSITIONS)
    )


def _decode_random_windows(graph: Graph) -> Graph:
    """Move the cropping of random crops (`random_resized_crop`) from the device to the decoder on the CPU.

    The device then only resizes the cropped region, so fewer pixels are decoded and copied. The region stays the same.
    The pixels stay the same except in the outermost rows and columns, where `resize` is more exact than
    `random_resized_crop`. A crop that may read pixels outside its region isn't replaced.
    """
    pairs = find_pairs(graph, "decoders.image", "random_resized_crop", ("mixed", "gpu"))
    pairs = {crop: decoder for crop, decoder in pairs.items() if _can_crop_in_decoder(crop, decoder)}
    if not pairs:
        return graph
    crops = {decoder: crop for crop, decoder in pairs.items()}
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        copy = copy_node(node, new)
        if node in crops:
            crop = crops[node]
            copy.operator = registry["decoders.image_random_crop"]
            window = {k: v for k, v in constants_of(crop).items() if k in _CROP_ARGUMENTS}
            accepted = copy.operator.schema.arguments
            copy.constants = {k: v for k, v in {**constants_of(node), **window}.items() if k in accepted}
            copy.stream = crop.stream
        elif node in pairs:
            copy.operator = registry["resize"]
            constants = {k: v for k, v in constants_of(node).items() if k in _RESIZE_ARGUMENTS}
            height, width = node.constants["size"] * (3 - len(node.constants["size"]))
            copy.constants = {**constants, "size": [float(height), float(width)]}
        copy.parts = parts_of(node)
        nodes.append(copy)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _decode_regions(graph: Graph) -> Graph:
    """Let the hardware decoder decode whole images, and let the resize after the decoder crop the random region."""
    pairs = find_pairs(graph, "decoders.image_random_crop", "resize", ("mixed", "gpu"))
    shares = {
        decoder: _ShareDecoder("_decode_random_share", (decoder,), resize, _REGIONS)
        for resize, decoder in pairs.items()
        if _is_shared(decoder) and _has_constant_size(resize)
    }
    return _replace_decoders(graph, shares)


def _has_constant_size(resize: Node) -> bool:
    """Return whether a linear resize returns uint8 images of one constant size."""
    size = resize.constants.get("size", [0.0])
    return resize.constants.keys() <= {"size", "antialias"} and not resize.per_sample and min(size) > 0


_REGIONS = ("roi_start", "roi_end")
_RESIZE_ARGUMENTS = {"antialias", "dtype"}
_RANGE_ARGUMENTS = "random_area", "random_aspect_ratio"
_CROP_ARGUMENTS = {"num_attempts", *_RANGE_ARGUMENTS, "seed", "size"}
_MIN_SIDE = 32  # pixels per side; for smaller sizes, `random_resized_crop` reads pixels outside the cropped region


def _can_crop_in_decoder(crop: Node, decoder: Node) -> bool:
    """Return whether a random crop of RGB images resizes linearly and reads only pixels of the cropped region."""
    size = crop.constants.get("size", ())
    return (
        returns_rgb(decoder)
        and not (crop.per_sample or decoder.per_sample)
        and crop.constants.keys() <= _RESIZE_ARGUMENTS | _CROP_ARGUMENTS
        and 1 <= len(size) <= 2
        and min(size) >= _MIN_SIDE
        and crop.constants.get("dtype") in (None, torch.uint8)
        and all(map(_is_range, (crop.constants.get(name) for name in _RANGE_ARGUMENTS)))
    )


def _is_range(values: Any) -> bool:
    """Return whether an argument is None or a range of positive numbers. The crop raises an error for other values."""
    return values is None or (len(values) == 2 and 0 < values[0] <= values[1])
