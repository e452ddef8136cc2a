"""Readers: files by folder and by list, shards, NumPy files, sequences."""

import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types

data, target = sys.argv[1:]
results = {}
options = {"batch_size": 3, "num_threads": 2, "device_id": None}


def take(name, pipe, batches=3):
    pipe.build()
    for b in range(batches):
        for o, output in enumerate(pipe.run()):
            for i in range(len(output)):
                results[f"{name} {b} {o} {i}"] = np.array(output.at(i))


@pipeline_def(**options)
def folders(reader):
    jpegs, labels = fn.readers.file(file_root=f"{data}/images", **reader)
    return fn.peek_image_shape(jpegs), labels


for shard in range(2):
    take(f"shard {shard}", folders(dict(shard_id=shard, num_shards=2)))
take("stick", folders(dict(shard_id=1, num_shards=2, stick_to_shard=True)))
take("pad", folders(dict(shard_id=1, num_shards=3, pad_last_batch=True)), 5)
take("filtered", folders(dict(file_filters=["*_0?.jpg"], case_sensitive_filter=True)))
take("folder names", folders(dict(dir_filters="red*")))


@pipeline_def(**options)
def listed():
    jpegs, labels = fn.readers.file(file_list=f"{data}/list.txt", file_root=f"{data}/images")
    given, numbers = fn.readers.file(
        files=[f"{data}/images/red/red_00.jpg", f"{data}/images/blue/blue_01.jpg"], labels=[7, 9]
    )
    return fn.decoders.image(jpegs), labels, fn.peek_image_shape(given), numbers


take("listed", listed())


@pipeline_def(**options)
def arrays():
    whole = fn.readers.numpy(file_root=f"{data}/arrays", file_filter="*.npy")
    part = fn.readers.numpy(
        file_root=f"{data}/arrays", roi_start=[1, 0], roi_end=[4, 3], cache_header_information=True
    )
    return whole, part, fn.readers.numpy(files=[f"{data}/arrays/{i}.npy" for i in (2, 0)], shuffle_after_epoch=False)


take("arrays", arrays())


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def sequences():
    return fn.readers.sequence(file_root=f"{data}/frames", sequence_length=3, step=2, stride=1, image_type=types.RGB)


take("sequences", sequences(), 2)
pipe = folders(dict(shard_id=0, num_shards=3))
pipe.build()
for value in pipe.reader_meta().values():
    for name in ("epoch_size", "epoch_size_padded", "number_of_shards", "shard_id", "pad_last_batch", "stick_to_shard"):
        results[f"meta {name}"] = value[name]
np.savez(target, **results)
