"""Hidden operators (not in `fn`) for ``if``, ``and``, ``or`` and ``not`` in pipelines, and for `auto_aug.core.select`.

A conditional divides a batch among its branches. Each branch processes only its own samples, and an operator of this
module merges the branches' results to one batch.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.batching import truth
from torchdali.declaration.schema import Arguments, Data, PerSample


def _node_title(constants: Mapping[str, Any]) -> str:
    """Return the title of a node: the construct in the user's code, for example ``and``, ``select`` or ``if``."""
    match = re.match("the result of `(.+?)`", constants.get("what", ""))
    return match[1] if match else "if"


def _common_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    first = layouts[0]
    other = next((layout for layout in layouts if layout != first), None)
    if other is not None:
        raise RuntimeError(
            f"{arguments['what']} has the layout {first!r} in one branch and {other!r} in the other; both must "
            "have the same layout"
        )
    return first


def _merged_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    """Return the common layout of the branches that have a layout. A branch without samples may have no layout."""
    return _common_layout(tuple(filter(None, layouts)) or ("",), arguments)


class _Chooser:
    """Function object that returns a sample's value from one of several branches."""

    def __init__(self) -> None:
        self._kind: tuple[torch.dtype, int] | None = None
        self._lock = threading.Lock()

    def __call__(self, *branches: Tensor | None, case: int, what: str = "") -> Tensor:
        value = branches[case]
        assert value is not None, "the executed branch computed nothing"
        if self._kind != (value.dtype, value.ndim):
            self._check_kind(value, what)
        return value

    def _check_kind(self, value: Tensor, what: str) -> None:
        kind = value.dtype, value.ndim
        with self._lock:  # several threads may call this method at the same time
            if self._kind not in (None, kind):
                assert self._kind is not None
                raise RuntimeError(
                    f"{what}: both branches must return the same dtype and number of dimensions, got "
                    f"{_describe(*self._kind)} and {_describe(*kind)}"
                )
            self._kind = kind


def _make_merger() -> Callable[..., Tensor]:
    """Return the function that merges the two branches of one ``if``, sample by sample."""
    choose = _Chooser()

    def merge(on_true: Tensor | None, on_false: Tensor | None, /, *, condition: Any, what: str = "") -> Tensor:
        return choose(on_true, on_false, case=0 if truth(condition) else 1, what=what)

    return merge


def _describe(dtype: torch.dtype, ndim: int) -> str:
    return f"{str(dtype).removeprefix('torch.')} of {ndim} dimensions"


@operator(title=_node_title, merges=True, layout=_merged_layout, make=_make_merger)
def _merge(
    on_true: Data | None = None,
    on_false: Data | None = None,
    /,
    *,
    condition: PerSample[Any],
    what: str = "",
) -> Data:
    """Return each sample's value from the branch that was executed for the sample."""
    return _make_merger()(on_true, on_false, condition=condition, what=what)


@operator(title=_node_title, merges=True, layout=_common_layout, make=_Chooser)
def _choose(*branches: Data, case: PerSample[int], what: str = "") -> Data:
    """Return each sample's value from the branch with the index `case`."""
    return _Chooser()(*branches, case=case, what=what)


@operator(title="split")
def _part(value: Data, /) -> Data:
    """Return the value unchanged. The node's conditions determine the samples that the node processes."""
    return value


@operator(title="select")
def _case(index: Data, /, *, count: int) -> Data:
    """Round a number up to the index of a branch, and clamp the index to the range of the branches' indices."""
    return _clamp_cases(index[None], count)[0]


@chunk(_case)
def _cases_batch(index: Tensor, a: Arguments) -> Tensor:
    return _clamp_cases(index, a.count)


def _clamp_cases(index: Tensor, count: int) -> Tensor:
    if index.ndim != 1:
        raise RuntimeError(f"the index of a branch must be a scalar (0D), got {index.ndim - 1} dimensions")
    rounded = index.ceil() if index.is_floating_point() else index
    return rounded.to(torch.int32).clamp_(0, count - 1)


@operator(title="not")
def _not(value: Data, /) -> Data:
    """Return True if a scalar is 0."""
    if value.ndim:
        raise RuntimeError(f"the operand of `not` must be a scalar (0D), got {value.ndim} dimensions")
    return value == 0


@operator(title=lambda constants: constants["expression"])
def _logical(value: Data, /, *, expression: str, side: str) -> Data:
    """Return an operand of ``and`` or ``or`` unchanged.

    Raises:
        RuntimeError: the operand isn't a bool scalar.
    """
    if value.ndim or value.dtype != torch.bool:
        kind = str(value.dtype).removeprefix("torch.")
        raise RuntimeError(
            f"the {side} operand of `{expression}` must be a bool scalar (0D), got {kind} of {value.ndim} "
            f"dimensions. Compare the operand with a value, for example `x > 0`"
        )
    return value
