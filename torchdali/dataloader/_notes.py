"""Notes of a loader: the texts that tell the user which parts are accelerated, and why other parts aren't.

Most functions of this module return a *reason*: a sentence that says why something isn't accelerated, followed by a
remedy with a link to a section of the documentation's DataLoader page.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchdali.errors import note
from torchdali.kernels.native import status as native_status

__all__ = [
    "GUIDE", "LAZY", "NotSupportedError", "Notes", "accelerated_names", "accelerated_note", "add_cure",
    "broken_rule_reason", "changed_code_reason", "different_transforms_reason", "empty_dataset_reason",
    "fast_path_notes", "is_fast_path_note", "is_not_accelerated", "iterable_dataset_reason", "name_of",
    "no_batches_reason", "not_accelerated_note", "own_dataset_reason", "own_function_reason", "own_transform_reason",
    "pil_output_reason", "raised_reason", "shorten", "small_batches_reason", "switched_off_reason",
    "unsupported_reason",
]  # fmt: skip

GUIDE = "https://torchdali.github.io/torchdali/latest/dataloader/"
LAZY = "torchdali decodes the images, only as far as your transforms need them"
_PREFIX = "not accelerated: "
_ACCELERATED = ": accelerated"
_FAST_PATH = "the fast path isn't built"


class NotSupportedError(Exception):
    """Error for a loader that can't be accelerated. The message is a reason from this module."""


class Notes(tuple[str, ...]):
    """Notes of a loader. `print` shows one note per line."""

    def __str__(self) -> str:
        return "\n".join(self)


def not_accelerated_note(reason: str) -> str:
    """Return the note for a loader that isn't accelerated."""
    return _PREFIX + reason


def is_not_accelerated(note: str) -> bool:
    """Return True for a note that `not_accelerated_note` has created."""
    return note.startswith(_PREFIX)


def shorten(note: str) -> str:
    """Return the first sentence of a note, without its remedy and without the words "not accelerated"."""
    return note.removeprefix(_PREFIX).partition(". ")[0]


def accelerated_note(transform: Any) -> str:
    """Return the note for an accelerated transform."""
    return (transform if isinstance(transform, str) else name_of(transform)) + _ACCELERATED


def accelerated_names(notes: Iterable[str]) -> list[str]:
    """Return the names of the transforms that the notes list as accelerated."""
    return [note.removesuffix(_ACCELERATED) for note in notes if note.endswith(_ACCELERATED)]


def name_of(value: Any) -> str:
    """Return the name of a function, or of an object's class."""
    return str(getattr(value, "__name__", type(value).__name__))


def _reason(why: str, cure: str, anchor: str) -> str:
    return f"{why}. {cure}: {GUIDE}#{anchor}"


# ---------------------------------------------------------------- datasets


def own_dataset_reason(dataset: Any) -> str:
    """Return the reason why a user's own dataset class isn't accelerated."""
    return _reason(f"{name_of(dataset)} is your own dataset", "To speed it up", "own-dataset")


def changed_code_reason(change: str) -> str:
    """Return the reason why a loader isn't accelerated after the program has replaced a function.

    Args:
        change: Description of the replaced function or attribute, from `_pristine`.
    """
    return _reason(change, "Restore it, or see", "own-functions")


def iterable_dataset_reason(dataset: Any) -> str:
    """Return the reason why an `IterableDataset` isn't accelerated."""
    why = f"{name_of(dataset)} is an iterable dataset"
    return _reason(why, "Only datasets with `__getitem__` are accelerated", "own-dataset")


def empty_dataset_reason(dataset: Any) -> str:
    """Return the reason why a dataset without samples isn't accelerated."""
    return f"{name_of(dataset)} has no samples"


# ---------------------------------------------------------------- functions and options


def own_function_reason(option: str, function: Any = None) -> str:
    """Return the reason why a loader isn't accelerated if the user passes a function of their own.

    Args:
        option: Name of the argument or attribute, for example ``collate_fn``, ``target_transform`` or ``loader``.
        function: The function; None if its name isn't known.
    """
    named = "" if function is None else f" ({name_of(function)})"
    return _reason(f"{option}{named} is your own function", _CURES.get(option, "Omit it, or see"), "own-functions")


_CURES = {
    "collate_fn": "Omit it to use PyTorch's, or see",
    "target_transform": "Apply it to the dataset's labels once, or see",
    "worker_init_fn": "An accelerated loader has no worker processes: omit it, or see",
}


