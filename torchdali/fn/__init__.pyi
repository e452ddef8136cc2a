"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
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
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    downmix: bool = False,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    preserve: Any = ...,
    quality: float = 50.0,
    sample_rate: float | DataNode | TensorList = 0.0,
) -> abc.Sequence[_T]:
    """Decode audio: WAV by itself, FLAC, Ogg, MP3 and others by the package soundfile (extra ``audio``)."""
    ...

def audio_resample(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    in_rate: float | DataNode | TensorList | None = None,
    name: str | None = None,
    out_length: int | DataNode | TensorList | None = None,
    out_rate: float | DataNode | TensorList | None = None,
    preserve: Any = ...,
    quality: float = 50.0,
    scale: float | DataNode | TensorList | None = None,
) -> _T:
    """Resample a signal, by a sinc under a Hann window."""
    ...

def batch_permutation(
    *,
    allow_repetitions: bool = False,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    no_fixed_points: bool = False,
    preserve: Any = ...,
    seed: int = -1,
) -> DataNode:
    """Draw a permutation of the samples of the batch: one index a sample, int32, for `permute_batch`."""
    ...

def bb_flip(
    boxes: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    horizontal: int | DataNode | TensorList = 1,
    ltrb: bool = False,
    name: str | None = None,
    preserve: Any = ...,
    vertical: int | DataNode | TensorList = 0,
) -> _T:
    """Flip boxes along with their image."""
    ...

def bbox_paste(
    boxes: _T,
    /,
    *,
    ratio: float | DataNode | TensorList,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    ltrb: bool = False,
    name: str | None = None,
    paste_x: float | DataNode | TensorList = 0.5,
    paste_y: float | DataNode | TensorList = 0.5,
    preserve: Any = ...,
) -> _T:
    """Move boxes along with the image that `paste` puts on a canvas."""
    ...

def bbox_rotate(
    boxes: _T,
    labels: _T | None = None,
    /,
    *,
    angle: float | DataNode | TensorList,
    input_shape: abc.Sequence[int] | int | DataNode | TensorList,
    bbox_layout: str = 'xyXY',
    bbox_normalized: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    keep_size: bool = False,
    mode: str = 'expand',
    name: str | None = None,
    preserve: Any = ...,
    remove_threshold: float = 0.1,
    shape_layout: str = 'HW',
    size: abc.Sequence[float] | float | DataNode | TensorList = [],
) -> Any:
    """Rotate boxes along with the image that `rotate` turns."""
    ...

def box_encoder(
    boxes: _T,
    labels: _T,
    /,
    *,
    anchors: abc.Sequence[float] | float,
    bytes_per_sample_hint: Any = ...,
    criteria: float = 0.5,
    device: str | None = None,
    means: abc.Sequence[float] | float = [0.0, 0.0, 0.0, 0.0],
    name: str | None = None,
    offset: bool = False,
    preserve: Any = ...,
    scale: float = 1.0,
    stds: abc.Sequence[float] | float = [1.0, 1.0, 1.0, 1.0],
) -> abc.Sequence[_T]:
    """Assign boxes to the anchors of a single-shot detector."""
    ...

