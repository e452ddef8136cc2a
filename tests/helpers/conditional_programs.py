"""Functions of a number with ``if``s: a pipeline must compute the same for nodes as Python for numbers.

Each is decorated by `program`, and returns numbers, or tuples of numbers.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__qualname__] = function
    return function


# ---------------------------------------------------------------- annotations


class Box:
    """An object with attributes."""

    __slots__ = ("__dict__",)


@program
def annotated_value(x: Any) -> Any:
    if x > 0:
        factor: int = 3
        x = x * factor
    return x


@program
def annotated_in_both(x: Any) -> Any:
    if x > 0:
        y: Any = x * 2
    else:
        y: Any = x - 1
    return y


@program
def annotated_alone(x: Any) -> Any:
    if x > 0:
        y: int
        y = x + 5
    else:
        y = x
    return y


@program
def annotated_before(x: Any) -> Any:
    y: Any = 1
    if x > 0:
        y = x
    return y


@program
def annotated_without_a_value_before(x: Any) -> Any:
    y: Any
    if x > 0:
        y = x
    else:
        y = -x
    return y


@program
def annotated_after_a_value(x: Any) -> Any:
    y = 2
    if x > 0:
        y: Any
        y += x
    return y


@program
def annotated_with_what_is_not_there(x: Any) -> Any:
    if x > 0:
        y: Missing[int] = x * 2  # noqa: F821
    else:
        y = x
    return y


@program
def annotated_attribute(x: Any) -> Any:
    box = Box()
    box.y = 1
    if x > 0:
        box.y: Any = x * 2
    return box.y


@program
def annotated_attribute_alone(x: Any) -> Any:
    box = Box()
    box.y = x
    if x > 0:
        box.y: Any  # noqa: B032
        box.y = x + 1
    return box.y


@program
def annotated_element(x: Any) -> Any:
    values = {"a": 1}
    if x > 0:
        values["a"]: Any = x * 2
    return values["a"]


@program
def annotated_in_parentheses(x: Any) -> Any:
    y = 0
    if x > 0:
        (y): Any = x * 2
    return y


@program
def annotated_and_returned(x: Any) -> Any:
    if x > 0:
        y: Any = x * 2
        return y
    z: Any = x - 1
    return z


@program
def annotated_after_a_return(x: Any) -> Any:
    if x > 5:
        return x
    y: Any = x + 1
    if y > 1:
        y: Any = y * 10
    return y


@program
def annotated_in_a_loop(x: Any) -> Any:
    for k in range(2):
        if x > k:
            step: Any = x + k
            x = step
    return x


@program
def annotated_deeper(x: Any) -> Any:
    y = 0
    if x > 0:
        with contextlib.nullcontext():
            for _ in range(2):
                y: Any = y + x
    return y


@program
def annotated_in_a_function_in_a_branch(x: Any) -> Any:
    y = 0
    if x > 0:

        def inner(a: Any) -> Any:
            z: Any = a * 3
            return z

        y = inner(x)
    return y


@program
def annotated_in_a_class_in_a_branch(x: Any) -> Any:
    y = 1
    if x > 0:

        class Local:
            factor: int = 4

        y = x * Local.factor
    return y


# -------------------------------------------------------------- variables of a branch


@program
def negated(x: Any) -> Any:
    y = 1
    if not x > 0:
        y = x - 1
    return y


@program
def walrus_in_a_condition(x: Any) -> Any:
    if (y := x + 1) > 2:
        return y * 2
    return y


@program
def walrus_behind_and(x: Any) -> Any:
    y = 0
    if x > 0 and (y := x * 2) > 10:
        x = y
    return x + y


@program
def walrus_behind_or(x: Any) -> Any:
    y = 1
    if x > 5 or (y := x - 1) > 1:
        x = x + 100
    return x + y


@program
def walrus_in_a_value(x: Any) -> Any:
    z = 3 if isinstance(x, str) else (y := x + 4)
    if z > 5:
        y = y + 1
    return y


@program
def walrus_in_a_comprehension(x: Any) -> Any:
    values = [last := x + k for k in range(3)]
    if x > 0:
        values = [last := v * 2 for v in values]
    return last + values[0]


@program
def walrus_in_a_chain(x: Any) -> Any:
    y = 0
    if 0 < x < (y := x * 2):
        x = y
    return x


@program
def walrus_behind_and_of_python(x: Any) -> Any:
    if isinstance(x, str) or (y := 5):
        x = x + y
    return x


@program
def nonlocal_at_the_top(x: Any) -> Any:
    total = 1

    def add(a: Any) -> None:
        nonlocal total
        if a > 0:
            total = total + a

    add(x)
    add(x - 5)
    return total


@program
def closure_over_what_a_branch_set(x: Any) -> Any:
    y = 1
    if x > 0:
        y = x

    def later() -> Any:
        return y * 2

    if x > 5:
        y = 100
    return later()


@program
def augmented_attribute(x: Any) -> Any:
    box = Box()
    box.y = x
    if x > 0:
        box.y += 10
    else:
        box.y -= 1
    return box.y


@program
def augmented_element(x: Any) -> Any:
    values = [x, {"a": 1}]
    if x > 0:
        values[0] *= 2
        values[1]["a"] += x
    return values[0], values[1]["a"]


@program
def augmented_deep_attribute(x: Any) -> Any:
    box = Box()
    box.inner = Box()
    box.inner.y = x
    if x > 0:
        box.inner.y **= 2
    return box.inner.y


@program
def matched_in_a_branch(x: Any) -> Any:
    if x > 0:
        match (1, 2):
            case (1, second):
                x = x + second
    return x


@program
def captured_in_a_branch(x: Any) -> Any:
    second: Any = 0
    rest: Any = [0, 0]
    others: Any = {"b": 1}
    if x > 0:
        match [1, x, 5, 6]:
            case [1, second, *rest]:
                pass
        match {"a": x, "b": 8}:
            case {"a": _, **others}:
                pass
    return second + rest[0] + others["b"]


@program
def matched_around(x: Any) -> Any:
    match "double":
        case "double" if not isinstance(x, str):
            if x > 0:
                x = x * 2
        case _:
            x = x * 100
    return x


@program
def unpacked(x: Any) -> Any:
    a, (b, *c) = 0, (0, 0)
    if x > 0:
        a, (b, *c) = x, (x * 2, x * 3)
    else:
        a, (b, *c) = 1, (2, 3)
    return a + b + c[0]


@program
def imported_in_a_branch(x: Any) -> Any:
    if x > 0:
        import math as m

        x = x + m.floor(2.5)
    return x


@program
def loop_variable(x: Any) -> Any:
    k = 0
    if x > 0:
        for k in (1, 2, 3):  # noqa: B007
            pass
        k = k * 1
    return x + k


@program
def with_as(x: Any) -> Any:
    y = 0
    if x > 0:
        with contextlib.nullcontext(x * 2) as y:
            pass
    return y


@program
def try_in_a_branch(x: Any) -> Any:
    y = 0
    if x > 0:
        try:
            y = x * 2
            raise KeyError
        except KeyError as error:
            y = y + len(error.args)
        finally:
            y = y + 1
    return y


# ------------------------------------------------------------------------- calls


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named) + 1

    return wrapper


class Decorator:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, x: Any) -> Any:
        return self._function(x) + 1


def with_arguments(times: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(x: Any) -> Any:
            for _ in range(times):
                x = function(x)
            return x

        return wrapper

    return decorate


@program
@decorated
def wrapped(x: Any) -> Any:
    if x > 0:
        x = x * 2
    return x


@program
@decorated
@with_arguments(2)
def wrapped_twice(x: Any) -> Any:
    if x > 0:
        x = x * 2
    return x


@Decorator
def by_a_class(x: Any) -> Any:
    if x > 0:
        x = x * 2
    return x


PROGRAMS["decorated by a class"] = by_a_class


@functools.lru_cache(maxsize=4)
def cached(x: Any, factor: int = 2) -> Any:
    if x > 0:
        x = x * factor
    return x


@functools.cache
def cached_plainly(x: Any) -> Any:
    if x > 0:
        x = cached(x, factor=3)
    return x


@functools.cache
def cached_pair(pair: Any) -> Any:
    if pair[0] > 0:
        return pair[0] * 2
    return pair[1]


@program
def cached_with_a_tuple(x: Any) -> Any:
    return cached_pair((x, x - 1))


class Cached:
    @functools.lru_cache  # noqa: B019
    def method(self, x: Any) -> Any:
        if x > 0:
            x = x * 2
        return x


PROGRAMS["lru_cache"], PROGRAMS["cache"], PROGRAMS["lru_cache of a method"] = cached, cached_plainly, Cached().method


@program
def cached_in_branches(x: Any) -> Any:
    if x > 0:
        y = cached(x)
    else:
        y = cached(x)
    return y + cached(x)


@functools.singledispatch
def dispatched(x: Any) -> Any:
    if x > 0:
        x = x * 2
    return x


PROGRAMS["singledispatch"] = dispatched


@program
def by_map(x: Any) -> Any:
    return sum(map(cached, [x, x + 1]))


@program
def recursive(x: Any) -> Any:
    def down(a: Any, depth: int) -> Any:
        if depth == 0:
            return a
        if a > 0:
            a = a - 1
        return down(a, depth - 1)

    return down(x, 3)


@program
def contextmanager(x: Any) -> Any:
    @contextlib.contextmanager
    def scaled(a: Any) -> Any:
        yield a * 2

    y = 0
    if x > 0:
        with scaled(x) as y:
            y = y + 1
    return y
