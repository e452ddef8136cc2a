"""Mistakes that everybody makes once: what the message says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from torchdali import fn, pipeline_def, types


def _image() -> Any:
    return fn.external_source(source=lambda: [np.zeros((6, 8, 3), np.uint8)] * 2)


def _run(function: Callable[[], Any]) -> None:
    pipeline_def(batch_size=2, num_threads=1, device_id=None)(function)().run()


RUNNING: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a layout": (
        lambda: fn.resize(fn.reshape(_image(), layout="XYZ"), size=4),
        ValueError,
        "operator 'resize' does not take the layout 'XYZ'",
    ),
    "an order of axes": (
        lambda: fn.transpose(fn.copy(_image()), perm=[0, 1]),
        RuntimeError,
        "operator 'transpose' failed",
    ),
    "a GPU": (lambda: _image().gpu(), RuntimeError, ".gpu() runs on 'gpu', which requires"),
    "an operator on a GPU": (
        lambda: fn.copy(_image(), device="gpu"),
        RuntimeError,
        "operator 'copy' runs on 'gpu', which requires",
    ),
}


@pytest.mark.parametrize("name", RUNNING)
def test_errors_of_a_run_name_operator_and_line(name: str) -> None:
    function, kind, message = RUNNING[name]
    with pytest.raises(kind) as error:
        _run(function)
    assert message in str(error.value)
    assert __file__ in str(error.value)


def test_a_pipeline_without_outputs_says_so() -> None:
    with pytest.raises(NotImplementedError, match="return them from the function"):
        _run(lambda: None)


def test_misspelt_words_are_corrected() -> None:
    with pytest.raises(AttributeError, match=r"did you mean .*INTERP_LINEAR"):
        getattr(types, "INTERP_LINAER")  # noqa: B009  mypy would see the mistake
    with pytest.raises(AttributeError, match="did you mean resize"):
        getattr(fn, "resise")  # noqa: B009
