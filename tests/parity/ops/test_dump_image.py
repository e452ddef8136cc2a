"""`dump_image` against the real DALI: the same files, to the byte."""

from __future__ import annotations

import numpy as np
import pytest

from tests.check import check, pipeline

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)

EXCEPTIONS = {"dump_image": "takes uint8 images (HWC) alone, as DALI"}

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("layout", ["HWC", None])
@pytest.mark.parametrize("arguments", [{}, {"suffix": "look"}, {"input_layout": "HWC"}])
def test_dump_image(tmp_path, monkeypatch, arguments, layout, channels):
    shapes = ((4, 5, channels), (1, 1, channels), (6, 3, channels))
    samples = [RANDOM.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    files = {}
    for library in ("torchdali", "nvidia.dali"):
        folder = tmp_path / library
        folder.mkdir()
        monkeypatch.chdir(folder)
        pipeline(library, "dump_image", [samples], arguments, layout)
        files[library] = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files["torchdali"] == files["nvidia.dali"]
    assert len(files["torchdali"]) == len(samples)
    check("dump_image", [samples], arguments, layout)
