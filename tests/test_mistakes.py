"""Mistakes that everybody makes once: what the message says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import docs
from torchdali import Pipeline, fn, operator, ops, pipeline_def, types
from torchdali.plugin.pytorch import DALIGenericIterator


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


def test_own_operators_return_tensors() -> None:
    with docs.own_operators():

        @operator
        def forgetful(image: Any, /) -> Any:
            """Forget to return."""

        with pytest.raises(TypeError, match="'forgetful' failed on sample 0") as error:
            _run(lambda: fn.forgetful(_image()))
    assert "returned a NoneType, not a tensor" in str(error.value)


def test_classes_refuse_unknown_arguments_when_they_are_made() -> None:
    with pytest.raises(KeyError, match="did you mean 'size'"):
        ops.Resize(sizee=3)
    assert ops.Resize(size=3, seed=1, preserve=True, bytes_per_sample_hint=8).device == "cpu"


def test_a_factory_is_no_pipeline() -> None:
    def training() -> Any:
        return _image()

    with pytest.raises(AttributeError, match=r"training.* is no pipeline; call"):
        DALIGenericIterator(training, ["images"])


def test_unknown_arguments_of_a_pipeline_are_those_of_pipeline() -> None:
    with pytest.raises(TypeError, match=r"^Pipeline\.__init__\(\) got .* 'batch_sise'"):
        Pipeline(batch_sise=3)


def test_misspelt_words_are_corrected() -> None:
    with pytest.raises(AttributeError, match=r"did you mean .*INTERP_LINEAR"):
        getattr(types, "INTERP_LINAER")  # noqa: B009  mypy would see the mistake
    with pytest.raises(AttributeError, match="did you mean resize"):
        getattr(fn, "resise")  # noqa: B009
