"""The reader of recordings that NeMo manifests list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.codecs.audio import decode_part
from torchdali.codecs.files import read_file
from torchdali.declaration.schema import DType, FilePath, OutputCount, shares
from torchdali.errors import DecodeError
from torchdali.formats.nemo import Recording, read_manifest
from torchdali.formats.storage import file_identity
from torchdali.ops._readers._records import check_local
from torchdali.reading.datasets import Dataset, LoaderOptions
from torchdali.reading.file_lists import list_digest

__all__ = ["NemoDataset", "nemo_asr"]


class NemoDataset:
    """Recordings, with sample rate, text and index if requested.

    Args:
        decoding: Arguments of `codecs.audio.decode_part`.
        returns_rate: Return the sample rate.
        returns_text: Return the text.
        returns_index: Return the recording's index in the manifest.

    Raises:
        RuntimeError: No recordings were found.
    """

    def __init__(
        self, entries: Sequence[Recording], decoding: Mapping[str, Any], returns_rate: bool, returns_text: bool,
        returns_index: bool,
    ) -> None:  # fmt: skip
        if not entries:
            raise RuntimeError("no files found: the manifests list no recording within the limits")
        self._entries, self._decoding = entries, dict(decoding)
        self._returns_rate, self._returns_text, self._returns_index = returns_rate, returns_text, returns_index

    def __len__(self) -> int:
        return len(self._entries)

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a recording; if `index` is None, return the identity of the list of recordings.

        The identity of a recording consists of the file's identity and the manifest entry.
        """
        if index is None:
            return list_digest([entry.path for entry in self._entries])
        entry = self._entries[index]
        identity = file_identity(entry.path)
        return None if identity is None else identity + repr(entry).encode("utf-8", "surrogateescape")

    def read(self, index: int) -> tuple[Tensor, ...]:
        """Return the outputs of a recording.

        Raises:
            DecodeError: The file cannot be decoded, or the recording begins after the file's end.
            OSError: The file cannot be read.
        """
        entry = self._entries[index]
        try:
            samples, rate = decode_part(read_file(entry.path), entry.offset, entry.duration, **self._decoding)
        except DecodeError as error:
            raise DecodeError(f"{error}. File: {entry.path}") from None
        outputs = [samples.contiguous()]
        if self._returns_rate:
            outputs.append(torch.tensor(rate, dtype=torch.float32))
        if self._returns_text:
            outputs.append(torch.from_numpy(np.frombuffer(_encode_text(entry.text), np.uint8).copy()))
        if self._returns_index:
            outputs.append(torch.tensor([entry.number], dtype=torch.int64))
        return tuple(outputs)

    def info(self, index: int, output: int | None = None) -> str:
        """Return the path of a recording; an empty string if `output` is passed, as in DALI."""
        return self._entries[index].path if output is None else ""


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _count_outputs(arguments: Mapping[str, Any]) -> int | None:
    extra = ("read_sample_rate", "read_text", "read_idxs")
    count = 1 + sum(bool(arguments[name]) for name in extra)
    return count if count > 1 else None


@reader(name="readers.nemo_asr", outputs=_count_outputs, deprecated={"normalize_text": None})
def nemo_asr(
    *,
    manifest_filepaths: list[FilePath],
    downmix: bool = True,
    dtype: DType = torch.float32,
    max_duration: float = 0.0,
    min_duration: float = 0.0,
    quality: float = 50.0,
    read_idxs: bool = False,
    read_sample_rate: bool = True,
    read_text: bool = True,
    sample_rate: float = -1.0,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(3)]:
    """Read the recordings and texts that NeMo manifests list.

    A manifest has one JSON object per line: ``audio_filepath``, and optionally ``offset`` and ``duration`` in seconds,
    and ``text``. Lines without ``audio_filepath`` are skipped with a warning.

    Args:
        manifest_filepaths: Paths of the manifests.
        downmix: Return the mean of the channels.
        dtype: float32 (full scale is 1), int16 or int32.
        max_duration: Maximum duration in seconds; longer recordings are skipped. 0 for no maximum.
        min_duration: Minimum duration in seconds; shorter recordings are skipped.
        quality: Quality of resampling, from 0 to 100.
        read_idxs: Return the recording's index in its manifest. Skipped recordings are not counted.
        read_sample_rate: Return the file's sample rate; resampling doesn't change this output.
        read_text: Return the text.
        sample_rate: Sample rate of the output, in Hz. Audio with another rate is resampled. 0 or less disables
            resampling.

    Returns:
        The samples, ``(samples,)``, or ``(samples, channels)`` without ``downmix``; the sample rate, a float32 scalar;
        the text, ``(n,)`` uint8 in UTF-8; the index, ``(1,)`` int64.

    Raises:
        RuntimeError: A manifest cannot be read, lists no recording within the limits, or has a value of a wrong type;
            or an argument is wrong. While the pipeline runs: a recording cannot be read or decoded, or begins after the
            file's end.
    """
    if not manifest_filepaths:
        raise RuntimeError("manifest_filepaths can not be empty")
    if dtype not in (torch.float32, torch.int16, torch.int32):
        raise RuntimeError(f"dtype must be float, int16 or int32, got {dtype}")
    if not 0 <= quality <= 100:
        raise RuntimeError(f"quality must be between 0 and 100, got {quality}")
    entries = [e for path in manifest_filepaths for e in read_manifest(path, min_duration, max_duration)]
    check_local(audio_filepath=[entry.path for entry in entries])
    decoding = {
        "sample_rate": max(sample_rate, 0.0), "downmix": downmix, "dtype": dtype, "quality": quality,
    }  # fmt: skip
    return NemoDataset(entries, decoding, read_sample_rate, read_text, read_idxs)
