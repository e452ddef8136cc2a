"""Python sources: iterators, per-sample callables, several outputs, feeding, worker processes."""

import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.pipeline import Pipeline

data, target = sys.argv[1:]
results = {}
batch_size = 4


def take(name, outputs):
    for o, output in enumerate(outputs):
        for i in range(len(output)):
            results[f"{name} {o} {i}"] = np.array(output.at(i))


class Listed:
    """Batches of encoded images with their labels; it restarts after the last batch."""

    def __init__(self):
        with open(f"{data}/list.txt") as lines:
            self.files = [line.split() for line in lines if line.strip()]

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        batch, labels = [], []
        for _ in range(batch_size):
            name, label = self.files[self.i % len(self.files)]
            with open(f"{data}/images/{name}", "rb") as file:
                batch.append(np.frombuffer(file.read(), dtype=np.uint8))
            labels.append(np.array([int(label)], dtype=np.int32))
            self.i += 1
        return batch, labels


pipe = Pipeline(batch_size=batch_size, num_threads=2, device_id=None)
with pipe:
    jpegs, labels = fn.external_source(source=Listed(), num_outputs=2, dtype=[types.UINT8, types.INT32])
    images = fn.decoders.image(jpegs)
    pipe.set_outputs(fn.resize(images, resize_x=24, resize_y=24), labels)
pipe.build()
for b in range(3):
    take(f"iterator {b}", pipe.run())


def sample(info):
    if info.iteration >= 3:
        raise StopIteration
    random = np.random.default_rng((info.epoch_idx, info.idx_in_epoch))
    return random.integers(0, 255, (3, 4), np.uint8), np.array([info.idx_in_batch, info.iteration, info.epoch_idx])


@pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, py_num_workers=2, py_start_method="fork")
def by_sample(parallel):
    return tuple(fn.external_source(sample, num_outputs=2, batch=False, parallel=parallel))


for parallel in (False, True):
    pipe = by_sample(parallel)
    pipe.build()
    for epoch in range(2):
        batches = 0
        while True:
            try:
                take(f"samples {parallel} {epoch} {batches}", pipe.run())
            except StopIteration:
                pipe.reset()
                break
            batches += 1
        results[f"batches {parallel} {epoch}"] = batches
    del pipe


@pipeline_def(batch_size=batch_size, num_threads=1, device_id=None, prefetch_queue_depth=1)
def fed():
    x = fn.external_source(name="numbers", dtype=types.INT32, ndim=1)
    return x * 2, x + fn.external_source(source=lambda: np.ones((batch_size, 2), np.int32))


pipe = fed()
pipe.build()
for b in range(2):
    pipe.feed_input("numbers", [np.array([i, b], np.int32) for i in range(batch_size)])
    take(f"fed {b}", pipe.run())
take("run with", fed().run(numbers=np.arange(8, dtype=np.int32).reshape(4, 2)))


@pipeline_def(batch_size=3, num_threads=1, device_id=None)
def cycled(cycle):
    return fn.external_source(source=[[np.full((2,), b * 3 + i) for i in range(3)] for b in range(2)], cycle=cycle)


for cycle in ("quiet", "raise"):
    pipe = cycled(cycle)
    pipe.build()
    for b in range(5):
        try:
            take(f"cycle {cycle} {b}", pipe.run())
        except StopIteration:
            results[f"end {cycle} {b}"] = True
            pipe.reset()
np.savez(target, **results)
