"""Build the executor of a pipeline from its options and graph."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import torch

from torchdali.errors import locate_error, note, warnings_on
from torchdali.execute.affinity import affinity
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import ReaderState, Settings
from torchdali.execute.caching import SampleCache
from torchdali.execute.device_stream import resolve_device
from torchdali.execute.executor import Executor
from torchdali.execute.process_pool import open_processes, open_sources
from torchdali.execute.workers.placing import choose_placement, choose_remote_placement
from torchdali.graph.nodes import Graph, Node
from torchdali.graph.plan import Plan, plan
from torchdali.graph.rewrite import cut_at_caches, rewrite, uses_fast_path
from torchdali.kernels.native import library
from torchdali.pipeline._options import PipelineOptions
from torchdali.pipeline._warnings import warn_of_likely_mistakes
from torchdali.reading.cursor import Cursor, EpochOrder
from torchdali.reading.datasets import LoaderOptions, check_dataset
from torchdali.reading.sources import BatchSource
from torchdali.reading.user_random import seed_of_name
from torchdali.rng import mix
from torchdali.types import StreamPolicy

__all__ = [
    "RemoteWorkers",
    "build",
    "has_lazy_readers",
    "open_graph",
    "open_reader",
    "open_source",
]


def open_graph(options: PipelineOptions, graph: Graph) -> tuple[Plan, Mapping[Node, BatchSource]]:
    """Plan a graph, and open its sources. This starts the worker processes of parallel sources.

    Raises:
        ValueError: An operator doesn't support the pipeline's device.
        Exception: A source can't be opened.
    """
    options.output_specs.per_output(len(graph.outputs))
    _check_constants(graph)
    cut = cut_at_caches(graph, partial(_build_cache, options))
    planned = plan(_rewrite_graph(options, cut, resolve_device(options.device_id)))
    _check_devices(options, planned.graph)
    warn_of_likely_mistakes(graph)
    sources = {
        node: node.operator.implementation(**node.constants)
        for node in planned.graph.nodes
        if node.operator.kind == "source"
    }
    _open_sources(options, sources)
    return planned, sources


def _rewrite_graph(options: PipelineOptions, graph: Graph, device: torch.device | None) -> Graph:
    return rewrite(graph, options.exact, options.scaled_decode, device)


def _build_cache(options: PipelineOptions, upstream: Graph, cache: Node, digest: bytes) -> SampleCache:
    """Return the cache for the samples that the graph before `fn.cache` computes.

    The cache's key consists of `digest`, which describes the graph, and the settings that change pixels.
    """
    version = sys.modules[__name__.partition(".")[0]].__version__
    settings = version, options.exact, options.scaled_decode, library() is not None
    digest = hashlib.blake2b(repr(settings).encode() + digest, digest_size=16).digest()
    parts = tuple(node.name for node in upstream.nodes)
    limit, folder = cache.constants.get("bytes"), cache.constants.get("path")
    return SampleCache(_rewrite_graph(options, upstream, None), parts, digest, limit, folder)


def _open_sources(options: PipelineOptions, sources: Mapping[Node, BatchSource]) -> None:
    assert options.batch_size is not None
    seeded = {seed_of_name(options.random_seed, node.name): source for node, source in sources.items()}
    try:
        open_sources(
            seeded, options.batch_size, options.py_num_workers, options.py_start_method, options.py_callback_pickler
        )  # fmt: skip
    except Exception as error:
        for node in sources:
            if node.constants.get("parallel"):
                note(error, f"a source with parallel=True\n  {node.where}")
        raise


def _check_constants(graph: Graph) -> None:
    for node in graph.nodes:
        check = node.operator.options.check
        if check is None:
            continue
        arguments = node.operator.arguments(node.constants)
        try:
            check({k: v for k, v in arguments.items() if k not in node.per_sample})
        except Exception as error:
            raise locate_error(error, _describe_failure(node)) from error


def _describe_failure(node: Node) -> str:
    return f"operator {node.title!r} cannot be built\n  {node.where}"


def _check_devices(options: PipelineOptions, graph: Graph) -> None:
    if resolve_device(options.device_id) is not None:
        return
    for node in graph.nodes:
        if node.device != "cpu":
            name = node.operator.name
            subject = ".gpu()" if name == "_to_device" else f"operator {name!r}"
            raise RuntimeError(
                f"the pipeline requires a CUDA-capable GPU but has device_id=None (CPU only): {subject} runs on "
                f'{node.device!r}. Pass device_id=0 to the pipeline for the first GPU, or device_id="cpu" to use '
                f"the CPU\n  {node.where}"
            )


class RemoteWorkers(Protocol):
    """An object that starts worker processes on other machines, for example `Actors`."""

    @property
    def count(self) -> int: ...
    def start(self, *arguments: Any) -> Any: ...


def build(
    options: PipelineOptions,
    planned: Plan,
    sources: Mapping[Node, BatchSource],
    bad_samples: BadSamples,
    remote_workers: RemoteWorkers | None = None,
) -> Executor:
    """Open the readers, start the threads and processes, and return the executor that owns them."""
    assert options.batch_size and options.num_threads
    readers = {node: open_reader(options, node) for node in planned.graph.nodes if node.operator.kind == "reader"}
    device = resolve_device(options.device_id)
    settings = Settings(
        options.batch_size,
        options.num_threads,
        options.random_seed,
        device,
        start_thread=affinity(device) if options.set_affinity else None,
        synchronous=not (options.exec_async and options.exec_pipelined),
        memory_stats=options.enable_memory_stats,
        max_pixels=options.max_pixels,
        stream_priority=options.default_cuda_stream_priority or 0,
        one_stream=options.max_streams == 1 or options.stream_policy is StreamPolicy.SINGLE,
        exact=options.exact,
    )
    if remote_workers is not None:
        placement = choose_remote_placement(planned, readers, remote_workers.count)
        return Executor(planned, settings, readers, sources, bad_samples, placement, remote_workers.start)
    placement = choose_placement(
        planned, readers, options.num_processes, settings, options.py_start_method, uses_fast_path(planned.graph)
    )  # fmt: skip
    return Executor(planned, settings, readers, sources, bad_samples, placement)


def has_lazy_readers(planned: Plan) -> bool:
    """Return whether a reader has ``lazy_init``, which means that it must not be opened before the first batch."""
    return any(node.operator.kind == "reader" and node.constants.get("lazy_init") for node in planned.graph.nodes)


def open_source(options: PipelineOptions, node: Node) -> BatchSource:
    """Open one source that isn't a reader."""
    source: BatchSource = node.operator.implementation(**node.constants)
    _open_sources(options, {node: source})
    return source


def open_reader(options: PipelineOptions, node: Node) -> ReaderState:
    """Open a reader. Errors and warnings point to the user's line."""
    lines = [(each.file, each.line) for each in node.lines[:1]]
    try:
        with warnings_on(*lines[0]) if lines else contextlib.nullcontext():
            return _open_reader(options, node)
    except Exception as error:
        raise locate_error(error, _describe_failure(node)) from error


def _open_reader(options: PipelineOptions, node: Node) -> ReaderState:
    arguments = {k: node.constants[k] for k in LoaderOptions.__dataclass_fields__ if k in node.constants}
    loader = LoaderOptions(**arguments)
    dataset: Any = node.operator.implementation(**node.constants)
    check_dataset(dataset)
    seed = seed_of_name(options.random_seed, node.name)
    processes = open_processes(dataset, seed, options.py_start_method, options.py_callback_pickler)
    loader_seed = loader.seed if loader.seed not in (None, -1) else None
    seed = mix(options.random_seed, 1) & 0x7FFFFFFF if loader_seed is None else loader_seed
    return ReaderState(dataset, Cursor(EpochOrder.of(dataset, loader, seed)), processes)
