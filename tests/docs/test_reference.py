"""The reference of operators, which ``make docs`` generates from the declarations: everything is described, and each example runs."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import io
import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import torchdali
import torchdali.ops  # declares the operators
from docs.reference import INPUTS, PICTURES, is_alias, is_public, members, reference, write
from docs.reference.families import FAMILIES, TASKS
from docs.reference.pictures import ExampleOutput, files, run
from tests.calls import CALLS
from tests.docs.test_readme import PAGES, anchors
from tests.helpers import pages
from torchdali.declaration.descriptions import descriptions
from torchdali.declaration.registry import registry

OPERATORS = {o.name: o for o in registry.values() if is_public(o) and not is_alias(o)}
EXAMPLES = {name: CALLS[name][0] for name in OPERATORS if name in CALLS}
FOLDER = pages.ROOT / "docs" / "pictures"

PACKAGES = {"experimental.readers.fits": ("astropy", "astronomy"), "decoders.inflate": ("lz4", "inflate"), "readers.table": ("pyarrow", "columns")}
WITHOUT_PICTURE = {
    "cast": "the picture stays",
    "cast_like": "the picture stays",
    "dl_tensor_python_function": "the picture stays",
    "dump_image": "the picture stays",
    "squeeze": "the picture stays",
    "full_like": "one gray",
    "ones_like": "one gray",
    "zeros_like": "one gray",
    "reductions.sum": "numbers, though one a pixel",
}
"""Operators whose example gives an image that would show nothing."""


def test_the_reference_is_written_and_outdated_pages_are_removed(tmp_path: Path) -> None:
    (tmp_path / "gone.md").touch()
    write(tmp_path)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == reference()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("operators")
    write(folder)
    return folder


def test_links_from_its_pages_lead_somewhere(written: Path) -> None:
    for page in written.iterdir():
        for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = link.partition("#")
            target = pages.ROOT / "docs" / path[3:] if path.startswith("../") else written / (path or page.name)
            assert target.exists(), (page.name, link)
            assert not anchor or target.suffix != ".md" or anchor in anchors(target), (page.name, link)


def test_links_to_its_pages_lead_somewhere(written: Path) -> None:
    links = {
        link
        for page in PAGES
        for link in re.findall(r"https://torchdali\.github\.io/torchdali/latest/operators/([^)\s]*)", page.read_text(encoding="utf-8"))
    }
    assert {"", "readers/", "readers/#cache"} <= links
    for link in links:
        page, _, anchor = link.partition("#")
        target = written / f"{page.rstrip('/') or 'README'}.md"
        assert target.exists() and (not anchor or anchor in anchors(target)), link


def test_every_operator_is_in_one_family() -> None:
    """An unlisted operator follows the operators of its module."""
    assert sorted(name for names in members().values() for name in names) == sorted(OPERATORS), "see docs/reference/families.py"
    assert all(name in OPERATORS for family in FAMILIES for name in family.names)


def test_an_operator_that_no_family_lists_is_on_the_page_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    shorter = [dataclasses.replace(f, operators=" ".join(name for name in f.names if name != "rotate")) for f in FAMILIES]
    monkeypatch.setattr("docs.reference.FAMILIES", tuple(shorter))
    members.cache_clear()
    try:
        assert members()["warps"][-1] == "rotate" and sum("rotate" in names for names in members().values()) == 1
    finally:
        members.cache_clear()


def test_the_tasks_name_operators() -> None:
    assert {name for names in TASKS.values() for name in names.split()} <= OPERATORS.keys()
    assert "| [resize](sizes.md#resize) |" in reference()["README.md"]


def test_the_reference_describes_inputs_and_arguments() -> None:
    entry = reference()["sizes.md"].split("\n## crop_mirror_normalize\n")[1].split("\n## ")[0]
    assert "`ops.CropMirrorNormalize`" in entry and "- `mean` (" in entry
    assert "- `crop_w` (float, per sample" in entry, "shared arguments are listed"
    shared = [line for line in entry.splitlines() if line.startswith("- `crop_pos_x`")]
    assert "): " in shared[0], "and described"
    assert "Example: `fn.crop_mirror_normalize(image, " in entry
    assert "](../pictures/crop_mirror_normalize.jpg)" in entry


def test_a_signature_begins_with_required_arguments_and_those_of_the_example() -> None:
    pages_ = reference()
    assert "```py\nfn.crop(\n    data, /, *, crop=None, crop_pos_x=0.5, crop_pos_y=0.5, " in pages_["sizes.md"]
    assert "fn.rotate(\n    data, /, *, angle, " in pages_["warps.md"]
    (resize,) = re.findall(r"^fn\.resize\((.*?)^\)$", pages_["sizes.md"], re.MULTILINE | re.DOTALL)
    assert resize.rstrip().endswith("minibatch_size=32, temp_buffer_hint=0,"), "arguments without effect come last"
    assert max(map(len, resize.splitlines())) <= 88


def test_the_reference_lists_old_names() -> None:
    assert "\n- `fn.coin_flip`, `ops.CoinFlip`: [random.coin_flip](random.md#randomcoin_flip)" in reference()["README.md"]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_and_its_arguments_are_described(name: str) -> None:
    operator = OPERATORS[name]
    described = descriptions(operator)
    taken = [
        *operator.schema.inputs,
        *(a for a in operator.schema.arguments.values() if not a.hidden),
    ]
    missing = [each.name for each in taken if not described.get(each.name)]
    assert not missing, (
        f"say in the docstring of {name}, or in those of its shared arguments: {missing}"
    )
    assert (operator.implementation.__doc__ or "").strip()


def test_every_operator_has_an_example() -> None:
    needed = {name for name, o in OPERATORS.items() if o.replacement not in registry}
    assert not needed - CALLS.keys() and EXAMPLES.keys() >= PICTURES


@pytest.mark.thin(3)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_and_shows_its_image(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "video" in name:
        pytest.importorskip("av", reason="the extra `video` is not installed")
    if name in PACKAGES:
        package, extra = PACKAGES[name]
        pytest.importorskip(package, reason=f"the extra `{extra}` is not installed")
    monkeypatch.chdir(tmp_path)
    result = run(name, tmp_path)[0]
    assert EXAMPLES[name].startswith(f"fn.{name}(")
    if name in PICTURES:
        height, width, channels = result.picture().shape
        assert min(height, width) >= 64 and channels == 3
    else:
        assert not is_image(result) or name in WITHOUT_PICTURE


def is_image(result: ExampleOutput) -> bool:
    shape = result.value.shape
    return len(shape) == 3 and min(shape[:2]) >= 64 and shape[2] in (1, 3)


def test_all_names_of_the_examples_are_explained() -> None:
    words = {
        word for example in EXAMPLES.values() for word in re.findall(r"(?<!\.)\b\w+\b", example)
    }
    used = INPUTS.keys() & words
    assert used == INPUTS.keys()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_images_are_up_to_date(tmp_path: Path) -> None:
    stored = {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    drawn = files(tmp_path)
    again = "run `python -m docs.reference --pictures` and commit them"
    assert stored.keys() == drawn.keys(), again
    for name, data in drawn.items():
        one, other = (
            np.asarray(PIL.Image.open(io.BytesIO(d)), float) for d in (stored[name], data)
        )
        assert one.shape == other.shape, f"{name}: {again}"
        assert np.abs(one - other).mean() < 2, f"{name}: {again}"


def test_the_images_are_small() -> None:
    sizes = [path.stat().st_size for path in FOLDER.iterdir()]
    assert sum(sizes) < 1_500_000 and max(sizes) < 32_000


API = sorted((pages.ROOT / "docs" / "api").glob("*.md"))


@pytest.mark.parametrize("page", API, ids=lambda page: page.stem)
def test_classes_of_the_reference_exist(page: Path) -> None:
    """Each has a docstring, from which the site generates its entry."""
    names = re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert names
    for name in names:
        module, _, attribute = name.rpartition(".")
        found = importlib.import_module(name) if name == "torchdali.types" else getattr(importlib.import_module(module), attribute)
        assert inspect.getdoc(found), name


def test_the_reference_has_all_that_the_package_exports() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in API)
    named = set(re.findall(r"^::: torchdali\.(\w+)$", text, re.MULTILINE))
    assert set(torchdali.__all__) - named == {"newaxis", "OperatorConcurrency", "StreamPolicy"}
