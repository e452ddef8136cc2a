"""The command line: each command works as documented, on small data."""

from __future__ import annotations

import argparse
import io
import os
import platform
import re
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision import models

import torchdali
from torchdali import cli, fn
from torchdali._commands import benching, doctoring
from torchdali._commands.startup import torchdali_alias
from torchdali._demo import pictures, sheet, training
from torchdali.codecs.images import FORMATS
from torchdali.errors import MissingExtraError
from torchdali.installation import extra_command
from torchdali.pipeline import native_status

ROOT = Path(__file__).resolve().parents[2]


def _command(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchdali", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, timeout=300, check=False
    )


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Twenty small JPEG files of two classes."""
    rng = np.random.default_rng(0)
    for number in range(20):
        folder = tmp_path / "images" / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (60 + number, 80, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number}.jpg")
    return tmp_path / "images"


def test_ctrl_c_prints_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(platform, "python_version", interrupted)
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(("option", "message"), [("--help", "doctor"), ("--version", f"torchdali {torchdali.__version__}")])
def test_the_console_script_works_without_torch(option: str, message: str) -> None:
    code = "import sys; from torchdali import cli; sys.argv[0] = 'torchdali'\ntry: cli.main()\nfinally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert message in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


def test_the_console_script_runs_a_command() -> None:
    code = "import sys; from torchdali import cli; sys.argv[0] = 'torchdali'; sys.exit(cli.main())"
    done = subprocess.run([sys.executable, "-c", code, "bench", "no/such/folder"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "no/such/folder" in done.stderr


def test_doctor_reports_missing_torch() -> None:
    command = [sys.executable, "-S", "-m", "torchdali", "doctor"]  # without installed packages
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 1 and not done.stderr
    assert "pip install torch torchvision numpy pillow" in done.stdout


@pytest.mark.slow
def test_nothing_is_imported_before_it_is_used() -> None:
    code = """
import sys, torch, numpy
known = set(sys.modules)
from torchdali import Loader, fn, pipeline_def, types
fn.decoders.image, fn.readers.file
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - known}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    third = {name for name in done.stdout.split() if name not in sys.stdlib_module_names}
    assert {name for name in third if not name.startswith("_")} == {"numpy", "torchdali"}


