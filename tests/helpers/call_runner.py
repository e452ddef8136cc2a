"""Run random calls, in this process or in a child process, which the real DALI may crash."""

from __future__ import annotations

import multiprocessing
import warnings
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from tests.check import Array
from tests.helpers.libraries import library
from tests.helpers.random_calls import Batch, Call, Each, Member


class Refusal(NamedTuple):
    """An exception: its class and its bases by name, and the message; no classes if the process crashed."""

    classes: tuple[str, ...]
    message: str


Outputs = list[tuple[str, str, list[Array]]]
"""Layout, type and samples of each output of each run."""
Outcome = Outputs | Refusal


def run(name: str, call: Call) -> Outcome:
    """Return a call's results, or its exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _outputs(name, call)
        except Exception as error:
            return Refusal(tuple(kind.__name__ for kind in type(error).__mro__), str(error))


def _outputs(name: str, call: Call) -> Outputs:
    lib = library(name)
    count = max((len(samples) for samples, _ in call.inputs), default=3)
    pipe = lib.Pipeline(batch_size=count, num_threads=1, device_id=None, seed=5)

    def source(batch: Batch) -> Any:
        return lib.fn.external_source(lambda: list(batch[0]), layout=batch[1] or None)

    def value(given: Any) -> Any:
        if isinstance(given, Member):
            return getattr(lib.types, given.name)
        if isinstance(given, list):
            return [value(each) for each in given]
        return source((given.samples, "")) if isinstance(given, Each) else given

    try:
        with pipe:
            nodes = [source(batch) for batch in call.inputs]
            if call.expression:
                names = {"fn": lib.fn, "types": lib.types, "math": lib.math, "np": np}
                made = eval(call.expression, names | dict(zip("abc", nodes, strict=False)))
            else:
                function = lib.fn
                for part in call.name.split("."):
                    function = getattr(function, part)
                made = function(*nodes, **{key: value(v) for key, v in call.arguments.items()})
            pipe.set_outputs(*(made if isinstance(made, (list, tuple)) else [made]))
        pipe.build()
        return [_described(out) for _ in range(call.runs) for out in pipe.run()]
    finally:
        if name == "torchdali":
            pipe.close()


def _described(out: Any) -> tuple[str, str, list[Array]]:
    return out.layout(), out.dtype.name, [np.array(out.at(i)) for i in range(len(out))]


def _serve(pipe: Connection) -> None:
    while (call := pipe.recv()) is not None:
        pipe.send(run("nvidia.dali", call))


class Child:
    """Runs calls on the real DALI in a child process, and starts a new one after each crash."""

    def __enter__(self) -> Child:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def send(self, call: Call) -> None:
        self._pipe.send(call)

    def receive(self) -> Outcome:
        """Return the outcome; no classes if the process crashed, or isn't done after a minute."""
        try:
            if self._pipe.poll(60):
                found: Outcome = self._pipe.recv()
                return found
        except EOFError:
            pass
        self.__exit__()
        self.__enter__()
        return Refusal((), "the process ended")
