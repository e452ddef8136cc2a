"""readers.numpy and decoders.numpy against the real DALI."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.libraries import agree

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "readers.numpy": "reads versions 2 and 3 of the format, and headers of any length; a batch that mixes dtypes "
    "raises an error when it is delivered, not when it is read; supports only `device='cpu'`",
    "decoders.numpy": "reads Fortran order, which DALI reads only on the GPU",
}
A = np.arange(24).reshape(4, 6)
B = np.arange(60).reshape(3, 4, 5)
TYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
    "complex64", "S3", "U2", ">i4", ">f4",
)  # fmt: skip
ARRAYS: dict[str, list[Any]] = {
    "one": [A], "fortran": [np.asfortranarray(A)], "both orders": [A, np.asfortranarray(A)], "scalar": [np.float32(3)],
    "ragged": [A, A[:2]], "types": [A, A.astype(np.float32)], "axes": [A, B], "empty": [np.zeros((0, 3))], "3D": [B], "fortran 3D": [np.asfortranarray(B)],
    "no bytes": [b""], "junk": [b"hello world" * 20], **{t: [A.astype(t)] for t in TYPES},
}  # fmt: skip
REGIONS: list[dict[str, Any]] = [
    {"roi_start": [1, 2]}, {"roi_end": [3, 4]}, {"roi_shape": [2, 3]}, {"roi_start": [1, 2], "roi_shape": [2, 3]},
    {"roi_start": [1, 2], "roi_end": [3, 4]}, {"roi_start": [1, 2], "roi_end": [3, 4], "roi_shape": [2, 2]},
    {"roi_start": [1], "roi_axes": [1]}, {"roi_start": [1], "roi_axes": [-1]}, {"roi_start": [1, 2], "roi_axes": [1, 0]},
    {"rel_roi_start": [0.25, 0.5]}, {"rel_roi_start": [0.3, 0.3], "rel_roi_end": [0.8, 0.8]},
    {"rel_roi_start": [0.3, 0.3], "rel_roi_shape": [0.5, 0.5]}, {"roi_start": [1, 1], "rel_roi_shape": [0.5, 0.5]},
    {"roi_start": [1, 1], "rel_roi_end": [0.5, 0.7]}, {"rel_roi_start": [0.5], "roi_axes": [0]}, {"roi_start": [-1, 2]},
    {"roi_end": [5, 4]}, {"roi_end": [5, 4], "out_of_bounds_policy": "pad"},
    {"roi_end": [5, 7], "roi_start": [-1, -2], "out_of_bounds_policy": "pad", "fill_value": 7},
    {"roi_end": [5, 7], "roi_start": [-1, -2], "out_of_bounds_policy": "trim_to_shape"},
    {"roi_end": [3], "roi_start": [1]}, {"roi_end": [3], "roi_start": [1, 0]},
    {"roi_end": [5, 4], "out_of_bounds_policy": "x"}, {"roi_start": [1]}, {"roi_start": [1, 2, 3]},
    {"roi_start": [3, 3], "roi_end": [1, 1]}, {"roi_start": [5, 5], "roi_end": [6, 6], "out_of_bounds_policy": "trim_to_shape"},
    {"roi_start": [10, 10], "roi_end": [12, 12], "out_of_bounds_policy": "pad", "fill_value": 3}, {"roi_axes": [0]},
    {"roi_axes": [5], "roi_start": [1]}, {"roi_axes": [0, 0], "roi_start": [1, 1]},
    {"roi_start": [1, 1], "rel_roi_start": [0.1, 0.1]}, {"roi_start": 2, "roi_axes": [0]}, {"roi_shape": [0, 3]},
    {"roi_shape": [-1, 3]}, {"rel_roi_start": [-0.25, 0]}, {"rel_roi_end": [1.2, 1]},
    {"roi_end": [5, 4], "out_of_bounds_policy": "pad", "fill_value": -1.0},
    {"roi_end": [5, 4], "out_of_bounds_policy": "pad", "fill_value": 3.7},
]  # fmt: skip
FILES: dict[str, dict[str, Any]] = {
    "folder": {"file_root": "@"}, "filter": {"file_root": "@", "file_filter": "1*"}, "none": {"file_root": "@", "file_filter": "x"},
    "list": {"file_root": "@", "file_list": "@list"}, "list alone": {"file_list": "@list"}, "below": {"file_root": "@", "files": ["0.npy"]},
    "no folder": {"file_root": "@nope"}, "nothing": {}, "no files": {"files": []}, "missing": {"files": ["@nope.npy"]},
    "kept headers": {"files": ["@0.npy", "@1.npy"], "cache_header_information": True}, "read": {"files": ["@0.npy"], "dont_use_mmap": True},
    "direct": {"files": ["@0.npy"], "dont_use_mmap": True, "use_o_direct": True}, "direct, mapped": {"files": ["@0.npy"], "use_o_direct": True},
    "no buffers": {"files": ["@0.npy"], "register_buffers": False}, "unknown": {"files": ["@0.npy"], "x": 1},
    "too many shards": {"files": ["@0.npy"], "num_shards": 2},
}  # fmt: skip


def written(folder: Path, arrays: list[Any]) -> list[str]:
    paths = [folder / f"{i}.npy" for i in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        path.write_bytes(array if isinstance(array, bytes) else saved(array))
    return [str(path) for path in paths]


def saved(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("case", ARRAYS)
def test_arrays(tmp_path: Path, case: str, mapped: bool) -> None:
    files = written(tmp_path, ARRAYS[case])
    agree(lambda lib: lib.fn.readers.numpy(files=files, dont_use_mmap=not mapped), batch_size=len(files))


@pytest.mark.parametrize("array", [A, np.asfortranarray(A), A.astype(np.uint8), A.astype(bool)], ids=["C", "F", "uint8", "bool"])
@pytest.mark.parametrize("region", REGIONS, ids=str)
def test_regions(tmp_path: Path, region: dict[str, Any], array: Any) -> None:
    files = written(tmp_path, [array])
    agree(lambda lib: lib.fn.readers.numpy(files=files, **region), batch_size=1)


@pytest.mark.parametrize("array", [B, np.asfortranarray(B)], ids=["C", "F"])
@pytest.mark.parametrize("axes", [[1], [2, 0], [0, 1, 2]], ids=str)
def test_axes_of_regions(tmp_path: Path, array: Any, axes: list[int]) -> None:
    files = written(tmp_path, [array])
    region = {"roi_start": [1] * len(axes), "roi_shape": [2] * len(axes), "roi_axes": axes}
    agree(lambda lib: lib.fn.readers.numpy(files=files, **region), batch_size=1)


@pytest.mark.parametrize("region", [{"roi_start": [1, 1]}, {"rel_roi_end": [0.5, 0.5]}, {"roi_shape": [2]}], ids=str)
def test_regions_of_fewer_axes_than_the_array(tmp_path: Path, region: dict[str, Any]) -> None:
    files = written(tmp_path, [B])
    agree(lambda lib: lib.fn.readers.numpy(files=files, **region), batch_size=1)


def test_regions_that_differ(tmp_path: Path) -> None:
    files = written(tmp_path, [A, A + 1])

    def ints(lib: Any, values: Any) -> Any:
        return lib.source([np.array(v, np.int32) for v in values])

    agree(lambda lib: lib.fn.readers.numpy(files=files, roi_start=ints(lib, [[0, 0], [1, 2]]), roi_shape=[2, 2]))
    agree(lambda lib: lib.fn.readers.numpy(
        files=files, rel_roi_start=lib.source([np.float32([0, 0]), np.float32([0.5, 0.5])]),
        roi_end=ints(lib, [[2, 2], [4, 4]])))  # fmt: skip
    agree(lambda lib: lib.fn.readers.numpy(files=files, roi_start=ints(lib, [[0, 0], [9, 9]]), roi_shape=[2, 2]))


@pytest.mark.parametrize("case", FILES)
def test_files(tmp_path: Path, case: str) -> None:
    written(tmp_path, [A, A + 1])
    (tmp_path / "list").write_text("1.npy\n\n0.npy\n")

    def placed(value: Any) -> Any:
        if isinstance(value, list):
            return [placed(v) for v in value]
        return f"{tmp_path}/{value[1:]}" if isinstance(value, str) and value.startswith("@") else value

    made = {name: placed(value) for name, value in FILES[case].items()}
    agree(lambda lib: lib.fn.readers.numpy(**made))


DECODED: dict[str, bytes] = {
    "int16": saved(A.astype(np.int16)), "float32": saved(np.float32([1.7, -2.7, 300.0])), "scalar": saved(np.float32(2)),
    "junk": b"x" * 100, "cut": saved(A)[:-2], "too long": saved(A) + b"zz", "big endian": saved(A.astype(">i2")),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [None, "UINT8", "INT16", "FLOAT", "INT64"])
@pytest.mark.parametrize("case", DECODED)
def test_decoding(case: str, dtype: str | None) -> None:
    data = np.frombuffer(DECODED[case], np.uint8)

    def define(lib: Any) -> Any:
        more = {} if dtype is None else {"dtype": getattr(lib.types, dtype)}
        return lib.fn.decoders.numpy(lib.source([data, data]), **more)

    agree(define)
