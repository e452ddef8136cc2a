"""The class `Pipeline`: a graph of operators, its execution, and its public methods."""

from __future__ import annotations

import inspect
import json
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from torchdali.dali.old_names import PipelineOldNames
from torchdali.errors import strip_internal_frames, warn
from torchdali.execute import checkpoint
from torchdali.execute.bad_samples import BadSample, BadSamples
from torchdali.execute.executor import Executor
from torchdali.execute.timings import Stats
from torchdali.forks import cached_property
from torchdali.formats.shared_folder import write_atomically
from torchdali.graph import nodes, serialization
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import Plan
from torchdali.graph.rewrite import explain_fast_path
from torchdali.graph.unpacking import explain_unpacking
from torchdali.pipeline._api_check import ApiCheck
from torchdali.pipeline._build import RemoteWorkers, build, has_lazy_readers, open_graph
from torchdali.pipeline._graph_builder import GraphBuilder
from torchdali.pipeline._inputs import class_names, convert_input, describe_readers, feed, find_source
from torchdali.pipeline._options import (
    Option,
    PipelineOptions,
    check_known,
    describe_options,
    device_number,
    set_options_signature,
)
from torchdali.pipeline._saved import read_pipeline, write_pipeline
from torchdali.reading.datasets import shared_arguments
from torchdali.reading.sources import BatchSource, SourceBatch
from torchdali.rng import mix
from torchdali.tensors import TensorList
from torchdali.threads import close_abandoned
from torchdali.types import DALIDataType, OperatorConcurrency, PipelineAPIType, StreamPolicy

if TYPE_CHECKING:
    from PIL.Image import Image

    from torchdali.pictures import Svg

__all__ = ["Pipeline"]

_OVERRIDABLE = ("batch_size", "num_threads", "device_id", "seed")
_FED = ("external_source", "experimental.inputs.video")
Self = TypeVar("Self", bound="Pipeline")


def _is_fed(node: Node) -> bool:
    """Return whether a node is a source that waits for `feed_input`."""
    return node.operator.name in _FED and node.constants.get("source") is None


