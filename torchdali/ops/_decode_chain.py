"""Decode chains: a decoder and the operators after it, such as a crop and a resize, that run as one operator.

A decode chain decodes only the region of an image that its operators use. The operators are called the chain's parts.
Each part edits an `ImageProgram`, which describes how to compute the result from the encoded image (see
`declaration.narrowing`). The native library executes the programs of several samples in one call.

If the native library is missing or doesn't support an image, `_decode_windows` processes common chains. For all other
chains, the implementations of the parts are called one after the other. If a part raises an error, the part's index is
recorded in the error.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from torchdali.calls.chunk_function import report
from torchdali.calls.decorators import chunk, operator
from torchdali.calls.preparing import prepare
from torchdali.codecs._native import read_headers, run_programs
from torchdali.codecs.images import peek_header
from torchdali.codecs.program import ImageProgram
from torchdali.declaration.batching import ChunkResults, EncodedImplementation, argument_names, shape_values
from torchdali.declaration.narrowing import ChainPart, DecodeChain
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Data, Out
from torchdali.errors import FusedPart
from torchdali.kernels.memory import IN_PLACE, SharedBuffer, copy_to_out
from torchdali.kernels.native import ImageOptions, library
from torchdali.ops._crop import crop_window
from torchdali.ops._decode_windows import render_resized
from torchdali.ops._decoders import Encoded
from torchdali.rng import Rng
from torchdali.rng import prepare as draw_ahead

__all__: list[str] = []

Columns = Mapping[str, Sequence[Any]]
"""For each per-sample argument, one value per sample. The key "inputs" has the inputs after the encoded image."""


def _layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    last = arguments["chain"].parts[-1]
    return registry[last.operator].output_layouts(("HWC",), last.constants)[0]


@operator(layout=_layout)
def _decode_chain(
    data: Encoded,
    anchor: Data | None = None,
    extents: Data | None = None,
    /,
    *,
    chain: DecodeChain,
    out: Out = None,
    **values: Any,
) -> Data:
    """Run a decode chain.

    Args:
        data: An encoded image.
        anchor, extents: Inputs of `decoders.image_slice`, if the chain begins with this decoder.
        chain: The decoder and the operators after it.
        values: Per-sample arguments of the operators.
    """
    return _get_decoder(chain).run(data, _columns(values, anchor, extents), None, out)


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
    **values: Any,
) -> Data:
    """Run a decode chain that draws random numbers; see `_decode_chain`."""
    return _get_decoder(chain).run(data, _columns(values, anchor, extents), rng, out)


def _columns(values: Mapping[str, Any], *inputs: Tensor | None) -> Columns:
    return {"inputs": [inputs], **{name: [value] for name, value in values.items()}}


@chunk(_decode_chain, "encoded")
@chunk(_random_decode_chain, "encoded")
def _encoded_implementation(constants: Mapping[str, Any]) -> EncodedImplementation | None:
    return None if library() is None else _get_decoder(constants["chain"]).run_chunk


class _BoundPart:
    """A part of a chain: an operator with its constant arguments.

    Attributes:
        edit: Describes how the operator changes image programs; see `Edit`.
        varies: True if the edit differs between images of the same size, because the operator has per-sample arguments,
            several inputs or random numbers.
    """

    def __init__(self, part: ChainPart, layout: str) -> None:
        self.operator, self.part = registry[part.operator], part
        narrowing, schema = self.operator.narrowing, self.operator.schema
        edit = None if narrowing is None else narrowing.edit(part.constants)
        assert edit is not None
        self.edit = edit
        self._is_random, self._has_inputs = schema.random, len(schema.inputs) > 1
        self._axes = [(name, key, self.operator.axes_of(name)) for name, key in part.per_sample.items()]
        self.varies = bool(self._axes) or self._is_random or self._has_inputs
        layouts = (layout, *[""] * (len(schema.inputs) - 1))
        self._implementation = prepare(self.operator, part.constants, layouts).single

    def arguments(self, values: Columns, count: int) -> Sequence[dict[str, Any]]:
        """Return one dict of arguments per sample. The key "inputs" has the inputs after the encoded image."""
        columns = {name: [shape_values(v, axes, name) for v in values[key]] for name, key, axes in self._axes}
        if self._has_inputs:
            columns["inputs"] = list(values.get("inputs", [()] * count))
        if not columns:
            return [_NO_ARGUMENTS] * count
        if len(columns) == 1:  # the common case
            ((name, column),) = columns.items()
            return [{name: value} for value in column]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def run(self, data: Tensor, values: Columns, rng: Rng | None, out: Tensor | None) -> Tensor:
        """Call the operator's implementation, which doesn't use image programs, for one sample."""
        (row,) = self.arguments(values, 1)
        arguments = {k: v for k, v in row.items() if k != "inputs"}
        if self._is_random:
            arguments["rng"] = rng
        if self.operator.schema.accepts_out:
            arguments["out"] = out
        result: Tensor = self._implementation(data, *row.get("inputs", ()), **arguments)
        return result


_NO_ARGUMENTS: dict[str, Any] = {}


class _FusedDecoder:
    """Runs a decode chain: builds an image program for each sample, and executes it."""

    def __init__(self, chain: DecodeChain) -> None:
        self._parts = [_BoundPart(part, "HWC" if i else "") for i, part in enumerate(chain.parts)]
        self._options = ImageOptions()
        for part in self._parts:
            options = part.edit.options(self._options)
            assert options is not None  # `graph.rewrite` ends a chain before an operator without options
            self._options = options
        first = next((i for i, part in enumerate(self._parts) if part.varies), len(self._parts))
        self._scale = 0 if chain.scaled and chain.parts[0].operator == "decoders.image" else 1
        self._shared_edits = [part.edit.narrow for part in self._parts[:first] if part.edit.narrow]
        self._varying_parts = [part for part in self._parts[first:] if part.edit.narrow]
        self._varying_edits = [part.edit.narrow for part in self._varying_parts if part.edit.narrow]
        self._cached_program = functools.lru_cache(256)(self._common_program)
        self._random_count = sum(part.edit.numbers for part in self._parts)
        self._finish = self._parts[-1].edit.finish
        names = tuple(part.operator for part in chain.parts)
        self._has_window = names in chain.OF_WINDOWS
        self._tail_parts = [_without_crop(part.part) for part in self._parts[2:]] if self._has_window else []

    def _common_program(self, height: int, width: int) -> ImageProgram | None:
        """Build the beginning of the program, which is the same for all images of one size."""
        program: ImageProgram | None = ImageProgram.of(height, width, self._options, scale=self._scale)
        for narrow in self._shared_edits:
            program = None if program is None else narrow(program, _NO_ARGUMENTS, None)
        return program

    def _build(self, size: tuple[int, int], varying: Sequence[Mapping[str, Any]], rng: Any) -> ImageProgram | None:
        """Build the program of an image. Return None if the implementations of the parts must be called instead.

        Args:
            size: Height and width of the image.
            varying: Arguments of the parts whose edits differ from image to image.
        """
        program = self._cached_program(*size)
        for narrow, arguments in zip(self._varying_edits, varying, strict=True):
            if program is None:
                return None
            program = narrow(program, arguments, rng)
        return program

    def _varying(self, values: Columns, count: int) -> list[Sequence[Mapping[str, Any]]]:
        """Return, for each sample, the arguments of the parts whose edits differ from image to image."""
        columns = [part.arguments(values, count) for part in self._varying_parts]
        return list(zip(*columns, strict=True)) if columns else [()] * count

    def run_chunk(
        self,
        sources: Sequence[Tensor | str | None],
        out: Tensor | None,
        rngs: Sequence[Any] | None,
        values: Columns,
        buffer: SharedBuffer | None = None,
    ) -> ChunkResults:
        """Process several samples in one call of the native library; see `EncodedImplementation`."""
        count = len(sources)
        files = read_headers(sources, self._options.match_pillow)
        sample_rngs: Sequence[Any] = [None] * count if rngs is None else rngs
        if self._random_count:
            draw_ahead(sample_rngs, self._random_count)
        programs: list[ImageProgram | None] = []
        for data, rng, varying in zip(files, sample_rngs, self._varying(values, count), strict=True):
            size = None if data is None else data.size(self._options.upright)
            programs.append(None if size is None else self._build(size, varying, rng))
        finish = self._finish
        results = run_programs(files, programs, out, buffer if finish is None else None)
        if finish is not None:
            for k, result in enumerate(results):
                if result is not None:
                    finish(out[k] if out is not None and result is IN_PLACE else result, sample_rngs[k])
        return ChunkResults((results,), [k for k, result in enumerate(results) if result is None])

    def run(self, data: Tensor, values: Columns, rng: Rng | None, out: Tensor | None) -> Tensor:
        """Process one sample."""
        result, failure = None, None
        try:
            if library() is not None:
                ((result,),), _ = self.run_chunk([data], None if out is None else out[None], [rng], values)
                result = out if result is IN_PLACE else result
            if result is None and self._has_window:
                result = self._run_window(data, values, rng, out)
        except Exception as error:  # `_run_parts` raises the error again, with the part's index
            failure = error
        if result is None:
            result = self._run_parts(data, values, rng, out)
        if failure is not None:
            report(failure)
        return result

    def _run_window(self, data: Tensor, values: Columns, rng: Rng | None, out: Tensor | None) -> Tensor | None:
        """Decode and resize only the region that the chain keeps, without the native library.

        Return None if `render_resized` doesn't support the sample's program.
        """
        with FusedPart(0):
            header = peek_header(data)
        if rng is not None:
            rng.restart()
        (varying,) = self._varying(values, 1)
        program = self._build(header.size(self._options.upright), varying, rng)
        pixels = None if program is None else render_resized(data, header, program)
        if pixels is None:
            return None
        for part in self._tail_parts:
            with FusedPart(-1):
                pixels = part.run(pixels, values, None, out)
        return copy_to_out(pixels, out)

    def _run_parts(self, data: Tensor, values: Columns, rng: Rng | None, out: Tensor | None) -> Tensor:
        """Call the implementations of the parts one after the other, for one sample."""
        if rng is not None:
            rng.restart()
        last = len(self._parts) - 1
        for i, part in enumerate(self._parts):
            with FusedPart(i):
                data = part.run(data, values, rng, out if i == last else None)
        return copy_to_out(data, out)


_get_decoder = functools.lru_cache(maxsize=64)(_FusedDecoder)


def _without_crop(part: ChainPart) -> _BoundPart:
    """Return a part for `crop_mirror_normalize` without the crop, for images that are already cropped."""
    names = argument_names(crop_window)
    constants, per_sample = (
        {k: v for k, v in arguments.items() if k not in names} for arguments in (part.constants, part.per_sample)
    )
    return _BoundPart(ChainPart(part.operator, constants, per_sample), "HWC")
