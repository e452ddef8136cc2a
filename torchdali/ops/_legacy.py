"""Deprecated operators: old names of operators, and `fast_resize_crop_mirror`."""

from __future__ import annotations

from typing import Annotated, Any

from torchdali.calls.decorators import alias, deprecate, operator
from torchdali.declaration.schema import Image, Layout, PerSample, shares
from torchdali.ops import (
    _audio,
    _debayer,
    _decoders,
    _equalize,
    _filters,
    _inflate,
    _random,
    _resize,
    _transforms,
    _video,
)
from torchdali.ops._crop import crop_window
from torchdali.ops._readers import (
    caffe,
    coco,
    file,
    mxnet,
    nemo_asr,
    numpy,
    sequence,
    tfrecord,
    video,
)
from torchdali.ops._resize import resampling, resize_crop_mirror, sizing

__all__ = ["fast_resize_crop_mirror"]

alias("coin_flip", _random.coin_flip)
alias("normal_distribution", _random.normal)
alias("uniform", _random.uniform)

alias("image_decoder", _decoders.image)
alias("image_decoder_crop", _decoders.image_crop)
alias("image_decoder_random_crop", _decoders.image_random_crop)
alias("image_decoder_slice", _decoders.image_slice)
alias("experimental.decoders.image", _decoders.image)
alias("experimental.decoders.image_crop", _decoders.image_crop)
alias("experimental.decoders.image_random_crop", _decoders.image_random_crop)
alias("experimental.decoders.image_slice", _decoders.image_slice)
alias("experimental.peek_image_shape", _decoders.peek_image_shape)

alias("audio_decoder", _audio.audio)
alias("experimental.audio_resample", _audio.audio_resample)

alias("experimental.decoders.video", _video.video)
alias("video_reader", video.video)
alias("video_reader_resize", video.video_resize)

alias("caffe_reader", caffe.caffe)
alias("caffe2_reader", caffe.caffe2)
alias("coco_reader", coco.coco)
alias("file_reader", file.file)
alias("mxnet_reader", mxnet.mxnet)
alias("nemo_asr_reader", nemo_asr.nemo_asr)
alias("numpy_reader", numpy.numpy)
alias("sequence_reader", sequence.sequence)
alias("tfrecord_reader", tfrecord.tfrecord)

alias("experimental.debayer", _debayer.debayer)
alias("experimental.equalize", _equalize.equalize)
alias("experimental.inflate", _inflate.inflate)
alias("experimental.filter", _filters.filter)
alias("experimental.tensor_resize", _resize.tensor_resize)
alias("transform_translation", _transforms.translation)


@operator(marks=("bytes",))
def fast_resize_crop_mirror(
    data: Image,
    /,
    *,
    antialias: bool = False,
    mirror: PerSample[int] = 0,
    layout: Layout,
    **arguments: Annotated[Any, shares(sizing), shares(resampling), shares(crop_window)],
) -> Image:
    """Resize, crop and mirror images in one step, by default without antialiasing.

    Args:
        data: Images, sequences of frames or volumes.
        antialias: True to widen the filter along axes that become smaller. Default: False.
        mirror: Directions to mirror, as a sum: 1 for horizontal, 2 for vertical, 4 for depth. Default: 0.
    """
    function: Any = resize_crop_mirror
    result: Image = function.implementation(data, antialias=antialias, mirror=mirror, layout=layout, **arguments)
    return result


deprecate(fast_resize_crop_mirror, "resize_crop_mirror")
