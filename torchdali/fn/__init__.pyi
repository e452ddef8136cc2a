"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch

from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


from . import decoders as decoders
from . import experimental as experimental
from . import io as io
from . import noise as noise
from . import random as random
from . import readers as readers
from . import reductions as reductions
from . import segmentation as segmentation
from . import transforms as transforms

def audio_decoder(
    data: _T,
    /,
    *,
    device: Literal['cpu'] | None = None,
    downmix: bool = False,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    quality: float = 50.0,
    sample_rate: float | DataNode | TensorList = 0.0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, _T]:
    """Deprecated: use `decoders.audio`.

    Decode audio: WAV by itself, FLAC, Ogg, MP3 and others by the package soundfile (extra ``audio``).

    FLAC takes a fifth less time where PyAV is installed, too (extra ``video``); its samples are the same.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        downmix: Return the mean of the channels.
        dtype: float32 (full scale is 1), int16 or int32.
        quality: Of resampling: 0, 50 and 100 stand for windows of 3, 16 and 64 lobes.
        sample_rate: In Hz; what has another rate is resampled, but for 0.

    Returns:
        ``(samples, channels)``, or ``(samples,)`` with ``downmix``; and the sample rate, a float32 scalar.

    Raises:
        DecodeError: the data is empty, damaged or of an unknown format. A WAV file that ends early gives what it has.
        RuntimeError: the data has more than one dimension, another type, or a quality that is not in 0 to 100.
        MissingExtraError: the format needs soundfile, which is not installed, nor for FLAC PyAV.
    """
    ...

