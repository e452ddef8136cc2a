"""States of `torchdali.DataLoader` in mid-epoch."""

from __future__ import annotations

import copy
import gc
import json
import random
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchvision.datasets import ImageFolder

from tests.dataloader.data import SAMPLES, Own, Stream, in_memory, rows, write_images
from tests.dataloader.test_loader import RANDOM, SHIFTED, check_equal
from torchdali import DataLoader


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("pictures")
    write_images(folder)
    return {
        "files": ImageFolder(str(folder), RANDOM), "arrays": in_memory("CIFAR10", SHIFTED), "rows": rows(),
        "own": Own(SAMPLES["a dictionary"]), "stream": Stream(),
    }  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("generator", [False, True], ids=["process", "generator"])
@pytest.mark.parametrize("persistent", [False, True], ids=["", "persistent"])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["files", "arrays", "rows", "own", "stream"])
def test_a_loop_resumes_from_the_saved_state(
    datasets: dict[str, Any], kind: str, workers: int, persistent: bool, generator: bool
) -> None:
    if persistent and not workers:
        pytest.skip("persistent_workers needs workers")
    arguments: dict[str, Any] = {"batch_size": 3, "num_workers": workers, "persistent_workers": persistent}
    arguments |= {} if kind == "stream" else {"shuffle": True}

    def loader(seed: int) -> DataLoader[Any]:
        torch.manual_seed(seed)
        own = torch.Generator().manual_seed(seed) if generator else None
        return DataLoader(datasets[kind], generator=own, **arguments)

    first = loader(1)
    list(first)  # the second epoch differs
    iterator = iter(first)
    for taken in range(5):
        state = json.loads(json.dumps(first.state_dict()))
        rest = [*iterator] if taken == 2 else None
        if rest is not None:
            break
        next(iterator)
    assert rest is not None and state["batches"] == 2
    second = loader(9)
    second.load_state_dict(state)
    assert second.state_dict() == state
    again = list(second)
    assert len(rest) == len(again) == 2
    check_equal(again, rest)
    assert len(list(second)) == 4 and second.state_dict()["batches"] == 0


def test_the_state_after_break_is_the_state_of_the_last_batch() -> None:
    torch.manual_seed(0)
    loader, seen = DataLoader(rows(), 2, shuffle=True), []
    for number, batch in enumerate(loader):
        seen.append(batch)
        if number == 1:
            break
    resumed = DataLoader(rows(), 2, shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    values = torch.cat([batch[1] for batch in [*seen, *resumed]])
    assert sorted(values.tolist()) == [0.5 * i for i in range(10)]


def test_a_state_of_another_kind_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"must come from torchdali.DataLoader.*snapshot_every_n_steps"):
        DataLoader(rows()).load_state_dict({"_snapshot": {}})


class Counts(Own):
    """A dataset with its own state."""

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": 7}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loaded = state


def test_states_of_datasets_match_torchdata() -> None:
    pytest.importorskip("torchdata")
    torch.manual_seed(0)
    loader = DataLoader(Counts(SAMPLES["a number"]), 2, shuffle=True)
    iterator = iter(loader)
    next(iterator)
    state, rest = loader.state_dict(), list(iterator)
    assert state["dataset_state"] == {"drawn": 7}
    dataset = Counts(SAMPLES["a number"])
    again = DataLoader(dataset, 2, shuffle=True)
    again.load_state_dict(state)
    check_equal(list(again), rest)
    assert dataset.loaded == {"drawn": 7}


