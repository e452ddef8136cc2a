"""A warning if a pipeline function draws from Python's, NumPy's or torch's generator, as the numbers are drawn only once."""

from __future__ import annotations

import random
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from torchdali import Pipeline, auto_aug, fn, pipeline_def, types
from torchdali.reading import user_random


def image() -> Any:
    return fn.constant(idata=[1] * 12, shape=[2, 2, 3], layout="HWC", dtype=types.UINT8)


def build(function: Callable[[], Any], **options: Any) -> Pipeline:
    return pipeline_def(batch_size=2, num_threads=1, device_id=None, **options)(function)()


DRAWING: dict[str, tuple[Callable[[], Any], str]] = {
    "random": (lambda: fn.rotate(image(), angle=random.uniform(-30, 30)), "Python's `random`"),
    "numpy": (lambda: fn.rotate(image(), angle=np.random.uniform(-30, 30)), "`numpy.random`"),
    "torch": (lambda: fn.rotate(image(), angle=torch.rand(1).item()), "`torch`"),
    "at the end": (lambda: (image(), np.random.uniform())[0], "`numpy.random`"),
    "a branch": (lambda: fn.flip(image()) if random.random() < 0.5 else image(), "Python's `random`"),
}


@pytest.mark.parametrize("options", [{}, {"enable_conditionals": True}])
@pytest.mark.parametrize("name", DRAWING)
def test_drawing_warns_once(name: str, options: dict[str, Any]) -> None:
    function, generator = DRAWING[name]
    with pytest.warns(UserWarning, match=rf"drawn from {generator}.*the same number.*use fn\.random\.uniform") as said:
        build(function, **options)
    assert len(said) == 1
    if name in ("random", "numpy", "torch"):  # others are drawn before the operators of `image`, or after all
        assert (said[0].filename, said[0].lineno) == (__file__, function.__code__.co_firstlineno)


@pytest.mark.parametrize("name", ["random", "numpy"])
def test_drawing_the_last_number_of_a_block_warns(name: str) -> None:
    draw = {"random": random.random, "numpy": np.random.uniform}[name]
    random.seed(1), np.random.seed(1)
    for _ in range(311):  # a number takes two of a block's 624 words
        draw()
    with pytest.warns(UserWarning, match="the same number"):
        build(DRAWING[name][0])


def _seeds() -> Any:
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    return image()


class Augmented:
    """A dataset that draws for each sample."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return np.random.uniform(size=3), random.random(), torch.rand(2)


SILENT: dict[str, Callable[[], Any]] = {
    "seeding": _seeds,
    "random operators": lambda: fn.rotate(fn.noise.gaussian(image()), angle=fn.random.uniform(range=[0, 9])),
    "augmentations": lambda: auto_aug.rand_augment.rand_augment(image(), n=2, m=9, shape=(2, 2)),
    "trivial": lambda: auto_aug.trivial_augment.trivial_augment_wide(image()),
    "a data set": lambda: tuple(fn.readers.dataset(dataset=Augmented())),
    "a loader as a source": lambda: fn.external_source(torch.utils.data.DataLoader([1.0] * 4, batch_size=2)),
    "a source": lambda: fn.external_source(lambda: np.random.uniform(size=(2, 2)), name="drawn at each batch"),
}


@pytest.mark.parametrize("name", SILENT)
def test_other_pipeline_functions_do_not_warn(name: str) -> None:
    random.random(), np.random.rand(), torch.rand(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(SILENT[name], enable_conditionals=True).run()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how long a thread has worked")
def test_a_dataset_of_another_pipeline_may_draw_concurrently() -> None:
    class Drawing(Augmented):
        def __getitem__(self, index: int) -> Any:
            drawn = super().__getitem__(index)
            if threading.current_thread() is not threading.main_thread():
                began.set()
                assert goes_on.wait(20)
                torch.rand(1)
                ended.set()
            return drawn

    began, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def second() -> Any:
        goes_on.set()
        assert ended.wait(20)
        return image()

    with build(lambda: tuple(fn.readers.dataset(dataset=Drawing()))) as first, warnings.catch_warnings():
        warnings.simplefilter("error")
        first.schedule_run()
        assert began.wait(20)
        build(second)
        first.share_outputs()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("reading", [1, 2])
def test_a_thread_may_draw_while_the_generators_are_read(moment: str, reading: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, readings, read = 0.0, 0, torch.get_rng_state

    def read_while_a_thread_draws() -> torch.Tensor:
        nonlocal seconds, readings
        readings += 1
        states = read() if moment == "after" else None
        if readings == reading:
            torch.rand(1)
            seconds = 1.0
        return read() if states is None else states

    monkeypatch.setattr(torch, "get_rng_state", read_while_a_thread_draws)
    monkeypatch.setattr(user_random, "processor_time", lambda: seconds)
    draws = user_random.TracedDraws("pipe")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draws.warn()
        draws.warn()


def test_debug_mode_draws_for_each_batch() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(lambda: image() * random.random(), debug=True).run()
