"""Random chains in a user's own dataset: two epochs, errors and random states are bit-identical to torch's loader."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.dataloader.data import Own
from tests.dataloader.test_chains import BORDERS, FILTERS, ON_IMAGES, ON_TENSORS, Make, after_floats, fill, side, sides
from tests.dataloader.test_lazy_images import exif, write
from tests.dataloader.test_own_datasets import epochs, is_equal
from tests.helpers import inside
from torchdali import DataLoader

PER_TEST, QUICK, ALL = 20, 2, 100
FILES: dict[str, dict[str, Any]] = {
    "color": {}, "wide": {"height": 70, "width": 150}, "gray": {"mode": "L"}, "inks": {"mode": "CMYK"},
    "progressive": {"progressive": True}, "turned": {"exif": exif()}, "sampled": {"subsampling": 0}, "small": {"height": 12, "width": 9},
}  # fmt: skip


def colors(m: Any, r: random.Random) -> Any:
    return m.ColorJitter(r.choice((0, 0.4, 1)), r.choice((0, 0.4, 1)), r.choice((0, 0.4, 1)), r.choice((0, 0.1, 0.5)))


def policy(m: Any, r: random.Random) -> Any:
    return r.choice((m.AutoAugment, m.RandAugment, m.TrivialAugmentWide))(interpolation=r.choice(FILTERS[:3]), fill=r.choice((None, 3)))


def container(m: Any, r: random.Random) -> Any:
    one, other = (RANDOM[r.choice(sorted(RANDOM))](m, r) for _ in range(2))
    return r.choice((
        lambda: m.RandomApply([one, other], 0.7), lambda: m.RandomChoice([one, other]), lambda: m.RandomOrder([one, other]),
        lambda: m.Compose([one, other]), lambda: torch.nn.Sequential(one, other),
    ))()  # fmt: skip


def own(image: Any, *others: Any) -> Any:
    torch.rand(())
    return (image, *others) if others else image


RANDOM: dict[str, Make] = {
    "ColorJitter": colors,
    "Compose of a container": lambda m, r: m.RandomApply([colors(m, r)], 0.8),
    "GaussianBlur": lambda m, r: m.GaussianBlur(r.choice((3, 5))),
    "RandomAffine": lambda m, r: m.RandomAffine(30, (0.2, 0.1), (0.7, 1.3), 10, r.choice(FILTERS[:3]), fill(r)),
    "RandomCrop": lambda m, r: m.RandomCrop(sides(r), r.choice((None, 4)), True, fill(r), r.choice(BORDERS)),
    "RandomGrayscale": lambda m, r: m.RandomGrayscale(0.5),
    "RandomHorizontalFlip": lambda m, r: m.RandomHorizontalFlip(),
    "RandomInvert": lambda m, r: m.RandomInvert(),
    "RandomPerspective": lambda m, r: m.RandomPerspective(0.4),
    "RandomPhotometricDistort": lambda m, r: v2.RandomPhotometricDistort(),
    "RandomResizedCrop": lambda m, r: m.RandomResizedCrop(sides(r), (0.08, 1), interpolation=r.choice(FILTERS)),
    "RandomRotation": lambda m, r: m.RandomRotation(30, r.choice(FILTERS[:3]), r.random() < 0.3),
    "RandomShortestSize": lambda m, r: v2.RandomShortestSize([24, 48], 90),
    "RandomSolarize": lambda m, r: m.RandomSolarize(128),
    "RandomVerticalFlip": lambda m, r: m.RandomVerticalFlip(),
    "policy": policy,
}
ON_ALL = {**ON_IMAGES, **RANDOM, "own": lambda m, r: own, "several": container}


def transforms_of(r: random.Random) -> tuple[Any, Any]:
    """Return the module of a chain, and the chain."""
    m = r.choice((v1, v2))
    images = [ON_ALL[r.choice(sorted(ON_ALL if r.random() < 0.4 else RANDOM))](m, r) for _ in range(r.choice((0, 1, 2, 2, 3, 4)))]
    erase = [m.RandomErasing(0.5, value=r.choice((0, "random")))] * (r.random() < 0.2)
    if m is v1 and r.random() < 0.5:
        return m, m.Compose([*images, m.ToTensor(), *after_floats(m, r), *erase])
    tensors = [ON_TENSORS[r.choice(sorted(ON_TENSORS))](m, r) for _ in range(r.choice((0, 0, 0, 1, 2)))]
    to_tensor = v2.ToImage() if m is v2 and r.random() < 0.5 else m.PILToTensor()
    dtypes = r.choice((torch.float32, {tv_tensors.Image: torch.float32, "others": None})) if m is v2 else torch.float32
    to_floats = v2.ToDtype(dtypes, True) if m is v2 and r.random() < 0.7 else m.ConvertImageDtype(torch.float32)
    return m, m.Compose([*images, to_tensor, *tensors, *r.choice(([], [to_floats, *after_floats(m, r), *erase]))])


def dataset_of(r: random.Random, paths: list[str]) -> Own:
    """Return a dataset whose samples a chain transforms: an image, two views, or an image and its mask."""
    m, transform = transforms_of(r)
    converts, form, size = r.random() < 0.8, r.choice(("image", "image", "views", "mask", "dict")), side(r)

    def sample(index: int) -> Any:
        image: Any = Image.open(paths[index])
        image = image.convert("RGB") if converts else image
        if form == "views":
            return transform(image), transform(image.crop((0, 0, size, size)))
        if m is v1 or form == "image":
            return transform(image), index
        mask = tv_tensors.Mask(Image.new("L", image.size, index))
        return transform(image, mask) if form == "mask" else transform({"image": image, "mask": mask, "index": index})

    return Own(sample, len(paths))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Let torch use one thread: with several threads, any may be the first to raise."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("images")
    made = [write(folder / f"{name}.jpg", **{"height": 96, "width": 101, **options}) for name, options in FILES.items()]
    Image.open(made[0]).save(folder / "a.png")
    return [*made, str(folder / "a.png")]


def batches(kind: Any, dataset: Any) -> Any:
    try:
        return epochs(kind, dataset, 0, 1)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.thin(20)
@pytest.mark.parametrize("part", [*range(QUICK), *(pytest.param(part, marks=pytest.mark.slow) for part in range(QUICK, ALL))])
def test_random_chains(part: int, paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    inside.no_lazy_image_before(monkeypatch)
    finished = 0
    for seed in range(part * PER_TEST, (part + 1) * PER_TEST):
        r = random.Random(seed)
        try:
            dataset = dataset_of(r, r.sample(paths, 3))
        except (ValueError, TypeError):  # torchvision rejects the arguments
            continue
        expected = batches(TorchLoader, dataset)
        assert is_equal(batches(DataLoader, dataset), expected), seed
        finished += isinstance(expected, list)
    assert finished > PER_TEST / 4
