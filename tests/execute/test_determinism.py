"""The same seed gives the same pixels for any threads, queue depth, batch size and order of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.encoded_images import encoded, smooth_image
from torchdali import fn, pipeline_def, types

COUNT, SIZE, SEED = 12, 24, 17


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEGs of different sizes in three class folders."""
    root = tmp_path_factory.mktemp("photos")
    for i in range(COUNT):
        folder = root / f"class{i % 3}"
        folder.mkdir(exist_ok=True)
        pixels = np.roll(smooth_image(40 + 5 * i, 90 - 4 * i), 7 * i, axis=(0, 1))
        (folder / f"{i}.jpg").write_bytes(encoded(pixels, "jpeg", quality=80))
    return root


@pipeline_def
def training(root: str, shard_id: int = 0, num_shards: int = 1) -> Any:
    data, label = fn.readers.file(
        file_root=root, random_shuffle=True, shard_id=shard_id, num_shards=num_shards, name="Reader"
    )
    images = fn.decoders.image(data)
    images = fn.random_resized_crop(images, size=[SIZE, SIZE])
    mirror = fn.random.coin_flip(probability=0.5)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[120.0] * 3,
        std=[60.0] * 3,
        mirror=mirror,
    )
    return images, label, mirror, data.source_info()


def run(
    root: Path, runs: int, batch_size: int = 4, seed: int | None = SEED, **settings: Any
) -> list[Any]:
    """Return images, labels, flips and files of all samples of some batches."""
    settings = {"num_threads": 2, "device_id": None, **settings}
    pipe = training(str(root), batch_size=batch_size, seed=seed, **settings)
    found: list[list[Any]] = [[], [], [], []]
    for _ in range(runs):
        for column, batch in zip(found, pipe.run(), strict=True):
            column += [sample.clone() for sample in batch.samples()]
    pipe.close()
    images, labels, flips, infos = found
    names = [bytes(info.tolist()).decode() for info in infos]
    return [torch.stack(images), torch.stack(labels), torch.stack(flips), names]


@pytest.fixture(scope="module")
def expected(photos: Path) -> list[Any]:
    """Return two epochs, computed batch by batch on one thread."""
    return run(photos, 6, num_threads=1, prefetch_queue_depth=1, exec_pipelined=False)


def same(found: list[Any], wanted: list[Any]) -> bool:
    return all(
        a == b if isinstance(a, list) else torch.equal(a, b)
        for a, b in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_threads_and_queues(photos: Path, expected: list[Any], threads: int, depth: int) -> None:
    assert same(run(photos, 6, num_threads=threads, prefetch_queue_depth=depth), expected)


def test_the_compared_pipeline_is_random(photos: Path, expected: list[Any]) -> None:
    images, labels, flips, names = expected
    first, second = names[:COUNT], names[COUNT:]
    assert sorted(first) == sorted(second) and first != second and first != sorted(first)
    assert [int(label) for label in labels] == [int(name[5]) for name in names]
    assert set(flips.tolist()) == {0, 1} and len(images.flatten(1).unique(dim=0)) == 2 * COUNT
    other = run(photos, 6, seed=SEED + 1)
    assert not torch.equal(images, other[0]) and names != other[3]


@pytest.mark.parametrize(
    "settings",
    [
        {"exec_async": False},
        {"exec_pipelined": False},
        {"exec_dynamic": True},
        {"prefetch_queue_depth": {"cpu_size": 3, "gpu_size": 2}},
        {"device_id": "cpu"},
        {"bad_samples": "skip"},
    ],
    ids=str,
)
def test_modes(photos: Path, expected: list[Any], settings: dict[str, Any]) -> None:
    assert same(run(photos, 6, **settings), expected)


@pytest.mark.parametrize("batch_size", [1, 3, 12])
def test_batch_sizes(photos: Path, expected: list[Any], batch_size: int) -> None:
    assert same(run(photos, 2 * COUNT // batch_size, batch_size=batch_size), expected)


@pytest.mark.parametrize("shards", [2, 3])
def test_shards_deliver_the_samples_of_one_pipeline(
    photos: Path, expected: list[Any], shards: int
) -> None:
    """A record's rank, and its position in the epoch, do not change its pixels."""
    size = COUNT // shards
    pixels = {}
    for shard in range(shards):
        pipe = training(
            str(photos), shard, shards, batch_size=size, seed=SEED, num_threads=2, device_id=None
        )
        images, _, _, infos = pipe.run()
        for image, info in zip(images.samples(), infos.samples(), strict=True):
            pixels[bytes(info.tolist()).decode()] = image.clone()
        pipe.close()
    wanted = dict(zip(expected[3][:COUNT], expected[0][:COUNT], strict=True))
    assert pixels.keys() == wanted.keys()
    assert all(torch.equal(pixels[name], image) for name, image in wanted.items())


def test_global_generators_have_no_effect(photos: Path, expected: list[Any]) -> None:
    torch.manual_seed(99)
    np.random.seed(99)
    before = torch.get_rng_state()
    assert same(run(photos, 6), expected)
    assert torch.equal(torch.get_rng_state(), before), "the user's generator was used"


def test_two_concurrent_pipelines(photos: Path, expected: list[Any]) -> None:
    pipes = [
        training(str(photos), batch_size=4, num_threads=2, device_id=None, seed=SEED) for _ in "ab"
    ]
    for i in range(6):
        for pipe in pipes:
            assert torch.equal(pipe.run()[0].stack(), expected[0][4 * i : 4 * i + 4])
    for pipe in pipes:
        pipe.close()


def test_without_a_seed_runs_differ(photos: Path) -> None:
    assert not torch.equal(run(photos, 1, seed=None)[0], run(photos, 1, seed=None)[0])
