"""The graph that is recorded while a pipeline function runs: nodes, edges, and the user's lines that created them.

A node (`Node`) is one use of an operator. The user's function handles `DataNode` objects, which are the edges: the
outputs of nodes. A `Tracer` collects nodes while a pipeline function runs; operators find the current tracer with
`current`. Arithmetic on an edge also records a node. The arithmetic operators are in the registry. This module can't
import the operators' modules, because these import this module.
"""

from __future__ import annotations

import builtins
import itertools
import linecache
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

import torch.utils._pytree as pytree

from torchdali.declaration.registry import Operator, expression, lookup
from torchdali.errors import on_behalf_of, part_of
from torchdali.formats.urls import represent
from torchdali.reading.user_random import TracedDraws

if TYPE_CHECKING:
    from torchdali.tensors import TensorList

__all__ = [
    "DataNode", "Graph", "Node", "SourceLine", "Tracer", "current", "newaxis", "scope_of", "user_line",
]  # fmt: skip

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_COMMANDS = os.path.join(_PACKAGE, "_commands") + os.sep


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's code."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The line of code, without indentation."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f'File "{self.file}", line {self.line}, in {self.function}'


def user_line() -> tuple[SourceLine, ...]:
    """Return the user's lines that led to the current call of torchdali: innermost first, at most six.

    The result is empty if the call comes from one of torchdali's command line tools.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code is on_behalf_of.__code__:
            return (SourceLine(*frame.f_locals["site"]),)
        if frame.f_code.co_filename.startswith(_COMMANDS):
            return ()  # the outer frames belong to Python and torchdali's command, not to the user
        frame = frame.f_back
    lines: list[SourceLine] = []
    while frame is not None and len(lines) < 6:
        code = frame.f_code
        if code.co_filename.startswith(_PACKAGE):
            break  # the outer frames belong to pipeline_def, not to the user's function
        # A branch of an `if` on a node is a generated function. Its name begins with the name of the user's function.
        function = code.co_name.partition("__branch_")[0]
        lines.append(SourceLine(code.co_filename, frame.f_lineno, function))
        frame = frame.f_back
    return tuple(lines)


@dataclass(frozen=True, eq=False)  # compared by identity: == on edges records a node
class Condition:
    """A condition of a node: the node runs only for samples for which an edge has a certain value.

    Attributes:
        value: The value that the edge must have. True also accepts other true values, such as 5, and False accepts 0.
    """

    edge: DataNode
    value: bool | int

    def is_same(self, other: Condition) -> bool:
        """Return whether another condition requires the same value of the same edge."""
        output, other_output = (self.edge.source, self.edge.index), (other.edge.source, other.edge.index)
        return output == other_output and self.value == other.value


@dataclass(eq=False)
class Node:
    """One use of an operator in a graph.

    Attributes:
        device: "cpu", "gpu" or "mixed".
        inputs: Edges of the positional inputs; None for an omitted optional input.
        constants: Converted arguments that are the same for all samples. Arguments that the call omits are missing.
        per_sample: Arguments that are passed per sample.
        lines: The user's lines that created the node, innermost first.
        scope: Conditions under which the node runs (from ``if`` statements), outermost first.
        preserve: True if the node must run even if no output of the pipeline needs it.
        stream: Index of the node among the pipeline's random operators. Nodes with different indices get independent
            random numbers.
        outputs: Edges of the outputs.
        parts: If this node replaces several nodes of the user's graph, the replaced nodes; otherwise empty.
    """

    operator: Operator
    name: str
    device: str
    inputs: tuple[DataNode | None, ...]
    constants: Mapping[str, Any]
    per_sample: Mapping[str, DataNode]
    lines: tuple[SourceLine, ...]
    scope: tuple[Condition, ...] = ()
    preserve: bool = False
    stream: int = 0
    outputs: tuple[DataNode, ...] = field(default=(), init=False)
    parts: tuple[Node, ...] = field(default=(), init=False)

    @property
    def title(self) -> str:
        """Name of the operator for messages. If the node replaces several nodes, the names of all their operators."""
        return " + ".join(part.title for part in self.parts) or self.operator.title(self.constants)

    def culprit(self, error: BaseException) -> Node:
        """Return the node of the user's graph that raised an error: this node, or one of the nodes that it replaces."""
        return self.parts[part_of(error)] if self.parts else self

    def parents(self) -> Iterator[Node]:
        """Yield the nodes whose outputs this node needs, inputs first."""
        for edge in (*self.inputs, *self.per_sample.values(), *(c.edge for c in self.scope)):
            if edge is not None and edge.source is not None:
                yield edge.source

    def rename(self, name: str) -> None:
        """Rename the node and its outputs."""
        self.name = name
        for output in self.outputs:
            output.name = name

    @property
    def where(self) -> str:
        """The line of the user's code that created the node, as text for messages."""
        return f"{self.lines[0]}\n    {self.lines[0].text}" if self.lines else "an unknown line"

    def __str__(self) -> str:
        inputs = [str(i) for i in self.inputs if i is not None]
        constants = [f"{k}={_abbreviate(v)}" for k, v in self.constants.items()]
        per_sample = [f"{k}={v}" for k, v in self.per_sample.items()]
        results = ", ".join(map(str, self.outputs))
        condition = "".join(f" if {c.edge} is {c.value}" for c in self.scope)
        call = f"{self.operator.title(self.constants)}({', '.join(inputs + constants + per_sample)})"
        return f"{results or self.name} = {call}  [{self.device}]{condition}"


