"""`torchdali.DataLoader` and torch's: equal batches, order, types and errors."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
import torch.utils.data
import torchvision.transforms as v1
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, Subset, WeightedRandomSampler
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2
from torchvision.transforms._presets import ImageClassification

import torchdali
from tests.dataloader.data import (
    ARRAYS,
    COUNT,
    FILES,
    LAZY,
    SAMPLES,
    Own,
    Several,
    Stream,
    in_memory,
    of_files,
    parts,
    rows,
    write_images,
)
from tests.helpers.encoded_images import exif
from torchdali import DataLoader
from torchdali.pipeline import native_status

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
FIXED: dict[str, Any] = {
    "validation": v1.Compose([v1.Resize(40), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)]),
    "validation, v2": v2.Compose([
        v2.Resize(36), v2.CenterCrop((32, 28)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD),
    ]),
    "validation, of weights": ImageClassification(crop_size=28, resize_size=33),
    "validation, of weights, larger": v1.Compose([ImageClassification(crop_size=97, resize_size=41, mean=MEAN, std=STD)]),
    "validation, of weights, bicubic": ImageClassification(crop_size=20, resize_size=20, interpolation=v1.InterpolationMode.BICUBIC),
    "crop larger than the image": v1.Compose([v1.CenterCrop((97, 86)), v1.ToTensor()]),
    "crop of a small image": v1.Compose([v1.Resize((33, 31)), v1.CenterCrop((38, 25)), v1.ToTensor()]),
    "longest side": v1.Compose([v1.Resize(40, max_size=45), v1.CenterCrop(30), v1.PILToTensor()]),
    "bicubic": v1.Compose([v1.Resize((20, 50), v1.InterpolationMode.BICUBIC), v1.ToTensor()]),
    "nearest": v1.Compose([v1.Resize((23, 19), v1.InterpolationMode.NEAREST), v1.ToTensor()]),
    "lanczos": v1.Compose([v1.Resize((17, 90), v1.InterpolationMode.LANCZOS), v1.ToTensor()]),
    "larger": v1.Compose([v1.Resize((131, 127)), v1.ToTensor()]),
    "one pixel": v1.Compose([v1.Resize((1, 1)), v1.ToTensor()]),
    "tensors first": v2.Compose([
        v2.ToImage(), v2.Resize((21, 34), antialias=True), v2.CenterCrop(20), v2.ToDtype(torch.float32, scale=True),
    ]),
    "flipped": v1.Compose([v1.Resize((25, 31)), v1.RandomHorizontalFlip(1.0), v1.RandomVerticalFlip(1.0), v1.ToTensor()]),
    "padded": v1.Compose([v1.Resize((20, 21)), v1.Pad((1, 2, 3, 4), (9, 8, 7)), v1.ToTensor()]),
    "padded by reflection": v2.Compose([v2.Resize((20, 21)), v2.Pad([2, 5], padding_mode="reflect"), v2.ToImage()]),
    "nested": v1.Compose([v1.Compose([v1.Resize(40)]), torch.nn.Sequential(v1.CenterCrop(20)), v1.ToTensor()]),
    "a function": v1.Compose([v1.Resize((32, 32)), v1.ToTensor(), v1.Lambda(lambda x: x.view(-1) * 2)]),
    "a function in the middle": v1.Compose([v1.Resize(40), lambda image: image.rotate(90), v1.CenterCrop(20), v1.ToTensor()]),
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("pictures")
    write_images(folder)
    return folder


def both(dataset: Any, seed: int = 3, **arguments: Any) -> tuple[list[Any], list[Any], DataLoader[Any]]:
    """Return two epochs of torch's loader and of ours, from the same seed."""
    torch.manual_seed(seed)
    theirs = torch.utils.data.DataLoader(dataset, **arguments)
    expected = [batch for _ in range(2) for batch in theirs]
    torch.manual_seed(seed)
    ours = DataLoader(dataset, **arguments)
    return [batch for _ in range(2) for batch in ours], expected, ours


