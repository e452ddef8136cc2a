"""Build the shared library, and a wheel that is the same for every Python of a platform.

``TORCHDALI_LIBJPEG`` names a folder with ``include`` and ``lib`` of a libjpeg-turbo; a static library there is linked
in. Without it, the compiler finds the system's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

WINDOWS = sys.platform == "win32"


class BuildLibrary(build_ext):
    """Builds a library that is no module of Python: no initialisation, no version in its name."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", os.sep) + (".dll" if WINDOWS else ".so")


class TagWheel(bdist_wheel):
    """Names the platform alone."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


def library() -> Extension:
    root = os.environ.get("TORCHDALI_LIBJPEG")
    static = next(iter(Path(root, "lib").glob("*jpeg*.a")), None) if root and not WINDOWS else None
    flags = ["/O2", "/fp:precise"] if WINDOWS else ["-O3", "-std=gnu11", "-ffp-contract=off", "-fvisibility=hidden"]
    name = "jpeg-static" if WINDOWS and root else "jpeg"
    return Extension(
        "torchdali_native.library",
        ["src/native.c", "src/sounds.c"],
        depends=["src/entropy.h", "src/kernels.h", "src/torchdali_native.h"],
        include_dirs=[str(Path(root, "include"))] if root else [],
        library_dirs=[str(Path(root, "lib"))] if root else [],
        extra_objects=[str(static)] if static else [],
        libraries=[*([] if static else [name]), *([] if WINDOWS else ["m"])],
        extra_compile_args=flags,
        # Nothing else in the process is to take these functions for its libjpeg, or to give us its own.
        extra_link_args=["-Wl,--exclude-libs,ALL"] if static and sys.platform == "linux" else [],
    )


setup(ext_modules=[library()], cmdclass={"build_ext": BuildLibrary, "bdist_wheel": TagWheel})
