"""Each program of ``docs/recipes`` and ``docs/first_script.md`` runs by itself, on small data, and prints the output on the page."""

from __future__ import annotations

import ast
import functools
import http.server
import importlib.metadata
import importlib.util
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
from torchdali import cli
from torchdali._demo import recipe_data

ALL = recipes.recipes()
EXTRAS = {"torchdali[video]": "av", "torchdali[audio]": "soundfile", "torchdali[remote]": "aiohttp"}
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
    recipe_data.write(root)
    return root


@pytest.fixture(scope="session")
def server(data):
    """Return the address of the data on a web server of this machine."""

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
    """Return whether lines are printed in this order, perhaps among others."""
    rest = iter(printed)
    return all(any(line.strip().endswith(each) for line in rest) for each in wanted)


CAT_OR_DOG = "assert ((images[:, 0].mean((1, 2)) < 0).long() == {labels}).all()"
RED_OR_YELLOW = """
red, green = images[:, :2].amax((2, 3)).T > 0
assert red.any() and (green.long() == {labels})[red].all()
"""
MASKS = """
for _ in range(2):
    for images, labels in train:
        assert ((images[:, 0] > 0) == (labels.view(-1, 64, 64) == 1)).float().mean() > 0.95
        assert len(labels.unique()) == 2
"""
AROUND = """
        rows, columns = ((image[0] > 0.5).any(axis).nonzero().flatten() for axis in (1, 0))
        found = torch.stack([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
        assert (found - boxes[0]).abs().max() < 6
"""
AGAIN = CAT_OR_DOG.format(labels="numbers") + """
again = [number for _, numbers in train for number in numbers.tolist()]
assert len(again) == 40 and again != seen
"""
CHECKS = {
    "The script": """
again = DataLoader(train_set, batch_size=32, shuffle=True, num_workers=2)
again.load_state_dict(torch.load(checkpoint)["train"])
assert sum(len(labels) for _, labels in again) == 25
""",
    "Segmentation with masks": MASKS,
    "Masks in a pipeline": MASKS,
    "Detection with boxes": """
for images, targets in train:
    for image, boxes in zip(images, (target["boxes"] for target in targets)):""" + AROUND,
    "Boxes in a pipeline": """
for batch in train:
    for image, boxes in zip(batch["images"], batch["boxes"]):""" + AROUND,
    "SimCLR: two views of each image": """
assert not torch.equal(first, second)
assert torch.equal(*(each.mean((2, 3)).argmax(1) for each in (first, second)))
""",
    "DINO: multi-crop": "assert not torch.equal(*crops[:2])",
    "Video clips": """
columns = (clips[:, 0] + 1).clamp(min=0).sum(2)  # brightness by frame and column
whole = columns.sum(2)
place = (columns * torch.arange(32)).sum(2) / whole
visible = whole[:, [0, -1]].amin(1) > 50
assert ((place[:, -1] > place[:, 0]).long() == labels)[visible].all()
""",
    "Audio": "assert ((mels.mean(2).argmax(1) < 20).long() == labels).all()",
    "Mixup inside the pipeline": """
red = torch.tensor([(200 - 124) / 58, (40 - 124) / 58])
assert (share * red[labels] + (1 - share) * red[others] - images[:, 0].mean((1, 2))).abs().max() < 0.1
""",
    "Weighted sampling": AGAIN,
    "Weighted sampling in a pipeline": AGAIN,
    "Test-time augmentation": "assert torch.equal(images[:, 0].flip(3), images[:, 1])",
    "A list in a CSV file": RED_OR_YELLOW.format(labels="numbers"),
    "A CSV file in a pipeline": RED_OR_YELLOW.format(labels="numbers"),
    "Remote data": RED_OR_YELLOW.format(labels="numbers"),
    "webdataset archives": RED_OR_YELLOW.format(labels="labels"),
    "Hugging Face datasets": CAT_OR_DOG.format(labels="labels"),
    "A split in a pipeline": CAT_OR_DOG.format(labels="labels"),
    "Training and validation parts of one folder": CAT_OR_DOG.format(labels="labels"),
}
"""Lines that run at the end of a program, for what it does not print: by title."""


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.title)
def test_recipe(recipe, data, server, tmp_path):
    missing = [package for package in recipe.packages if absent(package)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    work = tmp_path / "work"
    shutil.copytree(data, work)
    program = work / recipe.file
    code = recipe.code.replace("https://example.org/", server)
    program.write_text(f"{code}\n{CHECKS.get(recipe.title, '')}\n", encoding="utf-8")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if recipe.processes > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, program.name], cwd=work, capture_output=True, text=True, timeout=300, check=False,
        env={
            **os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
            "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "NO_ALBUMENTATIONS_UPDATE": "1", "ACCELERATE_USE_CPU": "1",
            "RAY_USAGE_STATS_ENABLED": "0", "HOME": str(tmp_path),
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


def test_file_names_differ_and_hide_no_package():
    names = [recipe.file.removesuffix(".py") for recipe in ALL]
    assert len(set(names)) == len(names)
    assert not {name for name in names if importlib.util.find_spec(name) is not None}


def test_the_demo_writes_files_for_the_recipes(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "new" / "demo"
    assert cli.main(["demo", "--keep", str(folder)]) == 0
    assert capsys.readouterr().out.startswith(f"Files for the recipes in {folder}:\n  images/train")
    for place, count in {"images/train/*/*.jpg": 25, "images/val/*/*.jpg": 10, "photos/*.jpg": 20, "archives/*.tar": 2, "sounds/*/*.wav": 20}.items():
        assert len(list(folder.glob(place))) == count
    assert cli.main(["demo", "--keep", str(tmp_path)]) == 1
    assert "pass a new folder" in capsys.readouterr().err and [path.name for path in tmp_path.iterdir()] == ["new"]


def test_the_demo_reports_skipped_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["demo", f"--keep={tmp_path / 'data'}"]) == 0
    printed = capsys.readouterr().out
    assert "clips, 20 videos of 2 classes: skipped, needs pip install " in printed and '[video]"' in printed
    assert not (tmp_path / "data" / "clips").exists() and (tmp_path / "data" / "table.csv").exists()


def test_the_demo_adds_files_that_it_skipped_before(tmp_path, capsys, monkeypatch):
    picture = tmp_path / "data" / "photos" / "000.jpg"
    with monkeypatch.context() as without:
        without.setattr(importlib.util, "find_spec", lambda name: None)
        assert cli.main(["demo", f"--keep={tmp_path / 'data'}"]) == 0
    picture.write_bytes(b"changed")
    (tmp_path / "data" / "train.py").touch()
    assert cli.main(["demo", f"--keep={tmp_path / 'data'}"]) == 0
    for part in recipe_data.PARTS:
        is_there = not part.package[0] or importlib.util.find_spec(part.package[0]) is not None
        assert (tmp_path / "data" / part.path).exists() == is_there
    assert picture.read_bytes() == b"changed"


def test_recipes_read_the_files_of_the_demo():
    words = " ".join(part.files for part in recipe_data.PARTS)
    read = {path for recipe in ALL for path in re.findall(r"\"(images/\w+|photos|masks|annotations\.json|table\.csv|archives|sounds|clips|arrays\.h5)\b", recipe.code)}
    assert read and all(path.split("/")[0] in words for path in read)


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