def _abbreviate(value: Any) -> str:
    text = represent(value)
    return text if len(text) <= 40 else text[:37] + "..."


class DataNode:
    """An edge of the graph: one output of an operator, which represents a batch of samples.

    Arithmetic, comparison and indexing record new nodes. The dtype of the results follows DALI's rules.
    """

    device: str
    dtype: Any
    index: int
    layout: str | None
    name: str
    ndim: int | None
    source: Node | None

    __slots__ = ("device", "dtype", "index", "layout", "name", "ndim", "source")

    def __init__(
        self,
        name: str,
        device: str = "cpu",
        source: Node | None = None,
        index: int = 0,
        ndim: int | None = None,
        dtype: Any = None,
        layout: str | None = None,
    ) -> None:
        self.name, self.device, self.source, self.index = name, device, source, index
        self.ndim, self.dtype, self.layout = ndim, dtype, layout

    def __str__(self) -> str:
        return f"{self.name}" if self.index == 0 else f"{self.name}[{self.index}]"

    def __repr__(self) -> str:
        return f'DataNode(name="{self.name}", device="{self.device}")'

    def gpu(self) -> DataNode:
        """Record a copy to the accelerator, and return its node. A node on the accelerator is returned unchanged."""
        return self if self.device == "gpu" else _apply("_to_device", self, device="gpu")

    def cpu(self) -> DataNode:
        """Record a copy to the CPU, and return its node. A node on the CPU is returned unchanged."""
        return self if self.device == "cpu" else _apply("_to_device", self, device="cpu")

    @builtins.property
    def shape(self) -> _Shape:
        """Shapes of the samples. ``node.shape()`` and ``node.shape[i]`` are nodes with the shapes or their items."""
        return _Shape(self)

    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """Return a node with the ``"source_info"`` or the ``"layout"`` of each sample, as 1D uint8 text."""
        return _apply("get_property", self, key=key, device=device)

    def source_info(self, *, device: str = "cpu") -> DataNode:
        """Return a node with the origin of each sample, for example its file, as 1D uint8 text."""
        return self.property("source_info", device=device)

    def __bool__(self) -> bool:
        tracer = current()
        if tracer is not None and tracer.converts:
            cure = f"Conditionals are enabled, but don't work here{_NOT_REWRITTEN}"
        else:
            cure = (
                "To use conditional execution via `if` statements you need to specify `enable_conditionals=True` in "
                "`@torchdali.pipeline_def` decorator, as for `and`, `or` and `not`"
            )
        raise TypeError(
            f'"DataNode" was used in conditional context: {self} represents a batch, whose truth value is not '
            f"known while the graph is built. {cure}. `math.min` and `math.max` compare elements, and the operator "
            "`cast` with dtype=types.BOOL converts them to booleans."
        )

    __iter__: ClassVar[None] = None  # so that a node isn't iterable, although it has `__getitem__`

    def __len__(self) -> int:
        raise TypeError(f"{self} represents a batch; its length is not known while the graph is built")

    def __getitem__(self, val: Any) -> DataNode:
        element: DataNode = apply("subscript", self, val)
        return element

    if not TYPE_CHECKING:  # type checkers must not see this method, so that they report unknown attributes

        def __getattr__(self, name: str) -> Any:
            replacement = _REPLACEMENTS.get(name, _OPERATOR_ADVICE)
            raise AttributeError(
                f"a DataNode has no attribute {name!r}: it represents a batch while the graph is built"
                + (f": use {replacement}" if not name.startswith("_") or name in _REPLACEMENTS else "")
            )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self} represents a batch and has no values while the graph is built: use {_OPERATOR_ADVICE}")

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise TypeError(
            f"NumPy's {function.__name__} does not accept {self}, which represents a batch: use {_OPERATOR_ADVICE}"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        """Record ``scalar + node``. NumPy calls this method if the left operand is a NumPy scalar."""
        name = _UFUNC_OPERATORS.get(ufunc.__name__)
        arrays = [o for o in operands if not isinstance(o, DataNode)]
        if name is None or method != "__call__" or any(getattr(a, "ndim", 0) for a in arrays):
            raise TypeError(
                f"NumPy's {ufunc.__name__} does not accept {self}, which represents a batch: write the node first "
                "(`node + array`), or use torchdali.math"
            )
        return apply(name, *[o.item() if hasattr(o, "item") else o for o in operands])

    @classmethod
    def __torch_function__(cls, func: Any, kinds: Any, operands: Any = (), arguments: Any = None) -> Any:
        """Record ``tensor + node`` and other arithmetic. Raise TypeError for torch functions that aren't arithmetic."""
        name = getattr(func, "__name__", str(func)).strip("_")
        swapped = name.startswith("r") and name[1:] in _OPERATORS
        if name in _OPERATORS or swapped:
            name = _UFUNC_OPERATORS.get(name, name)
            return apply(name[1:], *reversed(operands)) if swapped else apply(name, *operands)
        raise TypeError(f"torch's {name} does not accept a DataNode, which represents a batch: use {_TORCH_ADVICE}")

    if TYPE_CHECKING:  # in debug mode, nodes have this method

        def get(self) -> TensorList: ...

    if TYPE_CHECKING:  # `_install_arithmetic` defines these methods

        def __add__(self, other: Operand) -> DataNode: ...
        def __radd__(self, other: Operand) -> DataNode: ...
        def __sub__(self, other: Operand) -> DataNode: ...
        def __rsub__(self, other: Operand) -> DataNode: ...
        def __mul__(self, other: Operand) -> DataNode: ...
        def __rmul__(self, other: Operand) -> DataNode: ...
        def __truediv__(self, other: Operand) -> DataNode: ...
        def __rtruediv__(self, other: Operand) -> DataNode: ...
        def __floordiv__(self, other: Operand) -> DataNode: ...
        def __rfloordiv__(self, other: Operand) -> DataNode: ...
        def __mod__(self, other: Operand) -> DataNode: ...
        def __rmod__(self, other: Operand) -> DataNode: ...
        def __pow__(self, other: Operand) -> DataNode: ...
        def __rpow__(self, other: Operand) -> DataNode: ...
        def __and__(self, other: Operand) -> DataNode: ...
        def __rand__(self, other: Operand) -> DataNode: ...
        def __or__(self, other: Operand) -> DataNode: ...
        def __ror__(self, other: Operand) -> DataNode: ...
        def __xor__(self, other: Operand) -> DataNode: ...
        def __rxor__(self, other: Operand) -> DataNode: ...
        def __lshift__(self, other: Operand) -> DataNode: ...
        def __rshift__(self, other: Operand) -> DataNode: ...
        def __lt__(self, other: Operand) -> DataNode: ...
        def __le__(self, other: Operand) -> DataNode: ...
        def __gt__(self, other: Operand) -> DataNode: ...
        def __ge__(self, other: Operand) -> DataNode: ...
        def __eq__(self, other: object) -> DataNode: ...  # type: ignore[override]
        def __ne__(self, other: object) -> DataNode: ...  # type: ignore[override]
        def __neg__(self) -> DataNode: ...
        def __pos__(self) -> DataNode: ...
        def __abs__(self) -> DataNode: ...
        def __invert__(self) -> DataNode: ...
        def __hash__(self) -> int: ...

    else:
        __hash__ = object.__hash__


class _Shape:
    """The shapes of a node's samples. Calling or indexing this object returns a node."""

    __slots__ = ("_node",)

    def __init__(self, node: DataNode) -> None:
        self._node = node

    def __call__(self, *, dtype: Any = None, device: str = "cpu") -> DataNode:
        """Return a node with the shape of each sample, as a 1D tensor."""
        return _apply("_shape", self._node, dtype=dtype, device=device)

    def __getitem__(self, index: Any) -> DataNode:
        return self()[index]

    def __iter__(self, *_: Any) -> NoReturn:
        """Raise TypeError. Without this method, Python would iterate with `__getitem__`, which never ends."""
        raise TypeError(
            f"the shape of {self._node} has no length and cannot be unpacked, because its number of axes is not known "
            "while the graph is built; index the shape, as in height, width = node.shape[0], node.shape[1]"
        )

    if not TYPE_CHECKING:  # type checkers must not see this method, so that they report unknown attributes
        __len__ = __contains__ = __iter__

    def __repr__(self) -> str:
        return f"<shape of {self._node}: node.shape() and node.shape[i] are nodes too>"


_NOT_REWRITTEN = (
    ", because torchdali doesn't rewrite this code. It rewrites functions that your functions call and whose "
    "source Python finds. It doesn't rewrite properties, methods of signs such as `+`, generators, cases of `match`, "
    "installed packages and functions with do_not_convert. Move the `if` into a function, and call the function"
)
_OPERATOR_ADVICE = "the operators of fn and math, or fn.python_function for your own function"
_RUN_ADVICE = f"{_OPERATOR_ADVICE}; run() returns the values"
_TORCH_ADVICE = (
    "the operators of fn and math, or fn.torch_python_function(node, function=..., batch_processing=False) for torch "
    "functions and transforms"
)
_REPLACEMENTS = {
    **dict.fromkeys(("to", "type", "astype"), "fn.cast(node, dtype=...), node.gpu() or node.cpu()"),
    **dict.fromkeys(("permute", "transpose", "T"), "fn.transpose(node, perm=[...])"),
    **dict.fromkeys(("view", "reshape", "flatten"), "fn.reshape(node, shape=[...])"),
    **dict.fromkeys(("clamp", "clip"), "math.clamp(node, low, high)"),
    **dict.fromkeys(("numpy", "item", "tolist", "detach", "data"), _RUN_ADVICE),
    **{name: f"fn.reductions.{name}(node)" for name in ("sum", "mean", "min", "max")},
    **{name: f"math.{name}(node)" for name in ("sqrt", "exp", "log")},
    "__array_interface__": _OPERATOR_ADVICE,  # Pillow reads this attribute
    "float": "fn.cast(node, dtype=types.FLOAT)",
    "half": "fn.cast(node, dtype=types.FLOAT16)",
    "int": "fn.cast(node, dtype=types.INT32)",
    "long": "fn.cast(node, dtype=types.INT64)",
    "cuda": "node.gpu()",
    "size": "node.shape(), which is also a node",
    "squeeze": "fn.squeeze(node, axes=[...])",
    "unsqueeze": "fn.expand_dims(node, axes=[...])",
    "flip": "fn.flip(node, horizontal=1)",
    "std": "fn.reductions.std_dev(node, fn.reductions.mean(node))",
    "var": "fn.reductions.variance(node, fn.reductions.mean(node))",
}
"""For each attribute of tensors and arrays that nodes lack, the expression that an error message suggests."""


def _apply(operator: str, *inputs: Any, **arguments: Any) -> DataNode:
    result: DataNode = lookup(operator)(*inputs, **{k: v for k, v in arguments.items() if v is not None})
    return result


def apply(name: str, *operands: Any) -> Any:
    """Record an arithmetic operator (``"add"``, ``"lt"``, ``"subscript"`` ...) on nodes and constants."""
    return expression(name)(*operands)


BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift",
)  # fmt: skip
COMPARISON = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = ("neg", "pos", "abs", "invert")
Operand: TypeAlias = Any  # DataNode, number, ScalarConstant, array or tensor
_UFUNC_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv",
    "floor_divide": "floordiv", "remainder": "mod", "power": "pow", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "xor", "left_shift": "lshift", "right_shift": "rshift", "equal": "eq", "not_equal": "ne",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip


