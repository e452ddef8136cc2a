"""Arrays against the standard writer, and damaged headers."""

from __future__ import annotations

import io

import numpy as np
import pytest

from torchdali.formats import npy


def npy_file(text: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> np.ndarray:
    length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return np.frombuffer(b"\x93NUMPY" + bytes(version) + length + text.encode() + data, np.uint8)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "u2", "f2", "f4", "u8", "f8"])
def test_arrays(dtype: str, order: str, version: tuple[int, int]) -> None:
    array = np.asarray(np.arange(24).reshape(2, 3, 4).astype(dtype), order=order)  # type: ignore[call-overload]
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    for shift in (0, 1):  # also data that is not aligned to its dtype
        data = np.frombuffer(bytes(shift) + file.getvalue(), np.uint8)[shift:].copy()
        np.testing.assert_array_equal(npy.read_array(data).numpy(), array)


WRONG = {
    "neg": "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,), }", "text": "{'descr': '<i4', 'fortran_order': False, 'shape': 'x', }",
    "huge": "{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000000,), }", "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "no shape": "{'descr': '<i4', 'fortran_order': False}", "a call": "__import__('os').getcwd()", "deep": "(" * 5000, "empty": "", "fields": "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}",
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_headers_that_are_wrong(case: str) -> None:
    with pytest.raises(ValueError, match=r"header|type string|must have \d+ bytes"):
        npy.read_array(npy_file(WRONG[case], b"12345678"))


def test_other_files() -> None:
    for data in (b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00aaaaaaaaaaaaa", b"\x93NUMPY\x01\x00\xff\xff{}"):
        with pytest.raises(ValueError, match=r"numpy file|version|header length"):
            npy.read_array(np.frombuffer(data, np.uint8))


ODD = [
    b"{'shape': (3, 4), 'descr': '<f4', 'fortran_order': False}",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}",
    b'{"descr": "<f4", "fortran_order": False, "shape": (3, 4,), }',
]


@pytest.mark.parametrize("text", ODD)
def test_headers_in_other_notations(text: bytes) -> None:
    """Other writers order and quote differently; an int is not a valid shape."""
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(48)
    assert npy.read_array(np.frombuffer(bytearray(data), np.uint8)).shape == (3, 4)
    data = data.replace(b"(3, 4)", b"(3444)").replace(b"(3, 4,)", b"(34444)")
    with pytest.raises(ValueError, match="must describe an array"):
        npy.read_array(np.frombuffer(bytearray(data), np.uint8))
