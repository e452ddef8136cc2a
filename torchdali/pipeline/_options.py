"""The constructor arguments of `Pipeline`, as one table that also defines its properties and its docstring."""

from __future__ import annotations

import inspect
import itertools
import operator
import secrets
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import torch

from torchdali.errors import did_you_mean
from torchdali.pipeline._output_specs import OutputSpecs
from torchdali.types import DALIDataType, OperatorConcurrency, StreamPolicy

if TYPE_CHECKING:
    from torchdali.execute.bad_samples import Policy
    from torchdali.execute.process_pool import StartMethod

__all__ = [
    "NAMES",
    "Option",
    "PipelineOptions",
    "check_known",
    "describe_options",
    "device_number",
    "set_options_signature",
]

T = TypeVar("T")
P = ParamSpec("P")


def _option(default: T, text: str, property_doc: str = "") -> T:
    """Declare an argument of `Pipeline`.

    Args:
        default: Default of the argument.
        text: Description of the argument. Consecutive arguments with the same text share one entry in the docstring.
        property_doc: Docstring of the property of `Pipeline` with the same name; empty if it has no property.
    """
    declared: Any = field(default=default, metadata={"text": text, "property_doc": property_doc})
    option: T = declared
    return option


_UNUSED = "Accepted, without effect."
_WORKERS = "Number, start method and pickler of the worker processes of parallel sources, see `fn.external_source`."
_DECLARED = (
    "Required dtype, number of dimensions and layout of the outputs: one value for all outputs, or a list with one "
    "value per output. None allows any."
)
_STREAMS = "a pipeline has two streams on its device, one for kernels and one for copies to the device"


