"""Count the batches in an iterator's epoch on every rank, and the delivered samples of each batch.

This module doesn't run pipelines. Every rank computes the counts of all ranks, so that all ranks deliver the same
number of batches even if their shards differ in size. In the table, ``b`` is the batch size, and ``s_k`` is the size of
rank ``k``'s shard. ``c_k`` is the number of samples of this shard that the rank has already delivered with the last
batch of the previous epoch:

======== ======================================= ===============================================
policy   batches of an epoch                     the last batch
======== ======================================= ===============================================
FILL     ``max(1, ceil(max(s_k - c_k) / b))``    has samples of the next epoch, or padding
PARTIAL  ``ceil(max(s_k) / b)``                  has the rest of the shard, and may be empty
DROP     ``floor(min(s_k) / b)``                 is dropped if it is not full
======== ======================================= ===============================================

``c_k`` can be above 0 only with the policy FILL and a reader that doesn't pad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["EpochCounter", "LastBatchPolicy", "OpenEpochs", "Shards", "reshard"]

State = dict[str, Any]


class LastBatchPolicy(Enum):
    """Policies for the last batch of an epoch if too few samples remain for a full batch.

    ``FILL`` completes the batch with padding or with the first samples of the next epoch. ``DROP`` drops the batch.
    ``PARTIAL`` delivers a smaller batch.
    """

    FILL = 0
    DROP = 1
    PARTIAL = 2


@dataclass(frozen=True)
class Shards:
    """The samples of an epoch and their division among the ranks.

    Attributes:
        size: Number of samples in an epoch of all ranks together.
        count: Number of ranks.
        padded: True if the reader pads every shard to the same number of full batches.
        rotates: True if the ranks change shards from epoch to epoch.
    """

    size: int
    count: int = 1
    padded: bool = False
    rotates: bool = False

    @classmethod
    def of_reader(cls, meta: Mapping[str, int]) -> Shards:
        """Return the shards that the result of `Pipeline.reader_meta` describes."""
        return cls(
            size=meta["epoch_size"],
            count=meta["number_of_shards"],
            padded=bool(meta["pad_last_batch"]),
            rotates=not meta["stick_to_shard"],
        )

    def shard(self, rank: int, epoch: int) -> int:
        """Return the index of the shard that a rank reads in an epoch."""
        return (rank + epoch) % self.count if self.rotates else rank

    def span(self, rank: int, epoch: int, size: int | None = None) -> tuple[int, int]:
        """Return the start and the end of a rank's shard, as indices of samples.

        Args:
            size: Number of samples that are divided among the ranks. Default: all samples of an epoch.
        """
        total = self.size if size is None else size
        shard = self.shard(rank, epoch)
        return shard * total // self.count, (shard + 1) * total // self.count


class EpochCounter:
    """Counter of the batches of an iterator's epochs.

    Args:
        shards: The samples of an epoch, and their division among the ranks.
        batch_size: Number of samples in a full batch.
        policy: Policy for the last batch.
        ranks: Rank of each of the iterator's pipelines.
        split: Number of pipelines if each batch is divided among them; 0 if every pipeline has its own batches.

    Attributes:
        epoch: Index of the current epoch.
        delivered: Number of batches of the epoch that were delivered so far.
        batches: Number of batches in the epoch.
        dropped: Number of batches that must be taken from each pipeline and dropped, after the last delivered batch of
            the epoch.

    Raises:
        RuntimeError: the policy DROP drops every batch.
    """

    def __init__(
        self, shards: Shards, batch_size: int, policy: LastBatchPolicy, ranks: Sequence[int], *, split: int = 0
    ) -> None:
        self.shards, self.batch_size, self.policy = shards, batch_size, policy
        self.ranks, self.split = tuple(ranks), split
        self._size: int | None = None
        self._no_carry = [0] * shards.count
        self._begin(0, self._no_carry, {})
        if not self.batches:
            raise RuntimeError(
                f"last_batch_policy=DROP drops every batch: batch_size is {batch_size}, "
                f"but the smallest shard has {min(self.sizes)} samples. Use a smaller batch_size, fewer "
                f"shards, or last_batch_policy=PARTIAL or FILL."
            )

    def _begin(self, epoch: int, carried: Sequence[int], rest: Mapping[int, int]) -> None:
        self.epoch, self.delivered = epoch, 0
        self.carried = list(carried)
        self.rest = {number: size for number, size in rest.items() if number >= epoch}
        self.sizes = self._shard_sizes(epoch)
        self.recount()

    def _shard_sizes(self, epoch: int) -> list[int]:
        spans = [self.shards.span(rank, epoch, self.rest.get(epoch)) for rank in range(self.shards.count)]
        return [stop - start for start, stop in spans]

    def _count_batches(self) -> int:
        if not any(self.sizes):
            return 0  # before a resume, a different number of ranks has delivered all samples
        if self._size is not None:
            return max(self._batches_until(self._size), 0)
        if self.policy is LastBatchPolicy.DROP:
            return min(self.sizes) // self.batch_size
        missing = [size - carried for size, carried in zip(self.sizes, self.carried, strict=True)]
        return max(-(-max(missing) // self.batch_size), 1)

    def _count_dropped(self) -> int:
        if self.policy is not LastBatchPolicy.DROP:
            return 0
        largest = max(self.sizes) if self.shards.padded else min(self.sizes)
        if self._size is not None:
            largest = self._size - min(self.carried)
        return -(-largest // self.batch_size) - self.batches

    @property
    def carries(self) -> bool:
        """True if the last batch of an epoch is completed with samples of the next epoch."""
        return self.policy is LastBatchPolicy.FILL and not self.shards.padded

    @property
    def finished(self) -> bool:
        """True if all batches of the epoch were delivered."""
        return self.delivered >= self.batches

    @property
    def position(self) -> int:
        """Number of this epoch's samples that one rank has delivered.

        Samples that were delivered in the last batch of the previous epoch are included.
        """
        return min(self.carried) + self.delivered * self.batch_size

    @position.setter
    def position(self, samples: int) -> None:
        self.delivered = self._batches_until(samples)

    def _batches_until(self, samples: int) -> int:
        missing = samples - min(self.carried)
        return missing // self.batch_size if self.policy is LastBatchPolicy.DROP else -(-missing // self.batch_size)

    @property
    def size(self) -> int:
        """Number of samples of the epoch on one rank, as DALI counts them. Assign a number to change the length."""
        if self._size is not None:
            return self._size
        if self.split:
            return self.shards.size
        if self.policy is LastBatchPolicy.DROP:
            return min(self.sizes)
        return max(self.sizes) if self.shards.padded else self.batches * self.batch_size

    @size.setter
    def size(self, samples: int) -> None:
        self._size = samples
        self.recount()

    def recount(self) -> None:
        """Compute the numbers of batches again, after a change of the policy or the size."""
        self.batches = self._count_batches()
        self.dropped = self._count_dropped()

    def advance(self) -> None:
        self.delivered += 1

    def start_state(self, epoch: int) -> State:
        """Return the fields of `state` that describe the position, for the start of an epoch."""
        return {"epoch": epoch, "delivered": 0, "carried": [0] * self.shards.count, "rest": {}}

    @property
    def counts(self) -> list[int] | None:
        """Number of samples to deliver from the last delivered batch, one number per pipeline; None for all samples."""
        return self.counts_of(self.delivered - 1)

    def counts_of(self, number: int) -> list[int] | None:
        """Return the number of samples to deliver from a batch, one number per pipeline; None for all samples.

        Args:
            number: Index of the batch in this epoch.
        """
        if self.policy is not LastBatchPolicy.PARTIAL:
            return None
        start = number * self.batch_size
        remaining = [max(self.sizes[rank] - start, 0) for rank in self.ranks]
        if min(remaining) >= self.batch_size:
            return None
        return self._divide(remaining[0]) if self.split else remaining

    def _divide(self, samples: int) -> list[int]:
        share = self.batch_size // self.split
        return [min(share, samples - first) for first in range(0, samples, share)]

    def next_epoch(self) -> None:
        if self.carries and not self.split:
            self._size = None  # as in DALI, a size that was set applies only to one epoch
        self._begin(self.epoch + 1, self._carry() if self.carries else self._no_carry, self.rest)

    def _carry(self) -> list[int]:
        delivered = self.batches * self.batch_size
        if self.split and self._size is not None:
            return [max(self.carried[0] + delivered - self._size, 0)]
        return [c + delivered - size for c, size in zip(self.carried, self.sizes, strict=True)]

    def state(self, undelivered: int = 0) -> State:
        """Return the position as a dict that JSON can store.

        Args:
            undelivered: Number of batches that `delivered` counts, but that the user has not received yet. In the
                state, these batches aren't delivered.
        """
        return {
            "epoch": self.epoch,
            "delivered": self.delivered - undelivered,
            "batch_size": self.batch_size,
            "size": self.shards.size,
            "carries": self.carries,
            "carried": list(self.carried),
            "rest": {str(epoch): size for epoch, size in self.rest.items()},
            "sizes": list(self.sizes),
        }

    def restore(self, state: State) -> None:
        """Continue at a position that `state` has returned.

        Raises:
            ValueError: the position was saved with another number of ranks, epoch size or batch size.
        """
        expected = {
            "size": self.shards.size,
            "batch_size": self.batch_size,
            "carried": [0] * self.shards.count,
        }
        for key, description in _MUST_MATCH.items():
            saved, now = (len(v) if isinstance(v, list) else v for v in (state[key], expected[key]))
            if saved != now:
                raise ValueError(f"The iterator's state must have {description} {now}, got {saved}.")
        rest = {int(epoch): size for epoch, size in state["rest"].items()}
        self._begin(state["epoch"], state["carried"], rest)
        self.delivered = state["delivered"]

    def explain(self) -> str:
        """Return a text about the current epoch: each rank's samples and batches, and the reason for the counts."""
        shards = self.shards
        total = self.rest.get(self.epoch, shards.size)
        lines = [
            f"epoch {self.epoch}: {total} samples, {shards.count} "
            f"{'ranks' if shards.count > 1 else 'rank'}, batch size {self.batch_size}, "
            f"{self.policy.name}, {'with' if shards.padded else 'without'} padding: "
            f"{self.batches} {'batches' if self.batches > 1 else 'batch'} on every rank"
        ]
        lines += [self._explain_rank(rank) for rank in range(shards.count)]
        lines.append(f"why: {self._explain_counts()}")
        return "\n".join(lines)

    def _explain_rank(self, rank: int) -> str:
        start, stop = self.shards.span(rank, self.epoch, self.rest.get(self.epoch))
        size, marker = stop - start, " (here)" if rank in self.ranks else ""
        shard = self.shards.shard(rank, self.epoch)
        text = f"  rank {rank}{marker}: shard {shard}, samples {start} to {stop - 1}, {size} of them"
        return f"{text}; {self._explain_end(rank, size)}"

    def _explain_end(self, rank: int, size: int) -> str:
        delivered = self.batches * self.batch_size
        if self.policy is LastBatchPolicy.DROP:
            return f"{delivered} delivered, {size - delivered} dropped"
        if self.policy is LastBatchPolicy.PARTIAL:
            last = max(size - delivered + self.batch_size, 0)
            return f"{size} delivered, {last} of them in the last batch"
        if self.shards.padded:
            return f"{delivered} delivered, {delivered - size} of them padding"
        carried = self.carried[rank]
        beyond = carried + delivered - size
        prefix = f"{carried} of them came with the previous epoch, " if carried else ""
        return f"{prefix}{delivered} delivered, {beyond} of them from the next epoch"

    def _explain_counts(self) -> str:
        batch, largest, smallest = self.batch_size, max(self.sizes), min(self.sizes)
        if self.policy is LastBatchPolicy.DROP:
            return f"DROP delivers the full batches of the smallest shard: {smallest} // {batch}"
        if self.policy is LastBatchPolicy.PARTIAL:
            return (
                f"PARTIAL needs ceil({largest} / {batch}) batches for the largest shard; every rank delivers as "
                f"many, and shortens the last to the samples that remain in its shard"
            )
        if self.shards.padded:
            return (
                f"pad_last_batch repeats the last sample of a shard until all ranks have "
                f"ceil({largest} / {batch}) full batches"
            )
        return (
            "FILL without padding delivers full batches until every rank has read its shard; extra samples in the "
            "last batch count for the next epoch"
        )