def check_equal(batch: Any, expected: Any, level: float = 0.0) -> None:
    """Check that two batches are equal, including types; floats of images may differ by a level."""
    assert type(batch) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert batch.dtype == expected.dtype and batch.shape == expected.shape and batch.is_contiguous()
        if level and batch.dim() > 2:
            assert (batch.double() - expected.double()).abs().max() <= level * 1.001
        else:
            assert torch.equal(batch, expected)
    elif isinstance(expected, dict):
        assert batch.keys() == expected.keys()
        for key in expected:
            check_equal(batch[key], expected[key], level)
    elif isinstance(expected, (list, tuple)):
        assert len(batch) == len(expected)
        for one, other in zip(batch, expected, strict=True):
            check_equal(one, other, level)
    else:
        assert batch == expected


def level_of(expected: Any, name: str) -> float:
    """Return one level of the images of a batch."""
    if expected[0].dtype == torch.uint8:
        return 1.0
    return 1 / 255 / (min(STD) if "validation" in name else 1) * (2 if name == "a function" else 1)


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", FIXED)
def test_images_of_files_match_torchvision(root: Path, name: str) -> None:
    dataset = ImageFolder(str(root), FIXED[name])
    batches, expected, loader = both(dataset, batch_size=1 if "longest" in name else 4)
    assert loader.notes[-1].startswith("not accelerated") == ("function" in name)
    assert len(batches) == len(expected)
    for batch, other in zip(batches, expected, strict=True):
        check_equal(batch, other, level_of(other, name))


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("target", [None, lambda label: {"label": label, "name": f"{label}"}], ids=["numbers", "transformed"])
def test_file_datasets(root: Path, name: str, target: Any) -> None:
    paths = [str(path) for path in sorted(root.rglob("*.*"))]
    dataset = of_files(name, paths, FIXED["crop of a small image"], target_transform=target)
    batches, expected, loader = both(dataset, batch_size=3, shuffle=True, num_workers=0)
    assert (loader.notes[0] == f"{name}: read by torchdali") == (target is None)
    for batch, other in zip(batches, expected, strict=True):
        check_equal(batch, other, 1 / 255)


GRAY = v1.Compose([v1.ToTensor(), v1.Normalize((0.1307,), (0.3081,))])
SIZED = v1.Compose([v1.Resize((20, 17)), v1.ToTensor()])
MOVED = v1.Compose([v1.Pad(2, 7), v1.CenterCrop(30), v1.Pad((-3, 2, 4, 1), 7), v1.PILToTensor()])


@pytest.mark.thin(2)
@pytest.mark.parametrize("transform", [GRAY, SIZED, MOVED], ids=["as they are", "resized", "moved"])
@pytest.mark.parametrize("name", ARRAYS)
def test_array_datasets(name: str, transform: Any) -> None:
    dataset = in_memory(name, transform)
    batches, expected, loader = both(dataset, batch_size=4, shuffle=True, num_workers=1 if name == "CIFAR10" else 0)
    assert loader.notes[0] == f"{name}: read by torchdali"
    for batch, other in zip(batches, expected, strict=True):
        check_equal(batch, other, (1 / 255 if transform is SIZED else 0.0))


EMPTY: dict[str, Any] = {
    "files": lambda root: Subset(ImageFolder(root, SIZED), []),
    "files that are left out": lambda root: _without_samples(ImageFolder(root, SIZED)),
    "parts of files": lambda root: torch.utils.data.ConcatDataset([Subset(ImageFolder(root, SIZED), [])] * 2),
    "files, decoded alone": lambda root: Subset(ImageFolder(root, lambda image: image), []),
    "arrays": lambda root: Subset(in_memory("MNIST", GRAY), []),
    "rows": lambda root: Subset(rows(), []),
}


def _without_samples(dataset: Any) -> Any:
    dataset.samples = []
    return dataset


NOISE = np.random.default_rng(2).integers(0, 256, (72, 72, 3), np.uint8)
OTHER_FILES: dict[str, Any] = {  # saved object, and options
    "turned.tif": (NOISE[:48], {"exif": exif(6)}), "turned.jpg": (NOISE[:48], {"exif": exif(8)}),
    "16 bits.png": (NOISE[..., 0].astype(np.uint16) * 257, {}), "noise.png": (NOISE, {}),
}  # fmt: skip


