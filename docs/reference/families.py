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
        "Readers of files and data sets",
        "These operators read records of files and of data sets in Python, and keep them.",
        "readers.file readers.coco readers.numpy readers.nemo_asr readers.dataset readers.mixture "
        "readers.stream experimental.readers.fits io.file.read cache",
    ),
    Family(
        "containers",
        "Readers of containers",
        "These operators read records of archives and databases.",
        "readers.webdataset readers.tfrecord readers.mxnet readers.caffe readers.caffe2 readers.mds readers.table",
    ),
    Family(
        "video_readers",
        "Readers of videos",
        "These operators read clips of videos, or of folders of images.",
        "readers.video readers.video_resize readers.sequence experimental.readers.video",
    ),
    Family(
        "decoders",
        "Decoders",
        "These operators turn the bytes of a file into pixels, sound or numbers.",
        "decoders.image decoders.image_crop decoders.image_random_crop decoders.image_slice peek_image_shape "
        "decoders.audio decoders.video decoders.numpy decoders.inflate experimental.inputs.video",
    ),
    Family(
        "python",
        "Python",
        "These operators bring data from Python into a pipeline, and call your functions in it.",
        "external_source python_function torch_python_function dl_tensor_python_function dump_image get_property",
    ),
    Family(
        "sizes",
        "Crop, resize, pad",
        "These operators change the size of images, or take a part of them.",
        "crop crop_mirror_normalize random_resized_crop resize resize_crop_mirror slice pad random_crop_generator "
        "roi_random_crop experimental.resize tensor_resize fast_resize_crop_mirror",
    ),
    Family(
        "warps",
        "Flip, rotate, warp",
        "These operators move the pixels of an image, or make the matrices that do.",
        "flip rotate warp_affine experimental.warp_perspective experimental.remap water sphere jitter "
        "transforms.translation transforms.scale transforms.rotation transforms.shear transforms.crop "
        "transforms.combine",
    ),
    Family(
        "colors",
        "Colors",
        "These operators change the values of pixels, one by one.",
        "brightness brightness_contrast contrast hsv hue saturation color_twist color_space_conversion normalize "
        "equalize clahe lookup_table debayer",
    ),
    Family(
        "filters",
        "Filters and noise",
        "These operators blur, sharpen or disturb images.",
        "gaussian_blur laplacian filter experimental.median_blur experimental.dilate experimental.erode "
        "noise.gaussian noise.salt_and_pepper noise.shot jpeg_compression_distortion",
    ),
    Family(
        "mixing",
        "Erase and mix",
        "These operators cover parts of images, and put images together.",
        "erase grid_mask paste multi_paste bbox_paste permute_batch batch_permutation",
    ),
    Family(
        "boxes",
        "Boxes, masks, points",
        "These operators keep annotations in step with the images.",
        "random_bbox_crop ssd_random_crop bb_flip bbox_rotate box_encoder coord_transform coord_flip "
        "segmentation.random_mask_pixel segmentation.random_object_bbox segmentation.select_masks",
    ),
    Family(
        "sound",
        "Sound",
        "These operators resample sounds, and make spectrograms of them.",
        "audio_resample preemphasis_filter nonsilent_region spectrogram power_spectrum mel_filter_bank mfcc "
        "to_decibels",
    ),
    Family(
        "video",
        "Video and sequences",
        "These operators take frames, reorder them, and find their movement.",
        "element_extract sequence_rearrange per_frame optical_flow",
    ),
    Family(
        "random",
        "Random numbers",
        "These operators draw numbers, for each sample anew.",
        "random.uniform random.normal random.coin_flip random.beta random.choice",
    ),
    Family(
        "tensors",
        "Shapes, types, constants",
        "These operators make tensors, and change their shape or type.",
        "cast cast_like reshape reinterpret transpose expand_dims squeeze cat stack one_hot copy constant full ones "
        "zeros full_like ones_like zeros_like shapes",
    ),
    Family(
        "reductions",
        "Reductions",
        "These operators sum up a sample, or some of its axes.",
        "reductions.sum reductions.mean reductions.min reductions.max reductions.mean_square reductions.rms "
        "reductions.std_dev reductions.variance",
    ),
)
"""All pages, in the order of the reference."""

TASKS = {
    "read images from a folder for each class": "readers.file",
    "read webdataset archives": "readers.webdataset",
    "read a TFRecord": "readers.tfrecord",
    "read parquet, Arrow or Lance": "readers.table",
    "read shards of mosaicml-streaming": "readers.mds",
    "read images with boxes, or with masks": "readers.coco",
    "read arrays of NumPy": "readers.numpy",
    "read my own `Dataset`": "readers.dataset",
    "mix several data sets by weights": "readers.mixture",
    "read a stream of another library": "readers.stream",
    "read clips of videos": "readers.video",
    "read speech with its texts": "readers.nemo_asr",
    "feed data from a Python function": "external_source",
    "call a Python function on NumPy arrays": "python_function",
    "call a torch module or a transform of torchvision": "torch_python_function",
    "know the file that a sample comes from": "get_property",
    "keep samples, so that later epochs do not decode them": "cache",
    "decode an image": "decoders.image",
    "decode only a random window of an image": "decoders.image_random_crop",
    "know the size of an image before it is decoded": "peek_image_shape",
    "decode a sound": "decoders.audio",
    "crop at random and resize, as for ImageNet": "random_resized_crop",
    "crop the middle": "crop",
    "resize the shorter side": "resize",
    "take a part whose place I know": "slice",
    "pad samples to one shape": "pad",
    "normalize by mean and deviation, and mirror": "crop_mirror_normalize",
    "normalize by each sample's own mean": "normalize",
    "mirror left and right": "flip",
    "rotate": "rotate",
    "shear, scale or translate": "warp_affine transforms.combine",
    "change the perspective": "experimental.warp_perspective",
    "jitter colors": "color_twist",
    "change brightness and contrast": "brightness_contrast",
    "turn images gray, or to YCbCr": "color_space_conversion",
    "equalize the histogram": "equalize clahe",
    "blur": "gaussian_blur",
    "find edges": "laplacian",
    "add noise": "noise.gaussian noise.salt_and_pepper noise.shot",
    "add artifacts of JPEG": "jpeg_compression_distortion",
    "erase rectangles (Cutout)": "erase",
    "mix two images ([Mixup](../recipes/views.md#mixup-inside-the-pipeline))": "permute_batch",
    "paste a part of one image into another (CutMix)": "permute_batch multi_paste",
    "crop images together with their boxes": "random_bbox_crop",
    "mirror boxes": "bb_flip",
    "move landmarks with the image": "coord_transform",
    "crop where an object is": "segmentation.random_object_bbox",
    "resample sound": "audio_resample",
    "cut silence away": "nonsilent_region",
    "make a mel spectrogram": "spectrogram mel_filter_bank to_decibels",
    "make MFCCs": "mfcc",
    "do something with a probability": "random.coin_flip",
    "draw a number for each sample": "random.uniform random.normal random.choice",
    "change the type": "cast",
    "change the order of the axes": "transpose",
    "turn a label into a vector": "one_hot",
}
"""The table "I want to ...": for each task, the names of operators, separated by spaces."""
