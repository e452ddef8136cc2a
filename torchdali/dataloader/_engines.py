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
from torchdali.dataloader._sources import DatasetTree
from torchdali.errors import PipelineError
from torchdali.ops._caching import cache_in
from torchdali.ops._picture_steps import CenterCropStep, Lattice, PadStep, RandomCropStep
from torchdali.ops._pictures import (
    ImageTransforms,
    RequestDataset,
    TensorConversion,
    _picture,
    _requests,
    _still_picture,
)
from torchdali.pipeline import Pipeline, pipeline_def
from torchdali.rng import BatchRng, mix
from torchdali.threads import Latch, Thread, close_at_end

__all__ = ["ArrayEngine", "PipelineEngine", "can_use_array_engine"]


class _BatchTask:
    """A task for a thread of an engine: the creation of one batch.

    Attributes:
        done: Latch that is set when a thread has created the batch, or has skipped the task because it was dropped.
        result: The batch or its error; None before the task is finished.
    """

    def __init__(self, create: Callable[[], Tensor]) -> None:
        self._create: Callable[[], Tensor] | None = create
        self.done, self.result = Latch(), cast("Tensor | BaseException", None)

    def run(self) -> None:
        """Create the batch, unless the task was dropped."""
        create, self._create = self._create, None
        if create is not None:
            try:
                self.result = create()
            except BaseException as error:
                self.result = error
        self.done.set()

    def drop(self) -> None:
        """Cancel the task, unless it is already running."""
        self._create = None


def _run_tasks(tasks: queue.SimpleQueue[_BatchTask | None]) -> None:
    while (task := tasks.get()) is not None:
        task.run()
        del task


class ArrayEngine:
    """Engine for images of one size in memory, with transforms that only move pixels, such as crops and flips.

    A batch is created by selecting pixels with NumPy. Each thread creates whole batches, because the NumPy functions
    release the GIL.
    """

    def __init__(self, tree: DatasetTree, transforms: ImageTransforms, threads: int, depth: int) -> None:
        self.depth, self.process = max(depth, threads + 1), os.getpid()
        self._transforms = transforms
        self.refresh(tree)
        self._pending: dict[int, _BatchTask] = {}
        self._tasks: queue.SimpleQueue[_BatchTask | None] = queue.SimpleQueue()
        self._finalizer = weakref.finalize(self, _stop_threads, self._tasks, threads)
        close_at_end(self)
        for index in range(threads):
            Thread(_run_tasks, (self._tasks,), f"torchdali-arrays-{index}").start()

    def refresh(self, tree: DatasetTree) -> None:
        """Use the dataset's current images, which the user may have changed since the last loop."""
        (leaf,) = tree.leaves
        assert leaf.pixels is not None
        self._tree, self._pixels = tree, leaf.pixels.numpy()

    def submit(self, batch_index: int, indices: Indices, seeds: Seeds) -> None:
        self._pending[batch_index] = task = _BatchTask(partial(self._create_batch, indices, mix(*seeds, batch_index)))
        self._tasks.put(task)

    def receive(self, batch_index: int) -> list[Any] | Exception:
        """Wait for the images of a batch; return the images or the batch's error."""
        task = self._pending[batch_index]
        while not task.done.is_set():
            task.done.wait(60.0)
        del self._pending[batch_index]
        result = task.result
        if isinstance(result, Tensor):
            return [result]
        return result if isinstance(result, Exception) else RuntimeError(f"{result!r} in a thread")

    def reset(self) -> None:
        while self._pending:
            self._pending.popitem()[1].drop()

    def close(self) -> None:
        self.reset()
        self._finalizer()

    def _create_batch(self, indices: Indices, key: int) -> Tensor:
        images = self._pixels[[self._tree.locate(i)[1] for i in indices]]
        rng = BatchRng.following(key, 0, len(indices))
        lattice = Lattice.of(images.shape[1], images.shape[2])
        for position, step in enumerate(self._transforms.steps):
            lattice = step.move(lattice, rng.uniform(4, 4 * position))
        assert self._transforms.conversion is not None
        planes = np.ascontiguousarray(lattice.select(images).transpose(0, 3, 1, 2))
        return torch.from_numpy(_convert_planes(planes, self._transforms.conversion))