@pytest.mark.slow
def test_threads_may_use_different_names_first() -> None:
    code = """
import threading, torchdali
names = [*torchdali.__all__, "fn", "types", "ops", "math", "pipeline", "dynamic"]
barrier, wrong = threading.Barrier(len(names)), []
def use(name):
    barrier.wait()
    try:
        getattr(torchdali, name)
    except BaseException as error:
        wrong.append((name, error))
threads = [threading.Thread(target=use, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(wrong)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[]\n"


def test_extras_that_are_named_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = set(re.findall(r"^([a-z]+) = \[", project.split("[project.optional-dependencies]")[1].split("\n\n")[0], re.MULTILINE))
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "torchdali").rglob("*.py"))
    named = set(re.findall(r'MissingExtraError\("[\w-]+", "(\w+)"', source))
    assert named
    assert named <= extras


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "no/such/folder"], "no/such/folder"),
        (["run", "no_such_script.py"], "no_such_script.py"),
        (["dance"], "dance"),
        (["benhc"], "did you mean bench?"),
        (["bench", ".", "--batch-size", "0"], "--batch-size: must be an integer of at least 1, got '0'"),
        (["bench", ".", "--threads", "two"], "--threads: must be an integer of at least 1, got 'two'"),
        (["demo", "--epochs", "-1"], "--epochs: must be an integer of at least 1, got '-1'"),
        ([], "COMMAND"),
        ([], "check this installation"),
    ],
)
def test_bad_arguments_are_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as status:
        cli.main(arguments)
    assert status.value.code == 2
    assert message in capsys.readouterr().err


def commands() -> dict[str, argparse.ArgumentParser]:
    parser = cli._parser()
    (found,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


@pytest.mark.parametrize("name", commands())
def test_help_describes_commands_and_arguments(name: str) -> None:
    command = commands()[name]
    assert len((command.description or "").split()) > 7 and command.description.endswith(".")
    assert [action.dest for action in command._actions if not action.help] == []


# ---------------------------------------------------------------- doctor


@pytest.mark.parametrize("codec", doctoring.CODECS)
def test_doctor_tries_a_codec(codec: str) -> None:
    if needed := {"TIFF, 16 bit": "imagecodecs", "JPEG 2000, 16 bit": "cv2"}.get(codec):
        pytest.importorskip(needed, reason=f"needs {needed}")
    finding = doctoring.try_codec(codec)
    assert finding.state is doctoring.ComponentState.WORKS, finding


def test_doctor_tries_all_formats() -> None:
    untried = set(FORMATS) - {codec.partition(",")[0] for codec in doctoring.CODECS}
    assert not untried, f"add a sample to WRITTEN or DEEP in torchdali/_commands/doctoring.py: {untried}"


def test_doctor_reports_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    status = native_status()
    (found,) = doctoring.native()
    assert found.state is (doctoring.ComponentState.MISSING if status.library is None else doctoring.ComponentState.WORKS), found
    assert found.text == f"{'not ' * (status.library is None)}used: {status.text}"
    monkeypatch.setattr(doctoring, "native_status", lambda: status._replace(library=None, text="too old", broken=True))
    (found,) = doctoring.native()
    assert found.state is doctoring.ComponentState.BROKEN and found.text == "not used: too old"


def test_doctor_reports_the_gil(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", {}.get)
    assert doctoring.gil().text == "Python has a GIL"
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": 1}.get)
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert doctoring.gil().text == "free-threaded Python: the GIL is off"
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True)
    warned = "RuntimeWarning: The global interpreter lock (GIL) has been enabled to load module 'cv2', which has not declared ..."
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stderr=warned))
    for gil, text in ((1, "by PYTHON_GIL=1 or -X gil=1"), (None, "module 'cv2' needs it. PYTHON_GIL=0 keeps it off, at your own risk")):
        monkeypatch.setattr(sys, "flags", SimpleNamespace(gil=gil))
        found = doctoring.gil()
        assert found.state is doctoring.ComponentState.MISSING and found.text == f"free-threaded Python, but the GIL is on: {text}"


def test_doctor_detects_wrong_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = fn.decoders.image
    monkeypatch.setattr(
        fn.decoders, "image", lambda *a, **k: 255 - torch.as_tensor(decode(*a, **k))
    )
    assert doctoring.try_codec("PNG").state is doctoring.ComponentState.BROKEN


def test_doctor_detects_wrong_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fn.decoders, "image", lambda *a, **k: torch.zeros(1, 2, 3))
    assert doctoring.try_codec("PNG").state is doctoring.ComponentState.BROKEN


def test_doctor_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(*_: object, **__: object) -> None:
        raise MissingExtraError("opencv-python-headless", "image", "16-bit TIFF")

    monkeypatch.setattr(fn.decoders, "image", decode)
    finding = doctoring.try_codec("TIFF, 16 bit")
    assert finding.state is doctoring.ComponentState.MISSING
    assert finding.text == "needs opencv-python-headless, of the extra image: see above"


def test_doctor_fails_when_something_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def decode(*_: object, **__: object) -> None:
        raise RuntimeError("libjpeg is upset")

    monkeypatch.setattr(fn.decoders, "image", decode)
    assert cli.main(["doctor"]) == 1
    assert "libjpeg is upset" in capsys.readouterr().out


def test_doctor_lists_devices_and_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    for part in ("torch", "cpu", "Image codecs", "JPEG, CMYK"):
        assert part in printed
    assert printed.splitlines()[2].startswith("Fast path")  # the most important check comes first


REQUIRES = [
    "torch>=2.6", 'simplejpeg; extra == "image"', 'opencv-python-headless!=4.11.*,>=4.8; extra == "image"',
    'ray[data]; extra == "ray"', 'ray[train]; extra == "recipes"', 'timm; extra == "recipes"', 'lightning; extra == "recipes"',
    'torchdali[audio]; extra == "recipes"', 'soundfile; extra == "audio"', 'mkdocs; extra == "docs"', 'pytest; extra == "test"',
]  # fmt: skip


def test_doctor_names_each_cure_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("ray", "timm", "lightning", "opencv-python-headless"):
            raise metadata.PackageNotFoundError(name)
        return "1.2"

    monkeypatch.setattr(metadata, "requires", lambda name: REQUIRES)
    monkeypatch.setattr(metadata, "version", version)
    found = {finding.name: finding for finding in doctoring.extras()}
    assert {name: finding.state.value for name, finding in found.items()} == {"image": "-", "ray": "-", "recipes": "-", "audio": "ok"}
    assert found["recipes"].text == f"{extra_command('recipes')}  (brings timm, lightning)"
    assert found["image"].text.endswith("(brings opencv-python-headless)")
    assert found["audio"].text == "soundfile 1.2"


def test_doctor_lists_codecs_that_do_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"PNG": doctoring.ComponentState.BROKEN, "TIFF, 16 bit": doctoring.ComponentState.MISSING}
    monkeypatch.setattr(doctoring, "try_codec", lambda name: doctoring.Finding(name, broken.get(name, doctoring.ComponentState.WORKS), "why"))
    first, *others = doctoring.codecs()
    assert first.name == f"{len(doctoring.CODECS) - 2} of {len(doctoring.CODECS)}" and "JPEG; JPEG, progressive;" in first.text
    assert [each.name for each in others] == list(broken)


# ---------------------------------------------------------------- bench


def test_bench_accounts_for_the_time(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--batch-size=4", "--batches=8", "--size=32", "--threads=2", "--step=1"]
    assert cli.main(["bench", str(images), *small]) == 0
    printed = capsys.readouterr().out
    assert "20 images" in printed
    for part in ("readers.file", "decoders.image", "crop_mirror_normalize", "ms/sample", "consumer that takes 1 ms", "Limited by the"):
        assert part in printed
    assert "Skipped" not in printed


@pytest.mark.parametrize(
    ("others", "own", "busy"),
    [(1.2, 0.8, True), (0.1, 0.8, False), (1.2, 1.9, False), (None, 0.8, False)],
    ids=["others compute", "slow files", "enough cores", "a system that does not tell"],
)
def test_bench_detects_a_busy_machine(
    others: float | None, own: float, busy: bool, images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    everyone = None if others is None else own + others
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(benching.Usage, "since", lambda *_: benching.Usage(1.0, own, everyone, 0, 0))
    assert cli.main(["bench", str(images), "--batch-size=4", "--batches=2", "--size=32", "--threads=2"]) == 0
    printed = capsys.readouterr().out
    assert ("This machine is busy (other programs computed on 1.2 of 2 cores)" in printed) == busy
    assert ("A training step of" in printed) != busy


def test_a_bar_is_drawn_ten_times_a_second_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now, stream = [0.0], io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", stream)
    bar = benching.Bar("images")
    for done in range(1, 5):
        now[0] += 0.05
        bar(done, 4)
    bar.close()
    drawn = stream.getvalue()
    assert drawn.count("\r") == 2 and drawn.endswith("\n")
    assert "100%  4 of 4 images, 20/s" in drawn and f"[{'#' * 15:30}]  50%" in drawn


def test_bench_measures_what_its_pipeline_used(images: Path) -> None:
    pipeline = benching.build(benching.find_images(images), batch=4, threads=2, size=32)
    benching.measure(pipeline, 2)
    usage, stats = benching.measure(pipeline, 10), pipeline.stats()
    pipeline.close()
    assert stats.samples == 48 and usage.wall > 0 and usage.own > 0
    assert all(each.per_sample > 0 for each in stats.operators)


def test_bench_names_bad_images(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (images / "class0" / "bad.jpg").write_text("this is no image")
    assert cli.main(["bench", str(images), "--batch-size=4", "--batches=6", "--size=32"]) == 0
    printed = capsys.readouterr().out
    assert "decoders.image" in printed.split("Skipped")[1]
    assert "bad.jpg" in printed.split("Skipped")[1]


def test_bench_trains_and_prints_a_verdict(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--batch-size=4", "--batches=3", "--size=32", "--threads=1"]
    assert cli.main(["bench", str(images), *small, "--train", "--device=cpu"]) == 0
    printed = capsys.readouterr().out.split("Training a network (small) on cpu")[1]
    rates = [float(line.split()[-2]) for line in printed.splitlines() if "images/s" in line]
    assert len(rates) == 4
    assert all(rate > 0 for rate in rates)
    assert "is the bottleneck" in printed or "compete" in printed


def test_bench_trains_networks_of_torchvision(
    images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, create = [], models.get_model

    def keep(*names: str, **options: Any) -> Any:
        model = create(*names, **options)
        made.append((model, [parameter.detach().clone() for parameter in model.parameters()]))
        return model

    monkeypatch.setattr(models, "get_model", keep)
    small = ["--batch-size=8", "--batches=2", "--size=32", "--threads=1"]
    assert cli.main(["bench", str(images), *small, "--train", "--model=resnet18", "--device=cpu"]) == 0
    assert "Training a network (resnet18) on cpu" in capsys.readouterr().out
    assert made
    for model, before in made:
        assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 2)  # two folders of classes
        assert any(bool((a != b).any()) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("option", "message"),
    [("--model=resnet5000", "for example resnet50, got 'resnet5000'"), ("--device=abacus", "on this machine, got 'abacus'")],
)
def test_bench_rejects_networks_that_it_cannot_train(
    images: Path, option: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", str(images), "--train", option])
    assert message in capsys.readouterr().err


def test_bench_accepts_flat_folders(images: Path) -> None:
    assert cli.main(["bench", str(images / "class0"), "--batch-size=2", "--batches=2"]) == 0


def test_bench_without_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", str(tmp_path)]) == 1
    assert "no images" in capsys.readouterr().out


# ---------------------------------------------------------------- run

SCRIPT = """
import sys
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def
from nvidia.dali.pipeline import Pipeline
from nvidia.dali.plugin.pytorch import DALIGenericIterator
import beside

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def pipe(root):
    files, labels = fn.readers.file(file_root=root, name="Reader")
    return fn.decoders.image(files, output_type=types.RGB), labels

