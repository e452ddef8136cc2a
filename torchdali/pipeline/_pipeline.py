"""Pipelines: trace a function into a graph, plan it, execute it."""

from __future__ import annotations

import functools
import inspect
import secrets
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import torch

from torchdali import graph as _graph
from torchdali import types
from torchdali.conditionals import convert
from torchdali.execute.bad_samples import BadSample, BadSamples
from torchdali.execute.device import resolve_device
from torchdali.execute.executor import Batch, Executor, Reader, Settings
from torchdali.execute.workers import open_sources
from torchdali.graph import DataNode, Graph, Node, Tracer
from torchdali.loader import Cursor, EpochOrder, LoaderOptions, reader_meta
from torchdali.operator import Source, as_node
from torchdali.plan import Plan, plan
from torchdali.rewrite import fuse_scaled_decoding
from torchdali.rng import mix
from torchdali.tensors import TensorList

__all__ = ["Pipeline", "pipeline_def"]

_pipelines: list[Pipeline] = []


class Pipeline:
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
        exec_pipelined: With False, one batch is in flight and `run` waits for it.
        exec_async: Accepted; with False, `schedule_run` returns when the batch is done.
        bad_samples: What to do with a sample that fails: ``"raise"``, ``"skip"`` (a smaller batch) or
            ``"replace"`` (repeat a good one of the batch); see `bad_sample_report`.
        max_bad_samples: How many of them to bear before failing all the same.
        scaled_decode: Decode large JPEG photos at a reduced scale when a random crop follows that shrinks
            them anyway; much faster, and the pixels differ slightly.

    Raises:
        ValueError: ``batch_size`` is not positive. TypeError: an unknown argument.
    """

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
        checkpoint: Any = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: Any = None,
        output_ndim: Any = None,
        output_layout: Any = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: Any = None,
        concurrency: Any = None,
        bad_samples: str = "raise",
        max_bad_samples: int | None = None,
        scaled_decode: bool = False,
    ) -> None:
        if batch_size is not None and batch_size <= 0:
            raise ValueError(f"invalid batch size: {batch_size}; it must be positive")
        self._batch_size, self._num_threads, self._device_id = batch_size, num_threads, device_id
        self._seed = secrets.randbits(62) if seed in (None, -1) else int(seed)
        self._pipelined, self._async = exec_pipelined, exec_async
        self._depth = _queue_sizes(prefetch_queue_depth)
        self._options = {
            "bytes_per_sample": bytes_per_sample,
            "set_affinity": set_affinity,
            "max_streams": max_streams,
            "default_cuda_stream_priority": default_cuda_stream_priority,
            "enable_memory_stats": enable_memory_stats,
            "enable_checkpointing": enable_checkpointing,
            "py_num_workers": py_num_workers,
            "py_start_method": py_start_method,
            "py_callback_pickler": py_callback_pickler,
            "exec_dynamic": bool(exec_dynamic or experimental_exec_dynamic),
            "stream_policy": stream_policy,
            "concurrency": concurrency,
            "scaled_decode": scaled_decode,
        }
        self._declared_outputs = (output_dtype, output_ndim, output_layout)
        self._bad_samples = BadSamples(bad_samples, max_bad_samples)
        self._checkpoint = checkpoint
        self._tracer = Tracer(self)
        self._outputs: tuple[DataNode, ...] | None = None
        self._function: Callable[[], Any] | None = None
        self._executor: Executor | None = None
        self._plan: Plan | None = None
        self._readers: dict[str, Reader] = {}
        self._sources: dict[Node, Source] = {}
        self._first = True
        self._held: Batch | None = None

    # ------------------------------------------------------------ defining the graph

    def __enter__(self) -> Pipeline:
        self._tracer.__enter__()
        Pipeline.push_current(self)
        return self

    def __exit__(self, *exc: object) -> None:
        Pipeline.pop_current()
        self._tracer.__exit__(*exc)

    @staticmethod
    def current() -> Pipeline | None:
        """Return the pipeline that is being defined, or None."""
        return _pipelines[-1] if _pipelines else None

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        """Make a pipeline the current one."""
        _pipelines.append(pipeline)

    @staticmethod
    def pop_current() -> None:
        """Make the pipeline before the current one current again."""
        _pipelines.pop()

    def define_graph(self) -> Any:
        """Return the outputs; override it in a subclass to define the graph there."""
        if self._function is None:
            raise NotImplementedError(
                "the pipeline has no graph: use pipeline_def, set_outputs() or override define_graph()"
            )
        return self._function()

    def set_outputs(self, *output_data_nodes: Any) -> None:
        """Name the outputs of the pipeline: nodes, or constants.

        Raises:
            TypeError: a value that cannot be an output, such as None, a string, a dict or a nested list.
        """
        with self._tracer:
            self._outputs = tuple(_output(value, i) for i, value in enumerate(output_data_nodes))

    def add_sink(self, edge: DataNode) -> None:
        """Keep the operator of an edge although no output needs it."""
        assert edge.source is not None
        edge.source.preserve = True

    def build(self) -> None:
        """Trace, plan, open the readers and start the threads; does nothing the second time.

        Raises:
            ValueError: no ``batch_size``. TypeError: no ``num_threads``. Otherwise what the graph raises.
        """
        if self._executor is not None:
            return
        self.start_py_workers()
        assert self._plan is not None
        readers = {
            node: self._open_reader(node)
            for node in self._plan.graph.nodes
            if node.operator.kind == "reader"
        }
        self._readers = {node.name: reader for node, reader in readers.items()}
        settings = Settings(
            self._batch_size, self._num_threads, self._seed, resolve_device(self._device_id)
        )
        self._executor = Executor(self._plan, settings, readers, self._sources, self._bad_samples)
        self._finalizer = weakref.finalize(self, Executor.close, self._executor)

    def start_py_workers(self) -> None:
        """Trace, plan and open the sources, which starts the worker processes of parallel ones.

        `build` does it; call it before if the processes should be forked before something else starts.
        """
        if self._plan is not None:
            return
        if self._batch_size is None:
            raise ValueError("batch_size must be set before the pipeline is built")
        if self._num_threads is None:
            raise TypeError("num_threads must be set before the pipeline is built")
        graph = self._trace()
        planned = plan(fuse_scaled_decoding(graph) if self._options["scaled_decode"] else graph)
        self._check_devices(planned.graph)
        self._sources = {
            node: node.operator.body(**node.constants)
            for node in planned.graph.nodes
            if node.operator.kind == "source"
        }
        names = ("py_num_workers", "py_start_method", "py_callback_pickler")
        options = [self._options[name] for name in names]
        open_sources(list(self._sources.values()), self._batch_size, *options)
        self._plan = planned

    def _trace(self) -> Graph:
        if self._outputs is None:
            with self:
                result = self.define_graph()
            self.set_outputs(*(result if isinstance(result, (tuple, list)) else (result,)))
        assert self._outputs is not None
        return Graph.of(self._outputs, self._tracer.nodes)

    def _check_devices(self, graph: Graph) -> None:
        if resolve_device(self._device_id) is not None:
            return
        for node in graph.nodes:
            if node.device != "cpu":
                raise RuntimeError(
                    f"operator {node.operator.name!r} runs on {node.device!r}, which requires a CUDA-capable "
                    f"GPU, but the pipeline has device_id=None (CPU only)\n  {node.where}"
                )

    def _open_reader(self, node: Node) -> Reader:
        options = {
            k: node.constants[k] for k in LoaderOptions.__dataclass_fields__ if k in node.constants
        }
        loader = LoaderOptions(**options)
        dataset = node.operator.body(**node.constants)
        own = loader.seed if loader.seed not in (None, -1) else None
        seed = mix(self._seed, 1) & 0x7FFFFFFF if own is None else own
        return Reader(dataset, Cursor(EpochOrder(len(dataset), loader, seed)))

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
        self.build()
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        self.schedule_run()
        return self.outputs()

    def schedule_run(self) -> None:
        """Start the next batch; the first call starts as many as the queue is deep."""
        self.build()
        count = self.prefetch_depth if self._first else 1
        self._first = False
        for _ in range(count):
            try:
                self.iter_setup()
            except StopIteration:
                self._running.schedule(ended=True)  # after the batches in flight
            else:
                self._running.schedule()

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Wait for the oldest batch in flight and return its outputs; they are the caller's to keep."""
        self.release_outputs()
        return self.share_outputs(cuda_stream)

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Like `outputs`; kept apart because DALI's scripts pair it with `release_outputs`."""
        batch = self._running.pop()
        self._held = batch
        return batch.outputs

    def release_outputs(self) -> None:
        """Let go of the last batch; what the caller still holds stays whole."""
        self._held = None

    def reset(self) -> None:
        """Start the next epoch after StopIteration; otherwise nothing happens."""
        if self._executor is not None and self._executor.stopped:
            self._executor.reset()
            self._first = True

    def empty(self) -> bool:
        """Return whether nothing is scheduled and not yet consumed."""
        return self._executor is None or self._executor.in_flight == 0

    def iter_setup(self) -> None:
        """Called before every batch is scheduled; override it to `feed_input` there."""

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
        self.build()
        source = self._running.sources[self._find_source(data_node)]
        if not hasattr(source, "feed"):
            raise RuntimeError("feed_input is for an external_source without a `source` argument")
        source.feed(data, layout, cuda_stream)

    def input_feed_count(self, input_name: str) -> int:
        """Return how many batches to feed before the first run; KeyError for an unknown name."""
        self.build()
        self._find_source(input_name)
        return max(self._depth)

    def _find_source(self, which: Any) -> Node:
        nodes = getattr(which, "nodes", None)
        for name in [which] if nodes is None else nodes:
            if not isinstance(name, (str, DataNode)):
                raise TypeError(f"a source is known by its node, name or operator, not by {which!r}")
            for node in self._running.sources:
                if node.name == getattr(name, "name", name):
                    return node
        raise KeyError(f"no input of the pipeline is called {which!s}")

    def close(self) -> None:
        """End the pipeline's threads; batches in flight are lost. May be called again."""
        if self._executor is not None:
            self._finalizer()

    @property
    def _running(self) -> Executor:
        if self._executor is None:
            raise RuntimeError("the pipeline is not built: call build() or run() first")
        return self._executor

    # ------------------------------------------------------------ asking

    def epoch_size(self, name: str | None = None) -> Any:
        """Return the (padded) size of a reader's epoch, or of all: ``{name: size}``."""
        self.build()
        sizes = {n: self._meta(n)["epoch_size_padded"] for n in self._readers}
        return sizes if name is None else sizes[name]

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Describe a reader, or all: sizes, shards, padding."""
        self.build()
        if name is None:
            return {n: self._meta(n) for n in self._readers}
        if name not in self._readers:
            raise RuntimeError(
                f"there is no reader {name!r}; readers here: {', '.join(self._readers) or 'none'}"
            )
        return self._meta(name)

    def _meta(self, name: str) -> dict[str, int]:
        reader = self._readers[name]
        return reader_meta(len(reader.dataset), reader.cursor.order.options)

    def explain(self) -> str:
        """Return the graph and the plan as text."""
        self.build()
        assert self._plan is not None
        return f"{self._plan.graph}\n\n{self._plan}"

    def bad_sample_report(self) -> list[BadSample]:
        """Return the samples that were skipped or replaced so far."""
        return list(self._bad_samples.report)

    @property
    def prefetch_depth(self) -> int:
        """Batches kept in flight."""
        return max(self._depth) if self._pipelined else 1

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
    def seed(self) -> int:
        """The seed of the random operators."""
        return self._seed

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
    def cpu_queue_size(self) -> int:
        """Depth of the CPU queue."""
        return self._depth[0]

    @property
    def gpu_queue_size(self) -> int:
        """Depth of the GPU queue."""
        return self._depth[1]

    @property
    def prefetch_queue_depth(self) -> int | dict[str, int]:
        """Batches in flight, as given."""
        if self.exec_separated:
            return {"cpu_size": self._depth[0], "gpu_size": self._depth[1]}
        return self._depth[0]

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        self.build()
        return len(self._running.plan.graph.outputs)

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether the pipeline continues from a checkpoint."""
        return self._checkpoint is not None

    def __del__(self) -> None:
        finalizer = getattr(self, "_finalizer", None)
        if finalizer is not None:
            finalizer()


