"""Hugging Face datasets with a transform: torchdali only decodes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
import torchvision.transforms as v1
from torch.utils.data import Subset

from tests.dataloader.data import LAZY, write_images
from tests.dataloader.test_loader import both, check_equal
from torchdali.pipeline import native_status

AUGMENT = v1.Compose([v1.RandomResizedCrop(20), v1.RandomHorizontalFlip(), v1.ToTensor()])


def transformed(batch: dict[str, Any]) -> dict[str, Any]:
    """As in the guides: convert images to tensors, and drop the image column."""
    batch["pixel_values"] = [AUGMENT(image.convert("RGB")) for image in batch["image"]]
    batch["size"] = [image.size for image in batch["image"]]
    batch["mode"] = [f"{image.mode} {image.getexif().get(0x0112)} {sorted(map(str, image.info))}" for image in batch["image"]]
    del batch["image"]
    return batch


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("pictures")
    paths = write_images(folder)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    turned = io.BytesIO()
    PIL.Image.open(paths[0]).save(turned, "JPEG", exif=exif)
    files = [{"bytes": None, "path": path} for path in paths]
    images = [*files[:5], {"bytes": turned.getvalue(), "path": None}, *files[5:]]
    datasets = pytest.importorskip("datasets")  # its import takes as long as the collection of a thousand tests
    made = datasets.Dataset.from_dict({"image": images, "label": list(range(len(images)))})
    return made.cast_column("image", datasets.Image()).with_transform(transformed)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_equal_the_batches_of_torchs_loader(dataset: Any, workers: int) -> None:
    part = Subset(dataset, [5, 1, 7, 0]) if workers else dataset
    batches, expected, loader = both(part, batch_size=4, shuffle=True, num_workers=workers)
    assert loader.notes[0] == LAZY or not native_status().library
    check_equal(batches, expected)


def test_other_datasets_fall_back_to_torch(dataset: Any) -> None:
    plain = dataset.with_format("torch").remove_columns("image")
    batches, expected, loader = both(plain, batch_size=4)
    assert loader.notes[-1].startswith("not accelerated: Dataset is your own dataset")
    check_equal(batches, expected)