@pytest.mark.parametrize("transform", [v1.Resize((90, 90), v1.InterpolationMode.NEAREST), v1.CenterCrop(75)], ids=["nearest", "crop"])
@pytest.mark.parametrize("name", OTHER_FILES)
def test_other_files_decode_as_by_pillow(tmp_path: Path, name: str, transform: Any) -> None:
    """The center of every fifth of 90 columns is on the edge between two of 72."""
    pixels, options = OTHER_FILES[name]
    (tmp_path / "a").mkdir()
    PIL.Image.fromarray(pixels).save(tmp_path / "a" / name, **options)
    batches, expected, _ = both(ImageFolder(str(tmp_path), v1.Compose([transform, v1.ToTensor()])))
    for batch, other in zip(batches, expected, strict=True):
        check_equal(batch, other, 1 / 255 if name.endswith("jpg") else 0.0)


@pytest.mark.parametrize("name", EMPTY)
def test_empty_datasets_give_no_batch(root: Path, name: str) -> None:
    dataset = EMPTY[name](str(root))
    batches, expected, loader = both(dataset, batch_size=4)
    assert batches == expected == [] and len(loader) == 0
    for kind in (torch.utils.data.DataLoader, DataLoader):
        with pytest.raises(ValueError, match="num_samples should be a positive integer"):
            kind(dataset, shuffle=True)


def test_appended_samples_are_loaded(root: Path) -> None:
    dataset = ImageFolder(str(root), SIZED)
    everything, dataset.samples = dataset.samples, []
    loader = DataLoader(dataset, 4, num_workers=1)
    assert list(loader) == []
    dataset.samples = everything
    assert [len(labels) for _, labels in loader] == [4, 4, 2]
    dataset.samples = everything * 2
    assert [len(labels) for _, labels in loader] == [4] * 5


@pytest.mark.parametrize("part", parts(range(COUNT)))
@pytest.mark.parametrize("kind", ["files", "arrays", "rows", "own"])
def test_subsets_and_concatenations(root: Path, kind: str, part: str) -> None:
    datasets = {
        "files": ImageFolder(str(root), FIXED["crop of a small image"]), "arrays": in_memory("SVHN", MOVED),
        "rows": rows(), "own": Own(SAMPLES["a dictionary"]),
    }  # fmt: skip
    batches, expected, loader = both(parts(datasets[kind])[part], batch_size=4, shuffle=True)
    assert loader.notes[-1].startswith("not accelerated") == (kind == "own" or (kind, part) == ("rows", "twice"))
    for batch, other in zip(batches, expected, strict=True):
        check_equal(batch, other, 1 / 255)


@pytest.mark.parametrize("kind", [Own, Several])
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_that_the_user_changed(name: str, kind: Any) -> None:
    batches, expected, _ = both(kind(SAMPLES[name]), batch_size=4, shuffle=True)
    check_equal(batches, expected)


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": None}, {"batch_size": 3, "drop_last": True}, {"batch_size": 4, "num_workers": 2},
        {"batch_size": 20, "drop_last": True}, {"batch_size": 4, "collate_fn": list},
        {"batch_size": 2, "num_workers": 1, "persistent_workers": True, "prefetch_factor": 3},
        {"batch_size": 2, "num_workers": 1, "timeout": 30, "worker_init_fn": torch.manual_seed, "in_order": False},
    ],
    ids=lambda arguments: ", ".join(arguments),
)  # fmt: skip
@pytest.mark.parametrize("kind", ["files", "arrays", "rows", "own"])
def test_arguments(root: Path, kind: str, arguments: dict[str, Any]) -> None:
    datasets = {
        "files": ImageFolder(str(root), FIXED["crop of a small image"]), "arrays": in_memory("MNIST", MOVED),
        "rows": rows(), "own": Own(SAMPLES["a tuple"]),
    }  # fmt: skip
    batches, expected, _ = both(datasets[kind], shuffle=True, **arguments)
    assert len(batches) == len(expected)
    for batch, other in zip(batches, expected, strict=True):
        check_equal(batch, other, 1 / 255)


