"""Operators that draw random numbers: uniform, normal, beta, coin flips, choices and permutations.

An operator draws the numbers of a whole batch in one call. The numbers of a sample don't depend on the other samples of
the batch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import BatchOutput, Column, Data, DType, InputConstraints, PerSample, per_sample
from torchdali.errors import batch_level
from torchdali.kernels import beta as kernel
from torchdali.kernels.convert import convert
from torchdali.rng import BatchRng, normals
from torchdali.tensors import TensorList

__all__ = ["batch_permutation", "beta", "choice", "coin_flip", "normal", "uniform"]

ShapeLike = Annotated[TensorList, InputConstraints()]
Numbers = npt.NDArray[Any]
Shape = tuple[int, ...]
Compute = Callable[[Numbers, slice], Numbers]
"""Function that converts random numbers ``(samples, count)`` to results of the same shape.

Its arguments are the random numbers, and the range of samples to which the numbers belong.
"""
Distribution = tuple[Callable[[BatchRng, int], Numbers], Callable[[np.random.Generator, Shape, Any], Numbers]]
"""Two functions that draw random numbers.

The first function draws a few numbers for every sample of a batch. The second function draws many numbers for one
sample, with a NumPy dtype.
"""

_MAX_BATCHED_VALUES = 4096  # for samples with more values, one generator per sample is faster
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
_MAX_BATCHED_BETAS = 64  # the same limit as `_MAX_BATCHED_VALUES`, for the beta distribution
_UNIFORM: Distribution = (BatchRng.uniform, np.random.Generator.random)


def _sample_normals(generator: np.random.Generator, shape: Shape, precision: Any) -> Numbers:
    """Draw normal numbers. In single precision, use the function that `noise.gaussian` also uses."""
    if precision is np.float32:
        return normals(generator, shape)
    return generator.standard_normal(shape, precision)


_NORMAL: Distribution = (BatchRng.normal, _sample_normals)
_INTEGERS = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
)  # fmt: skip
_NUMBERS = (*_INTEGERS, torch.float32, torch.float64)
_NUMPY_DTYPES = {
    torch.float32: np.float32, torch.float64: np.float64, torch.bool: np.bool_, torch.uint8: np.uint8,
    torch.int32: np.int32,
}  # fmt: skip
_SINGLE_PRECISION = (torch.float32, torch.uint8, torch.int8, torch.bool)  # single precision is enough for these dtypes


@operator(name="random.uniform", over="batch", separable=True, layout="")
def uniform(
    shape_like: ShapeLike | None = None,
    /,
    *,
    range: PerSample[list[float]] = [-1.0, 1.0],  # noqa: B006  never changed
    values: PerSample[list[float]] | None = None,
    shape: PerSample[list[int]] | None = None,
    dtype: DType | None = None,
    rng: BatchRng,
) -> BatchOutput:
    """Draw numbers uniformly from a range or from a list of values.

    Args:
        shape_like: Optional input. Each output sample gets the shape of the corresponding sample of this input.
        range: ``[low, high)``, by default ``[-1, 1)``. If ``dtype`` is an integer dtype, ``low`` and ``high`` are first
            truncated, and wrapped around to the dtype's range (-1 becomes 255 in uint8). The drawn numbers are then
            rounded. ``low`` and ``high`` both occur, but half as often as the integers between them.
        values: List of values to draw from, instead of ``range``. Values are rounded and saturated to ``dtype``.
        shape: Shape of each output sample. By default each sample is a single number (0-D).
        dtype: Output dtype: any integer dtype, float32 or float64. By default float32.

    Raises:
        RuntimeError: ``range`` or ``values`` is empty, ``dtype`` isn't supported, or both ``shape`` and ``shape_like``
            are passed.
    """
    kind = _check_dtype(dtype or torch.float32, _NUMBERS)
    shapes = sample_shapes(shape_like, shape, rng.size)
    chosen = range if values is None else values
    if not isinstance(chosen, Column):  # the range or the list is the same in all batches
        compute = (_map_to_constant_range if values is None else _map_to_constant_values)(tuple(chosen), kind)
    else:
        listed = chosen.values
        compute = _map_to_ranges(listed, kind) if values is None else _map_to_values(listed)
    return _draw_samples(_UNIFORM, rng, shapes, compute, kind)


@operator(name="random.normal", over="batch", separable=True, layout="")
def normal(
    shape_like: ShapeLike | None = None,
    /,
    *,
    mean: PerSample[float] = 0.0,
    stddev: PerSample[float] = 1.0,
    shape: PerSample[list[int]] | None = None,
    dtype: DType | None = None,
    rng: BatchRng,
) -> BatchOutput:
    """Draw numbers from the normal distribution.

    Args:
        shape_like: Optional input. Each output sample gets the shape of the corresponding sample of this input.
        mean: Mean of the distribution. By default 0.
        stddev: Standard deviation of the distribution. By default 1.
        shape: Shape of each output sample. By default each sample is a single number (0-D).
        dtype: Output dtype: float32, float64 or any integer dtype. For an integer dtype, the drawn numbers are rounded
            and saturated. By default float32.

    Raises:
        RuntimeError: ``dtype`` isn't supported, or both ``shape`` and ``shape_like`` are passed.
    """
    kind = _check_dtype(dtype or torch.float32, _NUMBERS)
    means, deviations = _as_column(mean, rng.size), _as_column(stddev, rng.size)

    def compute(draws: Numbers, rows: slice) -> Numbers:
        numbers: Numbers = _parameter_rows(means, rows, draws) + _parameter_rows(deviations, rows, draws) * draws
        return numbers

    return _draw_samples(_NORMAL, rng, sample_shapes(shape_like, shape, rng.size), compute, kind)


@operator(name="random.coin_flip", over="batch", separable=True, layout="")
def coin_flip(
    shape_like: ShapeLike | None = None,
    /,
    *,
    probability: PerSample[float] = 0.5,
    shape: PerSample[list[int]] | None = None,
    dtype: DType | None = None,
    rng: BatchRng,
) -> BatchOutput:
    """Draw 1 with a given probability, and 0 otherwise.

    Args:
        shape_like: Optional input. Each output sample gets the shape of the corresponding sample of this input.
        probability: Probability of drawing 1; by default 0.5. With a negative probability the result is always 0; with
            a probability above 1 it is always 1.
        shape: Shape of each output sample. By default each sample is a single number (0-D).
        dtype: Output dtype: bool, uint8 or int32. By default int32.

    Raises:
        RuntimeError: ``dtype`` isn't supported, or both ``shape`` and ``shape_like`` are passed.
    """
    kind = _check_dtype(dtype or torch.int32, (torch.bool, torch.uint8, torch.int32))
    chances = _as_column(probability, rng.size)

    def compute(draws: Numbers, rows: slice) -> Numbers:
        return draws < _select_rows(chances, rows)

    return _draw_samples(_UNIFORM, rng, sample_shapes(shape_like, shape, rng.size), compute, kind)


@operator(name="random.beta", over="batch", separable=True, layout="", devices=("cpu",))
def beta(
    shape_like: ShapeLike | None = None,
    /,
    *,
    alpha: PerSample[float] = 1.0,
    beta: PerSample[float] = 1.0,
    shape: PerSample[list[int]] | None = None,
    dtype: DType | None = None,
    rng: BatchRng,
) -> BatchOutput:
    """Draw numbers in [0, 1] from the beta distribution.

    The density is proportional to ``x^(alpha - 1) (1 - x)^(beta - 1)``.

    Args:
        shape_like: Optional input. Each output sample gets the shape of the corresponding sample of this input.
        alpha: First shape parameter; must be positive, by default 1. Larger values move the distribution towards 1.
        beta: Second shape parameter; must be positive, by default 1. Larger values move the distribution towards 0.
        shape: Shape of each output sample. By default each sample is a single number (0-D).
        dtype: Output dtype: float32 or float64. By default float32.

    Raises:
        RuntimeError: ``alpha`` or ``beta`` isn't positive, ``dtype`` isn't supported, or both ``shape`` and
            ``shape_like`` are passed.
    """
    kind = _check_dtype(dtype or torch.float32, (torch.float32, torch.float64))
    shapes = sample_shapes(shape_like, shape, rng.size)
    if not (isinstance(alpha, Column) or isinstance(beta, Column)):
        gammas = _constant_gammas(alpha, beta)
        alphas, betas = gammas.shape
    else:
        alphas, betas = _check_positive("alpha", alpha, rng.size), _check_positive("beta", beta, rng.size)
        gammas = kernel.Gammas(alphas, betas)
    has_equal_shapes = _all_equal(shapes)
    counts = [math.prod(extents) for extents in (shapes[:1] if has_equal_shapes else shapes)]
    batched_count = max((count for count in counts if count <= _MAX_BATCHED_BETAS), default=0)
    draws = batched_count * kernel.DRAWS
    numbers = gammas.betas(rng.uniform(draws))
    if has_equal_shapes:
        if counts[0] == batched_count and not np.isnan(numbers).any():
            return _convert(numbers, (len(shapes), *shapes[0]), kind)
        counts *= len(shapes)
    samples = []
    for i, (count, sample_rng) in enumerate(zip(counts, rng.samples(), strict=True)):
        values = numbers[i, :count]
        if count > batched_count or np.isnan(values).any():
            row = slice(i, i + 1)
            values = sample_rng.generator().beta(_select_rows(alphas, row)[0, 0], _select_rows(betas, row)[0, 0], count)
        samples.append(_convert(values, shapes[i], kind))
    return samples


@operator(name="random.choice", over="batch", separable=True, devices=("cpu",))
def choice(
    a: Annotated[TensorList, InputConstraints()],
    shape_like: ShapeLike | None = None,
    /,
    *,
    p: PerSample[list[float]] | None = None,
    shape: PerSample[list[int]] | None = None,
    rng: BatchRng,
) -> BatchOutput:
    """Draw elements of each sample, with replacement.

    Args:
        a: Data to draw from. If a sample is an integer ``n`` (0-D), elements are drawn from ``0 .. n - 1``. If the
            sample has axes, each drawn element is a slice ``a[i]`` of the first axis.
        shape_like: Optional input. The array of drawn elements gets the shape of the corresponding sample of this
            input.
        p: Probability of each element. By default all elements are equally likely.
        shape: Shape of the array of drawn elements. By default a single element is drawn, and the output has the
            element's shape.

    Returns:
        The drawn elements, ``(*shape, *element_shape)``, with the dtype of ``a``. If elements are drawn along one axis,
        the output has the layout of ``a``. If a single element is drawn, the output has the layout of ``a`` without the
        first letter. Otherwise the output has no layout.

    Raises:
        RuntimeError: ``a`` is empty; ``n`` isn't an integer; ``p`` has the wrong length, has values
            outside [0, 1] or doesn't sum to 1; or both ``shape`` and ``shape_like`` are passed.
    """
    shapes = sample_shapes(shape_like, shape, rng.size)
    has_equal_shapes = _all_equal(shapes)
    rows = rng.uniform(max(map(math.prod, shapes[:1] if has_equal_shapes else shapes), default=0))
    layout = {0: a.layout()[1:], 1: a.layout()}.get(len(shapes[0]), "") if shapes else ""
    dense = a.dense()
    if dense is not None and has_equal_shapes and not isinstance(p, Column):
        elements = torch.from_numpy(_pick(dense.numpy(), rows, shapes[0], p))
        return TensorList.from_dense(elements, layout if len(layout) == elements.ndim - 1 else "")
    chances = [None] * rng.size if p is None else per_sample(p, rng.size)
    picked = [
        torch.from_numpy(_pick(sample.numpy()[None], row[None, : math.prod(extents)], extents, chance))[0]
        for sample, row, extents, chance in zip(a.samples(), rows, shapes, chances, strict=True)
    ]
    layout = layout if picked and len(layout) == picked[0].ndim else ""
    return TensorList.from_samples(picked, layout, dtype=a.torch_dtype)


@operator(over="batch", devices=("cpu",))
def batch_permutation(
    *,
    allow_repetitions: bool = False,
    no_fixed_points: bool = False,
    _scope: PerSample[int] = 0,
    rng: BatchRng,
) -> Data:
    """Draw a permutation of the batch's samples: one int32 index per sample, for `permute_batch`.

    Args:
        allow_repetitions: If True, each index is drawn independently, so an index can occur several times or not at
            all. By default each index occurs once.
        no_fixed_points: If True, no sample gets its own index, unless the batch has only one sample. If
            ``allow_repetitions`` is False, the permutation is then a single cycle. By default a sample may get its own
            index.
        _scope: Values of some samples of the batch. The permutation has as many indices as this argument has values.
    """
    size, draws = rng.size, rng.uniform(1)[:, 0]
    identity = np.arange(size)
    if allow_repetitions:
        permutation = (draws * max(size - no_fixed_points, 1)).astype(np.int64)
        permutation += (permutation >= identity) & (no_fixed_points and size > 1)
    elif no_fixed_points:
        order = np.argsort(draws, kind="stable")
        permutation = np.empty(size, np.int64)
        permutation[order] = np.roll(order, -1)
    else:
        permutation = np.argsort(draws, kind="stable")
    return torch.from_numpy(permutation.astype(np.int32))


# ---------------------------------------------------------------- parameters


def _check_dtype(dtype: torch.dtype, allowed: Sequence[torch.dtype]) -> torch.dtype:
    if dtype not in allowed:
        names = ", ".join(str(a).removeprefix("torch.") for a in allowed)
        raise batch_level(
            RuntimeError(f"data type {str(dtype).removeprefix('torch.')} isn't supported; pass one of {names}")
        )
    return dtype


@functools.lru_cache(maxsize=64)
def _constant_gammas(alpha: float, beta: float) -> kernel.Gammas:
    return kernel.Gammas(_check_positive("alpha", alpha, 1), _check_positive("beta", beta, 1))


def _check_positive(name: str, value: Any, size: int) -> Numbers:
    column = _as_column(value, size)
    if column.size and not (column.min() > 0 and column.max() <= _MAX_FLOAT32):
        wrong = column[~((column > 0) & (column <= _MAX_FLOAT32))][0]
        error = RuntimeError(f"the `{name}` must be a positive float32, got {wrong:g}")
        raise error if isinstance(value, Column) else batch_level(error)
    return column


def _as_column(value: Any, size: int) -> Numbers:
    """Return a parameter as an array ``(batch, 1)``, or ``(1, 1)`` if all samples share its value."""
    if not isinstance(value, Column):
        return np.array([[value]], np.float64)
    column = np.asarray(value, np.float64)
    if column.size != size:
        raise RuntimeError(f"a parameter must be one number per sample, got the shape {column.shape[1:]}")
    return column.reshape(size, 1)


def _select_rows(column: Numbers, rows: slice) -> Numbers:
    """Return a parameter's rows for a range of samples; a single row applies to all samples."""
    return column if len(column) == 1 else column[rows]


