"""The reader and the decoder of NumPy's `.npy` files.

To read a region of an array, the reader reads only a slab: the consecutive rows that contain the region.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import operator, reader
from torchdali.codecs.files import read_after
from torchdali.declaration.schema import Data, DType, FilePath, InputConstraints, PerSample, one_of, shares
from torchdali.formats import npy
from torchdali.formats.remote import UNBOUNDED, PendingBytes, Remote, RemoteOptions
from torchdali.formats.storage import Bytes, PlainFile, read_text
from torchdali.formats.urls import is_url
from torchdali.kernels.convert import convert
from torchdali.kernels.window import POLICIES, cut, resolve_policy
from torchdali.ops._readers._records import open_remote
from torchdali.ops._readers.file import ListedFiles, load_file
from torchdali.ops._slice import slice_window
from torchdali.reading.datasets import Dataset, LoaderOptions, Read

__all__ = ["NumpyDataset", "decode_numpy", "numpy", "select_files"]

_REGION_NAMES = {
    "roi_start": "start", "rel_roi_start": "rel_start", "roi_end": "end", "rel_roi_end": "rel_end",
    "roi_shape": "shape", "rel_roi_shape": "rel_shape",
}  # fmt: skip
_SMALL_FILE = 1 << 18  # bytes; files up to this size are always read as a whole
_Window = tuple[list[int], list[int], list[int]]
"""A region of an array: its axes, and its start and extent on each of these axes."""
_PendingReads = tuple[PendingBytes, ...]


class NumpyDataset(ListedFiles):
    """Arrays in files, or a region of each array. See `ListedFiles` for the other arguments.

    Args:
        region: Arguments of the region, named as in `slice_window`; empty for whole arrays.
        axes: Axes of the region; empty for all axes.
        policy: Policy for regions that reach outside the array.
        fill: Value of elements outside the array.
        from_folder: True if the reader listed the files of a folder.

    Raises:
        RuntimeError: No files were found.
    """

    def __init__(
        self, paths: Sequence[str], root: str, region: Mapping[str, Any], axes: Sequence[int],
        policy: str, fill: float, mapped: bool, direct: bool, remote: Remote | None = None,
        from_folder: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(paths, root, remote)
        self._region, self._axes, self._from_folder = dict(region), list(axes), from_folder
        self._policy, self._mapped, self._direct = policy, mapped, direct
        self._first_header: tuple[bytes, npy.NpyHeader] | None = None
        self._fill = torch.tensor([fill], dtype=torch.float32)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read] | None:
        """Start to read remote files; return None if all files are local.

        If the reader returns regions, only the rows that contain the regions are read.
        """
        if self._remote is None:
            return None
        return [partial(self.read, record, pending=self._start(self._remote, self._path(record))) for record in records]

    def _start(self, remote: Remote, url: str) -> _PendingReads:
        """Start to read a remote file.

        For a region, read the first bytes of the file, and then the slab.
        """
        if not is_url(url):
            return ()
        if not self._region:
            return (remote.start(url),)
        head: Future[Bytes] = Future()

        def read() -> Bytes:
            try:
                first, version = remote.head(url, npy.HEAD_SIZE)
                head.set_result(first)
            except BaseException as error:
                head.set_exception(error)
                raise
            header = npy.read_header(head.result())
            slab = npy.find_slab(header, *self._window(header.shape, self._region))
            if slab.header.offset + slab.size <= len(head.result()):
                return head.result()[slab.header.offset :][: slab.size]
            return remote.read(url, slab.header.offset, slab.size, version)

        return tuple(PendingBytes(each, 0, UNBOUNDED) for each in (head, remote.submit(read)))

    def _load_content(self, index: int, pending: _PendingReads) -> Tensor:
        return load_file(self._path(index), self._remote, pending[0] if pending else None, self._mapped, self._direct)

    def _read_into(self, index: int, out: Tensor) -> bool:
        """Try to read an array directly into `out`; return whether the array was read.

        The file's header must equal the header of the array that was read first.
        """
        first_header = self._first_header
        if first_header is None or self._direct:
            return False
        head, header = first_header
        if header.fortran or header.shape != out.shape or header.dtype != out.dtype:
            return False
        path = self._path(index)
        if self._remote is not None and is_url(path):
            return False
        return read_after(path, head, out)

    def read(self, index: int, out: Tensor | None = None, pending: _PendingReads = (), **varying: Any) -> tuple[Tensor]:
        """Return an array, or its region.

        Args:
            out: Memory for the result.
            pending: Pending reads of a remote file: either one read of the whole file, or two reads, of the file's
                first bytes and of the slab. Empty for a local file.
            varying: Arguments of the region with one value per sample.

        Raises:
            RuntimeError: The file cannot be read or isn't an array, or the region reaches outside the array.
        """
        is_whole = not self._region and not varying
        if is_whole and out is not None and self._read_into(index, out):
            return (out,)
        region = {**self._region, **{_REGION_NAMES[name]: value for name, value in varying.items()}}
        try:
            array = self._read_array(index, pending) if is_whole else self._read_region(index, region, pending)
        except ValueError as error:
            raise RuntimeError(f"{error}. File: {self.info(index)}") from None
        if out is not None and out.shape == array.shape and out.dtype == array.dtype:
            return (out.copy_(array),)
        return (array.contiguous(),)

    def _read_array(self, index: int, pending: _PendingReads) -> Tensor:
        content = self._load_content(index, pending).numpy()
        array = npy.read_array(content)
        if self._first_header is None:
            header = npy.read_header(content)
            # Set the header's bytes and its fields in a single assignment: another thread must not see the bytes of one
            # header with the fields of another header.
            self._first_header = content[: header.offset].tobytes(), header
        return array

    def _read_region(self, index: int, region: Mapping[str, Any], pending: _PendingReads) -> Tensor:
        """Return a region. Only the slab is read, unless the slab is most of the file."""
        slab_and_window = None
        if len(pending) == 2:
            slab_and_window = self._wait_for_slab(*pending, region)
        elif not self._direct and not is_url(self._path(index)):
            slab_and_window = self._read_slab(self._path(index), region)
        if slab_and_window is None:
            array = npy.read_array(self._load_content(index, pending).numpy())
            window = self._window(array.shape, region)
        else:
            array, window = slab_and_window
        fill = convert(self._fill, array.dtype).tolist() if self._policy == "pad" else []
        return cut(array, *window, policy=self._policy, fill=fill)

    def _window(self, shape: Sequence[int], region: Mapping[str, Any]) -> _Window:
        return slice_window(shape, "", axes=self._axes or list(range(len(shape))), **region)

    def _wait_for_slab(
        self, head: PendingBytes, content: PendingBytes, region: Mapping[str, Any]
    ) -> tuple[Tensor, _Window]:
        """Return the slab of a remote file, and the region relative to the slab."""
        header = npy.read_header(head.bytes())
        window = self._window(header.shape, region)
        slab = npy.find_slab(header, *window)
        return npy.to_tensor(slab.header, content.bytes()), _relative_to_slab(slab, window)

    def _read_slab(self, path: str, region: Mapping[str, Any]) -> tuple[Tensor, _Window] | None:
        """Return the slab of a local file, and the region relative to the slab.

        Return None if the whole file should be read.
        """
        storage = PlainFile(path)
        if storage.size <= _SMALL_FILE:
            return None
        header = npy.read_header(storage.read(0, min(storage.size, npy.HEAD_SIZE)))
        npy.check_size(header, storage.size)
        window = self._window(header.shape, region)
        slab = npy.find_slab(header, *window)
        if slab.size > storage.size // 2:
            return None
        array = npy.to_tensor(slab.header, storage.read(slab.header.offset, slab.size))
        return array, _relative_to_slab(slab, window)

    def info(self, index: int, output: int | None = None) -> str:
        """Return the path of a file.

        If `output` is passed, return the path as the user listed it. If the reader listed the files of a folder, this
        path starts with ``./``, as in DALI.
        """
        name = super().info(index, output)
        return f"./{name}" if output is not None and self._from_folder and not is_url(name) else name


def _relative_to_slab(slab: npy.Slab, window: _Window) -> _Window:
    """Convert a region of an array to the same region relative to a slab of the array."""
    axes, starts, extents = window
    moved = [start - slab.first * (axis == slab.axis) for axis, start in zip(axes, starts, strict=True)]
    return axes, moved, extents


@reader(name="readers.numpy", devices=("cpu", "gpu"), writes=True)
def numpy(
    *,
    file_root: FilePath | None = None,
    file_filter: str = "*.npy",
    files: list[FilePath] | None = None,
    file_list: FilePath | None = None,
    roi_start: PerSample[list[int]] | None = None,
    rel_roi_start: PerSample[list[float]] | None = None,
    roi_end: PerSample[list[int]] | None = None,
    rel_roi_end: PerSample[list[float]] | None = None,
    roi_shape: PerSample[list[int]] | None = None,
    rel_roi_shape: PerSample[list[float]] | None = None,
    roi_axes: list[int] | None = None,
    out_of_bounds_policy: Annotated[str, one_of(POLICIES)] = "error",
    fill_value: float = 0.0,
    cache_header_information: bool = False,
    register_buffers: bool = True,
    use_o_direct: bool = False,
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Dataset:
    """Read arrays that `numpy.save` wrote, or a region of each array.

    Args:
        file_root: Folder or URL of the files; with ``files`` or ``file_list``, the folder that relative paths start
            from.
        file_filter: Shell pattern of file names; has an effect only if neither ``files`` nor ``file_list`` is passed.
        files: Paths, or URLs.
        file_list: A text file with one path per line.
        roi_start: Start of the region: one value per axis in ``roi_axes``, or one value for all axes. By default, 0.
        rel_roi_start: Start of the region as a fraction of the array's extent.
        roi_end: End of the region, exclusive; by default the end of the array.
        rel_roi_end: End of the region as a fraction of the extent.
        roi_shape: Shape of the region: one value per axis in ``roi_axes``, or one value for all axes.
        rel_roi_shape: Shape of the region as a fraction of the extent.
        roi_axes: Axes of the region; by default, all axes. The region contains the other axes completely.
        out_of_bounds_policy: Policy for regions that reach outside the array: ``"error"``, ``"pad"`` or
            ``"trim_to_shape"``.
        fill_value: Value outside the array, for ``"pad"``.
        cache_header_information: Accepted, without effect.
        register_buffers: Accepted, without effect.
        use_o_direct: Bypass the system's file cache; requires ``dont_use_mmap``.

    Returns:
        The array, in C order.

    Raises:
        RuntimeError: No argument selects files, no file was found, or arguments exclude each other. While the pipeline
            runs: a file cannot be read, isn't an array of a dtype that PyTorch supports, or has a region that reaches
            outside the array.
    """
    mapped = not options.get("dont_use_mmap", False)
    if mapped and use_o_direct:
        raise RuntimeError("use_o_direct needs dont_use_mmap=True")
    bounds = {
        "roi_start": roi_start, "rel_roi_start": rel_roi_start, "roi_end": roi_end, "rel_roi_end": rel_roi_end,
        "roi_shape": roi_shape, "rel_roi_shape": rel_roi_shape,
    }  # fmt: skip
    _check_region(bounds)
    remote = open_remote([file_root, file_list, *(files or ())], options)
    root, paths = select_files(file_root, file_filter, files, file_list, remote)
    region = {_REGION_NAMES[name]: value for name, value in bounds.items() if value is not None}
    policy = resolve_policy(out_of_bounds_policy, borders=False)
    from_folder = files is None and file_list is None
    return NumpyDataset(
        paths, root, region, roi_axes or [], policy, fill_value, mapped, use_o_direct, remote, from_folder
    )


def _check_region(region: Mapping[str, Any]) -> None:
    for names in (
        ("roi_start", "rel_roi_start"),
        ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape"),
    ):
        conflicting = [name for name in names if region[name] is not None]
        if len(conflicting) > 1:
            raise RuntimeError(f"{' and '.join(conflicting)} are mutually exclusive")


def select_files(
    root: str | None,
    pattern: str,
    files: list[str] | None,
    file_list: str | None,
    remote: Remote | None = None,
) -> tuple[str, list[str]]:
    """Return the root folder, and the paths of the files that a reader's arguments select.

    Raises:
        RuntimeError: No argument selects files, two arguments exclude each other, or a folder or list cannot be read.
    """
    if files is not None and file_list is not None:
        raise RuntimeError("pass either files or file_list, not both")
    try:
        if files is not None:
            return root or "", files
        if file_list is not None:
            names = [line.strip() for line in read_text(file_list).split("\n") if line.strip()]
            return os.path.dirname(file_list) if root is None else root, names
        if root is None:
            raise RuntimeError("pass file_root, files or file_list")
        if remote is not None:
            return root, fnmatch.filter(remote.list_folder(root)[1], pattern)
        names = [entry.name for entry in os.scandir(root) if not entry.is_dir()]
    except OSError as error:
        raise RuntimeError(f"cannot list the files: {error}") from None
    return root, sorted(fnmatch.filter(names, pattern), key=os.fsencode)


@operator(name="decoders.numpy", layout="", devices=("cpu",))
def decode_numpy(
    data: Annotated[Tensor, InputConstraints(dtypes=(torch.uint8,))], /, *, dtype: DType | None = None
) -> Data:
    """Decode an array that `numpy.save` wrote.

    Args:
        data: The bytes of the file, ``(n,)`` uint8.
        dtype: Output dtype; values are rounded and clamped to the dtype's range. By default, the array's dtype.

    Returns:
        The array, in C order.

    Raises:
        RuntimeError: The bytes are not an array, or are too few or too many for the array's shape.
    """
    try:
        content = data.contiguous().numpy()
        header = npy.read_header(content)
        array = npy.read_array(content)
    except ValueError as error:
        raise RuntimeError(f"cannot decode an array: {error}") from None
    if header.offset + array.numel() * array.element_size() != data.numel():
        raise RuntimeError(
            f"too many bytes for an array of shape {tuple(array.shape)}, got {data.numel()} with the header"
        )
    return (array if dtype is None else convert(array, dtype)).contiguous()
