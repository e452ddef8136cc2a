"""The modules that a process loads for a loader, and the use of torch's private names."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from torchdali import DataLoader

FOLDER = Path(__file__).resolve().parents[2] / "torchdali" / "dataloader"
HEAVY = ("torchdali.ops", "torchdali.pipeline", "torchdali.execute", "torchvision")


class Loaded(Dataset[Any]):
    """Samples list the loaded modules of the process that created them."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([name in sys.modules for name in HEAVY])


def test_a_spawned_worker_loads_no_operators() -> None:
    """The worker imports this file for the dataset, so `from torchdali import DataLoader` loads no operators, either."""
    (batch,) = DataLoader(Loaded(), 2, num_workers=1, multiprocessing_context="spawn", timeout=120)
    assert not batch.any()


PRIVATE = re.compile(r"torch\.utils\.data\._|_(Base|SingleProcess|MultiProcessing)DataLoaderIter|_DatasetKind|_dataset_kind|_auto_collation|_rcvd_idx")


def test_one_file_uses_private_names_of_torch() -> None:
    files = [path for path in FOLDER.glob("*.py") if PRIVATE.search(path.read_text(encoding="utf-8"))]
    assert [path.name for path in files] == ["_torch_internals.py"]
