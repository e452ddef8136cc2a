"""Run the examples of the reference, and draw the results of image operators."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from docs.reference import PICTURES
from docs.reference.containers import write_containers
from docs.reference.film import film
from docs.reference.sound import sound, wav
from tests.calls import CALLS
from torchdali import fn, tfrecord, types
from torchdali._demo.scene import BOXES, mask, scene
from torchdali.ops._readers.mixture import WeightedReader
from torchdali.pipeline import Pipeline

__all__ = ["ExampleOutput", "files", "run"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ExampleOutput:
    """The first sample of one output of an example."""

    value: Array
    layout: str

    def picture(self) -> Array:
        """Return the sample as an image, ``(H, W, 3)`` uint8; values of other dtypes are stretched to 0 to 255."""
        pixels = self.value.transpose(1, 2, 0) if self.layout == "CHW" else self.value
        if pixels.dtype != np.uint8:
            low, high = float(pixels.min()), float(pixels.max())
            pixels = ((pixels - low) / (high - low or 1.0) * 255).round().astype(np.uint8)
        return np.broadcast_to(pixels, (*pixels.shape[:2], 3))


def run(name: str, folder: Path) -> list[ExampleOutput]:
    """Run the example of an operator in a pipeline with two samples, and return its outputs.

    Args:
        folder: Folder for the example's input files, which this function writes, and for files that the example writes.
    """
    pipe = Pipeline(batch_size=2, num_threads=1, device_id="cpu", seed=5)
    with pipe:
        names = {
            "fn": fn,
            "types": types,
            "tfrecord": tfrecord,
            "WeightedReader": WeightedReader,
            "np": np,
            "torch": torch,
            **_inputs(folder),
        }
        results = eval(CALLS[name][0], names)
        pipe.set_outputs(*results if isinstance(results, (list, tuple)) else [results])
    try:
        for waiting in pipe.input_names * 2:
            pipe.feed_input(waiting, [np.frombuffer(film(), np.uint8)])
        outputs: Any = pipe.run()
        return [ExampleOutput(np.array(each.as_cpu().at(0)), each.layout()) for each in outputs]
    finally:
        pipe.close()


def _inputs(folder: Path) -> Mapping[str, Any]:
    """Return the values of the names that examples use; values that differ per sample are nodes."""
    first = scene()
    both = (first, first[:, ::-1].copy())
    y, x = np.mgrid[: first.shape[0], : first.shape[1]]
    jpegs = [_encode(image) for image in both]
    for number, data in enumerate(jpegs):
        path = folder / f"class{number}"
        path.mkdir(exist_ok=True)
        (path / "image.jpg").write_bytes(data.tobytes())
    write_containers(folder, [data.tobytes() for data in jpegs])

    (folder / "film.gif").write_bytes(film())
    (folder / "sound.wav").write_bytes(wav().tobytes())
    spoken = {"audio_filepath": str(folder / "sound.wav"), "duration": 0.1, "text": "a tone"}
    (folder / "manifest.json").write_text(json.dumps(spoken))

    def node(values: Any, layout: str = "") -> Any:
        return fn.external_source(source=lambda: list(values), layout=layout or None)

    def twice(value: Any, dtype: Any, layout: str = "") -> Any:
        return node([np.array(value, dtype)] * 2, layout)

    return {
        "image": node(both, "HWC"),
        "jpeg": node(jpegs),
        "boxes": twice(BOXES, np.float32),
        "labels": twice([1, 2], np.int32),
        "mosaic": node([_mosaic(image) for image in both], "HW"),
        "mask": twice(mask(), np.int32),
        "points": twice([[10, 20], [166, 52], [30, 90]], np.float32),
        "mapx": twice(x + 8 * np.sin(y / 8), np.float32),
        "mapy": twice(y + 8 * np.sin(x / 8), np.float32),
        "film": twice(np.frombuffer(film(), np.uint8), np.uint8),
        "sound": twice(sound(), np.float32),
        "wav": twice(wav(), np.uint8),
        "numbers": twice([3, 1, 4, 1, 5], np.float32),
        "folder": str(folder),
    }


def _mosaic(image: Array) -> Array:
    """Keep one color of each pixel: red or green in even rows, green or blue in odd rows."""
    seen = image[..., 1].copy()
    seen[::2, ::2], seen[1::2, 1::2] = image[::2, ::2, 0], image[1::2, 1::2, 2]
    return seen


def _encode(image: Array, quality: int = 95) -> Array:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=quality)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def files(folder: Path) -> dict[str, bytes]:
    """Return JPEG files by name: the input image, and the result of each example in `PICTURES`.

    Args:
        folder: See `run`.
    """
    drawn = {"image": scene()} | {name: run(name, folder)[0].picture() for name in PICTURES}
    return {f"{name}.jpg": _encode(np.ascontiguousarray(picture), 82).tobytes() for name, picture in drawn.items()}
