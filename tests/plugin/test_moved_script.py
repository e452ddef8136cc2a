"""A training script with torch's DataLoader, and the same with torchdali's: one import differs, and the samples are the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

pytestmark = pytest.mark.slow

SCRIPT = """\
import collections
import json
import os
import sys

import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

root, epochs, most = sys.argv[1], 4, int(sys.argv[2])
world = int(os.environ.get("WORLD_SIZE", 1))
if world > 1:
    torch.distributed.init_process_group("gloo")
torch.manual_seed(1)
normalize = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
augment = v2.Compose([v2.PILToTensor(), v2.RandomResizedCrop(32, (0.5, 1.0), antialias=True), v2.RandomHorizontalFlip(), *normalize])
centre = v2.Compose([v2.PILToTensor(), v2.Resize((32, 32), antialias=True), *normalize])
pictures = ImageFolder(f"{root}/train", augment)
train = DataLoader(pictures, batch_size=16, shuffle=world == 1, sampler=DistributedSampler(pictures) if world > 1 else None)
test = DataLoader(ImageFolder(f"{root}/val", centre), batch_size=16)
network = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, len(pictures.classes)))
optimizer = torch.optim.Adam(network.parameters(), 0.03)
schedule = OneCycleLR(optimizer, 0.03, total_steps=epochs * len(train))
report = {"classes": pictures.classes, "batches": len(train), "samples": [], "accuracy": []}
for epoch in range(epochs):
    seen = collections.Counter()
    for step, (images, labels) in enumerate(train):
        if most and step == most:
            break
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        seen.update(labels.tolist())
    with torch.no_grad():
        right = sum((network(images).argmax(1) == labels).sum().item() for images, labels in test)
    report["samples"].append(dict(seen))
    report["accuracy"].append(right / len(test.dataset))
print(json.dumps(report))
"""

COLORS = {"blue": (40, 60, 200), "green": (40, 190, 60), "red": (200, 50, 40)}
TRAIN, VAL = 100, 30


@pytest.fixture(scope="module")
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(3)
    for part, count in (("train", TRAIN), ("val", VAL)):
        for number in range(count):
            name = sorted(COLORS)[number % 3]
            (root / part / name).mkdir(parents=True, exist_ok=True)
            pixels = np.clip(np.array(COLORS[name]) + rng.normal(0, 60, (40, 48, 3)), 0, 255).astype(np.uint8)
            PIL.Image.fromarray(pixels).save(root / part / name / f"{number:03}.jpg")
    return root


def moved() -> str:
    """Return the script with torchdali's DataLoader."""
    return SCRIPT.replace("import DataLoader, DistributedSampler", "import DistributedSampler\nfrom torchdali import DataLoader")


def reports(text: str, folder: Path, root: Path, most: int = 0, ranks: int = 1) -> list[dict[str, Any]]:
    path = folder / "script.py"
    path.write_text(text)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    command = [sys.executable, *launcher, str(path), str(root), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if "{" in line]


def total(found: list[dict[str, Any]]) -> list[dict[str, int]]:
    """Add up the samples of the ranks, class by class, for each epoch."""
    epochs = zip(*(report["samples"] for report in found), strict=True)
    return [dict(sorted(sum((Counter(each) for each in parts), Counter[str]()).items())) for parts in epochs]


def test_one_process(image_folder: Path, tmp_path: Path) -> None:
    (before,), (after,) = (reports(text, tmp_path, image_folder) for text in (SCRIPT, moved()))
    assert total([before]) == total([after]) == [{"0": 34, "1": 33, "2": 33}] * 4
    assert before["batches"] == after["batches"] == 7 and before["classes"] == after["classes"]
    assert min(before["accuracy"][-1], after["accuracy"][-1]) > 0.95


def test_a_loop_after_break_starts_a_new_epoch(image_folder: Path, tmp_path: Path) -> None:
    (before,), (after,) = (reports(text, tmp_path, image_folder, most=3) for text in (SCRIPT, moved()))
    for report in (before, after):
        assert [sum(each.values()) for each in report["samples"]] == [48] * 4


def test_several_ranks(image_folder: Path, tmp_path: Path) -> None:
    before, after = (reports(text, tmp_path, image_folder, ranks=3) for text in (SCRIPT, moved()))
    assert total(after) == total(before)
    assert [sum(each.values()) for each in total(after)] == [102] * 4  # a DistributedSampler repeats two of them
    assert len({report["batches"] for report in after}) == 1
    assert all(report["accuracy"][-1] > 0.9 for report in after)


LOOPS = """\
import sys

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2


class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index * index


resize = v2.Compose([v2.Resize((8, 8)), v2.PILToTensor()])
known = [TensorDataset(torch.arange(5)), ImageFolder(sys.argv[1] + "/val", resize)]
datasets = {"both": [*known, Squares()], "own": [Squares()], "none": []}[sys.argv[2]]
loaders = [DataLoader(each, batch_size=4) for each in datasets]
for loader in [*loaders, *loaders]:
    list(loader)
if sys.argv[2] == "own":
    sys.exit("stopped")
"""
SENTENCES = {
    "both": r"2 of 3 loaders accelerated \(TensorDataset, ImageFolder\); not accelerated: Squares is your own dataset; ",
    "own": r"0 of 1 loaders accelerated; not accelerated: Squares is your own dataset; ",
    "none": None,
}


@pytest.mark.parametrize("datasets", SENTENCES)
def test_the_sentence_at_the_end_of_a_run(image_folder: Path, tmp_path: Path, datasets: str) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    command = [sys.executable, "-m", "torchdali", "run", str(tmp_path / "loops.py"), str(image_folder), datasets]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == (datasets == "own"), done.stderr[-3000:]
    last = [line for line in done.stderr.splitlines() if line.startswith("torchdali run: ")]
    times = r"the loops waited \d+\.\d s of their \d+\.\d s \(\d+%\) for data(, \d+\.\d s of it for start-up)?"
    sentence = SENTENCES[datasets]
    assert len(last) == (sentence is not None)
    assert sentence is None or re.fullmatch(f"torchdali run: {sentence}{times}", last[0])
