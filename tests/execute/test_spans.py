"""Spans of the threads in the timelines of profilers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from torchdali import fn, pipeline_def
from torchdali.execute import spans


@pipeline_def(batch_size=16, num_threads=2, device_id=None, seed=1, num_processes=1)
def pipe() -> Any:
    images = fn.external_source(lambda: [np.zeros((64, 64, 3), np.uint8)] * 16, layout="HWC")
    return fn.flip(fn.resize(images, size=[32, 32]), horizontal=fn.random.coin_flip())


def _spans(config: Any = None) -> dict[str, set[int]]:
    """Return the threads of each of our spans while some batches run."""
    running = pipe()
    running.run()
    with profile(activities=[ProfilerActivity.CPU], experimental_config=config) as profiled:
        for _ in range(6):
            running.run()
    running.close()
    found: dict[str, set[int]] = {}
    for event in profiled.events() or ():
        if event.name.startswith("torchdali: "):
            found.setdefault(event.name, set()).add(event.thread)
    return found


def test_a_profiler_sees_the_wait_for_batches() -> None:
    assert "torchdali: wait for a batch" in _spans()


def test_a_profiler_of_all_threads_sees_the_operators() -> None:
    try:
        everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    except TypeError:
        pytest.skip("this torch profiles the calling thread alone")
    found = _spans(everywhere)
    assert {"torchdali: external_source", "torchdali: random.coin_flip", "torchdali: resize + flip"} <= found.keys()
    assert found["torchdali: resize + flip"] - found["torchdali: wait for a batch"]


@pytest.mark.parametrize(
    ("device", "environment", "expected"),
    [
        ("cuda", {"NSYS_PROFILING_SESSION_ID": "1"}, ["torchdali: x"]),
        ("cuda", {"NVTX_INJECTION64_PATH": "lib"}, ["torchdali: x"]),
        ("cuda", {}, []),
        ("cpu", {"NSYS_PROFILING_SESSION_ID": "1"}, []),
        (None, {"NSYS_PROFILING_SESSION_ID": "1"}, []),
    ],
)
def test_nsight_sees_pipelines_with_a_cuda_device(
    monkeypatch: pytest.MonkeyPatch, device: str | None, environment: dict[str, str], expected: list[str]
) -> None:
    shown: list[str] = []

    @contextlib.contextmanager
    def shows(name: str) -> Iterator[None]:
        shown.append(name)
        yield

    monkeypatch.setattr(torch.cuda.nvtx, "range", shows)
    for name in spans._NSIGHT:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    place = None if device is None else torch.device(device)
    calls: list[int] = []
    spans.add_span(calls.append, "x", place)(3)
    assert (shown, calls, spans.wants_spans(place)) == (expected, [3], bool(expected))
