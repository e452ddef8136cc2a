"""Branches of an `if` that are merged, on several threads."""

from __future__ import annotations

import pytest
import torch

from torchdali.ops._control import _Chooser


def test_two_threads_may_merge_the_first_sample() -> None:
    check_kind = _Chooser()._check_kind
    for _ in range(2):  # both have seen that there was no sample before
        check_kind(torch.zeros(2, 3), "the variable 'x'")
    with pytest.raises(RuntimeError, match="float32 of 2 dimensions and uint8 of 2 dimensions"):
        check_kind(torch.zeros(2, 3, dtype=torch.uint8), "the variable 'x'")
