"""Sample order and metadata of readers against the real DALI."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from torchdali.reading.cursor import Cursor, EpochOrder
from torchdali.reading.datasets import LoaderOptions, reader_meta

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("records")
    paths = [folder / f"{index:03d}.bin" for index in range(32)]
    for path in paths:
        path.write_bytes(b"x")
    return [str(path) for path in paths]


def real_reader(files: list[str], size: int, batch_size: int, runs: int, **options: object):
    """Return the labels that the real reader delivers, run by run, and its metadata."""
    from nvidia.dali import Pipeline, fn

    pipe = Pipeline(batch_size=batch_size, num_threads=1, device_id=None, seed=1)
    with pipe:
        _, label = fn.readers.file(
            files=files[:size], labels=list(range(size)), name="reader", **options
        )
        pipe.set_outputs(label)
    pipe.build()
    runs_ = [np.asarray(pipe.run()[0].as_tensor()).ravel().tolist() for _ in range(runs)]
    return runs_, pipe.reader_meta("reader")


@pytest.mark.parametrize(
    "options",
    [
        {"random_shuffle": True},
        {"random_shuffle": True, "pad_last_batch": True},
        {"random_shuffle": True, "pad_last_batch": True, "stick_to_shard": True},
        {"shuffle_after_epoch": True},
        {"shuffle_after_epoch": True, "pad_last_batch": True},
    ],
    ids=str,
)
def test_shuffling_preserves_epochs_and_padding(files, options) -> None:
    """The order is torchdali's; epochs, padding and metadata match DALI's."""
    size, shards, batch_size, runs = 11, 2, 3, 8
    found = {"dali": [], "torchdali": []}
    for shard in range(shards):
        arguments = {"num_shards": shards, "shard_id": shard, **options}
        walk, meta = real_reader(files, size, batch_size, runs, **arguments)
        found["dali"].append(walk)
        place = Cursor(EpochOrder(size, LoaderOptions(**arguments)))
        found["torchdali"].append(
            [place.next_batch(batch_size).records.tolist() for _ in range(runs)]
        )
        assert reader_meta(size, LoaderOptions(**arguments)) == meta
    if options.get("pad_last_batch"):
        rotates = not meta["stick_to_shard"]
        for walks in found.values():
            assert first_epoch(walks) == list(range(size))
            assert repeats(walks) == ([[1, 0], [0, 1]] if rotates else [[1, 1], [0, 0]])


def first_epoch(walks: list[list[list[int]]]) -> list[int]:
    return sorted({record for walk in walks for batch in walk[:2] for record in batch})


def repeats(walks: list[list[list[int]]]) -> list[list[int]]:
    """Return the number of times the last record is repeated at the end of the first and the second epoch."""
    return [[len(walk[i]) - len(set(walk[i])) for i in (1, 3)] for walk in walks]


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (4, {"num_shards": 5}),
        (4, {"num_shards": 2, "shard_id": 2}),
        (4, {"num_shards": 0}),
        (4, {"prefetch_queue_depth": 0}),
        (4, {"prefetch_queue_depth": -1}),
        (4, {"tensor_init_bytes": -1}),
        (4, {"shuffle_after_epoch": True, "random_shuffle": True}),
        (4, {"shuffle_after_epoch": True, "stick_to_shard": True}),
    ],
    ids=str,
)
def test_errors_have_the_same_class(files, size, options) -> None:
    with pytest.raises((RuntimeError, ValueError)) as real:
        real_reader(files, size, 2, 1, **options)
    with pytest.raises((RuntimeError, ValueError)) as own:
        EpochOrder(size, LoaderOptions(**options))
    assert own.type is real.type
