"""Functions that look into pipelines and loaders, or change private values, for tests that cannot use public names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

from torchdali import Pipeline

__all__ = [
    "at_hand", "blocks_made", "bodiless_calls", "compiled", "constants_go_to", "decodes_by_hardware", "drawn", "executor_of", "fused_calls",
    "graph_of", "lazy_opening", "memory_before", "no_lazy_image_before", "nothing_marked", "pipeline_of", "pool_of", "repeated_chunks",
    "server_of", "small_batches", "spare_of", "storage_of", "with_blocks_from", "without_alias", "without_pauses",
]  # fmt: skip


def graph_of(pipe: Pipeline) -> Any:
    """Return the graph that a pipeline defines."""
    return pipe._trace()


def pipeline_of(loader: Any) -> Pipeline:
    """Return the pipeline of a loader."""
    return loader._pipe  # type: ignore[no-any-return]


def storage_of(batch: Any) -> Any:
    """Return the samples of a batch of the dynamic mode as a `TensorList`."""
    return batch.evaluate()._storage


@contextlib.contextmanager
def memory_before(value: int) -> Iterator[None]:
    """Have the memory that a JPEG is decoded into hold a value before."""
    from torchdali.codecs import _turbo

    marked = _turbo._allocate_marked

    def filled(size: int) -> Any:
        memory = marked(size)
        memory[:-8] = value
        return memory

    with mock.patch.object(_turbo, "_allocate_marked", filled):
        yield


def fused_calls(patch: pytest.MonkeyPatch, note: Callable[..., None]) -> None:
    """Have ``note(programs, results, *memory)`` called after each call of the library for the images of a chunk."""
    from torchdali.ops import _decode_chain

    run = _decode_chain.run_programs

    def noted(sources: Any, programs: Any, *memory: Any) -> Any:
        results = run(sources, programs, *memory)
        note(programs, results, *memory)
        return results

    patch.setattr(_decode_chain, "run_programs", noted)


def repeated_chunks(patch: pytest.MonkeyPatch, note: Callable[[Any], None]) -> None:
    """Have ``note(samples)`` called for each chunk that failed, or was left, and is done one by one."""
    from torchdali.execute.chain_run import ChainRun

    one_by_one = ChainRun._one_by_one

    def noted(run: Any, samples: Any) -> bool:
        if run._do is not None:
            note(samples)
        return one_by_one(run, samples)

    patch.setattr(ChainRun, "_one_by_one", noted)


def bodiless_calls(patch: pytest.MonkeyPatch, note: Callable[..., None]) -> None:
    """Have ``note(inputs)`` called for each chunk that an operator does one by one."""
    from torchdali.calls.chunk_function import ChunkFunction

    in_turn = ChunkFunction._in_turn

    def noted(function: Any, inputs: Any, *rest: Any) -> Any:
        note(inputs)
        return in_turn(function, inputs, *rest)

    patch.setattr(ChunkFunction, "_in_turn", noted)


def decodes_by_hardware(patch: pytest.MonkeyPatch, can: Callable[[Any], bool] = lambda device: True) -> None:
    """Have pipelines take every device, or those of which a function says so, for one that decodes JPEGs and has not failed."""
    patch.setattr("torchdali.codecs.engines._refusals", {})
    patch.setattr("torchdali.graph.rewrite._on_device.available", can)


def with_blocks_from(patch: pytest.MonkeyPatch, pool: type, size: int) -> None:
    """Have memory of at least a size taken from the pool of blocks of a kind."""
    patch.setattr(pool, "_smallest", size)


def compiled(transform: Any, channels: int = 3) -> Any:
    """Return a dataset's transforms as a `DataLoader` compiles them, for PIL images."""
    from torchdali.dataloader._chains import compile_transforms

    return compile_transforms(transform, channels)


def drawn(transforms: Any, size: tuple[int, int], rng: Any) -> Any:
    """Draw the random numbers of compiled transforms, for an image."""
    from torchdali.ops._pictures import DrawnTransforms

    return DrawnTransforms(transforms, size, rng)


def lazy_opening() -> Any:
    """Return a context manager in which Pillow opens JPEGs as in a loader."""
    from torchdali.dataloader._lazy_opening import LazyOpening

    return LazyOpening()


def no_lazy_image_before(patch: pytest.MonkeyPatch, smallest: int | None = None) -> None:
    """Make lazy images begin as in a new process; images with more pixels than `smallest` are lazy."""
    from torchdali.dataloader import _lazy_images

    patch.setattr(_lazy_images._history, "needs_whole_images", False)
    if smallest is not None:
        patch.setattr(_lazy_images, "_TINY", smallest)


def small_batches(patch: pytest.MonkeyPatch, few: int, few_moved: int) -> None:
    """Set the smallest batches of images in memory that are accelerated: in general, and if the images are only moved."""
    from torchdali.dataloader import _picture_plans

    patch.setattr(_picture_plans, "MIN_BATCH_SIZE", few)
    patch.setattr(_picture_plans, "MIN_BATCH_SIZE_MOVED", few_moved)


def without_pauses(patch: pytest.MonkeyPatch) -> None:
    """Have requests to stores repeated at once."""
    patch.setattr("torchdali.formats.remote._LONGEST_PAUSE", 0.0)


def at_hand(records: int) -> Any:
    """Return a context manager in which orders of up to so many records are computed in one piece."""
    return mock.patch("torchdali.reading.cursor._LONG", records)


def constants_go_to(patch: pytest.MonkeyPatch, record: Callable[..., Any]) -> None:
    """Have ``record(**arguments)`` called instead of `fn.constant` for each constant of several values."""
    patch.setattr("torchdali.graph.constants._record", record)


def executor_of(pipe: Pipeline) -> Any:
    """Return what runs a pipeline that is built."""
    return pipe._executor


def pool_of(pipe: Pipeline) -> Any:
    """Return its worker processes."""
    return executor_of(pipe).replicas.pool


def server_of(pool: Any) -> int:
    """Return the number of the process that starts workers."""
    return int(_server(pool)._serving.process.pid)


def spare_of(pool: Any) -> int:
    """Return the number of the process that takes its place."""
    return int(_server(pool)._spare.process.pid)


def _server(pool: Any) -> Any:
    return pool._starter._server


def blocks_made(buffers: Any) -> int:
    """Return how many blocks of shared memory were made."""
    return int(buffers._made_blocks)


def nothing_marked(patch: pytest.MonkeyPatch) -> None:
    """Forget the pipelines that `autoserialize` has marked, for a while."""
    from torchdali.plugin import triton

    patch.setattr(triton, "_marked", [])


def without_alias(patch: pytest.MonkeyPatch) -> None:
    """Leave ``nvidia.dali`` as it is in this process: other tests may have imported the real one."""
    patch.setattr("torchdali._commands.scripts.alias_nvidia_dali", lambda: None)
