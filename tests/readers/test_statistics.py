"""`torchdali stats` and `statistics`: descriptions of a folder of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from torchdali import cli
from torchdali.containers import statistics


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write three good images, one with a wrong extension, two broken ones, and a class without images."""
    root = tmp_path / "images"
    for name in ("cat", "dog", "eel"):
        (root / name).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for place, shape in (("cat/a.png", (10, 30, 3)), ("cat/b.bmp", (20, 20, 3)), ("dog/c.png", (40, 10))):
        PIL.Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(root / place)
    (root / "dog/b.jpg").write_bytes((root / "cat/b.bmp").read_bytes())
    (root / "dog/cut.png").write_bytes((root / "cat/a.png").read_bytes()[:300])
    (root / "dog/empty.jpg").touch()
    (root / "notes.txt").write_text("no image")
    return root


def test_statistics(folder: Path) -> None:
    found = statistics(folder, threads=2)
    assert (found.images, found.heights, found.widths) == (4, (10, 20, 40), (10, 20, 30))
    assert dict(found.formats) == {"PNG": 2, "BMP": 2} and dict(found.channels) == {3: 3, 1: 1}
    assert found.classes == {"cat": 2, "dog": 2, "eel": 0}
    assert found.misnamed == [(str(folder / "dog/b.jpg"), "BMP")]
    assert [Path(problem.path).name for problem in found.problems] == ["cut.png", "empty.jpg"]
    assert found.size == sum((folder / name).stat().st_size for name in ("cat/a.png", "cat/b.bmp", "dog/b.jpg", "dog/c.png"))


def test_mean_and_deviation_weight_images_equally(folder: Path) -> None:
    paths = ("cat/a.png", "cat/b.bmp", "dog/b.jpg", "dog/c.png")
    pixels = [np.asarray(PIL.Image.open(folder / path).convert("RGB"), np.float64).reshape(-1, 3) / 255 for path in paths]
    mean = np.mean([each.mean(0) for each in pixels], 0)
    std = np.sqrt(np.mean([(each**2).mean(0) for each in pixels], 0) - mean**2)
    found = statistics(folder)
    np.testing.assert_allclose(found.mean, mean, atol=1e-6)
    np.testing.assert_allclose(found.std, std, atol=1e-6)


def test_the_command_names_broken_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stats", str(folder), "--threads", "1"]) == 1
    said = capsys.readouterr().out
    for part in ("4 images", "PNG: 2, BMP: 2", "10 to 40, median 20", "3, of 0 to 2 images", "0  eel", "b.jpg (BMP)", "broken     2", "cut.png: ", "empty.jpg: "):
        assert part in said
    for name in ("dog/cut.png", "dog/empty.jpg"):
        (folder / name).unlink()
    assert cli.main(["stats", str(folder)]) == 0
    assert "broken     0" in capsys.readouterr().out



def test_a_folder_of_broken_files(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff")
    found = statistics(tmp_path)
    assert found.images == 0 and len(found.problems) == 1 and "0 images" in str(found)


def test_long_lists_are_truncated(tmp_path: Path) -> None:
    for number in range(25):
        place = tmp_path / f"class{number:02}"
        place.mkdir()
        (place / "broken.png").touch()
    said = str(statistics(tmp_path))
    assert "and 5 more in between" in said and "and 5 more\n" in f"{said}\n"


def test_no_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stats", str(tmp_path)]) == 1
    assert "must contain images" in capsys.readouterr().err


def test_unusual_folders_warn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / "cat/more").mkdir()
    for copied in (".ipynb_checkpoints/a.png", "cat/._a.png", "cat/more/a.png"):
        (folder / copied).write_bytes((folder / "cat/a.png").read_bytes())
    PIL.Image.new("L", (3, 3)).save(folder / "eel/a.gif")
    found = statistics(folder)
    assert found.classes == {"cat": 3, "dog": 2, "eel": 0} and found.images == 5
    assert found.deeper == 1 and found.left_out == [str(folder / "eel/a.gif")]
    said = str(found)
    for part in ("empty      1 classes, such as eel", "deeper     1 images in subfolders", f"left out   1 images by extension, for example {folder}/eel/a.gif"):
        assert part in said


def test_folders_of_training_and_validation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / "all").mkdir()
    folder.rename(folder.parent / "all" / "train")
    assert cli.main(["stats", str(folder.parent / "all")]) == 1
    assert f"Try: torchdali stats {folder.parent}/all/train" in capsys.readouterr().out
