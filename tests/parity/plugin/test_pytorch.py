"""The PyTorch plugin against the real DALI's: the same sequences, lengths, types and errors."""

from __future__ import annotations

import inspect
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import torchdali
from tests.helpers.fake_pipeline import ReaderPipeline, SourcePipeline
from torchdali import fn as own_fn
from torchdali.plugin import pytorch as own
from torchdali.tensors import TensorListCPU

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)

from nvidia import dali  # noqa: E402
from nvidia.dali import fn as real_fn  # noqa: E402
from nvidia.dali.plugin import pytorch as real  # noqa: E402
from nvidia.dali.plugin.pytorch import torch_utils as real_utils  # noqa: E402

POLICIES = ["FILL", "DROP", "PARTIAL"]
MODES = [
    {"pad_last_batch": pad, "stick_to_shard": stick}
    for pad in (False, True)
    for stick in (False, True)
]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Both sides warn about sizes and resets; these warnings are not compared."""
    caplog.set_level(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("records")
    paths = [folder / f"{index:03d}.bin" for index in range(32)]
    for path in paths:
        path.write_bytes(b"x")
    return [str(path) for path in paths]


def real_reader(files: list[str], size: int, batch_size: int, **options: Any) -> Any:
    pipe = dali.Pipeline(batch_size=batch_size, num_threads=1, device_id=None)
    with pipe:
        _, label = real_fn.readers.file(
            files=files[:size], labels=list(range(size)), name="reader", **options
        )
        pipe.set_outputs(label)
    return pipe


def own_reader(files: list[str], size: int, batch_size: int, **options: Any) -> Any:
    pipe = torchdali.Pipeline(batch_size=batch_size, num_threads=1, device_id=None)
    with pipe:
        _, label = own_fn.readers.file(
            files=files[:size], labels=list(range(size)), name="reader", **options
        )
        pipe.set_outputs(label)
    return pipe


def walk(iterator: Any, epochs: int) -> list[Any]:
    """Return length, size and batches, epoch by epoch."""
    found = []
    for _ in range(epochs):
        before = len(iterator), iterator.size
        found.append((*before, [[part["a"].tolist() for part in batch] for batch in iterator]))
    return found


def nexts(iterator: Any, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        try:
            found.append([part["a"].tolist() for part in next(iterator)])
        except Exception as error:
            found.append(type(error).__name__)
    return found


def both(call: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the results of a call with the real plugin and with torchdali's; exceptions by their class."""
    results = []
    for plugin in (real, own):
        try:
            results.append(call(plugin))
        except Exception as error:
            results.append(type(error))
    return results[0], results[1]


def out_of_step(size: int, shards: int, batch_size: int) -> bool:
    """Return the cases in which DALI's DROP delivers the last padded batch of the shards in the next epoch."""
    smallest, largest = size // shards, math.ceil(size / shards)
    return smallest // batch_size < math.ceil(largest / batch_size) and not smallest % batch_size


SIZES = [
    (10, 1, 4),
    (11, 2, 4),
    (9, 2, 4),
    (10, 3, 2),
    (10, 3, 3),
    (5, 4, 3),
    (15, 4, 3),
    (12, 3, 4),
]


def comparable(size: int, shards: int, batch_size: int, mode: dict[str, bool], policy: str) -> bool:
    """Return True if DROP skips samples, and DALI delivers no padding (see the test below)."""
    if policy != "DROP":
        return True
    nothing = size // shards < batch_size
    return not nothing and not (mode["pad_last_batch"] and out_of_step(size, shards, batch_size))


@pytest.mark.parametrize(
    ("size", "shards", "batch_size", "mode", "policy"),
    [
        (*sizes, mode, policy)
        for sizes in SIZES
        for mode in MODES
        for policy in POLICIES
        if comparable(*sizes, mode, policy)
    ],
)
def test_epochs_of_a_sharded_reader(files, size, shards, batch_size, mode, policy) -> None:
    for ranks in [[0], [shards - 1], list(range(shards))]:
        arguments = {
            "reader_name": "reader",
            "auto_reset": True,
            "last_batch_policy": policy,
        }
        found = []
        for plugin, make in (
            (real, lambda **o: real_reader(files, size, batch_size, **o)),
            (own, lambda **o: ReaderPipeline(size, batch_size, **o)),
        ):
            arguments["last_batch_policy"] = plugin.LastBatchPolicy[policy]
            pipes = [make(num_shards=shards, shard_id=rank, **mode) for rank in ranks]
            found.append(walk(plugin.DALIGenericIterator(pipes, ["a"], **arguments), 6))
        assert found[1] == found[0]


