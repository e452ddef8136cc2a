"""A type checker accepts a user's program, and finds mistakes; `help` describes every argument."""

from __future__ import annotations

import ast
import inspect
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import PIL.Image
import pytest

from tests.helpers.pages import own_operators
from torchdali import fn, ops
from torchdali.declaration.registry import registry

ROOT = Path(__file__).resolve().parents[2]

HERE = Path(__file__).parent


def _mypy(program: Path) -> set[int]:
    """Return the lines in which mypy finds errors."""
    pytest.importorskip("mypy", reason="needs mypy, of the extra 'lint'")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--check-untyped-defs", "--no-error-summary", "--follow-imports=silent",
         "--disable-error-code=import-untyped", "--cache-dir", str(ROOT / ".mypy_cache"), str(program)],
        cwd=program.parent, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    print(done.stdout)
    return {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}


def _pyright(program: Path) -> set[int]:
    """Return the lines in which pyright finds errors."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    settings = {"include": [program.name], "extraPaths": [str(ROOT)]}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=program.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        pytest.skip(f"pyright does not run: {done.stdout[-200:]}{done.stderr[-200:]}")
    assert found["summary"]["filesAnalyzed"] == 1
    errors = [each for each in found["generalDiagnostics"] if each["severity"] == "error"]
    print(*(f"{each['range']['start']['line'] + 1}: {each['message']}" for each in errors), sep="\n")
    return {each["range"]["start"]["line"] + 1 for each in errors}


@pytest.mark.slow
@pytest.mark.parametrize("check", [_mypy, _pyright])
def test_a_type_checker_accepts_correct_lines(check: Callable[[Path], set[int]], tmp_path: Path) -> None:
    program = Path(shutil.copy(HERE / "correct_lines.py", tmp_path))
    tree = ast.parse(program.read_text())
    lines = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    left_out = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    assert sum(not isinstance(line, left_out) for line in lines) >= 65
    assert check(program) == set()


@pytest.mark.slow
@pytest.mark.parametrize("check", [_mypy, _pyright])
def test_a_type_checker_finds_mistakes(check: Callable[[Path], set[int]], tmp_path: Path) -> None:
    program = Path(shutil.copy(HERE / "mistakes.py", tmp_path))
    wrong = {i for i, line in enumerate(program.read_text().splitlines(), 1) if "  # " in line}
    assert len(wrong) >= 20 and check(program) == wrong


@pytest.mark.slow
def test_correct_lines_run(tmp_path: Path) -> None:
    for i in range(10):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        PIL.Image.new("RGB", (30 + i, 20), (20 * i, 0, 0)).save(tmp_path / "ab"[i % 2] / f"{i}.png")
    with own_operators():
        runpy.run_path(str(HERE / "correct_lines.py"))["main"](tmp_path)


def test_help_describes_every_argument() -> None:
    missing = {}
    for operator in registry.values():
        if operator.hidden or not operator.implementation.__module__.startswith("torchdali."):
            continue
        text = inspect.getdoc(operator.function) or ""
        arguments = [a.name for a in operator.schema.arguments.values() if not a.hidden]
        lacking = [name for name in arguments if f"    {name}: " not in text]
        if lacking and operator.name != "external_source":
            missing[operator.name] = lacking
    assert not missing
    assert ops.Resize.__doc__ == fn.resize.__doc__


def test_signatures_are_plain() -> None:
    assert "Annotated" not in str(inspect.signature(fn.resize))
    assert "size: list[float] | None = None" in str(inspect.signature(fn.resize))


@pytest.mark.slow
def test_a_closed_pipe_ends_the_output_quietly() -> None:
    command = [sys.executable, "-m", "torchdali", "doctor"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 141 and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
