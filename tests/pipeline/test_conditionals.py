"""Python code that conditionals don't rewrite: its results don't change, and a node in it raises an error with the cure."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers import conditional_programs, private_names
from torchdali import fn, pipeline_def
from torchdali.declaration import batching
from torchdali.pipeline import do_not_convert

SET = 0


def run(function: Callable[[], Any]) -> Any:
    pipe = pipeline_def(
        function, batch_size=2, num_threads=1, device_id=None, enable_conditionals=True
    )()
    (output,) = pipe.run()
    pipe.close()
    return int(output.as_array().flat[0])


def coin() -> Any:
    return fn.random.coin_flip(probability=1.0)


def one() -> Any:
    return fn.constant(idata=1)


# ---------------------------------------------------------------- Python's own conditions


def returns_from_a_loop() -> Any:
    x = one()
    for k in range(3):
        if k == 1:
            return x
        x = x + 1
    return x + 100


def returns_from_an_inner_loop() -> Any:
    x = one()
    for k in range(3):
        for j in range(3):
            if k + j == 2:
                return x
            x = x + 1
    return x + 100


def returns_from_a_while() -> Any:
    x, k = one(), 0
    while k < 5:
        if k == 2:
            return x
        k += 1
        x = x + 1
    return x + 100


def returns_from_a_with() -> Any:
    x = one()
    with contextlib.nullcontext():
        if SET == 0:
            return x + 1
    return x + 100


def returns_from_a_try() -> Any:
    x = one()
    try:
        if SET == 0:
            return x + 1
    except ValueError:
        x = x + 50
    return x + 100


def returns_from_an_if_around_a_loop() -> Any:
    x = one()
    if coin():
        for k in range(3):
            if k == 1:
                return x + k
        x = x + 10
    return x + 100


def chooses_in_an_expression() -> Any:
    return one() + (4 if SET == 0 else 5)


def asserts_and_filters() -> Any:
    assert SET == 0
    return one() + sum(k for k in range(5) if k % 2)


def nodes_inside_a_branch_of_python() -> Any:
    x = one()
    for k in range(4):
        if k > 1:
            if coin():
                x = x + 10
            if k == 2:
                break
        x = x + 1
    return x


PYTHON = {
    returns_from_a_loop: 2,
    returns_from_an_inner_loop: 3,
    returns_from_a_while: 3,
    returns_from_a_with: 2,
    returns_from_a_try: 2,
    returns_from_an_if_around_a_loop: 2,
    chooses_in_an_expression: 5,
    asserts_and_filters: 5,
    nodes_inside_a_branch_of_python: 13,
}


@pytest.mark.parametrize("function", PYTHON, ids=lambda f: f.__name__)
def test_a_condition_of_python_keeps_its_meaning(function: Callable[[], Any]) -> None:
    assert run(function) == PYTHON[function]


OURS = {
    returns_from_an_if_around_a_loop
}  # the real DALI requires a return in each branch's own text


@pytest.mark.parity
@pytest.mark.parametrize("function", [f for f in PYTHON if f not in OURS], ids=lambda f: f.__name__)
def test_the_meaning_matches_the_real_dali(function: Callable[[], Any], monkeypatch: Any) -> None:
    dali = pytest.importorskip(
        "nvidia.dali",
        reason="the parity tests compare with the real DALI: install the extra 'parity'",
    )
    import nvidia.dali.fn as real

    monkeypatch.setitem(globals(), "fn", real)
    pipe = dali.pipeline_def(
        function, batch_size=2, num_threads=1, device_id=None, enable_conditionals=True
    )()
    pipe.build()
    assert int(pipe.run()[0].as_array().flat[0]) == PYTHON[function]


# ---------------------------------------------------------------- a node where Python decides


def expression() -> Any:
    return one() if coin() else one() + 1


def while_loop() -> Any:
    c = coin()
    while c:
        c = c - 1
    return c


def assertion() -> Any:
    c = coin()
    assert c
    return c


def comprehension() -> Any:
    c = coin()
    return sum([one() for _ in range(2) if c])


def breaks() -> Any:
    c, x = coin(), one()
    for _ in range(2):
        if c:
            break
        x = x + 1
    return x


def continues() -> Any:
    c, x = coin(), one()
    for _ in range(2):
        if c:
            continue
        x = x + 1
    return x


def deletes() -> Any:
    c, x = coin(), one()
    if c:
        y = x + 1
        del y
    return x


def sets_a_global() -> Any:
    global SET
    c = coin()
    if c:
        SET = 1
    return c


def returns_in_a_loop() -> Any:
    c, x = coin(), one()
    for _ in range(2):
        if c:
            return x
    return x


def returns_in_a_with() -> Any:
    c, x = coin(), one()
    with contextlib.nullcontext():
        if c:
            return x
    return x


NODES = {
    expression: (TypeError, "a conditional expression; write an `if` statement"),
    while_loop: (TypeError, "a `while`: .* write a `for` over a Python range"),
    assertion: (TypeError, "an `assert`: .* check the outputs"),
    comprehension: (TypeError, "a comprehension; write a `for` with an `if`"),
    breaks: (TypeError, "an `if` with `break` in it: .* into its own `if`"),
    continues: (TypeError, "an `if` with `continue` in it: .* into its own `if`"),
    deletes: (TypeError, "an `if` with `del` in it; remove the `del`"),
    sets_a_global: (TypeError, "an `if` that sets a global variable; set a local variable"),
    returns_in_a_loop: (RuntimeError, "an `if` that returns from inside `for`; set a variable there"),
    returns_in_a_with: (RuntimeError, "an `if` that returns from inside `with`; set a variable"),
}


@pytest.mark.parametrize("function", NODES, ids=lambda f: f.__name__)
def test_a_node_in_a_python_condition_is_an_error_with_a_cure(function: Callable[[], Any]) -> None:
    kind, words = NODES[function]
    with pytest.raises(kind, match=rf"__coin_flip_0 represents a batch.* cannot be .*{words}"):
        run(function)
    assert SET == 0


@pytest.mark.parametrize(
    "asks", [bool, lambda x: min(x, 3), lambda x: x and x, lambda x: 0 < x < 3]
)
def test_the_truth_of_a_node_without_conditionals_names_the_cures(
    asks: Callable[[Any], Any],
) -> None:
    pipe = pipeline_def(lambda: asks(coin()), batch_size=2, num_threads=1, device_id=None)
    with pytest.raises(
        TypeError,
        match=r"DataNode.*enable_conditionals=True.*math\.min.*`cast` with dtype=types\.BOOL",
    ):
        pipe().build()


def test_an_error_of_merging_names_the_line_of_the_if() -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, enable_conditionals=True)
    def changes_the_type() -> Any:
        number = fn.external_source(lambda info: np.int32(info.idx_in_batch), batch=False)
        if number > 1:
            number = fn.cast(
                number,
                dtype=torch.float32,
            )
        return number

    pipe = changes_the_type()
    with pytest.raises(RuntimeError, match=r"the variable 'number': both branches") as caught:
        pipe.run()
    assert "if number > 1:" in str(caught.value)


def takes_one_of_two(test: Any) -> Any:
    number = one()
    if test:
        number = test
    return number


def joins_two(test: Any) -> Any:
    return (coin() == 1) and test


def negates(test: Any) -> Any:
    return not test


@pytest.mark.parametrize(
    ("function", "title"), [(takes_one_of_two, "if"), (joins_two, "and"), (negates, "not")]
)
@pytest.mark.parametrize("debug", [False, True])
def test_messages_name_the_statement_that_the_user_wrote(
    function: Callable[[Any], Any], title: str, debug: bool
) -> None:
    @pipeline_def(
        batch_size=2, num_threads=1, device_id=None, enable_conditionals=True, debug=debug
    )
    def asks(axes: int) -> Any:
        return function(fn.external_source(lambda info: np.ones([3] * axes, np.bool_), batch=False))

    with pytest.raises(RuntimeError, match=rf"operator '{title}' failed on sample 0 of batch 0"):
        asks(1).run()
    pipe = asks(0)
    pipe.run()
    assert title in [each.operator for each in pipe.stats().operators]
    if not debug:
        assert re.search(rf"= {title}\(.*# {title} line", str(pipe.explain()), re.DOTALL)
        assert "_merge" not in pipe.explain() and "_logical" not in pipe.explain()


def test_an_image_as_a_condition_is_rejected_by_its_shape() -> None:
    class Untouched(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            raise AssertionError("each pixel takes a microsecond")

    with pytest.raises(RuntimeError, match="Got a 3-d input as a condition"):
        batching.truth(Untouched([Untouched([Untouched([True])])]))


# ---------------------------------------------------------------- functions as users write them

NUMBERS = (3, 0, -2, 7)
PROGRAMS = {
    **conditional_programs.PROGRAMS,
    **{f"private names: {name}": function for name, function in private_names.PROGRAMS.items()},
}


def on_numbers(function: Callable[[Any], Any]) -> list[Any]:
    """Return the outputs of a pipeline that passes these numbers to a function, one per sample."""

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, enable_conditionals=True)
    def define() -> Any:
        return function(fn.external_source(source=lambda: [np.int32(number) for number in NUMBERS]))

    with define() as pipe:
        return [output.as_array().tolist() for output in pipe.run()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_the_same_as_in_python(name: str) -> None:
    rows = [PROGRAMS[name](np.int32(number)) for number in NUMBERS]
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    assert on_numbers(PROGRAMS[name]) == [[int(value) for value in column] for column in zip(*rows, strict=True)]


GENERIC = """
class Scaled[T]:
    __factor = 3

    def method[S: int](self, x: S, *more: T) -> T:
        def inner[Q](a: Q) -> Q:
            y: Q = a
            if y > 0:
                z: S = y
                y = z * self.__factor
            return y
        if x > 0:
            type Alias = S
            y: Alias = x
            return inner(y)
        return x

