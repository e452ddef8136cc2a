"""Random numbers of user code in worker processes: they differ per sample, and don't depend on the number of workers."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from tests.helpers.own_process import in_own_process
from torchdali import fn, operator, pipeline_def
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


def draws():
    """Draw from the three generators that user code uses."""
    return np.int64([random.getrandbits(40), np.random.randint(1 << 40), int(torch.randint(1 << 40, ()))])


class Records:
    """Random numbers by index."""

    def __init__(self, size=48):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return np.int64([i]), draws()


class SeveralRecords(Records):
    """Random numbers by indices, several in one call."""

    def __getitems__(self, indices):
        return [self[i] for i in indices]


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=5)
def of_dataset(dataset, workers):
    return tuple(fn.readers.dataset(dataset=dataset, workers=workers, random_shuffle=True, name="Reader"))


def by_sample(info):
    return np.int64([info.idx_in_epoch]), draws()


def by_batch(number):
    if number == 6:
        raise StopIteration
    return [np.int64([8 * number + i]) for i in range(8)], [draws() for _ in range(8)]


def batches():
    order = np.random.permutation(48)  # drawn once, when it starts
    for start in range(0, 48, 8):
        yield [np.int64([i]) for i in order[start : start + 8]], [draws() for _ in range(8)]


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=5, py_start_method="fork")
def of_source(source, workers, **options):
    pipe_options = {"parallel": True, "num_outputs": 2, **options}
    return tuple(fn.external_source(source=source, **pipe_options))


@operator(name="_test_add_draws", pure=True)
def add_draws(x, /):
    return torch.cat([x, torch.from_numpy(draws())])


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=5)
def of_operator():
    images = fn.external_source(source=lambda info: np.int64([info.idx_in_epoch]), batch=False)
    return add_draws(fn.copy(images))


def read_draws(pipe, count):
    """Return record and draws of each sample, in order."""
    pipe.build()
    rows = []
    for _ in range(count):
        columns = [np.stack([np.asarray(x) for x in column.as_cpu().samples()]) for column in pipe.run()]
        rows += np.concatenate(columns, axis=1).tolist()
    pipe.close()
    return rows


def are_all_different(rows):
    return all(len(set(column)) == len(rows) for column in list(zip(*rows, strict=True))[1:])


@pytest.mark.thin(2)
@pytest.mark.parametrize("dataset", [Records(), SeveralRecords()])
def test_records_of_a_dataset(dataset):
    rows = read_draws(of_dataset(dataset, 1), 12)
    assert are_all_different(rows)  # in two epochs
    for workers in (2, 4):
        assert read_draws(of_dataset(dataset, workers), 12) == rows
    assert read_draws(of_dataset(dataset, 2, seed=6), 12) != rows


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("source", "options"), [(by_sample, {"batch": False}), (by_batch, {}), (batches, {"cycle": "no"})]
)
def test_parallel_sources(source, options):
    rows = read_draws(of_source(source, 1, py_num_workers=1, **options), 6)
    assert are_all_different(rows)
    assert read_draws(of_source(source, 1, py_num_workers=3, **options), 6) == rows
    assert read_draws(of_source(source, 1, py_num_workers=3, seed=6, **options), 6) != rows


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_parallel_sources_in_spawned_processes(method):
    rows = read_draws(of_source(by_sample, 1, py_num_workers=2, batch=False), 6)
    assert read_draws(of_source(by_sample, 1, py_num_workers=2, py_start_method=method, batch=False), 6) == rows


@pytest.mark.parametrize("cycle", ["quiet", "raise"])
def test_a_restarted_source_draws_other_numbers(cycle):
    pipe = of_source(batches, 1, py_num_workers=1, cycle=cycle)
    iterator = DALIGenericIterator(pipe, ["i", "draws"], size=48, auto_reset=True)
    epochs = [np.concatenate([b[0]["draws"].numpy() for b in iterator]).tolist() for _ in range(3)]
    flat = [tuple(row) for epoch in epochs for row in epoch]
    assert len(set(flat)) == len(flat) == 144


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "make",
    [
        lambda seed: of_dataset(Records(), 2, seed=seed),
        lambda seed: of_dataset(SeveralRecords(), 3, seed=seed),
        lambda seed: of_source(by_sample, 1, py_num_workers=2, batch=False, seed=seed),
        lambda seed: of_source(batches, 1, py_num_workers=2, cycle="quiet", seed=seed),
    ],
)
def test_a_saved_position_continues_with_the_same_numbers(make):
    expected = read_draws(make(5), 11)
    first = make(5)
    first.build()
    for _ in range(7):
        first.run()
    state = first.state_dict()
    first.close()
    second = make(9)
    second.build()
    second.load_state_dict(state)
    assert read_draws(second, 4) == expected[56:]


def read_draws_in_processes(processes):
    return read_draws(of_operator(num_processes=2), 6), read_draws(of_operator(num_processes=processes, num_threads=4), 6)


@pytest.mark.thin(2)
@pytest.mark.parametrize("processes", [2, 3])
def test_operators_in_worker_processes(processes):
    rows, others = in_own_process("tests.execute.test_user_random", f"read_draws_in_processes({processes})")
    assert are_all_different(rows) and others == rows


def test_the_generators_of_this_process_are_unchanged():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    expected = draws()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    read_draws(of_source(by_sample, 1, py_num_workers=2, batch=False), 2)
    assert draws().tolist() == expected.tolist()


class Workers(Records):
    """Return the index of the worker."""

    def __getitem__(self, i):
        info = torch.utils.data.get_worker_info()
        if info is None:  # this process reads the first sample, too, to find its structure
            return np.int64([i]), np.int64([0, 0, 0])
        return np.int64([i]), np.int64([info.id, info.num_workers, len(info.dataset)])


def test_the_dataset_may_query_its_worker_info():
    rows = read_draws(of_dataset(Workers(), 3), 6)
    assert {tuple(row[2:]) for row in rows} == {(3, 48)}
    assert {row[1] for row in rows} <= {0, 1, 2}


def test_shuffled_iterators_see_other_numbers_in_each_epoch():
    iterator = DALIGenericIterator(
        of_dataset(Records(), 2), ["i", "draws"], reader_name="Reader", auto_reset=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    epochs = [{int(b) for batch in iterator for b in batch[0]["draws"][:, 1]} for _ in range(3)]
    assert len(set.union(*epochs)) == 144
