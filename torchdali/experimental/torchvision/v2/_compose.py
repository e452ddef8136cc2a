"""`Compose`: a sequence of transforms as one pipeline."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import PIL.Image
import torch

from torchdali import fn
from torchdali.data_node import DataNode
from torchdali.errors import strip_internal_frames
from torchdali.experimental.torchvision.v2._color import Normalize
from torchdali.experimental.torchvision.v2._images import as_image, batch_of, layout_of, stack
from torchdali.experimental.torchvision.v2._transform import (
    ToPILImage,
    ToPureTensor,
    Transform,
    check_transforms,
)
from torchdali.forks import ForkSafeLock
from torchdali.pipeline import Pipeline
from torchdali.pipeline._options import NAMES
from torchdali.pipeline._warnings import scale_mistake

__all__ = ["Compose"]

_FLOATS = (
    "the result of this Compose is a PIL image, so its float values are rounded and clamped to bytes. Add "
    "ToPureTensor() to get a tensor. Normalize expects mean and std on the scale 0 to 255"
)


class Compose:
    """A sequence of transforms that one pipeline applies.

    Call a `Compose` either only with PIL images (mode L, RGB or RGBA) or only with tensors ``(..., C, H, W)``. The
    result has the same type as the input, unless the list contains `ToPureTensor`, `PILToTensor` or `ToPILImage`. The
    last of these transforms in the list determines the type. Random transforms draw new numbers for each image of a
    tensor.

    The first call in each process builds the pipeline, so that a `Compose` may be pickled and forked. Several threads
    may call a `Compose`; their calls run one after the other.

    If you call a `Compose` with a node while you define a pipeline, the transforms are added to that pipeline. The
    node's images must have the layout ``HWC``.

    Args:
        op_list: The transforms.
        batch_size: Greatest number of images in one call.
        num_threads: Number of threads of the pipeline.
        dali_pipeline_kwargs: More arguments of `Pipeline`. With ``seed``, results are repeatable; workers of a
            `DataLoader` add their index to the seed.

    Raises:
        TypeError: an item of ``op_list`` isn't a transform, or an argument is unknown.
        ValueError: ``batch_size`` or ``num_threads`` is not positive.
    """

    op_list: list[Transform]
    batch_size: int
    num_threads: int

    def __init__(
        self,
        op_list: list[Callable[..., Any]],
        batch_size: int = 16,
        num_threads: int = 1,
        **dali_pipeline_kwargs: Any,
    ) -> None:
        self.op_list = check_transforms(op_list)
        for name, value in (("batch_size", batch_size), ("num_threads", num_threads)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive int, got {value!r}")
        unknown = [name for name in dali_pipeline_kwargs if name not in NAMES]
        if unknown:
            raise TypeError(f"Compose and Pipeline have no argument {unknown[0]!r}")
        self.batch_size, self.num_threads = batch_size, num_threads
        self.pipeline_kwargs = dali_pipeline_kwargs
        self._layout = ""
        self._reset()

    def _reset(self) -> None:
        self._pipeline: Pipeline | None = None
        self._process = 0
        self._dtype: torch.dtype | None = None
        self._lock = ForkSafeLock()

    def __getstate__(self) -> dict[str, Any]:
        names = ("op_list", "batch_size", "num_threads", "pipeline_kwargs", "_layout")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def __call__(self, data_input: Any) -> Any:
        """Apply the transforms.

        Args:
            data_input: A PIL image, a tensor ``(..., C, H, W)``, or a node.

        Raises:
            TypeError: the input's type is unsupported, or differs from the type of the first call's input.
            ValueError: the mode of an image is unsupported.
            RuntimeError: there are more images than ``batch_size``, or no images.
        """
        if isinstance(data_input, DataNode):
            return self._apply(data_input, "HWC")
        layout = layout_of(data_input)
        if self._layout not in ("", layout):
            names = {"HWC": "PIL images", "CHW": "tensors"}
            raise TypeError(
                f"this Compose must be called with {names[self._layout]}, as in its first call, got {names[layout]}; "
                f"create another Compose for them"
            )
        batch = batch_of(data_input)
        if len(batch) > self.batch_size:
            raise RuntimeError(
                f"a call must have at most {self.batch_size} images, got {len(batch)}; pass Compose a larger batch_size"
            )
        self._layout = layout
        if not len(batch):
            raise RuntimeError("a tensor must contain at least one image")
        try:
            return self._convert_result(self._run(batch, layout), data_input)
        except Exception as error:
            strip_internal_frames(error)
            raise

    def _convert_result(self, results: Any, source: Any) -> Any:
        last = next((t for t in reversed(self.op_list) if isinstance(t, _OUTPUT_TRANSFORMS)), None)
        is_image = isinstance(source, PIL.Image.Image)
        leading = () if is_image else tuple(source.shape[:-3])
        tensor = stack(results, "HWC" if is_image else "CHW", leading)
        to_image = isinstance(last, ToPILImage) if last is not None else is_image
        if not to_image:
            return tensor
        if tensor.is_floating_point() and last is None:
            warnings.warn(_FLOATS, stacklevel=3)
        if tensor.ndim == 3:
            return as_image(tensor)
        images = [as_image(each) for each in tensor.flatten(0, -4)]
        return images[0] if len(images) == 1 else images

    def _run(self, batch: torch.Tensor, layout: str) -> Any:
        with self._lock:
            # A forked process inherits the pipeline object, but not its threads.
            if self._pipeline is None or self._process != os.getpid() or self._dtype != batch.dtype:
                self._pipeline = self._build(layout)
                self._warn_about_scale(batch.dtype)
                self._process, self._dtype = os.getpid(), batch.dtype
            try:
                return self._pipeline.run(images=batch)[0]
            except Exception:
                self._pipeline = None  # a pipeline can't run again after an error
                raise

    def _build(self, layout: str) -> Pipeline:
        options = {"prefetch_queue_depth": 1, "device_id": None, **self.pipeline_kwargs}
        if options["device_id"] is None and any(t.device == "gpu" for t in self.op_list):
            options["device_id"] = 0
        seed, worker = options.get("seed"), torch.utils.data.get_worker_info()
        if seed not in (None, -1) and worker is not None:
            options["seed"] = seed + worker.id
        pipe = Pipeline(self.batch_size, self.num_threads, **options)
        with pipe:
            images = fn.external_source(name="images", layout=layout)
            pipe.set_outputs(self._apply(images, layout))
        pipe.build()
        return pipe

    def _warn_about_scale(self, dtype: torch.dtype) -> None:
        normalize = next((t for t in self.op_list if isinstance(t, Normalize)), None)
        text = "" if normalize is None or dtype != torch.uint8 else scale_mistake(normalize.mean, normalize.std)
        if text:
            warnings.warn(f"Normalize: {text}", stacklevel=4)

    def _apply(self, images: Any, layout: str) -> Any:
        for each in self.op_list:
            images = each.apply(each.move_to_device(images), layout)
        return images

    def __repr__(self) -> str:
        steps = "".join(f"\n    {each!r}" for each in self.op_list)
        return f"Compose({steps}\n)"


_OUTPUT_TRANSFORMS = (ToPureTensor, ToPILImage)
