"""Operators that say which part of a picture they want before it is decoded.

A decoder and the operators behind it narrow a `View`, one after the other; then one call of the library of the fast
path makes the pixels that are left. `graph.rewrite` finds such chains, and ``ops/_decode_chain.py`` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torchdali.codecs.views import View

__all__ = ["ChainPart", "DecodeChain", "Narrow", "Narrowing", "with_constants"]

Narrow = Callable[[View, Mapping[str, Any], Any], "View | None"]
"""Takes a view, arguments of a sample, those that the call gives, and its random numbers; returns the view behind the
operator, or None if only its body can do it. The body also does what this raises for, and has the error."""


@dataclass(frozen=True)
class Narrowing:
    """Declaration of an operator that narrows pictures ``(H, W, 3)`` of bytes.

    Attributes:
        prepare: Takes the constants, and returns what takes the arguments that are given per sample; None for an
            operator that takes the whole picture as it is.
        takes: Names of the arguments with which it narrows.
        varies: Those of them that may be given per sample.
        settings: Takes the constants, and returns what it sets for all samples; None if it does not narrow with these.
            Of a decoder "upright", "fast" and "fancy"; "filters" of a resize, and "inside" if it sees nothing beyond
            its region; "mirrors" if it may change the order of lines; "finish", arguments of `crop_mirror_normalize`,
            if the result is no picture of bytes any more.
    """

    prepare: Callable[[Mapping[str, Any]], Narrow] | None
    takes: frozenset[str]
    varies: frozenset[str]
    settings: Callable[[Mapping[str, Any]], dict[str, Any] | None]

    def suits(self, constants: Collection[str], per_sample: Collection[str]) -> bool:
        """Return whether it narrows with these arguments, by their names."""
        return self.takes.issuperset(constants) and self.varies.issuperset(per_sample)


def with_constants(narrow: Narrow) -> Callable[[Mapping[str, Any]], Narrow]:
    """Return a `Narrowing.prepare` of what takes all arguments."""

    def prepare(constants: Mapping[str, Any]) -> Narrow:
        return lambda view, arguments, rng: narrow(view, {**constants, **arguments}, rng)

    return prepare


@dataclass(frozen=True)
class ChainPart:
    """An operator of a chain.

    Attributes:
        operator: Its name.
        constants: Its arguments that are the same for all samples.
        per_sample: The others, and the names that they have among those of the chain.
    """

    operator: str
    constants: Mapping[str, Any]
    per_sample: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DecodeChain:
    """A decoder, and operators that each work on what the one before makes.

    Attributes:
        scaled: A large picture may be decoded at the least size that has the pixels that a random crop needs.
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
