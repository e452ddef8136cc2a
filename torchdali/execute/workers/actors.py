"""Replicas (processes that compute batches) as Ray actors, possibly on other machines. Needs the extra `ray`."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge, wait
from typing import Any

import ray
import torch

from torchdali import pickling
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import ReaderState, Settings
from torchdali.execute.shared_memory import socket_of
from torchdali.execute.workers.channel import Channel
from torchdali.execute.workers.placing import Placement
from torchdali.execute.workers.replica import ReplicaTask, compute_batches
from torchdali.execute.workers.sent_plan import SentPlan
from torchdali.execute.workers.server import ForkRequest
from torchdali.execute.workers.starting import read_first_message, sizes_of
from torchdali.execute.workers.worker import NotStarted, Worker
from torchdali.graph.nodes import Node
from torchdali.graph.plan import Plan

__all__ = ["Actors"]

_PATIENCE = 5.0  # seconds within which an actor must reply to `ping`, even while it computes
_POLL = 0.2
HANDSHAKE = 2.0  # seconds within which a connected client must prove that it has the key


class _Actor:
    """The class of the Ray actors. One thread of an actor runs `run`, another thread replies to `ping`."""

    def run(self, address: tuple[str, int], key: bytes, plan: bytes, threads: int) -> None:
        """Compute batches for the main process, until the main process closes the connection or ends.

        Args:
            address: Address at which the main process accepts the actor's connection.
            key: Secret key with which the actor proves its identity.
            plan: The pickled `SentPlan`.
            threads: Number of threads.
        """
        torch.set_num_threads(1)
        task: Future[ReplicaTask] = Future()
        try:
            sent: SentPlan = pickling.loads(plan)
            task.set_result(sent.task(ForkRequest(threads, 0, (), is_sent=True)))
        except Exception as error:
            task.set_exception(error)
        # Connect only when the task is ready, because the main process waits for the first message after it has
        # accepted the connection.
        compute_batches(Channel(Client(address, authkey=key), shares_memory=False), task.result)

    def ping(self) -> int:
        """Return the id of the process. A reply shows that the actor is alive."""
        return os.getpid()


class _ActorProcess:
    """An actor. This class has the attributes of `multiprocessing.Process` that the pool uses."""

    pid = None

    def __init__(self, actor: Any, run: Any) -> None:
        self.actor, self._run = actor, run

    @property
    def exitcode(self) -> int | None:
        """None while the actor runs or waits for Ray's resources; 0 if the actor has ended or is lost."""
        return 0 if ray.wait([self._run], timeout=0)[0] else None

    def join(self, timeout: float | None = None) -> None:
        """Wait until the actor has ended."""
        ray.wait([self._run], timeout=timeout)

    def reason(self) -> str:
        """Describe how the actor ended."""
        try:
            ray.get(self._run, timeout=0)
        except Exception as error:
            return f"was lost: {str(error).strip().splitlines()[0]}"
        return "closed its connection"

    def kill(self) -> None:
        """End the actor."""
        with contextlib.suppress(Exception):
            ray.kill(self.actor)

    terminate = kill


class _ActorWorker(Worker):
    """A replica that is a Ray actor, as seen by the main process.

    Until the actor connects, `connection` is the listening socket.
    """

    process: _ActorProcess

    def __init__(self, process: _ActorProcess, listening: socket.socket, number: int) -> None:
        super().__init__(process, listening, number)
        self.shares_memory = False
        self._pending_ping, self._pinged_at = None, 0.0

    def accept(self, key: bytes) -> bool:
        """Accept a connection. Return False if the client doesn't have the key.

        The port is open to the network. If another program has connected, the actor can still connect later.
        """
        listening: socket.socket = self.connection
        listening.settimeout(HANDSHAKE)  # the client may have disconnected before `accept`
        with contextlib.suppress(OSError):
            connection = _authenticate(listening.accept()[0], key)
            if connection is not None:
                listening.close()
                self._socket.close()  # it was a duplicate of the listening socket
                self.connection, self._socket = connection, socket_of(connection.fileno())
                return True
        return False

    def is_suspended(self) -> bool:
        """Return whether the actor hasn't replied for some seconds.

        Its process may be suspended, or its node may be gone.
        """
        now = time.monotonic()
        if self._pending_ping is None or ray.wait([self._pending_ping], timeout=0)[0]:
            self._pending_ping, self._pinged_at = self.process.actor.ping.remote(), now
        return now - self._pinged_at > _PATIENCE

    def kill(self) -> None:
        """End the actor, and shut down its connection, because the connection may stay open if the node is gone."""
        self.process.kill()
        with contextlib.suppress(OSError), socket.socket(fileno=self.connection.fileno()) as connection:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            finally:
                connection.detach()

    def end_message(self, meanwhile: str = "") -> str:
        """Describe how the actor ended."""
        self.process.join(_POLL)
        how = f"did not answer for {_PATIENCE:g} s and was ended" if self.suspended_for else self.process.reason()
        if self.jobs:
            meanwhile = f" while it processed {' and '.join(job.title for job in self.jobs.values())}"
        return f"Ray's actor {self.number} of the pipeline {how}{meanwhile}"


