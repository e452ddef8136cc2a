"""The policies for bad samples, if an operator processes the whole batch in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers import pages
from tests.helpers.encoded_images import encoded
from torchdali import Pipeline, fn, operator, pipeline_def, types
from torchdali.errors import PipelineError
from torchdali.rng import BatchRng

SEED = 7
Array = np.ndarray[Any, Any]


def boxes(count: int, value: float = 0.25) -> Array:
    """Return boxes inside of the image, that differ."""
    return np.linspace(value / 2, value, count * 4, dtype=np.float32).reshape(count, 4)


def refuse_zero(array: Array) -> Array:
    if not array.any():
        raise ValueError("all zeros")
    return array * 2


def frames(count: int) -> Array:
    return np.arange(count * 3, dtype=np.float32).reshape(count, 3)


GOOD = [boxes(2), boxes(3, 0.5), boxes(1, 0.75)]
PAIRS = [np.array(pair, np.float32) for pair in ([1, 2], [3, 5], [0, 9])]
WINDOWS = [np.ones((8, 9)), np.ones((7, 6)), np.ones((9, 12))]
MASKS = [np.ones((3, n), np.int32) for n in (2, 5, 3)]
IDS = [np.array(ids, np.int32) for ids in ([0], [1, 0], [1])]
POLYGONS = np.array([[0, 0, 1], [1, 1, 2]], np.int32)
POINTS = np.arange(4, dtype=np.float32).reshape(2, 2)
BYTES = [np.arange(n * 3, dtype=np.uint8).reshape(n, 3) for n in (4, 5, 6)]

Case = tuple[Callable[[Any], Any], Sequence[Array], Sequence[Array], str]
CASES: dict[str, Case] = {
    # operator on the data, good samples, two bad ones, a part of the reason
    "bb_flip": (lambda d: fn.bb_flip(d, vertical=1), GOOD, [boxes(3).reshape(4, 3)] * 2, "4 numbers each, got 3 (sample"),
    "coord_flip": (fn.coord_flip, PAIRS, [np.ones(4, np.float32), np.ones(0, np.float32)], "1 to 3 coordinates"),
    "coord_transform": (
        lambda d: fn.coord_transform(d, M=[1, 2, 0, 1]),
        [np.ones((2, 2), np.float32), np.full((2, 2), 3, np.float32), np.zeros((2, 2), np.float32)],
        [np.ones((2, 3), np.float32), np.ones((2, 5), np.float32)], "cannot form a matrix",
    ),
    "random_bbox_crop": (lambda d: fn.random_bbox_crop(d, num_attempts=3), GOOD, [boxes(2) + 1, boxes(2) - 1], "must be in"),
    "bbox_paste": (lambda d: fn.bbox_paste(d, ratio=2.0), GOOD, [boxes(3).reshape(4, 3)] * 2, "4 numbers"),
    "bbox_rotate": (
        lambda d: fn.bbox_rotate(d, np.zeros(2, np.int32), angle=30.0, input_shape=[20, 30]),
        [boxes(2), boxes(2, 0.5), boxes(2, 0.75)], [boxes(3), boxes(1)], "boxes and 2 labels",
    ),
    "random_crop_generator": (
        lambda d: fn.random_crop_generator(fn.cast(d, dtype=types.INT64)), [p + 5 for p in PAIRS],
        [np.ones(4, np.float32), np.ones(1, np.float32)], "2 or 3 values",
    ),
    "roi_random_crop": (
        lambda d: fn.roi_random_crop(d, crop_shape=[5, 5], roi_start=[0, 0], roi_shape=[6, 6]),
        WINDOWS, [np.ones((8, 4)), np.ones((3, 8))], "bigger than the input shape",
    ),
    "_any_pixel": (fn.segmentation.random_mask_pixel, MASKS, [MASKS[0][:, :0], MASKS[0][:0]], "at least one pixel"),
    "segmentation.select_masks": (
        lambda d: fn.segmentation.select_masks(d, POLYGONS, POINTS),
        IDS, [np.array([1, 1], np.int32), np.array([4], np.int32)], "",
    ),
    "transforms.translation": (
        lambda d: fn.transforms.translation(np.eye(2, 3, dtype=np.float32), offset=d),
        PAIRS, [np.ones(3, np.float32), np.ones(4, np.float32)], "suggest a",
    ),
    "random.uniform": (
        lambda d: fn.random.uniform(range=d), PAIRS, [np.array(p, np.float32) for p in ([1, 1], [2, 1])], "low < high",
    ),
    "random.beta": (
        lambda d: fn.random.beta(alpha=d), [np.float32(n) for n in (1, 2, 3)], [np.float32(0), np.float32(-1)], "positive",
    ),
    "random.choice": (
        lambda d: fn.random.choice(np.arange(2), p=d), [np.array(p, np.float32) for p in ([0, 1], [0.5, 0.5], [1, 0])],
        [np.array(p, np.float32) for p in ([0.5, 1], [2, 1])], "",
    ),
    "random.normal": (
        lambda d: fn.random.normal(shape=d), [np.array([n, 2], np.int32) for n in (3, 1, 4)],
        [np.array([-1, 2], np.int32), np.array([2, -5], np.int32)], "must not be negative",
    ),
    "zeros": (
        lambda d: fn.zeros(shape=d), [np.array([n, 2], np.int32) for n in (3, 1, 4)],
        [np.array([-1, 2], np.int32), np.array([2, -5], np.int32)], "must not be negative",
    ),
    "pad": (
        lambda d: fn.pad(np.ones(3, np.float32), align=d), [np.array([n], np.int32) for n in (2, 4, 5)],
        [np.array([n], np.int32) for n in (0, -3)], "align must be positive",
    ),
    "multi_paste": (
        lambda d: fn.multi_paste(BYTES[0].reshape(2, 2, 3), in_anchors=d, output_size=[4, 4]),
        [np.array([p], np.int32) for p in ([0, 0], [1, 0], [1, 1])],
        [np.array([p], np.int32) for p in ([3, 0], [0, -1])], "must be within input sample",
    ),
    "sequence_rearrange": (lambda d: fn.sequence_rearrange(d, new_order=[3, 0]), BYTES, [BYTES[0][:2], BYTES[0][:3]], "but it is: 3"),
    "element_extract": (lambda d: fn.element_extract(d, element_map=[3, 0]), BYTES, [BYTES[0][:2], BYTES[0][:3]], "is out of bounds"),
    "full": (lambda d: fn.full(d, shape=[2, 3]), [np.ones(3), np.zeros(3), np.full(3, 5.0)], [np.ones(2), np.ones(4)], ""),
    "python_function": (
        lambda d: fn.python_function(d, function=refuse_zero), BYTES, [np.zeros((2, 3), np.uint8)] * 2, "all zeros",
    ),
}  # fmt: skip


def make(define: Any, samples: Sequence[Sequence[Array]], **settings: Any) -> Pipeline:
    """Create a pipeline on batches of these samples, which are numbered from 0."""
    batches = [
        (list(batch), [np.int32(len(batch) * i + k) for k in range(len(batch))])
        for i, batch in enumerate(samples)
    ]

    def defined() -> Any:
        data, number = fn.external_source(lambda info: batches[info], num_outputs=2, batch=True)
        before = number * 10
        outputs = define(data)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return *outputs, before, number, fn.random.uniform(), fn.random.normal(number, seed=5)

    settings = {"batch_size": len(samples[0]), "num_threads": 2, "device_id": None, "seed": SEED, **settings}
    pipe: Pipeline = pipeline_def(**settings)(defined)()
    return pipe


def found(pipe: Pipeline) -> list[list[Array]]:
    """Return the samples of the next batch, one list per output."""
    return [[sample.numpy() for sample in output.samples()] for output in pipe.run()]


def pick(outputs: list[list[Array]], kept: Sequence[int]) -> list[list[Array]]:
    return [[output[i] for i in kept] for output in outputs]


def same(one: list[list[Array]], other: list[list[Array]]) -> None:
    assert [len(output) for output in one] == [len(output) for output in other]
    for left, right in zip(one, other, strict=True):
        for a, b in zip(left, right, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, Case]:
    return request.param, CASES[request.param]


def reported(pipe: Pipeline) -> list[tuple[str, int, int]]:
    return [(bad.operator, bad.batch, bad.sample) for bad in pipe.bad_sample_report()]


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    ("policy", "kept"), [("skip", [0, 2, 4]), ("replace", [0, 0, 2, 2, 4])], ids=["skip", "replace"]
)
@pytest.mark.parametrize("synchronous", [False, True])
def test_only_the_bad_sample_is_dropped(case: tuple[str, Case], policy: str, kept: list[int], synchronous: bool) -> None:
    name, (define, good, bad, reason) = case
    mixed = [good[0], bad[0], good[1], bad[1], good[2]]
    fine = [good[0], good[0], good[1], good[1], good[2]]
    settings = {"exec_async": not synchronous, "prefetch_queue_depth": 1 if synchronous else 3}
    pipe = make(define, [fine, mixed, fine] * 3, bad_samples=policy, **settings)
    whole = make(define, [fine, fine, fine] * 3)
    for i in range(6):
        expected, outputs = found(whole), found(pipe)
        same(outputs, pick(expected, kept) if i % 3 == 1 else expected)
    report = [one for one in pipe.bad_sample_report() if one.batch < 6]
    assert [(b.operator, b.batch, b.sample) for b in report] == [(name, b, s) for b in (1, 4) for s in (1, 3)]
    assert all(reason in one.reason for one in report)
    for one in report:
        assert "(sample" not in one.reason or f"(sample {one.sample})" in one.reason
    pipe.close()
    whole.close()


def test_all_samples_may_be_bad(case: tuple[str, Case]) -> None:
    name, (define, good, bad, _) = case
    batches = [[bad[0], bad[1], bad[0]], good, [bad[1]] * 3, good]
    pipe = make(define, batches * 3, bad_samples="skip")
    sizes = [{len(output) for output in pipe.run()} for _ in range(4)]
    assert sizes == [{0}, {3}, {0}, {3}]
    assert [one for one in reported(pipe) if one[1] < 4] == [(name, b, s) for b in (0, 2) for s in range(3)]
    pipe.close()
    pipe = make(define, batches * 3, bad_samples="replace")
    with pytest.raises(Exception, match=f"'{name}' failed on sample 0 of batch 0"):
        pipe.run()
    assert {len(output) for output in pipe.run()} == {3}
    pipe.close()


def test_a_batch_of_one(case: tuple[str, Case]) -> None:
    _, (define, good, bad, _) = case
    pipe = make(define, [[good[0]], [bad[0]], [good[1]]] * 3, bad_samples="skip")
    assert [{len(output) for output in pipe.run()} for _ in range(3)] == [{1}, {0}, {1}]
    pipe.close()


def test_a_budget(case: tuple[str, Case]) -> None:
    name, (define, good, bad, _) = case
    batches = [[good[0], bad[0], good[1]], [good[0], good[1], bad[1]], good] * 3
    pipe = make(define, batches, bad_samples="skip", max_bad_samples=1, prefetch_queue_depth=1)
    assert {len(output) for output in pipe.run()} == {2}
    with pytest.raises(Exception, match=f"'{name}' failed on sample 2 of batch 1"):
        pipe.run()
    assert {len(output) for output in pipe.run()} == {3}
    pipe.close()


def test_an_error_names_the_sample(case: tuple[str, Case]) -> None:
    name, (define, good, bad, _) = case
    pipe = make(define, [[good[0], good[1], bad[0]]] * 9)
    sample = "" if name == "python_function" else "sample 2 of "  # which is then not called twice
    with pytest.raises(Exception, match=f"'{name}' failed on {sample}batch 0"):
        pipe.run()
    assert pipe.bad_sample_report() == []
    pipe.close()


def test_debug_mode_raises() -> None:
    """Debug mode raises the first error immediately."""
    pipe = make(CASES["bb_flip"][0], [[GOOD[0], CASES["bb_flip"][2][0]]] * 9, bad_samples="skip", debug=True)
    with pytest.raises(RuntimeError, match="'bb_flip' failed on sample 1 of batch 0"):
        pipe.run()
    assert pipe.bad_sample_report() == []
    pipe.close()


WRONG: dict[str, tuple[Callable[[Any], Any], Sequence[Array]]] = {
    "thresholds": (lambda d: fn.random_bbox_crop(d, thresholds=[2.0]), GOOD),
    "scaling": (lambda d: fn.random_bbox_crop(d, scaling=[2.0, 1.0]), GOOD),
    "bbox_layout": (lambda d: fn.random_bbox_crop(d, bbox_layout="xyzz"), GOOD),
    "a layout of points": (lambda d: fn.coord_flip(d, layout="ab"), PAIRS),
    "mode": (lambda d: fn.bbox_rotate(d, angle=1.0, input_shape=[2, 2], mode="?"), GOOD),
    "random_area": (lambda d: fn.random_crop_generator(fn.cast(d, dtype=types.INT64), random_area=[2, 1]), PAIRS),
    "roi": (lambda d: fn.roi_random_crop(d, crop_shape=[5, 5], roi_start=[0, 0]), WINDOWS),
    "value and threshold": (lambda d: fn.segmentation.random_mask_pixel(d, value=1, threshold=2.0), MASKS),
    "shear": (lambda d: fn.transforms.shear(center=d), PAIRS),
    "range": (lambda d: fn.random.uniform(d, range=[2.0, 1.0]), PAIRS),
    "dtype": (lambda d: fn.random.normal(d, dtype=types.BOOL), PAIRS),
    "alpha": (lambda d: fn.random.beta(d, alpha=-1.0), PAIRS),
    "shape": (lambda d: fn.random.beta(alpha=d, shape=[-1]), [np.float32(1)] * 3),
    "too many indices": (lambda d: (d + 1)[0, 1, 0], PAIRS),
    "an axis": (lambda d: fn.stack(d, d, axis=7), PAIRS),
    "perm": (lambda d: fn.transpose(d + 1, perm=[0, 3]), PAIRS),
    "too many indices, in a chain": (lambda d: fn.reductions.sum(d, axes=[0], keep_dims=True)[0, 1, 0], PAIRS),
    "M and MT": (lambda d: fn.coord_transform(d, M=[1, 1, 1, 1], MT=[1] * 6), [np.ones((2, 2), np.float32)] * 3),
    "no inputs": (lambda d: fn.random.uniform(range=[2.0, 1.0]), PAIRS),
    "indices": (lambda d: fn.permute_batch(d, indices=[0, 1, 7]), PAIRS),
    "a function over the batch": (
        lambda d: fn.python_function(d, batch_processing=True, function=lambda batch: batch[0].nothing), PAIRS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("policy", ["skip", "replace"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_argument_fails_the_batch(wrong: str, policy: str) -> None:
    define, good = WRONG[wrong]
    pipe = make(define, [good] * 9, bad_samples=policy, prefetch_queue_depth=1)
    for batch in range(2):
        with pytest.raises(Exception, match=f"failed on batch {batch}"):
            pipe.run()
    assert pipe.bad_sample_report() == []
    pipe.close()


def test_samples_that_do_not_fit_together_fail_the_batch() -> None:
    pipe = make(fn.coord_flip, [[np.ones((2, n), np.float32) for n in (2, 2, 3)]] * 9, bad_samples="skip")
    with pytest.raises(RuntimeError, match="in all samples, got 3 in sample 2"):
        pipe.run()
    assert pipe.bad_sample_report() == []
    pipe.close()


# ---------------------------------------------------------------- chains before and after


PICTURES = [encoded(np.full((6 + level, 8, 3), level, np.uint8), "png") for level in range(8)]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Eight files: the second is not an image, the fourth has one row."""
    for i, content in enumerate(PICTURES):
        (tmp_path / f"{i}.png").write_bytes(content)
    (tmp_path / "1.png").write_bytes(b"no picture")
    (tmp_path / "3.png").write_bytes(encoded(np.full((1, 8, 3), 3, np.uint8), "png"))
    return [str(tmp_path / f"{i}.png") for i in range(8)]


