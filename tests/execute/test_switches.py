"""Threads that are interrupted between any two instructions: shared state stays consistent, results are equal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.encoded_images import encoded, smooth_image
from torchdali import backend, fn, pipeline_def, types
from torchdali.tensors.buffer_pool import BufferPool

COUNT = 12


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photos")
    (root / "0").mkdir()
    for i in range(COUNT):
        data = encoded(smooth_image(30 + i, 50 - i), "jpeg", quality=80)
        (root / "0" / f"{i:02}.jpg").write_bytes(b"broken" if i == 5 else data)
    return root


@pipeline_def(batch_size=5, device_id=None, seed=5, bad_samples="skip", enable_conditionals=True)
def varied(root: Path) -> Any:
    data, label = fn.readers.file(file_root=str(root), random_shuffle=True, name="Reader")
    image = fn.decoders.image(data)
    if fn.random.coin_flip(probability=0.5):
        image = fn.rotate(image, angle=fn.random.uniform(range=[-30.0, 30.0]), keep_size=True)
    else:
        image = fn.brightness(image, brightness=fn.random.uniform(range=[0.5, 1.5]))
    small = fn.random_resized_crop(image, size=[24, 24])
    mean = fn.reductions.mean(fn.cast(small, dtype=types.FLOAT), axes=[0, 1]) * 2 + label
    return fn.crop_mirror_normalize(small, mirror=fn.random.coin_flip()), mean, image.shape()


def run_concurrently(functions: list[Callable[[], None]]) -> None:
    """Call functions in separate threads, and raise the first error."""
    errors: list[BaseException] = []

    def run(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def rows(pipe: Any, count: int) -> list[torch.Tensor]:
    return [sample.clone() for _ in range(count) for out in pipe.run() for sample in out.samples()]


def same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(map(torch.equal, left, right))


@pytest.mark.slow
def test_pipelines_and_their_observers(photos: Path) -> None:
    wanted = rows(varied(photos, num_threads=1, num_processes=1), 8)
    pipes = [
        varied(photos, num_threads=4, num_processes=1, enable_memory_stats=True) for _ in range(2)
    ]
    for pipe in pipes:
        pipe.build()
    over = threading.Event()
    found: dict[int, list[torch.Tensor]] = {}

    def take(k: int) -> None:
        try:
            found[k] = rows(pipes[k], 8)
        finally:
            over.set()

    def look() -> None:
        while not over.is_set():
            for pipe in pipes:
                assert "batches" in str(pipe.stats())
                pipe.executor_statistics()
                pipe.bad_sample_report()
            backend.ReleaseUnusedMemory()

    run_concurrently([lambda: take(0), lambda: take(1), look])
    assert same(found[0], wanted)
    assert same(found[1], wanted)
    assert {bad.batch for bad in pipes[0].bad_sample_report()} == {
        bad.batch for bad in pipes[1].bad_sample_report()
    }


def test_calls_that_share_caches() -> None:
    image = torch.from_numpy(np.asarray(smooth_image(40, 60)))

    def calls() -> list[torch.Tensor]:
        found = []
        for size in range(8, 24):
            small = fn.resize(image, size=[size, size + 3])
            turned = fn.rotate(small, angle=float(size))
            found += [
                turned,
                fn.crop_mirror_normalize(small, crop=[size - 2, 6], std=[float(size)] * 3),
            ]
        return found

    wanted, found = calls(), dict[int, list[torch.Tensor]]()
    run_concurrently([lambda k=k: found.update({k: calls()}) for k in range(4)])  # type: ignore[misc]
    assert all(same(found[k], wanted) for k in range(4))


@pytest.mark.slow
def test_a_pool_of_memory() -> None:
    pool = BufferPool()

    def use() -> None:
        for i in range(40):
            held = [pool.empty((1 << 16,), torch.uint8) for _ in range(30)]
            for k, each in enumerate(held):
                each[0] = each[-1] = (i + k) % 251
            assert all(int(x[0]) == int(x[-1]) == (i + k) % 251 for k, x in enumerate(held))

    def look() -> None:
        for _ in range(1000):
            assert pool.bytes_out >= 0 <= pool.bytes_free

    run_concurrently([use, use, use, look, look])
    assert pool.bytes_out == 0
