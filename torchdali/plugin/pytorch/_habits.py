"""Arguments of a `DataLoader`, of torchvision and of DALI that a `Loader` does not take: what to write instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import ParamSpec, TypeVar

from torchdali.errors import did_you_mean, self_explanatory, strip_internal_frames

__all__ = ["OF_FOLDERS", "OF_PIPELINES", "answering"]

P = ParamSpec("P")
T = TypeVar("T")

_LEFT_OUT = "leave it out: "
_BOTH = {
    "pin_memory": _LEFT_OUT + "with device_id=0 batches come on the GPU, and on the way there memory is page-locked",
    "persistent_workers": _LEFT_OUT + "threads and processes last as long as the Loader",
    "timeout": _LEFT_OUT + "there are no workers to wait for; what fails is an error",
    "in_order": _LEFT_OUT + "batches come in order",
    "worker_init_fn": "threads need none; seed= decides random numbers",
    "generator": "seed= decides order and random numbers",
    "multiprocessing_context": "num_processes= says how many there are; py_start_method= of a pipeline, how they start",
    "sampler": (
        "ranks are divided by themselves, as DistributedSampler does. Other samplers draw the records for an "
        "fn.external_source of a pipeline: see weighted sampling in docs/recipes/tasks.md"
    ),
    "target_transform": "change the labels in the loop, as in labels = table[labels]",
}
OF_FOLDERS = {
    **_BOTH,
    "num_workers": "num_threads= (by default as many as this process has cores), and num_processes=",
    "shuffle": "train=True shuffles, train=False keeps the order",
    "transform": "augment= takes one, a name, or a function of images; for steps of your own, Loader(pipeline)",
    "collate_fn": "the pipeline makes the batches: for others, Loader(pipeline, ragged=...)",
    "prefetch_factor": "prefetch_queue_depth=",
    "is_valid_file": 'bad_samples="skip" leaves out what cannot be read; for a choice of files, Loader(pipeline)',
    "loader": "pictures are decoded by the pipeline; for other files, Loader(pipeline)",
    "allow_empty": _LEFT_OUT + "folders without pictures are no error",
    "image_size": "size=",
    "crop_size": "size=",
    "resize": "size=; in a test the shorter side is size / 0.875 before the middle is taken",
    "normalize": "mean= and std=",
    "device": "device_id=",
    "split": "train=",
    "is_train": "train=",
    "training": "train=",
}  # fmt: skip
OF_PIPELINES = {
    **_BOTH,
    "batch_size": "the pipeline has it: Loader(functools.partial(pipe, batch_size=64)), or Loader(pipe(batch_size=64))",
    "num_workers": "the pipeline has num_threads= and num_processes=",
    "shuffle": "the reader has random_shuffle=True",
    "transform": "the pipeline does it, by the operators of fn",
    "collate_fn": "the pipeline makes the batches; ragged=[...] names outputs that are to be lists",
    "prefetch_factor": "the pipeline has prefetch_queue_depth=",
    "device_id": "the pipeline has it",
    "seed": "the pipeline has it",
    "output_map": "outputs=",
    "last_batch_policy": "drop_last=True for full batches only; otherwise the last batch is smaller",
    "last_batch_padded": _LEFT_OUT + "no sample comes twice",
    "fill_last_batch": _LEFT_OUT + "no sample comes twice; drop_last=True for full batches only",
    "auto_reset": _LEFT_OUT + "each loop begins an epoch",
    "dynamic_shape": "ragged=[...] names outputs whose samples differ in shape",
}  # fmt: skip
for _answers in (OF_FOLDERS, OF_PIPELINES):
    _answers["batch_sampler"] = _answers["sampler"]
    _answers["pin_memory_device"] = _answers["pin_memory"]


def answering(answers: Mapping[str, str], name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function say what to write instead of arguments that it does not have; its errors show the user's frames.

    Args:
        answers: What to write, by argument.
        name: Of the function, in messages.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        own = inspect.signature(function).parameters

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                for argument in kwargs.keys() - own.keys():
                    raise TypeError(_refusal(name, argument, answers, own.keys()))
                return function(*args, **kwargs)
            except Exception as error:
                strip_internal_frames(self_explanatory(error))
                raise

        return call

    return decorate


def _refusal(name: str, argument: str, answers: Mapping[str, str], own: Iterable[str]) -> str:
    text = f"{name} got an unexpected keyword argument {argument!r}"
    if argument in answers:
        return f"{text}: {answers[argument]}"
    return text + did_you_mean(argument, own)
