"""Results are bit-identical for any number of torch's threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from torchdali import fn
from torchdali.kernels.torch_threads import keep_torch_threads, on_one_thread
from torchdali.tensors import TensorListCPU

RANDOM = np.random.default_rng(1)
SIGNAL = torch.from_numpy(RANDOM.standard_normal(70000).astype(np.float32))
SPECTRUM = torch.from_numpy(RANDOM.random((7, 65), np.float32))
IMAGE = torch.from_numpy(200 * RANDOM.random((700, 501, 3), np.float32))

CALLS = {
    **{f"spectrogram {n}": lambda n=n: fn.spectrogram(SIGNAL, window_length=n, window_step=n // 2)
       for n in (8, 16, 32, 64, 512)},
    "power_spectrum": lambda: fn.power_spectrum(SPECTRUM[:, :64].contiguous()),
    "mel_filter_bank": lambda: fn.mel_filter_bank(
        TensorListCPU([SPECTRUM], layout="tf"), sample_rate=16000.0, nfilter=80)[0],
    "mfcc": lambda: fn.mfcc(SPECTRUM, axis=1),
    "audio_resample": lambda: fn.audio_resample(SIGNAL, scale=0.37),
    "reductions.sum": lambda: fn.reductions.sum(IMAGE),
    "reductions.mean": lambda: fn.reductions.mean(IMAGE),
    "reductions.std_dev": lambda: fn.reductions.std_dev(IMAGE, 0.5),
    "normalize": lambda: fn.normalize(IMAGE),
}  # fmt: skip


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", CALLS)
def test_bits(name, threads):
    found = []
    for count in (1, 2, 5):
        threads(count)
        found.append(np.asarray(CALLS[name]()))
        assert torch.get_num_threads() == count
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_work_goes_to_a_thread_that_uses_one(threads):
    def seen(x):
        return torch.get_num_threads(), threading.current_thread()

    here = threading.current_thread()
    threads(3)
    count, where = on_one_thread(seen, SIGNAL)
    assert count == 1 and where is not here
    assert on_one_thread(seen, SIGNAL.clone().requires_grad_()) == (3, here)
    threads(1)
    assert on_one_thread(seen, SIGNAL) == (1, here)


def test_errors_are_raised_in_the_caller(threads):
    threads(2)
    with pytest.raises(ZeroDivisionError):
        on_one_thread(lambda x: 1 // 0, SIGNAL)


def test_threads_that_start_threads_keep_their_setting():
    before, counts = torch.get_num_threads(), []
    try:
        torch.set_num_threads(3)
        begun, is_one = threading.Event(), threading.Event()

        def other():
            begun.set()
            with keep_torch_threads(0):
                pass
            counts.append(torch.get_num_threads())

        thread = threading.Thread(target=other)
        with keep_torch_threads(1) as ready:

            def work():
                torch.get_num_threads()
                torch.set_num_threads(1)
                is_one.set()
                ready.wait()

            worker = threading.Thread(target=work)
            worker.start()
            assert is_one.wait(20)  # 1 is the default of new threads now
            thread.start()
            assert begun.wait(20)
        thread.join()
        worker.join()
        assert counts == [3] and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
