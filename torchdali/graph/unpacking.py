"""Error messages for programs that unpack an operator's outputs incorrectly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchdali.graph.nodes import Node

__all__ = ["explain_output_name", "explain_unpacking"]

_PASS_NUM_OUTPUTS = "to get several outputs, pass num_outputs="
_OPERATOR_ADVICE = {
    "python_function": _PASS_NUM_OUTPUTS,
    "torch_python_function": _PASS_NUM_OUTPUTS,
    "external_source": _PASS_NUM_OUTPUTS,
}


def explain_unpacking(error: BaseException | None, nodes: Sequence[Node]) -> None:
    """Add advice to Python's error if the user's code iterates over a node; leave other errors unchanged."""
    if not isinstance(error, TypeError) or not nodes or "DataNode" not in str(error) or "iterable" not in str(error):
        return
    last = nodes[-1]
    name = last.operator.name
    advice = _OPERATOR_ADVICE.get(name) or (
        _explain_samples(last.constants["dataset"]) if name == "readers.dataset" else ""
    )
    error.args = (
        f"{error}, which is one output and represents a batch. The last operator before, {last.title!r}, has "
        f"{len(last.outputs)}, as in {', '.join('abcdefgh'[: len(last.outputs)])} = fn.{name}(...)"
        + (f"; {advice}" if advice else ""),
    )


def _explain_samples(dataset: Any) -> str:
    kind = type(dataset.first).__name__
    if kind == "list":
        return "a list is one output: return a tuple to get one output per element"
    return (
        f"samples of the type {kind} are one output. Each element of a tuple is an output, and each column of a "
        f"dictionary, or each name in columns=[...]"
    )


def explain_output_name(text: Any, nodes: Sequence[Node]) -> str:
    """Return advice for text that is the name of a reader's output, and "" for other values.

    A program that unpacks a dictionary of outputs gets the dictionary's keys, and passes these keys to operators.
    """
    for node in nodes if isinstance(text, str) else ():
        names = node.constants["dataset"].names if node.operator.name == "readers.dataset" else ()
        if text in names:
            listed = ", ".join(f"outputs[{name!r}]" for name in names[:4])
            return (
                f"; it is the name of an output in a dictionary. Keep the dictionary, and index it: "
                f"outputs = fn.{node.operator.name}(..., columns={list(names[:4])}), and then {listed}"
            )
    return ""
