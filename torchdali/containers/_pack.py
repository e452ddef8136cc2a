"""Pack images into webdataset or TFRecord shards, with an index for each shard.

The content of all shards is planned before the first shard is written. The plan is stored next to the shards, in
``pack.json``. A shard gets its final name only when it is complete. Therefore, a stopped run can be continued, and the
shards are the same, byte for byte, as if the run had not been stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import torch

from torchdali import fn, types
from torchdali.containers._check import IMAGES
from torchdali.containers._images import FORMATS, EncodedImage, encode, psnr
from torchdali.containers._index import Progress
from torchdali.containers._sources import UNKNOWN, Sample, SampleSource, open_source
from torchdali.formats import tar, tfrecord
from torchdali.formats.remote import NoSuchObject, Remote
from torchdali.formats.shared_folder import new_file
from torchdali.formats.storage import read_text, write_text
from torchdali.formats.urls import is_url, redact

__all__ = ["PackOptions", "Packed", "pack"]

_PLAN = "pack.json"
_SIZE_SAMPLES = 32  # number of images that are encoded to estimate the size of all images
_PSNR_INTERVAL = 10  # the PSNR is computed for every tenth image


@dataclass(frozen=True)
class PackOptions:
    """Format of the packed samples.

    Attributes:
        to: Format of the shards: ``"webdataset"`` or ``"tfrecord"``.
        shard_size: Approximate size of a shard in bytes.
        shorter: Shrink larger images so that their shorter side has this number of pixels.
        format: Format of the images: ``"jpeg"``, ``"webp"`` or ``"raw"`` (pixels in the format of `numpy.save`). None
            keeps images unchanged, but encodes shrunk images as JPEG. Images other than photos are encoded losslessly
            as PNG: palette images, label maps, other images with few values, and 16-bit images. If `format` is None,
            gray images and images with alpha are encoded as PNG, too.
        quality: Quality of JPEG and WebP, 1 to 100.
        skip: Decode every image, and skip samples that cannot be read or decoded. If False, only images that must be
            encoded again are decoded. A sample that cannot be read or encoded again, or whose image header cannot be
            read, then raises an error.

    Raises:
        RuntimeError: An option is unknown or out of range.
    """

    to: str = "webdataset"
    shard_size: int = 256 << 20
    shorter: int | None = None
    format: str | None = None
    quality: int = 92
    skip: bool = False

    def __post_init__(self) -> None:
        if self.to not in _WRITERS:
            raise RuntimeError(f"to must be 'webdataset' or 'tfrecord', got {self.to!r}")
        if self.format is not None and self.format not in FORMATS:
            raise RuntimeError(f"format must be one of {', '.join(FORMATS)}, got {self.format!r}")
        smallest = min(self.shard_size, 1 if self.shorter is None else self.shorter)
        if smallest < 1 or not 1 <= self.quality <= 100:
            raise RuntimeError("shard_size and shorter must be at least 1, and quality must be 1 to 100")

    @property
    def encodes(self) -> bool:
        """True if images may be encoded again."""
        return self.shorter is not None or self.format is not None


@dataclass
class Packed:
    """The report of a run.

    Attributes:
        samples: Number of samples that this run wrote.
        shards: Paths of all shards.
        kept: Number of shards that earlier runs wrote.
        read: Size in bytes of the samples that this run read.
        written: Size in bytes of the shards that this run wrote.
        seconds: Duration of the run.
        psnr: PSNR in dB of every tenth image, if the image was encoded again with loss.
        lossless: Number of images that were encoded again without loss.
        skipped: For each skipped sample, its name and the reason.
    """

    samples: int = 0
    shards: list[str] = field(default_factory=list)
    kept: int = 0
    read: int = 0
    written: int = 0
    seconds: float = 0.0
    psnr: list[float] = field(default_factory=list)
    lossless: int = 0
    skipped: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.samples / self.seconds if self.seconds else 0.0
        lines = [
            f"{self.samples} samples in {len(self.shards) - self.kept} shards, {self.kept} shards were there",
            f"{self.read:,} bytes read, {self.written:,} written; {rate:.0f} samples/s",
        ]
        if self.psnr:
            mean, least = float(np.mean(self.psnr)), min(self.psnr)
            lines.append(f"PSNR of {len(self.psnr)} encoded images: {mean:.1f} dB, at least {least:.1f} dB")
        if self.lossless:
            lines.append(f"{self.lossless} images were encoded losslessly: they aren't photos, or format is 'raw'")
        lines += [f"skipped: {each}" for each in self.skipped]
        return "\n".join(lines)


def pack(
    source: str,
    target: str,
    options: PackOptions | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Packed:
    """Pack a folder of class folders, or containers, into shards.

    If an earlier run with the same source, target and options was stopped, this run continues the earlier run.

    Args:
        source: A folder of class folders; a webdataset (``.tar``), TFRecord or RecordIO (``.rec``) file, or a folder or
            pattern of these files; or a Caffe LMDB database.
        target: A folder, or its URL.
        options: Format of the shards.
        jobs: Number of shards that are written at the same time.
        progress: Function that is called with the number of processed samples and the number of all samples.

    Raises:
        RuntimeError: The source cannot be read, no sample can be packed, or the target has shards of another source or
            with other options.
    """
    options = options or PackOptions()
    samples = open_source(source)
    with _ShardFolder(target) as folder:
        return _pack(samples, folder, options, jobs, progress, source)


def _pack(
    samples: SampleSource, target: _ShardFolder, options: PackOptions, jobs: int, progress: Progress | None, source: str
) -> Packed:
    starts = _plan(samples, target, options)
    state = _PackState(samples, target, options, progress)
    began = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(state.write_shard, *each) for each in _ranges(starts, len(samples))]
        try:
            state.report.shards = [path for path in (each.result() for each in futures) if path]
        except BaseException:
            state.stopped = True
            pool.shutdown(cancel_futures=True)
            raise
    state.report.seconds = time.perf_counter() - began
    state.report.skipped.sort()
    if not state.report.shards:
        target.remove(_PLAN)  # so that the folder can be used for another source or with other options
        count, first = len(state.report.skipped), state.report.skipped[0]
        raise RuntimeError(f"no sample of {source} can be packed: all {count} failed. The first error: {first}")
    return state.report


class _ShardFolder:
    """Target folder of the shards. For a URL, shards are written to a temporary folder, and then uploaded."""

    def __init__(self, path: str) -> None:
        self.path, self._remote = path, Remote() if is_url(path) else None

    def __enter__(self) -> _ShardFolder:
        self._temporary = None if self._remote is None else tempfile.TemporaryDirectory(prefix="torchdali-pack-")
        self.folder = self.path if self._temporary is None else self._temporary.name
        if self._remote is None:
            os.makedirs(self.folder, exist_ok=True)
        self._names = set(os.listdir(self.folder) if self._remote is None else self._list_shards(self._remote))
        for name in self._names if self._remote is None else ():
            if re.fullmatch(r"shard-\d{6,}\.\S+\.part", name):  # an unfinished shard of a killed run
                os.unlink(os.path.join(self.folder, name))
        return self

    def __exit__(self, *exc: object) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def _list_shards(self, remote: Remote) -> list[str]:
        try:
            return remote.list_folder(self.path)[1]
        except NoSuchObject:
            return []

    def has(self, name: str) -> bool:
        """Return whether a file of this name existed when the folder was opened."""
        return name in self._names

    def path_of(self, name: str) -> str:
        """Return the path or URL of a file."""
        return f"{self.path.rstrip('/')}/{name}" if self._remote is not None else os.path.join(self.path, name)

    def publish(self, unfinished: str, name: str) -> None:
        """Rename or upload a complete file to its final name.

        After a crash, the next run keeps files with final names.
        """
        if self._remote is None:
            os.replace(unfinished, self.path_of(name))
            return
        self._remote.upload(self.path_of(name), unfinished)
        os.unlink(unfinished)

    def remove(self, name: str) -> None:
        """Remove a file."""
        if self._remote is None:
            os.unlink(self.path_of(name))
        else:
            self._remote.remove(self.path_of(name))


def _ranges(starts: Sequence[int], count: int) -> list[tuple[int, int, int]]:
    """Return the number, the first sample and the end (exclusive) of each shard."""
    ends = [*starts[1:], count]
    return [(number, *each) for number, each in enumerate(zip(starts, ends, strict=True))]


# ---------------------------------------------------------------- the plan


def _plan(source: SampleSource, target: _ShardFolder, options: PackOptions) -> list[int]:
    """Return the first sample of each shard.

    If an earlier run has stored a plan, use this plan. Otherwise, make and store a plan.
    """
    path = target.path_of(_PLAN)
    form = {"source": _digest(source), "options": asdict(options)}
    try:
        saved = json.loads(read_text(path)) if target.has(_PLAN) else None
        if saved is not None and saved["form"] != form:
            raise RuntimeError(
                f"{redact(target.path)} must have only shards of the same source and options. Pass another folder, or "
                f"empty this folder"
            )
        if saved is not None:
            return [int(start) for start in saved["starts"]]
    except (ValueError, KeyError, TypeError):
        raise RuntimeError(f"{path} is damaged. Empty the folder, and pack again") from None
    starts = _starts(source.sizes() * _ratio(source, options) + 1024, options.shard_size)
    write_text(path, json.dumps({"form": form, "starts": starts}))
    if source.classes:
        write_text(target.path_of("classes.txt"), "".join(f"{name}\n" for name in source.classes))
    return starts


def _digest(source: SampleSource) -> str:
    sizes = source.sizes()
    names = hashlib.sha256(sizes.tobytes())
    for index in range(len(source)):
        names.update(source.name(index).encode("utf-8", "surrogateescape") + b"\0")
    return names.hexdigest()


def _ratio(source: SampleSource, options: PackOptions) -> float:
    """Estimate the ratio of packed to original size from some of the images."""
    if not options.encodes:
        return 1.0
    before = after = 1
    for index in np.unique(np.linspace(0, len(source) - 1, _SIZE_SAMPLES).astype(int)).tolist():
        try:
            sample = source.read(index)
            packed = _encode_image(sample, options)[0]
        except (RuntimeError, OSError):
            continue
        before, after = before + sample.size, after + packed.size
    return after / before


def _starts(sizes: npt.NDArray[Any], max_size: int) -> list[int]:
    starts, filled = [0], 0.0
    for index, size in enumerate(sizes.tolist()):
        if filled and filled + size > max_size:
            starts.append(index)
            filled = 0.0
        filled += size
    return starts


# ---------------------------------------------------------------- a shard


class _PackState:
    """The state that all threads of a run share."""

    def __init__(
        self, source: SampleSource, target: _ShardFolder, options: PackOptions, progress: Progress | None
    ) -> None:
        self.source, self.target, self.options = source, target, options
        self.report, self.stopped = Packed(), False
        self._progress, self._lock, self._samples = progress, threading.Lock(), 0

    def write_shard(self, number: int, start: int, stop: int) -> str | None:
        """Write a shard, unless it exists; return its path, or None if all of its samples are skipped."""
        extension, write, index_text = _WRITERS[self.options.to]
        name = f"shard-{number:06}"
        path = self.target.path_of(f"{name}{extension}")
        if self.target.has(f"{name}{extension}"):
            with self._lock:
                self.report.kept += 1
            self._report_progress(stop - start)
            return path
        torch.set_num_threads(1)
        unfinished = os.path.join(self.target.folder, f"{name}{extension}.part")
        with open(unfinished, "wb", opener=new_file) as file:
            index = write(file, (self._pack_sample(i) for i in range(start, stop)))
            file.flush()
            os.fsync(file.fileno())
        if not index:
            os.unlink(unfinished)
            return None
        write_text(self.target.path_of(f"{name}.idx"), index_text(index))
        with self._lock:
            self.report.written += os.path.getsize(unfinished)
        self.target.publish(unfinished, f"{name}{extension}")
        return path

    def _pack_sample(self, index: int) -> Sample | None:
        """Read a sample and encode its image; return None if the sample is skipped."""
        if self.stopped:
            raise RuntimeError("stopped")
        packed = encoded = None
        try:
            sample = self.source.read(index)
            _check_image(sample, self.options.skip)
            packed = sample
            if self.options.encodes:
                packed, encoded = _encode_image(sample, self.options)
        except (RuntimeError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"{self.source.name(index)}: {reason or error}"
            if not self.options.skip:
                raise RuntimeError(f"cannot pack {message}; pass --skip (skip=True) to skip such samples") from None
            packed = None
        with self._lock:
            if packed is None:
                self.report.skipped.append(message)
            else:
                self.report.samples += 1
                self.report.read += sample.size
                self.report.lossless += encoded is not None and not encoded.is_photo
        if encoded is not None and encoded.is_photo and index % _PSNR_INTERVAL == 0:
            self.report.psnr.append(psnr(encoded))
        self._report_progress(1)
        return packed and packed._replace(key=f"{index:09}")

    def _report_progress(self, samples: int) -> None:
        with self._lock:
            self._samples += samples
            if self._progress is not None:
                self._progress(self._samples, len(self.source))


def _write_tar(file: BinaryIO, samples: Any) -> list[Any]:
    index, offset = [], 0
    for sample in samples:
        if sample is None:
            continue
        parts = []
        for extension, content in sample.parts:
            name = f"{sample.key}.{extension}"
            parts.append((extension, offset + tar.BLOCK, len(content), name))
            offset += tar.write_member(file, name, content)
        index.append(parts)
    tar.write_end(file)
    return index


def _write_tfrecord(file: BinaryIO, samples: Any) -> list[Any]:
    index, offset = [], 0
    for sample in samples:
        if sample is None:
            continue
        size = tfrecord.write_record(file, tfrecord.write_example(_features(sample)))
        index.append((offset, size))
        offset += size
    return index


_WRITERS: dict[str, tuple[str, Callable[[BinaryIO, Any], list[Any]], Callable[[Any], str]]] = {
    "webdataset": (".tar", _write_tar, tar.index_text),
    "tfrecord": (".tfrecord", _write_tfrecord, tfrecord.index_text),
}


def _features(sample: Sample) -> dict[str, Any]:
    """Return the features of a sample: ``key``, ``image``, and the other parts by extension.

    A part with the extension ``cls`` becomes the int64 feature ``label`` if its content is a number.
    """
    features: dict[str, Any] = {"key": sample.key.encode()}
    for index, (extension, content) in enumerate(sample.parts):
        if index == sample.image:
            features["image"] = content
        elif extension == "cls" and content.strip().lstrip(b"-").isdigit():
            features["label"] = [int(content)]
        else:
            features[extension] = content
    return features


# ---------------------------------------------------------------- images


def _check_image(sample: Sample, decode: bool) -> None:
    """Read the header of an image, or decode the whole image; raise RuntimeError if the image is damaged."""
    if sample.image is None:
        return
    extension, content = sample.parts[sample.image]
    if extension != UNKNOWN and f".{extension}" not in IMAGES:
        return  # not an image, but audio, a video or an array
    data = torch.from_numpy(np.frombuffer(content, np.uint8).copy())
    _ = fn.decoders.image(data, output_type=types.ANY_DATA) if decode else fn.peek_image_shape(data)


def _encode_image(sample: Sample, options: PackOptions) -> tuple[Sample, EncodedImage | None]:
    """Encode a sample's image again; return the unchanged sample and None if the options don't require this."""
    if sample.image is None:
        return sample, None
    image = encode(sample.parts[sample.image][1], options.shorter, options.format, options.quality)
    if image is None:
        return sample, None
    parts = list(sample.parts)
    parts[sample.image] = image.extension, image.content
    return sample._replace(parts=tuple(parts)), image
