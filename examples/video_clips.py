"""Train a classifier of the direction of movement from video clips, on the CPU.

    python examples/video_clips.py [DATA] [--epochs 8] [--threads 2] [--length 8]

DATA contains one folder of videos per class. Without DATA, the script generates squares that move left or right. The
crop window, the contrast and the mirroring are drawn once per clip, so that all of its frames change alike. Needs the
extra ``video``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import av
import numpy as np
import torch
from torch import nn

from torchdali import fn, pipeline_def, types
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

SIZE = 32


@pipeline_def
def clips(root: str, length: int):
    frames, label = fn.readers.video(
        file_root=root, sequence_length=length, step=length // 2, random_shuffle=True, fast=True, name="reader"
    )  # fmt: skip
    frames = fn.random_resized_crop(frames, size=SIZE, random_area=[0.6, 1.0])
    frames = fn.brightness_contrast(
        frames,
        brightness=fn.random.uniform(range=[0.8, 1.2]),
        contrast=fn.random.uniform(range=[0.8, 1.2]),
    )
    frames = fn.flip(frames, horizontal=0, vertical=fn.random.coin_flip())
    frames = fn.crop_mirror_normalize(
        frames, dtype=types.FLOAT, output_layout="CFHW", mean=[127.5] * 3, std=[127.5] * 3
    )
    return frames, fn.cast(label, dtype=types.INT64)


def network(classes: int) -> nn.Module:
    def block(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Conv3d(inputs, outputs, 3, stride=2, padding=1), nn.ReLU())

    return nn.Sequential(block(3, 16), block(16, 32), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, classes))


def make_videos(root: Path, count: int = 6, frames: int = 24, size: int = 48) -> None:
    """Write videos of a bright square that moves left or right on a dark background."""
    rng = np.random.default_rng(7)
    for name, speed in (("left", -2), ("right", 2)):
        (root / name).mkdir()
        for number in range(count):
            with av.open(str(root / name / f"{number}.mp4"), "w") as file:
                stream = file.add_stream("mpeg4", rate=25)
                stream.width = stream.height = size
                top, first = rng.integers(4, size - 20), rng.integers(0, size)
                ground = rng.integers(0, 60, (size, size, 3))
                color = rng.integers(150, 256, 3)
                for i in range(frames):
                    image = ground.copy()
                    columns = (first + speed * i + np.arange(12)) % size
                    image[top : top + 12, columns] = color
                    frame = av.VideoFrame.from_ndarray(image.astype(np.uint8), format="rgb24")
                    file.mux(stream.encode(frame))
                file.mux(stream.encode(None))


def train(root: Path, epochs: int, threads: int, length: int) -> None:
    torch.manual_seed(1)
    pipe = clips(str(root), length, batch_size=8, num_threads=threads, device_id=None, seed=1)
    loader = DALIGenericIterator(
        pipe, ["frames", "label"], reader_name="reader", last_batch_policy=LastBatchPolicy.DROP, auto_reset=True
    )  # fmt: skip
    model = network(len([folder for folder in root.iterdir() if folder.is_dir()]))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        right = total = 0
        for (batch,) in loader:
            frames, label = batch["frames"], batch["label"].flatten()
            scores = model(frames)
            loss = nn.functional.cross_entropy(scores, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == label).sum())
            total += len(label)
        print(
            f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right / total:.3f} of {total} clips",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--length", type=int, default=8, help="frames of a clip")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.data is None:
            make_videos(Path(folder))
        train(options.data or Path(folder), options.epochs, options.threads, options.length)


if __name__ == "__main__":
    main()
