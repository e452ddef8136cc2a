"""Inputs that equalize, clahe, debayer, jpeg_compression_distortion and dump_image reject, as the real DALI does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.libraries import check, described

pytestmark = pytest.mark.golden

TILES = {"tiles_x": 2, "tiles_y": 2, "clip_limit": 2.0}
BLUE = {"blue_position": [0, 0]}

# operator, shape, type, layout, arguments
CASES = [
    ("equalize", (4, 6, 3), "int8", "HWC", {}),
    ("equalize", (4, 6, 3), "float32", "HWC", {}),
    ("equalize", (2, 4, 6, 3), "uint8", "DHWC", {}),
    ("equalize", (6,), "uint8", "W", {}),
    ("equalize", (0, 6, 3), "uint8", "HWC", {}),
    ("equalize", (4, 6, 129), "uint8", "HWC", {}),
    ("equalize", (0, 3, 4, 6), "uint8", "FCHW", {}),
    ("clahe", (4, 6, 3), "uint16", "HWC", TILES),
    ("clahe", (4, 6, 2), "uint8", "HWC", TILES),
    ("clahe", (3, 4, 6), "uint8", "CHW", TILES),
    ("clahe", (4, 6), "uint8", None, TILES),
    ("clahe", (2, 4, 6, 3), "uint8", None, TILES),
    ("clahe", (0, 6, 3), "uint8", "HWC", TILES),
    ("clahe", (4, 6, 3), "uint8", "HWC", {"tiles_x": 2, "tiles_y": 2}),
    ("debayer", (4, 6), "int8", "HW", BLUE),
    ("debayer", (4, 6), "float32", "HW", BLUE),
    ("debayer", (4, 6, 3), "uint8", "HWC", BLUE),
    ("debayer", (1, 4, 6), "uint8", "CHW", BLUE),
    ("debayer", (3, 6), "uint8", "HW", BLUE),
    ("debayer", (4, 5), "uint8", "HW", BLUE),
    ("debayer", (0, 6), "uint8", "HW", BLUE),
    ("debayer", (4, 6), "uint8", "HW", {}),
    ("debayer", (4, 6), "uint8", "HW", {"blue_position": [2, 0]}),
    ("debayer", (4, 6), "uint8", "HW", {"blue_position": [0, 0, 0]}),
    ("debayer", (4, 6), "uint8", "HW", {**BLUE, "algorithm": "best"}),
    ("debayer", (4, 6), "uint8", "HW", {**BLUE, "algorithm": "default_npp"}),
    ("debayer", (4, 6), "uint16", "HW", {**BLUE, "algorithm": "vng_ocv"}),
    ("debayer", (4, 6), "uint8", "HW", {**BLUE, "algorithm": "GRAY_OCV"}),
    ("jpeg_compression_distortion", (4, 6, 3), "int8", "HWC", {}),
    ("jpeg_compression_distortion", (4, 6, 1), "uint8", "HWC", {}),
    ("jpeg_compression_distortion", (4, 6), "uint8", "HW", {}),
    ("jpeg_compression_distortion", (2, 4, 6, 3), "uint8", "DHWC", {}),
    ("jpeg_compression_distortion", (0, 6, 3), "uint8", "HWC", {}),
    ("jpeg_compression_distortion", (0, 4, 6, 3), "uint8", "FHWC", {}),
    ("dump_image", (4, 6, 2), "uint8", "HWC", {}),
    ("dump_image", (4, 6), "uint8", "HW", {}),
    ("dump_image", (4, 6, 3), "int16", "HWC", {}),
    ("dump_image", (0, 6, 3), "uint8", "HWC", {}),
    ("dump_image", (4, 6, 3), "uint8", "HWC", {"input_layout": "CHW"}),
    ("dump_image", (4, 6, 3), "uint8", "HWC", {"suffix": "no/folder"}),
]


@pytest.mark.parametrize(("name", "shape", "dtype", "layout", "arguments"), CASES)
def test_refusals(tmp_path, monkeypatch, name, shape, dtype, layout, arguments):
    monkeypatch.chdir(tmp_path)
    sample = np.ones(shape, dtype)

    def run(library: Any) -> Any:
        pipe = library.Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pipe:
            node = library.fn.external_source(lambda: [sample], layout=layout)
            pipe.set_outputs(getattr(library.fn, name)(node, **arguments))
        pipe.build()
        return described(pipe.run())

    check(run)


def test_a_position_per_frame():
    frames = np.random.default_rng(1).integers(0, 256, (2, 10, 12)).astype(np.uint8)
    places = np.array([[0, 1], [1, 1]], np.int32)

    def run(library: Any) -> Any:
        pipe = library.Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pipe:
            node = library.fn.external_source(lambda: [frames], layout="FHW")
            each = library.fn.per_frame(library.fn.external_source(lambda: [places]))
            pipe.set_outputs(library.fn.debayer(node, blue_position=each))
        pipe.build()
        return described(pipe.run())

    check(run)
