"""Returns and possibly unset variables in rewritten functions: the same as in Python, and code size is linear in the source."""

from __future__ import annotations

import dis
import inspect
import linecache
import random
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from torchdali import Pipeline, fn, types
from torchdali.graph.conditionals import convert


def defined(source: str) -> Callable[..., Any]:
    """Define the function ``f`` of a source text that `inspect` finds."""
    name = f"<of a test {hash(source)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    names: dict[str, Any] = {}
    exec(compile(source, name, "exec"), names)
    return names["f"]


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return type(error)


def several(count: int) -> str:
    ifs = "".join(f"    if c[{i}]:\n        x = {i}\n        if d[{i}]:\n            return {i}\n" for i in range(count))
    return f"def f(c, d):\n    x = 0\n{ifs}    return x\n"


def instructions(source: str) -> int:
    """Return the number of instructions of a converted function and its inner functions."""

    def count(code: Any) -> int:
        own = sum(each.opname != "EXTENDED_ARG" for each in dis.get_instructions(code))
        return own + sum(count(each) for each in code.co_consts if isinstance(each, type(code)))

    return count(convert(defined(source)).__code__)


@pytest.mark.slow
def test_code_grows_with_the_source() -> None:
    four, eight, twelve = (instructions(several(count)) for count in (4, 8, 12))
    assert twelve - eight == eight - four
    flags = [False] * 40
    assert convert(defined(several(40)))(flags, flags) == 0


def unset_returned(flag: bool) -> Any:
    if flag:
        x = 1
    return x


def unset_passed(flag: bool) -> Any:
    if flag:
        x = 1
    return str(x)


def unset_increased(flag: bool) -> Any:
    if flag:
        x = 1
    x //= 2
    return x


def unset_in_list(flag: bool) -> Any:
    if flag:
        x = 1
    return [x, x is None]


def unset_compared(flag: bool) -> Any:
    if flag:
        x = 1
    return 0 < x < 3


def unset_in_comprehension(flag: bool) -> Any:
    if flag:
        x = 1
    return [x for _ in range(2)]


def unset_after_return(flag: bool) -> Any:
    if flag:
        if not flag:
            return 3
        x = 1
    return x


def unset_in_rest(flag: bool) -> Any:
    x = None
    if flag:
        x = 1
        if x == 2:
            return 1
    y = x
    if not flag:
        del y
    return y


def unset_is_caught(flag: bool) -> Any:
    if flag:
        x = 1
    try:
        return x
    except NameError:
        return "unset"


def unset_in_function(flag: bool) -> Any:
    if flag:
        x = 1

    def inner() -> Any:
        return x

    return inner()


def set_by_function(flag: bool) -> Any:
    if flag:
        x = 1  # noqa: F841

    def inner(x: Any) -> Any:
        return x

    return inner(5)


UNSET = [each for name, each in list(globals().items()) if name.startswith(("unset_", "set_"))]


@pytest.mark.parametrize("function", UNSET)
@pytest.mark.parametrize("flag", [False, True])
def test_unset_variables_raise_as_in_python(function: Callable[..., Any], flag: bool) -> None:
    expected = outcome(function, flag)
    found = outcome(convert(function), flag)
    is_error = isinstance(expected, type) and issubclass(expected, NameError)
    assert issubclass(found, NameError) if is_error else found == expected


def block(r: random.Random, depth: int) -> str:
    """Write statements: some set variables, some return, some are an ``if`` whose branches are statements."""
    lines = []
    for _ in range(r.randint(1, 3)):
        kind = r.random()
        if kind < 0.35 or depth == 0:
            lines.append(f"{r.choice('xyz')} = {r.choice('xyz')} + {r.randint(1, 9)}")
        elif kind < 0.5:
            lines.append(f"return {r.choice('xyz')} * {r.randint(1, 9)}")
        else:
            orelse = f"else:\n{block(r, depth - 1)}" if r.random() < 0.5 else ""
            lines.append(f"if c[{r.randint(0, 3)}]:\n{block(r, depth - 1)}{orelse}".rstrip())
    return textwrap.indent("\n".join(lines) + "\n", "    ")


def program(seed: int, first: str) -> str:
    body = block(random.Random(seed), 3)
    return f"def f(c):\n    {first}\n{body}{block(random.Random(-seed - 1), 3)}    return x - y\n"


@pytest.mark.thin(7)
@pytest.mark.parametrize("seed", range(60))
def test_programs_return_the_same_as_in_python(seed: int) -> None:
    plain = defined(program(seed, "x = 1"))  # y and z may be unset
    rewritten = convert(plain)
    assert rewritten is not plain
    for number in range(16):
        flags = [bool(number >> i & 1) for i in range(4)]
        assert outcome(rewritten, flags) == outcome(plain, flags), inspect.getsource(plain)


@pytest.mark.thin(3)
@pytest.mark.parametrize("seed", range(25))
def test_programs_on_nodes_return_the_same_as_in_python(seed: int) -> None:
    plain = defined(program(seed, "x, y, z = 1, 2, 3"))
    flags = [[bool(number >> i & 1) for i in range(4)] for number in range(16)]
    with Pipeline(batch_size=16, num_threads=1, device_id=None) as pipe:
        columns = [fn.external_source([[np.array(each[i]) for each in flags]]) for i in range(4)]
        pipe.set_outputs(fn.cast(convert(plain)(columns), dtype=types.INT32))
    (output,) = pipe.run()
    assert [int(each) for each in output.samples()] == [plain(each) for each in flags], inspect.getsource(plain)
