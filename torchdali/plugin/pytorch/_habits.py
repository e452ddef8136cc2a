"""Error messages for arguments of other loaders that users pass to a `Loader` out of habit.

A `Loader` doesn't have all arguments of PyTorch's `DataLoader`, torchvision's `ImageFolder` or DALI's iterators. If a
user passes an argument that a `Loader` lacks, the error says how to get the same effect with a `Loader`.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

import torch.utils.data

from torchdali.errors import did_you_mean, self_explanatory, strip_internal_frames

__all__ = ["OF_FOLDERS", "OF_PIPELINES", "answering"]

P = ParamSpec("P")
T = TypeVar("T")

_LEFT_OUT = "omit it: "
_BOTH = {
    "pin_memory": _LEFT_OUT + "with device_id=0 batches are on the GPU, and the copies use pinned memory",
    "persistent_workers": _LEFT_OUT + "threads and processes live as long as the Loader",
    "timeout": _LEFT_OUT + "no worker processes can time out; failures raise errors",
    "in_order": _LEFT_OUT + "batches always come in order",
    "worker_init_fn": _LEFT_OUT + "no worker processes exist; seed= determines the random numbers",
    "generator": "use seed=, which determines the order and the random numbers",
    "multiprocessing_context": "use num_processes=, and py_start_method= of a pipeline",
    "sampler": (
        "ranks share the samples automatically, like with DistributedSampler. For other samplers, see weighted "
        "sampling in docs/recipes/tasks.md"
    ),
    "target_transform": "change the labels in the loop, for example labels = table[labels]",
}
OF_FOLDERS = {
    **_BOTH,
    "num_workers": "use num_threads=, by default one per core, or num_processes=",
    "shuffle": "use train=True to shuffle, or train=False to keep the order",
    "transform": "use augment= with transforms, a name or a function of images; for other transforms, use "
    "Loader(pipeline)",
    "collate_fn": "the pipeline collates batches; for ragged batches, use Loader(pipeline, ragged=...)",
    "prefetch_factor": "use prefetch_queue_depth=",
    "is_valid_file": 'bad_samples="skip" skips unreadable files; to select files, use Loader(pipeline)',
    "loader": "the pipeline decodes the images; for other files, use Loader(pipeline)",
    "allow_empty": _LEFT_OUT + "folders without images don't raise an error",
    "image_size": "use size=",
    "crop_size": "use size=",
    "resize": "use size=; with train=False the shorter side is resized to size / 0.875 before the center crop",
    "normalize": "use mean= and std=",
    "device": "use device_id=",
    "split": "use train=",
    "is_train": "use train=",
    "training": "use train=",
}  # fmt: skip
OF_PIPELINES = {
    **_BOTH,
    "batch_size": "pass it to the pipeline: Loader(functools.partial(pipe, batch_size=64)), or "
    "Loader(pipe(batch_size=64))",
    "num_workers": "use num_threads= and num_processes= of the pipeline",
    "shuffle": "use random_shuffle=True of the reader",
    "transform": "use the operators of fn in the pipeline",
    "collate_fn": "the pipeline collates batches; ragged=[...] names outputs that become lists",
    "prefetch_factor": "use prefetch_queue_depth= of the pipeline",
    "device_id": "pass it to the pipeline",
    "seed": "pass it to the pipeline",
    "output_map": "use outputs=",
    "last_batch_policy": "use drop_last=True for full batches only; otherwise the last batch is smaller",
    "last_batch_padded": _LEFT_OUT + "no sample comes twice",
    "fill_last_batch": _LEFT_OUT + "no sample comes twice; drop_last=True for full batches only",
    "auto_reset": _LEFT_OUT + "each loop begins an epoch",
    "dynamic_shape": "use ragged=[...], which names outputs whose samples differ in shape",
}  # fmt: skip
for _answers in (OF_FOLDERS, OF_PIPELINES):
    _answers["batch_sampler"] = _answers["sampler"]
    _answers["pin_memory_device"] = _answers["pin_memory"]


def answering(answers: Mapping[str, str], name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for a function that users call with other loaders' arguments.

    If an argument from `answers` is passed, the decorated function raises a TypeError with the advice. The traceback of
    an error contains only the user's frames.

    Args:
        answers: Advice for each unsupported argument, by the argument's name.
        name: The function's name in error messages.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        own = inspect.signature(function).parameters

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                if answers is OF_PIPELINES:
                    _check_pipeline(*args[1:2])
                for argument in kwargs.keys() - own.keys():
                    raise TypeError(_refusal(name, argument, answers, own.keys()))
                if "train" in own and "train" not in kwargs:
                    raise TypeError(
                        f"{name} needs train=True, to shuffle and augment, or train=False, to keep the order"
                    )
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


def _check_pipeline(pipeline: Any = None) -> None:
    """Check the first argument of a `Loader`.

    Raises:
        TypeError: the argument is a dataset, a `DataLoader` or a path.
    """
    rule = "Loader must get a pipeline, or a function that returns one"
    if isinstance(pipeline, (str, os.PathLike)):
        raise TypeError(f"{rule}, got {str(pipeline)!r}: use Loader.from_folder({str(pipeline)!r}, train=True)")
    if isinstance(pipeline, torch.utils.data.DataLoader):
        raise TypeError(f"{rule}, got a DataLoader: loop over it, or import DataLoader from torchdali")
    if isinstance(pipeline, (torch.utils.data.Dataset, list, tuple)):
        raise TypeError(
            f"{rule}, got a dataset ({type(pipeline).__name__}): use torchdali.DataLoader(dataset, batch_size=...)"
        )
