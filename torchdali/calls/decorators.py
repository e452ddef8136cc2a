"""Declare operators.

`operator`, `reader` and `source` turn a Python function into an operator: its signature becomes the schema,
and the function that replaces it runs at once on tensors and `TensorList`s and is recorded on `DataNode`s (`dispatch`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from torchdali.calls.dispatch import call
from torchdali.declaration import schema
from torchdali.declaration.descriptions import help_text
from torchdali.declaration.narrowing import Edit, Narrowing
from torchdali.declaration.registry import Operator, OperatorFunction, OperatorOptions, registry
from torchdali.errors import strip_internal_frames

__all__ = [
    "OperatorFunction",
    "OperatorOptions",
    "alias",
    "chunk",
    "deprecate",
    "narrows",
    "operator",
    "reader",
    "source",
]

F = TypeVar("F", bound=Callable[..., Any])
E = TypeVar("E", bound=Callable[..., "Edit | None"])
P = ParamSpec("P")
R = TypeVar("R")
Options = ParamSpec("Options")


class _Declares(Protocol):
    """A decorator that makes the function of an operator."""

    def __call__(self, body: Callable[P, R], /) -> OperatorFunction[P, R]: ...


class _Decorator(Protocol[Options]):
    """A decorator for use without options, or called with options first."""

    @overload
    def __call__(self, body: Callable[P, R], /) -> OperatorFunction[P, R]: ...
    @overload
    def __call__(self, body: None = None, /, *args: Options.args, **options: Options.kwargs) -> _Declares: ...


def _takes(options: Callable[Options, Any]) -> Callable[[Callable[..., Any]], _Decorator[Options]]:
    """Give a decorator the options of a class, for type checkers and for `help`."""

    def decorate(decorator: Callable[..., Any]) -> _Decorator[Options]:
        body = inspect.Parameter("body", inspect.Parameter.POSITIONAL_ONLY, default=None)
        parameters = inspect.signature(options).parameters.values()
        vars(decorator)["__signature__"] = inspect.Signature([body, *parameters])
        return cast("_Decorator[Options]", decorator)

    return decorate


# ---------------------------------------------------------------- declaring


@_takes(OperatorOptions)
def operator(body: Any = None, /, **options: Any) -> Any:
    """Declare an operator: the function below is its body, the signature its schema (see `schema`).

    Args:
        body: The function.
        options: See `OperatorOptions`.

    Returns:
        An `OperatorFunction`; without a body, a decorator.

    Raises:
        TypeError: for a signature that does not follow the form.
    """
    operator_options = OperatorOptions(**options)
    return _declare(body, operator_options.over, operator_options)


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(OperatorOptions):
    """Options of `reader`: the options of operators, which run only on the CPU here, and two more; see `Operator`."""

    devices: tuple[str, ...] = ("cpu",)
    metadata: int = 0
    writes: bool = False


@_takes(ReaderOptions)
def reader(body: Any = None, /, **options: Any) -> Any:
    """Declare a reader: the body returns a `datasets.Dataset`; see `ReaderOptions`."""
    return _declare(body, "reader", ReaderOptions(**options))


@_takes(OperatorOptions)
def source(body: Any = None, /, **options: Any) -> Any:
    """Declare a source of batches: the body returns a `BatchSource`; see `OperatorOptions`."""
    return _declare(body, "source", OperatorOptions(**options))


def _declare(body: Any, kind: str, options: OperatorOptions) -> Any:
    if body is None:
        return lambda function: _declare(function, kind, options)
    name = options.name or body.__name__
    read = schema.read(body, name, options.deprecated or {})
    declared = Operator(name=name, class_name=_camel(name), kind=kind, body=body, schema=read, options=options)
    if isinstance(options, ReaderOptions):
        declared.metadata, declared.writes = options.metadata, options.writes
    return _publish(declared)


def chunk(
    function: OperatorFunction[..., Any],
    form: str = "tensor",
    *,
    takes: Collection[str] = (),
    allocates: bool = False,
    only_on_devices: bool = False,
) -> Callable[[F], F]:
    """Declare a body of an operator for several samples in one call.

    It takes the inputs, and `Arguments`, which are named ``a``. It returns as many samples, with the bits of those
    that are done one by one (on the CPU); several outputs are a tuple; or NotImplemented if it has no better way than
    one by one. It is worth having where the work on a sample takes not much longer than a call.

    =============  =================================================================================================
    ``"tensor"``   samples of one shape, on any device: a tensor ``(N, ...)``, as are the results
    ``"ragged"``   small samples of any shapes on the CPU, of the operator's only input, without arguments per sample:
                   a sequence, which may be `Packed`. If it raises, single samples rerun; the error says whose it
                   is. It never returns its input, which may be memory that is used again
    ``"device"``   a batch on an accelerator: a `TensorList`. It launches as many kernels for many samples as for one,
                   and does not wait for them
    ``"encoded"``  encoded samples of the only input, or files that hold them: the function takes the constants, once,
                   and returns the body, see `EncodedBody`, or None
    =============  =================================================================================================

    Args:
        function: The operator.
        form: The form of the input.
        takes: Names of the arguments that it takes per sample, as a `Column`. Samples of calls that give others per
            sample are done one by one.
        allocates: A ragged body has the memory of its results from ``a.empty``; so it takes large samples, too, where
            its results are delivered unchanged.
        only_on_devices: A body for samples in one tensor gains nothing on the CPU: there they are done one by one.
    """

    def declare(body: F) -> F:
        declared = function.operator
        declared.chunks[form], declared.takes[form] = body, frozenset(takes)
        declared.allocates = declared.allocates or allocates
        declared.only_on_devices = declared.only_on_devices or only_on_devices
        return body

    return declare


def narrows(
    function: OperatorFunction[..., Any], takes: Collection[str] = (), varies: Collection[str] = ()
) -> Callable[[E], E]:
    """Declare that an operator edits the program of an image before it is decoded.

    The decorated function takes the operator's constants, and returns an `Edit`; or None if the operator needs pixels.

    Args:
        function: The operator. It takes an image of bytes; a decoder takes an encoded one.
        takes, varies: See `Narrowing`.
    """

    def declare(edit: E) -> E:
        function.operator.narrowing = Narrowing(edit, frozenset(takes), frozenset(varies))
        return edit

    return declare


def alias(name: str, function: OperatorFunction[..., Any]) -> None:
    """Declare a deprecated name of an operator; calls by it warn, and are calls of the operator."""
    target = function.operator
    options = replace(target.options, variant=lambda arguments: target.chosen(arguments).name)
    schema = replace(target.schema, name=name)
    _publish(replace(target, name=name, class_name=_camel(name), schema=schema, options=options, instead=target.name))


def deprecate(function: OperatorFunction[..., Any], instead: str) -> None:
    """Declare an operator deprecated: calls of it warn, and name the replacement."""
    function.operator.instead = instead


_SPELLED = {
    "bbox": "BBox", "coco": "COCO", "dl": "DL", "mfcc": "MFCC", "mxnet": "MXNet", "rms": "RMS", "roi": "ROI",
    "ssd": "SSD", "tfrecord": "TFRecord",
}  # fmt: skip


def _camel(name: str) -> str:
    """Return the last part of a dotted name in the form of a class name."""
    words = name.rpartition(".")[2].split("_")
    return "".join(_SPELLED.get(word, word[:1].upper() + word[1:]) for word in words)


def _publish(declared: Operator) -> OperatorFunction[..., Any]:
    """Make the function that users call, and register the operator."""

    def function(*inputs: Any, **arguments: Any) -> Any:
        try:
            return call(declared, inputs, arguments)
        except Exception as error:
            strip_internal_frames(error)
            raise

    functools.update_wrapper(function, declared.body)
    function.__name__ = function.__qualname__ = declared.name.rpartition(".")[2]
    vars(function).update(operator=declared, body=declared.body, __signature__=declared.schema.signature())
    del vars(function)["__wrapped__"]
    if declared.body.__doc__:
        function.__doc__ = help_text(declared)
    declared.function = cast("OperatorFunction[..., Any]", function)
    registry.add(declared)
    return declared.function
