"""The class `Pipeline`: what it is, and what can be asked of it."""

from __future__ import annotations

import os
from typing import Any

from torchdali.execute.bad_samples import BadSample
from torchdali.execute.profile import Stats
from torchdali.loader import reader_meta
from torchdali.pipeline._saving import Saved
from torchdali.types import DALIDataType

__all__ = ["Pipeline"]


class Pipeline(Saved):
    """A graph of operators and what runs it.

    Define the graph in one of three ways: decorate a function with `pipeline_def`; call operators inside
    ``with pipe:`` and name the results with `set_outputs`; or override `define_graph`.

    Args:
        batch_size: Samples of a batch, the largest one where sources give fewer.
        num_threads: Threads that run CPU operators.
        device_id: The accelerator that ``"gpu"`` means: a number for ``cuda:N``, None for none, and ``"cpu"``
            to run the device stage on the CPU.
        seed: Of all random operators without a seed of their own; None or -1 for a new one each time.
        prefetch_queue_depth: Batches in flight; a dict ``{"cpu_size": n, "gpu_size": m}`` takes the larger.
        exec_pipelined: With False, one batch is in flight, and `schedule_run` returns when it is done.
        exec_async: With False, `schedule_run` returns when the batch is done. Whatever runs over whole
            batches, such as a Python function, then runs on the thread that calls it.
        bytes_per_sample, max_streams, default_cuda_stream_priority, exec_dynamic, stream_policy, concurrency:
            Accepted, without effect; see docs/pipelines.md.
        set_affinity: Bind worker threads to cores: those of ``DALI_AFFINITY_MASK``, or those next to the GPU.
        enable_memory_stats: Keep `executor_statistics`.
        enable_checkpointing: Accepted; every pipeline can be saved.
        checkpoint: Continue where a pipeline of the same graph was, whose `checkpoint` returned this.
        py_num_workers, py_start_method, py_callback_pickler: Processes of parallel sources, see
            `fn.external_source`.
        output_dtype, output_ndim, output_layout: What the outputs must be, as one value or a list with one an
            output; None for anything.
        bad_samples: What to do with a sample that fails: ``"raise"``, ``"skip"`` (a smaller batch) or
            ``"replace"`` (repeat a good one of the batch), also where an operator works on the whole batch; see
            `bad_sample_report`. A failure that no sample is to blame for, such as a wrong argument, fails the
            batch, and in debug mode every failure does.
        max_bad_samples: How many of them to bear before failing all the same.
        scaled_decode: Decode large JPEG photos at a reduced scale when a random crop follows that shrinks
            them anyway; much faster, and the pixels differ slightly.

    Raises:
        ValueError: ``batch_size`` or a queue depth is not positive, or a declared output cannot be.
        TypeError: an unknown argument, or one of the wrong type.
    """

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self._traced().outputs)

    def output_dtype(self) -> list[DALIDataType | None]:
        """Return the declared element type of each output."""
        return [dtype for dtype, _, _ in self._declared.each(self.num_outputs)]

    def output_ndim(self) -> list[int | None]:
        """Return the declared number of dimensions of each output."""
        return [ndim for _, ndim, _ in self._declared.each(self.num_outputs)]

    def output_stream(self) -> Any:
        """Return the stream on which the device stage runs; None on the CPU.

        Outputs need no waiting: the stream that is current when they are taken waits for them.
        """
        return self._running.lane.stream

    def epoch_size(self, name: str | None = None) -> Any:
        """Return the (padded) size of a reader's epoch, or of all: ``{name: size}``."""
        if name is None:
            return {n: meta["epoch_size_padded"] for n, meta in self.reader_meta().items()}
        return self.reader_meta(name)["epoch_size_padded"]

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Describe a reader, or all: sizes, shards, padding.

        Raises:
            RuntimeError: there is no such reader.
        """
        found = {
            node.name: reader_meta(len(reader.dataset), reader.cursor.order.options)
            for node, reader in self._running.readers.items()
        }
        if name is None:
            return found
        if name not in found:
            raise RuntimeError(
                f"there is no reader {name!r}; readers here: {', '.join(found) or 'none'}"
            )
        return found[name]

    def executor_statistics(self) -> dict[str, dict[str, list[int]]]:
        """Return the memory of what each operator delivered: ``{operator: {measure: [one an output]}}``.

        The measures are DALI's: ``real_memory_size`` and ``reserved_memory_size`` of the last batch in bytes,
        with ``max_`` before them of the largest sample. Operators inside a fused chain deliver nothing but
        its results. Empty without ``enable_memory_stats``.
        """
        return self._running.memory.summary()

    def external_source_shm_statistics(self) -> dict[str, list[Any]]:
        """Return DALI's statistics of shared memory; empty lists: blocks grow as needed here."""
        return {"capacities": [], "per_sample_capacities": []}

    def explain(self) -> str:
        """Return the graph and the plan as text."""
        running = self._running
        return f"{running.plan.graph}\n\n{running.plan}"

    def bad_sample_report(self) -> list[BadSample]:
        """Return the samples that were skipped or replaced so far."""
        return sorted(self._bad_samples.report, key=lambda bad: (bad.batch, bad.sample))

    def stats(self) -> Stats:
        """Return where the time goes: per operator, waiting, in the consumer; print it for a table."""
        running = self._running
        return running.profile.stats(running.buffers.bytes_out)

    def trace(self) -> None:
        """Note every operator's time from now on, for `write_trace`."""
        self._running.profile.trace()

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write what was traced as JSON for a browser's trace viewer (``chrome://tracing``, Perfetto).

        Raises:
            RuntimeError: `trace` was not called before.
        """
        self._running.profile.write_trace(path)
