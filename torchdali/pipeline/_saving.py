"""Saving a pipeline: its place in its sources, and its graph."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from torchdali import serialize
from torchdali.execute import checkpoint
from torchdali.pipeline._running import Running

__all__ = ["Saved", "reshard_pipelines"]

reshard_pipelines = checkpoint.reshard

Self = TypeVar("Self", bound="Saved")


class Saved(Running):
    """A pipeline whose place and graph can be saved and continued, as JSON.

    Attributes:
        external_context: What an iterator added to the checkpoint that the pipeline continues.
    """

    external_context: Mapping[str, Any] = {}
    _restored = False

    # ------------------------------------------------------------ the place

    def build(self) -> None:
        if self._executor is not None:
            return
        super().build()
        if self._checkpoint is not None:
            try:
                self.load_state_dict(checkpoint.decode(self._checkpoint))
            except BaseException:
                self.close()
                self._executor = None
                raise

    build.__doc__ = Running.build.__doc__

    def state_dict(self) -> dict[str, Any]:
        """Return the place after the last batch that was taken, as JSON values.

        It costs nothing, and counts only batches that were taken: those in flight come again.
        """
        running = self._running
        return checkpoint.encode(running.place, self._fingerprint)

    @functools.cached_property
    def _fingerprint(self) -> list[str]:
        return checkpoint.fingerprint(self._traced())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a place that `state_dict` returned; batches in flight are dropped.

        The pipeline must have the same graph; batch size, threads, queue depth and the location of the data
        may differ. The random seed is that of the place.

        Raises:
            RuntimeError: the graph is another one, with the lines that differ; or the place is of another
            data set or shard.
        """
        checkpoint.check(state, self._fingerprint)
        self._running.restore(state)
        self._first, self._restored = True, True
        self.external_context = state.get("external_context", {})

    def checkpoint(self, filename: str | None = None) -> bytes:
        """Return the place after the last batch that was taken, for ``Pipeline(checkpoint=...)``.

        Args:
            filename: Where to write it, too.
        """
        data = json.dumps(self.state_dict()).encode()
        if filename is not None:
            Path(filename).write_bytes(data)
        return data

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether the pipeline continues from a saved place; known once it is built."""
        return self._restored

    # ------------------------------------------------------------ the graph

    def serialize(
        self, define_graph: Callable[[], Any] | None = None, filename: str | None = None
    ) -> bytes:
        """Return graph and arguments as JSON text, for `deserialize`.

        Args:
            define_graph: Defines the graph, if nothing else does.
            filename: Where to write it, too.

        Raises:
            RuntimeError: an argument of an operator is a Python object, such as a callback; names both.
        """
        if define_graph is not None and self._function is None:
            self._function = define_graph
        saved = {
            "version": 1,
            "arguments": {k: serialize.encode(v) for k, v in self._arguments().items()},
            "graph": serialize.graph_to_json(self._traced()),
        }
        data = json.dumps(saved).encode()
        if filename is not None:
            Path(filename).write_bytes(data)
        return data

    @classmethod
    def deserialize(
        cls: type[Self],
        serialized_pipeline: str | bytes | None = None,
        filename: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Return the pipeline that `serialize` wrote.

        Args:
            serialized_pipeline: What it returned; or
            filename: the file it wrote.
            kwargs: Arguments of `Pipeline` that override the saved ones.

        Raises:
            ValueError: not exactly one of the two. RuntimeError: this is no saved pipeline, or it uses an
            operator that is not declared.
        """
        if (serialized_pipeline is None) == (filename is None):
            raise ValueError("give either serialized_pipeline or filename")
        if filename is not None:
            serialized_pipeline = Path(filename).read_bytes()
        assert serialized_pipeline is not None
        saved = _parse(serialized_pipeline)
        arguments = {k: serialize.decode(v) for k, v in saved["arguments"].items()}
        pipe = cls(**{**arguments, **kwargs})
        pipe._graph = serialize.graph_from_json(saved["graph"])
        return pipe

    def deserialize_and_build(self, serialized_pipeline: str | bytes) -> None:
        """Take over the graph that `serialize` wrote, with this pipeline's own arguments, and build it."""
        self._graph = serialize.graph_from_json(_parse(serialized_pipeline)["graph"])
        self.build()

    def save_graph_to_dot_file(
        self,
        filename: str,
        *,
        show_tensors: bool = False,
        show_ids: bool | None = None,
        use_colors: bool = False,
    ) -> None:
        """Write a drawing of the graph in the language of Graphviz.

        Args:
            filename: Where to.
            show_tensors: Draw the edges as boxes of their own.
            show_ids: Accepted, without effect, as in DALI.
            use_colors: Colour operators by device.
        """
        text = serialize.dot(self._traced(), show_tensors=show_tensors, use_colors=use_colors)
        Path(filename).write_text(text, encoding="utf-8")


def _parse(data: str | bytes) -> dict[str, Any]:
    try:
        saved = json.loads(data)
    except ValueError as error:
        raise RuntimeError(
            f"this is no serialized pipeline of torchdali (JSON text): {error}"
        ) from None
    if not isinstance(saved, dict) or saved.get("version") != 1 or "graph" not in saved:
        raise RuntimeError("this is JSON, but no serialized pipeline that this torchdali reads")
    return saved
