"""Automatic augmentation: AutoAugment, RandAugment and TrivialAugment, and the parts for building others.

Each sample takes its own augmentation, and runs through no other. See ``docs/auto_aug.md``.
"""

from __future__ import annotations

from torchdali.auto_aug import augmentations, auto_augment, core, rand_augment, trivial_augment

__all__ = ["augmentations", "auto_augment", "core", "rand_augment", "trivial_augment"]
