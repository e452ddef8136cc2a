"""Random calls on torchdali and the real DALI: the same outcome, except for a table of known differences."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.check import Array
from tests.helpers.random_calls import Call, Member, expression_call, operator_call
from tests.helpers.random_files import decoder_call, reader_call, write

pytestmark = [pytest.mark.parity, pytest.mark.slow]
pytest.importorskip("nvidia.dali", reason="needs NVIDIA DALI")

from tests.helpers.call_runner import Child, Outcome, Refusal, run  # noqa: E402

FIRST = 1000
DRAWN = {"noise.gaussian", "random.uniform", "random_resized_crop"}
"""Operators whose values are random: other numbers here."""
TOLERANCE = {"audio_resample": 3e-3}
"""Shares of the largest value: the real one adds up positions in single precision."""
NEAREST = 0.1
"""Share of nearest pixels that may be others: those whose position falls on the edge of two."""


class Known(NamedTuple):
    """A known difference: patterns of operators, of the difference and of the rejecting side's message, and the reason."""

    names: str
    what: str
    message: str
    reason: str


KNOWN = [
    Known("normalize", "accepted", "axis index", "negative axes count from the end"),
    Known(
        "normalize",
        "accepted",
        "at least one reduction axis",
        "without axes, each element is normalized by itself",
    ),
    Known(
        "color_space_conversion",
        "accepted",
        "conversion not supported",
        "a color space to itself is a copy",
    ),
    Known(r"reductions\..*", "accepted", "Unsupported types", "more types of results"),
    Known("power_spectrum|spectrogram", "accepted", "ffts plan", "transforms of any length"),
    Known(
        "spectrogram",
        "refused",
        "too short",
        "the real one reads a window beyond the end of the signal",
    ),
    Known("erase", "accepted", "anchor.*==.*shape", "without an anchor, regions begin at 0"),
    Known("pad|slice", "accepted", "Expected|expected", "one value per sample for several axes"),
    Known(
        "warp_affine",
        "accepted",
        "must have 6 elements|2 x 3 tensors",
        "numbers beyond the matrix; a matrix per sample as six numbers",
    ),
    Known(
        r"expression .* [<>]=? .*",
        "values",
        "True|False",
        "floats and negative integers compare as in Python",
    ),
    Known(r"transforms\.shear", "accepted", "matrix", "a matrix per sample as six numbers"),
]


def difference(call: Call, found: Outcome, wanted: Outcome) -> tuple[str, str] | None:
    """Return the difference, and the message of the rejecting side."""
    if isinstance(wanted, Refusal):
        if not wanted.classes:
            return None  # DALI crashed; torchdali did not, or this line would not run
        if not isinstance(found, Refusal):
            return "accepted", wanted.message
        return (
            None
            if wanted.classes[0] in found.classes
            else (
                "class",
                f"{wanted.classes[0]}: {wanted.message} / {found.classes[0]}: {found.message}",
            )
        )
    if isinstance(found, Refusal):
        return "refused", found.message
    if len(found) != len(wanted):
        return "outputs", ""
    for (layout, kind, samples), (their_layout, their_kind, theirs) in zip(
        found, wanted, strict=True
    ):
        if layout != their_layout:
            return "layout", f"{layout!r} instead of {their_layout!r}"
        if kind != their_kind:
            return "type", f"{kind} instead of {their_kind}"
        if [s.shape for s in samples] != [s.shape for s in theirs]:
            return "shape", f"{[s.shape for s in samples]} instead of {[s.shape for s in theirs]}"
        if call.name not in DRAWN:
            for one, other in zip(samples, theirs, strict=True):
                far = ~_near(call.name, one, other)
                if far.sum() > (
                    NEAREST * far.size if Member("INTERP_NN") in call.arguments.values() else 0
                ):
                    return (
                        "values",
                        f"{one[far][:20]} instead of {other[far][:20]}, {far.sum()} of {far.size}",
                    )
    return None


def _near(name: str, one: Array, other: Array) -> Array:
    """Return which values agree: integers may differ by one, floats by 0.02 % of the largest (float16 by 0.2 %)."""
    share = {"i": 1e-6, "u": 1e-6, "b": 0.0}.get(
        one.dtype.kind, 2e-3 if one.dtype == np.float16 else 2e-4
    )
    one, other, least = one.astype(float), other.astype(float), float(one.dtype.kind in "iu")
    largest = np.abs(other[np.isfinite(other)]).max(initial=1)
    return np.isclose(
        one, other, rtol=0, atol=max(least, TOLERANCE.get(name, share) * largest), equal_nan=True
    )


def is_known(call: Call, what: str, message: str) -> bool:
    return any(
        re.fullmatch(k.names, f"{call.name} {call.expression}".strip())
        and k.what == what
        and re.search(k.message, message, re.S)
        for k in KNOWN
    )


@pytest.mark.parametrize(
    ("make", "count"),
    [(operator_call, 600), (expression_call, 300), (decoder_call, 150), (reader_call, 200)],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_random_calls(make: Callable[[int, Path], Call], count: int, tmp_path: Path) -> None:
    if make is reader_call:
        write(tmp_path)
    differ, delivered = [], 0
    with Child() as child:
        for seed in range(FIRST, FIRST + count):
            call = make(seed, tmp_path)
            child.send(call)
            found = run("torchdali", call)
            wanted = child.receive()
            delivered += not isinstance(wanted, Refusal)
            what = difference(call, found, wanted)
            if what and not is_known(call, *what):
                shown = [
                    (layout, samples[0].dtype.name, [s.shape for s in samples])
                    for samples, layout in call.inputs
                ]
                differ.append(
                    f"{seed}: {call.name} {call.expression or call.arguments} of {shown}\n    {': '.join(what)[-700:]}"
                )
    assert not differ, "\n".join(differ)
    assert delivered > count / 3
