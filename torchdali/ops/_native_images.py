"""The arguments of fused operators as recipes of the fast path, where it can do what they ask for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchdali.codecs._native import Encoded, Task, encoded, run_together
from torchdali.declaration.batching import EncodedBody
from torchdali.declaration.schema import Layout
from torchdali.kernels.native import FILTERS, Lines, Recipe, library, run
from torchdali.kernels.normalize import affine
from torchdali.ops._crop import crop_mirror_normalize
from torchdali.ops._resize import FILTER
from torchdali.types import DALIInterpType

__all__ = ["Describe", "Finish", "encoded_body", "make"]

Finish = dict[str, Any]
"""Arguments of `crop_mirror_normalize`, but for those of the window; they may say nothing."""

_LAYOUTS = {"CHW": True, "HWC": False}


def make(
    data: Tensor,
    rows: Lines,
    columns: Lines,
    *,
    upright: bool,
    fast: bool,
    inside: bool,
    filters: dict[str, Any],
    finish: Finish | None = None,
    out: Tensor | None = None,
    scale: int = 1,
) -> Tensor | None:
    """Decode, resize, mirror and normalize in one call; None where that is not possible, for whatever reason.

    Args:
        data: Encoded bytes.
        rows, columns: See `kernels.native.run`.
        upright: Turn the image as its EXIF block says.
        fast: Use libjpeg's faster transform.
        inside: The filter sees nothing beyond the window; else its edge is repeated.
        filters: Of the arguments of `resampling`, those that choose filters.
        finish: Arguments of `crop_mirror_normalize`; None for ``(H, W, 3)`` uint8.
        out: Where to write.
        scale: See `kernels.native.run`.
    """
    recipe = _recipe_of(upright, fast, inside, filters, finish)
    if recipe is None:
        return None
    return run(recipe, data, rows, columns, bool((finish or {}).get("mirror", 0)), out, scale)


def _recipe_of(
    upright: bool, fast: bool, inside: bool, filters: dict[str, Any], finish: Finish | None
) -> Recipe | None:
    last = finish or {}
    return _recipe(
        upright, fast, inside, finish is not None,
        *[_fixed(filters.get(k, _FILTERS[k])) for k in _FILTERS], *[_fixed(last.get(k, _LAST[k])) for k in _LAST],
    )  # fmt: skip


Described = tuple[Lines, Lines] | tuple[Lines, Lines, int]
"""Rows and columns, and perhaps the scale."""
Describe = Callable[[tuple[int, int], Any], "Described | None"]
"""Takes height and width of an image, and the random numbers of a sample; None where Python's way has to do it."""


def encoded_body(
    describe: Describe,
    *,
    upright: bool,
    fast: bool,
    inside: bool,
    filters: dict[str, Any],
    finish: Finish | None = None,
) -> EncodedBody | None:
    """Return what does for several samples in one call what `make` does for one; None where that is not possible.

    Args:
        describe: Chooses the lines of a sample. What it raises, Python's way is to raise.
        upright, fast, inside, filters, finish: See `make`.
    """
    recipe = _recipe_of(upright, fast, inside, filters, finish)
    if library() is None or recipe is None:
        return None
    mirrored = bool((finish or {}).get("mirror", 0))

    def task(data: Encoded | None, rng: Any, mirror: Any, out: Tensor | None) -> Task | None:
        if data is None:
            return None
        try:
            lines = describe(data.size(upright), rng)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
            return None
        if lines is None:
            return None
        return Task(data, lines[0], lines[1], bool(mirror), out, lines[2] if len(lines) > 2 else 1)

    def run(
        sources: Sequence[Tensor | str | None],
        outs: Sequence[Tensor | None],
        rngs: Sequence[Any] | None,
        mirrors: Sequence[Any] | None,
    ) -> Sequence[Tensor | None]:
        count = len(sources)
        each = zip(
            encoded(sources),
            rngs or [None] * count,
            mirrors or [mirrored] * count,
            outs,
            strict=True,
        )
        return run_together(recipe, [task(*one) for one in each])

    return run


_FILTERS: dict[str, Any] = {
    "antialias": True,
    "interp_type": DALIInterpType.INTERP_LINEAR,
    "mag_filter": None,
    "min_filter": None,
}
_LAST: dict[str, Any] = {
    "dtype": torch.float32,
    "mean": 0.0,
    "output_layout": "CHW",
    "pad_output": False,
    "scale": 1.0,
    "shift": 0.0,
    "std": 1.0,
}


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@functools.lru_cache(maxsize=256)
def _recipe(
    upright: bool,
    fast: bool,
    inside: bool,
    normalizes: bool,
    antialias: bool,
    interp_type: DALIInterpType,
    mag_filter: DALIInterpType | None,
    min_filter: DALIInterpType | None,
    dtype: torch.dtype,
    mean: tuple[float, ...] | float,
    output_layout: str,
    pad_output: bool,
    scale: float,
    shift: float,
    std: tuple[float, ...] | float,
) -> Recipe | None:
    """Return the recipe for some arguments; None where there is none, or the usual way has to find the error."""
    growing, shrinking = (FILTER.get(interp_type if chosen is None else chosen) for chosen in (mag_filter, min_filter))
    if growing not in FILTERS or shrinking not in FILTERS:
        return None
    common: dict[str, Any] = {
        "upright": upright, "fast": fast, "growing": growing, "shrinking": shrinking, "antialias": antialias,
        "outside": "drop" if inside else "repeat",
    }  # fmt: skip
    if not normalizes:
        return Recipe(**common)
    planar = _LAYOUTS.get(output_layout or "HWC")
    if planar is None or pad_output:
        return None
    levels = torch.arange(256, dtype=torch.uint8).view(1, 256, 1).expand(1, 256, 3).contiguous()
    last: dict[str, Any] = {
        "dtype": dtype,
        "mean": _listed(mean),
        "scale": scale,
        "shift": shift,
        "std": _listed(std),
    }
    try:
        table = crop_mirror_normalize.body(levels, layout=Layout("HWC"), output_layout="CHW", **last)
        found = affine(tuple(_listed(mean)), tuple(_listed(std)), scale, shift, 3, 3)
    except (RuntimeError, ValueError, TypeError):
        return None
    scaling = None
    if dtype == torch.float32 and planar:
        factor, offset = ((1.0,), (0.0,)) if found is None else (found.factor, found.offset)
        is_simple = found is None or found.centre == (0.0,)
        if is_simple and all(map(math.isfinite, (*factor, *offset))):
            scaling = factor * (3 // len(factor)), offset * (3 // len(offset))
    return Recipe(dtype=dtype, planar=planar, values=table.view(3, 256), scaling=scaling, **common)


def _listed(values: tuple[float, ...] | float) -> list[float]:
    return list(values) if isinstance(values, tuple) else [values]
