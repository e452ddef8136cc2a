"""Decoded images against the real DALI: bit-identical, or rejected by both.

DALI runs in child processes, since it crashes on a few files. They deliver shapes, types and
digests of the pixels. Run as a program, this file is a child.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.data import ROOT, folder
from tests.helpers.encoded_images import (
    GRAY,
    JPEGS,
    LOSSLESS,
    RGB,
    RGB16,
    Array,
    encoded,
    exif,
    exif_block,
)
from torchdali.codecs import images
from torchdali.errors import DecodeError

pytestmark = pytest.mark.parity

DTYPES = {
    "UINT8": torch.uint8,
    "INT8": torch.int8,
    "UINT16": torch.uint16,
    "INT16": torch.int16,
    "UINT32": torch.uint32,
    "INT32": torch.int32,
    "FLOAT": torch.float32,
}
KINDS = ("RGB", "GRAY", "ANY_DATA", "BGR", "YCbCr")


class Job(NamedTuple):
    """One call of a decoder, or of peek_image_shape where the type is "PEEK"."""

    path: str
    output_type: str
    dtype: str = "UINT8"
    adjust_orientation: bool = True


class Result(NamedTuple):
    """Outcome of a file: an error ("refused", "crashed"), or a key of an array."""

    error: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    digest: str = ""


def describe(pixels: Any) -> Result:
    digest = hashlib.sha256(np.ascontiguousarray(pixels).tobytes()).hexdigest()
    return Result("", tuple(pixels.shape), str(pixels.dtype), digest)


# --- the child


def child(jobs: list[Job], done: Path) -> None:
    """Run the jobs that have no line in `done` yet, and append one for each."""
    first = len(done.read_text().splitlines())
    with done.open("a") as lines:
        for job in jobs[first:]:
            lines.write(json.dumps(run_dali(job)) + "\n")
            lines.flush()


def run_dali(job: Job) -> Result:
    pipeline = dali_pipeline(*job[1:])
    try:
        pipeline.feed_input("encoded", [np.fromfile(job.path, np.uint8)])
        return describe(np.array(pipeline.run()[0][0]))
    except Exception:
        dali_pipeline.cache_clear()  # a failed pipeline cannot be used again
        return Result("refused")


@cache
def dali_pipeline(output_type: str, dtype: str, adjust_orientation: bool) -> Any:
    fn, types = (importlib.import_module(f"nvidia.dali.{name}") for name in ("fn", "types"))
    pipeline_def: Any = importlib.import_module("nvidia.dali").pipeline_def
    options = dict(prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, **options)  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
        data = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
        if output_type == "PEEK":
            kind = getattr(types, dtype)
            return fn.peek_image_shape(data, image_type=kind, adjust_orientation=adjust_orientation)
        return fn.decoders.image(
            data,
            output_type=getattr(types, output_type),
            dtype=getattr(types, dtype),
            adjust_orientation=adjust_orientation,
        )

    return pipeline()


# --- the parent


def dali(jobs: list[Job], workplace: Path) -> list[Result]:
    """Run the jobs in children; start a new one after each crash."""
    pytest.importorskip(
        "nvidia.dali",
        reason="the parity tests compare with the real DALI: install the extra 'parity'",
    )
    done = workplace / "done"
    done.touch()
    (workplace / "jobs").write_text(json.dumps(jobs))
    command = [sys.executable, "-m", "tests.parity.codecs.test_images", str(workplace)]
    while True:
        root = Path(__file__).parents[3]
        child = subprocess.run(command, cwd=root, stderr=subprocess.DEVNULL, check=False)
        if child.returncode >= 0:
            assert child.returncode == 0, "the child failed"
            break
        with done.open("a") as lines:
            lines.write(json.dumps(Result("crashed")) + "\n")
    results = [json.loads(line) for line in done.read_text().splitlines()]
    assert len(results) == len(jobs)
    return [Result(error, tuple(shape), *others) for error, shape, *others in results]


def ours(job: Job) -> Result:
    data = torch.from_numpy(np.fromfile(job.path, np.uint8))
    adjust = job.adjust_orientation
    try:
        if job.output_type == "PEEK":
            return describe(
                np.array(images.peek_shape(data, image_type=job.dtype, adjust_orientation=adjust))
            )
        dtype = DTYPES[job.dtype]
        return describe(
            images.decode(
                data, output_type=job.output_type, dtype=dtype, adjust_orientation=adjust
            ).numpy()
        )
    except DecodeError:
        return Result("refused")


def differences(jobs: list[Job], workplace: Path, *, both_refuse: bool = False) -> list[str]:
    """List the jobs whose results differ from DALI's."""
    return [
        f"{Path(job.path).name} {job[1:]}: {expected[:3]}, ours {got[:3]}"
        for job, expected in zip(jobs, dali(jobs, workplace), strict=True)
        if (not expected.error or (both_refuse and expected.error == "refused"))
        and (got := ours(job)) != expected
    ]


