"""Operators that edit the program of an image before it is decoded.

A decoder and the operators after it edit an `ImageProgram`, one after the other. Then one call of the native library
renders the program. The transforms of `torchdali.DataLoader` are one operator, which isn't part of a chain.
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
        narrow: Function that edits the program of a sample; None if the operator only changes options.
        options: Function that edits the options, which all samples share. It returns None if the operator can't follow
            the earlier operators.
        numbers: Approximate number of random numbers per sample.
        finish: Function that changes the result in place, with further random numbers of the sample.
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
        """Create the edit for a function that receives the constants together with the arguments of a sample."""
        return cls(lambda program, arguments, rng: narrow(program, {**constants, **arguments}, rng), options)


@dataclass(frozen=True)
class Narrowing:
    """Declaration of an operator that edits the programs of images ``(H, W, 3)`` of bytes.

    Attributes:
        edit: Function of the constants that returns the edit, or None if the operator needs pixels.
        takes: Names of the arguments that are supported when editing programs.
        varies: Names of the supported arguments that may be passed per sample.
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
        operator: Name of the operator.
        constants: Arguments that are the same for all samples.
        per_sample: For each per-sample argument, the name of the chain's argument with its values.
    """

    operator: str
    constants: Mapping[str, Any]
    per_sample: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DecodeChain:
    """A decoder and operators, each of which processes the result of the operator before it.

    Attributes:
        parts: The decoder and the operators, in order.
        scaled: True if a large image may be decoded at the smallest scale that a random crop allows.
        OF_WINDOWS: Chains that also need fewer pixels in the Python implementation.
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
        """Check that the argument is a chain, and return it."""
        assert isinstance(value, cls)
        return value

    def __repr__(self) -> str:
        return " + ".join(part.operator for part in self.parts)
