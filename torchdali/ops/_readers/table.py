"""The reader of tables: parquet and Arrow files with pyarrow, Lance datasets with pylance."""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.errors import MissingExtraError
from torchdali.formats.daemon_pool import DaemonPool
from torchdali.formats.remote import Remote, RemoteFile, RemoteOptions
from torchdali.formats.storage import Bytes, ByteStorage, MappedFile, open_storage
from torchdali.formats.urls import redact
from torchdali.ops._readers._records import call_in_threads, open_remote
from torchdali.reading.cursor import ShuffleRuns
from torchdali.reading.datasets import Dataset, Indices, LoaderOptions, Read
from torchdali.reading.file_lists import list_digest
from torchdali.reading.groups import GroupOrder

__all__ = ["LanceDataset", "TableDataset", "table"]

_DEFAULT_WINDOW = 256 << 20  # default of `shuffle_window`, the number of bytes whose rows are shuffled together
_EXTRA_BYTES = 64 << 20  # number of bytes that stay in memory, in addition to two shuffle windows and bytes read ahead
_THREADS = 4  # number of threads that read row groups of local files ahead


class _Group(NamedTuple):
    """A row group: rows of a file that are read in one call.

    Attributes:
        rows: Number of rows.
        size: Size in bytes.
        load: Function that reads the rows.
    """

    rows: int
    size: int
    load: Callable[[], Any]


class _StorageFile:
    """A file object for pyarrow that reads from a storage."""

    closed = False
    mode = "rb"

    def __init__(self, storage: ByteStorage) -> None:
        self._storage, self._position = storage, 0

    def read(self, count: int = -1) -> Bytes:
        end = self._storage.size if count is None or count < 0 else min(self._position + count, self._storage.size)
        start, self._position = self._position, max(self._position, end)
        if isinstance(self._storage, RemoteFile):
            return self._storage.start(start, self._position - start, exact=True).bytes()
        return self._storage.read(start, self._position - start)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._storage.size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._storage.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _import_pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(module.partition(".")[0], "columns", "reading tables") from None


def _list_parquet_groups(storage: ByteStorage, columns: Sequence[str]) -> tuple[list[_Group], Any]:
    parquet = _import_pyarrow("pyarrow.parquet")
    parquet_file = parquet.ParquetFile(_StorageFile(storage))
    metadata, schema = parquet_file.metadata, parquet_file.schema_arrow
    _check_columns(storage.path, schema.names, columns)

    def load(number: int) -> Any:
        file = parquet.ParquetFile(_StorageFile(storage), metadata=metadata, pre_buffer=True)
        return file.read_row_group(number, columns=list(columns), use_threads=False)

    groups = []
    for number in range(metadata.num_row_groups):
        group_metadata = metadata.row_group(number)
        chunks = [group_metadata.column(i) for i in range(group_metadata.num_columns)]
        size = sum(each.total_uncompressed_size for each in chunks if each.path_in_schema.split(".")[0] in columns)
        groups.append(_Group(group_metadata.num_rows, size, partial(load, number)))
    return groups, schema


def _map_arrow_group(storage: ByteStorage, columns: Sequence[str]) -> tuple[list[_Group], Any]:
    """Map an Arrow file, or an Arrow stream, into memory as a single group.

    Hugging Face writes Arrow streams.
    """
    if not isinstance(storage, MappedFile):
        raise RuntimeError(f"Arrow files must be local, got {storage.path}. Download the file first, or use Parquet")
    arrow, ipc = _import_pyarrow("pyarrow"), _import_pyarrow("pyarrow.ipc")
    buffer = arrow.py_buffer(storage.bytes)
    is_file = storage.read(0, min(6, storage.size)).tobytes() == b"ARROW1"
    arrow_table = (ipc.open_file if is_file else ipc.open_stream)(buffer).read_all()
    _check_columns(storage.path, arrow_table.schema.names, columns)
    selected = arrow_table.select(list(columns))
    return [_Group(len(selected), 0, lambda: selected)], arrow_table.schema


_OPENERS = {".parquet": _list_parquet_groups, ".arrow": _map_arrow_group, ".feather": _map_arrow_group}


def _check_columns(path: str, names: Sequence[str], columns: Sequence[str]) -> None:
    if missing := [name for name in columns if name not in names]:
        raise RuntimeError(f"columns of {path} must be among {list(names)}, got {missing}")


