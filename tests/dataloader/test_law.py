"""The law: every change by a user takes effect, as in torch's own loader.

The tests replace each function and attribute on torch's path of a sample in turn, and compare batches and the number of
calls with torch's. Tracing that path finds the functions.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import random
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import pytest
import torch
import torch.utils.data
import torchvision.transforms as v1
from torch.utils.data import ConcatDataset, Subset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2
from torchvision.transforms._presets import ImageClassification

from tests.dataloader.data import ARRAYS, FILES, in_memory, of_files, rows, write_images
from tests.dataloader.test_loader import check_equal
from torchdali import DataLoader

PACKAGES = tuple(
    os.path.dirname(module.__file__) + os.sep  # type: ignore[type-var, operator]
    for module in (sys.modules["torchvision"], sys.modules["PIL"], torch.utils.data, torch.nn)
)
FLOAT = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])]
TRANSFORMS: dict[str, list[Any]] = {
    "center crop": [v1.CenterCrop(20), v2.CenterCrop((18, 21))],
    "resize": [v1.Resize(24), v2.Resize((21, 26), max_size=None), v2.CenterCrop(18)],
    "pad": [v1.Pad(3, 7), v2.Pad([1, 2], 5, "constant"), v1.CenterCrop(22)],
    "random crop": [v1.CenterCrop(20), v1.RandomCrop(22, 1), v2.RandomCrop(24, 1, pad_if_needed=True)],
    "window": [v1.RandomResizedCrop(20, (1, 1), (1, 1)), v2.RandomResizedCrop(18, (1, 1), (1, 1))],
    "flips": [v1.CenterCrop(20), v1.RandomHorizontalFlip(1.0), v2.RandomVerticalFlip(1.0), v2.RandomHorizontalFlip(1.0)],
    "colors": [v1.CenterCrop(20), v1.RandomInvert(1.0), v2.RandomPosterize(3, 1.0), v1.RandomSolarize(99, 1.0)],
    "contrast": [v1.CenterCrop(20), v1.RandomAutocontrast(1.0), v2.RandomEqualize(1.0), v1.RandomAdjustSharpness(2, 1.0)],
    "jitter": [v1.CenterCrop(20), v1.ColorJitter((1.2, 1.2), (0.8, 0.8)), v2.ColorJitter(saturation=(0.5, 0.5), hue=(0.1, 0.1))],
    "gray": [v1.CenterCrop(20), v1.RandomGrayscale(1.0), v2.Grayscale(3), v2.RGB()],
    "bends": [v1.CenterCrop(20), v1.RandomRotation((30, 30)), v2.RandomAffine((9, 9), (0, 0), (1.1, 1.1), (5, 5))],
    "blur": [v1.CenterCrop(20), v2.GaussianBlur(3, (0.5, 0.5))],
    "perspective": [v1.CenterCrop(20), v2.RandomPerspective(0.0, 1.0), v1.RandomPerspective(0.0, 1.0)],
    "policies": [v1.CenterCrop(20), v1.RandAugment(), v2.RandAugment(), v1.AutoAugment(), v2.AutoAugment()],
    "wide": [v1.CenterCrop(20), v1.TrivialAugmentWide(), v2.TrivialAugmentWide()],
    "choices": [v1.CenterCrop(20), v1.RandomApply([v1.CenterCrop(18)], 1.0), v2.RandomChoice([v2.CenterCrop(16)]), v2.RandomOrder([v2.Pad(2)])],
    "distortion": [v1.CenterCrop(20), v2.RandomPhotometricDistort(p=1.0), v2.Identity()],
    "nested": [v2.Compose([v1.Compose([v2.CenterCrop(20)])]), torch.nn.Sequential(v1.CenterCrop(18))],
}  # fmt: skip
CHAINS: dict[str, Any] = {
    **{name: v2.Compose([*transforms, v2.PILToTensor()]) for name, transforms in TRANSFORMS.items()},
    "float, v1": v1.Compose([v1.CenterCrop(20), v1.ToTensor(), v1.Normalize([0.5] * 3, [0.2] * 3), v1.RandomErasing(1.0)]),
    "float, v2": v2.Compose([v2.CenterCrop(20), *FLOAT, v2.RandomErasing(1.0), v2.ToPureTensor()]),
    "bytes": v2.Compose([v2.CenterCrop(20), v2.ToImage(), v2.RandomInvert(1.0), v2.Pad(1), v2.RandomErasing(1.0)]),
    "converted": v1.Compose([v1.CenterCrop(20), v1.PILToTensor(), v1.ConvertImageDtype(torch.float32)]),
    "weights": ImageClassification(crop_size=20, resize_size=24),
}


class Location(NamedTuple):
    """A function or an attribute: a name in a module, a class or an object."""

    owner: Any
    name: str

    def __str__(self) -> str:
        return f"{getattr(self.owner, '__name__', type(self.owner).__name__)}.{self.name}"


class Replaced:
    """A replacement of a function, which calls it and counts the calls."""

    def __init__(self) -> None:
        self.calls = 0

    def around(self, value: Any) -> Any:
        """Return a descriptor or function that wraps one of the same kind."""
        if isinstance(value, (staticmethod, classmethod)):
            return type(value)(self.around(value.__func__))
        if isinstance(value, property):
            return property(self.around(value.fget), value.fset)

        @functools.wraps(value)
        def function(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            return value(*arguments, **named)

        return function


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root: Path = tmp_path_factory.mktemp("images")
    write_images(root)
    return sorted(str(path) for path in root.rglob("*.*") if path.suffix == ".jpg")[:4]


def datasets(paths: list[str]) -> dict[str, Any]:
    """Return each kind of dataset that is accelerated, with a chain; file datasets with all chains."""
    plain = CHAINS["center crop"]
    folder = ImageFolder.__new__(ImageFolder)
    vars(folder).update(vars(of_files("StanfordCars", paths, plain)), samples=[(path, 1) for path in paths])
    return {
        **{f"files, {name}": of_files("DTD", paths, chain) for name, chain in CHAINS.items()},
        **{name: of_files(name, paths, plain) for name in FILES},
        **{name: in_memory(name, plain) for name in ARRAYS},
        "ImageFolder": folder,
        "a part": Subset(folder, [2, 0, 1]),
        "a sum": ConcatDataset([folder, Subset(folder, [1])]),
        "rows": rows(),
        "gray": in_memory("MNIST", v1.Compose([v1.Grayscale(1), v1.ToTensor(), v1.Normalize((0.1,), (0.3,))])),
    }


def run(kind: type, dataset: Any) -> Any:
    """Return the first batch of a loader, or its error, from fixed seeds."""
    torch.manual_seed(3)
    random.seed(4)
    np.random.seed(5)
    try:
        return next(iter(kind(dataset, batch_size=2)))
    except Exception as error:
        return type(error)


def trace(dataset: Any) -> tuple[list[types.CodeType], list[Any]]:
    """Return the functions that torch's loader calls for a batch, and the objects of its methods."""
    codes: dict[int, types.CodeType] = {}
    objects: dict[int, Any] = {}

    def profile(frame: types.FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGES):
            codes[id(frame.f_code)] = frame.f_code
            this = frame.f_locals.get("self")
            if isinstance(this, (torch.nn.Module, torch.utils.data.Dataset)) or type(this).__module__.startswith("torchvision"):
                objects[id(this)] = this

    sys.setprofile(profile)
    try:
        run(torch.utils.data.DataLoader, dataset)
    finally:
        sys.setprofile(None)
    return list(codes.values()), list(objects.values())


