"""A decoder and what follows it as one operator, which decodes no more of a picture than the result shows.

The parts narrow a `View` (see `declaration.narrowing`), and the library of the fast path makes the pixels that are
left, of several samples in one call. What it does not do, the bodies of the parts do, one after the other; an error has
the number of its part. If there is no library, or it refuses a picture, `_decode_windows` helps the usual chains.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.chunk_function import report
from torchdali.calls.decorators import chunk, operator
from torchdali.calls.preparing import prepare
from torchdali.codecs._native import Task, encoded, run_together
from torchdali.codecs.images import peek_header
from torchdali.codecs.views import View
from torchdali.declaration.batching import EncodedBody, argument_names, shaped
from torchdali.declaration.narrowing import ChainPart, DecodeChain
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Data, Layout, Out, shares
from torchdali.errors import Part
from torchdali.kernels.memory import IN_PLACE, Room, placed
from torchdali.kernels.native import FILTERS, Recipe, library, new_tuple
from torchdali.kernels.normalize import affine
from torchdali.ops import _decode_windows
from torchdali.ops._crop import crop_mirror_normalize, crop_window
from torchdali.ops._decoders import Encoded
from torchdali.ops._resize import FILTER
from torchdali.rng import Rng
from torchdali.types import DALIInterpType

__all__ = ["recipe_of"]

Columns = Mapping[str, Sequence[Any]]
"""Arguments of samples, by their names in the chain, and "inputs", those behind the encoded picture."""


def _layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    last = arguments["chain"].parts[-1]
    return registry[last.operator].output_layouts(("HWC",), last.constants)[0]


def given_per_sample() -> None:
    """Arguments of the parts, under the names that `ChainPart.per_sample` has."""


@operator(layout=_layout)
def _decode_chain(
    data: Encoded,
    anchor: Data | None = None,
    extents: Data | None = None,
    /,
    *,
    chain: DecodeChain,
    out: Out = None,
    **values: Annotated[Any, shares(given_per_sample)],
) -> Data:
    """Do the work of a decoder and of operators behind it.

    Args:
        data: An encoded picture.
        anchor, extents: Arguments of `decoders.image_slice`.
        chain: The parts.
    """
    return _ready(chain).run(data, _columns(values, anchor, extents), None, out)


@operator(layout=_layout)
def _random_decode_chain(
    data: Encoded,
    anchor: Data | None = None,
    extents: Data | None = None,
    /,
    *,
    chain: DecodeChain,
    rng: Rng,
    out: Out = None,
    **values: Annotated[Any, shares(given_per_sample)],
) -> Data:
    """Do the same if a part draws random numbers; see `_decode_chain`."""
    return _ready(chain).run(data, _columns(values, anchor, extents), rng, out)


def _columns(values: Mapping[str, Any], *inputs: Tensor | None) -> Columns:
    return {"inputs": [inputs], **{name: [value] for name, value in values.items()}}


@chunk(_decode_chain, "encoded")
@chunk(_random_decode_chain, "encoded")
def _encoded(constants: Mapping[str, Any]) -> EncodedBody | None:
    ready = _ready(constants["chain"])
    return ready.run_together if ready.is_native else None


@functools.lru_cache(maxsize=64)
def _ready(chain: DecodeChain) -> _Chain:
    return _Chain(chain)


class _Step:
    """A part of a chain, ready to run.

    Attributes:
        narrow: See `Narrow`; it takes what `arguments` returns. None if it takes the whole picture.
        settings: See `Narrowing`.
        varies: It depends on more than the picture's size.
    """

    def __init__(self, part: ChainPart, layout: str) -> None:
        self.operator, self.part = registry[part.operator], part
        narrowing, schema = self.operator.narrowing, self.operator.schema
        assert narrowing is not None
        self.narrow = None if narrowing.prepare is None else narrowing.prepare(part.constants)
        self.settings = narrowing.settings(part.constants) or {}
        self._is_random, self._takes_inputs = schema.random, len(schema.inputs) > 1
        self._axes = [(name, key, self.operator.axes_of(name)) for name, key in part.per_sample.items()]
        self.varies = bool(self._axes) or self._is_random or self._takes_inputs
        layouts = (layout, *[""] * (len(schema.inputs) - 1))
        self._body = prepare(self.operator, part.constants, layouts).single

    def arguments(self, values: Columns, count: int) -> Sequence[dict[str, Any]]:
        """Return the arguments per sample of several samples, and their "inputs"."""
        columns = {name: [shaped(v, axes, name) for v in values[key]] for name, key, axes in self._axes}
        if self._takes_inputs:
            columns["inputs"] = list(values.get("inputs", [()] * count))
        if not columns:
            return [_NOTHING] * count
        if len(columns) == 1:  # as nearly always
            ((name, column),) = columns.items()
            return [{name: value} for value in column]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def run(self, data: Tensor, values: Columns, rng: Rng | None, out: Tensor | None) -> Tensor:
        """Do the work of the part alone."""
        (row,) = self.arguments(values, 1)
        arguments = {k: v for k, v in row.items() if k != "inputs"}
        if self._is_random:
            arguments["rng"] = rng
        if self.operator.schema.wants_out:
            arguments["out"] = out
        result: Tensor = self._body(data, *row.get("inputs", ()), **arguments)
        return result


_NOTHING: dict[str, Any] = {}


class _Chain:
    """A chain, ready to run."""

    def __init__(self, chain: DecodeChain) -> None:
        self._steps = [_Step(part, "HWC" if i else "") for i, part in enumerate(chain.parts)]
        settings = {name: value for step in self._steps for name, value in step.settings.items()}
        self._upright, self._fast, self._filters = settings["upright"], settings["fast"], settings.get("filters", {})
        self._recipe = recipe_of(
            self._upright, self._fast, settings["fancy"], settings.get("inside", False), self._filters,
            settings.get("finish"),
        )  # fmt: skip
        first = next((i for i, step in enumerate(self._steps) if step.varies), len(self._steps))
        self._scale = 0 if chain.scaled and chain.parts[0].operator == "decoders.image" else 1
        self._alike, self._rest = [step.narrow for step in self._steps[:first] if step.narrow], self._steps[first:]
        self._narrow = [step.narrow for step in self._rest if step.narrow]
        self._begin = functools.lru_cache(256)(self._narrowed)
        names = tuple(part.operator for part in chain.parts)
        self._has_window = names in chain.OF_WINDOWS
        self._finish = [_without_crop(step.part) for step in self._steps[2:]] if self._has_window else []

    @property
    def is_native(self) -> bool:
        """True if the library does it."""
        return self._recipe is not None and library() is not None

    def _narrowed(self, height: int, width: int) -> View | None:
        """Return the view that all pictures of a size have in common."""
        view: View | None = View.of(height, width, self._scale)
        for narrow in self._alike:
            view = None if view is None else narrow(view, _NOTHING, None)
        return view

    def _view(self, size: tuple[int, int], varying: Sequence[Mapping[str, Any]], rng: Any) -> View | None:
        """Return what the result shows of a picture; None if the bodies of the parts find out.

        Args:
            varying: Arguments of each part that varies.
        """
        view = self._begin(*size)
        for narrow, arguments in zip(self._narrow, varying, strict=True):
            if view is None:
                return None
            view = narrow(view, arguments, rng)
        return view

    def _varying(self, values: Columns, count: int) -> list[Sequence[Mapping[str, Any]]]:
        """Return the arguments of each sample, of each part that varies."""
        columns = [step.arguments(values, count) for step in self._rest]
        return list(zip(*columns, strict=True)) if columns else [()] * count

    def run_together(
        self,
        sources: Sequence[Tensor | str | None],
        out: Tensor | None,
        rngs: Sequence[Any] | None,
        values: Columns,
        room: Room | None = None,
    ) -> Sequence[Any]:
        """Do several samples by the library; see `EncodedBody`."""
        assert self._recipe is not None
        count = len(sources)
        tasks: list[Task | None] = []
        for data, rng, varying in zip(
            encoded(sources), rngs or [None] * count, self._varying(values, count), strict=True
        ):
            view = None if data is None else self._view(data.size(self._upright), varying, rng)
            tasks.append(None if data is None or view is None else new_tuple(Task, (data, view, b"", None)))
        return run_together(self._recipe, tasks, out, room)

    def run(self, data: Tensor, values: Columns, rng: Rng | None, out: Tensor | None) -> Tensor:
        """Do one sample."""
        result, failure = None, None
        try:
            if self.is_native:
                (result,) = self.run_together([data], None if out is None else out[None], [rng], values)
                result = out if result is IN_PLACE else result
            if result is None and self._has_window:
                result = self._run_window(data, values, rng, out)
        except Exception as error:  # a part raises it again, and says whose it is
            failure = error
        if result is None:
            result = self._run_parts(data, values, rng, out)
        if failure is not None:
            report(failure)
        return result

    def _run_window(self, data: Tensor, values: Columns, rng: Rng | None, out: Tensor | None) -> Tensor | None:
        """Do one sample in Python, and less than the bodies of the parts do; None if they are no slower."""
        with Part(0):
            picture = _decode_windows.Encoded(data, peek_header(data), self._upright, self._fast)
        if rng is not None:
            rng.restart()
        (varying,) = self._varying(values, 1)
        view = self._view(picture.size, varying, rng)
        pixels = None if view is None else _decode_windows.decoded_view(picture, view, self._filters)
        if pixels is None:
            return None
        for step in self._finish:
            with Part(-1):
                pixels = step.run(pixels, values, None, out)
        return placed(pixels, out)

    def _run_parts(self, data: Tensor, values: Columns, rng: Rng | None, out: Tensor | None) -> Tensor:
        """Do one sample by the bodies of the parts, one after the other."""
        if rng is not None:
            rng.restart()
        last = len(self._steps) - 1
        for i, step in enumerate(self._steps):
            with Part(i):
                data = step.run(data, values, rng, out if i == last else None)
        return placed(data, out)


def _without_crop(part: ChainPart) -> _Step:
    """Return a `crop_mirror_normalize` whose window is cut already."""
    names = argument_names(crop_window)
    constants, per_sample = (
        {k: v for k, v in each.items() if k not in names} for each in (part.constants, part.per_sample)
    )
    return _Step(ChainPart(part.operator, constants, per_sample), "HWC")


# ---------------------------------------------------------------- recipes of the library


_FILTERS: dict[str, Any] = {
    "antialias": True, "interp_type": DALIInterpType.INTERP_LINEAR, "mag_filter": None, "min_filter": None,
}  # fmt: skip
_FINISH: dict[str, Any] = {
    "dtype": torch.float32, "mean": [0.0], "output_layout": "CHW", "scale": 1.0, "shift": 0.0, "std": [1.0],
}  # fmt: skip


def recipe_of(
    upright: bool, fast: bool, fancy: bool, inside: bool, filters: Mapping[str, Any], finish: Mapping[str, Any] | None
) -> Recipe | None:
    """Return the recipe for the settings of a chain; None if there is none, or the usual way has to find the error.

    Args:
        inside: The filter sees nothing beyond the window; else its edge is repeated.
        finish: Arguments of `crop_mirror_normalize`; None for ``(H, W, 3)`` bytes.
    """
    chosen = {**_FILTERS, **filters}
    growing, shrinking = (
        FILTER.get(chosen["interp_type"] if chosen[k] is None else chosen[k]) for k in ("mag_filter", "min_filter")
    )
    if growing not in FILTERS or shrinking not in FILTERS:
        return None
    common: dict[str, Any] = {
        "upright": upright, "fast": fast, "fancy": fancy, "growing": growing, "shrinking": shrinking,
        "antialias": chosen["antialias"], "outside": "drop" if inside else "repeat",
    }  # fmt: skip
    if finish is None:
        return Recipe(**common)
    last = {**_FINISH, **finish}
    planar = last.pop("output_layout") == "CHW"
    levels = torch.arange(256, dtype=torch.uint8).view(1, 256, 1).expand(1, 256, 3).contiguous()
    try:
        table = crop_mirror_normalize.body(levels, layout=Layout("HWC"), output_layout="CHW", **last)
        scaling = _scaling(**last) if planar else None
    except (RuntimeError, ValueError, TypeError):
        return None
    return Recipe(dtype=last["dtype"], planar=planar, values=table.view(3, 256), scaling=scaling, **common)


def _scaling(
    dtype: torch.dtype, mean: list[float], std: list[float], scale: float, shift: float
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return factors and offsets of the channels; None if the table is to be used."""
    scaling = affine(tuple(mean), tuple(std), scale, shift, 3, 3)
    factor, offset = ((1.0,), (0.0,)) if scaling is None else (scaling.factor, scaling.offset)
    is_simple = scaling is None or scaling.centre == (0.0,)
    if dtype != torch.float32 or not is_simple or not all(map(math.isfinite, (*factor, *offset))):
        return None
    return factor * (3 // len(factor)), offset * (3 // len(offset))
