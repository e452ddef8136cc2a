"""The registry of all declared operators, by DALI's dotted names.

`torchdali.fn` and `torchdali.ops` are created from the registry. Arithmetic on nodes also finds its operators there. An
operator has an *implementation*: the decorated function. A *batched* implementation processes several samples in one
call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from torchdali.declaration.narrowing import Narrowing
from torchdali.declaration.schema import Schema

__all__ = [
    "LayoutRule", "Mark", "Operator", "OperatorFunction", "OperatorOptions", "define_expression", "expression",
    "is_ours", "lookup", "registry",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
Mark: TypeAlias = Literal["levels", "bytes", "view", "anywhere", "pixels", "encoded", "frames", "shared"]
LayoutRule = Callable[[tuple[str, ...], Mapping[str, Any]], "str | tuple[str, ...]"]


@dataclass(frozen=True, kw_only=True)
class OperatorOptions:
    """Options of the decorators `operator`, `reader` and `source` that the function's signature can't express.

    Several options can be rules. A rule is a function that receives a dictionary of a call's constants (``constants``),
    or of all arguments of a call (``arguments``).

    Args:
        name: Dotted name in `fn`; by default, the function's name. A name that begins with an underscore isn't in `fn`.
        title: The name that messages show for a hidden operator (whose name begins with an underscore), or
            ``rule(constants) -> title``.
        over: ``"sample"``: the implementation receives one sample, with any number of leading dimensions. ``"batch"``:
            it receives `TensorList`s, and a `Column` for each per-sample argument.
        make: Function without arguments that returns an implementation. This function is called once for each use of
            the operator, so that each use can have its own state.
        layout: Layout of the outputs, or ``rule(input_layouts, arguments) -> layout(s)``. If None, the outputs have the
            first input's layout.
        outputs: ``rule(arguments) -> int | None``, if the number of outputs varies. ``arguments["inputs"]`` is the
            number of inputs. If the rule returns None, there is one output, and a call returns a node, not a list.
        results: ``rule(arguments, outputs) -> value``. A call returns this value instead of the list of outputs.
        variant: ``rule(arguments) -> name | None``. If the rule returns the name of a hidden operator with the same
            signature, this hidden operator runs instead. The rule is for operators that need the whole batch only for
            some arguments. Arguments that are passed per sample are None in the dictionary.
        separable: True if an operator over the batch also works on single samples, or ``rule(arguments) -> bool``. If a
            separable operator fails, the error names the sample, and ``bad_samples`` can skip the sample.
        devices: The devices that the operator supports: ``"cpu"``, ``"gpu"``, ``"mixed"``.
        only_mixed: Arguments that have an effect only with ``device="mixed"``, and are ignored with other devices.
        preserve: True to run the operator even if no output needs its result, because it has a side effect.
        pure: True if worker processes may run a user's operator. The operator's results must then depend only on its
            inputs, its arguments and `torchdali.Shared` values. If False, the operator runs in the main process.
        check: ``rule(arguments)`` that raises an error for invalid constants when a pipeline is built. The dictionary
            doesn't contain per-sample arguments.
        merges: True if each input is the result of a branch of an ``if``, and a per-sample argument selects the input.
        deprecated: Maps each old argument name to the new name, or to None if the argument no longer has an effect.
        marks: Properties of the operator:

            ==============  ===========================================================================
            ``"levels"``    only moves or interpolates pixels, so values keep their range and meaning
            ``"bytes"``     without ``dtype``, the output is uint8 if the input is uint8; operators with
                            ``"levels"`` also have this property
            ``"view"``      the output may be a view of the input, as in PyTorch. The output of a reader
                            may be a view of the dataset's memory, for example of a mapped file
            ``"anywhere"``  doesn't access the elements of its inputs, which may be on any device
            ``"pixels"``    accepts any number of axes, but only makes sense for pixels
            ``"encoded"``   a reader whose first output is the unchanged bytes of files
            ``"frames"``    processes all frames of a sample in one call, each frame independently. On a
                            device, samples of one shape are therefore processed like frames of one sample,
                            unless an argument is passed per sample
            ``"shared"``    a decoder that sends a fraction of the images, ``hw_decoder_load``, to the
                            device's hardware decoder
            ==============  ===========================================================================
    """

    name: str = ""
    title: Callable[[Mapping[str, Any]], str] | str = ""
    over: str = "sample"
    make: Callable[[], Callable[..., Any]] | None = None
    layout: LayoutRule | str | None = None
    outputs: Callable[[Mapping[str, Any]], int | None] | None = None
    results: Callable[[Mapping[str, Any], Sequence[Any]], Any] | None = None
    variant: Callable[[Mapping[str, Any]], str | None] | None = None
    separable: bool | Callable[[Mapping[str, Any]], bool] = False
    devices: tuple[str, ...] = ("cpu", "gpu")
    only_mixed: tuple[str, ...] = ()
    preserve: bool = False
    pure: bool = False
    check: Callable[[Mapping[str, Any]], None] | None = None
    merges: bool = False
    deprecated: Mapping[str, str | None] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()


class OperatorFunction(Protocol[P, R]):
    """The function of an operator.

    A call with tensors or `TensorList`s runs immediately; a call with `DataNode`s is recorded in the graph.

    Attributes:
        implementation: The declared function. It can be called directly, without checks and conversions.
    """

    __name__: str
    __qualname__: str
    __signature__: inspect.Signature
    operator: Operator

    @property
    def implementation(self) -> Callable[P, R]: ...

    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...


def is_ours(declared: Any) -> bool:
    """Return whether a function or class belongs to this package."""
    return (declared.__module__ or "").partition(".")[0] == __name__.partition(".")[0]


@dataclass(eq=False)
class Operator:
    """A declared operator.

    Attributes:
        name: Dotted name in `fn`.
        class_name: Name in `ops`.
        kind: ``sample`` (`implementation` processes one sample), ``batch`` (`implementation` processes the whole
            batch), ``reader`` (`implementation` returns a `datasets.Dataset`) or ``source`` (`implementation` returns a
            `BatchSource`).
        schema: The schema, read from the signature.
        options: The options of the decorator.
        metadata: For a reader, the number of outputs that `datasets.Dataset.metadata` returns. These outputs come after
            the outputs that `read` returns.
        writes: True for a reader whose dataset's `read` accepts ``out``; see `datasets.Dataset`.
        replacement: If the operator is deprecated, the replacement's name.
        chunks: Maps each ``form`` of `decorators.chunk` to the batched implementation.
        chunk_arguments: Maps each ``form`` to the arguments that the batched implementation accepts per sample.
        allocates: See `decorators.chunk`.
        only_on_devices: See `decorators.chunk`.
        narrowing: How the operator changes the decoding of an image; None if the operator needs pixels.
        function: The function that users call.
    """

    name: str
    class_name: str
    kind: str
    implementation: Callable[..., Any]
    schema: Schema
    options: OperatorOptions
    metadata: int = 0
    writes: bool = False
    replacement: str = ""
    chunks: dict[str, Callable[..., Any]] = field(default_factory=dict)
    chunk_arguments: dict[str, frozenset[str]] = field(default_factory=dict)
    allocates: bool = False
    only_on_devices: bool = False
    narrowing: Narrowing | None = None
    function: OperatorFunction[..., Any] = field(init=False)

    @property
    def hidden(self) -> bool:
        """True if the operator isn't in `fn` and `ops`, because its name begins with an underscore or ``math.``."""
        return self.name.startswith(("_", "math."))

    @property
    def is_ours(self) -> bool:
        """True if this package declares the operator; False for the user's operators."""
        return is_ours(self.implementation)

    def has(self, *marks: Mark) -> bool:
        """Return True if the operator has at least one of the marks; see `OperatorOptions`."""
        return not set(marks).isdisjoint(self.options.marks)

    @property
    def accepts_tensors(self) -> bool:
        """True if the operator can process several samples on the CPU in one call, stacked in one tensor."""
        return "tensor" in self.chunks and not self.only_on_devices

    @property
    def schema_name(self) -> str:
        """DALI's name of the schema, for example ``readers__File``."""
        return "__".join([*self.name.split(".")[:-1], self.class_name])

    def title(self, constants: Mapping[str, Any]) -> str:
        title = self.options.title
        return (title if isinstance(title, str) else title(constants)) or self.name

    def arguments(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constants, with defaults for the arguments that the call omits."""
        return {**self.schema.defaults, **constants}

    def axes_of(self, name: str) -> int | None:
        """Return the number of axes of an argument's values.

        The result is None if the number may vary, or if the values are indices of samples.
        """
        argument = self.schema.arguments.get(name)  # None in a fused operator, where the arguments have other names
        return None if argument is None or argument.has_sample_indices else argument.axes

    def is_per_frame(self, name: str, layout: str) -> bool:
        """Return whether the argument accepts one value per frame and the layout begins with frames."""
        argument = self.schema.arguments.get(name)  # None if the name belongs to a condition
        return layout[:1] == "F" and argument is not None and argument.edge != "sample"

    def select_variant(self, constants: Mapping[str, Any]) -> Operator:
        """Return the operator that runs a call with these constants: a variant of this operator, or this operator."""
        name = self.options.variant(constants) if self.options.variant is not None else None
        return registry[name] if name else self

    def count_outputs(self, constants: Mapping[str, Any], inputs: int = 0) -> int:
        if self.options.outputs is None:
            return self.schema.outputs
        count = self.options.outputs({**self.arguments(constants), "inputs": inputs})
        return 1 if count is None else count

    def is_separable(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether the operator can run on single samples. If it can, errors name the sample."""
        if self.kind != "batch" or isinstance(self.options.separable, bool):
            return self.kind == "sample" or bool(self.options.separable)
        return self.options.separable(self.arguments(arguments))

    def returns_list(self, constants: Mapping[str, Any], inputs: int = 0) -> bool:
        """Return True if a call returns a list of nodes instead of one node."""
        if self.options.outputs is None:
            return self.schema.outputs != 1
        return self.options.outputs({**self.arguments(constants), "inputs": inputs}) is not None

    def output_layouts(self, layouts: tuple[str, ...], constants: Mapping[str, Any]) -> tuple[str, ...]:
        """Return one layout per output, from the layouts of the inputs."""
        count = self.count_outputs(constants, len(layouts))
        rule = self.options.layout
        if rule is None:
            outputs: str | tuple[str, ...] = layouts[0] if layouts else ""
        else:
            outputs = rule if isinstance(rule, str) else rule(layouts, self.arguments(constants))
        outputs = (outputs,) if isinstance(outputs, str) else outputs
        return (*outputs, *[""] * (count - len(outputs)))[:count]


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


registry: _Registry = _Registry()
_expressions: dict[str, Callable[..., Any]] = {}


def lookup(name: str) -> OperatorFunction[..., Any]:
    return registry[name].function


def expression(name: str) -> Callable[..., Any]:
    """Return the function that records an arithmetic operator on nodes (see ``ops/_arithmetic.py``)."""
    return _expressions[name]


def define_expression(name: str) -> Callable[[F], F]:
    """Register the decorated function, which records an arithmetic operator on nodes."""

    def register(function: F) -> F:
        _expressions[name] = function
        return function

    return register
