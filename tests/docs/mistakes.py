# ruff: noqa: B018, RUF059
"""Mistakes that type checkers must find: an error in each line with a comment, and in no other line; see `test_typing.py`."""

from __future__ import annotations

from pathlib import Path

import torch

from torchdali import Loader, Pipeline, fn, ops, pipeline_def, types
from torchdali import dynamic as ndd
from torchdali.plugin.pytorch import DALIGenericIterator, DALIRaggedIterator, LastBatchPolicy

image = torch.zeros(2, 2, 3)


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def training(root: Path):
    files, labels = fn.readers.file(file_root=root, name="Reader")
    images = fn.decoders.image(files)
    fn.decoders.image(files, device="gpu")  # "mixed"
    fn.decoders.image(files, output_typ=types.RGB)  # output_type
    fn.crop(images, crop=(8, 8), out_of_bounds_policy="fil")  # "fill"
    fn.rotat(images, angle=10)  # rotate
    files, labels, more = fn.readers.file(file_root=root)  # two outputs
    fn.resize(images, size=8, mode="not_greater")  # "not_larger"
    images.permute(2, 0, 1)  # a method of tensors
    fn.flip(images).as_array()  # a method of batches
    one, two = fn.crop(images, crop=(8, 8))  # one output
    left, right = fn.resize(images, size=8)  # save_attrs=True
    one, two, three = fn.resize(images, size=8, save_attrs=True)  # two outputs
    return fn.crop_mirror_normalize(images, mean="0.5"), labels  # numbers


fn.resize(image, size="224")  # numbers
fn.resize(image, siez=[2, 2])  # size
fn.brightness(image, device="cuda")  # "gpu"
fn.brightness(image).no_such_method()  # of a tensor
fn.filter(image, image, border="reflekt")  # "reflect"
fn.readers.webdataset(paths="a.tar", ext="jpg", missing_component_behavior="ignore")  # "skip"
fn.readers.file(file_root=3)  # a path
fn.readers.files(file_root="a")  # file
fn.experimental.readers.video(sequence_length=2, filenames=["a"], pad_mode="mirror")  # "symmetric"
fn.random.coinflip()  # coin_flip
fn.external_source(cycle="again")  # "raise"
one, two = fn.external_source(name="fed")  # num_outputs=2
ops.Resize(size=[2, 2], device="mixed")  # "gpu"
Pipeline(batch_size=[1])  # a number
Pipeline(batch_sise=1)  # batch_size
Pipeline(batch_size=1, py_start_method="thread")  # "spawn"
Pipeline(batch_size=1, bad_samples="ignore")  # "skip"
pipeline_def(batch_sise=1)  # batch_size
pipeline_def(enable_conditional=True)  # enable_conditionals
pipe: Pipeline = training("a")
pipe.run()[0].as_arrray()  # as_array
pipe.rnu()  # run
images: str = pipe.run()[0].as_cpu()  # a batch
loader = DALIGenericIterator(pipe, ["images", "labels"], on_break="again")  # "restart"
loader = DALIGenericIterator(pipe, ["images"], last_batch_policy="PARTIAL")  # LastBatchPolicy.PARTIAL
LastBatchPolicy.PARTAIL  # PARTIAL
next(loader)["images"]  # [0]["images"]
next(loader)[0]["images"].no_such_method()  # of a tensor
number: int = next(loader)  # a list
DALIRaggedIterator(pipe, ["images"], output_type=["dense"])  # output_types
Loader(pipe, drop_lst=True)  # drop_last
Loader.from_folder("a", size=8)  # train
ndd.resiz(image)  # resize
ndd.resize(image, size="8")  # numbers
ndd.readers.File(file_rot="a")  # file_root
types.FLOAT33  # FLOAT
