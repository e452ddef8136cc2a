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
from ._compose import Compose as Compose
from ._compose import cpu_ops as cpu_ops
from ._compose import gpu_ops as gpu_ops
from ._compose import mixed_ops as mixed_ops

class AudioDecoder:
    """Decode audio: WAV by itself, FLAC, Ogg, MP3 and others by the package soundfile (extra ``audio``)."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        downmix: bool = False,
        dtype: DALIDataType | torch.dtype = ...,
        name: str | None = None,
        preserve: Any = ...,
        quality: float = 50.0,
        sample_rate: float | DataNode | TensorList = 0.0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class AudioResample:
    """Resample a signal, by a sinc under a Hann window."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BatchPermutation:
    """Draw a permutation of the samples of the batch: one index a sample, int32, for `permute_batch`."""
    def __init__(
        self,
        *,
        allow_repetitions: bool = False,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        no_fixed_points: bool = False,
        preserve: Any = ...,
        seed: int = -1,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BbFlip:
    """Flip boxes along with their image."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        horizontal: int | DataNode | TensorList = 1,
        ltrb: bool = False,
        name: str | None = None,
        preserve: Any = ...,
        vertical: int | DataNode | TensorList = 0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BBoxPaste:
    """Move boxes along with the image that `paste` puts on a canvas."""
    def __init__(
        self,
        *,
        ratio: float | DataNode | TensorList,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        ltrb: bool = False,
        name: str | None = None,
        paste_x: float | DataNode | TensorList = 0.5,
        paste_y: float | DataNode | TensorList = 0.5,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BBoxRotate:
    """Rotate boxes along with the image that `rotate` turns."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BoxEncoder:
    """Assign boxes to the anchors of a single-shot detector."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Brightness:
    """Scale the brightness of images, then shift it."""
    def __init__(
        self,
        *,
        brightness: float | DataNode | TensorList = 1.0,
        brightness_shift: float | DataNode | TensorList = 0.0,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BrightnessContrast:
    """Scale the contrast of images around a centre, then scale and shift their brightness."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Caffe2Reader:
    """Read the tensors of the LMDB databases of Caffe2, in the order of their keys."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CaffeReader:
    """Read images and labels of the LMDB databases of Caffe, in the order of their keys."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Cast:
    """Convert to another element type."""
    def __init__(
        self,
        *,
        dtype: DALIDataType | torch.dtype,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CastLike:
    """Convert to the element type of another input; see `cast`."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Cat:
    """Join inputs along an axis."""
    def __init__(
        self,
        *,
        axis: int = 0,
        axis_name: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Clahe:
    """Spread the values of an image tile by tile, with limited contrast (CLAHE)."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class COCOReader:
    """Read images with boxes, labels and masks of COCO."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CoinFlip:
    """Draw 1 with a probability, otherwise 0."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
        probability: float | DataNode | TensorList = 0.5,
        seed: int = -1,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ColorSpaceConversion:
    """Convert between RGB, BGR, YCbCr (BT.601, studio range) and GRAY."""
    def __init__(
        self,
        *,
        image_type: DALIImageType,
        output_type: DALIImageType,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ColorTwist:
    """Turn hue and scale saturation, then contrast and brightness, of RGB images in one step."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Constant:
    """Return the same data for every sample."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Contrast:
    """Scale the contrast of images around a centre: ``out = center + contrast * (in - center)``."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        contrast: float | DataNode | TensorList = 1.0,
        contrast_center: float | DataNode | TensorList | None = None,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CoordFlip:
    """Mirror points: ``out = 2 center - in`` on the axes that are flipped."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CoordTransform:
    """Transform points: ``out = M in + T`` on the last axis."""
    def __init__(
        self,
        *,
        M: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        MT: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        T: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Copy:
    """Copy."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Crop:
    """Cut a window out of images, frames or volumes."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CropMirrorNormalize:
    """Crop, mirror, normalize and transpose."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Debayer:
    """Fill in the colors of a Bayer mosaic: from one channel to three."""
    def __init__(
        self,
        *,
        blue_position: abc.Sequence[int] | int | DataNode | TensorList,
        algorithm: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class DLTensorPythonFunction:
    """Call a function on DLPack capsules."""
    def __init__(
        self,
        function: Any,
        num_outputs: int = 1,
        device: str | None = None,
        *,
        batch_processing: bool = True,
        bytes_per_sample_hint: Any = ...,
        name: str | None = None,
        output_layouts: Any = None,
        preserve: Any = ...,
        synchronize_stream: bool = True,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class DumpImage:
    """Write each image of the batch to a file in the working directory, and pass the batch on unchanged."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        input_layout: str = 'HWC',
        name: str | None = None,
        preserve: Any = ...,
        suffix: str = '',
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ElementExtract:
    """Take frames out of a sequence, each as an output of its own."""
    def __init__(
        self,
        *,
        element_map: abc.Sequence[int] | int,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Equalize:
    """Spread the values of images over the full range: histogram equalization, each channel by itself."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Erase:
    """Fill rectangular regions."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ExpandDims:
    """Insert axes of extent 1."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        new_axis_names: str = '',
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ExternalSource:
    """Take batches or samples from Python code."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class FastResizeCropMirror:
    """Resize, crop and mirror in one pass, without a filter for shrinking unless asked for."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class FileReader:
    """Read files and labels."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Filter:
    """Correlate images with a window (which is not flipped)."""
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = [-1],
        border: str = 'reflect_101',
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        mode: str = 'same',
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Flip:
    """Reverse axes of images, frames or volumes."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        depthwise: int | DataNode | TensorList = 0,
        device: str | None = None,
        horizontal: int | DataNode | TensorList = 1,
        name: str | None = None,
        preserve: Any = ...,
        vertical: int | DataNode | TensorList = 0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Full:
    """Return data of a shape, filled with an input."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        layout: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class FullLike:
    """Return data of the shape and type of an input, filled with another."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class GaussianBlur:
    """Blur with a Gaussian window along every axis but frames and channels."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
        sigma: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
        window_size: abc.Sequence[int] | int | DataNode | TensorList = [0],
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class GetProperty:
    """Return what is known about each sample, as text: 1D uint8."""
    def __init__(
        self,
        *,
        key: str,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class GridMask:
    """Set the squares of a grid to zero."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Hsv:
    """Turn the hue of RGB images, and scale their saturation and value."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        hue: float | DataNode | TensorList = 0.0,
        name: str | None = None,
        preserve: Any = ...,
        saturation: float | DataNode | TensorList = 1.0,
        value: float | DataNode | TensorList = 1.0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Hue:
    """Turn the hue of RGB images, as `hsv` does."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        hue: float | DataNode | TensorList = 0.0,
        image_type: DALIImageType = DALIImageType.RGB,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ImageDecoder:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM, GIF, AVIF ...; the format is found by the first bytes."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ImageDecoderCrop:
    """Decode images and cut a window out of each."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ImageDecoderRandomCrop:
    """Decode images and cut a random window out of each."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ImageDecoderSlice:
    """Decode images and cut a slice out of each."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Jitter:
    """Move each pixel by random whole numbers of pixels, from ``-(nDegree // 2)`` to ``nDegree // 2``."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class JpegCompressionDistortion:
    """Give images the artefacts of JPEG: what comes back after encoding (4:2:0 chroma) and decoding."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        quality: int | DataNode | TensorList = 50,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Laplacian:
    """Sum the second derivatives along every axis but frames and channels."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class LookupTable:
    """Replace numbers by those that a table has for them."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        default_value: float = 0.0,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        keys: abc.Sequence[int] | int = [],
        name: str | None = None,
        preserve: Any = ...,
        values: abc.Sequence[float] | float = [],
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MelFilterBank:
    """Sum spectra over triangles on the mel scale."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MFCC:
    """Take the first coefficients of the cosine transform: of decibels of mel spectra, these are MFCCs."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MultiPaste:
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before."""
    def __init__(
        self,
        *,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MXNetReader:
    """Read images and labels of the RecordIO files of MXNet."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class NemoAsrReader:
    """Read recordings and their texts, as manifests of NeMo list them."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class NonsilentRegion:
    """Find what is not silent: from the first to the last window whose power reaches a cutoff."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        cutoff_db: float = -60.0,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        reference_power: float | None = None,
        reset_interval: int = 8192,
        window_length: int = 2048,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class NormalDistribution:
    """Draw numbers from the normal distribution."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Normalize:
    """Subtract the mean, divide by the standard deviation."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class NumpyReader:
    """Read arrays that `numpy.save` wrote, whole or a region of each."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class OneHot:
    """Encode class numbers by a new axis that is on at the class and off elsewhere."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Ones:
    """Return ones."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        layout: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class OnesLike:
    """Return ones in the shape of an input."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class OpticalFlow:
    """Find how far the pixels of each frame move to the next one."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Pad:
    """Grow samples at their ends, to the largest extent in the batch or to a given shape."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Paste:
    """Paste images on larger canvases."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PeekImageShape:
    """Read the shape of encoded images from their headers: ``(H, W, C)``."""
    def __init__(
        self,
        *,
        adjust_orientation: bool = True,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        image_type: DALIImageType = DALIImageType.RGB,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PerFrame:
    """Mark data as one value a frame, for the arguments of operators on sequences."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        replace: bool = False,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PermuteBatch:
    """Return the samples of the batch in another order."""
    def __init__(
        self,
        *,
        indices: abc.Sequence[int] | int | DataNode | TensorList,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PowerSpectrum:
    """Transform an axis, and take the squares or the moduli."""
    def __init__(
        self,
        *,
        axis: int = -1,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        nfft: int | None = None,
        power: int = 2,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PreemphasisFilter:
    """Subtract from each sample a part of the one before it: ``x[i] - preemph_coeff * x[i - 1]``."""
    def __init__(
        self,
        *,
        border: str = 'clamp',
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        name: str | None = None,
        preemph_coeff: float | DataNode | TensorList = 0.97,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PythonFunction:
    """Call a function on NumPy arrays."""
    def __init__(
        self,
        function: Any,
        num_outputs: int = 1,
        device: str | None = None,
        batch_processing: bool = False,
        *,
        bytes_per_sample_hint: Any = ...,
        name: str | None = None,
        output_layouts: Any = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class RandomBBoxCrop:
    """Choose a random window that keeps enough of the boxes in an image, and move the boxes into it."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class RandomCropGenerator:
    """Choose a window of random area and aspect ratio."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        num_attempts: int = 10,
        preserve: Any = ...,
        random_area: abc.Sequence[float] | float = [0.08, 1.0],
        random_aspect_ratio: abc.Sequence[float] | float = [0.75, 1.3333333333333333],
        seed: int = -1,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class RandomResizedCrop:
    """Cut out a random window and resize it."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Reinterpret:
    """Take the bytes of data as another element type, and shape; see `reshape` for the shape."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Reshape:
    """Give data another shape, or another layout."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        layout: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
        src_dims: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Resize:
    """Resize images, frames or volumes."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ResizeCropMirror:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ROIRandomCrop:
    """Choose where a window lies that shows as much of a region as it can."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Rotate:
    """Rotate images or frames counter-clockwise around their centre, volumes around an axis."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Saturation:
    """Scale the saturation of RGB images, as `hsv` does."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        image_type: DALIImageType = DALIImageType.RGB,
        name: str | None = None,
        preserve: Any = ...,
        saturation: float | DataNode | TensorList = 1.0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class SequenceReader:
    """Read sequences of frames that lie in folders as images, ordered by their names."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class SequenceRearrange:
    """Put the frames of a sequence in another order."""
    def __init__(
        self,
        *,
        new_order: abc.Sequence[int] | int | DataNode | TensorList,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Shapes:
    """Return the shape, 1D."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Slice:
    """Cut out a part, given by inputs (anchor and shape) or by arguments (start and end or shape)."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Spectrogram:
    """Transform overlapping windows of a signal."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Sphere:
    """Wrap images on a sphere: distances from the centre are squared, in units of half the longer side."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        fill_value: float = 0.0,
        interp_type: DALIInterpType = DALIInterpType.INTERP_NN,
        mask: int | DataNode | TensorList = 1,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Squeeze:
    """Drop axes of extent 1."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class SSDRandomCrop:
    """Crop images at random so that boxes stay in them, as single-shot detectors are trained."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        num_attempts: int = 1,
        preserve: Any = ...,
        seed: int = -1,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Stack:
    """Join inputs of one shape along a new axis."""
    def __init__(
        self,
        *,
        axis: int = 0,
        axis_name: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TensorResize:
    """Resize some or all axes of a tensor."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TFRecordReader:
    """Read features of the records of TFRecord files."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ToDecibels:
    """Convert to decibels: ``multiplier * log10(max(x / reference, 10 ** (cutoff_db / multiplier)))``."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        cutoff_db: float = -200.0,
        device: str | None = None,
        multiplier: float = 10.0,
        name: str | None = None,
        preserve: Any = ...,
        reference: float | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TorchPythonFunction:
    """Call a function on torch tensors: a function, an ``nn.Module``, a torchvision transform."""
    def __init__(
        self,
        function: Any,
        num_outputs: int = 1,
        device: str | None = None,
        batch_processing: bool = False,
        *,
        bytes_per_sample_hint: Any = ...,
        name: str | None = None,
        output_layouts: Any = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TransformTranslation:
    """Make a matrix that moves points."""
    def __init__(
        self,
        *,
        offset: abc.Sequence[float] | float | DataNode | TensorList,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        reverse_order: bool = False,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Transpose:
    """Permute the axes."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        output_layout: str | None = None,
        perm: abc.Sequence[int] | int | None = None,
        preserve: Any = ...,
        transpose_layout: bool = True,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Uniform:
    """Draw numbers from a range, or from a list of values, all equally likely."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class VideoReader:
    """Read clips of videos by the package av (extra ``video``); see `experimental.readers.video`."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class VideoReaderResize:
    """Read clips of videos, and resize their frames; see `readers.video` and `resize`."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class WarpAffine:
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Water:
    """Show images as under moving water."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Zeros:
    """Return zeros."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        layout: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ZerosLike:
    """Return zeros in the shape of an input."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
