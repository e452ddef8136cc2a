"""Types, tensors and batches against the real DALI: each expression is evaluated by both libraries.

Both must give the same value or raise the same class of exception. Values are compared by `plain`.
"""

from __future__ import annotations

import copy
import ctypes
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import torchdali.tensors as our_tensors
import torchdali.types as our_types
from tests.helpers.inside import record_constants

pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)
import nvidia.dali as dali
import nvidia.dali.tensors as dali_tensors
import nvidia.dali.types as dali_types

pytestmark = pytest.mark.parity

NAMES = ("TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU")
OURS = {"t": our_types, **{name: getattr(our_tensors, name) for name in NAMES}}
THEIRS = {"t": dali_types, **{name: getattr(dali_tensors, name) for name in NAMES}}


def array(*shape: int, dtype: str = "u1") -> np.ndarray[Any, Any]:
    return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)


SHARED = {
    "np": np, "torch": torch, "ctypes": ctypes, "copy": copy, "pickle": pickle, "array": array,
    "capsule": lambda *shape: torch.utils.dlpack.to_dlpack(torch.ones(shape)),
}  # fmt: skip


def plain(value: Any) -> Any:
    """Return a value that is comparable across the two libraries."""
    kind = type(value).__name__
    if "Enum" in str(type(type(value))) or kind.lstrip("_").startswith("DALI"):
        return str(value)
    if kind in ("TensorCPU", "TensorGPU"):
        return kind, str(value.dtype), value.layout(), value.shape(), np.asarray(value).tolist()
    if kind in ("TensorListCPU", "TensorListGPU"):
        samples = [plain(sample) for sample in value]
        return kind, str(value.dtype), value.layout(), value.shape(), value.ndim(), samples
    if isinstance(value, torch.Tensor | np.ndarray):
        return kind, str(value.dtype), tuple(value.shape), value.tolist()
    if kind == "ScalarConstant":
        return kind, str(value), str(value.dtype), type(value.value), value.value, value.shape
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return type(value), value


def outcome(expression: str, names: dict[str, Any]) -> Any:
    """Return the value of an expression as `plain`, or the class of its error."""
    try:
        return plain(eval(expression, {**SHARED, **names}))
    except Exception as error:
        return type(error)


def check(expression: str) -> None:
    assert outcome(expression, OURS) == outcome(expression, THEIRS)


def test_the_comparison_detects_differences() -> None:
    other = SimpleNamespace(FLOAT=dali_types.FLOAT16, UINT8=1)
    assert outcome("t.FLOAT", OURS) != outcome("t.FLOAT", {"t": other})
    assert outcome("int(t.UINT8)", OURS) != outcome("int(t.UINT8)", {"t": other})
    assert outcome("TensorCPU(array(2), 'A')", OURS) != outcome("TensorCPU(array(2), 'B')", THEIRS)
    assert outcome("TensorListCPU([])[0]", OURS) is IndexError


# -- types -------------------------------------------------------------------------------------


@pytest.mark.parametrize("enum", ["DALIDataType", "DALIImageType", "DALIInterpType"])
def test_enumerations(enum: str) -> None:
    theirs = getattr(dali_types, enum).__members__
    ours = getattr(our_types, enum).__members__
    public = {name: int(each) for name, each in theirs.items() if not name.startswith("_")}
    assert {name: int(each) for name, each in ours.items()} == public
    for name in public:
        for form in ("t.{}", "str(t.{})", "repr(t.{})", "f'{{t.{}}}'", "t.{}.name", "bool(t.{})"):
            check(form.format(name))
        check(f"pickle.loads(pickle.dumps(t.{name})) == t.{name}")
        check(f"{{t.{name}: 1}}[t.{name}]")
        check(f"'%d' % t.{name}, float(t.{name}), t.{name} == int(t.{name}), hash(t.{name})")


@pytest.mark.parametrize("enum", ["StreamPolicy", "OperatorConcurrency", "PipelineAPIType"])
def test_enumerations_of_the_pipeline(enum: str) -> None:
    theirs = getattr(dali, enum, None) or getattr(dali_types, enum)
    ours = getattr(our_types, enum)
    values = {each.name: int(getattr(each.value, "value", each.value)) for each in theirs}
    assert {each.name: each.value for each in ours} == values
    assert [str(each) for each in ours] == [str(theirs[each.name]) for each in ours]