@pytest.fixture
def pipes() -> Iterator[Any]:
    made: list[Pipeline] = []

    def of(define: Any, *given: Any, **settings: Any) -> Pipeline:
        settings = {"num_threads": 2, "device_id": None, "seed": SEED, **settings}
        made.append(pipeline_def(**settings)(define)(*given))
        return made[-1]

    yield of
    for pipe in made:
        pipe.close()


def detect(paths: list[str]) -> Any:
    """A chain, windows over the batch that need two rows, a chain that crops them, and a chain after it."""
    data, label = fn.readers.file(files=paths, name="Reader")
    images = fn.decoders.image(data)
    start = fn.roi_random_crop(images, crop_shape=[2, 8, 3], roi_start=[0, 0, 0], roi_end=images.shape())
    cut = fn.slice(images, fn.cast(start, dtype=types.INT32), [2, 8, 3], axes=[0, 1, 2], normalized_anchor=False, normalized_shape=False)
    flip = fn.random.coin_flip()
    return fn.flip(cut, horizontal=flip), label, images.source_info(), start, fn.random.uniform()


def test_a_chain_before_and_one_after(pipes: Any, files: list[str]) -> None:
    pipe = pipes(detect, files, batch_size=8, bad_samples="skip")
    cut, labels, infos, start, numbers = pipe.run()
    kept = [0, 2, 4, 5, 6, 7]
    assert labels.stack().flatten().tolist() == kept
    assert [int(sample[0, 0, 0]) for sample in cut.samples()] == kept
    assert [bytes(info.tolist()).decode() for info in infos.samples()] == [files[i] for i in kept]
    report = [b for b in pipe.bad_sample_report() if b.batch == 0]
    assert [(b.file, b.operator, b.sample) for b in report] == [
        (files[1], "decoders.image", 1),
        (files[3], "roi_random_crop", 3),
    ]
    for i in (1, 3):
        Path(files[i]).write_bytes(PICTURES[i])
    whole = pipes(detect, files, batch_size=8).run()
    for ours, theirs in zip((cut, start, numbers), (whole[0], whole[3], whole[4]), strict=True):
        expected = [theirs.samples()[i].tolist() for i in kept]
        assert [sample.tolist() for sample in ours.samples()] == expected