@functools.cache
def locations() -> dict[int, list[Location]]:
    """Return the names under which modules and classes have each function, by its code."""
    result: dict[int, list[Location]] = {}

    def add(owner: Any, name: str, value: Any) -> None:
        for function in (value, getattr(value, "__func__", None), getattr(value, "fget", None)):
            if isinstance(function, types.FunctionType):
                result.setdefault(id(function.__code__), []).append(Location(owner, name))

    for module in list(sys.modules.values()):
        if not (getattr(module, "__file__", None) or "").startswith(PACKAGES):
            continue
        for name, value in list(vars(module).items()):
            add(module, name, value)
            if isinstance(value, type) and value.__module__ == module.__name__:
                for each, method in list(vars(value).items()):
                    add(value, each, method)
    return result


CONSTRUCTORS = "_log_api_usage_once"  # of torchvision, called where a plan creates a transform to compare with
LOOP = ("torch.utils.data.dataloader", "torch.utils.data.sampler")  # the loop itself, which no plan replaces


def found(dataset: Any) -> tuple[list[Location], list[Location], list[Location]]:
    """Return names of functions in modules and classes, of methods and of attributes of objects on torch's path."""
    codes, objects = trace(dataset)
    functions = [each for code in codes for each in locations().get(id(code), []) if _module(each.owner) not in LOOP]
    functions = [each for each in functions if each.name != CONSTRUCTORS]
    names = {name for code in codes for name in code.co_names}
    methods = [Location(each, code.co_name) for each in objects for code in codes if hasattr(type(each), code.co_name)]
    methods = [each for each in methods if not each.name.startswith("__") and callable(getattr(each.owner, each.name))]
    attributes = [Location(each, name) for each in objects for name in sorted(names) if _is_data(each, name)]
    return functions, _unique(methods), attributes


