"""Chains on chunks of samples: the same results as sample by sample, and the same errors. Operators are in `tests.ops.test_laws`."""

from __future__ import annotations

import ast
import dataclasses
import gc
import inspect
import json
import pickle
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.encoded_images import encoded, smooth_image
from tests.helpers.inside import executor_of, per_sample_calls, repeated_chunks
from tests.helpers.native import needs_native
from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Arguments, Column
from torchdali.errors import PipelineError
from torchdali.execute.compiled_chain import BoundChain, Division
from torchdali.execute.timings import Profile
from torchdali.ops import _decode_chain
from torchdali.tensors import TensorList

SIZE = 12
Define = Callable[[Any], Any]


def images(batch: int, shape: tuple[int, ...] = (96, 80, 3), dtype: Any = np.uint8) -> Any:
    """Return a batch of images, of more than 16 KiB each."""
    made = np.random.default_rng(batch).integers(0, 256, (SIZE, *shape))
    return made.astype(dtype) if dtype != np.float32 else (made / 255).astype(dtype)


def pipeline(define: Define, source: Callable[[int], Any] = images, layout: str = "HWC", **settings: Any) -> Pipeline:
    @pipeline_def(**{"batch_size": SIZE, "num_threads": 2, "device_id": None, "seed": 1, **settings})
    def defined() -> Any:
        numbers = iter(range(1000))
        return define(fn.external_source(lambda: source(next(numbers)), layout=layout))

    return defined()


def drawn(low: float, high: float) -> Any:
    return fn.random.uniform(range=(low, high))


def coin() -> Any:
    return fn.random.coin_flip()


def normalized(**arguments: Any) -> Define:
    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(data, mirror=coin(), mean=[120, 110, 100.0], std=[60, 50, 55.0], **arguments)

    return define


def drawn_crop(data: Any) -> Any:
    corner = {"crop_pos_x": drawn(0, 1), "crop_pos_y": drawn(0, 1)}
    return fn.crop_mirror_normalize(data, crop=(70, 60), mirror=coin(), std=[2.0], output_layout="HWC", **corner)


