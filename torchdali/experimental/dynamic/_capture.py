"""Loops whose body is recorded in its first iteration, and computed ahead for the following iterations.

The first iteration runs like a loop without capture, and the operations that it records are the *template*. For each
later iteration, the template is applied to the iteration's own data and computed, up to `_AHEAD` iterations before the
loop reaches the iteration. When the body then makes the same calls, the calls return the computed results. The next
loop over the same data begins with the template of the previous loop. If the first iteration of the next loop makes
different calls, these calls become the new template.

Recorded operations are nodes of a graph. An *edge* is an output of a node.

The thread that runs the loop starts iterations. The first thread that requests a result waits for the result's
iteration, and for all iterations that were started before that iteration.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from torchdali.declaration.registry import Operator
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import Device
from torchdali.experimental.dynamic._matching import CallMatcher, CallSignature, copy_call_node
from torchdali.experimental.dynamic._mode import EvalMode
from torchdali.experimental.dynamic._operation import Operation, OperationResult
from torchdali.experimental.dynamic._rng import RNG, get_default_rng
from torchdali.experimental.dynamic._structure import StructureRunner
from torchdali.experimental.dynamic._value import LazyValue
from torchdali.graph.nodes import DataNode, Node

__all__ = ["Capture", "Template", "current_capture"]

_AHEAD = 2  # number of iterations that are prepared before the loop reaches them
_active = threading.local()


def current_capture() -> Capture | None:
    """Return the capture whose loop body this thread is running, or None."""
    stack: list[Capture] = getattr(_active, "stack", [])
    return stack[-1] if stack else None


@dataclass(frozen=True)
class _TemplateCall:
    """One call of the template.

    Attributes:
        node: The call's node in the first iteration.
        device: Device of the results.
        rng: Generator of the random numbers, if the call draws any.
        draw: Number of draws from the generator in the same iteration, before this call.
        accessed: Outputs whose values the first iteration used.
        outer: Operands from outside of the loop, which don't change. Their values are retained.
        signature: Description by which `Capture.repeat` recognizes the same call in later iterations, and skips its
            recording; None if the call must be recorded in every iteration.
    """

    node: Node
    device: Device
    rng: RNG | None
    draw: int
    accessed: frozenset[int]
    outer: tuple[OperationResult, ...]
    signature: CallSignature | None


class Template:
    """The calls of a loop's first iteration.

    Args:
        calls: The calls, in order.
        roots: The edges of the loop's data in the first iteration.
    """

    def __init__(self, calls: Sequence[_TemplateCall], roots: Sequence[DataNode]) -> None:
        self.calls, self.roots = calls, roots
        self.nodes = {call.node for call in calls}
        self.matcher = CallMatcher(self.nodes)
        self.draws: dict[RNG, int] = {}
        for call in calls:
            if call.rng is not None:
                self.draws[call.rng] = max(self.draws.get(call.rng, 0), call.draw + 1)


@dataclass
class _Recorded:
    """A call of the first iteration; see `_TemplateCall`."""

    operation: Operation
    outer: tuple[OperationResult, ...]
    signature: CallSignature | None = None


@dataclass
class _Iteration:
    """A prepared iteration.

    Attributes:
        item: Value that the loop's variable gets in this iteration.
        state: Position in the loop's data after the item.
        copies: Maps edges of the template to their copies in this iteration.
        operations: One operation per call of the template; empty without a template.
    """

    item: Any
    state: Any
    copies: dict[DataNode, DataNode] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)


class _StartedIterations:
    """Iterations that were started and aren't finished yet, in order."""

    def __init__(self) -> None:
        # A thread holds this lock while it waits for an iteration. The loop's body may pass results to other threads,
        # so several threads may wait.
        self._lock = threading.RLock()
        self._queue: deque[_StartedIteration] = deque()

    def add(self, finish: Callable[[], None]) -> _StartedIteration:
        """Add an iteration. The function ``finish`` waits for the iteration, and sets the iteration's results."""
        iteration = _StartedIteration(self, finish)
        self._queue.append(iteration)
        return iteration

    def finish(self, last: _StartedIteration) -> None:
        """Finish all iterations up to `last`."""
        with self._lock:
            while not last.done:
                # The iteration is removed only after it is done, so that the next call finds it after an interrupt.
                self._queue[0].finish()
                self._queue.popleft()

    def finish_all(self) -> None:
        """Finish all iterations, and drop the errors of iterations whose results weren't requested."""
        with self._lock:
            if self._queue:
                self.finish(self._queue[-1])