def sample_shapes(shape_like: TensorList | None, shape: Any, size: int) -> list[Shape]:
    """Return the output shape of each sample, from `shape_like` or from `shape`. By default the samples are 0-D.

    Raises:
        RuntimeError: both `shape_like` and `shape` are passed, or an extent is negative.
    """
    if shape_like is not None:
        if shape is not None:
            raise batch_level(RuntimeError('pass the shape either as the argument "shape" or as an input, not both'))
        return list(shape_like.shape())
    if shape is None:
        return [()] * size
    values = shape if isinstance(shape, Column) else [shape]
    shapes = [tuple(map(int, s if isinstance(s, list) else [s])) for s in values]
    for extents in shapes:
        if min(extents, default=0) < 0:
            error = RuntimeError(f"shape must not be negative, got {list(extents)}")
            raise error if isinstance(shape, Column) else batch_level(error)
    return shapes if isinstance(shape, Column) else shapes * size


def _map_to_ranges(ends: Sequence[list[float]], dtype: torch.dtype) -> Compute:
    """Return the function that maps numbers in [0, 1) to ranges ``[low, high)``: one range per sample or one for all.

    For an integer `dtype`, both ends of a range are first converted to that dtype.
    """
    for pair in ends:
        if len(pair) != 2 or not pair[0] < pair[1]:
            shown = f"[{', '.join(f'{end:g}' for end in pair)})" if np.ndim(pair) == 1 else pair
            raise RuntimeError(f"invalid range {shown}. A range must be [low, high) with low < high.")
    bounds = np.asarray(ends, np.float64).reshape(-1, 2)
    if dtype.is_floating_point:
        kind = np.float32 if dtype == torch.float32 else np.float64
        last = np.nextafter(bounds[:, 1:].astype(kind), -np.inf, dtype=kind)
    else:
        bounds = np.asarray([[_wrap_integer(end, dtype) for end in pair] for pair in ends], np.float64).reshape(-1, 2)
        last = bounds.max(1, keepdims=True)
    least, extent = bounds[:, :1], bounds[:, 1:] - bounds[:, :1]

    def compute(draws: Numbers, rows: slice) -> Numbers:
        values: Numbers = draws * _parameter_rows(extent, rows, draws)
        values += _parameter_rows(least, rows, draws)
        return np.minimum(values, _parameter_rows(last, rows, draws), out=values)

    return compute


