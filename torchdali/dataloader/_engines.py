"""Engines of accelerated loaders: objects whose threads create batches of tensors from the samples' indices."""

from __future__ import annotations

import os
import queue
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.dataloader._rows import Indices, Seeds
from torchdali.dataloader._sources import Leaves
from torchdali.errors import PipelineError
from torchdali.ops._caching import cache_in
from torchdali.ops._picture_steps import CenterCropStep, Lattice, PadStep, RandomCropStep
from torchdali.ops._pictures import ImageTransforms, Requests, TensorConversion, _picture, _requests, _still_picture
from torchdali.pipeline import Pipeline, pipeline_def
from torchdali.rng import BatchRng, mix
from torchdali.threads import Latch, Thread, close_at_end

__all__ = ["Arrays", "Pictures", "is_movable"]


class _BatchTask:
    """A task for a thread of an engine: the creation of one batch.

    Attributes:
        done: Latch that is set when a thread has created the batch, or has skipped the task because it was dropped.
        result: The batch or its error; None before the task is finished.
    """

    def __init__(self, make: Callable[[], Tensor]) -> None:
        self._make: Callable[[], Tensor] | None = make
        self.done, self.result = Latch(), cast("Tensor | BaseException", None)

    def run(self) -> None:
        """Create the batch, unless the task was dropped."""
        make, self._make = self._make, None
        if make is not None:
            try:
                self.result = make()
            except BaseException as error:
                self.result = error
        self.done.set()

    def drop(self) -> None:
        """Cancel the task, unless it is already running."""
        self._make = None


def _work(tasks: queue.SimpleQueue[_BatchTask | None]) -> None:
    while (task := tasks.get()) is not None:
        task.run()
        del task


class Arrays:
    """Engine for images of one size in memory, with transforms that only move pixels, such as crops and flips.

    A batch is created by selecting pixels with NumPy. Each thread creates whole batches, because the NumPy functions
    release the GIL.
    """

    def __init__(self, leaves: Leaves, transforms: ImageTransforms, threads: int, depth: int) -> None:
        self.depth, self.process = max(depth, threads + 1), os.getpid()
        self._transforms = transforms
        self.renew(leaves)
        self._pending: dict[int, _BatchTask] = {}
        self._tasks: queue.SimpleQueue[_BatchTask | None] = queue.SimpleQueue()
        self._end = weakref.finalize(self, _end, self._tasks, threads)
        close_at_end(self)
        for number in range(threads):
            Thread(_work, (self._tasks,), f"torchdali-arrays-{number}").start()

    def renew(self, leaves: Leaves) -> None:
        """Use the dataset's current images, which the user may have changed since the last loop."""
        (leaf,) = leaves.leaves
        assert leaf.pixels is not None
        self._leaves, self._pixels = leaves, leaf.pixels.numpy()

    def submit(self, number: int, indices: Indices, seeds: Seeds) -> None:
        self._pending[number] = task = _BatchTask(partial(self._batch, indices, mix(*seeds, number)))
        self._tasks.put(task)

    def take(self, number: int) -> list[Any] | Exception:
        """Wait for the images of a batch; return the images or the batch's error."""
        task = self._pending[number]
        while not task.done.is_set():
            task.done.wait(60.0)
        del self._pending[number]
        result = task.result
        if isinstance(result, Tensor):
            return [result]
        return result if isinstance(result, Exception) else RuntimeError(f"{result!r} in a thread")

    def reset(self) -> None:
        while self._pending:
            self._pending.popitem()[1].drop()

    def close(self) -> None:
        self.reset()
        self._end()

    def _batch(self, indices: Indices, key: int) -> Tensor:
        pictures = self._pixels[[self._leaves.place(i)[1] for i in indices]]
        rng = BatchRng.following(key, 0, len(indices))
        lattice = Lattice.of(pictures.shape[1], pictures.shape[2])
        for number, step in enumerate(self._transforms.steps):
            lattice = step.move(lattice, rng.uniform(4, 4 * number))
        assert self._transforms.conversion is not None
        planes = np.ascontiguousarray(lattice.select(pictures).transpose(0, 3, 1, 2))
        return torch.from_numpy(_finish(planes, self._transforms.conversion))


def _end(tasks: queue.SimpleQueue[_BatchTask | None], threads: int) -> None:
    for _ in range(threads):
        tasks.put(None)


