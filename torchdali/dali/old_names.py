"""Private names of DALI's pipelines and iterators that published programs use.

If several public programs read, set, call or override a private name of DALI's pipelines or iterators, torchdali
supports the name. The classes in this module define these names with DALI's meaning. Methods that subclasses override,
like `_get_outputs` and `_prefetch`, are defined by the pipelines and iterators themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from torchdali.graph.nodes import DataNode
from torchdali.types import PipelineAPIType

__all__ = ["IteratorOldNames", "PipelineOldNames"]


class _Renamed:
    """Descriptor that reads a public attribute under another name."""

    def __init__(self, public: str) -> None:
        self._public = public

    def __get__(self, pipe: Any, owner: type | None = None) -> Any:
        return self if pipe is None else getattr(pipe, self._public)


class _Derived:
    """Descriptor that computes an attribute, like a `property`. A program may assign a value to the attribute."""

    def __init__(self, derive: Callable[[Any], Any]) -> None:
        self._derive = derive

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self._derive(instance)


class _FromOptions(_Renamed):
    """Descriptor that reads an argument of `Pipeline` for which the pipeline has no public attribute."""

    def __get__(self, pipe: Any, owner: type | None = None) -> Any:
        return self if pipe is None else getattr(pipe._options, self._public)


def _edge_name(edge: DataNode) -> str:
    node = edge.source
    if node is None or len(node.outputs) == 1:
        return edge.name
    return f"{node.name}[{[each is edge for each in node.outputs].index(True)}]"


class PipelineOldNames:
    """Private names of DALI's `Pipeline`, as a mixin for torchdali's `Pipeline`."""

    _batch_size = _max_batch_size = _Renamed("max_batch_size")
    _num_threads = _Renamed("num_threads")
    _device_id = _Renamed("device_id")
    _seed = _Renamed("seed")
    _exec_pipelined = _Renamed("exec_pipelined")
    _exec_async = _Renamed("exec_async")
    _exec_dynamic = _Renamed("exec_dynamic")
    _exec_separated = _Renamed("exec_separated")
    _prefetch_queue_depth = _Renamed("prefetch_queue_depth")
    _cpu_queue_size = _Renamed("cpu_queue_size")
    _gpu_queue_size = _Renamed("gpu_queue_size")
    _bytes_per_sample = _Renamed("bytes_per_sample")
    _set_affinity = _Renamed("set_affinity")
    _max_streams = _Renamed("max_streams")
    _default_cuda_stream_priority = _Renamed("default_cuda_stream_priority")
    _enable_memory_stats = _Renamed("enable_memory_stats")
    _py_num_workers = _Renamed("py_num_workers")
    _py_start_method = _Renamed("py_start_method")
    _is_restored_from_checkpoint = _Renamed("is_restored_from_checkpoint")
    _num_outputs = _Renamed("num_outputs")
    _enable_checkpointing = _FromOptions("enable_checkpointing")
    _checkpoint = _FromOptions("checkpoint")
    _py_callback_pickler = _FromOptions("py_callback_pickler")

    _first_iter = _Renamed("_is_first_run")
    _last_iter = _Renamed("_setup_ended")

    # ------------------------------------------------------------ the style of calls

    @property
    def _api_type(self: Any) -> PipelineAPIType | None:
        first_api: PipelineAPIType | None = self._api_check.first_api
        return first_api

    @_api_type.setter
    def _api_type(self: Any, api: PipelineAPIType | None) -> None:
        self._api_check.first_api = api

    @property
    def _skip_api_check(self: Any) -> bool:
        return not self._api_check.enabled

    @_skip_api_check.setter
    def _skip_api_check(self: Any, skip: bool) -> None:
        self._api_check.enabled = not skip

    def _set_api_type(self: Any, type: PipelineAPIType) -> None:
        if not isinstance(type, PipelineAPIType):
            raise TypeError(f"type must be a PipelineAPIType, got {type!r}")
        self._api_type = type

    def _check_api_type(self: Any, type: PipelineAPIType) -> None:
        with self.driven_by(type):
            pass

    def _check_api_type_scope(self: Any, type: PipelineAPIType) -> AbstractContextManager[None]:
        scope: AbstractContextManager[None] = self.driven_by(type)
        return scope

    # ------------------------------------------------------------ the state of the build

    @_Derived
    def _py_graph_built(self: Any) -> bool:
        return self._plan is not None

    @_Derived
    def _built(self: Any) -> bool:
        return self._executor is not None

    _backend_prepared = _built

    @_Derived
    def _pipe(self: Any) -> Any:
        return self if self._built else None

    @_Derived
    def _graph_out(self: Any) -> Any:
        return self._trace().outputs

    @_Derived
    def _ops(self: Any) -> Any:
        return list(self._trace().nodes)

    @_Derived
    def _names_and_devices(self: Any) -> list[tuple[str, str]] | None:
        return [(_edge_name(each), each.device) for each in self._graph_out] if self._built else None

    def _build_graph(self: Any, define_graph: Any = None) -> None:
        self._trace()

    def _start_py_workers(self: Any) -> None:
        self.start_py_workers()

    # ------------------------------------------------------------ running, without checking the style of calls

    @_Derived
    def _batches_to_consume(self: Any) -> int:
        return self._executor.in_flight if self._built else 0

    def _run(self: Any) -> None:
        if self._is_first_run:
            self._prefetch()
        else:
            self._run_once()

    def _share_outputs(self: Any, cuda_stream: Any = None) -> Any:
        return self._take(cuda_stream)

    def _release_outputs(self: Any) -> None:
        self.release_outputs()

    def _feed_input(self: Any, name: Any, data: Any, *arguments: Any, **named: Any) -> None:
        self.feed_input(name, data, *arguments, **named)


class IteratorOldNames:
    """Private names of DALI's iterators, as a mixin for torchdali's `BaseIterator`."""

    # ------------------------------------------------------------ the position in the epoch

    @property
    def _counter(self: Any) -> int:
        """Number of delivered samples of this epoch. At the end of an epoch, dropped samples are included."""
        epochs = self._epochs
        return int(epochs.position + (epochs.dropped * epochs.batch_size if self._over else 0))

    @_counter.setter
    def _counter(self: Any, samples: int) -> None:
        if not hasattr(self, "_epochs"):
            return  # ignored, because the base class's constructor will set the position
        if samples < self._counter and (self._over or self._epochs.finished):
            self._begin_epoch()  # the program has its own `reset`, which lowers the counter
        self._epochs.position = samples

    @property
    def _size(self: Any) -> int:
        """Number of samples in an epoch, like `size`. Assign a number to change the end of the epoch."""
        return int(self._epochs.size)

    @_size.setter
    def _size(self: Any, samples: int) -> None:
        if hasattr(self, "_epochs"):
            self._change_size(samples)

    @property
    def _last_batch_policy(self: Any) -> Any:
        return self._policy

    @_last_batch_policy.setter
    def _last_batch_policy(self: Any, policy: Any) -> None:
        self._policy = policy
        if hasattr(self, "_epochs"):
            self._epochs.policy = policy
            self._epochs.recount()

    # ------------------------------------------------------------ shards

    @property
    def _counted(self: Any) -> Any:
        if not hasattr(self._epochs, "shards"):
            raise AttributeError("an iterator has shards and padding only if it has a reader_name or a size")
        return self._epochs

    @property
    def _last_batch_padded(self: Any) -> bool:
        return hasattr(self._epochs, "shards") and bool(self._epochs.shards.padded)

    @_last_batch_padded.setter
    def _last_batch_padded(self: Any, padded: bool) -> None:
        """Do nothing, because the reader determines the padding."""

    @_Derived
    def _size_no_pad(self: Any) -> int:
        return int(self._counted.shards.size)

    @_Derived
    def _shards_num(self: Any) -> int:
        return int(self._counted.shards.count)

    @_Derived
    def _shards_id(self: Any) -> Any:
        return np.array(self._counted.ranks)

    @_Derived
    def _is_stick_to_shard(self: Any) -> bool:
        return not self._counted.shards.rotates

    @_Derived
    def _counter_per_gpu(self: Any) -> Any:
        return np.array(self._counted.carried)

    @_Derived
    def _shard_sizes_per_gpu(self: Any) -> Any:
        epochs = self._counted
        return self._shard_sizes_per_gpu_initial if epochs.shards.padded else np.array(epochs.sizes)

    @_Derived
    def _shard_sizes_per_gpu_initial(self: Any) -> Any:
        return self._calculate_shard_sizes(np.arange(self._shards_num))

    def _calculate_shard_sizes(self: Any, shard_nums: Any) -> Any:
        size, count = self._size_no_pad, self._shards_num
        sizes: Any = (shard_nums + 1) * size // count - shard_nums * size // count
        return sizes

    # ------------------------------------------------------------ names that copies of DALI's iterators call

    def _remove_padded(self: Any) -> tuple[Any, Any]:
        """Return whether samples of the last batch must be removed, and how many samples remain.

        Returns:
            True (or an array of bools, one per pipeline) if samples must be removed, otherwise False; and the number of
            remaining samples per pipeline.
        """
        counts = self._epochs.counts
        if counts is None:
            return False, [self.batch_size] * len(self._pipes)
        remaining = np.array(counts)
        return remaining < self.batch_size, remaining

    def _check_batch_size(self: Any, outs: Any) -> None:
        """Check that all outputs of a batch have the same number of samples.

        Raises:
            AssertionError: the numbers differ.
        """
        sizes = {len(output) for outputs in outs for output in outputs}
        if len(sizes) > 1:
            raise AssertionError(f"the outputs of a batch must have the same number of samples, not {sorted(sizes)}")

    # ------------------------------------------------------------ arguments

    @property
    def _auto_reset(self: Any) -> str:
        return "yes" if self._restarts else "no"

    @_auto_reset.setter
    def _auto_reset(self: Any, value: bool | str | None) -> None:
        self._restarts = value in (True, "yes")

    @_Derived
    def _enable_checkpointing(self: Any) -> bool:
        return bool(getattr(self._pipes[0], "_enable_checkpointing", False))
