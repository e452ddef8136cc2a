"""What conditionals record: merging branches, and logic on truth values."""

from __future__ import annotations

from typing import Any

import torch

from torchdali.operator import operator
from torchdali.schema import Data


def _merged_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    on_true, on_false = layouts
    if on_true != on_false:
        raise RuntimeError(
            f"{arguments['what']} has the layout {on_true!r} in one branch and {on_false!r} in the other; both must "
            "have the same layout"
        )
    return on_true


@operator(hidden=True, layout=_merged_layout)
def _merge(on_true: Data | None = None, on_false: Data | None = None, /, *, what: str = "") -> Data:
    """Return the value of the branch that ran."""
    value = on_true if on_true is not None else on_false
    assert value is not None, "no branch ran"
    return value


@operator(hidden=True)
def _not(value: Data, /) -> Data:
    """Return whether a scalar is 0."""
    if value.ndim:
        raise RuntimeError(f"`not` takes a scalar (0D), not {value.ndim} dimensions")
    return value == 0


@operator(hidden=True)
def _logical(value: Data, /, *, expression: str, side: str) -> Data:
    """Check an operand of ``and`` or ``or``."""
    if value.ndim or value.dtype != torch.bool:
        kind = str(value.dtype).removeprefix("torch.")
        raise RuntimeError(
            f"the {side} operand of `{expression}` must be a bool scalar (0D), not {kind} of {value.ndim} "
            "dimensions; compare it with something"
        )
    return value
