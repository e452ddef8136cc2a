"""Audio and video against PyTorch's DataLoader: ``python -m benchmarks.audio_peers [--sounds DIR] [--videos DIR]``.

The same files, as many worker processes there as threads here, one epoch each in alternation. What is reported is CPU
time with that of the workers, which other programs on the machine change little, per sample: the least of several
rounds, and the ratio to torchdali's. Peers that are not installed are left out.

Args:
    sounds: Folder with ``*.wav`` of 16 kHz.
    videos: Folder with ``*.mp4``.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import torchdali.fn as fn
from torchdali import pipeline_def

WORKERS, ROUNDS, BATCH, CLIPS = 2, 3, 16, 4
SAMPLES, FRAMES = 640, 8
RATE, FFT, HOP, MELS, COEFFICIENTS = 16000, 512, 160, 80, 20


def _torchaudio(path: str, _: int) -> Any:
    samples = importlib.import_module("torchcodec.decoders").AudioDecoder(path).get_all_samples()
    return _mfcc_of_torchaudio()(samples.data)


@functools.cache
def _mfcc_of_torchaudio() -> Any:
    spectrum = {"n_fft": FFT, "hop_length": HOP, "n_mels": MELS}
    return importlib.import_module("torchaudio").transforms.MFCC(RATE, COEFFICIENTS, melkwargs=spectrum)


def _librosa(path: str, _: int) -> Any:
    samples, rate = importlib.import_module("soundfile").read(path, dtype="float32")
    feature = importlib.import_module("librosa").feature
    return feature.mfcc(y=samples, sr=rate, n_mfcc=COEFFICIENTS, n_fft=FFT, hop_length=HOP, n_mels=MELS)


@functools.lru_cache(maxsize=64)
def _open(path: str) -> Any:
    return importlib.import_module("torchcodec.decoders").VideoDecoder(path, num_ffmpeg_threads=1)


def _torchcodec(path: str, seed: int) -> Any:
    video = _open(path)
    start = random.Random(seed).randrange(len(video) - FRAMES + 1)
    return video.get_frames_in_range(start, start + FRAMES).data


class Files(Dataset[Any]):
    """A dataset: what a function makes of files, and the number of the sample."""

    def __init__(self, paths: Sequence[str], load: Callable[[str, int], Any]) -> None:
        self._paths, self._load = paths, load

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, i: int) -> Any:
        torch.set_num_threads(1)
        return self._load(self._paths[i], i)


def _run_loader(load: Callable[[str, int], Any], paths: Sequence[str], batch: int) -> Callable[[], int]:
    load(paths[0], 0)  # what it imports and keeps is there when workers start; open files are not
    _open.cache_clear()
    loader: Any = DataLoader(Files(paths, load), batch_size=batch, num_workers=WORKERS, collate_fn=list)
    return lambda: sum(len(found) for found in loader)


@pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=None)
def _to_mfcc(paths: Sequence[str]) -> Any:
    encoded, _ = fn.readers.file(files=list(paths))
    samples, _ = fn.decoders.audio(encoded, downmix=True)
    spectrum = fn.spectrogram(samples, nfft=FFT, window_length=FFT, window_step=HOP)
    bank = fn.mel_filter_bank(spectrum, sample_rate=float(RATE), nfilter=MELS)
    return fn.mfcc(fn.to_decibels(bank), n_mfcc=COEFFICIENTS)


@pipeline_def(batch_size=CLIPS, num_threads=WORKERS, device_id=None)
def _to_clips(paths: Sequence[str], fast: bool) -> Any:
    return fn.experimental.readers.video(
        filenames=list(paths), sequence_length=FRAMES, step=1, random_shuffle=True, fast=fast
    )


def _run_pipeline(pipe: Any, batches: int) -> Callable[[], int]:
    def epoch() -> int:
        return sum(len(pipe.run()[0]) for _ in range(batches))

    return epoch


def _seconds(epoch: Callable[[], int]) -> float:
    """Return the CPU time of a sample, with that of processes which have ended by then."""
    start = os.times()
    count = epoch()
    return sum(np.subtract(os.times()[:4], start[:4])) / count


def compare(ours: dict[str, Callable[[], int]], peers: dict[str, Callable[[], int]]) -> None:
    """Measure all in alternation, and print a line each with the ratio to the first."""
    best = dict.fromkeys([*ours, *peers], float("inf"))
    for _ in range(ROUNDS):
        for name, epoch in {**ours, **peers}.items():
            best[name] = min(best[name], _seconds(epoch))
    first = best[next(iter(ours))]
    for name, seconds in best.items():
        print(f"{name:45} {seconds * 1e6:10.0f} {seconds / first:7.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sounds", type=Path)
    parser.add_argument("--videos", type=Path)
    options = parser.parse_args()
    print(f"{'CPU us a sample':45} {'':>10} {'ratio':>7}")
    if options.sounds:
        files = sorted(map(str, options.sounds.rglob("*.wav")))
        paths = [files[i % len(files)] for i in range(SAMPLES)]
        loads = {"torchaudio": _torchaudio, "librosa": _librosa}
        peers = {
            f"{name}, DataLoader: MFCC": _run_loader(load, paths, BATCH)
            for name, load in loads.items()
            if importlib.util.find_spec(name)
        }
        pipe = _to_mfcc(paths)
        pipe.build()
        compare({"torchdali: MFCC": _run_pipeline(pipe, SAMPLES // BATCH)}, peers)
    if options.videos:
        paths = sorted(map(str, options.videos.rglob("*.mp4")))
        clips = {}
        for fast in (False, True):
            pipe = _to_clips(paths, fast)
            pipe.build()
            clips["torchdali: clips" + ", fast" * fast] = _run_pipeline(pipe, 12)
        chosen = [random.Random(i).choice(paths) for i in range(12 * CLIPS)]
        peer = {"torchcodec, DataLoader: clips": _torchcodec} if importlib.util.find_spec("torchcodec") else {}
        compare(clips, {name: _run_loader(load, chosen, CLIPS) for name, load in peer.items()})


if __name__ == "__main__":
    main()
