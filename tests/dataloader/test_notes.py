"""The sentences of a loader's notes: the reason, the cure, and a link to an existing section."""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import Subset, TensorDataset, WeightedRandomSampler
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from tests.docs.test_readme import anchors
from tests.helpers.pages import ROOT
from torchdali import DataLoader
from torchdali.dataloader import _notes


class Own:
    pass


def collate(samples: Any) -> Any:
    return samples


REASONS = {
    "own dataset": (_notes.own_dataset_reason(Own()), "Own is your own dataset"),
    "changed": (_notes.changed_code_reason("Own defines `loader`"), "Own defines `loader`"),
    "iterable": (_notes.iterable_dataset_reason(Own()), "Own is an iterable dataset"),
    "collate_fn": (_notes.own_function_reason("collate_fn", collate), "collate_fn (collate) is your own function"),
    "worker_init_fn": (_notes.own_function_reason("worker_init_fn"), "worker_init_fn is your own function"),
    "target_transform": (_notes.own_function_reason("target_transform", Own()), "target_transform (Own) is your own function"),
    "another": (_notes.own_function_reason("loader", collate), "loader (collate) is your own function"),
    "batch_size": (_notes.no_batches_reason(), "batch_size is None"),
    "own transform": (_notes.own_transform_reason(Own()), "Own isn't a torchvision transform"),
    "Lambda": (_notes.own_transform_reason(v2.Lambda(collate)), "Lambda calls your own function"),
    "transform": (_notes.unsupported_reason(v2.JPEG(50)), "JPEG isn't supported"),
    "transform, input": (_notes.unsupported_reason(v2.Grayscale(), "a tensor from 0 to 1"), "Grayscale isn't supported on a tensor from 0 to 1"),
    "transform, argument": (_notes.unsupported_reason(v2.Pad(1), "", "fill='red'"), "Pad isn't supported with fill='red'"),
    "no tensors": (_notes.pil_output_reason(), "the transforms return PIL images"),
    "two transforms": (_notes.different_transforms_reason(), "the datasets have different transforms"),
}


@pytest.mark.parametrize(("reason", "expected"), REASONS.values(), ids=REASONS)
def test_a_reason_has_a_cure_and_a_link(reason: str, expected: str) -> None:
    note = _notes.not_accelerated_note(reason)
    assert note.startswith(f"not accelerated: {expected}. ") and "\n" not in note
    assert _notes.shorten(note) == expected
    (anchor,) = re.findall(rf"{re.escape(_notes.GUIDE)}#([\w-]+)$", note)
    assert anchor in anchors(ROOT / "docs/dataloader.md")


@pytest.mark.parametrize("reason", [_notes.switched_off_reason(), _notes.empty_dataset_reason(Own()), _notes.raised_reason(ValueError("odd. Really"))])
def test_reasons_without_a_link(reason: str) -> None:
    assert _notes.shorten(_notes.not_accelerated_note(reason)) == reason.partition(". ")[0]


def test_the_missing_fast_path_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_notes, "native_status", lambda: _Status(object()))
    assert _notes.fast_path_notes() == ()
    monkeypatch.setattr(_notes, "native_status", lambda: _Status(None))
    (note,) = _notes.fast_path_notes()
    assert "torchdali doctor" in note and note.endswith("#fast-path")
    assert "fast-path" in anchors(ROOT / "docs/dataloader.md")


class _Status:
    def __init__(self, library: Any) -> None:
        self.library = library


def test_notes_are_printed_one_per_line() -> None:
    notes = _notes.Notes(("a", "b"))
    assert str(notes) == "a\nb" and notes == ("a", "b") and repr(notes) == "('a', 'b')"
    assert str(pickle.loads(pickle.dumps(notes))) == "a\nb"


def test_the_proxy_leaves_loaders_accelerated() -> None:
    importlib.import_module("torchdali.plugin.pytorch.experimental.proxy")
    loader = DataLoader(TensorDataset(torch.arange(4)), batch_size=2)
    assert loader.notes == ("TensorDataset: a batch is a selection of rows",)