CASES: dict[str, Define] = {
    "normalized": normalized(),
    "drawn": lambda x: drawn_crop(x),
    "slice": lambda x: fn.slice(x, fn.random.uniform(range=(0, 0.5), shape=[2]), [0.5, 0.4], axis_names="HW"),
    "several": lambda x: fn.crop_mirror_normalize(
        fn.flip(
            fn.brightness(fn.crop(x, crop=(70, 60), crop_pos_x=drawn(0, 1)), brightness=drawn(0.5, 1.5)), vertical=1
        ),
        mirror=coin(),
        mean=[1.0, 2.0, 3.0],
    ),
}


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[int]]:
    """Count batches by the size of their chunks.

    Key 0 counts failed chunks, whose samples were rerun one by one; key -1 counts operators that ran per sample.
    """
    counts: Counter[int] = Counter()
    choose = BoundChain.divide

    def counted(self: BoundChain, *arguments: Any) -> Division:
        division = choose(self, *arguments)
        counts[division.chunk] += 1
        return division

    monkeypatch.setattr(BoundChain, "divide", counted)
    repeated_chunks(monkeypatch, lambda _: counts.update([0]))
    per_sample_calls(monkeypatch, lambda _: counts.update([-1]))
    yield counts


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that makes all chains run single samples."""
    return lambda: monkeypatch.setattr(BoundChain, "divide", lambda *arguments: Division(1))


def outputs(pipe: Pipeline, batches: int) -> list[torch.Tensor]:
    found = [torch.stack([torch.as_tensor(s) for s in pipe.run()[0]]) for _ in range(batches)]
    pipe.close()
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 3])
def test_chunks_equal_single_samples(
    case: str, threads: int, chunks: Counter[int], alone: Callable[[], None]
) -> None:
    together = outputs(pipeline(CASES[case], num_threads=threads), 6)
    assert chunks[SIZE // (2 * threads if threads > 1 else 1)] >= 3 and not chunks[0]
    assert not chunks[-1]  # or the implementation would run elsewhere
    alone()
    for found, wanted in zip(together, outputs(pipeline(CASES[case], num_threads=threads), 6), strict=True):
        assert torch.equal(found, wanted)


def chained(data: Any) -> Any:
    """Two fused operators, and one for a second output."""
    turned = fn.flip(data, horizontal=1)
    return fn.crop_mirror_normalize(turned, mirror=coin()), turned


def test_a_chain_forwards_chunks_and_delivers_several_outputs(chunks: Counter[int]) -> None:
    pipe = pipeline(chained)
    for k in range(6):
        whole, turned = pipe.run()
        wanted = torch.from_numpy(images(k)).flip(2)
        assert torch.equal(turned.stack(), wanted)
        mirrored = [torch.equal(w, t.permute(2, 0, 1).float()) for w, t in zip(whole.stack(), wanted, strict=True)]
        assert 0 < sum(mirrored) < SIZE
    pipe.close()
    assert chunks[3] >= 3 and not chunks[0]


@pytest.mark.parametrize("settings", [{}, {"exec_async": False, "exec_pipelined": False}], ids=str)
def test_an_error_names_the_sample_and_the_pipeline_continues(settings: Any, chunks: Counter[int]) -> None:
    numbers = iter(range(1000))

    def corners() -> Any:
        k = next(numbers)
        return np.array([2.0 if k % 5 == 4 and i == 7 else 0.5 for i in range(SIZE)], np.float32)

    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(data, crop=(50, 50), crop_pos_x=fn.external_source(corners))

    pipe = pipeline(define, **settings)
    for k in range(10):
        if k % 5 == 4:
            with pytest.raises(PipelineError, match=r"'crop_mirror_normalize' failed on sample 7 of batch \d"):
                pipe.run()
        else:
            assert pipe.run()[0].shape() == [(3, 50, 50)] * SIZE
    pipe.close()
    assert chunks[3] >= 3 and 1 <= chunks[0] <= 2


def test_a_bad_sample_is_left_out(chunks: Counter[int]) -> None:
    places = np.full(SIZE, 0.5, np.float32)
    places[3] = -1

    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(data, crop=(50, 50), crop_pos_x=fn.external_source(lambda: places))

    pipe = pipeline(define, bad_samples="skip")
    for _ in range(4):
        assert len(pipe.run()[0]) == SIZE - 1
    pipe.close()


def test_other_shapes_from_batch_to_batch(chunks: Counter[int]) -> None:
    def source(batch: int) -> Any:
        return images(batch, (96, 80 + batch // 4, 3))

    pipe = pipeline(lambda x: fn.crop_mirror_normalize(x), source)
    for k in range(12):
        (found,) = pipe.run()
        assert torch.equal(found.stack(), torch.from_numpy(source(k)).permute(0, 3, 1, 2).float())
    pipe.close()
    assert chunks[3] >= 6 and chunks[0] <= 6  # the batches in flight when the shape changed


def test_other_shapes_in_every_batch(chunks: Counter[int]) -> None:
    pipe = pipeline(lambda x: fn.crop_mirror_normalize(x), lambda k: images(k, (96, 80 + k, 3)))
    for k in range(12):
        assert pipe.run()[0].shape() == [(3, 96, 80 + k)] * SIZE
    pipe.close()
    assert chunks[3] >= 12 and not chunks[0]


def test_samples_that_cannot_be_batched_run_one_by_one_in_their_chunk(chunks: Counter[int]) -> None:
    pipe = pipeline(lambda x: fn.crop_mirror_normalize(x, dtype=types.UINT8))
    for k in range(12):
        assert torch.equal(pipe.run()[0].stack(), torch.from_numpy(images(k)).permute(0, 3, 1, 2))
    pipe.close()
    assert chunks[3] >= 12 and not chunks[1]


def test_a_result_is_not_its_input() -> None:
    same = {"image_type": types.RGB, "output_type": types.RGB}
    for define in (lambda x: fn.flip(x, horizontal=0), lambda x: fn.color_space_conversion(x, **same)):
        for shape in ((8, 8, 3), (96, 80, 3)):
            data = torch.zeros(SIZE, *shape, dtype=torch.uint8)
            define(TensorList.from_dense(data, "HWC")).stack().fill_(1)
            assert not data.any()


def test_windows_of_several_sizes(chunks: Counter[int]) -> None:
    heights = np.arange(40, 40 + SIZE).astype(np.float32)

    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(data, crop_h=fn.external_source(lambda: heights), crop_w=30)

    pipe = pipeline(define)
    for _ in range(4):
        assert pipe.run()[0].shape() == [(3, int(h), 30) for h in heights]
    pipe.close()


def test_statistics_count_samples(chunks: Counter[int], tmp_path: Path) -> None:
    pipe = pipeline(normalized())
    pipe.build()
    pipe.trace()
    for _ in range(5):
        pipe.run()
    pipe.write_trace(tmp_path / "trace.json")
    pipe.close()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    found = {e["args"]["what"] for e in events if e["name"] == "crop_mirror_normalize"}
    assert {f"batch 4, samples {k} to {k + 2}" for k in range(0, SIZE, 3)} == {what for what in found if what.startswith("batch 4,")}


@pytest.mark.parametrize("case", CASES)
def test_small_samples_are_one_chunk(
    case: str, chunks: Counter[int], alone: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchdali.execute.chunks.has_gil", lambda: True)

    def small(batch: int) -> Any:
        return images(batch, (72, 70, 3))

    together = outputs(pipeline(CASES[case], small), 3)
    assert chunks[SIZE] >= 3 and not chunks[0] and not chunks[1] and not chunks[-1]
    alone()
    for found, wanted in zip(together, outputs(pipeline(CASES[case], small), 3), strict=True):
        assert torch.equal(found, wanted)


def test_arguments_of_a_batched_implementation() -> None:
    angles = Column(np.array([1.0, 2.0]))
    a = Arguments(
        {"angle": 0.0, "size": [], "fill": 7}, {"size": [3], "angle": angles}, {"layout": "HWC", "out": None}
    )
    assert (a.size, a.fill, a.layout, a.out) == ([3], 7, "HWC", None)
    assert a.angle is angles

    def turned(*, angle: float, fill: int, keep: bool) -> None: ...

    assert a.of(turned) == {"angle": angles}


def test_batched_implementations_declare_existing_arguments() -> None:
    for name, declared in registry.items():
        known = {*declared.schema.arguments, "out", "empty", "of"}
        known |= {"layout"} if declared.schema.needs_layout else set()
        known |= {"rng"} if declared.schema.random else set()
        for form, body in declared.chunks.items():
            tree = ast.parse(textwrap.dedent(inspect.getsource(body))) if form != "encoded" else ast.Module([], [])
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "a":
                    assert node.attr in known, f"{name}, {form}: {ast.unparse(node)}"


@pytest.mark.parametrize("takes", [("brightness",), ()])
def test_samples_run_one_by_one_if_an_implementation_rejects_per_sample_arguments(
    takes: tuple[str, ...], chunks: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    factors = np.linspace(0.5, 1.5, SIZE, dtype=np.float32)
    monkeypatch.setitem(registry["brightness"].chunk_arguments, "tensor", frozenset(takes))
    pipe = pipeline(lambda data: fn.brightness(data, brightness=fn.external_source(lambda: factors)))
    for _ in range(4):
        pipe.run()
    pipe.close()
    assert bool(chunks[-1]) is not bool(takes)


def test_records_of_a_reader_with_small_inputs_are_not_small(chunks: Counter[int], tmp_path: Path) -> None:
    for k in range(SIZE):
        np.save(tmp_path / f"{k}.npy", images(k, (90 + k, 80, 3))[0])

    @pipeline_def(batch_size=SIZE, num_threads=2, num_processes=1, device_id=None)
    def defined() -> Any:
        data = fn.readers.numpy(file_root=str(tmp_path), file_filter="*.npy")
        start = fn.random.uniform(range=(0, 0.5), shape=[2])
        return fn.slice(data, start, [0.5, 0.5], axes=[0, 1])

    with defined() as pipe:
        for _ in range(4):
            pipe.run()
    assert chunks[1] and chunks[1] + chunks[3] >= 4 and not chunks[SIZE]


def test_per_sample_arguments_that_an_implementation_does_not_accept(chunks: Counter[int], alone: Callable[[], None]) -> None:
    """The samples of a chunk run one by one, also if their results differ in shape."""
    heights = np.arange(40, 40 + SIZE).astype(np.float32)

    def define(data: Any) -> Any:
        part = fn.crop(data, crop_h=fn.external_source(lambda: heights), crop_w=50)
        return fn.crop_mirror_normalize(fn.flip(part, horizontal=1), mean=[1.0, 2.0, 3.0])

    def batches() -> list[list[Any]]:
        with pipeline(define) as pipe:
            return [[torch.as_tensor(sample) for sample in pipe.run()[0]] for _ in range(4)]

    together = batches()
    assert chunks[3] >= 4 and not chunks[0] and chunks[-1]
    alone()
    for one, other in zip(together, batches(), strict=True):
        assert [sample.shape[1] for sample in one] == heights.tolist()
        assert all(map(torch.equal, one, other))


def test_batches_in_chunks_create_no_reference_cycle() -> None:
    """The last reference frees the memory of a batch for the next one, without the garbage collector."""
    pipe = pipeline(lambda x: fn.cast(x, dtype=types.FLOAT), lambda i: images(i, (320, 320, 3)), prefetch_queue_depth=1)
    pipe.run()
    gc.collect()
    gc.disable()
    try:
        places = set()
        for _ in range(12):
            (out,) = pipe.run()
            places.add(out.as_tensor().data_ptr())
            del out
    finally:
        gc.enable()
    assert len(places) <= 6


# --------------------------------------------------------- failing implementations


def sounds(batch: int) -> Any:
    made = np.random.default_rng(batch)
    return [made.random(2000 + 100 * k, np.float32) for k in range(SIZE)]


def jpegs(batch: int) -> Any:
    return [np.frombuffer(encoded(smooth_image(80 + k, 90), "jpeg"), np.uint8) for k in range(SIZE)]


def _broken(*arguments: Any, **named: Any) -> Any:
    raise ZeroDivisionError("a mistake in a body")


# Operator, form of its implementation, call, and inputs.
BODIES: dict[str, tuple[str, str, Define, Any, str]] = {
    "one tensor": ("crop_mirror_normalize", "tensor", lambda x: fn.crop_mirror_normalize(x), images, "HWC"),
    "one tensor, later": ("flip", "tensor", lambda x: fn.flip(fn.crop(x, crop=(60, 60)), horizontal=1), images, "HWC"),
    "any shapes": ("to_decibels", "ragged", lambda x: fn.to_decibels(x), sounds, ""),
    "any shapes, later": ("mel_filter_bank", "ragged", lambda x: fn.mel_filter_bank(fn.spectrogram(x)), sounds, ""),
    "encoded": ("_decode_chain", "encoded",
                lambda x: fn.crop_mirror_normalize(fn.resize(fn.decoders.image(x), size=(64, 64))), jpegs, ""),
    "narrowing": ("resize", "narrowing",
                  lambda x: fn.crop_mirror_normalize(fn.resize(fn.decoders.image(x), size=(64, 64))), jpegs, ""),
}  # fmt: skip
FAST = ("encoded", "narrowing")
BROKEN = [pytest.param(name, marks=needs_native) if name in FAST else name for name in BODIES]


forget_chains = _decode_chain._get_decoder.cache_clear


@pytest.fixture(autouse=True)
def no_chain_is_remembered() -> Iterator[None]:
    forget_chains()
    yield
    forget_chains()


def break_implementation(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_chains()
    if form == "narrowing":
        edit = registry[name].narrowing.edit
        broken = dataclasses.replace(registry[name].narrowing, edit=lambda constants: edit(constants)._replace(narrow=_broken))
        monkeypatch.setattr(registry[name], "narrowing", broken)
        return
    make = (lambda constants: _broken) if form == "encoded" else _broken
    monkeypatch.setitem(registry[name].chunks, form, make)


def samples_of(pipe: Pipeline, batches: int = 3) -> list[torch.Tensor]:
    return [sample.clone() for _ in range(batches) for sample in pipe.run()[0].samples()]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_implementation_is_counted_and_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are bit-identical to single samples; operators of a chain, which round in between, differ by a level at most."""
    operator, form, define, source, layout = BODIES[name]
    with pipeline(define, source, layout) as sound:
        expected = samples_of(sound)
        assert sound.stats().fallbacks == () and "in a slower way" not in sound.explain()
    monkeypatch.setenv("TORCHDALI_BROKEN_BODIES", "")
    break_implementation(operator, form, monkeypatch)
    with pipeline(define, source, layout) as pipe:
        found = samples_of(pipe)
        (fallback,) = pipe.stats().fallbacks
        for text in (str(pipe.stats()), pipe.explain()):  # prefetched batches increase the count meanwhile
            assert f"{fallback.operator} ({fallback.line}): " in text and f"The first error: {fallback.error}" in text
    level = 1 if form == "narrowing" else 0
    torch.testing.assert_close(found, expected, rtol=0, atol=level)
    assert len(found) == 3 * SIZE
    title = "decoders.image + resize + crop_mirror_normalize" if form in FAST else operator
    assert fallback.operator == title and fallback.line.startswith("test_chunks.py:")
    assert fallback.count >= 2 and fallback.error == "ZeroDivisionError: a mistake in a body"


