"""An operator that reads values from all places outside of it, and a program that changes them between epochs."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import PIL.Image
import torch

from tests.helpers import outside_settings
from tests.helpers.inside import executor_of, pool_of
from torchdali import fn, operator, pipeline_def
from torchdali.declaration.schema import Image

NUMBER = 0.0
NUMBERS = [0.0]
BY_NAME = {"strength": 0.0}
ARRAY = np.zeros(3)
TENSOR = torch.zeros(3)
SETTINGS = SimpleNamespace(strength=0.0)
LATER: Any = None


class Settings:
    strength = 0.0


class Adder:
    """An object of which a method is called, with a state."""

    def __init__(self) -> None:
        self.strength = 0.0

    def add(self) -> float:
        return self.strength + NUMBER - NUMBER


ADDER = Adder()


class Strength:
    """An object that is given to an operator."""

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self) -> float:
        return self.value


GIVEN = Strength()


def closed() -> tuple[Callable[[], float], Callable[[float], None]]:
    strength = 0.0

    def get() -> float:
        return strength

    def put(value: float) -> None:
        nonlocal strength
        strength = value

    return get, put


get, put = closed()


def helper() -> float:
    return NUMBER


def doubled(function: Callable[[], float]) -> Callable[[], float]:
    @functools.wraps(function)
    def wrapper() -> float:
        return 2 * function()

    return wrapper


@doubled
def decorated() -> float:
    return NUMBERS[0]


def with_default(values: Any = (0.0,)) -> float:
    return float(values[0])


def with_keyword(*, value: float = 0.0) -> float:
    return value


def with_attribute() -> float:
    return float(with_attribute.strength)  # type: ignore[attr-defined]


with_attribute.strength = 0.0  # type: ignore[attr-defined]
chosen: Callable[[], float] = with_default


def of_argument(value: Any) -> float:
    return float(value.strength)


bound = functools.partial(of_argument, SETTINGS)

PLACES: dict[str, Callable[[], float]] = {
    "a global": lambda: NUMBER,
    "a global of a helper": helper,
    "a list": lambda: NUMBERS[0],
    "a list, decorated": lambda: decorated() / 2,
    "a dictionary": lambda: BY_NAME["strength"],
    "an array": lambda: float(ARRAY[1]),
    "a tensor": lambda: float(TENSOR[1]),
    "an object": lambda: SETTINGS.strength,
    "a method": lambda: ADDER.add(),
    "a class": lambda: Settings.strength,
    "another module": lambda: outside_settings.strength,
    "a closure": lambda: get(),
    "defaults": lambda: with_default(),
    "keyword defaults": lambda: with_keyword(),
    "an attribute of a function": lambda: with_attribute(),
    "another function": lambda: chosen(),
    "arguments of a partial": lambda: bound(),
    "what was nothing": lambda: 0.0 if LATER is None else LATER[0],
}


@operator(name="_outside")
def adds_outside(image: Image, /, *, given: Any = None) -> Image:
    """Return the values that are read from outside."""
    values = [place() for place in PLACES.values()]
    return torch.tensor([*values, given()], dtype=torch.float64)


NAMES = [*PLACES, "an object that is given"]


def change(value: float) -> None:
    """Change the values in all places."""
    global NUMBER, LATER, chosen
    NUMBER = LATER = value
    LATER = [value]
    NUMBERS[0] = BY_NAME["strength"] = ARRAY[1] = TENSOR[1] = value
    SETTINGS.strength = ADDER.strength = GIVEN.value = Settings.strength = outside_settings.strength = value
    put(value)
    with_default.__defaults__ = ((value,),)
    with_keyword.__kwdefaults__ = {"value": value}
    with_attribute.strength = value  # type: ignore[attr-defined]
    chosen = with_default if value % 2 else with_keyword


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def define(root: str) -> Any:
    data, label = fn.readers.file(file_root=root, random_shuffle=True, name="Reader")
    images = fn.decoders.image(data)
    number = fn.random.uniform(range=[0.0, 1.0])
    return adds_outside(images, given=GIVEN), label, number, fn.resize(images, size=[5, 6])


def pictures(root: Path, count: int = 24) -> str:
    (root / "0").mkdir()
    for i in range(count):
        pixels = np.random.default_rng(i).integers(0, 256, (30 + i, 40, 3)).astype(np.uint8)
        PIL.Image.fromarray(pixels).save(root / "0" / f"{i:02}.png")
    return str(root)


def epochs(root: str, *, changes: bool = True, count: int = 3, **options: Any) -> tuple[list[Any], list[Any], str]:
    """Run epochs, with other values in each: what was read, all else that was computed, and where."""
    change(0.0)
    pipe = define(root, **options)
    pipe.build()
    read, rest = [], []
    for epoch in range(count):
        change(float(epoch * changes))
        batches = [pipe.run() for _ in range(6)]
        read.append(sorted({tuple(s.tolist()) for values, *_ in batches for s in values.samples()}))
        rest.append([[s.flatten().tolist() for s in each.samples()] for _, *others in batches for each in others])
    placing = str(executor_of(pipe).placing)
    pipe.close()
    return read, rest, placing


def after_replacement(root: str) -> tuple[list[float], int]:
    """The values that are read after all processes were replaced, and the number of processes of before."""
    global LATER
    change(0.0)
    pipe = define(root, num_processes=2)
    pipe.run()
    pool = pool_of(pipe)
    first = {worker.process.pid for worker in pool.workers}
    change(3.0)
    for worker in pool.workers:
        worker.process.kill()
    while pool.replaced < 2:
        pipe.run()
    for _ in range(6):  # the rest of an epoch, and more
        values, *_ = pipe.run()
    found = sorted({value for sample in values.samples() for value in sample.tolist()})
    left = first & {worker.process.pid for worker in pool.workers}
    pipe.close()
    return found, len(left)


def warnings_of_what_cannot_be_sent(root: str) -> list[str]:
    """The warnings when a global becomes something that cannot be pickled, in three epochs."""
    global LATER
    change(0.0)
    pipe = define(root, num_processes=2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            LATER = [0.0, threading.Lock()]
            for _ in range(6):
                pipe.run()
    pipe.close()
    return [str(each.message) for each in seen]