class Pipeline(PipelineOldNames):
    """A graph of operators that computes batches of samples.

    To define the graph, decorate a function with `pipeline_def`. Or call operators inside ``with pipe:``, and pass the
    results to `set_outputs`. Or override `define_graph` in a subclass. A *source* is an operator that gets batches from
    Python, for example `external_source`. A batch is *in flight* after it is scheduled and before its outputs are
    returned.
    """

    __doc__ = f"{inspect.cleandoc(__doc__ or '')}\n\n{describe_options()}"
    external_context: Mapping[str, Any] = {}
    """Values that an iterator has stored in the loaded checkpoint. Empty if no checkpoint was loaded."""
    factory: Callable[[], Pipeline] | None = None
    """Function that creates this pipeline again; None if `pipeline_def` didn't create the pipeline."""

    @set_options_signature(PipelineOptions)
    def __init__(self, *args: Any, **options: Any) -> None:
        check_known(options)
        self._options = PipelineOptions(*args, **options)
        self._builder = GraphBuilder(self)
        self._remote_workers: RemoteWorkers | None = None  # set by `_actors.use_actors`
        self._has_warned = False
        self._bad_samples = BadSamples(self._options.bad_samples, self._options.max_bad_samples)
        self._api_check = ApiCheck()
        self._plan: Plan | None = None
        self._sources: Mapping[Node, BatchSource] = {}
        self._executor: Executor | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._count = 0  # number of batches that the caller has received
        self._is_first_run, self._restored, self._setup_ended = True, False, False
        self._deserialized = False

    batch_size: Option[int | None] = Option()
    num_threads: Option[int | None] = Option()
    device_id: Option[int | None] = Option(device_number)
    seed: Option[int | None] = Option()
    exec_pipelined: Option[bool] = Option()
    exec_async: Option[bool] = Option()
    exec_dynamic: Option[bool | None] = Option()
    prefetch_queue_depth: Option[int | dict[str, int]] = Option()
    bytes_per_sample: Option[int] = Option()
    set_affinity: Option[bool] = Option()
    max_streams: Option[int] = Option()
    default_cuda_stream_priority: Option[int] = Option()
    enable_memory_stats: Option[bool] = Option()
    py_num_workers: Option[int] = Option()
    num_processes: Option[int | None] = Option()
    scaled_decode: Option[bool] = Option()
    py_start_method: Option[str] = Option()
    stream_policy: Option[StreamPolicy | None] = Option()
    concurrency: Option[OperatorConcurrency | None] = Option()
    exact: Option[bool] = Option()
    max_batch_size: Option[int | None] = Option()
    exec_separated: Option[bool] = Option()
    cpu_queue_size: Option[int] = Option()
    gpu_queue_size: Option[int] = Option()

    @property
    def prefetch_depth(self) -> int:
        """Number of batches that `schedule_run` keeps in flight. It is 1 if `exec_pipelined` is false."""
        return max(self._options.depths) if self._options.exec_pipelined else 1

    # ------------------------------------------------------------ defining

    def __enter__(self) -> Pipeline:
        self.push_current(self)
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        self.pop_current()
        explain_unpacking(exception_value, self._builder.tracer.nodes)

    @staticmethod
    def current() -> Any:
        """Return the pipeline that this thread is defining, or None."""
        tracer = nodes.current()
        return None if tracer is None else tracer.owner

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        """Record operators in this pipeline, until `pop_current` is called."""
        pipeline._builder.tracer.__enter__()

    @staticmethod
    def pop_current() -> None:
        """Stop recording operators in the current pipeline. The pipeline that was current before becomes current again.

        Raises:
            RuntimeError: No pipeline is being defined.
        """
        tracer = nodes.current()
        if tracer is None:
            raise RuntimeError("no pipeline is being defined. Call push_current() first")
        tracer.__exit__()

    def define_graph(self) -> Any:
        """Return one output, or a tuple or list of outputs. Override this method to define the graph in a subclass.

        Raises:
            NotImplementedError: The pipeline has no definition of a graph.
        """
        return self._builder.call_definition()

    def set_outputs(self, *output_data_nodes: Any) -> None:
        """Set the outputs of the pipeline: nodes, or constants (numbers, arrays, lists of numbers).

        Raises:
            TypeError: A value can't be an output, for example None, a string, a dict or a nested list.
        """
        self._builder.set_outputs(output_data_nodes)

    def add_sink(self, edge: DataNode) -> None:
        """Mark an operator that must run even if no output needs its results.

        Args:
            edge: An output of the operator.

        Raises:
            TypeError: `edge` isn't an output of an operator.
        """
        self._builder.add_sink(edge)

    def _trace(self) -> Graph:
        return self._builder.trace(self.define_graph)

    def change_readers(self, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
        """Change the readers' common arguments (shards, shuffling, padding) before the pipeline is built.

        Args:
            change: Function that receives a dictionary of a reader's common arguments, and returns the changed
                arguments.

        Raises:
            RuntimeError: The pipeline is already built, or is in debug mode.
        """
        if self.is_built:
            raise RuntimeError("the pipeline is already built: its readers are open, so their arguments cannot change")
        for node in self._trace().nodes:
            if node.operator.kind == "reader":
                node.constants = {**node.constants, **change(shared_arguments(node.constants))}

    # ------------------------------------------------------------ building

    @property
    def is_built(self) -> bool:
        """True after `build` or `start_py_workers` has opened the sources. Then the graph can't change any more."""
        return self._plan is not None or self._executor is not None

    def build(self) -> None:
        """Trace (record) and plan the graph, open the readers and sources, and start the threads.

        If the pipeline is already built, the method does nothing. If a reader has ``lazy_init=True`` and the pipeline
        has no argument ``checkpoint``, the readers are opened and the threads are started when the first batch is
        scheduled.

        Raises:
            ValueError: ``batch_size`` is missing, or there is less than one thread.
            TypeError: ``num_threads`` is missing.
            Exception: The graph is invalid, or the position in the argument ``checkpoint`` doesn't fit the graph.
        """
        if self._executor is not None:
            return
        try:
            self.start_py_workers()
            assert self._plan is not None
            if self._options.checkpoint is not None or not has_lazy_readers(self._plan):
                self._build()
        except Exception as error:
            strip_internal_frames(error)
            raise

    def _build(self) -> None:
        assert self._plan is not None
        executor = build(self._options, self._plan, self._sources, self._bad_samples, self._remote_workers)
        self._executor = executor
        self._finalizer = weakref.finalize(self, close_abandoned, executor)
        if self._options.checkpoint is None:
            return
        try:
            self.load_state_dict(checkpoint.decode(self._options.checkpoint))
        except BaseException:
            self.close()
            self._executor = None
            raise

    def _copy(self, graph: Graph, **options: Any) -> Pipeline:
        """Return a pipeline with another graph and changed options. The new pipeline isn't built yet."""
        copy = Pipeline()
        copy._options = replace(self._options, **options)
        copy._bad_samples = BadSamples(copy._options.bad_samples, copy._options.max_bad_samples)
        copy._builder.graph = graph
        return copy

    def start_py_workers(self) -> None:
        """Trace and plan the graph, and open the sources. This starts the worker processes of parallel sources.

        `build` calls this method. Call it yourself if the processes must be forked before other code starts threads.
        """
        if self._plan is not None:
            return
        self._options.check_complete()
        self._plan, self._sources = open_graph(self._options, self._trace())

    def close(self) -> None:
        """Stop the pipeline's threads and processes. Batches in flight are lost. A second call does nothing."""
        if self._finalizer is not None and self._finalizer.detach() is not None and self._executor is not None:
            self._executor.close()
        for source in self._sources.values():
            source.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a pipeline cannot be pickled or copied: it has threads and open files. Create the pipeline in the "
            "process that uses it; serialize() saves its graph, and checkpoint() its position"
        )

    @property
    def _running(self) -> Executor:
        if self._executor is None:
            self.build()
            if self._executor is None:
                self._build()
        assert self._executor is not None
        return self._executor

    @property
    def _planned(self) -> Executor:
        """The executor of the traced graph. `DebugPipeline` has no traced graph, and raises an error instead."""
        return self._running

    # ------------------------------------------------------------ running

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[TensorList, ...]:
        """Return the outputs of the next batch. The pipeline computes the following batches in the background.

        Args:
            cuda_stream: Stream on which the outputs are used; the current stream by default.
            pipeline_inputs: Batches for sources. ``name=batch`` passes a batch to the source with this name; see
                `feed_input`.

        Raises:
            StopIteration: A source has no more data in this epoch. Call `reset` to start the next epoch.
            RuntimeError: Inputs were passed, but `prefetch_depth` is above 1.
        """
        if pipeline_inputs and self.prefetch_depth > 1:
            raise RuntimeError(
                "run() takes inputs only if one batch is in flight: `prefetch_queue_depth` in Pipeline constructor "
                "shall be set to 1, or `exec_pipelined` to False; or use feed_input() or a source"
            )
        with self.driven_by(PipelineAPIType.BASIC):
            if pipeline_inputs:
                return self._run_alone(pipeline_inputs, cuda_stream)
            self.schedule_run()
            return self.outputs(cuda_stream)

    def run_alone(self, inputs: Mapping[str, Any]) -> tuple[TensorList, ...]:
        """Run one batch on the passed data, and return its outputs. No other batch may be in flight.

        Args:
            inputs: Maps the name of each source to the source's batch; see `feed_input`.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            return self._run_alone(inputs)

    def _run_alone(self, inputs: Mapping[str, Any], stream: Any = None) -> tuple[TensorList, ...]:
        """Run one batch on the passed data, and return its outputs.

        If an interrupted call has left batches in flight, wait for them first and drop their outputs.
        """
        tag = object()
        self._start_one(inputs, tag)
        while True:
            try:
                outputs = self._outputs(stream)
            except Exception:
                if self._running.taken.tag is tag or not self._running.in_flight:
                    raise
            else:
                if self._running.taken.tag is tag:
                    return outputs

    def schedule_run(self) -> None:
        """Start the next batch. The first call starts `prefetch_depth` batches or more."""
        self.build()
        with self.driven_by(PipelineAPIType.SCHEDULED):
            if self._is_first_run and self.prefetch_depth > 1:
                self._prefetch()
            else:
                self._run_once()

    def _prefetch(self) -> None:
        """Start the first batches: as many as the depth of the queue, and more if there are worker processes.

        If a source waits for `feed_input`, worker processes make no difference.
        """
        ahead = 0 if self.input_names else self._running.placement.processes - 1
        for _ in range(max(self._options.depths) + ahead + (ahead > 0)):
            self._start_one()

    def _run_once(self) -> None:
        self._start_one()

    def _start_one(self, inputs: Mapping[str, Any] | None = None, tag: object = None) -> None:
        self._is_first_run = False
        try:
            if not self._setup_ended:
                self.iter_setup()
        except StopIteration:
            self._setup_ended = True
        self._schedule(inputs or {}, tag, self._setup_ended)

    def _schedule(self, inputs: Mapping[str, Any], tag: object = None, ended: bool = False) -> None:
        """Start one batch on the passed data. This batch doesn't use data that `feed_input` has passed to the sources.

        Args:
            inputs: Maps the name of each source to the source's batch.
            tag: Object that `collect` returns together with the batch.
            ended: True if `iter_setup` has ended the epoch. Then no batch is started, and the epoch ends after the
                batches in flight.
        """
        running = self._running
        fed: dict[Node, SourceBatch] = {}
        for name, data in inputs.items():
            converted = convert_input(running, name, data)
            if not converted:
                self.feed_input(name, data)
            fed.update(converted)
        running.schedule(ended, fed=fed, tag=tag)

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Wait for the oldest batch in flight, and return its outputs. The outputs belong to the caller."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            return self._outputs(cuda_stream)

    def _outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        return self._take(cuda_stream)

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Do the same as `outputs`. Scripts that were written for DALI call this method and `release_outputs`.

        Raises:
            StopIteration: A source has ended, or no batch is scheduled.
            RuntimeError: An output doesn't match ``output_dtype``, ``output_ndim`` or ``output_layout``.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            return self._take(cuda_stream)

    @property
    def taken(self) -> int:
        """Number of batches that aren't in flight any more, including failed batches.

        If an interrupt arrived before a method could return the outputs, the caller has received one batch less.
        """
        return 0 if self._executor is None else self._executor.taken.number

    def share_next(self, taken: int) -> tuple[TensorList, ...]:
        """Return the outputs of the batch with index `taken`.

        If an interrupt prevented the caller from receiving the outputs, a second call returns the same outputs.

        Args:
            taken: Number of batches that the caller has received so far.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._count = taken
            return self._take(None)

    def collect(self, taken: int) -> tuple[object, tuple[TensorList, ...] | Exception] | None:
        """Wait for the batch with index `taken`. Return its tag, and its outputs or the error that it raised.

        The result is None if no batch is in flight. `taken` has the same meaning as in `share_next`.
        """
        running = self._running
        previous = running.taken
        if not running.in_flight and taken >= previous.number:
            return None
        try:
            outputs = self.share_next(taken)
            return running.taken.tag, outputs
        except Exception as error:
            if running.taken.tag is previous.tag and taken == previous.number:
                raise  # the error doesn't belong to a batch, because no batch was taken
            return running.taken.tag, error

    def _take(self, cuda_stream: Any) -> tuple[TensorList, ...]:
        running, count = self._running, self._count
        if not running.in_flight and count >= running.taken.number:
            raise StopIteration("no batch is scheduled. Call schedule_run() first")
        try:
            batch = running.pop(cuda_stream, count)
            if self._options.output_specs.is_declared:
                self._options.output_specs.check(batch.outcome.outputs)
            if self._bad_samples.report and not self._has_warned:
                self._has_warned = True
                warn(f"a bad sample was skipped (stats() lists all of them): {self._bad_samples.report[0]}")
        except Exception:
            self._count = running.taken.number
            raise
        self._count = count + 1  # if an interrupt arrives before this assignment, the next call returns the same batch
        return batch.outcome.outputs

    def release_outputs(self) -> None:
        """Drop the pipeline's reference to the last batch. Outputs that the caller still holds remain valid."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            if self._executor is not None and self._count >= self._executor.taken.number:
                self._executor.release()

    def reset(self) -> None:
        """Start the next epoch, after `run` has raised StopIteration; otherwise do nothing."""
        if self._executor is not None and self._executor.empty and self._executor.stopped:
            self._executor.reset()
            self._is_first_run, self._setup_ended = True, False

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a pipeline can't be looped over. Write `for batch in Loader(pipe)`, or pipe.run() for one batch"
        )

    def empty(self) -> bool:
        """Return False while a scheduled batch is waiting to be taken, otherwise True."""
        return self._executor is None or self._executor.empty

    def iter_setup(self) -> None:
        """Override this method to call `feed_input`. The pipeline calls `iter_setup` before each batch.

        To end the epoch, raise StopIteration. Then the method isn't called again before `reset`.
        """

    def enable_api_check(self, enable: bool) -> None:
        """Set whether the pipeline raises an error if a program mixes `run`, `schedule_run` and iterators.

        Args:
            enable: True (the default) to raise an error.
        """
        self._api_check.enabled = enable

    def driven_by(self, api: PipelineAPIType) -> AbstractContextManager[None]:
        """Return a context in which a method runs batches. The context checks that the program uses only one API.

        The APIs are `run`, `schedule_run` with `outputs`, and iterators. These APIs count batches differently, so a
        program that mixes them would skip batches. Inside the context, all methods of the pipeline can be called.

        Args:
            api: The API to which the method belongs.

        Raises:
            RuntimeError: The program has already used another API of this pipeline.
        """
        return self._api_check.driven_by(api)

    # ------------------------------------------------------------ feeding

    def feed_input(
        self,
        data_node: Any,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Pass the next batch to an `external_source` without the argument ``source``.

        The method also passes encoded videos to `experimental.inputs.video`.

        Args:
            data_node: The source's node, name or operator.
            data: A batch: an array, a tensor, a `TensorList`, or a list of samples.
            layout: Layout of a sample.
            cuda_stream: Stream on which data on a GPU was computed; the current stream by default.
            use_copy_kernel: Accepted, without effect.

        Raises:
            KeyError: The graph doesn't contain the source.
            TypeError: `data_node` is neither a node, a name nor an operator.
            RuntimeError: The `external_source` has the argument ``source``, or the data isn't a batch of at most
                ``batch_size`` samples.
        """
        feed(self._running, data_node, data, layout, cuda_stream)

    def input_feed_count(self, input_name: str) -> int:
        """Return how many batches `feed_input` must pass before the first run; raise KeyError for an unknown name."""
        find_source(self._running, input_name)
        return max(self._options.depths)

    @property
    def input_names(self) -> list[str]:
        """Names of the sources that wait for `feed_input`, in the order in which the graph defines the sources."""
        return [node.name for node in self._trace().nodes if _is_fed(node)]

    def submit(self, **inputs: Any) -> None:
        """Start exactly one batch on the passed data. `outputs` returns the batches in order.

        Unlike `schedule_run`, the first call also starts only one batch. Invalid data raises the same errors as in
        `feed_input`. If the method raises an error, it hasn't started a batch.

        Args:
            inputs: ``name=batch`` passes a batch to the source with this name.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._is_first_run = False
            self._schedule(inputs)

    def submit_as(self, tag: object, inputs: Mapping[str, Any]) -> None:
        """Start a batch like `submit`. `collect` returns the batch together with the tag. Tags must be unique."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._is_first_run = False
            self._schedule(inputs, tag)

    def submit_records(self, records: Sequence[int], key: int) -> None:
        """Start a batch that consists of the passed records of the reader. `outputs` returns the batches in order.

        Args:
            records: Index of each sample's record in the dataset. An index may occur several times.
            key: Seed of the batch's random numbers. A sample's random numbers depend only on the key and on the
                sample's position in the batch.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._is_first_run = False
            planned = self._planned
            keys = [mix(key, stream) for stream in range(self._streams)]
            planned.schedule(random_keys=keys, records=np.asarray(records, np.int64))

    @cached_property
    def _streams(self) -> int:
        return 1 + max(node.stream for node in self._planned.plan.graph.nodes)

    def skip(self, batches: int) -> None:
        """Skip the next batches that aren't scheduled yet, without computing them.

        Skipping takes some microseconds per batch. The batches after the skipped batches are the same as if the skipped
        batches had been computed. `state_dict` counts the skipped batches only after the next batch was taken.

        Args:
            batches: Number of batches to skip.

        Raises:
            ValueError: The number is negative.
            RuntimeError: The pipeline has an external source, or is in debug mode.
        """
        if batches < 0:
            raise ValueError(f"the number of batches to skip must be at least 0, got {batches}")
        self._planned.skip(batches)

    # ------------------------------------------------------------ position and graph, saved

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last batch that was taken, as JSON values.

        Batches in flight don't count. A pipeline that resumes from this position computes these batches again.
        """
        return checkpoint.encode({**self._planned.taken_state, "files": self._file_lists}, self._fingerprint)

    @cached_property
    def _fingerprint(self) -> list[str]:
        return checkpoint.fingerprint(self._trace())

    @cached_property
    def _file_lists(self) -> dict[str, str]:
        return self._planned.file_lists()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a position from `state_dict`. Batches in flight are dropped.

        The pipeline must have the same graph as the one that saved the position. Batch size, number of threads, queue
        depth and the location of the data may differ. The pipeline's seed is replaced by the seed in the position.

        Raises:
            RuntimeError: The graph differs (the message has the differing lines), or the position belongs to another
                dataset or shard.

        Warns:
            UserWarning: A reader's files, or their order, have changed since the position was saved.
        """
        checkpoint.check(state, self._fingerprint)
        checkpoint.check_files(state, self._file_lists)
        with checkpoint.restoring():
            self._planned.restore(state)
        self._is_first_run, self._restored = True, True
        self.external_context = state.get("external_context", {})

    def checkpoint(self, filename: str | None = None) -> bytes:
        """Return the position after the last batch that was taken, for ``Pipeline(checkpoint=...)``.

        Args:
            filename: File to which the checkpoint is also written.
        """
        data = json.dumps(self.state_dict()).encode()
        if filename is not None:
            write_atomically(os.path.abspath(filename), [data], durable=True)
        return data

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """True if the pipeline continues from a saved position.

        If the pipeline has an argument ``checkpoint``, this becomes True in `build`.
        """
        return self._restored

    # ------------------------------------------------------------ the graph

    def serialize(self, define_graph: Callable[[], Any] | None = None, filename: str | None = None) -> bytes:
        """Return the graph and the pipeline's arguments as JSON text, for `deserialize`.

        Args:
            define_graph: Function that defines the graph; None if the graph is already defined.
            filename: File to which the text is also written.

        Raises:
            TypeError: ``define_graph`` isn't a function.
            RuntimeError: An argument of an operator is a Python object, for example a callback. The message names the
                operator and the argument.
        """
        if define_graph is not None and not callable(define_graph):
            raise TypeError(
                f"define_graph must be callable and return the outputs, got {define_graph!r}. Pass the name of a "
                f"file as filename="
            )
        if define_graph is not None and self._builder.function is None:
            self._builder.function = define_graph
        return write_pipeline(self._options, self._trace(), filename)

    @classmethod
    def deserialize(
        cls: type[Self],
        serialized_pipeline: str | bytes | None = None,
        filename: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create a pipeline from the result of `serialize`.

        If the pipeline has sources that wait for `feed_input`, only one batch is in flight, as in DALI. So one
        `feed_input` per `run` is enough, and `run` accepts inputs. Pass ``exec_pipelined=True`` for several batches in
        flight.

        Args:
            serialized_pipeline: The result of `serialize`.
            filename: The file that `serialize` wrote, instead of `serialized_pipeline`.
            kwargs: Arguments of `Pipeline` that override the saved arguments.

        Raises:
            ValueError: Both `serialized_pipeline` and `filename` are set, or neither.
            RuntimeError: The data isn't a saved pipeline, or it uses an operator that isn't declared.
        """
        arguments, graph = read_pipeline(serialized_pipeline, filename)
        if any(map(_is_fed, graph.nodes)):
            arguments["exec_pipelined"] = False
        pipe = cls(**{**arguments, **kwargs})
        pipe._builder.graph, pipe._deserialized = graph, True
        return pipe

    def deserialize_and_build(self, serialized_pipeline: str | bytes) -> None:
        """Load a graph from the result of `serialize`, and build this pipeline with it.

        If batch size, number of threads, device or seed were passed to this pipeline, they override the saved values.
        """
        arguments, self._builder.graph = read_pipeline(serialized_pipeline)
        passed = {k: v for k in _OVERRIDABLE if (v := getattr(self._options, k)) is not None}
        self._options = replace(self._options, **{k: arguments[k] for k in _OVERRIDABLE if k in arguments} | passed)
        self.build()

    def save_graph_to_dot_file(
        self,
        filename: str,
        *,
        show_tensors: bool = False,
        show_ids: bool | None = None,
        use_colors: bool = False,
    ) -> None:
        """Write a drawing of the graph in Graphviz's dot language.

        Args:
            filename: File to write.
            show_tensors: True to draw the operators' outputs as separate boxes.
            show_ids: Accepted, without effect, as in DALI.
            use_colors: True to color operators by device.
        """
        text = serialization.dot(self._trace(), show_tensors=show_tensors, use_colors=use_colors)
        Path(filename).write_text(text, encoding="utf-8")

    # ------------------------------------------------------------ drawings

    def show(self, path: str | os.PathLike[str] | None = None, *, each: bool = False, **options: Any) -> Image:
        """Return a contact sheet of the next batch. The pipeline's position doesn't change.

        A copy of the pipeline computes the batch, with its own readers and sources. If a source is a function, the copy
        calls the function once more; iterators aren't supported. A notebook displays the result. Elsewhere, call
        ``pipe.show().show()`` to open a window.

        Args:
            path: File to which the sheet is also saved.
            each: True to draw one row per operator, all with the same samples. Operators in branches of an ``if`` are
                skipped.
            options: Options of `torchdali.pictures.show`; with `each`, only ``count``, ``size`` and ``classes``.

        Raises:
            RuntimeError: A source waits for `feed_input` or is an iterator, or the pipeline is in debug mode.
            ValueError: None of the outputs can be drawn; with `each`, none of the operators' results can be drawn.
            TypeError: An option isn't supported with `each`.
        """
        from torchdali.pipeline import _pictures

        return (_pictures.show_each if each else _pictures.show_next)(self, path, options)

    def show_graph(self, path: str | os.PathLike[str] | None = None) -> Svg:
        """Return a drawing of the graph as SVG text, which a notebook displays.

        If the pipeline has run, each box contains its operator's time as in `stats`. With ``enable_memory_stats``, the
        box also contains the size of the operator's outputs in the last batch.

        Args:
            path: File to which the SVG is also saved.

        Raises:
            RuntimeError: The pipeline is in debug mode.
        """
        from torchdali.pipeline import _pictures

        drawing = _pictures.svg(self)
        if path is not None:
            drawing.save(path)
        return drawing

    def _repr_html_(self) -> str:
        from torchdali.pipeline import _pictures

        return _pictures.html(self)

    # ------------------------------------------------------------ questions

    @property
    def num_outputs(self) -> int:
        """Number of the pipeline's outputs."""
        return len(self._trace().outputs)

    def output_dtype(self) -> list[DALIDataType | None]:
        """Return the declared dtype of each output; None for an output without a declaration."""
        return [dtype for dtype, _, _ in self._options.output_specs.per_output(self.num_outputs)]

    def output_ndim(self) -> list[int | None]:
        """Return the declared number of dimensions of each output; None for an output without a declaration."""
        return [ndim for _, ndim, _ in self._options.output_specs.per_output(self.num_outputs)]

    def output_stream(self) -> Any:
        """Return the stream on which operators on the device run; None on the CPU.

        You needn't synchronize with this stream. When you take a batch, your current stream waits for its outputs.
        """
        return self._planned.device_stream.stream

    def epoch_size(self, name: str | None = None) -> Any:
        """Return the number of samples in a reader's epoch, including padding.

        Without a name, return a dictionary with the numbers of all readers.
        """
        if name is None:
            return {n: meta["epoch_size_padded"] for n, meta in self.reader_meta().items()}
        return self.reader_meta(name)["epoch_size_padded"]

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Return a dictionary with the sizes, shards and padding of a reader.

        Without a name, return a dictionary that maps the name of each reader to the reader's dictionary.

        Raises:
            RuntimeError: No reader has this name.
        """
        return describe_readers(self._running, name)

    def shuffles(self, reader: str) -> bool:
        """Return whether a reader shuffles its samples."""
        arguments = [shared_arguments(node.constants) for node in self._running.readers if node.name == reader]
        return any(each["random_shuffle"] or each["shuffle_after_epoch"] for each in arguments)

    @property
    def classes(self) -> list[str]:
        """The class names of the first reader that has class names. The label of a class is the index of its name.

        Raises:
            AttributeError: No reader has class names.
        """
        return class_names(self._running)

    def executor_statistics(self) -> dict[str, dict[str, list[int]]]:
        """Return the memory of each operator's outputs: ``{operator: {measure: [one value per output]}}``.

        The measures have DALI's names. ``real_memory_size`` and ``reserved_memory_size`` are the bytes of an output in
        the last batch; ``max_real_memory_size`` and ``max_reserved_memory_size`` are the bytes of the largest sample.
        If the next operator processes an output sample by sample, the output is never stored for the whole batch, and
        its measures are 0. The keys ``CPU_output_0``, ``CPU_output_1`` and so on refer to the pipeline's outputs;
        ``GPU_output_0`` to an output on the GPU. Without ``enable_memory_stats``, the result is empty.
        """
        planned = self._planned
        return planned.memory.summary(planned.plan.graph)

    def external_source_shm_statistics(self) -> dict[str, list[Any]]:
        """Return DALI's dictionary, with empty lists, because torchdali's shared memory has no fixed capacity."""
        return {"capacities": [], "per_sample_capacities": []}

    def explain(self) -> str:
        """Return a text that explains how the pipeline runs.

        The text contains the graph and its division into stages. It lists the operators whose results are cached, and
        the operators that run in the native library. It says why the pipeline has, or doesn't have, worker processes.
        It also lists the operators that failed on several samples in one call, and were then called per sample.
        """
        executor = self._planned
        plan, placement = executor.plan, executor.placement
        lines = [str(plan.graph), "", str(plan), *explain_fast_path(plan.graph)]
        for cache in executor.caches:
            lines += [*cache.explain_store(), *(f"  {line}" for line in explain_fast_path(cache.graph))]
        if placement.stages or placement.reason:
            lines += [str(placement), *executor.exits]
        lines += map(str, executor.profile.fallbacks())
        return "\n".join(lines)

    def bad_sample_report(self) -> list[BadSample]:
        """Return the samples that were skipped or replaced so far."""
        return sorted(self._bad_samples.report, key=lambda bad: (bad.batch, bad.sample))

    def stats(self) -> Stats:
        """Return the time spent in operators, in waiting for batches, and in your loop. `print` shows a table."""
        return replace(self._running.stats(), skipped=tuple(dict.fromkeys(map(str, self.bad_sample_report()))))

    def trace(self) -> None:
        """Start to record the time of every operator call, for `write_trace`."""
        self._running.profile.trace()

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the recorded times as JSON for a browser's trace viewer (``chrome://tracing``, Perfetto).

        Raises:
            RuntimeError: `trace` wasn't called before.
        """
        self._running.profile.write_trace(path)
