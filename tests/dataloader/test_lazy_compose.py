"""A `Compose` on images creates the tensor in one call: bit-identical to torchvision, with its random numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.dataloader.test_lazy_images import write
from tests.helpers.inside import lazy_opening
from torchdali.dataloader import _lazy_compose
from torchdali.pipeline import native_status

pytestmark = pytest.mark.skipif(not native_status().library, reason="decodes by the library")

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
FLOAT = v2.ToDtype(torch.float32, scale=True)
BEFORE = [v2.RandomResizedCrop(24), v2.RandomHorizontalFlip()]


def _own(image: Any) -> Any:
    return image


class _Halved(v2.Normalize):
    def transform(self, inpt: Any, params: Any) -> Any:
        return super().transform(inpt, params) / 2


def _with(changed: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(changed, name, value)
    return changed


def _hooked() -> Any:
    normalize = v2.Normalize(MEAN, STD)
    normalize.register_forward_hook(lambda module, inputs, output: output + 1)
    return normalize


CHAINS: dict[str, tuple[bool, Any]] = {
    "v2": (True, v2.Compose([*BEFORE, v2.PILToTensor(), FLOAT, v2.Normalize(MEAN, STD)])),
    "v2 image": (True, v2.Compose([*BEFORE, v2.ToImage(), FLOAT, v2.Normalize(MEAN, STD)])),
    "pure, between": (True, v2.Compose([*BEFORE, v2.ToImage(), _own, FLOAT, v2.ToPureTensor(), v2.Normalize(MEAN, STD)])),
    "image, between": (True, v2.Compose([*BEFORE, v2.PILToTensor(), _own, FLOAT, v2.ToImage(), v2.Normalize(MEAN, STD)])),
    "pure": (True, v2.Compose([*BEFORE, v2.ToImage(), FLOAT, v2.ToPureTensor()])),
    "v1": (True, v1.Compose([v1.RandomResizedCrop(24), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(MEAN, STD)])),
    "v1 dtype": (True, v1.Compose([v1.Resize(30), v1.CenterCrop(24), v1.PILToTensor(), v1.ConvertImageDtype(torch.float32), v1.Normalize(MEAN, STD)])),
    "one number": (True, v1.Compose([v1.ToTensor(), v1.Normalize(0.5, 0.5)])),
    "erasing": (True, v2.Compose([*BEFORE, v2.PILToTensor(), FLOAT, v2.Normalize(MEAN, STD), v2.RandomErasing(1.0, value="random")])),
    "noise": (True, v2.Compose([*BEFORE, v2.PILToTensor(), FLOAT, v1.Lambda(lambda x: x + torch.randn_like(x))])),
    "strides": (True, v2.Compose([*BEFORE, v2.PILToTensor(), FLOAT, v1.Lambda(lambda x: torch.tensor(x.stride()))])),
    "strides, v1": (True, v1.Compose([v1.ToTensor(), v1.Lambda(lambda x: torch.tensor(x.stride()))])),
    "colors": (True, v2.Compose([*BEFORE, v2.ColorJitter(0.3, 0.3, 0.3, 0.1), v2.PILToTensor(), FLOAT])),
    "between": (True, v2.Compose([*BEFORE, v2.PILToTensor(), _own, FLOAT, v2.Normalize(MEAN, STD)])),
    "between, image": (True, v2.Compose([*BEFORE, v2.ToImage(), _own, FLOAT, v2.Normalize(MEAN, STD)])),
    "turned": (True, v2.Compose([v2.PILToTensor(), v2.RandomHorizontalFlip(1.0), FLOAT, v2.Normalize(MEAN, STD)])),
    "nested": (True, v2.Compose([v2.Compose(BEFORE), v2.Compose([v2.PILToTensor(), FLOAT]), v2.Normalize(MEAN, STD)])),
    "dtypes": (True, v2.Compose([*BEFORE, v2.ToImage(), v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True), v2.Normalize(MEAN, STD)])),
    "dtypes, a pure tensor": (False, v2.Compose([*BEFORE, v2.PILToTensor(), v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)])),
    "dtypes of others": (True, v2.Compose([*BEFORE, v2.PILToTensor(), v2.ToDtype({tv_tensors.Image: torch.uint8, "others": torch.float32}, scale=True)])),
    "dtypes, none for it": (False, v2.Compose([*BEFORE, v2.PILToTensor(), v2.ToDtype({tv_tensors.Mask: torch.float32}, scale=True)])),
    "bytes": (False, v2.Compose([*BEFORE, v2.PILToTensor()])),
    "other dtype": (False, v2.Compose([*BEFORE, v2.PILToTensor(), v2.ToDtype(torch.float64, scale=True)])),
    "no scale": (False, v2.Compose([*BEFORE, v2.PILToTensor(), v2.ToDtype(torch.float32)])),
    "subclass": (True, v2.Compose([*BEFORE, v2.PILToTensor(), FLOAT, _Halved(MEAN, STD)])),
    "hook": (True, v2.Compose([*BEFORE, v2.PILToTensor(), FLOAT, _hooked()])),
    "set": (True, v2.Compose([v2.PILToTensor(), FLOAT, _with(v2.Normalize(MEAN, STD), transform=lambda x, params: x + 2)])),
    "gray": (False, v1.Compose([v1.Grayscale(), v1.ToTensor(), v1.Normalize(0.5, 0.5)])),
    "no image": (False, v1.Compose([_own, np.array])),
}  # fmt: skip


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("images")
    png = str(folder / "b.png")
    Image.open(write(folder / "a.jpg", 130, 97)).rotate(90, expand=True).save(png)
    return [str(folder / "a.jpg"), write(folder / "c.jpg", 120, 131), png, write(folder / "gray.jpg", 99, 99, "L")]


def results(transform: Any, paths: list[str], inputs: Callable[[Any], tuple[Any, ...]] = lambda image: (image,)) -> list[Any]:
    """Return a transform's results on images, and the state of the random numbers, or the error."""
    torch.manual_seed(4)
    found: list[Any] = []
    for path in paths:
        try:
            found.append(transform(*inputs(Image.open(path).convert("RGB"))))
        except Exception as error:
            found.append((type(error), str(error)))
    return [*found, torch.get_rng_state()]


