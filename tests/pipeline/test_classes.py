"""Positional arguments of operator classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torchdali import Pipeline, fn, ops


def test_classes_of_python_functions_accept_positional_arguments() -> None:
    def halves(x: Any) -> Any:
        return x // 2, x % 2

    pipe = Pipeline(1, 1, None)
    with pipe:
        made = ops.PythonFunction(halves, 2, "cpu")(fn.constant(idata=[5, 6]))
        pipe.set_outputs(*made)
    assert [np.asarray(out.at(0)).tolist() for out in pipe.run()] == [[2, 3], [1, 0]]
    with pytest.raises(TypeError, match="too many positional arguments: it accepts none"):
        ops.Resize(3)
    with pytest.raises(TypeError, match="multiple values for function"):
        ops.PythonFunction(halves, function=halves)
