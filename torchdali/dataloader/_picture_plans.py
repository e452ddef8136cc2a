"""Plans for data sets of pictures."""

from __future__ import annotations

from typing import Any

from torch.utils.data._utils.collate import default_collate

from torchdali.cores import cores
from torchdali.dataloader._engines import Arrays, Pictures, is_movable
from torchdali.dataloader._late import has_images, late_dataset
from torchdali.dataloader._notes import not_accelerated
from torchdali.dataloader._plans import Plan, left_to_torch
from torchdali.dataloader._rows import bases_of
from torchdali.dataloader._rules import Compiled, compiled, name_of
from torchdali.dataloader._sources import Leaves, leaves_of
from torchdali.ops._pictures import Chain, library

__all__ = ["picture_plan"]


def picture_plan(loader: Any) -> Plan:
    """Return the plan of a loader over data sets of torchvision or of Hugging Face."""
    bases = bases_of(loader.dataset)
    if all(hasattr(base, "features") for base in bases):
        if library() is None or not all(map(has_images, bases)):
            return left_to_torch(f"{type(bases[0]).__name__}: no images that a transform gets")
        return _late(loader, "Dataset of Hugging Face", "its transform")
    leaves = leaves_of(loader.dataset)
    if isinstance(leaves, str):
        return left_to_torch(leaves)
    if not len(leaves):
        return left_to_torch(f"{_name(leaves)}: has no samples")
    first, *others = [compiled(leaf.transform, leaf.channels) for leaf in leaves.leaves]
    if not loader._auto_collation:
        return _of_loaders(loader, leaves, "samples are not put into batches")
    if any(each.chain != first.chain for each in others) or len({leaf.channels for leaf in leaves.leaves}) > 1:
        return _of_loaders(loader, leaves, "data sets with different transforms")
    if first.chain is None:
        return _of_loaders(loader, leaves, first.unknown)
    return _accelerated(loader, leaves, first, first.chain)


def _accelerated(loader: Any, leaves: Leaves, transforms: Compiled, chain: Chain) -> Plan:
    notes = (f"{_name(leaves)}: read by torchdali", *(f"{name}: accelerated" for name in transforms.known))
    if loader.collate_fn is not default_collate:
        notes += (f"{name_of(loader.collate_fn)}: called as it is",)
    threads, depth = loader.num_workers or cores(), 1 + max(2, loader.prefetch_factor or 2)
    size, cache = loader.batch_size or 1, loader.cache
    key = tuple(id(leaf.dataset) for leaf in leaves.leaves), id(loader.dataset), chain, threads, depth
    if cache is None and is_movable(leaves, chain):
        return Plan(lambda: Arrays(leaves, chain, threads, depth), notes, ("arrays", key), leaves, transforms.is_image)
    return Plan(
        lambda: Pictures(leaves, chain, threads, depth, size, cache), notes, ("pictures", key), leaves,
        transforms.is_image,
    )  # fmt: skip


def _of_loaders(loader: Any, leaves: Leaves, why: str) -> Plan:
    if library() is None or not all(leaf.has_loader for leaf in leaves.leaves):
        return left_to_torch(why)
    return _late(loader, _name(leaves), why)


def _late(loader: Any, name: str, why: str) -> Plan:
    """Return a plan in which torch's workers get pictures that are decoded late."""
    notes = (f"{name}: decoded by torchdali, in torch's workers", not_accelerated(why))
    return Plan(None, notes, late=lambda: late_dataset(loader.dataset))


def _name(leaves: Leaves) -> str:
    return type(leaves.leaves[0].dataset).__name__
