"""readers.tfrecord against the real DALI."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import write_tfrecord
from tests.helpers.libraries import agree, batches

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "readers.tfrecord": "a feature that a record lacks gets its default value (DALI leaves the memory uninitialized); "
    "a missing VarLenFeature is empty (DALI: a scalar); a missing string is 1-D; `random_shuffle` shuffles the whole "
    "epoch; `index_path` is optional",
}
EXAMPLES = [
    {"image": b"abc", "label": [5, -6], "boxes": [1.0, 2.0, 3.0, 4.0], "two": [b"x", b"yz"], "empty": []},
    {"image": b"", "label": [7, 2**63 - 1], "boxes": [-1.0, 0.5], "two": [b"", b"q"], "empty": []},
    {"label": [-(2**63), 300], "image": b"0" * 5000, "boxes": [], "two": [b"a", b"b"], "empty": []},
    {"image": b"z", "label": [0, 1], "boxes": [0.0] * 200, "two": [b"c", b"d"], "empty": []},
]  # fmt: skip

Fixed, Var = "FixedLenFeature", "VarLenFeature"
FEATURES: dict[str, dict[str, tuple[Any, ...]]] = {
    "string": {"image": (Fixed, (), "string", "")},
    "string of any length": {"image": (Var, "string", "")},
    "all in another order": {
        "label": (Fixed, [2], "int64", -1),
        "image": (Fixed, (), "string", ""),
    },
    "numbers": {"label": (Fixed, [2], "int64", -1)},
    "shape": {"label": (Fixed, [1, 2, 1], "int64", -1)},
    "too small": {"label": (Fixed, [1], "int64", -1)},
    "a scalar for two": {"label": (Fixed, [], "int64", -1)},
    "any number": {"label": (Var, "int64", -1)},
    "any number, no shape": {"label": (Var, [], "int64", -1)},
    "pairs": {"label": (Var, [2], "int64", -1)},
    "no pairs": {"label": (Var, [3], "int64", -1)},
    "strings": {"two": (Fixed, [2], "string", "")}, "one string": {"image": (Fixed, [1], "string", "")},
    "one of two strings": {"two": (Fixed, [1, 1], "string", "")},
    "strings of any number": {"two": (Var, "string", "")},
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_tfrecord(tmp_path_factory.mktemp("tfrecord") / "a.tfrecord", EXAMPLES)


def feature(lib: Any, made: tuple[Any, ...]) -> Any:
    module = importlib.import_module(f"{lib.name}.tfrecord")
    words = [getattr(module, w) if w in ("string", "int64", "float32") else w for w in made[1:]]
    return getattr(module, made[0])(*words)


def read(lib: Any, features: dict[str, tuple[Any, ...]], **options: Any) -> Any:
    made = {name: feature(lib, f) for name, f in features.items()}
    outputs = lib.fn.readers.tfrecord(features=made, **options)
    assert list(outputs) == list(features)
    return tuple(outputs.values())


@pytest.mark.parametrize("how", [{}, {"dont_use_mmap": True}, {"dont_use_mmap": True, "use_o_direct": True}], ids=str)
@pytest.mark.parametrize("case", FEATURES)
def test_features(records: tuple[str, str], case: str, how: dict[str, bool]) -> None:
    path, index = records
    agree(lambda lib: read(lib, FEATURES[case], path=path, index_path=index, **how), batch_size=4)


BOXES = [
    (Var, "float32", 0.0), (Var, [2], "float32", 0.0), (Var, [4], "float32", 0.0), (Var, [2, 2], "float32", 0.0),
    (Fixed, [4], "float32", 0.0), (Fixed, [2, 2], "float32", 0.0), (Fixed, [1], "float32", 0.0),
]  # fmt: skip


@pytest.mark.parametrize("made", BOXES, ids=str)
def test_floats(tmp_path: Path, made: tuple[Any, ...]) -> None:
    path, index = write_tfrecord(tmp_path / "a", [{"boxes": [float(i) for i in range(4)]}] * 2)
    agree(lambda lib: read(lib, {"boxes": made}, path=path, index_path=index))


def test_a_missing_number_is_a_scalar(records: tuple[str, str]) -> None:
    made = {"none": (Fixed, [2], "int64", 9), "nil": (Fixed, [3], "float32", 0.5)}
    path, index = records
    found, wanted = (
        batches(name, lambda lib: read(lib, made, path=path, index_path=index))[0]
        for name in ("torchdali", "nvidia.dali")
    )
    for ours, theirs in zip(found, wanted, strict=True):
        assert [s.shape for s in ours.samples] == [s.shape for s in theirs.samples]
        assert ours.samples[0].dtype == theirs.samples[0].dtype
    assert [float(r.samples[0]) for r in found] == [9, 0.5]


LABEL = {"label": (Fixed, [2], "int64", -1)}
INDICES = {
    "empty": "", "one number": "0\n", "words": "a b\n", "within a record": "5 20\n", "beyond": "0 100000\n",
    "negative": "-1 20\n", "too short": "0 30\n", "after the end": "1000000 50\n",
}  # fmt: skip


@pytest.mark.parametrize("case", INDICES)
def test_wrong_indices(records: tuple[str, str], tmp_path: Path, case: str) -> None:
    (tmp_path / "i").write_text(INDICES[case])
    index = str(tmp_path / "i")
    assert agree(lambda lib: read(lib, LABEL, path=records[0], index_path=index)) is RuntimeError


ARGUMENTS: dict[str, dict[str, Any]] = {
    "two files": {"path": ["@0", "@0"], "index_path": ["@1", "@1"]},
    "two indices": {"path": "@0", "index_path": ["@1", "@1"]},
    "no such file": {"path": "@0x", "index_path": "@1"},
    "no files": {"path": [], "index_path": []},
    "direct and mapped": {"path": "@0", "index_path": "@1", "use_o_direct": True},
    "unknown": {"path": "@0", "index_path": "@1", "pathh": "x"},
    "shards": {"path": "@0", "index_path": "@1", "num_shards": 2, "shard_id": 1},
    "padded": {"path": "@0", "index_path": "@1", "num_shards": 3, "pad_last_batch": True},
    "too many shards": {"path": "@0", "index_path": "@1", "num_shards": 5},
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(records: tuple[str, str], case: str) -> None:
    def placed(value: Any) -> Any:
        if isinstance(value, list):
            return [placed(v) for v in value]
        return value.replace("@0", records[0]).replace("@1", records[1]) if isinstance(value, str) else value

    made = {name: placed(value) for name, value in ARGUMENTS[case].items()}
    agree(lambda lib: read(lib, LABEL, **made), batch_size=3)


DECLARATIONS = {
    "a number as a shape": (Fixed, 1, "int64", -1), "no default": (Fixed, [1], "int64"),
    "a word as a number": (Fixed, [1], "int64", "x"), "a fraction": (Fixed, [1], "int64", 1.5),
    "bytes": (Fixed, [], "string", b""), "no type": (Fixed, [1], "x", 1), "only a type": (Var, "int64"),
}  # fmt: skip


@pytest.mark.parametrize("case", DECLARATIONS)
def test_wrong_declarations(case: str) -> None:
    agree(lambda lib: (feature(lib, DECLARATIONS[case]), lib.fn.constant(idata=1))[1])


def test_a_feature_of_another_type(records: tuple[str, str]) -> None:
    path, index = records
    features: Any = {"image": 10}
    found = agree(lambda lib: lib.fn.readers.tfrecord(path=path, index_path=index, features=features)["image"])
    assert found is TypeError


def test_several_batches(records: tuple[str, str]) -> None:
    path, index = records
    found, wanted = (
        batches(name, lambda lib: read(lib, LABEL, path=path, index_path=index), 5, batch_size=3)
        for name in ("torchdali", "nvidia.dali")
    )
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours[0].samples, theirs[0].samples)