def _module(owner: Any) -> str:
    return str(getattr(owner, "__module__", getattr(owner, "__name__", "")))


def _unique(places: list[Location]) -> list[Location]:
    return list({(id(each.owner), each.name): each for each in places}.values())


def _is_data(owner: Any, name: str) -> bool:
    """Return True if `mutated` changes the attribute of the object or of its class."""
    if name.startswith("__") or name in ("training", "_compiled_call_impl"):
        return False
    value = vars(owner).get(name, getattr(type(owner), name, None))
    return mutated(value) is not None


def mutated(value: Any) -> Any:
    """Return another value of the same kind; None for a value that is not changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, np.integer)):
        return value + 2
    if isinstance(value, float):
        return 1.0 - value if 0 <= value <= 1 else value * 0.5
    if isinstance(value, v1.InterpolationMode):
        return v1.InterpolationMode.BICUBIC
    if isinstance(value, str):
        return "reflect" if value == "constant" else None
    if isinstance(value, (list, tuple)) and value and all(isinstance(each, (int, float)) for each in value):
        return type(value)(each + 2 if isinstance(each, int) else each * 0.75 for each in value)
    if isinstance(value, (list, tuple)) and len(value) > 1 and not isinstance(value[0], (torch.nn.Module, type)):
        return value[::-1]
    if isinstance(value, torch.Tensor) and value.dtype in (torch.uint8, torch.int64):
        return value.flip(0)
    return np.ascontiguousarray(value[::-1]) if isinstance(value, np.ndarray) else None


def check_batch(dataset: Any, place: Location) -> None:
    """Check that a batch equals torch's; only its form if an accelerated loader draws its own random numbers."""
    expected, batch = run(torch.utils.data.DataLoader, dataset), run(DataLoader, dataset)
    if is_random(dataset, expected) and is_accelerated(dataset):
        expected, batch = (each[0].new_zeros(each[0].shape) for each in (expected, batch))
    try:
        check_equal(batch, expected, 2e-6)
    except AssertionError:
        raise AssertionError(f"{place}: another batch than torch's") from None


