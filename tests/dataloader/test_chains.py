"""Random chains of transforms with fixed outcomes: each sample is bit-identical to torch's, and each error has torch's class."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
from torchvision.transforms import InterpolationMode, v2

import torchdali
from tests.dataloader.data import in_memory
from tests.helpers.native import needs_native

Make = Callable[[Any, random.Random], Any]
PER_TEST, QUICK, ALL = 40, 8, 300
FILTERS = [InterpolationMode(name) for name in ("nearest", "bilinear", "bicubic", "box", "hamming", "lanczos")]
BORDERS = ("constant", "edge", "reflect", "symmetric")
UNSIGNED = ("AutoContrast", "Equalize", "Posterize", "Solarize")


def fixed(r: random.Random, low: float, high: float) -> tuple[float, float]:
    """Return a range of one number, which torch rounds to float32."""
    return (r.uniform(low, high),) * 2


def side(r: random.Random) -> int:
    return r.choice((1, 2, 7, 16, 20, 28, 31, 32, 33, 48, 64, 90))


def fill(r: random.Random) -> Any:
    return r.choice((0, 9, 255, (3, 200, 70), (4,)))


def sides(r: random.Random) -> Any:
    return r.choice((side(r), (side(r), side(r))))


def padding(r: random.Random) -> Any:
    numbers = [r.choice((0, 1, 3, 4, 17, 33, 70, -2)) for _ in range(4)]
    return r.choice((numbers[0], numbers[:2], numbers))


def jitter(m: Any, r: random.Random) -> Any:
    name = r.choice(("brightness", "contrast", "saturation", "hue"))
    return m.ColorJitter(**{name: fixed(r, -0.5, 0.5) if name == "hue" else fixed(r, 0, 3)})


def whole_crop(m: Any, r: random.Random) -> Any:
    """Return a crop that is as large as the padded image."""
    border = r.choice((None, 0, 1, 4, (2, 3), (1, 2, 3, 0)))
    top, left = {None: (0, 0), 0: (0, 0), 1: (2, 2), 4: (8, 8), (2, 3): (6, 4), (1, 2, 3, 0): (2, 4)}[border]
    return m.Compose([m.Resize((32, 32)), m.RandomCrop((32 + top, 32 + left), border, False, fill(r), r.choice(BORDERS))])


def policy(m: Any, r: random.Random) -> Any:
    name, index = r.choice(UNSIGNED), r.randint(0, 9)
    if r.random() < 0.5:
        t = m.AutoAugment(interpolation=r.choice(FILTERS[:3]), fill=r.choice((None, 3)))
        signed = r.choice(("ShearX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness"))
        setattr(t, "_policies" if m is v2 else "policies",
                [((name, 1.0, index if name in UNSIGNED[2:] else None), (signed, 1.0, 0))])  # fmt: skip
        return t
    if m is v1:
        return m.RandAugment(0)
    t = m.RandAugment(r.randint(1, 3), index, 11)
    t._AUGMENTATION_SPACE = {name: t._AUGMENTATION_SPACE[name]}
    return t


def container(m: Any, r: random.Random) -> Any:
    one, other = MOVES[r.choice(sorted(MOVES))](m, r), COLORS[r.choice(sorted(COLORS))](m, r)
    return r.choice((
        lambda: m.RandomApply([one, other], 1.0), lambda: m.RandomApply([one], 0), lambda: m.RandomOrder([one]),
        lambda: m.RandomChoice([one, other], [0.0, 2.0]), lambda: m.Compose([one, m.Compose([other])]), lambda: torch.nn.Sequential(one, other),
    ))()  # fmt: skip


MOVES: dict[str, Make] = {
    "CenterCrop": lambda m, r: m.CenterCrop(sides(r)),
    "Pad": lambda m, r: m.Pad(padding(r), fill(r), r.choice(BORDERS)),
    "Resize": lambda m, r: m.Resize(sides(r), r.choice(FILTERS)),
    "Resize, max_size": lambda m, r: m.Resize((size := side(r)), r.choice(FILTERS), size + r.choice((1, 3, 30))),
    "RandomCrop": whole_crop,
    "RandomResizedCrop": lambda m, r: m.RandomResizedCrop(sides(r), (4, 5), r.choice(((0.5, 0.75), (1, 1), (2, 3), (0.2, 4))), r.choice(FILTERS)),
    "RandomHorizontalFlip": lambda m, r: m.RandomHorizontalFlip(r.choice((0, 1))),
    "RandomVerticalFlip": lambda m, r: m.RandomVerticalFlip(r.choice((0, 1))),
    "RandomRotation": lambda m, r: m.RandomRotation(fixed(r, -180, 180), r.choice(FILTERS[:3]), r.random() < 0.3, r.choice((None, (3, 5.5))), fill(r)),
    "RandomRotation, quarters": lambda m, r: m.RandomRotation((r.choice((0, 90, 180, 270)),) * 2, FILTERS[0], r.random() < 0.5),
    "RandomAffine": lambda m, r: m.RandomAffine(
        fixed(r, -90, 90), r.choice((None, (0, 0))), fixed(r, 0.3, 2), r.choice((None, fixed(r, -30, 30), fixed(r, -9, 9) * 2)), r.choice(FILTERS[:3]), fill(r)),
    "RandomPerspective": lambda m, r: m.RandomPerspective(*r.choice(((0, 1), (0.4, 0))), r.choice(FILTERS[:3])),
}
COLORS: dict[str, Make] = {
    "ColorJitter": jitter,
    "RandomGrayscale": lambda m, r: m.RandomGrayscale(r.choice((0, 1))),
    "RandomInvert": lambda m, r: m.RandomInvert(r.choice((0, 1))),
    "RandomPosterize": lambda m, r: m.RandomPosterize(r.randint(0, 8), 1),
    "RandomSolarize": lambda m, r: m.RandomSolarize(r.choice((0, 100, 127.5, 255, 300)), 1),
    "RandomAdjustSharpness": lambda m, r: m.RandomAdjustSharpness(r.uniform(0, 3), 1),
    "RandomAutocontrast": lambda m, r: m.RandomAutocontrast(1),
    "RandomEqualize": lambda m, r: m.RandomEqualize(1),
    "policy": policy,
}
OTHERS: dict[str, Make] = {
    "container": container,
    "Grayscale": lambda m, r: m.Grayscale(r.choice((1, 3))),
    "RandomPhotometricDistort": lambda m, r: v2.RandomPhotometricDistort(p=0),
    "RGB": lambda m, r: v2.RGB(),
    "AutoAugment": lambda m, r: m.RandomApply([m.AutoAugment(), m.RandAugment(), m.TrivialAugmentWide()], 0),
}
ON_IMAGES = {**MOVES, **COLORS, **OTHERS}
ON_TENSORS: dict[str, Make] = {
    **{name: ON_IMAGES[name] for name in (
        "CenterCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "RandomInvert", "RandomEqualize", "RandomPosterize", "RandomSolarize")},
    "Pad": lambda m, r: m.Pad(side(r) // 3, r.choice((0, 77)), r.choice(BORDERS)),
    "ColorJitter": lambda m, r: m.ColorJitter(fixed(r, 0, 3)),
    "RandomCrop": lambda m, r: m.Compose([m.CenterCrop(24), m.RandomCrop(30, 3, padding_mode=r.choice(BORDERS))]),
    "Resize": lambda m, r: v2.Resize(sides(r), r.choice(FILTERS[1:3])),
    "RandomResizedCrop": lambda m, r: v2.RandomResizedCrop(sides(r), (4, 5), r.choice(((0.5, 0.75), (2, 3))), r.choice(FILTERS[1:3])),
}  # fmt: skip


def transforms_of(r: random.Random) -> Any:
    """Return a chain."""
    m, some = r.choice((v1, v2)), [0, 1, 1, 2, 2, 3, 4]
    images = [ON_IMAGES[r.choice(sorted(ON_IMAGES))](m, r) for _ in range(r.choice(some))]
    if r.random() < 0.05:
        return m.Compose([*images, m.GaussianBlur(r.choice((1, 3, (5, 9))), fixed(r, 0.1, 3)), m.PILToTensor()])
    if m is v1 and r.random() < 0.5:
        return m.Compose([*images, m.ToTensor(), *after_floats(m, r)])
    known = ON_TENSORS if r.random() < 0.9 else ON_IMAGES
    tensors = [known[r.choice(sorted(known))](m, r) for _ in range(r.choice(some[:5]))]
    to_tensor = v2.ToImage() if m is v2 and r.random() < 0.5 else m.PILToTensor()
    to_floats = v2.ToDtype(torch.float32, True) if m is v2 and r.random() < 0.5 else m.ConvertImageDtype(torch.float32)
    return m.Compose([*images, to_tensor, *tensors, *r.choice(([], [to_floats, *after_floats(m, r)]))])


def after_floats(m: Any, r: random.Random) -> list[Any]:
    count = r.choice((1, 3))
    normalize = m.Normalize([r.random() for _ in range(count)], [r.uniform(0.1, 2) for _ in range(count)])
    flip, crop, erase = m.RandomHorizontalFlip(1), m.CenterCrop(sides(r)), m.RandomErasing(0)
    return r.choice(([], [normalize], [flip], [crop, normalize], [normalize, flip, erase], [erase, normalize]))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return folders of JPEGs in color and gray, and of PNGs, with images of several sizes."""
    rng, made = np.random.default_rng(4), []
    for kind, ending, options in (("RGB", "jpg", {"quality": 90}), ("L", "jpg", {}), ("RGB", "png", {}), ("P", "png", {})):
        root = tmp_path_factory.mktemp(f"{kind}_{ending}")
        (root / "a").mkdir()
        for k, size in enumerate(((32, 32), (45, 37), (101, 64))):
            image = Image.fromarray(rng.integers(0, 256, (9, 8, 3), np.uint8)).resize(size, Image.Resampling.BICUBIC)
            image.convert(kind).save(root / f"a/{k}.{ending}", **options)
        made.append(root)
    return made