@dataclass(frozen=True)
class PipelineOptions:
    """The arguments of `Pipeline`, checked and converted.

    The parameters, properties and docstring of `Pipeline` are created from these fields.

    Attributes:
        random_seed: The seed that the pipeline uses: ``seed``, or a random number if ``seed`` is None.
        depths: Depths of the queues of the CPU stage and the GPU stage, in batches.
        output_specs: The combined ``output_dtype``, ``output_ndim`` and ``output_layout``.
    """

    batch_size: int | None = _option(
        None,
        "Number of samples in a batch. Sources may return smaller batches.",
        "Largest number of samples in a batch.",
    )
    num_threads: int | None = _option(
        None, "Number of threads that run CPU operators.", "Number of threads that run CPU operators."
    )
    device_id: int | str | None = _option(
        None,
        'The device of ``"gpu"`` operators: N for ``cuda:N``, or ``"cpu"`` to run these operators on the CPU. With '
        "None, all operators must be CPU operators.",
        'Index of the device of ``"gpu"`` operators: 0 for a device without an index, None without a device.',
    )
    seed: int | None = _option(
        None,
        "Seed of all random operators that don't have their own. None or -1: each pipeline chooses a random seed.",
        "The seed as passed; None if the pipeline chose one.",
    )
    exec_pipelined: bool = _option(
        True,
        "False: only one batch is in flight, and `schedule_run` returns when it is done.",
        "True if several batches are in flight.",
    )
    prefetch_queue_depth: int | Mapping[str, int] = _option(
        2,
        'Number of batches in flight. For a dict ``{"cpu_size": n, "gpu_size": m}``, the larger number.',
        "Number of batches in flight, as passed.",
    )
    exec_async: bool = _option(
        True,
        "False: `schedule_run` returns when the batch is done. Operators over whole batches, such as Python functions, "
        "then run in the thread that calls `schedule_run`.",
        "True if scheduling returns before the batch is done.",
    )
    bytes_per_sample: int = _option(0, _UNUSED, "Accepted, without effect: sizes are exact.")
    set_affinity: bool = _option(
        False,
        "Bind worker threads to the cores in ``DALI_AFFINITY_MASK``, or to the cores next to the GPU.",
        "True if worker threads are bound to cores.",
    )
    max_streams: int | None = _option(
        None, f"1: one stream runs both kernels and copies. Otherwise, {_STREAMS}.", "The argument as passed."
    )
    default_cuda_stream_priority: int | None = _option(
        None,
        "Priority of the streams on the device. Lower numbers are more urgent; numbers above 0 mean 0.",
        "The argument as passed.",
    )
    _: KW_ONLY
    enable_memory_stats: bool = _option(
        False, "Record the statistics for `executor_statistics`.", "True if `executor_statistics` are recorded."
    )
    enable_checkpointing: bool = _option(False, "Accepted, without effect: every pipeline can be saved.")
    checkpoint: str | bytes | None = _option(
        None, "Result of `checkpoint`, from a pipeline with the same graph: continue at the saved position."
    )
    py_num_workers: int = _option(1, _WORKERS, "Number of worker processes of parallel sources.")
    py_start_method: StartMethod = _option(
        "fork", _WORKERS, "Start method of the worker processes of parallel sources."
    )
    py_callback_pickler: Any = _option(None, _WORKERS)
    output_dtype: DALIDataType | list[DALIDataType | None] | None = _option(None, _DECLARED)
    output_ndim: int | list[int | None] | None = _option(None, _DECLARED)
    output_layout: str | list[str | None] | None = _option(None, _DECLARED)
    exec_dynamic: bool | None = _option(
        None, _UNUSED, "Accepted, without effect: data may always be copied back to the CPU."
    )
    experimental_exec_dynamic: bool | None = _option(None, "Deprecated: use `exec_dynamic`.")
    stream_policy: StreamPolicy | None = _option(
        None,
        "``SINGLE`` has the same effect as ``max_streams=1``; other policies have no effect.",
        "The argument as passed.",
    )
    concurrency: OperatorConcurrency | None = _option(
        None,
        _UNUSED,
        "Accepted, without effect: the operators of a batch run in order, but samples and batches run concurrently.",
    )
    bad_samples: Policy = _option(
        "raise",
        'Policy for samples that fail: ``"raise"`` an error, ``"skip"`` the sample, so that the batch is smaller, or '
        '``"replace"`` it by a good sample of the batch. See `bad_sample_report`. If an error isn\'t the fault of a '
        "single sample, for example a wrong argument, the batch fails. In debug mode, every error fails the batch.",
    )
    max_bad_samples: int | None = _option(
        None, "Number of bad samples to accept. The next one fails its batch; None for no limit."
    )
    num_processes: int | None = _option(
        None,
        "Number of worker processes that compute whole batches (replicas). They share `num_threads`. 1: no worker "
        "processes. None: the number in the environment variable ``TORCHDALI_PROCESSES``. Without this variable, one "
        "process per thread, at most one per core; but none if the fast path processes all samples, in free-threaded "
        "Python, or with ``exec_async=False`` or ``exec_pipelined=False``. Operators that cannot run in a worker "
        "process, and the stages after them, run in the main process; `Pipeline.explain` gives the reason.",
        "The argument as passed; None for the default.",
    )
    scaled_decode: bool = _option(
        False,
        "Decode large JPEG photos at a reduced scale, if a random crop after the decoder makes them smaller anyway. "
        "This is much faster, and pixels differ slightly.",
        "True if large photos are decoded at a reduced scale.",
    )
    max_pixels: int | None = _option(
        None,
        "Largest number of pixels (height times width) of an image, in a file's header or in an operator's result. A "
        "larger image makes its sample fail. None: the environment variable ``TORCHDALI_MAX_PIXELS``, or 2**30.",
    )
    exact: bool = _option(
        False,
        "Return exactly DALI's pixels, although this is slower. By default, some CPU operators are faster, but some of "
        "their uint8 pixels differ by 1: `resize`, `random_resized_crop`, `resize_crop_mirror`, and decoders fused "
        "with these operators (docs/differences.md).",
        "True if pixels are exactly DALI's, although this is slower.",
    )

    random_seed: int = field(init=False, repr=False)
    depths: tuple[int, int] = field(init=False, repr=False)
    output_specs: OutputSpecs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in _INTEGERS:
            self._set(name, _check_integer(name, getattr(self, name)))
        if self.num_processes is not None and self.num_processes < 1:
            raise ValueError(f"num_processes must be positive, got {self.num_processes}")
        for name in ("num_processes", "py_num_workers"):
            if (getattr(self, name) or 0) > _MAX_PROCESSES:
                raise ValueError(f"{name} must be at most {_MAX_PROCESSES}, got {getattr(self, name)}")
        if self.py_callback_pickler is not None and self.py_start_method == "fork":
            raise ValueError('py_callback_pickler needs py_start_method="spawn", since "fork" pickles nothing')
        _check_range(self.batch_size, self.num_threads)
        if self.max_pixels is not None and self.max_pixels < 1:
            raise ValueError(f"max_pixels must be positive, got {self.max_pixels}")
        self._set("seed", None if self.seed is None or self.seed < 0 else self.seed)
        self._set("random_seed", secrets.randbits(62) if self.seed is None else self.seed)
        self._set("exec_pipelined", bool(self.exec_pipelined))
        self._set("exec_async", bool(self.exec_async))
        self._set("exact", bool(self.exact))
        self._set_depths()
        self._set_exec_dynamic()
        self._set("max_streams", -1 if self.max_streams is None else self.max_streams)
        self._set("default_cuda_stream_priority", self.default_cuda_stream_priority or 0)
        specs = OutputSpecs(self.output_dtype, self.output_ndim, self.output_layout)
        self._set("output_specs", specs)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _set_depths(self) -> None:
        depth = self.prefetch_queue_depth
        if not isinstance(depth, Mapping):
            depth = _check_depth(depth)
            self._set("depths", (depth, depth))
        else:
            self._set("depths", (_check_depth(depth["cpu_size"]), _check_depth(depth["gpu_size"])))
        cpu, gpu = self.depths
        self._set("prefetch_queue_depth", {"cpu_size": cpu, "gpu_size": gpu} if cpu != gpu else cpu)
        if cpu != gpu and not self.exec_async:
            raise ValueError("queues of different depths need exec_async=True")

    def _set_exec_dynamic(self) -> None:
        if self.experimental_exec_dynamic is not None:
            warnings.warn(
                "experimental_exec_dynamic is deprecated: use exec_dynamic",
                DeprecationWarning,
                stacklevel=5,
            )
            self._set("exec_dynamic", self.experimental_exec_dynamic)
            self._set("experimental_exec_dynamic", None)
        is_default = self.exec_pipelined and self.exec_async and self.depths[0] == self.depths[1]
        if self.exec_dynamic is None and is_default:
            self._set("exec_dynamic", True)

    def check_complete(self) -> None:
        """Raise an error if ``batch_size`` or ``num_threads`` is missing, or if there is less than one thread."""
        if self.num_threads is None and self.batch_size is None:
            pass_them = _PASS_IT.replace(" it ", " them ")
            raise TypeError(f"batch_size and num_threads must be set before the pipeline is built{pass_them}")
        if self.num_threads is None:
            raise TypeError(f"num_threads must be set before the pipeline is built{_PASS_IT}")
        if self.num_threads < 1:
            raise ValueError(f"a pipeline needs at least 1 thread to run, got {self.num_threads}")
        self.check_batch_size()

    def check_batch_size(self) -> None:
        if self.batch_size is None:
            raise ValueError(f"batch_size must be set before the pipeline is built{_PASS_IT}")

    @property
    def max_batch_size(self) -> int | None:
        """Largest number of samples in a batch."""
        return self.batch_size

    @property
    def exec_separated(self) -> bool:
        """True if the queues of the CPU stage and the GPU stage have different depths."""
        return self.depths[0] != self.depths[1]

    @property
    def cpu_queue_size(self) -> int:
        """Depth of the CPU stage's queue, in batches."""
        return self.depths[0]

    @property
    def gpu_queue_size(self) -> int:
        """Depth of the GPU stage's queue, in batches."""
        return self.depths[1]

    def saved_arguments(self) -> dict[str, Any]:
        """Return the arguments that `Pipeline.serialize` saves: all except Python objects and the checkpoint."""
        return {name: getattr(self, name) for name in _SAVED}


