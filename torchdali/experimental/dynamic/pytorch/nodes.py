"""`torchdata` nodes that wrap readers and functions of the dynamic mode. The nodes need the extra ``torchdata``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from torchdali.experimental.dynamic._readers import Reader as _Reader
from torchdali.experimental.dynamic._value import LazyValue

try:
    from torchdata.nodes import BaseNode
except ImportError as error:
    raise ImportError("torchdali.experimental.dynamic.pytorch.nodes needs torchdata: pip install torchdata") from error

__all__ = ["DictMapper", "Reader", "ToTorch"]

_STATE, _SOURCE = "reader", "source"


class Reader(BaseNode[dict[str, Any]]):  # type: ignore[misc]  # torchdata has no type annotations
    """A node that reads data, and yields a dictionary of tensors or batches for each step of an epoch.

    Args:
        reader_type: A class of `dynamic.readers`.
        batch_size: Number of samples per batch; None for single tensors.
        output_names: Names of the outputs. By default ``("data", "label")``, if the reader has two outputs.
        kwargs: Arguments of the reader.

    Raises:
        ValueError: The number of names differs from the number of outputs; or no names were passed, and the reader
            doesn't have two outputs.
    """

    def __init__(
        self,
        reader_type: type[_Reader],
        *,
        batch_size: int | None = None,
        output_names: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self._reader = reader_type(**kwargs)
        self._batch_size = batch_size
        self._names = None if output_names is None else tuple(output_names)
        self._epoch: Iterator[Any] | None = None

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Start an epoch, or resume at a state from `get_state`."""
        super().reset(initial_state)
        if initial_state is not None:
            self._reader.set_state(initial_state[_STATE])
        self._epoch = self._reader.next_epoch(batch_size=self._batch_size)

    def next(self) -> dict[str, Any]:
        """Return the next outputs by name; raise StopIteration at the end of the epoch."""
        assert self._epoch is not None, "reset() must be called before next()"
        outputs = next(self._epoch)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        names = self._names or (("data", "label") if len(outputs) == 2 else ())
        if len(names) != len(outputs):
            raise ValueError(
                f"output_names must have {len(outputs)} names, one per output of the reader, got {len(names)}"
            )
        return dict(zip(names, outputs, strict=True))

    def get_state(self) -> dict[str, Any]:
        """Return the position of the reader."""
        return {_STATE: self._reader.get_state()}

    def get_metadata(self) -> dict[str, Any]:
        """Return the sizes of the epoch and of its shards."""
        return self._reader.get_metadata(self._batch_size)


class _DerivedNode(BaseNode[Any]):  # type: ignore[misc]
    """Base class of nodes that convert the items of another node."""

    def __init__(self, source: BaseNode[dict[str, Any]]) -> None:
        super().__init__()
        self._source = source

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Start an epoch, or resume at a state from `get_state`."""
        super().reset(initial_state)
        self._source.reset(None if initial_state is None else initial_state[_SOURCE])

    def get_state(self) -> dict[str, Any]:
        """Return the state of the source node."""
        return {_SOURCE: self._source.state_dict()}


class DictMapper(_DerivedNode):
    """A node that applies a function to one entry of another node's dictionaries.

    Args:
        source: Node that yields dictionaries.
        map_fn: Function that takes the entry and returns its replacement.
        key: Name of the entry.
    """

    def __init__(self, source: BaseNode[dict[str, Any]], map_fn: Callable[[Any], Any], key: str = "data") -> None:
        super().__init__(source)
        self._map_fn, self._key = map_fn, key

    def next(self) -> dict[str, Any]:
        """Return the next dictionary, with the entry replaced; raise KeyError if the entry is missing."""
        item = next(self._source)
        if self._key not in item:
            raise KeyError(f"expected the key {self._key!r}, found {', '.join(item)}")
        return {**item, self._key: self._map_fn(item[self._key])}


class ToTorch(_DerivedNode):
    """A node that converts another node's dictionaries to tuples of `torch.Tensor`.

    Args:
        source: Node that yields dictionaries of tensors and batches.
        output_stream: The torch stream on which you use the tensors. The stream waits until the tensors are computed.
    """

    def __init__(self, source: BaseNode[dict[str, Any]], output_stream: Any = None) -> None:
        super().__init__(source)
        self._stream = output_stream

    def next(self) -> tuple[torch.Tensor, ...]:
        """Return the next tensors, in the order of the dictionary."""
        values = next(self._source).values()
        tensors = tuple(v.torch() if isinstance(v, LazyValue) else torch.as_tensor(v) for v in values)
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
            for tensor in tensors:
                if tensor.is_cuda:  # the allocator must not reuse the tensor's memory while the stream reads it
                    tensor.record_stream(self._stream)
        return tensors
