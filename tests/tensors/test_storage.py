"""Storage of batches: shared memory, copies, and classes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import types
from torchdali.tensors import TensorList, TensorListCPU, TensorListGPU


def test_a_batch_of_rows() -> None:
    rows = torch.arange(10, dtype=torch.uint8).view(5, 2)
    batch = TensorList.from_rows(rows, [2, 0, 3], "NC")
    assert isinstance(batch, TensorListCPU) and batch.dense() is None
    assert batch.shape() == [(2, 2), (0, 2), (3, 2)] and len(batch) == 3 and batch.ndim() == 2
    assert batch.torch_dtype == torch.uint8 and batch.device.type == "cpu"
    assert not batch.is_dense_tensor()
    copy = pickle.loads(pickle.dumps(batch))
    for each in (batch, copy):
        assert each.layout() == "NC" and each.rows()[1] == [2, 0, 3]
        assert [s.tolist() for s in each.samples()] == [
            [[0, 1], [2, 3]],
            [],
            [[4, 5], [6, 7], [8, 9]],
        ]
    assert batch.data_ptr() == rows.data_ptr() == batch.samples()[0].data_ptr()
    batch.samples()[2][0, 0] = 99
    assert rows[2, 0] == 99 and batch.at(2)[0, 0] == 99
    batch.reinterpret(types.INT8)
    assert batch.rows() is None and batch.dtype == types.INT8 and batch.shape()[2] == (3, 2)
    batch.reset()
    assert len(batch) == 0
    with pytest.raises(RuntimeError, match="must have the same shape"):
        copy.stack()


def test_rows_of_samples_of_one_shape_are_a_dense_batch() -> None:
    batch = TensorList.from_rows(torch.arange(12, dtype=torch.uint8).view(6, 2), [3, 3])
    dense = batch.dense()
    assert dense is not None and dense.shape == (2, 3, 2) and batch.rows() is None
    assert TensorList.from_rows(torch.zeros(0, 4), [0]).shape() == [(0, 4)]


def test_a_batch_of_arrays() -> None:
    arrays = [np.arange(6, dtype=np.int16).reshape(2, 3), np.zeros((0, 3), np.int16), np.ones((1, 3), np.int16)]
    batch = TensorList.from_arrays(arrays, torch.int16)
    assert isinstance(batch, TensorListCPU) and batch.dense() is None and batch.rows() is None
    assert batch.shape() == [(2, 3), (0, 3), (1, 3)] and len(batch) == 3 and batch.ndim() == 2
    assert batch.torch_dtype == torch.int16 and not batch.is_dense_tensor()
    arrays[0][0, 0] = 7
    stored: Any = batch.current_storage()
    part = stored[1:]
    assert [each.tolist() for each in batch.samples()] == [[[7, 1, 2], [3, 4, 5]], [], [[1, 1, 1]]]
    assert stored.samples()[2].data_ptr() == part.samples()[1].data_ptr() == arrays[2].ctypes.data
    assert len(part) == 2 and [each.tolist() for each in part] == batch.tolist()[1:]


def test_separate_samples_of_one_shape_are_a_dense_batch() -> None:
    batch = TensorList.from_samples([torch.zeros(2), torch.ones(2)], "C", source_info=["a", "b"])
    assert batch.is_dense_tensor()
    assert batch.dense() is None
    assert batch.stack().tolist() == [[0, 0], [1, 1]]
    assert batch.dense() is batch.stack()
    assert batch.samples()[1].data_ptr() == batch.stack()[1].data_ptr()
    assert batch[-1].source_info() == "b"
    assert batch.source_infos == ["a", "b"]


BATCHES = [
    lambda: TensorList.from_dense(torch.arange(6).reshape(2, 3), "C", ["a", "b"]),
    lambda: TensorList.from_samples([torch.arange(3), torch.arange(2)], "C"),
    lambda: TensorList.from_samples([], "C", dtype=torch.uint8, ndim=1),
    lambda: TensorList.from_rows(torch.arange(5), [3, 2], "C"),
    lambda: TensorList.from_packed(torch.arange(9), [5, 0], [(4,), (5,)], "C"),
    lambda: TensorList.from_arrays([np.arange(3), np.arange(2)], torch.int64),
]


@pytest.mark.parametrize("make", BATCHES)
def test_copies_of_a_batch_keep_its_storage(make: Any) -> None:
    batch, fresh = make(), make()
    batch.samples()  # views are not copied, but created again
    forms = [(b.dense() is None, b.rows() is None) for b in (batch, fresh)]
    copies = [pickle.loads(pickle.dumps(batch, version)) for version in range(6)]
    stored = [pickle.dumps(b).count(b"protocol_version") for b in (batch, fresh)]
    assert stored[0] == stored[1]
    for each in (*copies, copy.deepcopy(batch), copy.copy(batch), type(batch)(batch)):
        assert (each.dense() is None, each.rows() is None) == forms[0] == forms[1]
        assert (str(each), type(each)) == (str(batch), type(batch))
        assert each.source_infos == batch.source_infos
        if len(each):
            each.samples()[1][:] = 9
            assert each.tolist()[1] == [9] * len(each.samples()[1])


@pytest.mark.parametrize("make", BATCHES)
def test_changing_a_batch_does_not_change_others(make: Any) -> None:
    batch, text = make(), str(make())
    for other in (copy.copy(batch), type(batch)(batch)):
        other.data_ptr()
        other.set_layout("")
        other.reinterpret({1: types.INT8, 8: types.FLOAT64}[batch.torch_dtype.itemsize])
        assert str(batch) == text
        other.reset()
        assert str(batch) == text


# -- the GPU classes, on any device ------------------------------------------------------------


def test_the_device_selects_the_class() -> None:
    for device, kind in (("cpu", TensorListCPU), ("meta", TensorListGPU)):
        rows = torch.zeros(5, 2, device=device)
        for batch in (
            TensorList.from_dense(rows),
            TensorList.from_samples([rows, rows[:1]]),
            TensorList.from_samples([None, rows]),
            TensorList.from_rows(rows, [2, 3]),
        ):
            assert type(batch) is kind and batch.device.type == device
    for kind, device in ((TensorList, "cpu"), (TensorListCPU, "cpu"), (TensorListGPU, "cuda")):
        assert kind.from_samples([]).device.type == device
