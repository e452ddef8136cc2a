"""Functions that treat an image as a batch of one sample warn once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import fn, pipeline_def


def run(function: Any) -> Any:
    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def pipe() -> Any:
        images = fn.external_source(source=lambda: [np.zeros((3, 6, 5), np.float32)] * 3, layout="CHW")
        return fn.torch_python_function(images, function=function)

    with pipe() as built:
        return [built.run()[0].shape()[0] for _ in range(2)]


def test_an_added_axis_warns_once() -> None:
    def blurred(image: torch.Tensor) -> torch.Tensor:
        return image[None] * 0.5

    with pytest.warns(UserWarning, match=r"blurred.* returns one axis more than it receives, \(1, 3, 6, 5\).*keepdim=True") as said:
        assert run(blurred) == [(1, 3, 6, 5)] * 2
    assert len(said) == 1


def test_other_code_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(lambda image: image * 0.5) == [(3, 6, 5)] * 2
        assert run(lambda image: torch.stack([image, image])) == [(2, 3, 6, 5)] * 2
