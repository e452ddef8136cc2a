"""The reader of FITS files: astronomical images."""

from __future__ import annotations

import importlib
import io
import math
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.codecs.files import read_file
from torchdali.codecs.signatures import describe_content
from torchdali.declaration.schema import FilePath, OutputCount, shares, to_dtype
from torchdali.errors import MissingExtraError
from torchdali.forks import ForkSafeLock
from torchdali.ops._readers._records import check_local
from torchdali.ops._readers.file import ListedFiles
from torchdali.ops._readers.numpy import select_files
from torchdali.reading.datasets import Dataset, LoaderOptions

__all__ = ["FitsDataset", "fits"]

_warnings_lock = ForkSafeLock()  # all threads share Python's warning filters


class FitsDataset(ListedFiles):
    """Images of FITS files.

    A FITS file is a list of header-data units (HDUs), each with an image or a table.

    Args:
        indices: Numbers of the HDUs to read from each file, from 1.
        dtypes: Output dtypes; empty for the dtypes in the files.

    Raises:
        RuntimeError: No files were found.
        MissingExtraError: astropy is not installed.
    """

    def __init__(
        self, paths: Sequence[str], root: str, indices: Sequence[int], dtypes: Sequence[torch.dtype]
    ) -> None:  # fmt: skip
        super().__init__(paths, root)
        try:
            self._fits = importlib.import_module("astropy.io.fits")
        except ImportError:
            raise MissingExtraError("astropy", "astronomy", "reading FITS files") from None
        self._indices, self._dtypes = indices, dtypes

    def read(self, index: int) -> tuple[Tensor, ...]:
        """Return the images of a file.

        Raises:
            RuntimeError: The file is damaged, or lacks one of the images.
            OSError: The file cannot be read.
        """
        path = self.info(index)
        data = read_file(path).numpy()
        content = io.BytesIO(data.data)
        try:
            with _warnings_lock, warnings.catch_warnings():
                warnings.simplefilter("error")  # astropy only warns about truncated files
                with self._fits.open(content, memmap=False, lazy_load_hdus=True) as units:
                    self._check_compressed(content, units)
                    images = [self._read_image(units, number) for number in self._indices]
        except MemoryError:
            raise
        except Exception as error:
            raise RuntimeError(f"cannot read the FITS file {path}: {error}{describe_content(data, 'FITS')}") from None
        if not self._dtypes:
            return tuple(images)
        return tuple(image.to(dtype) for image, dtype in zip(images, self._dtypes, strict=True))

    def _check_compressed(self, content: io.BytesIO, units: Any) -> None:
        """Check the headers of compressed images, because some wrong headers make astropy crash the process."""
        numbers = [n for n in self._indices if isinstance(_get_unit(units, n), self._fits.CompImageHDU)]
        if numbers:
            options = {"memmap": False, "disable_image_compression": True}
            with self._fits.open(io.BytesIO(content.getbuffer()), **options) as tables:
                for number in numbers:
                    _check_header(tables[number - 1].header)
                    _check_tiles(tables[number - 1])

    def _read_image(self, units: Any, number: int) -> Tensor:
        unit = _get_unit(units, number)
        if not unit.is_image:
            raise ValueError(f"Only IMAGE_HDUs are supported, got a table in HDU {number}")
        pixels = unit.data
        if pixels is None:
            raise ValueError(f"NAXIS of HDU {number} has to be greater than 0: it has no image")
        return torch.from_numpy(np.array(pixels, pixels.dtype.newbyteorder("="), order="C"))


def _get_unit(units: Any, number: int) -> Any:
    try:
        return units[number - 1]
    except IndexError:
        raise ValueError(f"no HDU {number}: tried to move past end of file") from None


# For each number of bits per pixel, the item sizes in bytes that Rice compression may use in addition to 4.
_RICE_ITEM_SIZES = {8: (1,), 16: (2,)}


