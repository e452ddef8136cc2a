"""Cases for the tests of the crop family: batches in every layout, numbers as arrays, errors of both libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.check import pipeline

Array = npt.NDArray[Any]

PAD = {"out_of_bounds_policy": "pad"}


def arrays(shapes: Sequence[tuple[int, ...]], dtype: str = "uint8", seed: int = 0) -> list[Array]:
    """Return a batch of random arrays."""
    rng = np.random.default_rng(seed)
    if dtype.startswith("f"):
        return [rng.normal(60, 90, shape).astype(dtype) for shape in shapes]
    if dtype == "bool":
        return [rng.integers(0, 2, shape).astype(bool) for shape in shapes]
    info = np.iinfo(dtype)
    low, high = max(info.min, -40000), min(info.max, 70000)
    return [rng.integers(low, high, shape, dtype=dtype) for shape in shapes]


SHAPES: dict[str, list[tuple[int, ...]]] = {
    "HWC": [(20, 30, 3), (13, 9, 3)],
    "CHW": [(3, 20, 30), (3, 13, 9)],
    "DHWC": [(4, 9, 10, 2), (3, 8, 7, 2)],
    "CDHW": [(2, 4, 9, 10), (2, 3, 8, 7)],
    "FHWC": [(3, 9, 10, 3), (2, 8, 7, 3)],
    "FCHW": [(3, 3, 9, 10), (2, 3, 8, 7)],
    "CFHW": [(3, 3, 9, 10), (3, 2, 8, 7)],
}


def f32(values: Any) -> Array:
    """Return numbers as float32, like arguments."""
    return np.asarray(values, np.float32)


def i32(values: Any) -> Array:
    """Return numbers as int32."""
    return np.asarray(values, np.int32)


def message(case: Any) -> str:
    """Return a name for a case of a table."""
    return f"{case}"[:100]


def refused_by_both(name: str, inputs: Any, arguments: Mapping[str, Any], layouts: Any = None) -> None:
    """Assert that both raise the same class of error."""
    errors = []
    for library in ("nvidia.dali", "torchdali"):
        with pytest.raises(Exception) as caught:
            pipeline(library, name, inputs, arguments, layouts)
        errors.append(type(caught.value))
    real, ours = errors
    assert issubclass(ours, real), f"{ours} instead of {real}"
