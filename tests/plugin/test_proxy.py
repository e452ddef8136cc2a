"""The proxy: batches in the main loop, and their order, for every kind of loading."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, SequentialSampler, default_collate
from torchvision import transforms as v1
from torchvision.transforms import v2

from tests.helpers import odd_arrays
from tests.helpers import proxy_data as data
from torchdali import fn, pipeline_def
from torchdali.dali.proxy import blocks, packing
from torchdali.dali.proxy import loader as loading
from torchdali.plugin.pytorch.experimental import proxy

BATCH = 4


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=3)
def doubled() -> Any:
    return fn.external_source(name="x", no_copy=True) * 2


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def sum_and_difference() -> Any:
    left = fn.external_source(name="left")
    right = fn.external_source(name="right")
    return left + right, left - right


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=3)
def noisy() -> Any:
    return fn.external_source(name="x") + fn.random.uniform(range=(0.0, 1.0))


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def decoded() -> Any:
    return fn.decoders.image(fn.external_source(name="x"))


def served(make: Callable[..., Any], pipe: Any = doubled, **options: Any) -> list[Any]:
    """Return all batches of one epoch of ten samples."""
    options = {"batch_size": BATCH, **options}
    with proxy.DALIServer(pipe()) as server:
        return list(proxy.DataLoader(server, data.Made(server.proxy, make), **options))


def firsts(batches: list[Any]) -> list[list[float]]:
    """Return the first number of each sample, batch by batch."""
    return [batch[:, 0].tolist() for batch in batches]


EXPECTED = [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0, 12.0, 14.0], [16.0, 18.0]]

WAYS: dict[str, dict[str, Any]] = {
    "no workers": {"num_workers": 0},
    "one worker": {"num_workers": 1},
    "two workers": {"num_workers": 2, "prefetch_factor": 1},
    "spawned": {"num_workers": 1, "multiprocessing_context": "spawn"},
    "pinned": {"num_workers": 1, "pin_memory": True},
}


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
@pytest.mark.parametrize(
    "way", [pytest.param(way, id=name, marks=pytest.mark.slow if name == "spawned" else ()) for name, way in WAYS.items()]
)
def test_batches_and_labels(way: dict[str, Any]) -> None:
    batches = served(data.labelled, **way)
    assert firsts([images for images, _ in batches]) == EXPECTED
    assert torch.cat([labels for _, labels in batches]).tolist() == list(range(10))
    assert all(type(images) is torch.Tensor for images, _ in batches)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("make", [data.by_position, data.by_name, data.mixed])
def test_several_inputs_and_outputs(make: Any, workers: int) -> None:
    sums, differences = served(make, sum_and_difference, num_workers=workers)[1]
    assert sums[:, 0].tolist() == [14, 15, 16, 17]
    assert differences[:, 0].tolist() == [-6, -5, -4, -3]


def test_the_order_of_inputs_can_be_set() -> None:
    with proxy.DALIServer(sum_and_difference(), input_names=["right", "left"]) as server:
        _, difference = server.produce_data(server.proxy(data.vector(1), data.vector(10)))
    assert difference[0] == 9
    with pytest.raises(ValueError, match="input_names"):
        proxy.DALIServer(sum_and_difference(), input_names=["right"])


@pytest.mark.parametrize("workers", [0, 1])
def test_any_structure_and_two_calls_per_sample(workers: int) -> None:
    batch = served(data.nested, num_workers=workers)[0]
    assert firsts([batch["a"], batch["b"]["c"][0]]) == [[0, 2, 4, 6], [200, 202, 204, 206]]
    assert batch["b"]["c"][1].tolist() == [0, 1, 2, 3]


SHAPES: dict[str, tuple[Any, Any]] = {
    "alone": (data.plain, lambda x, n: x),
    "tuple of one": (data.in_tuple, lambda x, n: [x]),
    "dictionary": (data.in_dictionary, lambda x, n: {"image": x}),
    "named tuple": (data.in_named_tuple, lambda x, n: data.Named(x, n)),
    "lists": (data.in_lists, lambda x, n: [[x], {"n": [n]}]),
    "one reference twice": (data.repeated, lambda x, n: [x, x]),
    "two calls": (data.called_twice, lambda x, n: [x, x + 200]),
    "the first of two calls": (data.first_call, lambda x, n: x),
    "the second of two calls": (data.second_call, lambda x, n: x + 200),
    "no call": (data.not_called, lambda x, n: n),
}  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("torchs", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_samples_of_any_shape_under_torchs_default_collate(name: str, torchs: bool, workers: int) -> None:
    make, expected = SHAPES[name]
    with proxy.DALIServer(doubled()) as server:
        samples = data.Made(server.proxy, make)
        if torchs:
            batches = [server.produce_data(batch) for batch in torch.utils.data.DataLoader(samples, BATCH, num_workers=workers)]
        else:
            batches = list(proxy.DataLoader(server, samples, batch_size=BATCH, num_workers=workers))
    for batch, first in zip(batches, (0, 4, 8), strict=True):
        numbers = torch.arange(first, min(first + BATCH, 10))
        wanted = expected(numbers[:, None].expand(-1, 3) * 2.0, numbers)
        assert type(batch) is type(wanted)
        torch.testing.assert_close(batch, wanted, rtol=0, atol=0)


@pytest.mark.parametrize("workers", [0, 1])
def test_torch_tensors_as_inputs(workers: int) -> None:
    assert firsts([x for x, _ in served(data.as_tensor, num_workers=workers)]) == EXPECTED


@pytest.mark.parametrize("workers", [0, 1])
def test_custom_collate(workers: int) -> None:
    pair = served(data.labelled, collate_fn=data.as_pair, num_workers=workers)[0]
    assert (firsts([pair.left]), pair.right) == ([[0, 2, 4, 6]], [0, 1, 2, 3])
    samples = served(data.ragged, collate_fn=data.as_list, num_workers=workers)[1]
    assert [(len(x), x[0].item(), i) for x, i in samples] == [
        (5, 8, 4), (6, 10, 5), (7, 12, 6), (8, 14, 7),
    ]  # fmt: skip


@pytest.mark.parametrize("workers", [0, 1])
def test_batch_samplers_and_single_samples(workers: int) -> None:
    sampler = BatchSampler(SequentialSampler(range(10)), 3, drop_last=True)
    way = {"batch_size": 1, "batch_sampler": sampler, "num_workers": workers}
    assert firsts(served(data.plain, **way)) == [[0, 2, 4], [6, 8, 10], [12, 14, 16]]
    single = served(data.plain, batch_size=None, sampler=[7, 3], num_workers=workers)
    assert [x.tolist() for x in single] == [[14, 14, 14], [6, 6, 6]]


@pytest.mark.parametrize("workers", [0, 2])
def test_iterable_datasets(workers: int) -> None:
    with proxy.DALIServer(doubled()) as server:
        stream = data.Streamed(server.proxy, data.plain)
        batches = list(proxy.DataLoader(server, stream, batch_size=3, num_workers=workers))
    assert sorted(torch.cat(batches)[:, 0].tolist()) == [2.0 * i for i in range(10)]
    assert [len(b) for b in batches] == ([3, 3, 2, 2] if workers else [3, 3, 3, 1])


@pytest.mark.parametrize("persistent", [True, False])
def test_epochs_after_a_break(persistent: bool) -> None:
    with proxy.DALIServer(doubled()) as server:
        samples = data.Made(server.proxy, data.plain)
        options = {"batch_size": BATCH, "num_workers": 1, "persistent_workers": persistent}
        loader: Any = proxy.DataLoader(server, samples, **options)
        assert (len(loader), len(iter(loader))) == (3, 3)
        for batch in loader:
            assert firsts([batch]) == EXPECTED[:1]
            break
        assert firsts(list(loader)) == EXPECTED
        assert firsts(list(loader)) == EXPECTED


def test_two_loops_over_one_server() -> None:
    with proxy.DALIServer(doubled()) as server:
        loader: Any = proxy.DataLoader(
            server, data.Made(server.proxy, data.plain), batch_size=BATCH
        )
        pairs = list(zip(loader, loader, strict=True))
    assert firsts([a for a, _ in pairs]) == firsts([b for _, b in pairs]) == EXPECTED


@pytest.mark.parametrize("workers", [0, 1])
def test_several_servers(workers: int) -> None:
    with proxy.DALIServer(doubled()) as one, proxy.DALIServer(noisy()) as two:
        samples = data.Made((one.proxy, two.proxy), data.both)
        loader: Any = proxy.DataLoader(one, samples, batch_size=BATCH, num_workers=workers)
        for x, y in loader:
            assert torch.all((y - x / 2 >= 0) & (y - x / 2 < 1))


@pytest.mark.parametrize("workers", [0, 1])
def test_custom_loader(workers: int) -> None:
    with proxy.DALIServer(doubled()) as one, proxy.DALIServer(noisy()) as two:
        samples = data.Made((one.proxy, two.proxy), data.both)
        loader: Any = torch.utils.data.DataLoader(samples, batch_size=BATCH, num_workers=workers)
        batches = [one.produce_data(batch) for batch in loader]
        assert firsts([x for x, _ in batches]) == EXPECTED
        assert isinstance(batches[0][1], proxy.DALIOutputBatchRef)
        assert len(two.produce_data(batches[2])[1]) == 2


def test_custom_loader_with_its_own_collate() -> None:
    with proxy.DALIServer(doubled()) as server:
        samples = data.Made(server.proxy, data.labelled)
        options: Any = {"batch_size": BATCH, "num_workers": 1, "collate_fn": data.as_list}
        batches = list(map(server.produce_data, torch.utils.data.DataLoader(samples, **options)))
    assert [(x[0].item(), i) for x, i in batches[2]] == [(16, 8), (18, 9)]


def test_random_numbers_do_not_depend_on_the_workers() -> None:
    epochs = [served(data.plain, noisy, num_workers=workers) for workers in (0, 1, 3)]
    for batches in epochs[1:]:
        assert all(map(torch.equal, batches, epochs[0]))


def test_random_numbers_after_loops_that_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def third_loop(arrived: bool) -> torch.Tensor:
        monkeypatch.setattr(loading, "has_arrived", lambda arrivals: arrived)
        with proxy.DALIServer(noisy(), deterministic=True) as server:
            loader = proxy.DataLoader(server, data.Made(server.proxy, data.plain), batch_size=BATCH)
            return [next(iter(loader)) for _ in range(3)][-1]

    assert torch.equal(third_loop(True), third_loop(False))


def test_paths_bytes_and_images(tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "a.png"
    Image.new("RGB", (5, 4), (1, 2, 3)).save(path)
    with proxy.DALIServer(decoded()) as server:
        for given in (path, str(path), path.read_bytes(), np.fromfile(path, np.uint8)):
            assert server.produce_data(server.proxy(given)).tolist() == [[[1, 2, 3]] * 5] * 4
    with proxy.DALIServer(doubled()) as server:
        assert server.produce_data(server.proxy(Image.open(path))).shape == (4, 5, 3)


ODD = [*odd_arrays.arrays().items(), *odd_arrays.tensors().items(), ("no bytes", b"")]


@pytest.mark.parametrize("count", [1, 3])
def test_inputs_of_any_type_and_shape(count: int) -> None:
    for name, value in ODD:
        column = packing.PackedColumn([packing.as_input(value, "x")] * count, "x", [None] * count)
        expected = [odd_arrays.facts(sample) for sample in column.batch([]).samples()]
        column.share()
        arrived = pickle.loads(ForkingPickler.dumps(column)).batch([])  # as sent by a worker
        assert [odd_arrays.facts(sample) for sample in arrived.samples()] == expected, name
        assert len(expected) == count


def test_a_server_needs_a_pipeline_and_a_loader_needs_a_server() -> None:
    with pytest.raises(TypeError, match=r"expected a Pipeline, got .*; call the function under pipeline_def"):
        proxy.DALIServer(doubled)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a DALIServer, got a Pipeline"):
        proxy.DataLoader(doubled(), [1], batch_size=1)


def test_the_caller_owns_the_batches() -> None:
    kept = served(data.plain, num_workers=1)
    kept[0].fill_(-1)
    assert firsts(kept)[1:] == EXPECTED[1:]


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
def unchanged() -> Any:
    return fn.external_source(name="x", no_copy=True)


def test_outputs_that_share_memory_with_inputs_stay_valid() -> None:
    """A block returns to its worker only after the main process holds no reference to it."""
    length = 40 * BATCH
    with proxy.DALIServer(unchanged()) as server:
        samples = data.Made(server.proxy, data.row, length=length)
        batches = proxy.DataLoader(server, samples, batch_size=BATCH, num_workers=2)
        kept = [hold(batch) for batch, hold in zip(batches, itertools.cycle(HOLDS), strict=False)]
    firsts = [number for held in kept for number in held]
    assert firsts == [i for b in range(40) for i in range(BATCH * b, BATCH * b + 1 + b % 2)]


HOLDS = (
    lambda batch: batch[:1, 5],
    lambda batch: batch.numpy()[:2, 7],
)


def test_blocks_are_reused() -> None:
    def send(values: Any) -> tuple[int, torch.Tensor]:
        out = blocks.OutgoingBytes(len(values))
        out.bytes[:] = values
        made, (block, size) = out.__reduce__()
        return block.data_ptr(), made(block, size)

    first, arrived = send([1, 2, 3])
    second, other = send([4, 5, 6])
    assert first != second, "the first is held"
    part = arrived[1:]
    del arrived, other
    send([])  # an arrival returns free blocks
    third, _ = send([7, 8])
    assert third == second
    assert part.tolist() == [2, 3]


def test_a_forked_process_has_its_own_blocks() -> None:
    made = blocks.OutgoingBytes(8)
    made.bytes[:] = 1
    made._block[0] = 0  # free
    child = os.fork()
    if not child:
        blocks.OutgoingBytes(8).bytes[:] = 2
        os._exit(0)
    os.waitpid(child, 0)
    assert made.bytes.tolist() == [1] * 8


def test_packed_file_buffers_are_reused(tmp_path: Path) -> None:
    def given(content: bytes) -> Any:
        (tmp_path / "file").write_bytes(content)
        return packing.as_input(str(tmp_path / "file"), "x")

    def packed(samples: list[Any]) -> Any:
        column = packing.PackedColumn(samples, "x", [None] * len(samples))
        column.share()
        return pickle.loads(pickle.dumps(column)).batch([None] * len(samples))

    first, other = given(bytes(100)), given(b"other")
    place = first.ctypes.data
    assert other.ctypes.data != place, "the first is not packed yet"
    batch = packed([first])
    again = given(b"12345678")
    assert again.ctypes.data == place
    assert [s.tolist() for s in packed([again, other]).samples()] == [[*b"12345678"], [*b"other"]]
    assert batch.samples()[0].tolist() == [0] * 100
    assert given(b"").shape == (0,)


def test_start_and_stop() -> None:
    server = proxy.DALIServer(doubled(), deterministic=True)
    loader: Any = proxy.DataLoader(server, data.Made(server.proxy, data.plain), batch_size=BATCH)
    for _ in range(2):
        next(iter(loader))
        server.stop_thread()
        server.stop_thread()
        server.start_thread()
        assert firsts(list(loader)) == EXPECTED


# ---------------------------------------------------------------- errors

MISUSE: dict[str, tuple[Any, type[Exception], str]] = {
    "too few": (
        lambda p: p(data.vector(1)),
        TypeError,
        r"\['left', 'right'\], got 1 inputs by position",
    ),
    "too many": (lambda p: p(*[data.vector(1)] * 3), TypeError, "3 inputs by position"),
    "twice": (lambda p: p(data.vector(1), left=data.vector(1)), TypeError, r"\['left'\] by name"),
    "unknown": (lambda p: p(data.vector(1), up=data.vector(1)), TypeError, r"\['up'\] by name"),
    "number": (lambda p: p(1.0, 2.0), TypeError, "'left' of the proxy must be .* got a float"),
    "list": (lambda p: p([1], [2]), TypeError, "must be .* got a list"),
    "objects": (lambda p: p(np.array([None]), data.vector(1)), TypeError, "has an unsupported dtype, object"),
    "no file": (lambda p: p("/nowhere", "/nowhere"), FileNotFoundError, "nowhere"),
}


@pytest.mark.parametrize(("call", "kind", "text"), MISUSE.values(), ids=MISUSE)
def test_wrong_calls(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(proxy.DALIServer(sum_and_difference()).proxy)


AFTER: dict[str, tuple[Callable[[Any], Any], str]] = {
    "arithmetic": (lambda x: x * 2, "mul"),
    "shape": (lambda x: x.shape, "Tensor.shape"),
    "index": (lambda x: x[0], "__getitem__"),
    "numpy": (np.asarray, "numpy.asarray"),
    "v2 resize": (v2.Resize(5), ""),
    "v2 normalize": (v2.Normalize([0.0], [1.0]), ""),
    "v2 dtype": (v2.ToDtype(torch.float32), ""),
    "v2 compose": (v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(1.0)]), ""),
    "v1 resize": (v1.Resize(5), ""),
    "v1 normalize": (v1.Normalize([0.0], [1.0]), ""),
}


@pytest.mark.parametrize(("transform", "name"), AFTER.values(), ids=AFTER)
def test_transforms_of_a_reference_are_errors_with_a_reason(transform: Any, name: str) -> None:
    reference = proxy.DALIServer(doubled()).proxy(data.vector(1))
    with pytest.raises(RuntimeError, match=f"{name}.*result of a proxy.*into the pipeline"):
        transform(reference)


def test_mixup_of_a_reference_is_an_error_with_a_reason() -> None:
    server = proxy.DALIServer(doubled())
    batch = default_collate([data.labelled(server.proxy, i) for i in range(4)])
    with pytest.raises(RuntimeError, match="result of a proxy"):
        v2.MixUp(num_classes=10)(batch)


def test_references_print_and_copy() -> None:
    import copy

    reference = proxy.DALIServer(doubled()).proxy(data.vector(1))
    assert copy.deepcopy([reference])[0] is reference
    assert "output 0" in f"{reference}" and "output 0" in repr(reference)


FAILURES: dict[str, tuple[Any, Any, type[Exception], str, int]] = {
    "dataset": (data.fails_at_5, doubled, ZeroDivisionError, "the dataset cannot", 1),
    "decoder": (data.bad_bytes_at_5, decoded, RuntimeError, "sample 5 of the dataset", 0),
    "some only": (data.some_only, doubled, TypeError, "sample 0 did, but sample 1", 0),
    "types": (data.other_type_at_2, doubled, TypeError, "int32.*|sample 2", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("make", "pipe", "kind", "text", "good"), FAILURES.values(), ids=FAILURES)
def test_errors_are_raised_in_order(
    make: Any, pipe: Any, kind: type[Exception], text: str, good: int, workers: int
) -> None:
    with proxy.DALIServer(pipe()) as server:
        samples = data.Made(server.proxy, make)
        batches = iter(proxy.DataLoader(server, samples, batch_size=BATCH, num_workers=workers))
        for _ in range(good):
            next(batches)
        with pytest.raises(kind, match=text):
            for _ in range(3):
                next(batches)


@pytest.mark.skipif(not hasattr(Exception, "add_note"), reason="Python 3.10 has no notes")
def test_the_error_names_the_sample_that_failed_in_a_worker() -> None:
    with pytest.raises(ZeroDivisionError, match="while loading sample 5 of the dataset"):
        served(data.fails_at_5, num_workers=1)


def test_a_failed_batch_does_not_affect_others() -> None:
    seen: list[Any] = []
    with proxy.DALIServer(doubled()) as server:
        samples = data.Made(server.proxy, data.fails_at_5)
        batches = iter(proxy.DataLoader(server, samples, batch_size=BATCH, num_workers=1))
        for _ in range(3):
            with contextlib.suppress(ZeroDivisionError):
                seen.append(next(batches))
    assert firsts(seen) == [EXPECTED[0], EXPECTED[2]]


@pytest.mark.slow
def test_too_large_a_batch() -> None:
    with pytest.raises(ValueError, match=r"a batch must have at most .* samples, the batch_size"):
        served(data.plain, batch_size=5, num_workers=1)


def test_different_shapes_in_a_batch() -> None:
    with pytest.raises(RuntimeError, match=r"must have one shape.*collate_fn"):
        served(data.ragged, num_workers=1)


def test_a_pipeline_without_inputs() -> None:
    with pytest.raises(RuntimeError, match="must have inputs"):
        proxy.DALIServer(pipeline_def(lambda: fn.random.uniform())(batch_size=1, num_threads=1))


@pytest.mark.slow
def test_a_dropped_server_is_an_error() -> None:
    reference = proxy.DALIServer(doubled()).proxy(data.vector(1))
    gc.collect()
    with pytest.raises(RuntimeError, match="no longer exists"), proxy.DALIServer(doubled()) as other:
        other.produce_data(reference)


# ---------------------------------------------------------------- growth


def _held() -> tuple[int, int]:
    """Return the numbers of open files and mapped blocks of shared memory."""
    gc.collect()
    maps = Path("/proc/self/maps").read_text()
    return len(os.listdir("/proc/self/fd")), maps.count("/torch_")


def _memory() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    raise AssertionError("no VmRSS")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    "count", [300, pytest.param(10_000, marks=pytest.mark.slow)], ids=["300", "10000"]
)
def test_nothing_grows(count: int) -> None:
    with proxy.DALIServer(doubled()) as server:
        samples = data.Made(server.proxy, data.labelled, length=BATCH * (count + 50))
        batches = iter(proxy.DataLoader(server, samples, batch_size=BATCH, num_workers=2))
        for _ in itertools.islice(batches, 40):
            pass
        before, memory = _held(), _memory()
        for _ in itertools.islice(batches, count):
            pass
        after, grown = _held(), _memory() - memory
    assert max(after[0] - before[0], after[1] - before[1]) <= 12  # the number of batches in flight varies
    assert grown < 20
