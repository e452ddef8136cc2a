"""Decorators that declare operators.

`operator`, `reader` and `source` turn a Python function into an operator. The function's signature becomes the schema.
A call of the decorated function with tensors or `TensorList`s runs immediately; a call with `DataNode`s is recorded in
the graph. The module `dispatch` contains the code for calls.
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


class _OperatorDecorator(Protocol):
    """A decorator that returns the function of an operator."""

    def __call__(self, implementation: Callable[P, R], /) -> OperatorFunction[P, R]: ...


class _Decorator(Protocol[Options]):
    """A decorator that may be used directly, or called with options."""

    @overload
    def __call__(self, implementation: Callable[P, R], /) -> OperatorFunction[P, R]: ...
    @overload
    def __call__(
        self, implementation: None = None, /, *args: Options.args, **options: Options.kwargs
    ) -> _OperatorDecorator: ...


def _set_signature(options: Callable[Options, Any]) -> Callable[[Callable[..., Any]], _Decorator[Options]]:
    """Set a decorator's signature to the fields of an options class, for type checkers and for `help`."""

    def decorate(decorator: Callable[..., Any]) -> _Decorator[Options]:
        implementation = inspect.Parameter("implementation", inspect.Parameter.POSITIONAL_ONLY, default=None)
        parameters = inspect.signature(options).parameters.values()
        vars(decorator)["__signature__"] = inspect.Signature([implementation, *parameters])
        return cast("_Decorator[Options]", decorator)

    return decorate


# ---------------------------------------------------------------- declaring


@_set_signature(OperatorOptions)
def operator(implementation: Any = None, /, **options: Any) -> Any:
    """Declare an operator. The decorated function is the implementation, and its signature is the schema (`schema`).

    Args:
        implementation: The decorated function. None if the decorator is called with options; then a decorator is
            returned.
        options: See `OperatorOptions`.

    Raises:
        TypeError: The signature isn't a valid schema.
    """
    operator_options = OperatorOptions(**options)
    return _declare(implementation, operator_options.over, operator_options)


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(OperatorOptions):
    """Options of `reader`: `OperatorOptions` with another default for `devices`, and two more options.

    See `Operator` for `metadata` and `writes`.
    """

    devices: tuple[str, ...] = ("cpu",)
    metadata: int = 0
    writes: bool = False


@_set_signature(ReaderOptions)
def reader(implementation: Any = None, /, **options: Any) -> Any:
    """Declare a reader: the decorated function returns a `datasets.Dataset`; see `ReaderOptions`."""
    return _declare(implementation, "reader", ReaderOptions(**options))


@_set_signature(OperatorOptions)
def source(implementation: Any = None, /, **options: Any) -> Any:
    """Declare a source of batches: the decorated function returns a `BatchSource`; see `OperatorOptions`."""
    return _declare(implementation, "source", OperatorOptions(**options))


def _declare(implementation: Any, kind: str, options: OperatorOptions) -> Any:
    if implementation is None:
        return lambda function: _declare(function, kind, options)
    name = options.name or implementation.__name__
    operator_schema = schema.read(implementation, name, options.deprecated or {})
    declared = Operator(
        name=name,
        class_name=_to_camel_case(name),
        kind=kind,
        implementation=implementation,
        schema=operator_schema,
        options=options,
    )
    if isinstance(options, ReaderOptions):
        declared.metadata, declared.writes = options.metadata, options.writes
    return _publish(declared)


