"""Functions with plain Python conditions return the same in a pipeline with conditionals as outside of one."""

from __future__ import annotations

import copy
import inspect
import itertools
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from torchdali import Pipeline, fn, pipeline_def
from torchdali.graph.conditionals import convert

COUNT = 0
OTHER = 0


@contextmanager
def quiet() -> Any:
    with suppress(ValueError):
        yield


# ------------------------------------------------------------------------- an unchanged `if` with a return


def deletes_an_element(a, b, box):
    if "x" in box:
        del box["x"]
        if b:
            return "early"
    return "late"


def deletes_an_attribute(a, b, box):
    box["o"].value = 1
    if a:
        del box["o"].value
        if b:
            return hasattr(box["o"], "value")
        else:
            box["x"] = 2
    return "late"


def deletes_a_variable(a, b, box):
    x = 1
    if a:
        del x
        if b:
            return "early"
        x = 2
    return x


def sets_a_global(a, b, box):
    global COUNT
    if a:
        COUNT += 1
        if b:
            return COUNT
        elif not b:
            return -COUNT
    return "late"


def declares_a_global_inside(a, b, box):
    if a:
        global OTHER
        OTHER += 1
        if b:
            return OTHER
    return "late"


def declares_nonlocal_inside(a, b, box):
    n = 0

    def inner():
        if a:
            nonlocal n
            n += 1
            if b:
                return "early"
        return "late"

    return inner(), n


def returns_from_a_deeper_if(a, b, box):
    if a:
        del box["x"]
        if b:
            if "o" in box:
                return "early"
            box["y"] = 1
        box["z"] = 1
    return "late"


def returns_in_an_else(a, b, box):
    if a:
        pass
    else:
        del box["x"]
        if b:
            return "early"
    return "late"


def loops_in_an_if_that_stays(a, b, box):
    if a:
        del box["x"]
        for i in range(3):
            if i == 1 and b:
                return i
        while b:
            if i:
                return "while"
    return "late"


# ------------------------------------------------------------------ code after an early return


def sets_a_global_after_a_return(a, b, box):
    global COUNT
    if b:
        return COUNT
    COUNT += 1
    return COUNT


def sets_a_global_after_two_returns(a, b, box):
    global COUNT, OTHER
    if a:
        return "first"
    box["x"] = 5
    if b:
        return "second"
    with quiet():
        COUNT, OTHER = 3, 4
        if COUNT:
            return COUNT
    return OTHER


def declares_a_global_after_a_return(a, b, box):
    if b:
        return "early"
    global OTHER
    OTHER = 7
    return OTHER


def imports_a_global_after_a_return(a, b, box):
    global maths
    if b:
        return "early"
    import math as maths

    return maths.pi


def sets_a_global_by_a_walrus_after_a_return(a, b, box):
    global COUNT
    if b:
        return "early"
    if (COUNT := COUNT + 1) and a:
        return COUNT
    return [COUNT := COUNT + k for k in range(3)]


def deletes_after_a_return(a, b, box):
    x, y = 1, 2
    if a:
        return x
    del x
    if b:
        return y
    del box["x"], y
    return sorted(box)


def sets_nonlocal_after_a_return(a, b, box):
    n = 0

    def inner():
        nonlocal n
        if b:
            return n
        n += 1
        if a:
            return n
        n += 10

    return inner(), inner(), n


# ---------------------------------------------------------------- returns inside of other statements


def returns_inside_try(a, b, box):
    try:
        if a:
            raise ValueError
        if b:
            return "returned"
        return "end"
    except ValueError as error:
        if b:
            return type(error).__name__
    else:
        box["x"] = 2
    finally:
        box["y"] = 3
    return "late"


def returns_inside_with(a, b, box):
    with quiet():
        if a:
            return "early"
        if b:
            raise ValueError
        box["x"] = 2
    return "late"


def returns_inside_loops(a, b, box):
    for i in range(3):
        if a and i:
            return i
        if b:
            continue
        if i == 1:
            break
    else:
        if a or b:
            return "else"
    while True:
        if b:
            return "while"
        if not a:
            break
        a = False
    return "late"


def returns_inside_match(a, b, box):
    match (a, b, box):
        case (True, True, {"x": x, **rest}) if x:
            if rest:
                return sorted(rest)
        case (True, y, _):
            if y:
                return "never"
            box["y"] = y
        case _:
            if b:
                return "b"
    return "late"


