"""The mock accelerator itself: it rejects, counts and reports correctly."""

from __future__ import annotations

import threading

import pytest
import torch

from tests.pretend import Accelerator, PretendTensor, accelerator, inner


@pytest.fixture
def gpu():
    with accelerator(devices=2) as made:
        yield made


def races(gpu: Accelerator) -> str:
    return "\n".join(gpu.report.races)


def test_tensors_report_their_device(gpu: Accelerator) -> None:
    x = torch.arange(6).view(2, 3).to("cuda:1")
    assert x.device == torch.device("cuda", 1) and x.is_cuda and not x.is_cpu
    y = (x.float() * 2).sum(1)
    assert y.device.index == 1 and y.dtype == torch.float32 and y.cpu().tolist() == [6, 24]
    assert torch.zeros(2, device="cuda").device.index == 0
    with torch.cuda.device(1):
        assert torch.tensor([1, 2], device="cuda").device.index == 1
    assert x[0].memory is x.memory and type(x.view(-1)) is PretendTensor


def test_devices_are_not_mixed(gpu: Accelerator) -> None:
    host, first, second = torch.ones(3), torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")
    for a, b in ((host, first), (first, second)):
        with pytest.raises(RuntimeError, match="same device"):
            a + b
    assert (first + torch.tensor(2.0)).cpu().tolist() == [3, 3, 3]  # numbers may come from the CPU
    with pytest.raises(TypeError, match="numpy"):
        first.numpy()


def test_launches_are_counted_by_line(gpu: Accelerator) -> None:
    x = gpu.tensor(torch.ones(4))
    for _ in range(5):
        x.mul_(2)
    assert gpu.report.launches == 5
    x.view(2, 2).t()
    torch.empty_like(x)
    assert gpu.report.launches == 5
    (where,) = {line for kind, line in gpu.report.sites if kind == "launch"}
    assert "test_pretence.py" in where and "test_launches" in where


def test_kinds_of_copies_are_counted_separately(gpu: Accelerator) -> None:
    x = torch.ones(4)
    locked = torch.empty(4, pin_memory=True).copy_(x)
    seen = []
    for source, non_blocking in ((x, False), (x, True), (locked, False), (locked, True)):
        gpu.report.clear()
        source.to("cuda", non_blocking=non_blocking)
        seen += [kind for kind, _ in gpu.report.sites]
    assert seen == ["upload pageable waiting"] * 2 + ["upload pinned waiting", "upload pinned"]
    gpu.report.clear()
    y = locked.to("cuda", non_blocking=True)
    y.cpu()
    y.to("cpu", non_blocking=True)
    assert gpu.report.copies == 3 and gpu.report.waits == 1 and gpu.report.bytes["download pinned"] == 16


@pytest.mark.parametrize("wait", ["item", "nonzero", "tolist", "stream", "event", "mask"])
def test_waits_of_the_host(gpu: Accelerator, wait: str) -> None:
    x = gpu.tensor(torch.ones(3))
    event = torch.cuda.Event()
    {
        "item": lambda: x[0].item(), "nonzero": x.nonzero, "tolist": x.tolist,
        "stream": lambda: torch.cuda.current_stream().synchronize(), "event": event.synchronize,
        "mask": lambda: x[x > 0],
    }[wait]()
    assert gpu.report.waits == 1


def test_a_read_without_a_wait(gpu: Accelerator) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.ones(3, device="cuda")
    torch.cuda.current_stream().wait_stream(side)
    x.add(1)
    assert not races(gpu)
    with torch.cuda.stream(side):
        x.mul_(3)
    x.add(1)
    assert "wrote" in races(gpu)


def test_an_event_orders_only_earlier_operations(gpu: Accelerator) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.ones(3, device="cuda")
        event = side.record_event()
        y = torch.ones(3, device="cuda")
    torch.cuda.current_stream().wait_event(event)
    x + 1
    assert not races(gpu)
    y + 1
    assert "without a wait" in races(gpu)


def test_a_write_over_memory_that_another_stream_reads(gpu: Accelerator) -> None:
    x = torch.ones(3, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        kept = x + 1
    x.zero_()
    assert "writes over" in races(gpu)
    del kept


@pytest.mark.parametrize("how", ["nothing", "record_stream", "wait", "host"])
def test_memory_freed_during_a_read(gpu: Accelerator, how: str) -> None:
    """A tensor that another stream reads is dropped: its memory returns to its allocating stream."""
    x = torch.ones(3, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        kept = x + 1
    if how == "record_stream":
        x.record_stream(side)
    elif how == "wait":
        torch.cuda.current_stream().wait_stream(side)
    elif how == "host":
        side.synchronize()
    part = x[:2]
    del x
    assert not races(gpu)  # a view keeps it
    del part
    assert ("let go" in races(gpu)) == (how == "nothing")
    torch.cuda.current_stream().wait_stream(side)
    del kept


def test_pinned_memory_reused_too_early(gpu: Accelerator) -> None:
    locked = torch.empty(8, pin_memory=True)
    locked.zero_()
    kept = locked[:4].to("cuda", non_blocking=True)
    event = torch.cuda.current_stream().record_event()
    locked[4:].fill_(1)  # another part
    assert not races(gpu)
    locked[:2].fill_(1)
    assert "may still be read" in races(gpu)
    gpu.report.clear()
    assert [event.query() for _ in range(4)] == [False] * 3 + [True]  # late
    locked.fill_(2)
    assert not races(gpu)
    back = kept.to("cpu", non_blocking=True)
    back + 1
    assert "being written" in races(gpu)


def test_threads_started_inside_use_the_mock(gpu: Accelerator) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.ones(2, device="cuda:1")))
    thread.start()
    thread.join()
    assert inner(found[0]).tolist() == [1, 1]


def test_the_mock_restores_torch() -> None:
    before = torch.cuda.Stream, torch.tensor, threading.Thread.run, torch.cuda.is_available()
    with accelerator():
        pass
    assert (torch.cuda.Stream, torch.tensor, threading.Thread.run, torch.cuda.is_available()) == before
    assert torch.ones(2).add(1).tolist() == [2, 2]
