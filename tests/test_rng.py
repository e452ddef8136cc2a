"""Counter-based random numbers: the published vectors, independence of order, distributions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from torchdali.rng import BatchRng, Rng, generator_of, mix, normals, philox


def words(*values: int) -> tuple[np.ndarray, ...]:
    return tuple(np.array([value], dtype=np.uint64) for value in values)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # Random123's known-answer table for philox4x32-10
        ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF,) * 4,
            0xFFFFFFFFFFFFFFFF,
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            0x299F31D0_A4093822,
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_matches_the_published_vectors(counter, key, expected):
    assert philox(key, words(*counter), (1,))[0].tolist() == list(expected)


def test_a_sample_draws_the_same_numbers_in_any_batch():
    whole = BatchRng(7, [0, 0, 1, 1], [3, 9, 3, 1 << 40]).uniform(10)
    alone = [BatchRng(7, [e], [r]).uniform(10)[0] for e, r in ((0, 3), (0, 9), (1, 3), (1, 1 << 40))]
    assert np.array_equal(whole, np.stack(alone))
    assert len({row.tobytes() for row in whole}) == 4


def test_numbers_drawn_with_the_batch_match_single_samples():
    expected = BatchRng(5, [2], [8]).uniform(40)[0].tolist()
    rng = BatchRng(5, [1, 2], [8, 8]).samples()[1]
    assert [rng.random() for _ in range(40)] == expected


def test_parts_of_a_batch_share_their_numbers():
    """Threads that run chunks of a batch draw once; each sample has one `Rng`."""
    batch, barrier = BatchRng(5, [1] * 8, range(8)), threading.Barrier(4, timeout=60)
    rngs = batch.samples()

    def take(k: int) -> list[tuple[int, float]]:
        chunk = rngs[2 * k : 2 * k + 2]
        barrier.wait()
        return [(id(rng), rng.random()) for rng in chunk]

    with ThreadPoolExecutor(4) as threads:
        taken = [each for chunk in threads.map(take, range(4)) for each in chunk]
    assert [number for _, number in taken] == batch.uniform(1)[:, 0].tolist()
    assert [key for key, _ in taken] == [id(rng) for rng in rngs] and rngs[3] is rngs[2:][1] is next(iter(rngs[3:4]))
    key, words, _ = rngs[2:7][1:3].words()
    assert (key, words.tolist()) == (5, [[1, 3], [1, 4]])


def test_a_later_block_and_some_of_the_samples():
    whole = BatchRng(7, [2] * 6, range(6))
    assert np.array_equal(whole.uniform(8, begin=12), whole.uniform(20)[:, 12:])
    assert np.array_equal(whole.pick([4, 0, 4]).uniform(5), whole.uniform(5)[[4, 0, 4]])


def test_another_key_gives_other_numbers():
    rows = [BatchRng(mix(seed, op), [0], [0]).uniform(4)[0] for seed in (1, 2) for op in (0, 1)]
    assert len({row.tobytes() for row in rows}) == 4


def test_distributions():
    batch = BatchRng(1, np.zeros(20000, int), np.arange(20000))
    uniform, normal = batch.uniform(2), batch.normal(3)
    assert uniform.min() >= 0 and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01 and abs(uniform.var() - 1 / 12) < 0.005
    assert abs(normal.mean()) < 0.02 and abs(normal.var() - 1) < 0.03
    assert abs(np.corrcoef(normal.T) - np.eye(3)).max() < 0.03
    rng = Rng(3, (0, 0))
    assert {rng.integer(2, 4) for _ in range(100)} == {2, 3, 4}


def test_generators_of_samples_differ_and_repeat():
    first, again, other = (Rng(3, key).generator().normal(size=5) for key in ((0, 0), (0, 0), (0, 1)))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_the_first_numbers_do_not_depend_on_how_many_are_drawn():
    batch = BatchRng(4, [0, 1], [5, 6])
    for draw in (batch.uniform, batch.normal):
        assert all(np.array_equal(draw(9)[:, :count], draw(count)) for count in range(1, 9))


def test_all_bits_of_a_key_matter() -> None:
    """NumPy converts a list of small and large integers to floats."""
    drawn = [generator_of([5, (1 << 63) + i]).random() for i in range(4)]
    assert len(set(drawn)) == 4


def test_normal_numbers() -> None:
    drawn = normals(generator_of([1, 2]), (301, 333))
    assert drawn.dtype == np.float32 and drawn.shape == (301, 333)
    assert abs(drawn.mean()) < 0.01 and abs(drawn.std() - 1) < 0.01 and abs((drawn**3).mean()) < 0.03
    assert abs(((drawn**4).mean()) - 3) < 0.08 and 4.0 < np.abs(drawn).max() < 6.0