BASE: dict[str, Any] = {"batch_size": 4, "shuffle": True}
OTHERS: dict[str, Any] = {
    "batch_size": {**BASE, "batch_size": 2}, "drop_last": {**BASE, "drop_last": True}, "sampler": {"batch_size": 4},
    "batch_sampler": {"batch_sampler": [[1, 2]]}, "dataset length": BASE,
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_a_state_of_another_loader_is_rejected(name: str) -> None:
    loader = DataLoader(rows(), **BASE)
    next(iter(loader))
    dataset = torch.utils.data.Subset(rows(), range(9)) if name == "dataset length" else rows()
    with pytest.raises(ValueError, match=r"state belongs to another loader: .* must be .*, got"):
        DataLoader(dataset, **OTHERS[name]).load_state_dict(loader.state_dict())


TAMPERED: dict[str, Any] = {
    "torchdali": (2, None), "batches": (-1, 4, 10**30, None, 1.0, True), "epoch": ("x", -1), "base_seed": (None, 2**64, 0.5),
    "finished": ("no", 1), "generator": (5, "", "AAAA", "*", None), "generators": ({"x": "AAAA"}, [], None),
    "first": (5, {"generator": "AAAA"}, {}), "loader": ({}, None), "more": (1,),
}  # fmt: skip


@pytest.mark.parametrize("field", TAMPERED)
def test_a_tampered_state_is_rejected(field: str) -> None:
    loader = DataLoader(rows(), **BASE)
    next(iter(loader))
    state = loader.state_dict()
    for value in TAMPERED[field]:
        with pytest.raises(ValueError, match="state"):
            loader.load_state_dict({**state, field: value})
    state.pop(field, None)
    if field != "more":
        with pytest.raises(ValueError, match="state"):
            loader.load_state_dict(state)


class Drawing(torch.utils.data.Sampler[int]):
    """Draws from its own generator, and from the program's."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __len__(self) -> int:
        return 10

    def __iter__(self) -> Any:
        seed = torch.randint(9, ()).item() + np.random.randint(9) + random.randrange(9)
        seed += self.own.integers(9) if isinstance(self.own, np.random.Generator) else self.own.randint(1, 9)
        yield from torch.randperm(10, generator=torch.Generator().manual_seed(int(seed))).tolist()


def weighted(seed: int) -> Any:
    own = torch.Generator().manual_seed(seed)
    return {"sampler": torch.utils.data.WeightedRandomSampler([1.0, 2.0] * 5, 10, generator=own)}


GENERATORS: dict[str, Any] = {
    "weighted": weighted,
    "weighted, and one of the loader": lambda seed: {**weighted(seed), "generator": torch.Generator().manual_seed(seed + 9)},
    "numpy": lambda seed: {"sampler": Drawing(np.random.default_rng(seed)), "generator": torch.Generator()},
    "an old one of numpy": lambda seed: {"sampler": Drawing(np.random.RandomState(seed)), "generator": torch.Generator()},
    "python": lambda seed: {"sampler": Drawing(random.Random(seed))},
    "batches": lambda seed: {"batch_sampler": torch.utils.data.BatchSampler(weighted(seed)["sampler"], 3, False)},
}  # fmt: skip


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_is_resumed(name: str, workers: int) -> None:
    """The remaining epoch; also the next epoch if the loader draws only from its own generators."""

    def loader(seed: int) -> DataLoader[Any]:
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        arguments = GENERATORS[name](seed)
        size = {} if "batch_sampler" in arguments else {"batch_size": 3}
        return DataLoader(rows(), num_workers=workers, persistent_workers=workers > 0, **size, **arguments)

    first = loader(1)
    list(first)
    iterator = iter(first)
    next(iterator)
    torch.rand(3)  # the program draws, too
    state, rest = json.loads(json.dumps(first.state_dict())), list(iterator)
    second = loader(2)
    second.load_state_dict(state)
    check_equal(list(second), rest)
    if name == "weighted, and one of the loader":
        check_equal(list(second), list(first))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_of_torchdata_is_freed_without_the_collector(workers: int) -> None:
    """In a cycle, the queues of persistent workers are finalized before their iterator, which then waits for the workers."""
    pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
    gc.collect()
    gc.disable()
    try:
        loader = DataLoader(range(8), num_workers=workers, persistent_workers=workers > 0, snapshot_every_n_steps=1)
        alive = weakref.ref(loader)
        copy.deepcopy(loader)
        assert len(list(loader)) == 8
        del loader
        assert alive() is None
    finally:
        gc.enable()
