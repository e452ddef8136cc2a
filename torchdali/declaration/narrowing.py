"""Operators that edit the program of an image before the image is decoded.

An `ImageProgram` describes how to decode and transform one image. A *chain* is a decoder and the operators after it.
The operators of a chain edit the program, one after the other. Then one call of the native library renders the program,
which means that it decodes and transforms the image. `graph.rewrite` finds the chains in a graph, and
``ops/_decode_chain.py`` runs the chains.
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
"""Function that edits a program for one operator.

The function receives the program, the sample's arguments and the sample's random numbers. It returns the edited
program, or None if the sample must be processed by the operator's implementation, which works on pixels. If the
function raises an error, the implementation also runs, and raises the error again.
"""


def _keep_options(options: ImageOptions) -> ImageOptions:
    return options


class Edit(NamedTuple):
    """An operator's edit of image programs, for certain constants.

    Attributes:
        narrow: Function that edits the program of a sample; None if the operator only changes options.
        options: Function that edits the options, which are the same for all samples. The function returns None if the
            operator can't be in a chain after the operators that have edited the options.
        numbers: Approximate number of random numbers per sample.
        finish: Function that changes the rendered image in place, and receives the sample's random numbers; None if the
            image needn't be changed.
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
        """Create an edit. `narrow` receives the constants and the sample's arguments in one dictionary."""
        return cls(lambda program, arguments, rng: narrow(program, {**constants, **arguments}, rng), options)


@dataclass(frozen=True)
class Narrowing:
    """Declaration of an operator that edits the programs of uint8 images ``(H, W, 3)``.

    Attributes:
        edit: Function of the constants that returns the edit, or None if the operator needs pixels.
        arguments: Names of the constants with which the operator can edit programs.
        per_sample: Names of the per-sample arguments with which the operator can edit programs.
    """

    edit: Callable[[Mapping[str, Any]], Edit | None]
    arguments: frozenset[str]
    per_sample: frozenset[str]

    def supports(self, constants: Collection[str], per_sample: Collection[str]) -> bool:
        """Return whether the operator can edit programs if a call passes arguments with these names."""
        return self.arguments.issuperset(constants) and self.per_sample.issuperset(per_sample)


@dataclass(frozen=True)
class ChainPart:
    """One operator of a `DecodeChain`.

    Attributes:
        constants: Arguments that are the same for all samples.
        per_sample: Maps the name of each per-sample argument to the name that the argument has in the chain.
    """

    operator: str
    constants: Mapping[str, Any]
    per_sample: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DecodeChain:
    """A decoder and the operators after it. Each operator processes the previous operator's result.

    Attributes:
        parts: The decoder and the operators, in order.
        scaled: True to decode large images at the smallest scale that a random crop allows.
        OF_WINDOWS: The chains, as tuples of operators' names, that decode fewer pixels even without the native library.
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
        """Check that an argument is a `DecodeChain`, and return it."""
        assert isinstance(value, cls)
        return value

    def __repr__(self) -> str:
        return " + ".join(part.operator for part in self.parts)