def real_files() -> list[Path]:
    found = sorted(path for path in folder("formats").rglob("*") if path.is_file())
    assert len(found) > 40
    return found


def test_real_files(tmp_path: Path) -> None:
    pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
    jobs = [Job(str(path), kind) for path in real_files() for kind in KINDS]
    jobs += [Job(str(path), "PEEK", kind) for path in real_files() for kind in KINDS[:3]]
    assert differences(jobs, tmp_path) == []


def test_element_types_of_real_files(tmp_path: Path) -> None:
    pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
    chosen = {path.parent: path for path in real_files()}.values()  # one of each folder
    jobs = [
        Job(str(path), kind, dtype)
        for path in chosen
        for kind in ("RGB", "GRAY", "YCbCr")
        for dtype in ("UINT16", "FLOAT")
    ]
    for name in ("jpeg/444.jpg", "multichannel/4ch16bpp.png"):
        path = str(ROOT / "formats" / name)
        jobs += [Job(path, kind, dtype) for kind in KINDS for dtype in DTYPES]
    assert differences(jobs, tmp_path) == []


def test_photos(tmp_path: Path) -> None:
    """Return a sample of ImageNet with all images of unusual color spaces."""
    found = sorted(folder("imagenet").rglob("*.JPEG"))
    assert len(found) > 100
    unusual = [
        path
        for path in found
        if images.peek_shape(path.read_bytes(), image_type="ANY_DATA")[2] != 3
    ]
    jobs = [Job(str(path), kind) for path in found[::12] + unusual for kind in ("RGB", "GRAY")]
    jobs += [Job(str(path), kind) for path in found[::50] for kind in ("ANY_DATA", "BGR", "YCbCr")]
    jobs += [Job(str(path), "RGB", dtype) for path in found[::50] for dtype in ("UINT16", "FLOAT")]
    jobs += [Job(str(path), "PEEK", "ANY_DATA") for path in found]
    assert differences(jobs, tmp_path) == []


# Errors of DALI on generated files, and why torchdali does not reproduce them.
DALI_ERRORS = {
    ("tiff gray alpha", "RGB"): "it takes the samples of the next pixels for green and blue",
    ("tiff planes", "*"): "it reads compressed planes as if their samples were interleaved",
}


def written(made: dict[str, bytes], workplace: Path) -> dict[str, str]:
    """Write files; return their paths by name."""
    paths = {}
    for index, (name, data) in enumerate(made.items()):
        path = workplace / f"{index} {name}"
        path.write_bytes(data)
        paths[name] = str(path)
    return paths


