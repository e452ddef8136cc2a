"""`show`: draw one batch, or several batches of the same samples, as one contact sheet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image

from torchdali.pictures import _draw
from torchdali.pictures._colors import paint_mask
from torchdali.pictures._levels import Normalization, levels, to_color
from torchdali.pictures._roles import are_boxes, are_labels, as_image, is_drawable, role_of
from torchdali.pictures._sheet import Tile, TileRow, contact_sheet, contact_table

__all__ = ["COUNT", "PER_ROW", "SIZE", "Overlays", "Values", "arrange", "show", "tiles_of", "values"]

COUNT = 16  # samples per sheet
PER_ROW = 6  # samples of each batch if several batches are drawn, one batch per row
SIZE = 160  # length of the longer side of an image, in pixels
_MAX_MASK_VALUES = 32  # maximum number of different values in a uint8 mask


@dataclass(frozen=True)
class Values:
    """The first samples of a batch."""

    samples: Sequence[Any]
    layout: str = ""
    names: Sequence[str] = ()

    def first(self, count: int) -> Values:
        return Values(self.samples[:count], self.layout, self.names[:count])

    @property
    def is_drawable(self) -> bool:
        """True if the samples can be drawn as images."""
        return self._are_tensors and is_drawable(self.samples, self.layout)

    @property
    def are_boxes(self) -> bool:
        return self._are_tensors and are_boxes(self.samples)

    @property
    def are_labels(self) -> bool:
        """True if the samples are integer labels."""
        return self._are_tensors and are_labels(self.samples)

    @property
    def _are_tensors(self) -> bool:
        return bool(self.samples) and all(isinstance(sample, torch.Tensor) for sample in self.samples)


@dataclass(frozen=True)
class Overlays:
    """Data that is drawn on the images, or written below them."""

    labels: Values | None = None
    boxes: Values | None = None
    box_labels: Values | None = None
    masks: Values | None = None
    names: Sequence[str] | None = None
    classes: Sequence[str] = field(default=())
    box_format: str = "ltrb"


def values(batch: Any, count: int) -> Values:
    """Return the first ``count`` samples of a batch.

    Args:
        batch: A `TensorList`, an array or tensor ``(N, ...)``, or a list of samples.
        count: Largest number of samples.

    Raises:
        TypeError: the array or tensor has no axis for samples.
    """
    if hasattr(batch, "source_infos"):
        names = list(batch.source_infos or ())[:count]
        return Values([each.detach().cpu() for each in batch.samples()[:count]], batch.layout(), names)
    if isinstance(batch, np.ndarray):
        batch = torch.from_numpy(batch)
    if isinstance(batch, torch.Tensor) and not batch.ndim:
        raise TypeError("a batch must have an axis for its samples, got a single number")
    return Values([_to_tensor(each) for each in batch[:count]])


def _to_tensor(value: Any) -> Any:
    if isinstance(value, str):
        return value
    tensor = value.torch() if hasattr(value, "source_info") else value
    return tensor.detach().cpu() if isinstance(tensor, torch.Tensor) else torch.as_tensor(np.asarray(tensor))


def show(
    batch: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    labels: Any = None,
    boxes: Any = None,
    box_labels: Any = None,
    box_format: Literal["ltrb", "xywh"] = "ltrb",
    masks: Any = None,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    normalizations: Mapping[str, Normalization] | None = None,
    count: int | None = None,
    columns: int | None = None,
    size: int = SIZE,
) -> Image.Image:
    """Return a contact sheet of a batch: images, video clips, masks, spectrograms or audio.

    No window is opened: a notebook displays the result, and ``show(...).show()`` opens Pillow's viewer. If ``batch`` is
    a tuple or a dictionary of batches, for example from ``pipe.run()`` or a loader, each batch with images is drawn in
    its own row. If you don't pass labels, boxes or masks, `show` looks for them in the other batches: labels are
    integers, one per sample; boxes are ``(n, 4)`` floats; masks are images with one channel and few different values.

    Args:
        batch: A `TensorList`; a tensor or array ``(N, ...)``; a list of samples, which may differ in shape; or a tuple
            or dictionary of these.
        path: File to which the sheet is also saved; the extension determines the format.
        labels: Per sample: a number, a string, or one probability per class.
        boxes: Per sample: ``(n, 4)``, in pixels, or as fractions of the image's width and height.
        box_labels: Per sample: the class indices of the boxes, ``(n,)``.
        box_format: ``"ltrb"`` for left, top, right and bottom; ``"xywh"`` for left, top, width and height.
        masks: Per sample: class indices, ``(H, W)`` or ``(H, W, 1)``; 0 means no class.
        names: Names of the samples, for example their files.
        classes: Names of the classes; a label is an index into this sequence.
        mean, std: Mean and standard deviation of a normalization to undo: one value, or one per channel. Without them,
            floats are stretched to the range of an image.
        normalizations: Normalizations to undo, by batch name.
        count: Number of samples to show; by default 16, or 6 if several batches are drawn.
        columns: Number of columns; by default, as many as fit.
        size: Length of the longer side of an image, in pixels.

    Raises:
        ValueError: there is nothing to draw; only one of `mean` and `std` is passed; `box_format` is unknown; or
            `count`, `columns` or `size` is below 1.
    """
    for name, number in (("count", count), ("columns", columns), ("size", size)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ValueError(f"{name} must be an int of at least 1, got {number!r}")
    if box_format not in ("ltrb", "xywh"):
        raise ValueError(f"box_format must be 'ltrb' or 'xywh', got {box_format!r}")
    if (mean is None) != (std is None):
        raise ValueError("pass both mean and std, or neither")
    normalization = None if mean is None or std is None else Normalization(tuple(mean), tuple(std))
    batches = {name: values(each, count or COUNT) for name, each in name_batches(batch).items()}
    shown, overlays = arrange(batches)
    options = {"labels": labels, "boxes": boxes, "box_labels": box_labels, "masks": masks}
    changes: dict[str, Any] = {n: values(value, count or COUNT) for n, value in options.items() if value is not None}
    if names is not None:
        changes["names"] = list(names)
    overlays = replace(overlays, **changes, classes=classes or (), box_format=box_format)
    if len(shown) > 1 and count is None:
        shown = {name: each.first(PER_ROW) for name, each in shown.items()}
    undo_by_name = {name: (normalizations or {}).get(name, normalization) for name in shown}
    rows = rows_of(shown, overlays, undo_by_name, size)
    sheet = contact_sheet(rows[0].tiles, columns) if len(rows) == 1 else contact_table(rows)
    if path is not None:
        sheet.save(path)
    return sheet


def arrange(batches: Mapping[str, Values]) -> tuple[dict[str, Values], Overlays]:
    """Split batches into batches of images, by name, and the data that is drawn over the first batch of images.

    Raises:
        ValueError: there is nothing to draw.
    """
    shown = {name: each for name, each in batches.items() if each.is_drawable}
    if not shown:
        raise ValueError(f"a batch must contain images, masks, clips, spectrograms or audio, got {_describe(batches)}")
    rest = [each for name, each in batches.items() if name not in shown]
    labels = next((each for each in rest if each.are_labels and all(s.numel() == 1 for s in each.samples)), None)
    boxes = next((each for each in rest if each.are_boxes), None)
    box_labels = next((each for each in rest if boxes and each is not labels and _match_boxes(each, boxes)), None)
    masks = next(((name, each) for name, each in list(shown.items())[1:] if _is_mask_of(each, shown)), None)
    if masks is not None:
        del shown[masks[0]]
    return shown, Overlays(labels, boxes, box_labels, masks and masks[1])


def name_batches(batch: Any) -> Mapping[str, Any]:
    """Return batches by name. Names are keys, field names or "output 0", ...; a single batch has the name ""."""
    if isinstance(batch, list) and batch and isinstance(batch[0], Mapping):  # one mapping per pipeline
        batch = batch[0]
    if isinstance(batch, Mapping):
        return {name: value for name, value in batch.items() if hasattr(value, "__len__")}
    if isinstance(batch, tuple) or (isinstance(batch, list) and batch and hasattr(batch[0], "source_infos")):
        names: Iterable[str] = getattr(batch, "_fields", [f"output {k}" for k in range(len(batch))])
        return dict(zip(names, batch, strict=True))
    return {"": batch}


def _describe(batches: Mapping[str, Values]) -> str:
    def first(each: Values) -> str:
        if not each.samples:
            return "no samples"
        sample = each.samples[0]
        return f"samples {tuple(sample.shape)} {sample.dtype}" if isinstance(sample, torch.Tensor) else "texts"

    return "; ".join(f"{name + ': ' if name else ''}{first(each)}" for name, each in batches.items())


def _match_boxes(labels: Values, boxes: Values) -> bool:
    return labels.are_labels and all(
        label.numel() == len(box) for label, box in zip(labels.samples, boxes.samples, strict=False)
    )


def _is_mask_of(masks: Values, shown: Mapping[str, Values]) -> bool:
    """Return True if a batch contains masks for the first batch of images that is shown."""
    images = next(iter(shown.values()))
    if role_of(images.samples[0], images.layout) != "image":
        return False
    for image, mask in zip(images.samples, masks.samples, strict=False):
        if role_of(mask, masks.layout) not in ("image", "mask") or mask.is_floating_point():
            return False
        mask = as_image(mask, masks.layout)
        if mask.shape[-1] != 1 or mask.shape[:2] != as_image(image, images.layout).shape[:2]:
            return False
        if mask.dtype == torch.uint8 and len(mask.unique()) > _MAX_MASK_VALUES:
            return False
    return True


def rows_of(
    shown: Mapping[str, Values], overlays: Overlays, normalizations: Mapping[str, Normalization | None], size: int
) -> list[TileRow]:
    """Return a row of tiles for each batch; labels and names are written below the first row."""
    rows = []
    for k, (name, each) in enumerate(shown.items()):
        row_overlays = overlays if k == 0 else replace(overlays, labels=None, names=())
        rows.append(TileRow(tiles_of(each, row_overlays, normalizations[name], size), name if len(shown) > 1 else ""))
    return rows


def tiles_of(
    shown: Values, overlays: Overlays, normalization: Normalization | None = None, size: int = SIZE
) -> list[Tile]:
    """Return a tile for each sample."""
    role = next((r for s in shown.samples if (r := role_of(s, shown.layout)) != "none"), "none")
    if role in ("image", "clip", "mask"):
        drawings = _images(shown, role, overlays, normalization, size)
    else:
        draw = _spectrogram if role == "spectrogram" else _sound
        drawings = [draw(sample, shown.layout, size) for sample in shown.samples]
    return [Tile(drawing, _caption(k, shown, overlays)) for k, drawing in enumerate(drawings)]


def _spectrogram(sample: torch.Tensor, layout: str, size: int) -> Image.Image:
    return _draw.draw_spectrogram(sample, size, layout) if sample.numel() else _empty(size)


def _sound(sample: torch.Tensor, layout: str, size: int) -> Image.Image:
    return _draw.draw_waveform(sample, size) if sample.numel() else _empty(size)


def _empty(size: int) -> Image.Image:
    return Image.new("RGB", (size, size // 2), (230, 230, 230))


def _images(
    shown: Values, role: str, overlays: Overlays, normalization: Normalization | None, size: int
) -> list[Image.Image]:
    present = [sample.numel() > 0 for sample in shown.samples]
    images = [
        as_image(sample, shown.layout) for sample, is_present in zip(shown.samples, present, strict=True) if is_present
    ]
    pixels = [paint_mask(each[..., 0]) for each in images] if role == "mask" else _to_colors(images, normalization)
    has_fractions = overlays.boxes is not None and _are_fractions(overlays.boxes)
    pairs, drawings = iter(zip(pixels, images, strict=True)), []
    for k, is_present in enumerate(present):
        if not is_present:
            drawings.append(_empty(size))
            continue
        colored, image = next(pairs)
        if role == "clip":
            drawings.append(_draw.draw_strip(colored, size))
            continue
        if overlays.masks is not None and k < len(overlays.masks.samples):
            mask = as_image(overlays.masks.samples[k], overlays.masks.layout)
            colored = _draw.overlay_mask(colored, mask[..., 0])
        drawing = _draw.enlarge(colored, size)
        if overlays.boxes is not None and k < len(overlays.boxes.samples):
            _add_boxes(drawing, k, overlays, (1, 1) if has_fractions else image.shape[:2])
        drawings.append(drawing)
    return drawings


def _to_colors(images: Sequence[torch.Tensor], normalization: Normalization | None) -> list[Any]:
    return [to_color(pixels) for pixels in levels(images, normalization)]


def _are_fractions(boxes: Values) -> bool:
    return all(not len(each) or float(each.max()) <= 1.01 for each in boxes.samples)


def _add_boxes(drawing: Image.Image, k: int, overlays: Overlays, extent: Sequence[int]) -> None:
    assert overlays.boxes is not None
    boxes = overlays.boxes.samples[k].double().reshape(-1, 4).numpy().copy()
    if overlays.box_format == "xywh":
        boxes[:, 2:] += boxes[:, :2]
    height, width = extent
    classes, names = list(range(len(boxes))), [""] * len(boxes)
    if overlays.box_labels is not None and k < len(overlays.box_labels.samples):
        classes = [int(label) for label in overlays.box_labels.samples[k].reshape(-1)]
        names = [_name(label, overlays.classes) for label in classes]
    _draw.draw_boxes(drawing, boxes / [width, height, width, height], names, classes)


def _name(label: int, classes: Sequence[str]) -> str:
    return str(classes[label]) if 0 <= label < len(classes) else str(label)


def _caption(k: int, shown: Values, overlays: Overlays) -> tuple[str, ...]:
    names = shown.names if overlays.names is None else overlays.names
    labels = () if overlays.labels is None else overlays.labels.samples
    lines = [_label(labels[k], overlays.classes)] if k < len(labels) else []
    if k < len(names) and names[k]:
        lines.append(PurePath(names[k]).name)
    return tuple(lines)


def _label(label: Any, classes: Sequence[str]) -> str:
    """Return the text of a label: a string, class indices, another number, or one probability per class."""
    if isinstance(label, str):
        return label
    if label.numel() == 1:
        number = label.item()
        return _name(number, classes) if isinstance(number, int) else f"{number:.3g}"
    if label.is_floating_point() and label.ndim == 1:
        probabilities, indices = label.topk(min(2, len(label)))
        parts = [(_name(int(n), classes), float(s)) for s, n in zip(probabilities, indices, strict=True) if s > 0]
        return ", ".join(f"{name} {probability:.0%}" for name, probability in parts)
    return ", ".join(_name(int(number), classes) for number in label.reshape(-1)[:8])
