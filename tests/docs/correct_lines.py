"""Lines as users write them, which type checkers must accept; `test_typing.py` also runs them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

import torchdali
from torchdali import DataLoader, DataNode, Loader, Pipeline, fn, math, operator, ops, pipeline_def, types
from torchdali import dynamic as ndd
from torchdali.auto_aug import rand_augment
from torchdali.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
    feed_ndarray,
)
from torchdali.plugin.pytorch.experimental import proxy
from torchdali.tensors import TensorListCPU
from torchdali.types import SampleInfo


@operator
def invert(image: torch.Tensor, /) -> torch.Tensor:
    """Turn an image into its negative."""
    return 255 - image


@operator(devices=("cpu", "gpu"))
def darken(image: torch.Tensor, /, *, factor: float = 0.5) -> torch.Tensor:
    """Multiply by a factor."""
    return (image * factor).to(image.dtype)


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def training(root: Path, size: int = 16, shard_id: int = 0, num_shards: int = 1):
    files, labels = fn.readers.file(
        file_root=root, random_shuffle=True, pad_last_batch=True, shard_id=shard_id, num_shards=num_shards, name="Reader"
    )
    images = fn.decoders.image(files, device="cpu", output_type=types.RGB)
    images = fn.random_resized_crop(images, size=size, random_area=[0.1, 1.0])
    images = darken(invert(images), factor=0.9)
    mirror = fn.random.coin_flip(probability=0.5)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[123.675, 116.28, 103.53], std=[58.4, 57.1, 57.4], mirror=mirror
    )
    return images, labels


@pipeline_def(enable_conditionals=True, batch_size=4, num_threads=2, device_id=None, bad_samples="skip")
def many_operators(root: Path):
    encoded, labels = fn.readers.file(file_root=str(root), name="Reader")
    images = fn.decoders.image_random_crop(encoded, random_area=(0.5, 1.0))
    shape = fn.peek_image_shape(encoded)
    images, extent = fn.resize(images, size=[16, 16], interp_type=types.INTERP_CUBIC, save_attrs=True)
    if fn.random.coin_flip(dtype=types.BOOL):
        images = fn.rotate(images, angle=fn.random.uniform(range=[-10.0, 10.0]), keep_size=True, fill_value=0)
    images = fn.color_twist(images, brightness=fn.random.uniform(range=(0.8, 1.2)), hue=10.0)
    images = fn.gaussian_blur(images, sigma=1.0, window_size=3)
    images = rand_augment.rand_augment(images, n=1, m=5, shape=[16, 16])
    images = fn.crop(images, crop=(8, 8), crop_pos_x=0.2, out_of_bounds_policy="pad", fill_values=[0])
    images = fn.slice(images, start=[0, 0], shape=[6, 6], axes=[0, 1], out_of_bounds_policy="trim_to_shape")
    images = fn.flip(images, horizontal=fn.random.coin_flip(), vertical=0)
    bright = math.clamp(fn.cast(images, dtype=types.FLOAT) * 1.5 + 1, 0, 255)
    both = fn.stack(images, images, axis=0)
    joined = fn.cat(images, fn.cast_like(bright, images), axis=1)
    mean = fn.reductions.mean(bright, axis_names="HWC")
    transposed = fn.transpose(images, perm=[2, 0, 1])
    first_rows = images[0:2, :, 0]
    total = images.shape()[0] + extent[0] + shape[1]
    halves, doubled = fn.python_function(bright, function=lambda x: (x / 2, x * 2), num_outputs=2)
    as_torch = fn.torch_python_function(images, function=lambda x: x.float().mean())
    padded = fn.pad(transposed, axes=[1, 2], shape=[8, 8])
    one_hot = fn.one_hot(fn.squeeze(labels, axes=[0]), num_classes=2)
    is_first: DataNode = labels == 0
    return images, both, joined, mean, padded, first_rows, total, halves, doubled, as_torch, one_hot, is_first


def samples(info: SampleInfo) -> np.ndarray:
    """Return a sample of a source."""
    if info.iteration >= 3:
        raise StopIteration
    return np.full((2, 3), info.idx_in_epoch, np.float32)


@pipeline_def(batch_size=2, num_threads=1, device_id=None, py_start_method="spawn")
def sources():
    one = fn.external_source(source=samples, batch=False, layout="HW")
    two, three = fn.external_source([([np.zeros(2)] * 2, [np.ones(3)] * 2)], num_outputs=2, cycle="raise")
    fed = fn.external_source(name="fed", dtype=types.FLOAT, ndim=1)
    return one, two, three, fed, types.Constant(3.0, dtype=types.FLOAT)


def readers(root: Path) -> None:
    """Name files as paths."""
    files = sorted(root.glob("*/*.png"))
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1, exec_pipelined=False)
    with pipe:
        encoded, labels = fn.readers.file(files=files, labels=[0] * len(files), read_ahead=True, name="Files")
        gray = ops.decoders.Image(device="cpu", output_type=types.GRAY)(encoded)
        pipe.set_outputs(gray, labels)
    pipe.build()
    images, numbers = pipe.run()
    array = images.at(0)
    assert array.dtype == np.uint8 and numbers.as_array().shape == (2, 1) and pipe.epoch_size("Files") == len(files)


def outputs(root: Path) -> None:
    """Use the outputs of pipelines."""
    pipe = training(root, size=8, batch_size=2, device_id=None)
    batch = pipe.run()
    images, labels = pipe.run()
    array: np.ndarray = images.as_array()
    on_cpu: TensorListCPU = batch[0].as_cpu()
    tensor = on_cpu.as_tensor().torch()
    lengths = [sample.shape() for sample in labels]
    numbers: list[int] = labels.as_array().ravel().tolist()
    copied = torch.empty(images.shape()[0], dtype=torch.float32)
    feed_ndarray(images[0], copied)
    assert tensor.shape == array.shape and len(lengths) == len(numbers) == len(images) and images.layout() == "CHW"
    for again in many_operators(root).run():
        print(again.shape(), again.dtype, len(again))


def checkpoints(root: Path) -> None:
    """Save a checkpoint and continue from it."""
    pipe = training(root)
    pipe.run()
    place = pipe.state_dict()
    pipe.load_state_dict(place)
    saved = pipe.checkpoint(str(root / "place.json"))
    continued = training(root, checkpoint=saved)
    text: str = continued.explain()
    names = list(continued.reader_meta())
    print(pipe.stats(), text, names, pipe.reader_meta("Reader")["epoch_size"])


def fed() -> None:
    """Feed a source."""
    pipe = sources(prefetch_queue_depth=1)
    for _ in range(pipe.input_feed_count("fed")):
        pipe.feed_input("fed", [np.zeros(2, np.float32), np.ones(3, np.float32)])
    assert pipe.run()[3].at(1).tolist() == [1, 1, 1]
    other = sources(exec_pipelined=False, prefetch_queue_depth=1)
    print(other.run(fed=[np.zeros(2, np.float32)] * 2)[3].at(0))


def loops(root: Path) -> None:
    """Train with iterators."""
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(2))
    loader = DALIGenericIterator(
        training(root), ["images", "labels"], reader_name="Reader", auto_reset=True, on_break="next",
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )  # fmt: skip
    for batch in loader:
        loss = torch.nn.functional.cross_entropy(model(batch[0]["images"]), batch[0]["labels"].squeeze(-1).long())
        loss.backward()
    for i, (item,) in enumerate(DALIClassificationIterator([training(root)], reader_name="Reader")):
        print(i, item["data"].mean().item(), item["label"].shape)
    tags = [DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.DENSE_TAG]
    for ragged in DALIRaggedIterator(training(root), ["images", "labels"], output_types=tags, reader_name="Reader"):
        print([image.shape for image in ragged[0]["images"]], ragged[0]["labels"].float().mean())
    loader.load_state_dict(loader.state_dict())
    print(len(loader), loader.size)


def loaders(root: Path) -> Iterator[torch.Tensor]:
    """Train with a Loader."""
    loader = Loader(functools.partial(training, root))
    for images, labels in loader:
        yield torch.nn.functional.cross_entropy(images.mean((2, 3)), labels % 2)
    folder = Loader.from_folder(root, train=True, size=8, batch_size=2, augment="trivial")
    named = Loader(training(root), outputs=["images", "labels"], drop_last=True)
    for batch in named:
        yield batch["images"].float().sum()
    data = ImageFolder(str(root), v2.Compose([v2.RandomResizedCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]))
    for images, labels in DataLoader(data, batch_size=2, shuffle=True, num_workers=1):
        yield images.mean() + labels.sum()
    folder.set_epoch(2)
    torch.save(folder.state_dict(), root / "loader.pt")
    print(len(folder), folder.classes, folder.dataset_size)


def dynamic(root: Path) -> None:
    """Call operators without a pipeline."""
    reader = ndd.readers.File(file_root=root, random_shuffle=True)
    for encoded, labels in reader.next_epoch(batch_size=2):
        images = ndd.decoders.image(encoded)
        images = ndd.resize(images, size=[8, 8], interp_type=types.INTERP_LINEAR)
        images = ndd.crop_mirror_normalize(images, mean=[0.0], mirror=ndd.random.coin_flip(batch_size=2))
        print(images.torch().shape, labels.torch().sum(), images.layout)
    blurred = ndd.gaussian_blur(torch.zeros(4, 4, 3), sigma=1.0, torch=True)
    made = ndd.as_batch([np.zeros((2, 2, 3), np.uint8)], layout="HWC") + 1
    print(blurred.shape, made.select(0).torch(), ndd.math.max(made, 3).shape)


def at_once() -> None:
    """Call operators on tensors."""
    image = torch.rand(4, 4, 3, requires_grad=True)
    bright: torch.Tensor = fn.brightness(image, brightness=2.0)
    bright.sum().backward()
    cropped = fn.crop(torch.zeros(4, 4, 3), crop=[2, 2])
    assert cropped.shape == (2, 2, 3) and image.grad is not None


def served(root: Path) -> None:
    """Serve a DataLoader's workers."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pictures():
        files = fn.external_source(name="files", no_copy=True)
        return fn.resize(fn.decoders.image(files), size=(8, 8))

    with proxy.DALIServer(pictures()) as server:
        dataset: Dataset[object] = ImageFolder(str(root), transform=server.proxy, loader=str)
        for images, labels in proxy.DataLoader(server, dataset, batch_size=2, num_workers=0):
            print(images.shape, len(labels))


def main(root: Path) -> None:
    """Run all functions on a folder of two classes."""
    readers(root)
    outputs(root)
    checkpoints(root)
    fed()
    loops(root)
    print(sum(loss.item() for loss in loaders(root)), torchdali.__version__)
    dynamic(root)
    at_once()
    served(root)