def audio_resample(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    in_rate: float | DataNode | TensorList | None = None,
    name: str | None = None,
    out_length: int | DataNode | TensorList | None = None,
    out_rate: float | DataNode | TensorList | None = None,
    quality: float = 50.0,
    scale: float | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Resample a signal, by a sinc under a Hann window.

    The ratio is ``scale``, or ``out_rate / in_rate``, or what gives ``out_length`` samples; of these, one is given.
    The window is not widened where the rate goes down. A result of another type is scaled from full scale to full
    scale: for unsigned types, silence lies in the middle.

    Args:
        data: ``(samples,)`` or ``(samples, channels)``: integers of up to 32 bits, or float32.
        dtype: Of these types; the input's own, if not given.
        in_rate: Sample rate of the input.
        out_length: Samples of the result.
        out_rate: Sample rate of the result.
        quality: From 0 to 100; 0, 50 and 100 stand for 3, 16 and 64 lobes of the window.
        scale: Samples of the result for one of the input.

    Raises:
        RuntimeError: no ratio, or more than one; a negative one; a rate that is not positive; another type.
    """
    ...

def batch_permutation(
    *,
    allow_repetitions: bool = False,
    device: Literal['cpu'] | None = None,
    name: str | None = None,
    no_fixed_points: bool = False,
    seed: int = -1,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Draw a permutation of the samples of the batch: one index a sample, int32, for `permute_batch`.

    Args:
        allow_repetitions: Draw each index for itself, so that some may repeat and others be missing.
        no_fixed_points: No sample gets its own index (where the batch has more than one); without repetitions
            the permutation is then a single cycle.
        seed: Of the random numbers; derived from the pipeline's seed by default.
    """
    ...

def bb_flip(
    boxes: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    horizontal: int | DataNode | TensorList = 1,
    ltrb: bool = False,
    name: str | None = None,
    vertical: int | DataNode | TensorList = 0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Flip boxes along with their image.

    Args:
        boxes: ``(..., 4)`` float32, relative to the image: x, y, width and height.
        horizontal: Mirror left and right.
        ltrb: The boxes are left, top, right and bottom instead.
        vertical: Mirror top and bottom.
    """
    ...

def bbox_paste(
    boxes: _T,
    /,
    *,
    ratio: float | DataNode | TensorList,
    device: Literal['cpu'] | None = None,
    ltrb: bool = False,
    name: str | None = None,
    paste_x: float | DataNode | TensorList = 0.5,
    paste_y: float | DataNode | TensorList = 0.5,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Move boxes along with the image that `paste` puts on a canvas.

    Args:
        boxes: ``(..., 4)`` float32, relative to the image: x, y, width and height.
        ltrb: They are left, top, right and bottom instead.
        paste_x: As of `paste`.
        paste_y: As of `paste`.
        ratio: As of `paste`; below 1, the canvas shows the image's right lower part, wherever it is pasted.
    """
    ...

def bbox_rotate(
    boxes: _T,
    labels: _T | None = None,
    /,
    *,
    angle: float | DataNode | TensorList,
    input_shape: abc.Sequence[int] | int | DataNode | TensorList,
    bbox_layout: Literal['xyWH', 'xyXY'] = 'xyXY',
    bbox_normalized: bool = True,
    device: Literal['cpu'] | None = None,
    keep_size: bool = False,
    mode: Literal['expand', 'halfway', 'fixed'] = 'expand',
    name: str | None = None,
    remove_threshold: float = 0.1,
    shape_layout: str = 'HW',
    size: abc.Sequence[float] | float | DataNode | TensorList = [],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, ...]:
    """Rotate boxes along with the image that `rotate` turns.

    Args:
        boxes: ``(N, 4)`` float32.
        labels: ``(N,)`` or ``(N, 1)`` int32: those of boxes that are removed go too.
        angle: Degrees, counter-clockwise.
        bbox_layout: ``"xyXY"``: two corners, or ``"xyWH"``: corner and size.
        bbox_normalized: Boxes are relative to the image (and the result to the canvas), not in pixels.
        input_shape: Of the image, in the order of ``shape_layout``.
        keep_size: The canvas is as large as the image; otherwise it grows as with `rotate`.
        mode: ``"expand"``: boxes hold all of what they held; ``"fixed"``: they keep their size, with its sides
            swapped beyond 45 degrees; ``"halfway"``: between both.
        remove_threshold: Boxes of which less than this share lies on the canvas are removed.
        shape_layout: Where height and width are in ``input_shape``.
        size: Height and width of the canvas.

    Raises:
        RuntimeError: an unknown layout or mode, or shapes that do not fit.
    """
    ...

def box_encoder(
    boxes: _T,
    labels: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    /,
    *,
    anchors: abc.Sequence[float] | float,
    criteria: float = 0.5,
    device: Literal['cpu', 'gpu'] | None = None,
    means: abc.Sequence[float] | float = [0.0, 0.0, 0.0, 0.0],
    name: str | None = None,
    offset: bool = False,
    scale: float = 1.0,
    stds: abc.Sequence[float] | float = [1.0, 1.0, 1.0, 1.0],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, _T]:
    """Assign boxes to the anchors of a single-shot detector.

    An anchor gets the box with which its intersection over union is the largest, if that is above ``criteria``.
    The best anchor of each box gets it in any case. Of equal ones, the last counts.

    Args:
        boxes: ``(N, 4)`` float32: left, top, right and bottom.
        labels: ``(N,)`` int32, not 0.
        anchors: M times left, top, right and bottom.
        criteria: Threshold, in [0, 1].
        means: Of the offsets: subtracted from x, y, width and height.
        offset: Return offsets ``((center - anchor's) / anchor's size - mean) / std`` and ``(log(size / anchor's
            size) - mean) / std`` instead of boxes; 0 for anchors without a box.
        scale: Applied to boxes and anchors before offsets are computed.
        stds: Of the offsets, which are divided by them; not 0.

    Returns:
        ``(M, 4)`` float32: centre x, centre y, width and height of the box (of the anchor itself where it has
        none); and ``(M,)`` int32: its label, 0 for none.

    Raises:
        RuntimeError: arguments out of range or of a wrong length, labels that are not int32 or too few.
    """
    ...

def brightness(
    image: _T,
    /,
    *,
    brightness: float | DataNode | TensorList = 1.0,
    brightness_shift: float | DataNode | TensorList = 0.0,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Scale the brightness of images, then shift it.

    ``out = brightness * in + brightness_shift * full_scale``

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        brightness: Multiplier; 1 keeps the image.
        brightness_shift: Offset in units of the output type's full scale: 1 is white.
        dtype: Of the output; the input's own when None.
    """
    ...

def brightness_contrast(
    image: _T,
    /,
    *,
    brightness: float | DataNode | TensorList = 1.0,
    brightness_shift: float | DataNode | TensorList = 0.0,
    contrast: float | DataNode | TensorList = 1.0,
    contrast_center: float | DataNode | TensorList | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Scale the contrast of images around a centre, then scale and shift their brightness.

    ``out = brightness_shift * full_scale + brightness * (center + contrast * (in - center))``

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        brightness: Multiplier.
        brightness_shift: Offset, in units of the output type's full scale (255 for uint8, 1 for floats).
        contrast: Multiplier of the distance from the centre.
        contrast_center: Intensity that contrast leaves as it is; half the input type's range when None.
        dtype: Of the output; the input's own when None.
    """
    ...

def cache(
    data: _T | abc.Sequence[float] | float,
    *others: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    bytes: Any | None = None,
    device: Literal['cpu'] | None = None,
    name: str | None = None,
    path: str | PathLike[str] | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> Any:
    """Keep samples, so that what stands before this is computed once for each record; not in DALI.

    In a pipeline, a sample that is kept is neither read nor computed again, while its file keeps size and time of
    change. Whatever is random comes behind it. Everywhere else (called on tensors, in debug mode, in the dynamic mode)
    it returns its inputs. See `docs/cache.md`.

    Args:
        data: Any; on the CPU, and computed sample by sample from the records of one reader.
        others: The same, of the same reader. All are kept together.
        bytes: How much is kept at most: a number, or a text such as ``"8GB"``. What comes first stays.
        path: A folder to keep samples in, for further runs and other processes as well; without it they are in
            memory. Without ``bytes``, a tenth of the disk stays free.

    Returns:
        The inputs, unchanged.

    Raises:
        ValueError: neither ``bytes`` nor ``path`` is given. RuntimeError, when a pipeline is built: something before it
            is random, sees more than one sample, or comes from no record of a file.
    """
    ...

def caffe2_reader(
    *,
    path: abc.Sequence[str | PathLike[str]] | str | PathLike[str],
    additional_inputs: int = 0,
    bbox: bool = False,
    device: Literal['cpu'] | None = None,
    dont_use_mmap: bool = False,
    image_available: bool = True,
    label_type: int = 0,
    lazy_init: bool = False,
    name: str | None = None,
    num_labels: int = 1,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    random_shuffle: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    stick_to_shard: bool = False,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Deprecated: use `readers.caffe2`.

    Read the tensors of the LMDB databases of Caffe2, in the order of their keys.

    A record is a row of tensors: image, label (two for weighted labels), additional inputs, box.

    Args:
        additional_inputs: Number of further tensors.
        bbox: Records end with a box.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        image_available: Records begin with an image.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        label_type: 0, one label; 1, the numbers of the labels that hold; 2, a number for each label; 3, the
            numbers of the labels that hold, and the weights of these; 4, no label.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_labels: Number of labels that there are, for the types 1 and 3.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        path: Of the databases: their folders, or the files in them.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        The image, ``(n,)`` uint8 encoded or ``(h, w, c)`` as it was stored. The label: ``(1,)`` int32 or float32 (0);
        ``(num_labels,)`` int32 of zeros and ones (1); the numbers (2); numbers of labels, int32, and weights, float32
        (3). Further tensors ``(n,)`` int32 or float32. The box, ``(4,)`` int32.

    Raises:
        RuntimeError: a database cannot be read or is empty, or an argument is wrong. While running: a record is
            damaged, or has other tensors.
    """
    ...

def caffe_reader(
    *,
    path: abc.Sequence[str | PathLike[str]] | str | PathLike[str],
    device: Literal['cpu'] | None = None,
    dont_use_mmap: bool = False,
    image_available: bool = True,
    label_available: bool = True,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    random_shuffle: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    stick_to_shard: bool = False,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Deprecated: use `readers.caffe`.

    Read images and labels of the LMDB databases of Caffe, in the order of their keys.

    Args:
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        image_available: Deliver the image.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        label_available: Deliver the label.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        path: Of the databases: their folders, or the files in them.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        The data of the record, ``(n,)`` uint8, and its label, ``(1,)`` int32, or ``(0,)`` where it has none.

    Raises:
        RuntimeError: a database cannot be read or is empty, or nothing is asked for. While running: a record is
            damaged.
    """
    ...

def cast(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    dtype: DALIDataType | torch.dtype,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Convert to another element type.

    Floats are rounded half away from zero, everything saturates: 300 becomes 255 in uint8. Nothing is rescaled.

    Args:
        data: Any shape and type.
        dtype: Of the output.
    """
    ...

def cast_like(
    data: _T | abc.Sequence[float] | float,
    other: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Convert to the element type of another input; see `cast`.

    Args:
        data: Any shape and type.
        other: Only its type counts.
    """
    ...

def cat(
    first: _T | abc.Sequence[float] | float,
    *others: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    axis: int = 0,
    axis_name: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Join inputs along an axis.

    Args:
        first: What comes first.
        others: Of the same type, and of shapes that differ in that axis at most.
        axis: Along which they are joined; negative numbers count from the end.
        axis_name: The same by the axis's name in the layout.

    Raises:
        RuntimeError: shapes or types that do not fit, an axis out of range or not in the layout, both given.
    """
    ...

def clahe(
    image: _T,
    /,
    *,
    clip_limit: float,
    tiles_x: int,
    tiles_y: int,
    device: Literal['cpu', 'gpu'] | None = None,
    luma_only: bool = True,
    name: str | None = None,
    bins: int = 256,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Spread the values of an image tile by tile, with limited contrast (CLAHE).

    Each tile is equalized by its own histogram, whose bins are cut at ``clip_limit`` times their mean; what was cut
    is dealt out evenly. A pixel is mapped by the four tiles around it, weighted bilinearly. Source: K. Zuiderveld,
    "Contrast limited adaptive histogram equalization", Graphics Gems IV, 1994.

    Args:
        image: ``(H, W, 1)`` or ``(H, W, 3)`` uint8; colors are RGB.
        bins: Accepted; histograms have 256 bins, as those of DALI's CPU operator.
        clip_limit: Largest bin, in units of the mean bin; no limit from 0 down.
        luma_only: Equalize only the lightness of colors (L of CIE Lab), instead of each channel.
        tiles_x: Tiles across the image.
        tiles_y: Tiles down the image.

    Raises:
        ValueError: another type or number of channels. RuntimeError: an image without pixels, or tiles below 1.
    """
    ...

def coco_reader(
    *,
    annotations_file: str | PathLike[str] = '',
    avoid_class_remapping: bool = False,
    device: Literal['cpu'] | None = None,
    dont_use_mmap: bool = False,
    file_root: str | PathLike[str] | None = None,
    image_ids: bool = False,
    images: abc.Sequence[str] | str | None = None,
    include_iscrowd: bool = True,
    lazy_init: bool = False,
    ltrb: bool = False,
    masks: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    pixelwise_masks: bool = False,
    polygon_masks: bool = False,
    preprocessed_annotations: str | PathLike[str] = '',
    random_shuffle: bool = False,
    ratio: bool = False,
    save_preprocessed_annotations: bool = False,
    save_preprocessed_annotations_dir: str | PathLike[str] = '',
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    size_threshold: float = 0.1,
    skip_empty: bool = False,
    stick_to_shard: bool = False,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> tuple[DataNode, ...]:
    """Deprecated: use `readers.coco`.

    Read images with boxes, labels and masks of COCO.

    Args:
        annotations_file: JSON of the annotations.
        avoid_class_remapping: Labels are the ids of categories; otherwise their places in the file, from 1.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        file_root: Folder of the images.
        image_ids: Deliver the id of the image.
        images: Names of the images to read, in this order; otherwise all in the order of their ids.
        include_iscrowd: Annotations of crowds count.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        ltrb: Boxes are left, top, right, bottom; otherwise left, top, width, height.
        masks: The same, counted by coordinates instead of vertices; deprecated.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        pixelwise_masks: Deliver masks drawn of polygons and runs.
        polygon_masks: Deliver the polygons of the masks.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        preprocessed_annotations: Folder of saved annotations, in place of JSON.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        ratio: Coordinates are parts of the image's size; otherwise pixels.
        read_ahead: Accepted; whole files are read at once in any case.
        save_preprocessed_annotations: Save the annotations, to be read faster.
        save_preprocessed_annotations_dir: In this folder.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        size_threshold: Boxes whose width or height in pixels is smaller are left out.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        skip_empty: Leave out images without annotations.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        The bytes of the image, ``(n,)`` uint8; boxes, ``(k, 4)`` float32; labels, ``(k,)`` int32. With polygons
        ``(p, 3)`` int32, each the number of its box, its first vertex and the one after its last, and the vertices,
        ``(v, 2)`` float32. Or masks, ``(H, W, 1)`` int32: the largest label whose mask covers the pixel, or 0. The
        id, ``(1,)`` int32.

    Raises:
        RuntimeError: annotations cannot be read, there are no images, or arguments exclude each other. While
            running: an image cannot be read, or a mask not be drawn. ValueError: a box has not four numbers.
    """
    ...

def coin_flip(
    shape_like: _T | abc.Sequence[float] | float | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    probability: float | DataNode | TensorList = 0.5,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Deprecated: use `random.coin_flip`.

    Draw 1 with a probability, otherwise 0.

    Args:
        shape_like: Take the shape from this input.
        dtype: bool, uint8 or int32; int32 when None.
        probability: Of 1; always 0 below 0, always 1 above 1.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape: Of each sample; 0D by default.

    Raises:
        RuntimeError: another dtype, or both ``shape`` and ``shape_like``.
    """
    ...

def color_space_conversion(
    image: _T,
    /,
    *,
    image_type: DALIImageType,
    output_type: DALIImageType,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Convert between RGB, BGR, YCbCr (BT.601, studio range) and GRAY.

    Args:
        image: ``(..., H, W, C)`` uint8.
        image_type: Color space of the input.
        output_type: Of the output.

    Raises:
        RuntimeError: the image has not 3 channels, or 1 if it is gray.
    """
    ...

def color_twist(
    image: _T,
    /,
    *,
    brightness: float | DataNode | TensorList = 1.0,
    contrast: float | DataNode | TensorList = 1.0,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    hue: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    saturation: float | DataNode | TensorList = 1.0,
    bytes_per_sample_hint: Any = ...,
    image_type: DALIImageType = DALIImageType.RGB,
    preserve: Any = ...,
) -> _T:
    """Turn hue and scale saturation, then contrast and brightness, of RGB images in one step.

    Args:
        image: ``(..., H, W, 3)``.
        brightness: Multiplier of the result.
        contrast: Multiplier of the distance from 128 (integers) or 0.5 (floats).
        dtype: Of the output; the input's own when None.
        hue: Degrees; see `hsv`.
        image_type: Accepted; images are RGB.
        saturation: Multiplier.
    """
    ...

def constant(
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    fdata: abc.Sequence[float] | float | None = None,
    idata: abc.Sequence[int] | int | None = None,
    layout: str = '',
    name: str | None = None,
    shape: abc.Sequence[int] | int | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Return the same data for every sample.

    Args:
        dtype: Of the output, rounded and saturated; float32 for ``fdata``, int32 for ``idata`` when None.
        fdata: Floating values in row-major order, or one for all elements.
        idata: Integer values, likewise.
        layout: Of the output.
        shape: Of a sample; 1D when None.

    Raises:
        RuntimeError: not exactly one of ``fdata`` and ``idata`` is given, or the number of values or the layout
            does not fit the shape.
    """
    ...

def contrast(
    image: _T,
    /,
    *,
    contrast: float | DataNode | TensorList = 1.0,
    contrast_center: float | DataNode | TensorList | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Scale the contrast of images around a centre: ``out = center + contrast * (in - center)``.

    Args:
        image: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        contrast: Multiplier; 1 keeps the image.
        contrast_center: Intensity that stays; half the input type's range when None.
        dtype: Of the output; the input's own when None.
    """
    ...

def coord_flip(
    points: _T,
    /,
    *,
    center_x: float | DataNode | TensorList = 0.5,
    center_y: float | DataNode | TensorList = 0.5,
    center_z: float | DataNode | TensorList = 0.5,
    device: Literal['cpu', 'gpu'] | None = None,
    flip_x: int | DataNode | TensorList = 1,
    flip_y: int | DataNode | TensorList = 0,
    flip_z: int | DataNode | TensorList = 0,
    layout: str = '',
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Mirror points: ``out = 2 center - in`` on the axes that are flipped.

    Args:
        points: ``(N, D)`` float32 with D up to 3.
        center_x: Position that stays.
        center_y: Position that stays.
        center_z: Position that stays.
        flip_x: Mirror x.
        flip_y: Mirror y.
        flip_z: Mirror z.
        layout: Order of the coordinates; ``"x"``, ``"xy"`` or ``"xyz"`` when not given.
    """
    ...

def coord_transform(
    points: _T | abc.Sequence[float] | float,
    /,
    *,
    M: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    MT: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    T: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Transform points: ``out = M in + T`` on the last axis.

    Args:
        points: ``(..., N, D)``: uint8, int16, uint16, int32 or float32. Without frames beside arguments with
            frames: the same points for each.
        M: ``(rows, D)``, row by row: the output has ``rows`` coordinates. One number scales all.
        MT: ``(rows, D + 1)``: M with T as its last column.
        T: One number a coordinate of the output, or one for all.
        dtype: Of the output: float32 or the input's own, rounded and saturated.

    Raises:
        RuntimeError: sizes that do not fit, or ``MT`` beside the others.
    """
    ...

def copy(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Copy.

    Args:
        data: Any shape and type.
    """
    ...

def crop(
    data: _T,
    /,
    *,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    fill_values: abc.Sequence[float] | float = [0.0],
    name: str | None = None,
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill', 'clamp', 'edge', 'wrap', 'reflect', 'reflect_1001', 'reflect1001', 'reflect_101', 'reflect101'] = 'error',
    rounding: Literal['round', 'truncate'] = 'round',
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Cut a window out of images, frames or volumes.

    Args:
        data: Images, frames or volumes in any layout.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output, converted by truncation and saturated; the input's own when None.
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel, in the output's type
            (converted as C does: truncated, and wrapped).
        out_of_bounds_policy: For windows that reach outside: ``"error"``, ``"pad"``, ``"trim_to_shape"``, or
            how the image goes on: ``"clamp"``, ``"wrap"``, ``"reflect_101"``, ``"reflect_1001"``.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.

    Raises:
        RuntimeError: the window reaches outside, or contradictory arguments.
    """
    ...

def crop_mirror_normalize(
    data: _T,
    /,
    *,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    fill_values: abc.Sequence[float] | float = [0.0],
    mean: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
    mirror: int | DataNode | TensorList = 0,
    name: str | None = None,
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill'] = 'error',
    output_layout: str = 'CHW',
    pad_output: bool = False,
    rounding: Literal['round', 'truncate'] = 'round',
    scale: float = 1.0,
    shift: float = 0.0,
    std: abc.Sequence[float] | float | DataNode | TensorList = [1.0],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Crop, mirror, normalize and transpose.

    ``out = (in - mean) / std * scale + shift``; what lies outside the image is ``fill_values``, not normalized.

    Args:
        data: Images, frames or volumes in any layout.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output: float32, float16, uint8 or int8 (rounded, saturated).
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel of the output.
        mean: One value, or one a channel.
        mirror: Reverse the rows when not 0.
        out_of_bounds_policy: For windows that reach outside: ``"error"``, ``"pad"`` or ``"trim_to_shape"``.
        output_layout: Order of the output's axes: a permutation of the input's; the input's own when empty.
        pad_output: Add channels up to a power of two, of ``fill_values`` or, unless the policy is ``"pad"``, of
            0.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        scale: Multiplies the normalized value.
        shift: Is added to it.
        std: One value, or one a channel. 0 gives infinities, and NaN where the value is the mean.

    Raises:
        RuntimeError: the window reaches outside, an unsupported dtype, an output layout that is no permutation,
            or a number of values that is neither one nor the number of channels.
    """
    ...

def debayer(
    image: _T,
    /,
    *,
    blue_position: abc.Sequence[int] | int | DataNode | TensorList,
    algorithm: Literal['bilinear_ocv', 'edgeaware_ocv', 'vng_ocv', 'gray_ocv', 'default_npp'] | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Fill in the colors of a Bayer mosaic: from one channel to three.

    As in DALI, the CPU's algorithms (those of OpenCV) put the color found at ``blue_position`` into the *first*
    channel and that of the opposite corner of the 2x2 cell into the third; ``default_npp`` puts it into the third.

    Args:
        image: ``(H, W)``, ``(H, W, 1)`` or sequences of these, uint8 or uint16; height and width are even.
        algorithm: ``bilinear_ocv`` (means of neighbours; the default on the CPU), ``edgeaware_ocv`` (green
            along the smaller gradient), ``vng_ocv`` (variable number of gradients, Chang, Cheung and Pang 1999;
            uint8 only), ``gray_ocv`` (one channel, luma of bilinear), or, on accelerators only, ``default_npp``
            (the default there; means of neighbours).
        blue_position: Row and column, 0 or 1, of the blue pixel in each 2x2 cell: ``(0, 0)`` is BGGR, ``(0,
            1)`` GBRG, ``(1, 0)`` GRBG, ``(1, 1)`` RGGB. One number stands for both.

    Returns:
        ``(..., H, W, 3)``, or ``(..., H, W, 1)`` for ``gray_ocv``, of the input's type.

    Raises:
        RuntimeError: another type, an odd extent, several channels, no pixels, a position outside of the cell, or an
            algorithm that is unknown or not available.
    """
    ...

@overload
def dl_tensor_python_function(
    *inputs: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    function: Any,
    batch_processing: bool = True,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    num_outputs: Literal[1] = 1,
    output_layouts: Any = None,
    synchronize_stream: bool = True,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Call a function on DLPack capsules.

    Args:
        inputs: What the function gets, one argument an input: lists of capsules.
        batch_processing: With False it is called once a sample.
        function: Returns capsules or objects with ``__dlpack__``.
        num_outputs: 0 for a function that is called for its effect.
        output_layouts: One for all, or one an output.
        synchronize_stream: On an accelerator, wait for its stream before the call.

    Raises:
        RuntimeError: the function raises, or returns something else.
    """
    ...

@overload
def dl_tensor_python_function(
    *inputs: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    function: Any,
    batch_processing: bool = True,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    num_outputs: int = ...,
    output_layouts: Any = None,
    synchronize_stream: bool = True,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, ...]:
    """Call a function on DLPack capsules.

    Args:
        inputs: What the function gets, one argument an input: lists of capsules.
        batch_processing: With False it is called once a sample.
        function: Returns capsules or objects with ``__dlpack__``.
        num_outputs: 0 for a function that is called for its effect.
        output_layouts: One for all, or one an output.
        synchronize_stream: On an accelerator, wait for its stream before the call.

    Raises:
        RuntimeError: the function raises, or returns something else.
    """
    ...

def dump_image(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    input_layout: str = 'HWC',
    name: str | None = None,
    suffix: str = '',
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Write each image of the batch to a file in the working directory, and pass the batch on unchanged.

    The file of sample ``i`` is ``{i}-{suffix}-0.ppm``, a portable pixmap in text form (P3; P2 for one channel); the
    next batch overwrites it.

    Args:
        data: ``(H, W, 3)`` or ``(H, W, 1)`` uint8.
        input_layout: Only ``"HWC"``.
        suffix: Middle part of the file names.

    Raises:
        RuntimeError: another type, shape or layout, an image without pixels, or a file that cannot be written.
    """
    ...

def element_extract(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    element_map: abc.Sequence[int] | int,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> Any:
    """Take frames out of a sequence, each as an output of its own.

    Args:
        data: ``(F, ...)`` of at least two axes.
        element_map: Numbers of the frames.

    Raises:
        RuntimeError: no sequence, or a frame that it does not have.
    """
    ...

def equalize(
    image: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Spread the values of images over the full range: histogram equalization, each channel by itself.

    ``out = round(255 * (below_or_at(v) - n0) / (n - n0))``, where ``below_or_at`` counts the pixels of a channel
    with values up to ``v``, ``n0`` the pixels of its smallest value, ``n`` all. A channel of one value stays as it
    is. The frames of a sequence are equalized one by one.

    Args:
        image: uint8, at most 128 channels; layout HW, HWC, CHW or the same after F.

    Raises:
        RuntimeError: another type, an image without pixels, no channels or too many.
    """
    ...

def erase(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    anchor: abc.Sequence[float] | float | DataNode | TensorList = [],
    axes: abc.Sequence[int] | int = [1, 0],
    axis_names: str = ...,
    centered_anchor: bool = False,
    device: Literal['cpu', 'gpu'] | None = None,
    fill_value: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
    name: str | None = None,
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
    shape: abc.Sequence[float] | float | DataNode | TensorList = [],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Fill rectangular regions.

    On each axis, elements ``int(anchor)`` to ``int(anchor + shape)``, exclusive; regions are clipped to the data.

    Args:
        data: Any shape and type.
        anchor: Where the regions start: one value an axis and region, region after region; 0 when empty.
        axes: That anchor and shape tell about; the regions span the other axes. All but the channels by
            default.
        axis_names: The same by names of the layout; it has precedence.
        centered_anchor: The anchors are the middles of the regions.
        fill_value: One value, or one a channel (converted as C does: truncated, and wrapped).
        normalized: Anchor and shape are relative to the extents of the data.
        normalized_anchor: The anchor is.
        normalized_shape: The shape is.
        shape: Of the regions, in the order of ``anchor``.

    Raises:
        RuntimeError: no layout to find ``axis_names`` in, axes that do not exist, or a wrong number of values.
    """
    ...

def expand_dims(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    axes: abc.Sequence[int] | int,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    new_axis_names: str = '',
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Insert axes of extent 1.

    Args:
        data: Any shape and type.
        axes: Where they lie in the output; not negative.
        new_axis_names: One character each, in the order of ``axes``; without them the output has no layout.

    Raises:
        RuntimeError: axes that are negative, repeated or beyond the end; names for data without a layout.
    """
    ...

@overload
def external_source(
    source: Any = None,
    num_outputs: None = None,
    *,
    background: bool = False,
    batch: bool | None = True,
    batch_info: bool | None = None,
    blocking: bool | None = None,
    cycle: Literal[None, False, 'no', True, 'quiet', 'raise'] = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: Any = None,
    layout: Any = None,
    name: str | None = None,
    ndim: Any = None,
    no_copy: bool | None = None,
    parallel: bool | None = None,
    prefetch_queue_depth: int | None = None,
    repeat_last: bool = False,
    bytes_per_sample_hint: Any = ...,
    cuda_stream: Any = None,
    preserve: Any = ...,
    use_copy_kernel: bool | None = None,
) -> DataNode:
    """Take batches or samples from Python code.

    A batch is a list of samples, an array whose first dimension is the batch, or a `TensorList`; it may have
    fewer samples than the pipeline's ``batch_size``. Samples are NumPy arrays, torch tensors, or objects with
    DLPack or the array interface; those of one batch have one type and number of axes, which does not change
    from batch to batch. StopIteration ends the epoch; a partly filled batch of samples is dropped.

    Args:
        source: A callable that returns a batch (a sample with ``batch=False``) and takes nothing or one
            argument: the number of the batch in the epoch, a `BatchInfo` or a `SampleInfo`. Or an iterable,
            a generator function or a class whose instances iterate. None to use `Pipeline.feed_input`.
        num_outputs: The source returns that many outputs and the result is a list of nodes; None for one node.
        cycle: At the end of an iterable: False, None or ``"no"`` end the epoch, for good; True or
            ``"quiet"`` start anew at once; ``"raise"`` ends the epoch and starts anew in the next one.
        name: Of the node, for `feed_input`; not with ``num_outputs``.
        device: Where the data go, ``"cpu"`` or ``"gpu"``.
        layout: Of a sample, one letter an axis; or one layout an output.
        dtype: What the elements must be; or one an output.
        ndim: How many axes a sample must have; or one number an output.
        cuda_stream: Accepted; data of the current stream are waited for.
        use_copy_kernel: Accepted, without effect.
        blocking: Without a source, wait for `feed_input` instead of failing.
        batch: Whether the source gives whole batches; None is True, or False with ``parallel``.
        repeat_last: Without a source, give the last batch again when no new one was fed.
        parallel: Call the source in worker processes; see `Pipeline`'s ``py_num_workers``.
        no_copy: Share the memory of what the source gives instead of taking a copy.
        prefetch_queue_depth: With ``parallel``, batches made ahead; 1 by default.
        bytes_per_sample_hint: Accepted with ``parallel``; memory grows as needed.
        batch_info: Give a `BatchInfo` to a source of batches instead of a number.
        background: Call the source in the pipeline's own scheduler thread, beside your loop, instead of inside `run` or
            `schedule_run`; not DALI's.
        seed: Accepted, without effect.
        preserve: Keep the source even if no output needs it.

    Raises:
        TypeError: a source that is none of these, or cannot be called or cycled like this.
        ValueError: arguments that do not go together.
        RuntimeError: ``name`` with ``num_outputs``.
    """
    ...

@overload
def external_source(
    source: Any = None,
    num_outputs: int = ...,
    *,
    background: bool = False,
    batch: bool | None = True,
    batch_info: bool | None = None,
    blocking: bool | None = None,
    cycle: Literal[None, False, 'no', True, 'quiet', 'raise'] = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: Any = None,
    layout: Any = None,
    name: str | None = None,
    ndim: Any = None,
    no_copy: bool | None = None,
    parallel: bool | None = None,
    prefetch_queue_depth: int | None = None,
    repeat_last: bool = False,
    bytes_per_sample_hint: Any = ...,
    cuda_stream: Any = None,
    preserve: Any = ...,
    use_copy_kernel: bool | None = None,
) -> tuple[DataNode, ...]:
    """Take batches or samples from Python code.

    A batch is a list of samples, an array whose first dimension is the batch, or a `TensorList`; it may have
    fewer samples than the pipeline's ``batch_size``. Samples are NumPy arrays, torch tensors, or objects with
    DLPack or the array interface; those of one batch have one type and number of axes, which does not change
    from batch to batch. StopIteration ends the epoch; a partly filled batch of samples is dropped.

    Args:
        source: A callable that returns a batch (a sample with ``batch=False``) and takes nothing or one
            argument: the number of the batch in the epoch, a `BatchInfo` or a `SampleInfo`. Or an iterable,
            a generator function or a class whose instances iterate. None to use `Pipeline.feed_input`.
        num_outputs: The source returns that many outputs and the result is a list of nodes; None for one node.
        cycle: At the end of an iterable: False, None or ``"no"`` end the epoch, for good; True or
            ``"quiet"`` start anew at once; ``"raise"`` ends the epoch and starts anew in the next one.
        name: Of the node, for `feed_input`; not with ``num_outputs``.
        device: Where the data go, ``"cpu"`` or ``"gpu"``.
        layout: Of a sample, one letter an axis; or one layout an output.
        dtype: What the elements must be; or one an output.
        ndim: How many axes a sample must have; or one number an output.
        cuda_stream: Accepted; data of the current stream are waited for.
        use_copy_kernel: Accepted, without effect.
        blocking: Without a source, wait for `feed_input` instead of failing.
        batch: Whether the source gives whole batches; None is True, or False with ``parallel``.
        repeat_last: Without a source, give the last batch again when no new one was fed.
        parallel: Call the source in worker processes; see `Pipeline`'s ``py_num_workers``.
        no_copy: Share the memory of what the source gives instead of taking a copy.
        prefetch_queue_depth: With ``parallel``, batches made ahead; 1 by default.
        bytes_per_sample_hint: Accepted with ``parallel``; memory grows as needed.
        batch_info: Give a `BatchInfo` to a source of batches instead of a number.
        background: Call the source in the pipeline's own scheduler thread, beside your loop, instead of inside `run` or
            `schedule_run`; not DALI's.
        seed: Accepted, without effect.
        preserve: Keep the source even if no output needs it.

    Raises:
        TypeError: a source that is none of these, or cannot be called or cycled like this.
        ValueError: arguments that do not go together.
        RuntimeError: ``name`` with ``num_outputs``.
    """
    ...

def fast_resize_crop_mirror(
    data: _T,
    /,
    *,
    antialias: bool = False,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    mirror: int | DataNode | TensorList = 0,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
    name: str | None = None,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rounding: Literal['round', 'truncate'] = 'round',
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    bytes_per_sample_hint: Any = ...,
    minibatch_size: int = 32,
    preserve: Any = ...,
    temp_buffer_hint: int = 0,
) -> _T:
    """Deprecated: use `resize_crop_mirror`.

    Resize, crop and mirror in one pass, without a filter for shrinking unless asked for.

    Args:
        data: Images, frames or volumes.
        antialias: Stretch the filter where the image shrinks.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mirror: Bits: 1 mirrors rows (horizontally), 2 vertically, 4 in depth.
        mode: How sizes and the aspect ratio meet: ``"default"``, ``"stretch"``, ``"not_larger"``,
            ``"not_smaller"``.
        resize_longer: Size of the longer side; the aspect ratio stays.
        resize_shorter: Size of the shorter side; the aspect ratio stays.
        resize_x: Width; a negative one mirrors. Others follow from ``mode``.
        resize_y: Height.
        resize_z: Depth.
        roi_end: Where the region to show ends, in the order of the layout.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
    ...

def file_reader(
    *,
    cache_dir: str | PathLike[str] | None = None,
    cache_size: int = 10737418240,
    case_sensitive_filter: bool = False,
    device: Literal['cpu'] | None = None,
    dir_filters: abc.Sequence[str] | str | None = None,
    dont_use_mmap: bool = False,
    file_filters: abc.Sequence[str] | str = ...,
    file_list: str | PathLike[str] | None = None,
    file_root: str | PathLike[str] | None = None,
    files: abc.Sequence[str | PathLike[str]] | str | PathLike[str] | None = None,
    io_concurrency: int = 64,
    io_retries: int = 5,
    io_timeout: float = 30.0,
    labels: abc.Sequence[int] | int | None = None,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    random_shuffle: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    stick_to_shard: bool = False,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> tuple[DataNode, DataNode]:
    """Deprecated: use `readers.file`.

    Read files and labels.

    One of three ways says which: ``file_root`` alone (each direct subfolder is a class, numbered in the order
    of its name's bytes, also when nothing in it matches); ``file_list``, a text file with lines ``path label``;
    or ``files``, with ``labels`` or numbered from 0.

    Args:
        cache_dir: Of URLs: folder where what was read is kept; several processes may share it.
        cache_size: Bytes that are kept there at most; what was not used for longest goes first.
        case_sensitive_filter: Whether the patterns tell upper from lower case.
        dir_filters: Shell patterns of folder names to take, likewise; others get no number.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        file_filters: Shell patterns of file names to take, for ``file_root`` alone.
        file_list: A text file of lines ``path label``, the label a number from 0.
        file_root: Folder of class folders, also as an URL, or what relative paths start from; with
            ``file_list`` alone they start from the folder of the list.
        files: Paths, or URLs.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        io_concurrency: Of URLs: most requests at a time.
        io_retries: Of URLs: how often a request that failed is repeated.
        io_timeout: Of URLs: seconds after which a request has failed, where the store's package can be
            interrupted.
        labels: One a file.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        The bytes of the file, ``(n,)`` uint8, and the label, ``(1,)`` int32.

    Raises:
        RuntimeError: nothing says which files, more than one thing does, there are none, or a folder or list
            cannot be read. While running: a file cannot be read, or is empty (unless ``dont_use_mmap``).
    """
    ...

def filter(
    data: _T,
    window: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    fill_value: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1],
    border: Literal['reflect_101', 'reflect_1001', 'clamp', 'wrap', 'constant', '101', 'reflect101', '1001', 'reflect1001', 'reflect', 'edge', 'fill', 'pad'] = 'reflect_101',
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    mode: Literal['same', 'valid'] = 'same',
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Correlate images with a window (which is not flipped).

    Args:
        data: Images or frames.
        window: ``(h, w)`` float32.
        fill_value: What lies outside, for the constant border; 0 when left out.
        anchor: Element of the window that lies on the pixel, y and x; -1 for the middle.
        border: ``reflect_101`` (or ``101``), ``reflect_1001`` (``1001``, ``reflect``), ``clamp`` (``edge``),
            ``wrap`` or ``constant`` (``fill``, ``pad``).
        dtype: The input's own, or float32.
        mode: ``"same"`` keeps the shape; ``"valid"`` computes only pixels whose window lies inside.

    Raises:
        RuntimeError: an unknown mode, an anchor outside of the window, or no pixel whose window lies inside.
    """
    ...

def flip(
    data: _T,
    /,
    *,
    depthwise: int | DataNode | TensorList = 0,
    device: Literal['cpu', 'gpu'] | None = None,
    horizontal: int | DataNode | TensorList = 1,
    name: str | None = None,
    vertical: int | DataNode | TensorList = 0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Reverse axes of images, frames or volumes.

    Args:
        data: In any layout.
        depthwise: Reverse D when not 0; no effect where there is none.
        horizontal: Reverse W.
        vertical: Reverse H.
    """
    ...

def full(
    fill_value: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    layout: str | None = None,
    name: str | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return data of a shape, filled with an input.

    Args:
        fill_value: A number, or what broadcasts to the shape; gives the type.
        layout: Of the output.
        shape: Of the output; 0D when None, and then the first element is taken.

    Raises:
        RuntimeError: the layout does not fit the shape, or the input does not broadcast to it.
    """
    ...

def full_like(
    data_like: _T | abc.Sequence[float] | float,
    fill_value: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return data of the shape and type of an input, filled with another.

    Args:
        data_like: Gives shape, type and layout.
        fill_value: A number, or what broadcasts to the shape; it is converted as by `cast`.
    """
    ...

def gaussian_blur(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    sigma: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
    window_size: abc.Sequence[int] | int | DataNode | TensorList = [0],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Blur with a Gaussian window along every axis but frames and channels.

    One of the two arguments follows from the other where it is 0:
    ``window = 2 * ceil(3 * sigma) + 1``, ``sigma = 0.3 * ((window - 1) / 2 - 1) + 0.8``. Borders are reflected
    without repeating the edge.

    Args:
        data: Any layout; without one, every axis is blurred.
        dtype: The input's own, or float32.
        sigma: Standard deviation in pixels, one for all axes or one an axis in the order of the layout.
        window_size: Odd number of pixels, likewise.

    Raises:
        RuntimeError: both are 0, a window is even, or wider than 131072.
    """
    ...

def get_property(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    key: Literal['source_info', 'layout'],
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return what is known about each sample, as text: 1D uint8.

    Args:
        data: Any.
        key: ``"source_info"``: where the sample comes from (the path of its file as the reader knows it, ""
            where nothing is known); ``"layout"``: names of the axes.

    Raises:
        RuntimeError: an unknown key.
    """
    ...

def grid_mask(
    image: _T,
    /,
    *,
    angle: float | DataNode | TensorList = 0.0,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    ratio: float | DataNode | TensorList = 0.5,
    shift_x: float | DataNode | TensorList = 0.0,
    shift_y: float | DataNode | TensorList = 0.0,
    tile: int | DataNode | TensorList = 100,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Set the squares of a grid to zero.

    Args:
        image: ``(..., H, W, C)`` or ``(H, W)``: uint8, int16, int32 or float32.
        angle: By which the grid is turned, in radians.
        ratio: Side of the squares, in units of a tile.
        shift_x: Of the grid, in pixels.
        shift_y: The same downwards.
        tile: Side of a tile, in pixels.

    Raises:
        RuntimeError: ``tile`` is not positive.
    """
    ...

def hsv(
    image: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    hue: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    saturation: float | DataNode | TensorList = 1.0,
    value: float | DataNode | TensorList = 1.0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Turn the hue of RGB images, and scale their saturation and value.

    Hue is a rotation of the chroma plane of YIQ, not an HSV conversion: one 3x3 matrix a pixel.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output: uint8 unless given.
        hue: Degrees.
        saturation: Multiplier; 0 gives gray.
        value: Multiplier of all channels.
    """
    ...

def hue(
    image: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    hue: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    image_type: DALIImageType = DALIImageType.RGB,
    preserve: Any = ...,
) -> _T:
    """Turn the hue of RGB images, as `hsv` does.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output; the input's own when None.
        hue: Degrees; 0 keeps the image.
        image_type: Accepted; images are RGB.
    """
    ...

def image_decoder(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    device: Literal['cpu', 'mixed'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    hw_decoder_load: float = 0.65,
    name: str | None = None,
    output_type: DALIImageType = DALIImageType.RGB,
    use_fast_idct: bool = False,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = '',
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.image`.

    Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes.

    Args:
        data: Encoded bytes, uint8 of any shape; ``(n,)`` in general.
        adjust_orientation: Turn the image as its EXIF block says.
        affine: Accepted: whether DALI pins the threads of the GPU decoder to cores.
        cache_batch_copy: Accepted: whether DALI copies cached images of a batch at once.
        cache_debug: Accepted: whether DALI prints what its cache does.
        cache_size: Accepted: megabytes of DALI's cache.
        cache_threshold: Accepted: bytes from which on DALI caches an image.
        cache_type: Accepted: how DALI's cache fills, ``"threshold"`` or ``"largest"``.
        device_memory_padding: Accepted: bytes that DALI reserves on the GPU for each thread.
        device_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        dtype: Of the output: uint8, int8, uint16, int16, uint32, int32 or float32; values are rescaled from the
            full scale of the file to that of the type.
        host_memory_padding: Accepted: bytes that DALI reserves of pinned memory for each thread.
        host_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        hw_decoder_load: Share of the images that `decoders.image` on ``"mixed"`` gives to nvImageCodec, where
            that is installed; otherwise accepted.
        hybrid_huffman_threshold: Accepted: pixels from which on DALI decodes Huffman codes on the GPU.
        jpeg_fancy_upsampling: Accepted: colors are always upsampled smoothly, as DALI's CPU decoder does.
        output_type: Color space; ``ANY_DATA`` keeps the channels of the file.
        preallocate_height_hint: Accepted: height of images for which DALI reserves hardware decoders.
        preallocate_width_hint: Accepted: their width.
        use_fast_idct: Decode JPEGs to RGB bytes by libjpeg's faster transform, some levels off; not those that
            are turned. Needs simplejpeg (the extra ``image``), else the exact one is used.

    Returns:
        ``(H, W, C)``.

    Raises:
        DecodeError: the data is empty, damaged, truncated, too large or of an unknown format.
        RuntimeError: the dtype is not supported.
    """
    ...

def image_decoder_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: Literal['cpu', 'mixed'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    hw_decoder_load: float = 0.65,
    name: str | None = None,
    output_type: DALIImageType = DALIImageType.RGB,
    rounding: Literal['round', 'truncate'] = 'round',
    use_fast_idct: bool = False,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.image_crop`.

    Decode images and cut a window out of each.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Turn the image as its EXIF block says.
        affine: Accepted: whether DALI pins the threads of the GPU decoder to cores.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        device_memory_padding: Accepted: bytes that DALI reserves on the GPU for each thread.
        device_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        dtype: Of the output: uint8, int8, uint16, int16, uint32, int32 or float32; values are rescaled from the
            full scale of the file to that of the type.
        host_memory_padding: Accepted: bytes that DALI reserves of pinned memory for each thread.
        host_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        hw_decoder_load: Share of the images that `decoders.image` on ``"mixed"`` gives to nvImageCodec, where
            that is installed; otherwise accepted.
        hybrid_huffman_threshold: Accepted: pixels from which on DALI decodes Huffman codes on the GPU.
        jpeg_fancy_upsampling: Accepted: colors are always upsampled smoothly, as DALI's CPU decoder does.
        output_type: Color space; ``ANY_DATA`` keeps the channels of the file.
        preallocate_height_hint: Accepted: height of images for which DALI reserves hardware decoders.
        preallocate_width_hint: Accepted: their width.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        use_fast_idct: Decode JPEGs to RGB bytes by libjpeg's faster transform, some levels off; not those that
            are turned. Needs simplejpeg (the extra ``image``), else the exact one is used.

    Returns:
        ``(crop_h, crop_w, C)``; an extent that is not positive is the image's.

    Raises:
        RuntimeError: contradictory sizes, or a window that reaches outside; otherwise as `image`.
    """
    ...

def image_decoder_random_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    device: Literal['cpu', 'mixed'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    hw_decoder_load: float = 0.65,
    name: str | None = None,
    num_attempts: int = 10,
    output_type: DALIImageType = DALIImageType.RGB,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    seed: int = -1,
    use_fast_idct: bool = False,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.image_random_crop`.

    Decode images and cut a random window out of each.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Turn the image as its EXIF block says.
        affine: Accepted: whether DALI pins the threads of the GPU decoder to cores.
        device_memory_padding: Accepted: bytes that DALI reserves on the GPU for each thread.
        device_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        dtype: Of the output: uint8, int8, uint16, int16, uint32, int32 or float32; values are rescaled from the
            full scale of the file to that of the type.
        host_memory_padding: Accepted: bytes that DALI reserves of pinned memory for each thread.
        host_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        hw_decoder_load: Share of the images that `decoders.image` on ``"mixed"`` gives to nvImageCodec, where
            that is installed; otherwise accepted.
        hybrid_huffman_threshold: Accepted: pixels from which on DALI decodes Huffman codes on the GPU.
        jpeg_fancy_upsampling: Accepted: colors are always upsampled smoothly, as DALI's CPU decoder does.
        num_attempts: Windows to try before the largest allowed one is taken.
        output_type: Color space; ``ANY_DATA`` keeps the channels of the file.
        preallocate_height_hint: Accepted: height of images for which DALI reserves hardware decoders.
        preallocate_width_hint: Accepted: their width.
        random_area: Least and greatest share of the image's area.
        random_aspect_ratio: Least and greatest ratio of width to height.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        use_fast_idct: Decode JPEGs to RGB bytes by libjpeg's faster transform, some levels off; not those that
            are turned. Needs simplejpeg (the extra ``image``), else the exact one is used.

    Returns:
        ``(h, w, C)``, different for each sample.

    Raises:
        RuntimeError: an empty range; otherwise as `image`.
    """
    ...

def image_decoder_slice(
    data: _T,
    anchor: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    extents: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    adjust_orientation: bool = True,
    axes: abc.Sequence[int] | int | DataNode | TensorList = [1, 0],
    axis_names: str = ...,
    device: Literal['cpu', 'mixed'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    hw_decoder_load: float = 0.65,
    name: str | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    start: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    use_fast_idct: bool = False,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `decoders.image_slice`.

    Decode images and cut a slice out of each.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        anchor: Where the slice starts, one value an axis: int32 or int64 in pixels, or float32. Together with
            ``extents``, and without ``start``, ``end`` and the like.
        extents: Of the slice, of the same type.
        adjust_orientation: Turn the image as its EXIF block says.
        affine: Accepted: whether DALI pins the threads of the GPU decoder to cores.
        axes: To cut. The other axes stay whole.
        axis_names: The same by names of the layout; the default stands for ``axes=[1, 0]`` of an image. Data
            without a layout are taken for HW, HWC or DHWC.
        device_memory_padding: Accepted: bytes that DALI reserves on the GPU for each thread.
        device_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        dtype: Of the output: uint8, int8, uint16, int16, uint32, int32 or float32; values are rescaled from the
            full scale of the file to that of the type.
        end: In elements, exclusive.
        host_memory_padding: Accepted: bytes that DALI reserves of pinned memory for each thread.
        host_memory_padding_jpeg2k: Accepted: the same, for JPEG 2000.
        hw_decoder_load: Share of the images that `decoders.image` on ``"mixed"`` gives to nvImageCodec, where
            that is installed; otherwise accepted.
        hybrid_huffman_threshold: Accepted: pixels from which on DALI decodes Huffman codes on the GPU.
        jpeg_fancy_upsampling: Accepted: colors are always upsampled smoothly, as DALI's CPU decoder does.
        normalized_anchor: A float ``anchor`` is relative to the extent of the axis.
        normalized_shape: A float ``extent`` is relative to the extent of the axis.
        output_type: Color space; ``ANY_DATA`` keeps the channels of the file.
        preallocate_height_hint: Accepted: height of images for which DALI reserves hardware decoders.
        preallocate_width_hint: Accepted: their width.
        rel_end: Relative to the extent of the axis.
        rel_shape: Likewise.
        rel_start: Likewise.
        shape: In elements.
        start: In elements; 0 when neither ``start`` nor ``rel_start`` is given.
        use_fast_idct: Decode JPEGs to RGB bytes by libjpeg's faster transform, some levels off; not those that
            are turned. Needs simplejpeg (the extra ``image``), else the exact one is used.

    Returns:
        ``(h, w, C)``.

    Raises:
        RuntimeError: nothing says where the slice lies, more than one thing does, it is empty or reaches outside
            of the image; otherwise as `image`.
    """
    ...

def jitter(
    image: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    fill_value: float = 0.0,
    mask: int | DataNode | TensorList = 1,
    nDegree: int = 2,
    name: str | None = None,
    seed: int = -1,
    bytes_per_sample_hint: Any = ...,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    preserve: Any = ...,
) -> _T:
    """Move each pixel by random whole numbers of pixels, from ``-(nDegree // 2)`` to ``nDegree // 2``.

    Args:
        image: ``(H, W, C)``.
        fill_value: Value of everything outside.
        interp_type: Accepted; the positions are whole pixels.
        mask: 0 leaves the image as it is.
        nDegree: Pixels between the greatest movements to both sides.
        seed: Of the random numbers; derived from the pipeline's seed by default.
    """
    ...

def jpeg_compression_distortion(
    image: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    quality: int | DataNode | TensorList = 50,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Give images the artefacts of JPEG: what comes back after encoding (4:2:0 chroma) and decoding.

    On the CPU the images are encoded and decoded by libjpeg-turbo; on an accelerator, and under `torch.compile`,
    the same arithmetic runs without the bytes in between: YCbCr, chroma halved both ways, cosine transform of 8x8
    blocks, rounding to multiples of the quantization tables of ITU-T T.81 annex K scaled by the quality, and back.

    Args:
        image: ``(H, W, 3)`` or ``(F, H, W, 3)`` uint8, RGB; the frames are distorted one by one.
        quality: From 1, the strongest distortion, to 100; what lies beyond is taken for the nearest of these.

    Raises:
        RuntimeError: another type or number of channels, or an image without pixels.
    """
    ...

def laplacian(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    normalized_kernel: bool = False,
    scale: abc.Sequence[float] | float | DataNode | TensorList = [1.0],
    smoothing_size: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    window_size: abc.Sequence[int] | int | DataNode | TensorList = [3],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Sum the second derivatives along every axis but frames and channels.

    The derivative along an axis is smoothed along the others.

    Args:
        data: Any layout; without one, every axis counts.
        dtype: The input's own, or float32.
        normalized_kernel: Scale each derivative by ``2 ** (n + 2 - s)``, s being the sum of its window sizes.
        scale: Multiplier of each derivative.
        smoothing_size: Odd size of the smoothing along each axis, up to 31; when None, each derivative is
            smoothed by its own ``window_size``.
        window_size: Odd size of each derivative, from 3 to 31.

    Raises:
        RuntimeError: a window that is even, too small or above 31, or ``scale`` together with ``normalized_kernel``.
    """
    ...

def lookup_table(
    data: _T,
    /,
    *,
    default_value: float = 0.0,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    keys: abc.Sequence[int] | int = [],
    name: str | None = None,
    values: abc.Sequence[float] | float = [],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Replace numbers by those that a table has for them.

    Args:
        data: Integers of any type and shape.
        default_value: For numbers that are no keys.
        dtype: Of the output; the values are rounded to it and saturate.
        keys: From 0 to 65535; the last one counts where one is repeated.
        values: One for each key.

    Raises:
        RuntimeError: keys out of range, another number of values.
    """
    ...

def mel_filter_bank(
    data: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    freq_high: float = 0.0,
    freq_low: float = 0.0,
    mel_formula: Literal['slaney', 'htk'] = 'slaney',
    name: str | None = None,
    nfilter: int = 128,
    normalize: bool = True,
    sample_rate: float = 44100.0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Sum spectra over triangles on the mel scale.

    Args:
        data: float32 spectra from 0 Hz to half the sample rate, along the axis ``f`` of the layout; without
            one, along the last but one, or the only axis.
        freq_high: Where the last triangle ends, in Hz; half the sample rate, if it is 0.
        freq_low: Where the first triangle begins.
        mel_formula: ``"slaney"``: linear up to 1 kHz, then logarithmic; ``"htk"``: ``1127 ln(1 + f / 700)``.
        nfilter: Number of triangles.
        normalize: Make the area of each triangle, in Hz, 1.
        sample_rate: Of the signal, in Hz.

    Returns:
        The axis has ``nfilter`` values.

    Raises:
        RuntimeError: a layout without ``f``, another type or formula, or frequencies in the wrong order.
    """
    ...

def mfcc(
    data: _T,
    /,
    *,
    axis: int = 0,
    dct_type: int = 2,
    device: Literal['cpu', 'gpu'] | None = None,
    lifter: float = 0.0,
    n_mfcc: int = 20,
    name: str | None = None,
    normalize: bool = False,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Take the first coefficients of the cosine transform: of decibels of mel spectra, these are MFCCs.

    Args:
        data: float32, two dimensions or more.
        axis: To transform.
        dct_type: From 1 to 4.
        lifter: Multiplies coefficient i by ``1 + lifter / 2 * sin(pi (i + 1) / lifter)``, if it is not 0.
        n_mfcc: Number of coefficients, at most as many as the axis has values.
        normalize: Make the transform orthonormal (not type 1); otherwise it is the plain sum of products.

    Raises:
        RuntimeError: an axis that does not exist, another type, a number that is not positive.
    """
    ...

def multi_paste(
    images: _T,
    *others: _T,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    in_anchors: Any | DataNode | TensorList | None = None,
    in_anchors_rel: Any | DataNode | TensorList | None = None,
    in_ids: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    name: str | None = None,
    out_anchors: Any | DataNode | TensorList | None = None,
    out_anchors_rel: Any | DataNode | TensorList | None = None,
    output_size: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    shapes: Any | DataNode | TensorList | None = None,
    shapes_rel: Any | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before.

    The regions come from the samples of the batch that ``in_ids`` names, or else, one region each, from the
    sample's own images in all inputs. There are ``(regions, 2)`` anchors and shapes a sample, y before x.

    Args:
        images: ``(..., H, W, C)``: uint8, int16, int32 or float32.
        others: More images.
        dtype: Of the output, rounded and saturated; the input's own when None.
        in_anchors: Upper left corner of each region in its image, in pixels; (0, 0) when not given.
        in_anchors_rel: The same in units of the image, rounded down.
        in_ids: Indices of samples in the batch, for one input.
        out_anchors: Upper left corner of each region on the canvas; (0, 0) when not given.
        out_anchors_rel: The same in units of the canvas, rounded down.
        output_size: Height and width of the canvas; that of the images when not given.
        shapes: Height and width of each region; up to the end of the image when not given.
        shapes_rel: The same in units of the image, rounded up.

    Raises:
        RuntimeError: a region reaches outside, or contradictory arguments.
    """
    ...

def mxnet_reader(
    *,
    path: abc.Sequence[str | PathLike[str]] | str | PathLike[str],
    cache_dir: str | PathLike[str] | None = None,
    cache_size: int = 10737418240,
    device: Literal['cpu'] | None = None,
    dont_use_mmap: bool = False,
    index_path: abc.Sequence[str | PathLike[str]] | str | PathLike[str] | None = None,
    io_concurrency: int = 64,
    io_retries: int = 5,
    io_timeout: float = 30.0,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    random_shuffle: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    stick_to_shard: bool = False,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> tuple[DataNode, DataNode]:
    """Deprecated: use `readers.mxnet`.

    Read images and labels of the RecordIO files of MXNet.

    Args:
        cache_dir: Of URLs: folder where what was read is kept; several processes may share it.
        cache_size: Bytes that are kept there at most; what was not used for longest goes first.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        index_path: Of their index files; without it the files are walked through when the pipeline is built. An
            index that does not exist is written.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        io_concurrency: Of URLs: most requests at a time.
        io_retries: Of URLs: how often a request that failed is repeated.
        io_timeout: Of URLs: seconds after which a request has failed, where the store's package can be
            interrupted.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        path: Of the files, or their URLs.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        The bytes of the image, ``(n,)`` uint8, and the labels, ``(k,)`` float32.

    Raises:
        RuntimeError: a file or index cannot be read. While running: a record is damaged.
    """
    ...

def nemo_asr_reader(
    *,
    manifest_filepaths: abc.Sequence[str | PathLike[str]] | str | PathLike[str],
    device: Literal['cpu'] | None = None,
    dont_use_mmap: bool = False,
    downmix: bool = True,
    dtype: DALIDataType | torch.dtype = ...,
    lazy_init: bool = False,
    max_duration: float = 0.0,
    min_duration: float = 0.0,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    quality: float = 50.0,
    random_shuffle: bool = False,
    read_idxs: bool = False,
    read_sample_rate: bool = True,
    read_text: bool = True,
    sample_rate: float = -1.0,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    stick_to_shard: bool = False,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> tuple[DataNode, ...]:
    """Deprecated: use `readers.nemo_asr`.

    Read recordings and their texts, as manifests of NeMo list them.

    A manifest has a JSON object a line, with ``audio_filepath``, and if needed ``offset`` and ``duration`` in seconds
    and ``text``. Lines without a path are left out, with a warning.

    Args:
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        downmix: Return the mean of the channels.
        dtype: float32 (full scale is 1), int16 or int32.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        manifest_filepaths: Of the manifests.
        max_duration: Leave out what is longer, in seconds; 0 for no limit.
        min_duration: Leave out what is shorter, in seconds.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        quality: Of resampling, from 0 to 100.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        read_idxs: Deliver the index of the recording among those of its manifest that are used.
        read_sample_rate: Deliver the sample rate of the file, also where the samples have another one.
        read_text: Deliver the text.
        sample_rate: In Hz; what has another rate is resampled, unless this is 0 or less.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        ``(samples,)``, or ``(samples, channels)`` without ``downmix``; the sample rate, a float32 scalar; the text,
        ``(n,)`` uint8 in UTF-8; the index, ``(1,)`` int64.

    Raises:
        RuntimeError: a manifest cannot be read, names no recording within the limits, or has a value of another type;
            an argument is wrong. While running: a recording cannot be read or decoded, or begins beyond its end.
    """
    ...

def nonsilent_region(
    data: _T,
    /,
    *,
    cutoff_db: float = -60.0,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    reference_power: float | None = None,
    window_length: int = 2048,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
    reset_interval: int = 8192,
) -> tuple[_T, _T]:
    """Find what is not silent: from the first to the last window whose power reaches a cutoff.

    The power of a window is the mean of the squares of its samples.

    Args:
        data: ``(samples,)``, integers or float32.
        cutoff_db: Least power, in decibels.
        reference_power: What the decibels refer to; the power of the loudest window, if not given.
        reset_interval: Accepted: how often DALI's sums of floats start anew; a multiple of ``window_length``,
            or -1.
        window_length: Samples of a window.

    Returns:
        Start and length, int32 scalars; 0 and 0 where all is silent.

    Raises:
        RuntimeError: more than one dimension, another type, a length or power that is not positive.
    """
    ...

def normal_distribution(
    shape_like: _T | abc.Sequence[float] | float | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    mean: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    stddev: float | DataNode | TensorList = 1.0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Deprecated: use `random.normal`.

    Draw numbers from the normal distribution.

    Args:
        shape_like: Take the shape from this input.
        dtype: Any integer type (rounded, saturated), float32 or float64; float32 when None.
        mean: Of the distribution.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape: Of each sample; 0D by default.
        stddev: Its standard deviation.

    Raises:
        RuntimeError: another dtype, or both ``shape`` and ``shape_like``.
    """
    ...

def normalize(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    batch: bool = False,
    ddof: int = 0,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    epsilon: float = 0.0,
    mean: Any | DataNode | TensorList | None = None,
    name: str | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: Any | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Subtract the mean, divide by the standard deviation.

    ``out = (in - mean) / sqrt(variance + epsilon) * scale + shift``; a zero divisor gives ``shift``.

    Args:
        data: Any shape.
        axes: Over which mean and deviation are taken. By default all; if one of them is given as an array,
            those in which that has the extent 1: ``(1, 1, 3)`` for a value a channel of ``HWC``.
        axis_names: The same, as letters of the layout.
        batch: Pool the samples of the batch.
        ddof: Subtracted from the number of values when the variance is computed.
        dtype: Of the output; integers are rounded and saturated.
        epsilon: Added to the variance, also to the square of a given ``stddev``.
        mean: Given instead of computed: a number, or an array of as many axes as the data, 1 in each of
            ``axes``.
        scale: Multiplies the result.
        shift: Is added to it.
        stddev: Given instead of computed.
    """
    ...

def numpy_reader(
    *,
    cache_dir: str | PathLike[str] | None = None,
    cache_size: int = 10737418240,
    device: Literal['cpu', 'gpu'] | None = None,
    dont_use_mmap: bool = False,
    file_filter: str = '*.npy',
    file_list: str | PathLike[str] | None = None,
    file_root: str | PathLike[str] | None = None,
    files: abc.Sequence[str | PathLike[str]] | str | PathLike[str] | None = None,
    fill_value: float = 0.0,
    io_concurrency: int = 64,
    io_retries: int = 5,
    io_timeout: float = 30.0,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill'] = 'error',
    pad_last_batch: bool = False,
    random_shuffle: bool = False,
    rel_roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_roi_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_axes: abc.Sequence[int] | int | None = None,
    roi_end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    roi_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    roi_start: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    stick_to_shard: bool = False,
    use_o_direct: bool = False,
    bytes_per_sample_hint: Any = ...,
    cache_header_information: bool = False,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    register_buffers: bool = True,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> DataNode:
    """Deprecated: use `readers.numpy`.

    Read arrays that `numpy.save` wrote, whole or a region of each.

    Args:
        cache_dir: Of URLs: folder where what was read is kept; several processes may share it.
        cache_header_information: Accepted; headers are kept in any case.
        cache_size: Bytes that are kept there at most; what was not used for longest goes first.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        file_filter: Shell pattern of the names of files to take, for ``file_root`` alone.
        file_list: A text file with a path a line.
        file_root: Folder of the files, also as an URL, or what relative paths start from.
        files: Paths, or URLs.
        fill_value: What is outside, for ``"pad"``.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        io_concurrency: Of URLs: most requests at a time.
        io_retries: Of URLs: how often a request that failed is repeated.
        io_timeout: Of URLs: seconds after which a request has failed, where the store's package can be
            interrupted.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_shards: Into how many shards the epoch is divided.
        out_of_bounds_policy: For regions that reach outside: ``"error"``, ``"pad"`` or ``"trim_to_shape"``.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        register_buffers: Accepted, for GPU storage.
        rel_roi_end: The same as a part of the extent.
        rel_roi_shape: The same as a part of the extent.
        rel_roi_start: The same as a part of the array's extent.
        roi_axes: Axes of the region; the others stay whole. All if left out.
        roi_end: Where it ends, exclusive; the end of the array if nothing says it.
        roi_shape: Its shape.
        roi_start: Where the region begins, one value for each axis or one for all; 0 if left out.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.
        use_o_direct: Read past the system's cache; goes with ``dont_use_mmap``.

    Returns:
        The array, in the order of C.

    Raises:
        RuntimeError: nothing says which files, there are none, or arguments exclude each other. While running: a file
            cannot be read, holds no array or one of a type that torch does not have, or a region reaches outside.
    """
    ...

def one_hot(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    axis: int = -1,
    axis_name: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Encode class numbers by a new axis that is on at the class and off elsewhere.

    Args:
        data: Class numbers, floats truncated; those outside of ``0 .. num_classes - 1`` are off everywhere.
        axis: Where the new axis lies; -1 is the end. By default, if all samples have one element, the others
            go.
        axis_name: Its name; without one the output has no layout.
        dtype: Of the output, an integer type or a float of at least 32 bits.
        num_classes: Extent of the new axis.
        off_value: Converted as C does: truncated, wrapped around.
        on_value: The same.

    Raises:
        RuntimeError: other types, an axis out of range, a name for data whose layout is not known.
    """
    ...

def ones(
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    layout: str | None = None,
    name: str | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Return ones.

    Args:
        dtype: Of the output.
        layout: Of the output.
        shape: Of a sample; 0D when None.

    Raises:
        RuntimeError: the layout does not fit the shape, or an extent is negative.
    """
    ...

def ones_like(
    data_like: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return ones in the shape of an input.

    Args:
        data_like: Gives shape and layout.
        dtype: Of the output; the input's own when None.
    """
    ...

def optical_flow(
    frames: _T,
    hints: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    device: Literal['gpu'] | None = None,
    enable_external_hints: bool = False,
    enable_temporal_hints: bool = False,
    hint_grid: int = 4,
    image_type: DALIImageType = DALIImageType.RGB,
    name: str | None = None,
    output_grid: int = 4,
    preset: float = 0.0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Find how far the pixels of each frame move to the next one.

    This is Lucas and Kanade's method from coarse to fine, in torch (see `kernels.optical_flow`), not NVIDIA's
    hardware: the vectors mean the same, but their values differ.

    Args:
        frames: ``(F, H, W, C)`` uint8, at least two frames.
        hints: ``(F - 1, h, w, 2)``: flows to start from, on the cells of ``hint_grid``.
        enable_external_hints: Use ``hints``.
        enable_temporal_hints: Start from the flow of the frames before.
        hint_grid: Width of a cell of ``hints`` in pixels: 1, 2, 4 or 8.
        image_type: RGB, BGR or GRAY.
        output_grid: Width of a cell of the output in pixels: 1, 2 or 4. A cell has the mean of its pixels.
        preset: 0, 0.5 or 1: from the best to the fastest.

    Returns:
        ``(F - 1, ceil(H / output_grid), ceil(W / output_grid), 2)`` float32: x and y, in pixels of the input.

    Raises:
        RuntimeError: one frame only, hints that are missing, not asked for or of another shape, or an argument
            that is none of its values.
    """
    ...

def pad(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    align: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    axes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    fill_value: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Grow samples at their ends, to the largest extent in the batch or to a given shape.

    Args:
        data: Any shape and type.
        align: Then grow each axis to a multiple of this; one value, or one an axis.
        axes: To grow; all when None.
        axis_names: The same by names of the layout.
        fill_value: Of what is added, in the type of the data (converted as C does: truncated, and wrapped).
        shape: Extent that each axis has at least; what is not positive means the largest one in the batch.

    Raises:
        RuntimeError: axes that do not exist, or that are given in both ways; an ``align`` that is not positive,
            or as many values as there are no axes.
    """
    ...

def paste(
    image: _T,
    /,
    *,
    fill_value: abc.Sequence[int] | int,
    ratio: float | DataNode | TensorList,
    device: Literal['cpu', 'gpu'] | None = None,
    min_canvas_size: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    paste_x: float | DataNode | TensorList = 0.5,
    paste_y: float | DataNode | TensorList = 0.5,
    bytes_per_sample_hint: Any = ...,
    n_channels: int = 3,
    preserve: Any = ...,
) -> _T:
    """Paste images on larger canvases.

    Args:
        image: ``(H, W, C)`` uint8.
        fill_value: Color of the canvas, one value or one a channel.
        min_canvas_size: Least height and width of the canvas, in pixels.
        n_channels: Accepted; the image tells.
        paste_x: Where the image lies: 0 is at the left edge, 1 at the right one.
        paste_y: The same from top to bottom.
        ratio: Canvas in units of the image, 1 or more; rounded down to whole pixels.

    Raises:
        RuntimeError: ``ratio`` below 1, ``min_canvas_size`` below 0, a position outside [0, 1], or a wrong number of
            fill values.
    """
    ...

def peek_image_shape(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    device: Literal['cpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    image_type: DALIImageType = DALIImageType.RGB,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Read the shape of encoded images from their headers: ``(H, W, C)``.

    Args:
        data: Encoded bytes, ``(n,)`` uint8.
        adjust_orientation: Swap the sides as the EXIF block says.
        dtype: Of the output: int32, uint32, int64, uint64, float32 or float64.
        image_type: Color space that decides the channels.

    Raises:
        RuntimeError: another dtype, data of more than one dimension, or of an unknown format.
    """
    ...

def per_frame(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    replace: bool = False,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Mark data as one value a frame, for the arguments of operators on sequences.

    Args:
        data: ``(F, ...)``.
        replace: Whether the first name of a layout that does not start with F is replaced by it.

    Raises:
        RuntimeError: data without axes, or a layout that does not start with F.
    """
    ...

def permute_batch(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    indices: abc.Sequence[int] | int | DataNode | TensorList,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return the samples of the batch in another order.

    Args:
        data: Any.
        indices: Which sample comes to each place; one number a sample, or a list for the whole batch.

    Raises:
        RuntimeError: there are more or fewer indices than samples, or one of them is no sample's.
    """
    ...

def power_spectrum(
    data: _T,
    /,
    *,
    axis: int = -1,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    nfft: int | None = None,
    power: int = 2,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Transform an axis, and take the squares or the moduli.

    Args:
        data: float32, any shape.
        axis: To transform; the last one, if negative.
        nfft: Size of the transform: the axis is cut or padded with zeros. Its own, if not positive.
        power: 2 for squares, 1 for moduli.

    Returns:
        The axis has ``nfft // 2 + 1`` values.

    Raises:
        RuntimeError: another power or type, an axis that does not exist or has no values.
    """
    ...

def preemphasis_filter(
    data: _T,
    /,
    *,
    border: Literal['clamp', 'reflect', 'zero'] = 'clamp',
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    preemph_coeff: float | DataNode | TensorList = 0.97,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Subtract from each sample a part of the one before it: ``x[i] - preemph_coeff * x[i - 1]``.

    Args:
        data: Any shape, integers or floats; the samples follow each other as in memory.
        border: What stands before the first sample: ``"clamp"`` the sample itself, ``"reflect"`` the second
            one, ``"zero"`` 0.
        dtype: Of the result: integers, float32 or float64; integers are rounded.
        preemph_coeff: Part of the sample before.

    Raises:
        RuntimeError: another border or type.
    """
    ...

@overload
def python_function(
    *inputs: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    function: Any,
    batch_processing: bool = False,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    num_outputs: Literal[1] = 1,
    output_layouts: Any = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Call a function on NumPy arrays.

    Args:
        inputs: What the function gets, one argument an input: arrays, copies that it may change.
        batch_processing: Call it once, with a list of arrays an input, instead of once a sample.
        function: Returns an array, or a tuple of them where there are several outputs.
        num_outputs: 0 for a function that is called for its effect.
        output_layouts: One for all, or one an output.

    Raises:
        RuntimeError: the function raises, or returns something other than arrays.
    """
    ...

@overload
def python_function(
    *inputs: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    function: Any,
    batch_processing: bool = False,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    num_outputs: int = ...,
    output_layouts: Any = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, ...]:
    """Call a function on NumPy arrays.

    Args:
        inputs: What the function gets, one argument an input: arrays, copies that it may change.
        batch_processing: Call it once, with a list of arrays an input, instead of once a sample.
        function: Returns an array, or a tuple of them where there are several outputs.
        num_outputs: 0 for a function that is called for its effect.
        output_layouts: One for all, or one an output.

    Raises:
        RuntimeError: the function raises, or returns something other than arrays.
    """
    ...

def random_bbox_crop(
    boxes: _T,
    labels: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    all_boxes_above_threshold: bool = True,
    allow_no_crop: bool = True,
    aspect_ratio: abc.Sequence[float] | float = [1.0, 1.0],
    bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None,
    crop_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    device: Literal['cpu'] | None = None,
    input_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ltrb: bool = ...,
    name: str | None = None,
    num_attempts: int = 1,
    output_bbox_indices: bool = False,
    quiet: bool = False,
    scaling: abc.Sequence[float] | float = [1.0, 1.0],
    seed: int = -1,
    shape_layout: str | None = None,
    threshold_type: Literal['iou', 'overlap'] = 'iou',
    thresholds: abc.Sequence[float] | float = [0.0],
    total_num_attempts: int = -1,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, ...]:
    """Choose a random window that keeps enough of the boxes in an image, and move the boxes into it.

    A round draws one of ``thresholds``, or the whole image, then makes ``num_attempts`` attempts to find a
    window. A window will do if its aspect ratio is allowed, the boxes reach the threshold and at least one of
    them is kept. Rounds go on until there is one.

    Args:
        boxes: ``(N, 4)`` or ``(N, 6)`` float32 in [0, 1], relative to the image (or volume).
        labels: ``(N, ...)``, any type: those of boxes that are left out go too.
        all_boxes_above_threshold: All boxes must reach the threshold, not just one.
        allow_no_crop: A round may also draw the whole image, with all its boxes. No effect with ``crop_shape``.
        aspect_ratio: Least and greatest ratio of width to height; of volumes also three pairs, for x/y, x/z and
            y/z. In pixels where ``input_shape`` is given, else relative to the image. Where both are the same,
            the larger extent is drawn and the other follows.
        bbox_layout: Order of the numbers of a box: x, y (and z) with X, Y, Z for ends or W, H, D for sizes;
            ``"xyXY"`` or ``"xyzXYZ"`` when None.
        bbox_prune_threshold: Keep boxes of which at least this share is seen (and anything at all); when None,
            those whose centre is.
        crop_shape: Extents of the window, in pixels; needs ``input_shape``.
        input_shape: Extents of the image.
        ltrb: False: x, y, width and height. Deprecated: use ``bbox_layout``.
        num_attempts: Of a round.
        output_bbox_indices: Add an output: the indices of the boxes that were kept, int32.
        quiet: Do not warn when no window would do.
        scaling: Least and greatest extent of the window on each axis, relative to the image.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape_layout: Order of ``crop_shape`` and ``input_shape``; ``"WH"`` or ``"WHD"`` when None.
        threshold_type: Thresholds are about ``"iou"``, intersection over union of box and window, or
            ``"overlap"``, the share of a box that is in the window.
        thresholds: In [0, 1].
        total_num_attempts: Take the best window after so many attempts; -1 for no end.

    Returns:
        Start of the window ``(d,)`` and its extent ``(d,)``, x first, float32, relative to the image (in pixels
        with ``crop_shape``); the boxes that are kept, clipped and relative to the window; their labels, if given;
        their indices, if wanted. The window is empty if attempts are limited and none had an allowed ratio.

    Raises:
        RuntimeError: arguments out of range or that exclude each other, boxes out of [0, 1], or no window after
            100,000 attempts.
    """
    ...

def random_crop_generator(
    shape: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    num_attempts: int = 10,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    seed: int = -1,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, _T]:
    """Choose a window of random area and aspect ratio.

    Each attempt draws an area, a share of the image's, and an aspect ratio, evenly on a logarithmic scale; the
    first window that fits is placed anywhere. If none does, the largest allowed one of the ratio nearest to the
    image's is.

    Args:
        shape: Of the image: ``(H, W)`` or ``(H, W, C)``, integers.
        num_attempts: Windows to try.
        random_area: Least and greatest share, or one value for both.
        random_aspect_ratio: Least and greatest ratio of width to height, or one value for both.
        seed: Of the random numbers; derived from the pipeline's seed by default.

    Returns:
        Anchor and shape of the window, both ``(H, W)``, int32.

    Raises:
        RuntimeError: another shape or type of input, or an empty range.
    """
    ...

def random_resized_crop(
    data: _T,
    /,
    *,
    size: abc.Sequence[int] | int,
    antialias: bool = True,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    name: str | None = None,
    num_attempts: int = 10,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    seed: int = -1,
    bytes_per_sample_hint: Any = ...,
    minibatch_size: int = 32,
    preserve: Any = ...,
    temp_buffer_hint: int = 0,
) -> _T:
    """Cut out a random window and resize it.

    Args:
        data: Images, or frames, which share the window.
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        num_attempts: Windows to try before the largest allowed one is taken.
        random_area: Least and greatest share of the image's area.
        random_aspect_ratio: Least and greatest ratio of width to height.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        size: Of the output: ``[H, W]``, or one value for both.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
    ...

def reinterpret(
    data: _T | abc.Sequence[float] | float,
    shape_input: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    layout: str | None = None,
    name: str | None = None,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    src_dims: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Take the bytes of data as another element type, and shape; see `reshape` for the shape.

    Args:
        data: Any shape and type.
        shape_input: 1D integers; the shape of each sample, in elements of the new type.
        dtype: The new type; the input's own when None. Without a shape, the last extent changes with its size.
        layout: Of the output; the input's own when None, if the number of axes stays.
        rel_shape: See `reshape`.
        shape: See `reshape`.
        src_dims: See `reshape`.

    Raises:
        RuntimeError: another number of bytes, contradictory arguments, a layout of another length.
    """
    ...

def reshape(
    data: _T | abc.Sequence[float] | float,
    shape_input: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    layout: str | None = None,
    name: str | None = None,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    src_dims: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Give data another shape, or another layout.

    Args:
        data: Any shape and type.
        shape_input: 1D integers; the shape of each sample.
        layout: Of the output; the input's own when None, if the number of axes stays.
        rel_shape: Extents as multiples of those of the input, rounded; -1 as in ``shape``.
        shape: Extents; one may be negative: it takes what the others leave.
        src_dims: Axes of the input that the extents (or, with ``rel_shape``, what is multiplied) come from; -1
            stands for an extent of 1.

    Raises:
        RuntimeError: another number of elements, contradictory arguments, a layout of another length.
    """
    ...

@overload
def resize(
    data: _T,
    /,
    *,
    antialias: bool = True,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
    name: str | None = None,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    save_attrs: Literal[False] = False,
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    bytes_per_sample_hint: Any = ...,
    minibatch_size: int = 32,
    preserve: Any = ...,
    temp_buffer_hint: int = 0,
) -> _T:
    """Resize images, frames or volumes.

    The size is given in exactly one way: ``size``; any of ``resize_x``, ``resize_y``, ``resize_z``;
    ``resize_shorter``; or ``resize_longer``.

    Args:
        data: Images, frames or volumes; uint8, int16, uint16 or float32.
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mode: How sizes and the aspect ratio meet: ``"default"``, ``"stretch"``, ``"not_larger"``,
            ``"not_smaller"``.
        resize_longer: Size of the longer side; the aspect ratio stays.
        resize_shorter: Size of the shorter side; the aspect ratio stays.
        resize_x: Width; a negative one mirrors. Others follow from ``mode``.
        resize_y: Height.
        resize_z: Depth.
        roi_end: Where the region to show ends, in the order of the layout.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        save_attrs: Also return the original spatial shape, int32.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.

    Raises:
        RuntimeError: not exactly one way of giving the size, or contradictory arguments.
    """
    ...

@overload
def resize(
    data: _T,
    /,
    *,
    antialias: bool = True,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
    name: str | None = None,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    save_attrs: Literal[True],
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    bytes_per_sample_hint: Any = ...,
    minibatch_size: int = 32,
    preserve: Any = ...,
    temp_buffer_hint: int = 0,
) -> tuple[_T, _T]:
    """Resize images, frames or volumes.

    The size is given in exactly one way: ``size``; any of ``resize_x``, ``resize_y``, ``resize_z``;
    ``resize_shorter``; or ``resize_longer``.

    Args:
        data: Images, frames or volumes; uint8, int16, uint16 or float32.
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mode: How sizes and the aspect ratio meet: ``"default"``, ``"stretch"``, ``"not_larger"``,
            ``"not_smaller"``.
        resize_longer: Size of the longer side; the aspect ratio stays.
        resize_shorter: Size of the shorter side; the aspect ratio stays.
        resize_x: Width; a negative one mirrors. Others follow from ``mode``.
        resize_y: Height.
        resize_z: Depth.
        roi_end: Where the region to show ends, in the order of the layout.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        save_attrs: Also return the original spatial shape, int32.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.

    Raises:
        RuntimeError: not exactly one way of giving the size, or contradictory arguments.
    """
    ...

@overload
def resize(
    data: _T,
    /,
    *,
    antialias: bool = True,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
    name: str | None = None,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    save_attrs: bool,
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    bytes_per_sample_hint: Any = ...,
    minibatch_size: int = 32,
    preserve: Any = ...,
    temp_buffer_hint: int = 0,
) -> Any:
    """Resize images, frames or volumes.

    The size is given in exactly one way: ``size``; any of ``resize_x``, ``resize_y``, ``resize_z``;
    ``resize_shorter``; or ``resize_longer``.

    Args:
        data: Images, frames or volumes; uint8, int16, uint16 or float32.
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mode: How sizes and the aspect ratio meet: ``"default"``, ``"stretch"``, ``"not_larger"``,
            ``"not_smaller"``.
        resize_longer: Size of the longer side; the aspect ratio stays.
        resize_shorter: Size of the shorter side; the aspect ratio stays.
        resize_x: Width; a negative one mirrors. Others follow from ``mode``.
        resize_y: Height.
        resize_z: Depth.
        roi_end: Where the region to show ends, in the order of the layout.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        save_attrs: Also return the original spatial shape, int32.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.

    Raises:
        RuntimeError: not exactly one way of giving the size, or contradictory arguments.
    """
    ...

def resize_crop_mirror(
    data: _T,
    /,
    *,
    antialias: bool = True,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    mirror: int | DataNode | TensorList = 0,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
    name: str | None = None,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rounding: Literal['round', 'truncate'] = 'round',
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    bytes_per_sample_hint: Any = ...,
    minibatch_size: int = 32,
    preserve: Any = ...,
    temp_buffer_hint: int = 0,
) -> _T:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed.

    Args:
        data: Images, frames or volumes.
        antialias: Stretch the filter where the image shrinks.
        crop: ``(H, W)`` or ``(D, H, W)`` of the window, in pixels; truncated to integers. What is not positive
            leaves the axis whole.
        crop_d: Its depth, where ``crop`` is not given; its number of frames where there is no depth.
        crop_h: Its height.
        crop_pos_x: Where it lies, from 0 at the left edge to 1 at the right one.
        crop_pos_y: The same from top to bottom.
        crop_pos_z: The same from front to back.
        crop_w: Its width.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mirror: Bits: 1 mirrors rows (horizontally), 2 vertically, 4 in depth.
        mode: How sizes and the aspect ratio meet: ``"default"``, ``"stretch"``, ``"not_larger"``,
            ``"not_smaller"``.
        resize_longer: Size of the longer side; the aspect ratio stays.
        resize_shorter: Size of the shorter side; the aspect ratio stays.
        resize_x: Width; a negative one mirrors. Others follow from ``mode``.
        resize_y: Height.
        resize_z: Depth.
        roi_end: Where the region to show ends, in the order of the layout.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        rounding: How the start is made an integer: ``"round"`` (halves away from zero) or ``"truncate"``.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.
    """
    ...

def roi_random_crop(
    data: _T | abc.Sequence[float] | float | None = None,
    /,
    *,
    crop_shape: abc.Sequence[int] | int | DataNode | TensorList,
    roi_start: abc.Sequence[int] | int | DataNode | TensorList,
    device: Literal['cpu', 'gpu'] | None = None,
    in_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    name: str | None = None,
    roi_end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    roi_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    seed: int = -1,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Choose where a window lies that shows as much of a region as it can.

    On each axis, the window lies in the region where it is smaller, and covers it where it is larger; it stays
    inside the data where their shape is known.

    Args:
        data: Only its shape counts.
        crop_shape: Of the window; one value an axis.
        in_shape: Shape of the data, instead of the input.
        roi_end: Of the region, exclusive.
        roi_shape: Of the region, instead of ``roi_end``.
        roi_start: Of the region.
        seed: Of the random numbers; derived from the pipeline's seed by default.

    Returns:
        Start of the window: one value an axis, int64.

    Raises:
        RuntimeError: not exactly one of ``roi_end`` and ``roi_shape``; ``in_shape`` beside an input; a window
            larger than the data, a region outside of them, or a number of values that does not fit.
    """
    ...

def rotate(
    data: _T,
    /,
    *,
    angle: float | DataNode | TensorList,
    axis: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    keep_size: bool = False,
    name: str | None = None,
    size: abc.Sequence[float] | float | DataNode | TensorList = [],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Rotate images or frames counter-clockwise around their centre, volumes around an axis.

    Args:
        data: ``(..., [D,] H, W, C)``: uint8, int16, int32 or float32.
        angle: Degrees; one a frame is possible.
        axis: ``(x, y, z)`` of the axis that volumes turn around; not needed for images.
        dtype: Of the output, the input's own or float32 (float32 may become any of them); the input's own when
            None.
        fill_value: Value of everything outside; the edge is repeated when None.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        keep_size: Of the output: the input's; otherwise the canvas grows so that nothing is lost.
        size: Height and width (depth first) of the output.

    Raises:
        RuntimeError: a volume without an axis.
    """
    ...

def saturation(
    image: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    saturation: float | DataNode | TensorList = 1.0,
    bytes_per_sample_hint: Any = ...,
    image_type: DALIImageType = DALIImageType.RGB,
    preserve: Any = ...,
) -> _T:
    """Scale the saturation of RGB images, as `hsv` does.

    Args:
        image: ``(..., H, W, 3)``.
        dtype: Of the output; the input's own when None.
        image_type: Accepted; images are RGB.
        saturation: Multiplier; 0 makes the image gray, 1 keeps it.
    """
    ...

def sequence_reader(
    *,
    file_root: str | PathLike[str],
    sequence_length: int,
    device: Literal['cpu'] | None = None,
    dont_use_mmap: bool = False,
    image_type: DALIImageType = DALIImageType.RGB,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    random_shuffle: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    step: int = 1,
    stick_to_shard: bool = False,
    stride: int = 1,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> DataNode:
    """Deprecated: use `readers.sequence`.

    Read sequences of frames that lie in folders as images, ordered by their names.

    Args:
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        file_root: Folder of folders; each holds the frames of one video. What is no image is left out.
        image_type: Color space: RGB, BGR, GRAY, or ANY_DATA, which keeps the channels of the files.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        sequence_length: Frames of a sequence.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        step: Frames from the beginning of one sequence to that of the next.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        stride: Frames from one frame of a sequence to the next.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        ``(F, H, W, C)`` uint8.

    Raises:
        RuntimeError: no folder has frames enough, ``image_type`` is YCbCr, or a number is not positive. While
            running: a file cannot be decoded, or the frames of a sequence differ in shape.
    """
    ...

def sequence_rearrange(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    new_order: abc.Sequence[int] | int | DataNode | TensorList,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Put the frames of a sequence in another order.

    Args:
        data: ``(F, ...)`` of at least two axes.
        new_order: Number of the frame at each place of the output; frames may be repeated and left out.

    Raises:
        RuntimeError: no sequence, an empty order, or a frame that the sequence does not have.
    """
    ...

def shapes(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Deprecated: use `DataNode.shape()`.

    Return the shape, 1D.

    Args:
        data: Any shape and type.
        dtype: int32, uint32, int64, uint64, float32 or float64.
    """
    ...

def slice(
    data: _T | abc.Sequence[float] | float,
    anchor: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    extent: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    axes: abc.Sequence[int] | int | DataNode | TensorList = [1, 0],
    axis_names: str = ...,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    fill_values: abc.Sequence[float] | float = [0.0],
    name: str | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    out_of_bounds_policy: Literal['error', 'trim_to_shape', 'pad', 'constant', 'fill', 'clamp', 'edge', 'wrap', 'reflect', 'reflect_1001', 'reflect1001', 'reflect_101', 'reflect101'] = 'error',
    rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    start: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Cut out a part, given by inputs (anchor and shape) or by arguments (start and end or shape).

    ``round(start) : round(end)`` of each axis, halves rounded away from zero, ``end = start + shape``.

    Args:
        data: Any shape and type.
        anchor: Where the part starts, one value an axis. int32 or int64: in elements. float32: see
            ``normalized_anchor``.
        extent: Its shape, of the type of ``anchor``.
        axes: To cut. The other axes stay whole.
        axis_names: The same by names of the layout; the default stands for ``axes=[1, 0]`` of an image. Data
            without a layout are taken for HW, HWC or DHWC.
        dtype: Of the output, converted by truncation and saturated; the input's own when None.
        end: In elements, exclusive.
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel.
        normalized_anchor: A float ``anchor`` is relative to the extent of the axis.
        normalized_shape: A float ``extent`` is relative to the extent of the axis.
        out_of_bounds_policy: For parts that reach outside: ``"error"``, ``"pad"``, ``"trim_to_shape"``, or how
            the data go on: ``"clamp"``, ``"wrap"``, ``"reflect_101"``, ``"reflect_1001"``.
        rel_end: Relative to the extent of the axis.
        rel_shape: Likewise.
        rel_start: Likewise.
        shape: In elements.
        start: In elements; 0 when neither ``start`` nor ``rel_start`` is given.

    Raises:
        RuntimeError: the part reaches outside or ends before it starts, axes that do not exist, or arguments
            that exclude each other.
    """
    ...

def spectrogram(
    data: _T,
    /,
    *,
    center_windows: bool = True,
    device: Literal['cpu', 'gpu'] | None = None,
    layout: Literal['ft', 'tf'] = 'ft',
    name: str | None = None,
    nfft: int | None = None,
    power: int = 2,
    reflect_padding: bool = True,
    window_fn: abc.Sequence[float] | float | None = None,
    window_length: int = 512,
    window_step: int = 256,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Transform overlapping windows of a signal.

    Args:
        data: ``(samples,)`` float32; other axes of one value are left out.
        center_windows: The first window is centered on the first sample, as if the signal went on beyond its
            ends.
        layout: ``"ft"``, a column for each window, or ``"tf"``, a row.
        nfft: Size of the transform, at least ``window_length``, which it is by default.
        power: 2 for squares, 1 for moduli.
        reflect_padding: Beyond its ends the signal is mirrored, without its first and last sample; otherwise it
            is 0.
        window_fn: What windows are multiplied with; ``(1 - cos(2 pi (n + 1/2) / window_length)) / 2`` by
            default.
        window_length: Samples of a window.
        window_step: Samples from one window to the next.

    Returns:
        ``(nfft // 2 + 1, windows)``, or the transpose.

    Raises:
        RuntimeError: a size that is not positive, a transform smaller than the window, another type, layout or power,
            a signal that is empty, of several dimensions, or too short for one window.
    """
    ...

def sphere(
    image: _T,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | DataNode | TensorList = 1,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Wrap images on a sphere: distances from the centre are squared, in units of half the longer side.

    Args:
        image: ``(H, W, C)``: uint8 or float32.
        fill_value: Value of everything outside.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        mask: 0 leaves the image as it is.
    """
    ...

def squeeze(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    axes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Drop axes of extent 1.

    Args:
        data: Any shape and type.
        axes: The axes; those that the data do not have are left out. With a negative one, none is dropped.
        axis_names: The same by their names in the layout.

    Raises:
        RuntimeError: an extent that is not 1 (unless the sample stays empty), a name that is not in the layout,
            both or none given.
    """
    ...

def ssd_random_crop(
    images: _T,
    boxes: _T,
    labels: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    /,
    *,
    device: Literal['cpu'] | None = None,
    name: str | None = None,
    num_attempts: int = 1,
    seed: int = -1,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, _T, _T]:
    """Deprecated: use `random_bbox_crop`.

    Crop images at random so that boxes stay in them, as single-shot detectors are trained.

    Deprecated: use `random_bbox_crop`, of which this is the case of ``scaling`` 0.3 to 1, ``aspect_ratio`` 0.5 to
    2 relative to the image, and the thresholds 0, 0.1, 0.3, 0.5, 0.7 and 0.9.

    Args:
        images: ``(H, W, C)``, any type.
        boxes: ``(N, 4)`` float32: left, top, right and bottom, relative to the image.
        labels: ``(N, ...)``, any type.
        num_attempts: Before another threshold is drawn.
        seed: Of the random numbers; derived from the pipeline's seed by default.

    Returns:
        The cropped images, the boxes whose centres are in them, relative to them, and their labels.
    """
    ...

def stack(
    first: _T | abc.Sequence[float] | float,
    *others: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    axis: int = 0,
    axis_name: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Join inputs of one shape along a new axis.

    Args:
        first: What comes first.
        others: Of the same shape and type.
        axis: Where the new axis lies in the output; negative numbers count from its end.
        axis_name: Name of the new axis; without one the output has no layout.

    Raises:
        RuntimeError: shapes or types that differ, an axis out of range, a name for data without a layout.
    """
    ...

def tensor_resize(
    data: _T,
    /,
    *,
    alignment: abc.Sequence[float] | float | DataNode | TensorList = [0.5],
    antialias: bool = True,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] = 'default',
    name: str | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    scales: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    size_rounding: Literal['round', 'truncate', 'ceil'] = 'round',
    sizes: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    bytes_per_sample_hint: Any = ...,
    minibatch_size: int = 32,
    preserve: Any = ...,
    temp_buffer_hint: int = 0,
) -> _T:
    """Resize some or all axes of a tensor.

    Args:
        data: uint8, int16, uint16 or float32, of any shape.
        alignment: Point of the axis that stays where it is when ``subpixel_scale`` corrects a rounded size: 0
            is the start, 1 the end.
        antialias: Stretch the filter where the image shrinks.
        axes: Which axes are resized; all when neither this nor ``axis_names`` is given.
        axis_names: The same, by names in the layout.
        dtype: Of the output, the input's own or float32; the input's own when None.
        interp_type: Filter, for shrinking and growing.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mode: How sizes and proportions meet: ``"default"``, ``"stretch"``, ``"not_larger"``, ``"not_smaller"``.
        roi_end: Where the region to show ends.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        scales: Output size in units of the input's, one for all axes or one an axis.
        size_rounding: ``"round"``, ``"truncate"`` or ``"ceil"``.
        sizes: Output sizes, one for all axes or one an axis; 0 leaves an axis to ``mode``.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.

    Raises:
        RuntimeError: not exactly one of ``sizes`` and ``scales``, or lists of a wrong length.
        ValueError: an axis twice. IndexError: an axis that is not there.
    """
    ...

def tfrecord_reader(
    *,
    path: abc.Sequence[str | PathLike[str]] | str | PathLike[str],
    features: Any,
    cache_dir: str | PathLike[str] | None = None,
    cache_size: int = 10737418240,
    device: Literal['cpu'] | None = None,
    dont_use_mmap: bool = False,
    index_path: abc.Sequence[str | PathLike[str]] | str | PathLike[str] | None = None,
    io_concurrency: int = 64,
    io_retries: int = 5,
    io_timeout: float = 30.0,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    random_shuffle: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    stick_to_shard: bool = False,
    use_o_direct: bool = False,
    verify: bool = False,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    tensor_init_bytes: int = 1048576,
) -> dict[str, DataNode]:
    """Deprecated: use `readers.tfrecord`.

    Read features of the records of TFRecord files.

    A call returns a dictionary of outputs, one a feature.

    Args:
        cache_dir: Of URLs: folder where what was read is kept; several processes may share it.
        cache_size: Bytes that are kept there at most; what was not used for longest goes first.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        features: Names of features, and what they are: see `torchdali.tfrecord`.
        index_path: Of their index files; without it the files are walked through when the pipeline is built. An
            index that does not exist is written.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        io_concurrency: Of URLs: most requests at a time.
        io_retries: Of URLs: how often a request that failed is repeated.
        io_timeout: Of URLs: seconds after which a request has failed, where the store's package can be
            interrupted.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        path: Of the files, or their URLs.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.
        use_o_direct: Read past the system's cache; goes with ``dont_use_mmap``.
        verify: Check the check sums of each record.

    Returns:
        Of a string its bytes, ``(n,)`` uint8. Of numbers int64 or float32: with ``FixedLenFeature`` in its shape,
        filled up with the default; with ``VarLenFeature`` ``(n, *partial_shape)``. For records without the feature
        the default: a number as a scalar, a string as its bytes.

    Raises:
        RuntimeError: a file or index cannot be read. While running: a record is damaged, has more values than the
            shape, values of another type, or more strings than one are asked for.
    """
    ...

def to_decibels(
    data: _T,
    /,
    *,
    cutoff_db: float = -200.0,
    device: Literal['cpu', 'gpu'] | None = None,
    multiplier: float = 10.0,
    name: str | None = None,
    reference: float | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Convert to decibels: ``multiplier * log10(max(x / reference, 10 ** (cutoff_db / multiplier)))``.

    Args:
        data: float32, any shape.
        cutoff_db: Least result.
        multiplier: 10 for squares, 20 for moduli.
        reference: What gives 0; the largest value of the sample, if not given.

    Raises:
        RuntimeError: the reference is 0, or another type.
    """
    ...

@overload
def torch_python_function(
    *inputs: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    function: Any,
    batch_processing: bool = False,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    num_outputs: Literal[1] = 1,
    output_layouts: Any = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Call a function on torch tensors: a function, an ``nn.Module``, a torchvision transform.

    On an accelerator the tensors are on it, and its stream is current.

    Args:
        inputs: What the function gets, one argument an input: tensors, which it must not change.
        batch_processing: Call it once, with a list of tensors an input, instead of once a sample. It returns a
            list of tensors an output, or one tensor whose first dimension is the batch. A transform of
            torchvision would change the first sample alone: that is refused.
        function: Returns a tensor, or a tuple of them where there are several outputs. Transforms of
            torchvision take images ``(C, H, W)``.
        num_outputs: 0 for a function that is called for its effect.
        output_layouts: One for all, or one an output.

    Raises:
        RuntimeError: the function raises, returns something other than tensors, or changes the first sample alone.
    """
    ...

@overload
def torch_python_function(
    *inputs: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    function: Any,
    batch_processing: bool = False,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    num_outputs: int = ...,
    output_layouts: Any = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> tuple[_T, ...]:
    """Call a function on torch tensors: a function, an ``nn.Module``, a torchvision transform.

    On an accelerator the tensors are on it, and its stream is current.

    Args:
        inputs: What the function gets, one argument an input: tensors, which it must not change.
        batch_processing: Call it once, with a list of tensors an input, instead of once a sample. It returns a
            list of tensors an output, or one tensor whose first dimension is the batch. A transform of
            torchvision would change the first sample alone: that is refused.
        function: Returns a tensor, or a tuple of them where there are several outputs. Transforms of
            torchvision take images ``(C, H, W)``.
        num_outputs: 0 for a function that is called for its effect.
        output_layouts: One for all, or one an output.

    Raises:
        RuntimeError: the function raises, returns something other than tensors, or changes the first sample alone.
    """
    ...

def transform_translation(
    mtx: _T | None = None,
    /,
    *,
    offset: abc.Sequence[float] | float | DataNode | TensorList,
    device: Literal['cpu'] | None = None,
    name: str | None = None,
    reverse_order: bool = False,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Deprecated: use `transforms.translation`.

    Make a matrix that moves points.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        offset: ``(x, y, ...)``: its length is n.
        reverse_order: Apply the input after.
    """
    ...

def transpose(
    data: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    name: str | None = None,
    output_layout: str | None = None,
    perm: abc.Sequence[int] | int | None = None,
    transpose_layout: bool = True,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Permute the axes.

    Args:
        data: Any shape and type.
        output_layout: Of the output; goes before ``transpose_layout``.
        perm: Axis of the input that each axis of the output comes from; all axes reversed when None.
        transpose_layout: Whether the layout is permuted too.

    Raises:
        RuntimeError: ``perm`` is no permutation of the axes, a layout of another length.
    """
    ...

def uniform(
    shape_like: _T | abc.Sequence[float] | float | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    range: abc.Sequence[float] | float | DataNode | TensorList = [-1.0, 1.0],
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    values: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Deprecated: use `random.uniform`.

    Draw numbers from a range, or from a list of values, all equally likely.

    Args:
        shape_like: Take the shape from this input.
        dtype: Any integer type, float32 or float64; float32 when None.
        range: ``[low, high)``. With an integer ``dtype`` the ends are converted first (truncated; what does not
            fit wraps, so that -1 is 255 in uint8), and the numbers between them are rounded: both ends occur,
            half as often as the others.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape: Of each sample; 0D by default.
        values: Draw from these instead, converted with rounding and saturation.

    Raises:
        RuntimeError: an empty range or list, another dtype, or both ``shape`` and ``shape_like``.
    """
    ...

def video_reader(
    *,
    sequence_length: int,
    adjust_orientation: bool = False,
    channels: int = 3,
    device: Literal['cpu', 'gpu'] | None = None,
    dont_use_mmap: bool = False,
    dtype: DALIDataType | torch.dtype = ...,
    enable_frame_num: Literal['none', 'scalar', 'sequence', True, False] = 'none',
    enable_timestamps: bool = False,
    fast: bool = False,
    file_list: str | PathLike[str] = '',
    file_list_frame_num: bool = False,
    file_list_include_preceding_frame: bool = False,
    file_root: str | PathLike[str] = '',
    filenames: abc.Sequence[str | PathLike[str]] | str | PathLike[str] = [],
    image_type: DALIImageType = DALIImageType.RGB,
    labels: abc.Sequence[int] | int | None = None,
    lazy_init: bool = False,
    name: str | None = None,
    normalized: bool = False,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    pad_sequences: bool = False,
    random_shuffle: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    step: int = -1,
    stick_to_shard: bool = False,
    stride: int = 1,
    additional_decode_surfaces: int = 2,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    skip_vfr_check: bool = False,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Deprecated: use `readers.video`.

    Read clips of videos by the package av (extra ``video``); see `experimental.readers.video`.

    Args:
        additional_decode_surfaces: Accepted, without effect.
        adjust_orientation: Ours: turn frames as the container asks for, as videos from phones do; DALI never
            does.
        channels: 3.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        dtype: uint8 or float32.
        enable_frame_num: Also return numbers of frames, int32: ``"scalar"`` (or True) of the first one,
            ``"sequence"`` of all, ``"none"`` (or False).
        enable_timestamps: Also return when frames are shown, in seconds from the first one, float64.
        fast: Ours: do not interpolate chroma: up to three times as fast, and one or two levels off on average.
        file_list: A text file of lines ``path label [start [end]]``.
        file_list_frame_num: Bounds in a list are frames, not seconds; negative ones count from the end.
        file_list_include_preceding_frame: A range begins with the frame that is shown at its first time, not
            after it.
        file_root: Folder of folders of videos; each is a class.
        filenames: Paths.
        image_type: RGB, or YCbCr as it is coded.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        labels: One a file of ``filenames``.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        normalized: Scale to 0 to 1; with float32.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        pad_sequences: Fill the last sequence of a file with frames of zeros; otherwise it is left out.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        seed: Of the shuffling; -1 and None take the pipeline's.
        sequence_length: Frames of a sequence.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        skip_vfr_check: Accepted; frame rates may vary.
        step: Frames from the beginning of one sequence to that of the next; a whole sequence, if negative.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        stride: Frames from one frame of a sequence to the next.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        ``(F, H, W, 3)``; then the label ``(1,)`` int32 where there are labels, numbers and times of frames.

    Raises:
        RuntimeError: as `experimental.readers.video`; also another type or number of channels.
    """
    ...

def video_reader_resize(
    *,
    sequence_length: int,
    adjust_orientation: bool = False,
    antialias: bool = True,
    channels: int = 3,
    device: Literal['cpu', 'gpu'] | None = None,
    dont_use_mmap: bool = False,
    dtype: DALIDataType | torch.dtype = ...,
    enable_frame_num: Literal['none', 'scalar', 'sequence', True, False] = 'none',
    enable_timestamps: bool = False,
    fast: bool = False,
    file_list: str | PathLike[str] = '',
    file_list_frame_num: bool = False,
    file_list_include_preceding_frame: bool = False,
    file_root: str | PathLike[str] = '',
    filenames: abc.Sequence[str | PathLike[str]] | str | PathLike[str] = [],
    image_type: DALIImageType = DALIImageType.RGB,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    labels: abc.Sequence[int] | int | None = None,
    lazy_init: bool = False,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    mode: Literal['default', 'stretch', 'not_larger', 'not_smaller'] | None = None,
    name: str | None = None,
    normalized: bool = False,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    pad_sequences: bool = False,
    random_shuffle: bool = False,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    step: int = -1,
    stick_to_shard: bool = False,
    stride: int = 1,
    subpixel_scale: bool = True,
    additional_decode_surfaces: int = 2,
    bytes_per_sample_hint: Any = ...,
    initial_fill: int = 1024,
    minibatch_size: int = 32,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    read_ahead: bool = False,
    skip_cached_images: bool = False,
    skip_vfr_check: bool = False,
    temp_buffer_hint: int = 0,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Deprecated: use `readers.video_resize`.

    Read clips of videos, and resize their frames; see `readers.video` and `resize`.

    Args:
        additional_decode_surfaces: Accepted, without effect.
        adjust_orientation: Ours: turn frames as the container asks for, as videos from phones do; DALI never
            does.
        antialias: Stretch the filter where the image shrinks.
        channels: 3.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        dtype: Of the output, the input's own or float32; the input's own when None.
        enable_frame_num: Also return numbers of frames, int32: ``"scalar"`` (or True) of the first one,
            ``"sequence"`` of all, ``"none"`` (or False).
        enable_timestamps: Also return when frames are shown, in seconds from the first one, float64.
        fast: Ours: do not interpolate chroma: up to three times as fast, and one or two levels off on average.
        file_list: A text file of lines ``path label [start [end]]``.
        file_list_frame_num: Bounds in a list are frames, not seconds; negative ones count from the end.
        file_list_include_preceding_frame: A range begins with the frame that is shown at its first time, not
            after it.
        file_root: Folder of folders of videos; each is a class.
        filenames: Paths.
        image_type: RGB, or YCbCr as it is coded.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        interp_type: Filter, for shrinking and growing.
        labels: One a file of ``filenames``.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        mag_filter: Filter for axes that grow; ``interp_type`` when None.
        max_size: Upper limits, one for all axes or one an axis.
        min_filter: Filter for axes that shrink; ``interp_type`` when None.
        minibatch_size: Accepted; samples are processed one by one.
        mode: How sizes and the aspect ratio meet: ``"default"``, ``"stretch"``, ``"not_larger"``,
            ``"not_smaller"``.
        normalized: Scale to 0 to 1; with float32.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        pad_sequences: Fill the last sequence of a file with frames of zeros; otherwise it is left out.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here the
            pipeline's own queue depth decides how much is read ahead.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        read_ahead: Accepted; whole files are read at once in any case.
        resize_longer: Size of the longer side; the aspect ratio stays.
        resize_shorter: Size of the shorter side; the aspect ratio stays.
        resize_x: Width; a negative one mirrors. Others follow from ``mode``.
        resize_y: Height.
        resize_z: Depth.
        roi_end: Where the region to show ends, in the order of the layout.
        roi_relative: The region is in units of the input's extent.
        roi_start: Where it starts.
        seed: Of the shuffling; -1 and None take the pipeline's.
        sequence_length: Frames of a sequence.
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks and for every
            pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.
        size: Height and width (and depth first), or one value for all; 0 leaves an axis to ``mode``.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        skip_vfr_check: Accepted; frame rates may vary.
        step: Frames from the beginning of one sequence to that of the next; a whole sequence, if negative.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        stride: Frames from one frame of a sequence to the next.
        subpixel_scale: Keep the exact scale where a size had to be rounded.
        temp_buffer_hint: Accepted; memory is sized exactly.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.

    Returns:
        ``(F, h, w, 3)``; then the label ``(1,)`` int32 where there are labels, numbers and times of frames.

    Raises:
        RuntimeError: as `readers.video` and `resize`.
    """
    ...

def warp_affine(
    data: _T,
    mtx: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: bool = True,
    matrix: abc.Sequence[float] | float | DataNode | TensorList = [],
    name: str | None = None,
    size: abc.Sequence[float] | float | DataNode | TensorList = [],
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``.

    Positions are ``(x, y[, z])`` in pixels, pixel centres at one half.

    Args:
        data: ``(..., [D,] H, W, C)``: uint8, int16, int32 or float32.
        mtx: The matrix, as an input: ``(2, 3)``, ``(3, 4)`` for volumes; with a leading axis, one a frame.
        dtype: Of the output, the input's own or float32 (float32 may become any of them); the input's own when
            None.
        fill_value: Value of everything outside; the edge is repeated when None.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``; the image is not smoothed where it shrinks.
        inverse_map: The matrix takes positions of the output to those of the input; otherwise the other way
            round.
        matrix: The matrix, row by row.
        size: Height and width (depth first) of the output; the input's when not given.

    Raises:
        RuntimeError: no matrix, or one of another size.
    """
    ...

def water(
    image: _T,
    /,
    *,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    device: Literal['cpu', 'gpu'] | None = None,
    fill_value: float = 0.0,
    freq_x: float = 0.04908738521234052,
    freq_y: float = 0.04908738521234052,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | DataNode | TensorList = 1,
    name: str | None = None,
    phase_x: float = 0.0,
    phase_y: float = 0.0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Show images as under moving water.

    ``out(x, y) = in(x + ampl_x sin(freq_x y + phase_x), y + ampl_y cos(freq_y x + phase_y))``

    Args:
        image: ``(H, W, C)``: uint8 or float32.
        ampl_x: Amplitude of the waves along x, in pixels.
        ampl_y: Along y.
        fill_value: Value of everything outside.
        freq_x: Frequency, in radians a pixel.
        freq_y: Of the waves along y.
        interp_type: ``INTERP_NN`` or ``INTERP_LINEAR``.
        mask: 0 leaves the image as it is.
        phase_x: Phase, in radians.
        phase_y: Of the waves along y.
    """
    ...

def zeros(
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    layout: str | None = None,
    name: str | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Return zeros.

    Args:
        dtype: Of the output.
        layout: Of the output.
        shape: Of a sample; 0D when None.

    Raises:
        RuntimeError: the layout does not fit the shape, or an extent is negative.
    """
    ...

def zeros_like(
    data_like: _T | abc.Sequence[float] | float,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return zeros in the shape of an input.

    Args:
        data_like: Gives shape and layout.
        dtype: Of the output; the input's own when None.
    """
    ...