def is_random(dataset: Any, batch: Any) -> bool:
    """Return True if torch's batch depends on random numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(30)
        random.seed(40)
        others = next(iter(torch.utils.data.DataLoader(dataset, batch_size=2))) if isinstance(batch, list) else [batch]
    return isinstance(batch, list) and not torch.equal(batch[0], others[0])


def is_accelerated(dataset: Any) -> bool:
    return not DataLoader(dataset, batch_size=2).notes[-1].startswith("not accelerated")


@contextlib.contextmanager
def patched(place: Location, value: Any) -> Iterator[None]:
    before = vars(place.owner).get(place.name, MISSING)
    setattr(place.owner, place.name, value)
    try:
        yield
    finally:
        if before is MISSING:
            delattr(place.owner, place.name)
        else:
            setattr(place.owner, place.name, before)


MISSING = object()
DONE: set[tuple[int, str]] = set()  # functions of modules and classes that several datasets share


def check_calls(dataset: Any, place: Location, value: Any) -> None:
    """Check that a replacement is called as often as in torch's loader."""
    counts = []
    for kind in (torch.utils.data.DataLoader, DataLoader):
        counter = Replaced()
        with patched(place, counter.around(value)):
            run(kind, dataset)
        counts.append(counter.calls)
    assert counts[0] == counts[1], f"{place} is called {counts[1]} times, and {counts[0]} times by torch"


@pytest.mark.thin(9)
@pytest.mark.parametrize("name", list(datasets([])))
def test_replaced_functions_and_attributes_take_effect(paths: list[str], name: str) -> None:
    dataset = datasets(paths)[name]
    if hasattr(dataset, "transform"):
        dataset.transform = copy.deepcopy(dataset.transform)
        dataset.transforms = type(dataset.transforms)(dataset.transform, None)
    assert is_accelerated(dataset), DataLoader(dataset, batch_size=2).notes
    functions, methods, attributes = found(dataset)
    fresh = [each for each in functions if (id(each.owner), each.name) not in DONE]
    DONE.update((id(each.owner), each.name) for each in fresh)
    for place in fresh:
        check_calls(dataset, place, vars(place.owner)[place.name])
    for place in methods:
        check_calls(dataset, place, getattr(place.owner, place.name))
    for place in attributes:
        value = vars(place.owner).get(place.name, getattr(type(place.owner), place.name, None))
        with patched(place, mutated(value)):
            check_batch(dataset, place)
    print(f"{name}: {len(fresh)} functions, {len(methods)} methods, {len(attributes)} attributes")


# ----------------------------------------------------------------------- user functions


class Log:
    """Writes a line per call: the function, the kind of process and thread, and the random numbers that it draws."""

    def __init__(self, path: Path) -> None:
        self.path, self.process = path, os.getpid()

    def note(self, name: str, index: object = "") -> None:
        worker = torch.utils.data.get_worker_info()
        place = f"{'main' if os.getpid() == self.process else 'worker'} {getattr(worker, 'id', '')} {threading.current_thread() is threading.main_thread()}"
        with open(self.path.with_suffix(f".{getattr(worker, 'id', 'main')}"), "a") as file:
            file.write(f"{name} {index} {place} {float(torch.rand(()))} {random.random()} {np.random.rand()}\n")

    def lines(self) -> dict[str, str]:
        return {path.suffix: path.read_text() for path in sorted(self.path.parent.glob(f"{self.path.name}.*"))}


class Noted:
    """A function whose calls are recorded; it returns its argument or another function's result."""

    def __init__(self, log: Log, name: str, function: Any = None) -> None:
        self.log, self.name, self.function = log, name, function

    def __call__(self, value: Any) -> Any:
        self.log.note(self.name, value if isinstance(value, (int, str)) else "")
        return value if self.function is None else self.function(value)


class NotedSampler(torch.utils.data.Sampler[int]):
    def __init__(self, log: Log, count: int) -> None:
        self.log, self.count = log, count

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.count):
            self.log.note("sampler")
            yield int(torch.randint(self.count, ()))

    def __len__(self) -> int:
        return self.count


class NotedFolder(ImageFolder):
    log: Log

    def __getitem__(self, index: int) -> Any:
        self.log.note("item", index)
        return super().__getitem__(index)


