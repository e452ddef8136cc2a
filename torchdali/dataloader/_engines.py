"""Engines: they make the batches of an accelerated loader, from indices to tensors."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.dataloader._rows import Indices
from torchdali.dataloader._sources import Leaves
from torchdali.errors import PipelineError
from torchdali.ops._caching import cache_in
from torchdali.ops._picture_steps import CenterCrop, Lattice, Pad, RandomCrop
from torchdali.ops._pictures import Chain, Finish, Requests, _picture, _requests, _still_picture
from torchdali.pipeline import Pipeline, pipeline_def
from torchdali.rng import BatchRng

__all__ = ["Arrays", "Pictures", "is_movable"]


class Arrays:
    """Pictures of one size in memory, of which all steps only move pixels: a batch is one selection of pixels.

    Threads make whole batches: the functions of NumPy that do the work hold no lock.
    """

    def __init__(self, leaves: Leaves, chain: Chain, threads: int, depth: int) -> None:
        self.depth, self.process = max(depth, threads + 1), os.getpid()
        self._chain = chain
        self.renew(leaves)
        self._pool = ThreadPoolExecutor(threads, "torchdali-arrays")
        self._futures: dict[int, Future[Tensor]] = {}

    def renew(self, leaves: Leaves) -> None:
        """Take the pictures as they are now."""
        (leaf,) = leaves.leaves
        assert leaf.pixels is not None
        self._leaves, self._pixels = leaves, leaf.pixels.numpy()

    def submit(self, number: int, indices: Indices, key: int) -> None:
        """Start a batch."""
        self._futures[number] = self._pool.submit(self._batch, indices, key)

    def take(self, number: int) -> list[Any] | Exception:
        """Wait for the images of a batch."""
        future = self._futures[number]
        error = future.exception()
        del self._futures[number]
        if error is None:
            return [future.result()]
        return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__} in a thread: {error}")

    def reset(self) -> None:
        """Drop all requests."""
        while self._futures:
            self._futures.popitem()[1].cancel()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _batch(self, indices: Indices, key: int) -> Tensor:
        pictures = self._pixels[[self._leaves.place(i)[1] for i in indices]]
        rng = BatchRng.following(key, 0, len(indices))
        lattice = Lattice.of(pictures.shape[1], pictures.shape[2])
        for number, step in enumerate(self._chain.steps):
            lattice = step.move(lattice, rng.uniform(4, 4 * number))
        assert self._chain.finish is not None
        planes = np.ascontiguousarray(lattice.select(pictures).transpose(0, 3, 1, 2))
        return torch.from_numpy(_finished(planes, self._chain.finish))


def _finished(planes: npt.NDArray[np.uint8], finish: Finish) -> npt.NDArray[Any]:
    """Do what torchvision does to bytes, to the bit."""
    if not finish.unit:
        return planes
    values = planes.astype(np.float32)
    if finish.multiplies:
        values *= np.float32(1 / 255)
    else:
        values /= 255
    if finish.mean is not None and finish.std is not None:
        mean, std = (np.asarray(each, np.float32)[:, None, None] for each in (finish.mean, finish.std))
        values -= mean
        values /= std
    return values


@pipeline_def
def _graph(requests: Requests, kept_chain: Chain | None, chain: Chain, cache: Any) -> Any:
    data = _requests(requests=requests)
    if kept_chain is not None:
        data = cache_in(_still_picture(data, chain=kept_chain), cache)
    return _picture(data, chain=chain)


class Pictures:
    """Pictures that threads decode and transform."""

    def __init__(
        self, leaves: Leaves, chain: Chain, threads: int, depth: int, batch_size: int, cache: Any, skips: bool
    ) -> None:
        self.depth, self.process = depth, os.getpid()
        self._numbers: deque[int] = deque()
        self._skips, self._delivered = skips, 0
        self._requests = requests = Requests(leaves, leaves.source, leaves.leaves[0].pixels is None)
        before, after = (None, chain) if cache is None else chain.divided()
        self.pipeline: Pipeline = _graph(
            requests, before, after, cache, batch_size=batch_size, num_threads=threads, device_id=None,
            num_processes=1, prefetch_queue_depth=depth, seed=0, bad_samples="skip" if skips else "raise",
        )  # fmt: skip
        self.pipeline.build()

    def renew(self, leaves: Leaves) -> None:
        """Take the samples as they are now."""
        self._requests.source = leaves.source

    def submit(self, number: int, indices: Indices, key: int) -> None:
        """Start a batch."""
        self.pipeline.submit_records(indices, key)
        self._numbers.append(number)

    def take(self, number: int) -> list[Any] | Exception:
        """Wait for the images of a batch; bad samples are missing, and their positions come second."""
        if self._numbers[0] != number:
            raise RuntimeError(f"batch {self._numbers[0]} is the next of the pipeline, not {number}")
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
        """Return the positions of the bad samples of a batch."""
        return {each.sample for each in self.pipeline.bad_sample_report() if each.batch == batch}

    def reset(self) -> None:
        """Wait for the batches that were started, and drop them."""
        self._numbers.clear()
        while True:
            try:
                self.pipeline.outputs()
            except StopIteration:  # none is left
                return
            except Exception:
                pass  # it belongs to a batch that nobody wants any more
            self._delivered += 1

    def close(self) -> None:
        """End the threads."""
        self.pipeline.close()


def _as_raised(error: PipelineError) -> Exception:
    """Return an exception of the class that a data set would have raised, which names the file, too."""
    cause, place = error.__cause__, str(error).partition("\n")[0]
    if cause is None:
        return error
    sample = place.partition(" failed on ")[2]
    text = f"{cause}\n  {sample}"
    try:
        raised: Exception = type(cause)(text)  # type: ignore[assignment]
    except Exception:  # its class takes other arguments
        raised = RuntimeError(f"{type(cause).__name__}: {text}")
    raised.__cause__ = cause
    return raised


def is_movable(leaves: Leaves, chain: Chain) -> bool:
    """Return True if `Arrays` takes a chain: pictures of one size in memory, of which pixels are only moved."""
    if len(leaves.leaves) > 1 or leaves.leaves[0].pixels is None or chain.finish is None or chain.ends:
        return False
    pads = [step.pad if isinstance(step, RandomCrop) else step for step in chain.steps]
    fills = {step.fill for step in pads if isinstance(step, Pad) and step.mode == "constant"}
    fills |= {0 for step in chain.steps if isinstance(step, CenterCrop)}
    return len(fills) < 2 and all(hasattr(step, "move") for step in chain.steps)
