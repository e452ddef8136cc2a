"""Images of Pillow that are decoded late, so that only the part is decoded that transforms leave of them.

Transforms of a user's own, and torchvision's own code with its random numbers, get these in torch's workers, in the
place of what torchvision's `pil_loader` returns. Crops, flips and one resize are noted; whatever else is asked of the
image decodes it, by one call of the library of the fast path. The pixels are Pillow's, to the bit.
"""

from __future__ import annotations

import copy
import os
import sys
from typing import Any

import numpy as np
from PIL import Image
from torch.utils.data import ConcatDataset, Subset
from torchvision.datasets.folder import default_loader, pil_loader

from torchdali.dataloader._pristine import find_dataset_change
from torchdali.dataloader._rows import bases_of
from torchdali.ops._pictures import Source, View, library

__all__ = ["LateImage", "Opener", "late_dataset", "takes_late"]


class LateImage(Image.Image):
    """A JPEG in color, or a part of one.

    Args:
        source: The file.
        view: What is wanted of it.
        opener: Learns what is asked of its images.
        origin: The image that this comes from, the method and its arguments; None for a whole picture.
    """

    format = "JPEG"
    _info: dict[Any, Any] | None

    def __init__(self, source: Source, view: View, opener: Opener, origin: Origin | None = None) -> None:
        self._source, self._view, self._opener, self._origin = source, view, opener, origin
        super().__init__()
        self._mode, self._size = "RGB", (view.size[1], view.size[0])

    @property
    def info(self) -> dict[Any, Any]:
        """Facts that Pillow reads of the file besides pixels; read when they are asked for."""
        if self._info is None:
            self._info = dict(self._source.info)
        return self._info

    @info.setter
    def info(self, info: dict[Any, Any]) -> None:
        self._info = info or None

    @property
    def _is_late(self) -> bool:
        return self._im is None

    def load(self) -> Any:
        """Decode the image, if it is not yet."""
        if self._im is None:
            self._opener.note(self._source)
            # Of the whole, Pillow is as fast; and of a damaged file it has the error.
            image = None if self._origin is None else self._source.image(self._view)
            self._im = (self._by_pillow() if image is None else image).im
        return super().load()

    def _by_pillow(self) -> Image.Image:
        if self._origin is None:
            return self._source.whole()
        image, method, *arguments = self._origin
        changed: Image.Image = getattr(image._by_pillow(), method)(*arguments)
        return changed

    def _changed(self, view: View, method: str, *arguments: Any) -> LateImage:
        return LateImage(self._source, view, self._opener, (self, method, *arguments))

    def crop(self, box: Any = None) -> Image.Image:
        """Note a window, if it lies inside."""
        if self._is_late and box is not None and all(isinstance(each, int) for each in box):
            left, top, right, bottom = box
            view = self._view.crop(top, left, bottom - top, right - left)
            if view is not None:
                return self._changed(view, "crop", box)
        return super().crop(box)

    def resize(
        self, size: Any, resample: int | None = None, box: Any = None, reducing_gap: float | None = None
    ) -> Image.Image:
        """Note the size, if it is the first other one."""
        if self._is_late and box is reducing_gap is None:
            filter_ = Image.Resampling.BICUBIC if resample is None else Image.Resampling(resample)
            view = self._view.resize(size[1], size[0], filter_.name.lower())
            if view is not None:
                return self._changed(view, "resize", size, resample)
        return super().resize(size, resample, box, reducing_gap)

    def transpose(self, method: Any) -> Image.Image:
        """Note a flip."""
        if self._is_late and method in (Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.FLIP_TOP_BOTTOM):
            horizontal = method == Image.Transpose.FLIP_LEFT_RIGHT
            return self._changed(self._view.flip(horizontal, not horizontal), "transpose", method)
        return super().transpose(method)

    def copy(self) -> Image.Image:
        """Return the same image."""
        return LateImage(self._source, self._view, self._opener, self._origin) if self._is_late else super().copy()

    def convert(self, mode: str | None = None, *arguments: Any, **named: Any) -> Image.Image:
        """Return the same image, if it is to stay in color."""
        if self._is_late and mode in (None, "RGB") and not arguments and not named:
            return self.copy()
        return super().convert(mode, *arguments, **named)


