"""Train a classifier of spoken digits from MFCCs, on the CPU.

    python examples/speech_digits.py [DATA] [--epochs 30] [--threads 2]

DATA contains WAV files whose names begin with the digit, like the Free Spoken Digit Dataset (``7_jackson_3.wav``).
Every sixth file of a digit is used for testing. Without DATA, the script generates two tones for each digit.
"""

from __future__ import annotations

import argparse
import tempfile
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from torchdali import fn, pipeline_def, types
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

RATE, FRAMES, COEFFICIENTS = 8000, 64, 20


def features(sound):
    """Return the MFCCs of the part that isn't silent, ``(COEFFICIENTS, FRAMES)``."""
    begin, length = fn.nonsilent_region(sound, cutoff_db=-40.0, window_length=256)
    sound = fn.preemphasis_filter(fn.slice(sound, begin, length, axes=[0]))
    spectrum = fn.spectrogram(sound, window_length=256, window_step=80)
    bank = fn.mel_filter_bank(spectrum, sample_rate=float(RATE), nfilter=40)
    found = fn.mfcc(fn.to_decibels(bank, cutoff_db=-80.0), n_mfcc=COEFFICIENTS)
    found = fn.normalize(found, axes=[1], epsilon=1e-3)
    return fn.slice(found, start=[0], shape=[FRAMES], axes=[1], out_of_bounds_policy="pad")


@pipeline_def
def digits(files: Sequence[str], labels: Sequence[int], training: bool):
    data, label = fn.readers.file(
        files=list(files), labels=list(labels), random_shuffle=training, pad_last_batch=True, name="reader"
    )
    sound, _ = fn.decoders.audio(data, downmix=True, sample_rate=float(RATE))
    if training:  # slower, faster, and with noise
        sound = fn.audio_resample(sound, scale=fn.random.uniform(range=[0.85, 1.15]))
        sound = sound + fn.random.normal(sound, stddev=0.002)
    return features(sound), fn.cast(label, dtype=types.INT64)


def loader(files, training: bool, batch_size: int, threads: int):
    labels = [int(Path(file).name[0]) for file in files]
    pipe = digits(files, labels, training, batch_size=batch_size, num_threads=threads, device_id=None, seed=1)
    policy = LastBatchPolicy.DROP if training else LastBatchPolicy.PARTIAL
    return DALIGenericIterator(
        pipe, ["features", "label"], reader_name="reader", last_batch_policy=policy, auto_reset=True
    )


def network() -> nn.Module:
    def block(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Conv1d(inputs, outputs, 5, stride=2, padding=2), nn.BatchNorm1d(outputs), nn.ReLU())

    return nn.Sequential(
        block(COEFFICIENTS, 64), block(64, 96), block(96, 96), nn.Flatten(), nn.Dropout(0.3), nn.Linear(96 * 8, 10)
    )  # fmt: skip


def make_tones(folder: Path) -> None:
    """Write recordings of two tones with different lengths, volumes and noise."""
    rng = np.random.default_rng(3)
    for digit in range(10):
        for number in range(24):
            time = np.arange(rng.integers(2400, 4800)) / RATE
            low, high = (400, 700, 1100, 1600)[digit // 3], (1900, 2500, 3200)[digit % 3]
            tones = np.sin(2 * np.pi * low * time) + np.sin(2 * np.pi * high * time)
            samples = rng.uniform(0.2, 0.4) * tones + rng.normal(0, 0.02, len(time))
            with wave.open(str(folder / f"{digit}_made_{number:02}.wav"), "wb") as file:
                file.setparams((1, 2, RATE, 0, "NONE", ""))
                file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())


def split(folder: Path) -> tuple[list[str], list[str]]:
    """Divide the files into a training set and a test set."""
    files = sorted(str(path) for path in folder.glob("[0-9]*.wav"))
    counts: dict[str, int] = {}
    train, test = [], []
    for file in files:
        digit = Path(file).name[0]
        counts[digit] = counts.get(digit, 0) + 1
        (test if counts[digit] % 6 == 0 else train).append(file)
    return train, test


def accuracy(model: nn.Module, batches) -> float:
    model.eval()
    with torch.no_grad():
        hits = [(model(b["features"]).argmax(1) == b["label"][:, 0]).float() for (b,) in batches]
    return torch.cat(hits).mean().item()


def train(folder: Path, epochs: int, threads: int) -> float:
    torch.manual_seed(1)
    learn, test = split(folder)
    model, batch = network(), max(min(32, len(learn) // 4), 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
    train_loader, test_loader = loader(learn, True, batch, threads), loader(test, False, 32, threads)
    for epoch in range(epochs):
        model.train()
        total = count = 0.0
        for (data,) in train_loader:
            loss = nn.functional.cross_entropy(model(data["features"]), data["label"][:, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, count = total + loss.item(), count + 1
        if epoch % 5 == 4 or epoch == epochs - 1:
            print(
                f"epoch {epoch + 1}: loss {total / count:.3f}, accuracy {accuracy(model, test_loader):.1%}",
                flush=True,
            )
    return accuracy(model, test_loader)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.data is None:
            make_tones(Path(scratch))
        found = train(options.data or Path(scratch), options.epochs, options.threads)
    print(f"accuracy {found:.1%}")


if __name__ == "__main__":
    main()
