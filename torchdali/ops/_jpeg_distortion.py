"""The operator `jpeg_compression_distortion`, which adds the artifacts of JPEG compression to images."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.codecs.jpeg import recode
from torchdali.declaration.schema import Arguments, InputConstraints, PerSample, per_sample
from torchdali.kernels.jpeg import distort, distort_each

__all__ = ["jpeg_compression_distortion"]

Colored = Annotated[Tensor, InputConstraints(("HWC", "FHWC"), (torch.uint8,))]


@operator(marks=("bytes",))
def jpeg_compression_distortion(image: Colored, /, *, quality: PerSample[int] = 50) -> Colored:
    """Encode images as JPEG with 4:2:0 chroma subsampling, and decode them again, to add compression artifacts.

    On the CPU, libjpeg-turbo encodes and decodes the images. On an accelerator and under `torch.compile`, the operator
    computes the lossy steps of JPEG without a file: it converts the image to YCbCr, halves the resolution of the
    chroma, applies the cosine transform to blocks of 8x8 pixels, rounds the coefficients to multiples of the values in
    the quantization tables (ITU-T T.81 annex K, scaled by the quality), and reverses these steps.

    Args:
        image: RGB images ``(H, W, 3)`` or sequences ``(F, H, W, 3)``, uint8. Each frame is distorted separately.
        quality: JPEG quality, from 1 (the strongest distortion) to 100. Values out of this range are clamped.

    Raises:
        RuntimeError: the dtype or number of channels is not supported, or an image has no pixels.
    """
    if image.shape[-1] != 3:
        raise RuntimeError(f"jpeg_compression_distortion: images must be RGB with 3 channels, got {image.shape[-1]}")
    quality = min(max(int(quality), 1), 100)
    if image.device.type != "cpu" or torch.compiler.is_compiling():
        return distort(image, quality)
    if image.dim() == 3:
        return recode(image, quality)
    return torch.stack([recode(frame, quality) for frame in image]) if len(image) else image


@chunk(jpeg_compression_distortion, per_sample=("quality",), only_on_devices=True)
def _distort_batch(image: Tensor, a: Arguments) -> Any:
    if image.ndim != 4 or image.shape[-1] != 3:
        return NotImplemented
    return distort_each(image, [min(max(int(quality), 1), 100) for quality in per_sample(a.quality, len(image))])
