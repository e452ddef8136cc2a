"""Random numbers that depend only on the seed, the operator, the sample and the index of the draw.

The counter-based generator Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) has no
state. A sample therefore gets the same numbers for any number of threads, prefetch depth, batch order or world size.
One vectorized call draws the numbers of a whole batch; each sample then takes Python floats from its own row.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

__all__ = ["BatchRng", "Rng", "SampleRngs", "generator_of", "mix", "normals", "philox", "prepare"]

_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
_FACTORS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_LOWER = 0 if sys.byteorder == "little" else 1
_MASK64 = (1 << 64) - 1
_TO_UNIT = 2.0**-32
_ROW_SIZE = 12  # numbers per sample that are drawn in one call for the whole batch

Words = npt.NDArray[np.uint64]
Words32 = npt.NDArray[np.uint32]
Numbers = Sequence[int] | npt.NDArray[np.int64]
Drawn = npt.NDArray[np.float64]


def mix(*parts: int) -> int:
    """Hash integers to 64 well-mixed bits with chained SplitMix64 finalizers."""
    state = 0
    for part in parts:
        state = (state + 0x9E3779B97F4A7C15 + (part & _MASK64)) & _MASK64
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK64
        state ^= state >> 31
    return state


def philox(key: int, counters: tuple[Words, Words, Words, Words], shape: tuple[int, ...]) -> Words32:
    """Compute random words with ten Philox4x32 rounds.

    Args:
        key: The key, 64 bits.
        counters: The four words of each block's counter: arrays of 32-bit values, broadcastable to ``shape``.
        shape: Shape of the array of blocks; each block has four words.

    Returns:
        Random words, ``(*shape, 4)`` uint32.
    """
    # A round multiplies words 0 and 2, and XORs the products with words 1 and 3. Each pair of words is one array, and
    # the halves of the 64-bit products are views. This saves NumPy calls, which matters when few numbers are drawn.
    first, second = np.empty((2, *shape), np.uint64), np.empty((2, *shape), np.uint32)
    first[0], second[0], first[1], second[1] = counters
    wide, odd_words = first.reshape(2, -1), second.reshape(2, -1)
    words, factors = _halves(wide)[_LOWER], _FACTORS.repeat(wide.shape[1], 1)
    products = [(p, _halves(p[::-1])) for p in (np.empty_like(wide), np.empty_like(wide))]
    for i, round_key in enumerate(_schedule(key)):
        product, halves = products[i % 2]  # the previous product's lower halves are still in use
        np.multiply(wide, factors, product)
        np.bitwise_xor(halves[1 - _LOWER], round_key, words)
        np.bitwise_xor(words, odd_words, words)
        odd_words = halves[_LOWER]
    drawn = np.empty((wide.shape[1], 4), np.uint32)
    drawn[:, 0::2], drawn[:, 1::2] = words.T, odd_words.T
    return drawn.reshape(*shape, 4)


def _halves(words: Words) -> tuple[Words32, Words32]:
    """Return views of both halves of 64-bit words, in memory order."""
    halves = words.view(np.uint32).reshape(*words.shape, 2)
    return halves[..., 0], halves[..., 1]


@functools.lru_cache(maxsize=1024)
def _schedule(key: int) -> list[Words32]:
    """Return the two key words of each round, as a column ``(2, 1)``."""
    k0, k1 = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    return [np.array([[(k0 + i * _W0) & 0xFFFFFFFF], [(k1 + i * _W1) & 0xFFFFFFFF]], np.uint32) for i in range(10)]


class Rng:
    """The random numbers of one operator for one sample.

    Scalars come from a row of numbers that was drawn together with the batch. When the row is used up, `random` draws
    more numbers.
    """

    __slots__ = ("_index", "_key", "_row", "_sample")

    def __init__(self, key: int, sample: tuple[int, int], row: list[float] | None = None) -> None:
        self._key, self._sample = key, sample
        self._row = [] if row is None else row
        self._index = 0

    def restart(self) -> None:
        """Start over, so that the same numbers are returned again."""
        self._index = 0

    def random(self) -> float:
        """Draw a float from [0, 1)."""
        i = self._index
        if i == len(self._row):
            blocks = max(4, len(self._row) // 2)
            more = _uniform(self._key, *_columns([self._sample]), i // 4, blocks)
            self._row = self._row + more[0, i % 4 :].tolist()
        self._index = i + 1
        return self._row[i]

    def uniform(self, low: float, high: float) -> float:
        """Draw a float from [low, high)."""
        return low + (high - low) * self.random()

    def integer(self, low: int, high: int) -> int:
        """Draw an integer from low to high, both included."""
        return low + int(self.random() * (high - low + 1))

    def normal(self) -> float:
        """Draw a float from the standard normal distribution (Box-Muller)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.random()))
        return radius * math.cos(2.0 * math.pi * self.random())

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator for this sample, to draw many numbers in one call, for example pixel noise."""
        return generator_of([self._key, mix(*self._sample)])


class BatchRng:
    """The random numbers of one operator for the samples of one batch.

    Args:
        key: Hash of the pipeline's seed and the operator; see `mix`.
        epochs: Epoch of each sample, ``(N,)``.
        records: Record index of each sample in its source, ``(N,)``.
    """

    def __init__(self, key: int, epochs: Numbers | Words, records: Numbers | Words) -> None:
        self._key, self.size = key, len(records)
        self._samples = _words(epochs), _words(records)

    @classmethod
    def following(cls, key: int, record: int, size: int) -> BatchRng:
        """Return the random numbers of an operator for ``size`` consecutive records from ``record`` on, in epoch 0."""
        return cls(key, np.zeros(size, np.uint64), np.arange(record, record + size, dtype=np.uint64))

    def pick(self, samples: Sequence[int]) -> BatchRng:
        """Return the random numbers of the samples with these indices in the batch."""
        chosen = list(samples)
        epochs, records = self._samples
        return BatchRng(self._key, epochs[chosen], records[chosen])

    def uniform(self, count: int, begin: int = 0) -> Drawn:
        """Draw ``(batch, count)`` floats from [0, 1). ``begin`` is the index of the first draw, a multiple of 4."""
        return _uniform(self._key, *self._samples, begin // 4, -(-count // 4))[:, :count]

    def normal(self, count: int) -> Drawn:
        """Draw ``(batch, count)`` floats from the standard normal distribution."""
        return _normal(self.uniform(2 * -(-count // 2)))[:, :count]

    def samples(self) -> SampleRngs:
        """Return one `Rng` per sample."""
        return SampleRngs(self)


class SampleRngs(Sequence[Rng]):
    """A sequence with one `Rng` per sample of a batch, or of a range of its samples.

    When a sample is accessed for the first time, the numbers of the whole batch are drawn.

    Args:
        batch: The random numbers of the whole batch.
        root: The sequence for the whole batch; None if this object is that sequence.
        positions: Indices of this object's samples in the batch; all samples if None.
    """

    __slots__ = ("_batch", "_drawn", "_lock", "_positions", "_root", "_words")

    def __init__(self, batch: BatchRng, root: SampleRngs | None = None, positions: range | None = None) -> None:
        self._batch, self._root, self._positions = batch, root, range(batch.size) if positions is None else positions
        if root is None:
            self._drawn: list[Rng] = []
            self._words: tuple[Words, int] | None = None
            self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Rng]:
        return iter(self._all()[self._positions.start : self._positions.stop])

    @overload
    def __getitem__(self, index: int) -> Rng: ...
    @overload
    def __getitem__(self, index: slice) -> SampleRngs: ...
    def __getitem__(self, index: int | slice) -> Rng | SampleRngs:
        if isinstance(index, slice):
            return SampleRngs(self._batch, self._root or self, self._positions[index])
        return self._all()[self._positions[index]]

    def _all(self) -> list[Rng]:
        """Return the `Rng` of every sample of the batch, always the same objects."""
        root = self if self._root is None else self._root
        if not root._drawn:
            batch = self._batch
            keys = zip(*(words.tolist() for words in batch._samples), strict=True)
            rows = batch.uniform(_ROW_SIZE).tolist()
            drawn = [Rng(batch._key, sample, row) for sample, row in zip(keys, rows, strict=True)]
            with root._lock:  # if two threads drew the numbers, both use the first result
                root._drawn = root._drawn or drawn
        return root._drawn

    def words(self) -> tuple[int, Words, int]:
        """Return the values that determine the samples' random numbers, for native code.

        Returns:
            The key; the epoch and record of each sample, ``(N, 2)`` uint64; and the memory address of that array.
        """
        root = self if self._root is None else self._root
        if root._words is None:  # two threads may get here; their results are equal
            words = np.stack(self._batch._samples, 1)
            root._words = words, words.ctypes.data
        words, address = root._words
        rows = words[self._positions.start : self._positions.stop]
        return self._batch._key, rows, address + self._positions.start * words.strides[0]


def prepare(rngs: Sequence[Rng], count: int) -> None:
    """Draw numbers for all samples in one call, so that each sample has at least ``count`` numbers.

    Args:
        rngs: The samples' `Rng` objects for one operator. All must have the same number of drawn numbers.
        count: Numbers that each sample needs.
    """
    available = len(rngs[0]._row)
    if count <= available:
        return
    drawn = _uniform(
        rngs[0]._key, *_columns([rng._sample for rng in rngs]), available // 4, -(-(count - available) // 4)
    )
    for rng, more in zip(rngs, drawn.tolist(), strict=True):
        rng._row = rng._row + more


def generator_of(key: Sequence[int] | Words) -> np.random.Generator:
    """Return a NumPy generator (Philox) with a key of two 64-bit words."""
    return np.random.Generator(np.random.Philox(key=np.array(key, np.uint64)))


def normals(generator: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Draw many standard normal numbers (Box-Muller).

    Each normal number depends on only two uniform numbers, so that a GPU can compute them in any order. On the CPU,
    this is also faster than NumPy's own method.
    """
    count = math.prod(shape)
    half = -(-count // 2)
    radius, angle = generator.random((2, half), dtype=np.float32)
    np.log(np.subtract(1.0, radius, out=radius), out=radius)
    np.sqrt(np.multiply(radius, -2.0, out=radius), out=radius)
    angle *= np.float32(2.0 * np.pi)
    pairs = np.empty((2, half), np.float32)
    np.cos(angle, out=pairs[0])
    np.sin(angle, out=pairs[1])
    pairs *= radius
    return pairs.reshape(-1)[:count].reshape(shape)


def _words(values: Numbers | Words) -> Words:
    words = np.asarray(values)
    return words if words.dtype == np.uint64 else words.astype(np.int64).astype(np.uint64)


def _columns(samples: list[tuple[int, int]]) -> tuple[Words, Words]:
    epochs, records = zip(*samples, strict=True)
    return _words(epochs), _words(records)


def _normal(draws: Drawn) -> Drawn:
    """Convert uniform numbers to standard normal numbers of the same shape (Box-Muller)."""
    # Neighboring columns form pairs, so that the first numbers don't depend on the number of columns.
    radius, angle = -draws[:, 0::2], draws[:, 1::2] * (2.0 * np.pi)
    np.log1p(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    pairs = np.empty((*radius.shape, 2))
    np.multiply(radius, np.cos(angle), out=pairs[..., 0])
    np.multiply(radius, np.sin(angle, out=angle), out=pairs[..., 1])
    return pairs.reshape(draws.shape)


def _uniform(key: int, epochs: Words, records: Words, first: int, blocks: int) -> Drawn:
    """Draw ``(batch, 4 * blocks)`` floats from [0, 1), starting at block ``first``; a block has four numbers."""
    counters = (
        np.arange(first, first + blocks, dtype=np.uint64),
        (records & _LOW)[:, None],
        (records >> _SHIFT)[:, None],
        (epochs & _LOW)[:, None],
    )
    words = philox(key, counters, (len(records), blocks)).reshape(len(records), 4 * blocks)
    return words.astype(np.float64) * _TO_UNIT
