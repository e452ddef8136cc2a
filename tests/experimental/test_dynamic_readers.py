"""Readers, sources, captured loops, checkpoints and torchdata's nodes in the dynamic mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.encoded_video import make
from torchdali import dynamic as ndd
from torchdali import types
from torchdali.execute.executor import Executor
from torchdali.experimental.dynamic._capture import Capture
from torchdali.kernels import native

COUNT = 22


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for i in range(COUNT):
        place = folder / f"class{i % 3}"
        place.mkdir(exist_ok=True)
        pixels = rng.integers(0, 256, (30 + i, 40, 3), np.uint8)
        Image.fromarray(pixels).save(place / f"{i:02}.jpg")
    return folder


def epoch(reader: Any, rng: Any, capture: bool = False, size: int = 5) -> list[Any]:
    found = []
    for jpegs, labels in reader.next_epoch(batch_size=size, capture=capture):
        images = ndd.decoders.image(jpegs)
        images = ndd.random_resized_crop(images, size=[16, 16], rng=rng)
        mirror = ndd.random.coin_flip(batch_size=size, rng=rng)
        images = ndd.crop_mirror_normalize(images, mirror=mirror, mean=[128.0], std=[60.0])
        found.append((images.torch().clone(), labels.torch().clone(), reader.get_state()))
    return found


def reader_of(root: Path, **arguments: Any) -> Any:
    return ndd.readers.File(file_root=str(root), random_shuffle=True, seed=4, **arguments)


def test_an_epoch_is_as_long_as_the_shard(root: Path) -> None:
    reader = ndd.readers.File(file_root=str(root))
    assert [jpegs.batch_size for jpegs, _ in reader.next_epoch(batch_size=5)] == [5] * 5
    alone = [label.item() for _, label in ndd.readers.File(file_root=str(root)).next_epoch()]
    assert len(alone) == COUNT
    assert reader.get_metadata()["epoch_size"] == COUNT


@pytest.mark.parametrize("shuffled_twice", [False, True])
def test_capture_changes_nothing(root: Path, shuffled_twice: bool) -> None:
    plain, captured = reader_of(root), reader_of(root)
    one, two = ndd.random.RNG(3), ndd.random.RNG(3)
    for _ in range(1 + shuffled_twice):
        for a, b in zip(epoch(plain, one), epoch(captured, two, capture=True), strict=True):
            assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) and a[2] == b[2]
    assert one.state == two.state


def test_another_loop_over_the_same_reader_may_make_other_calls(root: Path) -> None:
    def loops(capture: bool) -> list[torch.Tensor]:
        reader, rng, found = reader_of(root), ndd.random.RNG(3), []
        for number in range(8):
            own = ndd.random.RNG(number) if number in (3, 4) else rng
            for jpegs, labels in reader.next_epoch(batch_size=5, capture=capture):
                images = ndd.decoders.image(jpegs)
                small = ndd.random_resized_crop(images, size=[8, 8], rng=own)
                if number == 2:
                    small = ndd.flip(small)
                elif number == 6:
                    small = small + np.float32(number)
                found.append(small.torch().clone())
                if number in (1, 7):  # batches that the previous loop did not use
                    found += [image.torch().clone() for image in images.tensors]
                found.append(labels.torch().clone())
        return found

    plain, captured = loops(False), loops(True)
    assert len(plain) > 80
    # The fast path fuses decode and resize; images that are read themselves are resized by the Python path.
    level = 0 if native.library() is None else 1
    assert all((a.double() - b.double()).abs().max() <= level for a, b in zip(plain, captured, strict=True))


def test_an_interrupt_of_a_captured_loop_loses_no_batch(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pop, wanted = Executor.pop, epoch(reader_of(root), ndd.random.RNG(3))
    reader, rng, found = reader_of(root), ndd.random.RNG(3), []

    def interrupted(executor: Executor, stream: Any = None, **options: Any) -> Any:
        monkeypatch.setattr(Executor, "pop", pop)
        raise KeyboardInterrupt

    for jpegs, labels in reader.next_epoch(batch_size=5, capture=True):
        images = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[16, 16], rng=rng)
        mirror = ndd.random.coin_flip(batch_size=5, rng=rng)
        images = ndd.crop_mirror_normalize(images, mirror=mirror, mean=[128.0], std=[60.0])
        if len(found) in (2, 3):
            monkeypatch.setattr(Executor, "pop", interrupted)
            with pytest.raises(KeyboardInterrupt):
                images.torch()
        found.append((images.torch().clone(), labels.torch().clone()))
    assert all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d, _) in zip(found, wanted, strict=True))


def agree(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Compare images of `epoch`: the fast path, which runs jointly evaluated calls, may be a level off."""
    level = 0.0 if native.library() is None else 1.01 / 60
    return bool((found - wanted).abs().max() <= level)


