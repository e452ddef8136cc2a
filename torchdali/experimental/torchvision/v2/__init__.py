"""The transforms; the module `functional` contains them as functions."""

from typing import NoReturn

from torchdali.errors import did_you_mean
from torchdali.experimental.torchvision.v2 import functional
from torchdali.experimental.torchvision.v2._checks import InterpolationMode
from torchdali.experimental.torchvision.v2._color import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    Normalize,
    RandomGrayscale,
)
from torchdali.experimental.torchvision.v2._compose import Compose
from torchdali.experimental.torchvision.v2._geometry import (
    CenterCrop,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from torchdali.experimental.torchvision.v2._transform import (
    PILToTensor,
    RandomApply,
    ToPILImage,
    ToPureTensor,
)

__all__ = [
    "CenterCrop", "ColorJitter", "Compose", "GaussianBlur", "Grayscale", "InterpolationMode", "Normalize",
    "PILToTensor", "Pad", "RandomApply", "RandomCrop", "RandomGrayscale", "RandomHorizontalFlip", "RandomResizedCrop",
    "RandomVerticalFlip", "Resize", "ToPILImage", "ToPureTensor", "functional",
]  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    hint = "; use PILToTensor, and Normalize" if name == "ToTensor" else did_you_mean(name, __all__)
    hint = hint or "; for transforms that aren't in __all__, call torchvision's own after Compose"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
