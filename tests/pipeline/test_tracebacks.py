"""Tracebacks for users: their own frames and the operator's, and no batch is kept alive."""

from __future__ import annotations

import gc
import io
import traceback
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from tests.helpers import pages, proxy_data
from tests.helpers.garbage import let_go
from tests.helpers.native import switched_off
from torchdali import Loader, fn, operator, ops, pipeline_def
from torchdali.errors import PipelineError
from torchdali.execute.executor import Executor
from torchdali.graph import nodes
from torchdali.graph.nodes import user_line
from torchdali.plugin.pytorch import DALIGenericIterator
from torchdali.plugin.pytorch.experimental import proxy


@pytest.fixture(autouse=True)
def python_path() -> Iterator[None]:
    """Run on the Python path, whose frames these are, even if the fast path is installed."""
    with switched_off():
        yield


OPTIONS: Any = {"batch_size": 2, "num_threads": 2, "device_id": None}
IMAGE = np.zeros((4, 5, 3), np.uint8)


def _source() -> Any:
    return fn.external_source(lambda: [IMAGE, IMAGE], layout="HWC")


def _made(function: Callable[[], Any], **options: Any) -> Any:
    return pipeline_def(**OPTIONS, **options)(function)()


def _failure(call: Callable[[], Any]) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


def _frames(error: BaseException | None) -> list[str]:
    assert error is not None
    return [f"{Path(f.filename).stem}.{f.name}" for f in traceback.extract_tb(error.__traceback__)]


def _truncated() -> bytes:
    picture = io.BytesIO()
    PIL.Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)).save(picture, "jpeg")
    return picture.getvalue()[:300]


def helper(x: Any) -> Any:
    return x[99]


def mine(x: Any) -> Any:
    return helper(x)


def by_sample(info: Any) -> Any:
    return helper([])


def by_batch() -> Any:
    return helper([])


def wrong_path() -> Any:
    return fn.readers.file(files=["nowhere.jpg"])[0]


def truncated() -> Any:
    data = fn.external_source(lambda: [np.frombuffer(_truncated(), np.uint8)] * 2)
    return fn.decoders.image(data)


def misspelt() -> Any:
    return fn.crop(_source(), cropp=(2, 2))


def wrong_dtype() -> Any:
    return fn.lookup_table(fn.cast(_source(), dtype=torch.float32), keys=[1], values=[2])


def python_function() -> Any:
    return fn.python_function(_source(), function=mine)


def source_of_samples() -> Any:
    return fn.external_source(by_sample, batch=False)


def source_of_batches() -> Any:
    return fn.external_source(by_batch)


def source_in_parallel() -> Any:
    return fn.external_source(by_sample, batch=False, parallel=True)


def branch() -> Any:
    image = _source()
    if fn.constant(idata=1, shape=[]) == 1:
        return fn.crop(image, crop=(10, 10))
    return image


THIS = "test_tracebacks."
RUN = [f"{THIS}_failure", "_pipeline.run"]
MADE = [f"{THIS}_failure", f"{THIS}<lambda>", f"{THIS}_made", "_factory.create"]

# code that runs: frames of the error, frames of its causes from the first on
RUNNING: dict[Callable[[], Any], tuple[list[str], list[list[str]]]] = {
    truncated: (RUN, [["images.decode"]]),
    wrong_dtype: (RUN, [["preparing.run"]]),  # no other frame shows the location
    python_function: (RUN, [[], [f"{THIS}mine", f"{THIS}helper"]]),
    source_of_samples: ([*RUN, f"{THIS}by_sample", f"{THIS}helper"], []),
    source_of_batches: ([*RUN, f"{THIS}by_batch", f"{THIS}helper"], []),
    source_in_parallel: (RUN, [[]]),
    branch: (RUN, [["window.intersect"]]),
}  # fmt: skip


@pytest.mark.parametrize("function", RUNNING)
def test_frames_of_a_run(function: Callable[[], Any]) -> None:
    frames, causes = RUNNING[function]
    parallel = {"py_num_workers": 1, "py_start_method": "fork"} if function is source_in_parallel else {}
    pipe = _made(function, enable_conditionals=function is branch, **parallel)
    error: BaseException | None = _failure(pipe.run)
    assert _frames(error) == frames
    for expected in causes:
        assert error is not None
        error = error.__cause__
        kept = _frames(error)
        assert kept[: len(expected)] == expected
        assert len(kept) <= len(expected) + 1  # a frame of another package below
    pipe.close()


def test_worker_processes_show_the_same() -> None:
    pipe = _made(source_in_parallel, py_num_workers=1, py_start_method="fork")
    text = str(_failure(pipe.run).__cause__)
    pipe.close()
    assert "by_sample" in text and "helper" in text
    assert "workers.py" not in text and "callbacks.py" not in text


@pytest.mark.parametrize("function", [misspelt, wrong_path])
def test_frames_of_a_definition(function: Callable[[], Any]) -> None:
    pipe = None if function is misspelt else _made(function)
    error = _failure((lambda: _made(function)) if pipe is None else pipe.run)
    if function is misspelt:
        assert _frames(error) == [*MADE, f"{THIS}misspelt", "schema.check_known"]
    else:
        assert _frames(error) == RUN
        assert _frames(error.__cause__) == ["files._read"]


def test_frames_of_eager_calls_and_of_classes() -> None:
    at_once = _failure(lambda: fn.crop(torch.zeros(4, 5, 3), crop=(10, 10)))
    assert _frames(at_once)[2:] == ["decorators.function", "window.intersect"]
    of_class = _failure(lambda: ops.Crop(cropp=(1, 1)))
    assert _frames(of_class)[2:] == ["__init__.__init__", "schema.check_known"]


