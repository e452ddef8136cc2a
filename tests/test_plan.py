"""What of a graph runs over the batch and what sample by sample, and that it makes no difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.execute.profile import Marks
from torchdali.plan import fused_nodes

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


def fused(pipe: Pipeline, light: Callable[[str], bool]) -> list[str]:
    """Return the operators of the chains if the outputs of some operators are known to be light."""
    graph = pipe._traced()
    edges = {o for n in graph.nodes if light(n.operator.name) for o in n.outputs}
    found = fused_nodes(graph, (), edges)
    return [node.operator.name for node in graph.nodes if node in found]


def test_what_is_light_leaves_the_end_of_a_chain() -> None:
    pipe = pipeline(ends_in_arithmetic)
    names = ["gaussian_blur", "reductions.mean", "math.add", "math.mul", "math.mul", "math.sub"]
    assert fused(pipe, lambda name: False) == names
    assert fused(pipe, lambda name: name.startswith("math")) == names[:-1]  # it sees two products
    assert fused(pipe, lambda name: name != "gaussian_blur") == ["gaussian_blur", "reductions.mean"]


def test_a_chain_is_cut_only_where_all_is_light() -> None:
    pipe = pipeline(feeds_back)
    whole = fused(pipe, lambda name: False)
    assert fused(pipe, lambda name: name != "gaussian_blur") == whole  # the images would wait for the batch
    assert fused(pipe, lambda name: True) == ["gaussian_blur", "reductions.mean", "flip"]


def test_a_branch_stays_in_its_chain() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
    def define() -> Any:
        mean = fn.reductions.mean(fn.crop(fn.external_source(name="x"), crop=(2, 2)))
        if mean > 3:
            mean = mean * 2 + 1
        return mean

    assert "math.mul" in fused(define(), lambda name: True)


def test_shapes_of_large_samples_are_read_over_the_batch() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        data = fn.external_source(name="x")
        return data.shape(), data + 1, fn.crop(data, crop=(2, 2)).shape()

    graph = define()._traced()
    found = fused_nodes(graph, [node for node in graph.nodes if node.operator.kind == "source"])
    chained = [node.operator.name for node in graph.nodes if node in found]
    assert sorted(chained) == ["_shape", "crop", "math.add"]  # one of both shapes: that of what a chain makes


@pytest.mark.parametrize("heights", [(300, 300), (300, 200)], ids=str)
def test_shapes_of_large_samples(heights: tuple[int, int]) -> None:
    data = [np.zeros((height, 100, 3), np.uint8) for height in heights]
    pipe = Pipeline(2, 1, None)
    pipe.set_outputs(fn.external_source(lambda: data).shape(dtype=types.INT32))
    for output in (pipe.run()[0] for _ in range(5)):
        assert output.dtype == types.INT32
        assert output.tolist() == [[height, 100, 3] for height in heights]
    assert over_the_batch(pipe) == ["external_source", "_shape"]
    pipe.close()


@pytest.mark.parametrize(
    "frames, settings, steps",
    [
        (30, {}, ["element_extract", "sequence_rearrange"]),
        (30, {"bad_samples": "skip"}, ["element_extract", "sequence_rearrange"]),
        (300, {}, []),  # too large
        ([30, 31], {}, []),  # not one tensor
    ],
    ids=str,
)
def test_copies_of_moderate_samples_are_made_over_the_batch(frames: Any, settings: Any, steps: Any) -> None:
    counts = frames if isinstance(frames, list) else [frames, frames]
    rng = np.random.default_rng(1)
    data = [rng.integers(0, 256, (count, 1000), np.uint8) for count in counts]
    given = data if isinstance(frames, list) else np.stack(data)
    pipe = Pipeline(2, 2, None, **settings)
    source = fn.external_source(lambda: given)
    first, last = fn.element_extract(source, element_map=[0, 7])
    seen = fn.sequence_rearrange(source, new_order=[2, 1])
    most = fn.reductions.max(fn.sequence_rearrange(source, new_order=[3, 3]), axes=[1])
    pipe.set_outputs(first, last, fn.sequence_rearrange(source, new_order=[4, 0, 4]), most, seen)
    for _ in range(3):
        outputs = pipe.run()
        for i, sample in enumerate(data):
            expected = [sample[0], sample[7], sample[[4, 0, 4]], sample[[3, 3]].max(1), sample[[2, 1]]]
            for output, values in zip(outputs, expected, strict=True):
                assert np.array_equal(output.at(i), values)
    found = over_the_batch(pipe)
    assert sorted({name for name in found if name != "external_source"}) == steps
    assert found.count("sequence_rearrange") == 2 * bool(steps)  # a chain goes on with the third one
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


def test_marks_tell_what_is_light() -> None:
    pipe = pipeline(ends_in_arithmetic)
    nodes = pipe._traced().nodes[:4]
    small, other, large = torch.zeros(3), torch.zeros(4), torch.zeros(1 << 13)
    marks = Marks(2)
    for sample, results in enumerate([(small, small, large), (small, other, large)]):
        for number, result in enumerate(results, start=1):
            marks(sample, number, result)
    assert marks.light(nodes) == {nodes[1].outputs[0]}


def run(pipe: Pipeline, batches: int) -> list[list[Any]]:
    found = [[output.tolist() for output in pipe.run()] for _ in range(batches)]
    pipe.close()
    return found


def over_the_batch(pipe: Pipeline) -> list[str]:
    assert pipe._executor is not None
    return [n.operator.name for s in pipe._executor.plan.stages for n in s.steps]


@pytest.mark.parametrize("define", [ends_in_arithmetic, feeds_back])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_plan_changes_and_the_results_do_not(define: Any, settings: dict[str, Any]) -> None:
    expected = run(pipeline(define, debug=True), 12)
    pipe = pipeline(define, **settings)
    pipe.build()
    assert "math.mul" not in over_the_batch(pipe)
    assert run(pipe, 12) == expected
    assert "math.mul" in over_the_batch(pipe)


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
def test_steps_see_batches_in_order_while_the_plan_changes(settings: dict[str, Any]) -> None:
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
    assert "math.mul" in over_the_batch(pipe)


def test_an_error_after_the_plan_changed_names_operator_and_line() -> None:
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
