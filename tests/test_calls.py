"""The table of calls: each operator has a row, and each row calls its operator."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

import pytest

from tests.calls import CALLS, FLOATS, calls
from tests.helpers.ways import VALUES, evaluate, words
from torchdali import Pipeline, fn
from torchdali.declaration.registry import registry
from torchdali.graph.nodes import Node

ELSEWHERE = {"_to_device": "comes with a GPU", "experimental.resize": "its body is that of resize"}
IN_MEMORY = [name for name in {**CALLS, **FLOATS} if not re.search(r"\b(folder|jpeg|film|wav)\b", " ".join(calls(name)))]


def test_every_operator_has_a_row() -> None:
    """Operators without a public name have their own tests."""
    ours = [name for name, o in registry.items() if o.is_ours and not (o.hidden or o.replacement)]
    assert not [name for name in ours if not calls(name)], "give it a row in tests/calls.py"


def test_every_row_is_of_an_operator() -> None:
    assert {*CALLS, *FLOATS} <= registry.keys()


@pytest.mark.parametrize("name", [name for name in IN_MEMORY if name not in ELSEWHERE and not registry[name].replacement])
def test_a_row_calls_its_operator(name: str) -> None:
    for call in calls(name):
        with warnings.catch_warnings(), Pipeline(1, 1, None):
            warnings.simplefilter("ignore", DeprecationWarning)
            outputs = evaluate(call, {word: fn.external_source([VALUES[word][0][:1]], layout=VALUES[word][1] or None) for word in words(call)})
            assert name in {each for output in outputs for each in _operators(output.source)}, call


def _operators(node: Node) -> Iterator[str]:
    yield node.operator.name
    for parent in node.parents():
        yield from _operators(parent)
