"""Conditionals against the real DALI: both run the same pipeline functions."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

from tests import golden

pytestmark = pytest.mark.golden

N = 6
FLAGS = [np.array(v, np.bool_) for v in (1, 0, 0, 1, 1, 0)]
OTHERS = [np.array(v, np.bool_) for v in (1, 1, 0, 0, 1, 0)]
NUMBERS = [np.array(v, np.int32) for v in (3, 0, -2, 7, 1, 0)]
FLOATS = [np.array(v, np.float32) for v in (0.3, 0.0, -0.5, np.nan, 2.0, 1.0)]
DATA = [np.arange(k, k + 4, dtype=np.float32).reshape(2, 2) for k in range(N)]


def simple(fn, flag, other, number, real, x):
    if flag:
        y = x + 1
    else:
        y = x - 1
    return y


def one_sided(fn, flag, other, number, real, x):
    y = x
    if flag:
        y = x * 2
    return y


def elif_chain(fn, flag, other, number, real, x):
    if number > 2:
        y = x + 100
    elif number > 0:
        y = x + 10
    elif number == 0:
        y = x
    else:
        y = -x
    return y


def nested(fn, flag, other, number, real, x):
    if flag:
        if other:
            y = x + 1
        else:
            y = x + 2
    else:
        if other:
            y = x + 3
        else:
            y = x + 4
    return y


def several(fn, flag, other, number, real, x):
    a, b = x, x + 1
    if flag:
        a, b = b, a
    c = a - b
    return a, b, c


def number_condition(fn, flag, other, number, real, x):
    if number:
        return x + 1
    else:
        return x - 1


def float_condition(fn, flag, other, number, real, x):
    if real:
        y = x + 1
    else:
        y = x - 1
    return y


def negated(fn, flag, other, number, real, x):
    if not flag:
        y = x + 1
    else:
        y = x - 1
    return y


def not_number(fn, flag, other, number, real, x):
    return not number, not flag, not real


def logic(fn, flag, other, number, real, x):
    return flag and other, flag or other, not (flag and other)


def logic_in_if(fn, flag, other, number, real, x):
    if (flag and not other) or number > 2:
        y = x + 1
    else:
        y = x - 1
    return y


def shortcut(fn, flag, other, number, real, x):
    return flag and number > 1, flag or number > 1


def chained_comparison(fn, flag, other, number, real, x):
    if 0 < number < 5:
        y = x + 1
    else:
        y = x - 1
    return y


def constants(fn, flag, other, number, real, x):
    if flag:
        y = 1
    else:
        y = 2
    return y, x + y


def floats(fn, flag, other, number, real, x):
    if flag:
        y = 1.5
    else:
        y = 2.5
    return y


def mixed_numbers(fn, flag, other, number, real, x):
    if flag:
        y = 1
    else:
        y = 2.5
    return y


def lists(fn, flag, other, number, real, x):
    if flag:
        y = [x, x + 1]
    else:
        y = [x - 1, x]
    return y[0], y[1]


def dicts(fn, flag, other, number, real, x):
    if flag:
        y = {"a": x, "b": x + 1}
    else:
        y = {"a": x - 1, "b": x}
    return y["a"], y["b"]


def in_a_loop(fn, flag, other, number, real, x):
    y = x
    for i in range(3):
        if number > i:
            y = y + 10**i
    return y


def python_if(fn, flag, other, number, real, x):
    y = x
    if 1 > 0:
        y = y + 1
    if flag:
        y = y + 10
    return y


def helper_with_if(fn, flag, x):
    if flag:
        return x + 1
    else:
        return x - 1


def called(fn, flag, other, number, real, x):
    return helper_with_if(fn, flag, x), helper_with_if(fn, other, x)


def different_shapes(fn, flag, other, number, real, x):
    if flag:
        y = x[0:1]
    else:
        y = x
    return y


def operators(fn, flag, other, number, real, x):
    if flag:
        y = fn.cat(x, x, axis=0)
    else:
        y = fn.transpose(x, perm=[1, 0])
    return y


def reductions(fn, flag, other, number, real, x):
    if fn.reductions.mean(x) > 3.0:
        y = fn.reductions.max(x)
    else:
        y = fn.reductions.min(x)
    return y


def argument_inside(fn, flag, other, number, real, x):
    if flag:
        y = fn.pad(x, shape=[3, 3])
    else:
        y = fn.pad(x, shape=[3, 3], fill_value=-1)
    return y


def unused_branch(fn, flag, other, number, real, x):
    y = x
    if flag:
        z = x + 1
        y = z * 2
    return y


def undefined(fn, flag, other, number, real, x):
    if flag:
        z = x
    return z


def types_differ(fn, flag, other, number, real, x):
    if flag:
        y = x
    else:
        y = number
    return y


def vector_condition(fn, flag, other, number, real, x):
    if x > 1:
        y = x
    else:
        y = -x
    return y


def logic_of_numbers(fn, flag, other, number, real, x):
    return number and flag


def return_in_one(fn, flag, other, number, real, x):
    if flag:
        return x
    return x + 1


def while_loop(fn, flag, other, number, real, x):
    while flag:
        x = x + 1
    return x


def ternary(fn, flag, other, number, real, x):
    return x if flag else x + 1


def assertion(fn, flag, other, number, real, x):
    assert flag
    return x


def different_lengths(fn, flag, other, number, real, x):
    if flag:
        y = [x]
    else:
        y = [x, x]
    return y[0]


def strings(fn, flag, other, number, real, x):
    if flag:
        y = "a"
    else:
        y = "b"
    return {"a": x}[y]


class _Point:
    def __init__(self, x, inner=None):
        self.x, self.inner = x, inner


def attributes(fn, flag, other, number, real, x):
    point = _Point(x)
    if flag:
        point.x = x + 1
    else:
        point.x = x * 2
    return point.x


def attribute_in_one_branch(fn, flag, other, number, real, x):
    point = _Point(x, _Point(x))
    if flag:
        point.inner.x = x + 1
        point.x += point.inner.x
    return point.inner.x, point.x


def elements(fn, flag, other, number, real, x):
    values, named, last = [x, x], {"x": x}, 1
    if flag:
        values[0] = x + 1
        named["x"] = values[0] * 2
    else:
        values[last] = x * 3
    return *values, named["x"]


def attributes_where_branches_return(fn, flag, other, number, real, x):
    point = _Point(x)
    y = x
    if flag:
        y = y + 1
        point.x = y * 2
        return y + point.x
    return y + point.x


def layout_of_a_branch_not_taken(fn, flag, other, number, real, x):
    if number > 100:
        y = fn.reshape(x, layout="AB")
    else:
        y = fn.reductions.sum(x, axes=[0])
    return y


def identical_branches(fn, flag, other, number, real, x):
    one, same = x + 1, x + 1
    if flag:
        y = one
    else:
        y = same
    return one, y


def called_by_a_lambda(fn, flag, other, number, real, x):
    def choose(test, value, *, extra=1):
        if test:
            value = value + extra
        return value

    return (lambda test, value: choose(test, value, extra=2) if value is not None else None)(flag, x)


def lambdas(fn, flag, other, number, real, x):
    both = lambda a, b=other: a and b  # noqa: E731
    neither = lambda *given, **named: not (given[0] or named["b"])  # noqa: E731
    return both(flag), neither(flag, b=other)


def split_and_merged(fn, flag, other, number, real, x):
    on_true, on_false = fn._conditional.split(x, predicate=flag)
    number_true, _ = fn._conditional.split(number, predicate=flag)
    on_true = fn.reshape(on_true + number_true, shape=[4, 1])
    on_false = fn.reshape(on_false - 1, shape=[1, 4])
    return fn._conditional.merge(on_true, on_false, predicate=flag), fn._conditional.not_(number)


def split_in_parts(fn, flag, other, number, real, x):
    part, rest = fn._conditional.split(x, predicate=number)
    inner, _ = fn._conditional.split(other, predicate=number)
    small, large = fn._conditional.split(part, predicate=inner)
    part = fn._conditional.merge(small + 1, large + 2, predicate=inner)
    return fn._conditional.merge(part, rest, predicate=number), fn._shape(x)


def split_alone(fn, flag, other, number, real, x):
    on_true, on_false = fn._conditional.split(x, predicate=flag)
    return on_true + 1, on_false, fn._conditional.not_(on_true[0, 0])


def split_around_an_if(fn, flag, other, number, real, x):
    part, rest = fn._conditional.split(x, predicate=flag)
    inner, _ = fn._conditional.split(other, predicate=flag)
    if inner:
        part = part + 10
    else:
        part = part + 20
    return fn._conditional.merge(part, rest, predicate=flag)


def validated(fn, flag, other, number, real, x):
    return fn._conditional.validate_logical(flag, expression_name="or", expression_side="right")


def parts_mixed(fn, flag, other, number, real, x):
    on_true, _ = fn._conditional.split(x, predicate=flag)
    return on_true + fn._conditional.split(x, predicate=number)[0]


def split_by_vectors(fn, flag, other, number, real, x):
    return fn._conditional.split(x, predicate=x)[0]


def split_by_a_constant(fn, flag, other, number, real, x):
    return fn._conditional.split(x, predicate=True)[0]


def validated_numbers(fn, flag, other, number, real, x):
    return fn._conditional.validate_logical(number, expression_name="or", expression_side="right")


def not_of_vectors(fn, flag, other, number, real, x):
    return fn._conditional.not_(x)


FUNCTIONS = [
    split_and_merged, split_in_parts, split_alone, split_around_an_if, validated,
    called_by_a_lambda, lambdas,
    attributes, attribute_in_one_branch, elements, attributes_where_branches_return, layout_of_a_branch_not_taken,
    identical_branches,
    simple, one_sided, elif_chain, nested, several, number_condition, float_condition, negated, not_number, logic,
    logic_in_if, shortcut, chained_comparison, constants, floats, lists, dicts, in_a_loop, python_if, called,
    different_shapes, operators, reductions, argument_inside, unused_branch, return_in_one,
]  # fmt: skip
REFUSED = [
    parts_mixed, split_by_vectors, split_by_a_constant, validated_numbers, not_of_vectors,
    undefined, types_differ, mixed_numbers, vector_condition, logic_of_numbers, while_loop, ternary, assertion,
    different_lengths,
]  # fmt: skip


@golden.answered
def run(library, function, batch_size=N, runs=1):
    package = importlib.import_module(library)
    fn = importlib.import_module(f"{library}.fn")

    @package.pipeline_def(
        batch_size=batch_size, num_threads=2, device_id=None, seed=1, enable_conditionals=True
    )
    def pipe():
        def source(values):
            return fn.external_source(source=itertools.cycle([values[:batch_size]]))

        result = function(fn, *map(source, (FLAGS, OTHERS, NUMBERS, FLOATS, DATA)))
        return result

    made = pipe()
    made.build()
    for _ in range(runs):
        outputs = made.run()
    return [([np.array(o.at(i)) for i in range(len(o))], o.layout()) for o in outputs]


@pytest.mark.parametrize("batch_size", [1, 2, N])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_results(function, batch_size):
    found, wanted = (run(library, function, batch_size, runs=2) for library in ("torchdali", "nvidia.dali"))
    assert len(found) == len(wanted)
    for (samples, layout), (expected, expected_layout) in zip(found, wanted, strict=True):
        assert layout == expected_layout
        for a, b in zip(samples, expected, strict=True):
            assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_refused(function):
    raised = []
    for library in ("torchdali", "nvidia.dali"):
        with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
            run(library, function)
        raised.append(caught.type)
    assert issubclass(*raised), f"{raised[0]} instead of {raised[1]}"


def test_strings_that_differ_are_refused():
    with pytest.raises(TypeError, match=r"the variable 'y' must be a node.*got a str"):
        run("torchdali", strings)
