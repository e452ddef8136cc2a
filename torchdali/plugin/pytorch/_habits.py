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

__all__ = ["FOLDER_ADVICE", "PIPELINE_ADVICE", "advise_on_arguments"]

P = ParamSpec("P")
T = TypeVar("T")

_OMIT = "omit it: "
_COMMON_ADVICE = {
    "pin_memory": _OMIT + "with device_id=0 batches are on the GPU, and the copies use pinned memory",
    "persistent_workers": _OMIT + "threads and processes live as long as the Loader",
    "timeout": _OMIT + "no worker processes can time out; failures raise errors",
    "in_order": _OMIT + "batches always come in order",
    "worker_init_fn": _OMIT + "no worker processes exist; seed= determines the random numbers",
    "generator": "use seed=, which determines the order and the random numbers",
    "multiprocessing_context": "use num_processes=, and py_start_method= of a pipeline",
    "sampler": (
        "ranks share the samples automatically, like with DistributedSampler. For other samplers, see weighted "
        "sampling in docs/recipes/tasks.md"
    ),
    "target_transform": "change the labels in the loop, for example labels = table[labels]",
}
FOLDER_ADVICE = {
    **_COMMON_ADVICE,
    "num_workers": "use num_threads=, by default one per core, or num_processes=",
    "shuffle": "use train=True to shuffle, or train=False to keep the order",
    "transform": "use augment= with transforms, a name or a function of images; for other transforms, use "
    "Loader(pipeline)",
    "collate_fn": "the pipeline collates batches; for ragged batches, use Loader(pipeline, ragged=...)",
    "prefetch_factor": "use prefetch_queue_depth=",
    "is_valid_file": 'bad_samples="skip" skips unreadable files; to select files, use Loader(pipeline)',
    "loader": "the pipeline decodes the images; for other files, use Loader(pipeline)",
    "allow_empty": _OMIT + "folders without images don't raise an error",
    "image_size": "use size=",
    "crop_size": "use size=",
    "resize": "use size=; with train=False the shorter side is resized to size / 0.875 before the center crop",
    "normalize": "use mean= and std=",
    "device": "use device_id=",
    "split": "use train=",
    "is_train": "use train=",
    "training": "use train=",
}  # fmt: skip
PIPELINE_ADVICE = {
    **_COMMON_ADVICE,
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
    "last_batch_padded": _OMIT + "no sample comes twice",
    "fill_last_batch": _OMIT + "no sample comes twice; drop_last=True for full batches only",
    "auto_reset": _OMIT + "each loop begins an epoch",
    "dynamic_shape": "use ragged=[...], which names outputs whose samples differ in shape",
}  # fmt: skip
for _advice in (FOLDER_ADVICE, PIPELINE_ADVICE):
    _advice["batch_sampler"] = _advice["sampler"]
    _advice["pin_memory_device"] = _advice["pin_memory"]


def advise_on_arguments(advice: Mapping[str, str], name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for a function that users call with other loaders' arguments.

    If an argument from `advice` is passed, the decorated function raises a TypeError with the advice. The traceback of
    an error contains only the user's frames.

    Args:
        advice: Advice for each unsupported argument, by the argument's name.
        name: The function's name in error messages.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        parameters = inspect.signature(function).parameters

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                if advice is PIPELINE_ADVICE:
                    _check_pipeline(*args[1:2])
                for argument in kwargs.keys() - parameters.keys():
                    raise TypeError(_describe_unexpected(name, argument, advice, parameters.keys()))
                if "train" in parameters and "train" not in kwargs:
                    raise TypeError(
                        f"{name} needs train=True, to shuffle and augment, or train=False, to keep the order"
                    )
                return function(*args, **kwargs)
            except Exception as error:
                strip_internal_frames(self_explanatory(error))
                raise

        return call

    return decorate


def _describe_unexpected(name: str, argument: str, advice: Mapping[str, str], parameters: Iterable[str]) -> str:
    text = f"{name} got an unexpected keyword argument {argument!r}"
    if argument in advice:
        return f"{text}: {advice[argument]}"
    return text + did_you_mean(argument, parameters)


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
