"""Each program of ``docs/recipes`` runs alone, on small data, and prints what the page says."""

from __future__ import annotations

import ast
import functools
import http.server
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.helpers import recipes
from tests.helpers.pages import ROOT

ALL = recipes.recipes()
EXTRAS = {"torchdali[video]": "av", "torchdali[audio]": "soundfile", "torchdali[remote]": "aiohttp"}
MODULES = {"h5py": "arrays.h5", "av": "clips"}
KNOWN = {"torch", "torchvision", "torchdali", "numpy", "PIL"}


def absent(package: str) -> bool:
    name = EXTRAS.get(package, package).partition("[")[0]
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return True
    return False


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    recipes.make_data(root)
    for package, make in (("av", recipes.make_clips), ("h5py", recipes.make_arrays)):
        if not absent(package):
            make(root)
    return root


@pytest.fixture(scope="session")
def server(data):
    """The address of the data on a web server of this machine."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(data))) as serving:
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}/"
        serving.shutdown()
        thread.join()


def contained(wanted: list[str], printed: list[str]) -> bool:
    """Tell whether lines are printed, in this order, perhaps among others."""
    rest = iter(printed)
    return all(any(line.strip().endswith(each) for line in rest) for each in wanted)


# What a program leaves must be right, too: lines that run at its end.
CHECKS: dict[str, str] = {}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.title)
def test_recipe(recipe, data, server, tmp_path):
    missing = [package for package in recipe.packages if absent(package)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    work = tmp_path / "work"
    shutil.copytree(data, work)
    program = work / "train.py"
    code = recipe.code.replace("https://example.org/", server) + CHECKS.get(recipe.title, "")
    program.write_text(code, encoding="utf-8")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if recipe.processes > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, program.name], cwd=work, capture_output=True, text=True, timeout=300, check=False,
        env={
            **os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "NO_ALBUMENTATIONS_UPDATE": "1", "ACCELERATE_USE_CPU": "1",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    printed = re.split(r"[\r\n]+", done.stdout)
    assert recipe.printed
    assert contained(recipe.printed, printed), done.stdout


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.title)
def test_a_recipe_names_the_packages_that_it_imports(recipe):
    imported = set()
    for node in ast.walk(ast.parse(recipe.code)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    named = {package.partition("[")[0] for package in recipe.packages}
    assert imported <= KNOWN | named | sys.stdlib_module_names


def test_the_extra_has_all_packages():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (extra,) = re.findall(r"^recipes = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    assert {package for recipe in ALL for package in recipe.packages} <= set(re.findall(r'"([^"]*)"', extra))


def test_headings_differ():
    assert len({recipe.title for recipe in ALL}) == len(ALL)
    assert set(CHECKS) <= {recipe.title for recipe in ALL}
    for page in Path(ROOT / "docs" / "recipes").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert text.count("\n## ") == text.count("```python\n") == sum(r.page.endswith(page.name) for r in ALL)
