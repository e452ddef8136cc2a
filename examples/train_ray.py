"""Train a classifier on a folder with one subfolder per class; Ray actors load the images on any machine.

    python examples/train_ray.py DATA [--address auto] [--actors 2] [--threads 2] [--epochs 5] [--device cuda:0]

DATA contains one folder per class, at the same path on all machines. Without --address, Ray starts on this machine.
"""

from __future__ import annotations

import argparse
import functools
import time
from pathlib import Path

import ray
import torch
from torch import nn

from torchdali import fn, pipeline_def, types
from torchdali.plugin.ray import RayLoader


@pipeline_def
def training_pipeline(root: str, size: int):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, pad_last_batch=True, name="reader")
    images = fn.decoders.image(jpegs)
    images = fn.random_resized_crop(images, size=[size, size], random_area=[0.3, 1.0])
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        mirror=fn.random.coin_flip(),
    )
    return images, labels


def small_network(classes: int) -> nn.Module:
    def block(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    return nn.Sequential(
        block(3, 16),
        block(16, 32),
        block(32, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--address")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if not Path(options.data).is_dir():
        parser.error(f"no such folder: {options.data!r}")

    ray.init(options.address)
    make = functools.partial(
        training_pipeline,
        str(Path(options.data).absolute()),
        options.size,
        batch_size=options.batch_size,
        num_threads=options.threads,
        device_id=None,
        seed=1,
    )
    loader = RayLoader(
        make,
        ["data", "label"],
        "reader",
        actors=options.actors,
        actor_options={"num_cpus": options.threads},
    )
    classes = 1 + max(int(batch[0]["label"].max()) for batch in loader)
    torch.manual_seed(1)
    network = small_network(classes).to(options.device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)

    loss = torch.tensor(0.0)
    for epoch in range(options.epochs):
        started, samples, total = time.perf_counter(), 0, 0.0
        for batch in loader:
            images = batch[0]["data"].to(options.device, non_blocking=True)
            labels = batch[0]["label"].squeeze(-1).long().to(options.device)
            loss = nn.functional.cross_entropy(network(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            samples += len(labels)
            total += loss.item() * len(labels)
        rate = samples / (time.perf_counter() - started)
        print(f"epoch {epoch}: loss {total / samples:.3f}, {rate:.0f} images/s", flush=True)
    loader.close()
    ray.shutdown()
    return total / samples


if __name__ == "__main__":
    main()
