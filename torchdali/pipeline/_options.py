"""Constructor arguments of `Pipeline`: one frozen dataclass, and the descriptor that makes properties of its fields."""

from __future__ import annotations

import operator
import secrets
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, ClassVar, Generic, TypeVar, overload

from torchdali.pipeline._output_specs import OutputSpecs
from torchdali.types import DALIDataType, OperatorConcurrency, StreamPolicy

__all__ = ["NAMES", "Option", "PipelineOptions"]

T = TypeVar("T")


@dataclass(frozen=True)
class PipelineOptions:
    """The arguments of `Pipeline`, checked; `ARGUMENTS` describes them.

    Attributes:
        random_seed: ``seed``, or one that was drawn.
        depths: Batches in the queues of CPU and GPU stage.
        output_specs: ``output_dtype``, ``output_ndim`` and ``output_layout`` together.
    """

    ARGUMENTS: ClassVar[str] = """
    Args:
        batch_size: Samples of a batch, the largest one where sources give fewer.
        num_threads: Threads that run CPU operators.
        device_id: The accelerator that ``"gpu"`` means: a number for ``cuda:N``, None for none, and ``"cpu"``
            to run the device stage on the CPU.
        seed: Of all random operators without a seed of their own; None or -1 for a new one each time.
        prefetch_queue_depth: Batches in flight; a dict ``{"cpu_size": n, "gpu_size": m}`` takes the larger.
        exec_pipelined: With False, one batch is in flight, and `schedule_run` returns when it is done.
        exec_async: With False, `schedule_run` returns when the batch is done. Whatever runs over whole
            batches, such as a Python function, then runs on the thread that calls it.
        bytes_per_sample, max_streams, default_cuda_stream_priority, exec_dynamic, stream_policy, concurrency:
            Accepted, without effect; see docs/pipelines.md.
        set_affinity: Bind worker threads to cores: those of ``DALI_AFFINITY_MASK``, or those next to the GPU.
        enable_memory_stats: Keep `executor_statistics`.
        enable_checkpointing: Accepted; every pipeline can be saved.
        checkpoint: Continue where a pipeline of the same graph was, whose `checkpoint` returned this.
        py_num_workers, py_start_method, py_callback_pickler: Processes of parallel sources, see
            `fn.external_source`.
        output_dtype, output_ndim, output_layout: What the outputs must be, as one value or a list with one an
            output; None for anything.
        bad_samples: What to do with a sample that fails: ``"raise"``, ``"skip"`` (a smaller batch) or
            ``"replace"`` (repeat a good one of the batch), also where an operator works on the whole batch; see
            `bad_sample_report`. A failure that no sample is to blame for, such as a wrong argument, fails the
            batch, and in debug mode every failure does.
        max_bad_samples: How many of them to bear before failing all the same.
        scaled_decode: Decode large JPEG photos at a reduced scale when a random crop follows that shrinks
            them anyway; much faster, and the pixels differ slightly.
        max_pixels: The most pixels (height times width) that an image may have, as its file claims or as an operator
            makes it; larger ones are an error of their sample. None: 2**30, or ``TORCHDALI_MAX_PIXELS``.

    Raises:
        ValueError: ``batch_size`` or a queue depth is not positive, or a declared output cannot be.
        TypeError: an unknown argument, or one of the wrong type.
    """

    batch_size: int | None = None
    num_threads: int | None = None
    device_id: int | str | None = None
    seed: int | None = None
    exec_pipelined: bool = True
    prefetch_queue_depth: int | Mapping[str, int] = 2
    exec_async: bool = True
    bytes_per_sample: int = 0
    set_affinity: bool = False
    max_streams: int | None = None
    default_cuda_stream_priority: int | None = None
    _: KW_ONLY
    enable_memory_stats: bool = False
    enable_checkpointing: bool = False
    checkpoint: str | bytes | None = None
    py_num_workers: int = 1
    py_start_method: str = "fork"
    py_callback_pickler: Any = None
    output_dtype: DALIDataType | list[DALIDataType | None] | None = None
    output_ndim: int | list[int | None] | None = None
    output_layout: str | list[str | None] | None = None
    exec_dynamic: bool | None = None
    experimental_exec_dynamic: bool | None = None
    stream_policy: StreamPolicy | None = None
    concurrency: OperatorConcurrency | None = None
    bad_samples: str = "raise"
    max_bad_samples: int | None = None
    scaled_decode: bool = False
    max_pixels: int | None = None

    random_seed: int = field(init=False, repr=False)
    depths: tuple[int, int] = field(init=False, repr=False)
    output_specs: OutputSpecs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("batch_size", "num_threads", "seed", "py_num_workers", "max_bad_samples", "max_pixels"):
            self._set(name, _integer(name, getattr(self, name)))
        _check_range(self.batch_size, self.num_threads)
        if self.max_pixels is not None and self.max_pixels < 1:
            raise ValueError(f"max_pixels must be positive, got {self.max_pixels}")
        self._set("seed", None if self.seed is None or self.seed < 0 else self.seed)
        self._set("random_seed", secrets.randbits(62) if self.seed is None else self.seed)
        self._set("exec_pipelined", bool(self.exec_pipelined))
        self._set("exec_async", bool(self.exec_async))
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
            depth = _depth(depth)
            self._set("depths", (depth, depth))
        else:
            self._set("depths", (_depth(depth["cpu_size"]), _depth(depth["gpu_size"])))
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
        plain = self.exec_pipelined and self.exec_async and self.depths[0] == self.depths[1]
        if self.exec_dynamic is None and plain:
            self._set("exec_dynamic", True)

    def saved(self) -> dict[str, Any]:
        """Return the arguments that describe the pipeline, without Python objects of the user and checkpoints."""
        return {name: getattr(self, name) for name in _SAVED}


