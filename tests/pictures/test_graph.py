"""The drawing of a graph: well-formed, every box once, no overlaps, edges from top to bottom."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import pytest

from torchdali.pictures import Box, GraphLine, draw_graph

SVG = "{http://www.w3.org/2000/svg}"
GRAPHS = {
    "one": (["a"], []),
    "chain": (["a", "b", "c"], [("a", "b"), ("b", "c")]),
    "diamond": (["a", "b", "c", "d"], [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]),
    "skips layers": (["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]),
    "late parameter": (["a", "b", "c", "r"], [("a", "b"), ("b", "c"), ("r", "c")]),
    "wide": (["a", *"bcdefghij", "z"], [("a", x) for x in "bcdefghij"] + [(x, "z") for x in "bcdefghij"]),
    "apart": (["a", "b", "c", "d"], [("a", "b"), ("c", "d")]),
    "twice": (["a", "b"], [("a", "b"), ("a", "b")]),
    "any order": (["c", "b", "a"], [("a", "b"), ("b", "c")]),
}


def _rectangles(root: ET.Element) -> dict[str, tuple[float, float, float, float]]:
    found = {}
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        found[group.attrib["id"]] = (x, y, x + width, y + height)
    return found


@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_and_edges(name: str) -> None:
    keys, pairs = GRAPHS[name]
    boxes = [Box(key, f"operator {key}", ["a line", "another one"]) for key in keys]
    root = ET.fromstring(draw_graph(boxes, [GraphLine(a, b) for a, b in pairs]))
    places = _rectangles(root)
    assert places.keys() == set(keys)
    assert all(places[a][3] < places[b][1] for a, b in pairs)
    for one, other in itertools.combinations(places.values(), 2):
        assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(left >= 0 and top >= 0 and right <= width and bottom <= height for left, top, right, bottom in places.values())
    lines = [path for path in root.iter(f"{SVG}path") if "marker-end" in path.attrib]
    assert len(lines) == len(pairs)


def test_an_edge_avoids_the_boxes_between() -> None:
    keys, pairs = GRAPHS["skips layers"]
    root = ET.fromstring(draw_graph([Box(key, key * 10) for key in keys], [GraphLine(a, b) for a, b in pairs]))
    long = [path.attrib["d"] for path in root.iter(f"{SVG}path") if path.attrib["d"].count("C") == 3]
    assert len(long) == 1
    places = _rectangles(root)
    bends = [tuple(map(float, part.split()[2].split(","))) for part in long[0].split("C")[1:-1]]
    for (x, y), key in zip(bends, "bc", strict=True):
        assert y == places[key][1] and not places[key][0] <= x <= places[key][2]


def test_a_parameter_is_directly_above_its_consumer() -> None:
    keys, pairs = GRAPHS["late parameter"]
    places = _rectangles(ET.fromstring(draw_graph([Box(key, key) for key in keys], [GraphLine(a, b) for a, b in pairs])))
    assert places["r"][1] == places["b"][1]


def test_texts_are_escaped_and_shares_are_bars() -> None:
    boxes = [Box("<a>", "x < y & z", ["50%"], "gpu", 0.5, 'a "tip"'), Box("b", "b", kind="output")]
    svg = draw_graph(boxes, [GraphLine("<a>", "b", "if <1>", dashed=True)])
    root = ET.fromstring(svg)
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"x < y & z", "50%", "b", "if <1>"} <= texts
    outer, bar = root.findall(f".//{SVG}g[@id='<a>']/{SVG}rect")
    assert float(bar.attrib["width"]) == pytest.approx((float(outer.attrib["width"]) - 8) / 2, abs=0.1)
    assert "stroke-dasharray" in svg and svg._repr_svg_() == svg
