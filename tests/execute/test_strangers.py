"""The port on which a program waits for Ray's actors is open to the network: strangers neither delay nor end the program."""

from __future__ import annotations

import contextlib
import importlib
import socket
import sys
import threading
import time
import types
from multiprocessing.connection import Client
from typing import Any

import pytest

KEY = b"k" * 32


@pytest.fixture
def actors(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, even if Ray is not installed: these tests do not call Ray."""
    name = "torchdali.execute.workers.actors"
    if "ray" not in sys.modules:
        monkeypatch.setitem(sys.modules, "ray", types.ModuleType("ray"))
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    monkeypatch.setattr(module, "HANDSHAKE", 0.3)
    yield module
    sys.modules.pop(name, None)


@pytest.fixture
def worker(actors: Any) -> Any:
    listening = socket.create_server(("127.0.0.1", 0))
    process = types.SimpleNamespace(pid=None, exitcode=None, actor=None, join=lambda timeout=None: None)
    made = actors._ActorWorker(process, listening, 0)
    yield made
    made.connection.close()


def say_nothing(address: Any) -> Any:
    return socket.create_connection(address)


def send(data: bytes) -> Any:
    def stranger(address: Any) -> Any:
        connected = socket.create_connection(address)
        connected.sendall(data)
        return connected

    return stranger


def leave(address: Any) -> None:
    socket.create_connection(address).close()


def drip(address: Any) -> Any:
    connected = socket.create_connection(address)

    def run() -> None:
        with contextlib.suppress(OSError):
            for byte in b"\0\0\1\0" + bytes(256):
                connected.sendall(bytes([byte]))
                time.sleep(0.02)

    threading.Thread(target=run, daemon=True).start()
    return connected


def guess(address: Any) -> Any:
    def run() -> None:
        with contextlib.suppress(Exception):
            Client(address, authkey=b"wrong")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


STRANGERS = {
    "says nothing": say_nothing, "speaks HTTP": send(b"GET / HTTP/1.1\r\n\r\n"), "claims a long message": send(b"\x7f\xff\xff\xff"),
    "sends the beginning of a message": send(b"\0\0\0\x20abc"), "leaves": leave, "sends byte by byte": drip, "has another key": guess,
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_is_rejected_and_the_actor_connects_afterwards(name: str, worker: Any) -> None:
    address = worker.connection.getsockname()
    kept = STRANGERS[name](address)
    began = time.monotonic()
    assert not worker.accept(KEY)
    assert time.monotonic() - began < 3
    got: list[Any] = []
    actor = threading.Thread(target=lambda: got.append(Client(address, authkey=KEY)), daemon=True)
    actor.start()
    assert worker.accept(KEY)
    actor.join(5)
    got[0].send("ready")
    assert worker.connection.recv() == "ready"
    with pytest.raises(OSError):
        socket.create_connection(address, timeout=1)  # the port is closed
    del kept


def test_waiting_for_an_actor_times_out(worker: Any) -> None:
    began = time.monotonic()
    assert not worker.accept(KEY)
    assert time.monotonic() - began < 3


def test_a_silent_stranger_does_not_end_the_pipeline(actors: Any, worker: Any) -> None:
    starter = object.__new__(actors._ActorStarter)
    starter._key = KEY
    kept = say_nothing(worker.connection.getsockname())
    assert not starter.is_ready(worker)
    del kept
