"""Tests that are skipped because a package is missing are listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.left_out import LeftOut, unseen


class Terminal:
    def __init__(self) -> None:
        self.text: list[str] = []

    def section(self, title: str) -> None:
        self.text.append(title)

    def write_line(self, line: str) -> None:
        self.text.append(line)


def report(nodeid: str, message: str | None) -> Any:
    longrepr = None if message is None else ("file.py", 3, f"Skipped: {message}")
    return pytest.TestReport(nodeid, ("file.py", 3, ""), {}, "skipped" if message else "passed", longrepr, "call")


def test_a_run_names_packages_and_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDALI_LEFT_OUT", str(tmp_path / "runs"))
    plugin, terminal = LeftOut(), Terminal()
    assert plugin.importorskip("json").loads("1") == 1
    with pytest.raises(pytest.skip.Exception) as left:
        plugin.importorskip("no_such_package.part", reason="there is none")
    for name in ("a", "b[1]", "b[2]", "c", "d"):
        plugin.pytest_runtest_logreport(report(f"tests/test_x.py::{name}", str(left.value)))
    plugin.pytest_runtest_logreport(report("tests/test_x.py::e", "needs a CUDA device"))
    plugin.pytest_runtest_logreport(report("tests/test_x.py::f", None))
    plugin.pytest_terminal_summary(terminal)
    found = "no_such_package: 4, tests/test_x.py::a, tests/test_x.py::b, tests/test_x.py::c ..."
    assert terminal.text == ["left out, as packages are not installed", found]
    assert str(left.value).startswith("there is none")
    assert unseen((tmp_path / "runs").read_text().splitlines()) == [found]


def test_installed_packages_are_not_named() -> None:
    runs = [{"has": ["av"], "has_not": {"numba": ["x"], "ray": ["y"]}}, {"has": ["numba"], "has_not": {"ray": ["z"]}}]
    assert unseen(map(json.dumps, runs)) == ["ray: 2, y, z"]
    assert unseen([]) == []