def test_a_replacement_may_be_bad_later(pipes: Any, files: list[str]) -> None:
    """The second is replaced by the third, which then fails, twice, and is reported once."""
    Path(files[2]).write_bytes(Path(files[3]).read_bytes())
    Path(files[0]).write_bytes(b"no picture either")
    pipe = pipes(detect, files, batch_size=8, bad_samples="replace")
    labels = pipe.run()[1].stack().flatten().tolist()
    assert labels == [4, 4, 4, 4, 4, 5, 6, 7]
    report = [(b.operator, b.sample) for b in pipe.bad_sample_report() if b.batch == 0]
    assert report == [("decoders.image", 0), ("decoders.image", 1), ("roi_random_crop", 2), ("roi_random_crop", 3)]


def test_a_budget_over_chains_and_steps(pipes: Any, files: list[str]) -> None:
    pipe = pipes(detect, files, batch_size=8, bad_samples="skip", max_bad_samples=1, prefetch_queue_depth=1)
    place = r"'roi_random_crop' failed on sample 3 of batch 0 \(.*3\.png\)"
    with pytest.raises(PipelineError, match=place):
        pipe.run()


def test_a_checkpoint_after_bad_samples(pipes: Any, files: list[str]) -> None:
    pipe = pipes(detect, files, batch_size=3, bad_samples="skip")
    for _ in range(2):
        pipe.run()
    place = pipe.checkpoint()
    expected = [found(pipe) for _ in range(3)]
    other = pipes(detect, files, batch_size=3, bad_samples="skip", checkpoint=place)
    for outputs in expected:
        same(found(other), outputs)