def test_results_of_a_captured_loop_may_be_read_in_any_thread_and_order(root: Path) -> None:
    wanted, held = epoch(reader_of(root), ndd.random.RNG(3)), []
    for number in range(2):
        reader, rng = reader_of(root), ndd.random.RNG(3)
        held.clear()
        for jpegs, labels in reader.next_epoch(batch_size=5, capture=True):
            images = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[16, 16], rng=rng)
            mirror = ndd.random.coin_flip(batch_size=5, rng=rng)
            held.append((ndd.crop_mirror_normalize(images, mirror=mirror, mean=[128.0], std=[60.0]), labels))
            if len(held) == 1:
                held[0][0].evaluate()  # from here on it is read
        with ThreadPoolExecutor(3) as threads:
            order = list(range(len(held)))[:: -1 if number else 1]
            found = dict(zip(order, threads.map(lambda i: held[i][0].torch().clone(), order), strict=True))
        assert all(agree(found[i], wanted[i][0]) for i in order)


def test_a_loop_starts_with_batches_of_the_previous_loop(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    begin = Capture._begin
    monkeypatch.setattr(Capture, "_begin", lambda self, asked: begun.append(1) or begin(self, asked))  # type: ignore[func-returns-value]
    reader, rng = reader_of(root), ndd.random.RNG(3)
    counts = []
    for _ in range(3):
        epoch(reader, rng, capture=True)
        counts.append(len(begun))
        begun.clear()
    assert counts == [4, 5, 5]  # of five iterations


def test_capture_continues_if_the_generator_is_used_elsewhere(root: Path) -> None:
    def run(capture: bool) -> list[torch.Tensor]:
        rng, found = ndd.random.RNG(3), []
        for i, (jpegs, _) in enumerate(reader_of(root).next_epoch(batch_size=5, capture=capture)):
            if i == 3:
                rng()
            cropped = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[8, 8], rng=rng)
            found.append(cropped.torch().clone())
        return found

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


def _another_operator(i: int, images: Any) -> Any:
    return ndd.flip(images) if i < 2 else ndd.rotate(images, angle=3.0)


def _another_argument(i: int, images: Any) -> Any:
    return ndd.resize(images, size=[4 + (i > 1), 4])


def _another_operand(i: int, images: Any) -> Any:
    return ndd.resize(images, size=[4, 4]) + np.float32(i)


def _a_call_more(i: int, images: Any) -> Any:
    found = ndd.resize(images, size=[4, 4])
    return ndd.flip(found) if i > 1 else found


def test_calls_are_recorded_only_in_the_first_iteration(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = []
    operation = Capture.operation
    monkeypatch.setattr(Capture, "operation", lambda self, made: recorded.append(1) or operation(self, made))  # type: ignore[func-returns-value]
    reader, rng = reader_of(root), ndd.random.RNG(3)
    for expected in (4, 0):  # the second loop starts with the calls of the first
        epoch(reader, rng, capture=True)
        assert len(recorded) == expected
        recorded.clear()


def _a_list_that_changes() -> Any:
    size = [4, 4]

    def body(i: int, images: Any) -> Any:
        size[0] = 4 + (i > 1)
        return ndd.resize(images, size=size)

    return body


def _swap_operands(i: int, images: Any) -> Any:
    one = ndd.resize(images, size=[4, 4])
    other = ndd.flip(one)
    return ndd.cat(*([one, other] if i < 2 else [other, one]), axis=0)


@pytest.mark.parametrize(
    "body",
    [
        _another_operator, _another_argument, _another_operand, _a_call_more,
        _a_list_that_changes(), _swap_operands,
    ],
)
def test_captured_calls_must_stay_the_same(root: Path, body: Any) -> None:
    with pytest.raises(RuntimeError, match=r"captured loop(.|\n)*test_dynamic_readers"):
        for i, (jpegs, _) in enumerate(reader_of(root).next_epoch(batch_size=4, capture=True)):
            body(i, ndd.decoders.image(jpegs)).evaluate()


def test_captured_loops_with_the_generator_of_the_thread(root: Path) -> None:
    def run(capture: bool) -> list[torch.Tensor]:
        found = []
        ndd.random.set_seed(5)
        for i, (jpegs, _) in enumerate(reader_of(root).next_epoch(batch_size=5, capture=capture)):
            if i == 3:
                ndd.random.set_seed(6)
            cropped = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[8, 8])
            found.append(cropped.torch().clone())
        return found

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


