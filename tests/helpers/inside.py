"""Functions that inspect pipelines and loaders, or change private values, for tests that cannot use public names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

from torchdali import Pipeline

__all__ = [
    "computed_in_one_piece", "count_blocks", "per_sample_calls", "compiled", "record_constants", "decodes_by_hardware",
    "drawn", "executor_of", "fused_calls", "graph_of", "lazy_opening", "memory_before", "no_lazy_image_before",
    "forget_marks", "pipeline_of", "pool_of", "repeated_chunks", "server_of", "small_batches", "spare_of", "storage_of",
    "with_blocks_from", "without_alias", "without_pauses",
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
    """Fill the memory into which a JPEG is decoded with a value."""
    from torchdali.codecs import _turbo

    marked = _turbo._allocate_marked

    def filled(size: int) -> Any:
        memory = marked(size)
        memory[:-8] = value
        return memory

    with mock.patch.object(_turbo, "_allocate_marked", filled):
        yield


def fused_calls(patch: pytest.MonkeyPatch, note: Callable[..., None]) -> None:
    """Call ``note(programs, results, *memory)`` after each call of the library for the images of a chunk."""
    from torchdali.ops import _decode_chain

    run = _decode_chain.run_programs

    def noted(sources: Any, programs: Any, *memory: Any) -> Any:
        results = run(sources, programs, *memory)
        note(programs, results, *memory)
        return results

    patch.setattr(_decode_chain, "run_programs", noted)


def repeated_chunks(patch: pytest.MonkeyPatch, note: Callable[[Any], None]) -> None:
    """Call ``note(samples)`` for each chunk that failed, or skipped samples, which are rerun one by one."""
    from torchdali.execute.chain_run import ChainRun

    one_by_one = ChainRun._one_by_one

    def noted(run: Any, samples: Any) -> bool:
        if run._run_chunk is not None:
            note(samples)
        return one_by_one(run, samples)

    patch.setattr(ChainRun, "_one_by_one", noted)


def per_sample_calls(patch: pytest.MonkeyPatch, note: Callable[..., None]) -> None:
    """Call ``note(inputs)`` for each chunk whose samples an operator runs one by one."""
    from torchdali.calls.chunk_function import ChunkFunction

    in_turn = ChunkFunction._run_one_by_one

    def noted(function: Any, inputs: Any, *rest: Any) -> Any:
        note(inputs)
        return in_turn(function, inputs, *rest)

    patch.setattr(ChunkFunction, "_run_one_by_one", noted)


def decodes_by_hardware(patch: pytest.MonkeyPatch, can: Callable[[Any], bool] = lambda device: True) -> None:
    """Let pipelines treat every device, or the devices that a function selects, as able to decode JPEGs."""
    patch.setattr("torchdali.codecs.engines.refusals", {})
    patch.setattr("torchdali.graph.rewrite._on_device.is_available", can)


def with_blocks_from(patch: pytest.MonkeyPatch, pool: type, size: int) -> None:
    """Allocate memory of at least this size from the pool of blocks of a kind."""
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
    """Reset lazy images to the state of a new process; images with more pixels than `smallest` are lazy."""
    from torchdali.dataloader import _lazy_images

    patch.setattr(_lazy_images._history, "needs_whole_images", False)
    if smallest is not None:
        patch.setattr(_lazy_images, "MAX_EAGER_PIXELS", smallest)


def small_batches(patch: pytest.MonkeyPatch, few: int, few_moved: int) -> None:
    """Set the smallest in-memory batches of images that are accelerated: in general, and if the images are only moved."""
    from torchdali.dataloader import _image_plans

    patch.setattr(_image_plans, "MIN_BATCH_SIZE", few)
    patch.setattr(_image_plans, "MIN_BATCH_SIZE_MOVED", few_moved)


def without_pauses(patch: pytest.MonkeyPatch) -> None:
    """Repeat requests to stores without pauses."""
    patch.setattr("torchdali.formats.remote.LONGEST_PAUSE", 0.0)


def computed_in_one_piece(records: int) -> Any:
    """Return a context manager in which orders of up to this number of records are computed in one piece."""
    return mock.patch("torchdali.reading.cursor.LONG_ORDER", records)


def record_constants(patch: pytest.MonkeyPatch, record: Callable[..., Any]) -> None:
    """Call ``record(**arguments)`` instead of `fn.constant` for each constant of several values."""
    patch.setattr("torchdali.graph.constants._record", record)


def executor_of(pipe: Pipeline) -> Any:
    """Return the executor of a built pipeline."""
    return pipe._executor


def pool_of(pipe: Pipeline) -> Any:
    """Return a pipeline's pool of worker processes."""
    return executor_of(pipe).replicas.pool


def server_of(pool: Any) -> int:
    """Return the id of the process that starts workers."""
    return int(_server(pool)._current.process.pid)


def spare_of(pool: Any) -> int:
    """Return the id of the process that replaces the server if it dies."""
    return int(_server(pool)._spare.process.pid)


def _server(pool: Any) -> Any:
    return pool._starter._server


def count_blocks(buffers: Any) -> int:
    """Return the number of allocated blocks of shared memory."""
    return int(buffers._block_count)


def forget_marks(patch: pytest.MonkeyPatch) -> None:
    """Forget the pipelines that `autoserialize` has marked, for the time of a test."""
    from torchdali.plugin import triton

    patch.setattr(triton, "_marked", [])


def without_alias(patch: pytest.MonkeyPatch) -> None:
    """Leave ``nvidia.dali`` unchanged in this process: other tests may have imported the real one."""
    patch.setattr("torchdali._commands.scripts.alias_nvidia_dali", lambda: None)
