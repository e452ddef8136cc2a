"""Errors of a `Loader` for arguments of a DataLoader and of torchvision, and the line that the errors name."""

from __future__ import annotations

import functools
import inspect
import pickle
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import v2

from tests.helpers.inside import pipeline_of
from torchdali import Loader, fn, pipeline_def

HERE = Path(__file__)
DATA_LOADER = inspect.signature(torch.utils.data.DataLoader).parameters.keys() - {"dataset"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pictures")
    for k in range(6):
        (made / f"{k % 2}").mkdir(exist_ok=True)
        pixels = np.full((48, 64, 3), 30 * k, np.uint8)
        pixels[:, :8], pixels[:3] = 255, 200
        Image.fromarray(pixels).save(made / f"{k % 2}" / f"{k}.png")
    return made


def load(root: Any, **options: Any) -> Loader:
    return Loader.from_folder(root, **{"train": True, "size": 16, "batch_size": 2, "seed": 1, "num_threads": 1, **options})


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def numbers() -> Any:
    return fn.readers.dataset(dataset=[np.int32(k) for k in range(4)], name="Reader")


# ------------------------------------------------------- common mistakes


def arguments_of(call: Any) -> set[str]:
    return set(inspect.signature(call).parameters)


OF_FOLDERS = sorted((DATA_LOADER - arguments_of(Loader.from_folder)) | {
    "crop_size", "is_train", "loader", "split", "is_valid_file", "allow_empty", "normalize", "device", "target_transform", "training",
    "resize", "image_size", "transform",
})  # fmt: skip
OF_PIPELINES = sorted((DATA_LOADER - arguments_of(Loader)) | {
    "auto_reset", "last_batch_padded", "fill_last_batch", "dynamic_shape", "seed", "target_transform", "output_map", "device_id",
    "last_batch_policy", "transform",
})  # fmt: skip


def error_text(call: Callable[..., Any], name: str, argument: str) -> str:
    """Return the text of an error after the argument's name."""
    with pytest.raises(TypeError, match=re.escape(f"{name}() got an unexpected keyword argument {argument!r}: ")) as said:
        call(**{argument: 1})
    return str(said.value).partition(f"{argument!r}: ")[2]


@pytest.mark.parametrize("argument", OF_FOLDERS)
def test_errors_of_common_folder_arguments(argument: str, root: Path) -> None:
    with pytest.raises(TypeError, match=rf"^Loader\.from_folder\(\) got an unexpected keyword argument '{argument}': \w") as said:
        load(root, **{argument: 1})
    assert frames(said.value) == [("_habits.py", "call")]


@pytest.mark.parametrize("argument", OF_PIPELINES)
@pytest.mark.parametrize("pipeline", [numbers, numbers()], ids=["function", "pipeline"])
def test_errors_of_common_pipeline_arguments(argument: str, pipeline: Any) -> None:
    assert error_text(functools.partial(Loader, pipeline), "Loader", argument)


def test_arguments_that_errors_suggest_are_accepted(root: Path) -> None:
    """All names that the errors suggest exist."""
    others = arguments_of(Loader) | arguments_of(Loader.from_folder) | {"random_shuffle", "py_start_method"}
    for call, name, habits, own in (
        (functools.partial(load, root), "Loader.from_folder", OF_FOLDERS, set()),
        (functools.partial(Loader, numbers), "Loader", OF_PIPELINES, arguments_of(pipeline_def)),
    ):
        answers = " ".join(error_text(call, name, argument) for argument in habits)
        assert set(re.findall(r"\b([a-z_]+)=", answers)) <= own | others


@pytest.mark.parametrize("call, message", [
    (lambda root: load(root, batchsize=4), r"from_folder\(\) got .* 'batchsize'; did you mean batch_size\?"),
    (lambda root: load(root, augmnt="rand"), "did you mean augment"),
    (lambda root: load(root, nonsense=4), r"argument 'nonsense'$"),
    (lambda root: Loader(numbers, output=["a"]), r"Loader\(\) got .* 'output'; did you mean outputs\?"),
])  # fmt: skip
def test_misspelt_arguments(call: Callable[[Path], Any], message: str, root: Path) -> None:
    with pytest.raises(TypeError, match=message):
        call(root)


# ---------------------------------------------------------------- lines


def frames(error: BaseException) -> list[tuple[str, str]]:
    """Return the frames of torchdali in a traceback: file and function."""
    entries = traceback.extract_tb(error.__traceback__)
    return [(Path(each.filename).name, each.name) for each in entries if f"{HERE.parents[2] / 'torchdali'}" in each.filename]


def folder_of(root: Path, tmp_path: Path, form: str) -> Path:
    made = tmp_path / form
    (made / "a").mkdir(parents=True)
    if form == "flat":
        (made / "a").rmdir()
        (made / "1.png").write_bytes((root / "0" / "0.png").read_bytes())
    if form == "broken":
        (made / "a" / "1.png").write_bytes(b"broken")
    if form == "text":
        (made / "a" / "1.txt").write_text("text")
    return made


# Mistake, and the message. The call itself raises all errors, with one frame of torchdali.
AT_ONCE: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a cache of no size": ({"cache": "lots"}, ValueError, r"cache must be a size in memory .*'\./lots'\), got 'lots'"),
    "a cache in percent": ({"cache": "80%"}, ValueError, "cache must be a size .*, got '80%'"),
    "a cache that is True": ({"cache": True}, ValueError, "cache must be a size .*, got True"),
    "an unknown augmentation": ({"augment": "mixup"}, ValueError, "one of auto, rand, trivial"),
    "a list of augmentations": ({"augment": ["rand"]}, (TypeError, ValueError), r"augment must be .*, got \['rand'\]"),
    "NumPy in an augmentation": ({"augment": lambda images: images.numpy()}, AttributeError, "no attribute 'numpy'"),
    "another policy": ({"bad_samples": "ignore"}, ValueError, "'raise', 'skip' or 'replace'"),
    "no processes": ({"num_processes": -1}, ValueError, "num_processes must be positive"),
    "no queue": ({"prefetch_queue_depth": 0}, (ValueError, RuntimeError), "prefetch_queue_depth"),
    "augmentation in a test": ({"train": False, "augment": "rand"}, ValueError, "use it with train=True"),
    "a text as size": ({"size": "24"}, ValueError, "size must be .*, got '24'"),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ONCE)