def brightness(
    image: _T,
    /,
    *,
    brightness: float | DataNode | TensorList = 1.0,
    brightness_shift: float | DataNode | TensorList = 0.0,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Scale the brightness of images, then shift it."""
    ...

def brightness_contrast(
    image: _T,
    /,
    *,
    brightness: float | DataNode | TensorList = 1.0,
    brightness_shift: float | DataNode | TensorList = 0.0,
    bytes_per_sample_hint: Any = ...,
    contrast: float | DataNode | TensorList = 1.0,
    contrast_center: float | DataNode | TensorList | None = None,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Scale the contrast of images around a centre, then scale and shift their brightness."""
    ...

def caffe2_reader(
    *,
    path: abc.Sequence[str] | str,
    additional_inputs: int = 0,
    bbox: bool = False,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dont_use_mmap: bool = False,
    image_available: bool = True,
    initial_fill: int = 1024,
    label_type: int = 0,
    lazy_init: bool = False,
    name: str | None = None,
    num_labels: int = 1,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    skip_cached_images: bool = False,
    stick_to_shard: bool = False,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Read the tensors of the LMDB databases of Caffe2, in the order of their keys."""
    ...

def caffe_reader(
    *,
    path: abc.Sequence[str] | str,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dont_use_mmap: bool = False,
    image_available: bool = True,
    initial_fill: int = 1024,
    label_available: bool = True,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    skip_cached_images: bool = False,
    stick_to_shard: bool = False,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Read images and labels of the LMDB databases of Caffe, in the order of their keys."""
    ...

def cast(
    data: _T,
    /,
    *,
    dtype: DALIDataType | torch.dtype,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Convert to another element type."""
    ...

def cast_like(
    data: _T,
    other: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Convert to the element type of another input; see `cast`."""
    ...

def cat(
    first: _T,
    *others: _T,
    axis: int = 0,
    axis_name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Join inputs along an axis."""
    ...

def clahe(
    image: _T,
    /,
    *,
    clip_limit: float,
    tiles_x: int,
    tiles_y: int,
    bins: int = 256,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    luma_only: bool = True,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Spread the values of an image tile by tile, with limited contrast (CLAHE)."""
    ...

def coco_reader(
    *,
    annotations_file: str = '',
    avoid_class_remapping: bool = False,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dont_use_mmap: bool = False,
    file_root: str | None = None,
    image_ids: bool = False,
    images: abc.Sequence[str] | str | None = None,
    include_iscrowd: bool = True,
    initial_fill: int = 1024,
    lazy_init: bool = False,
    ltrb: bool = False,
    masks: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    pixelwise_masks: bool = False,
    polygon_masks: bool = False,
    prefetch_queue_depth: int = 1,
    preprocessed_annotations: str = '',
    preserve: Any = ...,
    random_shuffle: bool = False,
    ratio: bool = False,
    read_ahead: bool = False,
    save_preprocessed_annotations: bool = False,
    save_preprocessed_annotations_dir: str = '',
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    size_threshold: float = 0.1,
    skip_cached_images: bool = False,
    skip_empty: bool = False,
    stick_to_shard: bool = False,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Read images with boxes, labels and masks of COCO."""
    ...

def coin_flip(
    shape_like: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
    probability: float | DataNode | TensorList = 0.5,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> DataNode:
    """Draw 1 with a probability, otherwise 0."""
    ...

def color_space_conversion(
    image: _T,
    /,
    *,
    image_type: DALIImageType,
    output_type: DALIImageType,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Convert between RGB, BGR, YCbCr (BT.601, studio range) and GRAY."""
    ...

def color_twist(
    image: _T,
    /,
    *,
    brightness: float | DataNode | TensorList = 1.0,
    bytes_per_sample_hint: Any = ...,
    contrast: float | DataNode | TensorList = 1.0,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    hue: float | DataNode | TensorList = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    name: str | None = None,
    preserve: Any = ...,
    saturation: float | DataNode | TensorList = 1.0,
) -> _T:
    """Turn hue and scale saturation, then contrast and brightness, of RGB images in one step."""
    ...

def constant(
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    fdata: abc.Sequence[float] | float | None = None,
    idata: abc.Sequence[int] | int | None = None,
    layout: str = '',
    name: str | None = None,
    preserve: Any = ...,
    shape: abc.Sequence[int] | int | None = None,
) -> DataNode:
    """Return the same data for every sample."""
    ...

def contrast(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    contrast: float | DataNode | TensorList = 1.0,
    contrast_center: float | DataNode | TensorList | None = None,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Scale the contrast of images around a centre: ``out = center + contrast * (in - center)``."""
    ...

def coord_flip(
    points: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    center_x: float | DataNode | TensorList = 0.5,
    center_y: float | DataNode | TensorList = 0.5,
    center_z: float | DataNode | TensorList = 0.5,
    device: str | None = None,
    flip_x: int | DataNode | TensorList = 1,
    flip_y: int | DataNode | TensorList = 0,
    flip_z: int | DataNode | TensorList = 0,
    layout: str = '',
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Mirror points: ``out = 2 center - in`` on the axes that are flipped."""
    ...

def coord_transform(
    points: _T,
    /,
    *,
    M: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    MT: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    T: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Transform points: ``out = M in + T`` on the last axis."""
    ...

def copy(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Copy."""
    ...

def crop(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    fill_values: abc.Sequence[float] | float = [0.0],
    name: str | None = None,
    out_of_bounds_policy: str = 'error',
    preserve: Any = ...,
    rounding: str = 'round',
) -> _T:
    """Cut a window out of images, frames or volumes."""
    ...

def crop_mirror_normalize(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    fill_values: abc.Sequence[float] | float = [0.0],
    mean: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
    mirror: int | DataNode | TensorList = 0,
    name: str | None = None,
    out_of_bounds_policy: str = 'error',
    output_layout: str = 'CHW',
    pad_output: bool = False,
    preserve: Any = ...,
    rounding: str = 'round',
    scale: float = 1.0,
    shift: float = 0.0,
    std: abc.Sequence[float] | float | DataNode | TensorList = [1.0],
) -> _T:
    """Crop, mirror, normalize and transpose."""
    ...

def debayer(
    image: _T,
    /,
    *,
    blue_position: abc.Sequence[int] | int | DataNode | TensorList,
    algorithm: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Fill in the colors of a Bayer mosaic: from one channel to three."""
    ...

def dl_tensor_python_function(
    *inputs: _T,
    function: Any,
    batch_processing: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    num_outputs: int = 1,
    output_layouts: Any = None,
    preserve: Any = ...,
    synchronize_stream: bool = True,
) -> Any:
    """Call a function on DLPack capsules."""
    ...

def dump_image(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    input_layout: str = 'HWC',
    name: str | None = None,
    preserve: Any = ...,
    suffix: str = '',
) -> _T:
    """Write each image of the batch to a file in the working directory, and pass the batch on unchanged."""
    ...

def element_extract(
    data: _T,
    /,
    *,
    element_map: abc.Sequence[int] | int,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> Any:
    """Take frames out of a sequence, each as an output of its own."""
    ...

def equalize(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Spread the values of images over the full range: histogram equalization, each channel by itself."""
    ...

def erase(
    data: _T,
    /,
    *,
    anchor: abc.Sequence[float] | float | DataNode | TensorList = [],
    axes: abc.Sequence[int] | int = [1, 0],
    axis_names: str = ...,
    bytes_per_sample_hint: Any = ...,
    centered_anchor: bool = False,
    device: str | None = None,
    fill_value: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
    name: str | None = None,
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
    preserve: Any = ...,
    shape: abc.Sequence[float] | float | DataNode | TensorList = [],
) -> _T:
    """Fill rectangular regions."""
    ...

def expand_dims(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    new_axis_names: str = '',
    preserve: Any = ...,
) -> _T:
    """Insert axes of extent 1."""
    ...

def external_source(
    source: Any = None,
    num_outputs: int | None = None,
    *,
    background: bool = False,
    batch: bool | None = True,
    batch_info: bool | None = None,
    blocking: bool | None = None,
    bytes_per_sample_hint: Any = ...,
    cuda_stream: Any = None,
    cycle: Any = None,
    device: str | None = None,
    dtype: Any = None,
    layout: Any = None,
    name: str | None = None,
    ndim: Any = None,
    no_copy: bool | None = None,
    parallel: bool | None = None,
    prefetch_queue_depth: int | None = None,
    preserve: Any = ...,
    repeat_last: bool = False,
    use_copy_kernel: bool | None = None,
) -> Any:
    """Take batches or samples from Python code."""
    ...

def fast_resize_crop_mirror(
    data: _T,
    /,
    *,
    antialias: bool = False,
    bytes_per_sample_hint: Any = ...,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    minibatch_size: int = 32,
    mirror: int | DataNode | TensorList = 0,
    mode: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rounding: str = 'round',
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> _T:
    """Resize, crop and mirror in one pass, without a filter for shrinking unless asked for."""
    ...

def file_reader(
    *,
    bytes_per_sample_hint: Any = ...,
    cache_dir: str | None = None,
    cache_size: int = 10737418240,
    case_sensitive_filter: bool = False,
    device: str | None = None,
    dir_filters: abc.Sequence[str] | str | None = None,
    dont_use_mmap: bool = False,
    file_filters: abc.Sequence[str] | str = ...,
    file_list: str | None = None,
    file_root: str | None = None,
    files: abc.Sequence[str] | str | None = None,
    initial_fill: int = 1024,
    io_concurrency: int = 64,
    io_retries: int = 5,
    io_timeout: float = 30.0,
    labels: abc.Sequence[int] | int | None = None,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    skip_cached_images: bool = False,
    stick_to_shard: bool = False,
    tensor_init_bytes: int = 1048576,
) -> abc.Sequence[DataNode]:
    """Read files and labels."""
    ...

def filter(
    data: _T,
    window: _T,
    fill_value: _T | None = None,
    /,
    *,
    anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1],
    border: str = 'reflect_101',
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    mode: str = 'same',
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Correlate images with a window (which is not flipped)."""
    ...

def flip(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    depthwise: int | DataNode | TensorList = 0,
    device: str | None = None,
    horizontal: int | DataNode | TensorList = 1,
    name: str | None = None,
    preserve: Any = ...,
    vertical: int | DataNode | TensorList = 0,
) -> _T:
    """Reverse axes of images, frames or volumes."""
    ...

def full(
    fill_value: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    layout: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> _T:
    """Return data of a shape, filled with an input."""
    ...

def full_like(
    data_like: _T,
    fill_value: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return data of the shape and type of an input, filled with another."""
    ...

def gaussian_blur(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
    sigma: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
    window_size: abc.Sequence[int] | int | DataNode | TensorList = [0],
) -> _T:
    """Blur with a Gaussian window along every axis but frames and channels."""
    ...

def get_property(
    data: _T,
    /,
    *,
    key: str,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return what is known about each sample, as text: 1D uint8."""
    ...

def grid_mask(
    image: _T,
    /,
    *,
    angle: float | DataNode | TensorList = 0.0,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    ratio: float | DataNode | TensorList = 0.5,
    shift_x: float | DataNode | TensorList = 0.0,
    shift_y: float | DataNode | TensorList = 0.0,
    tile: int | DataNode | TensorList = 100,
) -> _T:
    """Set the squares of a grid to zero."""
    ...

def hsv(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    hue: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    preserve: Any = ...,
    saturation: float | DataNode | TensorList = 1.0,
    value: float | DataNode | TensorList = 1.0,
) -> _T:
    """Turn the hue of RGB images, and scale their saturation and value."""
    ...

def hue(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    hue: float | DataNode | TensorList = 0.0,
    image_type: DALIImageType = DALIImageType.RGB,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Turn the hue of RGB images, as `hsv` does."""
    ...

def image_decoder(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = '',
    device: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    name: str | None = None,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
    use_fast_idct: bool = False,
) -> _T:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes."""
    ...

def image_decoder_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    name: str | None = None,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
    rounding: str = 'round',
    use_fast_idct: bool = False,
) -> _T:
    """Decode images and cut a window out of each."""
    ...

def image_decoder_random_crop(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | torch.dtype = ...,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    name: str | None = None,
    num_attempts: int = 10,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    seed: int = -1,
    use_fast_idct: bool = False,
) -> _T:
    """Decode images and cut a random window out of each."""
    ...

def image_decoder_slice(
    data: _T,
    anchor: _T | None = None,
    extents: _T | None = None,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    axes: abc.Sequence[int] | int | DataNode | TensorList = [1, 0],
    axis_names: str = ...,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DALIDataType | torch.dtype = ...,
    end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    name: str | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    preserve: Any = ...,
    rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    start: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    use_fast_idct: bool = False,
) -> _T:
    """Decode images and cut a slice out of each."""
    ...

def jitter(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | DataNode | TensorList = 1,
    nDegree: int = 2,
    name: str | None = None,
    preserve: Any = ...,
    seed: int = -1,
) -> _T:
    """Move each pixel by random whole numbers of pixels, from ``-(nDegree // 2)`` to ``nDegree // 2``."""
    ...

def jpeg_compression_distortion(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    quality: int | DataNode | TensorList = 50,
) -> _T:
    """Give images the artefacts of JPEG: what comes back after encoding (4:2:0 chroma) and decoding."""
    ...

def laplacian(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    normalized_kernel: bool = False,
    preserve: Any = ...,
    scale: abc.Sequence[float] | float | DataNode | TensorList = [1.0],
    smoothing_size: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    window_size: abc.Sequence[int] | int | DataNode | TensorList = [3],
) -> _T:
    """Sum the second derivatives along every axis but frames and channels."""
    ...

def lookup_table(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    default_value: float = 0.0,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    keys: abc.Sequence[int] | int = [],
    name: str | None = None,
    preserve: Any = ...,
    values: abc.Sequence[float] | float = [],
) -> _T:
    """Replace numbers by those that a table has for them."""
    ...

def mel_filter_bank(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    freq_high: float = 0.0,
    freq_low: float = 0.0,
    mel_formula: str = 'slaney',
    name: str | None = None,
    nfilter: int = 128,
    normalize: bool = True,
    preserve: Any = ...,
    sample_rate: float = 44100.0,
) -> _T:
    """Sum spectra over triangles on the mel scale."""
    ...

def mfcc(
    data: _T,
    /,
    *,
    axis: int = 0,
    bytes_per_sample_hint: Any = ...,
    dct_type: int = 2,
    device: str | None = None,
    lifter: float = 0.0,
    n_mfcc: int = 20,
    name: str | None = None,
    normalize: bool = False,
    preserve: Any = ...,
) -> _T:
    """Take the first coefficients of the cosine transform: of decibels of mel spectra, these are MFCCs."""
    ...

def multi_paste(
    images: _T,
    *others: _T,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    in_anchors: Any | DataNode | TensorList | None = None,
    in_anchors_rel: Any | DataNode | TensorList | None = None,
    in_ids: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    name: str | None = None,
    out_anchors: Any | DataNode | TensorList | None = None,
    out_anchors_rel: Any | DataNode | TensorList | None = None,
    output_size: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    preserve: Any = ...,
    shapes: Any | DataNode | TensorList | None = None,
    shapes_rel: Any | DataNode | TensorList | None = None,
) -> _T:
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before."""
    ...

def mxnet_reader(
    *,
    path: abc.Sequence[str] | str,
    bytes_per_sample_hint: Any = ...,
    cache_dir: str | None = None,
    cache_size: int = 10737418240,
    device: str | None = None,
    dont_use_mmap: bool = False,
    index_path: abc.Sequence[str] | str | None = None,
    initial_fill: int = 1024,
    io_concurrency: int = 64,
    io_retries: int = 5,
    io_timeout: float = 30.0,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    skip_cached_images: bool = False,
    stick_to_shard: bool = False,
    tensor_init_bytes: int = 1048576,
) -> abc.Sequence[DataNode]:
    """Read images and labels of the RecordIO files of MXNet."""
    ...

def nemo_asr_reader(
    *,
    manifest_filepaths: abc.Sequence[str] | str,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dont_use_mmap: bool = False,
    downmix: bool = True,
    dtype: DALIDataType | torch.dtype = ...,
    initial_fill: int = 1024,
    lazy_init: bool = False,
    max_duration: float = 0.0,
    min_duration: float = 0.0,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    quality: float = 50.0,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    read_idxs: bool = False,
    read_sample_rate: bool = True,
    read_text: bool = True,
    sample_rate: float = -1.0,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    skip_cached_images: bool = False,
    stick_to_shard: bool = False,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Read recordings and their texts, as manifests of NeMo list them."""
    ...

def nonsilent_region(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    cutoff_db: float = -60.0,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    reference_power: float | None = None,
    reset_interval: int = 8192,
    window_length: int = 2048,
) -> abc.Sequence[_T]:
    """Find what is not silent: from the first to the last window whose power reaches a cutoff."""
    ...

def normal_distribution(
    shape_like: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    mean: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    preserve: Any = ...,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    stddev: float | DataNode | TensorList = 1.0,
) -> DataNode:
    """Draw numbers from the normal distribution."""
    ...

def normalize(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    batch: bool = False,
    bytes_per_sample_hint: Any = ...,
    ddof: int = 0,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    epsilon: float = 0.0,
    mean: Any | DataNode | TensorList | None = None,
    name: str | None = None,
    preserve: Any = ...,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: Any | DataNode | TensorList | None = None,
) -> _T:
    """Subtract the mean, divide by the standard deviation."""
    ...

def numpy_reader(
    *,
    bytes_per_sample_hint: Any = ...,
    cache_dir: str | None = None,
    cache_header_information: bool = False,
    cache_size: int = 10737418240,
    device: str | None = None,
    dont_use_mmap: bool = False,
    file_filter: str = '*.npy',
    file_list: str | None = None,
    file_root: str | None = None,
    files: abc.Sequence[str] | str | None = None,
    fill_value: float = 0.0,
    initial_fill: int = 1024,
    io_concurrency: int = 64,
    io_retries: int = 5,
    io_timeout: float = 30.0,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    out_of_bounds_policy: str = 'error',
    pad_last_batch: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    register_buffers: bool = True,
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
    skip_cached_images: bool = False,
    stick_to_shard: bool = False,
    tensor_init_bytes: int = 1048576,
    use_o_direct: bool = False,
) -> DataNode:
    """Read arrays that `numpy.save` wrote, whole or a region of each."""
    ...

def one_hot(
    data: _T,
    /,
    *,
    axis: int = -1,
    axis_name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
    preserve: Any = ...,
) -> _T:
    """Encode class numbers by a new axis that is on at the class and off elsewhere."""
    ...

def ones(
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    layout: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> DataNode:
    """Return ones."""
    ...

def ones_like(
    data_like: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return ones in the shape of an input."""
    ...

def optical_flow(
    frames: _T,
    hints: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    enable_external_hints: bool = False,
    enable_temporal_hints: bool = False,
    hint_grid: int = 4,
    image_type: DALIImageType = DALIImageType.RGB,
    name: str | None = None,
    output_grid: int = 4,
    preserve: Any = ...,
    preset: float = 0.0,
) -> _T:
    """Find how far the pixels of each frame move to the next one."""
    ...

def pad(
    data: _T,
    /,
    *,
    align: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    axes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    fill_value: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    preserve: Any = ...,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> _T:
    """Grow samples at their ends, to the largest extent in the batch or to a given shape."""
    ...

def paste(
    image: _T,
    /,
    *,
    fill_value: abc.Sequence[int] | int,
    ratio: float | DataNode | TensorList,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    min_canvas_size: float | DataNode | TensorList = 0.0,
    n_channels: int = 3,
    name: str | None = None,
    paste_x: float | DataNode | TensorList = 0.5,
    paste_y: float | DataNode | TensorList = 0.5,
    preserve: Any = ...,
) -> _T:
    """Paste images on larger canvases."""
    ...

def peek_image_shape(
    data: _T,
    /,
    *,
    adjust_orientation: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    image_type: DALIImageType = DALIImageType.RGB,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Read the shape of encoded images from their headers: ``(H, W, C)``."""
    ...

def per_frame(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    replace: bool = False,
) -> _T:
    """Mark data as one value a frame, for the arguments of operators on sequences."""
    ...

def permute_batch(
    data: _T,
    /,
    *,
    indices: abc.Sequence[int] | int | DataNode | TensorList,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return the samples of the batch in another order."""
    ...

def power_spectrum(
    data: _T,
    /,
    *,
    axis: int = -1,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    nfft: int | None = None,
    power: int = 2,
    preserve: Any = ...,
) -> _T:
    """Transform an axis, and take the squares or the moduli."""
    ...

def preemphasis_filter(
    data: _T,
    /,
    *,
    border: str = 'clamp',
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    preemph_coeff: float | DataNode | TensorList = 0.97,
    preserve: Any = ...,
) -> _T:
    """Subtract from each sample a part of the one before it: ``x[i] - preemph_coeff * x[i - 1]``."""
    ...

def python_function(
    *inputs: _T,
    function: Any,
    batch_processing: bool = False,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    num_outputs: int = 1,
    output_layouts: Any = None,
    preserve: Any = ...,
) -> Any:
    """Call a function on NumPy arrays."""
    ...

def random_bbox_crop(
    boxes: _T,
    labels: _T | None = None,
    /,
    *,
    all_boxes_above_threshold: bool = True,
    allow_no_crop: bool = True,
    aspect_ratio: abc.Sequence[float] | float = [1.0, 1.0],
    bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None,
    bytes_per_sample_hint: Any = ...,
    crop_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    device: str | None = None,
    input_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ltrb: bool = ...,
    name: str | None = None,
    num_attempts: int = 1,
    output_bbox_indices: bool = False,
    preserve: Any = ...,
    quiet: bool = False,
    scaling: abc.Sequence[float] | float = [1.0, 1.0],
    seed: int = -1,
    shape_layout: str | None = None,
    threshold_type: str = 'iou',
    thresholds: abc.Sequence[float] | float = [0.0],
    total_num_attempts: int = -1,
) -> Any:
    """Choose a random window that keeps enough of the boxes in an image, and move the boxes into it."""
    ...

def random_crop_generator(
    shape: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    num_attempts: int = 10,
    preserve: Any = ...,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    seed: int = -1,
) -> abc.Sequence[_T]:
    """Choose a window of random area and aspect ratio."""
    ...

def random_resized_crop(
    data: _T,
    /,
    *,
    size: abc.Sequence[int] | int,
    antialias: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    minibatch_size: int = 32,
    name: str | None = None,
    num_attempts: int = 10,
    preserve: Any = ...,
    random_area: abc.Sequence[float] | float = [0.08, 1.0],
    random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
    seed: int = -1,
    temp_buffer_hint: int = 0,
) -> _T:
    """Cut out a random window and resize it."""
    ...

def reinterpret(
    data: _T,
    shape_input: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    layout: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    src_dims: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> _T:
    """Take the bytes of data as another element type, and shape; see `reshape` for the shape."""
    ...

def reshape(
    data: _T,
    shape_input: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    layout: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    src_dims: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> _T:
    """Give data another shape, or another layout."""
    ...

def resize(
    data: _T,
    /,
    *,
    antialias: bool = True,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    minibatch_size: int = 32,
    mode: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    save_attrs: bool = False,
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> Any:
    """Resize images, frames or volumes."""
    ...

def resize_crop_mirror(
    data: _T,
    /,
    *,
    antialias: bool = True,
    bytes_per_sample_hint: Any = ...,
    crop: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    crop_d: float | DataNode | TensorList = ...,
    crop_h: float | DataNode | TensorList = ...,
    crop_pos_x: float | DataNode | TensorList = 0.5,
    crop_pos_y: float | DataNode | TensorList = 0.5,
    crop_pos_z: float | DataNode | TensorList = 0.5,
    crop_w: float | DataNode | TensorList = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    minibatch_size: int = 32,
    mirror: int | DataNode | TensorList = 0,
    mode: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    resize_longer: float | DataNode | TensorList | None = None,
    resize_shorter: float | DataNode | TensorList | None = None,
    resize_x: float | DataNode | TensorList | None = None,
    resize_y: float | DataNode | TensorList | None = None,
    resize_z: float | DataNode | TensorList | None = None,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rounding: str = 'round',
    size: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> _T:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed."""
    ...

def roi_random_crop(
    data: _T | None = None,
    /,
    *,
    crop_shape: abc.Sequence[int] | int | DataNode | TensorList,
    roi_start: abc.Sequence[int] | int | DataNode | TensorList,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    in_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    name: str | None = None,
    preserve: Any = ...,
    roi_end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    roi_shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    seed: int = -1,
) -> DataNode:
    """Choose where a window lies that shows as much of a region as it can."""
    ...

def rotate(
    data: _T,
    /,
    *,
    angle: float | DataNode | TensorList,
    axis: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    keep_size: bool = False,
    name: str | None = None,
    preserve: Any = ...,
    size: abc.Sequence[float] | float | DataNode | TensorList = [],
) -> _T:
    """Rotate images or frames counter-clockwise around their centre, volumes around an axis."""
    ...

def saturation(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    image_type: DALIImageType = DALIImageType.RGB,
    name: str | None = None,
    preserve: Any = ...,
    saturation: float | DataNode | TensorList = 1.0,
) -> _T:
    """Scale the saturation of RGB images, as `hsv` does."""
    ...

def sequence_reader(
    *,
    file_root: str,
    sequence_length: int,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dont_use_mmap: bool = False,
    image_type: DALIImageType = DALIImageType.RGB,
    initial_fill: int = 1024,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    skip_cached_images: bool = False,
    step: int = 1,
    stick_to_shard: bool = False,
    stride: int = 1,
    tensor_init_bytes: int = 1048576,
) -> DataNode:
    """Read sequences of frames that lie in folders as images, ordered by their names."""
    ...

def sequence_rearrange(
    data: _T,
    /,
    *,
    new_order: abc.Sequence[int] | int | DataNode | TensorList,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Put the frames of a sequence in another order."""
    ...

def shapes(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return the shape, 1D."""
    ...

def slice(
    data: _T,
    anchor: _T | None = None,
    extent: _T | None = None,
    /,
    *,
    axes: abc.Sequence[int] | int | DataNode | TensorList = [1, 0],
    axis_names: str = ...,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    end: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    fill_values: abc.Sequence[float] | float = [0.0],
    name: str | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    out_of_bounds_policy: str = 'error',
    preserve: Any = ...,
    rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    start: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> _T:
    """Cut out a part, given by inputs (anchor and shape) or by arguments (start and end or shape)."""
    ...

def spectrogram(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    center_windows: bool = True,
    device: str | None = None,
    layout: str = 'ft',
    name: str | None = None,
    nfft: int | None = None,
    power: int = 2,
    preserve: Any = ...,
    reflect_padding: bool = True,
    window_fn: abc.Sequence[float] | float | None = None,
    window_length: int = 512,
    window_step: int = 256,
) -> _T:
    """Transform overlapping windows of a signal."""
    ...

def sphere(
    image: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | DataNode | TensorList = 1,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Wrap images on a sphere: distances from the centre are squared, in units of half the longer side."""
    ...

def squeeze(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Drop axes of extent 1."""
    ...

def ssd_random_crop(
    images: _T,
    boxes: _T,
    labels: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    num_attempts: int = 1,
    preserve: Any = ...,
    seed: int = -1,
) -> abc.Sequence[_T]:
    """Crop images at random so that boxes stay in them, as single-shot detectors are trained."""
    ...

def stack(
    first: _T,
    *others: _T,
    axis: int = 0,
    axis_name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Join inputs of one shape along a new axis."""
    ...

def tensor_resize(
    data: _T,
    /,
    *,
    alignment: abc.Sequence[float] | float | DataNode | TensorList = [0.5],
    antialias: bool = True,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    minibatch_size: int = 32,
    mode: str = 'default',
    name: str | None = None,
    preserve: Any = ...,
    roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    roi_relative: bool = False,
    roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    scales: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    size_rounding: str = 'round',
    sizes: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> _T:
    """Resize some or all axes of a tensor."""
    ...

def tfrecord_reader(
    *,
    path: abc.Sequence[str] | str,
    features: Any,
    bytes_per_sample_hint: Any = ...,
    cache_dir: str | None = None,
    cache_size: int = 10737418240,
    device: str | None = None,
    dont_use_mmap: bool = False,
    index_path: abc.Sequence[str] | str | None = None,
    initial_fill: int = 1024,
    io_concurrency: int = 64,
    io_retries: int = 5,
    io_timeout: float = 30.0,
    lazy_init: bool = False,
    name: str | None = None,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    skip_cached_images: bool = False,
    stick_to_shard: bool = False,
    tensor_init_bytes: int = 1048576,
    use_o_direct: bool = False,
    verify: bool = False,
) -> Any:
    """Read features of the records of TFRecord files."""
    ...

def to_decibels(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    cutoff_db: float = -200.0,
    device: str | None = None,
    multiplier: float = 10.0,
    name: str | None = None,
    preserve: Any = ...,
    reference: float | None = None,
) -> _T:
    """Convert to decibels: ``multiplier * log10(max(x / reference, 10 ** (cutoff_db / multiplier)))``."""
    ...

def torch_python_function(
    *inputs: _T,
    function: Any,
    batch_processing: bool = False,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    num_outputs: int = 1,
    output_layouts: Any = None,
    preserve: Any = ...,
) -> Any:
    """Call a function on torch tensors: a function, an ``nn.Module``, a torchvision transform."""
    ...

def transform_translation(
    mtx: _T | None = None,
    /,
    *,
    offset: abc.Sequence[float] | float | DataNode | TensorList,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    reverse_order: bool = False,
) -> DataNode:
    """Make a matrix that moves points."""
    ...

def transpose(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    output_layout: str | None = None,
    perm: abc.Sequence[int] | int | None = None,
    preserve: Any = ...,
    transpose_layout: bool = True,
) -> _T:
    """Permute the axes."""
    ...

def uniform(
    shape_like: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
    range: abc.Sequence[float] | float | DataNode | TensorList = [-1.0, 1.0],
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    values: abc.Sequence[float] | float | DataNode | TensorList | None = None,
) -> DataNode:
    """Draw numbers from a range, or from a list of values, all equally likely."""
    ...

def video_reader(
    *,
    sequence_length: int,
    additional_decode_surfaces: int = 2,
    adjust_orientation: bool = False,
    bytes_per_sample_hint: Any = ...,
    channels: int = 3,
    device: str | None = None,
    dont_use_mmap: bool = False,
    dtype: DALIDataType | torch.dtype = ...,
    enable_frame_num: str = 'none',
    enable_timestamps: bool = False,
    fast: bool = False,
    file_list: str = '',
    file_list_frame_num: bool = False,
    file_list_include_preceding_frame: bool = False,
    file_root: str = '',
    filenames: abc.Sequence[str] | str = [],
    image_type: DALIImageType = DALIImageType.RGB,
    initial_fill: int = 1024,
    labels: abc.Sequence[int] | int | None = None,
    lazy_init: bool = False,
    name: str | None = None,
    normalized: bool = False,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    pad_sequences: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
    seed: int | None = -1,
    shard_id: int = 0,
    shuffle_after_epoch: bool = False,
    shuffle_after_epoch_seed: int | None = None,
    skip_cached_images: bool = False,
    skip_vfr_check: bool = False,
    step: int = -1,
    stick_to_shard: bool = False,
    stride: int = 1,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Read clips of videos by the package av (extra ``video``); see `experimental.readers.video`."""
    ...

def video_reader_resize(
    *,
    sequence_length: int,
    additional_decode_surfaces: int = 2,
    adjust_orientation: bool = False,
    antialias: bool = True,
    bytes_per_sample_hint: Any = ...,
    channels: int = 3,
    device: str | None = None,
    dont_use_mmap: bool = False,
    dtype: DALIDataType | torch.dtype = ...,
    enable_frame_num: str = 'none',
    enable_timestamps: bool = False,
    fast: bool = False,
    file_list: str = '',
    file_list_frame_num: bool = False,
    file_list_include_preceding_frame: bool = False,
    file_root: str = '',
    filenames: abc.Sequence[str] | str = [],
    image_type: DALIImageType = DALIImageType.RGB,
    initial_fill: int = 1024,
    interp_type: DALIInterpType | DataNode | TensorList = DALIInterpType.INTERP_LINEAR,
    labels: abc.Sequence[int] | int | None = None,
    lazy_init: bool = False,
    mag_filter: DALIInterpType | DataNode | TensorList | None = None,
    max_size: abc.Sequence[float] | float | None = None,
    min_filter: DALIInterpType | DataNode | TensorList | None = None,
    minibatch_size: int = 32,
    mode: str | None = None,
    name: str | None = None,
    normalized: bool = False,
    num_shards: int = 1,
    pad_last_batch: bool = False,
    pad_sequences: bool = False,
    prefetch_queue_depth: int = 1,
    preserve: Any = ...,
    random_shuffle: bool = False,
    read_ahead: bool = False,
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
    skip_cached_images: bool = False,
    skip_vfr_check: bool = False,
    step: int = -1,
    stick_to_shard: bool = False,
    stride: int = 1,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
    tensor_init_bytes: int = 1048576,
) -> Any:
    """Read clips of videos, and resize their frames; see `readers.video` and `resize`."""
    ...

def warp_affine(
    data: _T,
    mtx: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = DALIInterpType.INTERP_LINEAR,
    inverse_map: bool = True,
    matrix: abc.Sequence[float] | float | DataNode | TensorList = [],
    name: str | None = None,
    preserve: Any = ...,
    size: abc.Sequence[float] | float | DataNode | TensorList = [],
) -> _T:
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``."""
    ...

def water(
    image: _T,
    /,
    *,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    fill_value: float = 0.0,
    freq_x: float = 0.04908738521234052,
    freq_y: float = 0.04908738521234052,
    interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
    mask: int | DataNode | TensorList = 1,
    name: str | None = None,
    phase_x: float = 0.0,
    phase_y: float = 0.0,
    preserve: Any = ...,
) -> _T:
    """Show images as under moving water."""
    ...

def zeros(
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype = ...,
    layout: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> DataNode:
    """Return zeros."""
    ...

def zeros_like(
    data_like: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return zeros in the shape of an input."""
    ...
