"""Random graphs give the same results pipelined, one batch at a time, and in debug mode."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.helpers.chunks import divide_into
from torchdali import fn, pipeline_def
from torchdali.types import DALIDataType

BATCH = 3
RUNS = 3


class Grower:
    """A random graph of matrices; the same seed gives the same graph."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values: list = []

    def pick(self):
        return self.random.choice(self.values)

    def grow(self) -> tuple:
        choose = self.random
        self.values = [self.source() for _ in range(choose.randint(1, 3))]
        for _ in range(choose.randint(2, 10)):
            step = choose.choice(
                [
                    self.source, self.arithmetic, self.unary, self.window,
                    self.reduce, self.branch, self.python, self.mixed,
                ]
            )
            self.values.append(step())
        return tuple(choose.sample(self.values, min(3, len(self.values))))

    def source(self):
        kind = self.random.randrange(4)
        if kind == 0:
            return fn.random.uniform(range=[-2.0, 2.0], shape=[4, 4])
        if kind == 1:
            return fn.random.normal(shape=[4, 4])
        if kind == 2:
            return fn.cast(fn.random.coin_flip(shape=[4, 4]), dtype=DALIDataType.FLOAT)
        return fn.external_source(source=batches, cycle=True)

    def arithmetic(self):
        a, b = self.pick(), self.random.choice([self.pick(), 2.0, 0.5, -1.0])
        return self.random.choice([lambda: a + b, lambda: a - b, lambda: a * b, lambda: b - a])()

    def unary(self):
        x = self.pick()
        return self.random.choice([lambda: -x, lambda: fn.transpose(x, perm=[1, 0]), lambda: fn.copy(x)])()

    def window(self):
        return fn.cat(self.pick()[0:2], self.pick()[2:4], axis=0)

    def reduce(self):
        return self.pick() + fn.reductions.max(self.pick(), axes=[self.random.randrange(2)], keep_dims=True)

    def branch(self):
        """A conditional, as the rewritten syntax records it."""
        from torchdali.graph.conditionals import if_return

        flag = fn.random.coin_flip(probability=self.random.random())
        a, b = self.pick(), self.pick()
        noisy = self.random.random() < 0.5

        def on_true():
            return a * fn.random.uniform(range=[1.0, 2.0], shape=[4, 4]) if noisy else a * 3.0

        return if_return(flag, on_true, lambda: b + 1.0)

    def python(self):
        return fn.python_function(self.pick(), function=lambda a: a * np.float32(0.5))

    def mixed(self):
        """A whole-batch operator between chains."""
        return fn.permute_batch(self.pick(), indices=fn.batch_permutation())


def batches():
    values = np.random.RandomState(5).normal(size=(4, BATCH, 4, 4)).astype(np.float32)
    yield from values


def results(seed: int, **arguments) -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=BATCH, device_id=None, seed=seed, **{"num_threads": 2, **arguments})
    def pipe():
        return Grower(seed).grow()

    made = pipe()
    found = [[o.as_array() for o in made.run()] for _ in range(RUNS)]
    made.close()
    return found


def check(seeds) -> None:
    for seed in seeds:
        expected = results(seed, exec_pipelined=False, num_threads=1)
        for mode in ({"prefetch_queue_depth": 3, "num_threads": 3}, {"debug": True}):
            for batch, (one, other) in enumerate(zip(expected, results(seed, **mode), strict=True)):
                for k, (a, b) in enumerate(zip(one, other, strict=True)):
                    assert np.array_equal(a, b, equal_nan=True), f"graph {seed}, {mode}: batch {batch}, output {k}"


def test_graphs_vary():
    texts = set()
    for seed in range(20):

        @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=seed)
        def pipe(seed=seed):
            return Grower(seed).grow()

        made = pipe()
        made.build()
        texts.add(made.explain())
        made.close()
    assert len(texts) == 20


def test_fifty_random_graphs():
    check(range(50))


@pytest.mark.slow
def test_chunks_of_any_size(monkeypatch):
    """By default, the batch of 3 is one chunk; here it is also three, or one of 2 and one of 1."""
    expected = [results(seed) for seed in range(50, 80)]
    for chunk in (1, 2, BATCH):
        with monkeypatch.context() as patch:
            divisions = divide_into(chunk, patch)
            for seed, batches in zip(range(50, 80), expected, strict=True):
                for one, two in zip(batches, results(seed), strict=True):
                    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, two, strict=True)), f"graph {seed}"
        assert sum(division.chunk == chunk for division in divisions) > 30


@pytest.mark.slow
def test_a_thousand_random_graphs():
    check(range(50, 1000))
