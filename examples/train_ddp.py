"""Train in several processes with torchrun. Each reads its own shard, and a killed run resumes mid-epoch.

    torchrun --nproc-per-node 2 examples/train_ddp.py DATA --checkpoint DIR [--resume]

DATA contains one folder per class. Without a GPU the processes run on CPUs (gloo); with GPUs, on one each (nccl).
Every ``--save-every`` steps, the script saves the network and the position in the data. ``--resume`` continues with
the next unseen batch, and with the same pixels as an uninterrupted run.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # before the group exists, see main
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchdali import fn, pipeline_def, types
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


@pipeline_def
def training_pipeline(files: list[str], rank: int, world: int, size: int):
    # The label is the index of the file, so that the loop knows which samples it has seen.
    jpegs, index = fn.readers.file(
        files=files,
        labels=list(range(len(files))),
        random_shuffle=True,
        shard_id=rank,
        num_shards=world,
        pad_last_batch=True,
        name="reader",
    )
    images = fn.decoders.image(jpegs)
    images = fn.random_resized_crop(images, size=[size, size], random_area=[0.3, 1.0])
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[128.0],
        std=[64.0],
        mirror=fn.random.coin_flip(),
    )
    return images, index


def find_files(root: str) -> tuple[list[str], list[int]]:
    classes = sorted(entry.name for entry in Path(root).iterdir() if entry.is_dir())
    pairs = [(str(f), k) for k, name in enumerate(classes) for f in sorted((Path(root) / name).iterdir())]
    return [f for f, _ in pairs], [k for _, k in pairs]


def network(classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(32 * 16, classes),
    )  # fmt: skip


class Checkpoint:
    """Saves the network and optimizer once, and the position in the data once per rank."""

    def __init__(self, folder: str | None, rank: int) -> None:
        self.folder, self.rank = None if folder is None else Path(folder), rank

    def save(
        self,
        step: int,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        loader: DALIGenericIterator,
    ) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        position = {"step": step, "loader": loader.state_dict()}
        self._replace(f"loader-{self.rank}.json", lambda path: path.write_text(json.dumps(position)))
        if self.rank == 0:
            state = {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
            self._replace("model.pt", lambda path: torch.save(state, path))
        dist.barrier()

    def _replace(self, name: str, write) -> None:
        """Write a new file and rename it, so that one complete file survives a crash."""
        assert self.folder is not None
        new = self.folder / f"{name}.new"
        write(new)
        new.rename(self.folder / name)

    def load(self, model: nn.Module, optimiser: torch.optim.Optimizer, loader: DALIGenericIterator) -> int:
        assert self.folder is not None, "--resume needs --checkpoint"
        position = json.loads((self.folder / f"loader-{self.rank}.json").read_text())
        state = torch.load(self.folder / "model.pt", weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        loader.load_state_dict(position["loader"])
        return int(position["step"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--checkpoint", help="folder to save in")
    parser.add_argument("--save-every", type=int, default=5, help="steps")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--batch-log", help="folder for a line a batch: samples, checksum of the pixels, loss")
    parser.add_argument("--crash-at", type=int, help="die without warning after so many steps, to try --resume")
    options = parser.parse_args()
    if not Path(options.data).is_dir():
        parser.error(f"no such folder: {options.data!r}")
    if "RANK" not in os.environ:
        parser.error("start it with torchrun, as shown above (--help)")
    return options


def main() -> None:
    # The threads of gloo must be gone when the interpreter ends, or it may abort ("terminate called without an active
    # exception"). They exit with the last reference to the group: `train` keeps the network's references local, and
    # torch.distributed.nn.functional, which DistributedDataParallel imports, keeps the group in its default
    # arguments forever unless it was imported before the group existed.
    options = arguments()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    train(options)
    dist.destroy_process_group()


def train(options: argparse.Namespace) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    files, classes = find_files(options.data)
    labels = torch.tensor(classes)

    pipe = training_pipeline(
        files,
        rank,
        world,
        options.size,
        batch_size=options.batch_size,
        num_threads=options.threads,
        seed=7,
    )
    loader = DALIGenericIterator(
        pipe,
        ["data", "index"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )
    torch.manual_seed(0)
    model = DistributedDataParallel(network(max(classes) + 1).to(device))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    checkpoint = Checkpoint(options.checkpoint, rank)
    step = checkpoint.load(model, optimiser, loader) if options.resume else 0
    log = open(Path(options.batch_log) / f"rank-{rank}.jsonl", "a") if options.batch_log else None  # noqa: SIM115
    steps_an_epoch = len(loader)

    while step < options.epochs * steps_an_epoch:
        for batch in loader:
            images, index = batch[0]["data"].to(device), batch[0]["index"].squeeze(-1)
            loss = nn.functional.cross_entropy(model(images), labels[index].to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if log is not None:
                line = {
                    "epoch": step // steps_an_epoch,
                    "step": step,
                    "samples": index.tolist(),
                    "checksum": images.double().sum().item(),
                    "loss": loss.item(),
                }
                print(json.dumps(line), file=log, flush=True)
            step += 1
            if step % options.save_every == 0:
                checkpoint.save(step, model, optimiser, loader)
            if step == options.crash_at:
                os._exit(3)
        if rank == 0:
            print(f"epoch {step // steps_an_epoch - 1}: loss {loss.item():.3f}", flush=True)
    pipe.close()


if __name__ == "__main__":
    main()
