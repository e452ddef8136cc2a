"""Readers of the dynamic mode: objects with a position in their epochs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, ClassVar

from torchdali.calls.dispatch import bind
from torchdali.declaration.registry import Operator
from torchdali.errors import did_you_mean
from torchdali.execute.batch import metadata_outputs
from torchdali.execute.process_pool import open_processes
from torchdali.experimental.dynamic._batch import Batch, _batch_of
from torchdali.experimental.dynamic._capture import Capture, Template
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._convert import as_list
from torchdali.experimental.dynamic._device import Device
from torchdali.experimental.dynamic._given import make_result
from torchdali.experimental.dynamic._operation import Operation, OperationResult
from torchdali.experimental.dynamic._rng import get_default_rng
from torchdali.experimental.dynamic._tensor import Tensor, _tensor_of
from torchdali.experimental.dynamic._value import LazyValue
from torchdali.forks import cached_property
from torchdali.graph import nodes
from torchdali.reading import file_lists
from torchdali.reading.cursor import Cursor, EpochOrder, Keys
from torchdali.reading.datasets import LoaderOptions, reader_meta
from torchdali.tensors import TensorList

__all__ = ["Reader", "reader_of"]

_SKIPPED = {"name", "preserve", "bytes_per_sample_hint", "device"}


class Reader:
    """A reader with a position. `next_epoch` iterates over the records of an epoch; a call returns the next records.

    Args:
        max_batch_size: Largest allowed batch size; also the default batch size.
        name: Name of the reader, for error messages.
        device: ``"cpu"``.
        num_inputs: Ignored; readers have no inputs.
        enable_checkpointing: Ignored; the state is always available.
        _backend: A device that the operator must support, as in DALI. The argument has no other effect.
        arguments: Arguments of the operator.

    Raises:
        TypeError: An argument is unknown.
        ValueError: The reader doesn't support ``_backend``.
        Exception: An error of the reader's dataset.
    """

    max_batch_size: int | None
    name: str | None
    device: Any

    _declared: ClassVar[Operator]

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: Any = "cpu",
        num_inputs: int | None = None,
        *,
        enable_checkpointing: bool = False,
        _backend: Any = None,
        **arguments: Any,
    ) -> None:
        known_arguments = self._declared.schema.arguments
        for key in arguments:
            if key not in known_arguments and key not in self._declared.schema.deprecated:
                hint = did_you_mean(key, known_arguments)
                raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {key!r}{hint}")
        devices = self._declared.options.devices
        if _backend is not None and _backend not in devices:
            raise ValueError(
                f"_backend of {type(self).__name__} must be one of {', '.join(sorted(devices))}, got {_backend!r}"
            )
        self.max_batch_size, self.name, self.device = max_batch_size, name, device
        constants = bind(self._declared, [], arguments).constants
        self._dataset = self._declared.implementation(**constants)
        options, seed = _order_of(constants)
        open_processes(self._dataset, seed, "spawn")
        self._constants = {**constants, "_dataset": self._dataset}
        self._cursor = Cursor(EpochOrder.of(self._dataset, options, seed))
        self._batch_size: int | None = None
        self._loop_token: object | None = None
        # `_delivered` counts the batches that the current loop has delivered. `_resumed` counts the batches that were
        # delivered before the restored state was saved.
        self._delivered = self._resumed = 0
        self._loop_state: dict[str, Any] | None = None
        self._template: Template | None = None

    def __call__(
        self,
        *,
        batch_size: int | None = None,
        _process_params: bool = True,
        _caller_frame: Any = None,
        **arguments: Any,
    ) -> Any:
        """Return the next outputs: tensors, or batches of ``batch_size`` samples.

        Args:
            batch_size: Number of samples. None means ``max_batch_size`` if it is set, otherwise single tensors.
            arguments: Arguments of the operator that may have one value per sample: constants, tensors, or batches of
                ``batch_size`` samples.

        Raises:
            TypeError: An argument is unknown, or can't be passed per sample.
            ValueError: An argument was also passed to the constructor, there are more samples than ``max_batch_size``,
                or the number of samples differs from the number in the previous call.
        """
        size = self._resolve_size(batch_size)
        call = self._convert_arguments(arguments, size)
        return self._outputs(self._cursor.next_batch(size or 1), size, EvalContext.current(), **call)

    def _convert_arguments(self, arguments: dict[str, Any], size: int | None) -> dict[str, TensorList]:
        batches: dict[str, TensorList] = {}
        for name, value in arguments.items():
            if value is None:
                continue
            schema_argument = self._declared.schema.arguments.get(name)
            if schema_argument is None or schema_argument.edge is None:
                raise TypeError(f"__call__() got an unexpected keyword argument {name!r}")
            if self._constants.get(name) is not None:
                raise ValueError(f"{name!r} cannot be passed both in the constructor and in the call")
            if isinstance(value, Batch):
                if value.batch_size != (size or 1):
                    raise ValueError(
                        f"{name} must have {size or 1} samples in this call, got a batch of {value.batch_size}"
                    )
                batches[name] = value._values()
            else:
                batches[name] = as_list(value._single() if isinstance(value, LazyValue) else value, size)
        return batches

    def next_epoch(
        self, batch_size: int | None = None, ctx: EvalContext | None = None, capture: bool = False
    ) -> Iterator[Any]:
        """Return an iterator over the next epoch of this reader's shard.

        Args:
            batch_size: Number of samples per batch. None means ``max_batch_size`` if it is set, otherwise single
                tensors.
            ctx: The context that reads the batches; the current context by default.
            capture: Record the calls that the loop's body makes in its first iteration, and compute the same calls
                ahead of time for the following iterations. Every iteration must make the same calls; see `capture`.

        Raises:
            RuntimeError: Another loop over this reader hasn't ended.
        """
        size = self._resolve_size(batch_size)
        context = ctx or EvalContext.current()
        count = self._count_batches(size or 1) - self._resumed
        self._resumed, self._loop_token, self._loop_state = 0, object(), None
        batches = self._iterate_batches(count, size, context, self._loop_token)
        if capture:
            return self._iterate_captured(
                Capture(self._with_states(batches), context, self._set_loop_state, self._template)
            )
        return batches

    def _iterate_captured(self, loop: Capture) -> Iterator[Any]:
        try:
            yield from loop
        finally:
            self._template = loop.template

    def _with_states(self, batches: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each batch together with the reader's state directly after the batch.

        The state must be stored, because the reader may read more batches before the loop uses this batch.
        """
        for outputs in batches:
            yield outputs, self._state()

    def _set_loop_state(self, state: dict[str, Any] | None) -> None:
        """Set the result of `get_state`: the position of the loop's current batch."""
        self._loop_state = state

    def _iterate_batches(self, count: int, size: int | None, context: EvalContext, token: object) -> Iterator[Any]:
        total = self._count_batches(size or 1)
        for i in range(count):
            self._delivered = total - count + i
            if self._loop_token is not token:
                raise RuntimeError(
                    f"another loop over this reader ({type(self).__name__}) has started; finish each loop before you "
                    f"start the next, or create a reader for each"
                )
            outputs = self._outputs(self._cursor.next_batch(size or 1), size, context)
            self._delivered += 1
            yield outputs
        self._delivered = 0

    def _count_batches(self, size: int) -> int:
        """Return the number of batches of an epoch, including an incomplete last batch."""
        order = self._cursor.order
        return -(-order.shard(self._cursor.epoch).length // size)

    def _resolve_size(self, batch_size: int | None) -> int | None:
        size = self.max_batch_size if batch_size is None else batch_size
        if size is None:
            return None
        if self.max_batch_size is not None and size > self.max_batch_size:
            raise ValueError(
                f"batch_size must be at most {self.max_batch_size}, the reader's max_batch_size, got {size}"
            )
        if self._batch_size not in (None, size):
            raise ValueError(
                f"batch_size must be {self._batch_size}, as in the previous call, got {size}; for another size "
                f"create another {type(self).__name__}"
            )
        self._batch_size = size
        return size

    def _outputs(self, keys: Keys, size: int | None, context: EvalContext, **call: TensorList) -> Any:
        """Return tensors or batches. Data is read when it is needed; labels are available immediately."""
        declared = self._declared
        count = declared.count_outputs(self._constants)
        argument_results = {name: make_result(values, Device.CPU) for name, values in call.items()}
        edges = {name: result.edge for name, result in argument_results.items()}
        node = nodes.add_node(declared, [], self._constants, edges, device="cpu", outputs=count)
        operation = Operation(node, len(keys.records), context, Device.CPU, records=keys)
        context.add(operation)
        metadata = metadata_outputs(node, self._dataset, keys.records)
        outputs: list[Any] = []
        for edge in node.outputs:
            if edge in metadata:
                outputs.append((_tensor_of if size is None else _batch_of)(metadata[edge]))
            else:
                result = OperationResult(operation, edge.index)
                outputs.append((Tensor if size is None else Batch)(invocation_result=result))
        return tuple(outputs) if declared.returns_list(self._constants) else outputs[0]

    def _meta(self) -> dict[str, Any]:
        order = self._cursor.order
        return dict(reader_meta(order.size, order.options))

    def get_metadata(self, batch_size: int | None = None) -> dict[str, Any]:
        """Return the sizes of the epoch and of its shards, in the format of a pipeline's ``reader_meta``."""
        return self._meta()

    def get_state(self, *, cuda_stream: Any = None) -> str:
        """Return the reader's position as a string."""
        return json.dumps({**(self._loop_state or self._state()), "files": self._files})

    def _state(self) -> dict[str, Any]:
        return {**self._cursor.state(), "delivered": self._delivered}

    @cached_property
    def _files(self) -> str | None:
        identity = file_lists.list_identity(self._dataset)
        return None if identity is None else identity.hex()

    def set_state(self, state: Any) -> None:
        """Restore a position from `get_state`; the next call of `next_epoch` returns the rest of that epoch.

        Raises:
            RuntimeError: The state belongs to another dataset or shard.
            ValueError: ``state`` isn't the state of a reader.
        """
        try:
            read = json.loads(str(state))
        except ValueError:
            raise ValueError(f"state must be the state of a reader, got {state!r}") from None
        self._resumed = self._delivered = int(read.pop("delivered", 0))
        file_lists.compare(self._declared.name, read.pop("files", None), self._files)
        self._cursor.restore(read)
        self._loop_token = self._loop_state = None


def _order_of(constants: dict[str, Any]) -> tuple[LoaderOptions, int]:
    loader = {k: constants[k] for k in LoaderOptions.__dataclass_fields__ if k in constants}
    options = LoaderOptions(**loader)
    seed = options.seed if options.seed not in (None, -1) else None
    return options, get_default_rng()() & 0x7FFFFFFF if seed is None else seed


def reader_of(declared: Operator) -> type[Reader]:
    """Create the dynamic mode's class for a reader."""
    base = inspect.signature(Reader.__init__).parameters
    last = ("enable_checkpointing", "_backend")
    fixed = [p for n, p in base.items() if n not in ("arguments", *last)]
    named = [
        p for p in declared.schema.signature().parameters.values()
        if p.kind is p.KEYWORD_ONLY and p.name not in _SKIPPED
    ]  # fmt: skip
    current_names = {p.name for p in (*fixed, *named)}
    deprecated = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None)
        for n in declared.schema.deprecated
        if n not in current_names
    ]
    signature = inspect.Signature([*fixed, *named, *deprecated, *[base[name] for name in last]])

    def __init__(self: Reader, *args: Any, **kwargs: Any) -> None:
        Reader.__init__(self, *args, **kwargs)

    vars(__init__)["__signature__"] = signature
    members = {"_declared": declared, "__doc__": declared.implementation.__doc__, "__init__": __init__}
    per_call = sorted(n for n, a in declared.schema.arguments.items() if a.edge is not None)
    if per_call:
        members["__call__"] = _call_with(per_call)
    return type(declared.class_name, (Reader,), members)


def _call_with(names: list[str]) -> Any:
    """Return a `Reader.__call__` whose signature lists these arguments."""

    def __call__(self: Reader, **arguments: Any) -> Any:
        return Reader.__call__(self, **arguments)

    self_parameter, *call_parameters = inspect.signature(Reader.__call__).parameters.values()
    named = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in names]
    parameters = [self_parameter, call_parameters[0], *named, *call_parameters[1:-1]]
    vars(__call__)["__signature__"] = inspect.Signature(parameters)
    __call__.__doc__ = Reader.__call__.__doc__
    return __call__
