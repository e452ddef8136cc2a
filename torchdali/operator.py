"""Declare operators.

`operator`, `reader` and `source` turn a Python function into an operator: its signature becomes the schema,
and the function that replaces it runs at once on tensors and `TensorList`s and is recorded on `DataNode`s
(`calling`, `running`, whose names are here too). The registry holds all of them; `torchdali.fn` and `torchdali.ops` are
published from it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, overload

from torchdali import schema
from torchdali.calling import Call, as_node, bind, call, record, run_now
from torchdali.errors import shorten
from torchdali.running import Prepared, collect, is_large, prepare, run_batch
from torchdali.schema import Schema
from torchdali.tensors import TensorList

__all__ = [
    "Call", "Made", "Operator", "Prepared", "Source", "SourceSettings", "SourceWorkers", "alias", "as_node", "bind",
    "call", "collect", "define_expression", "expression", "is_large", "lookup", "operator", "prepare", "reader",
    "record", "registry", "run_batch", "run_now", "source",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
LayoutRule = Callable[[tuple[str, ...], Mapping[str, Any]], "str | tuple[str, ...]"]


Made = tuple["tuple[TensorList, ...] | None", Mapping[str, Any]]
"""What a worker process makes: a batch an output (None at the end of the data), and the place after it."""


class SourceWorkers(Protocol):
    """The worker processes of a pipeline, as one source sees them."""

    count: int

    def submit(self, request: Any) -> Future[Made]:
        """Let a process run the source's `work` on a request."""

    def close(self) -> None:
        """End the processes."""


@dataclass(frozen=True)
class SourceSettings:
    """What a source learns of its pipeline.

    Attributes:
        workers: Processes, for a source that has `work` for them.
    """

    batch_size: int
    workers: SourceWorkers | None = None


class Source:
    """Where batches come from when it is not a reader: the runtime side of a `source` operator.

    First comes `open`, once, before the pipeline's threads start; then for every batch `schedule`, on the
    user's thread, and `next`, on the thread that starts batches; `close` at any time, from any thread.

    Attributes:
        work: What worker processes run for this source on the requests that it submits, or None.
        stateful: All requests must go to one process, in their order.
    """

    work: Callable[[Any], Made] | None = None
    stateful: bool = False

    def open(self, settings: SourceSettings) -> None:
        """Learn of the pipeline."""

    def schedule(self) -> None:
        """Notice that one more batch will be asked for."""

    def next(self, batch_size: int) -> tuple[TensorList, ...]:
        """Return the next batch, one `TensorList` an output; raise StopIteration at the end."""
        raise NotImplementedError

    def reset(self) -> None:
        """Start the next epoch."""

    def state(self) -> dict[str, Any]:
        """Return the position, as JSON values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a position."""

    def close(self) -> None:
        """Let go of everything, and make a `next` that waits fail."""


