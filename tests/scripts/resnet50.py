"""Train and validate a classifier on class folders, as DALI's ResNet-50 example does, with its two loaders."""

import argparse

import numpy as np
import torch
from nvidia.dali import fn, types
from nvidia.dali.pipeline import pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIClassificationIterator
from nvidia.dali.plugin.pytorch.experimental import proxy as dali_proxy
from torchvision.datasets import DatasetFolder

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("results")
parser.add_argument("--data_loader", choices=["dali", "dali_proxy"], default="dali")
parser.add_argument("-b", "--batch-size", type=int, default=5)
args = parser.parse_args()

SIZE, CROP = 40, 32
results = {}


def normalized(images, mirror):
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", crop=(CROP, CROP), mirror=mirror,
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255], std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )  # fmt: skip


def for_training(jpegs):
    images = fn.decoders.image_random_crop(
        jpegs, device="cpu", output_type=types.RGB, random_aspect_ratio=[0.8, 1.25], random_area=[0.1, 1.0], num_attempts=100
    )
    images = fn.resize(images, resize_x=CROP, resize_y=CROP, interp_type=types.INTERP_TRIANGULAR)
    return normalized(images, fn.random.coin_flip(probability=0.5))


def for_validation(jpegs):
    images = fn.decoders.image(jpegs, device="cpu", output_type=types.RGB)
    images = fn.resize(images, size=SIZE, mode="not_smaller", interp_type=types.INTERP_TRIANGULAR)
    return normalized(images, False)


@pipeline_def(exec_dynamic=True)
def from_files(data_dir, shard_id, num_shards, is_training):
    jpegs, labels = fn.readers.file(
        file_root=data_dir, shard_id=shard_id, num_shards=num_shards, random_shuffle=is_training, pad_last_batch=True, name="Reader",
    )  # fmt: skip
    return (for_training if is_training else for_validation)(jpegs), labels


@pipeline_def
def from_proxy(is_training):
    jpegs = fn.external_source(name="images", no_copy=True)
    return (for_training if is_training else for_validation)(jpegs)


def read_file(path):
    return np.fromfile(path, dtype=np.uint8)


def file_loader(is_training):
    pipe = from_files(
        batch_size=args.batch_size, num_threads=2, device_id=None, seed=12, data_dir=f"{args.data}/images",
        shard_id=0, num_shards=1, is_training=is_training,
    )  # fmt: skip
    pipe.build()
    return DALIClassificationIterator(pipe, reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True)


def of_batch(data):
    if isinstance(data, dict):
        return data["data"], data["label"].squeeze(-1).long()
    return data[0]["data"], data[0]["label"].squeeze(-1).long()


def train(loader, model, optimizer):
    seen = 0
    for data in loader:
        images, target = data if isinstance(data, (list, tuple)) and len(data) == 2 else of_batch(data)
        loss = torch.nn.functional.cross_entropy(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert torch.isfinite(loss)
        seen += len(target)
    return seen


def validate(loader):
    images, targets = [], []
    for data in loader:
        batch, target = data if isinstance(data, (list, tuple)) and len(data) == 2 else of_batch(data)
        images.append(batch.clone())
        targets.append(target.clone())
    return torch.cat(images).numpy(), torch.cat(targets).numpy()


def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    if args.data_loader == "dali":
        training, validation = file_loader(True), file_loader(False)
        results["length"] = int(training._size / args.batch_size)
        for _ in range(2):
            results["trained on"] = train(training, model, optimizer)
            results["images"], results["targets"] = validate(validation)
    else:
        dataset = DatasetFolder(f"{args.data}/images", read_file, extensions=(".jpg",))
        options = {"batch_size": args.batch_size, "num_threads": 2, "device_id": None, "seed": 12}
        with (
            dali_proxy.DALIServer(from_proxy(is_training=True, **options)) as train_server,
            dali_proxy.DALIServer(from_proxy(is_training=False, **options)) as validation_server,
        ):
            dataset.transform = train_server.proxy
            training = dali_proxy.DataLoader(train_server, dataset, batch_size=args.batch_size, shuffle=True, num_workers=1)
            results["trained on"] = train(training, model, optimizer)
            results["length"] = len(training)
            held_out = DatasetFolder(f"{args.data}/images", read_file, (".jpg",), transform=validation_server.proxy)
            validation = dali_proxy.DataLoader(validation_server, held_out, batch_size=args.batch_size, num_workers=1)
            results["images"], results["targets"] = validate(validation)
    np.savez(args.results, **results)


if __name__ == "__main__":
    main()
