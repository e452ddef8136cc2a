"""The reader of frame sequences: several images of a folder form a sequence."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import deprecate, reader
from torchdali.codecs.files import read_file
from torchdali.codecs.images import EXTENSIONS, decode
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.formats.storage import file_identity
from torchdali.reading.datasets import Dataset, LoaderOptions
from torchdali.reading.file_lists import list_digest
from torchdali.types import DALIImageType

__all__ = ["SequenceDataset", "sequence"]


class SequenceDataset:
    """Sequences of frames.

    Args:
        sequences: For each record, the paths of the frames.
        mapped: If True, map large files into memory; if False, read all files with ordinary read calls.

    Raises:
        RuntimeError: No sequences were found.
    """

    def __init__(self, sequences: Sequence[Sequence[str]], image_type: str = "RGB", mapped: bool = True) -> None:
        if not sequences:
            raise RuntimeError("no folder has enough frames for a sequence")
        self._sequences, self._image_type, self._mapped = sequences, image_type, mapped

    def __len__(self) -> int:
        return len(self._sequences)

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identities of all frames of a sequence.

        If `index` is None, return the identity of the list of sequences: the digest of the paths of each sequence's
        first frame.
        """
        if index is None:
            return list_digest([frames[0] for frames in self._sequences])
        identities = [file_identity(path) for path in self._sequences[index]]
        return None if None in identities else b"\0".join(filter(None, identities))

    def read(self, index: int) -> tuple[Tensor]:
        """Return the decoded frames, ``(F, H, W, C)``.

        Raises:
            RuntimeError: A frame cannot be decoded, or the frames differ in shape.
        """
        paths = self._sequences[index]
        frames = [decode(read_file(path, mapped=self._mapped), output_type=self._image_type) for path in paths]
        for path, frame in zip(paths, frames, strict=True):
            if frame.shape != frames[0].shape:
                raise RuntimeError(
                    f"the frames of a sequence must have the same shape: {path} has {tuple(frame.shape)}, and the "
                    f"first frame has {tuple(frames[0].shape)}"
                )
        return (torch.stack(frames),)

    def info(self, index: int, output: int | None = None) -> str:
        """Return the path of a sequence's first frame; an empty string if `output` is passed, as in DALI."""
        return self._sequences[index][0] if output is None else ""


@reader(name="readers.sequence", layout="FHWC")
def sequence(
    *,
    file_root: FilePath,
    image_type: DALIImageType = DALIImageType.RGB,
    sequence_length: int,
    step: int = 1,
    stride: int = 1,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read sequences of frames that are stored as images, one folder per video.

    The names of the images determine the order of the frames.

    Args:
        file_root: Folder that contains the folders of frames. Files other than images are skipped.
        image_type: Color space: RGB, BGR, GRAY, or ANY_DATA, which keeps the channels of the files.
        sequence_length: Number of frames in a sequence.
        step: Number of frames from the start of a sequence to the start of the next sequence.
        stride: Number of frames from one frame of a sequence to the next.

    Returns:
        The frames, ``(F, H, W, C)`` uint8.

    Raises:
        RuntimeError: No folder has enough frames, ``image_type`` is YCbCr, or a number is not positive. While the
            pipeline runs: a file cannot be decoded, or the frames of a sequence differ in shape.
    """
    for name, value in (("sequence_length", sequence_length), ("step", step), ("stride", stride)):
        if value < 1:
            raise RuntimeError(f"{name} must be positive, got {value}")
    if image_type == DALIImageType.YCbCr:
        raise RuntimeError("image_type must be RGB, BGR, GRAY or ANY_DATA, got YCbCr")
    extent = (sequence_length - 1) * stride + 1
    sequences = [
        frames[start : start + extent : stride]
        for frames in _list_frames(file_root)
        for start in range(0, len(frames) - extent + 1, step)
    ]
    return SequenceDataset(sequences, image_type.name, not options.get("dont_use_mmap", False))


deprecate(sequence, "external_source, or a video reader")


def _list_frames(root: str) -> list[list[str]]:
    folders: dict[str, list[str]] = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(root), "*", "*"))):
        if path.lower().endswith(EXTENSIONS):
            folders.setdefault(os.path.dirname(path), []).append(path)
    return list(folders.values())