def _check_header(header: Any) -> None:
    bits = header["ZBITPIX"]
    extents = [header[f"ZNAXIS{axis}"] for axis in range(1, header["ZNAXIS"] + 1)]
    tile = [header.get(f"ZTILE{axis}", 1) for axis in range(1, len(extents) + 1)]
    tile[0] = header.get("ZTILE1", extents[0])
    if not all(isinstance(n, int) and n > 0 for n in extents + tile):
        raise ValueError(f"a compressed image and its tiles must have positive extents, got {extents} and {tile}")
    tiles = math.prod(-(-n // side) for n, side in zip(extents, tile, strict=True))
    if tiles != header["NAXIS2"]:
        raise ValueError(f"the image must have {tiles} tiles, got {header['NAXIS2']}")
    if not str(header["ZCMPTYPE"]).startswith("RICE"):
        return
    names = [value for key, value in header.items() if key.startswith("ZNAME")]
    values = [value for key, value in header.items() if key.startswith("ZVAL")]
    settings = {"BLOCKSIZE": 32, "BYTEPIX": 4, **dict(zip(names, values, strict=True))}
    if settings["BLOCKSIZE"] not in (16, 32) or settings["BYTEPIX"] not in (4, *_RICE_ITEM_SIZES.get(bits, ())):
        raise ValueError(f"unsupported compression of {bits}-bit pixels: {settings}")


def _check_tiles(table: Any) -> None:
    """Check the size that is stored in each compressed tile."""
    header = table.header
    if header["ZCMPTYPE"] not in ("HCOMPRESS_1", "PLIO_1"):
        return
    axes = range(header["ZNAXIS"], 0, -1)
    image = np.array([header[f"ZNAXIS{axis}"] for axis in axes])
    tile = np.array([header.get(f"ZTILE{axis}", 1) for axis in axes])
    tile[-1] = header.get("ZTILE1", image[-1])
    tile_indices = np.ndindex(*(-(-image // tile)).tolist())
    for content, tile_index in zip(table.data["COMPRESSED_DATA"], tile_indices, strict=True):
        extents = np.minimum(image - tile * np.array(tile_index), tile)
        if not len(content):
            continue  # the tile is stored in another column
        if header["ZCMPTYPE"] == "PLIO_1":
            words = [int(word) for word in content[:5]]
            is_valid = words[1:3] == [7, -100] and len(words) == 5
            is_valid = is_valid and words[3] + (words[4] << 15) == len(content)
        else:
            sides = sorted(n for n in extents.tolist() if n != 1)
            stored = content[2:10].astype(np.uint8).tobytes()
            is_valid = sorted(np.frombuffer(stored.ljust(8, b"\0"), ">i4").tolist()) == sides
        if not is_valid:
            raise ValueError(f"the size of the tile {tile_index} must match its region of the image")


@reader(
    name="experimental.readers.fits",
    outputs=lambda a: len(a["hdu_indices"]) if len(a["hdu_indices"]) > 1 else None,
    devices=("cpu", "gpu"),
)
def fits(
    *,
    file_root: FilePath | None = None,
    file_filter: str = "*.fits",
    files: list[FilePath] | None = None,
    file_list: FilePath | None = None,
    hdu_indices: list[int] = [2],  # noqa: B006  never changed
    dtypes: list[Any] | None = None,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read images of FITS files, plain or compressed, with the package astropy (extra ``astronomy``).

    Files are decoded on the CPU.

    Args:
        file_root: Folder of the files; with ``files`` or ``file_list``, the folder that relative paths start from.
        file_filter: Shell pattern of file names; has an effect only if neither ``files`` nor ``file_list`` is passed.
        files: Paths of the files.
        file_list: A text file with one path per line.
        hdu_indices: Numbers of the header-data units to read, one output per unit; the primary unit is 1.
        dtypes: Dtypes of the outputs; by default the files' dtypes.

    Returns:
        The image of each unit. The axes are in NumPy's order: the last axis in FITS is the first axis of the output. If
        the file defines a scale for the values, the values are scaled.

    Raises:
        RuntimeError: No argument selects files, no file was found, or arguments exclude each other. While the pipeline
            runs: a file cannot be read, or lacks one of the images.
        MissingExtraError: astropy is not installed.
    """
    if min(hdu_indices, default=0) < 1:
        raise RuntimeError(f"hdu_indices must be at least 1, got {hdu_indices}")
    if dtypes and len(dtypes) != len(hdu_indices):
        raise RuntimeError(
            f"Number of extensions does not match the number of provided types: {len(hdu_indices)} and {len(dtypes)}"
        )
    check_local(file_root=file_root, files=files, file_list=file_list)
    root, paths = select_files(file_root, file_filter, files, file_list)
    kinds = [kind for kind in map(to_dtype, dtypes or ()) if kind is not None]
    return FitsDataset(paths, root, hdu_indices, kinds)