SAMPLERS: dict[str, Any] = {
    "backwards": lambda data: {"sampler": range(len(data) - 1, -1, -1), "batch_size": 3},
    "weighted": lambda data: {"sampler": WeightedRandomSampler([1.0, 5.0] * 5, 12), "batch_size": 5},
    "with replacement": lambda data: {"sampler": RandomSampler(data, True, 17), "batch_size": 4},
    "a generator": lambda data: {"shuffle": True, "generator": torch.Generator().manual_seed(8), "batch_size": 4},
    "batches": lambda data: {"batch_sampler": BatchSampler(SequentialSampler(data), 4, True)},
    "batches of several sizes": lambda data: {"batch_sampler": [[1], [2, 3, 9], [0, 0]]},
    "a rank": lambda data: {
        "sampler": torch.utils.data.DistributedSampler(data, num_replicas=3, rank=1, shuffle=True), "batch_size": 2,
    },
    "tensors": lambda data: {"batch_sampler": [torch.tensor([1, 2]), torch.tensor([3])]},
}  # fmt: skip


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("kind", ["files", "arrays", "rows"])
def test_indices_come_from_the_sampler(root: Path, kind: str, sampler: str) -> None:
    datasets = {"files": ImageFolder(str(root), FIXED["one pixel"]), "arrays": in_memory("CIFAR10", GRAY), "rows": rows()}
    dataset = datasets[kind]
    torch.manual_seed(1)
    expected = list(torch.utils.data.DataLoader(dataset, **SAMPLERS[sampler](dataset)))
    torch.manual_seed(1)
    batches = list(DataLoader(dataset, **SAMPLERS[sampler](dataset)))
    assert len(batches) == len(expected)
    for batch, other in zip(batches, expected, strict=True):
        check_equal(batch, other, 1 / 255)


def test_set_epoch_reorders(root: Path) -> None:
    dataset = ImageFolder(str(root), FIXED["one pixel"])
    orders = []
    for kind in (torch.utils.data.DataLoader, DataLoader):
        sampler = torch.utils.data.DistributedSampler(dataset, num_replicas=2, rank=0)
        loader = kind(dataset, batch_size=2, sampler=sampler)
        for epoch in range(3):
            sampler.set_epoch(epoch)
            orders.append(torch.cat([labels for _, labels in loader]).tolist())
    assert orders[:3] == orders[3:]


def test_iterable_datasets_fall_back_to_torch() -> None:
    for workers in (0, 2):
        loader = DataLoader(Stream(), batch_size=3, num_workers=workers)
        assert sorted(torch.cat(list(loader)).tolist()) == list(range(COUNT))
        assert loader.notes[-1].startswith("not accelerated")
    with pytest.raises(ValueError, match="IterableDataset: expected unspecified shuffle"):
        DataLoader(Stream(), shuffle=True)


RANDOM = v2.Compose([
    v2.RandomResizedCrop(24, scale=(0.3, 1.0)), v2.RandomHorizontalFlip(), v2.RandomApply([v2.RandomVerticalFlip(1.0)], p=0.5),
    v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
])  # fmt: skip
SHIFTED = v1.Compose([v1.RandomCrop(32, padding=4), v1.RandomHorizontalFlip(), v1.ToTensor()])


@pytest.mark.parametrize("kind", ["files", "arrays"])
def test_manual_seed_repeats_an_epoch_whatever_the_number_of_threads(root: Path, kind: str) -> None:
    dataset = ImageFolder(str(root), RANDOM) if kind == "files" else in_memory("CIFAR10", SHIFTED)

    def epochs(seed: int, workers: int, generator: torch.Generator | None = None) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        loader = DataLoader(dataset, 4, shuffle=True, num_workers=workers, generator=generator)
        return [torch.cat([images for images, _ in loader]) for _ in range(2)]

    one, two, other = epochs(1, 1), epochs(1, 3), epochs(2, 1)
    assert all(map(torch.equal, one, two)) and not any(map(torch.equal, one, other))
    assert not torch.equal(one[0], one[1])  # each epoch has its own
    third, fourth = (epochs(seed, 2, torch.Generator().manual_seed(4)) for seed in (1, 2))
    assert all(map(torch.equal, third, fourth))


def test_a_repeated_image_in_a_batch_is_augmented_twice(root: Path) -> None:
    for dataset in (ImageFolder(str(root), RANDOM), in_memory("CIFAR10", SHIFTED)):
        ((images, _),) = list(DataLoader(dataset, batch_sampler=[[1] * 8]))
        assert len({image.numpy().tobytes() for image in images}) > 4


def test_a_loader_is_a_torch_dataloader(root: Path) -> None:
    loader = DataLoader(ImageFolder(str(root), RANDOM), 4, True, num_workers=2)
    assert isinstance(loader, torch.utils.data.DataLoader) and torchdali.DataLoader is DataLoader
    assert isinstance(loader.sampler, RandomSampler) and loader.num_workers == 2 and len(loader) == 3
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 3
    for other in (pickle.loads(pickle.dumps(loader)), copy.copy(loader), copy.deepcopy(loader)):
        assert [len(labels) for _, labels in other] == [4, 4, 2]