def batches(loader: Any) -> Any:
    try:
        return [images for images, _ in loader]
    except Exception as error:
        return type(error)


def differ(ours: Any, theirs: Any, tolerance: int) -> bool:
    if isinstance(ours, type) or isinstance(theirs, type):
        return ours is not theirs
    return any(
        a.dtype != b.dtype or a.shape != b.shape or type(a) is not type(b)
        or not (torch.equal(a, b) or (tolerance and (a.int() - b.int()).abs().max() <= tolerance))
        for a, b in zip(ours, theirs, strict=True)
    )  # fmt: skip


def check(seed: int, folders: list[Path]) -> tuple[bool, str]:
    """Return whether a chain is accelerated, and the chain if a sample differs."""
    r = random.Random(seed)
    try:
        transform = transforms_of(r)
    except (ValueError, TypeError):  # torchvision rejects the arguments
        return False, ""
    if r.random() < 0.5:
        data, size = in_memory(r.choice(("CIFAR10", "MNIST")), transform), 32
        data.data = data.data[:5]
    else:
        data, size = ImageFolder(str(r.choice(folders)), transform), 1
    loader = torchdali.DataLoader(data, size, num_workers=0)
    tolerance = int("GaussianBlur" in repr(transform))
    wrong = differ(batches(loader), batches(DataLoader(data, size)), tolerance)
    return not any("left to torch" in note or "not accelerated" in note for note in loader.notes), f"{seed}: {type(data).__name__}, {transform}" if wrong else ""


@pytest.mark.thin(9)
@needs_native
@pytest.mark.parametrize("part", [*range(QUICK), *(pytest.param(part, marks=pytest.mark.slow) for part in range(QUICK, ALL))])
def test_random_chains(part: int, folders: list[Path]) -> None:
    found = [check(seed, folders) for seed in range(part * PER_TEST, (part + 1) * PER_TEST)]
    assert not [wrong for _, wrong in found if wrong]
    assert sum(accelerated for accelerated, _ in found) > PER_TEST / 5
