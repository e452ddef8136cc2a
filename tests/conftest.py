"""Selection of the quick tests, and the page on parity.

Without a file or ``-m``, pytest skips slow tests and tests that need the real DALI, and runs only a sample of the tests
that compare with its stored results. If pytest-xdist is installed, it runs them with one process per core.
``pytest --write-parity=benchmarks/parity.md`` writes the pages from the tests' own comparisons, with the real DALI.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sysconfig
import zlib
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from tests import golden
from tests.helpers import parity_table
from tests.helpers.left_out import LeftOut
from torchdali.cores import cores

TESTS = Path(__file__).resolve().parent
QUICK = "not slow and not parity and (not golden or sample)"  # takes a few minutes
MOST_PROCESSES = 4  # each imports all tests
# Thousands of small pipelines: replicas would take longer to start than to run. Tests of replicas request them.
os.environ.setdefault("TORCHDALI_PROCESSES", "1")
# An error in a batched implementation would only cost time, as its samples are rerun one by one: raise it instead.
os.environ.setdefault("TORCHDALI_BROKEN_BODIES", "raise")
gc.disable()  # until all tests are collected: imported objects stay alive
_left_out = LeftOut()
pytest.importorskip = _left_out.importorskip
_states: dict[Any, list[tuple[np.random.Generator, Any]]] = {}  # of the modules' random generators


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """Exclude objects of earlier files from garbage collections, which some tests run."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def own_operators() -> Iterator[None]:
    """Remove the operators that a test declares: other tests inspect the registry."""
    from tests.helpers import pages

    with pages.own_operators():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-parity", metavar="FILE", help="write the page on parity with DALI")
    parser.addoption("--one-in", type=int, default=1, metavar="N", help="run one test of N, always the same ones")
    parser.addoption(
        "--processes", type=int, metavar="N", help="run pipelines in N worker processes by default"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run `pytest` without arguments on several cores, file by file, if pytest-xdist is installed; ``-n 0`` uses one."""
    if config.getoption("--write-parity"):
        config.option.markexpr = config.option.markexpr or "parity or golden"
        os.environ["TORCHDALI_LIVE_DALI"] = "compare"
    if not _has_no_arguments(config):
        return
    config.option.markexpr = QUICK
    is_worker = hasattr(config, "workerinput")
    if config.pluginmanager.hasplugin("xdist") and not is_worker and config.option.numprocesses is None and not config.option.usepdb:
        config.option.numprocesses, config.option.dist = min(cores(), MOST_PROCESSES), "loadfile"
        config.option.loadscopereorder = False  # files with few tests take as long as others
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch's threads spin if no core is free


def _has_no_arguments(config: pytest.Config) -> bool:
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.markexpr


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files that need the real DALI if none of their tests is selected: its import is slow."""
    chosen = config.option.markexpr
    if "not parity" not in chosen or TESTS / "parity" not in (collection_path, *collection_path.parents):
        return None
    if "golden" not in chosen:
        return True
    return True if collection_path.name.startswith("test_") and "mark.golden" not in collection_path.read_text("utf-8") else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_left_out)
    # A shell starts background jobs with interrupts ignored; the tests send interrupts, to children too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    processes = config.getoption("--processes")
    if processes:
        from torchdali.execute.workers import placing
        from torchdali.execute.workers.server import Server
        from torchdali.pipeline._options import PipelineOptions

        placing.may_fork = lambda: False  # earlier tests may have left threads
        server = Server.share()  # one server for all tests
        config.add_cleanup(server.release)
        stays = placing._find_obstacle

        def stays_of_tests(stage: Any, readers: Any, forked: bool) -> str:
            chained = () if stage.chain is None else stage.chain.nodes
            modules = {n.operator.implementation.__module__ for n in (*stage.steps, *chained)}
            if any(module.startswith("tests.") for module in modules):
                return "an operator of the tests shares memory with them"
            return stays(stage, readers, forked)

        placing._find_obstacle = stays_of_tests
        defaults: Any = PipelineOptions.__init__.__kwdefaults__
        defaults["num_processes"] = processes
    path = config.getoption("--write-parity")
    if path:
        config.pluginmanager.register(_Writer(Path(path)))


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, obj: object) -> list[pytest.Item] | None:
    """Skip a whole test function that the quick suite doesn't run: creating its items takes time."""
    if collector.config.option.markexpr != QUICK or not isinstance(obj, (FunctionType, type)):
        return None
    marks = {mark.name for mark in [*getattr(obj, "pytestmark", []), *collector.iter_markers()]}
    return [] if marks & {"slow", "parity"} else None


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Mark the rows that ``thin`` excludes and the sample of golden rows. The quick suite drops all other rows."""
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    rows = metafunc._calls
    thin = metafunc.definition.get_closest_marker("thin")
    step, first = (*thin.args, 0)[:2] if thin else (1, 0)
    for index, row in enumerate(rows):
        if index % step != first:
            row.marks.append(pytest.mark.slow.mark)
    operators = set()  # with a sample
    for row in rows:
        operator = row.params.get("name")
        if operator not in operators and "golden" in marks.union(mark.name for mark in row.marks):
            operators.add(operator)
            row.marks.append(pytest.mark.sample.mark)
    if metafunc.config.option.markexpr == QUICK and rows:
        quick = [row for row in rows if _is_quick(marks.union(mark.name for mark in row.marks))]
        rows[:] = quick or rows[:1]  # without rows, pytest would run the test without arguments


def _is_quick(marks: set[str]) -> bool:
    return not marks & {"slow", "parity"} and ("golden" not in marks or "sample" in marks)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Apply ``--one-in``, and mark golden tests without parameters as a sample."""
    count = config.getoption("--one-in")
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % count == 0]
    for item in items:
        if item.get_closest_marker("golden") and not hasattr(item, "callspec"):
            item.add_marker("sample")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test draw the same random numbers, and make the same calls of DALI, as when it runs alone."""
    for generator, state in _states.get(_module(item), ()):
        generator.bit_generator.state = state
    live = item.get_closest_marker("parity") is not None
    golden.begin(item.nodeid, live=live)
    if live:
        pytest.importorskip("nvidia.dali", reason="runs the real DALI: install the extra 'parity'")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test if it needs a package that has no wheel for free-threaded Python."""
    try:
        return (yield)
    except RuntimeError as error:
        free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        for package, module in () if not free_threaded else (("imagecodecs", "imagecodecs"), ("opencv-python-headless", "cv2")):
            if f"needs the package {package!r}" in str(error) and importlib.util.find_spec(module) is None:
                pytest.skip(f"needs {package}")
        raise


