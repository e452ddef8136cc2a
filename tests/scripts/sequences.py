"""Sequences: operators on frames, an argument for each frame, reordering, slices of time."""

import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types

data, target = sys.argv[1:]
results = {}


@pipeline_def(batch_size=2, num_threads=2, device_id=None)
def processed():
    frames = fn.readers.sequence(file_root=f"{data}/frames", sequence_length=4, step=3)
    cropped = fn.crop(frames, crop=(20, 24))
    angles = fn.per_frame(fn.external_source(lambda info: np.arange(4, dtype=np.float32) * 10, batch=False))
    kernels = fn.per_frame(fn.constant(fdata=[0.5, 1.0, 1.5, 2.0]), replace=True)
    shifts = fn.transforms.translation(offset=fn.per_frame(fn.constant(fdata=[float(i) for i in range(8)], shape=[4, 2])))
    return (
        cropped,
        fn.rotate(cropped, angle=angles, keep_size=True, fill_value=0),
        fn.gaussian_blur(cropped, sigma=kernels),
        shifts,
        fn.warp_affine(cropped, matrix=shifts, interp_type=types.INTERP_LINEAR, fill_value=5),
        fn.element_extract(cropped, element_map=[0, 3])[1],
        fn.sequence_rearrange(cropped, new_order=[3, 0, 0]),
        cropped[1:3],
        fn.reshape(cropped, layout="FHWC"),
        fn.reductions.max(cropped, axis_names="F"),
        fn.crop_mirror_normalize(cropped, mirror=1, output_layout="FCHW", mean=[100.0], std=[50.0]),
        fn.resize(cropped, size=[10, 12]),
    )


pipe = processed()
pipe.build()
for b in range(2):
    for o, output in enumerate(pipe.run()):
        results[f"layout {o}"] = output.layout()
        for i in range(2):
            results[f"{b} {o} {i}"] = np.array(output.at(i))
np.savez(target, **results)