PipelineOptions.__init__.__qualname__ = "Pipeline.__init__"  # for errors about wrong arguments
NAMES = frozenset(each.name for each in fields(PipelineOptions) if each.init)
_EQUIVALENTS = {"num_workers": "num_threads", "shuffle": "random_shuffle of the reader"}
"""For arguments of `torch.utils.data.DataLoader`, the argument to use here."""
_PASS_IT = ": pass it to Pipeline, pipeline_def, or the function that pipeline_def created"
_SAVED = [
    each.name for each in fields(PipelineOptions)
    if each.init
    and each.name not in ("checkpoint", "py_callback_pickler", "experimental_exec_dynamic")
]  # fmt: skip


def check_known(options: Iterable[str]) -> None:
    """Raise TypeError for an unknown argument. The message suggests the most similar known argument."""
    for name in options:
        if name not in NAMES:
            hint = f"; use {_EQUIVALENTS[name]}" if name in _EQUIVALENTS else did_you_mean(name, sorted(NAMES))
            raise TypeError(f"Pipeline.__init__() got an unexpected keyword argument {name!r}{hint}")


def describe_options() -> str:
    """Return the sections ``Args:`` and ``Raises:`` of the docstring of `Pipeline`."""
    arguments = [each for each in fields(PipelineOptions) if each.init]
    lines = ["Args:"]
    for text, group in itertools.groupby(arguments, key=lambda each: each.metadata["text"]):
        entry = f"{', '.join(each.name for each in group)}: {text}"
        lines += textwrap.wrap(entry, 110, initial_indent=" " * 4, subsequent_indent=" " * 8)
    return "\n".join(lines) + _RAISES


