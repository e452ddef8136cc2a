"""Operators that edit the program of an image before it is decoded.

A decoder and the operators after it edit an `ImageProgram`, one after the other; then one call of the library of the
fast path renders it. The transforms of `torchdali.DataLoader` are one operator, which isn't part of a chain.
`graph.rewrite` finds these chains, and ``ops/_decode_chain.py`` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from torchdali.codecs.program import ImageProgram
from torchdali.kernels.native import ImageOptions

__all__ = ["ChainPart", "DecodeChain", "Edit", "Narrow", "Narrowing"]

Narrow = Callable[[ImageProgram, Mapping[str, Any], Any], "ImageProgram | None"]
"""Takes a program, the passed arguments of a sample and its random numbers. Returns the program after the operator, or
None if only its body can do it. The body also runs if this raises, and raises the error again."""


def _keep_options(options: ImageOptions) -> ImageOptions:
    return options


class Edit(NamedTuple):
    """Edit of image programs by an operator with certain constants.

    Attributes:
        narrow: Edits the program of a sample; None if the operator changes options alone.
        options: Edits the options, which all samples have in common; returns None if the operator must not follow the
            earlier ones.
        numbers: Random numbers that a sample takes, about.
        finish: Changes the result, in place, by further random numbers of the sample.
    """

    narrow: Narrow | None = None
    options: Callable[[ImageOptions], ImageOptions | None] = _keep_options
    numbers: int = 0
    finish: Callable[[Tensor, Any], object] | None = None

    @classmethod
    def with_constants(
        cls,
        narrow: Narrow,
        constants: Mapping[str, Any],
        options: Callable[[ImageOptions], ImageOptions | None] = _keep_options,
    ) -> Edit:
        """Return the edit of a function that takes the constants with the arguments of a sample."""
        return cls(lambda program, arguments, rng: narrow(program, {**constants, **arguments}, rng), options)


@dataclass(frozen=True)
class Narrowing:
    """Declaration of an operator that edits the programs of images ``(H, W, 3)`` of bytes.

    Attributes:
        edit: Takes the constants; returns None if the operator needs the pixels.
        takes: Names of the arguments with which it edits programs.
        varies: Names of these that may be passed per sample.
    """

    edit: Callable[[Mapping[str, Any]], Edit | None]
    takes: frozenset[str]
    varies: frozenset[str]

    def suits(self, constants: Collection[str], per_sample: Collection[str]) -> bool:
        """Return whether the operator edits programs with these arguments, by their names."""
        return self.takes.issuperset(constants) and self.varies.issuperset(per_sample)


@dataclass(frozen=True)
class ChainPart:
    """An operator of a chain.

    Attributes:
        operator: Its name.
        constants: Its arguments that are the same for all samples.
        per_sample: The others, and the names of the chain's arguments that have their values.
    """

    operator: str
    constants: Mapping[str, Any]
    per_sample: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DecodeChain:
    """A decoder, and operators that each work on the result of the one before.

    Attributes:
        scaled: A large image may be decoded at the least size that has the pixels that a random crop needs.
        OF_WINDOWS: Chains that need fewer pixels in Python, too.
    """

    OF_WINDOWS: ClassVar = frozenset((
        ("decoders.image", "random_resized_crop"),
        ("decoders.image", "random_resized_crop", "crop_mirror_normalize"),
        ("decoders.image", "resize", "crop_mirror_normalize"),
    ))  # fmt: skip

    parts: tuple[ChainPart, ...]
    scaled: bool = False

    @classmethod
    def from_argument(cls, value: Any) -> DecodeChain:
        """Return a chain as the argument takes it."""
        assert isinstance(value, cls)
        return value

    def __repr__(self) -> str:
        return " + ".join(part.operator for part in self.parts)
