"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch

from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class RandomMaskPixel:
    """Choose a pixel of a mask, all equally likely.

    Args:
        mask: Any shape with at least one dimension: integers, bool or float32.
        foreground: Not 0: choose among the pixels of the foreground, if there are any.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        threshold: Foreground is what lies above it.
        value: Foreground is what equals it, instead.

    Returns:
        Coordinates of the pixel: one value an axis, int64.

    Raises:
        RuntimeError: another dtype, a mask without pixels, or both ``threshold`` and ``value``.
    """
    def __init__(
        self,
        *,
        device: Literal['cpu'] | None = None,
        foreground: int | DataNode | TensorList = 0,
        name: str | None = None,
        seed: int = -1,
        threshold: float | DataNode | TensorList = ...,
        value: int | DataNode | TensorList | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class RandomObjectBBox:
    """Choose an object of a label map, and return the box around it.

    An object is a group of pixels of one label that hang together by their faces. A label is chosen first, among
    those that have an object to choose, then one of its objects.

    Args:
        mask: Labels, 1 to 6 dimensions: bool, or integers of up to 32 bits.
        background: Label of what is no object. When not given, it is 0 or, where ``classes`` has 0, less than
            all classes.
        cache_objects: Keep the objects of each map, to find them faster when the same map comes again.
        class_weights: How likely each of ``classes`` is, relative to the others; without ``classes``, of the
            labels from 0 on, the background left out. All are equally likely by default.
        classes: Labels to choose from; all but the background by default.
        foreground_prob: Probability to choose an object, instead of the whole map.
        format: ``"anchor_shape"`` and ``"start_end"``: two outputs; ``"box"``: one, start and then end.
        ignore_class: Choose among all objects at once, whatever their label.
        k_largest: Choose only among that many objects with the largest boxes, of the label or of all.
        output_class: Add an output: the label, a 0D int32; that of the background where no object was chosen.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        threshold: Least extent of a box, one for all axes or one value an axis; labels without such a box are
            not chosen.

    Returns:
        The box in pixels, int32, one value an axis; that of the whole map where there is no object to choose.

    Raises:
        RuntimeError: another dtype or number of dimensions, an unknown format, ``k_largest`` below 1,
            ``ignore_class`` beside what is about classes, the background among the classes, weights that are
            negative or whose number is not that of the classes.
    """
    def __init__(
        self,
        *,
        background: int | DataNode | TensorList = ...,
        cache_objects: bool = False,
        class_weights: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        classes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
        device: Literal['cpu'] | None = None,
        foreground_prob: float | DataNode | TensorList = 1.0,
        format: Literal['anchor_shape', 'start_end', 'box'] = 'anchor_shape',
        ignore_class: bool = False,
        k_largest: int | None = None,
        name: str | None = None,
        output_class: bool = False,
        seed: int = -1,
        threshold: abc.Sequence[int] | int | DataNode | TensorList | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class SelectMasks:
    """Select polygons by the masks they belong to.

    Args:
        mask_ids: ``(M,)`` int32: the masks to take, in this order, each once.
        polygons: ``(N, 3)`` int32: id of the mask, first vertex and exclusive last one. Of several polygons
            with one id, the last one counts (as in DALI).
        vertices: ``(V, D)``, any type.
        reindex_masks: Number the masks from 0 on, in the order of ``mask_ids``.

    Returns:
        ``(M, 3)`` polygons, and their vertices, one polygon after the other.

    Raises:
        RuntimeError: another type or shape, an id that occurs twice or is in no polygon, or vertices that do
            not exist.
    """
    def __init__(
        self,
        *,
        device: Literal['cpu'] | None = None,
        name: str | None = None,
        reindex_masks: bool = False,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
