"""Functions that rewritten code calls for ``if``, ``and``, ``or`` and ``not`` on values that may be nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from torchdali.declaration.registry import lookup
from torchdali.graph import nodes
from torchdali.graph.constants import as_node
from torchdali.graph.nodes import Condition, DataNode

__all__ = [
    "and_", "if_else", "if_return", "load", "make_undefined", "not_", "or_", "python_only", "read", "store_attribute",
    "store_item",
]  # fmt: skip


class Undefined:
    """The value of a variable that was not set, or that was set in only one branch.

    Args:
        reason: The error message if only one branch of an ``if`` has set the variable; otherwise "".
    """

    def __init__(self, name: str, reason: str = "") -> None:
        self.name, self.reason = name, reason

    def fail(self) -> NoReturn:
        """Raise the error for reading the variable before it is set."""
        if self.reason:
            raise RuntimeError(self.reason)
        raise UnboundLocalError(f"cannot access local variable {self.name!r} where it is not associated with a value")


def read(value: Any) -> Any:
    """Return the value of a variable that may be `Undefined`.

    Raises:
        UnboundLocalError: The variable isn't set.
        RuntimeError: One branch of an ``if`` on a node doesn't set the variable.
    """
    if isinstance(value, Undefined):
        value.fail()
    return value


def make_undefined(name: str) -> Undefined:
    """Return the initial value of a variable, before it is set."""
    return Undefined(name)


def load(read: Callable[[], Any], name: str) -> Any:
    """Return the value of an attribute or element; `Undefined` if it doesn't exist yet."""
    try:
        return read()
    except Exception:
        return Undefined(name)


def store_attribute(owner: Callable[[], Any], name: str, value: Any) -> None:
    """Set an attribute to the result of `load` or of a merge. If the value is undefined, delete the attribute."""
    if not _is_unset(value):
        setattr(owner(), name, value)
    else:
        with contextlib.suppress(Exception):
            delattr(owner(), name)


def store_item(owner: Callable[[], Any], key: Any, value: Any) -> None:
    """Set an element to the result of `load` or of a merge. If the value is undefined, delete the element."""
    if not _is_unset(value):
        owner()[key] = value
    else:
        with contextlib.suppress(Exception):
            del owner()[key]


def _is_unset(value: Any) -> bool:
    return isinstance(value, Undefined) and not value.reason


_LOOP = "put the rest of the loop into its own `if` instead"
_UNSUPPORTED = {
    "expression": "a conditional expression; write an `if` statement that sets a variable in both branches",
    "while": "a `while`: samples would need different numbers of iterations; write a `for` over a Python range with "
    "an `if` in it",
    "assert": "an `assert`: values aren't known while the graph is traced; check the outputs, or use python_function",
    "comprehension": "a comprehension; write a `for` with an `if` in it",
    "break": f"an `if` with `break` in it: all samples leave a loop together; {_LOOP}",
    "continue": f"an `if` with `continue` in it: all samples run each iteration together; {_LOOP}",
    "yield": "an `if` with `yield` in it; a pipeline function can't be a generator",
    "del": "an `if` with `del` in it; remove the `del`",
    "global": "an `if` that sets a global variable; set a local variable, and assign it to the global variable after "
    "the `if`",
    "nonlocal": "an `if` with `nonlocal` in it; move the declaration to the top of the function",
    "return": "an `if` that returns from inside `{}`; set a variable there, and return it at the end of the function",
}
"""For each construct that isn't rewritten: its name in the error message, and the code to write instead."""


def python_only(test: Any, construct: str, inside: str = "") -> Any:
    """Check the condition of a construct that isn't rewritten, and return the condition.

    Raises:
        TypeError: The condition is a node.
        RuntimeError: The condition is a node, and a branch returns. DALI also raises RuntimeError.
    """
    if not isinstance(test, DataNode):
        return test
    kind = RuntimeError if construct == "return" else TypeError
    raise kind(
        f"{test} represents a batch, and each sample has its own truth value, so it cannot be the condition of "
        + _UNSUPPORTED[construct].format(inside)
    )


def if_else(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
) -> None:
    """Run an ``if``. If the condition is a node, run both branches and merge the values; otherwise run one branch.

    Args:
        body: The branch for a true condition.
        orelse: The branch for a false condition.
        get: Function that returns the values of the variables, attributes and elements that the branches set.
        put: Function that sets these values.
        names: Names of the variables, attributes and elements, in the same order.
    """
    if not isinstance(test, DataNode):
        (body if test else orelse)()
        return
    initial = get()
    _trace_branch(test, True, body)
    on_true = get()
    put(initial)
    _trace_branch(test, False, orelse)
    on_false = get()
    put(tuple(_merge_variable(test, *v) for v in zip(names, initial, on_true, on_false, strict=True)))


def if_return(
    test: Any,
    body: Callable[[], Any],
    orelse: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]] = tuple,
    put: Callable[[tuple[Any, ...]], None] = lambda values: None,
    names: tuple[str, ...] = (),
) -> Any:
    """Run an ``if`` whose branches return, and return the merged result. See `if_else` for the arguments.

    Attributes and elements that the branches set are also merged.
    """
    if not isinstance(test, DataNode):
        return (body if test else orelse)()
    initial = get()
    on_true = _trace_branch(test, True, body)
    after_true = get()
    put(initial)
    on_false = _trace_branch(test, False, orelse)
    after_false = get()
    put(
        tuple(
            start if name.isidentifier() else _merge_variable(test, name, start, one, other)
            for name, start, one, other in zip(names, initial, after_true, after_false, strict=True)
        )
    )
    if (on_true is None) != (on_false is None):
        missing = "if" if on_true is None else "else"
        raise RuntimeError(
            f"{_INCONSISTENT} The `{missing}` branch must also have a return statement. The condition is {test}."
        )
    return _merge(test, on_true, on_false, "the returned value")


