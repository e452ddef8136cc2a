"""``torchdali index``, ``pack``, ``check`` and ``stats``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from torchdali import containers
from torchdali._commands.bar import Bar

__all__ = ["check", "index", "manifest", "pack", "stats"]


def index(kind: str, paths: Sequence[str], folder: str | None, force: bool) -> int:
    """Write the index files of containers; return 1 if an index could not be written, otherwise 0."""
    status = 0
    for path in paths:
        bar = Bar("bytes")
        try:
            target, count = containers.index(kind, path, folder, force, bar)
        except (RuntimeError, OSError) as error:
            bar.close()
            print(error, file=sys.stderr)
            status = 1
        else:
            bar.close()
            print(f"{target}: {count} samples")
    return status


def manifest(kind: str, paths: Sequence[str], target: str) -> int:
    """Write the manifest of containers; return 1 if that failed, otherwise 0."""
    bar = Bar("shards")
    try:
        path, count = containers.manifest(kind, paths, target, bar)
    except (RuntimeError, OSError) as error:
        bar.close()
        print(error, file=sys.stderr)
        return 1
    bar.close()
    print(f"{path}: {count} samples in {len(paths)} shards")
    return 0


def pack(source: str, target: str, jobs: int, options: dict[str, Any]) -> int:
    """Pack images into shards; return 1 if that failed, otherwise 0."""
    bar = Bar("samples")
    try:
        report = containers.pack(source, target, containers.PackOptions(**options), jobs, bar)
    except (RuntimeError, OSError) as error:
        bar.close()
        print(error, file=sys.stderr)
        return 1
    bar.close()
    print(report)
    return 0


def check(paths: Sequence[str], decode: bool) -> int:
    """List broken files; return 1 if a file is broken or can't be read, otherwise 0."""
    bar = Bar("bytes")
    try:
        problems, counts = containers.check(paths, decode, bar)
    except (RuntimeError, OSError) as error:
        bar.close()
        print(error, file=sys.stderr)
        return 1
    bar.close()
    for problem in problems:
        print(problem)
    unknown = f", {counts['unknown']} files of unknown kinds" if counts["unknown"] else ""
    print(f"{counts['samples']} samples in {counts['files']} files{unknown}: {len(problems)} problems")
    return int(bool(problems))


def stats(root: str, threads: int) -> int:
    """Describe a folder of images; return 1 if an image is broken or the folder can't be read, otherwise 0."""
    bar = Bar("images")
    try:
        report = containers.statistics(root, threads, bar)
    except (RuntimeError, OSError) as error:
        bar.close()
        print(error, file=sys.stderr)
        return 1
    bar.close()
    print(report)
    return int(bool(report.problems))
