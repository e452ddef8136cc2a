"""The fast path against the real DALI: decode, resize, crop and normalize."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.encoded_images import encoded, smooth_image
from tests.helpers.native import needs_native

pytestmark = [pytest.mark.parity, needs_native]
pytest.importorskip(
    "nvidia.dali", reason="the parity tests compare with the real DALI: install the extra 'parity'"
)


def resized(package: str, files: list[str], crop: list[int], **resize: Any) -> np.ndarray[Any, Any]:
    fn, types = (importlib.import_module(f"{package}.{name}") for name in ("fn", "types"))

    @importlib.import_module(package).pipeline_def(batch_size=len(files), num_threads=2, device_id=None)
    def pipe() -> Any:
        data, _ = fn.readers.file(files=files)
        filters = {k: getattr(types, v) if k == "interp_type" else v for k, v in resize.items()}
        images = fn.resize(fn.decoders.image(data, output_type=types.RGB), **filters)
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", crop=crop, mirror=1)

    made = pipe()
    made.build()
    return np.stack([np.array(sample) for sample in made.run()[0]])


@pytest.mark.parametrize(
    "resize",
    [
        {"resize_shorter": 60.0},
        {"resize_shorter": 300.0},
        {"size": [70.0, 64.0]},
        {"size": [70.0, 64.0], "antialias": False},
        {"resize_shorter": 60.0, "interp_type": "INTERP_CUBIC"},
    ],
    ids=str,
)
def test_resized_images_match_dali(resize: dict[str, Any], tmp_path: Path) -> None:
    files = []
    for number, options in enumerate(({}, {"subsampling": "4:4:4"}, {"progressive": True}, {"restart_marker_rows": 1})):
        file = tmp_path / f"{number}.jpg"
        file.write_bytes(encoded(smooth_image(120 + 7 * number, 175 - 9 * number), "JPEG", **options))
        files.append(str(file))
    found, expected = (resized(package, files, [56, 60], **resize) for package in ("torchdali", "nvidia.dali"))
    off = np.abs(found - expected)
    assert off.max() <= 1
    assert off.mean() < 0.02  # the Python path: 0.17
