"""Create functions of tensors and batches from the registry's operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchdali.declaration.registry import Operator
from torchdali.errors import did_you_mean
from torchdali.experimental.dynamic._batch import Batch
from torchdali.experimental.dynamic._capture import current_capture
from torchdali.experimental.dynamic._invoke import invoke
from torchdali.experimental.dynamic._rng import RNG, get_default_rng
from torchdali.experimental.dynamic._tensor import Tensor
from torchdali.experimental.dynamic._value import LazyValue

__all__ = ["function_of"]

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_CALL_OPTIONS = ("batch_size", "device")


def function_of(declared: Operator) -> Callable[..., Any]:
    """Create a function of tensors and batches from an operator.

    The function has the operator's inputs and arguments, and these arguments: ``batch_size`` (number of samples of the
    result, if no operand is a batch), ``device``, ``rng`` for random operators, and ``torch=True`` to return a
    `torch.Tensor`.
    """
    signature = _signature(declared)
    required = [p.name for p in signature.parameters.values() if p.kind is _KEYWORD and p.default is p.empty]
    names = frozenset(signature.parameters)
    title = declared.name.rpartition(".")[2]

    def function(
        *inputs: Any,
        batch_size: int | None = None,
        device: Any = None,
        torch: bool = False,
        **arguments: Any,
    ) -> Any:
        capture = current_capture() if device is None else None
        if capture is None:
            result = call(inputs, arguments, batch_size, device)
        else:
            result = capture.repeat(declared, inputs, arguments, batch_size)
            if result is None:
                result = call(inputs, dict(arguments), batch_size, device)
            capture.remember(declared, inputs, arguments, batch_size, result)
        return _as_torch(result) if torch else result

    def call(
        inputs: Sequence[Any],
        arguments: dict[str, Any],
        batch_size: int | None,
        device: Any,
    ) -> Any:
        _check_arguments(title, names, required, arguments)
        rng = None
        if declared.schema.random:
            rng = arguments.pop("rng", None)
            rng = get_default_rng() if rng is None else _check_rng(rng)
        filled = [*inputs, *_inputs_by_name(declared, len(inputs), arguments)]
        return invoke(declared, filled, arguments, batch_size, device, rng)

    function.__name__ = function.__qualname__ = title
    function.__doc__ = declared.implementation.__doc__
    vars(function).update(__signature__=signature, operator=declared)
    return function


# Operators whose inputs have names in DALI. Other inputs are called ``input``, or ``input_0``, ``input_1`` ...
_INPUT_NAMES = {
    "bbox_rotate": ("bboxes", "labels"),
    "decoders.image_slice": ("data", "anchor", "shape_input"),
    "decoders.numpy": ("data",),
    "decoders.video": ("encoded",),
    "experimental.remap": ("input", "mapx", "mapy"),
    "experimental.warp_perspective": ("input", "matrix_input"),
    "filter": ("data", "filter", "fill_value"),
    "slice": ("data", "anchor", "shape_input"),
}
_UNRENAMED = frozenset((
    "expand_dims", "full", "full_like", "io.file.read", "ones_like", "random_bbox_crop", "reductions.std_dev",
    "reductions.variance", "reinterpret", "reshape", "segmentation.select_masks", "squeeze", "warp_affine",
    "zeros_like",
))  # fmt: skip


def _input_parameters(declared: Operator) -> list[inspect.Parameter]:
    """Return the parameters of the operator's inputs, with DALI's names."""
    parameters = declared.schema.signature().parameters.values()
    inputs = [p for p in parameters if p.kind is not _KEYWORD]
    if declared.name in _UNRENAMED or declared.name.startswith("random."):
        return inputs
    names = _INPUT_NAMES.get(declared.name)
    if names is None:
        variadic = any(p.kind is p.VAR_POSITIONAL for p in inputs)
        names = ("input",) if len(inputs) == 1 and not variadic else None
        names = names or tuple(f"input_{i}" for i in range(len(inputs)))
    named = [p.replace(name=name) for p, name in zip(inputs, names, strict=True)]
    if inputs and inputs[-1].kind is inspect.Parameter.VAR_POSITIONAL:
        if len(inputs) == 1:
            named.insert(0, inspect.Parameter("input_0", inspect.Parameter.POSITIONAL_ONLY))
        named[-1] = named[-1].replace(name="inputs")
    return named


def _signature(declared: Operator) -> inspect.Signature:
    parameters = list(declared.schema.signature().parameters.values())
    positional = _input_parameters(declared)
    skipped = {"seed", "name", "preserve", "bytes_per_sample_hint", *_CALL_OPTIONS}
    named = [p for p in parameters if p.kind is _KEYWORD and p.name not in skipped]
    current_names = {p.name for p in named}
    deprecated = [
        inspect.Parameter(n, _KEYWORD, default=None) for n in declared.schema.deprecated if n not in current_names
    ]
    options = [inspect.Parameter(name, _KEYWORD, default=None) for name in _CALL_OPTIONS]
    if declared.schema.random:
        named.append(inspect.Parameter("rng", _KEYWORD, default=None))
    named.append(inspect.Parameter("torch", _KEYWORD, default=False))
    return inspect.Signature([*positional, *options, *named, *deprecated])


def _check_arguments(title: str, names: frozenset[str], required: list[str], arguments: Mapping[str, Any]) -> None:
    for name in arguments:
        if name not in names:
            hint = did_you_mean(name, names)
            raise TypeError(f"{title}() got an unexpected keyword argument {name!r}{hint}")
    for name in required:
        if arguments.get(name) is None:
            raise TypeError(f"{title}() missing required keyword-only argument {name!r}")


def _check_rng(rng: Any) -> RNG:
    if not isinstance(rng, RNG):
        raise TypeError(f"rng must be an RNG, got {type(rng).__name__}")
    return rng


def _inputs_by_name(declared: Operator, count: int, arguments: dict[str, Any]) -> list[Any]:
    """Remove the inputs that were passed by name from the arguments, and return these inputs."""
    remaining = [each.name for each in declared.schema.inputs[count:]]
    return [arguments.pop(name) for name in remaining if name in arguments]


def _as_torch(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return tuple(map(_as_torch, result))
    assert isinstance(result, (Tensor, Batch, LazyValue))
    return result.torch()
