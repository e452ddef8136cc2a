"""Messages about common mistakes: the rule, the value, and the cure."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import TensorDataset
from torchvision.datasets import ImageFolder

from torchdali import DataLoader, Loader, fn, operator, pipeline_def, types


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("images")
    for name in ("train/a", "train/b", "flat"):
        (folder / name).mkdir(parents=True)
        PIL.Image.fromarray(np.full((9, 9, 3), 70, np.uint8)).save(folder / name / "1.png")
    return folder


def loader(root: Path, **options: Any) -> Loader:
    return Loader.from_folder(root / "train", **{"train": True, "size": 8, "batch_size": 1, "num_threads": 1, **options})


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def images() -> Any:
    return fn.constant(idata=[0] * 12, shape=[2, 2, 3], dtype=types.UINT8, layout="HWC")


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def planes() -> Any:
    return fn.crop_mirror_normalize(images.__wrapped__(), output_layout="NCHW")


def without_slash() -> Any:
    @operator
    def invert(image: torch.Tensor) -> torch.Tensor:
        return 255 - image


def data(root: Path) -> ImageFolder:
    return ImageFolder(str(root / "train"))


RULE = "Loader must get a pipeline, or a function that returns one, got "
MESSAGES: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "missing folder": (lambda root: Loader.from_folder(root / "trian" / "x", train=True), FileNotFoundError, "root must be a folder that exists, got '{root}/trian/x'; the nearest existing folder is '{root}'; did you mean train?"),
    "no classes": (lambda root: Loader.from_folder(root / "flat", train=True), FileNotFoundError, "root must have a folder for each class, as in {root}/flat/cat/1.jpg"),
    "train is missing": (lambda root: Loader.from_folder(root), TypeError, "Loader.from_folder() needs train=True, to shuffle and augment, or train=False, to keep the order"),
    "train is a name": (lambda root: loader(root, train="val"), TypeError, "train must be True or False, got 'val'; pass the folder as root"),
    "augment, other name": (lambda root: loader(root, augment="randaugment"), ValueError, "augment must be None, a function of images, torchvision transforms, or one of auto, rand, trivial, got 'randaugment'; did you mean 'rand'?"),
    "augment, class name": (lambda root: loader(root, augment="TrivialAugmentWide"), ValueError, "got 'TrivialAugmentWide'; did you mean 'trivial'?"),
    "augment, unknown": (lambda root: loader(root, augment="mixup"), ValueError, "or one of auto, rand, trivial, got 'mixup'$"),
    "augment in a test": (lambda root: loader(root, augment="rand", train=False), ValueError, "augment must be None for train=False, got 'rand'; use it with train=True"),
    "batch_size": (lambda root: loader(root, batch_size=0), ValueError, "batch_size must be at least 1, got 0"),
    "num_threads": (lambda root: loader(root, num_threads=-1), ValueError, "num_threads must be None, for one per core, or at least 1, got -1"),
    "size": (lambda root: loader(root, size=(1, 2, 3)), ValueError, "size must be the height and width in pixels, one number for both or (height, width), got (1, 2, 3)"),
    "cache": (lambda root: loader(root, cache="8 gigs"), ValueError, "cache must be a size in memory ('8GB' or a number of bytes) or a folder with a separator ('./8 gigs'), got '8 gigs'"),
    "num_workers": (lambda root: loader(root, num_workers=2), TypeError, "got an unexpected keyword argument 'num_workers': use num_threads="),
    "shuffle": (lambda root: loader(root, shuffle=True), TypeError, "'shuffle': use train=True to shuffle, or train=False"),
    "Loader of a dataset": (lambda root: Loader(data(root), batch_size=8), TypeError, RULE + "a dataset (ImageFolder): use torchdali.DataLoader(dataset, batch_size=...)"),
    "Loader of a dataset alone": (lambda root: Loader(data(root)), TypeError, RULE + "a dataset (ImageFolder): use torchdali.DataLoader"),
    "Loader of a list": (lambda root: Loader([1, 2]), TypeError, RULE + "a dataset (list): use torchdali.DataLoader"),
    "Loader of a folder": (lambda root: Loader(root), TypeError, RULE + "'{root}': use Loader.from_folder('{root}', train=True)"),
    "Loader of a DataLoader": (lambda root: Loader(torch.utils.data.DataLoader(data(root))), TypeError, RULE + "a DataLoader: loop over it, or import DataLoader from torchdali"),
    "Loader of a number": (lambda root: Loader(3), TypeError, RULE + "int$"),
    "index of a Loader": (lambda root: Loader(images())[0], TypeError, "a Loader cannot be indexed. Write `for batch in loader`, or next(iter(loader)) for one batch"),
    "loop over a pipeline": (lambda root: list(images()), TypeError, "a pipeline can't be looped over. Write `for batch in Loader(pipe)`, or pipe.run() for one batch"),
    "output_layout": (lambda root: planes().run(), RuntimeError, "output_layout must be a permutation of the layout 'HWC', got 'NCHW'; pass 'CHW': layouts have no batch axis"),
    "operator without a slash": (lambda root: without_slash(), TypeError, "invert: 'image' must be an input, as in invert(image, /), or an argument, as in invert(image, /, *, image)"),
    "DataLoader of a class": (lambda root: DataLoader(ImageFolder), TypeError, "dataset must be a dataset, got the class ImageFolder. Write ImageFolder(...)"),
    "DataLoader of a generator": (lambda root: DataLoader(i for i in range(3)), TypeError, "dataset must have `__len__` and `__getitem__`, got a generator. Write a subclass of torch.utils.data.IterableDataset"),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_errors(name: str, root: Path) -> None:
    call, kind, text = MESSAGES[name]
    ends = text.endswith("$")
    expected = re.escape(text.removesuffix("$").replace("{root}", str(root))) + ("$" if ends else "")
    with pytest.raises(kind, match=expected):
        call(root)


def test_a_dataloader_of_text_warns() -> None:
    with pytest.warns(UserWarning, match=r"got the string 'clean', so each letter is a sample\. For a folder of images, write") as said:
        assert [*DataLoader("clean")] == [["c"], ["l"], ["e"], ["a"], ["n"]]
    assert said[0].filename == __file__


def test_unusual_datasets_are_accepted() -> None:
    import enum

    class Color(enum.Enum):
        RED = 0
        BLUE = 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dataset in ([1, 2], (1, 2), range(2), np.arange(2), torch.arange(2), TensorDataset(torch.arange(2)), {0: 1, 1: 2}, Color):
            assert len(DataLoader(dataset)) == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_error_of_a_missing_gpu_names_both_cures() -> None:
    with pytest.raises(RuntimeError, match=r"got cuda:0, but no CUDA-capable GPU is available. Write device_id='cpu', or set TORCHDALI_DEVICE=cpu .*Write device_id=None"):
        images(device_id=0).run()