def inks(adobe: bool) -> bytes:
    """Return a CMYK JPEG, with Adobe's marker (which inverts it) or without."""
    data = encoded(Image.fromarray(np.dstack([RGB, GRAY // 2]), "CMYK"), "JPEG")
    start = data.index(b"\xff\xee")
    return data if adobe else data[:start] + data[start + 16 :]


def jpeg_2000(pixels: Array, depth: int) -> bytes:
    """Return a JPEG 2000 of 16 bits, or of fewer: then the depth is changed in the file.

    The offset compensates for the smaller depth.
    """
    cv2 = pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
    shifted = (pixels >> (16 - depth)) + np.uint16(32768 - (1 << (depth - 1)))
    colors = shifted if pixels.ndim == 2 else shifted[:, :, ::-1]
    lossless = [cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, 1000]
    data = bytearray(cv2.imencode(".jp2", colors, lossless)[1].tobytes())
    sizes = data.index(b"\xff\x4f\xff\x51") + 42
    for place in [
        data.index(b"ihdr") + 14,
        *range(sizes, sizes + 9, 3)[: 3 if colors.ndim == 3 else 1],
    ]:
        data[place] = depth - 1
    return bytes(data)


def test_generated_files(tmp_path: Path) -> None:
    made = {name: data for name, (data, _) in LOSSLESS.items()} | JPEGS
    made |= {"inks": inks(False), "inks of Adobe": inks(True)}
    for depth in (12, 16):
        made[f"jp2 {depth}"] = jpeg_2000(RGB16, depth)
        made[f"jp2 gray {depth}"] = jpeg_2000(RGB16[:, :, 0], depth)
    paths = written(made, tmp_path)
    jobs = [
        Job(path, kind, dtype)
        for name, path in paths.items()
        for kind, dtypes in (
            ("RGB", ("UINT8",)),
            ("GRAY", ("UINT8",)),
            ("ANY_DATA", ("UINT8", "UINT16")),
        )
        for dtype in dtypes
        if not {(name, kind), (name, "*")} & set(DALI_ERRORS)
        and (name, kind) != ("gray", "ANY_DATA")  # DALI delivers other memory, or crashes
    ]
    jobs += [Job(path, "PEEK", "ANY_DATA") for path in paths.values()]
    assert differences(jobs, tmp_path) == []


EXIF_VALUES = [
    ("<", 3, b"\x06\0"),
    (">", 3, b"\0\x06"),
    ("<", 4, b"\x06\0\0\0"),
    (">", 4, b"\0\0\0\x06"),
    ("<", 1, b"\x06"),
    (">", 1, b"\x06"),
    ("<", 3, b"\x09\0"),
]


def test_orientations(tmp_path: Path) -> None:
    made = {
        f"{format} {number}": encoded(RGB, format, exif=exif(number))
        for format in ("JPEG", "PNG", "WEBP")
        for number in range(1, 9)
    }
    for order, kind, value in EXIF_VALUES:
        for count, entries in ((1, 1), (2, 1), (1, 50)):
            content = b"Exif\0\0" + exif_block(order, kind, value, count, entries)
            segment = b"\xff\xe1" + (len(content) + 2).to_bytes(2, "big") + content
            name = f"{len(made)} {kind} {value.hex()} {count} {entries}"
            made[name] = JPEGS["420"][:2] + segment + JPEGS["420"][2:]
    paths = written(made, tmp_path).values()
    jobs = [Job(path, "RGB", "UINT8", adjust) for path in paths for adjust in (True, False)]
    jobs += [Job(path, "PEEK", "RGB", adjust) for path in paths for adjust in (True, False)]
    assert differences(jobs, tmp_path) == []


def test_damaged_jpegs(tmp_path: Path) -> None:
    """Pixels that libjpeg decodes despite an error must be the same; a file that DALI rejects is an error."""
    made = {}
    for name, data in JPEGS.items():
        chance = random.Random(name)
        body = data.index(b"\xff\xda") + 14
        for number in range(15):
            changed = bytearray(data)
            for _ in range(3):
                changed[chance.randrange(body, len(data) - 2)] = chance.randrange(256)
            made[f"{name} changed {number}"] = bytes(changed)
            made[f"{name} cut {number}"] = data[: chance.randrange(len(data))]
            made[f"{name} ended early {number}"] = data[: chance.randrange(body, len(data))] + data[-2:]
        made[f"{name} without end"] = data[:-2]
        made[f"{name} and more"] = data + b"more"
    jobs = [Job(path, "RGB") for path in written(made, tmp_path).values()]
    assert differences(jobs, tmp_path, both_refuse=True) == []


def test_truncated_files(tmp_path: Path) -> None:
    """DALI rejects them, and so does torchdali."""
    made = {
        f"{name} {share}": data[: int(len(data) * share)]
        for name, (data, _) in LOSSLESS.items()
        for share in (0.2, 0.6)
        if "tiff" not in name
    }
    assert len(made) > 30
    jobs = [Job(path, "RGB") for path in written(made, tmp_path).values()]
    expected = dali(jobs, tmp_path)
    assert {result.error for result in expected} == {"refused"}
    assert [job.path for job in jobs if not ours(job).error] == []


if __name__ == "__main__":
    here = Path(sys.argv[1])
    child([Job(*job) for job in json.loads((here / "jobs").read_text())], here / "done")
