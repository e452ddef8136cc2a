"""The pixels of each rule are bit-identical to torchvision's with the same random numbers, with and without the library."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.functional import _get_perspective_coeffs

from tests.helpers import inside
from tests.helpers.encoded_images import encoded, smooth_image, tensor
from tests.helpers.native import both_paths, needs_native
from torchdali.declaration.narrowing import ChainPart, DecodeChain
from torchdali.declaration.registry import registry
from torchdali.kernels.native import library
from torchdali.rng import BatchRng, Rng

Make = Callable[[Any], Any]
NEAREST, BILINEAR, BICUBIC = InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC


def pictures() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    noise = rng.integers(0, 256, (37, 53, 3), np.uint8)
    return {
        "odd": noise,
        "smooth": smooth_image(64, 51),
        "few levels": noise // 64 * 60,
        "dark": smooth_image(30, 30) // 9 + 20,
        "gray": np.repeat(noise[:, :, :1], 3, 2),
        "one color": np.full((9, 8, 3), (10, 200, 30), np.uint8),
        "one row": noise[:1],
        "one column": noise[:, :1],
        "one pixel": noise[:1, :1],
        "two by three": noise[:2, :3],
        "one channel": noise[:, :, :1],
        "one channel, one pixel": noise[:1, :1, :1],
    }


PICTURES = pictures()

COLORS: dict[str, Make] = {
    "brightness": lambda m: m.ColorJitter(brightness=0.8),
    "contrast": lambda m: m.ColorJitter(contrast=(0.2, 3)),
    "saturation": lambda m: m.ColorJitter(saturation=(0, 2.5)),
    "hue": lambda m: m.ColorJitter(hue=0.5),
    "ColorJitter": lambda m: m.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "factors of 0 and 1": lambda m: m.ColorJitter((0, 0), None if m is v2 else 0, (1, 1), (0.25, 0.25)),
    "Grayscale": lambda m: m.Grayscale(),
    "Grayscale(3)": lambda m: m.Grayscale(3),
    "RandomGrayscale": lambda m: m.RandomGrayscale(1.0),
    "RandomInvert": lambda m: m.RandomInvert(1.0),
    "RandomPosterize": lambda m: m.RandomPosterize(3, 1.0),
    "RandomPosterize(8)": lambda m: m.RandomPosterize(8, 1.0),
    "RandomSolarize": lambda m: m.RandomSolarize(100.5, 1.0),
    "RandomSolarize(300)": lambda m: m.RandomSolarize(300, 1.0),
    "RandomAdjustSharpness": lambda m: m.RandomAdjustSharpness(2.5, 1.0),
    "RandomAdjustSharpness(0)": lambda m: m.RandomAdjustSharpness(0, 1.0),
    "RandomAutocontrast": lambda m: m.RandomAutocontrast(1.0),
    "RandomEqualize": lambda m: m.RandomEqualize(1.0),
    "RandomApply": lambda m: m.RandomApply([m.RandomInvert(1.0), m.RandomEqualize(1.0)], 1.0),
    "RandomChoice": lambda m: m.RandomChoice([m.RandomInvert(1.0)]),
    "RandomOrder": lambda m: m.RandomOrder([m.RandomInvert(1.0)]),
}
PLACES: dict[str, Make] = {
    "Resize": lambda m: m.Resize(20),
    "Resize, bicubic": lambda m: m.Resize((15, 40), BICUBIC),
    "Resize, lanczos": lambda m: m.Resize(19, InterpolationMode.LANCZOS, max_size=23),
    "Resize, nearest": lambda m: m.Resize((70, 31), NEAREST),
    "RandomResizedCrop": lambda m: m.RandomResizedCrop(20),
    "RandomResizedCrop, bicubic": lambda m: m.RandomResizedCrop((9, 60), (0.5, 1), interpolation=BICUBIC),
    "CenterCrop": lambda m: m.CenterCrop((7, 60)),
    "RandomCrop": lambda m: m.RandomCrop(1),
    "RandomCrop, padded": lambda m: m.RandomCrop(8, (1, 2, 3, 4), True, 7, "constant"),
    "RandomCrop, if needed": lambda m: m.RandomCrop((40, 41), None, True, 7, "edge"),
    "Pad": lambda m: m.Pad((1, 2, 3, 4), 9),
    "Pad, edge": lambda m: m.Pad(5, 0, "edge"),
    "Pad, reflect": lambda m: m.Pad((4, 5), 0, "reflect"),
    "Pad, symmetric": lambda m: m.Pad(60, 0, "symmetric"),
    "flips": lambda m: m.Compose([m.RandomHorizontalFlip(1.0), m.RandomVerticalFlip(1.0)]),
    "RandomRotation": lambda m: m.RandomRotation(180),
    "RandomRotation, bilinear": lambda m: m.RandomRotation((-30, 50), BILINEAR, fill=9),
    "RandomRotation, bicubic": lambda m: m.RandomRotation(180, BICUBIC, True, fill=300 % 256),
    "RandomRotation, expanded": lambda m: m.RandomRotation(90, expand=True),
    "RandomRotation, center": lambda m: m.RandomRotation(90, BILINEAR, center=[3, 5], fill=1),
    "RandomAffine": lambda m: m.RandomAffine(180, (0.3, 0.2), (0.4, 2), (-20, 20, -10, 30)),
    "RandomAffine, bilinear": lambda m: m.RandomAffine(10, None, None, 5, BILINEAR, 77),
    "RandomAffine, bicubic": lambda m: m.RandomAffine((3, 4), (0.1, 0.1), interpolation=BICUBIC, center=[1, 2]),
    "RandomAffine, moved": lambda m: m.RandomAffine(0, (0.5, 0.5), fill=5),
    "RandomAffine, scaled": lambda m: m.RandomAffine(0, None, (0.2, 4.0)),
    "RandomPerspective": lambda m: m.RandomPerspective(0.6, 1.0),
    "RandomPerspective, nearest": lambda m: m.RandomPerspective(0.3, 1.0, NEAREST, 9),
    "RandomPerspective, bicubic": lambda m: m.RandomPerspective(0.9, 1.0, BICUBIC),
}
ONLY_V2: dict[str, Make] = {
    "RandomPhotometricDistort": lambda m: m.RandomPhotometricDistort(p=1.0),
    "RandomChannelPermutation": lambda m: m.RandomChannelPermutation(),
    "RGB": lambda m: m.RGB(),
    "Identity": lambda m: m.Identity(),
}
CASES = [
    *((name, module) for name in {**COLORS, **PLACES} for module in (v1, v2)),
    *((name, v2) for name in ONLY_V2),
]
ALL = {**COLORS, **PLACES, **ONLY_V2}


def fixed(t: Any, drawn: list[Any]) -> Any:
    """Let a torchvision transform use the random numbers of our steps."""
    name, is_v2 = type(t).__name__, "v2" in type(t).__module__
    if name == "Compose" or name == "RandomApply":
        return t
    one = drawn[name == "RandomCrop" and len(drawn) - 1] if drawn else None
    if name == "ColorJitter":
        keys = ("brightness", "contrast", "saturation", "hue")
        order = [keys.index(key) for key, _ in one]
        order += [k for k in range(4) if k not in order]
        factors = [dict(one).get(key) for key in keys]
        taken = torch.tensor(order), *factors
        both = taken, dict(zip(("fn_idx", *(f"{key}_factor" for key in keys)), taken, strict=True))
    elif name == "RandomResizedCrop":
        both = one, dict(zip(("top", "left", "height", "width"), one, strict=True))
    elif name == "RandomCrop":
        pad, (top, left, height, width) = one
        both = (top, left, height, width), {"padding": pad.padding, "needs_pad": any(pad.padding), "needs_crop": True,
                                            "top": top, "left": left, "height": height, "width": width}
    elif name == "RandomRotation":
        both = one, {"angle": one}
    elif name == "RandomAffine":
        both = tuple(one), dict(zip(("angle", "translate", "scale", "shear"), one, strict=True))
    elif name == "RandomPerspective":
        both = one, {"coefficients": _get_perspective_coeffs(*one)}
    elif name == "GaussianBlur":
        both = one, {"sigma": [one, one]}
    elif name == "RandomPhotometricDistort":
        names = [key for key, _ in one]
        both = None, {**{f"{key}_factor": value for key, value in one}, "channel_permutation": torch.tensor(drawn[1]),
                      "contrast_before": names.index("contrast") < 2}
    elif name == "RandomChannelPermutation":
        both = None, {"permutation": torch.tensor(one)}
    else:
        return t
    if is_v2:
        t.make_params = lambda flat: both[1]
    else:
        t.get_params = lambda *arguments: both[0]
    return t


def image_of(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def ours(chain: Any, data: torch.Tensor, seed: int) -> np.ndarray:
    made = registry["_picture"].implementation(data, transforms=chain, rng=Rng(7, (0, seed)))
    return made.numpy()


def one_call(chain: Any, sources: list[Any], rngs: Any) -> Any:
    parts = (ChainPart("_picture", {"transforms": chain}),)
    return registry["_random_decode_chain"].chunks["encoded"]({"chain": DecodeChain(parts)})(sources, None, rngs, {}).outputs[0]


def compare(make: Make, module: Any, pixels: np.ndarray, seed: int, tolerance: int = 0) -> None:
    t = make(module)
    found = inside.compiled(module.Compose([t, module.PILToTensor()]), pixels.shape[2])
    assert found.transforms is not None, found.reason
    try:
        walk = inside.drawn(found.transforms, pixels.shape[:2], Rng(7, (0, seed)))
        drawn = [each for _, each in walk.steps] + [walk.drawn] * bool(walk.rest)
        expected = module.PILToTensor()(fixed(t, drawn)(image_of(pixels))).numpy().astype(int)
    except (ValueError, RuntimeError) as error:  # torchvision's, for an image with too few pixels
        for call in (lambda: ours(found.transforms, torch.tensor(pixels), seed), lambda: t(image_of(pixels))):
            with pytest.raises(type(error)):
                call()
        assert 1 in pixels.shape[:2]
        return
    result = ours(found.transforms, torch.tensor(pixels), seed)
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() <= tolerance


@pytest.mark.parametrize(("name", "module"), CASES, ids=lambda value: value if isinstance(value, str) else "v2" if value is v2 else "v1")
@both_paths
def test_a_rule(name: str, module: Any) -> None:
    for seed, (kind, pixels) in enumerate(PICTURES.items()):
        if name in ("RandomPhotometricDistort", "RandomChannelPermutation") and pixels.shape[2] == 1:
            continue
        if name == "Pad, reflect" and min(pixels.shape[:2]) < 6 and kind != "odd":
            continue  # NumPy's own reflection of one row differs from version to version
        compare(ALL[name], module, pixels, seed)


@pytest.mark.parametrize("fill", [(1, 2, 3), [255, 0, 9], (4,), None], ids=str)
@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@both_paths
def test_colors_of_borders(fill: Any, module: Any) -> None:
    for make in (lambda m: m.RandomRotation(50, BILINEAR, fill=fill), lambda m: m.RandomAffine(0, (0.9, 0.9), fill=fill),
                 lambda m: m.RandomPerspective(0.9, 1.0, fill=fill)):
        compare(make, module, PICTURES["odd"], 5)
    if fill is not None and len(fill) == 3:
        for make in (lambda m: m.Pad(3, tuple(fill)), lambda m: m.RandomCrop(40, 5, True, tuple(fill))):
            compare(make, module, PICTURES["odd"], 5)


@pytest.mark.parametrize("window", [1, 3, 9, (5, 23)], ids=str)
@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@both_paths
def test_a_blur_is_within_one_level(window: Any, module: Any) -> None:
    for seed, kind in enumerate(("odd", "smooth", "few levels", "one channel")):
        compare(lambda m: m.GaussianBlur(window, (0.1, 3)), module, PICTURES[kind], seed, tolerance=1)


@both_paths
def test_a_blur_with_too_large_a_window_raises_torchvisions_error() -> None:
    chain = inside.compiled(v1.Compose([v1.GaussianBlur(9), v1.PILToTensor()])).transforms
    with pytest.raises(RuntimeError, match="adding size"):
        ours(chain, torch.tensor(PICTURES["two by three"]), 1)


POLICIES = [("RandAugment", lambda m, **o: m.RandAugment(**o)), ("TrivialAugmentWide", lambda m, **o: m.TrivialAugmentWide(**o)),
            ("AutoAugment", lambda m, **o: m.AutoAugment(**o))]


def only(t: Any, name: str, magnitude: int, size: tuple[int, int]) -> Any:
    """Let a policy do one operation."""
    t.num_ops = 1
    if "v2" in type(t).__module__:
        function, signed = type(t)._AUGMENTATION_SPACE[name]
        def one(bins: int, height: int, width: int) -> Any:
            values = function(bins, height, width)
            return None if values is None else values[magnitude].expand(bins)
        t._AUGMENTATION_SPACE = {name: (one, signed)}
        t._policies = [((name, 1.0, 0),)]
    else:
        sizes = () if type(t).__name__ == "TrivialAugmentWide" else (size,)
        bins = getattr(t, "num_magnitude_bins", 10)
        values, signed = t._augmentation_space(bins, *sizes)[name]
        t._augmentation_space = lambda *arguments: {name: (values[magnitude].expand(bins) if values.ndim else values, signed)}
        t.policies = [((name, 1.0, 0 if values.ndim else None),)]
    return t


def both_signs(t: Any, image: Image.Image) -> list[bytes]:
    """Repeat an operation until both signs have occurred."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return sorted({np.asarray(t(image)).tobytes() for _ in range(12)})


