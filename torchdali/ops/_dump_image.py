"""The operator `dump_image`, which writes images to files while a pipeline runs, for debugging."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch

from torchdali.calls.decorators import operator
from torchdali.declaration.schema import BatchOutput, InputConstraints
from torchdali.formats.shared_folder import write_atomically
from torchdali.tensors import TensorList

__all__ = ["dump_image"]

_WORDS = np.array([f"{value} ".encode() for value in range(256)])  # NumPy pads the texts with zero bytes
Batch = Annotated[TensorList, InputConstraints()]


@operator(over="batch")
def dump_image(data: Batch, /, *, input_layout: str = "HWC", suffix: str = "") -> BatchOutput:
    """Write each image of a batch to a file in the working directory, and return the batch unchanged.

    The file of sample ``i`` is ``{i}-{suffix}-0.ppm``, a portable pixmap in text format (P3, or P2 for one channel).
    The next batch overwrites the files.

    Args:
        data: Images ``(H, W, 3)`` or ``(H, W, 1)``, uint8.
        input_layout: Layout of the images. It must be ``"HWC"``.
        suffix: Text in the file names, after the sample's index.

    Raises:
        RuntimeError: the dtype, shape or layout is not supported, an image has no pixels, or a file can't be written.
    """
    if input_layout != "HWC":
        raise RuntimeError(f"dump_image: input_layout must be 'HWC', got {input_layout!r}")
    for i, image in enumerate(data.samples()):
        _check(image)
        _write(f"{i}-{suffix}-0.ppm", image.cpu())
    return [image.clone() for image in data.samples()]


def _check(image: torch.Tensor) -> None:
    if image.dtype != torch.uint8 or image.dim() != 3 or image.shape[-1] not in (1, 3):
        raise RuntimeError(
            f"dump_image: images must be uint8 (H, W, 1) or (H, W, 3), got {image.dtype} {tuple(image.shape)}"
        )
    if not image.numel():
        raise RuntimeError(f"dump_image: the image must not be empty, got the shape {tuple(image.shape)}")


def _write(name: str, image: torch.Tensor) -> None:
    height, width, channels = image.shape
    lines = [b"P3" if channels == 3 else b"P2", f"{width} {height}".encode(), b"255"]
    lines += [row.tobytes().replace(b"\0", b"") for row in _WORDS[image.flatten(1).numpy()]]
    try:
        write_atomically(name, [b"\n".join(lines), b"\n"])
    except OSError as error:
        raise RuntimeError(f"dump_image: cannot write {name}: {error.strerror}") from error
