"""Wheels with and without the C library; the build writes the type stubs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from torchdali.installation import tools_command

pytest.importorskip("setuptools", "77.0.3")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "torchdali/libtorchdali.dll" if sys.platform == "win32" else "torchdali/libtorchdali.so"
FAILING = "a-compiler-that-is-not-there"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the sources, which builds may write to."""
    folder = tmp_path_factory.mktemp("sources") / "torchdali"
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "libtorchdali.*", "*.pyi", "operators")
    shutil.copytree(ROOT, folder, ignore=unwanted)
    return folder


def _setup(tree: Path, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "setup.py", *arguments]
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("TORCHDALI_")}
    done = subprocess.run(command, cwd=tree, env={**inherited, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _wheel(tree: Path, **environment: str) -> tuple[str, set[str], str]:
    """Return the tag and the files of a wheel, and the build's output."""
    target = tree / "wheels"
    shutil.rmtree(target, ignore_errors=True)
    printed = _setup(tree, "bdist_wheel", "--dist-dir", str(target), **environment)
    (path,) = target.iterdir()
    with zipfile.ZipFile(path) as wheel:
        return path.stem.split("-", 2)[2], set(wheel.namelist()), printed


def test_a_library_that_cannot_be_built_is_skipped(tree: Path) -> None:
    tag, files, printed = _wheel(tree)
    built = LIBRARY in files
    assert tag.startswith("py3-none-") and tag.endswith("-any") == (not built)
    for environment in ({"CC": FAILING}, {"TORCHDALI_NO_EXTENSIONS": "1"}):  # and older build results are not delivered
        tag, files, printed = _wheel(tree, **environment)
        assert tag == "py3-none-any" and LIBRARY not in files
        assert "built without its fast path" in printed and "torchdali doctor" in printed and tools_command() in printed
    assert not [name for name in files if name.endswith((".c", ".h"))]
    tag, files, _ = _wheel(tree)
    assert (LIBRARY in files) == built
    stubs = {name for name in files if name.endswith(".pyi")}
    assert {"torchdali/fn/__init__.pyi", "torchdali/ops/random.pyi", "torchdali/experimental/dynamic/math.pyi"} <= stubs
    assert files >= {f"{name.removesuffix('.pyi')}.py" for name in stubs if name.count("/") == 2 and "__init__" in name}


def test_an_editable_install_is_a_path_which_type_checkers_follow(tree: Path) -> None:
    code = "from setuptools import build_meta; build_meta.build_editable('editable')"
    (tree / "editable").mkdir()
    for old in (tree / "torchdali").rglob("*.pyi"):
        old.unlink()
    environment = {**os.environ, "TORCHDALI_NO_EXTENSIONS": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=tree, env=environment, capture_output=True, check=True)
    (path,) = (tree / "editable").iterdir()
    with zipfile.ZipFile(path) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith(".pth"))
        assert wheel.read(name).decode().strip() == str(tree.resolve())
        assert not [each for each in wheel.namelist() if each.endswith(".py")]
    assert (tree / "torchdali/fn/__init__.pyi").is_file()


def test_a_build_continues_without_stubs_and_warns(tree: Path) -> None:
    module = tree / "torchdali/stubs/operators.py"
    text = module.read_text(encoding="utf-8")
    module.write_text("raise RuntimeError", encoding="utf-8")
    try:
        _, _, printed = _wheel(tree, TORCHDALI_NO_EXTENSIONS="1")
    finally:
        module.write_text(text, encoding="utf-8")
    assert "built without type stubs" in printed


def test_a_wheel_that_requires_the_library_is_not_built_without_it(tree: Path) -> None:
    with pytest.raises(AssertionError, match=f"(?s)fast path could not be built. It needs a C compiler and libjpeg-turbo's headers: .*{FAILING}"):
        _wheel(tree, CC=FAILING, TORCHDALI_NEED_EXTENSIONS="1")


def test_a_failed_in_place_build_removes_the_old_library(tree: Path) -> None:
    for environment in ({"CC": FAILING}, {"TORCHDALI_NO_EXTENSIONS": "1"}):
        (tree / LIBRARY).write_bytes(b"of an earlier version")
        _setup(tree, "build_ext", "--inplace", **environment)
        assert not (tree / LIBRARY).exists()


def test_the_sdist_has_all_files_for_builds_and_tests(tree: Path) -> None:
    _setup(tree, "sdist", "--dist-dir", str(tree / "sdist"))
    (path,) = (tree / "sdist").iterdir()
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = [
        *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "SECURITY.md", "setup.py"),
        *("native/src/native.c", "native/src/native.h", "native/fuzz/fuzz.c", "native/Makefile"),
        *("docs/landing.md", "examples/speech_digits.py", "benchmarks/NOTES.md", "tests/conftest.py"),
        *(str(file.relative_to(ROOT).as_posix()) for file in (ROOT / "tests").rglob("*.py")),
    ]
    assert not set(wanted) - names
    assert LIBRARY not in names
    assert not [name for name in names if name.endswith(".pyi") or name.startswith("docs/operators/")]
