"""Draw a graph as SVG, without Graphviz: boxes in layers from top to bottom, connected by curves."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

__all__ = ["Box", "GraphLine", "Svg", "draw_graph"]

CHARACTER = 6.6  # average width of a character in a title, in pixels
SMALL = 5.6  # average width of a character in the lines below the title, in pixels
LINE, PAD = 15, 8
BETWEEN, BELOW = 22, 46  # distance between boxes of a layer; distance between layers
SWEEPS = 12  # number of passes over all layers in `_order_layers`, and again in `_align`
FILLS = {"cpu": "#e8f0fb", "gpu": "#e6f5e4", "mixed": "#e1f4f5", "output": "#fff3d6"}
STROKES = {"cpu": "#4a78b5", "gpu": "#4d9a45", "mixed": "#3a9aa0", "output": "#c99a2e"}


class Svg(str):
    """The text of a drawing, which notebooks display."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file."""
        Path(path).write_text(self, encoding="utf-8")


@dataclass(frozen=True)
class Box:
    """A node of a drawing.

    Attributes:
        key: Name of the box, to which edges refer.
        title: First line of text.
        lines: Lines of text below the title, in a smaller font.
        kind: Determines the color: ``"cpu"``, ``"gpu"``, ``"mixed"`` or ``"output"``.
        share: Length of a bar along the lower side, as a fraction of the box's width; 0 for no bar.
        tip: Tooltip.
    """

    key: str
    title: str
    lines: Sequence[str] = ()
    kind: str = "cpu"
    share: float = 0.0
    tip: str = ""

    @property
    def width(self) -> float:
        """Width in pixels."""
        longest = max([len(self.title) * CHARACTER, *(len(line) * SMALL for line in self.lines)])
        return round(longest + 2 * PAD + 4)

    @property
    def height(self) -> float:
        """Height in pixels."""
        return LINE * (1 + len(self.lines)) + PAD


@dataclass(frozen=True)
class GraphLine:
    """A line from one box to another."""

    start: str
    end: str
    label: str = ""
    dashed: bool = False


@dataclass(eq=False)
class _Spot:
    """A box, or a bend of an edge that passes through a layer, with its position."""

    layer: int
    width: float = 8.0
    height: float = 0.0
    box: Box | None = None
    x: float = 0.0  # horizontal position of the center
    above: list[_Spot] = field(default_factory=list)
    below: list[_Spot] = field(default_factory=list)


def draw_graph(boxes: Sequence[Box], edges: Sequence[GraphLine], title: str = "") -> Svg:
    """Draw boxes and edges. The box at an edge's end is below the box at the edge's start.

    Args:
        boxes: The boxes.
        edges: Edges between boxes, without cycles.
        title: Title of the drawing, for screen readers.
    """
    layers = _layers(boxes, edges)
    places = {box.key: _Spot(layers[box.key], box.width, box.height, box) for box in boxes}
    paths = [_path(edge, places) for edge in edges]
    rows = _order_layers(_rows([*places.values(), *(bend for path in paths for bend in path[1:-1])]))
    _align(rows)
    tops = _tops(rows)
    left = min((p.x - p.width / 2 for row in rows for p in row), default=0) - PAD
    width = max((p.x + p.width / 2 for row in rows for p in row), default=0) + PAD - left
    height = (tops[-1] + max(p.height for p in rows[-1]) if rows else 0) + PAD
    content = [_curve(edge, path, tops, left) for edge, path in zip(edges, paths, strict=True)]
    content += [_box(place, tops[place.layer], left) for place in places.values()]
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans, Verdana, sans-serif" font-size="11">'
        f"<title>{escape(title)}</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#777"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(content)}</svg>'
    )


def _layers(boxes: Sequence[Box], edges: Iterable[GraphLine]) -> dict[str, int]:
    """Return the layer of each box: the length of the longest path to the box.

    A box without inputs is placed directly above the first box that uses it.
    """
    parents: dict[str, list[str]] = {box.key: [] for box in boxes}
    children: dict[str, list[str]] = {box.key: [] for box in boxes}
    for edge in edges:
        parents[edge.end].append(edge.start)
        children[edge.start].append(edge.end)
    layers: dict[str, int] = {}
    waiting = {key: len(each) for key, each in parents.items()}
    free = [key for key, count in waiting.items() if not count]
    for key in free:  # `free` grows during the loop
        layers[key] = max((layers[p] + 1 for p in parents[key]), default=0)
        for child in children[key]:
            waiting[child] -= 1
            if not waiting[child]:
                free.append(child)
    for key in reversed(free):
        if not parents[key] and children[key]:
            layers[key] = min(layers[c] for c in children[key]) - 1
    return layers


def _path(edge: GraphLine, places: Mapping[str, _Spot]) -> list[_Spot]:
    """Create and connect the spots of an edge: the two boxes, and a bend in each layer between the boxes."""
    start, end = places[edge.start], places[edge.end]
    path = [start, *(_Spot(layer) for layer in range(start.layer + 1, end.layer)), end]
    for upper, lower in itertools.pairwise(path):
        upper.below.append(lower)
        lower.above.append(upper)
    return path


