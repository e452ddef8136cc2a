"""The torchvision-style transforms against the real DALI's: the same images, arguments and errors.

The real one requests a CUDA stream from torch for each tensor, also without a GPU; the fixture returns one.
The tests skip calls that crash it or return garbage: see docs/torchvision.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import PIL.Image
import pytest
import torch

from torchdali.experimental import torchvision as ours

real_types = pytest.importorskip(
    "nvidia.dali.types",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)
pytestmark = pytest.mark.parity

Call = Callable[[Any, Any], Any]  # of the package and of the image


def _photo() -> torch.Tensor:
    y, x = torch.meshgrid(torch.arange(90), torch.arange(120), indexing="ij")
    planes = torch.stack([x * 2.0, y * 2.5, (x + y).float()]) + 20 * torch.sin(x / 3.0)
    return planes.clamp(0, 255).to(torch.uint8)


TENSOR = _photo()
IMAGE = PIL.Image.fromarray(TENSOR.permute(1, 2, 0).numpy())
INPUTS = {"tensor": TENSOR, "float": TENSOR.float(), "image": IMAGE, "gray": IMAGE.convert("L")}


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Any:
    if not torch.cuda.is_available():
        monkeypatch.setattr(real_types, "_get_default_stream_for_array", lambda array: None)
    return pytest.importorskip("nvidia.dali.experimental.torchvision", reason="DALI 2.4 has it")


def _functional(package: Any) -> Any:
    import importlib

    return importlib.import_module(f"{package.__name__}.v2.functional")


def _values(data: Any) -> torch.Tensor:
    if isinstance(data, PIL.Image.Image):
        data = _functional(ours).pil_to_tensor(data)
    return data.double() if isinstance(data, torch.Tensor) else torch.tensor(data).double()


def _composed(make: Callable[[Any], Any]) -> Call:
    return lambda package, data: package.Compose([make(package)])(data)


def _called(name: str, *arguments: Any) -> Call:
    return lambda package, data: getattr(_functional(package), name)(data, *arguments)


CASES: dict[str, Call] = {
    **{f"resize {m} {s} {a}": _composed(lambda t, m=m, s=s, a=a: t.Resize(s, t.InterpolationMode[m], antialias=a))
       for m in ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS") for s in (37, [40, 150]) for a in (True, False)},
    "resize with a limit": _called("resize", 80, 2, 101),
    "resize the longer side": _called("resize", None, 2, 101),
    **{f"center_crop {s}": _called("center_crop", s) for s in (31, [30, 41], [91, 101], [201, 100])},
    **{f"crop {w}": _called("crop", *w) for w in ((3, 4, 20, 30), (-3, -4, 20, 30), (80, 100, 20, 30))},
    "resized_crop": _called("resized_crop", 5, 6, 50, 60, [33, 44]),
    **{f"pad {m}": _called("pad", [1, 2, 3, 4], 7, m) for m in ("constant", "edge", "reflect", "symmetric")},
    "pad far": _composed(lambda t: t.Pad(150, padding_mode="reflect")),
    **{f"blur {k}": _called("gaussian_blur", k, 1.5) for k in (5, [3, 7])},
    "flips": _composed(lambda t: t.RandomHorizontalFlip(1)),
    "vertical_flip": _called("vertical_flip"),
    "get_dimensions": _called("get_dimensions"),
    "get_image_size": _called("get_image_size"),
    "normalize": lambda t, x: t.Compose([t.Normalize([100.0], [300.0]), t.ToPureTensor()])(x),
}  # fmt: skip
IMAGES_ONLY: dict[str, Call] = {
    "gray": _called("to_grayscale"),
    "three grays": _composed(lambda t: t.Grayscale(3)),
    "random gray": _composed(lambda t: t.RandomGrayscale(1)),
    **{f"jitter {k}": _composed(lambda t, k=k, v=v: t.ColorJitter(**{k: (v, v)}))
       for k, v in {"brightness": 1.3, "contrast": 0.7, "saturation": 1.5, "hue": 0.1}.items()},
    "jitter": _composed(lambda t: t.ColorJitter((1.3, 1.3), (0.7, 0.7), (1.5, 1.5), (-0.4, -0.4))),
    "normalized image": _composed(lambda t: t.Normalize([100.0], [300.0])),
    "pil_to_tensor": _called("pil_to_tensor"),
    "to_tensor": _called("to_tensor"),
    "to tensor in between": lambda t, x: t.Compose([t.PILToTensor(), t.Resize(20)])(x),
}  # fmt: skip


def _compare(call: Call, real: Any, data: Any) -> None:
    expected, found = call(real, data), call(ours, data)
    assert type(found) is type(expected)
    if isinstance(expected, PIL.Image.Image):
        assert found.mode == expected.mode
    if isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype and found.is_contiguous()
    a, b = _values(expected), _values(found)
    assert a.shape == b.shape
    assert (a - b).abs().max() <= 1


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("case", CASES)
def test_results(case: str, kind: str, real: Any) -> None:
    _compare(CASES[case], real, INPUTS[kind])


@pytest.mark.parametrize("case", IMAGES_ONLY)
def test_results_of_images(case: str, real: Any) -> None:
    _compare(IMAGES_ONLY[case], real, IMAGE)


WRONG: dict[str, Callable[[Any], Any]] = {
    f"{name}{arguments}": lambda t, name=name, arguments=arguments: getattr(t, name)(*arguments)
    for name, all_arguments in {
        "Resize": [(0,), (-1,), ([],), ([1, 2, 3],), (1.5,), ("a",), (None,), ([0, 3],), (10, "linear"), (10, 7),
                   (10, 2, 5), ([10, 12], 2, 50)],
        "CenterCrop": [(0,), (-1,), ([],), ([1, 2, 3],), (1.5,), ("a",), (None,)],
        "RandomCrop": [(0,), ([1, 2, 3],), (1.5,), (None,), (5, -1), (5, [1, 2, 3]), (5, "a"), (5, None, False, "a"),
                       (5, None, 3)],
        "RandomResizedCrop": [(0,), ([1, 2, 3],), (1.5,), (5, 0.5), (5, (0.5,)), (5, (0.5, 0.1)), (5, (0, 1)),
                              (5, (0.1, 1), (2, 1)), (5, (0.1, 1), (0, 1)), (5, (0.1, 1), (1, 2), 9)],
        "Pad": [(-1,), ([1, 2, 3],), ([],), (1.5,), ("a",), (None,), ([-1, 2],), (1, 0, "a")],
        "Normalize": [(1, 1), ([1], [0]), ("a", "b"), (None, None), ([1], [1], True)],
        "RandomGrayscale": [(-1,), (2,), ("a",)],
        "RandomApply": [([], 2), ([], "a")],
        "Grayscale": [(0,), (2,), ("a",)],
        "GaussianBlur": [(0,), (4,), (-3,), ([3, 4],), (3.5,), ("a",), (3, 0), (3, -1), (3, (0, 1)), (3, (2, 1)),
                         (3, (1, 2, 3)), (3, [2]), (3, "a"), (3, None)],
        "ColorJitter": [(-1,), ("a",), ((2, 1),), ((-1, 1),), (None,), (0, 0, 0, 0.6), (0, 0, 0, (-0.6, 0.1)),
                        (0, 0, 0, (0.1, -0.1)), (0, 0, 0, -0.1), (0, "a")],
    }.items()
    for arguments in all_arguments
}  # fmt: skip


def _error(make: Callable[[Any], Any], package: Any) -> type[BaseException]:
    with pytest.raises(Exception) as caught:
        make(package)
    return caught.type


@pytest.mark.parametrize("case", WRONG)
def test_errors(case: str, real: Any) -> None:
    assert _error(WRONG[case], ours) is _error(WRONG[case], real)


WRONG_DATA: dict[str, Callable[[Any], Any]] = {
    "array": lambda t: t.Compose([])(TENSOR.numpy()),
    "list": lambda t: t.Compose([])([IMAGE]),
    "None": lambda t: t.Compose([])(None),
    "too many": lambda t: t.Compose([], batch_size=2)(TENSOR.repeat(3, 1, 1, 1)),
    "alone": lambda t: t.Resize(10)(IMAGE),
    "both kinds": lambda t: [c := t.Compose([t.Resize(8)]), c(IMAGE), c(TENSOR)],
    "batch size": lambda t: t.Compose([], batch_size=0)(IMAGE),
    "two axes": lambda t: _functional(t).resize(TENSOR[0], 8),
    "mode": lambda t: _functional(t).resize(IMAGE.convert("CMYK"), 8),
    "float position": lambda t: _functional(t).crop(TENSOR, 1.5, 2, 3, 4),
    "empty crop": lambda t: _functional(t).crop(TENSOR, 1, 2, 0, 4),
    "normalized image": lambda t: _functional(t).normalize(IMAGE, [1.0], [1.0]),
    "no size": lambda t: _functional(t).get_size(TENSOR[0, 0]),
    "two channels": lambda t: _functional(t).to_pil_image(TENSOR[:2]),
    "no image": lambda t: _functional(t).pil_to_tensor(TENSOR),
    "no tensor": lambda t: _functional(t).to_pil_image(IMAGE),
    "int64": lambda t: _functional(t).to_pil_image(TENSOR.long()),
}


@pytest.mark.parametrize("case", WRONG_DATA)
def test_errors_of_data(case: str, real: Any) -> None:
    assert issubclass(_error(WRONG_DATA[case], ours), _error(WRONG_DATA[case], real))


@pytest.mark.parametrize("name", ["RandomHorizontalFlip", "RandomVerticalFlip"])
def test_flips_are_drawn_for_each_image(name: str, real: Any) -> None:
    for package in (ours, real):
        compose = package.Compose([getattr(package, name)()], seed=1)
        many = compose(TENSOR.repeat(16, 1, 1, 1))
        assert len({tuple(each.flatten().tolist()) for each in many}) == 2
