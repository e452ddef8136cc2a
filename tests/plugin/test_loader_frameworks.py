"""Frameworks accept a `Loader` unchanged, and get every sample once per epoch."""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from tests.helpers.own_process import in_own_process
from tests.helpers.pages import ROOT
from torchdali import Loader, fn, pipeline_def

pytestmark = pytest.mark.slow

SIZE = 25


@pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=1)
def numbers(shuffle=True):
    dataset = [(np.float32([i, 1]), np.int64(i)) for i in range(SIZE)]
    return tuple(fn.readers.dataset(dataset=dataset, random_shuffle=shuffle, name="Reader"))


def loader(shuffle=True, **options):
    """Return a Loader of 25 samples ``(values, number)``, in batches of 4."""
    return Loader(functools.partial(numbers, shuffle), **options)


def complete(epochs):
    """Return whether each epoch has every sample once, and whether the epochs differ."""
    flat = [list(itertools.chain.from_iterable(batches)) for batches in epochs]
    return all(sorted(each) == list(range(SIZE)) for each in flat) and len(set(map(tuple, flat))) == len(flat)


# ------------------------------------------------------------ Lightning


@pytest.fixture
def module():
    """A Lightning module that records the numbers of its batches, epoch by epoch."""
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, SIZE)
            self.epochs, self.tested, self.batches, self.checked = [], [], [], []

        def training_step(self, batch, _):
            values, labels = batch
            self.batches.append(labels.tolist())
            return torch.nn.functional.cross_entropy(self.layer(values), labels)

        def validation_step(self, batch, _):
            self.checked.append(batch[1].tolist())

        def on_train_epoch_end(self):
            self.epochs.append(self.batches)
            self.batches = []

        def on_validation_epoch_end(self):
            self.tested.append(self.checked)
            self.checked = []

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Module


def fit(module, *, checkpoint=None, **options):
    import lightning

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    trainer = lightning.Trainer(accelerator="cpu", devices=1, **{**quiet, **options})
    trainer.fit(module, loader(), loader(shuffle=False), ckpt_path=checkpoint)
    return module


def test_lightning_trains_and_validates(module):
    model = fit(module(), max_epochs=3)
    assert complete(model.epochs)
    in_order = [list(range(i, min(i + 4, SIZE))) for i in range(0, SIZE, 4)]
    assert model.tested == [in_order[:2], in_order, in_order, in_order]  # the first is the sanity check


def test_lightning_leaves_epochs_early(module):
    whole = fit(module(), max_epochs=3).epochs
    model = fit(module(), max_epochs=3, limit_train_batches=2, limit_val_batches=1, num_sanity_val_steps=0)
    assert model.epochs == [epoch[:2] for epoch in whole]
    assert model.tested == [[[0, 1, 2, 3]]] * 3
    model = fit(module(), max_epochs=2, val_check_interval=3)
    assert model.epochs == whole[:2]


@pytest.mark.parametrize("steps", [7, 9])  # at the end of an epoch, and in the middle of one
def test_lightning_continues_with_the_next_batch(module, tmp_path, steps):
    from lightning.pytorch.callbacks import ModelCheckpoint

    whole = fit(module(), max_epochs=3).epochs
    saving = ModelCheckpoint(tmp_path, filename="saved", every_n_train_steps=steps)
    fit(module(), max_epochs=3, max_steps=steps, enable_checkpointing=True, callbacks=[saving])
    resumed = fit(module(), max_epochs=3, checkpoint=tmp_path / "saved.ckpt")
    assert list(itertools.chain.from_iterable(resumed.epochs)) == list(itertools.chain.from_iterable(whole))[steps:]


ON_TWO_DEVICES = """
import json
import lightning
import torch
from tests.plugin.test_loader_frameworks import SIZE, loader

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(2, SIZE), [[]]

    def training_step(self, batch, _):
        self.seen[-1].append(batch[1].tolist())
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def on_train_epoch_end(self):
        self.seen.append([])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

if __name__ == "__main__":
    module = Module()
    quiet = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False}
    lightning.Trainer(max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", **quiet).fit(module, loader())
    with open(f"seen-{module.global_rank}.json", "w") as file:
        json.dump(module.seen[:2], file)
"""


