"""Packages that connect pipelines to other software. `torchdali.plugin.pytorch` contains the iterators for PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdali.submodules import on_first_use

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__)