def _finish(planes: npt.NDArray[np.uint8], conversion: TensorConversion) -> npt.NDArray[Any]:
    """Convert uint8 pixels to normalized floats, with bit-identical results to torchvision's."""
    if not conversion.unit:
        return planes
    values = planes.astype(np.float32)
    if conversion.multiplies:
        values *= np.float32(1 / 255)
    else:
        values /= 255
    if conversion.mean is not None and conversion.std is not None:
        mean, std = (np.asarray(each, np.float32)[:, None, None] for each in (conversion.mean, conversion.std))
        values -= mean
        values /= std
    return values


@pipeline_def
def _graph(requests: Requests, kept: ImageTransforms | None, transforms: ImageTransforms, cache: Any) -> Any:
    data = _requests(requests=requests)
    if kept is not None:
        data = cache_in(_still_picture(data, transforms=kept), cache)
    return _picture(data, transforms=transforms)


class Pictures:
    """Engine for images that a torchdali pipeline decodes and transforms in its threads."""

    def __init__(
        self,
        leaves: Leaves,
        transforms: ImageTransforms,
        threads: int,
        depth: int,
        batch_size: int,
        cache: Any,
        skips: bool,
    ) -> None:
        self.depth, self.process = depth, os.getpid()
        self._numbers: deque[int] = deque()
        self._skips, self._delivered = skips, 0
        self._requests = requests = Requests(leaves, leaves.source, leaves.leaves[0].pixels is None)
        before, after = (None, transforms) if cache is None else transforms.divide()
        self.pipeline: Pipeline = _graph(
            requests, before, after, cache, batch_size=batch_size, num_threads=threads, device_id=None,
            num_processes=1, prefetch_queue_depth=depth, seed=0, bad_samples="skip" if skips else "raise",
        )  # fmt: skip
        self.pipeline.build()

    def renew(self, leaves: Leaves) -> None:
        """Use the datasets' current samples, which the user may have changed since the last loop."""
        self._requests.source = leaves.source

    def submit(self, number: int, indices: Indices, seeds: Seeds) -> None:
        self.pipeline.submit_records(indices, mix(*seeds, number))
        self._numbers.append(number)

    def take(self, number: int) -> list[Any] | Exception:
        """Wait for a batch; return its images, or its error.

        If the loader skips bad samples, the list also contains the set of the bad samples' positions in the batch.
        """
        if self._numbers[0] != number:
            raise RuntimeError(f"the next batch must be {self._numbers[0]}, got {number}")
        self._delivered += 1
        try:
            (images,) = self.pipeline.outputs()
        except PipelineError as error:
            return _as_raised(error)
        finally:
            self._numbers.popleft()
        tensor = images.dense()
        values = [list(images.samples()) if tensor is None else tensor]
        return [*values, self._bad(self._delivered - 1)] if self._skips else values

    def _bad(self, batch: int) -> set[int]:
        return {each.sample for each in self.pipeline.bad_sample_report() if each.batch == batch}

    def reset(self) -> None:
        """Wait for all requested batches, and drop them."""
        self._numbers.clear()
        while True:
            try:
                self.pipeline.outputs()
            except StopIteration:  # no batch remains
                return
            except Exception:
                pass  # the error of a dropped batch doesn't matter
            self._delivered += 1

    def close(self) -> None:
        self.pipeline.close()


def _as_raised(error: PipelineError) -> Exception:
    """Return the exception that the dataset itself would raise, with the name of the file added to the message."""
    cause, place = error.__cause__, str(error).partition("\n")[0]
    if cause is None:
        return error
    sample = place.partition(" failed on ")[2]
    text = f"{cause}\n  {sample}"
    try:
        raised: Exception = type(cause)(text)  # type: ignore[assignment]
    except Exception:  # the constructor of the class requires other arguments
        raised = RuntimeError(f"{type(cause).__name__}: {text}")
    raised.__cause__ = cause
    return raised


def is_movable(leaves: Leaves, transforms: ImageTransforms) -> bool:
    """Return True if `Arrays` supports a dataset.

    The images must be in memory and have one size, and the transforms must only move pixels.
    """
    if len(leaves.leaves) > 1 or leaves.leaves[0].pixels is None or transforms.conversion is None or transforms.ends:
        return False
    pads = [step.pad if isinstance(step, RandomCropStep) else step for step in transforms.steps]
    fills = {step.fill for step in pads if isinstance(step, PadStep) and step.mode == "constant"}
    fills |= {0 for step in transforms.steps if isinstance(step, CenterCropStep)}
    return len(fills) < 2 and all(hasattr(step, "move") for step in transforms.steps)
