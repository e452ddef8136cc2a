"""Programs as users write them end with their own exit code, and print nothing else on stderr."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.helpers.ending_programs import FRESH, PROGRAMS, QUICK, Ending, run_forked, run_fresh
from tests.helpers.pages import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks processes that have imported torch")


PACKAGE = ROOT / "torchdali"
OTHERS = [name for name in PROGRAMS if name not in (*FRESH, *QUICK)]
# Code that starts threads of another class, and why they are not in C++ code at interpreter exit.
OTHER_THREADS = {
    "execute/executor.py": "is no daemon, and starts processes only",
    "execute/hardware_decoding.py": "concurrent.futures waits for it",
    "execute/workers/channel.py": "of a worker process, sleeps",
    "kernels/torch_threads.py": "concurrent.futures waits for it",
    "dali/proxy/arrivals.py": "looks at processes, and ends with the iterator",
    **dict.fromkeys(
        ("ops/_readers/_class_folders.py", "ops/_readers/_records.py", "containers/_statistics.py", "containers/_pack.py",
         "_commands/benching.py"), "ends with the call that starts it"),
}  # fmt: skip


def test_threads_are_waited_for_at_the_end() -> None:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text("utf-8")
        if not any(name in text for name in ("Thread(", "ThreadPoolExecutor(")):
            continue
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        if any(ast.unparse(call) in ("threading.Thread", "ThreadPoolExecutor") for call in calls):
            found.add(file.relative_to(PACKAGE).as_posix())
    assert found == set(OTHER_THREADS)


def run_all(names: Iterable[str], folder: Path) -> dict[str, Ending]:
    return run_forked([name for name in names if importlib.util.find_spec(PROGRAMS[name].needs)], str(folder))


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ending]:
    return run_all(QUICK, tmp_path_factory.mktemp("quick"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ending]:
    return run_all(OTHERS, tmp_path_factory.mktemp("others"))


def check(name: str, ending: Ending) -> None:
    program = PROGRAMS[name]
    assert ending.code == program.code, ending.stderr
    if program.says:
        assert program.says in ending.stderr and "Exception ignored" not in ending.stderr
    else:
        assert ending.stderr == ""


@pytest.mark.parametrize("name", QUICK)
def test_program(name: str, endings: dict[str, Ending]) -> None:
    pytest.importorskip(PROGRAMS[name].needs)
    check(name, endings[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_program(name: str, others: dict[str, Ending]) -> None:
    pytest.importorskip(PROGRAMS[name].needs)
    check(name, others[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", FRESH)
def test_program_in_a_new_interpreter(name: str, tmp_path: Path) -> None:
    pytest.importorskip(PROGRAMS[name].needs)
    check(name, run_fresh(name, str(tmp_path)))