def test_the_call_raises_errors_of_arguments(name: str, root: Path) -> None:
    options, kind, message = AT_ONCE[name]
    with pytest.raises(kind, match=message) as said:
        load(root, **options)
    assert frames(said.value) == [("_habits.py", "call")]


def test_the_call_raises_the_error_of_a_folder_without_classes(root: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"a folder for each class, as in .*flat/cat/1\.jpg") as said:
        load(folder_of(root, tmp_path, "flat"))
    assert frames(said.value) == [("_habits.py", "call")]


@pytest.mark.parametrize("form, message", [("empty", "no files found"), ("text", "no files found"), ("broken", "1.png")])
@pytest.mark.parametrize("use", [len, lambda loader: loader.classes, list, lambda loader: loader.state_dict()])
def test_later_errors_name_the_line_of_the_call(form: str, message: str, use: Any, root: Path, tmp_path: Path) -> None:
    loader = load(folder_of(root, tmp_path, form))
    with pytest.raises(RuntimeError, match=message) as said:
        use(loader)
        list(loader)
    assert f'File "{HERE}", line {load.__code__.co_firstlineno + 1}, in load' in str(said.value)
    assert "use(loader)" not in str(said.value)
    assert len(frames(said.value)) <= 2


def test_the_graph_names_the_line_of_the_call(root: Path) -> None:
    def augment(images: Any) -> Any:
        return fn.gaussian_blur(images, sigma=1.0)

    loader = load(root, augment=augment)
    for each in (loader, pickle.loads(pickle.dumps(load(root)))):
        nodes = each.pipeline._graph.nodes if hasattr(each.pipeline, "_graph") else each.pipeline._planned.plan.graph.nodes
        lines = {node.operator.name: node.lines[0] for node in nodes if node.lines}
        blur = lines.pop("gaussian_blur", None)
        assert {(line.file, line.line) for line in lines.values()} == {(str(HERE), load.__code__.co_firstlineno + 1)}
        if blur is not None:
            assert (blur.file, blur.line) == (str(HERE), augment.__code__.co_firstlineno + 1)


def test_a_loader_of_a_function_has_few_frames_of_ours() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def wrong() -> Any:
        return fn.resize(fn.constant(idata=[1]), sise=3)

    for use in (len, lambda loader: next(iter(loader)), lambda loader: loader.state_dict(), lambda loader: loader.batch_size):
        with pytest.raises(Exception, match="sise") as said:
            use(Loader(wrong))
        assert len(frames(said.value)) <= 2


def test_nothing_is_started_by_the_call(root: Path) -> None:
    loader = load(root)
    assert repr(loader) == "<Loader, not yet used>" and not pipeline_of(loader).is_built
    assert sum(len(labels) for _, labels in loader) == 6


# ---------------------------------------------------------------- sizes and augmentations


@pytest.mark.parametrize("size", [(24, 48), [48, 24], (16, 16)])
@pytest.mark.parametrize("options", [{"train": True}, {"train": False}, {"train": False, "cache": "1MB"}], ids=str)
def test_rectangles(size: Any, options: dict[str, Any], root: Path) -> None:
    for images, _ in load(root, size=size, **options):
        assert images.shape == (2, 3, *size)


