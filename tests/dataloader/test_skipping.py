"""``bad_samples="skip"``: samples with damaged files are skipped; a warning and `stats` name them."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, Subset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from torchdali import DataLoader, Loader

BAD = {"truncated": lambda data: data[: len(data) // 2], "page of HTML": lambda data: b"<!DOCTYPE html><html></html>", "empty": lambda data: b""}
FIXED = v2.Compose([v2.Resize((16, 16)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def write(root: Path, bad: list[int], damage: Any = BAD["truncated"], count: int = 8) -> Path:
    for i in range(count):
        path = root / "ab"[i // 4 % 2] / f"{i}.jpg"
        path.parent.mkdir(exist_ok=True)
        PIL.Image.fromarray(np.full((40, 40, 3), 20 * i, np.uint8)).save(path)
        if i in bad:
            path.write_bytes(damage(path.read_bytes()))
    return root


class Own(Dataset[Any]):
    """A dataset of paths."""

    def __init__(self, root: Path) -> None:
        self.paths = sorted(root.rglob("*.jpg"), key=lambda path: int(path.stem))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return {"image": FIXED(PIL.Image.open(self.paths[index]).convert("RGB")), "number": index}


class AtOnce(Own):
    """A dataset that returns the samples of a batch in one call."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


def numbers(batches: list[Any]) -> list[list[int]]:
    return [batch["number"].tolist() for batch in batches]


