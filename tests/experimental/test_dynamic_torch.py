"""The dynamic mode with torch's tools, and wrong use."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from torchdali import dynamic as ndd

IMAGE = torch.linspace(0, 1, 6 * 5 * 3).view(6, 5, 3)

# Functions of a float image (H, W, C) through which gradients flow.
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "brightness": lambda x: ndd.brightness(x, brightness=1.5, torch=True),
    "contrast": lambda x: ndd.contrast(x, contrast=0.7, torch=True),
    "color_twist": lambda x: ndd.color_twist(x, hue=30.0, saturation=1.2, torch=True),
    "flip": lambda x: ndd.flip(x, torch=True),
    "crop": lambda x: ndd.crop(x, crop=[3, 2], torch=True),
    "transpose": lambda x: ndd.transpose(x, perm=[2, 0, 1], torch=True),
    "gaussian_blur": lambda x: ndd.gaussian_blur(x, window_size=3, torch=True),
    "resize": lambda x: ndd.resize(x, size=[4, 4], torch=True),
    "crop_mirror_normalize": lambda x: ndd.crop_mirror_normalize(
        x, mean=[0.5], std=[0.2], mirror=1, torch=True
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    x = IMAGE.double().float().requires_grad_()
    direction = torch.randn(IMAGE.shape, generator=torch.Generator().manual_seed(1))
    call = SMOOTH[name]
    call(x).square().sum().backward()
    assert x.grad is not None
    with torch.no_grad():
        step = 1e-2
        up, down = (
            call(IMAGE + sign * step * direction).double().square().sum() for sign in (1, -1)
        )
    slope = float((up - down) / (2 * step))
    assert slope == pytest.approx(float((x.grad * direction).sum()), rel=2e-2, abs=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_compiled_functions_return_the_same(name: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(SMOOTH[name], backend="eager")
    for _ in range(2):
        assert torch.allclose(compiled(IMAGE), SMOOTH[name](IMAGE), rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", SMOOTH)
def test_vmap(name: str) -> None:
    several = torch.stack([IMAGE, IMAGE.flip(0), IMAGE * 2])
    mapped = torch.func.vmap(SMOOTH[name])(several)
    single = torch.stack([SMOOTH[name](each) for each in several])
    # OpenCV and torch add the three products of a pixel in different order.
    assert torch.equal(mapped, single) or (name == "color_twist" and torch.allclose(mapped, single, rtol=0, atol=1e-6))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", ["brightness", "contrast", "color_twist", "flip", "crop", "crop_mirror_normalize"])
def test_vmap_of_bytes(name: str) -> None:
    several = (torch.stack([IMAGE, IMAGE.flip(0), IMAGE / 2]) * 255).to(torch.uint8)
    mapped = torch.func.vmap(SMOOTH[name])(several)
    single = torch.stack([SMOOTH[name](each) for each in several])
    assert mapped.dtype == single.dtype
    assert torch.equal(mapped, single)


def test_prepared_calls_are_keyed_by_input_form() -> None:
    x = ndd.tensor([[1.0, 2.0], [3.0, 4.0]])
    for factor in (1, 1.0, 2, 2.0, True):
        assert (x * factor).dtype.name == "f32"
    number = ndd.tensor([3])
    assert [(number * f).dtype.name for f in (2, 2.0, 2, 2.0)] == ["i32", "f32", "i32", "f32"]
    ones = ndd.tensor([1.0])
    signs = [bool(torch.signbit((ones * zero).torch())) for zero in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]
    image = ndd.tensor(IMAGE, layout="HWC")
    assert ndd.crop(image, crop=[2, 3]).shape == (2, 3, 3)
    assert ndd.crop(image, crop=[3, 2]).shape == (3, 2, 3)
    assert ndd.flip(ndd.tensor(IMAGE, layout="CHW")).torch().equal(IMAGE.flip(2))
    assert ndd.flip(image).torch().equal(IMAGE.flip(1))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="out of bounds"):
            ndd.crop(image, crop=[20, 2]).evaluate()
    for _ in range(2):
        ndd.flip(image, horizontal=0).torch().zero_()  # which is a copy
        ndd.crop(image, crop=[6, 5]).torch().zero_()
        assert float(image.torch().sum()) > 0


def test_a_padded_tensor_of_a_batch() -> None:
    batch = ndd.as_batch([np.ones((2, 3), np.float32), np.ones((1, 4), np.float32)])
    padded = ndd.as_tensor(batch, pad=True)
    assert padded.shape == (2, 2, 4) and float(padded.torch().sum()) == 10
    assert ndd.tensor(batch, pad=True).torch().equal(padded.torch())
    with pytest.raises(ValueError, match="must have one shape"):
        ndd.as_tensor(batch)


# ------------------------------------------------------------------ loops


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for i in range(40):
        place = folder / "ab"[i % 2]
        place.mkdir(exist_ok=True)
        PIL.Image.fromarray(rng.integers(0, 256, (20, 24, 3), np.uint8)).save(place / f"{i:02}.png")
    return folder


def _loop(root: Path, capture: bool, iterations: int, look: Callable[[int], None]) -> list[int]:
    reader = ndd.readers.File(file_root=str(root), random_shuffle=True, seed=3)
    rng, found = ndd.random.RNG(5), []
    while len(found) < iterations:
        for files, labels in reader.next_epoch(batch_size=4, capture=capture):
            images = ndd.random_resized_crop(ndd.decoders.image(files), size=[8, 8], rng=rng)
            mirror = ndd.random.coin_flip(batch_size=4, rng=rng)
            images = ndd.flip(images, horizontal=mirror)
            found.append(hash((images.torch().numpy().tobytes(), labels.torch().numpy().tobytes())))
            look(len(found))
    return found[:iterations]


@pytest.mark.slow
def test_a_thousand_iterations_with_and_without_capture(root: Path) -> None:
    psutil = pytest.importorskip("psutil", reason="reads the memory of this process")
    process = psutil.Process()
    results = []
    for capture in (False, True):
        memory: dict[int, int] = {}

        def look(number: int, memory: dict[int, int] = memory) -> None:
            if number in (200, 1000):
                gc.collect()
                memory[number] = process.memory_info().rss

        results.append(_loop(root, capture, 1000, look))
        assert memory[1000] - memory[200] < 8 << 20, f"capture={capture}"
    assert results[0] == results[1]


# ------------------------------------------------------------------ wrong use


def test_a_batch_of_another_context_is_a_valid_operand() -> None:
    with ndd.EvalContext(num_threads=1):
        first = ndd.flip(ndd.as_batch(IMAGE[None].repeat(2, 1, 1, 1), layout="HWC"))
    with ndd.EvalContext(num_threads=1):
        second = ndd.flip(first)
    assert second.torch()[0].equal(IMAGE)


def test_use_after_the_context_has_closed() -> None:
    with ndd.EvalContext(num_threads=1), ndd.EvalMode.deferred:
        result = ndd.flip(ndd.as_batch(IMAGE[None], layout="HWC"))
    assert result.torch()[0].equal(IMAGE.flip(1))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is an accelerator")
def test_an_absent_device_is_an_error() -> None:
    with pytest.raises((RuntimeError, ValueError, AssertionError)):
        ndd.tensor([1.0], device="gpu")


def test_a_captured_loop_that_changes_its_graph(root: Path) -> None:
    reader = ndd.readers.File(file_root=str(root))
    with pytest.raises(RuntimeError) as caught:
        for i, (files, _) in enumerate(reader.next_epoch(batch_size=4, capture=True)):
            images = ndd.decoders.image(files)
            images = ndd.flip(images) if i < 3 else ndd.brightness(images, brightness=1.5)
            images.torch()
    assert "test_dynamic_torch.py" in str(caught.value)


def test_a_reader_in_two_loops(root: Path) -> None:
    reader = ndd.readers.File(file_root=str(root))
    first = reader.next_epoch(batch_size=4)
    next(iter(first))
    with pytest.raises(RuntimeError):
        for _ in reader.next_epoch(batch_size=4):
            next(iter(first))


def test_a_deferred_error_names_the_users_line() -> None:
    images = ndd.as_batch(IMAGE[None], layout="HWC")
    with ndd.EvalMode.deferred:
        wrong = ndd.crop(images, crop=[100, 100])  # the failing line
    with pytest.raises(RuntimeError, match="test_dynamic_torch"):
        wrong.evaluate()


def test_several_threads_may_read_one_value() -> None:
    errors = []
    for _ in range(50):
        asked, barrier = ndd.flip(ndd.as_batch(IMAGE[None].repeat(3, 1, 1, 1), layout="HWC")), threading.Barrier(4)

        def ask(asked: Any = asked, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(60)
            try:
                assert asked.device == ndd.Device("cpu") and asked.evaluate().batch_size == 3
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    assert not errors


def test_an_error_does_not_affect_other_threads() -> None:
    expected, found, errors = IMAGE.flip(1), [], []

    def good() -> None:
        for _ in range(50):
            batch = ndd.as_batch(IMAGE[None].repeat(3, 1, 1, 1), layout="HWC")
            found.append(bool(ndd.flip(batch).torch()[1].equal(expected)))

    def bad() -> None:
        for _ in range(50):
            batch = ndd.as_batch(IMAGE[None].repeat(3, 1, 1, 1), layout="HWC")
            try:
                ndd.crop(batch, crop=[100, 100]).evaluate()
            except RuntimeError as error:
                errors.append(error)

    threads = [threading.Thread(target=each) for each in (good, bad, good)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not any(each.is_alive() for each in threads)
    assert len(found) == 100 and all(found) and len(errors) == 50


def test_the_mode_and_the_generator_belong_to_a_thread() -> None:
    seen: list[Any] = []
    with ndd.EvalMode.deferred:
        thread = threading.Thread(target=lambda: seen.append(ndd.EvalMode.current()))
        thread.start()
        thread.join(60)
    assert seen == [ndd.EvalMode.eager]
