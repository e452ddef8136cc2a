"""Plans of loaders over image datasets: whether and how a loader is accelerated."""

from __future__ import annotations

from typing import Any

from torchdali.cores import cores
from torchdali.dataloader import _notes as notes
from torchdali.dataloader._chains import Compiled, compile_transforms
from torchdali.dataloader._engines import Arrays, Pictures, is_movable
from torchdali.dataloader._notes import Notes, NotSupportedError
from torchdali.dataloader._pristine import find_transform_change
from torchdali.dataloader._rows import LoaderPlan
from torchdali.dataloader._sources import Leaves, leaves_of
from torchdali.ops._pictures import ImageTransforms

__all__ = ["picture_plan"]


def picture_plan(loader: Any) -> LoaderPlan:
    """Return the plan of an accelerated loader over torchvision datasets.

    Raises:
        NotSupportedError: the loader can't be accelerated.
    """
    leaves = leaves_of(loader.dataset)
    if not len(leaves):
        raise NotSupportedError(notes.empty(leaves.leaves[0].dataset))
    for leaf in leaves.leaves:
        change = find_transform_change(leaf.transform)
        if change:
            raise NotSupportedError(change)
    first, *others = [compile_transforms(leaf.transform, leaf.channels) for leaf in leaves.leaves]
    if (
        any(each.transforms != first.transforms for each in others)
        or len({leaf.channels for leaf in leaves.leaves}) > 1
    ):
        raise NotSupportedError(notes.different_transforms())
    if first.transforms is None:
        raise NotSupportedError(first.unknown)
    return _accelerate(loader, leaves, first, first.transforms)


def _accelerate(loader: Any, leaves: Leaves, compiled: Compiled, transforms: ImageTransforms) -> LoaderPlan:
    _check_batch_size(loader, leaves, transforms)
    name = type(leaves.leaves[0].dataset).__name__
    steps = (notes.accelerated_note(each) for each in compiled.known)
    lines = Notes([f"{name}: read by torchdali", *steps, *notes.fast_path()])
    threads, depth = loader.num_workers or cores(), 1 + max(2, loader.prefetch_factor or 2)
    size, cache, skips = loader.batch_size or 1, loader.cache, loader.bad_samples == "skip"
    key = tuple(id(leaf.dataset) for leaf in leaves.leaves), id(loader.dataset), transforms, threads, depth, skips
    if cache is None and is_movable(leaves, transforms):
        return LoaderPlan(lambda: Arrays(leaves, transforms, threads, depth), lines, ("arrays", key), leaves)
    return LoaderPlan(
        lambda: Pictures(leaves, transforms, threads, depth, size, cache, skips),
        lines,
        ("pictures", cache, key),
        leaves,
    )


# Without workers, images in memory are accelerated from this batch size on.
# `FEW_MOVED` applies to transforms that only move pixels, such as crops and flips.
FEW, FEW_MOVED = 16, 8


def _check_batch_size(loader: Any, leaves: Leaves, transforms: ImageTransforms) -> None:
    """Check that a batch is large enough for acceleration to help.

    Loaders with workers and datasets of image files are not checked.

    Raises:
        NotSupportedError: the batch is too small.
    """
    if loader.num_workers or leaves.leaves[0].pixels is None:
        return
    size = getattr(loader.batch_sampler, "batch_size", None)
    few = FEW_MOVED if is_movable(leaves, transforms) else FEW
    if few and (size is None or size < few):
        raise NotSupportedError(notes.has_small_batches(few))