def test_difference_dali_delivers_an_epoch_of_padding(files) -> None:
    """Shards of 4 and 5 samples, padded to two batches of 4, the second of them dropped."""
    arguments = {"reader_name": "reader", "auto_reset": True}
    options = {"num_shards": 2, "pad_last_batch": True}
    theirs = real.DALIGenericIterator(
        real_reader(files, 9, 4, **options),
        ["a"],
        last_batch_policy=real.LastBatchPolicy.DROP,
        **arguments,
    )
    ours = own.DALIGenericIterator(
        ReaderPipeline(9, 4, **options),
        ["a"],
        last_batch_policy=own.LastBatchPolicy.DROP,
        **arguments,
    )
    first, second = [[0], [1], [2], [3]], [[4], [5], [6], [7]]
    assert nexts(theirs, 3) == [[first], "StopIteration", [[[3], [3], [3], [3]]]]
    assert nexts(ours, 3) == [[first], "StopIteration", [second]]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "options", [{}, {"pad_last_batch": True}, {"num_shards": 2, "shard_id": 1}], ids=str
)
def test_end_to_end_on_our_own_pipeline(files, policy, options) -> None:
    found = []
    for plugin, reader in ((real, real_reader), (own, own_reader)):
        it = plugin.DALIGenericIterator(
            [reader(files, 13, 4, **options)],
            ["a"],
            reader_name="reader",
            auto_reset=True,
            last_batch_policy=plugin.LastBatchPolicy[policy],
        )
        found.append(walk(it, 4))
    assert found[1] == found[0]


# ---------------------------------------------------------------- flow


@pytest.mark.parametrize("auto_reset", [False, True, "yes", "no", None])
def test_ends_and_resets(files, auto_reset) -> None:
    found = []
    for plugin, pipe in ((real, real_reader(files, 10, 4)), (own, ReaderPipeline(10, 4))):
        it = plugin.DALIGenericIterator([pipe], ["a"], reader_name="reader", auto_reset=auto_reset)
        steps = nexts(it, 5)
        it.reset()
        steps += nexts(it, 1)
        it.reset()
        steps += nexts(it, 1)
        iter(it)
        found.append(steps + nexts(it, 4))
    assert found[1] == found[0]


def real_source(batches: list[Any], cycle: Any) -> Any:
    pipe = dali.Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        arrays = [np.array(batch, np.int32).reshape(-1, 1) for batch in batches]
        pipe.set_outputs(real_fn.external_source(source=arrays, cycle=cycle))
    return pipe


THREE = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize("cycle", [None, "raise"])
@pytest.mark.parametrize("auto_reset", [False, True])
@pytest.mark.parametrize(
    ("batches", "size", "policy"),
    [
        (batches, size, policy)
        for batches, size in [
            (THREE, -1),
            ([[0, 1, 2, 3], [4, 5]], -1),
            (THREE, 8),
            (THREE, 10),
            (THREE, 12),
        ]
        for policy in POLICIES
    ]
    + [(THREE, 3, "FILL"), (THREE, 3, "PARTIAL")],
)
def test_epochs_of_a_source(cycle, auto_reset, batches, size, policy) -> None:
    found = []
    for plugin, pipe in (
        (real, real_source(batches, cycle)),
        (own, SourcePipeline(batches, 4, cycle=cycle == "raise")),
    ):
        it = plugin.DALIGenericIterator(
            [pipe],
            ["a"],
            size=size,
            auto_reset=auto_reset,
            last_batch_policy=plugin.LastBatchPolicy[policy],
            prepare_first_batch=False,
        )
        found.append([epoch[2] for epoch in walk(it, 4)])
    assert found[1] == found[0]


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("names", "arguments"),
    [
        (["a", "b"], {}),
        ([], {}),
        (["a", "a"], {}),
        ("label", {}),
        (["a"], {"size": 10, "reader_name": "reader"}),
        (["a"], {"size": 0}),
        (["a"], {"reader_name": "reader", "last_batch_padded": True}),
        (["a"], {"reader_name": "other"}),
        (["a"], {"auto_reset": "maybe"}),
        (["a"], {"auto_reset": 1}),
        (["a"], {"last_batch_policy": "FILL"}),
        (["a"], {"last_batch_policy": 0}),
    ],
    ids=str,
)
def test_mistakes_raise_the_same_class(files, names, arguments) -> None:
    def call(plugin: Any) -> Any:
        pipe = real_reader(files, 10, 4) if plugin is real else ReaderPipeline(10, 4)
        plugin.DALIGenericIterator([pipe], names, **arguments)

    theirs, ours = both(call)
    assert isinstance(theirs, type)
    assert ours is theirs


