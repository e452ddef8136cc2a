"""Saving graphs as JSON, reading them, and drawing them."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.inside import forget_marks, graph_of
from torchdali import Pipeline, fn, operator, pipeline_def, types
from torchdali.declaration.schema import Data, PerSample
from torchdali.graph import serialization
from torchdali.graph.plan import plan
from torchdali.plugin import triton

VALUES: list[Any] = [
    None,
    True,
    -3,
    1.5,
    math.inf,
    -math.inf,
    "text ü",
    b"\x00\xff",
    [1, [2.5, "a"], None],
    {"a": [1], "b": None},
    types.FLOAT16,
    types.INTERP_CUBIC,
    types.RGB,
    types.StreamPolicy.SINGLE,
    types.OperatorConcurrency.FULL,
    torch.float32,
    torch.bool,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_survive(value) -> None:
    text = json.dumps(serialization.encode(value), allow_nan=False)
    found = serialization.decode(json.loads(text))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "array",
    [np.arange(6, dtype=np.int16).reshape(2, 3), np.float32(2.5), np.zeros((0, 3)), np.array(True)],
    ids=repr,
)
def test_arrays_survive(array) -> None:
    for value in (array, torch.as_tensor(np.array(array))):
        found = serialization.decode(json.loads(json.dumps(serialization.encode(value))))
        assert isinstance(found, torch.Tensor if isinstance(value, torch.Tensor) else np.ndarray)
        assert np.asarray(found).dtype == np.asarray(array).dtype
        assert np.array_equal(np.asarray(found), np.asarray(array))
        assert np.shape(found) == np.shape(array)


def test_nan_survives() -> None:
    assert math.isnan(serialization.decode(serialization.encode(math.nan)))


@pytest.mark.parametrize("value", [object(), len, lambda: 1, {1, 2}, {1: 2}, [object()]], ids=lambda value: type(value).__name__)
def test_python_objects_are_rejected(value) -> None:
    with pytest.raises(TypeError, match="Python object"):
        serialization.encode(value)


@pytest.mark.parametrize(
    "data",
    [
        {"array": ["O", [1], ""]},
        {"enum": ["PipelineAPI", "BASIC"]},
        {"code": "1"},
        {"dtype": "load"},
    ],
    ids=str,
)
def test_data_that_encode_does_not_write_is_rejected(data) -> None:
    """A file cannot make Python run code, or unpickle."""
    with pytest.raises((ValueError, KeyError, TypeError)):
        serialization.decode(data)


# ---------------------------------------------------------------- pipelines


@operator(name="_test_scale")
def _scale(value: Data, /, *, factor: PerSample[float] = 1.0, table: Any = None) -> Data:
    """Multiply."""
    return value * factor


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=5, enable_conditionals=True)
def rich():
    """Random numbers, per-sample arguments, branches, constants, several outputs, a sink."""
    number = fn.random.uniform(range=[0, 10], name="number")
    scaled = _scale(number, factor=fn.random.normal(), table={"a": np.arange(3)})
    if number > 5.0:
        scaled = scaled + 100
    else:
        scaled = -scaled
    Pipeline.current().add_sink(fn.random.coin_flip(name="sink"))
    return scaled, fn.cast(number, dtype=types.INT32), np.array([1, 2]), fn.random.uniform(seed=3)


def run(pipe: Pipeline, batches: int = 3) -> list[Any]:
    try:
        return [[np.asarray(o.as_array()).tolist() for o in pipe.run()] for _ in range(batches)]
    finally:
        pipe.close()


def test_a_read_pipeline_gives_the_same_results() -> None:
    text = rich().serialize()
    assert json.loads(text)["version"] == 1
    for data in (text, text.decode()):
        assert run(Pipeline.deserialize(data)) == run(rich())


def test_reading_and_saving_again_changes_nothing() -> None:
    text = rich().serialize()
    again = Pipeline.deserialize(text)
    assert again.serialize() == text
    assert str(graph_of(again)) == str(graph_of(rich()))


def test_checkpoints_of_saved_graphs_are_valid(tmp_path) -> None:
    """A checkpoint of the pipeline is one of its saved graph."""
    pipe = rich()
    pipe.run()
    place, expected = pipe.checkpoint(), run(pipe)
    assert run(Pipeline.deserialize(pipe.serialize(), checkpoint=place)) == expected


def test_arguments_survive_and_can_be_overridden() -> None:
    pipe = rich(
        prefetch_queue_depth={"cpu_size": 2, "gpu_size": 3}, output_dtype=[None, types.INT32, None, None],
        stream_policy=types.StreamPolicy.SINGLE, bad_samples="skip",
    )  # fmt: skip
    read = Pipeline.deserialize(pipe.serialize())
    assert read.serialize() == pipe.serialize()
    assert read.output_dtype() == [None, types.INT32, None, None]
    other = Pipeline.deserialize(pipe.serialize(), batch_size=7, seed=None)
    assert (other.max_batch_size, other.seed, other.num_threads) == (7, None, 2)
    with pytest.raises(TypeError, match="foo"):
        Pipeline.deserialize(pipe.serialize(), foo=1)


def test_messages_still_name_the_users_line() -> None:
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(fn.reshape(fn.constant(idata=[1, 2, 3]), shape=[2, 2]))
    read = Pipeline.deserialize(pipe.serialize())
    with pytest.raises(RuntimeError, match=r"test_serialize\.py"):
        read.run()
    read.close()


def test_a_fed_pipeline() -> None:
    pipe = Pipeline(2, 1, None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(fn.external_source(name="fed", layout="X") + 1)
    read = Pipeline.deserialize(pipe.serialize())
    read.feed_input("fed", [np.array([1]), np.array([2])])
    assert run(read, 1) == [[[[2], [3]]]]


def callback(i: int) -> Any:
    return [np.array(i)] * 2


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a callback": (
        lambda: fn.external_source(source=callback),
        r"external_source.*'source'.*callback",
    ),
    "a list": (lambda: fn.external_source(source=[object()]), r"external_source.*'source'"),
    "an object": (
        lambda: _scale(fn.random.uniform(), table=object(), name="mine"),
        r"_test_scale' \(mine\).*'table'.*object",
    ),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_callbacks_are_rejected_by_name(make, message) -> None:
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(make())
    with pytest.raises(RuntimeError, match=message) as refused:
        pipe.serialize()
    assert "test_serialize.py" in str(refused.value)


def test_operators_must_be_declared_before_reading() -> None:
    text = rich().serialize().replace(b"_test_scale", b"_test_other")
    with pytest.raises(RuntimeError, match=r"_test_other.*import the module"):
        Pipeline.deserialize(text)


@pytest.mark.parametrize("text", ["", "xx", b"\x80\x04", "[]", "{}", '{"version": 2, "graph": {}}'])
def test_other_data_than_a_pipeline_is_rejected(text) -> None:
    with pytest.raises(RuntimeError, match=r"serialized (torchdali )?pipeline"):
        Pipeline.deserialize(text)


def test_define_graph_is_used_without_other_definitions() -> None:
    pipe = Pipeline(2, 1, None)
    text = pipe.serialize(define_graph=lambda: fn.constant(idata=[4]))
    assert run(Pipeline.deserialize(text), 1) == [[[[4], [4]]]]
    fixed = Pipeline(2, 1, None)
    fixed.set_outputs(fn.constant(idata=[5]))
    text = fixed.serialize(define_graph=lambda: fn.constant(idata=[4]))
    assert run(Pipeline.deserialize(text), 1) == [[[[5], [5]]]]


# ------------------------------------------------------------------------------- tampered files

CODE = "__import__('os').abort()"
HOSTILE = [
    CODE, f"{CODE} or True", f"1\n        {CODE}\n        #", f"factor=[{CODE},0][1], table", "", "flip", "cpu",
    None, True, False, -1, 0, 1, 3, 2**70, 0.5, [], [0], [0, 0], [[0, 0], CODE], {}, {CODE: [0, 0]},
    {"dtype": "load"}, {"array": ["O", [1], ""]}, {"array": ["<i4", [2**40], ""]}, {"enum": ["DALIDataType", "mro"]},
]  # fmt: skip


def mutated(tree: Any, chance: random.Random) -> Any:
    """Return a copy of a JSON value with a random replacement, removal, addition or exchange."""
    found = json.loads(json.dumps(tree))
    keys = list(found) if isinstance(found, dict) else list(range(len(found)))
    key = chance.choice(keys)
    inside, kind = found[key], chance.random()
    if isinstance(inside, (dict, list)) and inside and chance.random() < 0.8:
        found[key] = mutated(inside, chance)
    elif kind < 0.7:
        found[key] = chance.choice(HOSTILE)
    elif kind < 0.8:
        del found[key]
    elif kind < 0.9 and isinstance(found, dict):
        found[chance.choice([CODE, "scope", "edges", "inputs"])] = inside
    else:
        other = chance.choice(keys)
        found[key], found[other] = found[other], inside
    return found


def read_tampered(count: int) -> int:
    """Read changed graphs: each is rejected, or read as written, and planned without running its code."""
    chance, graph = random.Random(1), json.loads(rich().serialize())["graph"]
    read = 0
    for _ in range(count):
        data = mutated(graph, chance)
        for _ in range(chance.randrange(2)):
            data = mutated(data, chance) if data else data
        try:
            found = serialization.graph_from_json(data)
        except RuntimeError as error:
            assert "saved graph" in str(error)
            continue
        read += 1
        assert serialization.graph_to_json(found) == data
        plan(found)
    return read


def test_tampered_graphs_are_rejected_or_read_as_written() -> None:
    assert 10 < read_tampered(300) < 200


@pytest.mark.slow
def test_many_tampered_graphs_are_rejected_or_read_as_written() -> None:
    assert read_tampered(10_000) > 300


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("condition", f"{CODE} or True"),
        ("argument", f"factor=[{CODE},0][1], table"),
        ("line", f"1\n{CODE}"),
    ],
)
def test_code_in_a_saved_graph_is_rejected(where: str, value: str) -> None:
    saved = json.loads(rich().serialize())
    node = next(n for n in saved["graph"]["nodes"] if n["scope"])
    if where == "condition":
        node["scope"][0][1] = value
    elif where == "argument":
        node["edges"] = {value: node["scope"][0][0]}
    else:
        node["lines"][0][1] = value
    with pytest.raises(RuntimeError, match=re.escape(node["name"])):
        Pipeline.deserialize(json.dumps(saved))


# ---------------------------------------------------------------- drawings


def test_drawings_have_every_node_and_edge(tmp_path) -> None:
    pipe = Pipeline(2, 1, None)
    with pipe:
        number = fn.random.uniform(name="u")
        pipe.set_outputs(_scale(number, factor=fn.random.normal(name="n"), name="s"))
    pipe.save_graph_to_dot_file(str(tmp_path / "plain.dot"))
    plain = (tmp_path / "plain.dot").read_text()
    for part in ('"u" -> "s";', '"n" -> "s" [label="factor"];', "random.uniform", "_test_scale"):
        assert part in plain
    assert "shape=box" not in plain and "color" not in plain
    pipe.save_graph_to_dot_file(str(tmp_path / "full.dot"), show_tensors=True, use_colors=True)
    full = (tmp_path / "full.dot").read_text()
    for part in ('"u:0" [shape=box];', '"u" -> "u:0" [label="0"];', '"u:0" -> "s";', "blue"):
        assert part in full
    assert full.count("{") == full.count("}") == 1


# A string of the language: quotes in it are escaped by a backslash.
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
ODD_NAMES = ('a "quoted" name', "a\\", 'a\\" ]; b [label="c', "two\nlines", "<b>{ } ; -> //", '"')


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("show_tensors", [False, True])
def test_names_in_a_drawing_are_quoted(show_tensors: bool, name: str, tmp_path: Path) -> None:
    pipe = Pipeline(2, 1, None)
    with pipe:
        number = fn.random.uniform(name=name)
        pipe.set_outputs(_scale(number, factor=fn.random.normal(name="n" + name), name="s" + name))
    pipe.save_graph_to_dot_file(str(tmp_path / "graph.dot"), show_tensors=show_tensors, use_colors=True)
    lines = STRING.sub("S", (tmp_path / "graph.dot").read_text()).splitlines()
    allowed = {"digraph pipeline {", "  S [label=S, color=S];", "  S [shape=box];", "  S -> S [label=S];", "  S -> S;", "}"}
    assert set(lines) <= allowed and len(lines) == (13 if show_tensors else 7)


def test_two_pipelines_may_be_marked_but_not_serialized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_marks(monkeypatch)
    for _ in range(2):

        @triton.autoserialize
        @pipeline_def(batch_size=1, num_threads=1, device_id=None)
        def marked() -> object:
            return fn.external_source(name="input")

    with pytest.raises(RuntimeError, match="exactly one function, got 2"):
        triton.invoke_autoserialize(tmp_path / "model.dali")
