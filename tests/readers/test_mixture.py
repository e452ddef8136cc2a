"""Mixtures of readers: shares of an epoch, order, ranks, exact resuming."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import write_tar
from torchdali import Loader, WeightedReader, fn, pipeline_def, reshard
from torchdali.reading.mixture import Weight, epoch_counts

SIZES = (40, 10, 25)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the arguments of three readers of arrays ``[source, record]``: files, an archive, a Python dataset."""
    folder = tmp_path_factory.mktemp("mixture")
    for record in range(SIZES[0]):
        (folder / f"{record:03}.bin").write_bytes(bytes([0, record]))
    write_tar(folder / "a.tar", [(f"{i:03}.bin", bytes([1, i])) for i in range(SIZES[1])])
    files = [str(folder / f"{i:03}.bin") for i in range(SIZES[0])]
    return [
        {"reader": fn.readers.numpy, "files": _arrays(folder, 0)},
        {"reader": fn.readers.webdataset, "paths": [str(folder / "a.tar")], "ext": ["bin"]},
        {"reader": fn.readers.dataset, "dataset": [np.array([2, i], np.uint8) for i in range(SIZES[2])]},
        {"reader": fn.readers.file, "files": files},
    ]


def _arrays(folder: Path, source: int) -> list[str]:
    for record in range(SIZES[source]):
        np.save(folder / f"{record:03}.npy", np.array([source, record], np.uint8))
    return [str(folder / f"{record:03}.npy") for record in range(SIZES[source])]


def weighted(source: dict[str, Any], **weight: Any) -> WeightedReader:
    return WeightedReader(source["reader"], **weight, **{k: v for k, v in source.items() if k != "reader"})


def mixed(sources: list[dict[str, Any]], weights: list[dict[str, Any]], batch: int = 5, **options: Any) -> Any:
    @pipeline_def(batch_size=batch, num_threads=2, device_id=None, seed=3)
    def define() -> Any:
        readers = [weighted(source, **weight) for source, weight in zip(sources, weights, strict=False)]
        return fn.readers.mixture(sources=readers, **options)

    return define


def rows(loader: Loader) -> list[list[tuple[int, int]]]:
    return [[tuple(row) for row in batch.tolist()] for batch in loader]  # type: ignore[misc]


WEIGHTS = {
    "each once": ([{}, {}, {}], [40, 10, 25]),
    "repeat": ([{"repeat": 0.5}, {"repeat": 3}, {}], [20, 30, 25]),
    "choose": ([{"choose": 7}, {"choose": 12}, {"repeat": 1.2}], [7, 12, 30]),
    "proportion": ([{"proportion": 1}, {"proportion": 1}, {"proportion": 2}], [19, 19, 37]),
}
ORDERS = {"in order": {}, "stratified": {"stratified": True, "random_shuffle": True}, "shuffled": {"random_shuffle": True}}


@pytest.mark.thin(5)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_an_epoch_has_the_shares_and_passes_repeat_no_record(weights: str, order: str, sources: list[dict[str, Any]]) -> None:
    given, counts = WEIGHTS[weights]
    loader = Loader(mixed(sources, given, **ORDERS[order]))
    assert loader.dataset_size == sum(counts)
    walked: list[list[int]] = [[], [], []]
    for _ in range(4):
        epoch = [row for batch in rows(loader) for row in batch]
        taken = Counter(source for source, _ in epoch)
        assert [taken[i] for i in range(3)] == counts
        for source, record in epoch:
            walked[source].append(record)
        for size, records in zip(SIZES, walked, strict=True):
            seen = Counter(records)  # whole passes, and a part of the next one
            passes, rest = divmod(len(records), size)
            assert set(seen.values()) <= {passes, passes + 1} and len(seen) == (size if passes else rest)
    loader.close()


def test_stratified_batches_have_the_weights(sources: list[dict[str, Any]]) -> None:
    loader = Loader(mixed(sources, [{"proportion": 1}, {"proportion": 1}, {"proportion": 2}], batch=16, epoch_size=160, stratified=True, random_shuffle=True))
    batches = rows(loader)
    for batch in batches:
        taken = Counter(source for source, _ in batch)
        assert all(abs(taken[i] - share) <= 1 for i, share in enumerate((4, 4, 8)))
    assert [record for batch in batches for source, record in batch if source == 0] != list(range(40))
    assert rows(loader) != batches
    loader.close()


def test_mixtures_deliver_labels_of_files_and_names_of_records(sources: list[dict[str, Any]]) -> None:
    both = [weighted(sources[3], repeat=2), weighted(sources[3], choose=5)]

    @pipeline_def(batch_size=17, num_threads=2, device_id=None)
    def define() -> Any:
        return tuple(fn.readers.mixture(sources=both))

    with define() as pipe:
        data, labels = pipe.run()
        for sample, label, name in zip(data.samples(), labels.samples(), (data[i].source_info() for i in range(17)), strict=True):
            assert sample.tolist() == [0, label.item()] and name.endswith(f"{label.item():03}.bin")


