"""Values of transforms that a program changed: the samples of an accelerated loader match torch's, for any values."""

from __future__ import annotations

import enum
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

import torchdali
from tests.dataloader.data import in_memory, write_images
from tests.helpers.inside import compiled

Make = Callable[[Any], Any]
MODULES = pytest.mark.parametrize("m", [v1, v2], ids=["v1", "v2"])


def batches(loader: Any) -> Any:
    """Return the images of a loader, or the class of its error."""
    try:
        return [images for images, _ in loader]
    except Exception as error:
        return type(error)


def equal(ours: Any, theirs: Any) -> bool:
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return bool(ours == theirs)
    same = [a.dtype == b.dtype and a.shape == b.shape and type(a) is type(b) and torch.equal(a, b) for a, b in zip(ours, theirs, strict=True)]
    return all(same)


def check(transform: Any, kinds: tuple[str, ...] = ("CIFAR10", "MNIST")) -> None:
    for kind in kinds:
        data = in_memory(kind, transform)
        ours, theirs = (batches(loader(data, batch_size=32)) for loader in (torchdali.DataLoader, DataLoader))
        assert equal(ours, theirs), kind


def to_tensor(m: Any, *transforms: Any) -> Any:
    return m.Compose([*transforms, m.PILToTensor()])


def changed(t: Any, **values: Any) -> Any:
    """Set attributes of a transform."""
    vars(t).update(values)
    return t


# ---------------------------------------------------------------- tables of operations


def of_v2(kind: str, *names: str) -> dict[str, Any]:
    return {name: getattr(v2, kind)._AUGMENTATION_SPACE[name] for name in names}


POLICIES = ("RandAugment", "TrivialAugmentWide", "AutoAugment", "AugMix")
OWN = {"Equalize": (lambda bins, height, width: None, False)}
INVERT = [(("Invert", 1.0, None), ("Equalize", 1.0, None))]
TABLES: dict[str, tuple[Any, bool]] = {
    "v2, one operation": (lambda: changed(v2.RandAugment(), _AUGMENTATION_SPACE=of_v2("RandAugment", "Equalize")), True),
    "v2, none": (lambda: changed(v2.TrivialAugmentWide(), _AUGMENTATION_SPACE=of_v2("RandAugment", "Identity")), True),
    "v2, another's": (lambda: changed(v2.TrivialAugmentWide(), _AUGMENTATION_SPACE=of_v2("AutoAugment", "Invert")), True),
    "v2, own function": (lambda: changed(v2.TrivialAugmentWide(), _AUGMENTATION_SPACE=OWN), False),
    "v2, unknown": (lambda: changed(v2.RandAugment(), _AUGMENTATION_SPACE={"Sepia": of_v2("RandAugment", "Identity")["Identity"]}), False),
    "v2, empty": (lambda: changed(v2.RandAugment(), _AUGMENTATION_SPACE={}), False),
    "v2, policies": (lambda: changed(v2.AutoAugment(), _policies=INVERT), True),
    "v2, unused policies": (lambda: changed(v2.AutoAugment(), _policies=INVERT, policies=[]), True),
    "v2, three operations": (lambda: changed(v2.AutoAugment(), _policies=[(*INVERT[0], INVERT[0][0])]), False),
    "v1, policies": (lambda: changed(v1.AutoAugment(), policies=INVERT), True),
    "v1, unknown policy": (lambda: changed(v1.AutoAugment(), policies=[(("Sepia", 1.0, None),) * 2]), False),
    "v1, magnitude of none": (lambda: changed(v1.AutoAugment(), policies=[(("Invert", 1.0, 3),) * 2]), False),
    "v1, own function": (lambda: changed(v1.RandAugment(), _augmentation_space=lambda bins, size: {"Equalize": (torch.tensor(0.0), False)}), False),
    "v1, own function, wide": (lambda: changed(v1.TrivialAugmentWide(), _augmentation_space=lambda bins: {"Equalize": (torch.tensor(0.0), False)}), False),
    "v1, no operations": (lambda: v1.RandAugment(0), True),
    "v1, magnitude": (lambda: v1.RandAugment(1, 31), False),
    "v2, magnitude": (lambda: v2.RandAugment(1, 3, 3), False),
    "v2, real magnitude": (lambda: v2.RandAugment(1, 3.0), False),
    "v2, one bin": (lambda: v2.RandAugment(0, 0, 1), False),
}


