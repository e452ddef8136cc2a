"""Automatic augmentation: AutoAugment, RandAugment and TrivialAugment, and functions for building similar methods.

Only the augmentations that were chosen for a sample process the sample. See ``docs/auto_aug.md``.
"""

from __future__ import annotations

from torchdali.auto_aug import augmentations, auto_augment, core, rand_augment, trivial_augment

__all__ = ["augmentations", "auto_augment", "core", "rand_augment", "trivial_augment"]
