"""Pipelines in debug mode: the function runs anew for every batch, and every node holds its data."""

from __future__ import annotations

import weakref
from typing import Any

from torchdali.execute.batch import Settings
from torchdali.execute.debug import DebugRun
from torchdali.execute.device import resolve_device
from torchdali.execute.workers import open_sources
from torchdali.graph import DataNode, Node
from torchdali.operator import Source
from torchdali.pipeline._definition import as_output
from torchdali.pipeline._pipeline import Pipeline

__all__ = ["DebugPipeline"]


class DebugPipeline(Pipeline):
    """What ``pipeline_def(debug=True)`` makes.

    Operators run where the function calls them, in the caller's thread, one batch at a time. A node can be
    printed, and `DebugNode.get` returns its batch; breakpoints stop where the data is. Results are those of
    the same pipeline without debug mode. Checkpoints, serialization and `explain` need a traced graph and are
    refused.
    """

    _ahead = False

    def build(self) -> None:
        """Check the arguments; the graph is made anew for every batch."""
        if self._executor is not None:
            return
        if self._batch_size is None:
            raise ValueError("batch_size must be set before the pipeline is built")
        device = resolve_device(self._device_id)
        settings = Settings(self._batch_size, 1, self._seed, device)
        run = DebugRun(self, settings, self._evaluate, self._open_reader, self._open_source)
        self._executor = run  # type: ignore[assignment]  # stands in for an executor
        self._finalizer = weakref.finalize(self, DebugRun.close, run)

    def _evaluate(self) -> list[DataNode]:
        result = self.define_graph()
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        return [as_output(value, i) for i, value in enumerate(outputs)]

    def _open_source(self, node: Node) -> Source:
        source: Source = node.operator.body(**node.constants)
        assert self._batch_size is not None
        open_sources(
            [source],
            self._batch_size,
            self._py_num_workers,
            self._py_start_method,
            self._py_callback_pickler,
        )
        return source

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Describe a reader, or all; what readers there are, the first batch tells, which is delivered later."""
        run: Any = self._running
        if not run.knows_sources and not run.in_flight:
            run.schedule()
            if not run.knows_sources:
                run.pop()  # raises what failed
            self._ahead = True
        return super().reader_meta(name)

    def schedule_run(self) -> None:
        """Run the function for the next batch, unless `reader_meta` did."""
        if self._ahead:
            self._ahead = False
            return
        super().schedule_run()

    def state_dict(self) -> dict[str, Any]:
        """Raise RuntimeError: a place belongs to a graph."""
        return dict(self._traced())

    @property
    def prefetch_depth(self) -> int:
        """Batches made ahead: none in debug mode."""
        return 1

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Give a source its next batch; before the first run, a source of this name that the run will find."""
        name = getattr(data_node, "name", data_node)
        run: Any = self._running
        if run.knows_sources or not isinstance(name, str):
            super().feed_input(data_node, data, layout, cuda_stream)
        else:
            run.hold(name, data, layout, cuda_stream)

    def input_feed_count(self, input_name: str) -> int:
        """Return how many batches to feed before the first run: one."""
        return self.prefetch_depth

    def explain(self) -> str:
        """Raise RuntimeError: there is no graph."""
        return str(self._traced())

    def _traced(self) -> Any:
        raise RuntimeError(
            "a pipeline in debug mode has no graph: its function runs for every batch"
        )