def _stop_threads(tasks: queue.SimpleQueue[_BatchTask | None], threads: int) -> None:
    for _ in range(threads):
        tasks.put(None)


def _convert_planes(planes: npt.NDArray[np.uint8], conversion: TensorConversion) -> npt.NDArray[Any]:
    """Convert uint8 pixels to normalized floats, with bit-identical results to torchvision's."""
    if not conversion.is_float:
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
def _image_pipeline(
    requests: RequestDataset, cached_transforms: ImageTransforms | None, transforms: ImageTransforms, cache: Any
) -> Any:
    data = _requests(requests=requests)
    if cached_transforms is not None:
        data = cache_in(_still_picture(data, transforms=cached_transforms), cache)
    return _picture(data, transforms=transforms)


class PipelineEngine:
    """Engine for images that a torchdali pipeline decodes and transforms in its threads."""

    def __init__(
        self,
        tree: DatasetTree,
        transforms: ImageTransforms,
        threads: int,
        depth: int,
        batch_size: int,
        cache: Any,
        skip_bad: bool,
    ) -> None:
        self.depth, self.process = depth, os.getpid()
        self._submitted: deque[int] = deque()
        self._skip_bad, self._delivered = skip_bad, 0
        self._requests = requests = RequestDataset(tree, tree.source, tree.leaves[0].pixels is None)
        cached_transforms, remaining = (None, transforms) if cache is None else transforms.divide()
        self.pipeline: Pipeline = _image_pipeline(
            requests, cached_transforms, remaining, cache, batch_size=batch_size, num_threads=threads, device_id=None,
            num_processes=1, prefetch_queue_depth=depth, seed=0, bad_samples="skip" if skip_bad else "raise",
        )  # fmt: skip
        self.pipeline.build()

    def refresh(self, tree: DatasetTree) -> None:
        """Use the datasets' current samples, which the user may have changed since the last loop."""
        self._requests.source = tree.source

    def submit(self, batch_index: int, indices: Indices, seeds: Seeds) -> None:
        self.pipeline.submit_records(indices, mix(*seeds, batch_index))
        self._submitted.append(batch_index)

    def receive(self, batch_index: int) -> list[Any] | Exception:
        """Wait for a batch; return its images, or its error.

        If the loader skips bad samples, the list also contains the set of the bad samples' positions in the batch.
        """
        if self._submitted[0] != batch_index:
            raise RuntimeError(f"the next batch must be {self._submitted[0]}, got {batch_index}")
        self._delivered += 1
        try:
            (images,) = self.pipeline.outputs()
        except PipelineError as error:
            return _restore_error(error)
        finally:
            self._submitted.popleft()
        tensor = images.dense()
        values = [list(images.samples()) if tensor is None else tensor]
        return [*values, self._bad_positions(self._delivered - 1)] if self._skip_bad else values

    def _bad_positions(self, batch: int) -> set[int]:
        return {each.sample for each in self.pipeline.bad_sample_report() if each.batch == batch}

    def reset(self) -> None:
        """Wait for all requested batches, and drop them."""
        self._submitted.clear()
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


def _restore_error(error: PipelineError) -> Exception:
    """Return the exception that the dataset itself would raise, with the name of the file added to the message."""
    cause, location = error.__cause__, str(error).partition("\n")[0]
    if cause is None:
        return error
    sample = location.partition(" failed on ")[2]
    text = f"{cause}\n  {sample}"
    try:
        raised: Exception = type(cause)(text)  # type: ignore[assignment]
    except Exception:  # the constructor of the class requires other arguments
        raised = RuntimeError(f"{type(cause).__name__}: {text}")
    raised.__cause__ = cause
    return raised


def can_use_array_engine(tree: DatasetTree, transforms: ImageTransforms) -> bool:
    """Return True if `ArrayEngine` supports a dataset.

    The images must be in memory and have one size, and the transforms must only move pixels.
    """
    if len(tree.leaves) > 1 or tree.leaves[0].pixels is None or transforms.conversion is None or transforms.ends:
        return False
    pads = [step.pad if isinstance(step, RandomCropStep) else step for step in transforms.steps]
    fills = {step.fill for step in pads if isinstance(step, PadStep) and step.mode == "constant"}
    fills |= {0 for step in transforms.steps if isinstance(step, CenterCropStep)}
    return len(fills) < 2 and all(hasattr(step, "move") for step in transforms.steps)
