"""`DebugPipeline`, a pipeline for debugging. The function that defines the pipeline runs again for every batch."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from torchdali.dali.debug_run import DebugRun
from torchdali.execute.batch import Settings
from torchdali.execute.device_stream import resolve_device
from torchdali.graph.nodes import DataNode
from torchdali.pipeline._build import open_reader, open_source
from torchdali.pipeline._graph_builder import as_output
from torchdali.pipeline._pipeline import Pipeline
from torchdali.threads import close_abandoned

__all__ = ["DebugPipeline"]


class DebugPipeline(Pipeline):
    """The pipeline that ``pipeline_def(debug=True)`` creates.

    The pipeline's function runs for every batch, in the user's thread. Each operator runs when the function calls it.
    You can print a node, get its batch with `DebugNode.get`, and use breakpoints. The results are the same as without
    debug mode. Checkpoints, serialization and `explain` need a graph, so they raise an error in debug mode.
    """

    _has_run_ahead = False

    def build(self) -> None:
        """Check the pipeline's arguments and create its executor."""
        if self._executor is not None:
            return
        self._options.check_batch_size()
        options = self._options
        assert options.batch_size is not None
        device = resolve_device(options.device_id)
        settings = Settings(
            options.batch_size, 1, options.random_seed, device,
            max_pixels=options.max_pixels, exact=options.exact,
        )  # fmt: skip
        openers = functools.partial(open_reader, options), functools.partial(open_source, options)
        run = DebugRun(self, settings, _weak_method(self._evaluate), *openers)
        self._executor = run
        self._finalizer = weakref.finalize(self, close_abandoned, run)

    def _evaluate(self) -> list[DataNode]:
        result = self.define_graph()
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        return [as_output(value, i) for i, value in enumerate(outputs)]

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Return the number of records, the shards and the padding of a reader, or of all readers by name.

        Before the first batch, this call runs the pipeline's function to find the readers. The resulting batch is the
        first batch that is delivered.
        """
        run: Any = self._running
        if not run.knows_sources and not run.in_flight:
            run.schedule()
            if not run.knows_sources:
                run.pop()  # raises the error of the pipeline's function
            self._has_run_ahead = True
        return super().reader_meta(name)

    def schedule_run(self) -> None:
        """Run the function for the next batch, unless `reader_meta` has already run it."""
        if self._has_run_ahead:
            self._has_run_ahead = False
            return
        super().schedule_run()

    @property
    def prefetch_depth(self) -> int:
        """Number of batches that are prepared ahead: 1 in debug mode."""
        return 1

    def _schedule(self, inputs: Mapping[str, Any], tag: object = None, ended: bool = False) -> None:
        run: Any = self._running
        if not run.knows_sources:
            for name, data in inputs.items():
                self.feed_input(name, data)
            inputs = {}
        super()._schedule(inputs, tag, ended)

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Pass the next batch to an `external_source`; see `Pipeline.feed_input`.

        Before the first run of the pipeline's function, the sources are unknown. In this case, the batch is stored
        until the function calls the `external_source` with the name of `data_node`.
        """
        name = getattr(data_node, "name", data_node)
        run: Any = self._running
        if run.knows_sources or not isinstance(name, str):
            super().feed_input(data_node, data, layout, cuda_stream)
        else:
            run.store_feed(name, data, layout, cuda_stream)

    def input_feed_count(self, input_name: str) -> int:
        """Return the number of batches to feed before the first run: 1 in debug mode."""
        return self.prefetch_depth

    def _trace(self) -> Any:
        raise RuntimeError("a pipeline in debug mode has no graph: its function runs for every batch")

    _planned = property(_trace)


def _weak_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a bound method without keeping the method's object alive."""
    reference = weakref.WeakMethod(method)

    def call(*arguments: Any) -> Any:
        bound = reference()
        assert bound is not None  # the pipeline is running
        return bound(*arguments)

    return call
