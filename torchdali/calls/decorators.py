"""Declare operators.

`operator`, `reader` and `source` turn a Python function into an operator: its signature becomes the schema,
and the function that replaces it runs at once on tensors and `TensorList`s and is recorded on `DataNode`s (`dispatch`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from torchdali.calls.dispatch import call
from torchdali.declaration import schema
from torchdali.declaration.descriptions import help_text
from torchdali.declaration.registry import Operator, OperatorFunction, OperatorOptions, registry
from torchdali.errors import strip_internal_frames

__all__ = [
    "OperatorFunction",
    "OperatorOptions",
    "alias",
    "chunk",
    "operator",
    "reader",
    "source",
]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
Options = ParamSpec("Options")


class _Declares(Protocol):
    """A decorator that makes the function of an operator."""

    def __call__(self, body: Callable[P, R], /) -> OperatorFunction[P, R]: ...


class _Decorator(Protocol[Options]):
    """A decorator that is used as it is, or called with options first."""

    @overload
    def __call__(self, body: Callable[P, R], /) -> OperatorFunction[P, R]: ...
    @overload
    def __call__(self, body: None = None, /, *given: Options.args, **options: Options.kwargs) -> _Declares: ...


def _takes(options: Callable[Options, Any]) -> Callable[[Callable[..., Any]], _Decorator[Options]]:
    """Give a decorator the options of a class, for type checkers and for `help`."""

    def typed(decorator: Callable[..., Any]) -> _Decorator[Options]:
        body = inspect.Parameter("body", inspect.Parameter.POSITIONAL_ONLY, default=None)
        taken = inspect.signature(options).parameters.values()
        made = cast("_Decorator[Options]", decorator)
        vars(decorator)["__signature__"] = inspect.Signature([body, *taken])
        return made

    return typed


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
    made = OperatorOptions(**options)
    return _declare(body, made.over, made)


@_takes(OperatorOptions)
def reader(body: Any = None, /, **options: Any) -> Any:
    """Declare a reader: the body returns a `datasets.Dataset`; see `OperatorOptions`, but it runs on the CPU alone."""
    return _declare(body, "reader", OperatorOptions(**{"devices": ("cpu",), **options}))


@_takes(OperatorOptions)
def source(body: Any = None, /, **options: Any) -> Any:
    """Declare a source of batches: the body returns a `Source`; see `OperatorOptions`."""
    return _declare(body, "source", OperatorOptions(**options))


def _declare(body: Any, kind: str, options: OperatorOptions) -> Any:
    if body is None:
        return lambda function: _declare(function, kind, options)
    name = options.name or body.__name__
    read = schema.read(body, name, options.deprecated or {})
    declared = Operator(name, options.class_name or _camel(name), kind, body, read, options)
    return _publish(declared)


def chunk(function: OperatorFunction[..., Any], form: str = "tensor", *, allocates: bool = False) -> Callable[[F], F]:
    """Declare a body of an operator for several samples in one call.

    It takes the inputs, and `Arguments`, which are named ``a``. It returns as many samples, with the bits of those
    that are done one by one (on the CPU); several outputs are a tuple; or NotImplemented if it has no better way than
    one by one. It is worth having where the work on a sample takes not much longer than a call.

    =============  =================================================================================================
    ``"tensor"``   samples of one shape, on any device: a tensor ``(N, ...)``, as are the results
    ``"ragged"``   small samples of any shapes on the CPU, of the operator's only input, without arguments per sample:
                   a sequence, which may be `Pieces`. What it raises, the single sample raises again, and says whose it
                   is. It never returns its input, which may be memory that is used again
    ``"device"``   a batch on an accelerator: a `TensorList`. It launches as many kernels for many samples as for one,
                   and does not wait for them
    ``"encoded"``  encoded samples of the only input, or files that hold them: the function takes the constants, once,
                   and returns the body, see `EncodedBody`, or None
    =============  =================================================================================================

    Args:
        function: The operator.
        form: What the body takes.
        allocates: A ragged body has the memory of its results from ``a.empty``; so it takes large samples, too, where
            its results are delivered as they are.
    """

    def declare(body: F) -> F:
        declared = function.operator
        declared.chunks[form] = body
        declared.allocates = declared.allocates or allocates
        return body

    return declare


def alias(name: str, function: OperatorFunction[..., Any], class_name: str = "") -> None:
    """Declare a deprecated name of an operator; calls by it warn, and are calls of the operator."""
    target = function.operator
    made = replace(
        target, name=name, class_name=class_name or _camel(name),
        schema=replace(target.schema, name=name),
        options=replace(
            target.options, instead=target.name, variant=lambda arguments: target.chosen(arguments).name
        ),
    )  # fmt: skip
    _publish(made)


def _camel(name: str) -> str:
    """Return the last part of a dotted name in camel case."""
    return "".join(word[:1].upper() + word[1:] for word in name.rpartition(".")[2].split("_"))


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
