"""The chart of images/s."""

from __future__ import annotations

from xml.etree import ElementTree

from benchmarks.speed_chart import chart


def test_bars_are_as_long_as_the_rates() -> None:
    text = chart({"train": {"torchdali": 200.0, "A & B": 100.0}, "validate": {"torchdali": 50.0}})
    root = ElementTree.fromstring(text)
    rectangles = [each for each in root.iter() if each.tag.endswith("rect") and "x" in each.attrib]
    bars = [float(each.attrib["width"]) for each in rectangles]
    assert [bar / bars[0] for bar in bars] == [1.0, 0.5, 0.25]
    assert "A &amp; B" in text
