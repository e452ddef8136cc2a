"""Measure epochs with `fn.cache`: ``python -m benchmarks.cache FOLDER``.

FOLDER has class folders of JPEGs. The pipeline decodes them, resizes them to 256 pixels, crops, mirrors and normalizes;
the cache stands behind the resize. Each line is an epoch: seconds, and seconds of CPU of this process. With ``--cold``,
the system forgets the files of images and cache before each epoch, so that they are read from the disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from torchdali import fn, pipeline_def, types

__all__ = ["main"]


def pipeline(root: Path, cache_options: dict[str, Any], arguments: argparse.Namespace) -> Any:
    """Return the pipeline, which caches samples if `cache_options` isn't empty."""

    @pipeline_def(
        batch_size=arguments.batch, num_threads=arguments.threads, num_processes=1, device_id=None, seed=1,
        prefetch_queue_depth=1,
    )  # fmt: skip
    def define() -> Any:
        files, labels = fn.readers.file(file_root=str(root), random_shuffle=True, pad_last_batch=True, name="Reader")
        images = fn.resize(fn.decoders.image(files), size=[256, 256])
        if cache_options:
            images = fn.cache(images, **cache_options)
        mirror = fn.random.coin_flip()
        return fn.crop_mirror_normalize(
            images, crop=(224, 224), mirror=mirror, dtype=types.FLOAT, mean=[128.0] * 3, std=[60.0] * 3
        ), labels

    return define()


def copy_folders(folder: Path, root: Path, count: int) -> None:
    """Copy a folder of class folders several times, into classes of their own."""
    for number in range(count):
        for each in sorted(path for path in folder.iterdir() if path.is_dir()):
            shutil.copytree(each, root / f"{each.name}-{number}")


def drop_page_cache(*folders: Path) -> None:
    """Let the system forget the content of files, so that they are read from the disk."""
    os.sync()
    for folder in folders:
        for path in (each for each in folder.rglob("*") if each.is_file()):
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def measure(name: str, root: Path, cache_options: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Print the epochs of one pipeline, and how much faster the second one is than the first."""
    pipe = pipeline(root, cache_options, arguments)
    pipe.build()
    batches = -(-pipe.epoch_size("Reader") // arguments.batch)
    times: list[tuple[float, float]] = []
    for epoch in range(arguments.epochs):
        if arguments.cold:
            drop_page_cache(
                root, *(Path(path) for key, path in cache_options.items() if key == "path" and os.path.exists(path))
            )
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(batches):
            pipe.run()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
        print(f"{name:8} epoch {epoch + 1}: {times[-1][0]:6.2f} s, CPU {times[-1][1]:6.2f} s")
    wall_ratio, cpu_ratio = (times[0][i] / times[1][i] for i in (0, 1))
    print(f"{name:8} second epoch: {wall_ratio:.1f} times as fast, {cpu_ratio:.1f} times by CPU")
    print("\n".join(pipe.stats().caches))
    pipe.close()


def main() -> None:
    """Measure without a cache, with one in memory, with one on disk, and with one that another run has filled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--copies", type=int, default=4, help="copy the images so often, for longer epochs")
    parser.add_argument("--cold", action="store_true", help="read files from the disk in each epoch")
    parser.add_argument("--disk", help="where the folder for images and cache is made")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.disk) as folder:
        root, cache = Path(folder, "images"), Path(folder, "kept")
        copy_folders(arguments.folder, root, arguments.copies)
        measure("without", root, {}, arguments)
        measure("memory", root, {"bytes": "4GB"}, arguments)
        measure("disk", root, {"path": cache}, arguments)
        measure("again", root, {"path": cache}, arguments)


if __name__ == "__main__":
    main()
