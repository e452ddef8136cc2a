"""`normalize` without axes, beside the real DALI."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

from tests import golden
from tests.ops.test_normalize_axes import CASES, IMAGES

pytestmark = pytest.mark.golden


@golden.answered
def delivered(library, arguments):
    package = importlib.import_module(library)
    importlib.import_module(f"{library}.fn")

    def define():
        images = package.fn.external_source(source=itertools.repeat(IMAGES), layout="HWC")
        return package.fn.normalize(images, **arguments)

    pipe = package.pipeline_def(define, batch_size=3, num_threads=1, device_id=None)()
    pipe.build()
    (output,) = pipe.run()
    return [np.array(output.at(i)) for i in range(3)]


@pytest.mark.parametrize("arguments", [arguments for arguments, _ in CASES])
def test_dali_takes_the_same_axes(arguments):
    pairs = zip(delivered("nvidia.dali", arguments), delivered("torchdali", arguments), strict=True)
    for theirs, ours in pairs:
        assert np.allclose(ours, theirs, rtol=2e-3, atol=2e-3)
