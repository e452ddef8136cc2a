"""Checkpoint states: the position of a pipeline as JSON values, and a fingerprint of the pipeline.

The position is a few integers for each reader and source. The *fingerprint* is the graph as lines of text. If a
pipeline loads the state of a different pipeline, an error shows the lines that differ. The fingerprint omits arguments
that the user may change before a pipeline continues: the location of the data, the rank's part of the data (its
*shard*), and settings for the speed of reading.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch

from torchdali.formats.remote import RemoteOptions
from torchdali.graph.keys import key_of
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.reading import cursor, file_lists

__all__ = [
    "State",
    "check",
    "check_files",
    "check_form",
    "decode",
    "encode",
    "fingerprint",
    "labels",
    "reshard",
    "restoring",
]

State = dict[str, Any]

_VERSION = 1
_MAX_LENGTH = 60  # characters; if a value is longer, the fingerprint has only its first characters and a digest
_SPEED_ARGUMENTS = frozenset(("prefetch_queue_depth", "parallel", "no_copy", "hw_decoder_load"))
_CACHE_ARGUMENTS = frozenset(("bytes", "path"))
_READER_ARGUMENTS = frozenset((
    *_SPEED_ARGUMENTS, *(field.name for field in fields(RemoteOptions)), "workers", "shard_id", "num_shards", "seed",
    "initial_fill", "read_ahead", "lazy_init", "dont_use_mmap", "skip_cached_images", "tensor_init_bytes",
))  # fmt: skip


def labels(graph: Graph) -> dict[Node, str]:
    """Return a label for each node: the user's name, or the operator's name and the node's index in the graph."""
    return {
        node: f"{node.operator.name}_{i}" if node.name.startswith("__") else node.name
        for i, node in enumerate(graph.nodes)
    }


def fingerprint(graph: Graph) -> list[str]:
    """Return a graph as text, one line per node. The text is the same in every run of a program."""
    named = labels(graph)

    def edge(e: DataNode) -> str:
        if e.source is None:
            return "None"
        return named[e.source] + (f"[{e.index}]" if e.index else "")

    def line(node: Node) -> str:
        key = key_of(node, edge, _value, _omitted_arguments(node))
        arguments = [*map(str, key.inputs), *(f"{k}={text}" for k, text in (*key.per_sample, *key.constants))]
        if node.operator.schema.random and "seed" not in node.constants:
            arguments.append(f"stream={node.stream}")
        scope = "".join(f" if {text} is {value}" for text, value in key.scope)
        return f"{named[node]} = {node.operator.name}({', '.join(arguments)}) on {node.device}{scope}"

    return [*map(line, graph.nodes), f"return {', '.join(map(edge, graph.outputs))}"]


def _omitted_arguments(node: Node) -> Collection[str]:
    if node.operator.name == "cache":
        return _CACHE_ARGUMENTS
    return _READER_ARGUMENTS | node.operator.schema.paths if node.operator.kind == "reader" else _SPEED_ARGUMENTS


def _value(name: str, value: Any) -> str:
    """Format an argument. If it is the data of an external source, format only its class and its length."""
    if name == "source" and isinstance(value, (list, tuple, Mapping, np.ndarray, torch.Tensor)):
        return f"{type(value).__name__} of {len(value)}"
    return _text(value)


def _text(value: Any) -> str:
    text = _plain(value)
    if len(text) <= _MAX_LENGTH:
        return text
    return f"{text[: _MAX_LENGTH // 2]}... ({hashlib.sha256(text.encode()).hexdigest()[:12]})"