def test_no_public_name_is_missing() -> None:
    own = vars(dali_types).items()
    foreign = {"Enum", "ctypes", "re", "unique", "backend_impl", "tfrec", "dali_type_converters"}
    public = {name for name, _ in own if not name.startswith("_")} - foreign
    assert public - set(our_types.__all__) == set()
    for name in public:
        if not callable(getattr(dali_types, name)):
            check(f"t.{name}")


SPELLINGS = [
    *(
        f"np.{name}"
        for name in ("uint8", "int16", "int32", "uint64", "float16", "float32", "bool_")
    ),
    *(f"np.dtype('{name}')" for name in ("u1", "i8", "u2", "f2", "f8", "?", ">f4", "c8", "U1")),
    *(f"torch.{name}" for name in ("uint8", "uint16", "int64", "float16", "bool", "bfloat16")),
    *(
        f"'{name}'"
        for name in ("half", "float", "double", "long", "short", "byte", "bool", "bool_")
    ),
    *(f"'{name}'" for name in ("int", "f4", "Float", "uint8", "torch.float32", "bfloat16")),
    *("int", "float", "bool", "object", "None", "1", "t.FLOAT", "np.array([1])", "np.number"),
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_to_dali_type(spelling: str) -> None:
    check(f"t.to_dali_type({spelling})")


@pytest.mark.parametrize("name", [name for name in dir(dali_types.DALIDataType) if name.isupper()])
def test_to_numpy_type(name: str) -> None:
    if not name.startswith("_"):
        check(f"t.to_numpy_type(t.{name})")


@pytest.mark.parametrize(
    "expression",
    [
        "str(t.TensorLayout('HWC')), len(t.TensorLayout('HWC'))",
        "t.TensorLayout('HWC') == 'HWC', t.TensorLayout('HWC') != t.TensorLayout('C')",
        "t.TensorLayout('HWC') < 'HWD', t.TensorLayout('HWC') > t.TensorLayout('C')",
        "t.TensorLayout('Z') < t.TensorLayout('AB'), t.TensorLayout('Z') >= 'AB'",
        "t.TensorLayout('HWC') == 1",
        "t.TensorLayout('HWC') <= 1",
        "t.TensorLayout('HWC')[0]",
        "hash(t.TensorLayout('HWC'))",
        "t.TensorLayout(t.TensorLayout('C'))",
        "bool(t.TensorLayout(''))",
        "vars(t.SampleInfo(1, 2, 3, 4))",
        "vars(t.BatchInfo(1, 2))",
        "t.SampleInfo(1, 2)",
        "vars(pickle.loads(pickle.dumps(t.SampleInfo(1, 2, 3, 4))))",
        "t.CUDAStream(5).ptr, t.CUDAStream().ptr",
    ],
)
def test_layouts_and_infos(expression: str) -> None:
    check(expression)


SCALARS = [
    "1", "1.5", "True", "1 << 40", "np.int64(2)", "np.float32(2)", "np.float64(1.5)",
    "np.uint8(1)", "np.bool_(True)", "torch.tensor(1)", "np.array(1)", "np.array([1])", "'a'",
    "[1]", "None", "t.RGB", "b'a'", "2.9, t.INT32", "300, t.UINT8", "-1, t.UINT8", "2, t.BOOL",
    "1, t.FLOAT", "0.1, t.FLOAT16", "1e20, t.INT32", "1 << 70, t.INT64", "1, np.uint8",
    "1, t.STRING", "1, t.NO_TYPE", "1, t.IMAGE_TYPE", "'1', t.INT32", "1, 'float'",
]  # fmt: skip


@pytest.mark.parametrize("arguments", SCALARS)
def test_scalar_constants(arguments: str) -> None:
    check(f"t.ScalarConstant({arguments})")


@pytest.mark.parametrize("name", ["bool", "float16", "float32", "float64"])
def test_shortcuts_to_bool_and_float(name: str) -> None:
    check(f"t.Constant(300.7).{name}(), t.Constant(2).{name}()")


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_shortcuts_to_integers(bits: int) -> None:
    check(f"t.Constant(300.7).int{bits}(), t.Constant(True).uint{bits}()")


@pytest.mark.parametrize(
    "expression",
    [
        *("int(t.Constant(3))", "int(t.Constant(True))", "int(t.Constant(2.5))"),
        *("float(t.Constant(2.5))", "float(t.Constant(2))", "bool(t.Constant(0.5))"),
        *("bool(t.Constant(0))", "bool(t.Constant(2))", "hash(t.Constant(1))"),
        *("t.Constant(1) == t.Constant(1)", "t.Constant(1) == t.Constant(1.0)"),
        *("t.Constant(1) == t.Constant(1).uint8()", "t.Constant(1) == 1", "t.Constant(1) != 1"),
        *("t.Constant(1) + 1", "1 + t.Constant(1)", "-t.Constant(1)", "t.Constant(1) < 1"),
        *("t.Constant(1) + t.Constant(1)", "t.Constant(1) & 1", "np.arange(2) + t.Constant(1)"),
        *("t.Constant(1) + np.arange(2)", "np.uint8(2) + t.Constant(1)", "str(t.Constant(1))"),
        *("pickle.loads(pickle.dumps(t.Constant(1)))", "copy.deepcopy(t.Constant(2.5))"),
        *("t.Constant(1, shape=[])", "t.Constant(1, shape=(1,))", "t.Constant(np.array(2.5))"),
        *("t.Constant([[1, 2]])", "t.Constant({})", "t.Constant(['a'])", "t.Constant([None])"),
        *("t.Constant('abc')", "t.Constant(None)", "t.Constant(np.array([1j]))"),
        *("t.Constant(np.zeros((2, 3)), shape=(7,))", "t.Constant(np.array([1 << 40]))"),
        *("t.Constant(np.array([1 << 63], 'u8'))", "t.Constant(np.array(['a']))"),
        *("t.Constant(t.ScalarConstant(1))", "t.Constant(range(3))", "t.Constant([1], dtype='x')"),
    ],
)
def test_constants(expression: str) -> None:
    check(expression)


RECORDED = [
    "[1, 2]", "[1.5, 2]", "(1, 2)", "[True, False]", "[1, True]", "[1, 2.5]", "[1 << 40]", "[]",
    "[], t.UINT8", "[1.5, 2.5], t.UINT8", "[-1], t.UINT8", "[1 << 40], t.INT64", "[1, 2], t.BOOL",
    "[1.5], t.FLOAT16", "[1, 2], t.FLOAT", "[1.5, 2], t.INT32", "[True], t.UINT8",
    "1, None, (2, 3)",
    "1, None, 3", "1, None, 0", "True, None, [2]", "True, t.FLOAT, [2]", "2.7, t.UINT8, [2]",
    "-5, t.UINT8, [2]", "[1, 2], None, (2, 1)", "[1, 2, 3, 4], None, [2, 2], 'HW'",
    "[1, 2], None, None, 'C'", "3, None, [2], 'C'", "3, None, [], ''", "1, None, None, None, 'cpu'",
    "np.array([1.5])", "np.array([[1, 2]])", "np.array([[1, 2]], 'u1')", "np.array([True])",
    "np.zeros(2, 'u4')", "np.zeros(2, 'u8')", "np.zeros(2, 'i2')", "np.zeros(2, 'f2')",
    "np.zeros((0, 3), 'f4')", "np.arange(4), None, (2, 2)", "np.arange(4), t.FLOAT",
    "np.array([300]), t.UINT8", "np.array([1 << 40]), t.INT64", "np.arange(6).reshape(2, 3).T",
    "np.array(2.5, 'f4'), None, None, ''", "torch.tensor([1, 2])", "torch.tensor([1.5])",
    "torch.tensor([1 << 40])", "torch.tensor([300]), t.UINT8", "torch.ones(1).half()",
    "torch.zeros(2, 3)[:, ::2], None, None, 'HW'", "torch.zeros(2).bool()",
]  # fmt: skip


def _constant_of_dali(**given: Any) -> Any:
    given["dtype"] = dali_types.DALIDataType(int(given["dtype"]))
    return dali.fn.constant(**{name: each for name, each in given.items() if each is not None})


@pytest.mark.parametrize("arguments", RECORDED)
def test_recorded_constants(monkeypatch: Any, arguments: str) -> None:
    """The arguments that torchdali passes to `fn.constant` have the same result in DALI as DALI's own `Constant`."""
    record_constants(monkeypatch, _constant_of_dali)

    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)  # type: ignore[untyped-decorator]
    def both() -> Any:
        return tuple(eval(f"t.Constant({arguments})", {**SHARED, **n}) for n in (OURS, THEIRS))

    ours, theirs = both().run()
    assert plain(ours) == plain(theirs)


