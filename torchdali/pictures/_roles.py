"""Roles of tensors in a drawing: an image, a mask, a clip, a spectrogram, audio, or nothing that can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

__all__ = ["Role", "are_boxes", "are_labels", "as_image", "is_drawable", "role_of"]

Role = Literal["image", "mask", "clip", "spectrogram", "sound", "none"]

_COLORS = (1, 3, 4)
_ORDER = "FDHWC"
_SHORTEST_SOUND = 64  # minimum number of values of an audio signal


def role_of(sample: torch.Tensor, layout: str = "") -> Role:
    """Return the role of a sample according to its layout; without a layout, according to its shape and dtype."""
    if not sample.numel() or sample.is_complex():
        return "none"
    if layout:
        return _role_from_layout(sample, layout)
    return _role_from_shape(sample)


def _role_from_layout(sample: torch.Tensor, layout: str) -> Role:
    if layout in ("ft", "tf"):
        return "spectrogram"
    if _has_image_axes(layout):
        if "F" in layout or "D" in layout:
            return "clip"
        return "mask" if _is_mask(sample, layout) else "image"
    return _role_from_shape(sample)


def _has_image_axes(layout: str) -> bool:
    """Return True if a layout describes one or several images."""
    return {"H", "W"} <= set(layout) <= set(_ORDER)


def _is_mask(sample: torch.Tensor, layout: str) -> bool:
    channels = sample.shape[layout.index("C")] if "C" in layout else 1
    return channels == 1 and _is_index_dtype(sample)


def _is_index_dtype(sample: torch.Tensor) -> bool:
    """Return True for dtypes that typically hold indices of classes and objects, not intensities."""
    return sample.dtype in (torch.bool, torch.int32, torch.int64)


def _role_from_shape(sample: torch.Tensor) -> Role:
    shape = sample.shape
    if sample.ndim == 4 and (shape[-1] in _COLORS or shape[1] in _COLORS) and min(shape[1:3]) > 1:
        return "clip"
    if sample.ndim == 3 and (shape[-1] in _COLORS or shape[0] in _COLORS):
        single = 1 in (shape[0], shape[-1])
        return "mask" if single and _is_index_dtype(sample) else "image"
    if sample.ndim == 2 and min(shape) > 4:
        if sample.is_floating_point():
            return "spectrogram"
        return "mask" if _is_index_dtype(sample) else "image"
    if sample.ndim == 1 or (sample.ndim == 2 and shape[1] <= 2):
        is_wave = sample.is_floating_point() or sample.dtype == torch.int16
        return "sound" if is_wave and len(sample) >= _SHORTEST_SOUND else "none"
    return "none"


def is_drawable(samples: Sequence[torch.Tensor], layout: str = "") -> bool:
    """Return True if `show` can draw any of the samples."""
    return any(role_of(sample, layout) != "none" for sample in samples)


def are_boxes(samples: Sequence[torch.Tensor]) -> bool:
    """Return True if the samples are lists of boxes: ``(n, 4)`` floats."""
    return bool(samples) and all(s.ndim == 2 and s.shape[1] == 4 and s.is_floating_point() for s in samples)


def are_labels(samples: Sequence[torch.Tensor]) -> bool:
    """Return True if the samples are labels: one integer or a list of integers per sample."""
    kinds = {(s.is_floating_point() or s.dtype in (torch.uint8, torch.bool), s.ndim < 2) for s in samples}
    return kinds == {(False, True)}


def as_image(sample: torch.Tensor, layout: str = "") -> torch.Tensor:
    """Return a sample with its channels last: ``(H, W, C)``, or ``(F, H, W, C)`` for the frames of a clip."""
    sample = sample.detach().cpu()
    if _has_image_axes(layout):
        sample = sample.permute([layout.index(axis) for axis in _ORDER if axis in layout])
        sample = sample if "C" in layout else sample.unsqueeze(-1)
        return sample.reshape(-1, *sample.shape[-3:]) if "F" in layout or "D" in layout else sample
    frames = int(role_of(sample) == "clip")
    if sample.ndim == 2 + frames:
        return sample.unsqueeze(-1)
    return sample if sample.shape[-1] in _COLORS else sample.movedim(frames, -1)