def test_two_equal_sizes_equal_one_size(root: Path) -> None:
    for train in (True, False):
        one, two = (torch.cat([x for x, _ in load(root, size=size, train=train)]) for size in (20, (20, 20)))
        assert torch.equal(one, two)


def test_a_rectangle_without_training_is_the_center(root: Path) -> None:
    """Height and width cover 0.875 of the image at most; the aspect ratio is kept."""
    mean, std = [0, 0, 0], [1, 1, 1]
    ((image, _), *_) = load(root, size=(42, 28), train=False, mean=mean, std=std)
    assert image[0, :, 0].amax() * 255 < 1  # the bright rows at the top are cropped, as 42 of 48 rows are used
    assert image[0, :, :, 0].amax() * 255 < 1


def even(root: Path) -> Path:
    """Write a folder of constant images, which no crop changes."""
    for k in range(4):
        (root / f"{k % 2}").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 20), (60 * k, 10, 0)).save(root / f"{k % 2}" / f"{k}.png")
    return root


@pytest.mark.parametrize(
    ("transform", "color"),
    [
        (v2.RandomInvert(1.0), lambda k: (255 - 60 * k, 245, 255)),
        (transforms.RandomInvert(1.0), lambda k: (255 - 60 * k, 245, 255)),
        (v2.Compose([v2.RandomHorizontalFlip(), v2.RandomPosterize(1, p=1.0)]), lambda k: (60 * k & 128, 0, 0)),
        (torch.nn.Sequential(v2.RandomInvert(1.0), v2.RandomInvert(1.0)), lambda k: (60 * k, 10, 0)),
        (v2.RandomApply([v2.RandomSolarize(0, p=1.0)], 1.0), lambda k: (255 - 60 * k, 245, 255)),
        (v2.CenterCrop(10), lambda k: (60 * k, 10, 0)),
        (transforms.Compose([]), lambda k: (60 * k, 10, 0)),
    ],
    ids=["v2", "v1", "Compose", "Sequential", "RandomApply", "another size", "none"],
)
def test_transforms_of_torchvision_augment(transform: Any, color: Callable[[int], tuple[int, ...]], tmp_path: Path) -> None:
    loader = load(even(tmp_path), augment=transform, mean=[0, 0, 0], std=[1, 1, 1], batch_size=4)
    ((images, _),) = loader
    assert images.shape[2] == (10 if isinstance(transform, v2.CenterCrop) else 16)
    assert (images == images[:, :, :1, :1]).all()
    colors = sorted(map(tuple, (images[:, :, 0, 0] * 255).round().int().tolist()))
    assert colors == sorted(color(k) for k in range(4))


def test_transforms_of_torchvision_draw_by_the_seed(root: Path) -> None:
    jitter = v2.Compose([v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandAugment(), v2.GaussianBlur(3)])
    epochs = [torch.cat([images for images, _ in load(root, augment=jitter, seed=seed)]) for seed in (1, 1, 2)]
    assert torch.equal(epochs[0], epochs[1]) and not torch.equal(epochs[0], epochs[2])


@pytest.mark.parametrize(
    ("transform", "error", "text"),
    [
        (v2.ElasticTransform(), TypeError, r"augment=ElasticTransform is a torchvision transform.*fn\.torch_python_function\(images, function=one.*ElasticTransform must be a supported transform"),
        (v2.Compose([v2.RandomInvert(), v2.Lambda(abs)]), TypeError, "augment=Compose is a torchvision transform.*; Lambda must be a supported transform"),
        (v2.Grayscale(1), TypeError, "Grayscale must be a supported transform"),
        (transforms.ToTensor(), ValueError, "remove ToTensor from augment: size, mean and std already"),
        (v2.ToImage(), ValueError, "remove ToImage from augment"),
        (v2.ToDtype(torch.float32, scale=True), ValueError, "remove ToDtype from augment"),
        (v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()]), ValueError, "remove RandomResizedCrop from augment"),
        (v2.Compose([v2.RandomInvert(), v2.Normalize([0.5], [0.5])]), ValueError, "remove Normalize from augment"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_transforms_that_augment_rejects(transform: Any, error: type[Exception], text: str, root: Path) -> None:
    with pytest.raises(error, match=text):
        load(root, augment=transform)


def test_the_suggested_code_works(root: Path) -> None:
    transform = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.ElasticTransform(1.0, 1.0)])
    with pytest.raises(TypeError, match="augment=Compose is a torchvision transform"):
        load(root, augment=transform)

    def one(image: Any) -> Any:
        return transform(image.permute(2, 0, 1)).permute(1, 2, 0)

    function = functools.partial(fn.torch_python_function, function=one, batch_processing=False)
    for images, _ in load(root, augment=lambda images: function(images)):
        assert images.shape == (2, 3, 16, 16)
