"""Check the arguments of an iterator, and create the counter of its epochs."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from torchdali.plugin._epochs import EpochCounter, LastBatchPolicy, OpenEpochs, Shards

if TYPE_CHECKING:
    from torchdali.pipeline import Pipeline

__all__ = [
    "OnBreak",
    "as_flag",
    "as_on_break",
    "as_policy",
    "create_reader_counter",
    "create_size_counter",
    "find_batch_size",
]

_log = logging.getLogger("torchdali.plugin.base_iterator")

OnBreak = Literal["continue", "restart", "next"]

# Items of the reader's metadata that must be equal in all pipelines, with their names for the error message.
_COMMON_METADATA = {
    "epoch_size": "number of records",
    "number_of_shards": "num_shards",
    "pad_last_batch": "pad_last_batch",
    "stick_to_shard": "stick_to_shard",
}


def as_flag(auto_reset: bool | str | None) -> bool:
    """Return True if the next epoch begins automatically.

    Raises:
        ValueError: the value of ``auto_reset`` is unknown.
    """
    if auto_reset is None or isinstance(auto_reset, bool):
        return bool(auto_reset)
    if auto_reset in ("yes", "no"):
        return auto_reset == "yes"
    raise ValueError(f'auto_reset must be True, False, "yes" or "no", got {auto_reset!r}.')


def as_on_break(value: OnBreak) -> OnBreak:
    """Check the value of ``on_break``, and return it.

    Raises:
        ValueError: the value is unknown.
    """
    if value not in get_args(OnBreak):
        raise ValueError(f'on_break must be "continue", "restart" or "next", got {value!r}.')
    return value


def as_policy(policy: LastBatchPolicy, fill_last_batch: bool | None) -> LastBatchPolicy:
    """Return the policy for the last batch. The deprecated ``fill_last_batch``, if passed, overrides the policy.

    Raises:
        ValueError: the policy is not a `LastBatchPolicy`.
    """
    if fill_last_batch is not None:
        warnings.warn(
            "fill_last_batch is deprecated: pass last_batch_policy=FILL for True, PARTIAL for False. It overrides "
            "last_batch_policy.",
            Warning,
            stacklevel=5,
        )
        return LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
    if not isinstance(policy, LastBatchPolicy):
        raise ValueError(
            f"Wrong type for `last_batch_policy`. It must be a LastBatchPolicy, for example LastBatchPolicy.PARTIAL, "
            f"got {policy!r}."
        )
    return policy


def find_batch_size(pipes: Sequence[Pipeline]) -> int:
    """Return the common batch size of all pipelines.

    Raises:
        AssertionError: the pipelines have different batch sizes.
    """
    sizes = {pipe.max_batch_size for pipe in pipes}
    if len(sizes) > 1:
        raise AssertionError(f"All pipelines must have the same batch size, got {sorted(map(str, sizes))}.")
    return int(sizes.pop() or 0)


def create_reader_counter(
    pipes: Sequence[Pipeline], name: str, batch_size: int, policy: LastBatchPolicy
) -> EpochCounter:
    """Create the counter for epochs that a reader determines.

    Raises:
        AssertionError: the reader's size or sharding arguments differ between pipelines.
    """
    metas = [pipe.reader_meta(name) for pipe in pipes]
    for key, argument in _COMMON_METADATA.items():
        values = {meta[key] for meta in metas}
        if len(values) > 1:
            raise AssertionError(
                f"The reader {name!r} must have the same {argument} in all pipelines, got {sorted(values)}."
            )
    ranks = [meta["shard_id"] for meta in metas]
    return EpochCounter(Shards.of_reader(metas[0]), batch_size, policy, ranks)


def create_size_counter(
    pipes: Sequence[Pipeline], size: int, batch_size: int, policy: LastBatchPolicy, *, padded: bool
) -> EpochCounter | OpenEpochs:
    """Create the counter for epochs with a fixed number of samples.

    Args:
        pipes: The pipelines, which deliver the samples together.
        size: Number of samples in an epoch; negative if an epoch ends when the source ends.
        batch_size: Batch size of each pipeline.
        policy: Policy for the last batch.
        padded: True if the pipelines pad their last batch.

    Raises:
        AssertionError: the size is 0, or is negative for several pipelines.
    """
    if size == 0:
        raise AssertionError("Size cannot be 0: pass the number of samples in an epoch, or -1 for no limit.")
    if size < 0:
        if len(pipes) > 1:
            raise AssertionError("Negative size is supported only for a single pipeline: pass reader_name or size.")
        _warn_if_endless(pipes[0])
        return OpenEpochs(batch_size)
    count = len(pipes)
    return EpochCounter(Shards(size, padded=padded), batch_size * count, policy, [0], split=count)


def _warn_if_endless(pipe: Pipeline) -> None:
    readers: Sequence[str] = ()
    # Debug mode doesn't have a graph, and a subclass may describe only one reader.
    with contextlib.suppress(RuntimeError, AttributeError, TypeError):
        readers = list(pipe.reader_meta())
    if readers:
        _log.warning(
            "Readers never end, and this iterator has neither reader_name nor size: unless another source ends, a "
            "loop over it never ends. Pass reader_name=%r.",
            readers[0],
        )
