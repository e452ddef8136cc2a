"""Builds the C library of the fast path with torchdali, if it can; the rest is in pyproject.toml.

The library has no Python in it, so one wheel serves every Python of a platform. If there is no C compiler, or no
libjpeg-turbo with headers, torchdali is installed without it, and the wheel serves all platforms.

The type stubs are made here, too, from the declarations of the operators: they are not in git. It needs no PyTorch.

=============================== ====================================================================================
``TORCHDALI_NO_EXTENSIONS=1``    leaves it out
``TORCHDALI_NEED_EXTENSIONS=1``  makes it an error if it cannot be built
``TORCHDALI_LIBJPEG=PREFIX``     takes the libjpeg-turbo of this folder; a static library there is linked in
=============================== ====================================================================================
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HOST = "https://github.com/torchdali/torchdali"
WINDOWS = sys.platform == "win32"
NAMED = os.environ.get("TORCHDALI_LIBJPEG")
CONDA = os.environ.get("CONDA_PREFIX", "no-conda")
# Not searched by compilers themselves: the active conda environment, Homebrew on both processors, MacPorts.
PREFIXES = (CONDA, f"{CONDA}/Library", "/opt/homebrew/opt/jpeg-turbo", "/usr/local/opt/jpeg-turbo", "/opt/local")


def switched_on(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in ("", "0", "off", "false", "no")


class BuildLibrary(build_ext):
    """Builds a library that is no module of Python: no initialisation, no version in its name."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", os.sep) + (".dll" if WINDOWS else ".so")

    def run(self) -> None:
        library = self.get_ext_filename(LIBRARY.name)
        for folder in (Path(self.build_lib), *([Path()] if self.inplace else [])):
            with suppress(OSError):  # A build that fails must not deliver what an earlier one left.
                (folder / library).unlink()
        if switched_on("TORCHDALI_NO_EXTENSIONS"):
            self.extensions = []
        try:
            super().run()
        except Exception:
            print(f"\ntorchdali's fast path could not be built. {cure()}", file=sys.stderr)
            raise
        if not Path(self.build_lib, library).exists():
            print(
                "torchdali is built without its fast path, so images load no faster than in torch. "
                f"{cure()} Then install it again; `torchdali doctor` checks.",
                file=sys.stderr,
            )
            self.distribution.ext_modules = []  # so the wheel serves all platforms
        elif NAMED:
            for name in ("LICENSE.md", "README.ijg"):  # which go with what is linked in
                if (path := Path(NAMED, "share/doc/libjpeg-turbo", name)).exists():
                    self.copy_file(str(path), str(Path(self.build_lib, "torchdali", f"libjpeg-turbo-{name}")))


class BuildPackage(build_py):
    """Writes the type stubs beside the sources first, for wheels and for editable installs alike."""

    def run(self) -> None:
        command = [sys.executable, "-B", "-m", "torchdali.stubs"]
        if subprocess.run(command, check=False).returncode:
            print("torchdali is built without type stubs; `python -m torchdali.stubs` makes them in a clone.")
        super().run()


class TagWheel(bdist_wheel):
    """Names the platform alone, and only if the library is in the wheel."""

    def run(self) -> None:
        self.run_command("build")
        self.skip_build = True
        self.root_is_pure = not self.distribution.has_ext_modules()
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", "any") if self.root_is_pure else ("py3", "none", super().get_tag()[2])


def cure() -> str:
    """Return how to install the tools; pip hides it without -v, so `torchdali doctor` says it too."""
    names: dict[str, Any] = runpy.run_path("torchdali/installation.py")
    return f"It needs a C compiler and libjpeg-turbo's headers: {names['tools_command']()}."


def library() -> Extension:
    prefix = NAMED or next((each for each in PREFIXES if Path(each, "include/jpeglib.h").exists()), None)
    static = next(Path(NAMED, "lib").glob("*jpeg*.a"), None) if NAMED and not WINDOWS else None
    flags = ["/O2", "/fp:precise"] if WINDOWS else ["-O3", "-std=gnu11", "-ffp-contract=off", "-fvisibility=hidden"]
    own = bool(prefix) and Path(prefix or "", "lib/jpeg-static.lib").exists()  # as libjpeg-turbo's own build names it
    return Extension(
        "torchdali.libtorchdali",
        [f"native/src/{name}.c" for name in ("native", "pillow", "level", "resample", "engine")],
        depends=[f"native/src/{name}.h" for name in ("entropy", "kernels", "loops", "native", "pillow", "vectors")],
        include_dirs=[str(Path(prefix, "include"))] if prefix else [],
        library_dirs=[str(Path(prefix, "lib"))] if prefix else [],
        runtime_library_dirs=[str(Path(prefix, "lib"))] if prefix and not static and not WINDOWS else [],
        extra_objects=[str(static)] if static else [],
        libraries=[*([] if static else ["jpeg-static" if own else "jpeg"]), *([] if WINDOWS else ["m", "dl"])],
        extra_compile_args=flags,
        # Nothing else in the process is to take these functions for its libjpeg, or to give us its own.
        extra_link_args=["-Wl,--exclude-libs,ALL"] if static and sys.platform == "linux" else [],
        optional=not switched_on("TORCHDALI_NEED_EXTENSIONS"),
    )


def description() -> str:
    """Return the README with links that work on the page of an index, too."""
    text = re.sub(
        r"!\[([^]]*)\]\((?!https?:)", rf"![\1]({HOST}/raw/main/", Path("README.md").read_text(encoding="utf-8")
    )
    return re.sub(r"\]\((?!https?:|#)", f"]({HOST}/blob/main/", text)


LIBRARY = library()
setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    ext_modules=[LIBRARY],
    cmdclass={"build_ext": BuildLibrary, "build_py": BuildPackage, "bdist_wheel": TagWheel},
)
