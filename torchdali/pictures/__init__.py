"""Draw contact sheets of batches, and drawings of graphs.

`show` draws a pipeline's outputs: images, clips, masks, spectrograms and audio, with boxes, labels and names.
This package depends only on plain tensors and Pillow, not on pipelines or nodes.
"""

from __future__ import annotations

from torchdali.pictures._graph import Box, GraphLine, Svg, draw_graph
from torchdali.pictures._html import batch_html, batch_png, document, image_tag, png
from torchdali.pictures._levels import Normalization
from torchdali.pictures._sheet import Tile, TileRow, contact_sheet, contact_table
from torchdali.pictures._show import COUNT, PER_ROW, SIZE, Overlays, Values, arrange, show, tiles_of, values

__all__ = [
    "COUNT", "PER_ROW", "SIZE", "Box", "GraphLine", "Normalization", "Overlays", "Svg", "Tile", "TileRow", "Values",
    "arrange", "batch_html", "batch_png", "contact_sheet", "contact_table", "document", "draw_graph", "image_tag",
    "png", "show", "tiles_of", "values",
]  # fmt: skip