def _option(name: str, doc: str) -> property:
    return property(lambda self: self._options[name], doc=doc)


for _name, _doc in {
    "bytes_per_sample": "A hint; sizes are exact here.",
    "set_affinity": "Whether worker threads are pinned to cores.",
    "max_streams": "Accepted; the device stage has one stream.",
    "default_cuda_stream_priority": "Priority of the device stage's stream.",
    "enable_memory_stats": "Whether statistics include memory.",
    "py_num_workers": "Worker processes of parallel sources.",
    "py_start_method": "How they are started.",
    "exec_dynamic": "Accepted; data may always go back from the device to the CPU.",
    "stream_policy": "Accepted; the device stage has one stream.",
    "concurrency": "Accepted; operators of one batch run in order, samples and batches concurrently.",
}.items():
    setattr(Pipeline, _name, _option(_name, _doc))


def _queue_sizes(depth: int | Mapping[str, int]) -> tuple[int, int]:
    given = depth if isinstance(depth, Mapping) else {"cpu_size": depth, "gpu_size": depth}
    sizes = int(given["cpu_size"]), int(given["gpu_size"])
    if min(sizes) < 1:
        raise ValueError(f"prefetch_queue_depth must be at least 1, got {depth}")
    return sizes


def _output(value: Any, index: int) -> DataNode:
    if isinstance(value, DataNode):
        return value
    if isinstance(value, (bool, int, float, np.ndarray, np.generic, torch.Tensor)) or hasattr(
        value, "as_node"
    ):
        return as_node(value)
    if isinstance(value, (list, tuple)):
        nested = any(isinstance(v, (list, tuple, DataNode)) for v in value)
        if not nested and value and all(isinstance(v, (bool, int, float)) for v in value):
            return as_node(value)
        raise TypeError(
            f"illegal output type: output {index} is a nested {type(value).__name__} of {len(value)} elements; "
            "return the nodes one by one (for example with *)"
        )
    raise TypeError(
        f"illegal output type: output {index} is {value!r} of type {type(value).__name__}"
    )