assert __name__ == "__main__"
made = pipe(sys.argv[1])
assert isinstance(made, Pipeline)
made.build()
images, labels = made.run()
print(images.at(0).shape, labels.at(1), sys.argv[1:], pipe.__module__, beside.NAME)
import torchdali.fn
assert fn is torchdali.fn
"""


@pytest.mark.slow
def test_run_replaces_dali(images: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("NAME = 'beside'")
    done = _command("run", str(script), str(images), "--flag")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"(60, 80, 3) [0] ['{images}', '--flag'] __main__ beside\n"


CHILDREN = """
import multiprocessing, subprocess, sys
import torch.utils.data
import nvidia.dali.types as types

def which(queue):
    queue.put(types.__name__)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1
    def __getitem__(self, index):
        from nvidia.dali import fn
        return fn.__name__

if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        child = context.Process(target=which, args=(queue,))
        child.start()
        print(queue.get(timeout=120))
        child.join()
    loader = torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="spawn")
    print(*next(iter(loader)))
    code = "import nvidia.dali as d, other; print(d.__name__)"
    subprocess.run([sys.executable, "-c", code], check=True)
"""


@pytest.mark.slow
def test_run_reaches_child_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spawned processes, workers of a DataLoader, and processes that a script starts itself."""
    script = tmp_path / "script.py"
    script.write_text(CHILDREN)
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.modules['other'] = sys")
    monkeypatch.setenv("PYTHONPATH", str(own))
    done = _command("run", str(script))
    assert done.returncode == 0, done.stderr
    names = ["torchdali.types", "torchdali.types", "torchdali.fn", "torchdali"]
    assert done.stdout.splitlines() == names, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("import nvidia.dali.nonsense", 1, "No module|no module 'torchdali.nonsense'"),
        ("from nvidia.dali import nonsense", 1, "nonsense"),
        ("raise SystemExit(7)", 7, ""),
        ("1 / 0", 1, "ZeroDivisionError"),
    ],
)
def test_run_fails_as_the_script_does(tmp_path: Path, text: str, code: int, message: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    done = _command("run", str(script))
    assert done.returncode == code
    assert any(part in done.stderr for part in message.split("|"))


@pytest.mark.slow
def test_run_shows_only_the_frames_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def divide():\n    return 1 / 0\n\ndivide()\n")
    lines = _command("run", str(script)).stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    frames = [line.split(", ", 1)[1] for line in lines if "File " in line]
    assert frames == ["line 4, in <module>", "line 2, in divide"]


@pytest.mark.slow
def test_run_sets_the_path_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os; os.chdir('/'); print(os.path.abspath(__file__))")
    assert _command("run", script.name, cwd=tmp_path).stdout == f"{script}\n"


@pytest.mark.slow
def test_run_reports_the_version_of_dali(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import nvidia.dali as dali, torchdali, nvidia.dali.fn as fn\n"
        "from nvidia.dali import *\n"
        "assert tuple(map(int, dali.__version__.split('.'))) >= (2, 4), dali.__version__\n"
        "assert fn is dali.fn is torchdali.fn and Pipeline is torchdali.Pipeline\n"
        "assert dali.__file__ == torchdali.__file__ and 'types' in dir(dali)\n"
        "assert torchdali.__version__ != dali.__version__ and not hasattr(dali, 'nonsense')\n"
    )
    done = _command("run", str(script))
    assert done.returncode == 0, done.stderr


FIRST = {
    "nvidia.dali": "from nvidia import dali; dali.fn",
    "torchdali": "import torchdali; torchdali.fn",
    "a module of torchdali": "import torchdali.ops",
    "torch": "import torch.utils.data",
    "a module of torch": "from torch.utils import data",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_run_with_any_module_imported_first(tmp_path: Path, name: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"{FIRST[name]}\nimport torch.utils.data, torchdali\nassert torch.utils.data.DataLoader is torchdali.DataLoader\n"
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {FIRST[name]!r} + '; import torch, torchdali; assert torch.utils.data.DataLoader is torchdali.DataLoader'], check=True)"
    )
    done = _command("run", str(script))
    assert done.returncode == 0, done.stderr