class Chosen(ImageFolder):
    """A folder that chooses its classes and files."""

    def find_classes(self, directory: Any) -> Any:
        return ["b"], {"b": 0}

    @staticmethod
    def make_dataset(directory: Any, *arguments: Any, **options: Any) -> Any:
        return ImageFolder.make_dataset(directory, *arguments, **options)[:2]


def _changed_targets(root: Any) -> ImageFolder:
    dataset = ImageFolder(root, TENSORS)
    dataset.samples = [(path, 7 + label) for path, label in dataset.samples]
    return dataset


TENSORS = v2.Compose([v2.Resize((8, 8)), v2.ToImage()])
CURES = {
    "a subclass that chooses files": (lambda root: Chosen(root, TENSORS), {}, [0, 0]),
    "targets that are changed before": (_changed_targets, {}, [7, 7, 8, 8]),
    "weighted sampling": (lambda root: ImageFolder(root, TENSORS), {"sampler": WeightedRandomSampler([0.0, 0.0, 1.0, 1.0], 4)}, [1, 1, 1, 1]),
    "a part": (lambda root: Subset(ImageFolder(root, TENSORS), [0, 3]), {}, [0, 1]),
}


@pytest.mark.parametrize(("make", "options", "labels"), CURES.values(), ids=CURES)
def test_cures_of_the_page_are_accelerated(tmp_path: Path, make: Any, options: Any, labels: list[int]) -> None:
    for name in ("a/1", "a/2", "b/1", "b/2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        PIL.Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(tmp_path / f"{name}.jpg")
    loader = DataLoader(make(str(tmp_path)), batch_size=4, num_workers=1, **options)
    assert not any(map(_notes.is_not_accelerated, loader.notes)), loader.notes
    assert [label for _, batch in loader for label in batch.tolist()] == labels
    loader.close()


# ---------------------------------------------------------------- errors


class Fails(torch.utils.data.Dataset[Any]):
    """A dataset whose batches can't be made."""

    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)


ERRORS: dict[str, Any] = {
    "sizes": (lambda i: torch.zeros(3, 4 + i, 4), "samples of a batch must have the same size: resize or crop them"),
    "images": (lambda i: PIL.Image.new("RGB", (4, 4)), r"end its transforms with `v2.ToImage\(\)`"),
    "None": (lambda i: None, "a `return` may be missing"),
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs notes of exceptions")
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_a_batch_has_its_cure(name: str, workers: int) -> None:
    sample, cure = ERRORS[name]
    with pytest.raises((RuntimeError, TypeError)) as caught:
        next(iter(DataLoader(Fails(sample), 2, num_workers=workers)))
    assert len(caught.value.__notes__) == 1 and re.search(cure, caught.value.__notes__[0])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs notes of exceptions")
def test_a_dataset_that_cannot_be_pickled_has_its_cure() -> None:
    with pytest.raises(Exception, match="pickle") as caught:
        iter(DataLoader(Fails(lambda i: i), 2, num_workers=1, multiprocessing_context="spawn"))
    assert "use no `lambda`" in caught.value.__notes__[0]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs notes of exceptions")
def test_images_of_several_sizes_are_named(tmp_path: Path) -> None:
    sizes = [(8, 9), (8, 9), (7, 9)]
    for i, size in enumerate(sizes):
        (tmp_path / f"{i}").mkdir()
        PIL.Image.new("RGB", size).save(tmp_path / f"{i}" / "a.png")
    with pytest.raises(RuntimeError, match="equal size") as caught:
        next(iter(DataLoader(ImageFolder(str(tmp_path), v2.Compose([v2.ToImage()])), 3)))
    files, cure = caught.value.__notes__
    assert files == f"{tmp_path}/0/a.png: (3, 9, 8); {tmp_path}/2/a.png: (3, 9, 7)" and "must have the same size" in cure


@pytest.mark.skipif(torch.accelerator.is_available(), reason="needs a machine without accelerator")
@pytest.mark.parametrize("dataset", [TensorDataset(torch.arange(4)), Fails(int)], ids=["accelerated", "torch's"])
def test_a_warning_of_pinned_memory_is_on_the_users_line(dataset: Any) -> None:
    loader = DataLoader(dataset, 2, pin_memory=True)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found") as warned:
        assert len(list(loader)) == 2
    assert [Path(each.filename).name for each in warned] == ["test_notes.py"]
