"""A chain that runs on a batch, and what all stages of an executor share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import InFlightBatch, OpenDataset, Settings
from torchdali.execute.chunks import ChunkRun
from torchdali.execute.compiled_chain import BoundChain, CompiledChain, Division
from torchdali.execute.device_stream import DeviceStream
from torchdali.execute.hardware_decoding import LeftSamples
from torchdali.execute.memory_stats import MemoryStats
from torchdali.execute.output_buffer import OpenBuffer
from torchdali.execute.sync import CallerQueue
from torchdali.execute.thread_pool import ThreadPool
from torchdali.execute.timings import ChainTimings, Profile
from torchdali.graph.nodes import DataNode, Node
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["ChainRun", "Runtime"]


@dataclass
class Runtime:
    """Settings and resources that all stages of an executor share.

    Attributes:
        caller_queue: Of a synchronous pipeline: runs the steps in the thread that waits for the batch.
    """

    settings: Settings
    readers: Mapping[Node, OpenDataset]
    bad_samples: BadSamples
    device_stream: DeviceStream
    buffers: BufferPool
    profile: Profile
    memory: MemoryStats
    threads: ThreadPool
    caller_queue: CallerQueue | None


@dataclass
class ChainRun:
    """A chain that runs on a batch.

    Attributes:
        division: How the batch is divided.
        opened: Where results are stored, by edge.
        left: Samples that are left to an engine of the device, by edge.
        chunks: What runs the chunks.
        blamed: The operator that failed, by the identity of the error.
    """

    batch: InFlightBatch
    compiled: CompiledChain
    bound: BoundChain
    division: Division
    timings: ChainTimings | None = None
    opened: dict[DataNode, OpenBuffer] = field(default_factory=dict)
    left: dict[DataNode, LeftSamples] = field(default_factory=dict)
    chunks: ChunkRun | None = None
    blamed: dict[int, Node] = field(default_factory=dict)

    def node_of(self, error: BaseException) -> Node | None:
        """Return the operator that failed."""
        node = self.blamed.get(id(error))
        return None if node is None else node.culprit(error)
