"""Magnitude bins with a random sign for each sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchdali.auto_aug.core._draws import draw_number
from torchdali.graph.nodes import DataNode

__all__ = ["SignedBin", "signed_bin"]


@dataclass(frozen=True)
class SignedBin:
    """A magnitude bin and a random sign, as returned by `signed_bin`.

    If every sample has several random signs (see ``shape`` of `signed_bin`), index this object to select one sign. If
    the bin is a node, indexing also selects an element of the bin.

    Attributes:
        bin: The bin without the sign.
        sign: 0 for plus, 1 for minus.
    """

    bin: int | DataNode
    sign: DataNode

    @property
    def index(self) -> Any:
        """Row index in a table in which each magnitude is followed by its negative."""
        magnitude_bin: Any = self.bin
        return 2 * magnitude_bin + self.sign

    def __getitem__(self, step: Any) -> SignedBin:
        return SignedBin(self.bin if isinstance(self.bin, int) else self.bin[step], self.sign[step])


def signed_bin(
    magnitude_bin: int | DataNode,
    random_sign: DataNode | None = None,
    seed: int | None = None,
    shape: tuple[int, ...] | None = None,
) -> SignedBin:
    """Add a random sign to a magnitude bin, for augmentations with `randomly_negate`.

    Call this function before the samples are divided among several augmentations, so that one operator draws the signs
    for all augmentations.

    Args:
        magnitude_bin: A number, or one number per sample.
        random_sign: 1 to negate the magnitude, otherwise 0; drawn at random if None.
        seed: Seed of the random sign.
        shape: Shape of each sample's random signs; a scalar if None.

    Raises:
        TypeError: the bin is neither an int nor a node.
    """
    if not isinstance(magnitude_bin, (int, DataNode)):
        raise TypeError(
            "`magnitude_bin` must be an int or a DataNode of ints from `[0..num_magnitude_bins-1]`, "
            f"not {magnitude_bin!r}"
        )
    if random_sign is None:
        random_sign = draw_number(2, seed, shape)
    return SignedBin(magnitude_bin, random_sign)
