"""Audio and video against the real DALI: ``python -m benchmarks.audio [--sounds DIR] [--videos DIR]``.

One process, one thread (of torch's, too), the two libraries in alternation. What is reported is CPU time, which other
programs on the machine change little, per sample: the least of several rounds, and the ratio DALI / torchdali.

Args:
    sounds: Folder with ``*.wav``, ``*.flac``, ``*.ogg``; without it, half a second of noise is made.
    videos: Folder with videos that DALI decodes on the CPU (VP8, VP9, Motion JPEG).
    batches: Sizes of the batches of sounds.
"""

from __future__ import annotations

import argparse
import importlib
import io
import time
import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

BATCH, ROUNDS = 32, 7
TURN = 0.05  # seconds of CPU time, at least
LIBRARIES = ("nvidia.dali", "torchdali")

Graph = Callable[[Any, Any], Any]


def _noise(seed: int, rate: int = 8000) -> Any:
    """Return half a second of noise as a WAV file."""
    samples = np.random.default_rng(seed).normal(0, 3000, rate // 2).astype("<i2")
    memory = io.BytesIO()
    with wave.open(memory, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return np.frombuffer(memory.getvalue(), np.uint8)


def _decode(fn: Any, data: Any) -> Any:
    return fn.decoders.audio(data, downmix=True)[0]


def _spectrogram(fn: Any, data: Any) -> Any:
    return fn.spectrogram(_decode(fn, data))


def _mfcc(fn: Any, data: Any) -> Any:
    bank = fn.mel_filter_bank(_spectrogram(fn, data), sample_rate=16000.0, nfilter=80)
    return fn.mfcc(fn.to_decibels(bank), n_mfcc=20)


def _resample(scale: float) -> Graph:
    return lambda fn, data: fn.audio_resample(_decode(fn, data), scale=scale)


GRAPHS: dict[str, Graph] = {
    "decode": _decode,
    "decode, spectrogram": _spectrogram,
    "decode ... mfcc": _mfcc,
    "decode, resample x2": _resample(2.0),
    "decode, resample x0.5": _resample(0.5),
    "decode, resample x0.9": _resample(0.9),
    "decode, resample x0.8765": _resample(0.8765),
}


def _videos(fn: Any, data: Any) -> Any:
    return fn.decoders.video(data, start_frame=3, sequence_length=8)


def _pipeline(library: str, graph: Graph, files: Sequence[Any]) -> Any:
    package, fn = importlib.import_module(library), importlib.import_module(f"{library}.fn")

    @package.pipeline_def(  # type: ignore[untyped-decorator]
        batch_size=len(files), num_threads=1, device_id=None, exec_async=False, exec_pipelined=False
    )
    def define() -> Any:
        return graph(fn, fn.external_source(source=lambda: list(files), no_copy=True))

    pipe = define()
    pipe.build()
    return pipe


def _seconds(pipe: Any, size: int) -> float:
    """Return the CPU time of a sample, once the caches hold this library's code and data again."""
    pipe.run(), pipe.run()
    start, samples = time.process_time(), 0
    while (elapsed := time.process_time() - start) < TURN:
        pipe.run()
        samples += size
    return elapsed / samples


def compare(name: str, graph: Graph, files: Sequence[Any]) -> float:
    """Measure a graph in both libraries, print a line, and return the ratio."""
    pipes = {library: _pipeline(library, graph, files) for library in LIBRARIES}
    best = dict.fromkeys(LIBRARIES, float("inf"))
    for _ in range(ROUNDS):
        for library, pipe in pipes.items():
            best[library] = min(best[library], _seconds(pipe, len(files)))
    dali, ours = (best[library] * 1e6 for library in LIBRARIES)
    print(f"{name:45} {dali:10.1f} {ours:10.1f} {dali / ours:7.2f}", flush=True)
    pipes["torchdali"].close()
    return dali / ours


def _cycle(files: Sequence[Any], size: int) -> list[Any]:
    return [files[i % len(files)] for i in range(size)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sounds", type=Path)
    parser.add_argument("--videos", type=Path)
    parser.add_argument("--batches", type=int, nargs="+", default=[BATCH])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'CPU us a sample':45} {'DALI':>10} {'torchdali':>10} {'ratio':>7}")
    kinds = {"noise, 0.5 s": [_noise(i) for i in range(BATCH)]}
    if options.sounds:
        kinds = {
            kind: [np.fromfile(path, np.uint8) for path in sorted(options.sounds.rglob(f"*.{kind}"))]
            for kind in ("wav", "flac", "ogg")
        }
    for kind, files in kinds.items():
        for name, graph in GRAPHS.items() if files else ():
            for size in options.batches:
                compare(f"{kind}: {name}, {size}", graph, _cycle(files, size))
    for path in sorted(options.videos.iterdir()) if options.videos else ():
        compare(f"{path.name}: 8 frames", _videos, [np.fromfile(path, np.uint8)] * 4)


if __name__ == "__main__":
    main()
