"""Sources that cannot be sent to a new process."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from torchdali import Pipeline, fn


class _Locked:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, info: Any) -> Any:
        return np.zeros(2)


def test_the_error_of_a_source_that_cannot_be_pickled_has_a_cure() -> None:
    pipe = Pipeline(2, 1, None, py_start_method="spawn")
    with pipe:
        pipe.set_outputs(fn.external_source(_Locked(), parallel=True, batch=False))
    with pytest.raises(TypeError, match=r"'spawn': cannot pickle '_thread.lock' object\. Create it in the first call.*fork"):
        pipe.build()
