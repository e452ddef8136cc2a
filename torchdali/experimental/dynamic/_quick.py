"""Calls on single tensors of the CPU: what is the same for all calls of one form is prepared once.

The form of a call is the operator, its constants, and layouts and numbers of axes of its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from torchdali.dispatch import VIEWS, Call
from torchdali.experimental.dynamic._mode import EvalMode
from torchdali.experimental.dynamic._tensor import Tensor, _of_list
from torchdali.kernels.memory import is_traced
from torchdali.registry import Operator
from torchdali.running import Prepared, fitting, prepare, taken_layouts
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

__all__ = ["Form", "form_of", "form_of_arithmetic", "keep", "run"]

Form = tuple[Any, ...]

_KEPT = 1024  # forms; then all are forgotten
_known: dict[Form, tuple[Prepared, bool]] = {}
_NUMBERS = frozenset((bool, int, float))
_PLAIN = _NUMBERS | {str, type(None), torch.dtype, DALIDataType, DALIImageType, DALIInterpType}


def form_of(name: str, inputs: Sequence[Any], arguments: Mapping[str, Any]) -> Form | None:
    """Return the form of a call, or None where it is not one of single tensors that are computed at once."""
    parts: list[Any] = [name]
    for value in inputs:
        if type(value) is not Tensor or not _add_tensor(parts, value):
            return None
    for key, value in arguments.items():
        kind = type(value)
        if kind in _PLAIN:
            parts += key, kind, value
        elif kind is list or kind is tuple:
            kinds = tuple(map(type, value))
            if not _PLAIN.issuperset(kinds):
                return None
            parts += key, kinds, tuple(value)
        else:
            return None
    return tuple(parts) if _is_now() else None


def form_of_arithmetic(name: str, operands: Sequence[Any]) -> Form | None:
    """Return the form of an arithmetic operation on tensors and numbers, or None, as `form_of`."""
    parts: list[Any] = ["math", name]
    for value in operands:
        kind = type(value)
        if kind in _NUMBERS and value:  # 0.0 and -0.0 would be one form
            parts += kind, value
        elif kind is not Tensor or not _add_tensor(parts, value):
            return None
    return tuple(parts) if Tensor in map(type, operands) and _is_now() else None


def _add_tensor(parts: list[Any], value: Tensor) -> bool:
    values = value._list
    if values is None:
        return False
    sample = values.samples()[0]
    if not sample.is_cpu:
        return False
    parts += values.layout(), sample.ndim
    return True


def _is_now() -> bool:
    now = EvalMode.current() is not EvalMode.deferred
    return now and not is_traced()


def run(form: Form, inputs: Sequence[Any]) -> Any:
    """Return the result of a call of a known form; None for a form that is not known, and for a call that fails."""
    found = _known.get(form)
    if found is None:
        return None
    ready, several = found
    samples = [each.samples()[0] for value in inputs if type(value) is Tensor and (each := value._list) is not None]
    try:
        results = ready.function(*samples)
    except Exception:  # the usual way raises it again, and says where
        return None
    if not isinstance(results, tuple):
        results = (results,)
    apart = () if form[0] in VIEWS else samples
    made = [_wrapped(r, layout, apart) for r, layout in zip(results, ready.layouts, strict=True)]
    return tuple(made) if several else made[0]


def _wrapped(result: torch.Tensor, layout: str, apart: Sequence[torch.Tensor]) -> Tensor:
    """Return a result as a tensor that shares no memory with any of ``apart``."""
    for each in apart:
        if _share_memory(result, each):
            result = result.clone()  # writing into the result must not change the input
    return _of_list(TensorList.from_samples([result], fitting(layout, result.ndim)))


def _share_memory(result: torch.Tensor, given: torch.Tensor) -> bool:
    """Return whether a result is a view of what was given."""
    if given.is_contiguous():
        return 0 <= result.data_ptr() - given.data_ptr() < max(given.nbytes, 1)
    return result.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()


def keep(form: Form, declared: Operator, checked: Call) -> None:
    """Prepare a form for the calls that follow, if the operator works on samples and needs nothing else."""
    schema, options = declared.schema, declared.options
    usual = declared.kind == "sample" and options.make is None and not options.instead
    if not usual or schema.random or checked.per_sample or schema.wants_size:
        return
    if any(part in schema.deprecated for part in form if type(part) is str):
        return  # each call warns
    several = declared.returns_list(checked.constants, len(checked.inputs))
    layouts = taken_layouts(declared, checked.inputs)
    if len(_known) >= _KEPT:
        _known.clear()
    _known[form] = prepare(declared, checked.constants, layouts, frozenset()), several
