"""Tests that are skipped because a package is missing: each run of pytest lists them at its end.

If ``TORCHDALI_LEFT_OUT`` names a file, runs append the packages that were installed and missing; as a script, with that
file, this module lists the packages that no run had: their tests never ran.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

__all__ = ["LeftOut", "unseen"]

_MARK = "without the package "


class LeftOut:
    """A plugin that records the results of `pytest.importorskip`."""

    def __init__(self) -> None:
        self._has: set[str] = set()
        self._has_not: dict[str, set[str]] = defaultdict(set)  # tests, or files, by package
        self._import = pytest.importorskip

    def importorskip(
        self, modname: str, minversion: str | None = None, reason: str | None = None, **options: Any
    ) -> Any:
        """Import a module, or skip the test; the message names the package."""
        __tracebackhide__ = True
        try:
            module = self._import(modname, minversion, reason, **options)
        except pytest.skip.Exception as skipped:
            text = f"{skipped.msg} ({_MARK}{modname.partition('.')[0]})"
            raise pytest.skip.Exception(text, allow_module_level=True) from None
        self._has.add(modname.partition(".")[0])
        return module

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a skipped test."""
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a skipped file."""
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or not isinstance(report.longrepr, tuple):
            return
        _, mark, package = str(report.longrepr[2]).rpartition(_MARK)
        if mark:
            self._has_not[package.rstrip(")")].add(report.nodeid.partition("[")[0])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send this process's packages to the process that collects reports, if there is one."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["has"] = sorted(self._has)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Record the packages of a pytest-xdist process."""
        self._has.update(getattr(node, "workeroutput", {}).get("has", ()))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List packages and tests."""
        if path := os.environ.get("TORCHDALI_LEFT_OUT"):
            with open(path, "a", encoding="utf-8") as out:
                out.write(json.dumps({"has": sorted(self._has), "has_not": self._without()}) + "\n")
        lines = _lines(self._without())
        if lines:
            terminalreporter.section("left out, as packages are not installed")
            terminalreporter.write_line("\n".join(lines))

    def _without(self) -> dict[str, list[str]]:
        return {package: sorted(tests) for package, tests in sorted(self._has_not.items())}


def _lines(without: dict[str, list[str]]) -> list[str]:
    """Return a line for each package: the number of tests or files, and some of their names."""
    return [
        f"{package}: {len(tests)}, {', '.join(tests[:3])}{' ...' if len(tests) > 3 else ''}"
        for package, tests in without.items()
    ]


def unseen(runs: Iterable[str]) -> list[str]:
    """Return one line for each package that no run had, with its tests.

    Args:
        runs: The lines that the runs wrote.
    """
    read = [json.loads(run) for run in runs]
    had = {package for run in read for package in run["has"]}
    without: dict[str, set[str]] = defaultdict(set)
    for run in read:
        for package in run["has_not"].keys() - had:
            without[package].update(run["has_not"][package])
    return _lines({package: sorted(tests) for package, tests in sorted(without.items())})


if __name__ == "__main__":
    for line in unseen(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()):
        print(f"run nowhere, for want of {line}")
