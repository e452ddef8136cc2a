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


class Caffe:
    """Read images and labels of the LMDB databases of Caffe, in the order of their keys.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Caffe2:
    """Read the tensors of the LMDB databases of Caffe2, in the order of their keys.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class COCO:
    """Read images with boxes, labels and masks of COCO.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Dataset:
    """Read a data set in Python: a map-style one of torch, one of Hugging Face, or a sequence.

    The first sample, or the features of Hugging Face, show the form of all: of a tuple each value is an output, of a
    dictionary each column, and the call returns a dictionary of outputs; anything else is one output. Dictionaries in
    these are taken apart likewise, and a list of dictionaries gives a list for each key. An empty list has the dtype
    and the axes of the others: ``(0, 4)`` for boxes. The data set is called ahead of the pipeline by
    one thread, for a whole batch at a time if it has ``__getitems__``, or by worker processes.

    Values become tensors: arrays and numbers as `torch.tensor` makes them, images of Pillow ``(H, W, C)`` in the layout
    HWC, bytes and text ``(n,)`` uint8. Images and sounds of a Hugging Face data set come as they are stored, encoded:
    `decoders.image` and `decoders.audio` take them; unless it has a transform, which is kept.

    Not in DALI.

    Args:
        columns: Of dictionaries, those that are wanted, in this order; all if left out. ``"objects.bbox"`` is
            one in a dictionary in another.
        dataset: Has ``len`` and items by index from 0.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        layouts: Of the outputs.
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
        workers: Number of processes that read; they get the data set as ``py_start_method`` says, forked or
            pickled.

    Raises:
        TypeError: the data set has no length, or no items. RuntimeError: it is empty, has not these columns, or an
            argument is wrong. While running: what the data set raises; TypeError for a value that is no tensor.
    """
    def __init__(
        self,
        *,
        dataset: Any,
        columns: abc.Sequence[str] | str | None = None,
        device: Literal['cpu'] | None = None,
        dont_use_mmap: bool = False,
        layouts: abc.Sequence[str] | str | None = None,
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
        workers: int = 0,
        bytes_per_sample_hint: Any = ...,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        preserve: Any = ...,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        tensor_init_bytes: int = 1048576,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class File:
    """Read files and labels.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MXNet:
    """Read images and labels of the RecordIO files of MXNet.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class NemoAsr:
    """Read recordings and their texts, as manifests of NeMo list them.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Numpy:
    """Read arrays that `numpy.save` wrote, whole or a region of each.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Sequence:
    """Deprecated: use `external_source, or a reader of videos`.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class TFRecord:
    """Read features of the records of TFRecord files.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Video:
    """Read clips of videos by the package av (extra ``video``); see `experimental.readers.video`.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class VideoResize:
    """Read clips of videos, and resize their frames; see `readers.video` and `resize`.

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
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Webdataset:
    """Read samples of tar archives in the form of webdataset.

    Consecutive files with the same path up to the first dot of their names are a sample; what follows the dot is the
    extension.

    Args:
        cache_dir: Of URLs: folder where what was read is kept; several processes may share it.
        cache_size: Bytes that are kept there at most; what was not used for longest goes first.
        case_sensitive_extensions: Whether extensions tell upper from lower case.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        dtypes: Of each output the type that the bytes are read as; uint8 if left out.
        ext: Of each output the extension, or several separated by ``;``, of which the first in the archive
            counts.
        index_paths: Of index files, one an archive; without them the archives are walked through when the
            pipeline is built. An index that does not exist is written.
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        io_concurrency: Of URLs: most requests at a time.
        io_retries: Of URLs: how often a request that failed is repeated.
        io_timeout: Of URLs: seconds after which a request has failed, where the store's package can be
            interrupted.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is
            built.
        missing_component_behavior: Of samples that lack one: ``"empty"`` gives an empty tensor (also ``""``),
            ``"skip"`` leaves the sample out, ``"error"`` raises.
        num_shards: Into how many shards the epoch is divided.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples and the last
            batch is full.
        paths: Of the archives, or their URLs.
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
        Of each output the bytes, ``(n,)``, in its type.

    Raises:
        RuntimeError: an archive or index cannot be read, a sample lacks a component (``"error"``), there are no
            samples, or an argument is wrong. While running: a component is no multiple of its type's size.
    """
    def __init__(
        self,
        *,
        paths: abc.Sequence[str | PathLike[str]] | str | PathLike[str],
        ext: abc.Sequence[str] | str,
        cache_dir: str | PathLike[str] | None = None,
        cache_size: int = 10737418240,
        case_sensitive_extensions: bool = True,
        device: Literal['cpu'] | None = None,
        dont_use_mmap: bool = False,
        dtypes: abc.Sequence[Any] | Any | None = None,
        index_paths: abc.Sequence[str | PathLike[str]] | str | PathLike[str] | None = None,
        io_concurrency: int = 64,
        io_retries: int = 5,
        io_timeout: float = 30.0,
        lazy_init: bool = False,
        missing_component_behavior: Literal['', 'empty', 'skip', 'error'] = '',
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