@pytest.mark.parametrize("name", TABLES)
def test_operations_come_from_the_object(name: str) -> None:
    make, has_rule = TABLES[name]
    module = v2 if name.startswith("v2") else v1
    assert (compiled(to_tensor(module, make())).transforms is not None) == has_rule
    random = name in ("v1, magnitude", "v2, magnitude", "v2, real magnitude")  # which raise only if drawn
    if not random:
        check(to_tensor(module, make()))


@pytest.mark.parametrize("kind", POLICIES)
@MODULES
def test_operations_come_from_the_class(kind: str, m: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if m is v2:
        monkeypatch.setattr(getattr(v2, kind), "_AUGMENTATION_SPACE", OWN)
        monkeypatch.setattr(v2.AutoAugment, "_get_policies", lambda *_: [(("Equalize", 1.0, None),) * 2])
    else:
        monkeypatch.setattr(getattr(v1, kind), "_augmentation_space", lambda *_: {"Equalize": (torch.tensor(0.0), False)})
        monkeypatch.setattr(v1.AutoAugment, "_get_policies", lambda *_: [(("Equalize", 1.0, None),) * 2])
    found = compiled(to_tensor(m, getattr(m, kind)()))
    assert found.transforms is None and kind in found.reason
    if kind != "AugMix":  # which mixes at random
        check(to_tensor(m, getattr(m, kind)()))


def test_a_changed_table_takes_effect_in_the_next_epoch() -> None:
    augment = v2.RandAugment(1)
    augment._AUGMENTATION_SPACE = of_v2("RandAugment", "Equalize")
    data = in_memory("CIFAR10", to_tensor(v2, augment))
    ours, theirs = torchdali.DataLoader(data, 32), DataLoader(data, 32)
    for names in (("Equalize",), ("Identity",), ("AutoContrast",)):
        table = of_v2("RandAugment", *names)
        augment._AUGMENTATION_SPACE.clear()
        augment._AUGMENTATION_SPACE.update(table)
        assert equal(batches(ours), batches(theirs)), names


# ---------------------------------------------------------------- the default dtype


@pytest.mark.thin(5)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("make", [
    lambda m: m.ToTensor(), lambda m: m.Compose([m.Resize(9), m.ToTensor(), m.Normalize([0.1], [0.3])]), lambda m: m.PILToTensor(),
    lambda m: m.Compose([m.PILToTensor(), m.ConvertImageDtype(torch.float32), m.Normalize([0.1], [0.3])]),
    lambda m: v2.Compose([v2.ToImage(), v2.ToDtype(torch.float64, scale=True)]),
    lambda m: m.Compose([m.RandomInvert(1.0), m.ToTensor(), m.RandomErasing(0)]),
], ids=["ToTensor", "Normalize", "PILToTensor", "ConvertImageDtype", "ToDtype", "RandomErasing"])  # fmt: skip
@MODULES
def test_the_default_dtype(make: Make, m: Any, dtype: torch.dtype) -> None:
    data = in_memory("CIFAR10", make(m))
    loaders = torchdali.DataLoader(data, 32), DataLoader(data, 32)
    assert equal(*map(batches, loaders))
    torch.set_default_dtype(dtype)
    try:
        assert equal(*map(batches, loaders))
    finally:
        torch.set_default_dtype(torch.float32)
    assert equal(*map(batches, loaders))


# --------------------------------------------------------------- values of other types, and values that torchvision rejects


class Whole(int):
    """A subclass of int."""


class Sides(enum.IntEnum):
    FOUR = 4


class Odd:
    """A value that no rule expects."""


ALIKE = (np.int64, np.float32, np.float64, Whole, Fraction, torch.tensor, float, int, bool, str, lambda value: Odd(), lambda value: None,
         lambda value: [value], np.array, lambda value: (value, value, value), lambda value: {value: value})  # fmt: skip
NUMBERS: dict[str, tuple[Make, tuple[str, ...]]] = {
    "AutoAugment": (lambda m: m.AutoAugment(), ("interpolation", "fill", "policies", "_policies", "_fill")),
    "CenterCrop": (lambda m: m.CenterCrop(4), ("size",)),
    "ColorJitter": (lambda m: m.ColorJitter((1, 2), (1, 2), (1, 2), (0.1, 0.2)), ("brightness", "contrast", "saturation", "hue")),
    "GaussianBlur": (lambda m: m.GaussianBlur(3, 2.0), ("kernel_size", "sigma")),
    "Grayscale": (lambda m: m.Grayscale(1), ("num_output_channels",)),
    "Normalize": (lambda m: m.Compose([m.ToTensor(), m.Normalize([1], [1])]).transforms[1], ()),
    "Pad": (lambda m: m.Pad(4), ("padding", "fill", "padding_mode", "_fill")),
    "RandAugment": (lambda m: m.RandAugment(1, 1, 3), ("interpolation", "fill", "num_ops", "magnitude", "num_magnitude_bins")),
    "RandomAdjustSharpness": (lambda m: m.RandomAdjustSharpness(2, 1), ("p", "sharpness_factor")),
    "RandomAffine": (lambda m: m.RandomAffine((1, 1)), ("degrees", "translate", "scale", "shear", "center", "fill", "interpolation")),
    "RandomApply": (lambda m: m.RandomApply([m.RandomInvert(1)], 1), ("p", "transforms")),
    "RandomChoice": (lambda m: m.RandomChoice([m.RandomInvert(1)], [1]), ("p", "transforms")),
    "RandomCrop": (lambda m: m.RandomCrop(4, 1), ("size", "padding", "pad_if_needed", "fill", "padding_mode")),
    "RandomHorizontalFlip": (lambda m: m.RandomHorizontalFlip(1), ("p",)),
    "RandomPerspective": (lambda m: m.RandomPerspective(1, 1), ("p", "distortion_scale", "interpolation", "fill")),
    "RandomPosterize": (lambda m: m.RandomPosterize(1, 1), ("bits", "p")),
    "RandomResizedCrop": (lambda m: m.RandomResizedCrop(4, (1, 1), (1, 1)), ("size", "scale", "ratio", "interpolation")),
    "RandomRotation": (lambda m: m.RandomRotation((1, 1)), ("degrees", "expand", "center", "interpolation", "fill")),
    "RandomSolarize": (lambda m: m.RandomSolarize(1, 1), ("threshold", "p")),
    "Resize": (lambda m: m.Resize(4), ("size", "max_size", "interpolation")),
    "TrivialAugmentWide": (lambda m: m.TrivialAugmentWide(3), ("num_magnitude_bins", "interpolation")),
}


def others(value: Any) -> list[Any]:
    """Return values that equal `value`, but have other types."""
    plain = value[0] if isinstance(value, (tuple, list)) and value else value
    plain = plain if isinstance(plain, (int, float)) else 1
    made = [as_type(plain) for as_type in ALIKE] + [-1, -1.5, float("nan"), float("inf"), 10**9, 0]
    if not isinstance(value, (tuple, list)):
        return made
    return [[each] * len(value) for each in made] + made


@pytest.mark.parametrize("name", NUMBERS)
@MODULES
def test_values_of_any_type_compile_to_plain_numbers_or_not_at_all(name: str, m: Any) -> None:
    make, attributes = NUMBERS[name]
    count = 0
    for attribute in attributes:
        if not hasattr(make(m), attribute):
            continue
        for value in others(getattr(make(m), attribute)):
            t = make(m)
            setattr(t, attribute, value)
            found = compiled(to_tensor(m, t))  # raises nothing
            count += found.transforms is None
            assert (found.transforms is None) == bool(found.reason)
            for step in () if found.transforms is None else found.transforms.steps:
                assert not isinstance(plain := list(flatten(step)), Odd) and {type(each) for each in plain} <= PLAIN, (attribute, value, step)
    assert count or not attributes


PLAIN = {int, float, bool, str, type(None), v1.InterpolationMode}


def flatten(value: Any) -> Any:
    """Yield the values that a step consists of."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from flatten(each)
    elif hasattr(value, "__dataclass_fields__"):
        yield from flatten([each for key, each in vars(value).items() if key != "table"])
    else:
        yield value


def deleted(t: Any, name: str) -> Any:
    delattr(t, name)
    return t


VALUES: dict[str, Make] = {
    "mean and std": lambda m: m.Normalize([0.5], (0.5,)),
    "std of 0": lambda m: m.Normalize([0.5], [0]),
    "std of nearly 0": lambda m: m.Normalize([0.5], [1e-60]),
    "mean of a pixel": lambda m: changed(m.Normalize([0.5], [0.5]), mean=torch.rand(1, 28, 28)),
    "mean, tensor": lambda m: changed(m.Normalize([0.5], [0.5]), mean=torch.tensor(0.3, dtype=torch.float64)),
    "mean, array": lambda m: changed(m.Normalize([0.5], [0.5]), mean=np.array([0.1]), std=np.float32(0.3)),
    "mean, number": lambda m: changed(m.Normalize([0.5], [0.5]), mean=0.1, std=0.2),
    "mean, integer": lambda m: changed(m.Normalize([0.5], [0.5]), mean=1, std=2),
    "mean, fraction": lambda m: changed(m.Normalize([0.5], [0.5]), mean=[Fraction(1, 3)]),
    "mean, nested": lambda m: m.Normalize([[0.5]], [[0.25]]),
    "mean of two": lambda m: m.Normalize([0.5, 0.1], [0.5]),
    "mean, gradient": lambda m: changed(m.Normalize([0.5], [0.5]), mean=torch.nn.Parameter(torch.rand(1)).detach()),
    "mean, text": lambda m: changed(m.Normalize([0.5], [0.5]), mean="0.5"),
    "mean, nothing": lambda m: deleted(m.Normalize([0.5], [0.5]), "mean"),
}
IMAGES: dict[str, Make] = {
    "padding, NumPy": lambda m: changed(m.Pad(3), padding=np.int64(3)),
    "padding, NumPy's row": lambda m: changed(m.Pad(3), padding=[np.int64(3), np.int32(1)]),
    "padding, subclass": lambda m: changed(m.Pad(3), padding=Sides.FOUR),
    "padding, true": lambda m: changed(m.Pad(3), padding=True),
    "padding, three": lambda m: changed(m.Pad(3), padding=(1, 2, 3)),
    "padding, real": lambda m: changed(m.Pad(3), padding=2.0),
    "padding, unknown mode": lambda m: changed(m.Pad(3), padding_mode="mirror"),
    "crop, NumPy": lambda m: changed(m.RandomCrop(40), padding=np.int64(4)),
    "crop, size of NumPy": lambda m: changed(m.RandomCrop(32), size=(np.int64(32), np.int64(32))),
    "crop, size of one": lambda m: changed(m.RandomCrop(28), size=28),
    "crop, size of 0": lambda m: m.CenterCrop(0),
    "center, NumPy": lambda m: m.CenterCrop(np.int64(20)),
    "center, real": lambda m: m.CenterCrop(20.7),
    "center, real row": lambda m: m.CenterCrop((20.7, 20.2)),
    "center, text": lambda m: changed(m.CenterCrop(20), size="20"),
    "resize, NumPy": lambda m: changed(m.Resize(20), size=[np.int64(20)]),
    "resize, max_size": lambda m: m.Resize(40, max_size=30),
    "resize, equal max_size": lambda m: m.Resize(30, max_size=30),
    "resize, max_size of two": lambda m: m.Resize((40, 30), max_size=50),
    "resize, max_size in a row": lambda m: m.Resize([20], max_size=21),
    "resize, max_size of NumPy": lambda m: m.Resize(20, max_size=np.int64(21)),
    "resize, no size": lambda m: changed(m.Resize(20), size=None),
    "resize, no size, max_size": lambda m: changed(m.Resize(20), size=None, max_size=25),
    "resize, three": lambda m: changed(m.Resize(20), size=[20, 20, 20]),
    "resize, 0": lambda m: m.Resize(0),
    "resize, negative": lambda m: m.Resize([-3]),
    "resize, text filter": lambda m: changed(m.Resize(20), interpolation="bicubic"),
    "resize, Pillow's filter": lambda m: changed(m.Resize(20), interpolation=3),
    "resize, unknown filter": lambda m: changed(m.Resize(20), interpolation=77),
    "fill, public": lambda m: changed(m.Pad(3, 5), fill=9),
    "fill, text": lambda m: changed(m.Pad(3, 5), fill="red", _fill={"others": "red"}),
    "fill, for a type": lambda m: changed(m.Pad(3, 5), _fill={"others": 3, torch.Tensor: 4}),
    "grayscale of two": lambda m: m.Grayscale(2),
    "posterize, real": lambda m: m.RandomPosterize(2.5, 1.0),
    "posterize, nine": lambda m: m.RandomPosterize(9, 1.0),
    "solarize, NumPy": lambda m: m.RandomSolarize(np.float64(77.5), 1.0),
    "sharpness, tensor": lambda m: m.RandomAdjustSharpness(torch.tensor(2.0), 1.0),
    "sharpness, negative": lambda m: m.RandomAdjustSharpness(-2.0, 1.0),
    "probability above 1": lambda m: changed(m.RandomHorizontalFlip(1.0), p=7),
    "probability, tensor": lambda m: changed(m.RandomHorizontalFlip(1.0), p=torch.tensor(1.0)),
    "probability, NumPy": lambda m: changed(m.RandomVerticalFlip(1.0), p=np.float32(1)),
    "brightness, decreasing": lambda m: changed(m.ColorJitter((1, 1.5)), brightness=(2, 1)),
    "brightness, one": lambda m: changed(m.ColorJitter((1, 1.5)), brightness=(2,)),
    "brightness, negative": lambda m: changed(m.ColorJitter((1, 1.5)), brightness=(-1, -1)),
    "hue, far": lambda m: changed(m.ColorJitter((1, 1)), hue=(0.75, 0.75)),
    "degrees, decreasing": lambda m: changed(m.RandomRotation(0), degrees=[3, 2]),
    "degrees, equal": lambda m: m.RandomRotation((30, 30)),
    "scale of 0": lambda m: changed(m.RandomAffine(0), scale=(0, 0)),
    "shear of three": lambda m: changed(m.RandomAffine(0), shear=(1, 1, 1)),
    "translate, negative": lambda m: changed(m.RandomAffine(0), translate=(-0.5, -0.5)),
    "center of three": lambda m: changed(m.RandomRotation((30, 30)), center=(1, 2, 3)),
    "window, decreasing": lambda m: changed(m.RandomResizedCrop(9), scale=(1, 0.5)),
    "window, ratio below 0": lambda m: changed(v1.RandomResizedCrop(9), ratio=(-1, -1)),
    "blur, even": lambda m: changed(m.GaussianBlur(3), kernel_size=(2, 2)),
    "blur, decreasing": lambda m: changed(m.GaussianBlur(3), sigma=(2, 1)),
    "a list": lambda m: [m.RandomInvert(1.0)],
    "nothing": lambda m: None,
    "of a list": lambda m: m.RandomApply([[m.RandomInvert(1.0)]], 1.0),
    "apply of a Compose": lambda m: m.RandomApply(m.Compose([m.RandomInvert(1.0)]), 1.0),
    "choice of nothing": lambda m: changed(m.RandomChoice([m.RandomInvert(1.0)]), transforms=[]),
    "choice, two weights": lambda m: changed(m.RandomChoice([m.RandomInvert(1.0)]), p=[1, 1]),
    "choice, no weight": lambda m: changed(m.RandomChoice([m.RandomInvert(1.0)]), p=[0.0]),
    "choice, NumPy": lambda m: changed(m.RandomChoice([m.RandomInvert(1.0)]), p=[np.float64(1)]),
    "mode, nothing": lambda m: deleted(m.Pad(3), "padding_mode"),
}


@pytest.mark.parametrize("name", VALUES)
@MODULES
def test_values_of_a_normalization(name: str, m: Any) -> None:
    try:
        t = VALUES[name](m)
    except Exception:
        pytest.skip("torchvision refuses it")
    check(m.Compose([m.ToTensor(), t]), ("CIFAR10", "MNIST") if "pixel" not in name else ("MNIST",))


def test_one_number_for_all_channels_is_accelerated() -> None:
    for values in ((0.5, 0.25), (np.float32(0.5), torch.tensor(0.25)), (np.array([0.5] * 3), [0.5])):
        assert compiled(v1.Compose([v1.ToTensor(), v1.Normalize(*values)])).transforms is not None
    check(v1.Compose([v1.ToTensor(), v1.Normalize(0.5, 0.25)]))


@pytest.mark.thin(7)
@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("tensors", [False, True], ids=["PIL", "tensor"])
@MODULES
def test_values_of_a_transform(name: str, m: Any, tensors: bool) -> None:
    if tensors and name == "degrees, equal":
        pytest.skip("its rule is for PIL images")
    try:
        t = IMAGES[name](m)
    except Exception:
        pytest.skip("torchvision refuses it")
    transforms = [m.PILToTensor(), t] if tensors else [t, m.PILToTensor()]
    check(m.Compose(transforms))


def test_a_changed_value_takes_effect_in_the_next_epoch() -> None:
    resize, normalize = v1.Resize(20), v1.Normalize([0.5], [0.5])
    data = in_memory("CIFAR10", v1.Compose([resize, v1.ToTensor(), normalize]))
    ours, theirs = torchdali.DataLoader(data, 32), DataLoader(data, 32)
    for size, std in ((20, 0.5), (np.int64(9), 0.25), ([7, 9], [0.1, 0.2, 0.4]), (33, torch.tensor([0.5] * 3)), ("5", 1)):
        resize.size, normalize.std = size, std
        assert equal(batches(ours), batches(theirs)), (size, std)


class RandomInvert:
    """A user class with the name of torchvision's."""

    p = 1.0

    def __call__(self, image: Any) -> Any:
        return image.rotate(90)


@pytest.mark.parametrize("make", [lambda m: RandomInvert(), lambda m: m.RandomApply([RandomInvert()], 1.0), lambda m: m.RandomOrder([RandomInvert()]),
                                  lambda m: torch.nn.Sequential(m.RandomApply([m.Compose([RandomInvert()])], 1.0))])  # fmt: skip
@MODULES
def test_user_classes_are_called(make: Make, m: Any) -> None:
    found = compiled(to_tensor(m, make(m)))
    assert found.transforms is None and "RandomInvert isn't a torchvision transform" in found.reason
    check(to_tensor(m, make(m)))


def test_the_ratio_of_v2_must_match_its_log_ratio() -> None:
    for make in (lambda: v2.RandomResizedCrop(9), lambda: v2.Compose([v2.ToTensor(), v2.RandomErasing()]).transforms[1]):
        t = make()
        before = [v2.ToTensor()] if isinstance(t, v2.RandomErasing) else []
        whole = v2.Compose([*before, t, *([] if before else [v2.PILToTensor()])])
        assert compiled(whole).transforms is not None
        t.ratio = (0.1, 0.2)
        assert compiled(whole).transforms is None
        t._log_ratio = torch.log(torch.tensor(t.ratio))
        assert compiled(whole).transforms is not None


# ---------------------------------------------------------------- borders

SIDES = [1, 27, 28, 31, 32, 33, 36, 70, 100, (33, 2), (2, 40), (33, 1, 2, 90), (1, 28, 90, 0), (-3, 30), (-10, 1, 25, -4), (-20, 0, 60, 3),
         (-40, 0, 50, 3), -16, -14, (-16, 0, -16, 9)]  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "constant"])
