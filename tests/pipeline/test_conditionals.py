"""Code that rewriting leaves to Python: its meaning stays, and a node in it is an error that says what to write."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import fn, pipeline_def
from torchdali.declaration import batching

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
}  # the real one wants each branch to return in its own text


@pytest.mark.parity
@pytest.mark.parametrize("function", [f for f in PYTHON if f not in OURS], ids=lambda f: f.__name__)
def test_it_is_that_of_the_real_one(function: Callable[[], Any], monkeypatch: Any) -> None:
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
    breaks: (TypeError, "an `if` with `break` in it: .* into an `if` of its own"),
    continues: (TypeError, "an `if` with `continue` in it: .* into an `if` of its own"),
    deletes: (TypeError, "an `if` with `del` in it; leave the `del` out"),
    sets_a_global: (TypeError, "an `if` that sets a global variable; set a local one"),
    returns_in_a_loop: (RuntimeError, "an `if` that returns out of a `for`; set a variable there"),
    returns_in_a_with: (RuntimeError, "an `if` that returns out of a `with`; set a variable"),
}


@pytest.mark.parametrize("function", NODES, ids=lambda f: f.__name__)
def test_a_node_there_is_an_error_that_says_what_to_write(function: Callable[[], Any]) -> None:
    kind, words = NODES[function]
    with pytest.raises(kind, match=rf"__coin_flip_0 stands for a batch.* cannot be .*{words}"):
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
def test_messages_have_the_word_that_the_user_wrote(
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


def test_an_image_as_a_condition_is_refused_without_a_look_at_its_pixels() -> None:
    class Untouched(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            raise AssertionError("each pixel takes a microsecond")

    with pytest.raises(RuntimeError, match="Got a 3-d input as a condition"):
        batching.truth(Untouched([Untouched([Untouched([True])])]))