class _PendingRows:
    """Rows of a table that were requested, and may not have arrived yet."""

    def __init__(self, future: Future[Any], columns: Sequence[str]) -> None:
        self._future, self._names = future, columns
        self._columns: list[Any] = []

    def row(self, index: int) -> tuple[Tensor, ...]:
        """Wait for the rows, and return the values of one row."""
        if not self._columns:
            arrow_table = self._future.result()
            self._columns = [arrow_table.column(name).combine_chunks() for name in self._names]
        return tuple(_to_tensor(name, column[index]) for name, column in zip(self._names, self._columns, strict=True))


def _to_tensor(name: str, scalar: Any) -> Tensor:
    """Convert a value of a column to a tensor.

    Hugging Face stores an image or audio as a dictionary with encoded bytes; return these bytes.
    """
    if hasattr(scalar, "as_buffer"):
        data = scalar.as_buffer()
        return torch.from_numpy(np.frombuffer(b"" if data is None else data, np.uint8).copy())
    value = scalar.as_py() if scalar.is_valid else None
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        return torch.from_numpy(np.frombuffer(value["bytes"], np.uint8).copy())
    if hasattr(scalar, "values") and value is not None:
        array = np.asarray(scalar.values)
        if array.dtype.kind in "biuf":
            return torch.from_numpy(array.copy())
        value = np.array(value)
        if value.dtype.kind in "biuf":
            return torch.from_numpy(value)
    if isinstance(value, (bool, int, float)):
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    raise TypeError(
        f"column {name!r}: a value of type {scalar.type} can't become a tensor; omit the column with columns="
    )


class TableDataset:
    """Rows of files. The rows of a row group are read in one call.

    Args:
        groups: Row groups of all files, in the files' order.
        columns: Columns that become outputs.
        remote: Connection that reads URLs; None if all files are local.
    """

    draws_shuffled = True

    def __init__(
        self, paths: Sequence[str], groups: Sequence[_Group], columns: Sequence[str], arguments: Mapping[str, Any],
        remote: Remote | None,
    ) -> None:  # fmt: skip
        self._paths, self._groups, self._columns = paths, groups, columns
        self._ends = np.cumsum([group.rows for group in groups])
        if not len(self._ends) or not self._ends[-1]:
            raise RuntimeError(f"no rows found in {', '.join(map(redact, paths))}")
        sizes = sum(group.size for group in groups)
        self._mean_row_size = sizes / int(self._ends[-1])
        options = RemoteOptions() if remote is None else remote.options
        window = int(options.shuffle_window or _DEFAULT_WINDOW)
        block = max(1, round(window / max(1, sizes / len(groups))))
        self.runs: ShuffleRuns | None = None
        if arguments.get("random_shuffle"):
            rows = np.array([group.rows for group in groups])
            self.runs = ShuffleRuns(1, max(1, round(block * rows.mean())))
            self.draw = GroupOrder(rows, is_fixed=bool(arguments.get("stick_to_shard"))).draw
        self.remotes = () if remote is None else (remote,)
        self.bytes_ahead = int(options.io_ahead)
        self._max_bytes = self.bytes_ahead + 2 * window + _EXTRA_BYTES
        self._loaded: OrderedDict[int, _PendingRows] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = DaemonPool(_THREADS if remote is None else options.io_concurrency, "torchdali-table")

    @property
    def is_busy(self) -> bool:
        """True if new row groups must wait for the reads of earlier groups."""
        return self._pool.queued_count > _THREADS

    def byte_count(self, records: Indices) -> int:
        """Estimate the total size of rows in bytes, from the mean size of a row."""
        return int(len(records) * self._mean_row_size)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> list[Read]:
        """Start to read the row groups of rows; return one function per row that returns the row's values."""
        return [partial(self.read, record, *self._request_row(record)) for record in records]

    def _request_row(self, record: int) -> tuple[_PendingRows, int]:
        number = int(np.searchsorted(self._ends, record, side="right"))
        with self._lock:
            rows = self._loaded.get(number)
            if rows is None:
                rows = self._loaded[number] = _PendingRows(self._pool.submit(self._groups[number].load), self._columns)
            self._loaded.move_to_end(number)
            while len(self._loaded) > 1 and sum(self._groups[each].size for each in self._loaded) > self._max_bytes:
                self._loaded.popitem(last=False)
        return rows, record - int(self._ends[number]) + self._groups[number].rows

    def read(self, index: int, rows: _PendingRows | None = None, row_index: int = 0) -> tuple[Tensor, ...]:
        """Return the values of a row.

        Args:
            rows: The row's pending group; None to request the group now.
            row_index: Index of the row in the group.
        """
        if rows is None:
            rows, row_index = self._request_row(index)
        return rows.row(row_index)

    def info(self, index: int, output: int | None = None) -> str:
        """Return the name of a row; an empty string if `output` is above 0."""
        return "" if output else f"row {index} of {redact(self._paths[0])}{', ...' if len(self._paths) > 1 else ''}"

    def identity(self) -> bytes | None:
        """Return the identity of the list of files."""
        return list_digest(self._paths)