@pytest.mark.thin(5)
@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize(("name", "make"), POLICIES, ids=[name for name, _ in POLICIES])
@pytest.mark.parametrize("options", [{}, {"interpolation": BILINEAR, "fill": [1, 2, 3]}], ids=["", "bilinear"])
@both_paths
def test_each_operation_of_a_policy(name: str, make: Any, module: Any, options: Any) -> None:
    t, pixels = make(module, **options), PICTURES["smooth"]
    whole = inside.compiled(v1.Compose([t, v1.PILToTensor()])).transforms
    (step,) = whole.steps
    space = step.space
    for operation in space.names:
        for magnitude in (4, 9):
            drawn = [space.operation(operation, magnitude, pixels.shape[:2], negative) for negative in (False, True)]
            made = {ours(replace(whole, steps=(Numbers(step, [each]),), conversion=None), torch.tensor(pixels), 1).tobytes() for each in drawn}
            image = Image.fromarray(pixels)
            expected = both_signs(only(make(module, **options), operation, magnitude, pixels.shape[:2]), image)
            assert sorted(made) == expected, (operation, magnitude)


class Numbers:
    """A step with the numbers that a test passes."""

    def __init__(self, step: Any, drawn: Any) -> None:
        self._step, self._drawn = step, drawn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)

    def draw(self, size: Any, rng: Rng) -> Any:
        return self._drawn


