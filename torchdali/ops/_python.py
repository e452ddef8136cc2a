"""Operators that call the user's own Python functions.

A function processes one batch after the other, and two threads never call the function at the same time. Therefore the
function may have state, and needn't be thread-safe. If you pass ``pure=True``, worker processes may call the function.
One worker process then processes all samples of a batch.

A chain is a sequence of operators that process one sample completely before they start with the next sample. The
operators of this module can't be part of a chain. To include a function in a chain, declare the function with
`operator` instead, or wrap it with `plugin.pytorch.as_operator`.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import BatchOutput, BatchSize, InputConstraints
from torchdali.errors import batch_level, self_explanatory, warn
from torchdali.tensors import TensorList

__all__ = ["POSITIONAL_ARGUMENTS", "dl_tensor_python_function", "python_function", "torch_python_function"]

POSITIONAL_ARGUMENTS = dict.fromkeys(
    ("python_function", "torch_python_function"),
    ("function", "num_outputs", "device", "batch_processing"),
) | {"dl_tensor_python_function": ("function", "num_outputs", "device")}
"""For each operator, the arguments that the operator's class in `ops` accepts by position, as in DALI."""

AnyBatch = Annotated[TensorList, InputConstraints()]
_Columns = list[list[torch.Tensor]]
Outputs = BatchOutput | tuple[BatchOutput, ...]


def _count_outputs(arguments: Mapping[str, Any]) -> int | None:
    count = int(arguments["num_outputs"])
    return None if count == 1 else count