_OPERATORS = frozenset((*_UFUNC_OPERATORS, *BINARY, *COMPARISON))


def _install_arithmetic() -> None:
    def forward(name: str) -> Callable[..., Any]:
        return lambda *operands: apply(name, *operands)

    def backward(name: str) -> Callable[..., Any]:
        return lambda self, other: apply(name, other, self)

    for name in (*BINARY, *COMPARISON, *UNARY):
        setattr(DataNode, f"__{name}__", forward(name))
    for name in BINARY:
        setattr(DataNode, f"__r{name}__", backward(name))


_install_arithmetic()


def _refuse_flattening(node: DataNode) -> Any:
    """Raise TypeError if torch flattens a node as part of a tree of tensors.

    Otherwise, torchvision's v2 transforms would treat a node as an unknown object, and return it unchanged.
    """
    raise TypeError(
        f"{node} represents a batch while the graph is built, and torch cannot read it: use {_TORCH_ADVICE}"
    )


pytree.register_pytree_node(DataNode, _refuse_flattening, lambda values, context: values)


@dataclass(frozen=True)
class NewAxis:
    """An item of an index that inserts a dimension; see `newaxis`."""

    name: str | None = None

    def __call__(self, name: str | None = None) -> NewAxis:
        return NewAxis(name)


