"""Python functions in a pipeline: per sample, per batch, and with several outputs."""

import sys

import numpy as np
from nvidia.dali import fn, ops, pipeline_def, types
from nvidia.dali.pipeline import Pipeline

data, target = sys.argv[1:]
results = {}


def edit(image):
    image = image.copy()
    image[5:15, 5:15] = 0
    return image


def halves(image):
    return image[: image.shape[0] // 2], np.array(image.mean(), np.float32)


def whole(images):
    return [np.flip(image, 1).copy() for image in images]


@pipeline_def(batch_size=3, num_threads=2, device_id=None, exec_async=False, exec_pipelined=False)
def functions():
    jpegs, _ = fn.readers.file(file_root=f"{data}/images")
    image = fn.crop(fn.decoders.image(jpegs), crop=(30, 40))
    upper, mean = fn.python_function(image, function=halves, num_outputs=2)
    return (
        fn.python_function(image, function=edit), upper, mean,
        fn.python_function(image, function=whole, batch_processing=True, output_layouts="HWC"),
        fn.python_function(image, function=lambda x: x.astype(np.int32) * 2),
    )  # fmt: skip


class Old(Pipeline):
    def __init__(self):
        super().__init__(2, 1, None, exec_async=False, exec_pipelined=False)
        self.input = ops.readers.File(file_root=f"{data}/images")
        self.decode = ops.decoders.Image(device="cpu", output_type=types.RGB)
        self.edit = ops.PythonFunction(edit)
        self.largest = ops.PythonFunction(function=lambda xs: [x.max(2) for x in xs], batch_processing=True)

    def define_graph(self):
        jpegs, labels = self.input(name="Reader")
        images = self.decode(jpegs)
        return self.edit(images), self.largest(images), labels


for name, pipe in (("functions", functions()), ("classes", Old())):
    pipe.build()
    for b in range(2):
        for o, output in enumerate(pipe.run()):
            for i in range(len(output)):
                results[f"{name} {b} {o} {i}"] = np.array(output.at(i))
np.savez(target, **results)