RELOAD = """
import importlib
from nvidia import dali
import nvidia.dali.fn as fn, nvidia.dali.types as types, nvidia.dali.plugin.pytorch as plugin, torchdali
for _ in range(3):
    assert importlib.reload(dali) is dali and dali.__version__ == "2.4.0" and dali.fn is torchdali.fn
    for module in (fn, types, plugin):
        importlib.reload(module)
    import nvidia.dali
    from nvidia.dali import pipeline_def, types
    assert nvidia.dali is dali and dali.pipeline_def is torchdali.pipeline_def

@dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)
def define():
    return dali.fn.constant(idata=3)

print(define().run()[0].as_array().item())
"""


@pytest.mark.slow
def test_run_reloads_dali(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(RELOAD)
    done = _command("run", str(script))
    assert done.stdout == "3\n", done.stderr


def test_alias_refuses_to_mix_with_the_real_dali(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvidia.dali", torch)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with pytest.raises(RuntimeError, match="must not be imported before"):
        torchdali_alias.alias_nvidia_dali()


# ---------------------------------------------------------------- demo


def test_demo_images_are_reproducible(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pictures.write(tmp_path / name, 1, seed=5)
    first, second = (sorted((tmp_path / name).rglob("*.jpg")) for name in ("a", "b"))
    assert len(first) == len(pictures.SHAPES)
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_demo_images_differ() -> None:
    rng = np.random.default_rng(0)
    one, other = (pictures.draw("star", rng) for _ in range(2))
    assert one.size != other.size
    assert all(180 <= side <= 320 for side in (*one.size, *other.size))


def test_network_learns_from_its_images() -> None:
    """After a few steps, the network distinguishes two constant images, and the accuracy shows it."""
    torch.manual_seed(0)
    images = torch.stack([torch.full((3, 16, 16), value) for value in (-1.0, 1.0) * 4])
    batches = [(images, torch.tensor([0, 1] * 4))]
    model = training.network(2)
    training.train(model, batches, epochs=50, steps=1, report=lambda *_: None)
    assert training.accuracy(model, batches) == 1.0
    assert training.accuracy(model, [(images, torch.tensor([1, 0] * 4))]) == 0.0


def test_sheet_shows_each_class(tmp_path: Path) -> None:
    reds = torch.zeros(3, 64, 64) - 2
    reds[0] = 2
    columns = sheet.collect([(torch.stack([reds, -reds]), torch.tensor([1, 0]))] * 9, classes=2)
    assert [len(column) for column in columns] == [sheet.ROWS, sheet.ROWS]
    sheet.save(columns, ["cyan", "red"], tmp_path / "sheet.png")
    picture = PIL.Image.open(tmp_path / "sheet.png")
    left, right = (picture.getpixel((int(picture.width * at), 100)) for at in (0.25, 0.75))
    assert (left, right) == ((0, 255, 255), (255, 0, 0))


@pytest.mark.slow
def test_demo_learns(tmp_path: Path) -> None:
    done = _command("demo", "--epochs=12", "--threads=2", f"--output={tmp_path / 'sheet.png'}")
    assert done.returncode == 0, done.stderr
    share = float(done.stdout.split("accuracy ")[1].split("%")[0])
    assert share > 70, done.stdout
    assert PIL.Image.open(tmp_path / "sheet.png").width > 1000


@pytest.mark.slow
def test_run_accepts_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "programs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "show.py").write_text("import sys\nfrom nvidia.dali import fn\nprint(sys.argv[1:], fn.__name__)\n")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = _command("run", "-m", "programs.show", "--epochs", "2", cwd=tmp_path)
    assert done.stdout.strip() == "['--epochs', '2'] torchdali.fn", done.stderr
    nothing = _command("run", cwd=tmp_path)
    assert nothing.returncode == 2 and "pass a script, or -m and a module" in nothing.stderr