def test_changes_between_epochs_take_effect(root: Path) -> None:
    dataset = ImageFolder(str(root), v1.Compose([v1.Resize((8, 8)), v1.ToTensor()]))
    loader = DataLoader(dataset, 5, num_workers=1)
    assert next(iter(loader))[0].shape == (5, 3, 8, 8)
    dataset.transform = v1.Compose([v1.Resize((16, 12)), v1.ToTensor()])
    assert next(iter(loader))[0].shape == (5, 3, 16, 12)
    dataset.transform.transforms[0].size = (4, 4)
    assert next(iter(loader))[0].shape == (5, 3, 4, 4)
    dataset.transform = lambda image: torch.zeros(1)
    assert next(iter(loader))[0].shape == (5, 1)
    dataset.transform = SIZED
    dataset.samples[:] = dataset.samples[:4]
    dataset.samples[0] = (dataset.samples[0][0], 77)
    dataset.target_transform = lambda label: label + 0.5
    ((_, labels),) = list(loader)
    assert labels.dtype == torch.float64 and labels.tolist()[0] == 77.5 and len(labels) == 4


def test_loops_do_not_disturb_each_other(root: Path) -> None:
    for dataset in (ImageFolder(str(root), FIXED["one pixel"]), in_memory("CIFAR10", GRAY), rows()):
        loader = DataLoader(dataset, 3, num_workers=1)
        pairs = list(zip(loader, loader, strict=True))
        assert len(pairs) == 4 and all(torch.equal(a[1], b[1]) for a, b in pairs)
        outer = [len(list(loader)) for _ in loader]
        assert outer == [4] * 4
        for _ in loader:
            break
        assert sum(len(batch[1]) for batch in loader) == COUNT


class Called(ImageFolder):
    """A folder with a user-defined `__getitem__`."""

    def __getitem__(self, index: int) -> Any:
        image, label = super().__getitem__(index)
        return image, label, self.samples[index][0]


def test_a_user_defined_getitem_is_called(root: Path) -> None:
    batches, expected, loader = both(Called(str(root), SIZED), batch_size=4, shuffle=True)
    check_equal(batches, expected)
    assert "Called defines `__getitem__`" in loader.notes[-1]


REFUSED: dict[str, Any] = {
    "a loader": lambda root: ImageFolder(root, SIZED, loader=lambda path: PIL.Image.open(path).convert("L").convert("RGB")),
    "a joint transform": lambda root: _joint(ImageFolder(root)),
    "no transform": lambda root: ImageFolder(root),
    "a subclass of a transform": lambda root: ImageFolder(root, v1.Compose([type("Mine", (v1.Resize,), {})((9, 9)), v1.ToTensor()])),
}


def _joint(dataset: Any) -> Any:
    dataset.transforms = lambda image, label: (torch.zeros(1), label)
    return dataset


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_datasets_fall_back_to_torch(root: Path, name: str) -> None:
    loader = DataLoader(REFUSED[name](str(root)), 4, collate_fn=len)
    assert loader.notes[-1].startswith("not accelerated") and list(loader) == [4, 4, 2]


def test_errors_match_torch(tmp_path: Path) -> None:
    write_images(tmp_path)
    broken = tmp_path / "class0" / "00.jpg"
    broken.write_bytes(b"no picture")
    (tmp_path / "class1" / "01.jpg").write_bytes((tmp_path / "class1" / "01.jpg").read_bytes()[:-300])
    dataset = ImageFolder(str(tmp_path), SIZED)
    for kind in (torch.utils.data.DataLoader, DataLoader):
        with pytest.raises(PIL.UnidentifiedImageError):
            list(kind(Subset(dataset, [0]), 1))
        with pytest.raises(OSError, match="truncated"):
            list(kind(Subset(dataset, [5]), 1))
        with pytest.raises(IndexError):
            list(kind(dataset, batch_sampler=[[99]]))
        with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
            list(kind(Subset(ImageFolder(str(tmp_path), v1.ToTensor()), [1, 2]), 2))
        with pytest.raises(ValueError, match="num_workers option should be non-negative"):
            kind(dataset, num_workers=-1)
    iterator = iter(DataLoader(dataset, 1, num_workers=1))
    with pytest.raises(PIL.UnidentifiedImageError, match=r"00\.jpg"):
        next(iterator)
    assert next(iterator)[0].shape == (1, 3, 20, 17)  # the loop continues, as with torch's workers


