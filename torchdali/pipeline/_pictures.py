"""Draw a pipeline: images of the next batch, and the graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from PIL import Image

from torchdali.execute import checkpoint
from torchdali.execute.executor import Executor
from torchdali.execute.timings import OperatorTime, line_of
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.pictures import (
    COUNT,
    PER_ROW,
    SIZE,
    Box,
    GraphLine,
    Normalization,
    Overlays,
    Svg,
    TileRow,
    arrange,
    contact_table,
    document,
    draw_graph,
    show,
    tiles_of,
    values,
)  # fmt: skip
from torchdali.tensors import TensorList

__all__ = ["html", "show_each", "show_next", "svg"]

_MAX_CODE_LENGTH = 70  # characters of a line of code


# ---------------------------------------------------------------- the batch that comes next


def next_batch(pipe: Any, graph: Graph, count: int) -> tuple[tuple[TensorList, ...], list[str]]:
    """Return the first `count` samples or more of the pipeline's next batch, and the class names.

    A copy of the pipeline computes the batch, so the pipeline's own position doesn't change.

    Args:
        graph: The pipeline's graph, or a graph with other outputs of the same nodes.

    Raises:
        RuntimeError: A source of the pipeline can't return the data of the same batch twice.
    """
    for node in graph.nodes:
        _check_source(node)
    if pipe._options.checkpoint is not None:
        pipe.build()  # loads the position from the checkpoint
    options, executor = pipe._options, pipe._executor
    size = options.batch_size or count
    copy = pipe._copy(
        graph, seed=options.random_seed, checkpoint=None, prefetch_queue_depth=1, num_processes=1,
        batch_size=min(size, count) if all(map(_is_per_sample, graph.nodes)) else size,
        num_threads=options.num_threads or 1, enable_memory_stats=False, output_dtype=None, output_ndim=None,
        output_layout=None,
    )  # fmt: skip
    try:
        copy.build()
        if executor is not None:
            copy._planned.restore(_relabel_state(executor, copy._planned))
        return _run_first(copy), _find_classes(copy)
    finally:
        copy.close()


def _run_first(pipe: Any) -> tuple[TensorList, ...]:
    run: Callable[[], tuple[TensorList, ...]] = pipe.run
    try:
        return run()
    except StopIteration:  # the previous batch was the last of its epoch
        pipe.reset()
    try:
        return run()
    except StopIteration:
        raise RuntimeError("no batch remains, since the sources have ended") from None


def _find_classes(pipe: Any) -> list[str]:
    try:
        return list(pipe.classes)
    except AttributeError:  # no reader has class names
        return []


def _check_source(node: Node) -> None:
    if node.operator.kind != "source":
        return
    source = node.constants.get("source")
    if source is None:
        reason = "waits for feed_input()"
    elif hasattr(source, "__next__"):
        reason = "is an iterator, which can't return the batch a second time"
    else:
        return
    raise RuntimeError(
        f"the next batch cannot be shown without consuming it: the source {node.name!r} {reason}. Show the result of "
        f"run() instead: outputs = pipe.run(); outputs[0].show()\n  {node.where}"
    )


def _is_per_sample(node: Node) -> bool:
    """Return whether a node's results for a sample don't depend on other samples, so that a smaller batch is enough."""
    kind = node.operator.kind
    return kind in ("sample", "reader") or (kind == "batch" and node.operator.is_separable(node.constants))


def _relabel_state(executor: Executor, copy: Executor) -> Mapping[str, Any]:
    """Return an executor's position, for a copy of the pipeline that has other outputs.

    In the copy, readers and sources have other labels, so the labels in the position are replaced.
    """
    names = {label: node.name for node, label in checkpoint.labels(executor.plan.graph).items()}
    labels = {node.name: label for node, label in checkpoint.labels(copy.plan.graph).items()}
    state = dict(executor.taken_state)
    for section in ("readers", "sources"):
        state[section] = {
            labels[names[label]]: value for label, value in state[section].items() if names[label] in labels
        }
    return state


# ---------------------------------------------------------------- contact sheets


def show_next(pipe: Any, path: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> Image.Image:
    """Return a contact sheet of the outputs of the next batch."""
    graph = pipe._trace()
    outputs, classes = next_batch(pipe, graph, options.get("count") or COUNT)
    named = {_name_output(edge, k): output for k, (edge, output) in enumerate(zip(graph.outputs, outputs, strict=True))}
    defaults = {**_default_arguments(graph), "classes": classes}
    if options.get("mean") is not None:
        del defaults["normalizations"]
    return show(named, path, **{**defaults, **options})


def show_each(pipe: Any, path: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> Image.Image:
    """Return a contact sheet with one row for each operator whose results can be drawn."""
    if unknown := sorted(options.keys() - {"classes", "count", "size"}):
        raise TypeError(f"with each=True, show() accepts only classes, count and size, got {', '.join(unknown)}")
    graph, count = pipe._trace(), options.get("count") or PER_ROW
    edges = [edge for node in graph.nodes if not node.scope for edge in node.outputs]
    batches, classes = next_batch(pipe, Graph(graph.nodes, tuple(edges)), count)
    results = {edge: values(batch, count) for edge, batch in zip(edges, batches, strict=True)}
    size, box_format = options.get("size", SIZE), _default_arguments(graph).get("box_format", "ltrb")
    outputs = {_name_output(edge, k): results[edge] for k, edge in enumerate(graph.outputs) if edge in results}
    has_drawable = any(each.is_drawable for each in outputs.values())
    shown, overlays = arrange(outputs) if has_drawable else ({}, Overlays())
    overlays = replace(overlays, classes=options.get("classes") or classes, box_format=box_format)
    rows: list[TileRow] = []
    for edge in edges:
        if not results[edge].is_drawable:
            continue
        row_overlays = (
            overlays
            if any(results[edge] is each for each in shown.values())
            else _overlay_boxes(edge, results, overlays)
        )
        if rows:
            row_overlays = replace(row_overlays, labels=None, names=())
        rows.append(TileRow(tiles_of(results[edge], row_overlays, _find_normalization(edge), size), _heading(edge)))
    if not rows:
        raise ValueError("show() needs an operator that returns images, video, spectrograms or audio")
    sheet = contact_table(rows)
    if path is not None:
        sheet.save(path)
    return sheet


def _overlay_boxes(edge: DataNode, results: Mapping[DataNode, Any], overlays: Overlays) -> Overlays:
    """Return the overlays for an image that isn't an output: the boxes of its reader, if the reader delivers boxes."""
    node = edge.source
    readers = [e.source for e in node.inputs if e is not None and e.source is not None] if node is not None else []
    reader_outputs = [
        results[e] for reader in readers if reader.operator.kind == "reader" for e in reader.outputs if e in results
    ]
    boxes = next((each for each in reader_outputs if each.are_boxes), None)
    return replace(overlays, boxes=boxes, masks=None, box_labels=overlays.box_labels if boxes is not None else None)


