"""`select`, augmentations, magnitude bins and policies."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

from tests.helpers import auto_aug as aa
from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.auto_aug.core import Policy, _Augmentation, augmentation, select, signed_bin

INDEX = [2, 0, 1, 2, 1, 0]
DATA = [np.arange(k, k + 6, dtype=np.float32).reshape(2, 3) for k in range(6)]


def run(function: Any, index: Any = INDEX, dtype: Any = np.int32, **settings: Any) -> Any:
    """Run a function on data and an index; return the samples of its result."""
    settings = {
        "batch_size": len(index),
        "num_threads": 2,
        "device_id": None,
        "enable_conditionals": True,
        "seed": 3,
        **settings,
    }
    numbers = [dtype(number) for number in index]

    @pipeline_def(**settings)
    def define():
        data = fn.external_source(
            source=itertools.repeat(list(itertools.islice(itertools.cycle(DATA), len(index))))
        )
        return function(data, fn.external_source(source=itertools.repeat(numbers)))

    pipe = define()
    try:
        found = [
            [np.asarray(batch.as_cpu().at(i)) for i in range(len(index))] for batch in pipe.run()
        ]
    finally:
        pipe.close()
    return found[0] if len(found) == 1 else found


def add(amount: float) -> Any:
    return lambda data: data + amount


# ---------------------------------------------------------------- select


@pytest.mark.parametrize(
    "settings",
    [{}, {"debug": True}, {"enable_conditionals": False}, {"exec_dynamic": True}],
    ids=str,
)
def test_each_sample_runs_through_its_operation(settings: dict[str, Any]) -> None:
    found = run(
        lambda data, index: select([add(0.0), add(10.0), add(20.0)], index, data), **settings
    )
    for result, data, number in zip(found, DATA, INDEX, strict=True):
        np.testing.assert_array_equal(result, data + 10 * number)


@pytest.mark.parametrize(
    ("index", "dtype", "taken"),
    [
        ([-3, 0, 1, 2, 9, 100], np.int32, [0, 0, 1, 2, 2, 2]),
        ([0, 1, 2, 3, 255, 128], np.uint8, [0, 1, 2, 2, 2, 2]),
        ([-0.5, 0.0, 0.5, 1.0, 1.5, 7.0], np.float32, [0, 0, 1, 1, 2, 2]),
    ],
)
def test_indices_out_of_range_are_clamped(
    index: list[float], dtype: Any, taken: list[int]
) -> None:
    found = run(
        lambda data, index: select([add(0.0), add(10.0), add(20.0)], index, data), index, dtype
    )
    assert [float(f[0, 0] - d[0, 0]) / 10 for f, d in zip(found, DATA, strict=True)] == taken


def test_a_sample_runs_through_no_other_operation() -> None:
    seen: dict[int, list[float]] = {0: [], 1: [], 2: []}

    def noting(number: int) -> Any:
        def note(sample: Any) -> Any:
            seen[number].append(float(sample[0, 0]))
            return sample

        return lambda data: fn.python_function(data, function=note)

    run(
        lambda data, index: select([noting(k) for k in range(3)], index, data),
        prefetch_queue_depth=1,
    )
    firsts = {number: seen[number][: INDEX.count(number)] for number in seen}
    assert firsts == {0: [1, 5], 1: [2, 4], 2: [0, 3]}


def test_one_operation_needs_no_choice() -> None:
    found = run(lambda data, index: select([add(1.0)], index, data))
    np.testing.assert_array_equal(found, [data + 1 for data in DATA])


def test_more_operations_than_an_operator_has_inputs() -> None:
    index = [0, 63, 64, 130, 129, 500]
    found = run(
        lambda data, number: select([add(float(k)) for k in range(131)], number, data), index
    )
    assert [float(f[0, 0] - d[0, 0]) for f, d in zip(found, DATA, strict=True)] == [
        0,
        63,
        64,
        130,
        129,
        130,
    ]


def test_results_are_merged_element_by_element() -> None:
    def pair(amount: float) -> Any:
        return lambda data: {"same": data, "both": [data + amount, amount]}

    def define(data: Any, index: Any) -> Any:
        result = select([pair(1.0), pair(2.0), pair(3.0)], index, data)
        return result["same"], *result["both"]

    same, moved, amount = run(define)
    np.testing.assert_array_equal(same, DATA)
    assert [float(a) for a in amount] == [k + 1.0 for k in INDEX]
    np.testing.assert_array_equal(moved, [d + k + 1 for d, k in zip(DATA, INDEX, strict=True)])


def test_arguments_reach_every_operation() -> None:
    def scaled(data: Any, factor: float, *, offset: float) -> Any:
        return data * factor + offset

    found = run(
        lambda data, index: select(
            [scaled, lambda d, f, offset: d, scaled], index, data, 3.0, offset=1.0
        )
    )
    np.testing.assert_array_equal(
        found, [d if k == 1 else 3 * d + 1 for d, k in zip(DATA, INDEX, strict=True)]
    )


def conditional(data: Any) -> Any:
    if data[0, 0] > 2:
        result = -data
    else:
        result = data * 100
    return result


def test_select_may_be_nested() -> None:
    def inner(data: Any) -> Any:
        return select([add(1000.0), conditional], fn.cast(data[0, 0] > 1, dtype=types.INT32), data)

    def define(data: Any, index: Any) -> Any:
        if index > 0:
            result = select([add(0.0), inner, conditional], index, data)
        else:
            result = data
        return result

    def wanted(data: Any, number: int) -> Any:
        if number == 0:
            return data
        if number == 1 and not data[0, 0] > 1:
            return data + 1000
        return -data if data[0, 0] > 2 else data * 100

    for settings in ({}, {"debug": True}):
        found = run(define, **settings)
        np.testing.assert_array_equal(
            found, [wanted(d, k) for d, k in zip(DATA, INDEX, strict=True)]
        )


def test_choices_on_the_accelerator_stage() -> None:
    """The device stage runs each operation on a smaller batch of its samples."""
    found = run(
        lambda data, index: select([add(0.0), add(10.0), add(20.0)], index, data.gpu()),
        device_id="cpu",
    )
    np.testing.assert_array_equal(found, [d + 10 * k for d, k in zip(DATA, INDEX, strict=True)])


def test_a_pipeline_with_choices_is_saved() -> None:
    @pipeline_def(batch_size=8, num_threads=1, device_id=None, seed=5)
    def define():
        data = fn.random.uniform(range=[0, 1], shape=[2])
        number = fn.random.uniform(values=[0, 1, 2], dtype=types.INT32)
        mark = augmentation(lambda data, parameter: data + parameter, mag_range=(10, 20))
        return select(
            [lambda d, **_: d, lambda d, **_: -d, mark],
            number,
            data,
            magnitude_bin=number,
            num_magnitude_bins=3,
        )

    first = define()
    second = Pipeline.deserialize(first.serialize())
    np.testing.assert_array_equal(first.run()[0].as_array(), second.run()[0].as_array())


SELECT_ERRORS = [
    ("nothing", lambda d, i: select([], i, d), ValueError, "needs at least one operation"),
    ("lengths", lambda d, i: select([lambda d: [d], lambda d: [d, d]], i, d), ValueError, "must have the same structure"),
    ("keys", lambda d, i: select([lambda d: {"a": d}, lambda d: {"b": d}], i, d), ValueError, "must have the same structure"),
    ("kinds", lambda d, i: select([lambda d: [d], lambda d: d], i, d), ValueError, "must have the same structure"),
    ("none", lambda d, i: select([lambda d: None, lambda d: d], i, d), TypeError, "must be a node.*got a NoneType"),
    ("text", lambda d, i: select([lambda d: d, lambda d: "a"], i, d), TypeError, "must be a node.*got a str"),
    ("types", lambda d, i: select([lambda d: d, lambda d: fn.cast(d, dtype=types.INT32)], i, d), RuntimeError, "same type"),
    ("ndim", lambda d, i: select([lambda d: d, lambda d: d[0]], i, d), RuntimeError, "number of dimensions"),
    ("layouts", lambda d, i: select([lambda d: d, lambda d: fn.reshape(d, layout="HW")], i, d), RuntimeError, "layout"),
    ("index of one", lambda d, i: select([add(0.0), add(1.0)], fn.reshape(i, shape=[1]), d), RuntimeError, "scalar"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("define", "kind", "text"),
    [case[1:] for case in SELECT_ERRORS],
    ids=[case[0] for case in SELECT_ERRORS],
)
def test_select_refuses(define: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        run(define)


def test_select_outside_of_a_pipeline() -> None:
    with pytest.raises(RuntimeError, match="while a pipeline is being defined"):
        select([add(0.0), add(1.0)], 1, 2)  # type: ignore[arg-type]


def test_an_index_on_the_accelerator() -> None:
    with pytest.raises(RuntimeError, match=r"use \.cpu\(\)"):
        run(lambda data, index: select([add(0.0), add(1.0)], index.gpu(), data), device_id="cpu")


# ---------------------------------------------------------------- augmentations


@augmentation(
    mag_range=(0, 10),
    randomly_negate=True,
    mag_to_param=lambda m: m * 2,
    param_device="auto",
    name="turned",
)
def turn(data: Any, angle: Any, fill_value: float = 0, *, extra: Any = None) -> Any:
    return angle


def plain(data: Any, parameter: Any) -> Any:
    return data


def test_options_of_an_augmentation() -> None:
    assert (turn.name, turn.mag_range, turn.randomly_negate, turn.param_device) == (
        "turned",
        (0, 10),
        True,
        "auto",
    )
    assert turn.mag_to_param(3) == 6
    bare = augmentation(plain)
    assert (bare.name, bare.op, bare.mag_range, bare.randomly_negate, bare.param_device) == (
        "plain",
        plain,
        None,
        False,
        "cpu",
    )
    with pytest.raises(AttributeError):
        bare.name = "other"  # type: ignore[misc]


def test_a_copy_changes_only_the_passed_options() -> None:
    copy = turn.augmentation(mag_range=(1, 2), name=None)
    assert (copy.mag_range, copy.name, copy.randomly_negate, copy.op) == (
        (1, 2),
        "turn",
        True,
        turn.op,
    )
    assert turn.mag_range == (0, 10)
    reset = turn.augmentation(
        mag_range=None, randomly_negate=None, mag_to_param=None, param_device=None
    )
    assert repr(reset) == f"Augmentation({turn.op!r}, name='turned')"


def test_a_user_class_of_augmentations() -> None:
    class Own(_Augmentation):
        pass

    assert type(augmentation(plain, augmentation_cls=Own)) is Own
    assert type(turn.augmentation(augmentation_cls=Own)) is Own
    assert type(turn.augmentation(augmentation_cls=Own).augmentation(name="x")) is Own


def parameters(
    made: Any, magnitude_bin: Any, bins: int | None = 11, count: int = 4, **settings: Any
) -> list[Any]:
    """Return each sample's parameter."""

    def define(data: Any, index: Any) -> Any:
        given = magnitude_bin(index) if callable(magnitude_bin) else magnitude_bin
        return made(data, magnitude_bin=given, num_magnitude_bins=bins)

    return [found.tolist() for found in run(define, list(range(count)), **settings)]