def check(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        for part, same in zip(*[each if isinstance(each, (tuple, list)) else [each] for each in (one, other)], strict=True):
            assert type(part) is type(same)
            assert torch.equal(part, same) and part.stride() == same.stride() if isinstance(part, torch.Tensor) else np.all(part == same)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record conversions to a tensor in one call."""
    noted: list[Any] = []
    for name in ("convert_image", "convert_tensor"):
        function = getattr(_lazy_compose, name)
        monkeypatch.setattr(_lazy_compose, name, lambda *given, function=function: (noted.append(function(*given)), noted[-1])[1])
    return noted


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", CHAINS)
def test_tensors_equal_torchvisions(paths: list[str], name: str, calls: list[Any]) -> None:
    is_one, transform = CHAINS[name]
    expected = results(transform, paths)
    with lazy_opening():
        check(results(transform, paths), expected)
    assert any(call is not None for call in calls) == is_one


PAIRS: dict[str, tuple[Any, Callable[[Any], tuple[Any, ...]]]] = {
    "mask": (v2.Compose([*BEFORE, v2.ToImage(), v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)]),
             lambda i: (i, tv_tensors.Mask(Image.new("L", i.size, 9)))),
    "mask, dtypes": (v2.Compose([*BEFORE, v2.ToImage(), v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64}, scale=True), v2.Normalize(MEAN, STD)]),
                     lambda i: (i, tv_tensors.Mask(Image.new("L", i.size, 9)))),
    "label": (v2.Compose([*BEFORE, v2.ToImage(), FLOAT, v2.Normalize(MEAN, STD)]), lambda i: (i, 3)),
    "tensor": (v2.Compose([v2.Resize((30, 20)), v2.ToImage(), FLOAT, v2.Normalize(MEAN, STD)]), lambda i: (i, torch.ones(3, 4, 4))),
    "two images": (v2.Compose([v2.Resize((30, 20)), v2.ToImage(), FLOAT]), lambda i: (i, i.crop((1, 2, 9, 9)))),
    "one of a tuple": (v2.Compose([v2.Resize((30, 20)), v2.ToImage(), FLOAT]), lambda i: ((i, 5),)),
    "of a dict": (v2.Compose([v2.Resize((30, 20)), v2.ToImage(), FLOAT]), lambda i: ({"image": i, "label": 5},)),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_samples_of_several_parts(paths: list[str], name: str) -> None:
    transform, inputs = PAIRS[name]

    def flat(outcomes: list[Any]) -> list[Any]:
        return [[*each.values()] if isinstance(each, dict) else each for each in outcomes]

    expected = flat(results(transform, paths, inputs))
    with lazy_opening():
        check(flat(results(transform, paths, inputs)), expected)


def test_a_changed_transform_takes_effect(paths: list[str]) -> None:
    normalize = v2.Normalize(MEAN, STD)
    transform = v2.Compose([v2.PILToTensor(), FLOAT, normalize])
    changes: list[Callable[[], Any]] = [
        lambda: None, lambda: normalize.mean.__setitem__(0, 0.1), lambda: setattr(normalize, "std", [0.5, 0.5, 0.5]),
        lambda: transform.transforms.append(v2.RandomVerticalFlip(1.0)), lambda: normalize.register_forward_hook(lambda *given: given[-1] + 1),
        lambda: setattr(transform, "transforms", [v2.PILToTensor()]),
    ]  # fmt: skip
    for change in changes:
        change()
        expected = results(transform, paths)
        with lazy_opening():
            check(results(transform, paths), expected)


def test_methods_of_torchvision_are_restored(paths: list[str]) -> None:
    before = v1.Compose.__call__, v2.Compose.forward
    with lazy_opening():
        assert (v1.Compose.__call__, v2.Compose.forward) != before
    assert (v1.Compose.__call__, v2.Compose.forward) == before


def test_another_default_dtype(paths: list[str]) -> None:
    transform = v1.Compose([v1.ToTensor(), v1.Normalize(MEAN, STD)])
    torch.set_default_dtype(torch.float64)
    try:
        expected = results(transform, paths)
        with lazy_opening():
            check(results(transform, paths), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_image_files_take_the_fast_path(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jpg", 130, 97)
    with lazy_opening(), Image.open(path) as image:
        planes = v1.Compose([v1.ToTensor()])(image)
    assert torch.equal(planes, v1.functional.to_tensor(Image.open(path)))
