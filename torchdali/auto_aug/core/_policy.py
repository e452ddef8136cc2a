"""Policies of AutoAugment: combinations of augmentations, with their probabilities and magnitudes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torchdali.auto_aug.core._augmentation import Augmentation

__all__ = ["Policy"]

Step = tuple[Augmentation, float, int | None]


class Policy:
    """A list of sub-policies. AutoAugment selects a random sub-policy for each sample.

    Args:
        name: Name of the policy, for messages.
        num_magnitude_bins: Number of bins into which the range of each augmentation's magnitudes is divided.
        sub_policies: Each sub-policy is a sequence of ``(augmentation, probability, magnitude_bin)``. The augmentations
            are applied one after the other, each with its probability. The bin of an augmentation without magnitudes is
            None.

    If different augmentations have the same name, a number is prepended to all names.

    Raises:
        TypeError: a sub-policy or an augmentation has an unsupported type.
        ValueError: a probability, bin or number of bins is out of range, or a bin is missing.
    """

    def __init__(
        self,
        name: str,
        num_magnitude_bins: int,
        sub_policies: Sequence[Sequence[tuple[Augmentation, float, int | None]]],
    ) -> None:
        if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
            raise ValueError(f"The `num_magnitude_bins` must be a positive integer, got {num_magnitude_bins}")
        if not isinstance(sub_policies, (list, tuple)):
            raise TypeError(f"The `sub_policies` must be a list or tuple of sub policies, not {type(sub_policies)}")
        self.name, self.num_magnitude_bins = name, num_magnitude_bins
        for steps in sub_policies:
            self._check(steps)
        self.sub_policies = _with_unique_names(sub_policies)

    @property
    def augmentations(self) -> dict[str, Augmentation]:
        """The augmentations by name, sorted by name."""
        by_name = {step[0].name: step[0] for steps in self.sub_policies for step in steps}
        return dict(sorted(by_name.items()))

    def __repr__(self) -> str:
        steps = [[(a.name, p, m) for a, p, m in steps] for steps in self.sub_policies]
        lines = ",".join(f"\n\t{step}" for step in steps)
        named = ",".join(f"\n\t{name!r}: {a!r}" for name, a in self.augmentations.items())
        return (
            f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins}, sub_policies=[{lines}], "
            f"augmentations={{{named}}})"
        )

    def _check(self, steps: Any) -> None:
        if not isinstance(steps, (list, tuple)):
            raise TypeError(f"Each sub policy must be a list or tuple of steps, not {steps!r}")
        for step in steps:
            if not isinstance(step, (list, tuple)) or len(step) != 3:
                raise TypeError(
                    f"a step of a sub-policy must be specified as a triple: (augmentation, probability, magnitude). "
                    f"Got {step!r}"
                )
            if not isinstance(step[0], Augmentation):
                raise TypeError(
                    f"an augmentation of a sub-policy must be an instance of Augmentation. Got `{step[0]!r}`; "
                    "decorate it with `@augmentation`"
                )
            self._check_probability(step[0], step[1])
            self._check_bin(step[0], step[2])

    def _check_probability(self, augmentation: Augmentation, probability: Any) -> None:
        if not isinstance(probability, (int, float)) or not 0 <= probability <= 1:
            raise ValueError(
                f"Probability of the augmentation `{augmentation.name}` must be a number from `[0, 1]` range. Got "
                f"`{probability!r}`"
            )
        if probability == 0:
            warnings.warn(
                f"policy `{self.name}` runs the augmentation `{augmentation.name}` with probability 0 in one of the "
                "sub-policies",
                stacklevel=4,
            )

    def _check_bin(self, augmentation: Augmentation, magnitude_bin: Any) -> None:
        if augmentation.mag_range is None:
            if magnitude_bin is not None:
                warnings.warn(
                    f"the magnitude bin {magnitude_bin} of the augmentation `{augmentation.name}` in policy "
                    f"`{self.name}` is ignored: The augmentation does not accept magnitudes. Pass None instead",
                    stacklevel=4,
                )
        elif magnitude_bin is None:
            raise ValueError(
                f"the augmentation `{augmentation.name}` has a `mag_range`: the magnitude bin is required in policy "
                f"`{self.name}`, instead of None"
            )
        elif not isinstance(magnitude_bin, int) or not 0 <= magnitude_bin < self.num_magnitude_bins:
            raise ValueError(
                f"Magnitude bin of the augmentation `{augmentation.name}` must be an integer from "
                f"`[0, {self.num_magnitude_bins - 1}]` range. Got `{magnitude_bin!r}`"
            )


def _with_unique_names(
    sub_policies: Sequence[Sequence[Step]],
) -> tuple[tuple[Step, ...], ...]:
    """Prepend numbers to the names of the augmentations if different augmentations have the same name."""
    used = list(dict.fromkeys(step[0] for steps in sub_policies for step in steps))
    renamed = {a: a for a in used}
    if len({a.name for a in used}) < len(used):
        width = len(str(len(used) - 1))
        renamed = {a: a.augmentation(name=f"{number:0{width}}__{a.name}") for number, a in enumerate(used)}
    return tuple(
        tuple((renamed[augmentation], p, magnitude_bin) for augmentation, p, magnitude_bin in steps)
        for steps in sub_policies
    )
