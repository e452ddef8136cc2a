"""Constants, copies, permutations and properties: memory is nobody else's, sources are followed, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import fn, pipeline_def, types
from torchdali.tensors import TensorList


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=1)
def piped(define: Any) -> Any:
    return define()


def run(define: Any, **settings: Any) -> tuple[TensorList, ...]:
    pipe = piped(define, **settings)
    try:
        return pipe.run()
    finally:
        pipe.close()


def text(batch: TensorList) -> list[str]:
    return [bytes(sample.tolist()).decode() for sample in batch.samples()]


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("count", [1, 4, 200_000])
def test_a_changed_constant_does_not_come_back(count: int) -> None:
    pipe = piped(lambda: fn.constant(fdata=[1.0] * count))
    (first,) = pipe.run()
    first.stacked().fill_(7.0) if count < 5 else first.samples()[0].fill_(7.0)
    for _ in range(3):
        (later,) = pipe.run()
        assert later.samples()[0].eq(1.0).all()
    pipe.close()


def test_a_copy_is_one() -> None:
    given = torch.arange(3)
    made = fn.copy(given)
    made.zero_()
    assert given.tolist() == [0, 1, 2]


def test_permuted_samples_share_no_memory() -> None:
    given = TensorList.from_samples([torch.zeros(2), torch.ones(3)])
    dense = TensorList.from_dense(torch.arange(4.0).reshape(2, 2))
    for batch in (given, dense):
        moved = fn.permute_batch(batch, indices=[1, 1])
        moved.samples()[0].fill_(5.0)
        assert not moved.samples()[1].eq(5.0).any() and not batch.samples()[1].eq(5.0).any()


# ---------------------------------------------------------------- conversion


def test_cast_is_differentiable() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    fn.cast(x, dtype=torch.float32).sum().backward()
    assert x.grad is not None and x.grad.eq(1).all()


@pytest.mark.parametrize("dtype", [types.UINT8, torch.uint8, np.uint8, np.dtype("uint8")])
def test_cast_takes_any_name_of_a_type(dtype: Any) -> None:
    assert fn.cast(torch.tensor([1.5, 300.0]), dtype=dtype).tolist() == [2, 255]


# ---------------------------------------------------------------- properties


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a/1.jpg", "a/2.jpg", "b/3.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_the_source_of_samples_is_followed(folder: Path) -> None:
    def define() -> Any:
        data, label = fn.readers.file(file_root=str(folder))
        copied = fn.cast(fn.copy(data), dtype=types.FLOAT)
        moved = fn.permute_batch(copied, indices=[2, 0, 0])
        unknown = fn.constant(idata=[1])
        return [node.source_info() for node in (data, copied, moved, data.shape(), label, unknown)]

    data, copied, moved, shape, label, unknown = map(text, run(lambda: tuple(define())))
    assert data == copied == shape == ["a/1.jpg", "a/2.jpg", "b/3.jpg"]
    assert moved == ["b/3.jpg", "a/1.jpg", "a/1.jpg"]
    assert label == unknown == ["", "", ""]


def test_the_source_of_samples_comes_with_the_outputs(folder: Path) -> None:
    data, label = run(lambda: tuple(fn.readers.file(file_root=str(folder))))
    assert [data[i].source_info() for i in range(3)] == ["a/1.jpg", "a/2.jpg", "b/3.jpg"]
    assert label[0].source_info() == ""


def test_each_reader_names_its_own_files(folder: Path) -> None:
    def define() -> Any:
        one, _ = fn.readers.file(files=["a/1.jpg"], file_root=str(folder))
        other, _ = fn.readers.file(files=["b/3.jpg"], file_root=str(folder))
        return one.source_info(), fn.copy(other).source_info()

    one, other = map(text, run(define))
    assert one == ["a/1.jpg"] * 3 and other == ["b/3.jpg"] * 3


def test_shapes_of_samples() -> None:
    shapes = [(2, 3), (5, 1), (0, 4)]

    def define() -> Any:
        data = fn.external_source(lambda: [np.zeros(shape, np.uint8) for shape in shapes])
        return data.shape(), data.shape(dtype=types.FLOAT)

    whole, real = run(define)
    assert whole.tolist() == [list(shape) for shape in shapes] and whole.dtype == types.INT64
    assert real.dtype == types.FLOAT


# ---------------------------------------------------------------- devices


def test_to_a_device_and_back(folder: Path) -> None:
    def define() -> Any:
        data, label = fn.readers.file(file_root=str(folder))
        there = label.gpu()
        assert there.device == "gpu" and there.gpu() is there and there.cpu().device == "cpu"
        return (
            fn.cast(there, dtype=types.FLOAT).cpu(),
            there.shape(),
            there.source_info(),
            data.gpu(),
        )

    back, shape, _, data = run(define, device_id="cpu")
    assert back.tolist() == [[0.0], [0.0], [1.0]] and shape.tolist() == [[1]] * 3
    assert [bytes(sample.tolist()).decode() for sample in data.samples()] == [
        "a/1.jpg",
        "a/2.jpg",
        "b/3.jpg",
    ]


def test_a_device_is_needed_for_gpu() -> None:
    with pytest.raises(RuntimeError, match="requires a CUDA-capable GPU"):
        run(lambda: fn.constant(idata=[1]).gpu())


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fn.constant.body(idata=[1], fdata=[1.0], size=1), "either fdata or idata"),
        (lambda: fn.constant.body(idata=[1, 2], shape=[3], size=1), "2 values do not fit"),
        (lambda: fn.ones.body(shape=[2], layout="HW", size=1), "2 dimensions, but the shape"),
        (lambda: fn.zeros.body(shape=[-2], size=1), "negative extent"),
        (lambda: fn.full(torch.zeros(3), shape=[2]), "must match"),
        (lambda: fn.permute_batch(torch.zeros(3), indices=[1]), "not a sample of a batch of 1"),
        (lambda: fn.permute_batch(torch.zeros(3), indices=[0, 0]), "2 indices for a batch of 1"),
        (lambda: fn.get_property(torch.zeros(3), key="color"), "unknown property 'color'"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()