# ---------------------------------------------------------------- pipeline_def


@overload
def pipeline_def(fn: Callable[..., Any], /) -> Callable[..., Pipeline]: ...
@overload
def pipeline_def(
    fn: None = None, /, *, enable_conditionals: bool = False, **pipeline_kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Pipeline]]: ...
def pipeline_def(
    fn: Any = None, /, *, enable_conditionals: bool = False, **pipeline_kwargs: Any
) -> Any:
    """Turn a function that defines a graph into a factory of pipelines.

    Calling the factory takes the arguments of the function and those of `Pipeline`, which override the
    ones given here.

    Raises:
        AssertionError: at the call, for an argument that neither takes.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Pipeline]:
        own = inspect.signature(function).parameters
        varies = any(p.kind is p.VAR_KEYWORD for p in own.values())

        @functools.wraps(function)
        def create(*args: Any, **kwargs: Any) -> Pipeline:
            given = {
                **pipeline_kwargs,
                **{k: v for k, v in kwargs.items() if k in _PIPELINE_ARGUMENTS and k not in own},
            }
            rest = {k: v for k, v in kwargs.items() if k not in given or k in own}
            unknown = [k for k in rest if k not in own and not varies]
            assert not unknown, (
                f"unknown argument {unknown[0]!r} of pipeline {function.__name__!r}: it is neither an argument "
                "of the function nor of Pipeline"
            )
            pipe = Pipeline(**given)
            defining = convert(function, always=True) if enable_conditionals else function
            pipe._function = functools.partial(defining, *args, **rest)
            with pipe:
                result = pipe._function()
            pipe.set_outputs(*(result if isinstance(result, (tuple, list)) else (result,)))
            return pipe

        create._is_pipeline_def = True  # type: ignore[attr-defined]
        return create

    return decorate if fn is None else decorate(fn)


_PIPELINE_ARGUMENTS = set(inspect.signature(Pipeline.__init__).parameters) - {"self"}
_ = (_graph, types, Sequence)