@pytest.mark.parametrize("mode", [ndd.EvalMode.eager, ndd.EvalMode.sync_cpu, ndd.EvalMode.deferred])
def test_a_captured_loop_in_every_mode(root: Path, mode: Any) -> None:
    with mode:
        found = epoch(reader_of(root), ndd.random.RNG(3), capture=True)
    expected = epoch(reader_of(root), ndd.random.RNG(3))
    assert all(agree(a[0], b[0]) for a, b in zip(found, expected, strict=True))


def test_an_error_in_a_captured_loop_is_raised_in_its_iteration(root: Path) -> None:
    files = [str(p) for p in sorted(root.glob("*/*.jpg"))]
    files[7] = str(Path(__file__))
    reader = ndd.readers.File(files=files)
    good = 0
    with pytest.raises(RuntimeError, match="test_dynamic_readers"):
        for jpegs, _ in reader.next_epoch(batch_size=2, capture=True):
            ndd.resize(ndd.decoders.image(jpegs), size=[4, 4]).evaluate()
            good += 1
    assert good == 3


def test_a_reader_resumes_from_a_state(root: Path) -> None:
    whole = epoch(reader_of(root), ndd.random.RNG(1))
    reader, rng = reader_of(root), ndd.random.RNG(1)
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.register(reader, "reader")
    checkpoint.register(rng, "rng")
    for i, (jpegs, _) in enumerate(reader.next_epoch(batch_size=5)):
        ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[16, 16], rng=rng)
        ndd.random.coin_flip(batch_size=5, rng=rng)
        if i == 1:
            break
    checkpoint.collect()
    loaded = ndd.checkpoint.Checkpoint()
    loaded.deserialize(checkpoint.serialize())
    other, numbers = reader_of(root), ndd.random.RNG(99)
    loaded.register(other, "reader")
    loaded.register(numbers, "rng")
    rest = epoch(other, numbers)
    assert len(rest) == 3
    assert all(torch.equal(a[0], b[0]) for a, b in zip(whole[2:], rest, strict=True))


def test_checkpoint_files(tmp_path: Path) -> None:
    rng = ndd.random.RNG(5)
    checkpoint = ndd.checkpoint.Checkpoint()
    assert checkpoint.register(rng) == "__op_0"
    checkpoint.collect()
    pattern = str(tmp_path / "c_{seq:03d}.json")
    assert [Path(checkpoint.save(pattern)).name for _ in range(2)] == ["c_000.json", "c_001.json"]
    other = ndd.checkpoint.Checkpoint()
    assert other.load(pattern).endswith("c_001.json") and other.is_loaded
    fresh = ndd.random.RNG(8)
    other.register(fresh, "__op_0")
    assert fresh.state == rng.state
    with pytest.raises(KeyError):
        other.register(ndd.random.RNG(1), "unknown")
    with pytest.raises(ValueError):
        other.deserialize("{}")
    with pytest.raises(RuntimeError):
        checkpoint.register(rng, "another")


def test_two_loops_over_one_reader(root: Path) -> None:
    reader = reader_of(root)
    first = reader.next_epoch(batch_size=5)
    next(first)
    next(reader.next_epoch(batch_size=5))
    with pytest.raises(RuntimeError, match="another loop"):
        next(first)
    with pytest.raises(ValueError, match="got 4"):
        reader.next_epoch(batch_size=4)


@pytest.mark.parametrize(("cycle", "values"), [(None, [0, 1, "end", "end"]), ("raise", [0, 1, "end", 0]), (True, [0, 1, 0, 1])])
def test_sources(cycle: Any, values: list[Any]) -> None:
    source = ndd.ExternalSource([np.int32(0), np.int32(1)], cycle=cycle)
    found: list[Any] = []
    for _ in range(4):
        try:
            found.append(source().item())
        except StopIteration:
            found.append("end")
    assert found == values


