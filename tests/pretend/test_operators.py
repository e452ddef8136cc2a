"""Every accelerator operator on a mock accelerator: values match the CPU, on one device, without races."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.calls import calls
from tests.pretend import PretendTensor, accelerator, inner
from tests.pretend.cases import NOT_HERE, operators, run
from torchdali.declaration.registry import registry

QUICK = ("crop_mirror_normalize", "resize", "flip", "cat", "_subscript")

FLOATS = {"optical_flow": 2e-3}
"""Largest difference of floats, as a share of the largest value."""

# Operators whose results are always on the CPU, and one with another default algorithm on accelerators.
ON_CPU = frozenset({"shapes", "_shape", "get_property", "random_crop_generator", "roi_random_crop"})
CASES = [(name, call) for name in operators() if name not in NOT_HERE for call in calls(name)]


def _check(name: str, call: str, kernels: bool = True) -> set[str]:
    expected, _ = run(call, "cpu")
    with accelerator(kernels=kernels) as gpu:
        found, seen = run(call, 0)
        assert [b.layout() for b in found] == [b.layout() for b in expected]
        pairs = [(i, a, b) for a, b in zip(expected, found, strict=True) for i in range(len(a)) if len(a) == len(b)]
        for i, a, b in pairs:
            _close(name, np.asarray(a.at(i)), inner(b.samples()[i]).numpy())
        assert not seen or name in ON_CPU or any(isinstance(s, PretendTensor) for b in found for s in b.samples())
        del found, pairs, b
        gc.collect()
        assert not gpu.report.races, "\n".join(gpu.report.races)
    return seen


def _close(name: str, a: Any, b: Any) -> None:
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    if name == "random_resized_crop":  # which on the CPU does not repeat pixels at the window's edge
        a, b = a[4:-4, 4:-4], b[4:-4, 4:-4]
    if a.dtype.kind == "f":
        scale = max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0)))
        assert np.allclose(a, b, rtol=0, atol=FLOATS.get(name, 2e-5) * scale, equal_nan=True), np.abs(a - b).max()
    elif a.size:
        apart = np.abs(a.astype(np.int64) - b.astype(np.int64)).max()
        assert apart <= 1, f"{apart} levels"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `dump_image` write into a temporary folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_some_calls(name: str) -> None:
    for call in calls(name)[:2]:
        assert name in (found := _check(name, call)), found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "call"), CASES, ids=[f"{n} {i}" for i, (n, _) in enumerate(CASES)])
def test_all_calls(name: str, call: str) -> None:
    assert name in (found := _check(name, call)), found


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in operators() if "device" in registry[name].chunks])
def test_operators_run_per_sample_without_kernels(name: str) -> None:
    for call in calls(name):
        assert name in _check(name, call, kernels=False)


def test_the_default_of_debayer_puts_blue_last() -> None:
    for blue in ("[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"):
        (expected,), _ = run(f"fn.debayer(mosaic, blue_position={blue}, algorithm='bilinear_ocv')", "cpu")
        with accelerator():
            (found,), _ = run(f"fn.debayer(mosaic, blue_position={blue})", 0)
            for i, sample in enumerate(found.samples()):
                _close("debayer", np.asarray(expected.at(i))[..., ::-1], inner(sample).numpy())
