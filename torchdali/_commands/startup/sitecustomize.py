"""Replace ``nvidia.dali`` and PyTorch's `DataLoader` with torchdali's; Python imports this module when it starts.

To start fast in every Python process of a script, this module imports only two modules of this folder and the standard
library.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

from torchdali_alias import alias_nvidia_dali  # type: ignore[import-not-found]  # it is in this folder
from torchdali_loader import replace_dataloader  # type: ignore[import-not-found]

alias_nvidia_dali()
replace_dataloader()

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if entry != _here]
_hidden = PathFinder.find_spec("sitecustomize", sys.path)  # a module with the same name that this module hides
if _hidden is not None and _hidden.loader is not None:
    _hidden.loader.exec_module(importlib.util.module_from_spec(_hidden))