_MUST_MATCH = {
    "size": "the epoch size",
    "batch_size": "the batch size",
    "carried": "the number of ranks",
}


def reshard(state: State, num_shards: int) -> State:
    """Convert the state of an `EpochCounter` to a state for another number of ranks.

    The samples of the epoch that are not delivered yet are divided among the new ranks. Readers divide their samples in
    the same way, see `torchdali.reading.cursor.reshard`.

    Args:
        state: State of one rank; all ranks have the same state.
        num_shards: New number of ranks.
    """
    epoch, following = str(state["epoch"]), str(state["epoch"] + 1)
    delivered = [c + state["delivered"] * state["batch_size"] for c in state["carried"]]
    remaining = [size - count for size, count in zip(state["sizes"], delivered, strict=True)]
    ahead = sum(max(-missing, 0) for missing in remaining) if state["carries"] else 0
    rest: dict[str, int] = dict(state["rest"])
    rest[epoch] = sum(max(missing, 0) for missing in remaining)
    if ahead:
        rest[following] = max(rest.setdefault(following, state["size"]) - ahead, 0)
    return {**state, "delivered": 0, "carried": [0] * num_shards, "rest": rest, "sizes": []}


class OpenEpochs:
    """Counter of batches, like `EpochCounter`, for epochs that end when the pipeline's source ends."""

    batches = dropped = 0
    finished = False
    counts = None
    size = -1

    def __init__(self, batch_size: int = 1) -> None:
        self.epoch = self.delivered = 0
        self.batch_size = batch_size

    @property
    def position(self) -> int:
        """Number of delivered samples."""
        return self.delivered * self.batch_size

    @position.setter
    def position(self, samples: int) -> None:
        self.delivered = samples // self.batch_size

    def counts_of(self, number: int) -> None:
        """Return None, which means that all samples of the batch are delivered."""

    def start_state(self, epoch: int) -> State:
        return {"epoch": epoch, "delivered": 0}

    def advance(self) -> None:
        self.delivered += 1

    def next_epoch(self) -> None:
        self.epoch, self.delivered = self.epoch + 1, 0

    def state(self, undelivered: int = 0) -> State:
        """Return the position, without the last `undelivered` batches, as a dict that JSON can store."""
        return {"epoch": self.epoch, "delivered": self.delivered - undelivered}

    def restore(self, state: State) -> None:
        self.epoch, self.delivered = state["epoch"], state["delivered"]

    def explain(self) -> str:
        """Return a text about the current epoch: the number of batches so far, and when the epoch will end."""
        return (
            f"epoch {self.epoch}: {self.delivered} batches so far; without reader_name and size, the epoch ends when "
            f"a source of the pipeline ends"
        )