def _output_layouts(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    output_layouts = arguments["output_layouts"]
    count = int(arguments["num_outputs"])
    if output_layouts is None or isinstance(output_layouts, str):
        return (output_layouts or "",) * max(1, count)
    if len(output_layouts) > count:
        raise batch_level(
            RuntimeError(
                f"the length of `output_layouts` must not be greater than the number of outputs, {count}, got "
                f"{len(output_layouts)}"
            )
        )
    return tuple(layout or "" for layout in output_layouts)


def _is_per_sample(arguments: Mapping[str, Any]) -> bool:
    return not arguments["batch_processing"]


@operator(over="batch", separable=_is_per_sample, outputs=_count_outputs, layout=_output_layouts, preserve=True)
def python_function(
    *inputs: AnyBatch,
    function: Any,
    batch_processing: bool = False,
    num_outputs: int = 1,
    output_layouts: Any = None,
    pure: bool = False,
    size: BatchSize,
) -> Outputs:
    """Call a Python function with NumPy arrays.

    Args:
        inputs: Arguments of the function. Each argument is a copy of a sample, so the function may change the array.
        function: Function that returns an array, or a tuple with one array per output.
        batch_processing: If True, the function is called once per batch, with a list of arrays for each input. By
            default it is called once per sample.
        num_outputs: Number of outputs. Use 0 for a function without a result. By default 1.
        output_layouts: Layouts of the outputs: one layout for all outputs, or one per output. By default the outputs
            have no layout.
        pure: Set this to True if the function's results depend only on its arguments and on `torchdali.Shared` values.
            Worker processes may then run the function. By default False.

    Raises:
        RuntimeError: the function raises, or returns something other than arrays.
    """
    columns = [[_to_array(s) for s in batch.samples()] for batch in inputs]
    return _call(function, columns, batch_processing, num_outputs, size, _from_array)


@operator(over="batch", separable=_is_per_sample, outputs=_count_outputs, layout=_output_layouts, preserve=True)
def torch_python_function(
    *inputs: AnyBatch,
    function: Any,
    batch_processing: bool = False,
    num_outputs: int = 1,
    output_layouts: Any = None,
    pure: bool = False,
    size: BatchSize,
) -> Outputs:
    """Call a function with PyTorch tensors: a Python function, an ``nn.Module`` or a torchvision transform.

    If the inputs are on an accelerator, the function gets tensors on the accelerator and runs on the current stream.

    Args:
        inputs: Arguments of the function. The function must not change the tensors.
        function: Function that returns a tensor, or a tuple with one tensor per output. torchvision's transforms expect
            images ``(C, H, W)``.
        batch_processing: If True, the function is called once per batch, with a list of tensors for each input. For
            each output, the function must then return a list of tensors, or one tensor whose first dimension is the
            batch. Don't use this option with torchvision's transforms: they change only the first tensor of a list, and
            the operator then raises an error. By default the function is called once per sample.
        num_outputs: Number of outputs. Use 0 for a function without a result. By default 1.
        output_layouts: Layouts of the outputs: one layout for all outputs, or one per output. By default the outputs
            have no layout.
        pure: Set this to True if the function's results depend only on its arguments and on `torchdali.Shared` values.
            Worker processes may then run the function. By default False.

    Raises:
        RuntimeError: the function raises, returns something other than tensors, or changes only the first sample.
    """
    columns = [batch.samples() for batch in inputs]
    return _call(function, columns, batch_processing, num_outputs, size, _from_tensor)


@operator(
    over="batch",
    separable=_is_per_sample,
    outputs=_count_outputs,
    layout=_output_layouts,
    preserve=True,
)
def dl_tensor_python_function(
    *inputs: AnyBatch,
    function: Any,
    batch_processing: bool = True,
    num_outputs: int = 1,
    output_layouts: Any = None,
    synchronize_stream: bool = True,
    pure: bool = False,
    size: BatchSize,
) -> Outputs:
    """Call a Python function with DLPack capsules.

    Args:
        inputs: Arguments of the function. Each argument is a list of capsules, one per sample of the input.
        function: Function that returns, for each output, a list of capsules or of objects with ``__dlpack__``.
        batch_processing: If True (the default), the function is called once per batch. If False, it is called once per
            sample, with one capsule for each input.
        num_outputs: Number of outputs. Use 0 for a function without a result. By default 1.
        output_layouts: Layouts of the outputs: one layout for all outputs, or one per output. By default the outputs
            have no layout.
        synchronize_stream: If True (the default) and an input is on a CUDA device, the current stream is synchronized
            before the function is called.
        pure: Set this to True if the function's results depend only on its arguments and on `torchdali.Shared` values.
            Worker processes may then run the function. By default False.

    Raises:
        RuntimeError: the function raises, or returns something other than DLPack tensors.
    """
    columns = [[_to_capsule(s) for s in batch.samples()] for batch in inputs]
    if synchronize_stream and any(batch.device.type == "cuda" for batch in inputs):
        torch.cuda.current_stream().synchronize()
    return _call(function, columns, batch_processing, num_outputs, size, _from_capsule)


def _call(
    function: Callable[..., Any],
    columns: Sequence[Sequence[Any]],
    batched: bool,
    outputs: int,
    size: int,
    convert: Callable[[Any], torch.Tensor],
) -> Outputs:
    """Call the function once per batch or once per sample, and check its results.

    Args:
        columns: The samples of each input.
        size: Number of samples, for a function without inputs.
        convert: Function that converts a result of the user's function to a tensor.

    Returns:
        The list of output samples if the number of outputs is 1; otherwise a tuple with one list per output.
    """
    if batched:
        results = _call_function(function, [list(c) for c in columns], outputs, _ONCE)
        _check_all_changed(function, columns, results[:outputs])
        output_columns: _Columns = [_convert_column(f, convert) for f in results[:outputs]]
    else:
        count = len(columns[0]) if columns else size
        rows = [_call_function(function, [c[i] for c in columns], outputs) for i in range(count)]
        output_columns = [[convert(row[k]) for row in rows] for k in range(outputs)]
        if output_columns and columns and count:
            _warn_of_added_axis(function, columns[0][0], output_columns[0][0])
    return output_columns[0] if outputs == 1 else tuple(output_columns)


def _check_all_changed(function: Callable[..., Any], columns: Sequence[Sequence[Any]], results: Sequence[Any]) -> None:
    """Raise RuntimeError if the function changed only the first sample of a batch.

    torchvision's transforms do this if they are called with a list of tensors.
    """
    for column, result in zip(columns, results, strict=False):
        passed = isinstance(result, (list, tuple)) and len(result) == len(column) > 1
        if not passed or not isinstance(column[0], torch.Tensor):
            continue
        unchanged = [new is old for new, old in zip(result, column, strict=True)]
        if not unchanged[0] and all(unchanged[1:]):
            raise RuntimeError(
                f"{_name(function)} changed only the first of {len(column)} samples, as torchvision's transforms do "
                f"with a list. Pass batch_processing=False to call the function once per sample"
            )


_ONCE = "the function was called once, with one list per input; pass batch_processing=False to call it once per sample"


def _call_function(
    function: Callable[..., Any], inputs: Sequence[Any], outputs: int, advice: str = ""
) -> Sequence[Any]:
    """Call the function, and return its outputs as a sequence.

    Args:
        advice: Hint to add to the message if the function raises TypeError or AttributeError.

    Raises:
        RuntimeError: the function raises, or returns the wrong number of outputs.
    """
    try:
        result = function(*inputs)
    except Exception as error:
        hint = f"\n  {advice}" if advice and isinstance(error, (TypeError, AttributeError)) else ""
        message = f"{_name(function)} raised {type(error).__name__}: {error}{hint}"
        raise self_explanatory(RuntimeError(message)) from error
    if outputs == 0:
        return ()
    if outputs == 1 and not isinstance(result, tuple):
        result = (result,)
    if not isinstance(result, (tuple, list)) or len(result) < outputs or (outputs > 1 and len(result) != outputs):
        count = len(result) if isinstance(result, (tuple, list)) else 1
        hint = "; the result must be a tuple" if not isinstance(result, tuple) else ""
        raise RuntimeError(f"unexpected number of outputs of {_name(function)}: got {count}, expected {outputs}{hint}")
    if result[0] is None:
        raise RuntimeError(f"{_name(function)} must return {outputs} outputs, got None")
    return result


def _convert_column(result: Any, convert: Callable[[Any], torch.Tensor]) -> list[torch.Tensor]:
    samples = list(result) if isinstance(result, (list, tuple)) else list(convert(result).unbind(0))
    return [convert(s) for s in samples]


_warned: weakref.WeakSet[Any] = weakref.WeakSet()  # functions that caused a warning


def _warn_of_added_axis(function: Any, sample: Any, result: torch.Tensor) -> None:
    """Warn once per function that adds a batch axis to an image, as kornia's functions do."""
    if not isinstance(sample, torch.Tensor) or sample.ndim != 3 or result.shape != (1, *sample.shape):
        return
    with contextlib.suppress(TypeError):  # some functions don't support weak references
        if function in _warned:
            return
        _warned.add(function)
        warn(
            f"torch_python_function: {_name(function)} returns one axis more than it receives, {tuple(result.shape)} "
            f"of "
            f"{tuple(sample.shape)}, so it treats an image as a batch. Remove the axis, for example function=lambda "
            f"image: f(image)[0], or pass keepdim=True to kornia's modules"
        )


def _name(function: Any) -> str:
    return f"the function {getattr(function, '__name__', type(function).__name__)!r}"


def _to_array(sample: torch.Tensor) -> Any:
    """Return a copy of a sample as an array, so that the function can change it without affecting other operators."""
    return sample.numpy(force=True).copy()


def _from_array(value: Any) -> torch.Tensor:
    if not isinstance(value, np.ndarray):
        raise RuntimeError(
            f"a Python function must return NumPy arrays, got {type(value).__name__}"
            + ("; use fn.torch_python_function for tensors" * isinstance(value, torch.Tensor))
        )
    value = np.ascontiguousarray(value).reshape(value.shape)
    return torch.from_numpy(value if value.flags.writeable else value.copy())


def _from_tensor(value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise RuntimeError(f"a torch function must return tensors, got {type(value).__name__}")
    return value.detach().contiguous()


def _to_capsule(sample: torch.Tensor) -> Any:
    return sample.detach().__dlpack__()


def _from_capsule(value: Any) -> torch.Tensor:
    try:
        return torch.utils.dlpack.from_dlpack(value)
    except Exception as error:
        raise RuntimeError(f"the function must return DLPack tensors, got {type(value).__name__}: {error}") from None