class NotedItems(ImageFolder):
    log: Log

    def __getitems__(self, indices: list[int]) -> Any:
        self.log.note("items", str(indices))
        return [self[index] for index in indices]


class NotedLength(ImageFolder):
    log: Log

    def __len__(self) -> int:
        self.log.note("length")
        return 3


TO_TENSOR = v2.Compose([v2.RandomCrop(20, pad_if_needed=True), v2.PILToTensor()])
FUNCTIONS: dict[str, Any] = {
    "collate_fn": lambda root, log: (ImageFolder(root, TO_TENSOR), {"collate_fn": Noted(log, "collate", torch.utils.data.default_collate)}),
    "target_transform": lambda root, log: (ImageFolder(root, TO_TENSOR, Noted(log, "target")), {}),
    "transform": lambda root, log: (ImageFolder(root, v2.Compose([Noted(log, "transform"), TO_TENSOR])), {}),
    "transform at the end": lambda root, log: (ImageFolder(root, v2.Compose([TO_TENSOR, v2.Lambda(Noted(log, "lambda"))])), {}),
    "loader": lambda root, log: (ImageFolder(root, TO_TENSOR, loader=Noted(log, "loader", _open)), {}),
    "__getitem__": lambda root, log: (_with(NotedFolder(root, TO_TENSOR), log), {}),
    "__getitems__": lambda root, log: (_with(NotedItems(root, TO_TENSOR), log), {}),
    "__len__": lambda root, log: (_with(NotedLength(root, TO_TENSOR), log), {}),
    "sampler": lambda root, log: (ImageFolder(root, TO_TENSOR), {"sampler": NotedSampler(log, 7)}),
    "batch_sampler": lambda root, log: (
        ImageFolder(root, TO_TENSOR), {"batch_sampler": torch.utils.data.BatchSampler(NotedSampler(log, 7), 2, False)}),
    "worker_init_fn": lambda root, log: (ImageFolder(root, TO_TENSOR), {"worker_init_fn": Noted(log, "worker")}),
    "all of an array": lambda root, log: (in_memory("CIFAR10", v2.Compose([Noted(log, "transform"), v2.PILToTensor()]), target_transform=Noted(log, "target")), {}),
    "collate_fn of rows": lambda root, log: (rows(), {"collate_fn": Noted(log, "collate", torch.utils.data.default_collate)}),
}  # fmt: skip


def _open(path: str) -> Any:
    return PIL.Image.open(path).convert("RGB")


def _with(dataset: Any, log: Log) -> Any:
    dataset.log = log
    return dataset


@pytest.mark.thin(5)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_user_are_called_as_by_torch(paths: list[str], tmp_path: Path, name: str, workers: int) -> None:
    lines = []
    for kind in (torch.utils.data.DataLoader, DataLoader):
        log = Log(tmp_path / kind.__module__)
        dataset, arguments = FUNCTIONS[name](str(Path(paths[0]).parents[1]), log)
        if "batch_sampler" not in arguments:
            arguments["batch_size"] = 3
        torch.manual_seed(3)
        random.seed(4)
        np.random.seed(5)
        loader = kind(dataset, num_workers=workers, **arguments)
        for _ in range(2):
            for _ in loader:
                log.note("loop")
        lines.append(log.lines())
    assert lines[0] == lines[1]


class TwoArgumentsError(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def _fail(value: Any) -> Any:
    raise TwoArgumentsError("of", "two")


def test_an_error_of_a_worker_keeps_its_class(paths: list[str]) -> None:
    dataset = ImageFolder(str(Path(paths[0]).parents[1]), TO_TENSOR, _fail)
    with pytest.raises(TwoArgumentsError, match=r"^of two$") as error:
        next(iter(DataLoader(dataset, num_workers=1)))
    assert isinstance(error.value, RuntimeError) and "Original Traceback" in str(error.value.__cause__)  # torch's own
