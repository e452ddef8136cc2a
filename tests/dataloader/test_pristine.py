"""Changes of torch's and torchvision's code, in a new process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from tests.dataloader.data import of_files
from tests.helpers.own_process import in_own_process
from torchdali import DataLoader

CHAIN = [v2.CenterCrop(20), v2.RandomPhotometricDistort(), v2.PILToTensor()]


def last_note() -> str:
    """Return the note on a loader whose transforms reach the methods of `torch.nn.Module`, too."""
    return DataLoader(of_files("DTD", ["a.jpg"], v2.Compose(CHAIN)), batch_size=2).notes[-1]


def notes() -> dict[str, list[str]]:
    """Return the notes after each change, and after its reversal."""
    found = {}
    for change in CHANGES:
        with pytest.MonkeyPatch.context() as patch:
            change(patch)
            changed = last_note()
        found[change.__name__] = [changed, last_note()]
    return found


def compile_model(patch: pytest.MonkeyPatch) -> None:
    """Let torch wrap `torch.nn.Module.__init__`, as it does when a program compiles its model."""
    patch.setattr(torch.nn.Module, "___needs_generation_tag_patch", True, raising=False)  # torch does it once per process
    torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
    assert torch.nn.Module.__init__.__module__ == "torch._dynamo.mutation_guard"


def change_init(patch: pytest.MonkeyPatch) -> None:
    init = torch.nn.Module.__init__
    patch.setattr(torch.nn.Module, "__init__", lambda self, *given, **named: init(self, *given, **named))


def change_init_and_compile(patch: pytest.MonkeyPatch) -> None:
    change_init(patch)
    compile_model(patch)


def change_flag(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Image.Image, "_close_exclusive_fp_after_loading", 1)


CHANGES: dict[Callable[[pytest.MonkeyPatch], None], str] = {
    change_flag: "PIL.Image.Image._close_exclusive_fp_after_loading",
    change_init: "torch.nn.modules.module.Module.__init__",
    change_init_and_compile: "torch.nn.modules.module.Module.__init__",
    compile_model: "",
}
"""The name that each change replaces, "" if none. The first change comes before the first loader of the process."""


def test_replaced_functions_of_torch_prevent_acceleration() -> None:
    found = in_own_process(__name__, "notes()")
    for change, name in CHANGES.items():
        changed, later = found[change.__name__]
        assert later == "PILToTensor: accelerated"
        if name:
            assert changed.startswith("not accelerated: ") and f"`{name}` was replaced" in changed
        else:
            assert changed == later
