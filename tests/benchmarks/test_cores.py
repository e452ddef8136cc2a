"""The forecast of many cores, and the summary of segments with and without the GIL."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.cores import drawing, forecast
from benchmarks.gil import Segment, summary


def test_one_thread_runs_the_segments_in_turn() -> None:
    assert forecast([(100.0, 400.0), (100.0, 400.0)], 1, 1) == pytest.approx(1000.0)


def test_threads_of_one_process_share_a_lock() -> None:
    segments = [(100.0, 400.0)]
    assert forecast(segments, 4, 1, wake=0.0) == pytest.approx(8000.0, rel=0.05)
    assert forecast(segments, 64, 1, wake=0.0) == pytest.approx(10_000.0, rel=0.05)
    assert forecast(segments, 64, 1, wake=20.0) < forecast(segments, 64, 1, wake=0.0)


def test_each_process_has_a_lock() -> None:
    segments = [(100.0, 400.0)]
    one = forecast(segments, 4, 1)
    assert forecast(segments, 16, 4) == pytest.approx(4 * one)
    assert forecast(segments, 16, 4, conduct=100.0) == 10_000.0


def test_summary() -> None:
    samples = [[Segment("a", 1000, 5000), Segment("end", held, 0)] for held in (2000, 3000, 9000)]
    found = summary(samples)
    assert (found.held, found.free, found.releases) == (4.0, 5.0, 1)
    assert found.segments == [(1.0, 5.0), (3.0, 0.0)]
    assert found.lines[0] == ("a -> end", 3.0, 0.0)


def test_drawing() -> None:
    models = [
        {"pipeline": "train", "segments": [(100.0, 900.0)], "samples": 1},
        {"pipeline": "val", "segments": [(100.0, 6000.0)], "samples": 8},
    ]
    rows = [("torchdali", 2, 1, 1500.0, 1000.0), ("torchdali", 2, 2, 1600.0, 1000.0)]
    rows += [("nvidia.dali", 2, 1, 900.0, 2000.0)]
    measured = [{"pipeline": "train", "kind": "Python", "rows": rows}]
    svg = ElementTree.fromstring(drawing(models, measured, [1, 2, 16], 15.0, 20.0))
    found = [element.tag.rpartition("}")[2] for element in svg.iter()]
    dashed = [e for e in svg.iter() if e.get("stroke-dasharray")]
    assert len(dashed) == 4  # Python, in one process, native; DALI
    assert found.count("circle") == 2
    texts = {element.text for element in svg.iter() if element.text}
    assert {"train", "val", "DALI", "torchdali, fast path", "1,000", "16"} <= texts
