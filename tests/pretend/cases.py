"""Operators that run on an accelerator, and a run of a call there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch

from tests.calls import BATCH, values
from torchdali import fn, math, types
from torchdali.declaration.registry import registry
from torchdali.execute import stages
from torchdali.pipeline import Pipeline

ON_CPU = ("start", "place", "flip")  # sources of arguments

NOT_HERE = {
    "python_function": "calls the user's function with arrays of the CPU",
    "dl_tensor_python_function": "DLPack, which the pretence does not have",
    "experimental.debayer": "an old name",
    "experimental.audio_resample": "an old name",
    "experimental.equalize": "an old name",
    "experimental.filter": "an old name",
    "experimental.tensor_resize": "an old name",
    "fast_resize_crop_mirror": "an old name",
    "coin_flip": "an old name",
    "normal_distribution": "an old name",
    "uniform": "an old name",
    "math.mod": "an old name",
    "_auto_contrast": "of automatic augmentation, which runs on the CPU",
    "_contrast_around_mean": "of automatic augmentation, which runs on the CPU",
    "_solarize": "of automatic augmentation, which runs on the CPU",
    "_solarize_add": "of automatic augmentation, which runs on the CPU",
    "experimental.inflate": "takes compressed bytes, which its own tests make",
    "decoders.inflate": "takes compressed bytes, which its own tests make",
    "_merge": "branches are tested with the random graphs",
    "_choose": "branches are tested with the random graphs",
    "_shape": "looks at no data",
    "_row": "of automatic augmentation, which runs on the CPU",
    "_not": "conditions are on the CPU",
    "_logical": "conditions are on the CPU",
    "_case": "conditions are on the CPU",
}


def operators() -> list[str]:
    """Return the operators that may run on an accelerator."""
    return [name for name, o in registry.items() if o.is_ours and "gpu" in o.options.devices and o.kind in ("sample", "batch")]


def _namespace() -> dict[str, Any]:
    def node(name: str, samples: list[Any], layout: str) -> Any:
        given = fn.external_source(source=lambda: list(samples), layout=layout or None)
        return given if name in ON_CPU else given.gpu()

    nodes = {name: node(name, *each) for name, each in values().items()}
    return {"fn": fn, "types": types, "math": math, "np": np, "torch": torch, "device": "gpu", "folder": "", **nodes}


def run(call: str, device_id: int | str, batches: int = 2) -> tuple[list[Any], set[str]]:
    """Run a call in a pipeline with its data on the device.

    Returns:
        Return the outputs of the last batch, and the operators that ran on the device.
    """
    seen: set[str] = set()
    step: Callable[..., Any] = stages.run_step

    def noted(batch: Any, node: Any, *rest: Any) -> Any:
        if node.device == "gpu":
            seen.add(node.operator.name)
        return step(batch, node, *rest)

    pipe = Pipeline(BATCH, 1, device_id, seed=5)
    with pipe:
        results = eval(call, _namespace())
        pipe.set_outputs(*results if isinstance(results, (list, tuple)) else [results])
    try:
        with mock.patch.object(stages, "run_step", noted):
            for _ in range(batches):
                outputs: Any = pipe.run()
        return list(outputs), seen
    finally:
        pipe.close()
