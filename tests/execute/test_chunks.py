"""Chains on chunks of samples: the same results as sample by sample, and the same errors."""

from __future__ import annotations

import ast
import gc
import inspect
import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.calls.chunk_function import ChunkFunction
from torchdali.declaration.batching import GivenPerSample
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Arguments, Column
from torchdali.errors import PipelineError
from torchdali.execute.chunks import ChunkRun
from torchdali.execute.compiled_chain import BoundChain
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
    "normalized, one value": lambda x: fn.crop_mirror_normalize(x, mean=[3.0], scale=0.5),
    "normalized, nothing to do": lambda x: fn.crop_mirror_normalize(x),
    "normalized, always mirrored": lambda x: fn.crop_mirror_normalize(x, mirror=1, std=[2.0]),
    "normalized, pixels": normalized(output_layout="HWC"),
    "normalized, centre": normalized(crop=(50, 40)),
    "normalized, drawn": lambda x: drawn_crop(x),
    "normalized, drawn, planes": lambda x: fn.crop_mirror_normalize(
        x, crop=(70, 60), crop_pos_x=drawn(0, 1), mirror=coin()
    ),
    "crop": lambda x: fn.crop(x, crop=(50, 40)),
    "crop, drawn": lambda x: fn.crop(x, crop=(50, 40), crop_pos_x=drawn(0, 1), crop_pos_y=drawn(0, 1)),
    "slice": lambda x: fn.slice(x, start=[3, 9], shape=[40, 50]),
    "slice, drawn": lambda x: fn.slice(x, rel_start=fn.random.uniform(range=(0, 0.5), shape=[2]), rel_shape=[0.4, 0.5]),
    "slice, anchors": lambda x: fn.slice(x, fn.random.uniform(range=(0, 0.5), shape=[2]), [0.5, 0.4], axis_names="HW"),
    "slice, pixels": lambda x: fn.slice(
        x,
        fn.random.uniform(range=(0, 9), shape=[2]),
        [9, 60.0],
        axes=[1, 0],
        normalized_anchor=False,
        normalized_shape=False,
    ),
    "flip": lambda x: fn.flip(x),
    "flip, vertical": lambda x: fn.flip(x, vertical=1, horizontal=0),
    "flip, drawn": lambda x: fn.flip(x, horizontal=coin(), vertical=coin()),
    "flip, neither": lambda x: fn.flip(x, horizontal=0),
    "erase": lambda x: fn.erase(x, anchor=[3, 4, 50, 60], shape=[20, 5, 100, 9], fill_value=[1, 2, 3]),
    "erase, to zero": lambda x: fn.erase(x, anchor=[3.0, 4.0], shape=[20.0, 5.0]),
    "erase, from zero": lambda x: fn.erase(x, shape=[20, 5], fill_value=[7]),
    "erase, nothing": lambda x: fn.erase(x),
    "erase, drawn": lambda x: fn.erase(
        x,
        anchor=fn.random.uniform(range=(0, 0.6), shape=[2]),
        shape=[0.3, 0.3],
        axis_names="HW",
        normalized=True,
        fill_value=drawn(0, 300),
    ),
    "brightness": lambda x: fn.brightness(x, brightness=drawn(0.5, 1.5)),
    "brightness, to floats": lambda x: fn.brightness(x, brightness=drawn(0.5, 1.5), dtype=types.FLOAT),
    "brightness, shift drawn": lambda x: fn.brightness(x, brightness=0.9, brightness_shift=drawn(-0.5, 0.5)),
    "contrast": lambda x: fn.contrast(x, contrast=drawn(-0.5, 1.5)),
    "contrast, one": lambda x: fn.contrast(x, contrast=1.2, contrast_center=drawn(0, 255)),
    "brightness_contrast": lambda x: fn.brightness_contrast(x, brightness=drawn(0.5, 2), contrast=drawn(0.5, 1.5)),
    "brightness_contrast, one": lambda x: fn.brightness_contrast(x, brightness=1.3, contrast=0.7),
    "gray": lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY),
    "BGR": lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.BGR),
    "YCbCr": lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.YCbCr),
    "RGB": lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.RGB),
    "normalize, given": lambda x: fn.normalize(x, mean=100.0, stddev=50.0),
    "normalize, drawn": lambda x: fn.normalize(
        x, mean=drawn(50, 99), stddev=drawn(20, 50), dtype=types.UINT8, shift=9.0
    ),
    "resize, nearest": lambda x: fn.resize(x, size=[40, 44], interp_type=types.INTERP_NN),
    "resize, nearest, mirrored": lambda x: fn.resize(x, resize_x=-100, interp_type=types.INTERP_NN),
    "lookup_table": lambda x: fn.lookup_table(x, keys=[3, 5], values=[1.5, 2.5], default_value=7.0),
    "copy": lambda x: fn.copy(x),
    "cast": lambda x: fn.cast(x, dtype=types.FLOAT),
    "zeros_like": lambda x: fn.zeros_like(x, dtype=types.INT16),
    "ones_like": lambda x: fn.ones_like(x),
    "transpose": lambda x: fn.transpose(x, perm=[2, 0, 1]),
    "cat": lambda x: fn.cat(x, x, axis=1),
    "subscript": lambda x: x[3:70, :, 0],
    "arithmetic": lambda x: x * 0.5 + 3,
    "several": lambda x: fn.crop_mirror_normalize(
        fn.flip(
            fn.brightness(fn.crop(x, crop=(70, 60), crop_pos_x=drawn(0, 1)), brightness=drawn(0.5, 1.5)), vertical=1
        ),
        mirror=coin(),
        mean=[1.0, 2.0, 3.0],
    ),
}


