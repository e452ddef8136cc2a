"""Datasets of other libraries open JPEGs with Pillow: in our workers the images are lazy, and the batches are equal."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import DistributedSampler
from torchvision.transforms import v2

from tests.dataloader.data import LAZY, Own, is_lazy
from tests.dataloader.test_lazy_images import write
from tests.helpers import inside
from torchdali import DataLoader
from torchdali.pipeline import native_status

pytestmark = pytest.mark.skipif(not native_status().library, reason="decodes by the library")

TRANSFORM = v2.Compose([
    v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3),
])  # fmt: skip
COUNT = 6


def transformed(image: Any) -> Any:
    """Return the tensor, and whether the image was lazy."""
    image = image.convert("RGB")
    return TRANSFORM(image), is_lazy(image)


def of_table(batch: dict[str, Any]) -> dict[str, Any]:
    return {"image": [transformed(image) for image in batch["image"]], "label": batch["label"]}


def of_row(row: dict[str, Any]) -> Any:
    return transformed(row["image"]), row["label"]


def _hugging_face(folder: Path, paths: list[str]) -> Any:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"image": [{"bytes": Path(path).read_bytes(), "path": None} for path in paths], "label": list(range(COUNT))})
    return rows.cast_column("image", datasets.Image())


def hugging_face(folder: Path, paths: list[str]) -> Any:
    return _hugging_face(folder, paths).with_transform(of_table)


class Rows(torch.utils.data.IterableDataset[Any]):
    """Rows of an iterable dataset, each in one worker."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = rows

    def __iter__(self) -> Any:
        return map(of_row, self.rows)


def hugging_face_stream(folder: Path, paths: list[str]) -> Any:
    return Rows(_hugging_face(folder, paths).to_iterable_dataset())


def web_dataset(folder: Path, paths: list[str]) -> Any:
    webdataset = pytest.importorskip("webdataset")
    with tarfile.open(folder / "a.tar", "w") as tar:
        for i, path in enumerate(paths):
            tar.add(path, f"{i}.jpg")
            label = tarfile.TarInfo(f"{i}.cls")
            label.size = 1
            tar.addfile(label, io.BytesIO(str(i).encode()))
    dataset = webdataset.WebDataset(str(folder / "a.tar"), shardshuffle=False, empty_check=False)
    return dataset.decode("pil").to_tuple("jpg", "cls").map_tuple(transformed, int)


def timm_folder(folder: Path, paths: list[str]) -> Any:
    data = pytest.importorskip("timm.data")
    for i, path in enumerate(paths):
        target = folder / "timm" / f"class{i % 2}"
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{i}.jpg").write_bytes(Path(path).read_bytes())
    return data.ImageDataset(str(folder / "timm"), transform=transformed)


def mosaic(folder: Path, paths: list[str]) -> Any:
    streaming = pytest.importorskip("streaming")
    with streaming.MDSWriter(out=str(folder / "mds"), columns={"image": "jpeg", "label": "int"}) as writer:
        for i, path in enumerate(paths):
            with Image.open(path) as image:
                writer.write({"image": image, "label": i})

    class Streamed(streaming.StreamingDataset):  # type: ignore[name-defined, misc]
        def __getitem__(self, index: int) -> Any:
            return of_row(super().__getitem__(index))

    return Streamed(local=str(folder / "mds"), batch_size=1, shuffle=False)


def lit_data(folder: Path, paths: list[str]) -> Any:
    litdata = pytest.importorskip("litdata")
    writer = litdata.streaming.cache.Cache(str(folder / "lit"), chunk_size=2)
    for i, path in enumerate(paths):
        writer[i] = {"image": Path(path).read_bytes(), "label": i}
    writer.done()
    writer.merge()

    class Streamed(litdata.StreamingDataset):  # type: ignore[name-defined, misc]
        def __getitem__(self, index: Any) -> Any:
            row = super().__getitem__(index)
            return of_row({**row, "image": Image.open(io.BytesIO(row["image"]))})

    return Streamed(str(folder / "lit"))


class WithState(torch.utils.data.Dataset[Any]):
    """A dataset with its own state, which torchdata's loader saves."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return transformed(Image.open(self.paths[index])), index

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


def torch_data(folder: Path, paths: list[str]) -> Any:
    pytest.importorskip("torchdata")
    return WithState(paths)


LIBRARIES: list[Callable[[Path, list[str]], Any]] = [hugging_face, hugging_face_stream, web_dataset, timm_folder, mosaic, lit_data, torch_data]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("images")
    return [write(folder / f"{i}.jpg", 120, 100 + i) for i in range(COUNT)]


def batches(loader: Any) -> list[Any]:
    torch.manual_seed(5)
    return list(loader)


def _flat(batch: Any) -> list[Any]:
    image, label = (batch["image"], batch["label"]) if isinstance(batch, dict) else batch
    return [*image, label]


@pytest.mark.parametrize(("library", "workers"), [*((library, 1) for library in LIBRARIES), (torch_data, 0)])
def test_batches_equal_the_batches_of_torchs_loader(
    tmp_path: Path, paths: list[str], library: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.no_lazy_image_before(monkeypatch)
    dataset = library(tmp_path, paths)
    expected = batches(TorchLoader(dataset, batch_size=2, num_workers=workers))
    loader = DataLoader(dataset, batch_size=2, num_workers=workers)
    check(batches(loader), expected)
    assert loader.notes[0] == LAZY


def check(found: list[Any], expected: list[Any]) -> None:
    """Check that the images are lazy, and that the batches equal torch's."""
    assert len(found) == len(expected) > 0
    for batch, other in zip(map(_flat, found), map(_flat, expected), strict=True):
        assert torch.equal(batch[0], other[0]) and np.array_equal(batch[2], other[2])
        assert batch[1].all() and not other[1].any()


def lightning_again(kind: Any, dataset: Any) -> Any:
    data = pytest.importorskip("lightning.pytorch.utilities.data")
    loader = kind(dataset, batch_size=2, shuffle=True, num_workers=1)
    return data._update_dataloader(loader, DistributedSampler(dataset, 2, 1))


def accelerate_again(kind: Any, dataset: Any) -> Any:
    module = pytest.importorskip("accelerate.data_loader")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DataLoader", kind)  # as if `torchdali run` imports accelerate
        return module.prepare_data_loader(kind(dataset, batch_size=2, num_workers=1), num_processes=2, process_index=1)


@pytest.mark.parametrize("make", [lightning_again, accelerate_again], ids=["lightning", "accelerate"])
def test_loaders_that_libraries_rebuild(paths: list[str], make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inside.no_lazy_image_before(monkeypatch)
    dataset = Own(lambda index: (transformed(Image.open(paths[index])), index), COUNT)
    check(batches(make(DataLoader, dataset)), batches(make(TorchLoader, dataset)))
