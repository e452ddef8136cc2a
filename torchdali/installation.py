"""Shell commands that error messages recommend, for installing an extra or rebuilding torchdali.

The right command depends on how torchdali was installed: a command for a clone fails for a wheel, and vice versa.
"""

from __future__ import annotations

import json
import shutil
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

__all__ = ["PACKAGE", "extra_command", "rebuild_command", "tools_command"]

PACKAGE = Path(__file__).resolve().parent

# Each command installs a C compiler and libjpeg-turbo's headers, on systems that have the program (the first word).
_TOOLS = (
    "apt-get install build-essential libjpeg-dev",
    "dnf install gcc libjpeg-turbo-devel",
    "apk add build-base libjpeg-turbo-dev",
    "brew install jpeg-turbo",
)


def tools_command() -> str:
    """Return the command that installs a C compiler and libjpeg-turbo's headers on this system."""
    if sys.platform == "win32":
        return "install Visual Studio, run vcpkg install libjpeg-turbo, and set TORCHDALI_LIBJPEG to its folder"
    available = [command for command in _TOOLS if shutil.which(command.split()[0])]
    return available[0] if available else " or ".join(_TOOLS)


def extra_command(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    tree = _source_tree()
    return f'pip install "torchdali[{extra}]"' if tree is None else f'pip install -e "{tree}[{extra}]"'


def rebuild_command() -> str:
    """Return the command that reinstalls the same version of torchdali, compiled on this machine."""
    tree = _source_tree()
    if tree is not None:
        return f'pip install -e "{tree}"' if " " in tree else f"pip install -e {tree}"
    command = "pip install --force-reinstall --no-deps --no-cache-dir"
    origin = _origin()
    return f"{command} --no-binary torchdali {_pin_version()}" if origin is None else f'{command} "{origin}"'


def _source_tree() -> str | None:
    """Return the folder of the clone or unpacked sdist from which torchdali was imported, or None for a wheel."""
    folder = PACKAGE.parent
    if not (folder / "setup.py").is_file() or not (folder / "pyproject.toml").is_file():
        return None
    return "." if folder == Path.cwd() else str(folder)


def _origin() -> str | None:
    """Return the URL of the sources from which pip built torchdali.

    The result is None if pip installed it from an index or a wheel, or if a local source folder no longer exists.
    """
    try:
        text = metadata.distribution("torchdali").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    info = json.loads(text or "{}")
    url = str(info.get("url", ""))
    parts = urlsplit(url)
    is_missing = parts.scheme == "file" and not Path(url2pathname(parts.path)).exists()
    if not url or url.endswith(".whl") or is_missing:
        return None
    vcs = info.get("vcs_info")
    return f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url


def _pin_version() -> str:
    try:
        return f"torchdali=={metadata.version('torchdali')}"
    except metadata.PackageNotFoundError:
        return "torchdali"
