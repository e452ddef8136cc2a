"""Messages between the process of the user and its workers."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from torchdali import pickling
from torchdali.errors import batch_level, is_batch_level, part_of, self_explanatory, stripped
from torchdali.execute.process_pool import WorkerTraceback
from torchdali.execute.shared_memory import Packed
from torchdali.execute.workers.blocks import Place

__all__ = [
    "Answer", "Block", "Drop", "Failure", "Input", "Inline", "Part", "Ready", "Refused", "inline",
    "read_failure", "restored", "write_failure",
]  # fmt: skip

_Words = npt.NDArray[Any]


class Inline(NamedTuple):
    """A small tensor as its bytes."""

    data: npt.NDArray[np.uint8]
    shape: tuple[int, ...]
    dtype: torch.dtype


def inline(tensor: torch.Tensor) -> Inline:
    """Return a tensor on the CPU as its bytes."""
    tensor = tensor.detach().contiguous()
    data = tensor.reshape(-1).view(torch.uint8).numpy()
    return Inline(data, tuple(tensor.shape), tensor.dtype)


def restored(sent: Inline) -> torch.Tensor:
    """Return the tensor that `inline` was given; its memory is its own."""
    if not sent.data.size:
        return torch.empty(sent.shape, dtype=sent.dtype)
    data = sent.data if sent.data.flags.writeable else sent.data.copy()
    return torch.from_numpy(data).view(sent.dtype).view(sent.shape)


class Input(NamedTuple):
    """The samples of an edge that enter a part: one tensor ``(samples, ...)``, or a list.

    A sample that a branch did not compute is None.
    """

    layout: str
    dense: Inline | Place | None
    samples: tuple[Inline | Place | None, ...] = ()


@dataclass(frozen=True)
class Part:
    """Some samples of a chain's batch, for a worker to do.

    Attributes:
        number: Of the part.
        stage: Of the chain.
        order: Index of the batch: earlier ones go first.
        first, count: Which samples of the batch.
        seed: Of the pipeline.
        random_keys: See `InFlightBatch.random_keys`.
        epochs, records: Of the samples, for random numbers.
        keys: Records to read, by index of the reader.
        inputs: What enters the chain, in the order of its `inputs`, then of its `values`.
        slots: Where results belong, one of each delivered edge: the samples of the part; None where the place is not
            known.
        keep_going: Go on after a sample that fails.
        timed: Measure each operator.
        returned: Numbers of the worker's own blocks that are free again.
    """

    number: int
    stage: int
    order: int
    first: int
    count: int
    seed: int
    random_keys: Sequence[int] | None
    epochs: _Words
    records: _Words
    keys: Mapping[int, _Words]
    inputs: tuple[Input, ...]
    slots: tuple[Place | None, ...]
    keep_going: bool
    timed: bool
    returned: tuple[int, ...] = ()


class Failure(NamedTuple):
    """An exception on its way to the process of the user.

    Attributes:
        data: Its pickle, if it has one.
        node: Index of the operator that failed; -1 if it is not known.
    """

    data: bytes | None
    message: str
    text: str
    node: int
    part: int
    batch_level: bool


def write_failure(error: BaseException, node: int) -> Failure:
    """Describe an exception."""
    data = None
    with contextlib.suppress(Exception):
        data = pickling.dumps(error)
        pickling.loads(data)
    lines = traceback.format_exception(type(error), stripped(error), error.__traceback__)
    level = is_batch_level(error)
    return Failure(data, f"{type(error).__name__}: {error}", "".join(lines), node, part_of(error), level)


def read_failure(failure: Failure) -> BaseException:
    """Return the exception: of the same class where it could be pickled."""
    error: Any = None
    with contextlib.suppress(Exception):
        error = None if failure.data is None else pickling.loads(failure.data)
    if not isinstance(error, BaseException):
        error = RuntimeError(failure.message)
    if failure.batch_level:
        batch_level(error)
    found: BaseException = self_explanatory(error)
    found.__cause__ = WorkerTraceback(failure.text)
    return found


@dataclass(frozen=True)
class Answer:
    """Results of a part.

    Attributes:
        places: By delivered edge, one a sample: "slot", None, or the index of one of ``packed``.
        packed: Results that were in no slot.
        failures: By sample of the part; -1 for the part as a whole.
        times: By sample of the part, operator, seconds and thread; see `ChainTimings`.
    """

    number: int
    places: tuple[tuple[Any, ...] | None, ...]
    packed: Packed | None
    failures: Mapping[int, Failure]
    times: Sequence[tuple[int, int, float, str]]


class Block(NamedTuple):
    """A block of the process of the user; its descriptor follows."""

    number: int
    size: int


class Drop(NamedTuple):
    """A block that will not be used again."""

    number: int


class Ready(NamedTuple):
    """A worker has planned its graph and opened its readers, of these sizes."""

    sizes: Mapping[int, int]


class Refused(NamedTuple):
    """A worker cannot start, and why."""

    reason: str