@pytest.mark.parametrize("angle", [0, 90, 180, 270, -90, 360, 450, 30])
@pytest.mark.parametrize("expand", [False, True], ids=["", "expanded"])
@both_paths
def test_quarter_turns(angle: float, expand: bool) -> None:
    for kind in ("odd", "dark", "one row", "one pixel"):
        compare(lambda m: m.RandomRotation((angle, angle), BICUBIC, expand), v1, PICTURES[kind], 0)


ROWS: dict[str, Make] = {
    "train": lambda m: [m.RandomResizedCrop(24), m.RandomHorizontalFlip(), m.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "colors first": lambda m: [m.ColorJitter(0.4, 0.4, 0.4, 0.1), m.RandomResizedCrop(24, interpolation=BICUBIC), m.RandomVerticalFlip()],
    "SimCLR": lambda m: [m.RandomResizedCrop(24), m.RandomApply([m.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8), m.RandomGrayscale(0.2)],
    "turned and cut": lambda m: [m.RandomRotation(30), m.CenterCrop(20), m.RandomHorizontalFlip(), m.Resize(33, BICUBIC)],
    "two sizes": lambda m: [m.Resize(30), m.RandomCrop(25), m.Resize((40, 21)), m.RandomHorizontalFlip(), m.Resize(9, BICUBIC)],
    "padded between": lambda m: [m.Resize(30), m.Pad(4, 3), m.RandomCrop(28), m.RandomAffine(20, (0.1, 0.1)), m.RandomVerticalFlip()],
    "policy": lambda m: [m.RandomCrop(32, 4, True), m.RandomHorizontalFlip(), m.RandAugment(), m.RandomPosterize(5, 0.5)],
    "gray": lambda m: [m.Grayscale(), m.RandomRotation(20), m.Resize(28), m.ColorJitter(0.3, 0.3, 0.3)],
}


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("name", ROWS)
@needs_native
def test_sequences_of_steps(name: str, module: Any) -> None:
    """One call of the library on files and pixels equals torchvision's steps, one after another."""
    found = inside.compiled(module.Compose([*ROWS[name](module), module.ToTensor() if module is v1 else module.PILToTensor()]))
    assert found.transforms is not None, found.reason
    for seed in range(12):
        source = smooth_image(45 + seed, 71 - 2 * seed)
        data = tensor(encoded(Image.fromarray(source).convert("L") if seed % 4 == 3 else source, "JPEG", quality=92))
        for each in (data, torch.tensor(source)):
            walk = inside.drawn(found.transforms, source.shape[:2], Rng(7, (0, seed)))
            assert not walk.rest
            result = ours(found.transforms, each, seed)
            bare = replace(found.transforms, steps=())
            image = Image.fromarray(ours(replace(bare, conversion=None), each, seed))
            expected = ours(bare, torch.tensor(np.array(walk.apply_rest(image, True)).reshape(*walk.program.size, -1)), seed)
            assert np.array_equal(result, expected)


@needs_native
def test_several_images_in_one_call_equal_single_calls() -> None:
    chain = inside.compiled(v1.Compose([*ROWS["SimCLR"](v1), v1.ToTensor(), v1.RandomErasing(1.0)])).transforms
    sources = [torch.tensor(smooth_image(40, 50)), tensor(encoded(smooth_image(60, 50), "JPEG")), torch.tensor(PICTURES["one channel"]),
               tensor(b"no picture"), None]
    rngs = BatchRng.following(7, 0, len(sources)).samples()
    together = one_call(chain, sources, rngs)
    assert [each is None for each in together] == [False, False, False, True, True]
    for k in range(3):
        assert torch.equal(together[k], torch.tensor(ours(chain, sources[k], k)))


@both_paths
def test_files_that_pillow_decodes() -> None:
    """Other formats, and CMYK images, which the library converts differently: its steps continue with Pillow's pixels."""
    chain = inside.compiled(v1.Compose([v1.RandomRotation(20), v1.Resize(33, BICUBIC), v1.PILToTensor()])).transforms
    inks = Image.fromarray(np.dstack([smooth_image(40, 50), smooth_image(40, 50)[::-1, :, :1]]), "CMYK")
    for seed, data in enumerate((encoded(inks, "JPEG"), encoded(smooth_image(40, 50), "PNG"), encoded(PICTURES["one channel"][:, :, 0], "BMP"))):
        walk = inside.drawn(chain, Image.open(io.BytesIO(data)).size[::-1], Rng(7, (0, seed)))
        expected = v1.PILToTensor()(walk.apply_rest(Image.open(io.BytesIO(data)).convert("RGB"), True))
        assert np.array_equal(ours(chain, tensor(data), seed), expected)
        if library() is not None:
            several = one_call(chain, [tensor(data)], BatchRng.following(7, seed, 1).samples())
            assert several == [None]


@both_paths
def test_a_cache_stores_results_before_the_first_random_step() -> None:
    make = [v1.Resize(40), v1.Grayscale(), v1.RandomRotation(20), v1.ColorJitter(0.3), v1.ToTensor()]
    chain = inside.compiled(v1.Compose(make)).transforms
    before, behind = chain.divide()
    assert [type(step).__name__ for step in before.steps] == ["ResizeStep", "ColorAdjustment"]
    for seed, kind in enumerate(("odd", "smooth", "one channel")):
        pixels = torch.tensor(PICTURES[kind])
        kept = torch.tensor(ours(before, pixels, seed))
        assert np.array_equal(ours(behind, kept, seed), ours(chain, pixels, seed))


# ---------------------------------------------------------------- erasing

NORMAL = ((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))


def floats(module: Any) -> list[Any]:
    return [module.ToTensor()] if module is v1 else [v2.ToImage(), v2.ToDtype(torch.float32, True)]


def erased(module: Any, value: Any, *behind: Any, before: tuple[Any, ...] = ()) -> Any:
    return inside.compiled(module.Compose([*floats(module), *before, module.RandomErasing(1.0, value=value), *behind])).transforms


def fixed_erasing(module: Any, value: Any, window: Any, planes: torch.Tensor) -> torch.Tensor:
    t = module.RandomErasing(1.0, value=value)
    values = torch.tensor([float(value)] if isinstance(value, (int, float)) else [float(v) for v in value])[:, None, None]
    t.get_params = lambda *a, **k: (*window, values)
    t.make_params = lambda flat: dict(zip("ijhw", window, strict=True)) | {"v": values}
    return t(planes)


@pytest.mark.parametrize("value", [0, 0.5, (1, 2, 3), [0.25]], ids=str)
@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@both_paths
def test_erasing(value: Any, module: Any) -> None:
    pixels, seed = PICTURES["odd"], 3
    plain = module.Compose(floats(module))(Image.fromarray(pixels))
    rng = Rng(7, (0, seed))
    window = erased(module, value).ends[0].rectangle.draw((37, 53), rng)
    expected = fixed_erasing(module, value, window, plain)
    assert torch.equal(torch.tensor(ours(erased(module, value), torch.tensor(pixels), seed)), expected)
    normalize = module.Normalize(*NORMAL)
    behind = ours(erased(module, value, normalize), torch.tensor(pixels), seed)
    assert torch.allclose(torch.tensor(behind), normalize(expected), rtol=0, atol=1e-6)
    before = ours(erased(module, value, before=(normalize,)), torch.tensor(pixels), seed)
    assert torch.equal(torch.tensor(before), fixed_erasing(module, value, window, normalize(plain)))


@both_paths
def test_erasing_by_random_values() -> None:
    pixels = torch.full((200, 200, 3), 128, dtype=torch.uint8)
    made = torch.tensor(ours(erased(v1, "random"), pixels, 4))
    values = made[made != 128 / 255]
    assert len(values) > 1500
    assert abs(values.mean()) < 0.1 and abs(values.std() - 1) < 0.1
    again = torch.tensor(ours(erased(v1, "random"), pixels, 4))
    other = torch.tensor(ours(erased(v1, "random"), pixels, 5))
    assert torch.equal(made, again) and not torch.equal(made, other)
    normalized = torch.tensor(ours(erased(v1, "random", v1.Normalize(*NORMAL)), pixels, 4))
    assert torch.allclose(normalized, v1.Normalize(*NORMAL)(made), rtol=0, atol=1e-6)


@both_paths
def test_erasing_of_bytes() -> None:
    chain = inside.compiled(v2.Compose([v2.ToImage(), v2.RandomErasing(1.0, value=(3, 4, 5)), v2.ToDtype(torch.float32, True)])).transforms
    assert not chain.ends
    pixels = torch.tensor(PICTURES["odd"])
    top, left, height, width = chain.steps[0].draw((37, 53), Rng(7, (0, 2)))
    expected = pixels.clone()
    expected[top : top + height, left : left + width] = torch.tensor([3, 4, 5], dtype=torch.uint8)
    assert np.array_equal(ours(chain, pixels, 2), expected.permute(2, 0, 1).numpy().astype(np.float32) * np.float32(1 / 255))


# ---------------------------------------------------------- uint8 tensors, and transforms without a rule

AS_BYTES: dict[str, Make] = {
    "RandomInvert": lambda m: m.RandomInvert(1.0),
    "RandomPosterize": lambda m: m.RandomPosterize(3, 1.0),
    "RandomSolarize": lambda m: m.RandomSolarize(100, 1.0),
    "RandomEqualize": lambda m: m.RandomEqualize(1.0),
    "brightness": lambda m: m.ColorJitter((0.1, 2.5)),
    "Resize": lambda m: m.Resize((20, 31)),
    "Resize to one row": lambda m: m.Resize((1, 40)),
    "Resize, bicubic": lambda m: m.Resize((75, 19), BICUBIC),
    "RandomResizedCrop": lambda m: m.RandomResizedCrop((20, 31), antialias=True),
    "CenterCrop": lambda m: m.CenterCrop(60),
    "Pad": lambda m: m.Pad(3, 9),
    "GaussianBlur": lambda m: m.GaussianBlur(5),
    "flips": lambda m: m.RandomHorizontalFlip(1.0),
}


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("name", AS_BYTES)
@both_paths
def test_uint8_tensors(name: str, module: Any) -> None:
    if module is v1 and "Resize" in name:
        pytest.skip("v1 resizes floats")
    for seed, kind in enumerate(("odd", "smooth", "dark")):
        t, pixels = AS_BYTES[name](module), PICTURES[kind]
        found = inside.compiled(module.Compose([module.PILToTensor(), t]))
        assert found.transforms is not None, found.reason
        drawn = [each for _, each in inside.drawn(found.transforms, pixels.shape[:2], Rng(7, (0, seed))).steps]
        expected = fixed(t, drawn)(module.PILToTensor()(Image.fromarray(pixels))).numpy().astype(int)
        tolerance = 1 if name == "GaussianBlur" else 0
        assert np.abs(ours(found.transforms, torch.tensor(pixels), seed) - expected).max() <= tolerance


WITHOUT: dict[str, Any] = {
    "posterize to nothing": [v1.RandomPosterize(0), v1.ToTensor()],
    "a color of two channels": [v1.RandomRotation(9, fill=(1, 2)), v1.ToTensor()],
    "a color that is no level": [v1.RandomRotation(9, fill=-1), v1.ToTensor()],
    "a color for each type": [v2.RandomRotation(9, fill={Image.Image: 3}), v2.PILToTensor()],
    "lanczos does not turn": [v1.RandomRotation(9, InterpolationMode.LANCZOS), v1.ToTensor()],
    "nearest exact": [v1.Resize(9, InterpolationMode.NEAREST_EXACT), v1.ToTensor()],
    "nearest of a tensor": [v2.ToImage(), v2.Resize(9, NEAREST)],
    "no antialias of a tensor": [v2.ToImage(), v2.Resize(9, antialias=False)],
    "one column of a tensor": [v2.PILToTensor(), v2.Resize((9, 1))],
    "one side of a tensor": [v2.PILToTensor(), v2.Resize(1)],
    "v1 of a tensor": [v1.PILToTensor(), v1.Resize(9)],
    "equalized after a blur": [v1.GaussianBlur(3), v1.RandomApply([v1.RandomEqualize()]), v1.ToTensor()],
    "a blur and a policy in any order": [v1.RandomOrder([v1.GaussianBlur(3), v1.RandAugment()]), v1.ToTensor()],
    "solarized after a blur": [v2.GaussianBlur(3), v2.RandomSolarize(100), v2.ToImage()],
    "contrast of a tensor": [v2.ToImage(), v2.ColorJitter(contrast=0.4)],
    "a flip behind an erasing": [v1.ToTensor(), v1.RandomErasing(), v1.RandomHorizontalFlip()],
    "random bytes": [v2.ToImage(), v2.RandomErasing(value="random")],
    "values of two channels": [v1.ToTensor(), v1.RandomErasing(value=(1, 2))],
    "other channels by chance": [v1.RandomApply([v1.Grayscale()]), v1.ToTensor()],
    "elastic": [v2.ElasticTransform(), v2.PILToTensor()],
}


@pytest.mark.parametrize("name", WITHOUT)
def test_transforms_without_a_rule_fall_back_to_torch(name: str) -> None:
    found = inside.compiled(v1.Compose(WITHOUT[name]))
    assert found.transforms is None and found.reason


def test_channels_of_the_result() -> None:
    for transform, channels in ((v1.Grayscale(), 1), (v1.Grayscale(3), 3), (v1.RandomGrayscale(), 3), (v2.RGB(), 3)):
        for have in (1, 3):
            chain = inside.compiled(v1.Compose([transform, v1.ToTensor(), v1.Normalize([0.5], [0.5])]), have).transforms
            wanted = have if isinstance(transform, v1.RandomGrayscale) else channels
            assert astuple(chain.conversion) == (True, (0.5,), (0.5,), wanted, False)
