"""Chains that do several samples in one call: the same results as sample by sample, and the same errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.errors import PipelineError
from torchdali.execute.progress import Progress

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


def normalised(**arguments: Any) -> Define:
    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(data, mirror=coin(), mean=[120, 110, 100.0], std=[60, 50, 55.0], **arguments)

    return define


def drawn_crop(data: Any) -> Any:
    corner = {"crop_pos_x": drawn(0, 1), "crop_pos_y": drawn(0, 1)}
    return fn.crop_mirror_normalize(data, crop=(70, 60), mirror=coin(), std=[2.0], output_layout="HWC", **corner)


CASES: dict[str, Define] = {
    "normalised": normalised(),
    "normalised, one value": lambda x: fn.crop_mirror_normalize(x, mean=[3.0], scale=0.5),
    "normalised, nothing to do": lambda x: fn.crop_mirror_normalize(x),
    "normalised, always mirrored": lambda x: fn.crop_mirror_normalize(x, mirror=1, std=[2.0]),
    "normalised, pixels": normalised(output_layout="HWC"),
    "normalised, centre": normalised(crop=(50, 40)),
    "normalised, drawn": lambda x: drawn_crop(x),
    "normalised, drawn, planes": lambda x: fn.crop_mirror_normalize(
        x, crop=(70, 60), crop_pos_x=drawn(0, 1), mirror=coin()
    ),
}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[int]]:
    """Count the batches by the length of their spans; under 0, those of which single samples were done again."""
    found: Counter[int] = Counter()
    choose, submit = Progress._span, Progress._submit_chain

    def submitted(self: Progress, batch: Any, in_spans: bool = True) -> None:
        found[0] += not in_spans
        submit(self, batch, in_spans)

    def counted(self: Progress, *given: Any) -> int:
        span = choose(self, *given)
        found[span] += 1
        return span

    monkeypatch.setattr(Progress, "_span", counted)
    monkeypatch.setattr(Progress, "_submit_chain", submitted)
    yield found


def outputs(pipe: Pipeline, batches: int) -> list[torch.Tensor]:
    found = [torch.stack([torch.as_tensor(s) for s in pipe.run()[0]]) for _ in range(batches)]
    pipe.close()
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 3])
def test_spans_give_what_single_samples_give(
    case: str, threads: int, spans: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = outputs(pipeline(CASES[case], num_threads=threads), 6)
    assert spans[SIZE // threads] >= 3 and not spans[0]
    monkeypatch.setattr(Progress, "_span", lambda *given: 1)
    for found, wanted in zip(together, outputs(pipeline(CASES[case], num_threads=threads), 6), strict=True):
        assert torch.equal(found, wanted)


def chained(data: Any) -> Any:
    """Two operators that work together, and one for a second output."""
    turned = fn.flip(data, horizontal=1)
    return fn.crop_mirror_normalize(turned, mirror=coin()), turned


def test_a_chain_passes_spans_on_and_delivers_several_outputs(spans: Counter[int]) -> None:
    pipe = pipeline(chained)
    for k in range(6):
        whole, turned = pipe.run()
        wanted = torch.from_numpy(images(k)).flip(2)
        assert torch.equal(turned.stacked(), wanted)
        mirrored = [torch.equal(w, t.permute(2, 0, 1).float()) for w, t in zip(whole.stacked(), wanted, strict=True)]
        assert 0 < sum(mirrored) < SIZE
    pipe.close()
    assert spans[6] >= 3 and not spans[0]


@pytest.mark.parametrize("settings", [{}, {"exec_async": False, "exec_pipelined": False}], ids=str)
def test_an_error_names_the_sample_and_the_pipeline_goes_on(settings: Any, spans: Counter[int]) -> None:
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
    assert spans[6] >= 3 and 1 <= spans[0] <= 2


def test_a_bad_sample_is_left_out(spans: Counter[int]) -> None:
    places = np.full(SIZE, 0.5, np.float32)
    places[3] = -1

    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(data, crop=(50, 50), crop_pos_x=fn.external_source(lambda: places))

    pipe = pipeline(define, bad_samples="skip")
    for _ in range(4):
        assert len(pipe.run()[0]) == SIZE - 1
    pipe.close()


def test_other_shapes_from_batch_to_batch(spans: Counter[int]) -> None:
    def source(batch: int) -> Any:
        return images(batch, (96, 80 + batch // 4, 3))

    pipe = pipeline(lambda x: fn.crop_mirror_normalize(x), source)
    for k in range(12):
        (found,) = pipe.run()
        assert torch.equal(found.stacked(), torch.from_numpy(source(k)).permute(0, 3, 1, 2).float())
    pipe.close()
    assert spans[6] >= 6 and 2 <= spans[0] <= 3


def test_what_cannot_be_done_together_is_not_tried_again(spans: Counter[int]) -> None:
    pipe = pipeline(lambda x: fn.crop_mirror_normalize(x, dtype=types.UINT8))
    for k in range(8):
        assert torch.equal(pipe.run()[0].stacked(), torch.from_numpy(images(k)).permute(0, 3, 1, 2))
    pipe.close()
    assert spans[6] == spans[0] <= 3 and spans[1] >= 4


def test_windows_of_several_sizes(spans: Counter[int]) -> None:
    heights = np.arange(40, 40 + SIZE).astype(np.float32)

    def define(data: Any) -> Any:
        return fn.crop_mirror_normalize(data, crop_h=fn.external_source(lambda: heights), crop_w=30)

    pipe = pipeline(define)
    for _ in range(4):
        assert pipe.run()[0].shape() == [(3, int(h), 30) for h in heights]
    pipe.close()


def test_figures_count_samples(spans: Counter[int]) -> None:
    pipe = pipeline(normalised())
    for _ in range(20):
        pipe.run()
    assert "crop_mirror_normalize" in str(pipe.stats())
    timed = pipe._executor._means.profile._samples  # type: ignore[union-attr]
    counts = {node.operator.name: count for node, count in timed.items()}
    assert counts["crop_mirror_normalize"] % SIZE == 0
    pipe.close()


@pytest.mark.parametrize("case", CASES)
def test_small_samples_are_done_by_a_step(case: str) -> None:
    def small(batch: int) -> Any:
        return images(batch, (73, 71, 3))

    pipe = pipeline(CASES[case], small)
    ((found,), size) = pipe.run(), SIZE
    assert len(found) == size
    names = [n.operator.name for s in pipe._executor.plan.stages for n in s.steps]  # type: ignore[union-attr]
    pipe.close()
    assert "crop_mirror_normalize" in names
