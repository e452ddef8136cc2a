"""A gallery of augmentations with fixed parameters, geometric transforms, and arithmetic."""

import math
import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali import math as dali_math

data, target = sys.argv[1:]
results = {}


def gallery():
    jpegs, _ = fn.readers.file(file_root=f"{data}/images")
    image = fn.decoders.image(jpegs)
    small = fn.crop(image, crop=(48, 48))
    yield "crop", small
    yield "flip", fn.flip(image, vertical=1, horizontal=0)
    yield "brightness", fn.brightness_contrast(small, brightness=0.5, contrast=1.5)
    yield "hsv", fn.hsv(small, hue=120, saturation=1, value=0.4)
    yield "gray", fn.color_space_conversion(small, image_type=types.RGB, output_type=types.GRAY)
    yield "ycbcr", fn.color_space_conversion(small, image_type=types.RGB, output_type=types.YCbCr)
    yield "blur", fn.gaussian_blur(small, window_size=5, sigma=1.2)
    yield "laplacian", fn.laplacian(small, window_size=3, dtype=types.FLOAT)
    yield "rotate", fn.rotate(small, angle=30, fill_value=0)
    matrix = (1.0, 0.8, 0.0, 0.0, 1.2, 0.0)
    yield "warp", fn.warp_affine(small, matrix=matrix, interp_type=types.INTERP_LINEAR, fill_value=128)
    turned = fn.transforms.rotation(angle=20.0, center=(24, 24))
    both = fn.transforms.combine(turned, fn.transforms.translation(offset=(3, -2)), fn.transforms.scale(scale=(0.8, 1.1)))
    yield "transforms", both
    yield "warp by a matrix", fn.warp_affine(small, matrix=both, fill_value=0, inverse_map=False)
    yield "erase", fn.erase(small, anchor=(4, 6, 20, 20), shape=(9, 8, 7, 11), axis_names="HW", fill_value=(120, 60, 9))
    yield "paste", fn.paste(small, ratio=1.5, fill_value=(55, 55, 55))
    yield "resize", fn.resize(small, resize_x=30, resize_y=60)
    yield "resize to floats", fn.resize(small, size=(31, 29), dtype=types.FLOAT, interp_type=types.INTERP_CUBIC)
    yield "pad", fn.pad(small, fill_value=3, axis_names="HW", shape=(50, 60))
    yield "cast", fn.cast(small, dtype=types.FLOAT16)
    yield "normalize", fn.normalize(fn.cast(small, dtype=types.FLOAT), axes=(0, 1))
    yield "transpose", fn.transpose(small, perm=[2, 0, 1])
    yield "slice", image[5:25, -30:-10, 1]
    yield "mean", fn.reductions.mean(small, axis_names="HW")
    yield "blend", small / 2 + fn.flip(small) / 2
    yield "clamp", dali_math.clamp(small * 1.7 - 20, 10, 200)
    yield "sine", dali_math.sin(small * (math.pi / 255))
    yield "compare", (small > 100) & (small < np.uint8(180))
    yield "jpeg", fn.jpeg_compression_distortion(small, quality=20)
    # Random augmentations: shape and dtype.
    for name, made in (
        ("uniform", fn.random.uniform(range=(-1.0, 1.0), shape=[3])),
        ("coin", fn.random.coin_flip(probability=0.3)),
        ("snow", fn.noise.salt_and_pepper(small, prob=0.1)),
        ("twist", fn.color_twist(small, hue=fn.random.uniform(range=(-9.0, 9.0)))),
    ):
        yield f"random {name}", made


names = []


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=42)
def outputs():
    made = list(gallery())
    names[:] = [name for name, _ in made]
    return tuple(node for _, node in made)


pipe = outputs()
pipe.build()
for name, output in zip(names, pipe.run(), strict=True):
    for i in range(len(output)):
        sample = np.array(output.at(i))
        results[f"{name} {i}"] = (str(sample.dtype), *sample.shape) if name.startswith("random") else sample
    results[f"{name} layout"] = output.layout()
np.savez(target, **results)