PipelineOptions.__init__.__qualname__ = "Pipeline.__init__"  # for errors about wrong arguments
NAMES = frozenset(each.name for each in fields(PipelineOptions) if each.init)
_SAVED = [
    each.name for each in fields(PipelineOptions)
    if each.init
    and each.name not in ("checkpoint", "py_callback_pickler", "experimental_exec_dynamic")
]  # fmt: skip


class Option(Generic[T]):
    """A property of `Pipeline` that returns the option of its name."""

    def __init__(self, text: str) -> None:
        self.__doc__ = text

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, pipeline: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, pipeline: Any, owner: type) -> T: ...
    def __get__(self, pipeline: Any, owner: type) -> Any:
        return self if pipeline is None else getattr(pipeline._options, self._name)

    def __set__(self, pipeline: Any, value: T) -> None:
        raise AttributeError(f"{self._name} is set where the pipeline is made")


def _integer(name: str, value: Any) -> int | None:
    """Return an integer of any kind (Python's, NumPy's) as a Python int."""
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, got {value!r}") from None


_MAX_THREADS = 4096


def _check_range(batch_size: int | None, num_threads: int | None) -> None:
    if batch_size is not None and batch_size <= 0:
        raise ValueError(f"invalid batch size: {batch_size}; it must be positive")
    if batch_size is not None and batch_size >= 2**31:
        raise ValueError(f"invalid batch size: {batch_size}; it must be below 2**31")
    if num_threads is not None and num_threads > _MAX_THREADS:
        raise ValueError(f"num_threads is {num_threads}; at most {_MAX_THREADS} are allowed")


def _depth(value: Any) -> int:
    try:
        depth = operator.index(value)
    except TypeError:
        raise TypeError(
            f"prefetch_queue_depth must be an int, or a dict with cpu_size and gpu_size, got {value!r}"
        ) from None
    if depth < 1:
        raise ValueError(f"prefetch_queue_depth must be at least 1, got {depth}")
    return depth