def plain[T](x: T, kind: type[T] = int) -> T:
    if x > 0:
        y: T = x
        x = y + 1 if T is not None else 0
    return x
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 has type parameters")
def test_functions_with_type_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "generic_functions.py").write_text(GENERIC)
    monkeypatch.syspath_prepend(tmp_path)
    generic: Any = importlib.import_module("generic_functions")
    assert on_numbers(generic.Scaled().method) == [[9, 0, -2, 21]]
    assert on_numbers(generic.plain) == [[4, 0, -2, 8]]


def test_a_cached_function_is_cached_for_numbers() -> None:
    calls = []

    @functools.lru_cache
    def size(number: int) -> int:
        calls.append(number)
        return number + 1

    def define(x: Any) -> Any:
        for _ in range(3):
            if x > 0:
                x = x + size(1)
        return x

    assert on_numbers(define) == [[9, 0, -2, 13]] and calls == [1]


def walrus_in_one_branch(x: Any) -> Any:
    if x > 0 and (y := x * 2) > 10:
        x = y
    return x


def test_the_message_names_the_variable_that_one_branch_sets() -> None:
    with pytest.raises(RuntimeError, match="Variable 'y' must also be initialized"):
        on_numbers(walrus_in_one_branch)


class Signs:
    """Use a node as a truth value in code that isn't rewritten."""

    def __init__(self, x: Any) -> None:
        self.x = x

    @property
    def positive(self) -> Any:
        return 1 if self.x > 0 else 0

    def __add__(self, other: Any) -> Any:
        if self.x > 0:
            other = other + 1
        return other


