"""The cache of samples: the operator that users call, and the readers that replace it in a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from torchdali.calls.decorators import operator, reader
from torchdali.declaration.schema import Data, FilePath, OutputCount, shares
from torchdali.formats.sizes import ByteSize
from torchdali.reading.datasets import Dataset, LoaderOptions

__all__ = ["ByteSize", "CachePlace", "cache", "cache_in"]


def _check(arguments: Mapping[str, Any]) -> None:
    if arguments["bytes"] is None and arguments["path"] is None:
        raise ValueError("say where samples are kept: bytes='8GB' for memory, path='/fast/disk' for a folder")


def _count(arguments: Mapping[str, Any]) -> int | None:
    count: int = arguments["inputs"]
    return count if count > 1 else None


@operator(devices=("cpu",), layout=lambda layouts, arguments: layouts, outputs=_count, check=_check)
def cache(
    data: Data,
    /,
    *others: Data,
    bytes: ByteSize | None = None,
    path: FilePath | None = None,
) -> Any:
    """Cache samples, so that the operators before this one run only once for each record; not in DALI.

    In a pipeline, a stored sample is neither read nor computed again, as long as its file doesn't change.
    Random operators must follow the cache. Outside a pipeline (called on tensors, in debug mode, in the dynamic mode)
    it returns its inputs. See `docs/cache.md`.

    Args:
        data: Data of any dtype on the CPU, computed sample by sample from the records of one reader.
        others: More outputs of the same reader. All outputs of a sample are cached together.
        bytes: Limit of the cache's size: a number, or a text like ``"8GB"``. The cache stores samples until it is
            full, and drops none.
        path: Folder of the cache, which later runs and other processes of this user share; by default the cache is in
            memory. Without ``bytes``, a tenth of the disk stays free.

    Returns:
        The inputs, unchanged.

    Raises:
        ValueError: neither ``bytes`` nor ``path`` is passed.
        RuntimeError: when the pipeline is built, an operator before the cache is random, depends on several samples, or
            doesn't depend on a record of a file; the memory is not available; the folder doesn't exist, or contains
            other files with the cache's names.
    """
    return (data, *others) if others else data


CachePlace = int | str | os.PathLike[str] | None
"""A size in memory, a folder (a path object, or a text with a separator), or nothing."""


def cache_in(images: Any, place: CachePlace) -> Any:
    """Cache images in memory or in a folder, for a loader's ``cache=`` argument.

    Args:
        images: The images.
        place: Value of the argument; None to return the images unchanged.

    Raises:
        ValueError: the value is neither a size nor a folder.
    """
    if place is None:
        return images
    if isinstance(place, os.PathLike) or (isinstance(place, str) and os.sep in place):
        return cache(images, path=place)
    try:
        return cache(images, bytes=place)
    except (TypeError, ValueError):
        raise ValueError(
            f"cache must be a size in memory ('8GB' or a number of bytes) or a folder with a separator "
            f"('.{os.sep}{place}'), got {place!r}"
        ) from None


# ---------------------------------------------------------------- in a plan


def _cached_count(arguments: Mapping[str, Any]) -> int:
    return len(arguments["samples"].layouts)


def _count_with_labels(arguments: Mapping[str, Any]) -> int:
    return _cached_count(arguments) + 1


def _cached_layouts(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    known: tuple[str, ...] = arguments["samples"].layouts
    return known


@reader(name="_cached", title="cache", outputs=_cached_count, layout=_cached_layouts, marks=("view",))
def _cache(*, samples: Any, **options: Annotated[Any, shares(LoaderOptions)]) -> Annotated[Dataset, OutputCount(1)]:
    """Read cached samples, or compute samples that aren't cached.

    Args:
        samples: Object with the layouts of the outputs, and a method ``open`` that opens the dataset.
    """
    opened: Dataset = samples.open()
    return opened


@reader(
    name="_cached_with_labels",
    title="cache",
    metadata=1,
    outputs=_count_with_labels,
    layout=_cached_layouts,
    marks=("view",),
)
def _cached_with_labels(
    *, samples: Any, **options: Annotated[Any, shares(LoaderOptions)]
) -> Annotated[Dataset, OutputCount(1)]:
    """Read samples like `_cache`, for a reader whose last output (the label) is known without reading the sample."""
    opened: Dataset = samples.open()
    return opened
