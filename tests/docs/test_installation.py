"""The commands in messages match the way in which torchdali was installed."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchdali import installation
from torchdali.errors import MissingExtraError
from torchdali.installation import extra_command, rebuild_command, tools_command

ROOT = Path(__file__).resolve().parents[2]
AGAIN = "pip install --force-reinstall --no-deps --no-cache-dir"
FROM_INDEX = f"{AGAIN} --no-binary torchdali torchdali==1.2"


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path, url: dict[str, object] | None) -> None:
    """Simulate an installation of version 1.2 by pip into a folder, from a URL."""
    text = None if url is None else json.dumps(url)
    monkeypatch.setattr(installation, "PACKAGE", folder / "torchdali")
    monkeypatch.setattr(metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    monkeypatch.setattr(metadata, "version", lambda name: "1.2")


def test_the_page_names_every_extra() -> None:
    tomllib = pytest.importorskip("tomllib")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    table = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8").split("| extra |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert set(re.findall("`([a-z]+)`", " ".join(rows))) == set(declared)


@pytest.mark.parametrize("editable", [False, True])
@pytest.mark.parametrize(("name", "command", "extra"), [
    ("", "pip install -e .", 'pip install -e ".[audio]"'),
    ("clone", "pip install -e {}", 'pip install -e "{}[audio]"'),
    ("my clone", 'pip install -e "{}"', 'pip install -e "{}[audio]"'),
])  # fmt: skip
def test_from_a_source_tree(
    name: str, command: str, extra: str, editable: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    for file in ("setup.py", "pyproject.toml"):
        (folder / file).touch()
    monkeypatch.chdir(tmp_path)
    installed(monkeypatch, folder, {"url": folder.as_uri(), "dir_info": {"editable": True}} if editable else None)
    assert rebuild_command() == command.format(folder)
    assert extra_command("audio") == extra.format(folder)


@pytest.mark.parametrize(("url", "command"), [
    (None, FROM_INDEX),
    ({"url": "file:///no/such/torchdali-1.2-py3-none-any.whl", "archive_info": {}}, FROM_INDEX),
    ({"url": "https://example.org/torchdali-1.2-py3-none-any.whl", "archive_info": {}}, FROM_INDEX),
    ({"url": "file:///no/such/clone", "dir_info": {}}, FROM_INDEX),
    ({"url": "https://example.org/torchdali-1.2.tar.gz", "archive_info": {}}, f'{AGAIN} "https://example.org/torchdali-1.2.tar.gz"'),
    (
        {"url": "https://example.org/torchdali.git", "vcs_info": {"vcs": "git", "commit_id": "ab12"}},
        f'{AGAIN} "git+https://example.org/torchdali.git@ab12"',
    ),
])  # fmt: skip
def test_from_an_index_or_an_archive(
    url: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed(monkeypatch, tmp_path / "site-packages", url)
    assert rebuild_command() == command
    assert extra_command("audio") == 'pip install "torchdali[audio]"'


def test_from_an_existing_folder_or_sdist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("a clone", "torchdali-1.2.tar.gz"):
        origin = tmp_path / name
        origin.touch()
        installed(monkeypatch, tmp_path / "site-packages", {"url": origin.as_uri()})
        assert rebuild_command() == f'{AGAIN} "{origin.as_uri()}"'


def test_an_installation_that_pip_does_not_know(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unknown(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "PACKAGE", tmp_path / "torchdali")
    monkeypatch.setattr(metadata, "distribution", unknown)
    monkeypatch.setattr(metadata, "version", unknown)
    assert rebuild_command() == f"{AGAIN} --no-binary torchdali torchdali"


@pytest.mark.parametrize(("programs", "expected"), [
    ({"apt-get"}, "apt-get install build-essential libjpeg-dev"),
    ({"dnf"}, "dnf install gcc libjpeg-turbo-devel"),
    ({"brew"}, "brew install jpeg-turbo"),
    ({"apk"}, "apk add build-base libjpeg-turbo-dev"),
])  # fmt: skip
def test_the_tools_are_named_as_the_system_names_them(programs: set[str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(installation.shutil, "which", lambda name: name if name in programs else None)
    assert tools_command() == expected
    monkeypatch.setattr(installation.shutil, "which", lambda name: None)
    assert expected in tools_command()
    monkeypatch.setattr(sys, "platform", "win32")
    assert "TORCHDALI_LIBJPEG" in tools_command()


def test_the_error_of_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error = MissingExtraError("soundfile", "audio", "decoding FLAC")
    assert extra_command("audio") in str(error) and "pip install soundfile," in str(error)
    installed(monkeypatch, tmp_path / "site-packages", None)
    assert 'pip install "torchdali[audio]"' in str(MissingExtraError("soundfile", "audio", "decoding FLAC"))


def test_doctor_names_required_packages() -> None:
    command = f"import runpy, sys; sys.argv = ['torchdali', 'doctor']; runpy.run_path({str(ROOT / 'torchdali' / 'cli.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-S", "-c", command], capture_output=True, text=True, check=False)  # -S: no package is installed
    assert done.returncode == 1
    assert done.stdout == "torchdali needs packages that are not installed: pip install torch torchvision numpy pillow\n"
    assert not done.stderr


def test_the_version_is_defined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 'dynamic = ["version"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "0.1.0" not in (ROOT / "setup.py").read_text(encoding="utf-8")


def test_links_of_the_readme_work_on_the_page_of_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    setuptools = pytest.importorskip("setuptools", "77.0.3")
    given: dict[str, str] = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    links = [part.split(")")[0] for part in given["long_description"].split("](")[1:]]
    assert len(links) > 8
    assert all(link.startswith(("https://", "#")) for link in links)
    assert any(link.endswith("/raw/main/docs/speed.svg") for link in links)
