"""`DALIServer`: runs a pipeline in the main process for proxies that are called in worker processes."""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from torchdali.dali.proxy.messages import (
    DALIOutputBatchRef,
    DALIOutputSampleRef,
    DALIPipelineRunRef,
    TargetPipeline,
    gather,
    replace,
)
from torchdali.dali.proxy.worker import Proxy
from torchdali.errors import strip_internal_frames
from torchdali.pipeline import Pipeline
from torchdali.tensors import TensorList

__all__ = ["DALIServer", "PendingBatch"]

_servers: weakref.WeakValueDictionary[str, DALIServer] = weakref.WeakValueDictionary()


class _PipelineRun:
    """A run of the pipeline for one batch. When the run has ended, the object has the outputs or the error."""

    def __init__(self, server: DALIServer, ref: DALIPipelineRunRef) -> None:
        self.server, self.ref = server, ref
        self.outputs: tuple[TensorList, ...] | None = None
        self.error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self.outputs is not None or self.error is not None


class DALIServer:
    """Let datasets and transforms in the worker processes of a `DataLoader` use a pipeline of the main process.

    The inputs of the pipeline are its `fn.external_source` nodes without the argument ``source``. A dataset calls
    `proxy` with the inputs of one sample. The pipeline processes the batches in the loader's order for any number of
    workers, so results are reproducible.

    ::

        with DALIServer(pipeline) as server:
            dataset = ImageFolder(root, transform=server.proxy, loader=str)
            for images, labels in DataLoader(server, dataset, batch_size=64, num_workers=2):
                ...

    Args:
        pipeline: The pipeline to run; it must have at least one input.
        deterministic: True if an epoch must be reproducible even after a loop that ended early. In this case, the
            loader waits for the workers' next batches before it delivers a batch. With False, an epoch is reproducible
            only if all earlier loops were complete.
        input_names: Names of the inputs in the order of the proxy's positional arguments. Default: the order in which
            the pipeline defines its inputs.

    Raises:
        TypeError: `pipeline` is not a pipeline.
        RuntimeError: the pipeline has no inputs.
        ValueError: `input_names` aren't the names of the inputs, or the pipeline has no batch size.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        deterministic: bool = False,
        *,
        input_names: Sequence[str] | None = None,
    ) -> None:
        if not hasattr(pipeline, "input_names"):
            raise TypeError(
                f"expected a Pipeline, got {pipeline!r}; call the function under pipeline_def to create one"
            )
        inputs = pipeline.input_names
        if not inputs:
            raise RuntimeError(
                "the pipeline of a proxy must have inputs; add fn.external_source(name=...) without a source"
            )
        names = tuple(inputs if input_names is None else input_names)
        if sorted(names) != sorted(inputs):
            raise ValueError(f"input_names must be the names of the pipeline's inputs, {inputs}, got {list(names)}")
        if pipeline.max_batch_size is None:
            raise ValueError("the pipeline of a proxy must have a batch_size")
        self._pipe, self.deterministic = pipeline, deterministic
        self._target = TargetPipeline(uuid.uuid4().hex, names, pipeline.num_outputs, pipeline.max_batch_size)
        self._lock = threading.RLock()
        self._collected = 0  # number of batches that were taken from the pipeline
        self._started = False
        _servers[self._target.server] = self

    @property
    def proxy(self) -> Proxy:
        """The object that a dataset or transform calls with the inputs of a sample, in place of the pipeline."""
        return Proxy(self._target)

    def start_thread(self) -> None:
        """Build the pipeline and start its threads. If the server is already started, this call has no effect."""
        with self._lock:
            self._pipe.build()
            if not self._started:
                self._collected, self._started = self._pipe.taken, True

    def stop_thread(self) -> None:
        """Wait for all batches in progress and discard their results. `start_thread` starts the server again."""
        with self._lock:
            self._started = False
            while self._collect():
                pass

    def __enter__(self) -> DALIServer:
        self.start_thread()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, tb: Any) -> None:
        self.stop_thread()

    def produce_data(self, obj: Any) -> Any:
        """Run the pipeline for a batch and return the batch with the pipeline's outputs, for custom loaders.

        In the batch that a worker returns, the results of `proxy` are references. This method runs the pipeline, waits
        for the outputs, and replaces each reference with its output.

        Args:
            obj: A batch. References may be inside of lists, tuples, mappings and dataclasses.

        Raises:
            RuntimeError: the samples of an output differ in shape.
            Exception: the error of the pipeline.
        """
        try:
            return PendingBatch(obj, only_server=self).data()
        except Exception as error:
            strip_internal_frames(error)
            raise

    @property
    def depth(self) -> int:
        """Number of batches that the pipeline processes ahead."""
        return int(self._pipe.prefetch_depth)

    # ------------------------------------------------------------ runs

    def _start(self, ref: DALIPipelineRunRef) -> _PipelineRun:
        run = _PipelineRun(self, ref)
        names = zip(ref.target.inputs, ref.columns, strict=True)
        inputs = {name: column.batch(ref.origins) for name, column in names}
        with self._lock:
            if not self._started:
                self.start_thread()
            self._pipe.submit_as(run, inputs)
        ref.columns = []
        return run

    def _finish(self, run: _PipelineRun) -> Sequence[TensorList]:
        with self._lock:
            while not run.done and self._collect():
                pass
        if run.error is not None:
            raise run.error
        if run.outputs is None:
            raise RuntimeError(
                "the outputs of this batch are lost, because an interrupt arrived while they were received"
            )
        return run.outputs

    def _collect(self) -> bool:
        """Wait for the oldest batch in progress, and store its outputs or error in its `_PipelineRun`.

        Return False if no batch is in progress. If an interrupt ends this call, the next call waits for the same batch.
        """
        batch = self._pipe.collect(self._collected)
        if batch is None:
            return False
        run, result = batch
        if isinstance(run, _PipelineRun) and not run.done:
            if isinstance(result, StopIteration):
                run.error = RuntimeError("another source of the proxy's pipeline has no more data")
            elif isinstance(result, Exception):
                run.error = result
            else:
                run.outputs = result
        self._collected = self._pipe.taken
        self._pipe.release_outputs()
        return True


class PendingBatch:
    """A worker's batch for which the pipeline's runs have started.

    Args:
        batch: The worker's batch, which contains references to the pipeline's outputs.
        only_server: Server whose references are replaced. Default: the references of all servers are replaced.
        pin: True to deliver CPU outputs in pinned memory.
    """

    def __init__(self, batch: Any, only_server: DALIServer | None = None, pin: bool = False) -> None:
        gather(batch)
        self._batch, self._only_server, self._pin = batch, only_server, pin
        self._runs: dict[int, _PipelineRun] = {}
        replace(batch, DALIOutputBatchRef, lambda ref: self._begin(ref, ref.source))
        replace(batch, DALIOutputSampleRef, lambda ref: self._begin(ref, ref.source.run))

    def _begin(self, ref: Any, source: DALIPipelineRunRef) -> Any:
        server = _servers.get(source.target.server)
        if server is None:
            raise RuntimeError("the DALIServer of this reference no longer exists, or belongs to another process")
        if id(source) not in self._runs and self._only_server in (None, server):
            self._runs[id(source)] = server._start(source)
        return ref

    def data(self) -> Any:
        """Wait for the runs, and return the batch with the outputs in place of the references."""
        if not self._runs:
            return self._batch
        batch = replace(self._batch, DALIOutputBatchRef, self._batch_output)
        return replace(batch, DALIOutputSampleRef, self._sample_output)

    def _batch_output(self, ref: DALIOutputBatchRef) -> Any:
        run = self._runs.get(id(ref.source))
        if run is None:
            return ref
        output = run.server._finish(run)[ref.output]
        if not output.is_dense_tensor():
            raise RuntimeError(
                f"the samples of output {ref.output} must have one shape, got {sorted(set(output.shape()))[:4]}; "
                f"resize or pad them in the pipeline, or pass the DataLoader a collate_fn that returns a list"
            )
        return self._pin_tensor(output.stack())

    def _sample_output(self, ref: DALIOutputSampleRef) -> Any:
        run = self._runs.get(id(ref.source.run))
        if run is None:
            return ref
        return self._pin_tensor(run.server._finish(run)[ref.output].samples()[ref.source.index])

    def _pin_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.pin_memory() if self._pin and tensor.device.type == "cpu" else tensor
