"""`ExternalSource`: read data from the user's functions and iterables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torchdali.experimental.dynamic._batch import Batch
from torchdali.experimental.dynamic._capture import Capture
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._tensor import Tensor

__all__ = ["ExternalSource"]

_CYCLES = {None: "no", False: "no", "no": "no", True: "quiet", "quiet": "quiet", "raise": "raise"}


class ExternalSource:
    """A source of the user's data: each call returns the next result of a function or the next item of an iterable.

    Args:
        source: A function without parameters, or an iterable. An item is a tensor or a batch. With several outputs, an
            item is a tuple of ``num_outputs`` tensors or batches.
        num_outputs: Number of outputs; several outputs are returned as a tuple.
        cycle: Behavior at the end of an iterable: ``"no"`` raises StopIteration from then on; ``"quiet"`` (or True)
            starts again; ``"raise"`` raises StopIteration once, and starts again at the next call.
        device: The target device of the data.
        layout: Layout of the data: one layout, or one per output.
        dtype: Dtype of the data: one dtype, or one per output.

    Raises:
        TypeError: ``source`` is neither a function nor an iterable.
        ValueError: The function has required parameters, or ``cycle`` is set for a function.
    """

    def __init__(
        self,
        source: Callable[[], Any] | Iterable[Any],
        num_outputs: int = 1,
        *,
        cycle: str | bool | None = None,
        device: Any = "cpu",
        layout: str | Sequence[str | None] | None = None,
        dtype: Any = None,
    ) -> None:
        if cycle not in _CYCLES:
            raise ValueError(f"cycle must be 'no', 'quiet' or 'raise', got {cycle!r}")
        self._cycle = _CYCLES[cycle]
        self._source, self._items = _open_source(source, self._cycle)
        self._num_outputs, self._device = num_outputs, device
        self._layouts = _per_output(layout, num_outputs)
        self._dtypes = _per_output(dtype, num_outputs)

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Return the next item: tensors or batches. With ``batch_size``, a single sample becomes a batch of its copies.

        Raises:
            StopIteration: The data has ended.
            ValueError: The number of outputs or samples is wrong.
        """
        item = self._next()
        parts = (item,) if self._num_outputs == 1 else item
        if not isinstance(parts, (tuple, list)) or len(parts) != self._num_outputs:
            raise ValueError(f"the source must return a tuple of {self._num_outputs} outputs")
        outputs = tuple(self._convert_output(part, i, batch_size) for i, part in enumerate(parts))
        return outputs[0] if self._num_outputs == 1 else outputs

    def _convert_output(self, part: Any, i: int, batch_size: int | None) -> Any:
        options = self._dtypes[i], self._device, self._layouts[i]
        if isinstance(part, (Batch, list)) or type(part).__name__.startswith("TensorList"):
            batch = Batch(part, *options)
            if batch_size is not None and batch.batch_size != batch_size:
                raise ValueError(f"inconsistent batch size: {batch.batch_size} != {batch_size}")
            return batch
        sample = Tensor(part, *options)
        return sample if batch_size is None else Batch.broadcast(sample, batch_size)

    def _next(self) -> Any:
        if self._items is None:
            assert callable(self._source)
            return self._source()
        try:
            return next(self._items)
        except StopIteration:
            if self._cycle != "no":
                self._items = iter(self._source)
            if self._cycle == "quiet":
                return next(self._items)
            raise

    def captured(self, batch_size: int | None, ctx: EvalContext | None = None) -> Iterator[Any]:
        """Return an iterator over the data that captures the loop's body; see ``capture`` of `Reader.next_epoch`."""
        return iter(Capture(self._iterate_items(batch_size), ctx or EvalContext.current()))

    def _iterate_items(self, batch_size: int | None) -> Iterator[tuple[Any, None]]:
        while True:
            try:
                item = self(batch_size=batch_size)
            except StopIteration:
                return
            yield item, None


def _open_source(source: Any, cycle: str) -> tuple[Any, Iterator[Any] | None]:
    if inspect.isgeneratorfunction(source):
        source = _RestartableGenerator(source)
    if not callable(source) and isinstance(source, Iterable):
        return source, iter(source)
    if not callable(source):
        raise TypeError(f"source must be a function or an iterable, got {type(source).__name__}")
    if cycle != "no":
        raise ValueError("cycle must not be passed if the source is a function; it needs an iterable")
    required = [p for p in _parameters(source) if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
    if required:
        raise ValueError("the source must be a function without parameters")
    return source, None


def _parameters(source: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(source).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return []


class _RestartableGenerator:
    """Wraps a generator function as an iterable that can be iterated several times."""

    def __init__(self, function: Callable[[], Iterator[Any]]) -> None:
        self._function = function

    def __iter__(self) -> Iterator[Any]:
        return self._function()


def _per_output(value: Any, count: int) -> Sequence[Any]:
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise ValueError(f"expected {count} values, one per output, got {len(value)}")
        return value
    return [value] * count
