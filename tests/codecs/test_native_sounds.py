"""Resampling and small files on the fast path: values match the Python path, and unsupported inputs are rejected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.encoded_audio import encoded, speech
from tests.helpers.native import native_codecs, needs_native, switched_off
from torchdali.kernels import native
from torchdali.kernels.audio import resample as module
from torchdali.kernels.audio.resample import resample, resampled_length

pytestmark = needs_native


@pytest.mark.parametrize("quality", [0.0, 25.0, 50.0, 75.0, 100.0])
@pytest.mark.parametrize("scale", [0.013, 0.5, 0.8765, 1.0, 1.2345678, 2.0, 31.7])
def test_resampling_matches_torch(quality: float, scale: float) -> None:
    """Compare with float64 resampling at the exact positions."""
    for shape in ((1,), (3,), (40,), (900,), (900, 1), (500, 3)):
        x = torch.from_numpy(np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32))
        length = resampled_length(len(x), 1.0, scale)
        found = resample(x, 1.0, scale, length, quality)
        exact = resample(x.double(), 1.0, scale, length, quality)
        assert found.shape == (length, *shape[1:]) and found.dtype == torch.float32
        assert (found - exact).abs().max() < 1.5e-6


def test_resampling_is_the_same_on_all_levels_and_for_each_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.from_numpy(speech(3000, 2).astype(np.float32))
    best = [resample(x, 7.0, 5.3, 2000, quality) for quality in (0.0, 20.0, 50.0, 90.0)]
    library = native.library()
    assert library is not None
    for level in range(library.level + 1):
        monkeypatch.setattr(module, "library", lambda level=level: library._replace(level=level))
        for quality, expected in zip((0.0, 20.0, 50.0, 90.0), best, strict=True):
            assert torch.equal(resample(x, 7.0, 5.3, 2000, quality), expected)
            assert torch.equal(resample(x.t()[1], 7.0, 5.3, 2000, quality), expected[:, 1])


def test_nan_and_infinity_stay_within_the_window() -> None:
    for quality, half in ((0.0, 3), (50.0, 16)):
        x = torch.zeros(200)
        x[100] = torch.nan
        found = resample(x, 1.0, 0.99, 198, quality).isnan().nonzero().flatten()
        assert 99 - half <= found.min() and found.max() <= 99 + half


def test_small_files_are_read_in_one_call(tmp_path: Path) -> None:
    contents = [b"a", b"RIFF" * 20, encoded(speech(30), format="WAV").tobytes(), bytes(70000)]
    paths = [str(tmp_path / f"{i} \N{SNOWMAN}") for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        Path(path).write_bytes(content)
    found = native_codecs.read_files(paths)
    assert found is not None and [each.tobytes() for each in found] == contents
    again = native_codecs.read_files(paths[::-1])
    assert again is not None and found[1].tobytes() == contents[1]
    (tmp_path / "none").write_bytes(b"")
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    for wrong in ("none", "large", "absent", "", "a\0b"):
        assert native_codecs.read_files([paths[0], str(tmp_path / wrong)]) is None
    with switched_off():
        assert native_codecs.read_files(paths) is None
