"""Chunks of a size that a test chooses."""

from __future__ import annotations

from typing import Any

import pytest

from torchdali.execute.compiled_chain import BoundChain, ChunkMode, Division

__all__ = ["divide_into"]


def divide_into(chunk: int, monkeypatch: pytest.MonkeyPatch) -> list[Division]:
    """Divide all batches into chunks of `size` samples, if their operators accept several.

    Returns:
        Yield the divisions, batch by batch.
    """
    choose, divisions = BoundChain.divide, list[Division]()

    def divide(self: BoundChain, batches: Any, count: int, *rest: Any) -> Division:
        division = choose(self, batches, count, *rest)
        if self.chunkable and chunk == 1:
            division = Division(1)
        elif self.chunkable and count > 1:
            mode = ChunkMode.FUSED if division.mode is ChunkMode.FUSED else ChunkMode.TENSORS
            division = Division(min(chunk, count), mode)
        divisions.append(division)
        return division

    monkeypatch.setattr(BoundChain, "divide", divide)
    return divisions