def pytest_collection_finish(session: pytest.Session) -> None:
    for module in {_module(item) for item in session.items}:
        generators = [v for v in vars(module).values() if isinstance(v, np.random.Generator)] if module else []
        _states[module] = [(generator, generator.bit_generator.state) for generator in generators]
    gc.freeze()  # so that garbage collections in tests don't visit all modules and tests
    gc.enable()


def pytest_sessionfinish() -> None:
    golden.save()


class _Writer:
    """Writes the pages at the end of a session without failures."""

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
        compared = [item for item in session.items if any(map(item.get_closest_marker, ("parity", "golden")))]
        modules = {m.__file__: m for m in map(_module, compared) if m is not None}
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
        for suffix, page in parity_table.pages(exceptions, subjects, short).items():
            self._path.with_stem(self._path.stem + suffix).write_text(page, encoding="utf-8")


def _audit() -> list[str]:
    """Return the missing cases of this session, and print them."""
    from tests.helpers import (
        parity_audit,  # declares operators, which other tests do later
    )

    cases = parity_table.cases()
    found = parity_audit.short(cases)
    lines = [f"`{name}`: {got}; demanded: {must}" for name, (got, must) in found.items()]
    lines += [f"`{case}`: {distance}" for case, distance in parity_audit.far(cases).items()]
    for line in lines:
        print(f"\ntoo few cases, or too far: {line}")
    if found:
        print("\nELSEWHERE and NARROW in tests/helpers/parity_audit.py say which operators need fewer cases, and why")
    return lines


def _module(item: pytest.Item) -> Any:
    node = item.getparent(pytest.Module)
    return None if node is None else node.obj