# -- one tensor --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?"]
)
def test_element_types(dtype: str) -> None:
    check(f"TensorCPU(array(2, 3, dtype='{dtype}'), 'HW')")
    check(f"np.asarray(TensorCPU(array(2, 3, dtype='{dtype}')))")
    check(f"TensorListCPU(array(2, 3, dtype='{dtype}'))")
    check(f"torch.from_dlpack(TensorCPU(array(2, 3, dtype='{dtype}')))")


TENSORS = [
    "TensorCPU(array(2, 3, 4))", "TensorCPU(array(2, 3), layout='HW')",
    "TensorCPU(array(2, 3), None)",
    "TensorCPU(np.array(3.5)).shape()", "TensorCPU(np.zeros((0, 3)))", "TensorCPU(b'abc')",
    "TensorCPU(bytearray(b'abc'))", "TensorCPU(memoryview(b'abc'))", "TensorCPU(np.float32(2))",
    "TensorCPU(capsule(2, 3), 'HW')", "TensorCPU(TensorCPU(array(2), 'A'))",
    "TensorCPU(array(2, 3), 'HWC')", "TensorCPU(array(2, 3), 'H')", "TensorCPU(array(2), 5)",
    "TensorCPU([1, 2])", "TensorCPU(1)", "TensorCPU('a')", "TensorCPU(None)", "TensorCPU()",
    "TensorCPU(array(2, 4)[:, ::2])", "TensorCPU(array(2, 4).T)", "TensorCPU(np.array(['a']))",
    "TensorCPU(array(2), t.TensorLayout('C'))", "TensorCPU(array(4, 1).T)",
    "TensorGPU(array(2))", "TensorGPU(torch.arange(2))", "TensorGPU(TensorCPU(array(2)))",
    "TensorGPU()",
]  # fmt: skip


