"""Statistics and traces of running pipelines."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from torchdali import fn, pipeline_def
from torchdali.execute.timings import Profile


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def pipe(size=6):
    x = fn.random.uniform(shape=[size, size, 3])
    blurred = fn.gaussian_blur(fn.crop(x, crop=[size - 2, size - 2]), window_size=3)
    return fn.flip(blurred, horizontal=fn.random.coin_flip())


def test_stats_name_operators_and_lines():
    running = pipe()
    for _ in range(3):
        running.run()
    stats = running.stats()
    assert {"crop", "gaussian_blur", "flip", "random.uniform", "random.coin_flip"} <= {
        o.operator for o in stats.operators
    }
    assert all(o.line.startswith("test_stats.py:") and o.per_sample > 0 for o in stats.operators)
    assert abs(sum(o.share for o in stats.operators) - 1) < 1e-6
    assert stats.batches == 3 and stats.samples == 12
    assert "crop" in str(stats) and stats.verdict in str(stats)
    running.close()


def test_the_verdict_follows_from_waiting(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    for waited, consumed, word in (
        (9.0, 1.0, "loader is"),
        (0.1, 9.9, "consumer is"),
        (3.0, 7.0, "equally fast"),
    ):
        profile = Profile()
        profile.note_request(0)
        now[0] += waited
        profile.note_delivery(1)
        now[0] += consumed
        profile.note_request(0)
        assert word in profile.stats(0).verdict


@pytest.mark.parametrize(("size", "events_of_a_batch"), [(64, 4), (6, 1)])  # small samples are one chunk
def test_a_trace_has_every_sample_of_every_operator(size, events_of_a_batch, tmp_path, monkeypatch):
    monkeypatch.setattr("torchdali.execute.chunks.has_gil", lambda: True)
    running = pipe(size)
    running.build()
    running.trace()
    for _ in range(2):
        running.run()
    running.write_trace(tmp_path / "trace.json")
    running.close()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    # A crop of drawn values is a step, which runs over the whole batch.
    for name, count in (("crop", 1), ("gaussian_blur", events_of_a_batch), ("flip", events_of_a_batch)):
        found = [e for e in events if e["name"] == name and re.match(r"batch 0(,|$)", e["args"]["what"])]
        assert len(found) == count and all(e["ph"] == "X" and e["dur"] >= 0 for e in found)
    with pytest.raises(RuntimeError, match=r"call trace\(\) before"):
        other = pipe()
        other.build()
        other.write_trace(tmp_path / "none.json")


def test_operators_of_a_branch_count_only_its_samples(tmp_path):
    @pipeline_def(batch_size=8, num_threads=1, device_id=None, enable_conditionals=True)
    def define():
        number = fn.external_source(lambda info: np.int64(info.idx_in_batch), batch=False)
        image = fn.external_source(lambda info: np.zeros((300 + info.idx_in_batch, 300, 3), np.uint8), batch=False, layout="HWC")
        if number < 3:
            image = fn.gaussian_blur(image, sigma=1.0)
        return image

    pipe = define()
    pipe.build()
    pipe.trace()
    pipe.run()
    pipe.close()
    pipe.write_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    samples = {event["args"]["what"] for event in events if event["name"] == "gaussian_blur" and "batch 0," in event["args"]["what"]}
    assert samples == {f"batch 0, sample {i}" for i in range(3)}
