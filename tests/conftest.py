"""Choice of the tests that `pytest` alone runs, and the page on parity.

Without a file or ``-m``, slow tests and those that need the real DALI are left out; CI runs them all.
``pytest -m parity --write-parity=docs/parity.md`` writes the page from the tests' own comparisons.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import parity_table

TESTS = Path(__file__).resolve().parent
# Thousands of small pipelines: replicas would take longer to start than to run. Tests that are about them ask for them.
os.environ.setdefault("TORCHDALI_PROCESSES", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-parity", metavar="FILE", help="write the page on parity with DALI")

    parser.addoption(
        "--processes", type=int, metavar="N", help="run pipelines in N worker processes by default"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts jobs in the background with interrupts ignored; the tests send some, to children too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.markexpr:
        config.option.markexpr = (
            "not slow and not parity"  # `pytest` alone: what takes a few minutes
        )
    processes = config.getoption("--processes")
    if processes:
        from torchdali.execute.workers import placing
        from torchdali.execute.workers.server import Server
        from torchdali.pipeline._options import PipelineOptions

        placing.may_fork = lambda: False  # earlier tests may have left threads
        server = Server.shared()  # the same one for all tests
        config.add_cleanup(server.release)
        stays = placing._stays

        def stays_of_tests(stage: Any, readers: Any, forked: bool) -> str:
            chained = () if stage.chain is None else stage.chain.nodes
            modules = {n.operator.body.__module__ for n in (*stage.steps, *chained)}
            if any(module.startswith("tests.") for module in modules):
                return "an operator of the tests shares memory with them"
            return stays(stage, readers, forked)

        placing._stays = stays_of_tests
        defaults: Any = PipelineOptions.__init__.__kwdefaults__
        defaults["num_processes"] = processes
    path = config.getoption("--write-parity")
    if path:
        config.pluginmanager.register(_Writer(Path(path)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test of which a case needs a package that has no wheel for free-threaded Python."""
    try:
        return (yield)
    except RuntimeError as error:
        free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        for package, module in () if not free_threaded else (("imagecodecs", "imagecodecs"), ("opencv-python-headless", "cv2")):
            if f"needs the package {package!r}" in str(error) and importlib.util.find_spec(module) is None:
                pytest.skip(f"needs {package}")
        raise


def pytest_collection_finish() -> None:
    # Tests that call the garbage collector need not wait for it to look at all modules and tests.
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


class _Writer:
    """Writes the page at the end of a session in which nothing failed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed[report.nodeid.partition("::")[0]] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.testsfailed:
            print(f"\n{self._path} is not written: tests failed")
            return
        modules = {m.__file__: m for m in map(_module, session.items) if m is not None}
        exceptions: dict[str, list[str]] = defaultdict(list)
        subjects: dict[str, tuple[str, int]] = {}
        for file, module in sorted(modules.items()):
            for name, reason in getattr(module, "EXCEPTIONS", {}).items():
                exceptions[name].append(reason)
            name = Path(file).relative_to(TESTS).as_posix()
            count = self._passed[f"tests/{name}"]
            subjects[name] = ((module.__doc__ or "").splitlines()[0], count)
        short = _audit()
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if short else session.exitstatus
        page = parity_table.page(exceptions, subjects, short)
        self._path.write_text(page, encoding="utf-8")


def _audit() -> list[str]:
    """Return what the cases of this session leave out, and print it."""
    from tests.helpers import (
        parity_audit,  # declares operators, which other tests do when they want
    )

    cases = parity_table.cases()
    found = parity_audit.short(cases)
    lines = [f"`{name}`: {got}; demanded: {must}" for name, (got, must) in found.items()]
    lines += [f"`{case}`: {distance}" for case, distance in parity_audit.far(cases).items()]
    for line in lines:
        print(f"\ntoo few cases, or too far: {line}")
    if found:
        print("\nwhy there are fewer stands in ELSEWHERE or NARROW of tests/helpers/parity_audit.py")
    return lines


def _module(item: pytest.Item) -> Any:
    node = item.getparent(pytest.Module)
    return None if node is None or item.get_closest_marker("parity") is None else node.obj