def _default_arguments(graph: Graph) -> dict[str, Any]:
    """Return the arguments of `show` that the graph determines: normalizations and the format of boxes."""
    names = [_name_output(edge, k) for k, edge in enumerate(graph.outputs)]
    normalizations = {name: _find_normalization(edge) for name, edge in zip(names, graph.outputs, strict=True)}
    defaults: dict[str, Any] = {
        "normalizations": {name: each for name, each in normalizations.items() if each is not None}
    }
    boxes = [node for node in graph.nodes if node.operator.name == "readers.coco"]
    if boxes and not any(node.constants.get("ltrb") for node in boxes):
        defaults["box_format"] = "xywh"
    return defaults


def _name_output(edge: DataNode, k: int) -> str:
    return f"output {k}" + (f": {edge.source.title}" if edge.source is not None else "")


def _heading(edge: DataNode) -> str:
    node = edge.source
    assert node is not None
    code = node.lines[0].text if node.lines else ""
    shortened = code if len(code) <= _MAX_CODE_LENGTH else code[: _MAX_CODE_LENGTH - 1] + "…"
    number = f" [{edge.index}]" if len(node.outputs) > 1 else ""
    return "    ".join(filter(None, [node.title + number, line_of(node), shortened]))


def _find_normalization(edge: DataNode) -> Normalization | None:
    """Return the normalization of an edge's images, if it is the same for all samples; otherwise None."""
    node = edge.source
    while node is not None and node.operator.has("levels") and node.inputs and node.inputs[0] is not None:
        node = node.inputs[0].source
    if node is None or node.operator.name != "crop_mirror_normalize" or {"mean", "std"} & node.per_sample.keys():
        return None
    arguments = node.operator.arguments(node.constants)
    mean, std = _to_floats(arguments["mean"]), _to_floats(arguments["std"])
    if mean == (0.0,) and std == (1.0,):
        return None
    channels = max(len(mean), len(std))
    factor = [s / arguments["scale"] for s in std * (channels // len(std))]
    shifted = [m - arguments["shift"] * f for m, f in zip(mean * (channels // len(mean)), factor, strict=True)]
    return Normalization(tuple(shifted), tuple(factor))


def _to_floats(value: Any) -> tuple[float, ...]:
    return tuple(map(float, value)) if isinstance(value, Sequence) else (float(value),)


# ---------------------------------------------------------------- the graph


def svg(pipe: Any) -> Svg:
    """Draw the graph, with times and bytes if the pipeline has run."""
    if pipe._executor is None:
        return _draw_graph(pipe._trace(), {}, {})
    executor = pipe._planned
    graph = executor.plan.graph
    sizes = {node: executor.memory.last(node) for node in graph.nodes}
    return _draw_graph(graph, executor.profile.by_node(), sizes)


def _draw_graph(graph: Graph, times: Mapping[Node, OperatorTime], sizes: Mapping[Node, int]) -> Svg:
    boxes = [_create_box(node, times.get(node), sizes.get(node, 0)) for node in graph.nodes]
    edges = [edge for node in graph.nodes for edge in _create_lines(node)]
    for k, output in enumerate(graph.outputs):
        boxes.append(Box(f"output {k}", f"output {k}", kind="output"))
        if output.source is not None:
            edges.append(GraphLine(output.source.name, f"output {k}"))
    return draw_graph(boxes, edges, "graph of a pipeline")


def _create_box(node: Node, time: OperatorTime | None, size: int) -> Box:
    parts = node.parts or (node,)
    title, *other_titles = [part.title for part in parts]
    lines = [f"+ {name}" for name in other_titles]
    lines += [] if node.name.startswith("__") else [f'"{node.name}"']
    lines += [f"{line_of(node)}, {node.device}" if node.lines else node.device]
    if time is not None:
        lines.append(f"{time.per_sample * 1e3:.3f} ms/sample, {time.share:.0%}")
    if size:
        lines.append(f"{_bytes(size)}/batch")
    return Box(node.name, title, lines, node.device, time.share if time is not None else 0.0, str(node))


def _bytes(count: int) -> str:
    exponent = min(3, (count.bit_length() - 1) // 10)
    return f"{count / 1024**exponent:.4g} {('B', 'KiB', 'MiB', 'GiB')[exponent]}"


def _create_lines(node: Node) -> list[GraphLine]:
    arrows = [GraphLine(e.source.name, node.name) for e in node.inputs if e is not None and e.source is not None]
    arguments = [(e.source, name) for name, e in node.per_sample.items() if e.source is not None]
    arrows += [GraphLine(source.name, node.name, name) for source, name in arguments]
    conditions = [(c.edge.source, c.value) for c in node.scope if c.edge.source is not None]
    return arrows + [GraphLine(source.name, node.name, f"if {value}", dashed=True) for source, value in conditions]


def html(pipe: Any) -> str:
    """Return the notebook display of a pipeline: its settings, and its graph."""
    names = ("batch_size", "num_threads", "device_id", "seed")
    facts = [(name, str(getattr(pipe._options, name))) for name in names]
    try:
        drawing: str = svg(pipe)
    except RuntimeError:  # a pipeline in debug mode has no graph
        drawing = ""
    return document(type(pipe).__name__, facts, drawing)