class _StartedIteration:
    """An iteration whose results are being computed."""

    def __init__(self, owner: _StartedIterations, finish: Callable[[], None]) -> None:
        self._owner, self._finish = owner, finish
        self._error: Exception | None = None
        self.done = False

    def finish(self) -> None:
        """Wait for the iteration, and store its error."""
        try:
            self._finish()
        except Exception as error:
            self._error = error
        self.done = True

    def result(self) -> None:
        """Wait until the iteration's results are set, or raise the iteration's error."""
        self._owner.finish(self)
        if self._error is not None:
            raise self._error


def _fail(error: Exception) -> None:
    raise error


class Capture:
    """A captured loop.

    Args:
        items: The items of the loop, each with the position in the data after the item.
        context: Context in which the loop is computed.
        deliver: Function that is called with the position when the loop gets an item.
        template: Template of the previous loop.

    Attributes:
        template: Template of this loop, for the next loop over the same data.
    """

    def __init__(
        self,
        items: Iterable[tuple[Any, Any]],
        context: EvalContext,
        deliver: Callable[[Any], None] = lambda state: None,
        template: Template | None = None,
    ) -> None:
        self._items, self._context, self._deliver = iter(items), context, deliver
        self.template = template
        self._first = True
        self._recorded: list[_Recorded] = []
        self._current: _Iteration | None = None
        self._next_call = 0
        self._matches = True
        self._runners: dict[Any, StructureRunner] = {}
        self._started = _StartedIterations()

    def __iter__(self) -> Iterator[Any]:
        ahead: deque[_Iteration] = deque()
        try:
            while True:
                if not self._matches:
                    self._relaunch(ahead)
                while len(ahead) < (1 if self.template is None else _AHEAD):
                    item = next(self._items, None)
                    if item is None:
                        break
                    ahead.append(self._prepare(*item, len(ahead)))
                if not ahead:
                    return
                yield from self._body(ahead.popleft())
                self._end_of_body()
        finally:
            self._started.finish_all()  # a runner (see `_engine`) must be idle when it is given back
            self._context.engine().give_back(self._runners)

    def _body(self, iteration: _Iteration) -> Iterator[Any]:
        """Yield one item; the loop's body runs meanwhile."""
        self._current, self._next_call, self._matches = iteration, 0, True
        self._roots = _roots(iteration.item)
        self._deliver(iteration.state)
        stack = _active.__dict__.setdefault("stack", [])
        stack.append(self)
        try:
            yield iteration.item
        finally:
            stack.remove(self)

    def _end_of_body(self) -> None:
        """Create the template after the first iteration; after later iterations, check that no call is missing."""
        template = self.template
        complete = template is not None and self._next_call == len(template.calls)
        if self._first:
            if not (complete and self._matches and self._computes_all()):
                self.template = Template(_calls_of(self._recorded), self._roots)
                self._matches = False
            self._first, self._recorded = False, []
        elif self._matches and not complete:
            assert template is not None
            missing = template.calls[self._next_call].node
            raise RuntimeError(
                f"the body of a captured loop must make the same calls in each iteration, but did not call "
                f"{missing.operator.name!r}\n  {missing.where}"
            )

    def _computes_all(self) -> bool:
        """Return True if the template computes all results that the first iteration used."""
        assert self.template is not None
        calls = zip(self._recorded, self.template.calls, strict=True)
        return all(recorded.operation.accessed <= call.accessed for recorded, call in calls)

    # ------------------------------------------------------------ running ahead

    def _prepare(self, item: Any, state: Any, distance: int) -> _Iteration:
        """Apply the template to an item, and start to compute it."""
        iteration, template = _Iteration(item, state), self.template
        if template is None:
            return iteration
        iteration.copies = dict(zip(template.roots, _roots(item), strict=True))
        before = {rng: rng._count + distance * count for rng, count in template.draws.items()}
        for call in template.calls:
            node = copy_call_node(call.node, iteration.copies, template.nodes)
            key = None if call.rng is None else call.rng._key_at(before[call.rng] + call.draw)
            operation = Operation(node, _size_of(item), self._context, call.device, key, rng=call.rng)
            operation.captured = True
            iteration.operations.append(operation)
        calls = zip(iteration.operations, template.calls, strict=True)
        results = [OperationResult(o, i) for o, call in calls for i in sorted(call.accessed)]
        if results:
            started = self._begin(results)
            for result in results:
                result.operation.future = started
        return iteration

    def _begin(self, results: list[OperationResult]) -> _StartedIteration:
        try:
            with torch.no_grad():
                return self._started.add(self._context.engine().begin(results, self._runners))
        except Exception as error:  # the error is raised at the line that requests a result
            return self._started.add(partial(_fail, error))

    def _relaunch(self, ahead: deque[_Iteration]) -> None:
        """Prepare iterations again, because their random numbers differ from the numbers that the body will draw."""
        items = [(iteration.item, iteration.state) for iteration in ahead]
        ahead.clear()
        ahead.extend(self._prepare(*item, i) for i, item in enumerate(items))

    # ------------------------------------------------------------ the calls of the body

    def operation(self, operation: Operation) -> Operation:
        """Return the prepared operation for a call of the loop's body, or the call's own operation if none is prepared.

        Raises:
            RuntimeError: The first iteration made a different call in place of this call.
        """
        operation.captured = True
        prepared = self._match(operation)
        if self._first:
            outer = [o for o in operation.needs if not o.captured]
            outer_results = tuple(OperationResult(o, e.index) for o in outer for e in o.node.outputs)
            self._recorded.append(_Recorded(prepared, outer_results))
        return prepared

    def repeat(
        self,
        declared: Operator,
        inputs: Sequence[Any],
        arguments: Mapping[str, Any],
        size: int | None,
    ) -> Any:
        """Return the prepared results if a call equals the template's next call; None if the call must be recorded."""
        template, current = self.template, self._current
        if template is None or current is None or not self._matches or self._next_call == len(template.calls):
            return None
        call = template.calls[self._next_call]
        signature, rng, prepared = call.signature, call.rng, current.operations[self._next_call]
        if signature is None or not signature.matches(declared, inputs, arguments, size, current.copies):
            return None
        if EvalMode.current() in (EvalMode.sync_cpu, EvalMode.sync_full):
            return None
        if rng is not None:
            if arguments.get("rng") is None and rng is not get_default_rng():
                return None
            if rng._key_at(rng._count) != prepared.key:
                return None
            rng.advance(1)
        self._next_call += 1
        if self._first:
            self._recorded.append(_Recorded(prepared, call.outer))
        EvalContext.current().add(prepared)
        return signature.results(prepared)

    def remember(
        self,
        declared: Operator,
        inputs: Sequence[Any],
        arguments: Mapping[str, Any],
        size: int | None,
        result: Any,
    ) -> None:
        """Record a call of the first iteration, so that `repeat` recognizes equal calls in later iterations."""
        if not self._first:
            return
        results = [each for each in (result if isinstance(result, tuple) else (result,)) if each._result]
        last = self._recorded[-1] if self._recorded else None
        if last is None or not results or any(each._result.operation is not last.operation for each in results):
            return
        nodes = {edge.source for edge in self._roots if edge.source is not None}
        nodes.update(recorded.operation.node for recorded in self._recorded[:-1])
        last.signature = CallSignature.of(declared, inputs, arguments, size, result, nodes)

    def _match(self, operation: Operation) -> Operation:
        """Return the prepared operation that matches a call, or the call's own operation."""
        template, node = self.template, operation.node
        if template is None or not self._matches:
            return operation
        assert self._current is not None
        try:
            if self._next_call == len(template.calls):
                raise RuntimeError(
                    f"the body of a captured loop must make the same calls in each iteration, got the additional "
                    f"call {node.operator.name!r}"
                    f"\n  {node.where}"
                )
            template.matcher.check(node, template.calls[self._next_call].node, self._current.copies)
        except RuntimeError:
            if not self._first:
                raise
            self._matches = False  # the body differs from the previous loop's body
            return operation
        prepared = self._current.operations[self._next_call]
        if prepared.key != operation.key:  # the generator was reseeded, or used elsewhere, after the preparation
            self._matches = False
            return operation
        self._next_call += 1
        return prepared


def _roots(item: Any) -> list[DataNode]:
    """Return the edges of the tensors and batches in a loop's item."""
    values = item if isinstance(item, tuple) else (item,)
    roots = []
    for value in values:
        if isinstance(value, LazyValue):
            roots.append(value._edge())
            assert value._result is not None
            value._result.operation.captured = True
    return roots


def _size_of(item: Any) -> int:
    first = item[0] if isinstance(item, tuple) else item
    size: int = getattr(first, "batch_size", 1)
    return size


def _calls_of(recorded: Sequence[_Recorded]) -> list[_TemplateCall]:
    counts: dict[RNG, int] = {}
    calls = []
    for each in recorded:
        operation, draw = each.operation, 0
        if operation.rng is not None:
            draw = counts.get(operation.rng, 0)
            counts[operation.rng] = draw + 1
        indices = frozenset(operation.accessed)
        calls.append(
            _TemplateCall(operation.node, operation.device, operation.rng, draw, indices, each.outer, each.signature)
        )
    return calls