@functools.lru_cache(maxsize=256)
def _map_to_constant_range(ends: tuple[float, ...], dtype: torch.dtype) -> Compute:
    try:
        return _map_to_ranges([list(ends)], dtype)
    except RuntimeError as error:
        batch_level(error)
        raise


@functools.lru_cache(maxsize=256)
def _map_to_constant_values(values: tuple[float, ...], dtype: torch.dtype) -> Compute:
    try:
        return _map_to_values([list(values)])
    except RuntimeError as error:
        batch_level(error)
        raise


def _parameter_rows(column: Numbers, rows: slice, draws: Numbers) -> Numbers:
    """Return parameters of a range of samples in the dtype of `draws`, so that NumPy doesn't compute in float64."""
    values = _select_rows(column, rows)
    return values if values.dtype == draws.dtype else values.astype(draws.dtype)


def _wrap_integer(value: float, dtype: torch.dtype) -> int:
    """Truncate a number, and wrap it around to the range of an integer dtype."""
    bits = dtype.itemsize * 8
    low = -(1 << (bits - 1)) if dtype.is_signed else 0
    return (int(value) - low) % (1 << bits) + low


def _map_to_values(values: Sequence[list[float]]) -> Compute:
    """Return the function that maps numbers in [0, 1) to values of lists: one list per sample or one for all."""
    lengths = np.asarray([[len(v)] for v in values], np.int64).reshape(-1, 1)
    if not lengths.all():
        raise RuntimeError("values must not be empty")
    table = np.zeros((len(values), lengths.max(initial=0)))
    for row, items in zip(table, values, strict=True):
        row[: len(items)] = items

    def compute(draws: Numbers, rows: slice) -> Numbers:
        counts, lists = _select_rows(lengths, rows), _select_rows(table, rows)
        indices = np.minimum((draws * counts).astype(np.int64), counts - 1)
        result: Numbers = lists[np.arange(len(lists))[:, None], indices]
        return result

    return compute


