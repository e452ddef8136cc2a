"""Functions pickled by value, which a new process could not import."""

from __future__ import annotations

import json
import math
import pickle
import sys
from types import ModuleType
from typing import Any

import pytest

from torchdali import pickling


def again(value: Any) -> Any:
    return pickling.loads(pickling.dumps(value))


def named(x: int) -> int:
    return x + 1


def test_importable_functions_are_pickled_by_name() -> None:
    assert again(named) is named
    assert again([json.dumps, math.sqrt, json]) == [json.dumps, math.sqrt, json]
    assert len(pickling.dumps(named)) < 100


def test_lambdas_and_local_functions() -> None:
    factor = 3

    def local(x: int, *, plus: int = 1) -> float:
        return math.sqrt(named(x) * factor) + plus

    assert again(lambda: local(2))() == local(2)
    made = again(local)
    assert made is not local
    assert (made(2), made(2, plus=5)) == (local(2), local(2, plus=5))
    assert made.__qualname__ == local.__qualname__


def test_a_function_that_calls_itself() -> None:
    def factorial(n: int) -> int:
        return 1 if n == 0 else n * factorial(n - 1)

    assert again(factorial)(5) == 120


def test_functions_inside_data() -> None:
    found = again({"a": [lambda x: x + 1, named]})
    assert found["a"][0](1) == 2 and found["a"][1] is named


def test_nested_code_finds_its_globals() -> None:
    assert again(lambda xs: [[named(x) for x in row] for row in xs])([[1]]) == [[2]]


def test_attributes_and_defaults() -> None:
    def local(a: int = 4) -> int:
        return a

    local.note = "kept"  # type: ignore[attr-defined]
    made = again(local)
    assert (made(), made.note) == (4, "kept")


def test_marked_functions_are_pickled_by_value() -> None:
    @pickling.pickle_by_value
    def local() -> int:
        return 1

    assert again(local)() == 1
    with pytest.raises(TypeError):
        pickling.pickle_by_value(3)  # type: ignore[type-var]


def test_functions_of_an_interactive_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ModuleType("__main__")
    exec("def helper(): return 7\ndef typed(): return helper()", session.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", session)
    data = pickling.dumps(session.typed)
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    assert pickling.loads(data)() == 7


def test_unpicklable_functions_are_errors() -> None:
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickling.dumps(x for x in [1])
