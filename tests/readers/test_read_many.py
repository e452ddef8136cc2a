"""Datasets whose `read_many` returns, batch by batch, the functions that read records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch

from tests.helpers.encoded_images import encoded, smooth_image
from tests.helpers.pages import own_operators
from torchdali import fn, pipeline_def, reader
from torchdali.declaration.schema import OutputCount, PerSample, shares
from torchdali.errors import PipelineError
from torchdali.kernels.native import library
from torchdali.reading.datasets import Dataset, LoaderOptions, WholeFiles

COUNT = 6


class Numbers:
    """Records that are their own index; records in `broken` cannot be read."""

    broken: tuple[int, ...] = ()

    def __init__(self) -> None:
        self.asked: list[tuple[list[int], list[int]]] = []
        self.alone: list[int] = []

    def __len__(self) -> int:
        return COUNT

    def read(self, index: int, plus: int = 0) -> tuple[torch.Tensor, ...]:
        self.alone.append(index)
        return self.value(index, plus=plus)

    def value(self, index: int, plus: int = 0) -> tuple[torch.Tensor, ...]:
        if index in self.broken:
            raise ValueError(f"nothing at {index}")
        return (torch.tensor([index + plus]),)

    def info(self, index: int) -> str:
        return f"record {index}"


class Functions(Numbers):
    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Any:
        self.asked.append((list(records), list(epochs)))
        return [partial(self.value, record) for record in records]


class Waiting(Numbers):
    """Other threads read, the last record first."""

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Any:
        with ThreadPoolExecutor(2) as pool:
            futures = {record: pool.submit(self.value, record) for record in reversed(records)}
        return tuple(futures[record].result for record in records)


class Nothing(Numbers):
    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Any:
        return None


class Some(Numbers):
    """Every other record is read by `read`."""

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Any:
        return [partial(self.value if record % 2 else self.read, record) for record in records]


@contextmanager
def declared(dataset: Any) -> Iterator[Callable[..., Any]]:
    """Declare a reader of a dataset, for the time of a test."""
    with own_operators():

        @reader(name="readers._many")
        def many(
            *, plus: PerSample[int] | None = None, **options: Annotated[Any, shares(LoaderOptions)]
        ) -> Annotated[Dataset, OutputCount(1)]:
            return dataset

        yield many


def run(
    dataset: Any, use: Callable[..., Any] = lambda many: many(), batches: int = 3, **options: Any
) -> list[list[Any]]:
    """Return the samples of some batches."""
    with declared(dataset) as many:
        options = {"num_threads": 2, **options}
        with pipeline_def(batch_size=4, device_id=None, **options)(lambda: use(many))() as pipe:
            return [[sample.tolist() for sample in pipe.run()[0].as_cpu().samples()] for _ in range(batches)]


WAYS: list[dict[str, Any]] = [{}, {"debug": True}, {"num_threads": 1}, {"prefetch_queue_depth": 3}]


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("kind", [Functions, Waiting, Nothing, Some])
def test_records_in_every_container(kind: type[Numbers], options: dict[str, Any]) -> None:
    batches = run(kind(), **options)
    assert [number for batch in batches for (number,) in batch] == [i % COUNT for i in range(12)]


@pytest.mark.slow
def test_records_in_other_processes() -> None:
    assert run(Functions(), num_processes=2)[0] == [[0], [1], [2], [3]]


def test_read_many_gets_a_batch_with_its_epochs() -> None:
    dataset = Functions()
    run(dataset, batches=2, prefetch_queue_depth=1)
    assert dataset.asked[0] == ([0, 1, 2, 3], [0, 0, 0, 0]) and ([4, 5, 0, 1], [0, 0, 1, 1]) in dataset.asked
    assert dataset.alone == []


@pytest.mark.parametrize("kind", [Numbers, Functions, Some])
def test_arguments_that_differ_per_sample(kind: type[Numbers]) -> None:
    def define(many: Any) -> Any:
        return many(plus=fn.cast(fn.batch_permutation(seed=1) * 0 + 10, dtype=np.int32))

    assert run(kind(), define, batches=1) == [[[10], [11], [12], [13]]]


@pytest.mark.parametrize("options", [{}, {"debug": True}], ids=str)
@pytest.mark.parametrize("kind", [Functions, Waiting, Some])
def test_an_error_names_its_record(kind: type[Numbers], options: dict[str, Any]) -> None:
    dataset = kind()
    dataset.broken = (2,)
    with pytest.raises(
        Exception, match=r"(?s)sample 2 of batch 0 \(record 2\).*nothing at 2|nothing at 2(?s:.*)record 2"
    ):
        run(dataset, **options)


def test_a_bad_record_is_skipped() -> None:
    dataset = Functions()
    dataset.broken = (1, 2)
    assert run(dataset, batches=1, bad_samples="skip") == [[[0], [3]]]


# ---------------------------------------------------------------- whole files


class Files:
    """Files, as `WholeFiles` or one by one; calls of `read` are counted."""

    def __init__(self, paths: Sequence[Path], whole: bool = True) -> None:
        self.paths, self.whole, self.alone = [str(path) for path in paths], whole, 0

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: int) -> tuple[torch.Tensor]:
        self.alone += 1
        return (torch.from_numpy(np.fromfile(self.paths[index], np.uint8)),)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Any:
        reads = WholeFiles(records, self.paths.__getitem__, self.read)
        return reads if self.whole else [reads[i] for i in range(len(reads))]

    def info(self, index: int) -> str:
        return self.paths[index]


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{i}.jpg" for i in range(COUNT)]
    for i, path in enumerate(paths):
        path.write_bytes(encoded(smooth_image(16 + i, 24 - i), "JPEG"))
    return paths


USES: dict[str, Callable[[Any], Any]] = {
    "bytes": lambda data: data,
    "decoded": lambda data: fn.decoders.image(data),
    "resized": lambda data: fn.resize(fn.decoders.image(data), size=[8, 8]),
    "reshaped": lambda data: fn.reshape(data, shape=[-1, 1]),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("whole", [True, False])
def test_whole_files_equal_readers_file(use: str, whole: bool, images: list[Path]) -> None:
    names = list(map(str, images))
    wanted = run(None, lambda _: USES[use](fn.readers.file(files=names)[0]))
    assert run(Files(images, whole), lambda many: USES[use](many())) == wanted


@pytest.mark.skipif(library() is None, reason="files are read by the library")
def test_small_files_are_read_in_one_call(images: list[Path]) -> None:
    dataset, alone = Files(images), list[int]()
    with declared(dataset) as many:
        make = pipeline_def(batch_size=4, num_threads=2, device_id=None)(lambda: fn.decoders.image(many()))
    with make() as pipe:
        for _ in range(5):  # the first batch runs sample by sample, as it is timed
            pipe.run()
            alone.append(dataset.alone)
    assert alone[1:] == alone[:1] * 4


@pytest.mark.parametrize("use", USES)
def test_the_error_names_a_deleted_file(use: str, images: list[Path]) -> None:
    images[2].unlink()
    with pytest.raises(PipelineError, match=r"2\.jpg"):
        run(Files(images), lambda many: USES[use](many()))
