"""The pages of the reference, and the tasks that its first page lists."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAMILIES", "TASKS", "Family"]


@dataclass(frozen=True)
class Family:
    """A page of the reference.

    Attributes:
        page: Name of the page's file, without ``.md``.
        title: Heading of the page.
        purpose: The page's first sentence.
        operators: Names of operators, separated by spaces. The page also lists the other operators of their modules.
    """

    page: str
    title: str
    purpose: str
    operators: str

    @property
    def names(self) -> list[str]:
        """Names in `operators`, as a list."""
        return self.operators.split()


FAMILIES = (
    Family(
        "readers",
        "Readers of files and datasets",
        "These operators read samples from files and Python datasets, and cache them.",
        "readers.file readers.coco readers.numpy readers.nemo_asr readers.dataset readers.mixture "
        "readers.stream experimental.readers.fits io.file.read cache",
    ),
    Family(
        "containers",
        "Readers of containers",
        "These operators read records from archives and databases.",
        "readers.webdataset readers.tfrecord readers.mxnet readers.caffe readers.caffe2 readers.mds readers.table",
    ),
    Family(
        "video_readers",
        "Readers of videos",
        "These operators read clips from videos, or from folders of images.",
        "readers.video readers.video_resize readers.sequence experimental.readers.video",
    ),
    Family(
        "decoders",
        "Decoders",
        "These operators decode the bytes of a file into images, audio or arrays.",
        "decoders.image decoders.image_crop decoders.image_random_crop decoders.image_slice peek_image_shape "
        "decoders.audio decoders.video decoders.numpy decoders.inflate experimental.inputs.video",
    ),
    Family(
        "python",
        "Python",
        "These operators feed data from Python into a pipeline, or call your Python functions in it.",
        "external_source python_function torch_python_function dl_tensor_python_function dump_image get_property",
    ),
    Family(
        "sizes",
        "Crop, resize, pad",
        "These operators change the size of images, or cut out a region.",
        "crop crop_mirror_normalize random_resized_crop resize resize_crop_mirror slice pad random_crop_generator "
        "roi_random_crop experimental.resize tensor_resize fast_resize_crop_mirror",
    ),
    Family(
        "warps",
        "Flip, rotate, warp",
        "These operators move the pixels of an image, or compute the matrices for a warp.",
        "flip rotate warp_affine experimental.warp_perspective experimental.remap water sphere jitter "
        "transforms.translation transforms.scale transforms.rotation transforms.shear transforms.crop "
        "transforms.combine",
    ),
    Family(
        "colors",
        "Colors",
        "These operators change the color of each pixel.",
        "brightness brightness_contrast contrast hsv hue saturation color_twist color_space_conversion normalize "
        "equalize clahe lookup_table debayer",
    ),
    Family(
        "filters",
        "Filters and noise",
        "These operators blur or sharpen images, or add noise.",
        "gaussian_blur laplacian filter experimental.median_blur experimental.dilate experimental.erode "
        "noise.gaussian noise.salt_and_pepper noise.shot jpeg_compression_distortion",
    ),
    Family(
        "mixing",
        "Erase and mix",
        "These operators erase regions of images, and combine several images.",
        "erase grid_mask paste multi_paste bbox_paste permute_batch batch_permutation",
    ),
    Family(
        "boxes",
        "Boxes, masks, points",
        "These operators transform annotations together with their images.",
        "random_bbox_crop ssd_random_crop bb_flip bbox_rotate box_encoder coord_transform coord_flip "
        "segmentation.random_mask_pixel segmentation.random_object_bbox segmentation.select_masks",
    ),
    Family(
        "audio",
        "Audio",
        "These operators resample audio, and compute spectrograms.",
        "audio_resample preemphasis_filter nonsilent_region spectrogram power_spectrum mel_filter_bank mfcc "
        "to_decibels",
    ),
    Family(
        "video",
        "Video and sequences",
        "These operators select and reorder frames, and compute optical flow.",
        "element_extract sequence_rearrange per_frame optical_flow",
    ),
    Family(
        "random",
        "Random numbers",
        "These operators draw random numbers for each sample.",
        "random.uniform random.normal random.coin_flip random.beta random.choice",
    ),
    Family(
        "tensors",
        "Shapes, types, constants",
        "These operators create tensors, and change their shape or dtype.",
        "cast cast_like reshape reinterpret transpose expand_dims squeeze cat stack one_hot copy constant full ones "
        "zeros full_like ones_like zeros_like shapes",
    ),
    Family(
        "reductions",
        "Reductions",
        "These operators reduce a sample, or some of its axes, to a sum, a mean or another statistic.",
        "reductions.sum reductions.mean reductions.min reductions.max reductions.mean_square reductions.rms "
        "reductions.std_dev reductions.variance",
    ),
)
"""All pages, in the order of the reference."""

TASKS = {
    "read images from one folder per class": "readers.file",
    "read webdataset archives": "readers.webdataset",
    "read a TFRecord": "readers.tfrecord",
    "read parquet, Arrow or Lance": "readers.table",
    "read shards of mosaicml-streaming": "readers.mds",
    "read images with boxes, or with masks": "readers.coco",
    "read NumPy arrays": "readers.numpy",
    "read my own `Dataset`": "readers.dataset",
    "mix several datasets by weights": "readers.mixture",
    "read another library's stream": "readers.stream",
    "read clips from videos": "readers.video",
    "read speech with transcripts": "readers.nemo_asr",
    "feed data from a Python function": "external_source",
    "call a Python function on NumPy arrays": "python_function",
    "call a torch module or a torchvision transform": "torch_python_function",
    "find out which file a sample comes from": "get_property",
    "cache samples, so that later epochs don't decode them again": "cache",
    "decode an image": "decoders.image",
    "decode only a random region of an image": "decoders.image_random_crop",
    "get the size of an image without decoding it": "peek_image_shape",
    "decode audio": "decoders.audio",
    "crop randomly and resize, as for ImageNet": "random_resized_crop",
    "crop the center": "crop",
    "resize the shorter side": "resize",
    "cut out a region at a known position": "slice",
    "pad samples to one shape": "pad",
    "normalize by mean and standard deviation, and mirror": "crop_mirror_normalize",
    "normalize by each sample's own mean": "normalize",
    "flip horizontally": "flip",
    "rotate": "rotate",
    "shear, scale or translate": "warp_affine transforms.combine",
    "change the perspective": "experimental.warp_perspective",
    "jitter colors": "color_twist",
    "change brightness and contrast": "brightness_contrast",
    "convert images to gray or to YCbCr": "color_space_conversion",
    "equalize the histogram": "equalize clahe",
    "blur": "gaussian_blur",
    "find edges": "laplacian",
    "add noise": "noise.gaussian noise.salt_and_pepper noise.shot",
    "add JPEG artifacts": "jpeg_compression_distortion",
    "erase rectangles (Cutout)": "erase",
    "mix two images ([Mixup](../recipes/views.md#mixup-inside-the-pipeline))": "permute_batch",
    "paste a region of one image into another (CutMix)": "permute_batch multi_paste",
    "crop images together with their boxes": "random_bbox_crop",
    "flip boxes": "bb_flip",
    "move landmarks with the image": "coord_transform",
    "crop around an object": "segmentation.random_object_bbox",
    "resample audio": "audio_resample",
    "remove silence": "nonsilent_region",
    "compute a mel spectrogram": "spectrogram mel_filter_bank to_decibels",
    "compute MFCCs": "mfcc",
    "apply an operator with a probability": "random.coin_flip",
    "draw a number for each sample": "random.uniform random.normal random.choice",
    "change the dtype": "cast",
    "change the order of the axes": "transpose",
    "convert a label to a one-hot vector": "one_hot",
}
"""The table "I want to ...": for each task, the names of operators, separated by spaces."""
