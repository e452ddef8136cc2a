"""Threads that a fork must wait for."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from torchdali.execute.process_state import others_sleep


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, which Linux has")
def test_a_thread_outside_of_python_is_detected() -> None:
    enough = threading.Event()
    numbers = np.random.default_rng(1).random(1 << 18)

    def work() -> None:
        while not enough.is_set():
            np.sort(numbers)  # without the GIL

    thread = threading.Thread(target=work)
    thread.start()
    assert not others_sleep()
    enough.set()
    thread.join()
    assert any(others_sleep() for _ in range(20))  # other tests may have left threads that are exiting
