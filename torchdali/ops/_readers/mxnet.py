"""The reader of MXNet's RecordIO files."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.formats import recordio
from torchdali.formats.remote import RemoteOptions
from torchdali.formats.storage import Bytes
from torchdali.ops._readers._records import RecordsDataset, load_offsets, open_containers
from torchdali.reading.datasets import Dataset, LoaderOptions

__all__ = ["RecordIODataset", "mxnet"]


class RecordIODataset(RecordsDataset):
    """Images and labels of RecordIO files."""

    error_prefix = "invalid RecordIO file:"

    def parse(self, record: Bytes) -> tuple[Tensor, ...]:
        """Return the image and the labels of a record.

        Raises:
            ValueError: The record is damaged.
        """
        return tuple(map(torch.from_numpy, recordio.image(recordio.content(record))))


@reader(name="readers.mxnet", marks=("encoded", "view"))
def mxnet(
    *,
    path: list[FilePath],
    index_path: list[FilePath] | None = None,
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Annotated[Dataset, OutputCount(2)]:
    """Read images and labels of MXNet's RecordIO files.

    Args:
        path: Paths of the files, or their URLs.
        index_path: Paths of the index files, or the path of one manifest (see ``torchdali index --manifest``). Without
            `index_path`, the files are scanned when the pipeline is built. If an index file doesn't exist, the reader
            creates the file, except at a URL.

    Returns:
        The encoded image, ``(n,)`` uint8, and the labels, ``(k,)`` float32.

    Raises:
        RuntimeError: A file or index cannot be read. While the pipeline runs: a record is damaged.
    """
    containers = open_containers("mxnet", path, index_path, options=options)
    offsets = load_offsets(containers, recordio.parse_index, recordio.scan, recordio.index_text)
    return RecordIODataset([each.storage for each in containers], offsets, options)
