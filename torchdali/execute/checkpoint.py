"""Checkpoint states: the position of a pipeline as JSON values, and which pipeline it belongs to.

A checkpoint state is a few integers per source. With it goes a *fingerprint*: the graph as lines of text, so that a
state of another pipeline is refused with the lines that differ. Arguments that decide only where the data lie, who
reads which part of them, or how fast, are left out of the lines: such a state may be continued.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
import torch

from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.reading import cursor

__all__ = [
    "State",
    "check",
    "check_form",
    "decode",
    "encode",
    "fingerprint",
    "labels",
    "reshard",
    "restoring",
    "write",
]

State = dict[str, Any]

_VERSION = 1
_LONG = 60  # characters of a value that stand in the fingerprint; of longer ones a digest does
_FOR_SPEED = frozenset(("prefetch_queue_depth", "parallel", "no_copy", "hw_decoder_load"))
_OF_CACHES = frozenset(("bytes", "path"))
_OF_READERS = _FOR_SPEED | frozenset((
    "shard_id", "num_shards", "seed", "initial_fill", "read_ahead", "lazy_init", "dont_use_mmap",
    "skip_cached_images", "tensor_init_bytes",
    "file_root", "files", "file_list", "path", "paths", "filenames", "index_path", "index_paths",
    "annotations_file", "manifest_filepaths", "preprocessed_annotations",
    "workers", "io_concurrency", "io_retries", "io_timeout", "cache_dir", "cache_size",
))  # fmt: skip


def labels(graph: Graph) -> dict[Node, str]:
    """Name the nodes of a graph: as the user did, otherwise by operator and index in the graph.

    Unlike names made while tracing, these do not change with what was traced and pruned.
    """
    return {
        node: f"{node.operator.name}_{i}" if node.name.startswith("__") else node.name
        for i, node in enumerate(graph.nodes)
    }


def fingerprint(graph: Graph) -> list[str]:
    """Return a graph as text, one line a node, the same in every run of a program."""
    named = labels(graph)

    def edge(e: DataNode | None) -> str:
        if e is None or e.source is None:
            return "None"
        return named[e.source] + (f"[{e.index}]" if e.index else "")

    def line(node: Node) -> str:
        left_out = _OF_READERS if node.operator.kind == "reader" else _FOR_SPEED
        if node.operator.name == "cache":
            left_out = _OF_CACHES
        given = [edge(e) for e in node.inputs]
        given += [f"{k}={edge(e)}" for k, e in sorted(node.per_sample.items())]
        constants = sorted(node.constants.items())
        write = {"source": _source}
        given += [f"{k}={write.get(k, _text)(v)}" for k, v in constants if k not in left_out]
        if node.operator.schema.random and "seed" not in node.constants:
            given.append(f"stream={node.stream}")
        scope = "".join(f" if {edge(c.edge)} is {c.value}" for c in node.scope)
        return f"{named[node]} = {node.operator.name}({', '.join(given)}) on {node.device}{scope}"

    return [*map(line, graph.nodes), f"return {', '.join(map(edge, graph.outputs))}"]


def _source(value: Any) -> str:
    """Describe the data source of an external source: not the data, which may be large, and change."""
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
        return f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:12]}"
    return getattr(value, "__qualname__", type(value).__qualname__)


# ---------------------------------------------------------------- saving and loading


def encode(state: State, graph: Sequence[str]) -> State:
    """Add version and fingerprint to a state."""
    return {"version": _VERSION, "graph": list(graph), **state}


def decode(data: str | bytes) -> State:
    """Read a checkpoint.

    Raises:
        TypeError: it is neither text nor bytes. RuntimeError: it is not a checkpoint of this library.
    """
    if not isinstance(data, (str, bytes)):
        raise TypeError(f"a checkpoint is text or bytes, as checkpoint() returns it, not {type(data).__name__}")
    try:
        state = json.loads(data)
    except ValueError as error:
        raise RuntimeError(
            f"this is no checkpoint of torchdali (JSON text; of a file, its content instead of its name): {error}"
        ) from None
    if not isinstance(state, dict) or "version" not in state:
        raise RuntimeError("this is JSON, but no checkpoint of torchdali")
    return state


def check(state: Mapping[str, Any], graph: Sequence[str]) -> None:
    """Refuse a state of another pipeline or version, and what is no state.

    Raises:
        RuntimeError: with the lines of the two graphs that differ, or the field that is wrong.
        TypeError: the state is no dict.
    """
    if not isinstance(state, Mapping):
        raise TypeError(
            f"a state is a dict, as state_dict() returns it, not {type(state).__name__}: what checkpoint() returns "
            "is given to a new pipeline, as checkpoint="
        )
    if "version" not in state and "pipelines" in state:
        raise RuntimeError("this is the state of an iterator: give it to the iterator's load_state_dict")
    if state.get("version") != _VERSION:
        raise RuntimeError(
            f"the checkpoint has the version {state.get('version')!r}, this torchdali reads version {_VERSION}"
        )
    check_form(state)
    if list(state["graph"]) != list(graph):
        differing = [line for line in difflib.ndiff(state["graph"], graph) if line[0] in "+-?"]
        raise RuntimeError(
            "the checkpoint is of a pipeline with another graph (-: in the checkpoint, +: here):\n"
            + "\n".join(line.rstrip("\n") for line in differing)
        )


def check_form(state: Mapping[str, Any]) -> None:
    """Check that a state has all fields, each of its type.

    Raises:
        RuntimeError: names the field.
    """
    for name, (is_right, form) in _FORM.items():
        if name not in state:
            raise RuntimeError(f"the checkpoint is damaged: it has no field {name!r}")
        if not is_right(state[name]):
            raise RuntimeError(f"the checkpoint is damaged: its field {name!r} is no {form}: {_short(state[name])}")
    if not isinstance(state.get("external_context", {}), Mapping):
        raise RuntimeError("the checkpoint is damaged: its field 'external_context' is no dictionary")


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
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


@contextlib.contextmanager
def restoring() -> Iterator[None]:
    """Turn what goes wrong while a state is restored into an error that says so."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        raise RuntimeError(f"the checkpoint is damaged: {type(error).__name__}: {error}") from error


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file beside the one it replaces, so that a full disk or a crash leaves the old one whole."""
    path = os.path.abspath(path)
    handle, beside = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, _mode(path))
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _mode(path: str) -> int:
    """Return the permissions of a file, or for a new one: `mkstemp` gives it to its owner alone."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return 0o644


def reshard(states: Sequence[State], num_shards: int) -> list[State]:
    """Turn the checkpoint states of all ranks' pipelines into states for another number of ranks.

    The records that the old ranks had left of the epoch are divided anew, see `cursor.reshard`. A reader that is not
    divided (``num_shards=1`` on every rank) continues at the position of one of the old ranks.

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
    old = sorted(old, key=lambda state: max((s["shard_id"] for s in state["readers"].values()), default=0))
    readers = {
        label: cursor.reshard([s["readers"][label] for s in old], num_shards) if divided
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
    """Return True if the ranks divide a reader's records."""
    return len(states) == 1 or any(s["readers"][label]["num_shards"] > 1 for s in states)
