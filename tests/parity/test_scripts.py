"""The scripts of ``tests/scripts``, run by the real DALI and by ``torchdali run``: their results agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.encoded_audio import speech, wav

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "scripts"
CASES = {
    **{path.stem: (path.name,) for path in sorted(SCRIPTS.glob("[!_]*.py"))},
    "resnet50 with the proxy": ("resnet50.py", "--data_loader", "dali_proxy"),
}
# Results that are not equal, with their tolerances. docs/differences.md states the reasons.
FAR = {
    "resnet50": {"images": 0.06},
    "resnet50 with the proxy": {"images": 0.06},
    "external_source": {"iterator": 1},
    "augmentations": {
        "hsv": 1, "ycbcr": 1, "rotate": 1, "warp": 1, "resize": 1, "resize to floats": 2e-4, "normalize": 1e-6,
        "mean": 1e-4, "sine": 1e-6, "transforms": 1e-5,
    },
    "getting_started": {"by hand": 1},
    "sequences": {"0": 1, "1": 1},
    "conditionals": {"False": 1, "True": 1},
    "audio": {name: 1e-4 for name in ("2 ", "3 ", "4 ", "5 ", "8 ", "9 ", "12 ")} | {"10 ": 1e-3, "13 ": 0.04},
    "python_functions": {"functions": 1e-4},
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write two classes of images, a list of them, arrays, sequences of frames, and audio files."""
    root = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(1)
    lines = []
    for label, name in enumerate(("blue", "red")):
        (root / "images" / name).mkdir(parents=True)
        for i in range(5):
            y, x = np.mgrid[: 60 + 3 * i, : 70 - 2 * i]
            smooth = np.stack([np.sin(x / 9 + i), np.cos(y / 7), np.sin((x + y) / 11 + label)], 2) * 90
            pixels = np.clip(smooth + 128 + random.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / "images" / name / f"{name}_{i:02}.jpg", quality=95)
            lines.append(f"{name}/{name}_{i:02}.jpg {label}\n")
    (root / "list.txt").write_text("".join(lines[::2] + lines[1::2]))
    (root / "arrays").mkdir()
    for i in range(3):
        np.save(root / "arrays" / f"{i}.npy", random.random((5 + i, 4), np.float32))
    for s in range(2):
        (root / "frames" / str(s)).mkdir(parents=True)
        for i in range(10):
            frame = random.integers(0, 255, (24, 30, 3), np.uint8)
            Image.fromarray(frame).save(root / "frames" / str(s) / f"{i:03}.png")
    (root / "sounds").mkdir()
    for i in range(2):
        (root / "sounds" / f"{i}.wav").write_bytes(wav(speech(2000 + 500 * i, 2, i), 8000))
    return root


def run(command, script, data, out, *arguments):
    done = subprocess.run(
        [sys.executable, *command, str(SCRIPTS / script), str(data), str(out), *arguments],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(np.load(out))


@pytest.mark.parametrize("case", CASES)
def test_results_agree(case, data, tmp_path):
    script, *arguments = CASES[case]
    wanted = run([], script, data, tmp_path / "dali.npz", *arguments)
    found = run(["-m", "torchdali", "run"], script, data, tmp_path / "torchdali.npz", *arguments)
    assert found.keys() == wanted.keys() and len(wanted) > 2
    far = []
    for name, value in wanted.items():
        other = found[name]
        assert other.dtype == value.dtype and other.shape == value.shape, name
        if value.dtype.kind not in "biuf":
            assert (other == value).all(), name
            continue
        allowed = max((d for start, d in FAR.get(case, {}).items() if name.startswith(start)), default=0)
        distance = np.abs(other.astype(np.float64) - value.astype(np.float64)).max(initial=0)
        if not distance <= allowed:
            far.append(f"{name}: {distance:g}")
    assert not far
