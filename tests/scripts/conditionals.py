"""Conditional execution: branches on values of samples, logical operators, calls of functions."""

import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

data, target = sys.argv[1:]
results = {}


def turned(image, angle):
    if angle > 0:
        return fn.rotate(image, angle=angle, fill_value=0, keep_size=True)
    elif angle < -5.0:
        return fn.flip(image)
    else:
        return image


@pipeline_def(batch_size=4, num_threads=2, device_id=None, enable_conditionals=True)
def branches(invert):
    jpegs, _ = fn.readers.file(file_root=f"{data}/images")
    image = fn.crop(fn.decoders.image(jpegs), crop=(40, 40))
    angle = fn.external_source(source=lambda info: np.float32(info.idx_in_epoch % 4 * 10 - 15), batch=False)
    out = turned(image, angle)
    is_large = angle > 10
    if is_large or angle == -15.0:
        marked = types.Constant(np.uint8(1), device="cpu")
    else:
        marked = types.Constant(np.uint8(0), device="cpu")
    if not is_large and angle != 5:
        number = angle * 2
    else:
        number = -angle
    if invert:
        out = np.uint8(255) - out
    return out, marked, number


for invert in (False, True):
    pipe = branches(invert)
    pipe.build()
    for b in range(2):
        for o, output in enumerate(pipe.run()):
            for i in range(4):
                results[f"{invert} {b} {o} {i}"] = np.array(output.at(i))


@pipeline_def(batch_size=4, num_threads=2, device_id=None, enable_conditionals=True, seed=7)
def automatic():
    jpegs, _ = fn.readers.file(file_root=f"{data}/images")
    image = fn.crop(fn.decoders.image(jpegs), crop=(40, 40))
    return (
        auto_augment.auto_augment_image_net(image, shape=(40, 40)),
        rand_augment.rand_augment(image, n=2, m=9),
        trivial_augment.trivial_augment_wide(image),
    )


pipe = automatic()
pipe.build()
for o, output in enumerate(pipe.run()):
    results[f"automatic {o}"] = [(*output.at(i).shape, output.at(i).dtype.itemsize) for i in range(4)]
np.savez(target, **results)