@pytest.mark.parametrize("size", [4, 8])
def test_numbers_do_not_depend_on_the_rest_of_the_batch(pipes: Any, files: list[str], size: int) -> None:
    pipe = pipes(detect, files, batch_size=size, bad_samples="skip")
    batches = [found(pipe) for _ in range(8 // size)]
    numbers = {
        n.item(): (x.tolist(), s.tolist()) for _, ns, _, ss, xs in batches for n, s, x in zip(ns, ss, xs, strict=True)
    }
    one = pipes(detect, files, batch_size=1, bad_samples="skip")
    for i in range(8):
        _, labels, _, starts, uniform = found(one)
        assert len(labels) == (i not in (1, 3))
        if len(labels):
            assert numbers[i] == (uniform[0].tolist(), starts[0].tolist())


def test_numbers_of_a_source_match_the_remaining_samples(pipes: Any, files: list[str]) -> None:
    """Samples are dropped at two operators, one after another."""

    def define() -> Any:
        data = fn.external_source(lambda: [np.fromfile(file, np.uint8) for file in files])
        images = fn.decoders.image(data)
        start = fn.roi_random_crop(images, crop_shape=[2, 8, 3], roi_start=[0, 0, 0], roi_end=images.shape())
        return images, fn.random.uniform(start, seed=3)

    pipe = pipes(define, batch_size=8, bad_samples="skip")
    images, numbers = pipe.run()
    kept = [0, 2, 4, 5, 6, 7]
    assert [int(image[0, 0, 0]) for image in images.samples()] == kept
    for i in (1, 3):
        Path(files[i]).write_bytes(PICTURES[i])
    whole = pipes(define, batch_size=8).run()[1].as_array().tolist()
    assert numbers.as_array().tolist() == [whole[i] for i in kept]


# -------------------------------------------------------- operators that mix samples


def paired(pipe: Pipeline) -> list[tuple[int, ...]]:
    """Return the values of the outputs, one tuple per sample."""
    columns = [[int(s.flatten()[0]) for s in output.samples()] for output in pipe.run()]
    return list(zip(*columns, strict=True))


def mixed(batch: list[bytes]) -> Any:
    """Permute numbers before the failing chain, and images after it, with one permutation."""
    data, number = fn.external_source(
        lambda: ([np.frombuffer(b, np.uint8) for b in batch], [np.int32(i) for i in range(len(batch))]), num_outputs=2
    )
    order = fn.batch_permutation()
    other = fn.permute_batch(number, indices=order)
    images = fn.decoders.image(data)
    return images, number, fn.permute_batch(images, indices=order), other, fn.permute_batch(number, indices=order)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_a_permutation_matches_before_and_after(pipes: Any, policy: str) -> None:
    batch = [b"x" if i in (1, 4) else content for i, content in enumerate(PICTURES)]
    pipe = pipes(mixed, batch, batch_size=8, bad_samples=policy)
    left = [0, 2, 3, 5, 6, 7]
    for _ in range(5):
        values = paired(pipe)
        assert [number for _, number, *_ in values] == (left if policy == "skip" else [0, 0, 2, 3, 3, 5, 6, 7])
        for image, number, image2, number2, number3 in values:
            assert image == number and image2 == number2 == number3
            assert number2 in left


def late(batch: list[Array]) -> Any:
    """A step fails between two uses of a permutation."""
    data, number = fn.external_source(lambda: (batch, [np.int32(i) for i in range(len(batch))]), num_outputs=2)
    order = fn.batch_permutation()
    first = fn.permute_batch(number, indices=order)
    start = fn.roi_random_crop(data, crop_shape=[5, 5], roi_start=[0, 0], roi_shape=[6, 6])
    second = fn.permute_batch(number, indices=order, name="second")  # named, so not merged with the first
    return number, first, second, start


def test_a_step_between_two_uses_of_a_permutation(pipes: Any) -> None:
    pipe = pipes(late, [WINDOWS[0], np.ones((4, 4)), *WINDOWS], batch_size=5, bad_samples="skip")
    for _ in range(5):
        values = paired(pipe)
        assert [number for number, *_ in values] == [0, 2, 3, 4]
        assert all(first == second for _, first, second, _ in values)
        assert sorted(first for _, first, *_ in values) == [0, 2, 3, 4]


def test_results_that_cannot_be_recomputed_fail_the_batch(pipes: Any) -> None:
    """A chain processed permuted data, and the permutation is needed once more."""

    def define(batch: list[bytes]) -> Any:
        data, number = fn.external_source(
            lambda: ([np.frombuffer(b, np.uint8) for b in batch], [np.int32(i) for i in range(len(batch))]), num_outputs=2
        )
        order = fn.batch_permutation()
        images = fn.decoders.image(fn.permute_batch(data, indices=order))
        return images, fn.permute_batch(fn.decoders.image(data, device="cpu") + 0, indices=order), number

    batch = [b"x" if i == 1 else content for i, content in enumerate(PICTURES)]
    pipe = pipes(define, batch, batch_size=8, bad_samples="skip")
    with pytest.raises(PipelineError, match=r"failed on sample \d of batch 0"):
        pipe.run()
    assert pipe.bad_sample_report() == []


def test_numbers_of_a_user_operator_stay_with_their_samples(pipes: Any) -> None:
    """A failing chain uses the numbers, and they are outputs: each stays with its sample."""
    with pages.own_operators():

        @operator(over="batch")
        def levels(*, rng: BatchRng) -> Any:
            """Draw a number per sample."""
            return torch.from_numpy(rng.uniform(1)[:, 0].astype(np.float32))

        def define(batch: list[bytes]) -> Any:
            data = fn.external_source(lambda: [np.frombuffer(b, np.uint8) for b in batch])
            level = levels()
            return fn.brightness(fn.decoders.image(data), brightness_shift=level, dtype=types.FLOAT), level

        pipe = pipes(define, [b"x" if i == 1 else content for i, content in enumerate(PICTURES)], batch_size=8, bad_samples="skip")
        whole = pipes(define, PICTURES, batch_size=8)
        expected, outputs = found(whole), found(pipe)
        same(outputs, pick(expected, [0, 2, 3, 4, 5, 6, 7]))


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_user_indices_of_dropped_samples(pipes: Any, policy: str) -> None:
    def define() -> Any:
        data, number, order = fn.external_source(
            lambda: ([*WINDOWS, np.ones((4, 4))], [np.int32(i) for i in range(4)], [np.int32(i) for i in (1, 2, 3, 0)]),
            num_outputs=3,
        )
        start = fn.roi_random_crop(data, crop_shape=[5, 5], roi_start=[0, 0], roi_shape=[6, 6])
        return number, fn.permute_batch(start * 0 + number, indices=order)

    pipe = pipes(define, batch_size=4, bad_samples=policy)
    if policy == "skip":
        with pytest.raises(PipelineError, match="'roi_random_crop' failed on sample 3 of batch 0"):
            pipe.run()
    else:
        assert paired(pipe) == [(0, 1), (1, 2), (2, 2), (2, 2)]


# ---------------------------------------------------------------- branches, devices, functions


def test_branches(pipes: Any) -> None:
    """Only operators that ran on a sample can fail on it."""
    windows = [WINDOWS[0], np.ones((4, 4)), WINDOWS[1], np.ones((4, 4)), WINDOWS[2], WINDOWS[0]]

    def define() -> Any:
        data, number = fn.external_source(lambda: (windows, [np.int32(i) for i in range(6)]), num_outputs=2)
        if number < 3:
            start = fn.roi_random_crop(data, crop_shape=[5, 5], roi_start=[0, 0], roi_shape=[6, 6])
        else:
            start = fn.cast(number, dtype=types.INT64) * -1 + np.zeros(2, np.int64)
        return start, number

    settings = {"batch_size": 6, "enable_conditionals": True}
    for policy, kept in (("skip", [0, 2, 3, 4, 5]), ("replace", [0, 0, 2, 3, 4, 5])):
        pipe = pipes(define, bad_samples=policy, **settings)
        starts, numbers = found(pipe)
        assert [int(n) for n in numbers] == kept
        assert [s.tolist() for s in starts[-3:]] == [[-n, -n] for n in kept[-3:]]
        assert [one for one in reported(pipe) if one[1] == 0] == [("roi_random_crop", 0, 1)]


def test_steps_on_a_device(pipes: Any) -> None:
    def define() -> Any:
        data, number = fn.external_source(
            lambda: ([PAIRS[0], np.ones(3, np.float32), PAIRS[1]], [np.int32(i) for i in range(3)]), num_outputs=2
        )
        return fn.reshape(data.gpu(), shape=[2, 1]), number.gpu(), number

    pipe = pipes(define, batch_size=3, device_id="cpu", bad_samples="skip")
    for batch in range(3):
        moved, there, here = found(pipe)
        assert [sample.flatten().tolist() for sample in moved] == [PAIRS[0].tolist(), PAIRS[1].tolist()]
        assert [int(n) for n in there] == [int(n) for n in here] == [0, 2]
        assert ("reshape", batch, 1) in reported(pipe)


def test_only_batches_with_bad_samples_call_a_function_twice(pipes: Any) -> None:
    seen: list[int] = []

    def look(array: Array) -> Array:
        seen.append(int(array))
        if array == 4:
            raise ValueError("four")
        return array

    def define() -> Any:
        return fn.python_function(
            fn.external_source(lambda info: [np.int32(2 * info), np.int32(2 * info + 1)], batch=True), function=look
        )

    pipe = pipes(define, batch_size=2, bad_samples="skip", prefetch_queue_depth=1)
    batches = [[int(v) for v in found(pipe)[0]] for _ in range(4)]
    assert batches == [[0, 1], [2, 3], [5], [6, 7]]
    assert [seen.count(n) for n in (0, 1, 2, 3, 6, 7)] == [1] * 6 and seen.count(5) > 1
