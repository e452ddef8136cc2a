"""``docs/operators.md`` is what the declarations give."""

from __future__ import annotations

import torchdali.ops  # noqa: F401  declares the operators
from tests import docs
from torchdali.reference import reference


def test_the_reference_is_up_to_date() -> None:
    page = (docs.ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert page == reference(), (
        "run `python -m torchdali.reference > docs/operators.md` and commit it"
    )


def test_inputs_arguments_and_their_descriptions_stand_in_it() -> None:
    entry = reference().split("\n### crop_mirror_normalize\n")[1].split("\n### ")[0]
    assert "`ops.CropMirrorNormalize`" in entry and "- `mean` (" in entry
    assert "- `crop_w` (float, per sample" in entry, "shared arguments are listed"
    shared = [line for line in entry.splitlines() if line.startswith("- `crop_pos_x`")]
    assert "): " in shared[0], "and described"
