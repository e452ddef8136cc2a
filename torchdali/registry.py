"""The registry: all declared operators, by DALI's dotted names.

`torchdali.fn` and `torchdali.ops` are published from it, and arithmetic on nodes finds its operators here. It stands
below the graph, so that nodes can name their operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torchdali.batching import Batched
from torchdali.schema import Schema

__all__ = ["LayoutRule", "Operator", "define_expression", "expression", "lookup", "registry"]

F = TypeVar("F", bound=Callable[..., Any])
LayoutRule = Callable[[tuple[str, ...], Mapping[str, Any]], "str | tuple[str, ...]"]


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
        batched: A second body, for several samples of one shape in one call; see `operator.batched`.
        separable: Of ``batch``: it works on each sample alone, too, which shows the one that fails. A rule where that
            depends on the arguments.
        index_arguments: Arguments that are indices of samples in the batch.
        metadata: Of a reader: number of outputs, the last ones, that come from `loader.Dataset.metadata`.
        preserve: Never pruned: it is there for its side effect.
        instead: What to use instead of this deprecated operator; calling it warns.
        results: What a call returns, made of its arguments and the list of its outputs; None for the list.
    """

    name: str
    body: Callable[..., Any]
    schema: Schema
    kind: str
    layout: LayoutRule | None = None
    outputs: Callable[[Mapping[str, Any]], int | None] | None = None
    batched: Batched | None = None
    separable: bool | Callable[[Mapping[str, Any]], bool] = False
    index_arguments: tuple[str, ...] = ()
    metadata: int = 0
    devices: tuple[str, ...] = ("cpu", "gpu")
    preserve: bool = False
    hidden: bool = False
    class_name: str = ""
    instead: str = ""
    results: Callable[[Mapping[str, Any], Sequence[Any]], Any] | None = None
    variant: Callable[[Mapping[str, Any]], str | None] | None = None
    make: Callable[[], Callable[..., Any]] | None = None
    function: Callable[..., Any] = field(init=False)

    @property
    def schema_name(self) -> str:
        """DALI's name of the schema, such as ``readers__File``."""
        return "__".join([*self.name.split(".")[:-1], self.class_name])

    def arguments(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constants with the defaults of the rest."""
        return {**self.schema.defaults, **constants}

    def axes_of(self, name: str) -> int | None:
        """Return the number of axes of an argument's values; None where it may vary."""
        return None if name in self.index_arguments else self.schema.arguments[name].axes

    def chosen(self, constants: Mapping[str, Any]) -> Operator:
        """Return the operator that takes a call over: itself, or its variant."""
        name = self.variant(constants) if self.variant is not None else None
        return registry[name] if name else self

    def count_outputs(self, constants: Mapping[str, Any], inputs: int = 0) -> int:
        if self.outputs is None:
            return self.schema.outputs
        count = self.outputs({**self.arguments(constants), "inputs": inputs})
        return 1 if count is None else count

    def is_separable(self, given: Mapping[str, Any]) -> bool:
        """True if it can be run on one sample of a batch, to see if that is the one that fails.

        Args:
            given: Constants and what is given per sample.
        """
        if self.kind != "batch" or isinstance(self.separable, bool):
            return self.kind == "sample" or bool(self.separable)
        return self.separable(self.arguments(given))

    def returns_list(self, constants: Mapping[str, Any], inputs: int = 0) -> bool:
        """True if a call returns a list of nodes instead of one node."""
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
    return registry[name].function


def expression(name: str) -> Callable[..., Any]:
    """Return what computes an arithmetic operator on nodes (see ``ops/_arithmetic.py``)."""
    return _expressions[name]


def define_expression(name: str) -> Callable[[F], F]:
    """Register what computes an arithmetic operator on nodes."""

    def register(function: F) -> F:
        _expressions[name] = function
        return function

    return register