def test_copies_of_a_record_have_different_random_numbers() -> None:
    @pipeline_def(batch_size=8, num_threads=1, device_id=None, seed=1)
    def define() -> Any:
        data = fn.readers.mixture(sources=[WeightedReader(fn.readers.dataset, repeat=4, dataset=[np.zeros(3, np.float32), np.ones(3, np.float32)])])
        return fn.noise.gaussian(data, stddev=1.0)

    with define() as pipe:
        samples = [tuple(sample.tolist()) for sample in pipe.run()[0].samples()]
    assert len(set(samples)) == 8


@pytest.mark.thin(2)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_resuming_at_each_batch_is_exact_on_all_ranks(ranks: int, order: str, sources: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    given, counts = WEIGHTS["choose"]
    define = mixed(sources, given, batch=6, **ORDERS[order])
    epochs = []
    for rank in range(ranks):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(ranks))
        with Loader(define) as loader:
            states, batches = [], []
            for batch in loader:
                states.append(loader.state_dict())
                batches.append(batch.tolist())
        for i, state in enumerate(states[:-1]):
            with Loader(define) as again:
                again.load_state_dict(state)
                assert [batch.tolist() for batch in again] == batches[i + 1 :]
        epochs.append(batches)
    assert len({len(each) for each in epochs}) == 1
    taken = Counter(row[0] for batches in epochs for batch in batches for row in batch)
    assert [taken[i] for i in range(3)] == counts


def test_another_number_of_ranks_delivers_the_remaining_records(sources: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    define = mixed(sources, [{"repeat": 0.5}, {"repeat": 3}, {}], batch=5, stratified=True, random_shuffle=True)
    whole, states, taken = [], [], []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        with Loader(define) as loader:
            whole += [tuple(row) for batch in loader for row in batch.tolist()]
        with Loader(define) as loader:
            batches = iter(loader)
            taken += [tuple(row) for _ in range(2) for row in next(batches).tolist()]
            states.append(loader.state_dict())
    for rank, state in enumerate(reshard(states, 3)):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "3")
        with Loader(define) as loader:
            loader.load_state_dict(state)
            taken += [tuple(row) for batch in loader for row in batch.tolist()]
    assert Counter(taken) == Counter(whole)


def test_a_checkpoint_of_other_weights_is_rejected(sources: list[dict[str, Any]]) -> None:
    with Loader(mixed(sources, [{"choose": 10}, {"choose": 20}])) as loader:
        state = loader.state_dict()
    with Loader(mixed(sources, [{"choose": 20}, {"choose": 10}])) as loader, pytest.raises(RuntimeError, match="a different graph"):
        loader.load_state_dict(state)


def test_a_checkpoint_continues_when_the_data_has_moved(sources: list[dict[str, Any]], tmp_path: Path) -> None:
    moved = [{**sources[0], "files": _arrays(tmp_path, 0)}, *sources[1:]]
    with Loader(mixed(sources, [{}, {}])) as loader:
        state = loader.state_dict()
    with Loader(mixed(moved, [{}, {}])) as loader:
        loader.load_state_dict(state)
        assert len(rows(loader)) == 10


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "no reader": (lambda s: WeightedReader(fn.resize), TypeError, "must be readers such as fn.readers.file"),
    "two shares": (lambda s: weighted(s[0], repeat=2, choose=1), ValueError, "only one of"),
    "negative": (lambda s: weighted(s[0], repeat=-1), ValueError, "repeat must be above 0, got -1"),
    "shuffling": (lambda s: weighted({**s[0], "random_shuffle": True}), ValueError, "random_shuffle must be passed to fn.readers.mixture"),
    "workers": (lambda s: weighted({**s[2], "workers": 2}), ValueError, "workers must be 0 in a mixture"),
    "unknown argument": (lambda s: weighted({**s[0], "flies": 1}), Exception, "flies"),
    "no list": (lambda s: mixed(s, [])(), TypeError, "must be a list of torchdali.WeightedReader"),
    "outputs": (lambda s: mixed([s[0], s[3]], [{}, {}])(), ValueError, "the same number of outputs, got \\[1, 2\\]"),
    "other shuffling": (lambda s: mixed(s, [{}], shuffle_after_epoch=True)().build(), RuntimeError, "shuffle_after_epoch must be False"),
    "some proportions": (lambda s: mixed(s, [{"proportion": 1}, {}])().build(), RuntimeError, "either all sources or none"),
    "size": (lambda s: mixed(s, [{}, {}], epoch_size=9)().build(), RuntimeError, "epoch_size can only be used with proportion"),
    "nothing": (lambda s: mixed(s, [{"proportion": 1}, {"proportion": 1e9}], epoch_size=9)().build(), RuntimeError, "at least one sample"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes(case: str, sources: list[dict[str, Any]]) -> None:
    call, kind, text = WRONG[case]
    with pytest.raises((kind, ValueError) if kind is RuntimeError else kind, match=text):
        call(sources)


def test_counts_add_up() -> None:
    assert epoch_counts([10, 10, 10], [Weight(1.0), Weight(1.0), Weight(1.0)], 100) == [34, 33, 33]
