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
BOX_GAP, LAYER_GAP = 22, 46  # distance between boxes of a layer; distance between layers
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
class _LayoutNode:
    """A box, or a bend of an edge that passes through a layer, with its position."""

    layer: int
    width: float = 8.0
    height: float = 0.0
    box: Box | None = None
    x: float = 0.0  # horizontal position of the center
    above: list[_LayoutNode] = field(default_factory=list)
    below: list[_LayoutNode] = field(default_factory=list)


def draw_graph(boxes: Sequence[Box], edges: Sequence[GraphLine], title: str = "") -> Svg:
    """Draw boxes and edges. The box at an edge's end is below the box at the edge's start.

    Args:
        boxes: The boxes.
        edges: Edges between boxes, without cycles.
        title: Title of the drawing, for screen readers.
    """
    layers = _assign_layers(boxes, edges)
    nodes = {box.key: _LayoutNode(layers[box.key], box.width, box.height, box) for box in boxes}
    paths = [_connect(edge, nodes) for edge in edges]
    rows = _order_layers(_group_by_layer([*nodes.values(), *(bend for path in paths for bend in path[1:-1])]))
    _align(rows)
    tops = _layer_tops(rows)
    left = min((p.x - p.width / 2 for row in rows for p in row), default=0) - PAD
    width = max((p.x + p.width / 2 for row in rows for p in row), default=0) + PAD - left
    height = (tops[-1] + max(p.height for p in rows[-1]) if rows else 0) + PAD
    content = [_render_curve(edge, path, tops, left) for edge, path in zip(edges, paths, strict=True)]
    content += [_render_box(node, tops[node.layer], left) for node in nodes.values()]
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans, Verdana, sans-serif" font-size="11">'
        f"<title>{escape(title)}</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#777"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(content)}</svg>'
    )


def _assign_layers(boxes: Sequence[Box], edges: Iterable[GraphLine]) -> dict[str, int]:
    """Return the layer of each box: the length of the longest path to the box.

    A box without inputs is placed directly above the first box that uses it.
    """
    parents: dict[str, list[str]] = {box.key: [] for box in boxes}
    children: dict[str, list[str]] = {box.key: [] for box in boxes}
    for edge in edges:
        parents[edge.end].append(edge.start)
        children[edge.start].append(edge.end)
    layers: dict[str, int] = {}
    missing_parents = {key: len(each) for key, each in parents.items()}
    ready = [key for key, count in missing_parents.items() if not count]
    for key in ready:  # `ready` grows during the loop
        layers[key] = max((layers[p] + 1 for p in parents[key]), default=0)
        for child in children[key]:
            missing_parents[child] -= 1
            if not missing_parents[child]:
                ready.append(child)
    for key in reversed(ready):
        if not parents[key] and children[key]:
            layers[key] = min(layers[c] for c in children[key]) - 1
    return layers


def _connect(edge: GraphLine, nodes: Mapping[str, _LayoutNode]) -> list[_LayoutNode]:
    """Create and connect the nodes of an edge: the two boxes, and a bend in each layer between the boxes."""
    start, end = nodes[edge.start], nodes[edge.end]
    path = [start, *(_LayoutNode(layer) for layer in range(start.layer + 1, end.layer)), end]
    for upper, lower in itertools.pairwise(path):
        upper.below.append(lower)
        lower.above.append(upper)
    return path


def _group_by_layer(nodes: Iterable[_LayoutNode]) -> list[list[_LayoutNode]]:
    rows: list[list[_LayoutNode]] = []
    for node in nodes:
        rows += [[] for _ in range(node.layer + 1 - len(rows))]
        rows[node.layer].append(node)
    return rows


def _order_layers(rows: list[list[_LayoutNode]]) -> list[list[_LayoutNode]]:
    """Order each layer so that few lines cross.

    In each pass over all layers, the boxes of a layer are sorted by the mean position of the boxes to which they are
    connected in one neighboring layer. This is the layer above in the first pass, the layer below in the second pass,
    and so on.
    """
    _spread(rows)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            row.sort(key=lambda node: _mean_position(node.above if downwards else node.below, node.x))
            _spread([row])
    return rows


def _mean_position(neighbours: Sequence[_LayoutNode], default: float) -> float:
    return sum(node.x for node in neighbours) / len(neighbours) if neighbours else default


def _spread(rows: Iterable[Sequence[_LayoutNode]]) -> None:
    """Position the nodes of each layer side by side, centered at 0."""
    for row in rows:
        x = -(sum(node.width for node in row) + BOX_GAP * (len(row) - 1)) / 2
        for node in row:
            node.x = x + node.width / 2
            x += node.width + BOX_GAP


def _align(rows: Sequence[Sequence[_LayoutNode]]) -> None:
    """Move nodes toward their neighbors; the order and the minimum distances in each layer are kept."""
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            positions = [_mean_position(node.above if downwards else node.below, node.x) for node in row]
            _position_without_overlap(row, positions)


def _position_without_overlap(row: Sequence[_LayoutNode], positions: Sequence[float]) -> None:
    """Position nodes near the desired positions without overlap.

    The result is the mean of two solutions: one moves overlapping nodes to the right, the other moves them to the left.
    """
    right, left = list(positions), list(positions)
    for k in range(1, len(row)):
        right[k] = max(right[k], right[k - 1] + (row[k - 1].width + row[k].width) / 2 + BOX_GAP)
    for k in range(len(row) - 2, -1, -1):
        left[k] = min(left[k], left[k + 1] - (row[k].width + row[k + 1].width) / 2 - BOX_GAP)
    for node, a, b in zip(row, right, left, strict=True):
        node.x = (a + b) / 2


def _layer_tops(rows: Sequence[Sequence[_LayoutNode]]) -> list[float]:
    tops, top = [], float(PAD)
    for row in rows:
        tops.append(top)
        top += max(node.height for node in row) + LAYER_GAP
    return tops


def _render_box(node: _LayoutNode, top: float, left: float) -> str:
    box = node.box
    assert box is not None
    x, middle = node.x - node.width / 2 - left, node.x - left
    stroke, fill = STROKES.get(box.kind, STROKES["cpu"]), FILLS.get(box.kind, FILLS["cpu"])
    parts = [
        f"<g id={quoteattr(box.key)}>",
        f"<title>{escape(box.tip)}</title>" if box.tip else "",
        f'<rect x="{x:.1f}" y="{top:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" rx="5" '
        f'fill="{fill}" stroke="{stroke}"/>',
    ]
    if box.share:
        length = max(1.0, (node.width - 8) * min(1.0, box.share))
        parts.append(
            f'<rect x="{x + 4:.1f}" y="{top + node.height - 4:.1f}" width="{length:.1f}" height="3" fill="#d9542b"/>'
        )
    parts.append(_render_text(middle, top + LINE, box.title, 'font-weight="bold"'))
    parts += [
        _render_text(middle, top + LINE * (k + 2), line, 'font-size="10" fill="#444"')
        for k, line in enumerate(box.lines)
    ]
    return "".join([*parts, "</g>"])


def _render_text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" {style}>{escape(text)}</text>'


def _render_curve(edge: GraphLine, path: Sequence[_LayoutNode], tops: Sequence[float], left: float) -> str:
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
    label = ((x + 2 * to_x) / 3, (y + 2 * to_y) / 3, edge.label)
    halo = 'font-size="9" stroke="white" stroke-width="3"'
    return line + _render_text(*label, halo) + _render_text(*label, 'font-size="9" fill="#666"')