def _plain(value: Any) -> str:
    """Format a value without details that differ each time a program is started, for example addresses in memory."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, (bool, int, float, str, bytes, type(None), torch.dtype)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    if is_dataclass(value) and not isinstance(value, type):
        attributes = {each.name: getattr(value, each.name) for each in fields(value) if each.compare}
        return type(value).__qualname__ + _plain(attributes)
    if isinstance(value, (np.ndarray, np.generic, torch.Tensor)):
        array = np.ascontiguousarray(value)
        return f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:12]}"
    return getattr(value, "__qualname__", type(value).__qualname__)


# ---------------------------------------------------------------- saving and loading


def encode(state: State, graph: Sequence[str]) -> State:
    """Add the version and the fingerprint to a state."""
    return {"version": _VERSION, "graph": list(graph), **state}


def decode(data: str | bytes) -> State:
    """Parse the text of a checkpoint.

    Raises:
        TypeError: `data` isn't text or bytes.
        RuntimeError: `data` isn't a checkpoint of this library.
    """
    if not isinstance(data, (str, bytes)):
        raise TypeError(f"a checkpoint must be the text or bytes that checkpoint() returned, got {type(data).__name__}")
    try:
        state = json.loads(data)
    except ValueError as error:
        raise RuntimeError(
            f"not a torchdali checkpoint (expected JSON text; for a file, pass its content, not its name): {error}"
        ) from None
    if not isinstance(state, dict) or "version" not in state:
        raise RuntimeError("this JSON is not a torchdali checkpoint")
    return state


def check(state: Mapping[str, Any], graph: Sequence[str]) -> None:
    """Check that a state belongs to a pipeline with this graph, and that its version and its fields are valid.

    Args:
        state: The state.
        graph: The pipeline's fingerprint.

    Raises:
        RuntimeError: The version, the graph or a field is wrong. If the graphs differ, the message has the differing
            lines.
        TypeError: The state isn't a dict.
    """
    if not isinstance(state, Mapping):
        raise TypeError(
            f"state must be a dict from state_dict(), got {type(state).__name__}; pass the result of checkpoint() "
            "to a new pipeline as checkpoint="
        )
    if "version" not in state and "pipelines" in state:
        raise RuntimeError("the state belongs to an iterator; pass it to the iterator's load_state_dict")
    if state.get("version") != _VERSION:
        raise RuntimeError(
            f"the checkpoint has version {state.get('version')!r}, but this torchdali reads version {_VERSION}"
        )
    check_form(state)
    if list(state["graph"]) != list(graph):
        differing = [line for line in difflib.ndiff(state["graph"], graph) if line[0] in "+-?"]
        raise RuntimeError(
            "the checkpoint belongs to a pipeline with a different graph (-: checkpoint, +: this pipeline):\n"
            + "\n".join(line.rstrip("\n") for line in differing)
        )


def check_form(state: Mapping[str, Any]) -> None:
    """Check that a state has all fields, with the right types.

    Raises:
        RuntimeError: A field is missing or has a wrong type; the message names the field.
    """
    for name, (is_right, form) in _FORM.items():
        if name not in state:
            raise RuntimeError(f"the checkpoint is damaged: it lacks the field {name!r}")
        if not is_right(state[name]):
            raise RuntimeError(
                f"the checkpoint is damaged: its field {name!r} must be {form}, got {_short(state[name])}"
            )
    for name in ("external_context", "files"):
        if not isinstance(state.get(name, {}), Mapping):
            raise RuntimeError(f"the checkpoint is damaged: its field {name!r} must be a dictionary")


def check_files(state: Mapping[str, Any], lists: Mapping[str, str]) -> None:
    """Warn if a reader's files, or their order, have changed since a state was saved.

    Args:
        state: The state. If it has no digests of file lists, because an earlier version saved it, there is no warning.
        lists: Digests of the readers' current file lists. The keys are the readers' labels.
    """
    for label, digest in lists.items():
        file_lists.compare(label, state.get("files", {}).get(label), digest)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _are_states(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values())


def _are_lines(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value)


_STATES = _are_states, "dictionary of dictionaries"
_FORM: dict[str, tuple[Callable[[Any], bool], str]] = {
    "graph": (_are_lines, "list of lines"),
    "seed": (_is_number, "number of 63 bits"),
    "position": (_is_number, "number of 63 bits"),
    "stopped": (lambda value: type(value) is bool, "bool"),
    "readers": _STATES,
    "sources": _STATES,
}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 3] + "..."


@contextlib.contextmanager
def restoring() -> Iterator[None]:
    """Convert errors in a `with` block that restores a state to a RuntimeError about a damaged checkpoint."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        raise RuntimeError(f"the checkpoint is damaged: {type(error).__name__}: {error}") from error


def reshard(states: Sequence[State], num_shards: int) -> list[State]:
    """Convert the checkpoint states of all ranks to states for another number of ranks.

    The remaining records of the epoch are divided among the new ranks (see `cursor.reshard`). If every rank reads all
    records of a reader (``num_shards=1``), this reader continues at the position of one of the old ranks.

    Args:
        states: Results of `Pipeline.state_dict` on the old ranks, in any order.
        num_shards: Number of ranks that continue.

    Raises:
        ValueError: The states don't come from all ranks of one job, or the pipeline has an external source. The samples
            of an external source can't be divided automatically.
        RuntimeError: The states belong to different pipelines.
    """
    old = list(states)
    for state in old[1:]:
        check(state, old[0]["graph"])
    if any(state["sources"] for state in old):
        raise ValueError(
            f"a pipeline with an external source ({', '.join(old[0]['sources'])}) cannot resume with a different "
            f"number of ranks, because only the source knows which samples belong to which rank. Read the records "
            f"with a reader that has shard_id and num_shards. Or save the source's position in external_context, and "
            f"start a new pipeline whose source begins at that position"
        )
    is_divided = {label: _is_divided(old, label) for label in old[0]["readers"]}
    old = sorted(old, key=lambda state: max((s["shard_id"] for s in state["readers"].values()), default=0))
    readers = {
        label: cursor.reshard([s["readers"][label] for s in old], num_shards) if divided
        else [old[k % len(old)]["readers"][label] for k in range(num_shards)]
        for label, divided in is_divided.items()
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


def _is_divided(states: Sequence[State], label: str) -> bool:
    """Return whether a reader's records are divided among the ranks."""
    return len(states) == 1 or any(s["readers"][label]["num_shards"] > 1 for s in states)
