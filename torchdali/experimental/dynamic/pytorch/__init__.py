"""Use the dynamic mode with other PyTorch libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdali.submodules import on_first_use

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__)
