"""Callables with an ``if`` on a node, which pipeline functions of torchdali and of the real DALI call.

Each callable takes ``(x, condition)`` and doubles x where the condition is true. DALI rejects those in `OURS_ALONE`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


def double(x, condition, factor=2):
    if condition:
        x = x * factor
    return x


class Twice:
    def __call__(self, x, condition):
        if condition:
            x = x * 2
        return x


class Inherited(Twice):
    pass


class BySuper(Twice):
    def __call__(self, x, condition):
        return super().__call__(x, condition)


class WithSlots:
    __slots__ = ("factor",)

    def __call__(self, x, condition):
        if condition:
            x = x * 2
        return x


@dataclass
class Times:
    factor: float = 2.0

    def __call__(self, x, condition):
        if condition:
            x = x * self.factor
        return x


class Methods:
    def plain(self, x, condition, factor=2):
        if condition:
            x = x * factor
        return x

    @classmethod
    def of_class(cls, x, condition):
        if condition:
            x = x * 2
        return x

    @staticmethod
    def static(x, condition):
        if condition:
            x = x * 2
        return x

    by_two = functools.partialmethod(plain, factor=2)


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, x, condition):
        for step in self.steps:
            x = step(x, condition)
        return x


class Module(torch.nn.Module):
    def forward(self, x, condition):
        if condition:
            x = x * 2
        return x


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Module()

    def forward(self, x, condition):
        return self.inner(x, condition)


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@decorate
def decorated(x, condition):
    if condition:
        x = x * 2
    return x


@functools.singledispatch
def dispatched(x, condition):
    if condition:
        x = x * 2
    return x


def recursive(x, condition, depth=3):
    if depth > 0:
        return recursive(x, condition, depth - 1)
    if condition:
        x = x * 2
    return x


def handed_over(function, x, condition):
    return function(x, condition)


def nothing(x, condition):
    return x


def by_reduce(x, condition):
    return functools.reduce(lambda value, step: step(value, condition), [nothing, Twice()], x)


def in_a_dictionary(x, condition):
    steps = {"a": nothing, "b": Twice()}
    return steps["b"](x, condition)


def in_a_context(x, condition):
    with contextlib.nullcontext():
        return Twice()(x, condition)


def by_map(x, condition):
    return next(iter(map(Twice(), [x], [condition])))


THINGS: dict[str, Callable[..., Any]] = {
    "function": double,
    "object": Twice(),
    "inherited": Inherited(),
    "by super": BySuper(),
    "with slots": WithSlots(),
    "data class": Times(),
    "method": Methods().plain,
    "class method": Methods.of_class,
    "static method": Methods().static,
    "partial method": lambda x, c: Methods().by_two(x, c),
    "unbound method": lambda x, c: Methods.plain(Methods(), x, c),
    "its __call__": lambda x, c: Twice().__call__(x, c),
    "partial": functools.partial(double, factor=2),
    "partial of partial": functools.partial(functools.partial(double, factor=3), factor=2),
    "partial of method": functools.partial(Methods().plain, factor=2),
    "partial of object": functools.partial(Twice()),
    "partial of lambda": functools.partial(lambda x, c, k: double(x, c, k), k=2),
    "composed": Compose([nothing, Twice(), functools.partial(nothing)]),
    "composed twice": Compose([Compose([Twice()]), nothing]),
    "module": Module(),
    "modules": Outer(),
    "decorated": decorated,
    "dispatched": dispatched,
    "recursive": recursive,
    "handed over": lambda x, c: handed_over(Twice(), x, c),
    "partial handed over": lambda x, c: handed_over(functools.partial(double, factor=2), x, c),
    "in a list": lambda x, c: [step(x, c) for step in [nothing, Twice()]][1],
    "in a dictionary": in_a_dictionary,
    "in a context": in_a_context,
    "by reduce": by_reduce,
    "by map": by_map,
}
OURS_ALONE = {"by map"}


def results(package: Any, thing: Callable[..., Any]) -> list[float]:
    """Return a callable's results for 1, 2, 3, 4, if the condition is true, false, true, false."""
    fn = package.fn

    def define():
        x = fn.external_source(source=lambda: [np.float32(i) for i in (1, 2, 3, 4)])
        condition = fn.external_source(source=lambda: [np.bool_(i % 2) for i in (1, 2, 3, 4)])
        return thing(x, condition)

    pipe = package.pipeline_def(define, batch_size=4, num_threads=1, device_id=None, enable_conditionals=True)()
    pipe.build()
    (output,) = pipe.run()
    return [float(output.at(i)) for i in range(4)]
