"""`external_source` as a function and as a class."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Annotated, Any, cast

from torchdali.calls.decorators import source as declare_source
from torchdali.declaration.registry import OperatorFunction, registry
from torchdali.declaration.schema import OutputCount, Schema, one_of
from torchdali.graph.nodes import DataNode
from torchdali.ops._external_source.arguments import (
    CYCLES,
    accepts_position,
    check_arguments,
    expected_outputs,
    is_factory,
    is_iterable,
    output_layouts,
)
from torchdali.ops._external_source.callbacks import (
    BatchLoader,
    CallableSource,
    CallResults,
    IterableSource,
    Outputs,
)
from torchdali.ops._external_source.sources import FeedSource, InProcessSource, WorkerSource
from torchdali.reading.sources import BatchSource

__all__ = ["ExternalSource", "external_source"]


@declare_source(
    name="external_source",
    outputs=lambda arguments: arguments["num_outputs"],
    layout=lambda layouts, arguments: output_layouts(arguments["layout"], arguments["num_outputs"]),
)
def _external_source(
    *,
    source: Any = None,
    num_outputs: int | None = None,
    cycle: Annotated[Any, one_of(CYCLES)] = None,
    layout: Any = None,
    dtype: Any = None,
    ndim: Any = None,
    cuda_stream: Any = None,
    use_copy_kernel: bool | None = None,
    blocking: bool | None = None,
    batch: bool | None = True,
    repeat_last: bool = False,
    parallel: bool | None = None,
    no_copy: bool | None = None,
    prefetch_queue_depth: int | None = None,
    batch_info: bool | None = None,
    background: bool = False,
) -> Annotated[BatchSource, OutputCount(1)]:
    outputs = Outputs(num_outputs, output_layouts(layout, num_outputs))
    expected = expected_outputs(dtype, ndim, layout, num_outputs)
    returns_batches = batch is not False
    if source is None:
        return FeedSource(
            expected[0], outputs.layouts[0],
            repeat_last=repeat_last, blocking=bool(blocking), copy=not no_copy,
        )  # fmt: skip
    data: CallableSource | IterableSource
    if is_iterable(source):
        factory, cycle_mode = is_factory(source), CYCLES[cycle]
        data = IterableSource(source, factory=factory, cycle=cycle_mode, batch=returns_batches, outputs=outputs)
    elif accepts_position(source):
        data = CallableSource(source, batch=returns_batches, batch_info=bool(batch_info), outputs=outputs)
    else:
        results = CallResults(source)
        data = IterableSource(results, factory=False, cycle="no", batch=returns_batches, outputs=outputs)
    loader = BatchLoader(data, outputs, copy=not (no_copy or parallel))
    if parallel:
        return WorkerSource(loader, expected, prefetch_queue_depth or 1)
    return InProcessSource(loader, expected, background=background)


def external_source(
    source: Any = None,
    num_outputs: int | None = None,
    *,
    cycle: bool | str | None = None,
    name: str | None = None,
    device: str = "cpu",
    layout: str | Sequence[str | None] | None = None,
    dtype: Any = None,
    ndim: int | Sequence[int] | None = None,
    cuda_stream: Any = None,
    use_copy_kernel: bool | None = None,
    blocking: bool | None = None,
    batch: bool | None = True,
    repeat_last: bool = False,
    parallel: bool | None = None,
    no_copy: bool | None = None,
    prefetch_queue_depth: int | None = None,
    bytes_per_sample_hint: int | None = None,
    batch_info: bool | None = None,
    background: bool = False,
    seed: int | None = None,
    preserve: bool = False,
    **unknown: Any,
) -> Any:
    """Use data from Python code in a pipeline.

    The ``source`` returns a batch, or a single sample if ``batch`` is False. A batch is a list of samples, an array
    whose first axis is the batch, or a `TensorList`. It may have fewer samples than the pipeline's ``batch_size``.
    Samples are NumPy arrays, torch tensors, or objects that support DLPack or NumPy's array interface. All samples of
    all batches must have the same dtype and the same number of axes. The source raises StopIteration to end the epoch.
    If a source of samples ends before a batch is full, the incomplete batch is dropped.

    Args:
        source: A callable, which takes no argument, or one argument: the index of the batch in the epoch, a
            `BatchInfo`, or a `SampleInfo` if ``batch`` is False. Or an iterable, a generator function, or an iterable
            class. None if you pass the data to `Pipeline.feed_input`.
        num_outputs: Number of outputs. The source returns a tuple or list with one item per output, and this function
            returns a list of nodes. Default: None, one output and one node.
        cycle: Behavior at the end of an iterable source. False, None or ``"no"`` ends the epoch, and no other epoch can
            follow. True or ``"quiet"`` starts the iterable again without ending the epoch, unless the restarted
            iterable is empty. ``"raise"`` ends the epoch; the next epoch starts the iterable again.
        name: Name of the node, for `Pipeline.feed_input`. Can't be combined with ``num_outputs``.
        device: Device of the output, ``"cpu"`` (the default) or ``"gpu"``.
        layout: Layout of a sample, one letter per axis; or a list with one layout per output. Default: no layout.
        dtype: Dtype that the data must have, like ``types.FLOAT``; or a list with one dtype per output. Default: any.
        ndim: Number of axes that each sample must have; or a list with one number per output. Default: any number.
        cuda_stream: Accepted without effect: the operator always waits for PyTorch's current CUDA stream.
        use_copy_kernel: Accepted without effect.
        blocking: Only without ``source``: True to wait for `Pipeline.feed_input` if no data was fed. By default, a run
            of the pipeline without data raises an error.
        batch: True if the source returns batches, False if it returns samples. None means False if ``parallel`` is
            True, otherwise True.
        repeat_last: Only without ``source``: True to deliver the last batch again if no new batch was fed.
        parallel: True to call the source in worker processes; see `Pipeline`'s argument ``py_num_workers``.
        no_copy: True to use the source's data without copying the data. Default: True if ``parallel`` is True.
        prefetch_queue_depth: Number of batches that the worker processes prepare ahead, if ``parallel`` is True.
            Default: 1.
        bytes_per_sample_hint: Accepted without effect, and only if ``parallel`` is True: memory grows as needed.
        batch_info: True to call a source of batches with a `BatchInfo` instead of the index of the batch.
        background: True to call the source in the pipeline's scheduler thread, at the same time as your loop. By
            default, `Pipeline.run` and `Pipeline.schedule_run` call the source. DALI doesn't have this argument.
        seed: Accepted without effect.
        preserve: True to run the source even if no output needs its data.

    Raises:
        TypeError: the source has an unsupported type or signature, or doesn't support ``cycle`` or ``parallel``.
        ValueError: the arguments contradict each other, or an argument is unknown.
        RuntimeError: ``name`` is passed with ``num_outputs``, or ``ndim`` contradicts ``layout``.
    """
    if unknown:
        raise ValueError(f'external_source: got an unexpected argument "{next(iter(unknown))}"')
    if name is not None and num_outputs is not None:
        raise RuntimeError("``num_outputs`` is not compatible with named external_source")
    if parallel:
        batch = bool(batch)
        no_copy = True if no_copy is None else no_copy
    arguments = {
        "source": source, "num_outputs": num_outputs, "cycle": cycle, "layout": layout,
        "dtype": dtype, "ndim": ndim, "blocking": blocking, "batch": batch,
        "repeat_last": repeat_last, "parallel": parallel, "no_copy": no_copy,
        "prefetch_queue_depth": prefetch_queue_depth, "batch_info": batch_info, "background": background,
        "cuda_stream": cuda_stream, "use_copy_kernel": use_copy_kernel,
    }  # fmt: skip
    check_arguments(arguments, bytes_per_sample_hint)
    return _record(**arguments, name=name, device=device, preserve=preserve)


class ExternalSource:
    """The operator `external_source` as a class: the constructor takes the arguments, and a call creates the node.

    You may also pass arguments to the call, but only the name may be passed to both the constructor and the call.
    """

    def __init__(self, source: Any = None, num_outputs: int | None = None, **arguments: Any) -> None:
        if num_outputs is not None and arguments.get("name") is not None:
            raise ValueError("`num_outputs` is not compatible with named ExternalSource")
        for name in arguments:
            if name not in _ARGUMENTS:
                raise ValueError(f"ExternalSource got an unexpected argument {name!r}")
        options = {"batch": None, **arguments, "source": source, "num_outputs": num_outputs}
        self._arguments = {key: value for key, value in options.items() if value is not None}
        self.nodes: list[DataNode] = []

    def __call__(self, **arguments: Any) -> Any:
        """Add the operator to the pipeline; return a node, or a list of nodes if ``num_outputs`` was passed.

        Raises:
            RuntimeError, ValueError: an argument other than the name was already passed to the constructor, or
                ``cycle`` was passed without ``source``.
            KeyError: an argument is unknown.
        """
        options = {key: value for key, value in arguments.items() if value is not None}
        if unknown := [name for name in options if name not in _ARGUMENTS or name == "num_outputs"]:
            raise KeyError(f"argument {unknown[0]!r} is not defined for a call of ExternalSource")
        if "cycle" in options and "source" not in options:
            raise ValueError("``cycle`` applies to ``source``: pass both to the constructor or both to the call")
        for name in options.keys() & self._arguments.keys() - {"name"}:
            kind = ValueError if name == "batch" else RuntimeError
            raise kind(f"ExternalSource: the argument ``{name}`` already specified in constructor.")
        result = external_source(**{"batch": None, **self._arguments, **options})
        self.nodes += result if isinstance(result, list) else [result]
        return result

    @property
    def device(self) -> str:
        """Device of the output, ``"cpu"`` or ``"gpu"``."""
        return str(self._arguments.get("device", "cpu"))

    @property
    def name(self) -> str | None:
        """Name of the node; None if no name was passed to the constructor."""
        return self._arguments.get("name")

    @property
    def schema(self) -> Schema:
        """The schema of `external_source`."""
        return _operator.schema

    @property
    def preserve(self) -> bool:
        """True if the source runs even if no output needs its data."""
        return bool(self._arguments.get("preserve", False))


_PARAMETERS = [p for p in inspect.signature(external_source).parameters.values() if p.name != "unknown"]
_ARGUMENTS = {p.name for p in _PARAMETERS}


def _method_signature(parameters: Sequence[inspect.Parameter]) -> inspect.Signature:
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([own, *parameters])


vars(ExternalSource.__init__)["__signature__"] = _method_signature(
    [p.replace(default=None) if p.name in ("batch", "device") else p for p in _PARAMETERS]
)
vars(ExternalSource.__call__)["__signature__"] = _method_signature(
    [p.replace(kind=p.KEYWORD_ONLY, default=None) for p in _PARAMETERS if p.name != "num_outputs"]
)

_operator = registry["external_source"]
_record = _operator.function
vars(external_source).update(operator=_operator, implementation=_operator.implementation, operator_class=ExternalSource)
_operator.function = cast("OperatorFunction[..., Any]", external_source)
_operator.implementation.__doc__ = external_source.__doc__
