"""Declare augmentations, select an augmentation for each sample, and combine augmentations into policies."""

from __future__ import annotations

from torchdali.auto_aug.core._augmentation import Augmentation as _Augmentation
from torchdali.auto_aug.core._augmentation import augmentation
from torchdali.auto_aug.core._policy import Policy
from torchdali.auto_aug.core._select import select
from torchdali.auto_aug.core._signed_bin import signed_bin

__all__ = ["Policy", "_Augmentation", "augmentation", "select", "signed_bin"]
