"""What a pipeline is told when it is made."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping
from typing import Any

from torchdali.execute.bad_samples import BadSamples
from torchdali.pipeline._declared import DeclaredOutputs
from torchdali.types import DALIDataType, OperatorConcurrency, StreamPolicy

__all__ = ["Options"]


class Options:
    """The arguments of `Pipeline`, checked, and the properties that tell them."""

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | str | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: int | Mapping[str, int] = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: str | bytes | None = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: DALIDataType | list[DALIDataType | None] | None = None,
        output_ndim: int | list[int | None] | None = None,
        output_layout: str | list[str | None] | None = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: StreamPolicy | None = None,
        concurrency: OperatorConcurrency | None = None,
        bad_samples: str = "raise",
        max_bad_samples: int | None = None,
        scaled_decode: bool = False,
    ) -> None:
        if experimental_exec_dynamic is not None:
            warnings.warn(
                "experimental_exec_dynamic is deprecated: use exec_dynamic",
                DeprecationWarning,
                stacklevel=2,
            )
            exec_dynamic = experimental_exec_dynamic
        self._batch_size, self._num_threads = _batch_size(batch_size), num_threads
        self._device_id = device_id
        self._given_seed = None if seed is None or seed < 0 else int(seed)
        self._seed = secrets.randbits(62) if self._given_seed is None else self._given_seed
        self._pipelined, self._async = bool(exec_pipelined), bool(exec_async)
        self._depth = _queue_sizes(prefetch_queue_depth)
        if self.exec_separated and not self._async:
            raise ValueError("queues of different depths need exec_async=True")
        plain = self._pipelined and self._async and not self.exec_separated
        self._exec_dynamic = True if exec_dynamic is None and plain else exec_dynamic
        self._bytes_per_sample, self._set_affinity = bytes_per_sample, set_affinity
        self._max_streams = -1 if max_streams is None else max_streams
        self._stream_priority = default_cuda_stream_priority or 0
        self._memory_stats, self._checkpointing = enable_memory_stats, enable_checkpointing
        self._checkpoint = checkpoint
        self._py_num_workers, self._py_start_method = py_num_workers, py_start_method
        self._py_callback_pickler = py_callback_pickler
        self._declared = DeclaredOutputs(output_dtype, output_ndim, output_layout)
        self._stream_policy, self._concurrency = stream_policy, concurrency
        self._bad_samples = BadSamples(bad_samples, max_bad_samples)
        self._scaled_decode = scaled_decode

    __init__.__qualname__ = "Pipeline.__init__"  # what Python calls it where arguments are wrong

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments that describe the pipeline, without Python objects of the user."""
        return {
            "batch_size": self._batch_size,
            "num_threads": self._num_threads,
            "device_id": self._device_id,
            "seed": self._given_seed,
            "exec_pipelined": self._pipelined,
            "prefetch_queue_depth": self.prefetch_queue_depth,
            "exec_async": self._async,
            "bytes_per_sample": self._bytes_per_sample,
            "set_affinity": self._set_affinity,
            "max_streams": self._max_streams,
            "default_cuda_stream_priority": self._stream_priority,
            "enable_memory_stats": self._memory_stats,
            "enable_checkpointing": self._checkpointing,
            "py_num_workers": self._py_num_workers,
            "py_start_method": self._py_start_method,
            "output_dtype": self._declared.dtype,
            "output_ndim": self._declared.ndim,
            "output_layout": self._declared.layout,
            "exec_dynamic": self._exec_dynamic,
            "stream_policy": self._stream_policy,
            "concurrency": self._concurrency,
            "bad_samples": self._bad_samples.policy,
            "max_bad_samples": self._bad_samples.budget,
            "scaled_decode": self._scaled_decode,
        }

    @property
    def batch_size(self) -> int | None:
        """Largest number of samples in a batch."""
        return self._batch_size

    max_batch_size = batch_size

    @property
    def num_threads(self) -> int | None:
        """Threads that run CPU operators."""
        return self._num_threads

    @property
    def device_id(self) -> int | str | None:
        """The accelerator that ``"gpu"`` means."""
        return self._device_id

    @property
    def seed(self) -> int | None:
        """The seed as given; None where the pipeline chose one."""
        return self._given_seed

    @property
    def exec_pipelined(self) -> bool:
        """Whether several batches are in flight."""
        return self._pipelined

    @property
    def exec_async(self) -> bool:
        """Whether scheduling returns before the batch is done."""
        return self._async

    @property
    def exec_separated(self) -> bool:
        """Whether the queues of CPU and GPU stage have different depths."""
        return self._depth[0] != self._depth[1]

    @property
    def exec_dynamic(self) -> bool | None:
        """Accepted; data may always go back from the device to the CPU."""
        return self._exec_dynamic

    @property
    def prefetch_queue_depth(self) -> int | dict[str, int]:
        """Batches in flight, as given."""
        if self.exec_separated:
            return {"cpu_size": self._depth[0], "gpu_size": self._depth[1]}
        return self._depth[0]

    @property
    def prefetch_depth(self) -> int:
        """Batches kept in flight."""
        return max(self._depth) if self._pipelined else 1

    @property
    def cpu_queue_size(self) -> int:
        """Depth of the CPU queue."""
        return self._depth[0]

    @property
    def gpu_queue_size(self) -> int:
        """Depth of the GPU queue."""
        return self._depth[1]

    @property
    def bytes_per_sample(self) -> int:
        """A hint; sizes are exact here."""
        return self._bytes_per_sample

    @property
    def set_affinity(self) -> bool:
        """Whether worker threads are bound to cores."""
        return self._set_affinity

    @property
    def max_streams(self) -> int:
        """Accepted; the device stage has one stream."""
        return self._max_streams

    @property
    def default_cuda_stream_priority(self) -> int:
        """Accepted; the device stage has one stream, of the default priority."""
        return self._stream_priority

    @property
    def enable_memory_stats(self) -> bool:
        """Whether `executor_statistics` are kept."""
        return self._memory_stats

    @property
    def py_num_workers(self) -> int:
        """Worker processes of parallel sources."""
        return self._py_num_workers

    @property
    def py_start_method(self) -> str:
        """How worker processes are started."""
        return self._py_start_method

    @property
    def stream_policy(self) -> StreamPolicy | None:
        """Accepted; the device stage has one stream."""
        return self._stream_policy

    @property
    def concurrency(self) -> OperatorConcurrency | None:
        """Accepted; operators of one batch run in order, samples and batches concurrently."""
        return self._concurrency


def _batch_size(size: int | None) -> int | None:
    if size is None:
        return None
    if not isinstance(size, int):
        raise TypeError(f"batch_size must be an int, got {size!r}")
    if size <= 0:
        raise ValueError(f"invalid batch size: {size}; it must be positive")
    return size


def _queue_sizes(depth: int | Mapping[str, int]) -> tuple[int, int]:
    if not isinstance(depth, (int, Mapping)):
        raise TypeError(
            f"prefetch_queue_depth must be an int, or a dict with cpu_size and gpu_size, got {depth!r}"
        )
    given = depth if isinstance(depth, Mapping) else {"cpu_size": depth, "gpu_size": depth}
    sizes = int(given["cpu_size"]), int(given["gpu_size"])
    if min(sizes) < 1:
        raise ValueError(f"prefetch_queue_depth must be at least 1, got {depth}")
    return sizes
