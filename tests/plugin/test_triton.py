"""The mark of Triton's backend: which pipeline a model repository serializes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.inside import forget_marks
from torchdali import Pipeline, fn, pipeline_def
from torchdali.plugin import triton


@pytest.fixture(autouse=True)
def _forget_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_marks(monkeypatch)


def marked(value: int) -> Any:
    @triton.autoserialize
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.constant(idata=[value, 2])

    return define


def test_the_marked_pipeline_is_serialized(tmp_path: Path) -> None:
    again = marked(1)
    assert triton.autoserialize(again) is again
    triton.invoke_autoserialize(tmp_path / "model.dali")
    restored = Pipeline.deserialize(filename=str(tmp_path / "model.dali"))
    assert restored.run()[0].as_array().tolist() == [[1, 2]] * 2


@pytest.mark.parametrize("count, message", [(0, "decorates none"), (2, "exactly one function, got 2: .*define")])
def test_another_number_of_marked_pipelines_is_an_error(count: int, message: str, tmp_path: Path) -> None:
    for value in range(count):
        marked(value)
    with pytest.raises(RuntimeError, match=message):
        triton.invoke_autoserialize(tmp_path / "model.dali")
    assert not (tmp_path / "model.dali").exists()


def test_only_pipelines_are_marked() -> None:
    with pytest.raises(TypeError, match="only a pipeline_def can be decorated"):
        triton.autoserialize(lambda: None)