def and_(left: Any, right: Callable[[], Any], *variables: Any) -> Any:
    """Compute ``left and right()``.

    Args:
        variables: Getter, setter and names of the variables that `right` sets; empty if `right` sets no variables.
    """
    if not isinstance(left, DataNode):
        return left and right()
    return _shortcut(left, right, "and", *variables)


def or_(left: Any, right: Callable[[], Any], *variables: Any) -> Any:
    """Compute ``left or right()``; see `and_`."""
    if not isinstance(left, DataNode):
        return left or right()
    return _shortcut(left, right, "or", *variables)


def not_(value: Any) -> Any:
    """Compute ``not value``."""
    return lookup("_not")(value) if isinstance(value, DataNode) else not value


def _shortcut(
    left: DataNode,
    right: Callable[[], Any],
    word: str,
    get: Callable[[], tuple[Any, ...]] = tuple,
    put: Callable[[tuple[Any, ...]], None] = lambda values: None,
    names: tuple[str, ...] = (),
) -> Any:
    left = lookup("_logical")(left, expression=word, side="left")
    initial = get()
    other = _trace_branch(
        left,
        word == "and",
        lambda: lookup("_logical")(as_node(right()), expression=word, side="right"),
    )
    after = get()
    branches = (after, initial) if word == "and" else (initial, after)
    put(tuple(_merge_variable(left, *each) for each in zip(names, initial, *branches, strict=True)))
    on_true, on_false = (other, left) if word == "and" else (left, other)
    return _merge(left, on_true, on_false, f"the result of `{word}`")


def _trace_branch(test: DataNode, value: bool, branch: Callable[[], Any]) -> Any:
    """Run a branch, and add the condition to the nodes that the branch records."""
    if test.device != "cpu":
        raise ValueError(
            "Invalid device \"gpu\" for argument 'predicate' of operator 'nvidia.dali.fn._conditional.split'. "
            f"The condition {test} must be on the CPU; use .cpu()"
        )
    tracer = nodes.current()
    if tracer is None:
        raise RuntimeError("`if` on a node works only while a pipeline is being defined")
    outer = tracer.scope
    while test.source is not None and test.source.operator.name == "_not":
        negated = test.source.inputs[0]
        assert negated is not None
        test, value = negated, not value
    tracer.scope = (*max(outer, nodes.scope_of(test), key=len), Condition(test, value))
    try:
        return branch()
    finally:
        tracer.scope = outer


_INCONSISTENT = (
    "Encountered inconsistent outputs out of the `if/else` control flow statement. Variables need to be initialized in "
    "every code path (both `if` branches)."
)


def _merge_variable(test: DataNode, name: str, initial: Any, on_true: Any, on_false: Any) -> Any:
    """Merge the values of a variable after both branches.

    If one branch hasn't set the variable, return `Undefined` with the reason.
    """
    for value, branch in ((on_true, "if"), (on_false, "else")):
        if isinstance(value, Undefined):
            if on_true is on_false:
                return initial
            if value.name != name:
                return value  # the branch assigned another variable, which is undefined, to this variable
            rule = f"Variable {name!r} must also be initialized in the `{branch}` branch. The condition is {test}."
            return Undefined(name, f"{_INCONSISTENT} {rule}")
    return _merge(test, on_true, on_false, f"the variable {name!r}")


def _merge(test: DataNode, on_true: Any, on_false: Any, name: str) -> Any:
    """Merge the values of two branches. Lists, tuples and dicts are merged element by element."""
    if on_true is on_false:
        return on_true
    for kind in (list, tuple):
        if isinstance(on_true, kind) and isinstance(on_false, kind) and len(on_true) == len(on_false):
            pairs = zip(on_true, on_false, strict=True)
            return kind(_merge(test, a, b, f"{name}[{i}]") for i, (a, b) in enumerate(pairs))
    if isinstance(on_true, dict) and isinstance(on_false, dict) and on_true.keys() == on_false.keys():
        return {k: _merge(test, on_true[k], on_false[k], f"{name}[{k!r}]") for k in on_true}
    if isinstance(on_true, (list, tuple, dict)) and isinstance(on_false, (list, tuple, dict)):
        raise ValueError(
            f"{name} must have the same structure in both branches of an `if` on {test}, got {on_true} and {on_false}"
        )
    number = (DataNode, bool, int, float, np.generic, np.ndarray)
    if not isinstance(on_true, number) or not isinstance(on_false, number):
        raise TypeError(
            f"{name} must be a node, a number, an array, or a list or dict of these in both branches of an `if` on "
            f"{test}, got {_kind(on_true)} and {_kind(on_false)}"
        )
    return lookup("_merge")(as_node(on_true), as_node(on_false), condition=test, what=name)


def _kind(value: Any) -> str:
    return "a node" if isinstance(value, DataNode) else f"a {type(value).__name__}"