def test_lightning_trains_on_two_devices(tmp_path):
    pytest.importorskip("lightning")
    (tmp_path / "train.py").write_text(ON_TWO_DEVICES)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"seen-{rank}.json").read_text()) for rank in range(2))
    assert all(len(ours) == len(theirs) == 4 for ours, theirs in zip(first, second, strict=True))
    assert complete([ours + theirs for ours, theirs in zip(first, second, strict=True)])


# ------------------------------------------------------------ accelerate, transformers


def test_accelerate_accepts_a_loader():
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    bare = accelerator.prepare(loader())
    assert complete([[labels.tolist() for _, labels in bare] for _ in range(2)])
    wrapped = accelerator.prepare(torch.utils.data.DataLoader(loader(), batch_size=None))
    assert complete([[labels.tolist() for _, labels in wrapped] for _ in range(2)])


def test_transformers_accepts_a_loader(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    trained, tested = [], []

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, SIZE)

        def forward(self, values, labels):
            (trained if self.training else tested).append(labels.tolist())
            logits = self.layer(values)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return self.train_dataset

        def get_eval_dataloader(self, eval_dataset=None):
            return self.eval_dataset if eval_dataset is None else eval_dataset

    arguments = transformers.TrainingArguments(
        tmp_path, num_train_epochs=3, eval_strategy="epoch", report_to="none", save_strategy="no", use_cpu=True
    )
    data, test = (loader(shuffle, outputs=["values", "labels"]) for shuffle in (True, False))
    trainer = Trainer(
        Model(), arguments, train_dataset=data, eval_dataset=test,
        compute_metrics=lambda found: {"count": len(found.label_ids)},
    )  # fmt: skip
    trainer.train()
    assert trainer.state.global_step == 21
    assert complete([trained[:7], trained[7:14], trained[14:]])
    assert list(itertools.chain.from_iterable(tested)) == list(range(SIZE)) * 3
    assert trainer.evaluate()["eval_count"] == SIZE


# ------------------------------------------------------------ torchdata


def stateful(workers, taken):
    """Return two epochs of a StatefulDataLoader: parts of one before and after a state, or None for all; and two loops after it."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    def make():
        return StatefulDataLoader(loader(), batch_size=None, num_workers=workers)

    first = make()
    epochs = [[labels.tolist() for _, labels in first] for _ in range(2)]
    first = make()
    batches = iter(first)
    head = [labels.tolist() for _, labels in (batches if taken is None else itertools.islice(batches, taken))]
    state = first.state_dict()
    rest = [labels.tolist() for _, labels in batches]
    second = make()
    second.load_state_dict(state)
    resumed, following = ([labels.tolist() for _, labels in second] for _ in range(2))
    return epochs, head, rest, resumed, following


# In two workers there are 8 batches: after 7, one of them has delivered its part.
@pytest.mark.parametrize(("workers", "taken"), [(0, 0), (0, 1), (0, 5), (2, 0), (2, 1), (2, 5), (2, 7), (2, 8)])
def test_stateful_dataloader_continues(workers, taken):
    pytest.importorskip("torchdata.stateful_dataloader")
    call = f"stateful({workers}, {taken})"
    epochs, head, rest, resumed, following = in_own_process("tests.plugin.test_loader_frameworks", call)
    assert complete(epochs) and complete([head + rest, following])
    assert resumed == rest


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_dataloader_begins_the_next_epoch(workers):
    pytest.importorskip("torchdata.stateful_dataloader")
    _, head, rest, resumed, following = in_own_process("tests.plugin.test_loader_frameworks", f"stateful({workers}, None)")
    assert rest == [] and complete([head, resumed, following])


def test_nodes_accept_a_loader():
    nodes = pytest.importorskip("torchdata.nodes")

    def make():
        return nodes.Loader(nodes.Prefetcher(nodes.IterableWrapper(loader()), prefetch_factor=2))

    first = make()
    epochs = [[labels.tolist() for _, labels in first] for _ in range(2)]
    assert complete(epochs)
    first = make()
    batches = iter(first)
    head = [next(batches)[1].tolist() for _ in range(3)]
    second = make()
    second.load_state_dict(first.state_dict())
    resumed, following = ([labels.tolist() for _, labels in second] for _ in range(2))
    assert [head + resumed, following] == epochs
