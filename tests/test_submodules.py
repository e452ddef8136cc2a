"""Modules of a package are attributes without an explicit import."""

from __future__ import annotations

import importlib
import os
import traceback

import pytest

from tests.helpers.own_process import in_own_process

MODULES = (
    "experimental.dynamic", "experimental.dynamic.pytorch", "experimental.dynamic.pytorch.nodes", "experimental.torchvision",
    "experimental.torchvision.v2.functional", "plugin.base_iterator", "plugin.numba.fn.experimental", "plugin.pytorch",
    "plugin.pytorch.experimental.proxy", "plugin.pytorch.fn", "plugin.resharding", "plugin.triton", "tuning", "types",
)  # fmt: skip


def is_there(name: str) -> bool:
    """Return whether an attribute of torchdali that no code imports is the module of this name."""
    found: object = importlib.import_module("torchdali")
    for part in name.split("."):
        found = getattr(found, part)
    return getattr(found, "__name__", "") == f"torchdali.{name}"


def missing() -> list[str]:
    """Return the names that are missing in a process that has only imported torch."""
    importlib.import_module("torch")
    found = []
    for name in MODULES:
        child = os.fork()
        if not child:
            try:
                os._exit(0 if is_there(name) else 1)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        if os.waitpid(child, 0)[1]:
            found.append(name)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_modules_are_attributes() -> None:
    pytest.importorskip("torchdata.nodes", reason="needs torchdata")
    assert in_own_process("tests.test_submodules", "missing()") == []


@pytest.mark.parametrize("name", ["experimental.dynamic.pytorch", "plugin.triton", "plugin.resharding", "plugin.pytorch"])
def test_an_attribute_that_nothing_has_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, _, leaf = f"torchdali.{name}".rpartition(".")
    importlib.import_module(f"torchdali.{name}")
    monkeypatch.delattr(importlib.import_module(parent), leaf, raising=False)
    assert is_there(name)


@pytest.mark.parametrize("package", ["plugin", "plugin.pytorch", "experimental", "experimental.dynamic", "experimental.dynamic.pytorch"])
def test_other_names_raise_attribute_errors(package: str) -> None:
    module = importlib.import_module(f"torchdali.{package}")
    for name in ("no_such_module", "_private", "__wrapped__", "readers_"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(module, name)
        assert not hasattr(module, name)
