"""Audit of the parity tests: coverage of each operator, and distances of the results.

Each operator needs six combinations of arguments on three dtypes and two layouts, if its declaration accepts that
many; `NARROW` and `ELSEWHERE` list operators whose real DALI does not. ``pytest --write-parity=FILE`` ends with the
audit, and fails if it finds a gap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torchdali.ops  # noqa: F401  declares the operators
from tests.helpers.parity_table import Case, Distance
from torchdali.declaration.registry import Operator, registry

__all__ = ["ELSEWHERE", "NARROW", "Coverage", "covered", "demanded", "far", "short"]

_GPU = "the real one runs on the GPU only; compared with a reference in "
_DRAWN = "its numbers cannot be reproduced; distributions are compared in "

ELSEWHERE: dict[str, str] = {
    "batch_permutation": _DRAWN + "ops/test_random.py",
    "constant": "built when the pipeline is; ops/test_generic.py",
    "decoders.image_random_crop": _DRAWN + "ops/test_decoders.py",
    "dl_tensor_python_function": "calls the user's function; ops/test_python.py",
    "dump_image": "writes files; its own tests look at them",
    "experimental.dilate": _GPU + "ops/test_filters.py",
    "experimental.erode": _GPU + "ops/test_filters.py",
    "experimental.median_blur": _GPU + "ops/test_filters.py",
    "experimental.remap": _GPU + "ops/test_geometry.py",
    "experimental.resize": "runs resize's implementation",
    "full": "ops/test_generic.py",
    "full_like": "ops/test_generic.py",
    "get_property": "ops/test_generic.py",
    "io.file.read": "parity/readers/test_file.py",
    "jitter": _GPU + "ops/test_geometry.py",
    "noise.gaussian": _DRAWN + "ops/test_noise.py",
    "noise.salt_and_pepper": _DRAWN + "ops/test_noise.py",
    "noise.shot": _DRAWN + "ops/test_noise.py",
    "ones": "ops/test_generic.py",
    "permute_batch": "ops/test_generic.py",
    "python_function": "calls the user's function; ops/test_python.py",
    "random.beta": _DRAWN + "ops/test_random.py",
    "random.choice": _DRAWN + "ops/test_random.py",
    "random.coin_flip": _DRAWN + "ops/test_random.py",
    "random.normal": _DRAWN + "ops/test_random.py",
    "random.uniform": _DRAWN + "ops/test_random.py",
    "random_bbox_crop": _DRAWN + "its own parity tests",
    "random_crop_generator": _DRAWN + "ops/test_random_crop.py",
    "random_resized_crop": _DRAWN + "ops/test_random_crop.py",
    "roi_random_crop": _DRAWN + "ops/test_random_crop.py",
    "segmentation.random_mask_pixel": _DRAWN + "its own parity tests",
    "segmentation.random_object_bbox": _DRAWN + "its own parity tests",
    "torch_python_function": "calls the user's function; ops/test_python.py",
    "zeros": "ops/test_generic.py",
}
"""Operators that are not compared case by case, and why, or where."""


_ALONE = ("reader", "source")


@dataclass(frozen=True)
class Coverage:
    """Numbers of different argument combinations, element types and layouts."""

    arguments: int = 0
    types: int = 0
    layouts: int = 0

    def __str__(self) -> str:
        return f"{self.arguments} argument combinations, {self.types} types, {self.layouts} layouts"


NARROW: dict[str, tuple[Coverage, str]] = {
    "bb_flip": (Coverage(6, 1, 0), "boxes have no layout"),
    "bbox_paste": (Coverage(6, 1, 0), "boxes have no layout"),
    "bbox_rotate": (Coverage(6, 1, 0), "boxes have no layout"),
    "box_encoder": (Coverage(6, 1, 0), "boxes have no layout"),
    "cast_like": (Coverage(1, 3, 2), "no arguments"),
    "clahe": (Coverage(6, 1, 1), "bytes only"),
    "coord_flip": (Coverage(6, 1, 0), "points have no layout"),
    "coord_transform": (Coverage(6, 3, 1), "points have one layout of their own"),
    "copy": (Coverage(1, 3, 2), "no arguments"),
    "decoders.image": (Coverage(6, 1, 0), "takes bytes"),
    "decoders.image_crop": (Coverage(6, 1, 0), "takes bytes"),
    "decoders.image_slice": (Coverage(6, 1, 0), "takes bytes"),
    "element_extract": (Coverage(3, 3, 2), "one argument, indices of frames"),
    "equalize": (Coverage(1, 1, 2), "no arguments, and bytes only"),
    "grid_mask": (Coverage(6, 3, 1), "other layouts are masked wrongly, or crash"),
    "multi_paste": (Coverage(6, 3, 1), "images are HWC"),
    "peek_image_shape": (Coverage(6, 1, 0), "takes bytes"),
    "per_frame": (Coverage(2, 3, 2), "one argument, a flag"),
    "segmentation.select_masks": (
        Coverage(2, 1, 0),
        "one argument, a flag; polygons have no layout",
    ),
    "transforms.combine": (Coverage(2, 1, 0), "one argument, a flag"),
}
"""Demands where the real DALI, or the operator itself, does not leave room for more, and the reasons."""


def covered(cases: Iterable[Case]) -> dict[str, Coverage]:
    """Count, by operator, the combinations of its cases."""
    by_name: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_name[case.operator].append(case)
    return {
        name: Coverage(
            len({case.arguments for case in found}),
            len(frozenset[str]().union(*(case.dtypes for case in found))),
            len(frozenset[str]().union(*(case.layouts for case in found))),
        )
        for name, found in by_name.items()
    }


def demanded(operator: Operator) -> Coverage:
    """Return the required counts of an operator: six, three and two, or as many as its declaration allows."""
    if operator.name in NARROW:
        return NARROW[operator.name][0]
    if not operator.schema.inputs or operator.schema.inputs[0].optional:
        return Coverage(6)
    constraints = operator.schema.inputs[0].constraints
    return Coverage(6, min(3, len(constraints.dtypes) or 3), min(2, len(constraints.layouts) or 2))


def far(cases: Iterable[Case]) -> dict[str, Distance]:
    """Return the cases whose results are too far: 1 % of the integers off by more than 1, floats by 0.0001."""
    return {
        f"{case.operator} {case.arguments}": case.distance
        for case in cases
        if (case.distance.off or 0) > 0.01 or (case.distance.error or 0) > 1e-4
    }


def short(
    cases: Iterable[Case], operators: Mapping[str, Operator] = registry
) -> dict[str, tuple[Coverage, Coverage]]:
    """Return the actual and required counts of operators with too few cases.

    Deprecated names, and operators that are not in `fn`, do not count, nor do readers and sources, which have
    their own tests.
    """
    counts = covered(cases)
    found: dict[str, tuple[Coverage, Coverage]] = {}
    for name, operator in operators.items():
        if operator.hidden or operator.replacement or name in ELSEWHERE or operator.kind in _ALONE:
            continue
        got, must = counts.get(name, Coverage()), demanded(operator)
        if got.arguments < must.arguments or got.types < must.types or got.layouts < must.layouts:
            found[name] = got, must
    return found
