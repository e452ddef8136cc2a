"""What conditionals record: merging branches, and logic on truth values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchdali.operator import operator
from torchdali.schema import Data, PerSample


def _merged_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    on_true, on_false = layouts
    if on_true != on_false:
        raise RuntimeError(
            f"{arguments['what']} has the layout {on_true!r} in one branch and {on_false!r} in the other; both must "
            "have the same layout"
        )
    return on_true


class _Merger:
    """Merges the branches of one `if`; remembers what the first sample was, since all must be alike."""

    def __init__(self) -> None:
        self._kind: tuple[torch.dtype, int] | None = None

    def __call__(
        self, on_true: Tensor | None, on_false: Tensor | None, /, *, condition: Any, what: str = ""
    ) -> Tensor:
        value = on_true if condition else on_false
        assert value is not None, "the branch that was taken computed nothing"
        if self._kind != (value.dtype, value.ndim):
            self._see(value, what)
        return value

    def _see(self, value: Tensor, what: str) -> None:
        kind = value.dtype, value.ndim
        if self._kind is not None:
            raise RuntimeError(
                f"{what} must have the same type and number of dimensions in both branches; found "
                f"{_described(*self._kind)} and {_described(*kind)}"
            )
        self._kind = kind


def _described(dtype: torch.dtype, ndim: int) -> str:
    return f"{str(dtype).removeprefix('torch.')} of {ndim} dimensions"


@operator(hidden=True, layout=_merged_layout, make=_Merger)
def _merge(
    on_true: Data | None = None, on_false: Data | None = None, /, *, condition: PerSample[Any], what: str = ""
) -> Data:
    """Return the value of the branch that was taken; see `_Merger`, which does it."""
    return _Merger()(on_true, on_false, condition=condition, what=what)


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