@augmentation(mag_range=(0, 10))
def magnitude(data: Any, parameter: Any) -> Any:
    return parameter


PARAMETERS = [
    ("constant", magnitude, 3, 11, [3.0] * 4),
    ("one bin", magnitude, 0, 1, [0.0] * 4),
    ("downwards", magnitude.augmentation((10, 0)), 3, 11, [7.0] * 4),
    ("one a sample", magnitude, lambda index: index, 6, [0.0, 2.0, 4.0, 6.0]),
    ("array", magnitude.augmentation(np.array([3.0, 1, 4, 1])), lambda index: index, None, [3.0, 1.0, 4.0, 1.0]),
    ("array of one type", magnitude.augmentation(np.array([3, 1, 4, 1])), lambda index: index, 4, [3, 1, 4, 1]),
    ("signed, not negated", magnitude, lambda index: signed_bin(index, random_sign=1), 11, [0.0, 1.0, 2.0, 3.0]),
    ("negated", magnitude.augmentation(randomly_negate=True), lambda index: signed_bin(index, random_sign=1), 11, [0.0, -1.0, -2.0, -3.0]),
    ("kept", magnitude.augmentation(randomly_negate=True), lambda index: signed_bin(3, random_sign=0), 11, [3.0] * 4),
    ("vector", magnitude.augmentation(mag_to_param=lambda m: [m, 1]), lambda index: index, 11, [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]),
    ("bytes", magnitude.augmentation(mag_to_param=lambda m: np.uint8(m)), lambda index: index, 11, [0, 1, 2, 3]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "magnitude_bin", "bins", "wanted"),
    [case[1:] for case in PARAMETERS],
    ids=[case[0] for case in PARAMETERS],
)
def test_parameters(made: Any, magnitude_bin: Any, bins: int | None, wanted: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parameters(made, magnitude_bin, bins) == wanted


def test_signs_are_drawn() -> None:
    found = parameters(
        magnitude.augmentation(randomly_negate=True), lambda index: signed_bin(5), count=400
    )
    assert set(found) == {5.0, -5.0}
    assert abs(found.count(5.0) - 200) < 5 * 10


def test_signs_of_several_steps() -> None:
    def define(data: Any, index: Any) -> Any:
        both = signed_bin(5, shape=(2,), seed=11)
        negated = magnitude.augmentation(randomly_negate=True)
        return tuple(
            negated(data, magnitude_bin=both[step], num_magnitude_bins=11) for step in range(2)
        )

    first, second = (np.array(signs) for signs in run(define, list(range(400))))
    assert abs((first == second).sum() - 200) < 5 * 10


def test_an_unsigned_bin_is_negated_with_a_warning() -> None:
    negated = magnitude.augmentation(randomly_negate=True)
    with pytest.warns(UserWarning, match="signed_bin"):
        assert set(parameters(negated, 5, count=64)) == {5.0, -5.0}


def test_parameters_are_computed_once() -> None:
    asked: list[Any] = []
    noting = magnitude.augmentation(mag_to_param=lambda m: asked.append(m) or m)
    parameters(noting, 2)
    assert asked == [2]
    asked.clear()
    parameters(noting.augmentation(randomly_negate=True), lambda index: signed_bin(index), 3, 3)
    assert asked == [0, 0, 5, -5, 10, -10]
    assert all(type(each) is np.float32 for each in asked)


@pytest.mark.parametrize("number", [-1, 4])
def test_a_bin_out_of_range_fails_the_run(number: int) -> None:
    negated = magnitude.augmentation(randomly_negate=True)
    for settings in ({}, {"debug": True}):
        with pytest.raises(RuntimeError, match=f"invalid magnitude bin {number}; the bins are 0 to 3"):
            parameters(magnitude, lambda index: index * 0 + number, 4, **settings)
        with pytest.raises(RuntimeError, match=f"invalid magnitude bin {number}; the bins are 0 to 3"):
            parameters(negated, lambda index: signed_bin(index * 0 + number), 4, **settings)


def test_arguments_of_the_function() -> None:
    with pytest.raises(ValueError, match=r"translate_x.*shape"):
        parameters(
            aa.modules("torchdali").augmentations.translate_x.augmentation(randomly_negate=False), 3
        )
    assert turn.arguments({"fill_value": 1, "extra": 2, "other": 3}) == (
        {"fill_value": 1, "extra": 2},
        [],
    )
    assert augmentation(lambda data, p, **options: data).arguments({"any": 1}) == ({"any": 1}, [])
    assert augmentation(lambda data, p, a, *, b: data).arguments({"b": 1}) == ({"b": 1}, ["a"])


@augmentation(mag_range=(0, 10))
def branching(data: Any, amount: Any) -> Any:
    if data[0, 0] > amount:
        return data
    return -data


def test_augmentations_may_have_conditions() -> None:
    found = run(lambda data, index: branching(data, magnitude_bin=index, num_magnitude_bins=11))
    np.testing.assert_array_equal(
        found, [d if d[0, 0] > k else -d for d, k in zip(DATA, INDEX, strict=True)]
    )


# ---------------------------------------------------------------- policies


def test_a_policy_prints() -> None:
    policy = Policy(
        "two", 11, [[(magnitude, 0.5, 3), (turn, 1.0, 0)], [(augmentation(plain), 0.2, None)]]
    )
    assert repr(policy) == (
        "Policy(name='two', num_magnitude_bins=11, sub_policies=[\n\t[('magnitude', 0.5, 3), ('turned', 1.0, 0)],"
        "\n\t[('plain', 0.2, None)]], augmentations={"
        f"\n\t'magnitude': {magnitude!r},\n\t'plain': Augmentation({plain!r}),\n\t'turned': {turn!r}}})"
    )


def test_equal_names_in_a_policy_get_prefixes() -> None:
    other = magnitude.augmentation((0, 3))
    policy = Policy(
        "p", 11, [[(magnitude, 0.5, 3), (turn, 0.5, 3)], [(other, 0.1, 2), (magnitude, 0.2, 1)]]
    )
    assert list(policy.augmentations) == ["0__magnitude", "1__turned", "2__magnitude"]
    assert [[step[0].name for step in steps] for steps in policy.sub_policies] == [
        ["0__magnitude", "1__turned"],
        ["2__magnitude", "0__magnitude"],
    ]
    assert policy.augmentations["2__magnitude"].mag_range == (0, 3)


def test_policies_warn() -> None:
    with pytest.warns(UserWarning, match="probability 0"):
        Policy("p", 11, [[(magnitude, 0, 3)]])
    with pytest.warns(UserWarning, match="ignored"):
        Policy("p", 11, [[(augmentation(plain), 0.5, 3)]])