@dataclass(eq=False)
class Operator:
    """A declared operator.

    Attributes:
        body: The user's function.
        kind: ``sample`` (body sees one sample), ``batch`` (the whole batch), ``reader`` (body returns a
            `loader.Dataset`) or ``source`` (body returns a `Source`).
        layout: Layouts of the outputs from those of the inputs; None keeps the first input's.
        outputs: Number of outputs from the arguments, where it varies; None means one that is not returned
            in a list. Among the arguments, ``inputs`` is the number of inputs.
        dense: The same on samples of one shape: takes and returns tensors ``(N, ...)``; NotImplemented where it cannot.
            True for the body itself.
        by_shape: Only the shapes of the samples count; ``dense`` takes the list of them, which may differ.
        columns: ``dense`` takes arguments given per sample, too.
        copies: ``dense`` only copies what it is given.
        draws: Random numbers a sample usually takes, drawn ahead for the batch.
        separate: Of ``batch``: it works on each sample alone, too; so it can be told which one fails. A rule where that
            depends on the arguments.
        places: Arguments that name samples by their places in the batch.
        known: Of a reader: so many outputs, the last ones, are known without reading (`loader.Dataset.known`).
        preserve: Never pruned: it is there for its side effect.
        instead: What to use instead of this deprecated operator; calling it warns.
    """

    name: str
    body: Callable[..., Any]
    schema: Schema
    kind: str
    layout: LayoutRule | None = None
    outputs: Callable[[Mapping[str, Any]], int | None] | None = None
    dense: Callable[..., Any] | Literal[True] | None = None
    by_shape: bool = False
    columns: bool = False
    copies: bool = False
    draws: int = 8
    separate: bool | Callable[[Mapping[str, Any]], bool] = False
    places: tuple[str, ...] = ()
    known: int = 0
    devices: tuple[str, ...] = ("cpu", "gpu")
    preserve: bool = False
    hidden: bool = False
    class_name: str = ""
    instead: str = ""
    variant: Callable[[Mapping[str, Any]], str | None] | None = None
    make: Callable[[], Callable[..., Any]] | None = None
    function: Callable[..., Any] = field(init=False)

    def __post_init__(self) -> None:
        if self.dense is True:
            self.dense = self.body
        self.function = _publish(self)

    @property
    def dense_writes(self) -> bool:
        """Whether ``dense`` takes ``out``."""
        return callable(self.dense) and "out" in inspect.signature(self.dense).parameters

    @property
    def schema_name(self) -> str:
        """DALI's name of the schema, such as ``readers__File``."""
        return "__".join([*self.name.split(".")[:-1], self.class_name])

    def arguments(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constants with the defaults of the rest."""
        defaults = {a.name: a.default for a in self.schema.arguments.values() if not a.required}
        return defaults | dict(constants)

    def chosen(self, constants: Mapping[str, Any]) -> Operator:
        """Return the operator that takes a call over: itself, or its variant."""
        name = self.variant(constants) if self.variant is not None else None
        return registry[name] if name else self

    def count_outputs(self, constants: Mapping[str, Any], inputs: int = 0) -> int:
        if self.outputs is None:
            return self.schema.outputs
        count = self.outputs({**self.arguments(constants), "inputs": inputs})
        return 1 if count is None else count

    def works_alone(self, given: Mapping[str, Any]) -> bool:
        """Whether it can be run on one sample of a batch, to see if that is the one that fails.

        Args:
            given: Constants and what is given per sample.
        """
        if self.kind != "batch" or isinstance(self.separate, bool):
            return self.kind == "sample" or bool(self.separate)
        return self.separate(self.arguments(given))

    def returns_list(self, constants: Mapping[str, Any], inputs: int = 0) -> bool:
        """Whether a call returns a list of nodes instead of one node."""
        if self.outputs is None:
            return self.schema.outputs != 1
        return self.outputs({**self.arguments(constants), "inputs": inputs}) is not None

    def output_layouts(
        self, layouts: tuple[str, ...], constants: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return one layout an output."""
        count = self.count_outputs(constants, len(layouts))
        if self.layout is None:
            found: str | tuple[str, ...] = layouts[0] if layouts else ""
        else:
            found = self.layout(layouts, self.arguments(constants))
        found = (found,) if isinstance(found, str) else found
        return (*found, *[""] * (count - len(found)))[:count]


class _Registry(Mapping[str, Operator]):
    """All declared operators, by DALI's dotted name."""

    def __init__(self) -> None:
        self._operators: dict[str, Operator] = {}
        self.listeners: list[Callable[[Operator], None]] = []

    def __getitem__(self, name: str) -> Operator:
        return self._operators[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)

    def add(self, declared: Operator) -> None:
        self._operators[declared.name] = declared
        for listener in self.listeners:
            listener(declared)


registry = _Registry()
_expressions: dict[str, Callable[..., Any]] = {}


def lookup(name: str) -> Callable[..., Any]:
    """Return the function of a registered operator."""
    _load()
    return registry[name].function


def expression(name: str) -> Callable[..., Any]:
    """Return what computes an arithmetic operator on nodes (see ``ops/_arithmetic.py``)."""
    _load()
    return _expressions[name]


def define_expression(name: str) -> Callable[[F], F]:
    """Register what computes an arithmetic operator on nodes."""

    def register(function: F) -> F:
        _expressions[name] = function
        return function

    return register


def _load() -> None:
    import torchdali.ops  # noqa: F401  the one late binding: arithmetic on nodes finds its operators


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
    dense: Callable[..., Any] | Literal[True] | None = None,
    by_shape: bool = False,
    columns: bool = False,
    copies: bool = False,
    draws: int = 8,
    separate: bool | Callable[[Mapping[str, Any]], bool] = False,
    places: tuple[str, ...] = (),
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
        dense: What does the same, with the same arguments, on several samples of one shape: inputs and results are
            tensors ``(N, ...)``; it may take ``out``, and return NotImplemented where it has no better way than sample
            by sample. True for the body itself. For operators whose work on a sample is not much more than a call.
        by_shape: Only the shapes of the samples count: ``dense`` takes a list of them, and they may differ.
        columns: ``dense`` also takes arguments that are given per sample, as `schema.Column`s.
        copies: ``dense`` only copies what it is given: for samples of moderate size, too, one call is faster.
        draws: Random numbers that a sample usually takes.
        separate: Over the batch, it works on each sample alone, too: an error names the sample, and ``bad_samples`` can
            leave it out. Or ``rule(arguments) -> bool``, where ``arguments`` are all of them.
        places: Names of arguments that are indices of samples in the batch, as of `permute_batch`.
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
        known: So many outputs, the last ones, come from `loader.Dataset.known`, not from its `read`.
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
    declared = Operator(name, body, read, kind, class_name=class_name, **options)
    registry.add(declared)
    return declared.function


def alias(name: str, function: Any) -> None:
    """Declare a deprecated name of an operator; calls by it warn, and are calls of the operator."""
    target: Operator = function.operator
    made = replace(
        target, name=name, class_name=_camel(name.rpartition(".")[2]), instead=target.name,
        schema=replace(target.schema, name=name),
        variant=lambda arguments: target.chosen(arguments).name,
    )  # fmt: skip
    registry.add(made)


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def _publish(declared: Operator) -> Callable[..., Any]:
    def function(*inputs: Any, **arguments: Any) -> Any:
        try:
            return call(declared, inputs, arguments)
        except Exception as error:
            shorten(error)
            raise

    functools.update_wrapper(function, declared.body)
    del function.__wrapped__  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = declared.name.rpartition(".")[2]
    function.__signature__ = declared.schema.signature()  # type: ignore[attr-defined]
    function.operator = declared  # type: ignore[attr-defined]
    function.body = declared.body  # type: ignore[attr-defined]
    return function