def no_batches_reason() -> str:
    """Return the reason why a loader with ``batch_size=None`` isn't accelerated."""
    return _reason("batch_size is None", "Pass a batch size, or see", "own-functions")


def small_batches_reason(min_batch_size: int) -> str:
    """Return the reason why small batches of images in memory aren't accelerated.

    Args:
        min_batch_size: Smallest batch size that is accelerated without workers.
    """
    why = "PyTorch is as fast for small batches of images in memory"
    return _reason(why, f"Pass batch_size={min_batch_size} or more, or num_workers=1, or see", "arguments")


def switched_off_reason() -> str:
    """Return the reason why no loader is accelerated under ``TORCHDALI_ACCELERATE=0``."""
    return "TORCHDALI_ACCELERATE turned acceleration off. Unset it to turn acceleration on"


# ---------------------------------------------------------------- transforms


def own_transform_reason(transform: Any) -> str:
    """Return the reason why a user's own transform, or torchvision's `Lambda`, isn't accelerated."""
    why = f"{name_of(transform)} isn't a torchvision transform"
    return _reason(_LAMBDA if name_of(transform) == "Lambda" else why, _SUPPORTED, _TRANSFORMS)


def unsupported_reason(transform: Any, form: str = "", argument: str = "") -> str:
    """Return the reason why an unsupported torchvision transform isn't accelerated.

    Args:
        form: The input of the transform, like ``"a tensor from 0 to 1"``; "" if no input is supported.
        argument: The argument of the transform, like ``"fill='red'"``; "" if the argument isn't the reason.
    """
    why = f"{name_of(transform)} isn't supported{f' with {argument}' * bool(argument)}{f' on {form}' * bool(form)}"
    return _reason(why, _SUPPORTED, _TRANSFORMS)


_LAMBDA = "Lambda calls your own function"
_SUPPORTED, _TRANSFORMS = "Supported transforms", "supported-transforms"


def broken_rule_reason(transform: Any, error: BaseException) -> str:
    """Return the reason why a transform isn't accelerated if a rule in `_rules` has raised an error for it."""
    return _reason(f"{name_of(transform)}: {error}", _SUPPORTED, _TRANSFORMS)


def pil_output_reason() -> str:
    """Return the reason why transforms that return PIL images aren't accelerated."""
    return _reason("the transforms return PIL images", "End them with `v2.ToImage()` or `ToTensor()`", _TRANSFORMS)


def different_transforms_reason() -> str:
    """Return the reason why a concatenation of datasets with different transforms isn't accelerated."""
    why = "the datasets have different transforms"
    return _reason(why, "Use one loader per transform, or see", _TRANSFORMS)


def raised_reason(error: BaseException) -> str:
    """Return the reason why a loader isn't accelerated if the examination of its dataset raised an error."""
    return f"{type(error).__name__} while torchdali examined the dataset and the transforms: {error}"


# ---------------------------------------------------------------- errors


def add_cure(error: BaseException) -> None:
    """Add a note with the remedy to an error of PyTorch or Python whose message names no remedy."""
    text = str(error)
    for words, cure in _ERRORS.items():
        if words in text:
            note(error, cure)


_ERRORS = {
    "each tensor to be equal size": "The samples of a batch must have the same size: resize or crop them, for "
    "example with `v2.Resize((224, 224))`, or pass a collate_fn",
    "found <class 'PIL.": "The dataset returns PIL images: end its transforms with `v2.ToImage()` or `ToTensor()`",
    "found <class 'NoneType'>": "`__getitem__` or a transform returned None: a `return` may be missing",
    "pickle": "Worker processes receive the dataset, collate_fn and worker_init_fn by pickle: define their "
    "functions and classes at the top level of a module, and use no `lambda`",
}
"""Remedies, by words in the messages of PyTorch's and Python's errors."""


# ---------------------------------------------------------------- the fast path


def fast_path_notes() -> tuple[str, ...]:
    """Return () if the native library is loaded; otherwise a note that images load no faster without the library."""
    if native_status().library is not None:
        return ()
    why = f"{_FAST_PATH}, so images load no faster than with PyTorch"
    return (_reason(why, "Run `torchdali doctor`, or see", "fast-path"),)


def is_fast_path_note(note: str) -> bool:
    """Return True for the note of `fast_path_notes`."""
    return note.startswith(_FAST_PATH)
