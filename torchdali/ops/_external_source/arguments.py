"""Check the arguments of `external_source`, and find the expected properties of each output."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from operator import index
from typing import Any

import torch

from torchdali.declaration.schema import to_dtype
from torchdali.ops._external_source.convert import Expected

__all__ = [
    "CYCLES",
    "accepts_position",
    "check_arguments",
    "expected_outputs",
    "is_factory",
    "is_iterable",
    "output_layouts",
]

CYCLES = {None: "no", False: "no", "no": "no", True: "quiet", "quiet": "quiet", "raise": "raise"}

# ---------------------------------------------------------------- checking a call


def check_arguments(arguments: Mapping[str, Any], hint: int | None) -> None:
    """Check that the arguments of a call don't contradict each other.

    Args:
        arguments: The arguments of `external_source`, by name.
        hint: The argument ``bytes_per_sample_hint``.

    Raises:
        ValueError, TypeError, RuntimeError: an argument is invalid or contradicts another argument.
    """
    depth, count = arguments["prefetch_queue_depth"], arguments["num_outputs"]
    if not arguments["parallel"]:
        for name, value in (("prefetch_queue_depth", depth), ("bytes_per_sample_hint", hint)):
            if value is not None:
                raise ValueError(
                    f"The argument `{name}` is valid only for parallel external sources; pass parallel=True"
                )
    elif arguments["no_copy"] is False:
        raise ValueError(
            "The argument ``no_copy`` cannot be specified to False with parallel=True: workers share memory"
        )
    elif depth is not None and depth < 1:
        raise ValueError(f"``prefetch_queue_depth`` must be a positive integer, got {depth}.")
    if count is not None and index(count) < 1:
        raise ValueError(f"num_outputs must be positive, got {count}")
    expected_outputs(arguments["dtype"], arguments["ndim"], arguments["layout"], count)
    if arguments["source"] is None:
        _check_without_source(arguments)
    elif is_iterable(arguments["source"]):
        _check_iterable(arguments)
    else:
        _check_callable(arguments)


def _check_without_source(arguments: Mapping[str, Any]) -> None:
    if arguments["cycle"]:
        raise ValueError("`cycle` argument is only valid for iterable `source`; pass a `source`")
    if arguments["num_outputs"] is not None:
        raise ValueError(
            "``num_outputs`` needs a ``source`` that returns several values per batch. To feed data, create one "
            "external_source per input"
        )
    if arguments["parallel"]:
        raise ValueError("parallel=True needs a source that the workers can call")


def _check_iterable(arguments: Mapping[str, Any]) -> None:
    source, cycle = arguments["source"], arguments["cycle"]
    if not isinstance(cycle, (bool, str, type(None))) or cycle not in CYCLES:
        raise ValueError(
            f"Invalid value {cycle!r} for the argument `cycle`; expected False, None, 'no', True, 'quiet' or 'raise'"
        )
    if inspect.isgenerator(source) and CYCLES[cycle] != "no":
        raise TypeError(
            "Cannot cycle through a generator object, which cannot start again. If a generator function created the "
            "object, pass that function instead as `source`."
        )
    if is_factory(source):
        inspect.signature(source).bind()  # raises TypeError if the source needs arguments
    if arguments["parallel"] and not arguments["batch"]:
        kind = "a generator function" if inspect.isgeneratorfunction(source) else "an iterable"
        raise TypeError(
            f"Parallel external source with {kind} must be run in a batch mode: specify batch=True, and yield batches"
        )


def _check_callable(arguments: Mapping[str, Any]) -> None:
    accepts_argument = accepts_position(arguments["source"])
    if arguments["cycle"] is not None:
        raise ValueError(
            "`cycle` needs an iterable `source`, got a callable. A callable ends an epoch by raising StopIteration"
        )
    if arguments["parallel"] and not accepts_argument:
        raise TypeError(
            "Callable passed to External Source in parallel mode (when `parallel=True`) must accept exactly one "
            "argument: a SampleInfo with batch=False; otherwise the index of the batch, or a BatchInfo with "
            "batch_info=True. Got a callable that does not accept arguments instead."
        )


def is_iterable(source: Any) -> bool:
    """Return True for an iterable, a generator function, or a class whose instances are iterable."""
    return is_factory(source) or (not inspect.isclass(source) and hasattr(source, "__iter__"))


def is_factory(source: Any) -> bool:
    """Return True for a generator function or a class whose instances are iterable.

    A source of these types is called for each new pass over the data.
    """
    return inspect.isgeneratorfunction(source) or (inspect.isclass(source) and hasattr(source, "__iter__"))


def accepts_position(source: Any) -> bool:
    """Return True if a callable source has a parameter, to which the position of the batch or sample is passed.

    Raises:
        TypeError: the source isn't callable, or the callable has an unsupported signature.
    """
    if not callable(source):
        is_dataset = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        raise TypeError(
            f"`source` must be a callable, an iterable, or a generator function without parameters, got a "
            f"{type(source).__name__}"
            + ("; for a dataset, pass a function of a SampleInfo and batch=False" * is_dataset)
        )
    try:
        parameters = list(inspect.signature(source).parameters.values())
    except ValueError:
        return False  # a builtin without a signature
    unsupported = [f"{_UNSUPPORTED_KINDS[p.kind]} argument `{p}`" for p in parameters if p.kind in _UNSUPPORTED_KINDS]
    if len(parameters) > 1:
        unsupported.append("more than one positional argument")
    if unsupported:
        raise TypeError(
            "The `source` callable must accept either 0 or 1 positional arguments to indicate whether it accepts the "
            f"batch or sample indexing information. Found {unsupported[0]}, which is not allowed."
        )
    return bool(parameters)


_UNSUPPORTED_KINDS = {
    inspect.Parameter.KEYWORD_ONLY: "keyword-only",
    inspect.Parameter.VAR_POSITIONAL: "var-positional",
    inspect.Parameter.VAR_KEYWORD: "var-keyword",
}


# ---------------------------------------------------------------- declarations of the outputs


def _per_output(value: Any, count: int | None) -> list[Any]:
    """Return one value per output: the items of a list, or the same value for all outputs."""
    size = count or 1
    if not isinstance(value, (list, tuple)):
        return [value] * size
    if count is None:
        raise TypeError(f"external_source: the list {value!r} needs num_outputs; pass num_outputs, or one value")
    return [*value, *[None] * size][:size]


def output_layouts(layout: Any, count: int | None) -> tuple[str, ...]:
    """Return the layout of each output; "" for outputs whose layout the user has not passed."""
    return tuple(each or "" for each in _per_output(layout, count))


def expected_outputs(dtype: Any, ndim: Any, layout: Any, count: int | None) -> list[Expected]:
    """Return the expected dtype, number of axes and layout of each output.

    Args:
        dtype, ndim, layout: Arguments of `external_source`: one value, or a list with one value per output.
        count: Number of outputs; None for a single output.

    Raises:
        RuntimeError: a number of axes is negative, or contradicts the layout.
    """
    outputs = []
    declared = zip(_per_output(dtype, count), _per_output(ndim, count), output_layouts(layout, count), strict=True)
    for kind, axes, names in declared:
        if axes is not None and index(axes) < 0:
            raise RuntimeError(
                f"Incorrect number of dimensions ({axes}): ndim must be 0 for numbers and at least 1 for tensors"
            )
        if axes is not None and names and len(names) != axes:
            raise RuntimeError(
                f'ndim = {axes} and layout = "{names}" of external_source contradict each other: the layout names '
                f"{len(names)} dimensions"
            )
        outputs.append(Expected(None if kind is None else _parse_dtype(kind), axes, names))
    return outputs


def _parse_dtype(kind: Any) -> torch.dtype:
    try:
        return to_dtype(kind)
    except TypeError as error:
        raise TypeError(f"argument 'dtype' of operator 'external_source': invalid value {kind!r}: {error}") from None
