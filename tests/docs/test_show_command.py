"""``torchdali show``, and the progress bar of the commands."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.helpers.inside import without_alias
from torchdali import cli

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import numpy as np
from {package} import fn, pipeline_def
from torchdali import Loader

@pipeline_def(device_id=0)
def training(level=90, wide=False):
    images = fn.external_source([[np.full((8, 16 if wide else 8, 3), level, np.uint8)] * 8], layout="HWC")
    return fn.flip(images.gpu())

def batch():
    return np.full((2, 8, 8, 3), 30, np.uint8)

def text():
    return "no batch"

{more}
if __name__ == "__main__":
    raise SystemExit("the script ran")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return _write(tmp_path)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the state of this process."""
    without_alias(monkeypatch)
    monkeypatch.setattr(sys, "path", list(sys.path))


def _write(folder: Path, package: str = "torchdali", more: str = "") -> Path:
    path = folder / "script.py"
    path.write_text(SCRIPT.format(package=package, more=more))
    return path


def _show(path: Path, *arguments: str, name: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchdali", "show", f"{path}{name}", *arguments, "--output", str(path.with_suffix(".png"))]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})


@pytest.mark.slow
def test_the_only_pipeline_of_a_script_for_dali(tmp_path: Path) -> None:
    script = _write(tmp_path, "nvidia.dali")
    done = _show(script, "level=70", "wide=True", "--count=3", "--each")
    assert done.returncode == 0, done.stderr
    sheet = PIL.Image.open(script.with_suffix(".png"))
    assert done.stdout == f"{script.with_suffix('.png')}: {sheet.width} x {sheet.height} pixels\n"
    assert "there is no GPU" in done.stderr
    assert sheet.getpixel((8, 6 + 16 + 2)) == (70, 70, 70)
    assert [sheet.getpixel((6 + 166 * k + 80, 30)) for k in range(3)] == [(70, 70, 70)] * 3
    assert sheet.width < 4 * 166


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "arguments", "more", "message"),
    [
        (":other", [], "", "has no 'other' at its top level; it has training"),
        ("", ["level"], "", "arguments of a function must be name=value, for example size=224, got 'level'"),
        ("", ["colour=1"], "", "unknown argument 'colour'"),
        ("", [], "second = training", "has 2 pipelines and loaders (training, second); name one, for example "),
        (":text", [], "", "spectrograms or audio|there is nothing to draw|torch|numpy"),
        (":needy", [], "def needy(root, size, *, mode='a'): pass", "needy needs arguments; add root=... size=... to the command"),
        (":needy", ["size=3"], "def needy(root, size): pass", "add root=... to the command"),
        (".gone", [], "", "no such file"),
    ],
)
def test_errors(
    script: Path, name: str, arguments: list[str], more: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(script.parent, more=more)
    assert cli.main(["show", f"{script}{name}", *arguments, f"--output={script.with_suffix('.png')}"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("torchdali show: ") and any(part in said for part in message.split("|"))


@pytest.mark.usefixtures("here")
def test_functions_objects_and_loaders(script: Path) -> None:
    _write(script.parent, more="loader = Loader(training(batch_size=8, num_threads=1, device_id='cpu', level=50))")
    output = script.with_suffix(".png")
    for name, color in (("batch", 30), ("loader", 50)):
        assert cli.main(["show", f"{script}:{name}", "--output", str(output)]) == 0
        assert PIL.Image.open(output).getpixel((8, 8)) == (color,) * 3


HEAD = """
import torch
import torch.utils.data
from torch.utils.data import TensorDataset
from torchdali import DataLoader
data = TensorDataset(torch.zeros(8, 3, 8, 8), torch.arange(8))
"""
ONE, GUARD = "train = DataLoader(data, batch_size=4)", 'if __name__ == "__main__":\n    val = DataLoader(data, batch_size=2)\n    raise SystemExit("the script ran")'
MAIN = "def main():\n    train: object\n    train = DataLoader(data)\n    list(train)"
MAKE = "def make(size=2):\n    return DataLoader(data, batch_size=size)"
RUNS = "which this command doesn't run; write a function that returns the loader, for example make_"
LOADERS = {
    "one": (ONE, "", ""),
    "named": (f"{ONE}\nval = DataLoader(data)", ":val", ""),
    "a function": (MAKE, ":make", ""),
    "two": (f"{ONE}\nval = DataLoader(data)", "", "script.py has 2 pipelines and loaders (train, val); name one, for example "),
    "none": ("x = 1", "", "script.py has no pipeline and no loader at its top level\n"),
    "another name": (ONE, ":val", "script.py has no 'val' at its top level; it has train\n"),
    "guard": (GUARD, "", f"no loader at its top level. It makes 'val' under if __name__ == \"__main__\", {RUNS}val(), and name that: "),
    "guard, named": (f"{ONE}\n{GUARD}", ":val", f"; it has train. It makes 'val' under if __name__ == \"__main__\", {RUNS}val()"),
    "function": (MAIN, "", f"It makes 'train' in main(), {RUNS}train()"),
    "of torch": ("train = torch.utils.data.DataLoader(data)", "", "script.py:train must be a torchdali loader, but is PyTorch's DataLoader; write `from torchdali import DataLoader` in "),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", ["show", "tune"])
@pytest.mark.parametrize(("code", "name", "message"), LOADERS.values(), ids=LOADERS)
def test_loaders_of_a_script(
    code: str, name: str, message: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.py").write_text(HEAD + code)
    options = ["--output", str(tmp_path / "sheet.png")] if command == "show" else ["--seconds", "1", "--cores", "1"]
    status = cli.main([command, f"{tmp_path / 'script.py'}{name}", *options])
    said = capsys.readouterr()
    assert status == bool(message), said.err
    if message:
        assert said.err.startswith(f"torchdali {command}: ") and message in said.err
    else:
        assert "pixels" in said.out if command == "show" else "num_workers=1: " in said.out and said.out.splitlines()[-1].startswith(("Write: ", "Keep "))


@pytest.mark.usefixtures("here")
def test_a_loader_is_tuned_without_options_of_pipelines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script.py").write_text(HEAD + ONE)
    assert cli.main(["tune", str(tmp_path / "script.py"), "--step", "3"]) == 1
    assert "--step and --memory need a pipeline; for a DataLoader, pass --seconds or --cores" in capsys.readouterr().err


# ---------------------------------------------------------------- progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), _Terminal()], ids=["file", "terminal"])
def test_bench_draws_a_bar_on_a_terminal(
    stream: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(4):
        PIL.Image.fromarray(np.full((40, 40, 3), 60 * number, np.uint8)).save(tmp_path / f"{number}.jpg")
    monkeypatch.setattr(sys, "stderr", stream)
    assert cli.main(["bench", str(tmp_path), "--batch-size=4", "--batches=3", "--threads=1", "--size=16"]) == 0
    assert "images/s" in capsys.readouterr().out
    drawn = stream.getvalue()
    assert ("100%  3 of 3 batches, " in drawn and f"[{'#' * 30}]" in drawn) == stream.isatty() and bool(drawn) == stream.isatty()


def test_show_draws_a_data_loader(tmp_path: Path, here: None, capsys: pytest.CaptureFixture[str]) -> None:
    more = "from torchdali import DataLoader\npictures = [(np.full((8, 8, 3), 90, np.uint8), 1)] * 8\ntrain = DataLoader(pictures, batch_size=4)"
    path = _write(tmp_path, more=more)
    sheet = tmp_path / "sheet.png"
    assert cli.main(["show", f"{path}:train", f"--output={sheet}"]) == 0, capsys.readouterr().err
    assert sheet.exists()
    assert cli.main(["show", f"{path}:train", f"--output={sheet}", "--each"]) == 1
    assert "must be a pipeline if you pass --each" in capsys.readouterr().err
