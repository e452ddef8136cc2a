"""Constants, copies, conversions, permutations and properties against the real DALI: no shared memory, source names are passed on, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.check import Array, PerSample, check
from tests.helpers.libraries import agree
from tests.kernels.test_convert import FLOATS, INTERESTING, TYPES, WHOLE, from_list
from torchdali import fn, pipeline_def, types
from torchdali.kernels.convert import integer_limits
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


@pytest.mark.parametrize("count", [1, 4, pytest.param(200_000, marks=pytest.mark.slow)])
def test_changing_an_output_does_not_change_the_constant(count: int) -> None:
    pipe = piped(lambda: fn.constant(fdata=[1.0] * count))
    (first,) = pipe.run()
    first.stack().fill_(7.0) if count < 5 else first.samples()[0].fill_(7.0)
    for _ in range(3):
        (later,) = pipe.run()
        assert later.samples()[0].eq(1.0).all()
    pipe.close()


def test_copy_shares_no_memory() -> None:
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
def test_cast_accepts_any_name_of_a_dtype(dtype: Any) -> None:
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


def test_outputs_have_the_source_of_their_samples(folder: Path) -> None:
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
        (lambda: fn.constant.implementation(idata=[1], fdata=[1.0], size=1), "either fdata or idata"),
        (lambda: fn.constant.implementation(idata=[1, 2], shape=[3], size=1), "got 2 values"),
        (lambda: fn.ones.implementation(shape=[2], layout="HW", size=1), "2 dimensions, but the shape"),
        (lambda: fn.zeros.implementation(shape=[-2], size=1), "must not be negative"),
        (lambda: fn.full(torch.zeros(3), shape=[2]), "must match"),
        (lambda: fn.permute_batch(torch.zeros(3), indices=[1]), "in a batch of 1 samples, got 1"),
        (lambda: fn.permute_batch(torch.zeros(3), indices=[0, 0]), "got 2 values for 1 samples"),
        (lambda: fn.get_property(torch.zeros(3), key="color"), "unknown property 'color'"),
    ],
)
def test_errors_describe_the_cause(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "cast": "`dtype` may also be a torch or NumPy dtype, which DALI refuses",
    "constant": "also creates float64 constants, which DALI refuses",
    "full": "without a shape, and with an input that has a layout, the result is 0-D; DALI fails with an internal error",
    "zeros, ones, full": "a per-sample shape may have any dtype; DALI requires int32",
}
F = np.float32

AWKWARD = [0.5, -0.5, 1.5, 2.5, -2.5, 254.5, 300.0, -3.0, 1e10, -1e10, 0.3, np.inf, -np.inf, np.nan]
INTEGERS = ["UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64"]
DTYPES = ["BOOL", *INTEGERS, "FLOAT16", "FLOAT", "FLOAT64"]


def numbers(source: torch.dtype) -> list[Array]:
    """Return samples of a dtype: one that is long enough for vector code and its tail, one of one number and an empty one."""
    low, high = (0, 1) if source == torch.bool else (-np.inf, np.inf) if source in FLOATS else integer_limits(source)
    with np.errstate(over="ignore"):
        values = from_list(INTERESTING * 2 if source in FLOATS else [v for v in WHOLE if low <= v <= high], source).numpy()
    return [values, values[:1], values[:0]]


@pytest.mark.golden
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_cast(source: torch.dtype, dtype: str) -> None:
    samples, layout = numbers(source), "X" if source in FLOATS else None
    if source.is_signed and layout is None:
        samples, layout = [values.reshape(-1, 1, 1) for values in samples], "HWC"
    check("cast", [samples], {"dtype": f"types.{dtype}"}, layout)


@pytest.mark.golden
@pytest.mark.parametrize("other", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("layouts", [(None, None), ("X", "Y"), ("X", None)])
def test_cast_like(other: str, layouts: tuple[str | None, ...]) -> None:
    others = [np.zeros(3, other), np.zeros(1, other)]
    check("cast_like", [[np.array(AWKWARD, F), np.array(AWKWARD[:7], F)], others], layouts=list(layouts))


PICTURES = {
    "uint8 HWC": ([np.full((2, 3, 1), 7, np.uint8), np.full((1, 2, 1), 9, np.uint8)], "HWC"),
    "float32 HW": ([np.full((2, 3), 0.5, F), np.full((4, 1), -1.5, F)], "HW"),
    "int16": ([np.arange(3, dtype=np.int16), np.arange(4, dtype=np.int16)], None),
    "bool 0D": ([np.array(True), np.array(False)], None),
}
SAME_FORM = [
    ("copy", {}),
    ("zeros_like", {}),
    ("ones_like", {}),
    ("zeros_like", {"dtype": "types.FLOAT"}),
    ("ones_like", {"dtype": "types.UINT8"}),
    ("permute_batch", {"indices": [1, 0]}),
    ("permute_batch", {"indices": [1, 1]}),
    ("permute_batch", {"indices": PerSample([1, 0])}),
]


@pytest.mark.golden
@pytest.mark.parametrize(("name", "arguments"), SAME_FORM, ids=str)
@pytest.mark.parametrize("kind", PICTURES)
def test_operators_on_any_data(name: str, arguments: dict[str, Any], kind: str) -> None:
    samples, layout = PICTURES[kind]
    if name == "permute_batch":  # `check` also tries a batch of one, which has no second sample
        agree(lambda lib: _permuted(lib, samples, layout, arguments))
    else:
        check(name, [samples], arguments, layout)


def _permuted(lib: Any, samples: Any, layout: str | None, arguments: dict[str, Any]) -> Any:
    indices = arguments["indices"]
    given = lib.source(np.int32(indices)) if isinstance(indices, PerSample) else indices
    return lib.fn.permute_batch(lib.source(samples, layout), indices=given)


FILLS = {
    "number": 7,
    "float": 2.5,
    "row": np.array([5, 6, 7], np.int16),
    "lower": np.array([[-3]], np.int32),
}


LIKE = {
    "uint8 HW": ([np.zeros((2, 3), np.uint8), np.zeros((4, 3), np.uint8)], "HW"),
    "float32": ([np.zeros((5, 2, 3), F), np.zeros((1, 2, 3), F)], None),
    "bool X": ([np.zeros(3, bool), np.zeros(3, bool)], "X"),
}


@pytest.mark.golden
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("kind", LIKE)
def test_full_like(kind: str, fill: str) -> None:
    samples, layout = LIKE[kind]
    agree(lambda lib: lib.fn.full_like(lib.source(samples, layout), FILLS[fill]))


def case(text: str) -> Any:
    """Return a definition from the text after ``fn.``; ``S`` creates a source."""

    def define(lib: Any) -> Any:
        names = {"fn": lib.fn, "types": lib.types, "S": lib.source, "np": np, "F": F}
        return eval(f"fn.{text}", names)

    return define


CALLS = [
    "constant(idata=[1, 2, 3])",
    "constant(idata=[1, 2, 3], dtype=types.FLOAT)",
    "constant(fdata=[1.5, 2.5, 3])",
    "constant(fdata=[1.5, 2.5, 300], dtype=types.UINT8)",
    "constant(fdata=[0.3, 0.0, 300], dtype=types.BOOL)",
    "constant(idata=[0, 1, 300], dtype=types.BOOL)",
    "constant(idata=[-1, 1, 300], dtype=types.UINT8)",
    "constant(idata=[2**40], dtype=types.INT64)",
    "constant(idata=[2**40])",
    "constant(idata=[2], dtype=types.FLOAT16)",
    "constant(idata=[1, 2, 3, 4], shape=[2, 2], layout='HW')",
    "constant(idata=[1], shape=[])",
    "constant(idata=[1], shape=[2, 2])",
    "constant(idata=3)",
    "constant(fdata=[1.5], dtype=types.INT64)",
    "constant(idata=[2], fdata=[1.0])",
    "constant()",
    "constant(idata=[1, 2, 3], shape=[2, 2])",
    "constant(idata=[1, 2, 3, 4], shape=[2, 2], layout='HWC')",
    "zeros(shape=[2, 3])",
    "zeros()",
    "zeros(shape=4)",
    "zeros(shape=[])",
    "zeros(shape=[2, 3], layout='HW', dtype=types.FLOAT)",
    "zeros(shape=[2, 3], layout='H')",
    "zeros(shape=[2, -3])",
    "zeros(shape=S(np.int32([[2, 3], [1, 2]])), layout='HW')",
    "zeros(shape=S(np.int32([2, 3])))",
    "zeros(shape=[2], dtype=types.BOOL)",
    "ones(shape=[2], dtype=types.FLOAT16)",
    "ones(shape=[2], dtype=types.UINT64)",
    "ones(shape=[2], dtype=types.FLOAT64)",
    "ones(shape=S(np.int32([[2, 3], [1, 2]])), dtype=types.UINT8)",
    "ones(shape=[2, 3], layout='HWC')",
    "full(7)",
    "full(7, shape=[2])",
    "full(1.5, shape=[2, 2], layout='HW')",
    "full(np.int32([1, 2, 3]), shape=[2, 3])",
    "full(np.int32([[1, 2, 3]]), shape=[3])",
    "full(np.int32([1, 2, 3]), shape=[3, 2])",
    "full(S(np.uint8([3, 4])), shape=[2])",
    "full(S(np.uint8([[3], [4]]), 'X'), shape=[2, 2])",
    "full(S(F([[1, 2], [3, 4]])))",
    "full(5, shape=S(np.int32([[2, 3], [1, 2]])))",
    "full(5, shape=[2], layout='HW')",
    "zeros_like(np.array([1, 2, 3]))",
    "ones_like(1.5)",
    "full_like(S(F([[1, 2], [3, 4]])), np.int32([1, 2, 3]))",
    "cast(S(F([1.5, 2.5])))",
    "cast(S(F([1.5, 2.5])), dtype=None)",
    "cast_like(S(F([1.5, 2.5])), np.uint8(1))",
    "cast_like(S(F([1.5, 2.5])), 1)",
    "cast_like(S(F([1.5, 2.5])))",
    "copy()",
    "permute_batch(S(F([1.5, 2.5])), indices=[1])",
    "permute_batch(S(F([1.5, 2.5])), indices=[1, 0, 1])",
    "permute_batch(S(F([1.5, 2.5])), indices=[1, 2])",
    "permute_batch(S(F([1.5, 2.5])), indices=[1, -1])",
    "permute_batch(S(F([1.5, 2.5])))",
    "permute_batch(S(F([1.5, 2.5])), indices=S(np.int32([[1], [0]])))",
    "permute_batch(S(F([1.5, 2.5])), indices=S(np.int32([[1, 0], [0, 1]])))",
    "get_property(S(F([[1], [2]]), 'X'), key='layout')",
    "get_property(S(F([[1], [2]])), key='layout')",
    "get_property(S(F([[1], [2]])), key='source_info')",
    "get_property(S(F([[1], [2]])), key='other')",
    "get_property(S(F([[1], [2]])))",
    "copy(S(F([[1], [2]]), 'X')).shape()",
    "copy(S(F([1, 2]))).shape()",
    *[f"copy(S(F([[1], [2]]))).shape(dtype=types.{kind})" for kind in DTYPES],
]


@pytest.mark.golden
@pytest.mark.parametrize("text", CALLS)
def test_calls_agree(text: str) -> None:
    agree(case(text))
