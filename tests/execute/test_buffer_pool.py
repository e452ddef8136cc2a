"""Memory of batches is reused only after all references are gone."""

from __future__ import annotations

import gc
import threading

import torch

from torchdali.tensors.buffer_pool import BufferPool, release_unused

SHAPE = (64, 3, 80, 80)
SIZE = 64 * 3 * 80 * 80 * 4


def test_a_block_returns_when_its_last_view_is_dropped():
    buffers = BufferPool()
    batch = buffers.empty(SHAPE, torch.float32)
    place = batch.data_ptr()
    sample = batch[5]
    del batch
    other = buffers.empty(SHAPE, torch.float32)
    assert other.data_ptr() != place and buffers.bytes_out == 2 * SIZE
    del sample
    gc.collect()
    assert buffers.bytes_out == SIZE
    assert buffers.empty(SHAPE, torch.float32).data_ptr() == place


def test_blocks_fit_and_the_pool_caches_few():
    buffers = BufferPool()
    several = [buffers.empty(SHAPE, torch.float32) for _ in range(12)]
    places = {t.data_ptr() for t in several}
    assert len(places) == 12
    smaller = buffers.empty((32, *SHAPE[1:]), torch.float32)
    assert smaller.shape == (32, *SHAPE[1:]) and smaller.data_ptr() not in places
    del several
    assert buffers.bytes_out == SIZE // 2
    assert buffers.bytes_free <= 4 * SIZE


def test_a_block_is_reused_for_slightly_smaller_tensors():
    buffers = BufferPool()
    place = buffers.empty((SIZE,), torch.uint8).data_ptr()
    nearly = buffers.empty((SIZE - SIZE // 6,), torch.uint8)
    assert nearly.data_ptr() == place and nearly.nbytes == SIZE - SIZE // 6
    del nearly
    assert buffers.empty((SIZE + 1,), torch.uint8).data_ptr() != place
    assert buffers.empty((SIZE // 2,), torch.uint8).data_ptr() != place


def test_small_tensors_are_not_pooled():
    buffers = BufferPool()
    assert buffers.empty((4,), torch.int32).shape == (4,) and buffers.bytes_out == 0


def test_tensors_survive_the_pool():
    buffers = BufferPool()
    held = buffers.empty(SHAPE, torch.float32).fill_(3.0)
    del buffers
    assert (held == 3.0).all()


def test_pools_share_free_blocks_and_count_their_own():
    one, other = BufferPool(), BufferPool()
    batch = one.empty(SHAPE, torch.float32)
    place = batch.data_ptr()
    assert (one.bytes_out, other.bytes_out) == (SIZE, 0)
    del batch
    gc.collect()
    again = other.empty(SHAPE, torch.float32)
    assert again.data_ptr() == place and (one.bytes_out, other.bytes_out) == (0, SIZE)
    del one
    gc.collect()
    assert again.fill_(2.0).sum() == 2.0 * again.numel()


def test_pools_may_be_dropped_while_another_searches_memory():
    def come_and_go() -> None:
        for _ in range(300):
            BufferPool()

    buffers = BufferPool()
    threads = [threading.Thread(target=come_and_go) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        buffers.empty(SHAPE, torch.float32)
        release_unused()
    assert buffers.bytes_out <= SIZE