# ---------------------------------------------------------------- drawing


def _draw_samples(
    distribution: Distribution, rng: BatchRng, shapes: list[Shape], compute: Compute, dtype: torch.dtype
) -> torch.Tensor | list[torch.Tensor]:
    """Draw numbers for every sample and apply `compute` to them.

    Returns:
        A single tensor if all samples have the same, small shape; otherwise one tensor per sample.
    """
    draw_batch, draw_sample = distribution
    if _all_equal(shapes) and (count := math.prod(shapes[0])) <= _MAX_BATCHED_VALUES:
        return _convert(compute(draw_batch(rng, count), slice(None)), (len(shapes), *shapes[0]), dtype)
    counts = [math.prod(shape) for shape in shapes]
    rows = draw_batch(rng, max((count for count in counts if count <= _MAX_BATCHED_VALUES), default=0))
    sample_rngs = rng.samples()
    precision = np.float32 if dtype in _SINGLE_PRECISION else np.float64
    samples = []
    for i, (count, shape) in enumerate(zip(counts, shapes, strict=True)):
        draws = (
            rows[i : i + 1, :count]
            if count <= _MAX_BATCHED_VALUES
            else draw_sample(sample_rngs[i].generator(), (1, count), precision)
        )
        samples.append(_convert(compute(draws, slice(i, i + 1)), shape, dtype))
    return samples


