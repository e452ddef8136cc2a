"""The reader of webdataset archives.

In these tar archives, files with the same name and different extensions form a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.declaration.schema import FilePath, OutputCount, one_of, shares, to_dtype
from torchdali.errors import warn
from torchdali.formats import tar
from torchdali.formats.manifest import is_manifest
from torchdali.formats.remote import PendingBytes, RemoteOptions
from torchdali.formats.storage import ByteStorage
from torchdali.ops._readers._ranges import MISSING
from torchdali.ops._readers._records import (
    IndexedContainer,
    PackedTexts,
    load_records,
    map_containers,
    open_containers,
    open_ranges,
)
from torchdali.reading.datasets import Dataset, Indices, LoaderOptions, Read
from torchdali.reading.file_lists import list_digest

__all__ = ["WebDataset", "webdataset"]

_POLICIES = ("empty", "skip", "error")

_DTYPES = (
    torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.float32, torch.float64,
)  # fmt: skip


class WebDataset:
    """Samples of webdataset archives. Each file of a sample is a component.

    Args:
        files: Index of each sample's archive.
        extents: Offset and size of each output's component, ``(N, outputs, 2)``. The offset of a missing
            component is -1.
        names: File names of the components: all outputs of the first sample, then of the second sample, and so on.
    """

    def __init__(
        self,
        storages: Sequence[ByteStorage],
        files: npt.NDArray[np.int64],
        extents: npt.NDArray[np.int64],
        dtypes: Sequence[torch.dtype],
        names: PackedTexts,
        arguments: Mapping[str, Any],
    ) -> None:
        if not len(files):
            raise RuntimeError(f"no samples found in {', '.join(s.path for s in storages)}")
        self._storages, self._files, self._extents = storages, files, extents
        self._dtypes, self._names = dtypes, names
        self._range_reader = open_ranges(storages, files, extents, arguments)
        self._identities = [storage.identity for storage in storages]
        self._as_bytes = all(dtype == torch.uint8 for dtype in dtypes)

    runs = property(lambda self: None if self._range_reader is None else self._range_reader.runs)
    bytes_ahead = property(lambda self: 0 if self._range_reader is None else self._range_reader.bytes_ahead)
    remotes = property(lambda self: () if self._range_reader is None else (self._range_reader.remote,))
    is_busy = property(lambda self: self._range_reader.is_busy)

    def byte_count(self, records: Indices) -> int:
        """Return the total size of samples in bytes."""
        assert self._range_reader is not None
        return self._range_reader.byte_count(records)

    def __len__(self) -> int:
        return len(self._files)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read] | None:
        """Start to read remote samples, and return one function per sample that returns the sample's components.

        Return None if all archives are local.
        """
        if self._range_reader is None:
            return None
        parts = self._range_reader.start(records)
        return [partial(self.read, record, part) for record, part in zip(records, parts, strict=True)]

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a sample; if `index` is None, return the identity of the list of archives.

        The identity of a sample consists of the archive's identity, and of the components' offsets and sizes.
        """
        if index is None:
            return list_digest([storage.path for storage in self._storages])
        file = self._identities[self._files.item(index)]
        return None if file is None else file + self._extents[index].tobytes()

    def read(self, index: int, pending: Sequence[PendingBytes | None] | None = None) -> tuple[Tensor, ...]:
        """Return the components of a sample.

        Args:
            pending: Pending reads, one per component, with None for a missing component. If `pending` itself is None,
                the components are read now.

        Raises:
            RuntimeError: A component cannot be read, or its size is not a multiple of its dtype's size.
        """
        if pending is not None:
            components = [
                _empty_component() if component is None else torch.from_numpy(component.bytes())
                for component in pending
            ]
        else:
            storage = self._storages[self._files.item(index)]
            components = [
                torch.from_numpy(storage.read(offset, size)) if offset != MISSING else _empty_component()
                for offset, size in self._extents[index].tolist()
            ]
        if self._as_bytes:
            return tuple(components)
        return tuple(
            self._view_component(index, component, d) for component, d in zip(components, self._dtypes, strict=True)
        )

    def _view_component(self, index: int, component: Tensor, dtype: torch.dtype) -> Tensor:
        if component.numel() % dtype.itemsize:
            raise RuntimeError(
                f"component size and dtype incompatible: {component.numel()} bytes as {dtype} in {self.info(index)}"
            )
        return component.view(dtype)

    def info(self, index: int, output: int | None = None) -> str:
        """Return the archive of a sample, and the sample's offset.

        If `output` is passed, return the archive, the offset and the file name of the output's component, or an empty
        string if the component is missing.
        """
        if output is not None:
            return self._component_info(index, output)
        offsets = [offset for offset in self._extents[index, :, 0].tolist() if offset != MISSING]
        storage = self._storages[self._files.item(index)]
        return f"{storage.path} at offset {_archive_offset(storage, min(offsets, default=0))}"

    def _component_info(self, index: int, output: int) -> str:
        offset = self._extents.item(index, output, 0)
        if offset == MISSING:
            return ""
        name = self._names[index * self._extents.shape[1] + output]
        storage = self._storages[self._files.item(index)]
        return f"{storage.path}:{_archive_offset(storage, offset)}:{name}"


