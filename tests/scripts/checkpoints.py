"""Checkpoints: an interrupted run continues at its position."""

import sys

import numpy as np
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.pytorch import DALIGenericIterator

data, target = sys.argv[1:]
results = {}


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=5, enable_checkpointing=True)
def shuffled():
    jpegs, labels = fn.readers.file(file_root=f"{data}/images", random_shuffle=True, initial_fill=4, name="Reader")
    angle = fn.random.uniform(range=(0.0, 90.0))
    return fn.crop(fn.decoders.image(jpegs), crop=(16, 16)), labels, angle


def taken(pipe, batches):
    return [[np.array(output.at(i)) for output in pipe.run() for i in range(len(output))] for _ in range(batches)]


first = shuffled()
first.build()
taken(first, 2)
checkpoint = first.checkpoint()
expected = taken(first, 4)
second = shuffled(checkpoint=checkpoint)
second.build()
found = taken(second, 4)
results["pipelines agree"] = all(np.array_equal(a, b) for x, y in zip(expected, found, strict=True) for a, b in zip(x, y, strict=True))
saved = f"{target}.checkpoint"
first.checkpoint(saved)
with open(saved, "rb") as file:
    third = shuffled(checkpoint=file.read())
third.build()
results["files agree"] = all(
    np.array_equal(a, b) for x, y in zip(taken(first, 2), taken(third, 2), strict=True) for a, b in zip(x, y, strict=True)
)


def loader(**options):
    return DALIGenericIterator(shuffled(**options), ["images", "labels", "angles"], reader_name="Reader", auto_reset=True)


one = loader()
next(one)
saved = one.checkpoints()
two = loader(checkpoint=saved[0])
agree = []
for _ in range(2):
    a, b = next(one)[0], next(two)[0]
    agree.append(all((a[key] == b[key]).all().item() for key in a))
results["iterators agree"] = agree
np.savez(target, **results)