@pytest.mark.parametrize("tensors", [False, True], ids=["PIL", "tensor"])
@MODULES
def test_borders(mode: str, tensors: bool, m: Any) -> None:
    for sides in SIDES:
        t = m.Pad(sides, padding_mode=mode)
        transform = m.Compose([m.PILToTensor(), t] if tensors else [t, m.PILToTensor()])
        check(transform)


@pytest.mark.thin(3)
@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "constant"])
@MODULES
def test_borders_of_files(mode: str, m: Any, tmp_path: Path) -> None:
    write_images(tmp_path)
    for sides in (3, 36, (100, 5), (7, 79, 200, 1), (-10, 9, 100, -20), (-300, 9)):
        data = ImageFolder(str(tmp_path), m.Compose([m.Pad(sides, padding_mode=mode), m.PILToTensor()]))
        assert equal(*(batches(kind(data, batch_size=1)) for kind in (torchdali.DataLoader, DataLoader))), sides


CROPS: dict[str, Make] = {
    "padded": lambda m: m.RandomCrop(4, 1, padding_mode="reflect"),
    "padded, if needed": lambda m: m.RandomCrop(6, 1, True, padding_mode="reflect"),
    "symmetric, if needed": lambda m: m.RandomCrop((7, 6), (2, 1), True, padding_mode="symmetric"),
    "if needed": lambda m: m.RandomCrop((6, 5), None, True, padding_mode="reflect"),
    "far": lambda m: m.RandomCrop(11, 1, True, padding_mode="symmetric"),
    "constant, if needed": lambda m: m.RandomCrop(7, (1, 2, 0, 1), True, 9),
    "edge, if needed": lambda m: m.RandomCrop(7, (1, 2, 0, 1), True, 9, "edge"),
    "cut, if needed": lambda m: m.RandomCrop((3, 5), (-1, 0), True, 9),
    "cut, reflect": lambda m: m.RandomCrop((3, 5), (-1, 0), True, 9, "reflect"),
}


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", CROPS)
@pytest.mark.parametrize("files", [False, True], ids=["in memory", "files"])
@MODULES
def test_all_windows_match_torchvision(name: str, files: bool, m: Any, tmp_path: Path) -> None:
    transform, count = to_tensor(m, CROPS[name](m)), 400
    pixels = np.random.default_rng(2).integers(0, 256, (1, 3, 4, 3), np.uint8)
    data = in_memory("CIFAR10", transform)
    data.data, data.targets = pixels.repeat(count, 0), [0] * count
    if files:
        (tmp_path / "a").mkdir()
        v2.functional.to_pil_image(pixels[0]).save(tmp_path / "a/0.png")
        data = ImageFolder(str(tmp_path), transform)
        data.samples *= count
    torch.manual_seed(3)
    ours, theirs = (batches(kind(data, batch_size=count)) for kind in (torchdali.DataLoader, DataLoader))
    if isinstance(theirs, type):
        assert ours is theirs
        return
    windows = [{image.numpy().tobytes() for image in found[0]} for found in (ours, theirs)]
    assert windows[0] == windows[1] and ours[0].shape == theirs[0].shape