@pytest.mark.parametrize("expression", TENSORS)
def test_making_a_tensor(expression: str) -> None:
    check(expression)


@pytest.mark.parametrize(
    "member",
    [
        *("shape()", "ndim()", "dtype", "layout()", "source_info()", "as_cpu()"),
        *("get_property('layout')", "get_property('source_info')", "get_property('foo')"),
        *("set_layout('HW')", "set_layout('H')", "set_layout('')", "set_layout(None)"),
        *("set_layout(5)", "reinterpret(t.INT8)", "reinterpret(t.BOOL)", "reinterpret(t.FLOAT)"),
        *("reinterpret(t.NO_TYPE)", "reinterpret(9)", "squeeze()", "squeeze(0)", "squeeze(1)"),
        *("squeeze(-1)", "squeeze(-2)", "squeeze(2)", "squeeze(-3)", "squeeze(dim=0)"),
        *("__array_interface__['shape']", "__array_interface__['data'][1]", "__len__()"),
        *("__getitem__(0)", "copy_to_external()"),
        *("__dlpack__(1, None, None, False) is None", "__dlpack_device__()[1]", "missing"),
        *("__dlpack_device__()[0] == 1", "__eq__(1)", "__class__.__name__"),
    ],
)
def test_members_of_a_tensor(member: str) -> None:
    for source in ("array(1, 3), 'HW'", "array(3, 1)", "np.array(1)"):
        for name in ("x", f"x.{member}"):
            check(f"(lambda x: ({name}, x, x.{member}, x))(TensorCPU({source}))")


