"""Tensors and batches: their contents, sharing, copies, errors and printing."""

from __future__ import annotations

import ctypes
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import types
from torchdali.tensors import (
    Tensor,
    TensorCPU,
    TensorGPU,
    TensorList,
    TensorListCPU,
    TensorListGPU,
)

DTYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?"]


def numbers(*shape: int, dtype: str = "u1") -> np.ndarray[Any, Any]:
    return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)


def uniform() -> TensorListCPU:
    return TensorListCPU(numbers(2, 3, 4), "WC")


def ragged() -> TensorListCPU:
    return TensorListCPU([numbers(2, 3), numbers(1, 4)], "HW")


# -- one tensor --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_shares_memory_in_both_directions(dtype: str) -> None:
    array = numbers(2, 3, dtype=dtype)
    tensor = TensorCPU(array, "HW")
    assert tensor.data_ptr() == array.ctypes.data == tensor.torch().data_ptr()
    assert np.asarray(tensor).ctypes.data == array.ctypes.data
    assert np.asarray(tensor).dtype == array.dtype
    exported = torch.from_dlpack(tensor)
    assert (exported.data_ptr(), exported.shape) == (array.ctypes.data, (2, 3))
    assert TensorCPU(exported).data_ptr() == array.ctypes.data
    assert tensor.dtype == types.to_dali_type(array.dtype)
    assert (tensor.shape(), tensor.ndim(), tensor.layout()) == ([2, 3], 2, "HW")
    assert tensor.as_cpu() is tensor


