"""torchvision's v2 transforms, implemented by torchdali's operators, with DALI's names and arguments.

`Compose` creates one pipeline from its transforms, and applies it to PIL images and tensors:

    from torchdali.experimental.torchvision import Compose, RandomHorizontalFlip, RandomResizedCrop, ToPureTensor

    transform = Compose([RandomResizedCrop(224), RandomHorizontalFlip(), ToPureTensor()])
    dataset = torchvision.datasets.ImageFolder(root, transform=transform)

`v2.functional` contains the transforms as functions.
"""

from torchdali.experimental.torchvision import v2
from torchdali.experimental.torchvision.v2 import (
    CenterCrop,
    ColorJitter,
    Compose,
    GaussianBlur,
    Grayscale,
    InterpolationMode,
    Normalize,
    Pad,
    PILToTensor,
    RandomApply,
    RandomCrop,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    ToPILImage,
    ToPureTensor,
    __getattr__,  # noqa: F401  raises an error with a hint for a missing name
)

__all__ = [
    "CenterCrop", "ColorJitter", "Compose", "GaussianBlur", "Grayscale", "InterpolationMode", "Normalize",
    "PILToTensor", "Pad", "RandomApply", "RandomCrop", "RandomGrayscale", "RandomHorizontalFlip", "RandomResizedCrop",
    "RandomVerticalFlip", "Resize", "ToPILImage", "ToPureTensor", "v2",
]  # fmt: skip
