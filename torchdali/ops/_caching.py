"""The operator `cache`, and the hidden readers (not in `fn`) that replace `cache` when a pipeline is built."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from torchdali.calls.decorators import operator, reader
from torchdali.declaration.schema import Data, FilePath, OutputCount, shares
from torchdali.formats.sizes import ByteSize
from torchdali.reading.datasets import Dataset, LoaderOptions

__all__ = ["ByteSize", "CacheLocation", "cache", "cache_in"]


def _check(arguments: Mapping[str, Any]) -> None:
    if arguments["bytes"] is None and arguments["path"] is None:
        raise ValueError("cache: pass bytes='8GB' to cache in memory, or path='/fast/disk' to cache in a folder")


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
    """Cache samples, so that the reader and the operators before the cache process each sample only once.

    Random operators must be called after the cache. A cached sample is computed again only if its file has changed.
    Outside of a pipeline, in debug mode and in the dynamic mode, `cache` returns its inputs. DALI doesn't have this
    operator. See `docs/cache.md`.

    Args:
        data: Data of any dtype on the CPU, computed sample by sample from the records of one reader.
        others: Other results that are computed from the same reader. All results of a sample are cached together.
        bytes: Maximum size of the cache: a number of bytes, or a text like ``"8GB"``. When the cache is full, no more
            samples are cached; cached samples are not replaced.
        path: Folder of the cache. Cached samples are also used by later runs of the program, and by other processes of
            the same user. If ``bytes`` isn't passed, a tenth of the disk is kept free. Default: the cache is in memory.

    Returns:
        The inputs, unchanged.

    Raises:
        ValueError: neither ``bytes`` nor ``path`` is passed.
        RuntimeError: an operator before the cache is random, depends on several samples, or doesn't depend on a
            reader's record; the memory isn't available; or the folder doesn't exist, or contains other files with the
            names of the cache's files. The error is raised when the pipeline is built.
    """
    return (data, *others) if others else data


CacheLocation = int | str | os.PathLike[str] | None
"""A loader's argument ``cache``: the size of a cache in memory, the folder of a cache, or None for no cache.

A folder is a path, or a text with a path separator.
"""


def cache_in(images: Any, location: CacheLocation) -> Any:
    """Cache images in memory or in a folder, as a loader's argument ``cache`` specifies.

    Args:
        images: Node whose values are the images.
        location: Value of the argument ``cache``; None to return the node unchanged.

    Raises:
        ValueError: the value is neither a size nor a folder.
    """
    if location is None:
        return images
    if isinstance(location, os.PathLike) or (isinstance(location, str) and os.sep in location):
        return cache(images, path=location)
    try:
        return cache(images, bytes=location)
    except (TypeError, ValueError):
        raise ValueError(
            f"cache must be a size in memory ('8GB' or a number of bytes) or a folder with a separator "
            f"('.{os.sep}{location}'), got {location!r}"
        ) from None


# ---------------------------------------------------------------- in a plan


def _cached_count(arguments: Mapping[str, Any]) -> int:
    return len(arguments["samples"].layouts)


def _count_with_labels(arguments: Mapping[str, Any]) -> int:
    return _cached_count(arguments) + 1


def _cached_layouts(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    sample_layouts: tuple[str, ...] = arguments["samples"].layouts
    return sample_layouts


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
    """Read samples like `_cache`, and the sample's label as the last output."""
    opened: Dataset = samples.open()
    return opened