Origin = tuple[Any, ...]


class Opener:
    """Opens pictures of one data set in one process, late as long as that pays.

    It does not for small pictures, and not if transforms want several parts of a picture, as for two views: then the
    whole is decoded once.
    """

    def __init__(self) -> None:
        self._pays = True
        self._last: Source | None = None

    def __call__(self, path: str) -> Image.Image:
        """Return what torchvision's `pil_loader` does."""
        late = None
        if self._pays and os.stat(path).st_size >= _SMALL:
            with open(path, "rb") as file:
                late = self.late(Source(np.frombuffer(file.read(), np.uint8)))
        return pil_loader(path) if late is None else late

    def late(self, source: Source) -> LateImage | None:
        """Return a late image; None if another one is better, or Pillow has the error for it."""
        if not self._pays or source.size is None:
            return None
        return LateImage(source, View.of(*source.size), self)

    def note(self, source: Source) -> None:
        """Note that a part of a picture is decoded."""
        self._pays &= source is not self._last
        self._last = source


_SMALL = 1 << 15  # bytes of a file


class _LateColumns:
    """A transform of a data set of Hugging Face, before which images are not decoded.

    Args:
        transform: Of the user.
        features: Of the columns with images.
    """

    def __init__(self, transform: Any, features: dict[str, Any]) -> None:
        self._transform, self._features, self._opener = transform, features, Opener()

    def __call__(self, batch: dict[str, Any]) -> Any:
        for name, feature in self._features.items():
            if name in batch:
                batch[name] = [_late_value(value, feature, self._opener) for value in batch[name]]
        return self._transform(batch)


def _late_value(value: Any, feature: Any, opener: Opener) -> Any:
    data = None if value is None else value["bytes"]
    if value is not None and data is None and os.path.isfile(value["path"] or ""):
        with open(value["path"], "rb") as file:
            data = file.read()
    late = None
    if data is not None and len(data) >= _SMALL and feature.mode in (None, "RGB"):
        source = Source(np.frombuffer(data, np.uint8))
        late = None if source.is_gray or source.is_turned else opener.late(source)
    return feature.decode_example(value) if late is None and value is not None else late


def takes_late(dataset: Any) -> bool:
    """Return True if `late_dataset` knows a dataset, and the library decodes."""
    return library() is not None and all(map(_takes_late, bases_of(dataset)))


def _takes_late(dataset: Any) -> bool:
    if type(dataset) is getattr(sys.modules.get("datasets"), "Dataset", None):
        return _has_images(dataset)
    is_torchvision = any(kind.__module__.startswith("torchvision.datasets.") for kind in type(dataset).__mro__)
    return is_torchvision and getattr(dataset, "loader", None) is default_loader and not find_dataset_change(dataset)


def _has_images(dataset: Any) -> bool:
    """Return True for a data set of Hugging Face with a transform, which gets images."""
    return dataset.format["type"] == "custom" and bool(_image_features(dataset))


def _image_features(dataset: Any) -> dict[str, Any]:
    kind = sys.modules["datasets"].Image
    return {name: feature for name, feature in dataset.features.items() if isinstance(feature, kind)}


def _late_columns(dataset: Any) -> Any:
    form, features = dataset.format, _image_features(dataset)
    plain = dataset.with_format(None)
    for name, feature in features.items():
        plain = plain.cast_column(name, type(feature)(mode=feature.mode, decode=False))
    transform = _LateColumns(form["format_kwargs"]["transform"], features)
    return plain.with_transform(transform, form["columns"], form["output_all_columns"])


def late_dataset(dataset: Any) -> Any:
    """Return a data set, or a part or sum of such, whose pictures are decoded late."""
    if type(dataset).__module__.startswith("datasets."):
        return _late_columns(dataset)
    if type(dataset) is Subset:
        return Subset(late_dataset(dataset.dataset), dataset.indices)
    if type(dataset) is ConcatDataset:
        return ConcatDataset([late_dataset(each) for each in dataset.datasets])
    late = copy.copy(dataset)
    late.loader = Opener()
    return late