@pytest.mark.parametrize(
    "source", ["TensorCPU(array(2, 3))", "TensorListCPU([array(2, 3), array(1)[None]])"]
)
def test_copy_to_external(source: str) -> None:
    check(
        f"(lambda out: ({source}.copy_to_external(ctypes.c_void_p(out.ctypes.data)), out))"
        "(np.full(9, 77, 'u1'))"
    )


def test_both_share_memory() -> None:
    for change in ("source", "np.asarray(x)", "torch.from_dlpack(x)"):
        check(
            "(lambda source: (lambda x: (x.data_ptr() == source.ctypes.data, "
            f"{change}.__setitem__(0, 9), source, x))(TensorCPU(source)))(array(3))"
        )


# -- a batch -----------------------------------------------------------------------------------

BATCHES = [
    "array(2, 3, 4)", "array(2, 3, 4), 'WC'", "array(2, 3), layout='A'", "array(3)", "b'abc'",
    "capsule(2, 3)", "TensorCPU(array(2, 3), 'HW')", "TensorListCPU(array(2, 3), 'A')",
    "TensorListCPU(array(2, 3), 'A'), 'B'", "[]", "[], 'HW'", "[array(2), array(3)]",
    "[array(2), array(3)], 'A'", "[array(2), array(2)]", "[TensorCPU(array(2), 'A'), array(3)]",
    "[TensorCPU(array(2), 'A'), array(3)], 'B'", "[array(2), array(3)], 'A', False",
    "[array(2), array(3)], contiguous=False", "np.zeros((0, 3))", "np.zeros((2, 0))",
    "np.array(1)", "array(2, 3), 'HW'", "[array(2), array(3)], 'HW'", "array(4)[::2]", "", "1",
    "(array(2),)", "iter([array(2)])", "[[1], [2]]", "[1, 2]", "[array(2), None]",
    "[array(4)[::2]]",
    "[array(2), array(2, dtype='f4')]", "[array(2), array(2, 1)]", "array(2, 3), 5",
    "[TensorCPU(array(2), 'A'), TensorCPU(array(2), 'B')]", "[array(2), TensorCPU(array(2), 'B')]",
]  # fmt: skip


@pytest.mark.parametrize("arguments", BATCHES)
def test_making_a_batch(arguments: str) -> None:
    check(f"TensorListCPU({arguments})")


@pytest.mark.parametrize(
    "expression",
    [
        "TensorListGPU()", "TensorListGPU([])", "TensorListGPU(array(2))", "TensorListGPU(1)",
        "TensorListGPU(TensorListCPU(array(2)))",
        "TensorListCPU.broadcast(TensorCPU(array(2, 3), 'HW'), 3)",
        "TensorListCPU.broadcast(array(2, 3), 2)", "TensorListCPU.broadcast(array(2), 0)",
        "TensorListCPU.broadcast(array(2), -1)",
        "TensorListCPU.from_dlpack_list([torch.arange(3), torch.arange(4)])",
        "TensorListCPU.from_dlpack_list([torch.arange(3), torch.arange(4)], 'C')",
        "TensorListCPU.from_dlpack_list([array(2), array(3)])",
        "TensorListCPU.from_dlpack_list([])", "TensorListCPU.from_dlpack_list([1])",
        "TensorListCPU.from_dlpack_list([torch.arange(3), torch.arange(3.0)])",
        "TensorListCPU.from_dlpack_list([torch.arange(3)], 'HW')",
    ],
)  # fmt: skip
def test_other_ways_to_a_batch(expression: str) -> None:
    check(expression)


