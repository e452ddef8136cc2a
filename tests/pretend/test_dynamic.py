"""The dynamic mode on a mock accelerator: results are complete when they are read, on any stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.inside import storage_of
from tests.pretend import Accelerator, accelerator, inner
from tests.pretend.pictures import write_images
from torchdali import dynamic
from torchdali.experimental.dynamic.pytorch import nodes

IMAGES = [np.full((4, 5, 3), 9 * i, np.uint8) for i in range(3)]
SHOWN = np.arange(0, 27, 9)


@pytest.fixture
def gpu() -> Iterator[Accelerator]:
    with accelerator(devices=2, lag=9) as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("pictures"), 12)


def races(gpu: Accelerator) -> str:
    return "\n".join(gpu.report.races)


def _first(batch: Any) -> list[int]:
    return [int(np.asarray(each)[0, 0, 0]) for each in batch.tensors]


READERS: dict[str, Callable[[Any], list[int]]] = {
    "Batch.cpu": lambda batch: _first(batch.cpu()),
    "Batch.to_device": lambda batch: _first(batch.to_device("cpu")),
    "Batch.torch": lambda batch: [int(t[0, 0, 0]) for t in batch.cpu().torch()],
    "Tensor.cpu": lambda batch: [int(np.asarray(each.cpu())[0, 0, 0]) for each in batch.tensors],
    "Tensor.to_device": lambda batch: [each.to_device("cpu").torch().tolist()[0][0][0] for each in batch.tensors],
    "Tensor.torch": lambda batch: [int(each.cpu().torch().numpy()[0, 0, 0]) for each in batch.tensors],
}


@pytest.mark.parametrize("read", READERS)
def test_copies_to_the_cpu_are_done_when_they_are_returned(gpu: Accelerator, read: str) -> None:
    there = dynamic.flip(dynamic.as_batch(IMAGES, layout="HWC").gpu(), horizontal=1)
    assert READERS[read](there) == SHOWN.tolist()
    assert not races(gpu)


@pytest.mark.parametrize("mode", ["eager", "deferred", "sync_full"])
def test_arguments_on_the_accelerator_are_ready_when_read(gpu: Accelerator, mode: str) -> None:
    images = dynamic.as_batch(IMAGES, layout="HWC")
    shift = dynamic.as_batch([np.float32(0.1 * i) for i in range(3)])
    with getattr(dynamic.EvalMode, mode):
        expected = _first(dynamic.brightness(images, brightness_shift=shift))
        found = _first(dynamic.brightness(images, brightness_shift=shift.gpu()))
        size = dynamic.as_tensor(np.array([8.0, 6.0], np.float32)).gpu()
        assert dynamic.resize(images, size=size).tensors[0].shape == (8, 6, 3)
    assert found == expected and len(set(found)) == 3, found
    assert not races(gpu)


@pytest.mark.parametrize("device", ["gpu:0", "gpu:1"])
@pytest.mark.parametrize("capture", [False, True])
def test_loops_on_a_user_stream(gpu: Accelerator, folder: Path, capture: bool, device: str) -> None:
    """Also without a decoder on the accelerator: the operands determine the operators' device."""
    reader = dynamic.readers.File(file_root=str(folder))
    found = []
    with torch.cuda.stream(torch.cuda.Stream(int(device[-1]))):
        there = dynamic.flip(dynamic.as_batch(IMAGES, layout="HWC").to_device(device), horizontal=1)
        for _, labels in reader.next_epoch(batch_size=3, capture=capture):
            shift = dynamic.cast(labels, dtype=dynamic.float32)
            moved = dynamic.flip(dynamic.brightness(there, brightness_shift=shift), vertical=1)
            assert str(moved.device) == device
            found += [(int((inner(s) + 0)[0, 0, 0]), int(label)) for s, label in zip((moved + 0).torch(), labels.torch(), strict=True)]
            del moved, shift
        del there
    assert [a for a, _ in found] == [min(SHOWN[i % 3] + 255 * label, 255) for i, (_, label) in enumerate(found)]
    assert len(found) == 12
    assert not races(gpu)


def test_operators_on_two_accelerators_with_shared_inputs(gpu: Accelerator) -> None:
    with dynamic.EvalMode.deferred:
        images = dynamic.flip(dynamic.as_batch(IMAGES * 40, layout="HWC"), vertical=1)
        both = [dynamic.flip(dynamic.as_batch(IMAGES * 40, layout="HWC").to_device(f"gpu:{i}")) for i in range(2)]
        for i, each in enumerate(both):
            assert {s.device for s in storage_of(each).samples()} == {torch.device("cuda", i)}
        assert _first(images)[:3] == SHOWN.tolist()
    del both, each
    assert not races(gpu)


def test_tensors_for_another_stream(gpu: Accelerator) -> None:
    side = torch.cuda.Stream()

    class Source:
        """Yields dictionaries of tensors on the accelerator."""

        def reset(self, state: Any = None) -> None: ...

        def next(self) -> dict[str, Any]:
            return {"data": torch.ones(3, device="cuda")}

        __next__ = next

    loader = nodes.ToTorch(Source(), output_stream=side)  # type: ignore[arg-type]
    for _ in range(2):
        (data,) = loader.next()
        with torch.cuda.stream(side):
            data.sum()
        del data
    assert not races(gpu)