def _all_equal(shapes: list[Shape]) -> bool:
    """Return True if there is at least one shape and all shapes are equal."""
    return bool(shapes) and shapes.count(shapes[0]) == len(shapes)


def _convert(numbers: Numbers, shape: Shape, dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point or numbers.dtype == np.bool_:  # the conversion doesn't need rounding
        return torch.from_numpy(np.ascontiguousarray(numbers, _NUMPY_DTYPES[dtype]).reshape(shape))
    if dtype == torch.int32 and numbers.dtype == np.float64:
        rounded = np.trunc(numbers + np.copysign(0.5, numbers))
        rounded = np.minimum(np.maximum(rounded, -(2.0**31), out=rounded), 2.0**31 - 1, out=rounded)
        return torch.from_numpy(np.ascontiguousarray(rounded, np.int32).reshape(shape))
    return convert(torch.from_numpy(np.ascontiguousarray(numbers)), dtype).reshape(shape)


def _pick(elements: Numbers, draws: Numbers, shape: Shape, chances: Sequence[float] | None) -> Numbers:
    """Pick random elements of each sample.

    Args:
        elements: The samples: ``(batch,)`` if each sample is an integer, else ``(batch, n, ...)``.
        draws: Random numbers ``(batch, count)`` in [0, 1), one number per element to pick.
        shape: Shape of the array of elements that are picked from one sample.
        chances: Probability of each element; None for equal probabilities.
    """
    is_list = elements.ndim > 1
    if not is_list and elements.dtype.kind not in "iu":
        raise RuntimeError(f"data type {elements.dtype} is not supported for 0D inputs: a 0D input must be an integer")
    limits = np.full((len(elements), 1), elements.shape[1]) if is_list else elements[:, None]
    if limits.size and (least := int(limits.min())) <= 0:
        raise RuntimeError(f"expected positive number of elements for sampling, got: {least}")
    if chances is None:
        indices = (draws * limits).astype(np.int64)
    else:
        indices = _draw_weighted(draws, chances, limits)
    np.minimum(indices, limits.astype(np.int64) - 1, out=indices)
    if is_list:
        picks = elements[np.arange(len(elements))[:, None], indices]
    else:
        picks = indices.astype(elements.dtype)
    drawn: Numbers = picks.reshape(len(elements), *shape, *elements.shape[2:])
    return drawn


def _draw_weighted(draws: Numbers, chances: Sequence[float], limits: Numbers) -> Numbers:
    mismatched = limits != len(chances)
    if np.count_nonzero(mismatched):
        raise RuntimeError(f'argument "p" expected shape {limits[mismatched][0]} but got {len(chances)} values')
    return _cumulative_probabilities(tuple(chances)).searchsorted(draws, side="right")


@functools.lru_cache(maxsize=256)
def _cumulative_probabilities(chances: tuple[float, ...]) -> Numbers:
    """Return the cumulative sums of the probabilities, normalized to end at 1."""
    if not all(0 <= chance <= 1 for chance in chances):
        raise RuntimeError(f"probabilities must be between 0 and 1, got {list(chances)}")
    ends = np.cumsum(chances)
    if abs(ends[-1] - 1) >= 1e-4:
        raise RuntimeError(f"the probabilities must add up to 1, got {ends[-1]:g}")
    shares: Numbers = ends / ends[-1]
    return shares
