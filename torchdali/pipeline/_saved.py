"""Save a pipeline's arguments and graph as JSON text, and read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchdali.graph import serialization
from torchdali.graph.nodes import Graph
from torchdali.pipeline._options import PipelineOptions

__all__ = ["read_pipeline", "write_pipeline"]


def write_pipeline(options: PipelineOptions, graph: Graph, filename: str | None) -> bytes:
    """Return the options and the graph as JSON text. If `filename` is set, also write the text to this file."""
    saved = {
        "version": 1,
        "arguments": {k: serialization.encode(v) for k, v in options.saved_arguments().items()},
        "graph": serialization.graph_to_json(graph),
    }
    data = json.dumps(saved).encode()
    if filename is not None:
        Path(filename).write_bytes(data)
    return data


def read_pipeline(data: str | bytes | None, filename: str | None = None) -> tuple[dict[str, Any], Graph]:
    """Read the arguments of `Pipeline` and the graph from the result of `write_pipeline`, or from its file.

    Raises:
        ValueError: Both `data` and `filename` are set, or neither.
        RuntimeError: The data isn't a saved pipeline, is damaged, or uses an operator that isn't declared.
    """
    if (data is None) == (filename is None):
        raise ValueError("pass either serialized_pipeline or filename")
    if filename is not None:
        data = Path(filename).read_bytes()
    try:
        saved = json.loads(data or "")
    except (ValueError, RecursionError) as error:
        raise RuntimeError(f"not a serialized torchdali pipeline (expected JSON text): {error}") from None
    if not isinstance(saved, dict) or saved.get("version") != 1 or "graph" not in saved:
        raise RuntimeError("the JSON text isn't a serialized pipeline that this version of torchdali supports")
    return _read_arguments(saved.get("arguments")), serialization.graph_from_json(saved["graph"])


def _read_arguments(saved: Any) -> dict[str, Any]:
    if not isinstance(saved, dict) or not saved.keys() <= PipelineOptions().saved_arguments().keys():
        raise RuntimeError("the saved pipeline cannot be read: it has arguments that Pipeline doesn't support")
    try:
        return {name: serialization.decode(value) for name, value in saved.items()}
    except ValueError as error:
        raise RuntimeError(f"the saved pipeline cannot be read, since its arguments are invalid: {error}") from None