def test_sources_of_functions() -> None:
    source = ndd.ExternalSource(lambda: (np.zeros(2), np.ones(3)), 2, layout=["A", "B"])
    first, second = source(batch_size=3)
    assert first.shape == [(2,)] * 3 and second.layout == "B"
    with pytest.raises(ValueError, match="without parameters"):
        ndd.ExternalSource(lambda x: x)
    captured = ndd.ExternalSource([np.full(2, i, np.float32) for i in range(6)])
    found = [(x + 1).torch().tolist() for x in captured.captured(batch_size=2)]
    assert found == [[[i + 1.0] * 2] * 2 for i in range(6)]


def test_imread(root: Path) -> None:
    paths = sorted(root.glob("*/*.jpg"))[:2]
    assert ndd.imread(paths[0]).ndim == 3
    assert ndd.imread(paths).batch_size == 2


def test_nodes_of_torchdata(root: Path) -> None:
    pytest.importorskip("torchdata.nodes", reason="torchdata is not installed")
    from torchdata.nodes import Loader

    from torchdali.experimental.dynamic.pytorch import nodes

    def make() -> Any:
        reader = nodes.Reader(ndd.readers.File, batch_size=5, file_root=str(root))
        small = nodes.DictMapper(reader, lambda x: ndd.resize(ndd.decoders.image(x), size=[4, 4]))
        return Loader(nodes.ToTorch(small))

    loader = make()
    batches = list(loader)
    assert [image.shape for image, _ in batches] == [(5, 4, 4, 3)] * 5
    part, resumed = make(), make()
    iterator = iter(part)
    next(iterator)
    resumed.load_state_dict(part.state_dict())
    rest = list(resumed)
    assert len(rest) == 4 and torch.equal(rest[0][0], batches[1][0])


def test_the_backend_of_a_reader_is_checked(root: Path) -> None:
    assert ndd.readers.File(file_root=str(root), _backend="cpu").get_metadata()
    with pytest.raises(ValueError, match=r"_backend of File must be one of .*, got 'x'"):
        ndd.readers.File(file_root=str(root), _backend="x")


def test_arguments_of_a_call(tmp_path: Path) -> None:
    arrays = [np.arange(24).reshape(4, 6) + 100 * i for i in range(4)]
    paths = [str(tmp_path / f"{i}.npy") for i in range(4)]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)

    def read(reader: Any, **arguments: Any) -> list[list[Any]]:
        return [t.torch().tolist() for t in reader(batch_size=2, **arguments).tensors]

    reader = ndd.readers.Numpy(files=paths)
    assert read(reader, roi_start=[1, 0], roi_shape=[1, 3]) == [a[1:2, :3].tolist() for a in arrays[:2]]
    starts = ndd.batch([[0, 0], [3, 1]])
    assert read(reader, roi_start=starts, roi_shape=torch.tensor([1, 2])) == [
        arrays[2][:1, :2].tolist(), arrays[3][3:, 1:3].tolist(),
    ]  # fmt: skip
    assert read(reader) == [a.tolist() for a in arrays[:2]]
    with pytest.raises(ValueError, match="must have 2 samples in this call, got a batch of 3"):
        reader(batch_size=2, roi_start=ndd.batch([[0, 0]] * 3))
    with pytest.raises(TypeError, match="unexpected keyword argument 'roi_axes'"):
        reader(batch_size=2, roi_axes=[0])
    # The two failed calls consumed no batch.
    assert read(reader) == [a.tolist() for a in arrays[2:]]
    single = ndd.readers.Numpy(files=paths, roi_start=[1, 0])
    assert single(roi_shape=[1, 3]).torch().tolist() == [[6, 7, 8]]
    with pytest.raises(ValueError, match="'roi_start' cannot be passed both in the constructor"):
        single(roi_start=[0, 0])


def test_frames_are_resized_by_call_arguments(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="reads videos")
    path = make(tmp_path, "h264.mp4")
    reader = ndd.readers.VideoResize(filenames=[path], sequence_length=3)
    width = ndd.batch([20.0, 40.0])
    found = reader(
        batch_size=2, resize_x=width, resize_y=20.0, interp_type=types.DALIInterpType.INTERP_NN
    )
    plain = ndd.readers.Video(filenames=[path], sequence_length=3)(batch_size=2)
    wanted = ndd.resize(plain, resize_x=width, resize_y=20.0, interp_type=types.DALIInterpType.INTERP_NN)
    for one, two in zip(found.tensors, wanted.tensors, strict=True):
        assert torch.equal(one.torch(), two.torch())
    assert [tuple(t.shape) for t in found.tensors] == [(3, 20, 20, 3), (3, 20, 40, 3)]
