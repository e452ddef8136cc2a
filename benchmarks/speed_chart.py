"""Draw a chart of images/s, with one bar per loader.

Usage: ``python -m benchmarks.speed_chart FIGURES.json > docs/speed.svg``. The file contains the images/s of each
loader, by pipeline, in the order of the bars::

    {"train": {"torchdali": 1800, "NVIDIA DALI": 780}, "validate": {"torchdali": 1700, "NVIDIA DALI": 660}}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

__all__ = ["chart"]

_BAR, _GAP, _LEFT, _WIDTH, _HEAD = 18, 5, 170, 330, 26
_HIGHLIGHT, _GRAY = "#1f77b4", "#b8bec6"


def chart(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return a drawing with a group of bars for each pipeline, all on one scale; ours are the colored ones."""
    most = max(rate for rates in figures.values() for rate in rates.values())
    drawn, y = [], 8
    for pipeline, rates in figures.items():
        drawn.append(f'<text x="{_LEFT}" y="{y + 14}" font-weight="bold">{escape(pipeline)}, images/s</text>')
        y += _HEAD
        for loader, rate in rates.items():
            width = _WIDTH * rate / most
            color = _HIGHLIGHT if loader.startswith("torchdali") else _GRAY
            drawn += [
                f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(loader)}</text>',
                f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{color}"/>',
                f'<text x="{_LEFT + width + 6:.1f}" y="{y + 13}">{rate:,.0f}</text>',
            ]
            y += _BAR + _GAP
        y += 8
    size = f'width="{_LEFT + _WIDTH + 60}" height="{y}"'
    style = 'font-family="sans-serif" font-size="13" fill="#222"'
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', paper, *drawn, "</svg>", ""])


if __name__ == "__main__":
    print(chart(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