def test_frames_of_debug_mode() -> None:
    error = _failure(_made(truncated, debug=True).run)
    assert _frames(error) == [*RUN, f"{THIS}truncated"]


def test_frames_of_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    pipe = _made(lambda: fn.python_function(_source(), function=lambda x: x))
    iterator = DALIGenericIterator(_made(_source), ["x"])
    next(iterator)
    pipe.run()
    monkeypatch.setattr(Executor, "pop", interrupted)
    for call in (pipe.run, iterator.__next__):
        with pytest.raises(KeyboardInterrupt) as caught:
            call()
        found = [frame.partition(".")[2] for frame in _frames(caught.value)]
        assert found == ["test_frames_of_an_interrupt", call.__name__, "interrupted"]
    monkeypatch.undo()


def test_frames_of_iterators() -> None:
    pipe = _made(truncated)
    iterator = DALIGenericIterator(pipe, ["x"], prepare_first_batch=False)
    error = _failure(lambda: next(iterator))
    assert _frames(error) == [f"{THIS}_failure", f"{THIS}<lambda>", "base_iterator.__next__"]


def test_frames_of_iterator_constructors() -> None:
    for options in ({}, {"reader_name": "nowhere"}):
        error = _failure(lambda: DALIGenericIterator(_made(truncated), ["x"], **options))  # noqa: B023
        last = [] if not options else ["_inputs.describe_readers"]  # its message does not contain the location
        assert _frames(error) == [f"{THIS}_failure", f"{THIS}<lambda>", "_iterators.__init__", *last]


def test_frames_of_a_loader() -> None:
    error = _failure(lambda: list(Loader(_made(truncated))))
    assert _frames(error) == [f"{THIS}_failure", f"{THIS}<lambda>", "loader._loop"]
    assert _frames(error.__cause__) == ["images.decode"] and error.__cause__.__cause__ is None
    missing = _failure(lambda: len(Loader(_made(lambda: fn.readers.file(file_root="nowhere")[0]))))
    assert _frames(missing) == [f"{THIS}_failure", f"{THIS}<lambda>", "loader.__len__"]


def test_the_error_of_an_undecodable_file_mentions_bad_samples() -> None:
    assert str(_failure(_made(truncated).run)).endswith('; with bad_samples="skip", the pipeline skips undecodable samples')
    skipping = _made(truncated, bad_samples="skip", max_bad_samples=0)
    assert "bad_samples=" not in str(_failure(skipping.run))


def test_frames_of_the_proxy() -> None:
    server = proxy.DALIServer(_made(lambda: fn.decoders.image(fn.external_source(name="x"))))
    samples = proxy_data.Made(server.proxy, proxy_data.bad_bytes_at_5)
    loader = proxy.DataLoader(server, samples, batch_size=2)
    error = _failure(lambda: list(loader))
    assert isinstance(error, PipelineError)
    assert _frames(error) == [f"{THIS}_failure", f"{THIS}<lambda>", "loader.__next__"]
    assert _frames(error.__cause__) == ["_image_formats._fallback_header"]


def test_all_frames_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDALI_FULL_TRACEBACK", "1")
    error = _failure(_made(truncated).run)
    assert {"_pipeline._take", "executor.pop", "stages._chain_done"} < set(_frames(error))
    assert "chain_run._one_by_one" in _frames(error.__cause__)
    monkeypatch.setenv("TORCHDALI_FULL_TRACEBACK", "0")
    assert _frames(_failure(_made(truncated).run)) == RUN


def test_frames_of_a_caller_that_raises_again_are_kept() -> None:
    def outer() -> None:
        try:
            inner()
        except PipelineError as error:
            raise KeyError("outer") from error

    def inner() -> None:
        _made(truncated).run()

    error = _failure(outer)
    assert _frames(error) == [f"{THIS}_failure", f"{THIS}outer"]
    assert _frames(error.__cause__) == [f"{THIS}outer", f"{THIS}inner", "_pipeline.run"]


# -------------------------------------------------------------------- lifetimes


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_a_failed_batch_is_freed_with_its_error(policy: str) -> None:
    seen: list[weakref.ref[torch.Tensor]] = []
    with pages.own_operators():

        @operator
        def picky(image: Any, /) -> Any:
            """Reject every image."""
            seen.append(weakref.ref(image))
            raise ValueError("not this one")

        pipe = _made(lambda: picky(_source()), bad_samples=policy, max_bad_samples=0, prefetch_queue_depth=1)
        error: Exception | None = _failure(pipe.run)
        pipe.close()
    assert any(sample() is not None for sample in seen)  # the frame of `picky` has it
    del error
    let_go()
    assert all(sample() is None for sample in seen)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_arguments_of_a_failed_function_are_freed_with_its_error(policy: str) -> None:
    seen: list[weakref.ref[Any]] = []

    def refuse(array: Any) -> Any:
        seen.append(weakref.ref(array))
        raise ValueError("not this one")

    pipe = _made(
        lambda: fn.python_function(_source(), function=refuse),
        bad_samples=policy, max_bad_samples=0, prefetch_queue_depth=1,
    )  # fmt: skip
    error: Exception | None = _failure(pipe.run)
    pipe.close()
    assert any(array() is not None for array in seen)
    del error
    let_go()
    assert all(array() is None for array in seen)


def test_frames_of_a_command_are_not_the_users() -> None:
    def lines_of(file: str) -> list[str]:
        names: dict[str, Any] = {"user_line": user_line}
        exec(compile("lines = user_line()", str(Path(nodes.__file__).parents[1] / file), "exec"), names)
        return [line.function for line in names["lines"]]

    assert lines_of("_commands/running.py") == []
    assert lines_of("pipeline/_pipeline.py")[:2] == ["lines_of", "test_frames_of_a_command_are_not_the_users"]