def _archive_offset(storage: ByteStorage, offset: int) -> int:
    return storage.to_archive_offset(offset) if isinstance(storage, tar.Archive) else offset


def _empty_component() -> Tensor:
    return torch.empty(0, dtype=torch.uint8)


@reader(name="readers.webdataset", outputs=lambda a: _count_outputs(a["ext"]), marks=("encoded", "view"))
def webdataset(
    *,
    paths: list[FilePath],
    ext: list[str],
    index_paths: list[FilePath] | None = None,
    missing_component_behavior: Annotated[str, one_of([""], _POLICIES)] = "",
    dtypes: list[Any] | None = None,
    case_sensitive_extensions: bool = True,
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read samples of tar archives in the webdataset format.

    Consecutive files form a sample if their paths are equal up to the first dot of the file name. The text after that
    dot is the extension.

    Args:
        paths: Paths of the archives, or their URLs.
        ext: Extension of each output, or several extensions separated by ``;``. If several files of a sample match, the
            first of these files is returned.
        index_paths: Paths of the index files, one per archive, or the path of one manifest (see ``torchdali index
            --manifest``). Without ``index_paths``, the archives are scanned when the pipeline is built. If an index
            file doesn't exist, the reader creates the file, except at a URL.
        missing_component_behavior: Handling of samples that lack a component: ``"empty"`` (or ``""``) returns an empty
            tensor, ``"skip"`` skips the sample, ``"error"`` raises an error.
        dtypes: Dtype of each output's bytes; uint8 by default.
        case_sensitive_extensions: Make the extensions case-sensitive.

    Returns:
        The bytes of each output, viewed as the output's dtype, ``(n,)``.

    Raises:
        RuntimeError: An archive or index cannot be read, a sample lacks a component (with ``"error"``), no sample was
            found, or an argument is invalid. While the pipeline runs: the size of a component is not a multiple of its
            dtype's size.
    """
    groups = [_split_extensions(group, case_sensitive_extensions) for group in ext]
    policy = _parse_policy(missing_component_behavior)
    types = _check_dtypes(dtypes, len(ext))
    if not ext:
        raise RuntimeError("ext must not be empty, otherwise the reader has no outputs")
    if not paths:
        raise RuntimeError("No webdataset archives provided: paths is empty")
    if index_paths and len(index_paths) != len(paths) and not (len(index_paths) == 1 and is_manifest(index_paths[0])):
        raise RuntimeError("The number of index files, if any, must match the number of archives in the dataset")
    containers = open_containers("webdataset", paths, index_paths, options=options)
    fold: Callable[[str], str] = str if case_sensitive_extensions else str.lower
    archives = map_containers(lambda each: _open_archive(each, groups, policy, fold), containers)
    opened, extents, names = zip(*archives, strict=True)
    files = np.repeat(np.arange(len(archives)), [len(part) for part in extents])
    members = PackedTexts(name.encode(errors="surrogateescape") for part in names for name in part)
    return WebDataset(opened, files, np.concatenate(extents), types, members, options)


def _count_outputs(ext: Sequence[str]) -> int | None:
    return len(ext) if len(ext) > 1 else None


def _split_extensions(group: str, case_sensitive: bool) -> frozenset[str]:
    names = group if case_sensitive else group.lower()
    return frozenset(name.strip() for name in names.split(";"))


def _parse_policy(behavior: str) -> str:
    policy = behavior.lower() or "empty"
    if policy not in _POLICIES:
        raise RuntimeError(
            f"Invalid value for missing_component_behavior: {behavior!r}; expected 'empty', 'skip' or 'error'"
        )
    return policy


def _check_dtypes(dtypes: list[Any] | None, count: int) -> list[torch.dtype]:
    if not dtypes:
        return [torch.uint8] * count
    types = [_check_dtype(dtype) for dtype in dtypes]
    if len(types) != count:
        raise RuntimeError(
            f"Number of extensions does not match the number of provided types: {count} and {len(types)}"
        )
    return types


def _check_dtype(value: Any) -> torch.dtype:
    try:
        dtype = to_dtype(value)
    except TypeError:
        dtype = None
    if dtype not in _DTYPES:
        names = ", ".join(str(supported).removeprefix("torch.") for supported in _DTYPES)
        raise RuntimeError(f"Unsupported output dtype {value}. Supported types are: {names}")
    return dtype


def _open_archive(
    container: IndexedContainer, groups: Sequence[frozenset[str]], policy: str, fold: Callable[[str], str]
) -> tuple[ByteStorage, npt.NDArray[np.int64], list[str]]:
    storage = container.storage
    if not container.path:
        archive = tar.Archive(storage)
        samples = list(tar.read_samples(archive))
        return archive.storage, *_list_components(storage, samples, groups, policy, fold)
    samples = load_records(container, tar.parse_index, tar.read_indexable_samples, tar.index_text)
    return storage, *_list_components(storage, samples, groups, policy, fold)


def _list_components(
    storage: ByteStorage,
    samples: list[list[tar.Component]],
    groups: Sequence[frozenset[str]],
    policy: str,
    fold: Callable[[str], str],
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the offset and size of each sample's outputs, and the file names of their components."""
    rows: list[list[tuple[int, int]]] = []
    members: list[str] = []
    ambiguous: set[int] = set()
    for sample in samples:
        row, names = [(MISSING, 0)] * len(groups), [""] * len(groups)
        for extension, offset, size, name in sample:
            extension = fold(extension)
            for output, extensions in enumerate(groups):
                if extension in extensions:
                    if row[output][0] == MISSING:
                        row[output], names[output] = (offset, size), name
                    else:
                        ambiguous.add(output)
        if policy == "empty" or _is_complete(row):
            rows.append(row)
            members += names
        elif policy == "error":
            raise RuntimeError(_describe_missing(storage, sample, row, groups))
    if ambiguous:
        warn(
            f"in {storage.path} several components of a sample match the outputs {sorted(ambiguous)}; the reader "
            f"uses the first"
        )
    _check_extensions(storage, samples, rows, groups, policy)
    _warn_of_split_samples(storage, samples)
    return np.array(rows, np.int64).reshape(-1, len(groups), 2), members


def _describe_missing(
    storage: ByteStorage,
    sample: Sequence[tar.Component],
    row: Sequence[tuple[int, int]],
    groups: Sequence[frozenset[str]],
) -> str:
    missing = [output for output, (offset, _) in enumerate(row) if offset == MISSING]
    extensions = ", ".join(";".join(sorted(groups[output])) for output in missing)
    available = ", ".join(extension for extension, *_ in sample)
    return (
        f"Underful sample detected in {storage.path} at offset {sample[0][1]}: outputs {missing} are missing. The "
        f"sample {tar.split_name(sample[0][3])[0]!r} has {available}, but not {extensions}"
    )


def _check_extensions(
    storage: ByteStorage,
    samples: Sequence[Sequence[tar.Component]],
    rows: Sequence[Sequence[tuple[int, int]]],
    groups: Sequence[frozenset[str]],
    policy: str,
) -> None:
    """If no file of an archive has a requested extension, warn (policy "empty") or raise RuntimeError."""
    if not samples or any(offset != MISSING for row in rows for offset, _ in row):
        return
    available = sorted({extension for sample in samples for extension, *_ in sample})
    more = ", ..." if len(available) > _MAX_SHOWN else ""
    text = (
        f"no member of {storage.path} has a requested extension: ext={[';'.join(sorted(g)) for g in groups]}, "
        f"and the {len(samples)} samples have {', '.join(available[:_MAX_SHOWN])}{more}"
    )
    if policy != "empty":
        raise RuntimeError(text)
    warn(text)


def _warn_of_split_samples(storage: ByteStorage, samples: Sequence[Sequence[tar.Component]]) -> None:
    """Warn about samples whose files are not adjacent in the archive: each group of adjacent files becomes a sample."""
    keys = Counter(tar.split_name(sample[0][3])[0] for sample in samples if sample[0][3])
    split = [key for key, count in keys.items() if count > 1]
    if split:
        warn(
            f"in {storage.path} the members of {len(split)} samples aren't adjacent, for example "
            f"{split[0]!r}; each run of members is read as a sample. Write the archive with its members sorted by name"
        )


_MAX_SHOWN = 8  # maximum number of extensions in a message


def _is_complete(row: Sequence[tuple[int, int]]) -> bool:
    return all(offset != MISSING for offset, _ in row)