TYPES = (np.float32, np.int16, np.uint16)
GENERAL = dict.fromkeys(("crop", "slice", "flip", "erase", "copy", "cast", "transpose"), TYPES) | dict.fromkeys(
    ("brightness", "contrast"), TYPES[:2]
)


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[int]]:
    """Count the batches by the size of their chunks.

    Under 0 are the chunks that failed, and were done one by one; under -1 the operators that did samples so.
    """
    counts: Counter[int] = Counter()
    choose, one_by_one, without_body = BoundChain.chunk, ChunkRun._one_by_one, ChunkFunction._one_by_one

    def counted(self: BoundChain, *arguments: Any) -> tuple[str, int]:
        form, size = choose(self, *arguments)
        counts[size] += 1
        return form, size

    def failed(self: ChunkRun, samples: Any) -> None:
        counts[0] += 1
        one_by_one(self, samples)

    def bodiless(self: ChunkFunction, *arguments: Any) -> Any:
        counts[-1] += 1
        return without_body(self, *arguments)

    monkeypatch.setattr(BoundChain, "chunk", counted)
    monkeypatch.setattr(ChunkRun, "_one_by_one", failed)
    monkeypatch.setattr(ChunkFunction, "_one_by_one", bodiless)
    yield counts


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after which all chains take single samples."""
    return lambda: monkeypatch.setattr(BoundChain, "chunk", lambda *arguments: ("single", 1))


def outputs(pipe: Pipeline, batches: int) -> list[torch.Tensor]:
    found = [torch.stack([torch.as_tensor(s) for s in pipe.run()[0]]) for _ in range(batches)]
    pipe.close()
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 3])
def test_chunks_give_what_single_samples_give(
    case: str, threads: int, chunks: Counter[int], alone: Callable[[], None]
) -> None:
    if case.startswith("resize"):
        pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
    together = outputs(pipeline(CASES[case], num_threads=threads), 6)
    assert chunks[SIZE // (2 * threads if threads > 1 else 1)] >= 3 and not chunks[0]
    assert not chunks[-1]  # or the body would not be seen here
    alone()
    for found, wanted in zip(together, outputs(pipeline(CASES[case], num_threads=threads), 6), strict=True):
        assert torch.equal(found, wanted)


@pytest.mark.parametrize(("case", "dtype"), [(c, t) for c in CASES for t in GENERAL.get(c.partition(",")[0], ())])
def test_chunks_of_other_types(case: str, dtype: Any, chunks: Counter[int], alone: Callable[[], None]) -> None:
    def source(batch: int) -> Any:
        return images(batch, dtype=dtype)

    together = outputs(pipeline(CASES[case], source), 5)
    assert chunks[3] >= 2 and not chunks[0]
    alone()
    for found, wanted in zip(together, outputs(pipeline(CASES[case], source), 5), strict=True):
        assert torch.equal(found, wanted)


def chained(data: Any) -> Any:
    """Two operators that work together, and one for a second output."""
    turned = fn.flip(data, horizontal=1)
    return fn.crop_mirror_normalize(turned, mirror=coin()), turned


def test_a_chain_passes_chunks_on_and_delivers_several_outputs(chunks: Counter[int]) -> None:
    pipe = pipeline(chained)
    for k in range(6):
        whole, turned = pipe.run()
        wanted = torch.from_numpy(images(k)).flip(2)
        assert torch.equal(turned.stacked(), wanted)
        mirrored = [torch.equal(w, t.permute(2, 0, 1).float()) for w, t in zip(whole.stacked(), wanted, strict=True)]
        assert 0 < sum(mirrored) < SIZE
    pipe.close()
    assert chunks[3] >= 3 and not chunks[0]


@pytest.mark.parametrize("settings", [{}, {"exec_async": False, "exec_pipelined": False}], ids=str)
def test_an_error_names_the_sample_and_the_pipeline_goes_on(settings: Any, chunks: Counter[int]) -> None:
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
        assert torch.equal(found.stacked(), torch.from_numpy(source(k)).permute(0, 3, 1, 2).float())
    pipe.close()
    assert chunks[3] >= 6 and chunks[0] <= 6  # the batches that were in flight when the shape changed


def test_other_shapes_in_every_batch(chunks: Counter[int]) -> None:
    pipe = pipeline(lambda x: fn.crop_mirror_normalize(x), lambda k: images(k, (96, 80 + k, 3)))
    for k in range(12):
        assert pipe.run()[0].shape() == [(3, 96, 80 + k)] * SIZE
    pipe.close()
    assert chunks[3] >= 12 and not chunks[0]


def test_what_cannot_be_done_together_is_done_one_by_one_in_its_chunk(chunks: Counter[int]) -> None:
    pipe = pipeline(lambda x: fn.crop_mirror_normalize(x, dtype=types.UINT8))
    for k in range(12):
        assert torch.equal(pipe.run()[0].stacked(), torch.from_numpy(images(k)).permute(0, 3, 1, 2))
    pipe.close()
    assert chunks[3] >= 12 and not chunks[1]


def test_a_result_is_not_its_input() -> None:
    same = {"image_type": types.RGB, "output_type": types.RGB}
    for define in (lambda x: fn.flip(x, horizontal=0), lambda x: fn.color_space_conversion(x, **same)):
        for shape in ((8, 8, 3), (96, 80, 3)):
            data = torch.zeros(SIZE, *shape, dtype=torch.uint8)
            define(TensorList.from_dense(data, "HWC")).stacked().fill_(1)
            assert not data.any()


def test_windows_of_several_sizes(chunks: Counter[int]) -> None:
    heights = np.arange(40, 40 + SIZE).astype(np.float32)

    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(data, crop_h=fn.external_source(lambda: heights), crop_w=30)

    pipe = pipeline(define)
    for _ in range(4):
        assert pipe.run()[0].shape() == [(3, int(h), 30) for h in heights]
    pipe.close()


def test_figures_count_samples(chunks: Counter[int], tmp_path: Path) -> None:
    pipe = pipeline(normalized())
    pipe.build()
    pipe.trace()
    for _ in range(5):
        pipe.run()
    pipe.write_trace(tmp_path / "trace.json")
    timed = pipe._executor._runtime.profile._samples  # type: ignore[union-attr]
    counts = {node.operator.name: count for node, count in timed.items()}
    pipe.close()
    assert counts["crop_mirror_normalize"] % SIZE == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    found = {e["args"]["what"] for e in events if e["name"] == "crop_mirror_normalize"}
    assert {"batch 4, samples 0 to 2", "batch 4, samples 9 to 11"} <= found


@pytest.mark.parametrize("case", CASES)
def test_small_samples_are_one_chunk(
    case: str, chunks: Counter[int], alone: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchdali.execute.chunks.has_gil", lambda: True)
    if case.startswith("resize"):
        pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")

    def small(batch: int) -> Any:
        return images(batch, (72, 70, 3))

    together = outputs(pipeline(CASES[case], small), 3)
    assert chunks[SIZE] >= 3 and not chunks[0] and not chunks[1] and not chunks[-1]
    alone()
    for found, wanted in zip(together, outputs(pipeline(CASES[case], small), 3), strict=True):
        assert torch.equal(found, wanted)


def test_arguments_of_a_body_for_several_samples() -> None:
    angles = Column(np.array([1.0, 2.0]))
    a = Arguments(
        {"angle": 0.0, "size": [], "fill": 7}, {"size": [3]}, {"angle": angles}, {"layout": "HWC", "out": None}
    )
    assert (a.size, a.fill, a.layout, a.out) == ([3], 7, "HWC", None)
    assert a["angle"] is angles and a["fill"] == 7
    with pytest.raises(GivenPerSample):
        print(a.angle)

    def turned(*, angle: float, fill: int, keep: bool) -> None: ...

    assert a.of(turned, columns=True) == {"angle": angles}
    with pytest.raises(GivenPerSample):
        a.of(turned)


def test_bodies_for_several_samples_ask_for_arguments_that_there_are() -> None:
    for name, declared in registry.items():
        known = {*declared.schema.arguments, "out", "empty", "of"}
        known |= {"layout"} if declared.schema.wants_layout else set()
        known |= {"rng"} if declared.schema.random else set()
        for form, body in declared.chunks.items():
            tree = ast.parse(textwrap.dedent(inspect.getsource(body))) if form != "encoded" else ast.Module([], [])
            for node in ast.walk(tree):
                if not isinstance(node, (ast.Attribute, ast.Subscript)) or getattr(node.value, "id", "") != "a":
                    continue
                asked = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
                assert asked in known or asked is None, f"{name}, {form}: {ast.unparse(node)}"


def test_a_body_that_leaves_out_an_argument_per_sample_counts_for_nothing() -> None:
    def ask() -> Arguments:
        return Arguments({"size": 1}, {}, {"angle": Column([1.0, 2.0])}, {})

    assert ask().run(lambda x, a: (x, a.size), [3]) is NotImplemented
    assert ask().run(lambda x, a: a.angle, [3]) is NotImplemented
    assert ask().run(lambda x, a: 1 / 0, [3]) is NotImplemented
    assert ask().run(lambda x, a: a["angle"].values, [3]) == [1.0, 2.0]
    with pytest.raises(ZeroDivisionError):
        ask().run(lambda x, a: a["angle"].values[0] / 0, [3])


def test_what_a_reader_reads_beside_small_inputs_is_not_small(chunks: Counter[int], tmp_path: Path) -> None:
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
    assert chunks[1] >= 4 and not chunks[SIZE]


def test_arguments_per_sample_that_a_body_does_not_take(chunks: Counter[int], alone: Callable[[], None]) -> None:
    """The samples of a chunk are done one by one, also where their results differ in shape."""
    heights = np.arange(40, 40 + SIZE).astype(np.float32)

    def define(data: Any) -> Any:
        resized = fn.resize(data, resize_y=fn.external_source(lambda: heights), interp_type=types.INTERP_NN)
        return fn.crop_mirror_normalize(fn.flip(resized, horizontal=1), mean=[1.0, 2.0, 3.0])

    def batches() -> list[list[Any]]:
        with pipeline(define) as pipe:
            return [[torch.as_tensor(sample) for sample in pipe.run()[0]] for _ in range(4)]

    together = batches()
    assert chunks[3] >= 4 and not chunks[0] and chunks[-1]
    alone()
    for one, other in zip(together, batches(), strict=True):
        assert [sample.shape[1] for sample in one] == heights.tolist()
        assert all(map(torch.equal, one, other))


def test_batches_done_in_chunks_leave_no_reference_cycle() -> None:
    """The memory of a batch is free for the next one with its last reference, without the garbage collector."""
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