def chunk(
    function: OperatorFunction[..., Any],
    form: str = "tensor",
    *,
    per_sample: Collection[str] = (),
    allocates: bool = False,
    only_on_devices: bool = False,
) -> Callable[[F], F]:
    """Declare a batched implementation of an operator, which processes several samples in one call.

    The decorated function receives the inputs as positional arguments, and an `Arguments` object as ``a``. It returns
    the results for all samples: one value, or a tuple with one value per output. On the CPU, the results must be
    bit-identical to the results of the implementation for single samples. If the function returns NotImplemented, the
    samples are processed one by one. A batched implementation is useful if a sample is so small that the call of a
    function takes as long as the work on the sample.

    `form` determines which samples the function processes, and how it receives the samples:

    =============  =================================================================================================
    ``"tensor"``   samples of one shape, on any device: inputs and results are tensors ``(N, ...)``
    ``"ragged"``   small samples of any shapes on the CPU. The operator must have only one input. If a call passes
                   arguments per sample, the function isn't called. The input is a sequence of tensors, or
                   `PackedSamples`. If the function raises an error, the samples are rerun one by one, to find the
                   sample that fails. The function must not return its input, because the input's memory may be
                   reused
    ``"device"``   a batch on an accelerator, as a `TensorList`. The function launches the same number of kernels
                   for any number of samples, and doesn't wait for the kernels
    ``"encoded"``  encoded samples of the operator's only input, or paths of files with encoded samples. The
                   function is called once, with the constants. It returns an `EncodedImplementation`, or None if these
                   constants aren't supported
    =============  =================================================================================================

    Args:
        function: The operator.
        form: See the table.
        per_sample: Names of the arguments that the implementation accepts per sample, as a `Column`. If a call passes
            other arguments per sample, its samples are processed one by one.
        allocates: True if a ``"ragged"`` implementation allocates its results with ``a.empty``. If the results are
            outputs of the pipeline, this implementation also receives large samples.
        only_on_devices: True to process samples one by one on the CPU, because the ``"tensor"`` implementation isn't
            faster there.
    """

    def declare(implementation: F) -> F:
        declared = function.operator
        declared.chunks[form], declared.chunk_arguments[form] = implementation, frozenset(per_sample)
        declared.allocates = declared.allocates or allocates
        declared.only_on_devices = declared.only_on_devices or only_on_devices
        return implementation

    return declare


def narrows(
    function: OperatorFunction[..., Any], arguments: Collection[str] = (), per_sample: Collection[str] = ()
) -> Callable[[E], E]:
    """Declare that an operator can edit the program of an image (a description of how to decode and transform it).

    The decorated function receives the operator's constants. It returns an `Edit`, or None if the operator needs
    pixels.

    Args:
        function: A decoder, or an operator on uint8 images.
        arguments: See `Narrowing`.
        per_sample: See `Narrowing`.
    """

    def declare(edit: E) -> E:
        function.operator.narrowing = Narrowing(edit, frozenset(arguments), frozenset(per_sample))
        return edit

    return declare


def alias(name: str, function: OperatorFunction[..., Any]) -> None:
    """Declare a deprecated name of an operator. If the operator is called by this name, torchdali warns."""
    target = function.operator
    options = replace(target.options, variant=lambda arguments: target.select_variant(arguments).name)
    schema = replace(target.schema, name=name)
    _publish(
        replace(
            target, name=name, class_name=_to_camel_case(name), schema=schema, options=options, replacement=target.name
        )
    )


def deprecate(function: OperatorFunction[..., Any], replacement: str) -> None:
    """Declare that an operator is deprecated. If it is called, torchdali warns and suggests `replacement`."""
    function.operator.replacement = replacement


_SPELLINGS = {
    "bbox": "BBox", "coco": "COCO", "dl": "DL", "mfcc": "MFCC", "mxnet": "MXNet", "rms": "RMS", "roi": "ROI",
    "ssd": "SSD", "tfrecord": "TFRecord",
}  # fmt: skip


def _to_camel_case(name: str) -> str:
    words = name.rpartition(".")[2].split("_")
    return "".join(_SPELLINGS.get(word, word[:1].upper() + word[1:]) for word in words)


def _publish(declared: Operator) -> OperatorFunction[..., Any]:

    def function(*inputs: Any, **arguments: Any) -> Any:
        try:
            return call(declared, inputs, arguments)
        except Exception as error:
            strip_internal_frames(error)
            raise

    functools.update_wrapper(function, declared.implementation)
    function.__name__ = function.__qualname__ = declared.name.rpartition(".")[2]
    vars(function).update(
        operator=declared, implementation=declared.implementation, __signature__=declared.schema.signature()
    )
    del vars(function)["__wrapped__"]
    if declared.implementation.__doc__:
        function.__doc__ = help_text(declared)
    declared.function = cast("OperatorFunction[..., Any]", function)
    registry.add(declared)
    return declared.function
