"""Draw one sample as one image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw, ImageFont

from torchdali.pictures._colors import class_color, color_map, paint_mask

__all__ = ["draw_boxes", "draw_waveform", "draw_spectrogram", "draw_strip", "enlarge", "overlay_mask"]

Array = npt.NDArray[np.uint8]
FRAMES = 6  # number of frames of a clip that are shown
_RANGE = 80.0  # range of displayed powers in decibels below the maximum
_WAVE_COLOR, _BACKGROUND = (38, 90, 160), (240, 243, 248)


def enlarge(pixels: Array, size: int) -> Image.Image:
    """Resize an image so that its longer side fits `size`; small images are enlarged by an integer factor."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    longer_side = max(image.size)
    if longer_side <= size:
        factor = size // longer_side
        return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    width, height = (max(1, round(side * size / longer_side)) for side in image.size)
    return image.resize((width, height), Image.Resampling.BOX)


def overlay_mask(pixels: Array, mask: torch.Tensor) -> Array:
    """Overlay an image with the colors of a mask, which is resized to the size of the image."""
    colors = paint_mask(mask)
    if colors.shape[:2] != pixels.shape[:2]:
        resized = Image.fromarray(colors).resize(pixels.shape[1::-1], Image.Resampling.NEAREST)
        colors = np.asarray(resized)
    is_object = colors.any(-1, keepdims=True)
    mixed = (pixels.astype(np.uint16) + colors) // 2
    return np.where(is_object, mixed, pixels).astype(np.uint8)


def draw_boxes(
    image: Image.Image, boxes: npt.NDArray[np.float64], names: Sequence[str], classes: Sequence[int]
) -> None:
    """Draw boxes onto an image.

    Args:
        image: The image, which is changed.
        boxes: ``(n, 4)``: left, top, right and bottom, as fractions of the image's width and height.
        names: Names of the boxes; may be empty.
        classes: Classes of the boxes, for their colors.
    """
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=11)
    corners = (boxes * np.array([image.width, image.height] * 2)).round().clip(-(10**6), 10**6).astype(int)
    for k, (left, top, right, bottom) in enumerate(corners.tolist()):
        right, bottom = max(left, min(right, image.width) - 1), max(top, min(bottom, image.height) - 1)
        color = class_color(classes[k])
        draw.rectangle((left, top, right, bottom), outline=color, width=2)
        if k < len(names) and names[k]:
            corner = (max(left, 0) + 3, max(top, 0) + 2)
            draw.rectangle(draw.textbbox(corner, names[k], font), fill=color)
            draw.text(corner, names[k], (255, 255, 255), font)


def draw_strip(frames: Array, size: int) -> Image.Image:
    """Draw some frames of a clip side by side, selected evenly over the clip.

    Args:
        frames: ``(F, H, W, 3)``.
        size: Length of the longer side of a frame, in pixels.
    """
    count = min(FRAMES, len(frames))
    chosen = [frames[round(k * (len(frames) - 1) / max(1, count - 1))] for k in range(count)]
    images = [enlarge(frame, size) for frame in chosen]
    width, height = images[0].size
    strip = Image.new("RGB", (count * (width + 2) - 2, height), (255, 255, 255))
    for k, image in enumerate(images):
        strip.paste(image, (k * (width + 2), 0))
    return strip


def draw_spectrogram(values: torch.Tensor, size: int, layout: str = "") -> Image.Image:
    """Draw a matrix in colors; in a spectrogram, the time axis points right and the frequency axis up.

    If no value is negative and the maximum is more than 100 times the median, the values are drawn in decibels, down to
    80 dB below the maximum.

    Args:
        values: ``(frequencies, times)``, or any matrix.
        size: Maximum height in pixels; the maximum width is twice this number.
        layout: ``"ft"`` or ``"tf"`` for a spectrogram; with other layouts, the first row is at the top.
    """
    matrix = values.detach().cpu().double()
    if layout == "tf":
        matrix = matrix.T
    if layout in ("ft", "tf"):
        matrix = matrix.flip(0)
    matrix = torch.where(matrix.isfinite(), matrix, matrix[matrix.isfinite()].min() if matrix.isfinite().any() else 0.0)
    high = float(matrix.max())
    if float(matrix.min()) >= 0 and high > 100 * float(matrix.median()):
        matrix = 10 * (matrix / (high or 1.0)).clamp(min=10 ** (-_RANGE / 10)).log10()
    low, high = float(matrix.min()), float(matrix.max())
    stretched = ((matrix - low) / ((high - low) or 1.0)).numpy()
    image = Image.fromarray(color_map(stretched.astype(np.float32)))
    rows, columns = matrix.shape
    width = max(size // 2, min(2 * size, columns * max(1, size // max(rows, columns))))
    height = max(size // 2, min(size, rows * max(1, size // max(rows, columns))))
    is_reduced = width < columns or height < rows
    return image.resize((width, height), Image.Resampling.BOX if is_reduced else Image.Resampling.NEAREST)


def draw_waveform(values: torch.Tensor, size: int) -> Image.Image:
    """Draw the waveform of the first channel of audio ``(n,)`` or ``(n, channels)``."""
    finite = values.detach().cpu().double().nan_to_num(0.0, 0.0, 0.0)
    wave = finite.reshape(len(finite), -1)[:, 0].numpy()
    width, height = 2 * size, size // 2
    image = Image.new("RGB", (width, height), _BACKGROUND)
    draw, middle = ImageDraw.Draw(image), (height - 1) / 2
    loudest = np.abs(wave).max() or 1.0
    edges = np.linspace(0, len(wave), width + 1).astype(int)
    for column in range(width):
        part = wave[edges[column] : max(edges[column] + 1, edges[column + 1])]
        high, low = middle - middle * part.max() / loudest, middle - middle * part.min() / loudest
        draw.line((column, round(high), column, round(low)), fill=_WAVE_COLOR)
    return image
