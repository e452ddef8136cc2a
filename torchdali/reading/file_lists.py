"""Digests of a dataset's list of files, to detect that a saved position belongs to another list."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Sequence
from typing import Any

from torchdali.errors import warn

__all__ = ["compare", "list_digest", "list_identity"]


def list_digest(paths: Sequence[str]) -> bytes | None:
    """Return a digest of the files' names and order; None for fewer than two files.

    The digest doesn't depend on the folder that contains all files, so the data may be moved.
    """
    if len(paths) < 2:
        return None
    ends = [path.replace(os.sep, "/") for path in (min(paths), max(paths))]
    common = os.path.commonprefix(ends)  # noqa: RUF071  `commonpath` doesn't support URLs
    folder = common[: common.rfind("/") + 1]
    text = "\0".join(["", *paths]).replace(os.sep, "/").replace("\0" + folder, "\0")
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:8]


def list_identity(dataset: Any) -> bytes | None:
    """Return the identity of a dataset's list of records; None if the dataset cannot identify the list."""
    identity: Any = getattr(dataset, "identity", None)
    try:
        inspect.signature(identity).bind()
    except TypeError:  # `identity` requires an index, or doesn't exist
        return None
    digest: bytes | None = identity()
    return digest


def compare(reader: str, saved: Any, current: str | None) -> None:
    """Warn if a saved digest differs from a reader's digest. If one of the digests is None, do nothing."""
    if saved is not None and current is not None and saved != current:
        warn(
            f"reader {reader!r} has other files than when the checkpoint was saved, or the same files in another "
            f"order: a file was renamed or replaced. In this epoch some samples may come twice, and others not at "
            f"all. From the next epoch on, each sample comes once; to avoid the problem in this epoch, restore the "
            f"files."
        )
