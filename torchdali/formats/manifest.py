"""Manifests: one file with the sizes, ETags and indices of all shards (container files) of a dataset.

With a manifest, a reader opens shards without a request for each shard. The file is JSON::

    {"form": 1, "kind": "webdataset",
     "shards": {"a.tar": {"size": 512, "etag": "...", "changed": "...", "index": "v1.2 ..."}}}

``index`` is the text of an index file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from torchdali.formats.remote import Remote
from torchdali.formats.storage import read_text, write_text
from torchdali.formats.stores import ObjectVersion
from torchdali.formats.urls import is_url, redact

__all__ = ["Manifest", "ManifestShard", "is_manifest"]

_FORMAT_VERSION = 1


class ManifestShard(NamedTuple):
    """A shard in a manifest.

    Attributes:
        version: Size, ETag and time of the shard.
        text: Text of the shard's index.
    """

    version: ObjectVersion
    text: str


def is_manifest(path: str) -> bool:
    """Return whether the path of an index is the path of a manifest, with the extension ``.json``."""
    return path.partition("?")[0].endswith(".json")


class Manifest:
    """The shards of a dataset, in a dictionary with file names as keys.

    Args:
        kind: Format of the containers: ``"webdataset"``, ``"tfrecord"`` or ``"mxnet"``.
        path: Path of the file that the manifest was read from, for error messages.
    """

    def __init__(self, kind: str, shards: Mapping[str, ManifestShard], path: str = "") -> None:
        self.kind, self.shards, self._path = kind, shards, path

    def shard(self, path: str) -> ManifestShard:
        """Return the shard that has the file name of a path or URL.

        Raises:
            RuntimeError: The manifest doesn't have the shard.
        """
        name = os.path.basename(path.partition("?")[0] if is_url(path) else path)
        if name not in self.shards:
            raise RuntimeError(
                f"the manifest {redact(self._path)} has no shard {name!r}. Write the manifest again "
                f"with `torchdali index`"
            )
        return self.shards[name]

    def write(self, path: str) -> None:
        """Write the manifest to a file or a URL."""
        shards = {name: {**each.version._asdict(), "index": each.text} for name, each in self.shards.items()}
        write_text(path, json.dumps({"form": _FORMAT_VERSION, "kind": self.kind, "shards": shards}))

    @classmethod
    def read(cls, path: str, kind: str, remote: Remote | None) -> Manifest:
        """Read a manifest.

        If `remote` has a ``cache_dir``, a manifest from a URL is cached in this folder.

        Args:
            path: Path of the manifest, or its URL.
            kind: Expected format of the containers.
            remote: Connection that reads URLs.

        Raises:
            RuntimeError: The manifest cannot be read, is damaged, or has another version or another format of
                containers.
        """
        if is_url(path) and remote is not None and remote.options.cache_dir is not None:
            text = remote.read(path, version=remote.info(path)).tobytes().decode("utf-8", "surrogateescape")
        else:
            text = read_text(path, remote)
        try:
            content = json.loads(text)
            shards = {name: _parse_shard(each) for name, each in content["shards"].items()}
            format_version, written_kind = content["form"], content["kind"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RuntimeError(f"the manifest {redact(path)} is damaged: {type(error).__name__}: {error}") from None
        if format_version != _FORMAT_VERSION or written_kind != kind:
            raise RuntimeError(
                f"the manifest {redact(path)} must be for {kind} in format version {_FORMAT_VERSION}, got "
                f"{written_kind!r} in version {format_version!r}"
            )
        return cls(kind, shards, path)


def _parse_shard(entry: Any) -> ManifestShard:
    size, *texts = entry["size"], entry["etag"], entry["changed"], entry["index"]
    if type(size) is not int or size < 0 or not all(isinstance(text, str) for text in texts):
        raise TypeError(
            f"a shard must have a non-negative integer size, and strings for etag, changed and index; "
            f"got the size {size!r}"
        )
    return ManifestShard(ObjectVersion(size, texts[0], texts[1]), texts[2])
