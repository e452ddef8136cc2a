"""RecordIO files of MXNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.formats import recordio
from torchdali.formats.remote import RemoteOptions
from torchdali.ops._readers._records import Begun, Key, Records, indices, open_all
from torchdali.reading.datasets import Dataset, LoaderOptions

__all__ = ["RecordIODataset", "mxnet"]


class RecordIODataset:
    """Images and their labels.

    Args:
        records: Where they are.
    """

    shares_memory = True

    def __init__(self, records: Records) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def begin(self, records: Sequence[int]) -> list[Begun] | None:
        """Start to read records, if any are remote."""
        return self._records.begin(records)

    def identity(self, index: int) -> bytes | None:
        """Return the identity of the file of a record, and its place in it."""
        return self._records.identity(index)

    def read(self, index: Key) -> tuple[Tensor, ...]:
        """Return image and labels of a record; RuntimeError where it is damaged."""
        try:
            image, labels = recordio.image(recordio.content(self._records.read(index)))
        except ValueError as error:
            raise RuntimeError(
                f"invalid RecordIO file: {self.info(index)}: {error}{self._records.described(index)}"
            ) from None
        return torch.from_numpy(image), torch.from_numpy(labels)

    def info(self, index: Key) -> str:
        """Return file and offset of a record."""
        return self._records.info(index)


@reader(name="readers.mxnet")
def mxnet(
    *,
    path: list[FilePath],
    index_path: list[FilePath] | None = None,
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Annotated[Dataset, OutputCount(2)]:
    """Read images and labels of the RecordIO files of MXNet.

    Args:
        path: Of the files, or their URLs.
        index_path: Of their index files; without it the files are walked
            through when the pipeline is built. An index that does not exist is written.

    Returns:
        The bytes of the image, ``(n,)`` uint8, and the labels, ``(k,)`` float32.

    Raises:
        RuntimeError: a file or index cannot be read. While running: a record is damaged.
    """
    storages = open_all(path, not options.get("dont_use_mmap", False), options=options)
    found = indices(storages, index_path, recordio.read_index, recordio.scan, recordio.write_index)
    return RecordIODataset(Records(storages, found))
