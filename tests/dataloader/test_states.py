"""States of `torchdali.DataLoader` in mid-epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torchvision.datasets import ImageFolder

from tests.dataloader.data import SAMPLES, Own, Stream, in_memory, rows, write_pictures
from tests.dataloader.test_loader import RANDOM, SHIFTED, check_equal
from torchdali import DataLoader


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("pictures")
    write_pictures(folder)
    return {
        "files": ImageFolder(str(folder), RANDOM), "arrays": in_memory("CIFAR10", SHIFTED), "rows": rows(),
        "own": Own(SAMPLES["a dictionary"]), "stream": Stream(),
    }  # fmt: skip


@pytest.mark.parametrize("generator", [False, True], ids=["process", "generator"])
@pytest.mark.parametrize("persistent", [False, True], ids=["", "persistent"])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["files", "arrays", "rows", "own", "stream"])
def test_a_loop_goes_on_where_the_state_was_taken(
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
    list(first)  # the second epoch is another one
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


def test_the_state_of_a_broken_loop_is_that_of_its_last_batch() -> None:
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


def test_a_state_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be one of torchdali.DataLoader.*snapshot_every_n_steps"):
        DataLoader(rows()).load_state_dict({"_snapshot": {}})


class Counts(Own):
    """A data set with a state of its own."""

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": 7}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loaded = state


def test_states_of_data_sets_are_torchdatas() -> None:
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
