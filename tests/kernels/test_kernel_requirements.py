"""The requirements of the batch kernels: without a compiler, operators run per sample, and warn."""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from torchdali._commands import doctoring
from torchdali.kernels.device import tables

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")


@pytest.fixture(autouse=True)
def complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    """Simulate a system that meets all requirements."""
    (tmp_path / "Python.h").write_text("")
    monkeypatch.setattr(tables.sys, "platform", "linux")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "triton" or None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == "gcc" else None)
    monkeypatch.setattr(sysconfig, "get_paths", lambda scheme: {"include": str(tmp_path)})
    monkeypatch.delenv("CC", raising=False)
    tables._can_compile.cache_clear()
    yield
    tables._can_compile.cache_clear()


def _without(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    if what == "triton":
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    elif what == "compiler":
        monkeypatch.setattr(shutil, "which", lambda name: None)
    elif what == "header":
        monkeypatch.setattr(sysconfig, "get_paths", lambda scheme: {"include": "/none"})


@pytest.mark.parametrize(("what", "words"), [("compiler", "C compiler"), ("header", "Python.h"), ("triton", "")])
def test_without_the_requirements_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch, what: str, words: str) -> None:
    _without(monkeypatch, what)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not any(tables.has_kernels(CUDA) for _ in range(3))
    assert [words in str(each.message) for each in said] == [True] * bool(words)
    finding = doctoring._check_kernels()
    assert finding.state is doctoring.ComponentState.MISSING
    assert (words or "Triton") in str(finding) and "one by one" in str(finding)


@pytest.mark.parametrize("given", ["gcc", "clang", "CC"])
def test_with_any_compiler_there_are_kernels(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name if name == given else None)
    if given == "CC":
        monkeypatch.setenv("CC", "/opt/bin/cc")
    assert tables.has_kernels(CUDA) and not tables.has_kernels(CPU)
