"""The contact sheet: images in a grid, with captions below them and headings above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFont

__all__ = ["Tile", "TileRow", "contact_sheet", "contact_table"]

Font: TypeAlias = "ImageFont.FreeTypeFont | ImageFont.ImageFont"
GAP = 6
WIDTH = 1000  # maximum width of the sheet if no number of columns is passed
TEXT = 12
LINE = 16
_BACKGROUND, _INK = (255, 255, 255), (20, 20, 20)


@dataclass(frozen=True)
class Tile:
    """An image with lines of text below it."""

    image: Image.Image
    caption: tuple[str, ...] = ()

    @property
    def height(self) -> int:
        """Height with the caption."""
        return self.image.height + LINE * len(self.caption)


@dataclass(frozen=True)
class TileRow:
    """Tiles side by side, with a heading above them."""

    tiles: Sequence[Tile]
    heading: str = ""
    headings: Sequence[str] = field(default=())  # one heading per tile


def contact_sheet(tiles: Sequence[Tile], columns: int | None = None, heading: str = "") -> Image.Image:
    """Return a grid of tiles, row by row.

    Args:
        columns: Number of columns; by default, as many as fit into 1000 pixels.
        heading: Text above the grid.
    """
    if columns is None:
        widest = max((tile.image.width for tile in tiles), default=1)
        columns = max(1, (WIDTH - GAP) // (widest + GAP))
    rows = [TileRow(tiles[i : i + columns], heading if i == 0 else "") for i in range(0, len(tiles), columns)]
    return contact_table(rows)


def contact_table(rows: Sequence[TileRow]) -> Image.Image:
    """Draw rows of tiles below each other; the tiles of a column are aligned left."""
    columns = max((len(row.tiles) for row in rows), default=0)
    widths = [max((r.tiles[k].image.width for r in rows if k < len(r.tiles)), default=0) for k in range(columns)]
    font = ImageFont.load_default(size=TEXT)
    total = max([sum(widths) + GAP * (columns + 1), *(_text_width(row.heading, font) + 2 * GAP for row in rows)])
    sheet = Image.new("RGB", (total, GAP + sum(map(_row_height, rows))), _BACKGROUND)
    draw, top = ImageDraw.Draw(sheet), GAP
    for row in rows:
        _draw_row(sheet, draw, font, row, widths, top)
        top += _row_height(row)
    return sheet


def _row_height(row: TileRow) -> int:
    above = LINE * (bool(row.heading) + bool(row.headings))
    return above + max((tile.height for tile in row.tiles), default=0) + GAP


def _draw_row(
    sheet: Image.Image, draw: ImageDraw.ImageDraw, font: Font, row: TileRow, widths: Sequence[int], top: int
) -> None:
    if row.heading:
        draw.text((GAP, top), row.heading, _INK, font)
        top += LINE
    left = GAP
    for k, tile in enumerate(row.tiles):
        below = top
        if k < len(row.headings):
            draw.text(
                (left + widths[k] // 2, below), fit_text(row.headings[k], widths[k], font), _INK, font, anchor="ma"
            )
        below += LINE * bool(row.headings)
        sheet.paste(tile.image, (left, below))
        below += tile.image.height + 1
        for line in tile.caption:
            draw.text((left, below), fit_text(line, max(widths[k], tile.image.width), font), _INK, font)
            below += LINE
        left += widths[k] + GAP


def _text_width(text: str, font: Font) -> int:
    return int(font.getlength(text)) + 1 if text else 0


def fit_text(text: str, width: int, font: Font) -> str:
    """Shorten a text to a width in pixels. A file name keeps its end; other texts keep their start."""
    if font.getlength(text) <= width:
        return text
    keep_end = "." in text[-6:]
    for length in range(len(text) - 1, 0, -1):
        shorter = f"…{text[-length:]}" if keep_end else f"{text[:length]}…"
        if font.getlength(shorter) <= width:
            return shorter
    return ""
