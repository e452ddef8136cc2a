"""Conditions select samples of a chunk, with the results of samples one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.chunks import divide_into
from tests.helpers.inside import repeated_chunks
from torchdali import Pipeline, fn, pipeline_def
from torchdali.calls.chunk_function import ChunkFunction
from torchdali.execute import chunks
from torchdali.types import FLOAT, INT32

SIZE = 24


def _images() -> list[np.ndarray]:
    return list(np.random.RandomState(3).randint(0, 255, (SIZE, 12, 10, 3)).astype(np.uint8))


def _flipped(x: Any) -> Any:
    if fn.random.coin_flip():
        x = fn.flip(x)
    return fn.cast(x, dtype=FLOAT) * 2.0


def _nested(x: Any) -> Any:
    if fn.random.coin_flip(probability=0.7):
        angle = fn.random.uniform(range=(-20.0, 20.0))
        x = fn.cast(fn.flip(x), dtype=FLOAT)
        if angle > 5.0:
            x = fn.rotate(x, angle=angle * 2, keep_size=True, fill_value=0)
        elif angle > -3.0:
            x = x + angle
        else:
            x = fn.transpose(x, perm=[0, 1, 2]) * 3
    else:
        x = fn.cast(x, dtype=FLOAT) / 2.0
    return x, fn.reductions.mean(x)


def _of_the_data(x: Any) -> Any:
    mean = fn.reductions.mean(fn.cast(x, dtype=FLOAT))
    if mean > 126.0 and fn.random.coin_flip() == 1:
        x = fn.crop(x, crop=(6, 5))
    else:
        x = fn.brightness(x, brightness=1.5)
    return x, mean


def _never(x: Any) -> Any:
    y = x
    if fn.random.coin_flip(probability=0.0):
        y = fn.flip(x)
        if fn.reductions.max(x) > 3:
            y = y + x
    if fn.random.coin_flip(probability=1.0):
        y = y + 1
    return y, x


def _two_values(x: Any) -> Any:
    if fn.random.coin_flip():
        a, b = fn.flip(x), fn.reductions.max(x)
    else:
        a, b = x, fn.reductions.min(x)
    return fn.flip(a, vertical=1), b


def _computed_arguments(x: Any) -> Any:
    mean = fn.reductions.mean(fn.cast(x, dtype=FLOAT)) / 255.0
    if mean > 0.497:
        x = fn.contrast(fn.brightness(x, brightness=mean + 0.5), contrast=mean * 2.0)
    else:
        x = fn.flip(x, horizontal=fn.cast(mean > 0.49, dtype=INT32), vertical=0)
    return fn.brightness(x, brightness_shift=mean - 0.5)


CASES: list[Callable[[Any], Any]] = [_flipped, _nested, _of_the_data, _never, _two_values, _computed_arguments]


def _pipe(function: Callable[[Any], Any], threads: int = 2) -> Pipeline:
    @pipeline_def(batch_size=SIZE, num_threads=threads, device_id=None, seed=5, enable_conditionals=True)
    def pipe() -> Any:
        return function(fn.external_source(source=_images, layout="HWC"))

    made: Pipeline = pipe()
    return made


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of the samples that chunks skip, and that are rerun one by one, as after an error."""
    samples: list[int] = []
    repeated_chunks(monkeypatch, samples.extend)
    return samples


def _results(function: Callable[[Any], Any]) -> list[list[np.ndarray]]:
    with contextlib.closing(_pipe(function)) as pipe:
        return [[np.asarray(each) for output in pipe.run() for each in output.samples()] for _ in range(3)]


@pytest.mark.thin(5)
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__.strip("_"))
@pytest.mark.parametrize("chunk", [None, 1, 5])
def test_chunks_change_nothing(
    function: Callable[[Any], Any], chunk: int | None, left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    part = chunks.Selection.select

    def counted(self: chunks.Selection, items: Any) -> Any:
        counts.append(len(self.indices))
        return part(self, items)

    monkeypatch.setattr(chunks.Selection, "select", counted)
    if chunk is not None:
        divide_into(chunk, monkeypatch)
    in_chunks = _results(function)
    assert any(counts) or chunk == 1 or function is _never  # a chunk of one sample
    assert not left
    divide_into(1, monkeypatch)
    for batch, expected in zip(in_chunks, _results(function), strict=True):
        for sample, other in zip(batch, expected, strict=True):
            assert sample.dtype == other.dtype and np.array_equal(sample, other)


def test_batched_implementations_run_in_pipelines_with_conditionals(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    of_tensors = ChunkFunction._run_stacked

    def counted(self: Any, body: Any, inputs: Any, *rest: Any) -> Any:
        sizes.append(len(inputs[0]))
        return of_tensors(self, body, inputs, *rest)

    monkeypatch.setattr(ChunkFunction, "_run_stacked", counted)
    with contextlib.closing(_pipe(_flipped)) as pipe:
        pipe.run()
    assert SIZE in sizes, "what follows the branches"
    assert any(1 < size < SIZE for size in sizes), "the branch that flips"


def test_an_error_in_a_branch_names_the_sample_and_the_line() -> None:
    def far(x: Any) -> Any:
        if fn.random.coin_flip(probability=0.5):
            x = fn.crop(x, crop=(50, 50))  # in this process
        return x

    match = r"operator 'crop' failed on sample \d+"
    with contextlib.closing(_pipe(far)) as pipe, pytest.raises(RuntimeError, match=match) as raised:
        pipe.run()
    assert "x = fn.crop(x, crop=(50, 50))" in str(raised.value)


def test_short_audio_in_chunks(left: list[int]) -> None:
    def sounds() -> list[np.ndarray]:
        random = np.random.RandomState(4)
        return [random.normal(size=random.randint(600, 900)).astype(np.float32) for _ in range(SIZE)]

    def features(x: Any) -> Any:
        if fn.random.coin_flip():
            x = fn.preemphasis_filter(x)
        return fn.to_decibels(fn.mel_filter_bank(fn.spectrogram(x, window_length=128, window_step=64, nfft=128)))

    def results(**options: Any) -> list[np.ndarray]:
        @pipeline_def(batch_size=SIZE, device_id=None, seed=5, enable_conditionals=True, **options)
        def pipe() -> Any:
            return features(fn.external_source(source=sounds))

        with contextlib.closing(pipe()) as made:
            return [np.asarray(each) for _ in range(3) for each in made.run()[0].samples()]

    in_chunks = results(num_threads=2)
    for one, other in zip(in_chunks, results(num_threads=1, debug=True), strict=True):
        assert np.array_equal(one, other)
    assert not left
