"""Users write to outputs of a pipeline: each has its own memory, as in DALI, unless two outputs are the same node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.tensors import TensorList
from torchdali.tensors._sharing import separate

RAGGED = [np.arange(h * w * 3, dtype=np.uint8).reshape(h, w, 3) for h, w in ((4, 5), (6, 5), (4, 7))]
IMAGES = {"ragged": RAGGED, "dense": [RAGGED[0], RAGGED[0] + 1, RAGGED[0] + 2]}
FALSE = [np.int32(0)] * 3


CALLS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "flip": lambda x: (x, fn.flip(x, horizontal=fn.external_source([FALSE], cycle=True))),
    "decoder": lambda x: (y := fn.brightness(x, brightness=1.5), fn.flip(y, horizontal=fn.external_source([FALSE], cycle=True))),
    "crop": lambda x: (x, fn.crop(x, crop_pos_x=0.5)),
    "slice": lambda x: (x[1:], x[:3], x),
    "reshape": lambda x: (fn.reshape(x, layout="XYZ"), x, fn.reinterpret(x, dtype=types.INT8)),
    "squeeze": lambda x: (x, fn.squeeze(fn.expand_dims(x, axes=0), axes=0)),
    "transpose": lambda x: (x, fn.transpose(x, perm=[0, 1, 2])),
    "cast": lambda x: (fn.cast(x, dtype=types.UINT8), x),
    "pad": lambda x: (x, fn.pad(x, axes=[0], shape=[1])),
    "cat": lambda x: (x, fn.cat(x, axis=0), +x),
    "resize": lambda x: (x, fn.resize(x, size=[0.0, 0.0])),
    "element_extract": lambda x: fn.element_extract(fn.reshape(x, layout="FHW"), element_map=[0, 0]),
}


def outputs(call: Callable[[Any], tuple[Any, ...]], samples: list[np.ndarray]) -> list[TensorList]:
    pipe = Pipeline(3, 2, None, seed=5)
    with pipe:
        pipe.set_outputs(*call(fn.external_source([samples], layout="HWC", cycle=True)))
    with pipe:
        pipe.run()  # the second batch uses the shapes of the first
        return list(pipe.run())


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("name", CALLS)
def test_writing_to_an_output_changes_no_other(name: str, images: str) -> None:
    found, untouched = (outputs(CALLS[name], IMAGES[images]) for _ in range(2))
    for i, batch in enumerate(found):
        for sample in batch.samples():
            sample.fill_(100 + i)
        for other, same in zip(found[i + 1 :], untouched[i + 1 :], strict=True):
            assert all(map(torch.equal, other.samples(), same.samples()))
            assert other.layout() == same.layout()


@pytest.mark.parametrize("options", [{}, {"debug": True}, pytest.param({"num_processes": 2}, marks=pytest.mark.slow)], ids=str)
def test_branches_in_every_mode(options: dict[str, Any]) -> None:
    @pipeline_def(batch_size=3, num_threads=2, device_id=None, enable_conditionals=True, **options)
    def define() -> Any:
        x = fn.external_source(lambda: RAGGED, layout="HWC")
        if fn.external_source(lambda: [np.bool_(i) for i in (0, 1, 0)]):
            y = fn.flip(x, horizontal=0)
        else:
            y = x
        return x, y

    with define() as pipe:
        first, second = pipe.run()
        for sample in first.samples():
            sample.zero_()
        assert all(map(np.array_equal, map(np.asarray, second.samples()), RAGGED))


def test_one_edge_is_one_batch() -> None:
    first, second, third = outputs(lambda x: (x, fn.flip(x), x), RAGGED)
    assert first is third and first is not second


def are_unchanged(separated: list[TensorList], batches: list[TensorList]) -> list[bool]:
    return [each is batch for each, batch in zip(separated, batches, strict=True)]


def test_only_outputs_that_share_memory_are_copied() -> None:
    memory = torch.arange(24)
    batches = [TensorList.from_dense(memory[low:high].view(2, -1)) for low, high in ((0, 8), (8, 16), (14, 18), (18, 24))]
    assert are_unchanged(separate(batches), batches) == [True, True, False, True]
    assert are_unchanged(separate(batches[:2], batches[2:]), batches[:2]) == [True, False]


def test_memory_that_a_third_batch_connects() -> None:
    memory = torch.arange(24)
    first, second, third = (TensorList.from_samples([memory[low:high]]) for low, high in ((0, 9), (10, 12), (3, 20)))
    separated = separate([first, third, second])
    assert are_unchanged(separated, [first, third, second]) == [True, False, False]
    assert [each.samples()[0].tolist() for each in separated] == [[*range(9)], [*range(3, 20)], [10, 11]]
