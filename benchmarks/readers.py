"""Read containers beside the real DALI, in turns: ``python -m benchmarks.readers FOLDER [KIND ...]``.

CPU time of the process for a sample, of pipelines that only read; the figure is that of DALI divided by ours. FOLDER
has class folders of images, which are packed into every container first. The kind ``train`` compares torchdali's
pipeline of ResNet from containers with the same one from files.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from torchdali.formats import recordio, tar, tfrecord
from torchdali.formats.storage import write_text

__all__ = ["main"]

BATCH = 64
SETTLE = 0.05  # seconds


def write(folder: Path, source: Path) -> None:
    """Write all containers."""
    files = sorted(p for p in source.rglob("*") if p.is_file())
    classes = {name: i for i, name in enumerate(sorted({p.parent.name for p in files}))}
    samples = [(p.read_bytes(), classes[p.parent.name]) for p in files]
    with open(folder / "a.tfrecord", "wb") as file:
        found, offset = [], 0
        for data, label in samples:
            size = tfrecord.write_record(file, tfrecord.write_example({"image": data, "label": [label]}))
            found.append((offset, size))
            offset += size
    write_text(str(folder / "a.tfrecord.idx"), tfrecord.index_text(found))
    with open(folder / "a.rec", "wb") as file:
        found, offset = [], 0
        for number, (data, label) in enumerate(samples):
            size = recordio.write_image(file, data, [float(label)], number)
            found.append((offset, size))
            offset += size
    write_text(str(folder / "a.rec.idx"), recordio.index_text(found))
    with open(folder / "a.tar", "wb") as file:
        parts, offset = [], 0
        for number, (data, label) in enumerate(samples):
            row = []
            for extension, content in (("jpg", data), ("cls", str(label).encode())):
                name = f"{number:06}.{extension}"
                row.append((extension, offset + tar.BLOCK, len(content), name))
                offset += tar.write_member(file, name, content)
            parts.append(row)
        tar.write_end(file)
    write_text(str(folder / "a.tar.idx"), tar.index_text(parts))
    (folder / "npy").mkdir()
    rng = np.random.default_rng(0)
    for number in range(len(samples)):
        np.save(folder / f"npy/{number:06}.npy", rng.integers(0, 256, (128, 128, 3), np.uint8))
    _write_lmdb(folder / "lmdb", samples)
    _write_coco(folder / "coco.json", files)


def _write_lmdb(folder: Path, samples: list[tuple[bytes, int]]) -> None:
    from torchdali.formats.protobuf import VARINT, tag, write_bytes, write_varint

    lmdb = importlib.import_module("lmdb")
    with (
        lmdb.open(str(folder), map_size=4 << 30) as database,
        database.begin(write=True) as writing,
    ):
        for number, (data, label) in enumerate(samples):
            datum = write_bytes(4, data) + tag(5, VARINT) + write_varint(label)
            writing.put(f"{number:08}".encode(), datum)


def _write_coco(path: Path, files: list[Path], annotations: int = 400_000) -> None:
    """Write annotations of some 73 MB."""
    rng = np.random.default_rng(0)
    image_ids = rng.integers(0, len(files), annotations).tolist()
    boxes = np.round(rng.uniform(1, 200, (annotations, 4)), 2).tolist()
    rows = [
        {"id": i, "image_id": image_ids[i], "category_id": i % 80 + 1, "bbox": boxes[i], "area": 1.5, "iscrowd": 0,
         "segmentation": [[*boxes[i], *boxes[i]]]}
        for i in range(annotations)
    ]  # fmt: skip
    images = [{"id": i, "file_name": str(p), "width": 500, "height": 400} for i, p in enumerate(files)]
    categories = [{"id": i, "name": str(i)} for i in range(1, 81)]
    path.write_text(json.dumps({"images": images, "annotations": rows, "categories": categories}))


Define = Callable[[Any, Any, str, str], Any]
KINDS: dict[str, Define] = {
    "tfrecord": lambda fn, features, root, source: list(fn.readers.tfrecord(
        path=f"{root}/a.tfrecord", index_path=f"{root}/a.tfrecord.idx", features={
            "image": features.FixedLenFeature((), features.string, ""),
            "label": features.FixedLenFeature([1], features.int64, 0)}).values()),
    "mxnet": lambda fn, features, root, source: fn.readers.mxnet(
        path=[f"{root}/a.rec"], index_path=[f"{root}/a.rec.idx"]),
    "webdataset": lambda fn, features, root, source: fn.readers.webdataset(
        paths=[f"{root}/a.tar"], index_paths=[f"{root}/a.tar.idx"], ext=["jpg", "cls"]),
    "lmdb": lambda fn, features, root, source: fn.readers.caffe(path=f"{root}/lmdb"),
    "files": lambda fn, features, root, source: fn.readers.file(file_root=source),
    "npy": lambda fn, features, root, source: [fn.readers.numpy(file_root=f"{root}/npy")],
}  # fmt: skip


def build(package: str, kind: str, root: str, source: str) -> Any:
    """Return a pipeline that only reads."""
    library: Any = importlib.import_module(package)
    features = importlib.import_module(f"{package}.tfrecord")

    def define() -> Any:
        return tuple(KINDS[kind](library.fn, features, root, source))

    pipe = library.pipeline_def(define, batch_size=BATCH, num_threads=2, device_id=None)()
    pipe.build()
    for _ in range(5):
        pipe.run()
    return pipe


def cost(pipe: Any, batches: int) -> float:
    """Return microseconds of CPU time for a sample."""
    start = time.process_time()
    for _ in range(batches):
        pipe.run()
    time.sleep(SETTLE)  # what it prefetches is its own cost, not that of the next side
    return (time.process_time() - start) / (batches * BATCH) * 1e6


def build_train(kind: str, root: str, source: str) -> Any:
    """Return a pipeline of ResNet; every container gives it the same images in the same order."""
    library: Any = importlib.import_module("torchdali")
    fn = library.fn

    def define() -> Any:
        images, labels = KINDS[kind](_Shuffled(fn), library.tfrecord, root, source)
        images = fn.decoders.image_random_crop(images)
        images = fn.resize(images, size=[224, 224])
        images = fn.crop_mirror_normalize(images, dtype=library.types.FLOAT, mean=[120.0], std=[60.0])
        return images, labels

    pipe = library.pipeline_def(define, batch_size=BATCH, num_threads=2, device_id=None, seed=7)()
    pipe.build()
    return pipe


class _Shuffled:
    """Readers that shuffle."""

    def __init__(self, fn: Any) -> None:
        self._readers = fn.readers

    @property
    def readers(self) -> _Shuffled:
        return self

    def __getattr__(self, name: str) -> Any:
        return functools.partial(getattr(self._readers, name), random_shuffle=True)


def compare_training(root: str, source: str, rounds: int) -> None:
    """Print the cost of an image from containers beside that from files."""
    kinds = ["files", "tfrecord", "webdataset"]
    pipes = {kind: build_train(kind, root, source) for kind in kinds}
    epoch = -(-sum(p.is_file() for p in Path(source).rglob("*")) // BATCH)
    for pipe in pipes.values():
        cost(pipe, 2 * epoch)
    shuffled = random.Random(0)
    rows: list[dict[str, float]] = []
    for _ in range(rounds):
        shuffled.shuffle(kinds)
        rows.append({kind: cost(pipes[kind], epoch) / 1e3 for kind in kinds})
    for kind in ("tfrecord", "webdataset"):
        report(f"train {kind}", [(row["files"], row[kind]) for row in rows], "ms", "files", kind)
    for pipe in pipes.values():
        pipe.close()


def coco_start(package: str, root: str) -> float:
    """Return seconds of CPU time to build a reader of a large file of annotations."""
    library = importlib.import_module(package)

    def define() -> Any:
        return tuple(library.fn.readers.coco(file_root="/", annotations_file=f"{root}/coco.json"))

    start = time.process_time()
    pipe = library.pipeline_def(define, batch_size=4, num_threads=1, device_id=None)()
    pipe.build()
    return time.process_time() - start


def main() -> None:
    """Print a line for each container."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batches", type=int, default=15)
    options = parser.parse_args()
    kinds = options.kinds or [*KINDS, "coco", "train"]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), Path(options.folder))
        for kind in (k for k in kinds if k in KINDS):
            real, ours = (build(p, kind, folder, options.folder) for p in ("nvidia.dali", "torchdali"))
            rows = [(cost(real, options.batches), cost(ours, options.batches)) for _ in range(options.rounds)]
            report(kind, rows, "us")
            del real
            ours.close()
        if "coco" in kinds:
            rows = [(coco_start("nvidia.dali", folder), coco_start("torchdali", folder)) for _ in range(3)]
            report("coco start", rows, "s")
        if "train" in kinds:
            compare_training(folder, options.folder, max(options.rounds, 12))


def report(
    kind: str,
    rows: list[tuple[float, float]],
    unit: str,
    first: str = "DALI",
    second: str = "torchdali",
) -> None:
    """Print the medians, and the ratio of each round."""
    ratios = sorted(theirs / ours for theirs, ours in rows)
    theirs, ours = (median(column) for column in zip(*rows, strict=True))
    print(
        f"{kind:11} {first} {theirs:7.2f} {unit}, {second} {ours:7.2f} {unit}, "
        f"ratio {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
