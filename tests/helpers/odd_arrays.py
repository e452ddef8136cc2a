"""Arrays of all dtypes and of rare shapes, for tests of transfers between processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

SHAPES: list[tuple[int, ...]] = [(), (0,), (0, 4), (4, 0), (2, 0, 3), (5,), (90, 80)]
TYPES: list[Any] = [
    np.bool_, np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64, np.float16, np.float32, np.float64,
]  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape, dtype=int)) % 5).reshape(shape).astype(dtype)


def arrays() -> dict[str, np.ndarray[Any, Any]]:
    """Return arrays by name; all hold small whole numbers."""
    found = {}
    for dtype in TYPES:
        name = np.dtype(dtype).name
        found |= {f"{name} {shape}": numbers(shape, dtype) for shape in SHAPES}
        found[f"{name} empty, any stride"] = numbers((0, 3), dtype)[:, 1]
        found[f"{name} reversed"] = numbers((6, 10), dtype)[::2, ::-3]
        found[f"{name} transposed, large"] = numbers((90, 80), dtype).T
        found[f"{name} big-endian"] = numbers((7,), dtype).astype(np.dtype(dtype).newbyteorder(">"))
        found[f"{name} big-endian, empty"] = numbers((0, 2), dtype).astype(np.dtype(dtype).newbyteorder(">"))
    return found


def tensors() -> dict[str, torch.Tensor]:
    """Return tensors by name, also of dtypes that NumPy does not have."""
    found = {name: torch.from_numpy(np.array(each, each.dtype.newbyteorder("="))) for name, each in arrays().items()}
    for dtype in (torch.bfloat16, torch.complex64, torch.float8_e4m3fn):
        found |= {f"{dtype} {shape}": torch.from_numpy(numbers(shape, np.float32)).to(dtype) for shape in SHAPES}
    found["expanded"] = torch.ones(1).expand(90, 80)
    found["expanded, empty"] = torch.ones(1, 0).expand(5, 0)
    found["stride 0, empty"] = torch.empty(0, dtype=torch.float64).as_strided((0,), (0,))
    found["stride 2, empty"] = torch.empty(0, dtype=torch.int16).as_strided((0,), (2,))
    found["every second"] = torch.arange(9)[::2]
    found["conjugated"] = torch.tensor([1 + 2j, 3 - 1j]).conj()
    return found


def facts(sample: Any) -> Any:
    """Return dtype, shape and values, to compare."""
    tensor = torch.as_tensor(sample)
    values = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
    return tensor.dtype, tuple(tensor.shape), values.tolist()
