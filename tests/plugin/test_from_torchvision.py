"""`from_torchvision` beside a DataLoader over the same data set."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader, Subset
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

import torchdali

STATISTICS: dict[str, Any] = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
TRANSFORMS: dict[str, Any] = {
    "testing": v1.Compose([v1.Resize(40), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(**STATISTICS)]),
    "one size": v1.Compose([v1.Resize((32, 24)), v1.ToTensor()]),
    "second version": v2.Compose([
        v2.Resize((32, 32)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(**STATISTICS),
    ]),
    "bytes": v1.Compose([v1.Resize((32, 32)), v1.PILToTensor()]),
    "a function": v1.Compose([v1.Resize((32, 32)), v1.ToTensor(), v1.Lambda(lambda image: image * 2)]),
    "gray": v1.Compose([v1.Resize((32, 32)), v1.Grayscale(3), v1.ToTensor()]),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    root: Path = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for number in range(10):
        (root / f"class{number % 2}").mkdir(exist_ok=True)
        small = PIL.Image.fromarray(rng.integers(0, 256, (6, 7, 3), np.uint8))
        small.resize((60 + 5 * number, 50 + number), PIL.Image.Resampling.BICUBIC).save(
            root / f"class{number % 2}" / f"{number}.png"
        )
    return str(root)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_batches_are_those_of_a_data_loader(folder: str, name: str) -> None:
    dataset = ImageFolder(folder, TRANSFORMS[name])
    with torchdali.from_torchvision(dataset, batch_size=4) as loader:
        batches = list(loader)
    wanted = list(DataLoader(dataset, batch_size=4))
    assert len(batches) == len(wanted) == 3
    scale = 255 if name == "bytes" else 1
    for (images, labels), (others, classes) in zip(batches, wanted, strict=True):
        assert torch.equal(labels, classes) and labels.dtype == classes.dtype
        assert images.shape == others.shape and images.dtype == others.dtype
        assert (images.float() - others.float()).abs().mean() < 0.02 * scale


def test_subsets_keep_their_order(folder: str) -> None:
    subset = Subset(ImageFolder(folder, TRANSFORMS["one size"]), [7, 1, 4])
    with torchdali.from_torchvision(subset, batch_size=3) as loader:
        ((images, labels),) = list(loader)
    assert labels.tolist() == [subset[i][1] for i in range(3)]
    for image, (wanted, _) in zip(images, (subset[i] for i in range(3)), strict=True):
        assert (image - wanted).abs().mean() < 0.02


def test_every_epoch_has_all_samples_in_another_order(folder: str) -> None:
    random = v1.Compose([v1.RandomResizedCrop(16), v1.RandomHorizontalFlip(), v1.ToTensor()])
    with torchdali.from_torchvision(ImageFolder(folder, random), batch_size=5, shuffle=True, seed=3) as loader:
        epochs = [torch.cat([labels for _, labels in loader]).tolist() for _ in range(3)]
    assert all(sorted(epoch) == [0] * 5 + [1] * 5 for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_a_loader_can_be_pickled(folder: str) -> None:
    dataset = ImageFolder(folder, TRANSFORMS["one size"])
    with pickle.loads(pickle.dumps(torchdali.from_torchvision(dataset, batch_size=5))) as loader:
        assert [len(labels) for _, labels in loader] == [5, 5]


# ------------------------------------------------------------ data sets that are not torchvision's


class Own(torch.utils.data.Dataset):
    """Calls its transform whatever it is, and does more than that."""

    def __init__(self, images: Any, transform: Any) -> None:
        self.images, self.transform = images, transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        return 1 - self.transform(self.images[i]), i


class Negative(ImageFolder):
    def __getitem__(self, i: int) -> Any:
        image, label = super().__getitem__(i)
        return -image, label


ARRAYS = np.random.default_rng(0).integers(0, 256, (6, 40, 50, 3)).astype(np.uint8)
FLOATS = v2.Compose([v2.ToImage(), v2.Resize((32, 24)), v2.ToDtype(torch.float32, scale=True)])


def like_a_data_loader(dataset: Any, atol: float = 0.0, **options: Any) -> None:
    with torchdali.from_torchvision(dataset, batch_size=4, **options) as loader:
        batches = list(loader)
    wanted = list(DataLoader(dataset, batch_size=4))
    assert len(batches) == len(wanted)
    for batch, other in zip(batches, wanted, strict=True):
        assert len(batch) == len(other)
        for value, right in zip(batch, other, strict=True):
            assert value.shape == right.shape and value.dtype == right.dtype
            assert torch.allclose(value.double(), right.double(), atol=atol)


@pytest.mark.parametrize("shape", [(3, 40, 50), (1, 28, 28)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_tensors_stay_as_they_are(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Bytes with the channels first came out as (4, 50, 3, 40), in silence."""
    images = torch.randint(0, 256, (6, *shape)).to(dtype)
    like_a_data_loader(torch.utils.data.TensorDataset(images, torch.arange(6)))


def test_tensors_of_bytes_take_transforms() -> None:
    images = torch.from_numpy(ARRAYS).permute(0, 3, 1, 2).contiguous()
    data = torch.utils.data.TensorDataset(images, torch.arange(6))
    with torchdali.from_torchvision(data, v2.Resize((20, 24)), batch_size=6) as loader:
        (found, _), = loader
    assert found.shape == (6, 3, 20, 24)
    assert (found.float() - v2.Resize((20, 24))(images).float()).abs().mean() < 0.02 * 255


def test_what_a_data_set_does_is_done() -> None:
    """A data set was asked for its samples without its transform, and what it did besides was lost or failed."""
    like_a_data_loader(Own(ARRAYS, FLOATS))


def test_a_subclass_does_what_it_does(folder: str) -> None:
    like_a_data_loader(Negative(folder, v1.Compose([v1.Resize((32, 24)), v1.ToTensor()])), atol=1e-6)


def test_transforms_of_arrays_see_arrays() -> None:
    class Plain(Own):
        def __getitem__(self, i: int) -> tuple[Any, int]:
            return self.images[i], i

    data = Plain(ARRAYS, None)
    with torchdali.from_torchvision(data, FLOATS, batch_size=6) as loader:
        (found, _), = loader
    wanted = torch.stack([FLOATS(image) for image in ARRAYS])
    assert found.shape == wanted.shape and (found - wanted).abs().mean() < 0.02


def test_photos_are_not_turned(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    exif = PIL.Image.Exif()
    exif[0x112] = 6
    PIL.Image.fromarray(ARRAYS[0]).save(tmp_path / "a" / "x.jpg", exif=exif)
    dataset = ImageFolder(str(tmp_path), v1.ToTensor())
    with torchdali.from_torchvision(dataset) as loader:
        assert next(iter(loader))[0].shape == next(iter(DataLoader(dataset)))[0].shape == (1, 3, 40, 50)


def test_samples_that_are_dictionaries_are_sent_to_a_pipeline() -> None:
    rows = [{"image": np.zeros((4, 4, 3), np.uint8), "label": 1}] * 4
    with pytest.raises(TypeError, match=r"a sample of list is a dictionary.*columns=\['image', 'label'\]"):
        torchdali.from_torchvision(rows)


def test_other_samplers_are_sent_to_the_recipe(folder: str) -> None:
    sampler = torch.utils.data.WeightedRandomSampler([1.0] * 10, 10)
    with pytest.raises(TypeError, match=r"external_source.*weighted sampling in docs/recipes/tasks\.md"):
        torchdali.from_torchvision(ImageFolder(folder), sampler=sampler)
