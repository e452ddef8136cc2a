"""HTML of images for notebooks."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from typing import Any

from PIL import Image

from torchdali.pictures._show import show, values

__all__ = ["batch_html", "batch_png", "document", "image_tag", "png"]

SAMPLES = 8  # number of samples that a notebook displays


def png(image: Image.Image) -> bytes:
    """Return an image as a PNG."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def image_tag(image: Image.Image) -> str:
    """Return an HTML element with an embedded image."""
    data = base64.b64encode(png(image)).decode()
    return f'<img style="max-width:100%" alt="contact sheet" src="data:image/png;base64,{data}">'


def document(heading: str, facts: Sequence[tuple[str, str]], body: str) -> str:
    """Return HTML with a heading and facts (pairs of name and value), and the HTML `body` below them."""
    rows = "".join(
        f'<span style="margin-right:1.2em"><b>{html.escape(name)}</b> {html.escape(value)}</span>'
        for name, value in facts
    )
    style = "font-family:sans-serif;font-size:13px"
    return f'<div style="{style}"><div><b>{html.escape(heading)}</b></div><div>{rows}</div>{body}</div>'


def batch_html(batch: Any, facts: Sequence[tuple[str, str]], text: str) -> str:
    """Return the notebook display of a `TensorList`: its first samples, or a text if they cannot be drawn."""
    image = _draw_first_samples(batch)
    body = f"<pre>{html.escape(text)}</pre>" if image is None else image_tag(image)
    return document(type(batch).__name__, facts, body)


def batch_png(batch: Any) -> bytes | None:
    """Return the first samples of a `TensorList` as a PNG, or None if they cannot be drawn."""
    image = _draw_first_samples(batch)
    return None if image is None else png(image)


def _draw_first_samples(batch: Any) -> Image.Image | None:
    return show(batch, count=SAMPLES, size=112) if values(batch, 1).is_drawable else None
