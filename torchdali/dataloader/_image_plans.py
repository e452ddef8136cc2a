"""Plans of loaders over image datasets: whether and how a loader is accelerated."""

from __future__ import annotations

from typing import Any

from torchdali.cores import cores
from torchdali.dataloader import _notes as notes
from torchdali.dataloader._chains import CompiledTransforms, compile_transforms
from torchdali.dataloader._engines import ArrayEngine, PipelineEngine, can_use_array_engine
from torchdali.dataloader._notes import Notes, NotSupportedError
from torchdali.dataloader._pristine import find_transform_change
from torchdali.dataloader._rows import LoaderPlan
from torchdali.dataloader._sources import DatasetTree, build_dataset_tree
from torchdali.ops._pictures import ImageTransforms

__all__ = ["create_image_plan"]


def create_image_plan(loader: Any) -> LoaderPlan:
    """Return the plan of an accelerated loader over torchvision datasets.

    Raises:
        NotSupportedError: the loader can't be accelerated.
    """
    tree = build_dataset_tree(loader.dataset)
    if not len(tree):
        raise NotSupportedError(notes.empty_dataset_reason(tree.leaves[0].dataset))
    for leaf in tree.leaves:
        change = find_transform_change(leaf.transform)
        if change:
            raise NotSupportedError(change)
    first, *rest = [compile_transforms(leaf.transform, leaf.channels) for leaf in tree.leaves]
    if any(each.transforms != first.transforms for each in rest) or len({leaf.channels for leaf in tree.leaves}) > 1:
        raise NotSupportedError(notes.different_transforms_reason())
    if first.transforms is None:
        raise NotSupportedError(first.reason)
    return _create_plan(loader, tree, first, first.transforms)


def _create_plan(
    loader: Any, tree: DatasetTree, compiled: CompiledTransforms, transforms: ImageTransforms
) -> LoaderPlan:
    _check_batch_size(loader, tree, transforms)
    name = type(tree.leaves[0].dataset).__name__
    steps = (notes.accelerated_note(each) for each in compiled.supported)
    loader_notes = Notes([f"{name}: read by torchdali", *steps, *notes.fast_path_notes()])
    threads, depth = loader.num_workers or cores(), 1 + max(2, loader.prefetch_factor or 2)
    size, cache, skip_bad = loader.batch_size or 1, loader.cache, loader.bad_samples == "skip"
    key = tuple(id(leaf.dataset) for leaf in tree.leaves), id(loader.dataset), transforms, threads, depth, skip_bad
    if cache is None and can_use_array_engine(tree, transforms):
        return LoaderPlan(lambda: ArrayEngine(tree, transforms, threads, depth), loader_notes, ("arrays", key), tree)
    return LoaderPlan(
        lambda: PipelineEngine(tree, transforms, threads, depth, size, cache, skip_bad),
        loader_notes,
        ("pictures", cache, key),
        tree,
    )


# Without workers, images in memory are accelerated from this batch size on.
# `MIN_BATCH_SIZE_MOVED` applies to transforms that only move pixels, such as crops and flips.
MIN_BATCH_SIZE, MIN_BATCH_SIZE_MOVED = 16, 8


def _check_batch_size(loader: Any, tree: DatasetTree, transforms: ImageTransforms) -> None:
    """Check that a batch is large enough for acceleration to help.

    Loaders with workers and datasets of image files are not checked.

    Raises:
        NotSupportedError: the batch is too small.
    """
    if loader.num_workers or tree.leaves[0].pixels is None:
        return
    size = getattr(loader.batch_sampler, "batch_size", None)
    min_batch_size = MIN_BATCH_SIZE_MOVED if can_use_array_engine(tree, transforms) else MIN_BATCH_SIZE
    if min_batch_size and (size is None or size < min_batch_size):
        raise NotSupportedError(notes.small_batches_reason(min_batch_size))