@pytest.mark.thin(5)
@pytest.mark.parametrize("dataset", [Own, AtOnce])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("bad", "batch_size", "expected"),
    [
        ([], 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        ([1, 7], 3, [[0, 2], [3, 4, 5], [6]]),
        ([0, 1, 2], 3, [[3, 4, 5], [6, 7]]),
        ([6, 7], 3, [[0, 1, 2], [3, 4, 5]]),
        ([2], 1, [[0], [1], [3], [4], [5], [6], [7]]),
        (list(range(8)), 4, []),
    ],
)
def test_own_datasets(tmp_path: Path, dataset: Any, workers: int, bad: list[int], batch_size: int, expected: list[list[int]]) -> None:
    loader = DataLoader(dataset(write(tmp_path, bad)), batch_size, num_workers=workers, bad_samples="skip")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert numbers(list(loader)) == expected
    texts = [warning for warning in said if "bad sample" in str(warning.message)]
    assert len(texts) == bool(bad) and all(warning.filename == __file__ for warning in texts)
    stats = loader.stats()
    assert [line.split(":")[0] for line in stats.skipped] == [f"sample {i}" for i in bad]
    assert (f"{len(bad)} bad samples were skipped, the first: sample " in str(stats)) == bool(bad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert numbers(list(loader)) == expected and len(loader.stats().skipped) == len(bad)


@pytest.mark.parametrize("damage", BAD.values(), ids=BAD)
def test_kinds_of_damage(tmp_path: Path, damage: Any) -> None:
    loader = DataLoader(Own(write(tmp_path, [1], damage)), 4, bad_samples="skip")
    with pytest.warns(UserWarning, match=r"a bad sample was skipped \(stats\(\) lists all of them\): sample 1: "):
        assert numbers(list(loader)) == [[0, 2, 3], [4, 5, 6, 7]]


def test_samples_without_batches(tmp_path: Path) -> None:
    loader = DataLoader(Own(write(tmp_path, [1])), None, bad_samples="skip")
    with pytest.warns(UserWarning, match="was skipped"):
        assert [sample["number"] for sample in loader] == [0, 2, 3, 4, 5, 6, 7]


class Mistaken(Own):
    def __getitem__(self, index: int) -> Any:
        return {}["missing"] if index == 2 else super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_in_the_code_are_not_bad_samples(tmp_path: Path, workers: int) -> None:
    with pytest.raises(KeyError, match="missing"):
        list(DataLoader(Mistaken(write(tmp_path, [])), 4, num_workers=workers, bad_samples="skip"))


class Lines(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(range(3))


ERRORS = {
    "unknown": ("replace", [1, 2], "bad_samples must be 'error' or 'skip', got 'replace'"),
    "iterable": ("skip", Lines(), "needs a dataset with `__getitem__`, got an iterable dataset"),
}


@pytest.mark.parametrize(("policy", "dataset", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(policy: Any, dataset: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataLoader(dataset, bad_samples=policy)


def test_by_default_a_bad_sample_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"(?i)truncated"):
        list(DataLoader(Own(write(tmp_path, [1])), 4))


@pytest.mark.parametrize("train", [False, True])
def test_loaders_of_folders_report_bad_samples_too(tmp_path: Path, train: bool) -> None:
    loader = Loader.from_folder(write(tmp_path, [1, 6]), train=train, size=16, batch_size=4, num_threads=1, bad_samples="skip")
    with pytest.warns(UserWarning, match=r"a bad sample was skipped \(stats\(\) lists all of them\): .*\.jpg: DecodeError: ") as said:
        assert sum(len(labels) for _, labels in loader) == 6
    assert [warning.filename for warning in said if "bad sample" in str(warning.message)] == [__file__]
    assert len(loader.stats().skipped) == 2 and "2 bad samples were skipped, the first: " in str(loader.stats())
    loader.close()


@pytest.mark.thin(5)
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("cache", [None, "1MB"])
@pytest.mark.parametrize(
    ("bad", "expected"),
    [([], [[0, 1, 2], [3, 4, 5], [6, 7]]), ([1, 6], [[0, 2], [3, 4, 5], [7]]), ([3, 4, 5], [[0, 1, 2], [6, 7]]), ([0, 7], [[1, 2], [3, 4, 5], [6]])],
)  # fmt: skip
def test_accelerated_loaders(tmp_path: Path, workers: int, cache: Any, bad: list[int], expected: list[list[int]]) -> None:
    dataset = ImageFolder(str(write(tmp_path, bad)), FIXED)
    dataset.samples = [(path, int(Path(path).stem)) for path, _ in sorted(dataset.samples, key=lambda each: int(Path(each[0]).stem))]
    loader = DataLoader(dataset, 3, num_workers=workers, bad_samples="skip", cache=cache)
    assert "accelerated" in str(loader.notes) and "not accelerated" not in str(loader.notes)
    for epoch in range(3):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            batches = list(loader)
        assert [labels.tolist() for _, labels in batches] == expected
        for images, labels in batches:
            for image, label in zip(images, labels, strict=True):
                assert (image * 255 - 20 * label).abs().max() < 2
        texts = [warning for warning in said if "bad sample" in str(warning.message)]
        assert len(texts) == (epoch == 0 and bool(bad)) and all(warning.filename == __file__ for warning in texts)
    stats = loader.stats()
    assert sorted(int(Path(line.split(": ")[0]).stem) for line in stats.skipped) == bad
    assert str(stats).count("bad samples were skipped") == bool(bad)
    loader.close()


def test_a_subset_in_a_loop_that_breaks(tmp_path: Path) -> None:
    dataset = Subset(ImageFolder(str(write(tmp_path, [1])), FIXED), [1, 0, 2, 3, 4])
    loader = DataLoader(dataset, 2, num_workers=1, bad_samples="skip")
    with pytest.warns(UserWarning, match="was skipped"):
        for _ in loader:
            break
    for _ in range(2):
        assert [len(labels) for _, labels in loader] == [1, 2, 1]
    loader.close()


def test_a_full_cache_warns_on_the_line_of_the_loader(tmp_path: Path) -> None:
    dataset = ImageFolder(str(write(tmp_path, [])), FIXED)
    for size, free in ((100, "100"), (2000, r"\d{3}")):  # none fits; two do
        loader = DataLoader(dataset, 4, num_workers=1, cache=size)
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        with pytest.warns(UserWarning, match=rf"the cache is full: a sample needs \d+ bytes, but {free} of {size:,} are free in memory") as said:
            list(loader)
        assert [(each.filename, each.lineno) for each in said if "cache" in str(each.message)] == [(__file__, line)]
        loader.close()
