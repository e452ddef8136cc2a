"""The class `Pipeline`: a graph of operators, its runner, and its public methods."""

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
from torchdali.formats.shared_folder import write_whole
from torchdali.graph import nodes, serialization
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import Plan
from torchdali.graph.rewrite import fast_path
from torchdali.graph.unpacking import explain_unpacking
from torchdali.pipeline._api_check import ApiCheck
from torchdali.pipeline._build import Elsewhere, build, has_lazy_readers, open_graph
from torchdali.pipeline._graph_builder import GraphBuilder
from torchdali.pipeline._inputs import as_given, class_names, describe_readers, feed, find_source
from torchdali.pipeline._options import (
    Option,
    PipelineOptions,
    check_known,
    describe_options,
    device_number,
    takes_options,
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

_TAKEN_OVER = ("batch_size", "num_threads", "device_id", "seed")
_FED = ("external_source", "experimental.inputs.video")
Self = TypeVar("Self", bound="Pipeline")


def _is_fed(node: Node) -> bool:
    """Return True for a source that waits for `feed_input`."""
    return node.operator.name in _FED and node.constants.get("source") is None


class Pipeline(PipelineOldNames):
    """A graph of operators and its runner.

    Define the graph in one of three ways: decorate a function with `pipeline_def`; call operators inside
    ``with pipe:`` and name the results with `set_outputs`; or override `define_graph`.
    """

    __doc__ = f"{inspect.cleandoc(__doc__ or '')}\n\n{describe_options()}"
    external_context: Mapping[str, Any] = {}
    """Values that an iterator added to the checkpoint that the pipeline continues."""
    factory: Callable[[], Pipeline] | None = None
    """Makes this pipeline anew, if a function under `pipeline_def` made it."""

    @takes_options(PipelineOptions)
    def __init__(self, *args: Any, **options: Any) -> None:
        check_known(options)
        self._options = PipelineOptions(*args, **options)
        self._builder = GraphBuilder(self)
        self._elsewhere: Elsewhere | None = None  # see `_actors`
        self._has_warned = False
        self._bad_samples = BadSamples(self._options.bad_samples, self._options.max_bad_samples)
        self._api_check = ApiCheck()
        self._plan: Plan | None = None
        self._sources: Mapping[Node, BatchSource] = {}
        self._executor: Executor | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._count = 0  # batches that were returned, see `Taken.number`
        self._first, self._restored, self._setup_ended = True, False, False
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
        """Batches kept in flight."""
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
        """Record operators in a pipeline, until `pop_current`."""
        pipeline._builder.tracer.__enter__()

    @staticmethod
    def pop_current() -> None:
        """Record operators where they were recorded before `push_current`.

        Raises:
            RuntimeError: no pipeline is being defined.
        """
        tracer = nodes.current()
        if tracer is None:
            raise RuntimeError("no pipeline is being defined: push_current() comes before")
        tracer.__exit__()

    def define_graph(self) -> Any:
        """Return the outputs: one, or a tuple or list of them; override it to define the graph in a subclass.

        Raises:
            NotImplementedError: nothing defines the graph.
        """
        return self._builder.call_definition()

    def set_outputs(self, *output_data_nodes: Any) -> None:
        """Name the outputs of the pipeline: nodes, or constants (numbers, arrays, lists of numbers).

        Raises:
            TypeError: a value that cannot be an output, for example None, a string, a dict or a nested list.
        """
        self._builder.set_outputs(output_data_nodes)

    def add_sink(self, edge: DataNode) -> None:
        """Run the operator of an edge although no output needs it.

        Raises:
            TypeError: something that is not an output of an operator.
        """
        self._builder.add_sink(edge)

    def _trace(self) -> Graph:
        return self._builder.trace(self.define_graph)

    def change_readers(self, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
        """Change arguments that all readers share (shards, shuffling, padding), before the pipeline is built.

        Args:
            change: Called for each reader with these arguments; returns those that change.

        Raises:
            RuntimeError: the pipeline is built, or is in debug mode.
        """
        if self.is_built:
            raise RuntimeError("the pipeline is built: its readers are open, and their arguments can change no more")
        for node in self._trace().nodes:
            if node.operator.kind == "reader":
                node.constants = {**node.constants, **change(shared_arguments(node.constants))}

    # ------------------------------------------------------------ building

    @property
    def is_built(self) -> bool:
        """True once the sources are open; the graph can change no more."""
        return self._plan is not None or self._executor is not None

    def build(self) -> None:
        """Trace, plan, open the readers and start the threads; does nothing the second time.

        With a reader that has ``lazy_init``, readers are opened and threads started when the first batch is asked for.

        Raises:
            ValueError: no ``batch_size``, or less than one thread. TypeError: no ``num_threads``. Otherwise
            errors of the graph, and errors of `load_state_dict` for the argument ``checkpoint``.
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
        executor = build(self._options, self._plan, self._sources, self._bad_samples, self._elsewhere)
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
        """Return a pipeline of a graph, with options that differ; it isn't built."""
        copy = Pipeline()
        copy._options = replace(self._options, **options)
        copy._bad_samples = BadSamples(copy._options.bad_samples, copy._options.max_bad_samples)
        copy._builder.graph = graph
        return copy

    def start_py_workers(self) -> None:
        """Trace, plan and open the sources, which starts the worker processes of parallel ones.

        `build` does it; call it before if the processes should be forked before something else starts.
        """
        if self._plan is not None:
            return
        self._options.check_complete()
        self._plan, self._sources = open_graph(self._options, self._trace())

    def close(self) -> None:
        """End the pipeline's threads; batches in flight are lost. May be called again."""
        if self._finalizer is not None and self._finalizer.detach() is not None and self._executor is not None:
            self._executor.close()
        for source in self._sources.values():
            source.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a pipeline cannot be pickled or copied: it has threads and open files. Make it in the process that uses "
            "it; serialize() saves its graph, and checkpoint() its position"
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
        """The executor of a graph that was traced before; debug mode has none."""
        return self._running

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
                "run() takes inputs only if one batch is in flight: `prefetch_queue_depth` in Pipeline constructor "
                "shall be set to 1, or `exec_pipelined` to False; or use feed_input() or a source"
            )
        with self.driven_by(PipelineAPIType.BASIC):
            if pipeline_inputs:
                return self._run_alone(pipeline_inputs, cuda_stream)
            self.schedule_run()
            return self.outputs(cuda_stream)

    def run_alone(self, inputs: Mapping[str, Any]) -> tuple[TensorList, ...]:
        """Return the outputs of one batch with data for its sources; nothing else is kept in flight."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            return self._run_alone(inputs)

    def _run_alone(self, inputs: Mapping[str, Any], stream: Any = None) -> tuple[TensorList, ...]:
        """Run one batch with data for its sources; drop older batches, which an interrupted call may have started."""
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
        """Start the next batch; the first call fills the queue with batches."""
        self.build()
        with self.driven_by(PipelineAPIType.SCHEDULED):
            if self._first and self.prefetch_depth > 1:
                self._prefetch()
            else:
                self._run_once()

    def _prefetch(self) -> None:
        """Fill the queue with batches; if called directly, as in DALI, even if the pipeline is not pipelined.

        With replicas, one more for each but the first, so that all are at work; not if batches are fed one by one.
        """
        ahead = 0 if self.input_names else self._running.placing.processes - 1
        for _ in range(max(self._options.depths) + ahead + (ahead > 0)):
            self._start_one()

    def _run_once(self) -> None:
        self._start_one()

    def _start_one(self, inputs: Mapping[str, Any] | None = None, tag: object = None) -> None:
        self._first = False
        try:
            if not self._setup_ended:
                self.iter_setup()
        except StopIteration:
            self._setup_ended = True
        self._schedule(inputs or {}, tag, self._setup_ended)  # after the batches in flight

    def _schedule(self, inputs: Mapping[str, Any], tag: object = None, ended: bool = False) -> None:
        """Start one batch with data for its sources; other data that waits for the sources is not used."""
        running = self._running
        fed: dict[Node, SourceBatch] = {}
        for name, data in inputs.items():
            given = as_given(running, name, data)
            if not given:
                self.feed_input(name, data)
            fed.update(given)
        running.schedule(ended, fed=fed, tag=tag)

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Wait for the oldest batch in flight and return its outputs; they are the caller's to keep."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            return self._outputs(cuda_stream)

    def _outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        return self._take(cuda_stream)

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Like `outputs`; kept apart because DALI's scripts pair it with `release_outputs`.

        Raises:
            StopIteration: a source is at its end, or nothing is scheduled. RuntimeError: an output is not
            the declared ``output_dtype``, ``output_ndim`` or ``output_layout``.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            return self._take(cuda_stream)

    @property
    def taken(self) -> int:
        """Number of batches taken so far, by whatever method; batches that failed count."""
        return 0 if self._executor is None else self._executor.taken.number

    def share_next(self, taken: int) -> tuple[TensorList, ...]:
        """Like `share_outputs`, after a number of batches: repeated, it returns the same one.

        Args:
            taken: Number of batches that the caller has got, see `taken`.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._count = taken
            return self._take(None)

    def collect(self, taken: int) -> tuple[object, tuple[TensorList, ...] | Exception] | None:
        """Wait for the batch after a number of batches; return its tag, and its outputs or error, or None.

        Args:
            taken: See `share_next`.
        """
        running = self._running
        before = running.taken
        if not running.in_flight and taken >= before.number:
            return None
        try:
            outputs = self.share_next(taken)
            return running.taken.tag, outputs
        except Exception as error:
            if running.taken.tag is before.tag and taken == before.number:
                raise  # it came from outside: no batch was taken
            return running.taken.tag, error

    def _take(self, cuda_stream: Any) -> tuple[TensorList, ...]:
        running, count = self._running, self._count
        if not running.in_flight and count >= running.taken.number:
            raise StopIteration("no batch is scheduled: call schedule_run() before")
        try:
            batch = running.pop(cuda_stream, count)
            if self._options.output_specs.given:
                self._options.output_specs.check(batch.outcome.outputs)
            if self._bad_samples.report and not self._has_warned:
                self._has_warned = True
                warn(f"a bad sample was left out (stats() lists all of them): {self._bad_samples.report[0]}")
        except Exception:
            self._count = running.taken.number
            raise
        self._count = count + 1  # after an interrupt before this store the next call takes the batch
        return batch.outcome.outputs

    def release_outputs(self) -> None:
        """Release the last batch; batches that the caller holds stay whole."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            if self._executor is not None and self._count >= self._executor.taken.number:
                self._executor.release()

    def reset(self) -> None:
        """Start the next epoch after StopIteration; otherwise nothing happens."""
        if self._executor is not None and self._executor.empty and self._executor.stopped:
            self._executor.reset()
            self._first, self._setup_ended = True, False

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a pipeline can't be looped over: write `for batch in Loader(pipe)`, or pipe.run() for one batch"
        )

    def empty(self) -> bool:
        """Return whether no batch is scheduled and not yet taken; the end of an epoch is none."""
        return self._executor is None or self._executor.empty

    def iter_setup(self) -> None:
        """Called before every batch is scheduled; override it to `feed_input` there.

        StopIteration from it ends the epoch: it is called again after `reset`.
        """

    def enable_api_check(self, enable: bool) -> None:
        """Refuse to mix `run`, `schedule_run` and iterators (the default), or allow it."""
        self._api_check.enabled = enable

    def driven_by(self, api: PipelineAPIType) -> AbstractContextManager[None]:
        """Drive the pipeline in one of DALI's styles; inside, all methods are allowed.

        Batches are counted differently in each, so that mixing them would skip some.

        Raises:
            RuntimeError: it was driven in another style before.
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
        """Give an `external_source` without a source its next batch, or `experimental.inputs.video` a video.

        Args:
            data_node: The source's node, name or operator.
            data: A batch: an array, a tensor, a `TensorList`, or a list of samples.
            layout: Layout of a sample.
            cuda_stream: Stream on which data of a GPU were made; the current one by default.
            use_copy_kernel: Accepted, without effect.

        Raises:
            KeyError: the source isn't in the graph. TypeError: neither a node, a name nor an operator.
            RuntimeError: the source has its own data, or the data is not a batch (of at most ``batch_size``).
        """
        feed(self._running, data_node, data, layout, cuda_stream)

    def input_feed_count(self, input_name: str) -> int:
        """Return how many batches to feed before the first run; KeyError for an unknown name."""
        find_source(self._running, input_name)
        return max(self._options.depths)

    @property
    def input_names(self) -> list[str]:
        """Names of the sources that wait for `feed_input`, in the order of their definition."""
        return [node.name for node in self._trace().nodes if _is_fed(node)]

    def submit(self, **inputs: Any) -> None:
        """Start exactly one batch with data for its sources; `outputs` returns it when its turn comes.

        Unlike `schedule_run`, it starts one batch the first time too.

        Raises:
            As `feed_input`, and then nothing is started.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._first = False
            self._schedule(inputs)

    def submit_as(self, tag: object, inputs: Mapping[str, Any]) -> None:
        """Start a batch like `submit`; `collect` returns it with its tag, which no other batch has."""
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._first = False
            self._schedule(inputs, tag)

    def submit_records(self, records: Sequence[int], key: int) -> None:
        """Start a batch of certain records of the reader; `outputs` returns it when its turn comes.

        Args:
            records: Numbers of the records, in order; they may repeat.
            key: Key of the batch's random numbers: the same key and place in the batch give the same ones.
        """
        with self.driven_by(PipelineAPIType.SCHEDULED):
            self._first = False
            planned = self._planned
            keys = [mix(key, stream) for stream in range(self._streams)]
            planned.schedule(random_keys=keys, records=np.asarray(records, np.int64))

    @cached_property
    def _streams(self) -> int:
        return 1 + max(node.stream for node in self._planned.plan.graph.nodes)

    def skip(self, batches: int) -> None:
        """Pass over the next batches that are not scheduled yet, without computing them.

        It costs some microseconds per batch. The next batch is the one that a checkpoint at this place would give.
        `state_dict` returns the new place once this batch is taken.

        Args:
            batches: How many.

        Raises:
            ValueError: a negative number. RuntimeError: the pipeline has an external source, or is in debug mode.
        """
        if batches < 0:
            raise ValueError(f"skip({batches}): the number of batches must be 0 or more")
        self._planned.skip(batches)

    # ------------------------------------------------------------ position and graph, saved

    def state_dict(self) -> dict[str, Any]:
        """Return the place after the last batch that was taken, as JSON values.

        It costs nothing, and counts only batches that were taken: batches in flight are made again after resuming.
        """
        return checkpoint.encode({**self._planned.taken_state, "files": self._file_lists}, self._fingerprint)

    @cached_property
    def _fingerprint(self) -> list[str]:
        return checkpoint.fingerprint(self._trace())

    @cached_property
    def _file_lists(self) -> dict[str, str]:
        return self._planned.file_lists()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a place that `state_dict` returned; batches in flight are dropped.

        The pipeline must have the same graph; batch size, threads, queue depth and the location of the data
        may differ. The random seed is the seed of the position.

        Raises:
            RuntimeError: the graph is another one, with the lines that differ; or the place is of another
            dataset or shard.

        Warns:
            UserWarning: a reader has other files than the place was saved with, or has them in another order.
        """
        checkpoint.check(state, self._fingerprint)
        checkpoint.check_files(state, self._file_lists)
        with checkpoint.restoring():
            self._planned.restore(state)
        self._first, self._restored = True, True
        self.external_context = state.get("external_context", {})

    def checkpoint(self, filename: str | None = None) -> bytes:
        """Return the place after the last batch that was taken, for ``Pipeline(checkpoint=...)``.

        Args:
            filename: Where to write it, too.
        """
        data = json.dumps(self.state_dict()).encode()
        if filename is not None:
            write_whole(os.path.abspath(filename), [data], lasting=True)
        return data

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """True if the pipeline continues from a saved place; known once it is built."""
        return self._restored

    # ------------------------------------------------------------ the graph

    def serialize(self, define_graph: Callable[[], Any] | None = None, filename: str | None = None) -> bytes:
        """Return graph and arguments as JSON text, for `deserialize`.

        Args:
            define_graph: Defines the graph, if nothing else does.
            filename: Where to write it, too.

        Raises:
            TypeError: ``define_graph`` isn't a function.
            RuntimeError: an argument of an operator is a Python object, for example a callback; names both.
        """
        if define_graph is not None and not callable(define_graph):
            raise TypeError(
                f"define_graph={define_graph!r}: it must be callable, a function that returns the outputs; the name of "
                "a file is given as filename="
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
        """Return the pipeline that `serialize` wrote.

        One that is fed keeps a single batch in flight, as in DALI: one `feed_input` a `run` is enough, and `run` takes
        inputs. ``exec_pipelined=True`` lets it work ahead.

        Args:
            serialized_pipeline: The result of `serialize`; or
            filename: the file it wrote.
            kwargs: Arguments of `Pipeline` that override the saved ones.

        Raises:
            ValueError: not exactly one of the two. RuntimeError: the data isn't a saved pipeline, or it uses an
            operator that is not declared.
        """
        arguments, graph = read_pipeline(serialized_pipeline, filename)
        if any(map(_is_fed, graph.nodes)):
            arguments["exec_pipelined"] = False
        pipe = cls(**{**arguments, **kwargs})
        pipe._builder.graph, pipe._deserialized = graph, True
        return pipe

    def deserialize_and_build(self, serialized_pipeline: str | bytes) -> None:
        """Take over the graph that `serialize` wrote, and build it.

        Batch size, number of threads, device and seed are taken from the saved arguments, unless this pipeline was
        given them.
        """
        arguments, self._builder.graph = read_pipeline(serialized_pipeline)
        own = {k: v for k in _TAKEN_OVER if (v := getattr(self._options, k)) is not None}
        self._options = replace(self._options, **{k: arguments[k] for k in _TAKEN_OVER if k in arguments} | own)
        self.build()

    def save_graph_to_dot_file(
        self,
        filename: str,
        *,
        show_tensors: bool = False,
        show_ids: bool | None = None,
        use_colors: bool = False,
    ) -> None:
        """Write a drawing of the graph in the language of Graphviz.

        Args:
            filename: Where to.
            show_tensors: Draw the edges as boxes of their own.
            show_ids: Accepted, without effect, as in DALI.
            use_colors: Colour operators by device.
        """
        text = serialization.dot(self._trace(), show_tensors=show_tensors, use_colors=use_colors)
        Path(filename).write_text(text, encoding="utf-8")

    # ------------------------------------------------------------ drawings

    def show(self, path: str | os.PathLike[str] | None = None, *, each: bool = False, **options: Any) -> Image:
        """Return a contact sheet of the next batch; the pipeline's position doesn't change.

        A copy of the pipeline makes the batch, with its own readers and sources. A source that is a function is called
        once more; an iterator cannot be asked twice. This doesn't open a window: a notebook displays the result;
        elsewhere, call its method ``show()``.

        Args:
            path: Where to save it, too.
            each: Draw one row per operator, all with the same samples; operators in branches are left out.
            options: Options of `torchdali.pictures.show`; `each` takes ``count``, ``size`` and ``classes``.

        Raises:
            RuntimeError: a source waits for `feed_input`, or is an iterator; the pipeline is in debug mode.
            ValueError: no output, or with `each` no result of an operator, can be drawn. TypeError: an option that
            `each` does not take.
        """
        from torchdali.pipeline import _pictures

        return (_pictures.show_each if each else _pictures.show_next)(self, path, options)

    def show_graph(self, path: str | os.PathLike[str] | None = None) -> Svg:
        """Return the graph as the text of an SVG, which a notebook displays.

        If the pipeline has run, each box has the time of its operator as in `stats`; with ``enable_memory_stats``,
        also the bytes that it delivered in the last batch.

        Args:
            path: Where to save it, too.

        Raises:
            RuntimeError: the pipeline is in debug mode.
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
        """Number of outputs."""
        return len(self._trace().outputs)

    def output_dtype(self) -> list[DALIDataType | None]:
        """Return the declared element type of each output."""
        return [dtype for dtype, _, _ in self._options.output_specs.each(self.num_outputs)]

    def output_ndim(self) -> list[int | None]:
        """Return the declared number of dimensions of each output."""
        return [ndim for _, ndim, _ in self._options.output_specs.each(self.num_outputs)]

    def output_stream(self) -> Any:
        """Return the stream on which the device stage runs; None on the CPU.

        Outputs need no waiting: the stream that is current when they are taken waits for them.
        """
        return self._planned.device_stream.stream

    def epoch_size(self, name: str | None = None) -> Any:
        """Return the (padded) size of a reader's epoch, or of all: ``{name: size}``."""
        if name is None:
            return {n: meta["epoch_size_padded"] for n, meta in self.reader_meta().items()}
        return self.reader_meta(name)["epoch_size_padded"]

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Describe a reader, or all: sizes, shards, padding.

        Raises:
            RuntimeError: no reader has this name.
        """
        return describe_readers(self._running, name)

    def shuffles(self, reader: str) -> bool:
        """Return whether a reader gives its samples in random order."""
        arguments = [shared_arguments(node.constants) for node in self._running.readers if node.name == reader]
        return any(each["random_shuffle"] or each["shuffle_after_epoch"] for each in arguments)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by label, of the first reader that knows them.

        Raises:
            AttributeError: none does.
        """
        return class_names(self._running)

    def executor_statistics(self) -> dict[str, dict[str, list[int]]]:
        """Return the memory of each operator's outputs: ``{operator: {measure: [one per output]}}``.

        The measures are DALI's: ``real_memory_size`` and ``reserved_memory_size`` of the last batch in bytes,
        with ``max_`` before them of the largest sample. Operators inside a fused chain deliver nothing but
        its results: 0 bytes. ``CPU_output_0`` and so on are the outputs of the pipeline. Empty without
        ``enable_memory_stats``.
        """
        planned = self._planned
        return planned.memory.summary(planned.plan.graph)

    def external_source_shm_statistics(self) -> dict[str, list[Any]]:
        """Return DALI's statistics of shared memory; empty lists: blocks grow as needed here."""
        return {"capacities": [], "per_sample_capacities": []}

    def explain(self) -> str:
        """Return a text on how the pipeline runs.

        It has the graph, the plan, the cached parts, the parts on the fast path, the processes if there are several,
        and the batched implementations that have failed so far.
        """
        executor = self._planned
        plan, placing = executor.plan, executor.placing
        lines = [str(plan.graph), "", str(plan), *fast_path(plan.graph)]
        for kept in executor.caches:
            lines += [*kept.explain_store(), *(f"  {line}" for line in fast_path(kept.graph))]
        if placing.stages or placing.reason:
            lines += [str(placing), *executor.exits]
        lines += map(str, executor.profile.fallbacks())
        return "\n".join(lines)

    def bad_sample_report(self) -> list[BadSample]:
        """Return the samples that were skipped or replaced so far."""
        return sorted(self._bad_samples.report, key=lambda bad: (bad.batch, bad.sample))

    def stats(self) -> Stats:
        """Return where the time goes: per operator, waiting, in the consumer; print it for a table."""
        return replace(self._running.stats(), skipped=tuple(dict.fromkeys(map(str, self.bad_sample_report()))))

    def trace(self) -> None:
        """Record every operator's time from now on, for `write_trace`."""
        self._running.profile.trace()

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON for a browser's trace viewer (``chrome://tracing``, Perfetto).

        Raises:
            RuntimeError: `trace` was not called before.
        """
        self._running.profile.write_trace(path)
