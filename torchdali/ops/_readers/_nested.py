"""The values of nested samples: their paths, and what an empty list is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["ENCODED", "Leaf", "chosen", "features_of", "leaves_of_features", "leaves_of_sample", "nested"]

ENCODED = frozenset(("bytes", "path"))  # keys of an image or a sound of Hugging Face that is not decoded
Path = tuple[str | int, ...]


class Leaf(NamedTuple):
    """A value of each sample.

    Attributes:
        path: Keys, and of a tuple the index, from the sample to the value. A list of dictionaries has the keys of its
            items: the value is the list of theirs.
        empty: The tensor of an empty list ``(0, ...)``; None if it is unknown.
    """

    path: Path
    empty: Tensor | None = None

    @property
    def name(self) -> str:
        """The keys, joined by dots."""
        return ".".join(map(str, self.path))

    def value(self, sample: Any) -> Any:
        """Return the value of a sample."""
        for key in self.path:
            inside = isinstance(key, str) and isinstance(sample, (list, tuple))
            sample = [each[key] for each in sample] if inside else sample[key]
        return sample

    def tensor(self, sample: Any, as_tensor: Callable[[Any], Tensor]) -> Tensor:
        """Return the value as a tensor; an empty one of a list has the dtype and the axes of others."""
        value = self.value(sample)
        made = as_tensor(value)
        if self.empty is None or made.numel() or not isinstance(value, (list, tuple)):
            return made
        same = made.ndim == self.empty.ndim
        return made.to(self.empty.dtype) if same else self.empty.clone()


def leaves_of_sample(sample: Any, as_tensor: Callable[[Any], Tensor]) -> list[Leaf]:
    """List the values of a sample, which shows the form of all."""
    return [Leaf(path, _empty_like(value, as_tensor)) for path, value in _walk(sample, (), top=True)]


def _walk(value: Any, path: Path, top: bool = False) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value.keys() != ENCODED:
        for key, inner in value.items():
            yield from _walk(inner, (*path, key))
    elif top and isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _walk(inner, (index,))
    elif isinstance(value, (list, tuple)) and value and all(isinstance(each, Mapping) for each in value):
        for key in value[0]:
            yield from _walk([each[key] for each in value], (*path, key))
    else:
        yield path, value


def _empty_like(value: Any, as_tensor: Callable[[Any], Tensor]) -> Tensor | None:
    if not isinstance(value, (list, tuple)) or not value:
        return None
    try:
        made = as_tensor(value)
    except (TypeError, ValueError, RuntimeError):  # is raised when the sample is read
        return None
    return made.new_empty((0, *made.shape[1:]))


# ---------------------------------------------------------------- features of Hugging Face


def leaves_of_features(features: Mapping[str, Any]) -> list[Leaf]:
    """List the values of samples by the features of a data set of Hugging Face."""
    return [leaf for name, feature in features.items() for leaf in _of_feature(feature, (name,), ())]


def _of_feature(feature: Any, path: Path, axes: tuple[int, ...]) -> Iterator[Leaf]:
    """Walk through a feature; ``axes`` are the lengths of the lists that it is in, 0 for any."""
    inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)
    if isinstance(feature, Mapping):
        for name, each in feature.items():
            yield from _of_feature(each, (*path, name), axes)
    elif inner is not None:
        yield from _of_feature(inner, path, (*axes, max(getattr(feature, "length", -1), 0)))
    else:
        dtype = _DTYPES.get(str(getattr(feature, "dtype", ""))[:3])
        shape = tuple(n or 0 for n in getattr(feature, "shape", None) or ())
        listed = bool(axes) and axes[0] == 0 and dtype is not None
        yield Leaf(path, torch.empty((*axes, *shape), dtype=dtype) if listed else None)


# As `torch.tensor` makes them of Python's numbers.
_DTYPES = {"flo": torch.float32, "int": torch.int64, "uin": torch.int64, "boo": torch.bool}


# ---------------------------------------------------------------- outputs


def chosen(leaves: Sequence[Leaf], columns: Sequence[str]) -> list[Leaf]:
    """Return the leaves that some names stand for, or begin the names of.

    Raises:
        RuntimeError: there are no such columns.
    """
    found = [[leaf for leaf in leaves if f"{leaf.name}.".startswith(f"{name}.")] for name in columns]
    missing = [name for name, those in zip(columns, found, strict=True) if not those]
    if missing:
        raise RuntimeError(f"columns: samples have no {missing}, but {[leaf.name for leaf in leaves]}")
    return [leaf for those in found for leaf in those]


def nested(leaves: Sequence[Leaf], outputs: Any) -> Any:
    """Return outputs in the form of a sample: as they are, or dictionaries, or a list for a tuple with dictionaries."""
    if not any(isinstance(key, str) for leaf in leaves for key in leaf.path):
        return outputs
    made: dict[Any, Any] = {}
    for leaf, output in zip(leaves, outputs, strict=True):
        place = made
        for key in leaf.path[:-1]:
            place = place.setdefault(key, {})
        place[leaf.path[-1]] = output
    return list(made.values()) if isinstance(leaves[0].path[0], int) else made


def features_of(given: Any) -> Mapping[str, Any] | None:
    """Return the features of a data set of Hugging Face whose samples have their form; None for others."""
    module = sys.modules.get("datasets")
    if module is None or not isinstance(given, module.Dataset) or given.format["type"] == "custom":
        return None
    features: Mapping[str, Any] = {
        name: feature for name, feature in given.features.items() if name in given.format["columns"]
    }
    return features
