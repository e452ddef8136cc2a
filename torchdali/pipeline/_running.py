"""Building and running a pipeline."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from torchdali.errors import located, shorten
from torchdali.execute.affinity import affinity
from torchdali.execute.batch import Batch, Reader, Settings
from torchdali.execute.device import resolve_device
from torchdali.execute.executor import Executor
from torchdali.execute.workers import open_sources
from torchdali.graph import DataNode, Graph, Node
from torchdali.loader import Cursor, EpochOrder, LoaderOptions
from torchdali.operator import Source
from torchdali.pipeline._definition import Definition
from torchdali.plan import Plan, plan
from torchdali.rewrite import fuse_decoding, fuse_resizing
from torchdali.rng import mix
from torchdali.tensors import TensorList
from torchdali.types import PipelineAPIType

__all__ = ["Running"]


class Running(Definition):
    """A pipeline that runs: batches are scheduled, made ahead of time, and taken in their order."""

    _executor: Executor | None = None
    _finalizer: weakref.finalize[..., Any]
    _plan: Plan | None = None
    _sources: Mapping[Node, Source] = {}
    _first = True
    _held: Batch | None = None
    _driven: PipelineAPIType | None = None
    _checks_driver = True
    _inside_driver = False

    # ------------------------------------------------------------ building

    def build(self) -> None:
        """Trace, plan, open the readers and start the threads; does nothing the second time.

        Raises:
            ValueError: no ``batch_size``, or less than one thread. TypeError: no ``num_threads``. Otherwise
            what the graph raises.
        """
        if self._executor is not None:
            return
        try:
            self._build()
        except Exception as error:
            shorten(error)
            raise

    def _build(self) -> None:
        self.start_py_workers()
        assert self._plan is not None and self._batch_size and self._num_threads
        readers = {
            node: self._open_reader(node)
            for node in self._plan.graph.nodes
            if node.operator.kind == "reader"
        }
        device = resolve_device(self._device_id)
        settings = Settings(
            self._batch_size,
            self._num_threads,
            self._seed,
            device,
            start_thread=affinity(device) if self._set_affinity else None,
            synchronous=not (self._async and self._pipelined),
            memory_stats=self._memory_stats,
        )
        self._executor = Executor(self._plan, settings, readers, self._sources, self._bad_samples)
        self._finalizer = weakref.finalize(self, Executor.close, self._executor)

    def start_py_workers(self) -> None:
        """Trace, plan and open the sources, which starts the worker processes of parallel ones.

        `build` does it; call it before if the processes should be forked before something else starts.
        """
        if self._plan is not None:
            return
        if self._num_threads is None:
            raise TypeError("num_threads must be set before the pipeline is built")
        if self._num_threads < 1:
            raise ValueError(f"a pipeline needs at least 1 thread to run, got {self._num_threads}")
        if self._batch_size is None:
            raise ValueError("batch_size must be set before the pipeline is built")
        graph = self._traced()
        self._declared.each(len(graph.outputs))
        fused = fuse_resizing(fuse_decoding(graph, self._scaled_decode))
        planned = plan(fused)
        self._check_devices(planned.graph)
        sources = {
            node: node.operator.body(**node.constants)
            for node in planned.graph.nodes
            if node.operator.kind == "source"
        }
        open_sources(
            list(sources.values()),
            self._batch_size,
            self._py_num_workers,
            self._py_start_method,
            self._py_callback_pickler,
        )
        self._plan, self._sources = planned, sources

    def _check_devices(self, graph: Graph) -> None:
        if resolve_device(self._device_id) is not None:
            return
        for node in graph.nodes:
            if node.device != "cpu":
                name = node.operator.name
                what = ".gpu()" if name == "_to_device" else f"operator {name!r}"
                raise RuntimeError(
                    f"{what} runs on {node.device!r}, which requires a CUDA-capable "
                    f"GPU, but the pipeline has device_id=None (CPU only)\n  {node.where}"
                )

    def _open_reader(self, node: Node) -> Reader:
        try:
            return self._opened(node)
        except Exception as error:
            place = f"operator {node.operator.name!r} cannot be built\n  {node.where}"
            raise located(error, place) from error

    def _opened(self, node: Node) -> Reader:
        options = {
            k: node.constants[k] for k in LoaderOptions.__dataclass_fields__ if k in node.constants
        }
        loader = LoaderOptions(**options)
        dataset = node.operator.body(**node.constants)
        own = loader.seed if loader.seed not in (None, -1) else None
        seed = mix(self._seed, 1) & 0x7FFFFFFF if own is None else own
        return Reader(dataset, Cursor(EpochOrder(len(dataset), loader, seed)))

    def close(self) -> None:
        """End the pipeline's threads; batches in flight are lost. May be called again."""
        if self._executor is not None:
            self._finalizer()
        for source in self._sources.values():
            source.close()

    def __del__(self) -> None:
        finalizer = getattr(self, "_finalizer", None)
        if finalizer is not None:
            finalizer()

    @property
    def _running(self) -> Executor:
        self.build()
        assert self._executor is not None
        return self._executor

    # ------------------------------------------------------------ running

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[TensorList, ...]:
        """Return the outputs of the next batch, keeping the following ones in flight.

        Args:
            pipeline_inputs: A batch for each of these sources; see `feed_input`.

        Raises:
            StopIteration: a source is at its end; `reset` starts its next epoch. RuntimeError: inputs, with
            more than one batch in flight.
        """
        if pipeline_inputs and self.prefetch_depth > 1:
            raise RuntimeError(
                "run() takes inputs only if one batch is in flight: set prefetch_queue_depth=1 or "
                "exec_pipelined=False, or use feed_input() or a source"
            )
        with self.driven_by(PipelineAPIType.BASIC):
            for name, data in pipeline_inputs.items():
                self.feed_input(name, data)
            self.schedule_run()
            return self.outputs(cuda_stream)

    def schedule_run(self) -> None:
        """Start the next batch; the first call starts as many as the queue is deep."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            running = self._running
            count = self.prefetch_depth if self._first else 1
            self._first = False
            for _ in range(count):
                try:
                    self.iter_setup()
                except StopIteration:
                    running.schedule(ended=True)  # after the batches in flight
                else:
                    running.schedule()

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Wait for the oldest batch in flight and return its outputs; they are the caller's to keep."""
        self.release_outputs()
        return self.share_outputs(cuda_stream)

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Like `outputs`; kept apart because DALI's scripts pair it with `release_outputs`.

        Raises:
            StopIteration: a source is at its end, or nothing is scheduled. RuntimeError: an output is not
            what ``output_dtype``, ``output_ndim`` or ``output_layout`` say.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            running = self._running
            if not running.in_flight:
                raise StopIteration("no batch is scheduled: call schedule_run() before")
            self._held = running.pop()
            if self._declared.given:
                self._declared.check(self._held.outputs)
            return self._held.outputs

    def release_outputs(self) -> None:
        """Let go of the last batch; what the caller still holds stays whole."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._held = None

    def reset(self) -> None:
        """Start the next epoch after StopIteration; otherwise nothing happens."""
        if self._executor is not None and self._executor.stopped:
            self._executor.reset()
            self._first = True

    def empty(self) -> bool:
        """Return whether no batch is scheduled and not yet taken; the end of an epoch is none."""
        return self._executor is None or self._executor.empty

    def iter_setup(self) -> None:
        """Called before every batch is scheduled; override it to `feed_input` there."""

    # ------------------------------------------------------------ who drives it

    def enable_api_check(self, enable: bool) -> None:
        """Refuse to mix `run`, `schedule_run` and iterators (the default), or allow it."""
        self._checks_driver = enable

    def driven_by(self, api: PipelineAPIType) -> AbstractContextManager[None]:
        """Drive the pipeline in one of DALI's styles; inside, all methods are allowed.

        Batches are counted differently in each, so that mixing them would skip some.

        Raises:
            RuntimeError: it was driven in another style before.
        """
        return _INSIDE if self._inside_driver else _Driving(self, api)

    # ------------------------------------------------------------ feeding

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Give an `external_source` without a source its next batch.

        Args:
            data_node: The source's node, name or operator.
            data: A batch: an array, a tensor, a `TensorList`, or a list of samples.
            layout: Of a sample.
            cuda_stream: Stream on which data of a GPU were made; the current one by default.
            use_copy_kernel: Accepted, without effect.

        Raises:
            KeyError: no such source in the graph. TypeError: neither a node, a name nor an operator.
            RuntimeError: the source has its own data, or these are no batch (of at most ``batch_size``).
        """
        source = self._running.sources[self._find_source(data_node)]
        if not hasattr(source, "feed"):
            raise RuntimeError("feed_input is for an external_source without a `source` argument")
        source.feed(data, layout, cuda_stream)

    def input_feed_count(self, input_name: str) -> int:
        """Return how many batches to feed before the first run; KeyError for an unknown name."""
        self._find_source(input_name)
        return max(self._depth)

    @property
    def input_names(self) -> list[str]:
        """Names of the sources that wait for `feed_input`, in the order of their definition."""
        return [
            node.name
            for node in self._traced().nodes
            if node.operator.name == "external_source" and node.constants.get("source") is None
        ]

    def submit(self, **inputs: Any) -> None:
        """Start exactly one batch with data for its sources; `outputs` returns it when its turn comes.

        Unlike `schedule_run`, it starts one batch the first time too.

        Raises:
            As `feed_input`, and then nothing is started.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            for name, data in inputs.items():
                self.feed_input(name, data)
            self._first = False
            self._running.schedule()

    def _find_source(self, which: Any) -> Node:
        nodes = getattr(which, "nodes", None)
        for name in [which] if nodes is None else nodes:
            if not isinstance(name, (str, DataNode)):
                raise TypeError(
                    f"a source is known by its node, name or operator, not by {which!r}"
                )
            for node in self._running.sources:
                if node.name == getattr(name, "name", name):
                    return node
        raise KeyError(f"no input of the pipeline is called {which!s}")


class _Inside(AbstractContextManager[None]):
    """What goes on inside of a call that is noted already."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        return None


_INSIDE = _Inside()


class _Driving(AbstractContextManager[None]):
    """Notes who drives a pipeline, for as long as one call of a method lasts."""

    __slots__ = ("_api", "_pipe")

    def __init__(self, pipe: Running, api: PipelineAPIType) -> None:
        self._pipe, self._api = pipe, api

    def __enter__(self) -> None:
        pipe, api = self._pipe, self._api
        pipe._driven = pipe._driven or api
        if pipe._driven is not api and pipe._checks_driver:
            raise RuntimeError(
                f"mixing pipeline API types: this pipeline is used with {pipe._driven}, and now with {api}; "
                "use either run(), or schedule_run() with outputs(), or an iterator"
            )
        pipe._inside_driver = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._pipe._inside_driver = False
        if isinstance(error, Exception):
            shorten(error)