class _Exporter:
    """An object of another library that only supports DLPack."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.__dlpack__ = tensor.__dlpack__
        self.__dlpack_device__ = tensor.__dlpack_device__


@pytest.mark.parametrize(
    ("source", "values"),
    [
        (torch.arange(3), [0, 1, 2]),
        (torch.ones(2).requires_grad_(), [1, 1]),
        (torch.utils.dlpack.to_dlpack(torch.arange(3)), [0, 1, 2]),
        (_Exporter(torch.arange(3)), [0, 1, 2]),
        (TensorCPU(np.array([4])), [4]),
        (b"ab", [97, 98]),
        (bytearray(b"ab"), [97, 98]),
        (memoryview(b"ab"), [97, 98]),
        (np.float32(2), 2),
        (np.zeros((0, 3)), []),
    ],
)
def test_inputs_of_tensors(source: Any, values: Any) -> None:
    assert TensorCPU(source).torch().tolist() == values


def test_read_only_memory_is_copied() -> None:
    data = b"abc"
    TensorCPU(data).torch()[0] = 0
    assert data == b"abc"


REFUSED: list[tuple[Any, Any, type[Exception]]] = [
    (TensorListCPU(b"ab"), None, TypeError),
    ([1, 2], None, TypeError),
    (1, None, TypeError),
    (None, None, TypeError),
    ("abc", None, TypeError),
    (numbers(4)[::2], None, RuntimeError),
    (numbers(4)[::-1], None, RuntimeError),
    (numbers(2, 3).T, None, RuntimeError),
    (torch.zeros(2, 3).t(), None, RuntimeError),
    (np.array(["a"]), None, RuntimeError),
    (np.array([1j]), None, RuntimeError),
    (np.zeros(2, ">i4"), None, RuntimeError),
    (torch.zeros(2, dtype=torch.bfloat16), None, RuntimeError),
    (numbers(2, 3), "HWC", ValueError),
    (numbers(2, 3), 5, TypeError),
]


@pytest.mark.parametrize(("source", "layout", "error"), REFUSED)
def test_invalid_inputs_of_tensors(source: Any, layout: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        TensorCPU(source, layout)


@pytest.mark.parametrize(("source", "layout", "error"), REFUSED[1:])
def test_invalid_inputs_of_batches(source: Any, layout: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        TensorListCPU(source, layout)


def test_layout_of_a_tensor() -> None:
    tensor = TensorCPU(numbers(2, 3), "HW")
    tensor.set_layout("AB")
    assert (tensor.layout(), tensor.get_property("layout")) == ("AB", "AB")
    with pytest.raises(ValueError, match="'A'"):
        tensor.set_layout("A")
    tensor.set_layout(None)
    assert tensor.layout() == ""
    assert (tensor.source_info(), tensor.get_property("source_info")) == ("", None)
    assert tensor.get_property("color") is None


@pytest.mark.parametrize(
    ("dim", "dropped", "shape", "layout"),
    [
        (None, True, [3, 4], "HC"),
        (0, True, [3, 1, 4], "HWC"),
        (2, True, [1, 3, 4], "FHC"),
        (-2, True, [1, 3, 4], "FHC"),
        (1, False, [1, 3, 1, 4], "FHWC"),
    ],
)
def test_squeeze(dim: int | None, dropped: bool, shape: list[int], layout: str) -> None:
    tensor = TensorCPU(numbers(1, 3, 1, 4), "FHWC")
    assert tensor.squeeze(dim) is dropped
    assert (tensor.shape(), tensor.layout()) == (shape, layout)
    with pytest.raises(RuntimeError, match="axis 5 is out of range"):
        tensor.squeeze(5)


def test_reinterpret_keeps_the_bytes() -> None:
    tensor = TensorCPU(np.array([1.0, -2.0], "f4"))
    tensor.reinterpret(types.INT32)
    assert tensor.dtype is types.INT32
    assert np.asarray(tensor).view("f4").tolist() == [1.0, -2.0]
    for wrong in (types.INT16, types.NO_TYPE):
        with pytest.raises(RuntimeError, match="size"):
            tensor.reinterpret(wrong)
    with pytest.raises(TypeError):
        tensor.reinterpret(9)  # type: ignore[arg-type]


def test_dlpack_copies_on_demand_and_stays_on_its_device() -> None:
    tensor = TensorCPU(numbers(3))
    capsule = tensor.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True)
    assert torch.utils.dlpack.from_dlpack(capsule).data_ptr() != tensor.data_ptr()
    assert tuple(tensor.__dlpack_device__()) == (1, 0)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize("make", [uniform, ragged, lambda: TensorCPU(numbers(2, 3))])
def test_copy_to_external_copies_densely(make: Any) -> None:
    source = make()
    arrays = source if isinstance(source, TensorList) else [source]
    expected = np.concatenate([np.asarray(each).ravel() for each in arrays])
    for pointer in (int, ctypes.c_void_p):
        target = np.full(expected.size + 1, 77, expected.dtype)
        source.copy_to_external(pointer(target.ctypes.data))
        assert target.tolist() == [*expected.tolist(), 77]
    with pytest.raises(TypeError):
        source.copy_to_external("here")
    with pytest.raises(ValueError, match="null"):
        source.copy_to_external(ctypes.c_void_p(0))


def test_elements_of_a_strided_view_are_exported_densely() -> None:
    batch = TensorList.from_dense(torch.arange(6).reshape(2, 3).t())
    assert np.asarray(batch[1]).tolist() == [1, 4]
    target = np.zeros(2, np.int64)
    batch[1].copy_to_external(target.ctypes.data)
    assert target.tolist() == [1, 4]
    target = np.zeros(6, np.int64)
    ctypes.memmove(target.ctypes.data, batch.data_ptr(), target.nbytes)
    assert target.tolist() == [0, 3, 1, 4, 2, 5]
    assert batch.samples()[2].tolist() == [2, 5]


# -- a batch -----------------------------------------------------------------------------------


def test_a_uniform_batch() -> None:
    array, batch = numbers(2, 3, 4), uniform()
    assert (len(batch), batch.ndim(), batch.layout()) == (2, 2, "WC")
    assert batch.shape() == [(3, 4), (3, 4)]
    assert (batch.dtype, batch.torch_dtype) == (types.UINT8, torch.uint8)
    assert batch.is_dense_tensor()
    assert np.array_equal(batch.as_array(), array)
    assert np.array_equal(batch.at(1), array[1])
    assert batch.tolist() == array.tolist()
    whole = batch.as_tensor()
    assert (whole.layout(), whole.shape()) == ("NWC", [2, 3, 4])
    assert whole.data_ptr() == batch.data_ptr()
    assert batch.as_reshaped_tensor((6, 4)).shape() == [6, 4]
    assert batch.as_cpu() is batch
    assert np.array_equal(np.array(batch), array)


def test_a_ragged_batch() -> None:
    batch = ragged()
    assert batch.shape() == [(2, 3), (1, 4)]
    assert not batch.is_dense_tensor()
    assert batch.at(1).tolist() == [[0, 1, 2, 3]]
    assert batch.tolist() == [[[0, 1, 2], [3, 4, 5]], [[0, 1, 2, 3]]]
    assert batch.as_reshaped_tensor([10]).torch().tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3]
    assert batch.dense() is None
    for refused in (batch.as_array, batch.as_tensor, batch.stack):
        with pytest.raises(RuntimeError, match="must have the same shape"):
            refused()


def test_a_dense_batch_is_wrapped_without_a_copy() -> None:
    dense = torch.arange(6).reshape(2, 3)
    batch = TensorList.from_dense(dense, "C")
    assert type(batch) is TensorListCPU
    assert batch.dense() is dense
    assert batch.samples() is batch.samples()
    batch[0].torch()[0] = 9
    assert dense[0, 0] == 9
    assert batch.device == dense.device


def test_arrays_are_copies_and_tensors_are_views() -> None:
    batch = uniform()
    batch.at(0)[:] = 99
    batch.as_array()[:] = 99
    assert batch.at(0).max() == 11
    batch.as_tensor().torch()[:] = 7
    assert batch.at(0).max() == 7


def test_samples_by_index() -> None:
    batch = ragged()
    assert [sample.shape() for sample in batch] == [[2, 3], [1, 4]]
    assert (batch[-1].shape(), batch[np.int64(0)].shape()) == ([1, 4], [2, 3])
    assert batch[0].layout() == "HW"
    for i in (2, -3):
        with pytest.raises(IndexError):
            batch[i]
    for i in (2, -1):
        with pytest.raises(RuntimeError):
            batch.at(i)
    for wrong in (0.5, "a", slice(0, 1), ...):
        with pytest.raises(TypeError):
            batch[wrong]  # type: ignore[index]
        with pytest.raises(TypeError):
            batch.at(wrong)  # type: ignore[arg-type]


def test_changing_a_sample_does_not_change_others() -> None:
    batch = TensorListCPU([numbers(1, 1)], "HW")
    sample = batch[0]
    sample.squeeze()
    sample.set_layout("")
    assert (batch.shape(), batch.layout()) == ([(1, 1)], "HW")


@pytest.mark.parametrize(
    "samples",
    [
        [np.zeros(2, "f4"), np.zeros(2, "i4")],
        [np.zeros(2), np.zeros((2, 1))],
        [TensorCPU(np.zeros(2), "A"), TensorCPU(np.zeros(2), "B")],
        [TensorCPU(np.zeros(2)), TensorCPU(np.zeros(2), "B")],
        [np.zeros(2), [0, 0]],
        [np.zeros(2), None],
        [np.zeros(4)[::2]],
    ],
)
def test_samples_of_a_batch_must_have_one_dtype_and_dimension(samples: list[Any]) -> None:
    with pytest.raises(TypeError, match=r"sample|Tensor at position 1"):
        TensorListCPU(samples)


def test_a_list_is_copied_by_default() -> None:
    samples = [TensorCPU(numbers(2), "C"), TensorCPU(numbers(2))]
    shared = TensorListCPU(samples, contiguous=False)
    copied = TensorListCPU(samples)
    assert shared[0].data_ptr() == samples[0].data_ptr() != copied[0].data_ptr()
    assert copied.layout() == shared.layout() == "C"
    assert TensorListCPU(copied).data_ptr() == copied.data_ptr()


def test_a_zero_dimensional_array_is_not_a_batch() -> None:
    with pytest.raises(RuntimeError, match="0-dimensional"):
        TensorListCPU(np.array(1))


def test_one_sample_broadcast() -> None:
    sample = TensorCPU(numbers(2), "C")
    batch = TensorListCPU.broadcast(sample, 3)
    assert (batch.shape(), batch.layout()) == ([(2,)] * 3, "C")
    assert {each.data_ptr() for each in batch} == {sample.data_ptr()}
    assert batch.as_array().tolist() == [[0, 1]] * 3
    assert TensorListCPU.broadcast(numbers(2), 0).dtype is types.UINT8
    with pytest.raises(ValueError, match="-1"):
        TensorListCPU.broadcast(sample, -1)


def test_a_batch_of_dlpack_objects() -> None:
    sources = [torch.arange(3), _Exporter(torch.arange(4))]
    batch = TensorListCPU.from_dlpack_list(sources, "C")
    assert (batch.shape(), batch.layout()) == ([(3,), (4,)], "C")
    assert batch[0].data_ptr() == sources[0].data_ptr()
    copied = TensorListCPU.from_dlpack_list(sources, contiguous=True)
    assert copied[0].data_ptr() != sources[0].data_ptr()
    with pytest.raises(TypeError, match="sample 0"):
        TensorListCPU.from_dlpack_list([1])


EMPTY = [
    (TensorListCPU([]), types.NO_TYPE, 0),
    (TensorList.from_samples([]), types.NO_TYPE, 0),
    (TensorList.from_samples([], "HW", dtype=torch.uint8, ndim=2), types.UINT8, 2),
    (TensorList.from_dense(torch.zeros(0, 3)), types.FLOAT, 1),
    (TensorListGPU(), types.NO_TYPE, 0),
]


@pytest.mark.parametrize(("batch", "dtype", "ndim"), EMPTY)
def test_an_empty_batch(batch: Any, dtype: Any, ndim: int) -> None:
    assert (len(batch), batch.dtype, batch.ndim(), batch.shape()) == (0, dtype, ndim, [])
    assert (list(batch), batch.samples(), batch.tolist()) == ([], [], [])
    assert batch.is_dense_tensor()
    assert batch.data_ptr() == 0
    assert "num_samples=0" in str(batch)
    assert len(batch.as_cpu()) == 0
    assert batch.as_cpu().dtype is dtype
    if dtype is types.NO_TYPE:
        with pytest.raises(RuntimeError, match="must have a type"):
            batch.as_tensor()
        with pytest.raises(RuntimeError, match="must have a type"):
            batch.reinterpret(types.FLOAT)
    else:
        assert batch.as_tensor().shape()[0] == 0
        assert batch.as_tensor().ndim() == 1 + ndim


def test_as_reshaped_tensor_keeps_the_number_of_elements() -> None:
    for batch in (uniform(), ragged()):
        for shape in ([5, 4], [-1, 4], []):
            with pytest.raises(RuntimeError, match="elements"):
                batch.as_reshaped_tensor(shape)


@pytest.mark.parametrize("make", [uniform, ragged])
def test_reinterpret_and_reset_a_batch(make: Any) -> None:
    batch = make()
    batch.data_ptr()
    batch.reinterpret(types.INT8)
    assert {batch.dtype, batch[0].dtype, batch.as_reshaped_tensor([_size(batch)]).dtype} == {
        types.INT8
    }
    with pytest.raises(RuntimeError, match="size"):
        batch.reinterpret(types.FLOAT)
    batch.set_layout("AB")
    assert batch[0].layout() == "AB"
    with pytest.raises(ValueError, match="'A'"):
        batch.set_layout("A")
    batch.reset()
    assert (len(batch), batch.dtype, batch.layout()) == (0, types.NO_TYPE, "")


def _size(batch: TensorList) -> int:
    return sum(int(np.prod(shape)) for shape in batch.shape())


@pytest.mark.parametrize("make", [uniform, ragged])
def test_batches_survive_pickle(make: Any) -> None:
    batch = make()
    again = pickle.loads(pickle.dumps(batch))
    assert (str(again), type(again)) == (str(batch), type(batch))


def test_gpu_classes_reject_host_memory() -> None:
    for make in (TensorGPU, TensorListGPU):
        for source in (numbers(3), torch.zeros(3), uniform(), 1):
            with pytest.raises(RuntimeError, match="gpu"):
                make(source)


@pytest.mark.parametrize("make", [uniform, ragged])
def test_the_device_stage_on_the_cpu(make: Any) -> None:
    """With ``device_id="cpu"`` the GPU classes hold tensors in main memory."""
    source = make()
    batch = TensorListGPU.from_samples(source.samples(), "HW", source_info=["a", "b"])
    assert type(batch[0]) is type(batch.at(0)) is TensorGPU
    assert (batch.device_id(), batch.stream, batch[0].device_id()) == (0, None, 0)
    assert 'device="gpu"' in repr(batch)
    assert batch.as_cpu().tolist() == source.tolist()
    assert type(batch.as_cpu()) is TensorListCPU
    assert batch.as_cpu()[1].source_info() == batch[1].as_cpu().source_info() == "b"
    target = np.zeros(_size(source), np.uint8)
    batch.copy_to_external(target.ctypes.data)
    assert target.tolist() == source.as_reshaped_tensor([target.size]).torch().tolist()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_classes_share_device_memory() -> None:
    source = torch.arange(6, device="cuda").reshape(2, 3)
    side = torch.cuda.Stream()
    for make in (TensorGPU(source), TensorGPU(TensorGPU(source)), TensorGPU(source, stream=side)):
        assert make.data_ptr() == source.data_ptr()
        assert torch.as_tensor(make, device="cuda").data_ptr() == source.data_ptr()
        assert torch.from_dlpack(make).data_ptr() == source.data_ptr()
        assert np.asarray(make.as_cpu()).tolist() == source.tolist()
    batch = TensorList.from_samples([source, source[:1]])
    assert type(batch) is TensorListGPU
    assert batch.as_cpu().tolist() == [source.tolist(), source[:1].tolist()]
    target = torch.zeros(9, dtype=torch.int64, device="cuda")
    for stream in (None, side, side.cuda_stream):
        target.zero_()
        batch.copy_to_external(ctypes.c_void_p(target.data_ptr()), cuda_stream=stream)
        assert target.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2]
    with pytest.raises(TypeError, match="not data on the cpu"):
        TensorCPU(source)


# -- printing ----------------------------------------------------------------------------------

TEXTS = [
    (
        uniform(),
        """TensorListCPU(
    [[[ 0  1  2  3]
      [ 4  5  6  7]
      [ 8  9 10 11]],

     [[12 13 14 15]
      [16 17 18 19]
      [20 21 22 23]]],
    dtype=DALIDataType.UINT8,
    layout="WC",
    device="cpu",
    num_samples=2,
    shape=[(3, 4), (3, 4)])""",
    ),
    (
        TensorListCPU([numbers(1, dtype="f4"), numbers(2, dtype="f4")]),
        """TensorListCPU(
    [[0.],
     [0. 1.]],
    dtype=DALIDataType.FLOAT,
    device="cpu",
    num_samples=2,
    shape=[(1,), (2,)])""",
    ),
    (
        TensorListCPU(np.arange(3000)),
        """TensorListCPU(
    [0, 1, ..., 2998, 2999],
    dtype=DALIDataType.INT64,
    device="cpu",
    num_samples=3000,
    shape=[(), (), ..., (), ()])""",
    ),
    (
        TensorCPU(numbers(50, 100, dtype="i4"), "HW"),
        """TensorCPU(
    [[   0    1 ...   98   99]
     [ 100  101 ...  198  199]
     ...
     [4800 4801 ... 4898 4899]
     [4900 4901 ... 4998 4999]],
    dtype=DALIDataType.INT32,
    layout="HW",
    device="cpu",
    shape=(50, 100))""",
    ),
]


@pytest.mark.parametrize(("shown", "text"), TEXTS)
def test_printing(shown: Tensor | TensorList, text: str) -> None:
    assert str(shown) == text
    head, _, tail = text.partition("\n")
    values_end = tail.index("dtype=")
    assert repr(shown) == f"{head}\n    {tail[values_end:]}"


def test_dtypes_that_dali_does_not_have_are_printed() -> None:
    batch = TensorList.from_dense(torch.ones(2, 1, dtype=torch.bfloat16))
    assert "dtype=torch.bfloat16" in str(batch)
    with pytest.raises(TypeError, match="bfloat16"):
        batch.dtype  # noqa: B018


@pytest.mark.parametrize("dtype", [np.longlong, np.ulonglong])
def test_all_of_numpys_names_for_64_bits(dtype) -> None:
    found = TensorCPU(np.array([1, 2**62], dtype))
    assert found.torch().tolist() == [1, 2**62]
    assert found.dtype in (types.INT64, types.UINT64)
