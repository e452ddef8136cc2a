"""The order of an epoch's records, the epoch's shards, and a reader's position.

All orders in this module are pure functions of a few integers. A `Cursor` stores only a few integers, too, so
checkpoints are small, and training can continue at any position, even with another number of ranks (`reshard`).

**Epochs and shards.** Each epoch has an order: a permutation of the N records. Shard ``k`` of ``n`` consists of the
positions ``k*N//n`` to ``(k+1)*N//n`` of this order. In epoch ``e``, rank ``k`` reads shard ``(k + e) % n``. With
``stick_to_shard`` or ``shuffle_after_epoch``, rank ``k`` always reads shard ``k``. All ranks together read every record
exactly once per epoch. Without padding, a batch may contain samples of two epochs. With ``pad_last_batch``, the last
record of a shard is repeated, so that all ranks have the same number of batches per epoch.

**Shuffling.** Readers have random access, so the whole epoch is shuffled, and each epoch has a new order. The seed
affects only the order within a shard. Which records belong to a shard doesn't depend on the seed, so ranks with
different seeds still read disjoint shards, as in DALI.

**Runs.** Object stores are fastest if a request covers megabytes. With `ShuffleRuns`, a shuffled epoch therefore keeps
neighboring records together: a run is a range of consecutive records. The runs are shuffled and divided among the
ranks. Each rank then groups its runs into blocks of several runs, and shuffles the records within each block. One rank
reads a run, except for a run at the border of two shards, which two ranks read.

**Long datasets.** For more than 2**24 records, no array of the whole order is stored. The order is computed only for
the requested positions, with a cipher that permutes the numbers below the dataset's size. A dataset that is read in
order needs no array either.

**Keys.** The key of a sample is (epoch, record). The key determines the sample's random numbers. Therefore, a record's
random numbers in an epoch don't depend on the number of ranks, the batch size or the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.reading.datasets import Indices, LoaderOptions, shard_start

__all__ = ["Cursor", "Cut", "EpochOrder", "Keys", "RankShard", "ShuffleRuns", "reshard"]

State = dict[str, Any]

# Purposes of permutations. A permutation's key begins with its purpose, so different purposes use different random
# numbers.
_ASSIGN, _WITHIN, _AFTER_EPOCH = 1, 2, 3
_ROUNDS = 8
LONG_ORDER = 1 << 24  # number of records; longer orders are computed only for the requested positions


class RecordOrder:
    """An order of records, computed only for the requested positions.

    Args:
        at: Function that returns the records at the passed positions.
    """

    def __init__(self, length: int, at: Callable[[Indices], Indices]) -> None:
        self._length, self.at = length, at

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> Indices:
        """Return the records of a range of positions."""
        start, stop, _ = part.indices(self._length)
        return self.at(np.arange(start, stop, dtype=np.int64))

    def part(self, start: int, stop: int, order: Callable[[Indices], Indices] | None = None) -> RecordOrder:
        """Return the records of a range of positions as an order.

        Args:
            order: Function that permutes the positions of the range, counted from `start`. If None, the positions keep
                their order.
        """

        def at(positions: Indices) -> Indices:
            return self.at(start + (positions if order is None else order(positions)))

        return RecordOrder(max(0, stop - start), at)._materialize(len(self))

    def _in_blocks(self, runs: ShuffleRuns | None, *key: int) -> RecordOrder:
        """Shuffle the records within each block of positions."""
        if runs is None:
            return self
        size, block = self._length, runs.block

        def at(positions: Indices) -> Indices:
            moved = positions.copy()
            for number in np.unique(positions // block).tolist():
                inside, start = positions // block == number, number * block
                order = _permutation(min(block, size - start), _WITHIN, *key, number)
                moved[inside] = start + order(positions[inside] - start)
            return self.at(moved)

        return RecordOrder(size, at)._materialize(size)

    def _materialize(self, size: int) -> RecordOrder:
        """Return this order, stored in an array if it was derived from an order of `size` <= `LONG_ORDER` records."""
        return self if size > LONG_ORDER else RecordOrder(self._length, self[:].__getitem__)


def _join_orders(parts: Sequence[RecordOrder]) -> RecordOrder:
    ends = np.cumsum([len(part) for part in parts])

    def at(positions: Indices) -> Indices:
        part_indices = np.searchsorted(ends, positions, side="right")
        records = np.empty(len(positions), np.int64)
        for i, part in enumerate(parts):
            chosen = part_indices == i
            records[chosen] = part.at(positions[chosen] - (ends[i] - len(part)))
        return records

    return RecordOrder(int(ends[-1]), at)._materialize(int(ends[-1]))


def _permutation(size: int, *key: int) -> Callable[[Indices], Indices]:
    """Return a permutation of ``0 .. size - 1`` as a function of positions.

    The permutation depends only on `size` and `key`. RandomState is used because NumPy guarantees that its random
    numbers never change between versions.
    """
    numbers = _numbers(*key)
    if size > LONG_ORDER:
        return partial(_encipher, size, numbers.randint(0, 1 << 62, _ROUNDS, np.uint64))
    return numbers.permutation(size).astype(np.int64, copy=False).__getitem__


def _numbers(*key: int) -> np.random.RandomState:
    return np.random.RandomState([word & 0xFFFFFFFF for part in key for word in (part, part >> 32)])


def _permutation_of_runs(size: int, runs: ShuffleRuns, *key: int) -> Callable[[Indices], Indices]:
    """Return a permutation of records that moves whole runs, as a function of positions.

    If `size` is not a multiple of the run length, the last run is shorter.
    """
    count, rest = divmod(size, runs.run)
    order = _permutation(count, *key, runs.run) if count else _identity
    start = int(_numbers(*key, 0).randint(0, count + 1)) * runs.run  # new position of the shorter run

    def at(positions: Indices) -> Indices:
        last = (positions >= start) & (positions < start + rest)
        before = np.where(positions < start, positions, positions - rest)
        before[last] = 0
        records: Indices = order(before // runs.run) * runs.run + before % runs.run
        records[last] = count * runs.run + positions[last] - start
        return records

    return at


def _encipher(size: int, keys: npt.NDArray[np.uint64], positions: Indices) -> Indices:
    """Permute the numbers ``0 .. size - 1``.

    A Feistel network permutes the numbers from 0 to ``2**bits - 1``, where ``bits`` is the bit length of ``size - 1``.
    The network is applied repeatedly until the result is below `size`.
    """
    bits, numbers = (size - 1).bit_length(), positions.astype(np.uint64)
    outside = np.ones(len(numbers), bool)
    while outside.any():
        numbers[outside] = _rounds(bits, keys, numbers[outside])
        outside = numbers >= size
    return numbers.astype(np.int64)


def _rounds(bits: int, keys: npt.NDArray[np.uint64], values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    low = np.uint64(bits // 2)
    masks = np.uint64((1 << (bits - bits // 2)) - 1), np.uint64((1 << (bits // 2)) - 1)
    halves = [values >> low, values & masks[1]]
    for number, key in enumerate(keys):
        this, other = number % 2, 1 - number % 2
        halves[this] = halves[this] ^ (_mix_bits(halves[other] ^ key) & masks[this])
    return (halves[0] << low) | halves[1]


def _mix_bits(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix the bits of each number with the final steps of SplitMix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@dataclass(frozen=True)
class Cut:
    """A change of the number of shards within an epoch.

    Attributes:
        taken: For each old rank, the number of samples of the epoch that the rank delivered before the change.
        seeds: For each old rank, the seed of the rank's order.
    """

    taken: tuple[int, ...]
    seeds: tuple[int, ...]


class ShuffleRuns(NamedTuple):
    """The units in which an epoch is shuffled if neighboring records stay together.

    Attributes:
        run: Number of consecutive records that are read in one request.
        block: Number of records that are shuffled together. A block consists of several runs.
    """

    run: int
    block: int


class RankShard(NamedTuple):
    """The records that one rank reads in one epoch.

    Attributes:
        records: The records, in order.
        length: Number of samples that the rank delivers, before the last batch is filled up. With ``pad_last_batch``,
            this number is the same for all ranks. Without ``pad_last_batch``, the number is ``len(records)``.
        filler: Index of the record that padding repeats.
    """

    records: RecordOrder
    length: int
    filler: int


@dataclass(frozen=True)
class EpochOrder:
    """The order in which one rank reads its records, as a pure function of the epoch.

    Args:
        size: Number of records of the dataset.
        options: The reader's arguments for shards, padding and shuffling.
        seed: Seed of the order inside a shard (``random_shuffle``).
        runs: The units that keep neighboring records together in shuffled epochs; None shuffles single records.
        draw: Function that returns the records at the passed positions of an epoch; None if positions are record
            indices.
        scatters: True if this class shuffles the positions. False if `draw` already returns records in random order. If
            False, this class shuffles only the records within each block (see `ShuffleRuns`).

    Raises:
        RuntimeError: The dataset is empty, or has fewer records than shards.
    """

    size: int
    options: LoaderOptions = field(default_factory=LoaderOptions)
    seed: int = 0
    runs: ShuffleRuns | None = None
    draw: Callable[[int, Indices], Indices] | None = None
    scatters: bool = True

    def __post_init__(self) -> None:
        if self.size < 1:
            raise RuntimeError("The reader has no records: nothing was found to read.")
        if self.size < self.options.num_shards:
            raise RuntimeError(
                f"The number of input samples: {self.size}, needs to be at least equal to the requested number of "
                f"shards: {self.options.num_shards}."
            )

    @classmethod
    def of(cls, dataset: Any, options: LoaderOptions, seed: int) -> EpochOrder:
        """Create the order of a dataset.

        The dataset may define the attributes `runs`, `draw` and `draws_shuffled`. `draws_shuffled` is the opposite of
        `scatters`.
        """
        runs, draw = getattr(dataset, "runs", None), getattr(dataset, "draw", None)
        return cls(len(dataset), options, seed, runs, draw, not getattr(dataset, "draws_shuffled", False))

    def records(self, epoch: int) -> Indices:
        """Return the record indices of this rank's shard in an epoch, int64, without padding."""
        return self.shard(epoch).records[:]

    def shard(self, epoch: int, cuts: Sequence[Cut] = ()) -> RankShard:
        """Return the records of this rank in an epoch.

        Args:
            epoch: Number of the epoch, from 0.
            cuts: Earlier changes of the number of shards in this epoch. Only the records that were not delivered before
                these changes are divided among the ranks.
        """
        rest = self._all_records(epoch) if self.draw is None else self._draw_order(self.draw, epoch)
        for cut in cuts:
            rest = self._remaining_records(rest, epoch, cut)
        options = self.options
        records = self._rank_records(rest, epoch, options.shard_id, options.num_shards, self.seed)
        length = -(-len(rest) // options.num_shards) if options.pad_last_batch else len(records)
        filler = records[-1:] if len(records) else rest[:1]
        return RankShard(records, length, int(filler[0]) if len(filler) else 0)

    def _draw_order(self, draw: Callable[[int, Indices], Indices], epoch: int) -> RecordOrder:
        order = self._all_records(epoch)
        return RecordOrder(self.size, lambda positions: draw(epoch, order.at(positions)))

    def _all_records(self, epoch: int) -> RecordOrder:
        options = self.options
        if options.shuffle_after_epoch:
            seed = options.shuffle_after_epoch_seed or 0
            return RecordOrder(self.size, self._shuffle(_AFTER_EPOCH, seed, epoch))._in_blocks(self.runs, seed, epoch)
        if options.random_shuffle and self.scatters:
            # With `stick_to_shard`, the shard must contain the same records in every epoch.
            return RecordOrder(self.size, self._shuffle(_ASSIGN, 0 if options.stick_to_shard else epoch))
        return RecordOrder(self.size, _identity)

    def _rank_records(self, rest: RecordOrder, epoch: int, rank: int, ranks: int, seed: int) -> RecordOrder:
        shard = (rank + epoch) % ranks if self.options.rotates else rank
        start, stop = (shard_start(len(rest), ranks, i) for i in (shard, shard + 1))
        if self.runs is not None and self.options.random_shuffle:
            return rest.part(start, stop)._in_blocks(self.runs, seed, epoch, shard)
        if not (self.options.random_shuffle and self.scatters):
            return rest.part(start, stop)
        return rest.part(start, stop, _permutation(stop - start, _WITHIN, seed, epoch, shard))

    def _shuffle(self, *key: int) -> Callable[[Indices], Indices]:
        """Return a permutation of all records; if `runs` isn't None, the permutation moves whole runs."""
        return _permutation(self.size, *key) if self.runs is None else _permutation_of_runs(self.size, self.runs, *key)

    def _remaining_records(self, rest: RecordOrder, epoch: int, cut: Cut) -> RecordOrder:
        ranks = len(cut.taken)
        parts = [self._rank_records(rest, epoch, rank, ranks, cut.seeds[rank]) for rank in range(ranks)]
        return _join_orders([part.part(count, len(part)) for part, count in zip(parts, cut.taken, strict=True)])


def _identity(positions: Indices) -> Indices:
    return positions


class Keys(NamedTuple):
    """Keys of the samples in a batch.

    Attributes:
        records: Record index of each sample, int64.
        epochs: Epoch of each sample, int64. The pair (epoch, record) is the key of the sample's random numbers.
        padded: True for each sample that repeats the shard's last record to fill the batch, bool.
    """

    records: Indices
    epochs: Indices
    padded: npt.NDArray[np.bool_]


class Cursor:
    """The position of one reader in its endless series of epochs.

    Args:
        order: The order of each epoch.

    Attributes:
        epoch: The epoch of the next sample.
        taken: Number of samples of `epoch` that were already delivered, including padding.
    """

    def __init__(self, order: EpochOrder) -> None:
        self.order = order
        self._move(0, 0, {})

    def _move(self, epoch: int, count: int, cuts: dict[int, tuple[Cut, ...]]) -> None:
        self.epoch = epoch
        self.taken = count
        self._cuts = {number: epoch_cuts for number, epoch_cuts in cuts.items() if number >= epoch}
        self._shard = self.order.shard(epoch, self._cuts.get(epoch, ()))
        while self._shard.length == 0:  # before `reshard`, the old ranks had already finished this epoch
            self.epoch += 1
            self._shard = self.order.shard(self.epoch, self._cuts.get(self.epoch, ()))

    def next_batch(self, batch_size: int) -> Keys:
        """Return the keys of the next ``batch_size`` samples, and advance."""
        if self.order.options.pad_last_batch:
            return self._padded_batch(batch_size)
        keys = self._next_keys(batch_size)
        if len(keys.records) == batch_size:
            return keys
        parts, missing = [keys], batch_size - len(keys.records)
        while missing:
            parts.append(self._next_keys(missing))
            missing -= len(parts[-1].records)
        records, epochs, padded = zip(*parts, strict=True)
        return Keys(np.concatenate(records), np.concatenate(epochs), np.concatenate(padded))

    def _next_keys(self, count: int) -> Keys:
        """Return the keys of up to `count` samples of the current epoch, and advance."""
        records = self._shard.records[self.taken : self.taken + count]
        epochs, padded = np.full(len(records), self.epoch, np.int64), np.zeros(len(records), bool)
        self._advance(len(records))
        return Keys(records, epochs, padded)

    def _padded_batch(self, batch_size: int) -> Keys:
        records = self._shard.records[self.taken : self.taken + batch_size]
        padded = np.zeros(batch_size, bool)
        if len(records) < batch_size:
            padded[len(records) :] = True
            fill = np.full(batch_size - len(records), self._shard.filler, np.int64)
            records = np.concatenate([records, fill])
        keys = Keys(records, np.full(batch_size, self.epoch, np.int64), padded)
        self._advance(batch_size)
        return keys

    def _advance(self, count: int) -> None:
        if self.taken + count < self._shard.length:
            self.taken += count
        else:
            self._move(self.epoch + 1, 0, self._cuts)

    def crosses_epoch(self, batch_size: int, epoch: int) -> bool:
        """Return whether the next batch contains samples of an epoch other than `epoch`."""
        straddles = not self.order.options.pad_last_batch and self.remaining() < batch_size
        return self.epoch + straddles != epoch

    def remaining(self) -> int:
        """Return the number of samples that this rank has not delivered yet in the current epoch."""
        return self._shard.length - self.taken

    def state(self) -> State:
        """Return the position as JSON values. The size of the result doesn't depend on the dataset's size."""
        order = self.order
        runs = {} if order.runs is None else {"runs": list(order.runs)}
        return runs | {
            "size": order.size,
            "num_shards": order.options.num_shards,
            "shard_id": order.options.shard_id,
            "seed": order.seed,
            "epoch": self.epoch,
            "taken": self.taken,
            "cuts": {
                str(epoch): [{"taken": list(cut.taken), "seeds": list(cut.seeds)} for cut in cuts]
                for epoch, cuts in self._cuts.items()
            },
        }

    def restore(self, state: State) -> None:
        """Continue at a saved position, with the saved seed.

        Raises:
            RuntimeError: The state is damaged, or belongs to another dataset, shard or number of shards.
        """
        self._check(state)
        self.order = replace(self.order, seed=state["seed"])
        cuts = {
            int(epoch): tuple(Cut(tuple(cut["taken"]), tuple(cut["seeds"])) for cut in epoch_cuts)
            for epoch, epoch_cuts in state["cuts"].items()
        }
        self._move(state["epoch"], state["taken"], cuts)
        if self.taken >= self._shard.length:
            raise RuntimeError(
                f"The checkpoint is damaged: the reader has taken {self.taken} of {self._shard.length} samples."
            )

    def _check(self, state: State) -> None:
        order = self.order
        _check_form(state)
        if state["size"] != order.size:
            raise RuntimeError(f"The checkpoint must be of a reader with {order.size} records, got {state['size']}.")
        if state.get("runs") != (None if order.runs is None else list(order.runs)):
            raise RuntimeError(
                "The checkpoint belongs to a reader with another shuffle_window. Pass the same shuffle_window."
            )
        saved = state["shard_id"], state["num_shards"]
        own = order.options.shard_id, order.options.num_shards
        if saved != own:
            raise RuntimeError(
                f"The checkpoint belongs to shard {saved[0]} of {saved[1]}, but this reader is shard {own[0]} of "
                f"{own[1]}. Save and load the state of every rank; to continue with "
                f"another number of shards, pass the states of all ranks through reshard()."
            )


_FIELDS = ("size", "num_shards", "shard_id", "seed", "epoch", "taken")
_MAX_COUNT = 1 << 40  # all epochs and counts are below this limit


def _check_form(state: State) -> None:
    """Raise RuntimeError if a saved state lacks a field, or has an invalid value."""
    for name in _FIELDS:
        if not (_is_seed if name == "seed" else _is_count)(state.get(name)):
            raise RuntimeError(
                f"The checkpoint is damaged: {name!r} of a reader has the invalid value {state.get(name)!r}."
            )
    runs = state.get("runs", [1, 1])
    if not isinstance(runs, list) or len(runs) != 2 or not all(_is_count(each) and each for each in runs):
        raise RuntimeError(f"The checkpoint is damaged: 'runs' of a reader has the invalid value {runs!r}.")
    cuts = state.get("cuts")
    if not isinstance(cuts, Mapping) or not all(map(_is_cut_list, cuts.items())):
        raise RuntimeError(f"The checkpoint is damaged: 'cuts' of a reader has the invalid value {cuts!r}.")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_COUNT


def _is_seed(value: Any) -> bool:
    return type(value) is int and abs(value) < 1 << 63


def _is_cut_list(item: tuple[Any, Any]) -> bool:
    epoch, cuts = item
    return isinstance(epoch, str) and epoch.isdecimal() and isinstance(cuts, list) and all(map(_is_cut, cuts))


def _is_cut(cut: Any) -> bool:
    if not isinstance(cut, Mapping) or not all(isinstance(cut.get(k), list) for k in ("taken", "seeds")):
        return False
    counts, seeds = cut["taken"], cut["seeds"]
    return 0 < len(counts) == len(seeds) and all(map(_is_count, counts)) and all(map(_is_seed, seeds))


def reshard(states: Sequence[State], num_shards: int) -> list[State]:
    """Convert the states of all ranks to states for another number of ranks.

    The records that the old ranks had not delivered in their current epochs are divided among the new ranks. Together,
    the new ranks deliver each of these records exactly once, and then every record of each later epoch.

    Args:
        states: Results of `Cursor.state` on the old ranks, in any order.
        num_shards: Number of ranks that continue.

    Returns:
        One state per new rank, for `Cursor.restore`.

    Raises:
        ValueError: The states aren't one state per rank of the same job.
    """
    old = _all_ranks(states)
    slowest = min(old, key=lambda state: int(state["epoch"]))  # ranks in later epochs have already dropped the cuts
    first, last = slowest["epoch"], max(state["epoch"] for state in old)
    cuts = {epoch: list(epoch_cuts) for epoch, epoch_cuts in slowest["cuts"].items()}
    for epoch in range(first, last + 1):
        counts = [_delivered_count(state, epoch) for state in old]
        if any(counts):
            cut = {"taken": counts, "seeds": [state["seed"] for state in old]}
            cuts.setdefault(str(epoch), []).append(cut)
    runs = {"runs": old[0]["runs"]} if "runs" in old[0] else {}
    return [
        runs
        | {
            "size": old[0]["size"],
            "num_shards": num_shards,
            "shard_id": rank,
            "seed": old[rank % len(old)]["seed"],
            "epoch": first,
            "taken": 0,
            "cuts": cuts,
        }
        for rank in range(num_shards)
    ]


def _delivered_count(state: State, epoch: int) -> int:
    """Return how many samples of an epoch a rank has delivered.

    For an epoch that the rank has finished, return the dataset's size, an upper bound.
    """
    if state["epoch"] == epoch:
        return int(state["taken"])
    return int(state["size"]) if state["epoch"] > epoch else 0


def _all_ranks(states: Sequence[State]) -> list[State]:
    old = sorted(states, key=lambda state: int(state["shard_id"]))
    ranks = [state["shard_id"] for state in old]
    if not old or ranks != list(range(old[0]["num_shards"])):
        count = old[0]["num_shards"] if old else "all"
        raise ValueError(f"reshard needs one state of each of the {count} ranks, got states of ranks {ranks}.")
    if any(state["size"] != old[0]["size"] for state in old):
        raise ValueError("The states must belong to datasets of the same size.")
    if any(state.get("runs") != old[0].get("runs") for state in old):
        raise ValueError("The states must belong to readers with the same shuffle_window.")
    return old
