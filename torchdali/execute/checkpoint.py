"""The place of a pipeline as JSON values, and which pipeline it belongs to.

A place is a few integers per source. With it goes a *fingerprint*: the graph as lines of text, so that a
place of another pipeline is refused with the lines that differ. What decides only where the data lie, who
reads which part of them, or how fast, is left out of the lines: such a place may be continued.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
import torch

from torchdali import loader
from torchdali.graph import DataNode, Graph, Node

__all__ = ["State", "check", "decode", "encode", "fingerprint", "labels", "reshard"]

State = dict[str, Any]

_VERSION = 1
_LONG = 60  # characters of a value that stand in the fingerprint; of longer ones a digest does
_FOR_SPEED = frozenset(("prefetch_queue_depth", "parallel", "no_copy", "hw_decoder_load"))
_OF_READERS = _FOR_SPEED | frozenset((
    "shard_id", "num_shards", "seed", "initial_fill", "read_ahead", "lazy_init", "dont_use_mmap",
    "skip_cached_images", "tensor_init_bytes",
    "file_root", "files", "file_list", "path", "paths", "filenames", "index_path", "index_paths",
    "annotations_file", "manifest_filepaths", "preprocessed_annotations",
))  # fmt: skip


def labels(graph: Graph) -> dict[Node, str]:
    """Name the nodes of a graph: as the user did, otherwise by operator and place in the graph.

    Unlike names made while tracing, these do not change with what was traced and pruned.
    """
    return {
        node: f"{node.operator.name}_{i}" if node.name.startswith("__") else node.name
        for i, node in enumerate(graph.nodes)
    }


def fingerprint(graph: Graph) -> list[str]:
    """Write a graph down, one line a node, the same in every run of a program."""
    named = labels(graph)

    def edge(e: DataNode | None) -> str:
        if e is None or e.source is None:
            return "None"
        return named[e.source] + (f"[{e.index}]" if e.index else "")

    def line(node: Node) -> str:
        left_out = _OF_READERS if node.operator.kind == "reader" else _FOR_SPEED
        given = [edge(e) for e in node.inputs]
        given += [f"{k}={edge(e)}" for k, e in sorted(node.edges.items())]
        constants = sorted(node.constants.items())
        write = {"source": _source}
        given += [f"{k}={write.get(k, _text)(v)}" for k, v in constants if k not in left_out]
        if node.operator.schema.random and "seed" not in node.constants:
            given.append(f"stream={node.stream}")
        scope = "".join(f" if {edge(c.edge)} is {c.value}" for c in node.scope)
        return f"{named[node]} = {node.operator.name}({', '.join(given)}) on {node.device}{scope}"

    return [*map(line, graph.nodes), f"return {', '.join(map(edge, graph.outputs))}"]


def _source(value: Any) -> str:
    """Write where an external source has its data from: not the data, which may be large, and change."""
    if isinstance(value, (list, tuple, Mapping, np.ndarray, torch.Tensor)):
        return f"{type(value).__name__} of {len(value)}"
    return _text(value)


def _text(value: Any) -> str:
    text = _plain(value)
    if len(text) <= _LONG:
        return text
    return f"{text[: _LONG // 2]}... ({hashlib.sha256(text.encode()).hexdigest()[:12]})"


def _plain(value: Any) -> str:
    """Write a value without anything that differs from run to run."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, (bool, int, float, str, bytes, type(None), torch.dtype)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (np.ndarray, np.generic, torch.Tensor)):
        array = np.ascontiguousarray(value)
        return (
            f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:12]}"
        )
    return getattr(value, "__qualname__", type(value).__qualname__)


# ---------------------------------------------------------------- saving and loading


def encode(state: State, graph: Sequence[str]) -> State:
    """Add version and fingerprint to a place."""
    return {"version": _VERSION, "graph": list(graph), **state}


def decode(data: str | bytes) -> State:
    """Read a checkpoint.

    Raises:
        TypeError: it is neither text nor bytes. RuntimeError: it is not a checkpoint of this library.
    """
    if not isinstance(data, (str, bytes)):
        raise TypeError(
            f"a checkpoint is text or bytes, as checkpoint() returns it, not {type(data).__name__}"
        )
    try:
        state = json.loads(data)
    except ValueError as error:
        raise RuntimeError(f"this is no checkpoint of torchdali (JSON text): {error}") from None
    if not isinstance(state, dict) or "version" not in state:
        raise RuntimeError("this is JSON, but no checkpoint of torchdali")
    return state


def check(state: Mapping[str, Any], graph: Sequence[str]) -> None:
    """Refuse a place that belongs to another pipeline, or was written in another form.

    Raises:
        RuntimeError: with the lines of the two graphs that differ.
    """
    if state.get("version") != _VERSION:
        raise RuntimeError(
            f"the checkpoint has the version {state.get('version')}, this torchdali reads version {_VERSION}"
        )
    if list(state["graph"]) != list(graph):
        differing = [line for line in difflib.ndiff(state["graph"], graph) if line[0] in "+-?"]
        raise RuntimeError(
            "the checkpoint is of a pipeline with another graph (-: in the checkpoint, +: here):\n"
            + "\n".join(line.rstrip("\n") for line in differing)
        )


def reshard(states: Sequence[State], num_shards: int) -> list[State]:
    """Turn the places of all ranks' pipelines into places for another number of ranks.

    What the old ranks had left of the epoch is divided anew, see `loader.reshard`. A reader that is not
    divided (``num_shards=1`` on every rank) goes on at the place of one of the old ranks.

    Args:
        states: What `Pipeline.state_dict` returned on each of the old ranks, in any order.
        num_shards: Number of ranks that continue.

    Raises:
        ValueError: the states are not one of each rank of one job; or the pipeline has an external source,
            of which nobody but its author knows how it is divided.
    """
    old = list(states)
    for state in old[1:]:
        check(state, old[0]["graph"])
    if any(state["sources"] for state in old):
        raise ValueError(
            f"a pipeline with an external source ({', '.join(old[0]['sources'])}) cannot be continued by another "
            "number of ranks: only the source knows which samples belong to which rank. Read the records with a "
            "reader, which has shard_id and num_shards; or note the samples that are done in external_context, and "
            "start a new pipeline whose source begins there"
        )
    rank_of = {label: _ranks(old, label) for label in old[0]["readers"]}
    old = sorted(
        old, key=lambda state: max((s["shard_id"] for s in state["readers"].values()), default=0)
    )
    readers = {
        label: loader.reshard([s["readers"][label] for s in old], num_shards) if divided
        else [old[k % len(old)]["readers"][label] for k in range(num_shards)]
        for label, divided in rank_of.items()
    }  # fmt: skip
    position = max(state["position"] for state in old)
    return [
        {
            **old[k % len(old)],
            "position": position,
            "readers": {label: new[k] for label, new in readers.items()},
        }
        for k in range(num_shards)
    ]


def _ranks(states: Sequence[State], label: str) -> bool:
    """Whether the ranks divide a reader's records."""
    return len(states) == 1 or any(s["readers"][label]["num_shards"] > 1 for s in states)
