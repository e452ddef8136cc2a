"""Objects that run in worker processes: the proxy of a pipeline, and wrappers of the dataset and collate function."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from torchdali.dali.proxy.messages import (
    DALIOutputSampleRef,
    ProxyCall,
    TargetPipeline,
    gather,
)
from torchdali.dali.proxy.packing import as_input
from torchdali.errors import note

__all__ = ["NamedSamples", "PackingCollate", "Proxy"]


class _Loading(threading.local):
    """Index of the sample that the current thread is loading; None if the thread isn't loading a sample."""

    index: Any = None


_loading = _Loading()


class Proxy:
    """Callable that represents a pipeline of the main process.

    Call a proxy with the inputs of one sample, to get a reference to each output. A proxy can be pickled, and called in
    any process. This package's `DataLoader` or `DALIServer.produce_data` runs the pipeline and replaces the references
    with the outputs.
    """

    def __init__(self, target: TargetPipeline) -> None:
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record the inputs of a sample; return one reference per output of the pipeline.

        Args:
            args, kwargs: Inputs by position or by name: arrays, CPU tensors, PIL images, bytes, or paths of files.

        Raises:
            TypeError: the arguments aren't exactly the pipeline's inputs, or a value has an unsupported type.
        """
        target = self._target
        values = args if not kwargs else self._order_inputs(args, kwargs)
        if len(values) != len(target.inputs):
            self._order_inputs(args, kwargs)
        inputs = [as_input(value, name) for name, value in zip(target.inputs, values, strict=True)]
        call = ProxyCall(target, inputs, _describe_origin(values))
        if target.outputs == 1:
            return DALIOutputSampleRef(call, 0)
        return tuple(DALIOutputSampleRef(call, k) for k in range(target.outputs))

    def _order_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        names = self._target.inputs
        arguments = [*names[: len(args)], *kwargs]
        if len(args) > len(names) or sorted(arguments) != sorted(names):
            raise TypeError(
                f"the proxy must be called with the inputs of its pipeline, {list(names)}, got {len(args)} inputs by "
                f"position and {sorted(kwargs)} by name"
            )
        values = dict(zip(names, args, strict=False), **kwargs)
        return tuple(values[name] for name in names)

    def __repr__(self) -> str:
        return f"Proxy({', '.join(self._target.inputs)})"


def _describe_origin(values: tuple[Any, ...]) -> str | None:
    parts = [] if _loading.index is None else [f"sample {_loading.index!r} of the dataset"]
    parts += [os.fspath(value) for value in values if isinstance(value, (str, os.PathLike))]
    return ", ".join(map(str, parts)) or None


class PackingCollate:
    """Wrapper of a collate function that also packs the inputs that proxies have recorded for the batch."""

    def __init__(self, collate_fn: Callable[[Any], Any]) -> None:
        self.collate_fn = collate_fn

    def __call__(self, samples: Any) -> Any:
        batch = self.collate_fn(samples)
        gather(batch)
        return batch


class NamedSamples:
    """Wrapper of a map-style dataset that adds the index of the failed sample to each error of the dataset."""

    def __init__(self, dataset: Any) -> None:
        self.__dict__["_dataset"] = dataset

    def __getitem__(self, index: Any) -> Any:
        _loading.index = index
        try:
            return self._dataset[index]
        except Exception as error:
            note(error, f"while loading sample {index!r} of the dataset")
            raise
        finally:
            _loading.index = None

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_dataset"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dataset, name, value)

    def __reduce__(self) -> Any:
        return NamedSamples, (self._dataset,)