class LanceDataset:
    """Rows of a Lance dataset, with random access.

    Args:
        path: Path or URL of the dataset. pylance itself reads URLs.
    """

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        try:
            lance = importlib.import_module("lance")
        except ImportError:
            raise MissingExtraError("pylance", "columns", "reading Lance") from None
        self._data, self._path, self._columns = lance.dataset(path), path, list(columns)
        _check_columns(redact(path), self._data.schema.names, columns)
        self._size = self._data.count_rows()
        self._pool = DaemonPool(_THREADS, "torchdali-lance")

    def __len__(self) -> int:
        return int(self._size)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> list[Read]:
        """Start to read rows with a single call; return one function per row that returns the row's values."""
        unique = sorted(set(records))
        take = partial(self._data.take, unique, columns=self._columns)
        rows = _PendingRows(self._pool.submit(take), self._columns)
        positions = {each: i for i, each in enumerate(unique)}
        return [partial(rows.row, positions[record]) for record in records]

    def read(self, index: int) -> tuple[Tensor, ...]:
        """Return the values of a row."""
        return self.read_many([index], [0])[0]()

    def info(self, index: int, output: int | None = None) -> str:
        """Return the name of a row; an empty string if `output` is above 0."""
        return "" if output else f"row {index} of {redact(self._path)}"

    def identity(self) -> bytes | None:
        """Return the identity of the dataset's version."""
        return list_digest([f"{self._path}@{self._data.version}"])


@reader(
    name="readers.table",
    outputs=lambda arguments: len(arguments["columns"]),
    results=lambda arguments, outputs: dict(zip(arguments["columns"], outputs, strict=True)),
)
def table(
    *,
    paths: list[FilePath],
    columns: list[str],
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read rows of parquet files, Arrow files or a Lance dataset.

    DALI doesn't have this reader. A call returns a dictionary with one output per column.

    - **Parquet**: pyarrow reads row groups ahead. With ``random_shuffle``, the row groups are shuffled and divided
      among the ranks, and each rank shuffles the rows of several groups together. ``shuffle_window`` is the total size
      of the groups that are shuffled together, 256 MB by default.
    - **Arrow** (``.arrow``, ``.feather``): the files are mapped into memory.
    - **Lance** (a single ``.lance``): pylance reads the rows of a batch with random access.

    Args:
        paths: Paths of the files, or the URLs of parquet files or of one Lance dataset.
        columns: Columns to return.

    Returns:
        Bytes ``(n,)`` uint8 for binary and text columns, and for Hugging Face images and audio; scalars for numbers;
        arrays for lists of numbers.

    Raises:
        MissingExtraError: pyarrow or pylance is not installed (extra ``columns``).
        RuntimeError: A file cannot be read, has another format, or lacks a column.
        TypeError: While the pipeline runs, a value can't become a tensor, for example a null.
    """
    if not paths:
        raise RuntimeError("paths is empty: pass at least one file")
    if options.get("shuffle_after_epoch"):
        raise RuntimeError("shuffle_after_epoch must be False for tables: use random_shuffle")
    suffixes = {path.rstrip("/")[path.rstrip("/").rfind(".") :].lower() for path in paths}
    if suffixes == {".lance"} and len(paths) == 1:
        return LanceDataset(paths[0], columns)
    if len(suffixes) > 1 or not suffixes <= _OPENERS.keys():
        raise RuntimeError(
            f"paths must all end in .parquet, .arrow or .feather, or be one .lance, got {sorted(suffixes)}"
        )
    remote = open_remote(paths, options)
    opener = _OPENERS[suffixes.pop()]

    def open_table(path: str) -> tuple[list[_Group], Any]:
        storage = open_storage(path, remote=remote)
        try:
            return opener(storage, columns)
        except _import_pyarrow("pyarrow").ArrowException as error:
            raise RuntimeError(f"cannot read {redact(path)}: {str(error).partition(chr(10))[0]}") from None

    files = call_in_threads(
        [partial(open_table, path) for path in paths], 1 if remote is None else remote.options.io_concurrency
    )
    groups = [group for file_groups, _ in files for group in file_groups if group.rows]
    return TableDataset(paths, groups, columns, options, remote)
