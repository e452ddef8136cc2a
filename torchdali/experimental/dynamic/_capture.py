"""Loops whose body is recorded in its first iteration, and run ahead for those that follow.

The first iteration is computed as without capture; the operations that it records are the *template*. For each later
iteration the template is copied onto the iteration's own data, and what the first iteration looked at is computed by
executors of the capture, up to `_AHEAD` iterations ahead. When the body then makes the same calls, they return these
results.

One thread plans iterations and starts them, a second one waits for them, in the same order; so the next iteration is
computed while the last samples of one are.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch

from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import Device
from torchdali.experimental.dynamic._matching import CallMatcher, copied_node
from torchdali.experimental.dynamic._operation import Operation, Result
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._structure import Runner
from torchdali.experimental.dynamic._value import Value
from torchdali.graph import DataNode, Node

__all__ = ["Capture", "current_capture"]

_AHEAD = 2  # iterations prepared before the loop comes to them
_active = threading.local()


def current_capture() -> Capture | None:
    """Return the capture whose loop body this thread is in, or None."""
    stack: list[Capture] = getattr(_active, "stack", [])
    return stack[-1] if stack else None


@dataclass(frozen=True)
class _Call:
    """One call of the template.

    Attributes:
        node: The call in the first iteration.
        device: Where its results are.
        rng: Generator of its random numbers, if it draws any.
        draw: Its draw from the generator, counted from the start of the iteration.
        asked: Outputs whose values the first iteration took.
        given: Operands that do not change; held here.
    """

    node: Node
    device: Device
    rng: RNG | None
    draw: int
    asked: frozenset[int]
    given: tuple[Operation, ...]


@dataclass
class _Iteration:
    """An iteration that is prepared.

    Attributes:
        item: What the loop's variable will be.
        state: Position of the source after it.
        copies: Edges of the template to those of this iteration.
        operations: One for each call of the template; none for the first iteration.
        counts: Draws of each generator before this iteration.
    """

    item: Any
    state: Any
    copies: dict[DataNode, DataNode] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    counts: dict[RNG, int] = field(default_factory=dict)


class Capture:
    """A captured loop.

    Args:
        items: What the loop goes over, with the position of the source after each.
        context: Where the work is done.
        deliver: Called with the position when an item is handed out.
    """

    def __init__(
        self,
        items: Iterable[tuple[Any, Any]],
        context: EvalContext,
        deliver: Callable[[Any], None] = lambda state: None,
    ) -> None:
        self._items, self._context, self._deliver = iter(items), context, deliver
        self._template: list[_Call] | None = None
        self._recorded: list[Operation] = []
        self._now: _Iteration | None = None
        self._next_call = 0
        self._matches = True
        self._runners: dict[Any, Runner] = {}
        self._starting = ThreadPoolExecutor(1, thread_name_prefix="torchdali-capture")
        self._waiting = ThreadPoolExecutor(1, thread_name_prefix="torchdali-capture-wait")

    def __iter__(self) -> Iterator[Any]:
        ahead: deque[_Iteration] = deque()
        try:
            while True:
                if self._template is not None and not self._matches:
                    self._relaunch(ahead)
                while len(ahead) < (1 if self._template is None else _AHEAD):
                    item = next(self._items, None)
                    if item is None:
                        break
                    ahead.append(self._prepared(*item, len(ahead)))
                if not ahead:
                    return
                yield from self._body(ahead.popleft())
        finally:
            self._starting.shutdown(wait=True, cancel_futures=True)
            self._waiting.shutdown(wait=True)  # so that runners are idle
            self._context.engine().give_back(self._runners)

    def _body(self, iteration: _Iteration) -> Iterator[Any]:
        """Hand out one item; the loop's body runs while this waits."""
        self._now, self._next_call, self._matches = iteration, 0, True
        if self._template is None:
            self._roots = _roots(iteration.item)
        self._deliver(iteration.state)
        stack = _active.__dict__.setdefault("stack", [])
        stack.append(self)
        try:
            yield iteration.item
        finally:
            stack.remove(self)
        if self._template is None:
            self._template, self._recorded = _template_of(self._recorded, self._roots), []
            self._matcher = CallMatcher({call.node for call in self._template})
        elif self._matches and self._next_call < len(self._template):
            missing = self._template[self._next_call].node
            raise RuntimeError(
                f"the body of a captured loop did not call {missing.operator.name!r}, as it did in its first "
                f"iteration\n  {missing.where}"
            )

    # ------------------------------------------------------------ running ahead

    def _prepared(self, item: Any, state: Any, distance: int) -> _Iteration:
        """Copy the template onto an item, and have it computed."""
        made = _Iteration(item, state)
        if self._template is None:
            return made
        made.copies = dict(zip(self._roots, _roots(item), strict=True))
        draws = _draws(self._template)
        made.counts = {rng: rng._count + distance * count for rng, count in draws.items()}
        for call in self._template:
            node = copied_node(call.node, made.copies)
            key = None if call.rng is None else call.rng._key_at(made.counts[call.rng] + call.draw)
            operation = Operation(
                node, _size_of(item), self._context, call.device, key, rng=call.rng
            )
            made.operations.append(operation)
        asked = [
            (o, [Result(o, i) for i in c.asked])
            for o, c in zip(made.operations, self._template, strict=True)
            if c.asked
        ]
        if asked:
            done = self._waiting.submit(
                self._finish, self._starting.submit(self._begin, asked), asked
            )
            for operation, _ in asked:
                operation.future = done
        return made

    def _begin(self, asked: list[tuple[Operation, list[Result]]]) -> Callable[[], None]:
        """Begin to compute an iteration; the results keep what is asked for alive."""
        with torch.no_grad():
            return self._context.engine().begin([o for o, _ in asked], self._runners)

    def _finish(
        self, begun: Future[Callable[[], None]], asked: list[tuple[Operation, list[Result]]]
    ) -> None:
        """Wait for an iteration. This runs in another thread than `_begin`, and in the same order."""
        begun.result()()

    def _relaunch(self, ahead: deque[_Iteration]) -> None:
        """Prepare again what was computed with other random numbers than the loop's body will draw."""
        items = [(iteration.item, iteration.state) for iteration in ahead]
        ahead.clear()
        ahead.extend(self._prepared(*item, i) for i, item in enumerate(items))

    # ------------------------------------------------------------ the calls of the body

    def operation(self, made: Operation) -> Operation:
        """Return the operation of a call of the loop's body: a prepared one, or the one just made.

        Raises:
            RuntimeError: the first iteration made another call here.
        """
        if self._template is None:
            self._recorded.append(made)
            return made
        if not self._matches:
            return made
        assert self._now is not None
        node = made.node
        if self._next_call == len(self._template):
            raise RuntimeError(
                f"the body of a captured loop called {node.operator.name!r} after all calls of its first iteration\n"
                f"  {node.where}"
            )
        prepared = self._now.operations[self._next_call]
        self._matcher.check(node, self._template[self._next_call].node, self._now.copies)
        if prepared.key != made.key:  # the generator was seeded, or used elsewhere
            self._matches = False
            return made
        self._next_call += 1
        return prepared