_RAISES = """

Raises:
    ValueError: An argument is out of range, for example ``batch_size`` or a queue depth, or a required dtype or
        number of dimensions is impossible.
    TypeError: An argument is unknown, or has the wrong type.
"""


def set_options_signature(
    options: Callable[P, PipelineOptions],
) -> Callable[[Any], Callable[Concatenate[Any, P], None]]:
    """Set a constructor's signature to the arguments of `PipelineOptions`."""

    def decorate(function: Any) -> Callable[Concatenate[Any, P], None]:
        function.__signature__ = inspect.signature(PipelineOptions.__init__)
        typed: Callable[Concatenate[Any, P], None] = function
        return typed

    return decorate


class Option(Generic[T]):
    """A read-only property of `Pipeline` with the value of the same attribute of `PipelineOptions`.

    Args:
        convert: Function that converts the attribute to the property's value.
    """

    def __init__(self, convert: Callable[[Any], T] = lambda value: value) -> None:
        self._convert = convert

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        declared = PipelineOptions.__dataclass_fields__.get(name)
        if declared is None:
            self.__doc__ = getattr(PipelineOptions, name).__doc__
        else:
            self.__doc__ = declared.metadata["property_doc"]

    @overload
    def __get__(self, pipeline: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, pipeline: Any, owner: type) -> T: ...
    def __get__(self, pipeline: Any, owner: type) -> Any:
        return self if pipeline is None else self._convert(getattr(pipeline._options, self._name))

    def __set__(self, pipeline: Any, value: T) -> None:
        raise AttributeError(f"{self._name} can only be set when the pipeline is created")


def device_number(device: int | str | None) -> int | None:
    """Return the index of a device, from its index or name; 0 for a name without an index.

    Therefore scripts that pass the result as ``shard_id`` run on any device.
    """
    return torch.device(device).index or 0 if isinstance(device, str) else device


_INTEGERS = (
    "batch_size", "num_threads", "seed", "num_processes", "py_num_workers", "max_bad_samples", "max_pixels"
)  # fmt: skip


def _check_integer(name: str, value: Any) -> int | None:
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, got {value!r}") from None


_MAX_THREADS = 4096
_MAX_PROCESSES = 1024
_MAX_DEPTH = 4096  # batches in flight


def _check_range(batch_size: int | None, num_threads: int | None) -> None:
    if batch_size is not None and batch_size <= 0:
        raise ValueError(f"batch_size must be positive, got {batch_size}")
    if batch_size is not None and batch_size >= 2**31:
        raise ValueError(f"batch_size must be below 2**31, got {batch_size}")
    if num_threads is not None and num_threads > _MAX_THREADS:
        raise ValueError(f"num_threads must be at most {_MAX_THREADS}, got {num_threads}")


def _check_depth(value: Any) -> int:
    try:
        depth = operator.index(value)
    except TypeError:
        raise TypeError(
            f"prefetch_queue_depth must be an int, or a dict with cpu_size and gpu_size, got {value!r}"
        ) from None
    if depth < 1:
        raise ValueError(f"prefetch_queue_depth must be at least 1, got {depth}")
    if depth > _MAX_DEPTH:
        raise ValueError(f"prefetch_queue_depth must be at most {_MAX_DEPTH}, got {depth}")
    return depth
