"""Messages from a worker process to the main process: inputs of the pipeline, and references to its outputs.

A *proxy* is an object that a worker calls in place of the pipeline. The worker calls the proxy with a sample's inputs
and gets references instead of the outputs. The worker sends the inputs and references to the main process, which
runs the pipeline and replaces the references with the outputs.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from torchdali.dali.proxy.packing import PackedColumn

__all__ = [
    "DALIOutputBatchRef",
    "DALIOutputSampleRef",
    "DALIPipelineRunRef",
    "ProxyCall",
    "TargetPipeline",
    "gather",
    "replace",
]

_T = TypeVar("_T", bound="_Reference")


@dataclasses.dataclass(frozen=True)
class TargetPipeline:
    """Description of a pipeline in the main process, for the proxies in worker processes.

    Attributes:
        server: Key of the `DALIServer` in the main process.
        inputs: Names of the pipeline's inputs, in the order of the proxy's arguments.
        outputs: Number of outputs.
        batch_size: Maximum number of samples in a batch.
    """

    server: str
    inputs: tuple[str, ...]
    outputs: int
    batch_size: int


class ProxyCall:
    """One call of a proxy, with the inputs of a sample. `DALIPipelineRunRef` moves the inputs from the call to a run.

    Args:
        inputs: One array or CPU tensor per input, in the order of the pipeline's inputs.
        origin: Description of the sample, for error messages; None if it is unknown.
    """

    def __init__(self, target: TargetPipeline, inputs: Sequence[Any], origin: str | None) -> None:
        self.target, self.origin = target, origin
        self.inputs: Sequence[Any] = inputs
        self.run: DALIPipelineRunRef | None = None
        self.index = 0


class DALIPipelineRunRef:
    """The inputs for one run of a pipeline.

    Args:
        calls: One call per sample. The constructor moves the inputs from the calls to the run.

    Raises:
        ValueError: there are more samples than the pipeline's batch size.
        TypeError: the samples of an input differ in dtype or number of axes.
    """

    def __init__(self, calls: Sequence[ProxyCall]) -> None:
        self.target = calls[0].target
        self.origins = [call.origin for call in calls]
        if len(calls) > self.target.batch_size:
            raise ValueError(
                f"a batch must have at most {self.target.batch_size} samples, the batch_size of the proxy's "
                f"pipeline, got {len(calls)}; create the pipeline with a larger batch_size, or the loader with a "
                f"smaller one"
            )
        self.columns = [
            PackedColumn([call.inputs[k] for call in calls], name, self.origins)
            for k, name in enumerate(self.target.inputs)
        ]
        for index, call in enumerate(calls):
            call.run, call.index, call.inputs = self, index, ()
        if torch.utils.data.get_worker_info() is not None:
            for column in self.columns:
                column.share()

    def __len__(self) -> int:
        return len(self.origins)


class _Reference(torch.Tensor):
    """Reference to a tensor that the pipeline will compute.

    The class is a subclass of `Tensor`, because transforms ignore objects of other types.
    """

    def __new__(cls: type[_T], *_: Any) -> _T:
        return torch.Tensor._make_subclass(cls, _EMPTY_TENSOR)

    def __init__(self, source: Any, output: int) -> None:
        self.source, self.output = source, output

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        if func is torch.stack and len(args) == 1 and not kwargs:
            return collate(args[0])
        owner: Any = getattr(func, "__self__", None)  # if `func` reads a property, `owner` is the property
        _refuse(f"Tensor.{owner.__name__}" if hasattr(owner, "__name__") else f"{func.__name__}()")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.source, self.output)

    def __deepcopy__(self, memo: Any) -> _Reference:
        return self

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"<{type(self).__name__} to output {self.output} of a pipeline>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("numpy.asarray")

    def pin_memory(self, *_: Any) -> _Reference:
        """Return the reference unchanged. The main process pins the output instead."""
        return self


def _refuse(op_name: str) -> NoReturn:
    # Not a TypeError, because an arithmetic operator would replace a TypeError with a less helpful error.
    raise RuntimeError(
        f"{op_name} is not available on the result of a proxy, which is only a reference: the pipeline runs later, in "
        f"the main process. Move this step into the pipeline, or apply it to the batches of the proxy module's "
        f"DataLoader. With PyTorch's own DataLoader, convert each batch to tensors with server.produce_data(batch) "
        f"first"
    )


_EMPTY_TENSOR = torch.empty(0)


class DALIOutputSampleRef(_Reference):
    """Reference to one sample of an output. The main process replaces the reference with the sample's tensor."""

    source: ProxyCall


