"""More of what `benchmarks.operators` measures: boxes, masks, points, random numbers, shapes and sequences.

Left out is what makes a view or says what is known without looking at the data (reinterpret, reshape, squeeze,
expand_dims, per_frame, get_property, constant), and what reads or writes files.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .operator_cases import Api, Call, Case, plain

__all__ = ["CASES", "EXPRESSIONS"]

EXPRESSIONS = ("arithmetic", "math", "shape")
"""Cases that are no function of `fn`."""

_SSD = {
    "aspect_ratio": [0.5, 2.0], "thresholds": [0, 0.1, 0.3, 0.5, 0.7, 0.9], "scaling": [0.3, 1.0],
    "bbox_layout": "xyXY",
}  # fmt: skip


def _crop_boxes(**arguments: Any) -> Call:
    return lambda api, *inputs: api.fn.random_bbox_crop(*inputs, **arguments)


def _crop_boxes_only(**arguments: Any) -> Call:
    return lambda api, boxes, labels: api.fn.random_bbox_crop(boxes, **arguments)


def _flip_boxes(api: Api, boxes: Any, labels: Any) -> Any:
    return api.fn.bb_flip(boxes, ltrb=True, horizontal=api.fn.random.coin_flip())


def _rotate_boxes(api: Api, boxes: Any, labels: Any) -> Any:
    return api.fn.bbox_rotate(boxes, labels, angle=api.uniform(-30, 30), input_shape=[480, 640], keep_size=True)


def _paste_boxes(api: Api, boxes: Any, labels: Any) -> Any:
    position = {"paste_x": api.uniform(0, 1), "paste_y": api.uniform(0, 1)}
    return api.fn.bbox_paste(boxes, ratio=api.uniform(1, 2), ltrb=True, **position)


def _anchors() -> list[float]:
    """Return the 8,732 anchors of a detector for images of 300 x 300."""
    found = []
    for cells, kinds in ((38, 4), (19, 6), (10, 6), (5, 6), (3, 4), (1, 4)):
        y, x = (np.mgrid[0:cells, 0:cells] + 0.5) / cells
        for kind in range(kinds):
            half = (1 + 0.3 * kind) / cells / 2
            found.append(np.stack((x - half, y - half, x + half, y + half), -1).reshape(-1, 4))
    return [float(n) for n in np.concatenate(found).clip(0, 1).ravel()]


def _encode(**arguments: Any) -> Call:
    return lambda api, *inputs: api.fn.box_encoder(*inputs, anchors=_anchors(), **arguments)


def _transform(api: Api, points: Any) -> Any:
    matrix = api.fn.transforms.rotation(angle=api.uniform(-30, 30), center=[0.5, 0.5])
    return api.fn.coord_transform(points, MT=matrix)


def _scale(api: Api, points: Any) -> Any:
    return api.fn.coord_transform(points, M=[640.0, 0.0, 0.0, 480.0], T=[1.0, 2.0])


def _flip_points(api: Api, points: Any) -> Any:
    return api.fn.coord_flip(points, flip_x=api.fn.random.coin_flip())


def _generate(operator: str, variant: str = "", **arguments: Any) -> Case:
    """Without inputs; pairs of numbers are ranges to draw from, triples such ranges of vectors, for each sample."""

    def call(api: Api) -> Any:
        drawn = {k: _draw_argument(api, v) if isinstance(v, tuple) else v for k, v in arguments.items()}
        return api.named(operator)(**drawn)

    return Case(operator, call, variant, feed="nothing")


def _draw_argument(api: Api, limits: tuple[Any, ...]) -> Any:
    low, high, *shape = limits
    return api.uniform(low, high, shape=shape) if shape else api.uniform(low, high)


def _combine(api: Api) -> Any:
    rotation = api.fn.transforms.rotation(angle=api.uniform(-30, 30))
    translation = api.fn.transforms.translation(offset=api.uniform(-9, 9, shape=[2]))
    return api.fn.transforms.combine(rotation, translation)


def _generate_as(operator: str, variant: str = "", **types: str) -> Case:
    """Constant arguments, of which some are types."""

    def call(api: Api) -> Any:
        return api.named(operator)(**{k: getattr(api.types, v) for k, v in types.items()})

    return Case(operator, call, variant, feed="nothing")


def _choose(api: Api) -> Any:
    return api.fn.random.choice(10, p=[0.1] * 10)


def _crop_roi(api: Api) -> Any:
    start = api.fn.random.uniform(range=[0, 200], shape=[2], dtype=api.types.INT32)
    return api.fn.roi_random_crop(crop_shape=[224, 224], roi_start=start, roi_shape=[100, 150], in_shape=[480, 640])


def _one(operator: str, feed: str, variant: str = "", first: bool = False, **arguments: Any) -> Case:
    """All outputs of the source, or the first one; constant arguments."""

    def call(api: Api, *inputs: Any) -> Any:
        return api.named(operator)(*(inputs[:1] if first else inputs), **arguments)

    return Case(operator, call, variant, feed=feed)


def _look_up(api: Api, classes: Any, vectors: Any) -> Any:
    values = [(i * 7) % 80 for i in range(1000)]
    return api.fn.lookup_table(classes, keys=list(range(1000)), values=values, dtype=api.types.INT64)


def _permute(api: Api, x: Any) -> Any:
    return api.fn.permute_batch(x, indices=api.fn.batch_permutation())


def _cast_like(api: Api, x: Any) -> Any:
    return api.fn.cast_like(x, np.float32(0))


def _full(api: Api) -> Any:
    return api.fn.full(api.uniform(0, 1), shape=[8, 8])


def _fill_like(api: Api, x: Any) -> Any:
    return api.fn.full_like(x, 7)


def _paste(api: Api, x: Any) -> Any:
    half = np.array([api.height // 2, api.width // 2], np.int32)
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32) * half

    def constant(values: Any) -> Any:
        return api.types.Constant(np.array(values, np.int32), device="cpu")

    return api.fn.multi_paste(
        x, in_ids=constant([0, 1, 2, 3]), in_anchors=constant(corners[::-1]), out_anchors=constant(corners),
        shapes=constant([half] * 4), output_size=[api.height, api.width],
    )  # fmt: skip


def _resize_tensor(factor: float) -> Call:
    def call(api: Api, x: Any) -> Any:
        sizes = [round(api.height * factor), round(api.width * factor)]
        return api.fn.tensor_resize(x, sizes=sizes, axes=[0, 1])

    return call


def _resize_volume(api: Api, x: Any) -> Any:
    return api.fn.resize(x, size=[32, 32, 32])


def _warp_volume(api: Api, x: Any) -> Any:
    matrix = api.fn.transforms.rotation(angle=api.uniform(-30, 30), axis=[0.0, 0.0, 1.0], center=[24.0, 24.0, 24.0])
    return api.fn.warp_affine(x, matrix=matrix, fill_value=0)


def _rotate_volume(api: Api, x: Any) -> Any:
    return api.fn.rotate(x, angle=api.uniform(-30, 30), axis=[0.0, 1.0, 0.0], keep_size=True, fill_value=0)


def _clamp(api: Api, classes: Any, x: Any) -> Any:
    return api.math.sqrt(api.math.clamp(x, 0.2, 0.9))


CASES: tuple[Case, ...] = (
    Case("random_bbox_crop", _crop_boxes(**_SSD, num_attempts=50), "with labels", feed="boxes"),
    Case("random_bbox_crop", _crop_boxes_only(**_SSD, total_num_attempts=50), "best of 50", feed="boxes"),
    Case(
        "random_bbox_crop", _crop_boxes(crop_shape=[300, 300], input_shape=[640, 480], thresholds=[0.0, 0.3],
        threshold_type="overlap", all_boxes_above_threshold=False, total_num_attempts=50), "of 300 x 300", feed="boxes",
    ),
    _one("ssd_random_crop", "image and boxes"),
    Case("bb_flip", _flip_boxes, feed="boxes"),
    Case("bbox_rotate", _rotate_boxes, feed="boxes"),
    Case("bbox_paste", _paste_boxes, feed="boxes"),
    Case("box_encoder", _encode(), "boxes", feed="boxes"),
    Case("box_encoder", _encode(offset=True, scale=300.0, stds=[0.1, 0.1, 0.2, 0.2]), "offsets", feed="boxes"),
    _one("pad", "boxes", "boxes", first=True, fill_value=-1),
    Case("coord_transform", _transform, "drawn", feed="points"),
    Case("coord_transform", _scale, "constant", feed="points"),
    Case("coord_flip", _flip_points, feed="points"),
    _generate("transforms.translation", offset=(-9, 9, 2)),
    _generate("transforms.scale", scale=(0.5, 2, 2), center=[112.0, 112.0]),
    _generate("transforms.rotation", angle=(-30, 30), center=[112.0, 112.0]),
    _generate("transforms.rotation", "in space", angle=(-30, 30), axis=[0.0, 0.6, 0.8]),
    _generate("transforms.shear", shear=(-1, 1, 2)),
    _generate("transforms.crop", from_start=(0, 0.3, 2), from_end=(0.7, 1, 2), to_end=[224.0, 224.0]),
    Case("transforms.combine", _combine, feed="nothing"),
    _generate("random.uniform", range=[0.0, 1.0]),
    _generate("random.uniform", "100 numbers", range=[0.0, 1.0], shape=[100]),
    _generate("random.uniform", "values", values=[0.0, 90.0, 180.0, 270.0]),
    _generate("random.normal"),
    _generate("random.normal", "100 numbers", shape=[100]),
    _generate("random.coin_flip", probability=0.3),
    _generate_as("random.coin_flip", "bool", dtype="BOOL"),
    _generate("random.beta", alpha=0.4, beta=0.4),
    Case("random.choice", _choose, feed="nothing"),
    _one("random_crop_generator", "shapes"),
    Case("roi_random_crop", _crop_roi, feed="nothing"),
    _one("segmentation.random_mask_pixel", "mask"),
    _one("segmentation.random_mask_pixel", "mask", "foreground", foreground=1),
    _one("segmentation.random_object_bbox", "mask", "of any label"),
    _one("segmentation.random_object_bbox", "mask", "of a label", classes=[1, 2, 3], format="box", output_class=True),
    _one("segmentation.select_masks", "polygons", reindex_masks=True),
    Case("one_hot", lambda api, classes, vectors: api.fn.one_hot(classes, num_classes=1000), feed="numbers"),
    Case("lookup_table", _look_up, "of classes", feed="numbers"),
    _one("element_extract", "frames", element_map=[0, 3, 6]),
    _one("sequence_rearrange", "frames", new_order=[7, 5, 3, 1]),
    _generate("batch_permutation"),
    Case("permute_batch", _permute),
    Case("cast_like", _cast_like),
    Case("full", _full, feed="nothing"),
    _generate("zeros", shape=[224, 224, 3]),
    _generate("ones", shape=[224, 224, 3]),
    Case("full_like", _fill_like),
    plain("zeros_like"),
    plain("ones_like"),
    Case("shape", lambda api, x: x.shape()),
    Case("multi_paste", _paste, "four of the batch"),
    Case("tensor_resize", _resize_tensor(0.5), "linear x0.5"),
    Case("resize", _resize_volume, "volume", feed="volumes"),
    Case("warp_affine", _warp_volume, "volume", feed="volumes"),
    Case("rotate", _rotate_volume, "volume", feed="volumes"),
    Case("arithmetic", lambda api, x: x * 0.5 + 3, "image * 0.5 + 3"),
    Case("arithmetic", lambda api, x: x * x, "image * image"),
    Case("arithmetic", lambda api, classes, x: x * 2.0 - x, "vectors", feed="numbers"),
    Case("math", _clamp, "vectors", feed="numbers"),
)  # fmt: skip