def _authenticate(accepted: socket.socket, key: bytes) -> Connection | None:
    """Check that a client has the key, and return the connection.

    Return None if the client lacks the key or doesn't reply in time.
    """
    timer = threading.Timer(HANDSHAKE, _shut, (accepted,))
    timer.daemon = True
    timer.start()
    connection = Connection(accepted.dup().detach())
    try:
        deliver_challenge(connection, key)
        answer_challenge(connection, key)
    except Exception:  # an unknown client may send anything
        connection.close()
        return None
    finally:
        timer.cancel()
        accepted.close()
    return connection


def _shut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True)
class Actors:
    """Options for running a pipeline's replicas as actors.

    Attributes:
        count: Number of actors.
        options: Arguments of Ray's ``options`` for actors.
        timeout: Seconds within which an actor must start, including the wait for Ray's resources.
    """

    count: int
    options: Mapping[str, Any]
    timeout: float

    def start(self, *arguments: Any) -> _ActorStarter:
        """Return the object that starts the actors.

        Args:
            arguments: Arguments of `Starter`.
        """
        return _ActorStarter(self.options, self.timeout, *arguments)


class _ActorStarter:
    """Starts the replicas of one pipeline as Ray actors. It has the methods of `Starter`.

    Args:
        options: See `Actors`.
        patience: Seconds within which an actor must start; see `Actors.timeout`.
        placing, planned, settings, readers, bad_samples: See `Starter`.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        patience: float,
        placement: Placement,
        planned: Plan,
        settings: Settings,
        readers: Mapping[Node, ReaderState],
        bad_samples: BadSamples,
    ) -> None:
        self.patience, self.plan = patience, planned
        self._count, self._threads = placement.processes, settings.num_threads
        self._sizes = sizes_of(planned, placement.stages, readers)
        sent = SentPlan.of(planned, placement.stages, settings, bad_samples)
        self._sent = ray.put(pickling.dumps(sent))
        remote_class: Any = ray.remote(_Actor)
        self._actor_class = remote_class.options(max_restarts=0, max_task_retries=0, max_concurrency=2, **options)
        self._key = secrets.token_bytes(32)
        self._actors: list[_ActorProcess] = []

    def start(self, number: int) -> Worker:
        """Request an actor from Ray. This method doesn't wait until the actor is ready."""
        address: Any = ray.util.get_node_ip_address
        listening = socket.create_server((address(), 0))
        listening.settimeout(None)  # overrides the user's default timeout
        actor = self._actor_class.remote()
        run = actor.run.remote(listening.getsockname()[:2], self._key, self._sent, self._threads)
        self._actors.append(_ActorProcess(actor, run))
        return _ActorWorker(self._actors[-1], listening, number)

    def start_all(self) -> list[Worker]:
        """Start all actors, and wait until one of them is ready. The other actors may not be `alive` yet.

        Raises:
            RuntimeError: No actor was ready in time, or an actor failed.
        """
        workers = [self.start(number) for number in range(self._count)]
        for worker in workers:
            worker.alive = False
        deadline = time.monotonic() + self.patience
        while not any(worker.alive for worker in workers):
            if time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"no actor started within {self.patience:g} s; check actor_options and timeout")
            connecting = wait([worker.connection for worker in workers], _POLL)
            for worker in workers:
                try:
                    if worker.connection in connecting:
                        worker.alive = self.is_ready(worker)
                    elif worker.process.exitcode is not None:
                        raise NotStarted(worker.end_message(" while it started"))
                except NotStarted as error:
                    self.close()
                    raise RuntimeError(str(error)) from None
        return workers

    def check_server(self) -> None:
        """Do nothing: Ray monitors its actors."""

    def is_ready(self, worker: Worker) -> bool:
        """Accept an actor's connection and read its first message. Return False if the actor hasn't connected yet.

        Raises:
            NotStarted: The actor can't run the plan, or has ended.
        """
        assert isinstance(worker, _ActorWorker)
        if not worker.accept(self._key):
            return False
        read_first_message(worker, self._sizes)
        return True

    def close(self) -> None:
        """End all actors."""
        if ray.is_initialized():  # if Ray is shut down, the actors have ended, and `kill` would start Ray again
            for actor in self._actors:
                actor.kill()
