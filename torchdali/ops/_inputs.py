"""`external_source`: data that the user's Python code makes, as function and as class."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import torch

from torchdali.graph import DataNode
from torchdali.operator import registry
from torchdali.operator import source as declare_source
from torchdali.ops._source_calls import Calls, Items, Maker, Outputs, Results
from torchdali.ops._source_data import Expected
from torchdali.ops._sources import Fed, Pulled, Remote
from torchdali.schema import Data, Schema, to_dtype

__all__ = ["ExternalSource", "external_source"]

_CYCLES = {None: "no", False: "no", "no": "no", True: "quiet", "quiet": "quiet", "raise": "raise"}


@declare_source(
    name="external_source",
    outputs=lambda arguments: arguments["num_outputs"],
    layout=lambda layouts, arguments: _layouts(arguments["layout"], arguments["num_outputs"]),
)
def _external_source(
    *,
    source: Any = None,
    num_outputs: int | None = None,
    cycle: Any = None,
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
) -> Data:
    outputs = Outputs(num_outputs, _layouts(layout, num_outputs))
    expected = _expected(dtype, ndim, layout, num_outputs)
    whole = batch is not False
    if source is None:
        return Fed(  # type: ignore[return-value]
            expected[0], outputs.layouts[0],
            repeat_last=repeat_last, blocking=bool(blocking), copy=not no_copy,
        )  # fmt: skip
    data: Calls | Items
    if _iterates(source):
        factory, cycles = _is_factory(source), _CYCLES[cycle]
        data = Items(source, factory=factory, cycle=cycles, batch=whole, outputs=outputs)
    elif _informed(source):
        data = Calls(source, batch=whole, batch_info=bool(batch_info), outputs=outputs)
    else:
        results = Results(source)
        data = Items(results, factory=False, cycle="no", batch=whole, outputs=outputs)
    maker = Maker(data, outputs, copy=not (no_copy or parallel))
    if parallel:
        return Remote(maker, expected, prefetch_queue_depth or 1)  # type: ignore[return-value]
    return Pulled(maker, expected)  # type: ignore[return-value]


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
    seed: int | None = None,
    preserve: bool = False,
    **unknown: Any,
) -> Any:
    """Take batches or samples from Python code.

    A batch is a list of samples, an array whose first dimension is the batch, or a `TensorList`; it may have
    fewer samples than the pipeline's ``batch_size``. Samples are NumPy arrays, torch tensors, or objects with
    DLPack or the array interface; those of one batch have one type and number of axes, which does not change
    from batch to batch. StopIteration ends the epoch; a partly filled batch of samples is dropped.

    Args:
        source: A callable that returns a batch (a sample with ``batch=False``) and takes nothing or one
            argument: the number of the batch in the epoch, a `BatchInfo` or a `SampleInfo`. Or an iterable,
            a generator function or a class whose instances iterate. None to use `Pipeline.feed_input`.
        num_outputs: The source returns that many outputs and the result is a list of nodes; None for one node.
        cycle: At the end of an iterable: False, None or ``"no"`` end the epoch, for good; True or
            ``"quiet"`` start anew at once; ``"raise"`` ends the epoch and starts anew in the next one.
        name: Of the node, for `feed_input`; not with ``num_outputs``.
        device: Where the data go, ``"cpu"`` or ``"gpu"``.
        layout: Of a sample, one letter an axis; or one layout an output.
        dtype: What the elements must be; or one an output.
        ndim: How many axes a sample must have; or one number an output.
        cuda_stream: Accepted; data of the current stream are waited for.
        use_copy_kernel: Accepted, without effect.
        blocking: Without a source, wait for `feed_input` instead of failing.
        batch: Whether the source gives whole batches; None is True, or False with ``parallel``.
        repeat_last: Without a source, give the last batch again when no new one was fed.
        parallel: Call the source in worker processes; see `Pipeline`'s ``py_num_workers``.
        no_copy: Share the memory of what the source gives instead of taking a copy.
        prefetch_queue_depth: With ``parallel``, batches made ahead; 1 by default.
        bytes_per_sample_hint: Accepted with ``parallel``; memory grows as needed.
        batch_info: Give a `BatchInfo` to a source of batches instead of a number.
        seed: Accepted, without effect.
        preserve: Keep the source even if no output needs it.

    Raises:
        TypeError: a source that is none of these, or cannot be called or cycled like this.
        ValueError: arguments that do not go together.
        RuntimeError: ``name`` with ``num_outputs``.
    """
    if unknown:
        raise ValueError(f"external_source got an unexpected argument {next(iter(unknown))!r}")
    if name is not None and num_outputs is not None:
        raise RuntimeError("num_outputs is not compatible with a named external_source")
    if parallel:
        batch = bool(batch)
        no_copy = True if no_copy is None else no_copy
    given = {
        "source": source, "num_outputs": num_outputs, "cycle": cycle, "layout": layout,
        "dtype": dtype, "ndim": ndim, "blocking": blocking, "batch": batch,
        "repeat_last": repeat_last, "parallel": parallel, "no_copy": no_copy,
        "prefetch_queue_depth": prefetch_queue_depth, "batch_info": batch_info,
        "cuda_stream": cuda_stream, "use_copy_kernel": use_copy_kernel,
    }  # fmt: skip
    _check(given, bytes_per_sample_hint)
    return _record(**given, name=name, device=device, preserve=preserve)


class ExternalSource:
    """`external_source` with its arguments set beforehand; call it without inputs.

    Arguments may be given here or at the call, not at both; only the name may be given again.
    """

    def __init__(
        self, source: Any = None, num_outputs: int | None = None, **arguments: Any
    ) -> None:
        if num_outputs is not None and arguments.get("name") is not None:
            raise ValueError("num_outputs is not compatible with a named ExternalSource")
        for name in arguments:
            if name not in _ARGUMENTS:
                raise ValueError(f"ExternalSource got an unexpected argument {name!r}")
        given = {"batch": None, **arguments, "source": source, "num_outputs": num_outputs}
        self._arguments = {key: value for key, value in given.items() if value is not None}
        self.nodes: list[DataNode] = []

    def __call__(self, **arguments: Any) -> Any:
        """Record a use of the operator; returns a node, or a list of nodes with ``num_outputs``.

        Raises:
            RuntimeError, ValueError: an argument that was given to the constructor too.
        """
        given = {key: value for key, value in arguments.items() if value is not None}
        if unknown := [name for name in given if name not in _ARGUMENTS or name == "num_outputs"]:
            raise KeyError(f"argument {unknown[0]!r} is not defined for a call of ExternalSource")
        if "cycle" in given and "source" not in given:
            raise ValueError("cycle belongs to a source: give them together")
        for name in given.keys() & self._arguments.keys() - {"name"}:
            kind = ValueError if name == "batch" else RuntimeError
            raise kind(f"{name!r} was already given to the constructor of ExternalSource")
        result = external_source(**{"batch": None, **self._arguments, **given})
        self.nodes += result if isinstance(result, list) else [result]
        return result

    @property
    def device(self) -> str:
        """Where the data go."""
        return str(self._arguments.get("device", "cpu"))

    @property
    def name(self) -> str | None:
        """Name of the node."""
        return self._arguments.get("name")

    @property
    def schema(self) -> Schema:
        """What `external_source` declares."""
        return _operator.schema

    @property
    def preserve(self) -> bool:
        """Whether the source is kept even if no output needs it."""
        return bool(self._arguments.get("preserve", False))


_PARAMETERS = [
    p for p in inspect.signature(external_source).parameters.values() if p.name != "unknown"
]
_ARGUMENTS = {p.name for p in _PARAMETERS}


def _method_signature(parameters: Sequence[inspect.Parameter]) -> inspect.Signature:
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([own, *parameters])


ExternalSource.__init__.__signature__ = _method_signature(  # type: ignore[attr-defined]
    [p.replace(default=None) if p.name in ("batch", "device") else p for p in _PARAMETERS]
)
ExternalSource.__call__.__signature__ = _method_signature(  # type: ignore[attr-defined]
    [p.replace(kind=p.KEYWORD_ONLY, default=None) for p in _PARAMETERS if p.name != "num_outputs"]
)

_operator = registry["external_source"]
_record = _operator.function
_operator.function = external_source
external_source.operator = _operator  # type: ignore[attr-defined]
external_source.body = _operator.body  # type: ignore[attr-defined]
external_source.operator_class = ExternalSource  # type: ignore[attr-defined]
_operator.body.__doc__ = external_source.__doc__


# ---------------------------------------------------------------- checking a call


def _check(given: Mapping[str, Any], hint: int | None) -> None:
    """Raise for arguments that do not go together."""
    depth, count = given["prefetch_queue_depth"], given["num_outputs"]
    if not given["parallel"]:
        for name, value in (("prefetch_queue_depth", depth), ("bytes_per_sample_hint", hint)):
            if value is not None:
                raise ValueError(f"{name} is for parallel sources only (parallel=True)")
    elif given["no_copy"] is False:
        raise ValueError("no_copy=False is not for parallel sources: they share their memory")
    elif depth is not None and depth < 1:
        raise ValueError(f"prefetch_queue_depth must be positive, got {depth}")
    if count is not None and index(count) < 1:
        raise ValueError(f"num_outputs must be positive, got {count}")
    _expected(given["dtype"], given["ndim"], given["layout"], count)
    if given["source"] is None:
        _check_fed(given)
    elif _iterates(given["source"]):
        _check_iterable(given)
    else:
        _check_callable(given)


def _check_fed(given: Mapping[str, Any]) -> None:
    if given["cycle"] is not None:
        raise ValueError("cycle is for iterable sources")
    if given["num_outputs"] is not None:
        raise ValueError(
            "num_outputs is for sources; use an external_source for each input to feed"
        )
    if given["parallel"]:
        raise ValueError("parallel=True needs a source that the workers can call")


def _check_iterable(given: Mapping[str, Any]) -> None:
    source, cycle = given["source"], given["cycle"]
    if not isinstance(cycle, (bool, str, type(None))) or cycle not in _CYCLES:
        raise ValueError(f"cycle={cycle!r}: it is False, None or 'no'; True or 'quiet'; or 'raise'")
    if inspect.isgenerator(source) and _CYCLES[cycle] != "no":
        raise TypeError("a generator cannot start anew: give the generator function as the source")
    if _is_factory(source):
        inspect.signature(source).bind()  # TypeError if it needs arguments
    if given["parallel"] and not given["batch"]:
        raise TypeError("a parallel source that iterates must yield batches (batch=True)")


def _check_callable(given: Mapping[str, Any]) -> None:
    informed = _informed(given["source"])
    if given["cycle"] is not None:
        raise ValueError("cycle is for iterables and generator functions, not for callables")
    if given["parallel"] and not informed:
        raise TypeError(
            "a parallel source takes one argument: a SampleInfo with batch=False; otherwise the "
            "number of the batch, or a BatchInfo with batch_info=True"
        )


def _iterates(source: Any) -> bool:
    return _is_factory(source) or (not inspect.isclass(source) and hasattr(source, "__iter__"))


def _is_factory(source: Any) -> bool:
    """Whether each call gives a new iterator: a generator function, or a class whose instances iterate."""
    return inspect.isgeneratorfunction(source) or (
        inspect.isclass(source) and hasattr(source, "__iter__")
    )


def _informed(source: Any) -> bool:
    """Whether a callable takes the place of the batch or sample; TypeError for another signature."""
    if not callable(source):
        indexed = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        raise TypeError(
            f"the source must be a callable, an iterable or a generator function without parameters, "
            f"not a {type(source).__name__}"
            + ("; of a dataset make a function of a SampleInfo, with batch=False" * indexed)
        )
    try:
        parameters = list(inspect.signature(source).parameters.values())
    except ValueError:
        return False  # a builtin that does not tell
    kinds = [p.kind for p in parameters if p.kind != p.KEYWORD_ONLY or p.default is p.empty]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(kinds) > 1 or any(kind not in positional for kind in kinds):
        raise TypeError(
            "a source takes nothing, or one positional argument for the place of the batch or "
            f"sample; this one has the parameters ({', '.join(map(str, parameters))})"
        )
    return bool(kinds)


# ---------------------------------------------------------------- making the source


def _each(value: Any, count: int | None) -> list[Any]:
    """Return a value for each output: of a list, what there is; otherwise the same for all."""
    size = count or 1
    if isinstance(value, (list, tuple)):
        return [*value, *[None] * size][:size]
    return [value] * size


def _layouts(layout: Any, count: int | None) -> tuple[str, ...]:
    return tuple(each or "" for each in _each(layout, count))


def _expected(dtype: Any, ndim: Any, layout: Any, count: int | None) -> list[Expected]:
    """Return what each output was declared to be; RuntimeError where the declarations clash."""
    found = []
    each = zip(_each(dtype, count), _each(ndim, count), _layouts(layout, count), strict=True)
    for kind, axes, names in each:
        if axes is not None and (index(axes) < 0 or (names and len(names) != axes)):
            raise RuntimeError(f"ndim={axes} does not go with the layout {names!r}")
        found.append(Expected(None if kind is None else _dtype(kind), axes, names))
    return found


def _dtype(kind: Any) -> torch.dtype:
    try:
        return to_dtype(kind)
    except TypeError as error:
        raise TypeError(
            f"argument 'dtype' of operator 'external_source': cannot take {kind!r}: {error}"
        ) from None
