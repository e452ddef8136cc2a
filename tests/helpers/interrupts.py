"""Exceptions from outside (Ctrl-C, an alarm) between any two lines of the package."""

from __future__ import annotations

import _thread
import contextlib
import linecache
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import torchdali

PACKAGE = os.path.dirname(torchdali.__file__) + os.sep


class Interrupt:
    """Raises an error at the n-th line of the package that this thread runs.

    Attributes:
        place: The line, after the error was raised.
    """

    def __init__(self, line: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self._left, self.error, self.place = line, error, ""

    def call(self, function: Callable[[], Any]) -> tuple[Any, ...]:
        """Return the result of a function, in a tuple; an empty one if the error left the function."""
        sys.settrace(self._trace)
        try:
            return (function(),)
        except self.error:
            return ()
        finally:
            sys.settrace(None)

    def _trace(self, frame: Any, event: str, argument: Any) -> Any:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if not file.startswith(PACKAGE):
            return None
        # A lock in C is released at the end of a `with` statement: no interrupt arrives in between, but a trace event does.
        if event == "return" or (event == "line" and not linecache.getline(file, line).lstrip().startswith("with ")):
            self._left -= 1
            if self._left == 0:
                self.place = f"{os.path.basename(file)}:{line} ({frame.f_code.co_name})"
                raise self.error
        return self._trace


def interrupts(first: int, step: int, error: type[BaseException] = KeyboardInterrupt, most: int = 100_000) -> Iterator[Interrupt]:
    """Yield interrupts at every n-th line, until one is not reached."""
    for line in range(first, most, step):
        interrupt = Interrupt(line, error)
        yield interrupt
        if not interrupt.place:
            return


def exit_code(child: int, seconds: float = 60.0) -> int:
    """Wait for a forked process and return its exit code; kill a process that doesn't end, and fail the test."""
    timer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    timer.cancel()
    if code == -signal.SIGKILL:
        pytest.fail(f"the forked process did not end within {seconds:g} s")
    return code


@contextlib.contextmanager
def limit(seconds: float = 120.0) -> Iterator[None]:
    """Fail a test that takes longer, even if the main thread waits."""
    is_late = False

    def stop() -> None:
        nonlocal is_late
        is_late = True
        _thread.interrupt_main()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if not is_late:
            raise
        pytest.fail(f"no end after {seconds:g} s")
    finally:
        timer.cancel()