def is_three(x: Any) -> Any:
    match x:
        case 3:
            return x
    return x + 1


@do_not_convert
def as_it_is(x: Any) -> Any:
    return x > 0 and x


@pytest.mark.parametrize(
    "function",
    [
        lambda x: Signs(x).positive,
        lambda x: Signs(x) + x,
        lambda x: sorted([x, x + 1]),
        lambda x: min(x, 3),
        lambda x: max([x, x + 1], key=lambda y: y),
        is_three,
        as_it_is,
    ],
)
def test_errors_name_code_that_is_not_rewritten(function: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"Conditionals are enabled, but don't work here.*Move the `if` into a function") as said:
        on_numbers(function)
    assert "enable_conditionals" not in str(said.value)


def appended(x: Any) -> Any:
    values: list[Any] = []
    if x > 0:
        values.append(x * 2)
    return values[0]


def put_into_a_dictionary(x: Any) -> Any:
    values: dict[str, Any] = {}
    if x > 0:
        values.update(a=x * 2)
    return values["a"] + 0


def kept_by_a_function(x: Any) -> Any:
    values: list[Any] = [None]

    def keep(value: Any) -> None:
        values[0] = value

    if x > 0:
        (lambda: keep(x * 2))()
    return fn.copy(values[0])


@pytest.mark.parametrize("function", [appended, put_into_a_dictionary, kept_by_a_function])
def test_nodes_stored_in_an_object_in_a_branch_warn(function: Callable[[Any], Any]) -> None:
    """The batch has two samples of four, as in DALI."""
    with pytest.warns(UserWarning, match="output 0 has only the samples for which __gt_. is True") as said:
        assert on_numbers(function) == [[6, 14]]
    assert [(each.filename, each.lineno - function.__code__.co_firstlineno in range(9)) for each in said] == [(__file__, True)]


def test_merged_variables_do_not_warn() -> None:
    def in_order(x: Any) -> Any:
        values: list[Any] = [0, x]
        if x > 0:
            values[0] = x * 2
        elif x == 0:
            values[0] = 5
        if x > 5 and values[0] > 1:
            return values[1], values[0]
        return values[0], x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert on_numbers(in_order) == [[6, 5, 0, 7], [3, 0, -2, 14]]


def test_operators_over_the_batch_work_in_a_branch_as_outside() -> None:
    ids, polygons, vertices = np.int32([1]), np.int32([[0, 0, 2], [1, 2, 4]]), np.arange(8, dtype=np.float32).reshape(4, 2)

    @pipeline_def(batch_size=3, num_threads=1, device_id=None, enable_conditionals=True)
    def define(wanted: list[int], branches: bool) -> Any:
        images = fn.external_source([[np.full((2, width, 3), 7, np.uint8) for width in (4, 5, 6)]], layout="HWC")
        chosen, parts, points = (fn.external_source([[array] * 3]) for array in (ids, polygons, vertices))
        if not branches or fn.external_source([[np.int32(number) for number in wanted]]) > 0:
            images = fn.pad(images, axis_names="W", shape=[9])
            parts, points = fn.segmentation.select_masks(chosen, parts, points, reindex_masks=True)
        return images, parts, points

    (inside, outside) = (define([1, 0, 1], branches).run() for branches in (True, False))
    for one, other in zip(inside, outside, strict=True):
        assert one.layout() == other.layout()
        for i in (0, 2):
            assert np.array_equal(one.at(i), other.at(i))
    assert [inside[0].at(1).shape, inside[1].at(1).tolist()] == [(2, 5, 3), polygons.tolist()]
