"""Find the values in nested samples (dictionaries, lists and tuples), and choose the dtype of empty lists."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = [
    "ENCODED",
    "NestedValue",
    "get_features",
    "list_feature_leaves",
    "list_sample_leaves",
    "nest",
    "select_leaves",
]

ENCODED = frozenset(("bytes", "path"))  # keys of an encoded image or audio file in a Hugging Face dataset
Path = tuple[str | int, ...]


class NestedValue(NamedTuple):
    """A value that each sample has, at the same path.

    Attributes:
        path: Keys of dictionaries, or indices of tuples, from the sample to the value. If a key follows a list of
            dictionaries, the value is a list with the value of this key in each dictionary.
        empty: Tensor that replaces an empty list, ``(0, ...)``; None if the tensor's dtype or axes are unknown.
        is_declared: True if the dataset declares the dtype of `empty` for all samples.
    """

    path: Path
    empty: Tensor | None = None
    is_declared: bool = False

    @property
    def name(self) -> str:
        """The keys of the path, joined by dots."""
        return ".".join(map(str, self.path))

    @property
    def is_named(self) -> bool:
        """True if the path contains a key of a dictionary."""
        return any(isinstance(key, str) for key in self.path)

    @property
    def title(self) -> str:
        """Description of the value, for messages."""
        if not self.path:
            return "the sample"
        return f"value {self.path[0]} of the sample" if not self.is_named else f"the value {self.name!r} of the sample"

    def value(self, sample: Any) -> Any:
        """Return the value in a sample."""
        for key in self.path:
            is_list = isinstance(key, str) and isinstance(sample, (list, tuple))
            sample = [each[key] for each in sample] if is_list else sample[key]
        return sample

    def tensor(self, sample: Any, as_tensor: Callable[[Any], Tensor]) -> Tensor:
        """Return the value in a sample as a tensor.

        An empty list gets the dtype and the axes of the other samples' lists.
        """
        value = self.value(sample)
        tensor = as_tensor(value)
        if self.empty is None or not isinstance(value, (list, tuple)) or (tensor.numel() and not self.is_declared):
            return tensor
        keeps_axes = tensor.ndim == self.empty.ndim or tensor.numel()
        return tensor.to(self.empty.dtype) if keeps_axes else self.empty.clone()


def list_sample_leaves(sample: Any, as_tensor: Callable[[Any], Tensor]) -> list[NestedValue]:
    """List the values in the first sample. All samples must have the same structure."""
    return [NestedValue(path, _empty_like(value, as_tensor)) for path, value in _walk(sample, (), top=True)]


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
        tensor = as_tensor(value)
    except (TypeError, ValueError, RuntimeError):  # the same error is raised when the sample is read
        return None
    return tensor.new_empty((0, *tensor.shape[1:]))


# ---------------------------------------------------------------- features of Hugging Face


def list_feature_leaves(features: Mapping[str, Any]) -> list[NestedValue]:
    """List the values in samples of a Hugging Face dataset, from the dataset's features."""
    return [leaf for name, feature in features.items() for leaf in _walk_feature(feature, (name,), ())]


def _walk_feature(feature: Any, path: Path, axes: tuple[int, ...]) -> Iterator[NestedValue]:
    """Yield the values in a feature.

    Args:
        axes: Lengths of the lists that contain the feature, from the outermost; 0 for any length.
    """
    inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)
    if isinstance(feature, Mapping):
        for name, each in feature.items():
            yield from _walk_feature(each, (*path, name), axes)
    elif inner is not None:
        yield from _walk_feature(inner, path, (*axes, max(getattr(feature, "length", -1), 0)))
    else:
        dtype = _declared_dtype(str(getattr(feature, "dtype", "")))
        shape = tuple(n or 0 for n in getattr(feature, "shape", None) or ())
        is_list = bool(axes) and axes[0] == 0 and dtype is not None
        yield NestedValue(path, torch.empty((*axes, *shape), dtype=dtype) if is_list else None, is_declared=is_list)


def _declared_dtype(name: str) -> torch.dtype | None:
    """Return the dtype of a list of values, from the name of the declared dtype.

    The dtype is int64 for all integers, and float32 or float64 for floats; None for unknown names.
    """
    if name in ("float64", "double"):
        return torch.float64
    return {"flo": torch.float32, "int": torch.int64, "uin": torch.int64, "boo": torch.bool}.get(name[:3])


# ---------------------------------------------------------------- outputs


def select_leaves(leaves: Sequence[NestedValue], columns: Sequence[str]) -> list[NestedValue]:
    """Select values by column. A column is a value's name, or the first keys of the name.

    Raises:
        RuntimeError: A column doesn't exist.
    """
    groups = [[leaf for leaf in leaves if f"{leaf.name}.".startswith(f"{name}.")] for name in columns]
    missing = [name for name, group in zip(columns, groups, strict=True) if not group]
    if missing:
        raise RuntimeError(f"columns must be among {[leaf.name for leaf in leaves]}, got {missing}")
    return [leaf for group in groups for leaf in group]


def nest(leaves: Sequence[NestedValue], outputs: Any) -> Any:
    """Arrange outputs in the dictionaries of a sample; return the outputs unchanged if samples have no dictionaries."""
    if not any(isinstance(key, str) for leaf in leaves for key in leaf.path):
        return outputs
    tree: dict[Any, Any] = {}
    for leaf, output in zip(leaves, outputs, strict=True):
        parent = tree
        for key in leaf.path[:-1]:
            parent = parent.setdefault(key, {})
        parent[leaf.path[-1]] = output
    return list(tree.values()) if isinstance(leaves[0].path[0], int) else tree


def get_features(dataset: Any) -> Mapping[str, Any] | None:
    """Return the features of a Hugging Face dataset.

    Return None for other datasets, and for a dataset with a transform, which may change the samples' structure.
    """
    module = sys.modules.get("datasets")
    if module is None or not isinstance(dataset, module.Dataset) or dataset.format["type"] == "custom":
        return None
    features: Mapping[str, Any] = {
        name: feature for name, feature in dataset.features.items() if name in dataset.format["columns"]
    }
    return features