UNIFORM, RAGGED = "array(2, 3, 4), 'WC'", "[array(2, 3), array(1, 4)], 'HW'"
NOTHING, TYPED_NOTHING = "[]", "np.zeros((0, 3), 'f4')"
MEMBERS = [
    "shape()", "ndim()", "dtype", "layout()", "__len__()", "is_dense_tensor()", "as_cpu()",
    "at(0)", "at(1)", "at(-1)", "at(2)", "at(0.5)", "at(np.int32(1))", "__getitem__(0)",
    "__getitem__(-1)", "__getitem__(2)", "__getitem__(-3)", "__getitem__(np.int64(1))",
    "set_layout('AB')", "set_layout('A')", "set_layout('')", "set_layout(None)",
    "reinterpret(t.INT8)", "reinterpret(t.INT16)", "reinterpret('a')", "reset()",
    "as_reshaped_tensor([5, 4])", "as_reshaped_tensor([-1, 4])", "copy_to_external()",
    "source_info()", "get_property('layout')", "__array_interface__", "__dlpack__()", "missing",
]  # fmt: skip


@pytest.mark.parametrize("member", [*MEMBERS, "as_tensor()", "as_array()"])
def test_members_of_a_batch(member: str) -> None:
    for source in (UNIFORM, RAGGED):
        check(f"TensorListCPU({source}).{member}")
        check(f"(lambda x: (x.{member}, x))(TensorListCPU({source}))")


@pytest.mark.parametrize("source", [NOTHING, TYPED_NOTHING])
@pytest.mark.parametrize("member", MEMBERS[:10])
def test_members_of_an_empty_batch(source: str, member: str) -> None:
    check(f"TensorListCPU({source}).{member}")


@pytest.mark.parametrize(
    "expression",
    [
        f"TensorListCPU({UNIFORM}).as_reshaped_tensor([6, 4])",
        f"TensorListCPU({UNIFORM}).as_reshaped_tensor((24,)).layout()",
        f"TensorListCPU({RAGGED}).as_reshaped_tensor([10])",
        f"np.array(TensorListCPU({UNIFORM}))",
        f"[sample.shape() for sample in TensorListCPU({RAGGED})]",
        f"(lambda x: (x.at(0).fill(9), x.as_array().fill(9), x))(TensorListCPU({UNIFORM}))",
        f"(lambda x: (np.asarray(x.as_tensor()).fill(9), x))(TensorListCPU({UNIFORM}))",
        f"(lambda x: (np.asarray(x[1]).fill(9), x))(TensorListCPU({RAGGED}))",
        "(lambda a: (lambda x: (a.fill(9), x))(TensorListCPU(a)))(array(2, 3))",
        "(lambda a: (lambda x: (a.fill(9), x))(TensorListCPU([a, a])))(array(2, 3))",
        "(lambda a: (lambda x: (a.fill(9), x))(TensorListCPU([a], None, False)))(array(2, 3))",
        "(lambda x: (lambda y: (y.squeeze(), y.set_layout(''), x))(x[0]))"
        "(TensorListCPU([array(1, 1)], 'HW'))",
        "TensorListCPU([]).as_tensor()",
        "TensorListCPU([]).data_ptr()",
        "TensorListCPU([]).reinterpret(t.FLOAT)",
    ],
)
def test_values_and_memory_of_a_batch(expression: str) -> None:
    check(expression)


# -- printing ----------------------------------------------------------------------------------

PRINTED = [
    "TensorCPU(array(2, 3), 'HW')", "TensorCPU(array(2, 3, 4))", "TensorCPU(array(50, 100))",
    "TensorCPU(np.array(3))", "TensorCPU(array(2, dtype='?'))", "TensorCPU(array(3, dtype='f2'))",
    "TensorListCPU(array(3))", "TensorListCPU(array(3000))", "TensorListCPU([])",
    "TensorListCPU(np.zeros((0, 3)))"
    "TensorListGPU()",
]  # fmt: skip


@pytest.mark.parametrize("expression", PRINTED)
def test_printing(expression: str) -> None:
    check(f"str({expression})")
    check(f"repr({expression})")


def test_a_batch_prints_the_same_values() -> None:
    """DALI indents the samples of a batch differently; the rest is the same."""
    for source in (
        UNIFORM,
        RAGGED,
        "array(8, 2000)",
        "array(4, 10, 2, 3)",
        "[array(3), array(60)]",
    ):
        ours, theirs = (
            "".join(eval(f"str(TensorListCPU({source}))", {**SHARED, **n}).split())
            for n in (OURS, THEIRS)
        )
        assert ours == theirs
        check(f"repr(TensorListCPU({source}))")
