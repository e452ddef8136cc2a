"""An exception at any moment of an iterator's call: no batch is delivered twice, and epochs have the correct samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers import proxy_data
from tests.helpers.interrupts import Interrupt, interrupts, limit
from torchdali import Loader, fn, pipeline_def
from torchdali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy
from torchdali.plugin.pytorch.experimental import proxy

COUNT = 13


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    with limit():
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write files of one byte, which equals their label."""
    folder: Path = tmp_path_factory.mktemp("bytes")
    for number in range(COUNT):
        (folder / f"{number:02d}").write_bytes(bytes([number]))
    return [str(folder / f"{number:02d}") for number in range(COUNT)]


def pipeline(files: list[str], batch_size: int, **options: Any) -> Any:
    @pipeline_def(batch_size=batch_size, num_threads=1, device_id=None, seed=3)
    def pipe() -> Any:
        data, labels = fn.readers.file(files=files, labels=list(range(COUNT)), name="reader", **options)
        return data, labels

    return pipe()


def generic(files: list[str], policy: LastBatchPolicy, **options: Any) -> Any:
    pipe = pipeline(files, 3, random_shuffle=True, **options)
    return DALIGenericIterator(pipe, ["data", "label"], reader_name="reader", last_batch_policy=policy, auto_reset=True)


MAKERS: dict[str, Callable[[list[str]], Any]] = {
    "partial": lambda files: generic(files, LastBatchPolicy.PARTIAL, pad_last_batch=True),
    "drop": lambda files: generic(files, LastBatchPolicy.DROP, pad_last_batch=True),
    "fill": lambda files: generic(files, LastBatchPolicy.FILL),
    "classification": lambda files: DALIClassificationIterator(
        pipeline(files, 4, random_shuffle=True, pad_last_batch=True),
        reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True,
    ),
    "two pipelines": lambda files: DALIGenericIterator(
        [pipeline(files, 2, shard_id=rank, num_shards=2, pad_last_batch=True) for rank in range(2)],
        ["data", "label"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True,
    ),
    # Shards of 6 and 7 samples: the last batch of the first is empty. One batch is cut; of single samples, two are joined.
    "cut": lambda files: Loader(lambda: pipeline(files, 3, shard_id=0, num_shards=2)),
    "joined": lambda files: Loader(lambda: pipeline(files, 1, shard_id=1, num_shards=2)),
}  # fmt: skip
SAMPLES = {"partial": COUNT, "drop": 12, "classification": COUNT, "two pipelines": COUNT}


def labels_of(batch: Any) -> list[int]:
    """Return the labels of a batch, and check that each sample matches its label."""
    labels: list[int] = []
    for each in batch if isinstance(batch, list) else [dict(zip(("data", "label"), batch, strict=True))]:
        assert torch.equal(each["data"].ravel().long(), each["label"].ravel().long())
        labels += each["label"].ravel().tolist()
    return labels


def epoch(loader: Any, interrupt: Interrupt | None = None, at: int = 1, is_last: bool = False) -> list[list[int]]:
    """Return the labels of an epoch's batches; one call, perhaps the last, may be interrupted."""
    iterator, batches = iter(loader), []
    while True:
        if interrupt is not None and len(batches) == at and not interrupt.place:
            answer: tuple[Any, ...] = interrupt.call(lambda: next(iterator, None))
        else:
            answer = (next(iterator, None),)
        if answer == (None,) or (not answer and is_last):
            return batches
        batches += map(labels_of, answer)


@pytest.mark.thin(3)
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("at", ["middle", "end"])
def test_interrupts_keep_epochs_complete(kind: str, at: str, files: list[str]) -> None:
    normal = MAKERS[kind](files)
    expected = [epoch(normal) for _ in range(3)]
    call = len(expected[1]) - 2 if at == "middle" else len(expected[1])
    for labels in (list(itertools.chain(*each)) for each in expected):
        assert kind == "fill" or len(set(labels)) == len(labels) == SAMPLES.get(kind, len(labels)) > 5
    for interrupt in interrupts(1, 37 if at == "middle" else 23):
        loader = MAKERS[kind](files)
        assert epoch(loader) == expected[0]
        found = epoch(loader, interrupt, call, is_last=at == "end" or isinstance(loader, Loader))
        if isinstance(loader, Loader) and interrupt.place and at == "middle":  # the loop has ended; another may continue
            resumed = MAKERS[kind](files)
            resumed.load_state_dict(loader.state_dict())
            rest = epoch(resumed)
            assert rest == expected[1][-len(rest) :] and len(expected[1]) - len(found) - len(rest) in (0, 1)
            found += expected[1][len(found) :]
        assert found == expected[1] or found == expected[1][:call] + expected[1][call + 1 :], interrupt.place
        assert epoch(loader) == expected[2], interrupt.place


def test_outputs_of_a_proxy_stay_with_their_labels() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def doubled() -> Any:
        return fn.external_source(name="x") * 2

    for interrupt in interrupts(1, 41):
        with proxy.DALIServer(doubled()) as server:
            loader = proxy.DataLoader(server, proxy_data.Made(server.proxy, proxy_data.labelled, 16), batch_size=2)
            iterator, batches = iter(loader), []
            batches += [next(iterator), next(iterator)]
            batches += interrupt.call(lambda iterator=iterator: next(iterator))
            batches += list(iterator)
        assert len(batches) >= 7
        for values, labels in batches:
            assert torch.equal(values[:, 0], 2.0 * labels), interrupt.place
        found = torch.cat([labels for _, labels in batches]).tolist()
        assert found == sorted(set(found)), interrupt.place
