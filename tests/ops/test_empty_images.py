"""Images without rows or columns, such as empty crops: all operators return an empty result, or raise an error that names the cause."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.calls import CALLS
from torchdali import fn, pipeline_def, types

SHAPES = [(0, 5, 3), (5, 0, 3), (0, 0, 3)]
BOXES = {"boxes": [[0.0, 0.0, 1.0, 1.0]], "labels": [1]}


def cases() -> dict[str, str]:
    """Return the examples of the operators on images, and other arguments of filters and resizes."""
    return {name: code for name, (code, *_) in CALLS.items() if code.startswith(f"fn.{name}(image") and "map" not in code} | MORE


MORE: dict[str, str] = {
    **{f"filter {border}": f"fn.filter(image, types.Constant(np.ones((3, 2), np.float32)), border='{border}')" for border in ("clamp", "wrap", "constant", "reflect_1001")},
    "filter valid": "fn.filter(image, types.Constant(np.ones((3, 3), np.float32)), mode='valid')",
    "blur to floats": "fn.gaussian_blur(image, window_size=5, dtype=types.FLOAT)",
    "blur one axis": "fn.gaussian_blur(image, sigma=[2.0, 0.5])",
    "laplacian smoothing": "fn.laplacian(image, window_size=5, smoothing_size=3)",
    "dilate clamped": "fn.experimental.dilate(image, mask_size=[3, 3], border_mode='replicate')",
    "erode reflected": "fn.experimental.erode(image, mask_size=[3, 3], border_mode='reflect')",
    "resize shorter": "fn.resize(image, resize_shorter=8.0)", "resize longer": "fn.resize(image, resize_longer=8.0)",
    "resize x": "fn.resize(image, resize_x=8.0)", "resize cubic": "fn.resize(image, size=[8, 9], interp_type=types.INTERP_CUBIC)",
    "resize nearest": "fn.resize(image, size=[8, 9], interp_type=types.INTERP_NN)",
    "crop beyond": "fn.crop(image, crop=[2, 2], out_of_bounds_policy='pad')",
    "warp to a size": "fn.warp_affine(image, size=[4, 6], matrix=[1.0, 0.3, 0.0, 0.0, 1.2, -10.0], fill_value=7)",
    "perspective to a size": "fn.experimental.warp_perspective(image, size=[4, 6], matrix=[1.0, 0, 0, 0, 1, 0, 0, 0.003, 1])",
    "remap": "fn.experimental.remap(image, types.Constant(np.zeros((4, 6), np.float32)), types.Constant(np.zeros((4, 6), np.float32)))",
    "rotate": "fn.rotate(image, angle=25.0, keep_size=True)",
    "normalize": "fn.normalize(image)",
}  # fmt: skip

NOT_HERE = {"cache", "dump_image", "experimental.resize"}  # reads files, writes one, needs a GPU
# Other valid errors: the image is too small for the arguments, or has another dtype.
REFUSED = (
    r"has no pixels|can't be placed|a JPEG image must have|must fit into the image|bigger than the input|is out of bounds for sample|"
    r"unsupported input type|uint8 images"
)


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", sorted(set(cases()) - NOT_HERE))
def test_images_without_pixels(name: str) -> None:
    for dtype in [np.uint8, np.float32]:
        for shape in SHAPES:
            image = np.zeros(shape, dtype)

            @pipeline_def(batch_size=2, num_threads=1, device_id=None)
            def define() -> Any:
                values = {n: types.Constant(np.array(v, np.float32 if n == "boxes" else np.int32)) for n, v in BOXES.items()}
                given = fn.external_source(source=lambda: [image, image], layout="HWC")  # noqa: B023
                found = eval(cases()[name], {"fn": fn, "np": np, "types": types, "image": given, "numbers": types.Constant(np.float32([1])), **values})
                return tuple(found) if isinstance(found, (list, tuple)) else found

            try:
                with define() as pipe:
                    pipe.run()
            except (RuntimeError, ValueError) as error:
                assert re.search(REFUSED, str(error)), error


FILTERING = ("filter", "blur", "laplacian", "gaussian_blur", "dilate", "erode", "experimental.median_blur", "experimental.dilate", "experimental.erode")
FILTERS = [name for name in cases() if name.split()[0] in FILTERING]


@pytest.mark.thin(7)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("name", sorted(set(FILTERS) - {"filter valid"}))
def test_filters_return_empty_images_unchanged(name: str, dtype: type) -> None:
    for shape in [*SHAPES, (2, 0, 5, 3)]:
        image = np.zeros(shape, dtype)

        @pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def define() -> Any:
            given = fn.external_source(source=lambda: [image, image], layout="FHWC"[-len(image.shape) :])  # noqa: B023
            return eval(cases()[name], {"fn": fn, "np": np, "types": types, "image": given})

        with define() as pipe:
            (batch,) = pipe.run()
            assert batch.shape() == [shape, shape]
            assert np.asarray(batch.at(0)).dtype == (np.float32 if "floats" in name else dtype)