def test_reports(root: Path, tmp_path: Path) -> None:
    loader = DataLoader(ImageFolder(str(root), RANDOM), 4, num_workers=1)
    list(loader)
    assert "RandomResizedCrop: accelerated" in loader.explain() and "1. read ImageFolder" in loader.explain()
    stats = loader.stats()
    assert stats.batches == 3 and 0 <= stats.waited <= stats.seconds and "3 batches in" in str(stats)
    sheet = loader.show(tmp_path / "sheet.png")
    assert sheet.width > 100 and (tmp_path / "sheet.png").exists()
    report = loader.tune(0.1, workers=[1, 2])
    assert report.rates.keys() == {1, 2} and report.best in (1, 2) and "(now)" in str(report)
    own = DataLoader(Own(SAMPLES["a tuple"]), 5)
    list(own)
    assert own.stats().batches == 2 and "your own dataset" in own.explain()
    loader.close()
    assert len(list(loader)) == 3


def test_acceleration_can_be_switched_off(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDALI_ACCELERATE", "0")
    for loader in (DataLoader(rows(), 4), DataLoader(Own(SAMPLES["a tuple"]), 4), DataLoader(ImageFolder(str(root), RANDOM), 4)):
        assert loader.notes == ("not accelerated: TORCHDALI_ACCELERATE turned acceleration off. Unset it to turn acceleration on",)
        assert len(list(loader)) == 3


def test_delivered_images_share_no_memory(root: Path) -> None:
    loader = DataLoader(ImageFolder(str(root), FIXED["one pixel"]), 2, num_workers=1)
    kept = []
    for images, _ in loader:
        kept.append((images, images.clone()))
        images += 1
    again = list(loader)
    assert all(torch.equal(images, copy + 1) for images, copy in kept)
    assert all(torch.equal(copy, images) for (_, copy), (images, _) in zip(kept, again, strict=True))


@pytest.mark.parametrize("where", ["memory", "disk"])
@pytest.mark.parametrize("transform", [FIXED["validation"], RANDOM], ids=["fixed", "random"])
def test_a_cache_changes_no_pixel(root: Path, tmp_path: Path, transform: Any, where: str) -> None:
    dataset = ImageFolder(str(root), transform)

    def epochs(cache: Any) -> tuple[list[Any], DataLoader[Any]]:
        torch.manual_seed(6)
        loader = DataLoader(dataset, 4, shuffle=True, num_workers=1, cache=cache)
        return [batch for _ in range(2) for batch in loader], loader

    batches, loader = epochs("64MB" if where == "memory" else tmp_path)
    check_equal(batches, epochs(None)[0], 1 / 255 / min(STD))
    assert "cache: 10 hits (50.0%)" in str(loader.stats())


class Mine:
    """A user transform between torchvision's."""

    def __call__(self, image: Any) -> Any:
        assert isinstance(image, PIL.Image.Image)
        return image.point(lambda level: 255 - level)


OWN: dict[str, Any] = {
    "in the middle": v2.Compose([v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), Mine(), v2.ToImage()]),
    "first": v1.Compose([Mine(), v1.RandomCrop(20), v1.RandomVerticalFlip(), v1.ToTensor()]),
    "last": v1.Compose([v1.RandomRotation(20), v1.CenterCrop(22), v1.ToTensor(), v1.Lambda(lambda x: x + torch.rand(()))]),
    "a function": lambda image: torch.tensor(image.getpixel((3, 4)) + image.size),
    "many": v1.Compose([v1.FiveCrop(20), v1.Lambda(lambda crops: torch.stack([v1.functional.to_tensor(c) for c in crops]))]),
}  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", OWN)
def test_user_transforms_get_pil_images(root: Path, name: str, workers: int) -> None:
    """Batches and random numbers are bit-identical to torch's; only the decoding is ours."""
    dataset = ImageFolder(str(root), OWN[name])
    batches, expected, loader = both(dataset, batch_size=3, shuffle=True, num_workers=workers)
    assert loader.notes[0] == LAZY or not native_status().library
    check_equal(batches, expected)
