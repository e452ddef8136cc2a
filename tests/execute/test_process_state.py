"""Threads that a fork must wait for."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from torchdali.execute.process_state import wait_for_other_threads


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, which Linux has")
def test_a_thread_outside_of_python_is_detected() -> None:
    enough = threading.Event()
    numbers = np.random.default_rng(1).random(1 << 18)

    def work() -> None:
        while not enough.is_set():
            np.sort(numbers)  # without the GIL

    thread = threading.Thread(target=work)
    thread.start()
    assert not wait_for_other_threads()
    enough.set()
    thread.join()
    assert any(wait_for_other_threads() for _ in range(20))  # other tests may have left threads that are exiting
