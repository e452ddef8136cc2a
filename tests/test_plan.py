"""Division of a graph into steps and chains, which doesn't change results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.inside import graph_of
from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.graph.plan import StepKind, choose_kinds, plan

SETTINGS = [
    {},
    {"prefetch_queue_depth": 4},
    {"num_threads": 1, "prefetch_queue_depth": 1},
    {"exec_async": False, "exec_pipelined": False},
]


def images(batch: int, sizes: Callable[[int, int], int], count: int = 6) -> list[np.ndarray]:
    """Return a batch of images, the size of each chosen by batch and sample."""
    shapes = [(sizes(batch, i), 12, 3) for i in range(count)]
    return [np.full(s, batch * 16 + i, np.uint8) for i, s in enumerate(shapes)]


def pipeline(
    define: Callable[[Any], Any], sizes: Callable[[int, int], int] = lambda b, i: 8, **settings: Any
) -> Pipeline:
    numbers = iter(range(1000))

    @pipeline_def(**{"batch_size": 6, "num_threads": 2, "device_id": None, "seed": 1, **settings})
    def defined() -> Any:
        return define(fn.external_source(lambda: images(next(numbers), sizes)))

    return defined()


def ends_in_arithmetic(data: Any) -> Any:
    mean = fn.reductions.mean(fn.gaussian_blur(data, window_size=3))
    return (mean + 1) * mean - 2 * mean, mean


def feeds_back(data: Any) -> Any:
    blurred = fn.gaussian_blur(data, window_size=3)
    mean = fn.reductions.mean(blurred) / 255 - 0.1
    return fn.flip(blurred, horizontal=fn.cast(mean * 2 > 1, dtype=types.INT32)), mean


def of_kind(pipe: Pipeline, kind: StepKind) -> list[str]:
    """Return the operators of a kind, in their order."""
    return [node.operator.name for node, each in choose_kinds(graph_of(pipe)).items() if each is kind]


def stages(pipe: Pipeline) -> list[tuple[list[str], list[str]]]:
    """Return the steps and the chain of each stage."""
    found = plan(graph_of(pipe)).stages
    return [
        ([n.operator.name for n in s.steps], [n.operator.name for n in s.chain.nodes] if s.chain else []) for s in found
    ]


def test_results_of_a_per_sample_chain_stay_in_it() -> None:
    pipe = pipeline(ends_in_arithmetic)
    names = ["gaussian_blur", "reductions.mean", "math.add", "math.mul", "math.mul", "math.sub"]
    assert of_kind(pipe, StepKind.SAMPLE) == names


def test_data_for_a_per_sample_chain_joins_it() -> None:
    pipe = pipeline(lambda x: fn.gaussian_blur(fn.crop(x, crop=(2, 2)) + 1, window_size=3))
    assert of_kind(pipe, StepKind.SAMPLE) == ["crop", "math.add", "gaussian_blur"]


def test_parameters_are_computed_over_the_batch() -> None:
    def define(data: Any) -> Any:
        return fn.gaussian_blur(data, sigma=fn.random.uniform(range=(0.5, 1)) * 2 + 1)

    assert stages(pipeline(define)) == [
        (["external_source", "random.uniform", "math.mul", "math.add"], ["gaussian_blur"])
    ]


def test_a_random_condition_needs_no_separate_stage() -> None:
    def define(data: Any) -> Any:
        chance = fn.random.uniform(range=(0, 1)) * 0.5
        mirror = fn.random.coin_flip(probability=chance)
        return fn.flip(fn.gaussian_blur(data, window_size=3), horizontal=mirror)

    assert stages(pipeline(define)) == [
        (["external_source", "random.uniform", "math.mul", "random.coin_flip"], ["gaussian_blur", "flip"])
    ]


def test_chains_wait_for_all_steps_that_they_need() -> None:
    """Nodes run as late as possible: the blur does not run first, without the flip."""
    def define(data: Any) -> Any:
        chance = fn.cast(fn.reductions.mean(fn.crop(data, crop=(2, 2))), dtype=types.FLOAT) / 255
        mirror = fn.random.coin_flip(probability=chance)
        return fn.flip(fn.gaussian_blur(data, window_size=3), horizontal=mirror)

    assert stages(pipeline(define)) == [
        (["external_source"], ["crop", "reductions.mean", "cast", "math.truediv"]),
        (["random.coin_flip"], ["gaussian_blur", "flip"]),
    ]


@pytest.mark.parametrize(
    "argument",
    [lambda numbers: fn.random.uniform(range=(0, 1)) * 0.5, lambda numbers: numbers * 0.5],
    ids=["drawn", "of a source"],
)
def test_computed_arguments_do_not_join_the_chain_of_a_decoder(argument: Callable[[Any], Any]) -> None:
    """The chain of a decoder stays on the fast path, which supports no other operator."""
    pipe = Pipeline(2, 1, None)
    encoded, numbers, labels = fn.external_source(lambda: 1 / 0, num_outputs=3)
    images = fn.crop(fn.decoders.image(encoded), crop=(2, 2), crop_pos_x=argument(numbers))
    pipe.set_outputs(images, fn.cast(labels, dtype=types.INT64) + 1)
    assert stages(pipe)[-1] == ([], ["decoders.image", "crop"])


def test_a_branch_runs_on_single_samples() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def define() -> Any:
        value = fn.external_source(name="x") + 1
        if fn.random.uniform(range=(0, 1)) > 0.5:
            value = value * 2
        return value

    assert "math.mul" in of_kind(define(), StepKind.SAMPLE)
    assert "math.gt" in of_kind(define(), StepKind.STEP)  # a condition is a parameter


@pytest.mark.parametrize("heights", [(300, 300), (300, 200)], ids=str)
def test_shapes_of_a_source(heights: tuple[int, int]) -> None:
    data = [np.zeros((height, 100, 3), np.uint8) for height in heights]
    pipe = Pipeline(2, 1, None)
    pipe.set_outputs(fn.external_source(lambda: data).shape(dtype=types.INT32))
    for output in (pipe.run()[0] for _ in range(5)):
        assert output.dtype == types.INT32
        assert output.tolist() == [[height, 100, 3] for height in heights]
    assert stages(pipe) == [(["external_source"], ["_shape"])]
    pipe.close()


def test_shapes_of_a_chains_results_are_read_in_the_chain() -> None:
    pipe = pipeline(lambda x: fn.gaussian_blur(x, window_size=3).shape())
    assert of_kind(pipe, StepKind.SAMPLE) == ["gaussian_blur", "_shape"]


@pytest.mark.parametrize("counts", [[30, 30], [300, 300], [30, 31]], ids=str)
@pytest.mark.parametrize("settings", [{}, {"bad_samples": "skip"}], ids=str)
def test_frames_of_sequences(counts: list[int], settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    data = [rng.integers(0, 256, (count, 1000), np.uint8) for count in counts]
    given = data if counts[0] != counts[1] else np.stack(data)
    pipe = Pipeline(2, 2, None, **settings)
    source = fn.external_source(lambda: given)
    first, last = fn.element_extract(source, element_map=[0, 7])
    most = fn.reductions.max(fn.sequence_rearrange(source, new_order=[3, 3]), axes=[1])
    pipe.set_outputs(first, last, fn.sequence_rearrange(source, new_order=[4, 0, 4]), most)
    for _ in range(3):
        outputs = pipe.run()
        for i, sample in enumerate(data):
            expected = [sample[0], sample[7], sample[[4, 0, 4]], sample[[3, 3]].max(1)]
            for output, values in zip(outputs, expected, strict=True):
                assert np.array_equal(output.at(i), values)
    pipe.close()


def test_no_copy_is_a_view() -> None:
    data = torch.zeros((2, 1, 3, 9000), dtype=torch.uint8)
    pipe = Pipeline(2, 1, None)
    source = fn.external_source(lambda: data, no_copy=True)
    pipe.set_outputs(fn.element_extract(source, element_map=[0]), fn.sequence_rearrange(source, new_order=[0]))
    for _ in range(2):
        for output in pipe.run():
            output.at(0)[:] = 1
            assert output.as_tensor().data_ptr() != data.data_ptr() and not data.any()
    pipe.close()


def run(pipe: Pipeline, batches: int) -> list[list[Any]]:
    found = [[output.tolist() for output in pipe.run()] for _ in range(batches)]
    pipe.close()
    return found


@pytest.mark.thin(3)
@pytest.mark.parametrize("define", [ends_in_arithmetic, feeds_back])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_results_match_debug_mode(define: Any, settings: dict[str, Any]) -> None:
    expected = run(pipeline(define, debug=True), 12)
    pipe = pipeline(define, **settings)
    assert run(pipe, 12) == expected


RAGGED: dict[str, Callable[[int, int], int]] = {
    "from the first batch on": lambda batch, i: 4 + i,
    "later": lambda batch, i: 8 if batch < 5 else 4 + i,
    "first": lambda batch, i: 4 + i if batch < 1 else 8,
}


@pytest.mark.parametrize("sizes", RAGGED.values(), ids=RAGGED)
def test_shapes_that_change(sizes: Callable[[int, int], int]) -> None:
    def define(data: Any) -> Any:
        rows = fn.reductions.sum(fn.cast(data, dtype=types.INT32), axes=(1, 2))
        return rows * 2 + 1, rows - 1

    expected = run(pipeline(define, sizes, debug=True), 12)
    assert run(pipeline(define, sizes, prefetch_queue_depth=3), 12) == expected


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_steps_after_a_chain_see_batches_in_order(settings: dict[str, Any]) -> None:
    seen: list[int] = []

    def look(number: np.ndarray) -> np.ndarray:
        seen.append(int(number))
        return number

    def define(data: Any) -> Any:
        number = fn.reductions.max(fn.crop(data, crop=(1, 1)))
        return fn.python_function(number + 0, function=look) * 2

    pipe = pipeline(define, **settings)
    run(pipe, 12)
    assert seen[::6] == sorted(seen[::6]) and seen[:6] == [0, 1, 2, 3, 4, 5]


def test_an_error_after_some_batches_names_operator_and_line() -> None:
    def define(data: Any) -> Any:
        number = fn.cast(fn.reductions.max(fn.crop(data, crop=(1, 1))), dtype=types.INT32)
        return 10 // (number - 80)  # the first sample of batch 5

    pipe = pipeline(define, prefetch_queue_depth=2)
    for _ in range(5):
        pipe.run()
    with pytest.raises(ValueError, match=r"math.floordiv.*batch 5(.|\n)*10 // \(number"):
        pipe.run()
    assert pipe.run()[0].tolist()[0] == 10 // 16
    pipe.close()