newaxis: NewAxis = NewAxis()
"""An index that inserts a dimension of extent 1, as in ``node[:, newaxis]``. ``newaxis("C")`` names the dimension."""


@dataclass(frozen=True)
class Graph:
    """A traced pipeline: its nodes and outputs. Each node comes after the nodes that it needs."""

    nodes: tuple[Node, ...]
    outputs: tuple[DataNode, ...]

    @classmethod
    def of(cls, outputs: Sequence[DataNode], recorded: Sequence[Node] = ()) -> Graph:
        """Build the graph of the nodes that the outputs need, and of the nodes with ``preserve``.

        Args:
            recorded: All recorded nodes, in the order in which they were recorded.

        Raises:
            RuntimeError: Several nodes have the same name.
        """
        roots = [edge.source for edge in outputs if edge.source is not None]
        roots += [node for node in recorded if node.preserve]
        ancestors: dict[Node, None] = {}
        for node in roots:
            _visit(node, ancestors)
        order = {node: i for i, node in enumerate(recorded)}
        # Each node was recorded after the nodes that it needs, so the order of recording is a valid order.
        nodes = sorted(ancestors, key=order.__getitem__) if ancestors.keys() <= order.keys() else list(ancestors)
        counts = Counter(node.name for node in nodes)
        for name, count in counts.items():
            if count > 1:
                duplicates = [node for node in nodes if node.name == name]
                locations = "".join(f"\n  {node.operator.name}: {node.where}" for node in duplicates)
                cure = "pass a different name= to each"
                if not order.keys() >= set(duplicates):
                    cure = "one was created outside this pipeline's function; create it inside"
                raise RuntimeError(
                    "The pipeline is invalid because it contains operators with non-unique names: "
                    f"{count} operators are called {name!r}: {cure}{locations}"
                )
        return cls(tuple(nodes), tuple(outputs))

    def __str__(self) -> str:
        return "\n".join([*map(str, self.nodes), f"return {', '.join(map(str, self.outputs))}"])


