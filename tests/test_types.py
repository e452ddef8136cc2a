"""Enumerations, data types, layouts, constants."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.inside import record_constants
from torchdali import types

DTYPES = [
    (types.UINT8, torch.uint8, np.uint8),
    (types.UINT16, torch.uint16, np.uint16),
    (types.UINT32, torch.uint32, np.uint32),
    (types.UINT64, torch.uint64, np.uint64),
    (types.INT8, torch.int8, np.int8),
    (types.INT16, torch.int16, np.int16),
    (types.INT32, torch.int32, np.int32),
    (types.INT64, torch.int64, np.int64),
    (types.FLOAT16, torch.float16, np.float16),
    (types.FLOAT, torch.float32, np.float32),
    (types.FLOAT64, torch.float64, np.float64),
    (types.BOOL, torch.bool, np.bool_),
]
NAMED = (types.DALIDataType, types.DALIImageType, types.DALIInterpType)


@pytest.mark.parametrize("enum", NAMED)
def test_members_are_module_constants_and_print_with_their_class(enum: Any) -> None:
    for member in enum:
        assert getattr(types, member.name) is member
        assert str(member) == f"{member}" == f"{enum.__name__}.{member.name}"
        assert repr(member) == f"<{enum.__name__}.{member.name}: {member.value}>"


@pytest.mark.parametrize("enum", [*NAMED, types.PipelineAPIType, types.StreamPolicy])
def test_members_are_true_hashable_and_survive_pickle(enum: Any) -> None:
    for member in enum:
        assert bool(member)
        assert {member: 1}[member] == 1
        assert pickle.loads(pickle.dumps(member)) is member
        assert copy.deepcopy(member) is member


@pytest.mark.parametrize(("dali", "in_torch", "in_numpy"), DTYPES)
def test_data_types_of_torch_and_numpy(dali: Any, in_torch: Any, in_numpy: Any) -> None:
    assert types.to_numpy_type(dali) is in_numpy
    assert types.from_torch_dtype(in_torch) is dali
    dtype = np.dtype(in_numpy)
    for spelling in (in_torch, in_numpy, dtype, str(in_torch), str(dtype)):
        assert types.to_dali_type(spelling) is dali
    for spelling in (dali, in_torch, in_numpy, dtype):
        assert types.to_torch_dtype(spelling) is in_torch


def test_data_types_without_a_counterpart() -> None:
    for missing in (int, None, 1, "f4", object, torch.bfloat16, np.complex64, np.dtype(">f4")):
        with pytest.raises(TypeError, match="isn't a supported dtype"):
            types.to_dali_type(missing)
    with pytest.raises(TypeError, match="bfloat16"):
        types.from_torch_dtype(torch.bfloat16)
    with pytest.raises(TypeError, match="STRING"):
        types.to_torch_dtype(types.STRING)
    with pytest.raises(KeyError):
        types.to_numpy_type(types.STRING)


def test_torch_only_dtypes_convert_to_torch() -> None:
    assert types.to_torch_dtype(torch.bfloat16) is torch.bfloat16


def test_layouts_compare_with_strings() -> None:
    layout = types.TensorLayout("HWC")
    assert layout == "HWC" == layout == types.TensorLayout("HWC")
    assert layout != "CHW"
    assert types.TensorLayout("C") < layout <= "HWC" <= layout < "HWD"
    assert layout > "HW"
    assert layout >= types.TensorLayout("HWC")
    assert (len(layout), str(layout), repr(layout)) == (3, "HWC", "TensorLayout('HWC')")
    for make in (lambda: layout == 1, lambda: hash(layout), lambda: types.TensorLayout(layout)):
        with pytest.raises(TypeError):
            make()


def test_infos_hold_their_arguments() -> None:
    sample = types.SampleInfo(1, idx_in_batch=2, iteration=3, epoch_idx=4)
    assert vars(sample) == {"idx_in_epoch": 1, "idx_in_batch": 2, "iteration": 3, "epoch_idx": 4}
    assert "idx_in_batch=2" in repr(sample)
    assert vars(types.BatchInfo(5, 6)) == {"iteration": 5, "epoch_idx": 6}
    assert repr(types.BatchInfo(5, 6)) == "BatchInfo(iteration=5, epoch_idx=6)"
    assert types.CUDAStream(7).ptr == 7


@pytest.mark.parametrize(
    ("value", "dtype", "number", "of_type"),
    [
        (3, None, 3, types.INT32),
        (True, None, True, types.BOOL),
        (2.5, None, 2.5, types.FLOAT),
        (2.9, types.UINT8, 2, types.UINT8),
        (300, types.UINT8, 300, types.UINT8),
        (2, types.BOOL, True, types.BOOL),
        (1 << 40, types.INT64, 1 << 40, types.INT64),
        (np.float64(1.5), None, 1.5, types.FLOAT64),
        (np.array(3, np.uint8), None, 3, types.UINT8),
        (torch.tensor(3), None, 3, types.INT64),
    ],
)
def test_numbers_become_scalar_constants(value: Any, dtype: Any, number: Any, of_type: Any) -> None:
    constant = types.Constant(value, dtype)
    assert isinstance(constant, types.ScalarConstant)
    assert (constant.value, constant.dtype, constant.shape) == (number, of_type, [])
    assert type(constant.value) is type(number)
    assert pickle.loads(pickle.dumps(constant)) == constant
    assert (str(constant), repr(constant)) == (f"{number}:{of_type}", repr(number))


def test_shortcuts_change_the_type() -> None:
    constant = types.Constant(300.7)
    names = {"float32": types.FLOAT, "bool": types.BOOL}
    for dali, in_torch, _ in DTYPES:
        name = str(in_torch).removeprefix("torch.")
        changed = getattr(constant, name)()
        assert changed.dtype is names.get(name, dali)
        assert changed.value == (True if name == "bool" else 300.7 if "float" in name else 300)


def test_scalar_constants_convert_only_to_their_own_kind() -> None:
    assert int(types.Constant(True)) == 1
    assert float(types.Constant(2.5)) == 2.5
    assert not types.Constant(0)
    for wrong in (
        lambda: int(types.Constant(2.5)),
        lambda: bool(types.Constant(2.5)),
        lambda: float(types.Constant(2)),
        lambda: hash(types.Constant(2)),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_scalar_constants_leave_arithmetic_to_nodes() -> None:
    class Node:
        def __rsub__(self, other: Any) -> Any:
            return "rsub", other

        def __eq__(self, other: object) -> Any:
            return "eq", other

        def __gt__(self, other: Any) -> Any:
            return "gt", other

    constant = types.Constant(3).uint8()
    assert constant - Node() == ("rsub", constant)
    assert (constant < Node()) == ("gt", constant)
    assert (constant == Node()) == ("eq", constant)
    assert constant == types.Constant(3, types.UINT8)
    assert constant != types.Constant(3)
    assert constant != 3
    for wrong in (lambda c: c + 1, lambda c: 1 + c, lambda c: -c, lambda c: np.arange(2) + c):
        with pytest.raises(TypeError):
            wrong(constant)


@pytest.mark.parametrize("value", ["a", None, {}, b"a", [[1, 2]], ["a"], [None], np.array(["a"])])
def test_constants_are_numbers(value: Any) -> None:
    with pytest.raises(TypeError):
        types.Constant(value)


@pytest.mark.parametrize("dtype", [types.STRING, types.NO_TYPE, types.IMAGE_TYPE])
def test_scalar_constants_have_a_numeric_type(dtype: Any) -> None:
    with pytest.raises(TypeError, match="ScalarConstant"):
        types.ScalarConstant(1, dtype)


ONE = {"idata": [1], "dtype": types.INT32, "shape": []}


@pytest.mark.parametrize(
    ("value", "arguments", "recorded"),
    [
        (1, {"device": "gpu"}, {**ONE, "device": "gpu"}),
        (1, {"layout": ""}, {**ONE, "layout": ""}),
        (1, {"name": "x"}, {**ONE, "name": "x"}),
        (1, {"shape": 3}, {**ONE, "shape": [3]}),
        (2.7, {"shape": (2,), "dtype": types.UINT8},
         {"fdata": [2.7], "dtype": types.UINT8, "shape": [2]}),
        ([1, 2], {}, {"idata": [1, 2], "dtype": types.INT32}),
        ((1, 2.5), {}, {"fdata": [1, 2.5], "dtype": types.FLOAT}),
        ([True], {}, {"idata": [True], "dtype": types.BOOL}),
        ([], {}, {"fdata": [], "dtype": types.FLOAT}),
        ([1, 2], {"shape": (2, 1), "layout": "HW"},
         {"idata": [1, 2], "dtype": types.INT32, "shape": (2, 1), "layout": "HW"}),
        (np.array([[1, 2]]), {}, {"idata": [1, 2], "dtype": types.INT32, "shape": (1, 2)}),
        (np.array([1], np.uint64), {}, {"idata": [1], "dtype": types.UINT32, "shape": (1,)}),
        (np.array([1.5]), {}, {"fdata": [1.5], "dtype": types.FLOAT, "shape": (1,)}),
        (np.array([1 << 40]), {"dtype": types.INT64},
         {"idata": [1 << 40], "dtype": types.INT64, "shape": (1,)}),
        (np.arange(4, dtype=np.uint8), {"shape": (2, 2)},
         {"idata": [0, 1, 2, 3], "dtype": types.UINT8, "shape": (2, 2)}),
        (torch.tensor([1, 2]), {}, {"idata": [1, 2], "dtype": types.INT64, "shape": (2,)}),
    ],
)  # fmt: skip
def test_other_constants_are_recorded(
    monkeypatch: Any, value: Any, arguments: Any, recorded: Any
) -> None:
    seen: list[dict[str, Any]] = []
    record_constants(monkeypatch, lambda **given: seen.append(given))
    types.Constant(value, **arguments)
    assert [{k: v for k, v in each.items() if v is not None} for each in seen] == [recorded]


def test_constants_that_do_not_fit() -> None:
    with pytest.raises(OverflowError, match="INT32"):
        types.Constant(np.array([1 << 40]))
    with pytest.raises(ValueError, match="reshape"):
        types.Constant(np.zeros(3), shape=(2,))
