"""Cores of worker processes on machines with several NUMA nodes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchdali.execute.affinity import cores_of_processes

EIGHT = tuple(range(8))
LEFT, RIGHT = EIGHT[:4], EIGHT[4:]


@pytest.mark.parametrize(
    ("nodes", "threads", "cores"),
    [
        ([], [4, 4], [EIGHT] * 2),
        (["0-7"], [4, 4], [EIGHT] * 2),
        (["0-3", "4-7"], [4, 4], [LEFT, RIGHT]),
        (["0-3", "4-7"], [2, 2, 2, 2], [LEFT, LEFT, RIGHT, RIGHT]),
        (["0-3", "4-7"], [2, 1, 1], [LEFT, LEFT, RIGHT]),
        (["0,2,4,6", "1,3,5,7"], [4, 4], [(0, 2, 4, 6), (1, 3, 5, 7)]),
        (["0-3", "4-7", ""], [4, 4], [LEFT, RIGHT]),  # a node with memory only
        (["0-3", "4-7", "8-11"], [4, 4], [LEFT, RIGHT]),  # cores that this process may not use
        (["0-3", "4-7"], [4], [EIGHT]),  # fewer processes than nodes
        (["0-3", "4-7"], [3, 3, 3], [EIGHT] * 3),  # six threads on a node of four
    ],
)
def test_processes_stay_on_a_node(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nodes: list[str],
    threads: list[int],
    cores: list[tuple[int, ...]],
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(EIGHT))
    for i, each in enumerate(nodes):
        (tmp_path / f"node{i}").mkdir()
        (tmp_path / f"node{i}" / "cpulist").write_text(f"{each}\n")
    assert cores_of_processes(threads, tmp_path) == cores