def _rows(places: Iterable[_Spot]) -> list[list[_Spot]]:
    rows: list[list[_Spot]] = []
    for place in places:
        rows += [[] for _ in range(place.layer + 1 - len(rows))]
        rows[place.layer].append(place)
    return rows


def _order_layers(rows: list[list[_Spot]]) -> list[list[_Spot]]:
    """Order each layer so that few lines cross.

    In each pass over all layers, the boxes of a layer are sorted by the mean position of the boxes to which they are
    connected in one neighboring layer. This is the layer above in the first pass, the layer below in the second pass,
    and so on.
    """
    _spread(rows)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            row.sort(key=lambda place: _middle(place.above if downwards else place.below, place.x))
            _spread([row])
    return rows


def _middle(neighbours: Sequence[_Spot], otherwise: float) -> float:
    return sum(place.x for place in neighbours) / len(neighbours) if neighbours else otherwise


def _spread(rows: Iterable[Sequence[_Spot]]) -> None:
    """Position the spots of each layer side by side, centered at 0."""
    for row in rows:
        x = -(sum(place.width for place in row) + BETWEEN * (len(row) - 1)) / 2
        for place in row:
            place.x = x + place.width / 2
            x += place.width + BETWEEN


def _align(rows: Sequence[Sequence[_Spot]]) -> None:
    """Move spots toward their neighbors; the order and the minimum distances in each layer are kept."""
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            positions = [_middle(place.above if downwards else place.below, place.x) for place in row]
            _move(row, positions)


def _move(row: Sequence[_Spot], positions: Sequence[float]) -> None:
    """Position spots near the desired positions without overlap.

    The result is the mean of two solutions: one moves overlapping spots to the right, the other moves them to the left.
    """
    right, left = list(positions), list(positions)
    for k in range(1, len(row)):
        right[k] = max(right[k], right[k - 1] + (row[k - 1].width + row[k].width) / 2 + BETWEEN)
    for k in range(len(row) - 2, -1, -1):
        left[k] = min(left[k], left[k + 1] - (row[k].width + row[k + 1].width) / 2 - BETWEEN)
    for place, a, b in zip(row, right, left, strict=True):
        place.x = (a + b) / 2


def _tops(rows: Sequence[Sequence[_Spot]]) -> list[float]:
    tops, top = [], float(PAD)
    for row in rows:
        tops.append(top)
        top += max(place.height for place in row) + BELOW
    return tops


def _box(place: _Spot, top: float, left: float) -> str:
    box = place.box
    assert box is not None
    x, middle = place.x - place.width / 2 - left, place.x - left
    stroke, fill = STROKES.get(box.kind, STROKES["cpu"]), FILLS.get(box.kind, FILLS["cpu"])
    parts = [
        f"<g id={quoteattr(box.key)}>",
        f"<title>{escape(box.tip)}</title>" if box.tip else "",
        f'<rect x="{x:.1f}" y="{top:.1f}" width="{place.width:.1f}" height="{place.height:.1f}" rx="5" '
        f'fill="{fill}" stroke="{stroke}"/>',
    ]
    if box.share:
        length = max(1.0, (place.width - 8) * min(1.0, box.share))
        parts.append(
            f'<rect x="{x + 4:.1f}" y="{top + place.height - 4:.1f}" width="{length:.1f}" height="3" fill="#d9542b"/>'
        )
    parts.append(_text(middle, top + LINE, box.title, 'font-weight="bold"'))
    parts += [
        _text(middle, top + LINE * (k + 2), line, 'font-size="10" fill="#444"') for k, line in enumerate(box.lines)
    ]
    return "".join([*parts, "</g>"])


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" {style}>{escape(text)}</text>'


def _curve(edge: GraphLine, path: Sequence[_Spot], tops: Sequence[float], left: float) -> str:
    first, last = path[0], path[-1]
    points = [(first.x - left, tops[first.layer] + first.height)]
    points += [(bend.x - left, tops[bend.layer]) for bend in path[1:-1]]
    points.append((last.x - left, tops[last.layer]))
    d = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        half = (to_y - y) / 2
        d += f" C{x:.1f},{y + half:.1f} {to_x:.1f},{to_y - half:.1f} {to_x:.1f},{to_y:.1f}"
    dashes = ' stroke-dasharray="5 3"' if edge.dashed else ""
    line = f'<path d="{d}" fill="none" stroke="#777"{dashes} marker-end="url(#tip)"/>'
    if not edge.label:
        return line
    (x, y), (to_x, to_y) = points[-2], points[-1]
    place = ((x + 2 * to_x) / 3, (y + 2 * to_y) / 3, edge.label)
    halo = 'font-size="9" stroke="white" stroke-width="3"'
    return line + _text(*place, halo) + _text(*place, 'font-size="9" fill="#666"')
