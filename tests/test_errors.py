"""The classes of operators' exceptions."""

from __future__ import annotations

import linecache
import os
import pickle
import site
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from torchdali import errors
from torchdali.errors import is_installed, locate_user_code
from torchdali.graph.conditionals import convert


@pytest.mark.parametrize(
    "kind", [ValueError, TypeError, IndexError, KeyError, NotImplementedError, MemoryError]
)
def test_a_located_error_is_a_pipeline_error_and_of_its_class(kind: type[Exception]) -> None:
    cause = kind("three of two")
    made = errors.locate_error(cause, "operator 'crop'")
    assert isinstance(made, errors.PipelineError) and isinstance(made, RuntimeError)
    assert isinstance(made, kind)
    assert str(made) == f"operator 'crop'\n  {kind.__name__}: {cause}"
    assert made.__cause__ is cause
    copy = pickle.loads(pickle.dumps(made))
    assert type(copy) is type(made) and str(copy) == str(made)


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("odd"), ZeroDivisionError()])
def test_other_errors_are_pipeline_errors(error: Any) -> None:
    assert type(errors.locate_error(error, "here")) is errors.PipelineError


STDLIB, HOME = sysconfig.get_path("stdlib"), os.path.expanduser("~")
FILES = {
    "Python's": (os.path.join(STDLIB, "json", "decoder.py"), True),
    "Python's, written in C": (os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload", "_json.py"), True),
    "Python's, frozen": ("<frozen importlib._bootstrap>", True),
    "the environment's": (os.path.join(sysconfig.get_path("purelib"), "PIL", "Image.py"), True),
    "pip --user": (os.path.join(HOME, ".local", "lib", "python3.11", "site-packages", "PIL", "Image.py"), True),
    "site's folder of the user": (os.path.join(site.getusersitepackages(), "a.py"), True),
    "Debian's": ("/usr/lib/python3/dist-packages/PIL/Image.py", True),
    "Debian's, by pip": ("/usr/local/lib/python3.11/dist-packages/PIL/Image.py", True),
    "another environment, by .pth": ("/srv/base/lib/python3.11/site-packages/PIL/Image.py", True),
    "a ZIP file that is installed": ("/opt/env/lib/python3.11/site-packages/tool.egg/tool/a.py", True),
    "an editable install": (os.path.join(HOME, "src", "tool", "a.py"), False),
    "a script": (os.path.join(HOME, "train.py"), False),
    "a ZIP file of the user's": (os.path.join(HOME, "app.pyz", "a.py"), False),
    "a name like the folder of packages": ("/home/me/my-site-packages/a.py", False),
    "a folder next to Python's": (STDLIB + "-own/a.py", False),
    "a notebook": ("<ipython-input-1>", False),
    "a string": ("<string>", False),
}


@pytest.mark.parametrize("name", FILES)
def test_installed_files_are_recognized(name: str) -> None:
    file, expected = FILES[name]
    assert is_installed(file) == expected
    code = compile("def function(flag):\n    if flag:\n        return 1\n    return 2\n", file, "exec")
    linecache.cache[file] = (0, None, ["def function(flag):\n", "    if flag:\n", "        return 1\n", "    return 2\n"], file)
    scope = {"__name__": "a_module"}
    exec(code, scope)
    try:
        assert (convert(scope["function"]) is scope["function"]) == expected
    finally:
        del linecache.cache[file]
    try:
        exec(compile("raise ValueError", file, "exec"), {})
    except ValueError as error:
        frame = error.__traceback__.tb_next.tb_frame
    assert (file not in locate_user_code(frame)) == expected


@pytest.mark.slow
def test_a_package_of_a_pth_file(tmp_path: Path) -> None:
    """Write a folder of packages and an editable package, each on the path by a .pth file, as by `pip`."""
    packages, source = tmp_path / "base" / "site-packages", tmp_path / "source"
    for folder, name in ((packages, "theirs"), (source, "mine")):
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text("def function(flag):\n    if flag:\n        return 1\n    return 2\n")
    pth = tmp_path / "pth"
    pth.mkdir()
    (pth / "both.pth").write_text(f"{packages}\n{source}\n")
    script = (
        f"import site; site.addsitedir({str(pth)!r})\nimport mine, theirs\nfrom torchdali.graph.conditionals import convert\n"
        "print(convert(theirs.function) is theirs.function, convert(mine.function) is mine.function)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]
