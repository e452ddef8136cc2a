"""Device streams with fakes in place of CUDA: events, the queue of pinned batches, caches keyed by stream."""

from __future__ import annotations

import ast
import contextlib
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import torchdali
from torchdali import Pipeline, StreamPolicy, fn, pipeline_def
from torchdali.execute import device_stream
from torchdali.execute.device_stream import DeviceStream
from torchdali.kernels import device_cache as caching
from torchdali.kernels.device_cache import device_cache
from torchdali.tensors import TensorList, _foreign


class Event:
    """An event that is done once `done` is set; its waits may block."""

    done = False

    def __init__(self, blocking: bool) -> None:
        self.blocking = blocking

    def record(self, stream: Stream) -> None:
        self.at = stream.enqueued

    def query(self) -> bool:
        return self.done


class Stream:
    """A stream that counts enqueued operations, and records its waits."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.enqueued, self.priority = 0, priority
        self.waited: list[int] = []
        self.cuda_stream = id(self)

    def wait_event(self, event: Event) -> None:
        self.waited.append(event.at)


def test_an_environment_variable_runs_a_gpu_script_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=3)
    def script() -> Any:
        numbers = fn.external_source(lambda: np.arange(6.0).reshape(2, 3), batch=True)
        return numbers.gpu() * 2, fn.constant(idata=Pipeline.current().device_id, device="gpu")

    monkeypatch.setenv("TORCHDALI_DEVICE", "cpu")
    doubled, shard = script().run()
    np.testing.assert_array_equal(np.asarray(doubled.as_cpu().as_tensor()), np.arange(6.0).reshape(2, 3) * 2)
    assert np.asarray(shard.as_cpu()[0]).tolist() == [3]
    monkeypatch.setenv("TORCHDALI_DEVICE", "cuda:1")
    with pytest.raises(ValueError, match="TORCHDALI_DEVICE must be 'cpu' or unset, got 'cuda:1'"):
        script().run()


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    current = Stream()
    fake = SimpleNamespace(
        is_available=lambda: True, Stream=Stream, Event=Event, current_stream=lambda device=None: fake.current,
        stream=lambda stream: contextlib.nullcontext(), current=current,
    )
    monkeypatch.setattr(device_stream.torch, "cuda", fake)
    yield fake


GPU = torch.device("cuda", 0)


def batch(value: int = 0) -> TensorList:
    return TensorList.from_dense(torch.full((2, 3), value))


def test_a_consumer_waits_only_for_its_batch(cuda: Any) -> None:
    ours = DeviceStream(GPU)
    ours.stream.enqueued = 3
    ready = ours.record()
    ours.stream.enqueued = 9  # a later batch, which nobody requested yet
    ours.hand_over([], ready)
    assert cuda.current.waited == [3]


@pytest.mark.parametrize(
    ("arguments", "priority", "one"),
    [
        ({}, 0, False), ({"default_cuda_stream_priority": -1}, -1, False), ({"default_cuda_stream_priority": 2}, 0, False),
        ({"max_streams": 1}, 0, True), ({"max_streams": 4}, 0, False), ({"stream_policy": StreamPolicy.SINGLE}, 0, True),
        ({"stream_policy": StreamPolicy.PER_BACKEND}, 0, False),
    ],
)  # fmt: skip
def test_the_pipeline_chooses_the_stream(
    cuda: Any, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], priority: int, one: bool
) -> None:
    made: list[DeviceStream] = []
    init = DeviceStream.__init__
    monkeypatch.setattr(DeviceStream, "__init__", lambda self, *given: (made.append(self), init(self, *given))[1])
    monkeypatch.setenv("DALI_RESTRICT_PINNED_MEM", "1")

    @pipeline_def(batch_size=1, num_threads=1, device_id=0, **arguments)
    def define() -> Any:
        return fn.constant(idata=[1])

    pipe = define()
    pipe.build()
    pipe.close()
    (ours,) = made
    copies = ours._copies
    assert ours.stream.priority == copies.priority == priority
    assert (copies is ours.stream) is one


def test_the_passed_stream_waits(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = DeviceStream(GPU), Stream()
    monkeypatch.setattr(device_stream, "to_torch_stream", lambda stream, device: stream)
    ours.hand_over([], ours.record(), theirs)
    assert theirs.waited == [0] and cuda.current.waited == []


def test_a_pinned_batch_is_held_until_its_copy_is_done(cuda: Any) -> None:
    """A second thread sends a batch just after the first has seen that the oldest copy is done."""
    ours, events = DeviceStream(GPU), []
    other = threading.Thread(target=lambda: ours.keep_until(batch(4), cuda.Event()))

    class QueriedEvent(Event):
        def __init__(self) -> None:
            events.append(self)

        def query(self) -> bool:
            if self.done and other.ident is None:
                other.start()
                other.join(0.2)  # as far as it runs
            return self.done

    cuda.Event = QueriedEvent
    for value in (1, 2):
        ours.keep_until(batch(value), cuda.Event())
    events[0].done = True
    ours.keep_until(batch(3), cuda.Event())
    other.join(30)
    assert [int(kept.stack()[0, 0]) for _, kept in ours._pending_copies] == [2, 3, 4]


def test_streams_have_their_own_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    stream = 1

    @device_cache(maxsize=8)
    def table(size: int, device: torch.device) -> int:
        made.append(stream)
        return size + stream

    monkeypatch.setattr(caching, "current_stream", lambda device: stream if device.type == "cuda" else 0)
    assert [table(10, GPU), table(10, device=GPU)] == [11, 11]
    stream = 2
    assert table(10, GPU) == 12 and table(10, torch.device("cpu")) == 12
    stream = 1
    assert table(10, GPU) == 11 and table(10, torch.device("cpu")) == 12
    assert made == [1, 1, 2, 2]  # by position and by name are two entries


def test_data_stays_on_its_gpu() -> None:
    for data in (SimpleNamespace(device=torch.device("cuda", 1)), SimpleNamespace(__dlpack_device__=lambda: (2, 1))):
        assert _foreign._device_of(data) == torch.device("cuda", 1)


def test_run_and_outputs_pass_their_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(DeviceStream, "hand_over", lambda self, batches, ready, stream=None: seen.append(stream))
    pipe = Pipeline(2, 1, None)
    pipe.set_outputs(fn.external_source(lambda: np.zeros((2, 3), np.uint8)))
    pipe.enable_api_check(False)
    pipe.run(7)
    pipe.schedule_run()
    pipe.outputs(8)
    pipe.share_outputs(9)
    pipe.release_outputs()
    pipe.close()
    assert seen == [7, 8, 9]


def test_debug_mode_runs_steps_on_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[bool] = []

    @contextlib.contextmanager
    def context(self: DeviceStream) -> Iterator[None]:
        inside.append(True)
        yield
        inside.append(False)

    monkeypatch.setattr(DeviceStream, "context", context)
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
    def define() -> Any:
        return fn.copy(fn.external_source(lambda: np.zeros((2, 3), np.uint8)))

    made = define()
    made.run()
    made.close()
    assert inside and inside[::2] == [True] * (len(inside) // 2)


def test_device_caches_are_keyed_by_stream():
    """A cache keyed only by device would pass a tensor to a stream that does not wait for its producer."""
    found = []
    for path in sorted(Path(torchdali.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"@(functools\.)?(lru_)?cache", text) else ():
            if isinstance(node, ast.FunctionDef) and any(a.arg == "device" for a in node.args.args):
                found += [
                    f"{path.name}: {node.name}"
                    for each in node.decorator_list
                    if ast.unparse(each).startswith(("functools.cache", "functools.lru_cache", "cache", "lru_cache"))
                ]
    assert found == []
