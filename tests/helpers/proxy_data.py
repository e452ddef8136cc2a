"""Datasets of the proxy's tests, in a separate module so that spawned workers find them."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import torch

LENGTH = 10


def vector(value: float) -> np.ndarray[Any, Any]:
    return np.full(3, value, np.float32)


class Made(torch.utils.data.Dataset[Any]):
    """Sample ``i`` is ``make(proxy, i)``."""

    def __init__(self, proxy: Any, make: Callable[[Any, int], Any], length: int = LENGTH) -> None:
        self.proxy, self.make, self.length = proxy, make, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return self.make(self.proxy, index)


class Streamed(torch.utils.data.IterableDataset[Any]):
    """The same samples as an iterable; the workers divide the indices."""

    def __init__(self, proxy: Any, make: Callable[[Any, int], Any]) -> None:
        self.proxy, self.make = proxy, make

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, LENGTH, step):
            yield self.make(self.proxy, index)


def labelled(proxy: Any, i: int) -> Any:
    return proxy(vector(i)), i


def plain(proxy: Any, i: int) -> Any:
    return proxy(vector(i))


class Named(NamedTuple):
    """A sample with named values."""

    image: Any
    n: Any


def in_tuple(proxy: Any, i: int) -> Any:
    return (proxy(vector(i)),)


def in_dictionary(proxy: Any, i: int) -> Any:
    return {"image": proxy(vector(i))}


def in_named_tuple(proxy: Any, i: int) -> Any:
    return Named(proxy(vector(i)), i)


def in_lists(proxy: Any, i: int) -> Any:
    return [[proxy(vector(i))], {"n": (i,)}]


def repeated(proxy: Any, i: int) -> Any:
    return (proxy(vector(i)),) * 2


def called_twice(proxy: Any, i: int) -> Any:
    return proxy(vector(i)), proxy(vector(i + 100))


def first_call(proxy: Any, i: int) -> Any:
    return called_twice(proxy, i)[0]


def second_call(proxy: Any, i: int) -> Any:
    return called_twice(proxy, i)[1]


def not_called(proxy: Any, i: int) -> Any:
    return i


def row(proxy: Any, i: int) -> Any:
    return proxy(np.full(1000, i, np.int32))


def as_tensor(proxy: Any, i: int) -> Any:
    return proxy(torch.full((3,), float(i))), i


def ragged(proxy: Any, i: int) -> Any:
    return proxy(np.full(i + 1, i, np.float32)), i


def by_position(proxy: Any, i: int) -> Any:
    return proxy(vector(i), vector(10))


def by_name(proxy: Any, i: int) -> Any:
    return proxy(right=vector(10), left=vector(i))


def mixed(proxy: Any, i: int) -> Any:
    return proxy(vector(i), right=vector(10))


def nested(proxy: Any, i: int) -> Any:
    return {"a": proxy(vector(i)), "b": {"c": [proxy(vector(i + 100)), i]}}


def both(proxies: Any, i: int) -> Any:
    return proxies[0](vector(i)), proxies[1](vector(i))


def fails_at_5(proxy: Any, i: int) -> Any:
    if i == 5:
        raise ZeroDivisionError("the dataset cannot")
    return proxy(vector(i))


def bad_bytes_at_5(proxy: Any, i: int) -> Any:
    picture = io.BytesIO()
    PIL.Image.new("RGB", (4, 3), (i, i, i)).save(picture, "png")
    return proxy(b"no picture" if i == 5 else picture.getvalue())


def some_only(proxy: Any, i: int) -> Any:
    return proxy(vector(i)) if i % 2 == 0 else torch.from_numpy(vector(i))


def other_type_at_2(proxy: Any, i: int) -> Any:
    return proxy(vector(i) if i != 2 else np.zeros(3, np.int32))


def dies_at_6(proxy: Any, i: int) -> Any:
    if i == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return proxy(vector(i))


def stops_at_6(proxy: Any, i: int) -> Any:
    if i == 6:
        os.kill(os.getpid(), signal.SIGSTOP)
    return proxy(vector(i))


def never_returns_at_6(proxy: Any, i: int) -> Any:
    if i == 6:
        threading.Event().wait()
    return proxy(vector(i))


def never_returns_from_6(proxy: Any, i: int) -> Any:
    if i >= 6:
        threading.Event().wait()
    return proxy(vector(i))


@dataclass
class Pair:
    left: Any
    right: Any


def as_list(samples: list[Any]) -> Any:
    return samples


def as_pair(samples: list[Any]) -> Any:
    return Pair(torch.stack([s[0] for s in samples]), [s[1] for s in samples])