@pytest.mark.parametrize(
    ("first", "second", "arguments"),
    [
        ((10, 4, {}), (10, 2, {}), {"reader_name": "reader"}),
        ((10, 4, {}), (11, 4, {}), {"reader_name": "reader"}),
        ((10, 4, {"num_shards": 2}), (10, 4, {}), {"reader_name": "reader"}),
        ((10, 4, {"pad_last_batch": True}), (10, 4, {}), {"reader_name": "reader"}),
        ((10, 4, {"stick_to_shard": True}), (10, 4, {}), {"reader_name": "reader"}),
        ((10, 4, {}), (10, 4, {}), {}),
        ((3, 4, {}), (3, 4, {}), {"reader_name": "reader", "last_batch_policy": "DROP"}),
    ],
    ids=str,
)
def test_pipelines_that_do_not_fit_raise_the_same_class(files, first, second, arguments) -> None:
    def call(plugin: Any) -> Any:
        named = dict(arguments)
        if "last_batch_policy" in named:
            named["last_batch_policy"] = plugin.LastBatchPolicy[named["last_batch_policy"]]
        pipes = [
            real_reader(files, size, batch, **options)
            if plugin is real
            else ReaderPipeline(size, batch, **options)
            for size, batch, options in (first, second)
        ]
        plugin.DALIGenericIterator(pipes, ["a"], **named)

    theirs, ours = both(call)
    assert isinstance(theirs, type)
    assert ours is theirs


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_old_spelling_of_the_policy(files, flag, policy) -> None:
    def call(plugin: Any) -> Any:
        pipe = real_reader(files, 10, 4) if plugin is real else ReaderPipeline(10, 4)
        it = plugin.DALIGenericIterator(
            [pipe],
            ["a"],
            reader_name="reader",
            fill_last_batch=flag,
            last_batch_policy=plugin.LastBatchPolicy[policy],
        )
        return walk(it, 2)

    theirs, ours = both(call)
    assert ours == theirs


# ---------------------------------------------------------------- tensors


def real_samples(samples: list[np.ndarray]) -> Any:
    pipe = dali.Pipeline(batch_size=len(samples), num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(real_fn.external_source(source=lambda: samples))
    return pipe


def own_samples(samples: list[np.ndarray]) -> SourcePipeline:
    batch = (TensorListCPU.from_samples([torch.from_numpy(s.copy()) for s in samples]),)
    return SourcePipeline([batch], len(samples))


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [(v.dtype, v.tolist()) for v in value]
    if value.layout == torch.sparse_coo:
        value = value.coalesce()
        return value.dtype, value.shape, value.indices().tolist(), value.values().tolist()
    return value.dtype, value.tolist()


@pytest.mark.parametrize("kind", ["DENSE_TAG", "SPARSE_COO_TAG", "SPARSE_LIST_TAG"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float16", "float32", "bool"])
@pytest.mark.parametrize("lengths", [(2, 2, 2), (2, 1, 3), (0, 3, 1)])
def test_ragged_batches(kind, dtype, lengths) -> None:
    samples = [np.arange(n).astype(dtype) for n in lengths]

    def call(plugin: Any) -> Any:
        pipe = real_samples(samples) if plugin is real else own_samples(samples)
        types = [getattr(plugin.DALIRaggedIterator, kind)]
        return plain(next(plugin.DALIRaggedIterator([pipe], ["a"], output_types=types))[0]["a"])

    theirs, ours = both(call)
    assert ours == theirs


@pytest.mark.parametrize("types", [["bogus"], [None], "dense"], ids=str)
def test_wrong_output_types(types) -> None:
    samples = [np.zeros(2)]

    def call(plugin: Any) -> Any:
        pipe = real_samples(samples) if plugin is real else own_samples(samples)
        plugin.DALIRaggedIterator([pipe], ["a"], output_types=types)

    assert both(call) == (AssertionError, AssertionError)


def test_tags_and_types_are_the_same() -> None:
    for tag in ("DENSE_TAG", "SPARSE_COO_TAG", "SPARSE_LIST_TAG"):
        assert getattr(own.DALIRaggedIterator, tag) == getattr(real.DALIRaggedIterator, tag)
    ours = {key.name: value for key, value in own.to_torch_type.items()}
    for key, value in real.to_torch_type.items():
        assert ours[key.name] is value
    assert {p.name: p.value for p in own.LastBatchPolicy} == {
        p.name: p.value for p in real.LastBatchPolicy
    }


@pytest.mark.parametrize(
    "target", [torch.zeros(2, 3), torch.zeros(3, 2), torch.zeros(2, 3, dtype=torch.int32)], ids=str
)
def test_feed_ndarray(target) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)

    def call(plugin: Any) -> Any:
        tensor = (dali.tensors if plugin is real else torchdali.tensors).TensorCPU(array)
        return plugin.feed_ndarray(tensor, target.clone()).tolist()

    theirs, ours = both(call)
    assert ours == theirs


@pytest.mark.parametrize("copy", [False, True])
def test_to_torch_tensor(copy) -> None:
    array = np.arange(6, dtype=np.float32)
    theirs = real_utils.to_torch_tensor(dali.tensors.TensorCPU(array), copy)
    ours = own.torch_utils.to_torch_tensor(torchdali.tensors.TensorCPU(array), copy)
    assert ours.tolist() == theirs.tolist()
    memory = array.__array_interface__["data"][0]
    assert (ours.data_ptr() == memory) is not copy


# ---------------------------------------------------------------- TorchPythonFunction


def test_torch_python_function_as_a_class() -> None:
    """The real operator cannot run without a GPU; its visible attributes are the same."""
    ours, theirs = (module.TorchPythonFunction(abs) for module in (own, real))
    for name in ("device", "preserve", "schema_name"):
        assert getattr(ours, name) == getattr(theirs, name)
    ours, theirs = (
        {
            p.name: p.default
            for p in inspect.signature(module.TorchPythonFunction).parameters.values()
        }
        for module in (own, real)
    )
    assert ours == theirs
