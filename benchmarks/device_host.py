"""Measure the host's work for the device stage of the training pipeline: CPU time an image, without a GPU.

The device is torch's "meta", whose tensors have no bytes: memory is taken, views are made and copies are called for,
but nothing is moved or computed, and streams and events do nothing. The library in C decodes nothing, and an engine of
nothing takes its share. All else is the same as on a machine with a GPU: the reader, the windows, the arena, the
tables, the scheduling and the hand-over. The pipelines with and without the engine run in alternation.

    python -m benchmarks.device_host 32 256
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from PIL import Image

from torchdali import fn, pipeline_def
from torchdali.codecs._native import Parts
from torchdali.execute import hardware_decoding
from torchdali.execute.device_stream import DeviceStream
from torchdali.graph.rewrite import _on_device
from torchdali.kernels import native

META = torch.device("meta")
ROUNDS = 80


class _Stream:
    """A stream, an event and a context that do nothing."""

    device, cuda_stream = META, 0

    def __init__(self, *rest: Any, **options: Any) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *rest: object) -> None: ...
    def record(self, stream: Any = None) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def synchronize(self) -> None: ...
    def query(self) -> bool:
        return True


class _Kernels:
    """The operators of the kernels, which only take memory for their results."""

    @staticmethod
    def resize_batch(flat: Any, samples: Any, filters: Any, lines: int, longest: int, results: int, *rest: Any) -> Any:
        return torch.empty(results, dtype=torch.uint8, device=META)

    @staticmethod
    def resize_normalize_batch(flat: Any, samples: Any, *rest: Any) -> Any:
        height, width, channels, *_ = rest[-5:]
        return torch.empty((len(samples), channels, height, width), device=META)

    @staticmethod
    def normalize_batch(flat: Any, samples: Any, flags: Any, mirror: Any, numbers: Any, *rest: Any) -> Any:
        height, width, channels, *_ = rest
        return torch.empty((len(samples), channels, height, width), device=META)


class Engine:
    """An engine that decodes all images, to nothing."""

    def decode(self, images: Any, *rest: Any) -> None:
        images["code"] = 0


@contextlib.contextmanager
def mock_device() -> Iterator[None]:
    """Make "meta" a device with streams, kernels and an engine, and decoding free of charge."""
    empty, original_init, stream = torch.empty, DeviceStream.__init__, _Stream()
    status = native.status()
    assert status.library is not None, status.text
    do_nothing: Any = lambda *rest: 0  # noqa: E731
    library = status.library._replace(run=do_nothing)

    def skip_decoding(parts: Parts, recipe: Any, pixels: int, copies: int) -> int:
        parts._files.rows["out"] = parts.table["place"] + copies
        return 0

    def without_pinning(*sizes: Any, pin_memory: bool = False, **options: Any) -> Any:
        return empty(*sizes, **options)

    def initialize(self: Any, device: Any, *rest: Any) -> None:
        original_init(self, device, *rest)
        if device is not None:
            self.stream, self._copies = stream, _Stream()

    with contextlib.ExitStack() as patches:
        for owner, name, value in (
            (torch, "empty", without_pinning), (torch.ops, "torchdali", _Kernels),
            (torch.Tensor, "pin_memory", lambda self: self), (torch.Tensor, "is_pinned", lambda self: True),
            (torch.Tensor, "record_stream", lambda self, stream: None),
            (torch.cuda, "Event", _Stream), (torch.cuda, "stream", _Stream), (torch.cuda, "device", _Stream),
            (torch.cuda, "current_stream", lambda device=None: stream),
            (Parts, "decode", skip_decoding), (DeviceStream, "__init__", initialize),
            (native, "status", lambda: status._replace(library=library)),
            (DeviceStream, "new_stream", lambda self: stream), (_on_device, "is_available", lambda device: True),
            (hardware_decoding, "open_engine", lambda *rest: Engine()),
        ):  # fmt: skip
            patches.enter_context(mock.patch.object(owner, name, value))
        for module in list(sys.modules.values()):
            if module.__name__.startswith("torchdali.") and hasattr(module, "has_kernels"):
                patches.enter_context(mock.patch.object(module, "has_kernels", lambda device: True))
        yield


def _train(files: Sequence[str], load: float) -> Any:
    encoded, labels = fn.readers.file(files=files, labels=list(range(len(files))), random_shuffle=True)
    images = fn.decoders.image(encoded, device="mixed", hw_decoder_load=load)
    images = fn.random_resized_crop(images, size=224)
    mirror, mean, std = fn.random.coin_flip(), [124.0, 116.0, 104.0], [58.0, 57.0, 57.0]
    return fn.crop_mirror_normalize(images, mirror=mirror, mean=mean, std=std), labels.gpu()


def _files(folder: str) -> list[str]:
    """Write a few images, and return their names many times: an epoch must be longer than a round."""
    draw = np.random.default_rng(1)
    names = [str(Path(folder, f"{i}.jpg")) for i in range(64)]
    for name in names:
        Image.fromarray(draw.integers(0, 256, (60, 80, 3), np.uint8)).save(name)
    return names * 400


def measure(batch_size: int, rounds: int = ROUNDS, pipelined: bool = False) -> dict[str, float]:
    """Return microseconds of CPU time an image, in all threads, with and without an engine.

    The 10th percentile over batches: one in eight is timed operator by operator, and takes longer.
    """
    found: dict[str, list[float]] = {"with an engine": [], "without": []}
    with tempfile.TemporaryDirectory() as folder, mock_device():
        files = _files(folder)
        settings: dict[str, Any] = {"batch_size": batch_size, "num_threads": 1, "seed": 3, "exec_pipelined": pipelined}
        pipes = [pipeline_def(device_id="meta", **settings)(_train)(files, load) for load in (0.62, 0.0)]
        for _ in range(6):  # arenas have their size after some
            for pipe in pipes:
                pipe.run()
        for _ in range(rounds):
            for times, pipe in zip(found.values(), pipes, strict=True):
                start = time.process_time()
                pipe.run()
                times.append((time.process_time() - start) / batch_size * 1e6)
        for pipe in pipes:
            pipe.close()
    return {name: float(np.percentile(times, 10)) for name, times in found.items()}


def main() -> None:
    """Print a line for each batch size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("batch_sizes", type=int, nargs="*", default=[32, 256])
    parser.add_argument("--pipelined", action="store_true", help="prefetch, as pipelines do unless told otherwise")
    options = parser.parse_args()
    for size in options.batch_sizes:
        found = measure(size, pipelined=options.pipelined)
        print(f"batches of {size}: " + ", ".join(f"{k} {v:.1f}" for k, v in found.items()) + " us an image")


if __name__ == "__main__":
    main()
