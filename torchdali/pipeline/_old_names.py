"""Names with an underscore that published programs for DALI use, apart from the code that does the work.

What several public programs read, set, call or override is an interface, whatever its name: inner names of DALI's
iterators and pipelines. The classes here give them the meaning they have there.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from torchdali.types import PipelineAPIType

__all__ = ["IteratorOldNames", "PipelineOldNames"]


class PipelineOldNames:
    """Inner names of DALI's `Pipeline`."""

    def _prefetch(self: Any) -> None:
        """Start as many batches as the queue is deep, if none was started before."""
        if self._first:
            self._start_batches()

    def _run(self: Any) -> None:
        """Start one batch."""
        self._first = False
        self.schedule_run()

    _run_once = _run

    def _outputs(self: Any, *arguments: Any) -> Any:
        return self.outputs(*arguments)

    def _share_outputs(self: Any, *arguments: Any) -> Any:
        return self.share_outputs(*arguments)

    def _release_outputs(self: Any) -> None:
        self.release_outputs()

    def _check_api_type_scope(self: Any, api: PipelineAPIType) -> AbstractContextManager[None]:
        scope: AbstractContextManager[None] = self.driven_by(api)
        return scope


class IteratorOldNames:
    """Inner names of DALI's iterators, for a `BaseIterator`.

    Attributes:
        _ever_consumed, _enable_checkpointing: Programs set them; nothing reads them here.
    """

    _ever_consumed = False
    _enable_checkpointing = False

    # ------------------------------------------------------------ what is counted

    @property
    def _counter(self: Any) -> int:
        """Samples of the present epoch so far, as each rank counts them."""
        return int(self._epochs.samples)

    @_counter.setter
    def _counter(self: Any, value: int) -> None:
        if self._over or self._epochs.finished:
            self._begin_epoch()
        self._epochs.delivered = value // self.batch_size

    @property
    def _size(self: Any) -> int:
        return int(self.size)

    @_size.setter
    def _size(self: Any, value: int) -> None:
        if hasattr(self, "_epochs"):  # before, the iterator is about to find its size
            self._change_size(value)

    @property
    def _size_no_pad(self: Any) -> int:
        return int(self._epochs.shards.size)

    @property
    def _shards_num(self: Any) -> int:
        return int(self._epochs.shards.count)

    @property
    def _shards_id(self: Any) -> Any:
        shards = self._epochs.shards
        return np.array([shards.shard(rank, self._epochs.epoch) for rank in self._epochs.ranks])

    @property
    def _is_stick_to_shard(self: Any) -> int:
        return int(not self._epochs.shards.rotates)

    @property
    def _counter_per_gpu(self: Any) -> Any:
        return np.array(self._epochs.carried)

    @property
    def _shard_sizes_per_gpu(self: Any) -> Any:
        return np.array(self._epochs.sizes)

    def _remove_padded(self: Any) -> tuple[Any, Any]:
        """Return for each pipeline whether samples of the last batch do not count, and how many do."""
        counts = self._counts or [self.batch_size] * len(self._pipes)
        return np.array([count < self.batch_size for count in counts]), np.array(counts)

    # ------------------------------------------------------------ arguments

    @property
    def _num_gpus(self: Any) -> int:
        return len(self._pipes)

    @property
    def _auto_reset(self: Any) -> str:
        return "yes" if self._begins_anew else "no"

    @_auto_reset.setter
    def _auto_reset(self: Any, value: bool | str | None) -> None:
        self._begins_anew = value in (True, "yes")

    @property
    def _last_batch_policy(self: Any) -> Any:
        return self._policy

    @property
    def _last_batch_padded(self: Any) -> bool:
        return bool(getattr(getattr(self._epochs, "shards", None), "padded", False))

    @property
    def _output_categories(self: Any) -> set[str]:
        return set(self.output_map)

    @property
    def _ever_scheduled(self: Any) -> bool:
        return bool(self._scheduled)

    # ------------------------------------------------------------ hooks that programs call

    def _check_batch_size(self: Any, outputs: Any) -> None:
        """No-op: pipelines check their batches themselves."""

    def _report_no_data_in_pipeline(self: Any) -> None:
        raise RuntimeError("There is no data in the pipeline: its source ended before the first batch.")