def _visit(node: Node, ancestors: dict[Node, None]) -> None:
    stack: list[tuple[Node, Iterator[Node]]] = [(node, node.parents())]
    while stack:
        current_node, parents = stack[-1]
        for parent in parents:
            if parent not in ancestors:
                stack.append((parent, parent.parents()))
                break
        else:
            ancestors.setdefault(current_node)
            stack.pop()


class Tracer:
    """Collects the nodes that operators record.

    Args:
        owner: The pipeline that is being defined. The tracer stores only a weak reference, to avoid a cycle of
            references.

    Attributes:
        draws: Detects random numbers that the pipeline function draws from Python's, NumPy's or torch's generators;
            None if this isn't checked.
        converts: True if ``if`` statements in the pipeline function are rewritten.
        nodes: The recorded nodes, in order.
        scope: The conditions of the branch that is being traced, outermost first.
    """

    live = False  # True in subclasses that compute each call immediately, with a method ``run(operator, call)``

    def __init__(self, owner: Any = None) -> None:
        self.draws: TracedDraws | None = None
        self.converts = False
        self._owner = (lambda: None) if owner is None else weakref.ref(owner)
        self.restart()

    @property
    def owner(self) -> Any:
        """The pipeline that is being defined; None if there is no pipeline, or if the pipeline no longer exists."""
        return self._owner()

    def restart(self) -> None:
        """Drop the recorded nodes, and start from the beginning."""
        self.nodes: list[Node] = []
        self.scope: tuple[Condition, ...] = ()
        self._random = 0

    def __enter__(self) -> Tracer:
        _stack().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Stop collecting nodes. This also works if an interrupt has ended `__enter__` or `__exit__` early."""
        if self in _stack():
            _stack().remove(self)

    def add(self, node: Node) -> None:
        node.scope = self._find_scope(node)
        self.assign_stream(node)
        self.nodes.append(node)

    def _find_scope(self, node: Node) -> tuple[Condition, ...]:
        """Return the conditions under which a node runs: the conditions of the current branch and of the inputs.

        The conditions of a nested branch begin with the conditions of the outer branch, so the longest list is
        returned.

        Raises:
            RuntimeError: The node's inputs belong to different branches.
        """
        scope = self.scope
        for edge in (*node.inputs, *node.per_sample.values()):
            other = _drop_last_condition(node, edge) if node.operator.options.merges else scope_of(edge)
            longer, shorter = (other, scope) if len(other) > len(scope) else (scope, other)
            if any(not a.is_same(b) for a, b in zip(longer, shorter, strict=False)):
                raise RuntimeError(
                    f"the inputs of operator {node.title!r} must belong to the same branch, but {edge} belongs to "
                    f"another branch and has other samples of the batch; merge the branches first"
                )
            scope = longer
        return scope

    def assign_stream(self, node: Node) -> None:
        """Assign the next stream of random numbers to a node, if its operator is random."""
        if node.operator.schema.random:
            node.stream, self._random = self._random, self._random + 1


def scope_of(edge: DataNode | None) -> tuple[Condition, ...]:
    """Return the conditions under which an edge has values. An omitted input (None) has no conditions."""
    return () if edge is None or edge.source is None else edge.source.scope


def _drop_last_condition(node: Node, edge: DataNode | None) -> tuple[Condition, ...]:
    """Return the conditions of an input of a node that merges branches.

    If the node merges the two branches of the input's last condition, this condition is omitted.
    """
    scope = scope_of(edge)
    ended = {_follow_negations(e) for e in node.per_sample.values()}
    return scope[:-1] if scope and _follow_negations(scope[-1].edge) in ended else scope


def _follow_negations(edge: DataNode) -> tuple[Node | None, int]:
    """Return the source and index of an edge. If the edge is ``not x``, return the source and index of ``x``."""
    while edge.source is not None and edge.source.operator.name == "_not":
        assert edge.source.inputs[0] is not None
        edge = edge.source.inputs[0]
    return edge.source, edge.index


_local = threading.local()
_serial = itertools.count(1)


def _stack() -> list[Tracer]:
    if not hasattr(_local, "stack"):
        _local.stack = []
    stack: list[Tracer] = _local.stack
    return stack


def current() -> Tracer | None:
    """Return the tracer of the pipeline that this thread is defining, or None."""
    stack = _stack()
    return stack[-1] if stack else None


def add_node(
    operator: Operator,
    inputs: Sequence[DataNode | None],
    constants: Mapping[str, Any],
    per_sample: Mapping[str, DataNode],
    *,
    device: str,
    outputs: int,
    name: str | None = None,
    preserve: bool = False,
) -> Node:
    """Create a node for one use of an operator. If a tracer is active in this thread, it records the node."""
    tracer = current()
    title = operator.title(constants).rpartition(".")[2]
    # A node that is created outside of a pipeline, usually a constant, gets a name that can't occur inside a pipeline.
    name = name or (f"__{title}_{len(tracer.nodes)}" if tracer else f"__outside_{title}_{next(_serial)}")
    node = Node(operator, name, device, tuple(inputs), constants, per_sample, user_line(), preserve=preserve)
    side = "cpu" if device == "cpu" else "gpu"
    node.outputs = tuple(DataNode(name, side, node, i) for i in range(outputs))
    if tracer is not None:
        tracer.add(node)
    return node