def _roots(item: Any) -> list[DataNode]:
    """Return the edges of what a loop goes over, those that are computed."""
    values = item if isinstance(item, tuple) else (item,)
    found = []
    for value in values:
        if isinstance(value, Value):
            found.append(value._edge())
    return found


def _size_of(item: Any) -> int:
    first = item[0] if isinstance(item, tuple) else item
    size: int = getattr(first, "batch_size", 1)
    return size


def _template_of(recorded: list[Operation], root_edges: list[DataNode]) -> list[_Call]:
    roots = set(root_edges)
    counts: dict[RNG, int] = {}
    calls = []
    for operation in recorded:
        draw = 0
        if operation.rng is not None:
            draw = counts.get(operation.rng, 0)
            counts[operation.rng] = draw + 1
        given = tuple(
            o for o in operation.needs if o.results is not None and not roots & {*o.node.outputs}
        )
        calls.append(
            _Call(
                operation.node, operation.device, operation.rng, draw, frozenset(operation.asked), given
            )
        )  # fmt: skip
    return calls


def _draws(template: list[_Call]) -> dict[RNG, int]:
    counts: dict[RNG, int] = {}
    for call in template:
        if call.rng is not None:
            counts[call.rng] = max(counts.get(call.rng, 0), call.draw + 1)
    return counts