def a_loop_with_a_break_in_an_if(a, b, box):
    if a:
        for i in range(5):
            if i == 2 and b:
                break
        else:
            i = 10
    else:
        i = -1
    return i


def a_return_after_a_loop_in_an_if(a, b, box):
    if a:
        for i in range(5):
            if i == 1:
                continue
            if i == 3:
                break
        return i
    return b


# ---------------------------------------------------------------- functions inside


def a_generator_inside(a, b, box):
    def items():
        if a:
            return
        yield 1
        if b:
            yield 2
            return
        got = a or (yield 3)
        yield got

    return list(items())


def a_generator_after_a_return_inside(a, b, box):
    def items():
        if a:
            yield 1
            if b:
                return "value"
        yield from (2, 3)

    def all_of():
        value = yield from items()
        if value:
            return
        yield 4

    return list(all_of())


def a_coroutine_inside(a, b, box):
    async def one():
        if a:
            return "early"
        return b and "late"

    async def two():
        if (got := await one()) and b:
            return got
        return "none"

    try:
        two().send(None)
    except StopIteration as stop:
        return stop.value


def a_function_with_an_if_that_stays(a, b, box):
    def inner(flag):
        if flag:
            del box["x"]
            if b:
                return "early"
        return "late"

    return [inner(flag) for flag in (a, False)]


def a_walrus_in_an_if_that_stays(a, b, box):
    if a and (n := len(box)):
        del box["x"]
        if b and (m := n + 1) > 2:
            return m
    return "late"


FUNCTIONS = [
    each for name, each in list(globals().items()) if inspect.isfunction(each) and [*inspect.signature(each).parameters] == ["a", "b", "box"]
]  # fmt: skip


class Value:
    def __eq__(self, other: Any) -> bool:
        return vars(self) == vars(other)


def outcome(function: Any, a: bool, b: bool) -> Any:
    global COUNT, OTHER
    COUNT = OTHER = 0
    box: dict[str, Any] = {"x": 1, "o": Value()}
    try:
        result = function(a, b, box)
    except Exception as error:
        result = type(error)
    return copy.copy(result), box, COUNT, OTHER


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_plain_conditions(function: Any) -> None:
    for a, b in itertools.product((False, True), repeat=2):
        assert outcome(convert(function), a, b) == outcome(function, a, b), (a, b)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_plain_conditions_in_a_pipeline(function: Any) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, enable_conditionals=True)
    def define() -> Any:
        found.append(outcome(function, False, True))
        return fn.constant(idata=1)

    found: list[Any] = []
    define()
    assert found[0] == outcome(function, False, True)


def breaks_inside(flag: Any, x: Any) -> Any:
    if flag:
        for k in range(5):
            x = x + k
            if k == 2:
                break
    return x


def returns_after_a_break(flag: Any, x: Any) -> Any:
    if flag:
        for k in range(5):
            if k == 1:
                continue
            x = x * 2
            if k == 3:
                break
        return x
    return x + 100


@pytest.mark.parametrize(("function", "expected"), [(breaks_inside, [13, 20]), (returns_after_a_break, [80, 120])])
def test_break_of_a_loop_in_an_if_on_a_node(function: Any, expected: list[int]) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def define() -> Any:
        flag, x = (fn.external_source([values], cycle=True) for values in (np.array([True, False]), np.array([10, 20])))
        return function(flag, x)

    (found,) = define().run()
    assert np.asarray(found.as_array()).tolist() == expected


def early_in_an_if_that_stays(flag: Any, x: Any) -> Any:
    box = {"a": 1}
    if box:
        del box["a"]
        if flag:
            return x
    return x + 1


def early_before_a_global(flag: Any, x: Any) -> Any:
    global COUNT
    if flag:
        return x
    COUNT += 1
    return x + 1


@pytest.mark.parametrize(("function", "kind", "said"), [
    (early_in_an_if_that_stays, RuntimeError, "an `if` that returns from inside `if`"), (early_before_a_global, TypeError, "sets a global variable"),
])  # fmt: skip
def test_a_node_in_unrewritten_code_is_an_error(function: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said), Pipeline(1, 1, None):
        convert(function)(fn.constant(idata=1), fn.constant(idata=2))
