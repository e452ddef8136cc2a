"""A first pipeline: read, decode, rotate; another with a loop, and another built by hand."""

import sys

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def
from nvidia.dali.pipeline import Pipeline

data, target = sys.argv[1:]
max_batch_size = 4
results = {}


@pipeline_def
def simple_pipeline():
    jpegs, labels = fn.readers.file(file_root=f"{data}/images")
    return fn.decoders.image(jpegs, device="cpu"), labels


pipe = simple_pipeline(batch_size=max_batch_size, num_threads=1, device_id=None)
pipe.build()
images, labels = pipe.run()
results["is dense"] = images.is_dense_tensor(), labels.is_dense_tensor()
results["labels"] = labels.as_tensor()
for i in range(max_batch_size):
    results[f"image {i}"] = images.at(i)
try:
    images.as_tensor()
except Exception:
    results["shapes differ"] = True


@pipeline_def
def rotated_pipeline():
    jpegs, labels = fn.readers.file(file_root=f"{data}/images", random_shuffle=True, initial_fill=21, seed=1)
    images = fn.decoders.image(jpegs)
    angle = fn.random.uniform(range=(-10.0, 10.0))
    return fn.rotate(images, angle=angle, fill_value=0), fn.rotate(images, angle=10.0, fill_value=0), labels


pipe = rotated_pipeline(batch_size=max_batch_size, num_threads=2, device_id=None, seed=1234)
pipe.build()
for _ in range(3):
    turned, fixed, labels = pipe.run()
results["layout"] = turned.layout(), str(turned.dtype)
results["lengths"] = len(turned), len(fixed), len(labels)

pipe = Pipeline(batch_size=2, num_threads=2, device_id=None)
with pipe:
    jpegs, labels = fn.readers.file(file_root=f"{data}/images", name="files")
    images = fn.decoders.image(jpegs, output_type=types.GRAY)
    pipe.set_outputs(fn.rotate(images, angle=15, fill_value=9), labels)
pipe.build()
results["epoch size"] = pipe.epoch_size("files")
for i in range(2):
    turned, labels = pipe.run()
    results[f"by hand {i}"] = turned.at(1)
    results[f"label {i}"] = labels.as_array()
np.savez(target, **results)
