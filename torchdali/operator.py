"""Declare operators.

`operator`, `reader` and `source` turn a Python function into an operator: its signature becomes the schema,
and the function that replaces it runs at once on tensors and `TensorList`s and is recorded on `DataNode`s (`dispatch`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, overload

from torchdali import schema
from torchdali.batching import read_batched
from torchdali.dispatch import call
from torchdali.errors import strip_internal_frames
from torchdali.registry import LayoutRule, Operator, registry

__all__ = ["alias", "batched", "operator", "reader", "source"]

F = TypeVar("F", bound=Callable[..., Any])


# ---------------------------------------------------------------- declaring


@overload
def operator(body: F, /) -> F: ...
@overload
def operator(
    body: None = None,
    /,
    *,
    name: str | None = None,
    over: str = "sample",
    layout: LayoutRule | None = None,
    outputs: Callable[[Mapping[str, Any]], int | None] | None = None,
    batched: bool = False,
    separable: bool | Callable[[Mapping[str, Any]], bool] = False,
    index_arguments: tuple[str, ...] = (),
    deprecated: Mapping[str, str | None] | None = None,
    devices: tuple[str, ...] = ("cpu", "gpu"),
    preserve: bool = False,
    hidden: bool = False,
    class_name: str = "",
    instead: str = "",
    variant: Callable[[Mapping[str, Any]], str | None] | None = None,
    make: Callable[[], Callable[..., Any]] | None = None,
) -> Callable[[F], F]: ...
def operator(body: Any = None, /, *, over: str = "sample", **options: Any) -> Any:
    """Declare an operator: the function below is its body, the signature its schema (see `schema`).

    Args:
        name: Dotted name in `fn`; the function's own by default.
        over: ``"sample"``: the body sees one sample, with free leading dimensions. ``"batch"``: it sees
            `TensorList`s, and a list for each argument that was given per sample.
        layout: ``rule(input_layouts, arguments) -> layout(s)`` of the outputs; the first input's if None.
        outputs: ``rule(arguments) -> int | None`` where the number of outputs varies; None for a single node. Among
            the arguments, ``inputs`` is the number of inputs.
        batched: The body also takes several samples of one shape in one call, as tensors ``(N, ...)``. Where that
            takes a body of its own, declare it with `batched`.
        separable: Over the batch, it works on each sample alone, too: an error names the sample, and ``bad_samples``
            can leave it out. Or ``rule(arguments) -> bool``, where ``arguments`` are all of them.
        index_arguments: Names of arguments that are indices of samples in the batch, as of `permute_batch`.
        deprecated: Old argument names; each maps to the new one, or to None when it has no effect.
        devices: Where it may run: ``"cpu"``, ``"gpu"``, ``"mixed"``.
        preserve: Keep it even if no output needs it.
        hidden: Leave it out of `fn` and `ops`.
        class_name: Name in `ops`; the camel-cased function name by default.
        instead: Set for a deprecated operator: what to use instead.
        variant: ``rule(arguments) -> name`` of a hidden operator with the same signature that takes the call
            over, or None; for operators that see the whole batch only with some arguments. Those that are given
            per sample are None.
        make: Makes a body with a memory of its own for each place where the operator is used.

    Raises:
        TypeError: for a signature that does not follow the form.
    """
    return _declare(body, over, options)


@overload
def reader(body: F, /) -> F: ...
@overload
def reader(body: None = None, /, **options: Any) -> Callable[[F], F]: ...
def reader(body: Any = None, /, **options: Any) -> Any:
    """Declare a reader: the body returns a `loader.Dataset`; see `operator` for the options.

    Args:
        metadata: Number of outputs, the last ones, that come from `loader.Dataset.metadata`, not from its `read`.
        results: ``rule(arguments, outputs)`` of what a call returns in place of the list of its outputs.
    """
    return _declare(body, "reader", {"devices": ("cpu",), **options})


@overload
def source(body: F, /) -> F: ...
@overload
def source(body: None = None, /, **options: Any) -> Callable[[F], F]: ...
def source(body: Any = None, /, **options: Any) -> Any:
    """Declare a source of batches: the body returns a `Source`; see `operator` for the options."""
    return _declare(body, "source", options)


def _declare(body: Any, kind: str, options: dict[str, Any]) -> Any:
    if body is None:
        return lambda function: _declare(function, kind, options)
    name = options.pop("name", None) or body.__name__
    read = schema.read(body, name, options.pop("deprecated", None) or {})
    class_name = options.pop("class_name", "") or _camel(name.rpartition(".")[2])
    takes_batches = options.pop("batched", False)
    declared = Operator(name, body, read, kind, class_name=class_name, **options)
    if takes_batches:
        declared.batched = read_batched(body, read.defaults)
    _publish(declared)
    return declared.function


def batched(function: Callable[..., Any]) -> Callable[[F], F]:
    """Declare a second body of an operator, for several samples of one shape in one call.

    It takes and returns tensors ``(N, ...)``, and arguments by the names of the first body, whose defaults hold. Its
    annotations say the rest:

    ====================  ==================================================================================
    ``angle: Column``     (or a union with it) takes values given per sample; without it, such a call runs
                          sample by sample
    ``data: Shapes``      only the shapes of the samples count: a list of them arrives, and they may differ
    ``out: Out``          may write the results there
    ====================  ==================================================================================

    It returns NotImplemented where it has no better way than sample by sample. It is worth having where the work on a
    sample takes not much longer than a call.

    Args:
        function: The operator.
    """

    def declare(body: F) -> F:
        declared: Operator = function.operator  # type: ignore[attr-defined]
        declared.batched = read_batched(body, declared.schema.defaults)
        return body

    return declare


def alias(name: str, function: Any, class_name: str = "") -> None:
    """Declare a deprecated name of an operator; calls by it warn, and are calls of the operator."""
    target: Operator = function.operator
    class_name = class_name or _camel(name.rpartition(".")[2])
    made = replace(
        target, name=name, class_name=class_name, instead=target.name,
        schema=replace(target.schema, name=name),
        variant=lambda arguments: target.chosen(arguments).name,
    )  # fmt: skip
    _publish(made)


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def _publish(declared: Operator) -> None:
    """Make the function that users call, and register the operator."""

    def function(*inputs: Any, **arguments: Any) -> Any:
        try:
            return call(declared, inputs, arguments)
        except Exception as error:
            strip_internal_frames(error)
            raise

    functools.update_wrapper(function, declared.body)
    del function.__wrapped__  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = declared.name.rpartition(".")[2]
    function.__signature__ = declared.schema.signature()  # type: ignore[attr-defined]
    function.operator = declared  # type: ignore[attr-defined]
    function.body = declared.body  # type: ignore[attr-defined]
    declared.function = function
    registry.add(declared)