def resized(data: Any) -> Any:
    return fn.resize(fn.decoders.image(data), size=(64, 64))


def in_a_branch(data: Any) -> Any:
    if fn.random.coin_flip():
        image = resized(data)
    else:
        image = fn.flip(resized(data), horizontal=0)
    return image


# Call, and samples per batch: the chain's operator runs them one by one.
SINGLES: dict[str, tuple[Define, int]] = {
    "batches of one": (resized, 1),
    "before another operator": (lambda data: fn.rotate(resized(data), angle=9.0), SIZE),
    "in a branch": (in_a_branch, SIZE),
    "two of them": (lambda data: (resized(data), fn.resize(fn.decoders.image_crop(data), size=(20, 20))), SIZE),
}


@needs_native
@pytest.mark.parametrize("name", SINGLES)
def test_an_operator_that_cannot_narrow_is_counted_for_single_samples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    define, size = SINGLES[name]
    made = {"define": define, "source": lambda batch: jpegs(batch)[:size], "layout": "", "batch_size": size}
    with pipeline(**made, enable_conditionals=True) as sound:
        expected = samples_of(sound)
        assert sound.stats().fallbacks == ()
    monkeypatch.setenv("TORCHDALI_BROKEN_BODIES", "")
    break_implementation("resize", "narrowing", monkeypatch)
    with pipeline(**made, enable_conditionals=True) as pipe:
        torch.testing.assert_close(samples_of(pipe), expected, rtol=0, atol=1)
        noted = pipe.stats().fallbacks
    assert len(noted) == (2 if name in ("in a branch", "two of them") else 1)
    for each in noted:
        assert " + resize" in each.operator and each.line.startswith("test_chunks.py:")
        assert each.count >= 3 and each.error == "ZeroDivisionError: a mistake in a body"