class DALIOutputBatchRef(_Reference):
    """Reference to one output of a run. The main process replaces the reference with a tensor ``(batch, ...)``."""

    source: DALIPipelineRunRef

    def __len__(self) -> int:
        return len(self.source)


# ---------------------------------------------------------------- making batches


def collate(refs: Sequence[Any], *, collate_fn_map: Any = None) -> DALIOutputBatchRef:
    """Combine references to the samples of a batch into one reference to the batch.

    Raises:
        TypeError: some samples aren't references, or the references belong to different pipelines or outputs.
    """
    for i, ref in enumerate(refs):
        if not isinstance(ref, DALIOutputSampleRef):
            raise TypeError(
                f"all samples of a batch, or none, must go through the proxy; sample 0 did, but sample {i}, a "
                f"{type(ref).__name__}, did not. To mix both, pass a collate_fn that separates them"
            )
        if (ref.source.target, ref.output) != (refs[0].source.target, refs[0].output):
            raise TypeError(
                f"the samples of a batch must be the same output of one pipeline; samples 0 and {i} are not. To mix "
                f"outputs, pass a collate_fn that separates them"
            )
    calls = [ref.source for ref in refs]
    run = calls[0].run
    if run is None or len(run) != len(calls):
        run = DALIPipelineRunRef(calls)
    elif any(call.run is not run or call.index != i for i, call in enumerate(calls)):
        raise TypeError("the outputs of one proxy call must be in the same order in each batch")
    return DALIOutputBatchRef(run, refs[0].output)


default_collate_fn_map[DALIOutputSampleRef] = collate


def gather(data: Any) -> None:
    """Combine the proxy calls in a worker's batch into runs of their pipelines. Skip calls that already have a run."""
    pending: dict[TargetPipeline, dict[int, ProxyCall]] = {}

    def collect(ref: DALIOutputSampleRef) -> DALIOutputSampleRef:
        if ref.source.run is None:
            pending.setdefault(ref.source.target, {})[id(ref.source)] = ref.source
        return ref

    replace(data, DALIOutputSampleRef, collect)
    for target, references in pending.items():
        calls = list(references.values())
        for start in range(0, len(calls), target.batch_size):
            DALIPipelineRunRef(calls[start : start + target.batch_size])


def replace(data: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
    """Replace all objects of a class in nested lists, tuples, mappings and dataclasses with converted objects.

    Args:
        data: The nested data, which is not changed.
        kind: Class of the objects to replace.
        convert: Function that returns the replacement of an object.
    """
    if isinstance(data, kind):
        return convert(data)
    if isinstance(data, (torch.Tensor, np.ndarray, str, bytes, type)):
        return data
    if isinstance(data, (list, tuple)):
        items = [replace(item, kind, convert) for item in data]
        if all(new is old for new, old in zip(items, data, strict=True)):
            return data
        return type(data)(*items) if hasattr(data, "_fields") else type(data)(items)
    if isinstance(data, MutableMapping):
        changed = copy.copy(data)
        changed.update({key: replace(value, kind, convert) for key, value in data.items()})
        return changed
    if dataclasses.is_dataclass(data):
        changed = copy.copy(cast(Any, data))
        for field in dataclasses.fields(data):
            value = replace(getattr(data, field.name), kind, convert)
            object.__setattr__(changed, field.name, value)
        return changed
    return data
