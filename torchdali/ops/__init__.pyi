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

class BatchPermutation:
    """Draw a permutation of the samples of the batch: one index a sample, int32, for `permute_batch`."""
    def __init__(
        self,
        *,
        allow_repetitions: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        no_fixed_points: bool = ...,
        preserve: Any = ...,
        seed: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BbFlip:
    """Flip boxes along with their image."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        horizontal: int | DataNode | TensorList = ...,
        ltrb: bool = ...,
        name: str | None = None,
        preserve: Any = ...,
        vertical: int | DataNode | TensorList = ...,
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
        ltrb: bool = ...,
        name: str | None = None,
        paste_x: float | DataNode | TensorList = ...,
        paste_y: float | DataNode | TensorList = ...,
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
        bbox_layout: str = ...,
        bbox_normalized: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        keep_size: bool = ...,
        mode: str = ...,
        name: str | None = None,
        preserve: Any = ...,
        remove_threshold: float = ...,
        shape_layout: str = ...,
        size: abc.Sequence[float] | float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BoxEncoder:
    """Assign boxes to the anchors of a single-shot detector."""
    def __init__(
        self,
        *,
        anchors: abc.Sequence[float] | float,
        bytes_per_sample_hint: Any = ...,
        criteria: float = ...,
        device: str | None = None,
        means: abc.Sequence[float] | float = ...,
        name: str | None = None,
        offset: bool = ...,
        preserve: Any = ...,
        scale: float = ...,
        stds: abc.Sequence[float] | float = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Brightness:
    """Scale the brightness of images, then shift it."""
    def __init__(
        self,
        *,
        brightness: float | DataNode | TensorList = ...,
        brightness_shift: float | DataNode | TensorList = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class BrightnessContrast:
    """Scale the contrast of images around a centre, then scale and shift their brightness."""
    def __init__(
        self,
        *,
        brightness: float | DataNode | TensorList = ...,
        brightness_shift: float | DataNode | TensorList = ...,
        bytes_per_sample_hint: Any = ...,
        contrast: float | DataNode | TensorList = ...,
        contrast_center: float | DataNode | TensorList | None = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        name: str | None = None,
        preserve: Any = ...,
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
        axis: int = ...,
        axis_name: str | None = ...,
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
        bins: int = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        luma_only: bool = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CoinFlip:
    """Draw 1 with a probability, otherwise 0."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        probability: float | DataNode | TensorList = ...,
        seed: int = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
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
        brightness: float | DataNode | TensorList = ...,
        bytes_per_sample_hint: Any = ...,
        contrast: float | DataNode | TensorList = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        hue: float | DataNode | TensorList = ...,
        image_type: DALIImageType = ...,
        name: str | None = None,
        preserve: Any = ...,
        saturation: float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Constant:
    """Return the same data for every sample."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        fdata: abc.Sequence[float] | float | None = ...,
        idata: abc.Sequence[int] | int | None = ...,
        layout: str = ...,
        name: str | None = None,
        preserve: Any = ...,
        shape: abc.Sequence[int] | int | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Contrast:
    """Scale the contrast of images around a centre: ``out = center + contrast * (in - center)``."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        contrast: float | DataNode | TensorList = ...,
        contrast_center: float | DataNode | TensorList | None = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
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
        center_x: float | DataNode | TensorList = ...,
        center_y: float | DataNode | TensorList = ...,
        center_z: float | DataNode | TensorList = ...,
        device: str | None = None,
        flip_x: int | DataNode | TensorList = ...,
        flip_y: int | DataNode | TensorList = ...,
        flip_z: int | DataNode | TensorList = ...,
        layout: str = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CoordTransform:
    """Transform points: ``out = M in + T`` on the last axis."""
    def __init__(
        self,
        *,
        M: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        MT: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        T: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
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
        crop: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        crop_d: float | DataNode | TensorList = ...,
        crop_h: float | DataNode | TensorList = ...,
        crop_pos_x: float | DataNode | TensorList = ...,
        crop_pos_y: float | DataNode | TensorList = ...,
        crop_pos_z: float | DataNode | TensorList = ...,
        crop_w: float | DataNode | TensorList = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        fill_values: abc.Sequence[float] | float = ...,
        name: str | None = None,
        out_of_bounds_policy: str = ...,
        preserve: Any = ...,
        rounding: str = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CropMirrorNormalize:
    """Crop, mirror, normalise and transpose."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        crop: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        crop_d: float | DataNode | TensorList = ...,
        crop_h: float | DataNode | TensorList = ...,
        crop_pos_x: float | DataNode | TensorList = ...,
        crop_pos_y: float | DataNode | TensorList = ...,
        crop_pos_z: float | DataNode | TensorList = ...,
        crop_w: float | DataNode | TensorList = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        fill_values: abc.Sequence[float] | float = ...,
        mean: abc.Sequence[float] | float | DataNode | TensorList = ...,
        mirror: int | DataNode | TensorList = ...,
        name: str | None = None,
        out_of_bounds_policy: str = ...,
        output_layout: str = ...,
        pad_output: bool = ...,
        preserve: Any = ...,
        rounding: str = ...,
        scale: float = ...,
        shift: float = ...,
        std: abc.Sequence[float] | float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Debayer:
    """Fill in the colours of a Bayer mosaic: from one channel to three."""
    def __init__(
        self,
        *,
        blue_position: abc.Sequence[int] | int | DataNode | TensorList,
        algorithm: str | None = ...,
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
        *,
        function: Any,
        batch_processing: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        num_outputs: int = ...,
        output_layouts: Any = ...,
        preserve: Any = ...,
        synchronize_stream: bool = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class DumpImage:
    """Write each image of the batch to a file in the working directory, and pass the batch on unchanged."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        input_layout: str = ...,
        name: str | None = None,
        preserve: Any = ...,
        suffix: str = ...,
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
    """Spread the values of images over the full range: histogram equalisation, each channel by itself."""
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
        anchor: abc.Sequence[float] | float | DataNode | TensorList = ...,
        axes: abc.Sequence[int] | int = ...,
        axis_names: str = ...,
        bytes_per_sample_hint: Any = ...,
        centered_anchor: bool = ...,
        device: str | None = None,
        fill_value: abc.Sequence[float] | float | DataNode | TensorList = ...,
        name: str | None = None,
        normalized: bool = ...,
        normalized_anchor: bool = ...,
        normalized_shape: bool = ...,
        preserve: Any = ...,
        shape: abc.Sequence[float] | float | DataNode | TensorList = ...,
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
        new_axis_names: str = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ExternalSource:
    """Take batches or samples from Python code."""
    def __init__(
        self,
        source: Any = ...,
        num_outputs: int | None = ...,
        *,
        batch: bool | None = ...,
        batch_info: bool | None = ...,
        blocking: bool | None = ...,
        bytes_per_sample_hint: Any = ...,
        cuda_stream: Any = ...,
        cycle: Any = ...,
        device: str | None = None,
        dtype: Any = ...,
        layout: Any = ...,
        name: str | None = None,
        ndim: Any = ...,
        no_copy: bool | None = ...,
        parallel: bool | None = ...,
        prefetch_queue_depth: int | None = ...,
        preserve: Any = ...,
        repeat_last: bool = ...,
        use_copy_kernel: bool | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class FastResizeCropMirror:
    """Resize, crop and mirror in one pass, without a filter for shrinking unless asked for."""
    def __init__(
        self,
        *,
        antialias: bool = ...,
        bytes_per_sample_hint: Any = ...,
        crop: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        crop_d: float | DataNode | TensorList = ...,
        crop_h: float | DataNode | TensorList = ...,
        crop_pos_x: float | DataNode | TensorList = ...,
        crop_pos_y: float | DataNode | TensorList = ...,
        crop_pos_z: float | DataNode | TensorList = ...,
        crop_w: float | DataNode | TensorList = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        interp_type: DALIInterpType | DataNode | TensorList = ...,
        mag_filter: DALIInterpType | DataNode | TensorList | None = ...,
        max_size: abc.Sequence[float] | float | None = ...,
        min_filter: DALIInterpType | DataNode | TensorList | None = ...,
        minibatch_size: int = ...,
        mirror: int | DataNode | TensorList = ...,
        mode: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        resize_longer: float | DataNode | TensorList | None = ...,
        resize_shorter: float | DataNode | TensorList | None = ...,
        resize_x: float | DataNode | TensorList | None = ...,
        resize_y: float | DataNode | TensorList | None = ...,
        resize_z: float | DataNode | TensorList | None = ...,
        roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        roi_relative: bool = ...,
        roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        rounding: str = ...,
        size: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        subpixel_scale: bool = ...,
        temp_buffer_hint: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class FileReader:
    """Read files and labels."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        case_sensitive_filter: bool = ...,
        device: str | None = None,
        dir_filters: abc.Sequence[str] | str | None = ...,
        dont_use_mmap: bool = ...,
        file_filters: abc.Sequence[str] | str = ...,
        file_list: str | None = ...,
        file_root: str | None = ...,
        files: abc.Sequence[str] | str | None = ...,
        initial_fill: int = ...,
        labels: abc.Sequence[int] | int | None = ...,
        lazy_init: bool = ...,
        name: str | None = None,
        num_shards: int = ...,
        pad_last_batch: bool = ...,
        prefetch_queue_depth: int = ...,
        preserve: Any = ...,
        random_shuffle: bool = ...,
        read_ahead: bool = ...,
        seed: int | None = ...,
        shard_id: int = ...,
        shuffle_after_epoch: bool = ...,
        shuffle_after_epoch_seed: int | None = ...,
        skip_cached_images: bool = ...,
        stick_to_shard: bool = ...,
        tensor_init_bytes: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Filter:
    """Correlate images with a window (which is not flipped)."""
    def __init__(
        self,
        *,
        anchor: abc.Sequence[int] | int | DataNode | TensorList = ...,
        border: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        mode: str = ...,
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
        depthwise: int | DataNode | TensorList = ...,
        device: str | None = None,
        horizontal: int | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
        vertical: int | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Full:
    """Return data of a shape, filled with an input."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        layout: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
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
        dtype: DALIDataType | torch.dtype | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        sigma: abc.Sequence[float] | float | DataNode | TensorList = ...,
        window_size: abc.Sequence[int] | int | DataNode | TensorList = ...,
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
        angle: float | DataNode | TensorList = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        ratio: float | DataNode | TensorList = ...,
        shift_x: float | DataNode | TensorList = ...,
        shift_y: float | DataNode | TensorList = ...,
        tile: int | DataNode | TensorList = ...,
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
        hue: float | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
        saturation: float | DataNode | TensorList = ...,
        value: float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Hue:
    """Turn the hue of RGB images, as `hsv` does."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        hue: float | DataNode | TensorList = ...,
        image_type: DALIImageType = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ImageDecoder:
    """Decode images: JPEG, PNG, BMP, TIFF, WebP, JPEG 2000, PNM; the format is found by the first bytes."""
    def __init__(
        self,
        *,
        adjust_orientation: bool = ...,
        affine: bool = ...,
        bytes_per_sample_hint: Any = ...,
        cache_batch_copy: bool = ...,
        cache_debug: bool = ...,
        cache_size: int = ...,
        cache_threshold: int = ...,
        cache_type: str = ...,
        device: str | None = None,
        device_memory_padding: int = ...,
        device_memory_padding_jpeg2k: int = ...,
        dtype: DALIDataType | torch.dtype = ...,
        host_memory_padding: int = ...,
        host_memory_padding_jpeg2k: int = ...,
        hw_decoder_load: float = ...,
        hybrid_huffman_threshold: int = ...,
        jpeg_fancy_upsampling: bool = ...,
        name: str | None = None,
        output_type: DALIImageType = ...,
        preallocate_height_hint: int = ...,
        preallocate_width_hint: int = ...,
        preserve: Any = ...,
        use_fast_idct: bool = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ImageDecoderCrop:
    """Decode images and cut a window out of each."""
    def __init__(
        self,
        *,
        adjust_orientation: bool = ...,
        affine: bool = ...,
        bytes_per_sample_hint: Any = ...,
        crop: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        crop_d: float | DataNode | TensorList = ...,
        crop_h: float | DataNode | TensorList = ...,
        crop_pos_x: float | DataNode | TensorList = ...,
        crop_pos_y: float | DataNode | TensorList = ...,
        crop_pos_z: float | DataNode | TensorList = ...,
        crop_w: float | DataNode | TensorList = ...,
        device: str | None = None,
        device_memory_padding: int = ...,
        device_memory_padding_jpeg2k: int = ...,
        dtype: DALIDataType | torch.dtype = ...,
        host_memory_padding: int = ...,
        host_memory_padding_jpeg2k: int = ...,
        hw_decoder_load: float = ...,
        hybrid_huffman_threshold: int = ...,
        jpeg_fancy_upsampling: bool = ...,
        name: str | None = None,
        output_type: DALIImageType = ...,
        preallocate_height_hint: int = ...,
        preallocate_width_hint: int = ...,
        preserve: Any = ...,
        rounding: str = ...,
        use_fast_idct: bool = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ImageDecoderRandomCrop:
    """Decode images and cut a random window out of each."""
    def __init__(
        self,
        *,
        adjust_orientation: bool = ...,
        affine: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        device_memory_padding: int = ...,
        device_memory_padding_jpeg2k: int = ...,
        dtype: DALIDataType | torch.dtype = ...,
        host_memory_padding: int = ...,
        host_memory_padding_jpeg2k: int = ...,
        hw_decoder_load: float = ...,
        hybrid_huffman_threshold: int = ...,
        jpeg_fancy_upsampling: bool = ...,
        name: str | None = None,
        num_attempts: int = ...,
        output_type: DALIImageType = ...,
        preallocate_height_hint: int = ...,
        preallocate_width_hint: int = ...,
        preserve: Any = ...,
        random_area: abc.Sequence[float] | float = ...,
        random_aspect_ratio: abc.Sequence[float] | float = ...,
        seed: int = ...,
        use_fast_idct: bool = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ImageDecoderSlice:
    """Decode images and cut a slice out of each."""
    def __init__(
        self,
        *,
        adjust_orientation: bool = ...,
        affine: bool = ...,
        axes: abc.Sequence[int] | int | DataNode | TensorList = ...,
        axis_names: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        device_memory_padding: int = ...,
        device_memory_padding_jpeg2k: int = ...,
        dtype: DALIDataType | torch.dtype = ...,
        end: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        host_memory_padding: int = ...,
        host_memory_padding_jpeg2k: int = ...,
        hw_decoder_load: float = ...,
        hybrid_huffman_threshold: int = ...,
        jpeg_fancy_upsampling: bool = ...,
        name: str | None = None,
        normalized_anchor: bool = ...,
        normalized_shape: bool = ...,
        output_type: DALIImageType = ...,
        preallocate_height_hint: int = ...,
        preallocate_width_hint: int = ...,
        preserve: Any = ...,
        rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        start: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        use_fast_idct: bool = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Jitter:
    """Move each pixel by random whole numbers of pixels, from ``-(nDegree // 2)`` to ``nDegree // 2``."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        fill_value: float = ...,
        interp_type: DALIInterpType = ...,
        mask: int | DataNode | TensorList = ...,
        nDegree: int = ...,
        name: str | None = None,
        preserve: Any = ...,
        seed: int = ...,
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
        quality: int | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Laplacian:
    """Sum the second derivatives along every axis but frames and channels."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        name: str | None = None,
        normalized_kernel: bool = ...,
        preserve: Any = ...,
        scale: abc.Sequence[float] | float | DataNode | TensorList = ...,
        smoothing_size: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        window_size: abc.Sequence[int] | int | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class LookupTable:
    """Replace numbers by those that a table has for them."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        default_value: float = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        keys: abc.Sequence[int] | int = ...,
        name: str | None = None,
        preserve: Any = ...,
        values: abc.Sequence[float] | float = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MultiPaste:
    """Paste regions of several images on a canvas of zeros; what comes later covers what came before."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        in_anchors: Any | DataNode | TensorList | None = ...,
        in_anchors_rel: Any | DataNode | TensorList | None = ...,
        in_ids: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        name: str | None = None,
        out_anchors: Any | DataNode | TensorList | None = ...,
        out_anchors_rel: Any | DataNode | TensorList | None = ...,
        output_size: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        preserve: Any = ...,
        shapes: Any | DataNode | TensorList | None = ...,
        shapes_rel: Any | DataNode | TensorList | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class NormalDistribution:
    """Draw numbers from the normal distribution."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        mean: float | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
        seed: int = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        stddev: float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Normalize:
    """Subtract the mean, divide by the standard deviation."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = ...,
        axis_names: str | None = ...,
        batch: bool = ...,
        bytes_per_sample_hint: Any = ...,
        ddof: int = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        epsilon: float = ...,
        mean: Any | DataNode | TensorList | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        scale: float = ...,
        shift: float = ...,
        stddev: Any | DataNode | TensorList | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class OneHot:
    """Encode class numbers by a new axis that is on at the class and off elsewhere."""
    def __init__(
        self,
        *,
        axis: int = ...,
        axis_name: str | None = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        name: str | None = None,
        num_classes: int = ...,
        off_value: float = ...,
        on_value: float = ...,
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
        layout: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class OnesLike:
    """Return ones in the shape of an input."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
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
        enable_external_hints: bool = ...,
        enable_temporal_hints: bool = ...,
        hint_grid: int = ...,
        image_type: DALIImageType = ...,
        name: str | None = None,
        output_grid: int = ...,
        preserve: Any = ...,
        preset: float = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Pad:
    """Grow samples at their ends, to the largest extent in the batch or to a given shape."""
    def __init__(
        self,
        *,
        align: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        axes: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        axis_names: str | None = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        fill_value: float | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
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
        min_canvas_size: float | DataNode | TensorList = ...,
        n_channels: int = ...,
        name: str | None = None,
        paste_x: float | DataNode | TensorList = ...,
        paste_y: float | DataNode | TensorList = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class PeekImageShape:
    """Read the shape of encoded images from their headers: ``(H, W, C)``."""
    def __init__(
        self,
        *,
        adjust_orientation: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype = ...,
        image_type: DALIImageType = ...,
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
        replace: bool = ...,
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

class PythonFunction:
    """Call a function on NumPy arrays."""
    def __init__(
        self,
        *,
        function: Any,
        batch_processing: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        num_outputs: int = ...,
        output_layouts: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class RandomBBoxCrop:
    """Choose a random window that keeps enough of the boxes in an image, and move the boxes into it."""
    def __init__(
        self,
        *,
        all_boxes_above_threshold: bool = ...,
        allow_no_crop: bool = ...,
        aspect_ratio: abc.Sequence[float] | float = ...,
        bbox_layout: str | None = ...,
        bbox_prune_threshold: float | None = ...,
        bytes_per_sample_hint: Any = ...,
        crop_shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        device: str | None = None,
        input_shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        ltrb: bool = ...,
        name: str | None = None,
        num_attempts: int = ...,
        output_bbox_indices: bool = ...,
        preserve: Any = ...,
        quiet: bool = ...,
        scaling: abc.Sequence[float] | float = ...,
        seed: int = ...,
        shape_layout: str | None = ...,
        threshold_type: str = ...,
        thresholds: abc.Sequence[float] | float = ...,
        total_num_attempts: int = ...,
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
        num_attempts: int = ...,
        preserve: Any = ...,
        random_area: abc.Sequence[float] | float = ...,
        random_aspect_ratio: abc.Sequence[float] | float = ...,
        seed: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class RandomResizedCrop:
    """Cut out a random window and resize it."""
    def __init__(
        self,
        *,
        size: abc.Sequence[int] | int,
        antialias: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        interp_type: DALIInterpType | DataNode | TensorList = ...,
        mag_filter: DALIInterpType | DataNode | TensorList | None = ...,
        min_filter: DALIInterpType | DataNode | TensorList | None = ...,
        minibatch_size: int = ...,
        name: str | None = None,
        num_attempts: int = ...,
        preserve: Any = ...,
        random_area: abc.Sequence[float] | float = ...,
        random_aspect_ratio: abc.Sequence[float] | float = ...,
        seed: int = ...,
        temp_buffer_hint: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Reinterpret:
    """Take the bytes of data as another element type, and shape; see `reshape` for the shape."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        layout: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        src_dims: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Reshape:
    """Give data another shape, or another layout."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        layout: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        src_dims: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Resize:
    """Resize images, frames or volumes."""
    def __init__(
        self,
        *,
        antialias: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        interp_type: DALIInterpType | DataNode | TensorList = ...,
        mag_filter: DALIInterpType | DataNode | TensorList | None = ...,
        max_size: abc.Sequence[float] | float | None = ...,
        min_filter: DALIInterpType | DataNode | TensorList | None = ...,
        minibatch_size: int = ...,
        mode: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        resize_longer: float | DataNode | TensorList | None = ...,
        resize_shorter: float | DataNode | TensorList | None = ...,
        resize_x: float | DataNode | TensorList | None = ...,
        resize_y: float | DataNode | TensorList | None = ...,
        resize_z: float | DataNode | TensorList | None = ...,
        roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        roi_relative: bool = ...,
        roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        save_attrs: bool = ...,
        size: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        subpixel_scale: bool = ...,
        temp_buffer_hint: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ResizeCropMirror:
    """Resize, crop and mirror in one pass: only what the crop keeps is computed."""
    def __init__(
        self,
        *,
        antialias: bool = ...,
        bytes_per_sample_hint: Any = ...,
        crop: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        crop_d: float | DataNode | TensorList = ...,
        crop_h: float | DataNode | TensorList = ...,
        crop_pos_x: float | DataNode | TensorList = ...,
        crop_pos_y: float | DataNode | TensorList = ...,
        crop_pos_z: float | DataNode | TensorList = ...,
        crop_w: float | DataNode | TensorList = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        interp_type: DALIInterpType | DataNode | TensorList = ...,
        mag_filter: DALIInterpType | DataNode | TensorList | None = ...,
        max_size: abc.Sequence[float] | float | None = ...,
        min_filter: DALIInterpType | DataNode | TensorList | None = ...,
        minibatch_size: int = ...,
        mirror: int | DataNode | TensorList = ...,
        mode: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        resize_longer: float | DataNode | TensorList | None = ...,
        resize_shorter: float | DataNode | TensorList | None = ...,
        resize_x: float | DataNode | TensorList | None = ...,
        resize_y: float | DataNode | TensorList | None = ...,
        resize_z: float | DataNode | TensorList | None = ...,
        roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        roi_relative: bool = ...,
        roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        rounding: str = ...,
        size: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        subpixel_scale: bool = ...,
        temp_buffer_hint: int = ...,
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
        in_shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        roi_end: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        roi_shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        seed: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Rotate:
    """Rotate images or frames counter-clockwise around their centre, volumes around an axis."""
    def __init__(
        self,
        *,
        angle: float | DataNode | TensorList,
        axis: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        fill_value: float | None = ...,
        interp_type: DALIInterpType = ...,
        keep_size: bool = ...,
        name: str | None = None,
        preserve: Any = ...,
        size: abc.Sequence[float] | float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Saturation:
    """Scale the saturation of RGB images, as `hsv` does."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        image_type: DALIImageType = ...,
        name: str | None = None,
        preserve: Any = ...,
        saturation: float | DataNode | TensorList = ...,
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
        dont_use_mmap: bool = ...,
        image_type: DALIImageType = ...,
        initial_fill: int = ...,
        lazy_init: bool = ...,
        name: str | None = None,
        num_shards: int = ...,
        pad_last_batch: bool = ...,
        prefetch_queue_depth: int = ...,
        preserve: Any = ...,
        random_shuffle: bool = ...,
        read_ahead: bool = ...,
        seed: int | None = ...,
        shard_id: int = ...,
        shuffle_after_epoch: bool = ...,
        shuffle_after_epoch_seed: int | None = ...,
        skip_cached_images: bool = ...,
        step: int = ...,
        stick_to_shard: bool = ...,
        stride: int = ...,
        tensor_init_bytes: int = ...,
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
        axes: abc.Sequence[int] | int | DataNode | TensorList = ...,
        axis_names: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        end: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        fill_values: abc.Sequence[float] | float = ...,
        name: str | None = None,
        normalized_anchor: bool = ...,
        normalized_shape: bool = ...,
        out_of_bounds_policy: str = ...,
        preserve: Any = ...,
        rel_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        rel_shape: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        rel_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        start: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Sphere:
    """Wrap images on a sphere: distances from the centre are squared, in units of half the longer side."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        fill_value: float = ...,
        interp_type: DALIInterpType = ...,
        mask: int | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Squeeze:
    """Drop axes of extent 1."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        axis_names: str | None = ...,
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
        num_attempts: int = ...,
        preserve: Any = ...,
        seed: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Stack:
    """Join inputs of one shape along a new axis."""
    def __init__(
        self,
        *,
        axis: int = ...,
        axis_name: str | None = ...,
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
        alignment: abc.Sequence[float] | float | DataNode | TensorList = ...,
        antialias: bool = ...,
        axes: abc.Sequence[int] | int | None = ...,
        axis_names: str | None = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        interp_type: DALIInterpType | DataNode | TensorList = ...,
        mag_filter: DALIInterpType | DataNode | TensorList | None = ...,
        max_size: abc.Sequence[float] | float | None = ...,
        min_filter: DALIInterpType | DataNode | TensorList | None = ...,
        minibatch_size: int = ...,
        mode: str = ...,
        name: str | None = None,
        preserve: Any = ...,
        roi_end: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        roi_relative: bool = ...,
        roi_start: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        scales: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        size_rounding: str = ...,
        sizes: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
        subpixel_scale: bool = ...,
        temp_buffer_hint: int = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TorchPythonFunction:
    """Call a function on torch tensors: a function, an ``nn.Module``, a torchvision transform."""
    def __init__(
        self,
        *,
        function: Any,
        batch_processing: bool = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        num_outputs: int = ...,
        output_layouts: Any = ...,
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
        reverse_order: bool = ...,
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
        output_layout: str | None = ...,
        perm: abc.Sequence[int] | int | None = ...,
        preserve: Any = ...,
        transpose_layout: bool = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Uniform:
    """Draw numbers from a range, or from a list of values, all equally likely."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        range: abc.Sequence[float] | float | DataNode | TensorList = ...,
        seed: int = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
        values: abc.Sequence[float] | float | DataNode | TensorList | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class WarpAffine:
    """Warp images, frames or volumes by an affine map: ``out(p) = in(M p)``."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        fill_value: float | None = ...,
        interp_type: DALIInterpType = ...,
        inverse_map: bool = ...,
        matrix: abc.Sequence[float] | float | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
        size: abc.Sequence[float] | float | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Water:
    """Show images as under moving water."""
    def __init__(
        self,
        *,
        ampl_x: float = ...,
        ampl_y: float = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        fill_value: float = ...,
        freq_x: float = ...,
        freq_y: float = ...,
        interp_type: DALIInterpType = ...,
        mask: int | DataNode | TensorList = ...,
        name: str | None = None,
        phase_x: float = ...,
        phase_y: float = ...,
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
        layout: str | None = ...,
        name: str | None = None,
        preserve: Any = ...,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class ZerosLike:
    """Return zeros in the shape of an input."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