@needs_native
def test_unsupported_arguments_are_not_errors_of_an_implementation() -> None:
    """A window outside of the image is rejected: the implementation pads, or raises the error."""

    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(fn.decoders.image(data), crop=(85, 60), out_of_bounds_policy="pad")

    with pipeline(define, jpegs, "") as pipe:
        samples_of(pipe)
        assert pipe.stats().fallbacks == ()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_implementation_is_an_error_in_the_tests(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operator, form, define, source, layout = BODIES[name]
    break_implementation(operator, form, monkeypatch)
    with (
        pipeline(define, source, layout) as pipe,
        pytest.raises(RuntimeError, match="a batched implementation failed, but the per-sample implementation succeeded for each sample"),
    ):
        samples_of(pipe)


def test_a_broken_implementation_in_an_eager_call(monkeypatch: pytest.MonkeyPatch) -> None:
    data = TensorList.from_samples([torch.from_numpy(each) for each in sounds(0)])
    expected = fn.to_decibels(data).samples()
    break_implementation("to_decibels", "ragged", monkeypatch)
    with pytest.raises(RuntimeError, match="a batched implementation failed"):
        fn.to_decibels(data)
    monkeypatch.setenv("TORCHDALI_BROKEN_BODIES", "")
    assert all(map(torch.equal, fn.to_decibels(data).samples(), expected))


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_a_failing_sample_is_not_an_error_of_an_implementation(policy: str) -> None:
    def source(batch: int) -> Any:
        return [np.zeros(2000 if k != 3 or batch == 0 else 0, np.float32) for k in range(SIZE)]

    def define(data: Any) -> Any:
        return fn.spectrogram(data, center_windows=False, nfft=256, window_length=256)

    with pipeline(define, source, "", bad_samples=policy) as pipe:
        failed = 0
        for _ in range(3):
            try:
                assert len(pipe.run()[0]) in (SIZE, SIZE - 1)
            except PipelineError:
                failed += 1
        assert failed == (2 if policy == "raise" else 0)
        assert pipe.stats().fallbacks == ()


def test_errors_are_reported_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDALI_BROKEN_BODIES", "")
    with pipeline(lambda x: fn.flip(x)) as pipe:
        pipe.build()
        nodes = executor_of(pipe).plan.graph.nodes
    here, there = Profile(), Profile()
    for _ in range(2):
        there.record_fallback(nodes[-1], ValueError("wrong"))
        here.add_times(pickle.loads(pickle.dumps(there.pop_times({node: k for k, node in enumerate(nodes)}))), nodes)
    assert there.fallbacks() == ()
    assert [(each.operator, each.count, each.error) for each in here.fallbacks()] == [("flip", 2, "ValueError: wrong")]
