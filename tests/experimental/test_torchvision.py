"""The transforms against torchvision's own, and in their applications."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
import torch
import torchvision.transforms.v2 as theirs
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import InterpolationMode as TheirMode

from torchdali import fn, pipeline_def
from torchdali.experimental import torchvision as ours
from torchdali.experimental.torchvision.v2 import functional as F

TF = theirs.functional
Data = Any


def _photo(height: int = 90, width: int = 120) -> torch.Tensor:
    """Return a smooth image with some detail: (3, H, W) uint8."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    planes = torch.stack([x * 2.0, y * 2.5, (x + y).float()]) + 20 * torch.sin(x / 3.0)
    return planes.clamp(0, 255).to(torch.uint8)


TENSOR = _photo()
IMAGE = TF.to_pil_image(TENSOR)
GRAY = IMAGE.convert("L")
RGBA = IMAGE.convert("RGBA")


def _values(data: Data) -> torch.Tensor:
    return (TF.pil_to_tensor(data) if isinstance(data, PIL.Image.Image) else data).double()


def _difference(a: Data, b: Data) -> float:
    """Return the greatest difference of two images or two tensors of one shape and dtype."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
    else:
        assert a.mode == b.mode
    left, right = _values(a), _values(b)
    assert left.shape == right.shape
    return float((left - right).abs().max())


EXACT: dict[str, Callable[[Any, Data], Data]] = {
    "center_crop": lambda f, x: f.center_crop(x, [31, 40]),
    "center_crop of a larger window": lambda f, x: f.center_crop(x, [100, 130]),
    "crop": lambda f, x: f.crop(x, 3, 4, 20, 30),
    "crop outside": lambda f, x: f.crop(x, -3, 100, 20, 30),
    "horizontal_flip": lambda f, x: f.horizontal_flip(x),
    "vertical_flip": lambda f, x: f.vertical_flip(x),
    "pad constant": lambda f, x: f.pad(x, [1, 2, 3, 4], 7),
    "pad edge": lambda f, x: f.pad(x, [1, 2, 3, 4], 0, "edge"),
    "pad reflect": lambda f, x: f.pad(x, [1, 2, 3, 4], 0, "reflect"),
    "pad symmetric": lambda f, x: f.pad(x, [1, 2, 3, 4], 0, "symmetric"),
    "pad one number": lambda f, x: f.pad(x, 5),
    "pad two numbers": lambda f, x: f.pad(x, [5, 2]),
    "get_dimensions": lambda f, x: torch.tensor(f.get_dimensions(x)),
    "get_size": lambda f, x: torch.tensor(f.get_size(x)),
    "get_image_size": lambda f, x: torch.tensor(f.get_image_size(x)),
}
CLOSE: dict[str, Callable[[Any, Data], Data]] = {
    "resize": lambda f, x: f.resize(x, [40, 50]),
    "resize larger": lambda f, x: f.resize(x, [140, 150]),
    "resize the shorter side": lambda f, x: f.resize(x, [37]),
    "resize with a limit": lambda f, x: f.resize(x, [80], max_size=101),
    "resize bicubic": lambda f, x: f.resize(x, [40, 50], 3),
    "resized_crop": lambda f, x: f.resized_crop(x, 5, 6, 50, 60, [33, 44]),
    "gaussian_blur": lambda f, x: f.gaussian_blur(x, 5, 1.5),
    "to_grayscale": lambda f, x: f.to_grayscale(x, 1),
    "to_grayscale 3": lambda f, x: f.to_grayscale(x, 3),
    "rgb_to_grayscale": lambda f, x: f.rgb_to_grayscale(x),
}


def _run_both(call: Callable[[Any, Data], Data], data: Data) -> float:
    return _difference(call(F, data), call(TF, data))


@pytest.mark.parametrize("data", [TENSOR, IMAGE], ids=["tensor", "image"])
@pytest.mark.parametrize("case", EXACT)
def test_functions_that_move_pixels_are_equal(case: str, data: Data) -> None:
    assert _run_both(EXACT[case], data) == 0


@pytest.mark.parametrize("data", [TENSOR, IMAGE], ids=["tensor", "image"])
@pytest.mark.parametrize("case", CLOSE)
def test_functions_that_interpolate_differ_by_one_at_most(case: str, data: Data) -> None:
    assert _run_both(CLOSE[case], data) <= 1


@pytest.mark.parametrize("case", [case for case in CLOSE if case.startswith("resize") and "bicubic" not in case])
def test_noise_differs_by_one_except_in_the_outermost_rows(case: str) -> None:
    """At the border, DALI repeats the edge, and torchvision ignores pixels beyond it."""
    noise = torch.randint(0, 256, (3, 90, 120), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    off = (_values(CLOSE[case](F, noise)) - _values(CLOSE[case](TF, noise))).abs()
    assert off[:, 1:-1, 1:-1].max() <= 1
    assert off.max() <= 20


def test_floats_are_computed_as_floats() -> None:
    data = TENSOR.float() / 255
    for case in ("resize", "resize larger", "gaussian_blur"):  # one level of 255
        assert _run_both(CLOSE[case], data) <= 1 / 255, case
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]
    assert _difference(F.normalize(data, mean, std), TF.normalize(data, mean, std)) < 1e-5


def test_conversions() -> None:
    for image in (IMAGE, GRAY, RGBA):
        assert _difference(F.pil_to_tensor(image), TF.pil_to_tensor(image)) == 0
        assert F.to_pil_image(F.pil_to_tensor(image)).tobytes() == image.tobytes()
        assert _difference(F.to_tensor(image), TF.to_image(image).float() / 255) < 1e-7
    assert F.to_pil_image(TENSOR.permute(1, 2, 0), None, "HWC").tobytes() == IMAGE.tobytes()
    assert F.to_pil_image(TENSOR.float() / 255).tobytes() == IMAGE.tobytes()
    assert F.to_pil_image(TENSOR, "YCbCr").mode == "YCbCr"
    with pytest.raises(ValueError, match="does not fit an image of 3 channels"):
        F.to_pil_image(TENSOR, "L")
    with pytest.raises(ValueError, match="2 channels"):
        F.to_pil_image(TENSOR[:2])
    with pytest.raises(TypeError, match="int64"):
        F.to_pil_image(TENSOR.long())


def test_leading_axes_are_kept() -> None:
    five = TENSOR.repeat(2, 3, 1, 1, 1)
    assert F.resize(five, [8, 9]).shape == (2, 3, 3, 8, 9)
    compose = ours.Compose([ours.Resize([8, 9])])
    assert torch.equal(compose(five)[1, 2], compose(TENSOR))


def test_gradients_flow_through_functions() -> None:
    data = (TENSOR.float() / 255).requires_grad_()
    F.normalize(F.resize(data, [10, 12]), [0.5], [2.0]).sum().backward()
    assert data.grad is not None and data.grad.abs().sum() > 0


# ------------------------------------------------------------------ Compose

PAIRS = [
    ([ours.Resize(33)], [theirs.Resize(33)]),
    ([ours.Resize(None, max_size=50)], [theirs.Resize(None, max_size=50)]),
    ([ours.Resize(40), ours.CenterCrop(32)], [theirs.Resize(40), theirs.CenterCrop(32)]),
    ([ours.Pad([1, 2], 9)], [theirs.Pad([1, 2], 9)]),
    ([ours.Grayscale(3)], [theirs.Grayscale(3)]),
    ([ours.GaussianBlur(5, 1.5)], [theirs.GaussianBlur(5, (1.5, 1.5))]),
    ([ours.RandomHorizontalFlip(1)], [theirs.RandomHorizontalFlip(1)]),
    ([ours.RandomVerticalFlip(0)], [theirs.RandomVerticalFlip(0)]),
    ([ours.RandomGrayscale(1)], [theirs.RandomGrayscale(1)]),
    ([ours.RandomApply([ours.CenterCrop(9)], 1)], [theirs.RandomApply([theirs.CenterCrop(9)], 1)]),
    ([ours.ColorJitter(saturation=(1.5, 1.5))], [theirs.ColorJitter(saturation=(1.5, 1.5))]),
    ([ours.ColorJitter(brightness=(0.7, 0.7))], [theirs.ColorJitter(brightness=(0.7, 0.7))]),
]


@pytest.mark.parametrize("data", [TENSOR, IMAGE], ids=["tensor", "image"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: str(p[1]))
def test_compose_matches_torchvision(pair: Any, data: Data) -> None:
    mine, other = pair
    assert _difference(ours.Compose(mine)(data), theirs.Compose(other)(data)) <= 1


def test_a_common_evaluation_transform() -> None:
    mean, std = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
    mine = ours.Compose(
        [ours.Resize(64), ours.CenterCrop(56), ours.ToPureTensor(), ours.Normalize(mean, std)]
    )
    other = theirs.Compose([
        theirs.Resize(64), theirs.CenterCrop(56), theirs.PILToTensor(), theirs.ToDtype(torch.float32),
        theirs.Normalize(mean, std),
    ])  # fmt: skip
    assert _difference(mine(IMAGE), other(IMAGE)) <= 1.01 / min(std)


def test_the_kind_of_the_result() -> None:
    resize = ours.Resize([8, 9])
    assert ours.Compose([resize])(GRAY).mode == "L"
    assert ours.Compose([resize])(RGBA).mode == "RGBA"
    assert ours.Compose([ours.Grayscale()])(RGBA).mode == "L"
    assert ours.Compose([resize, ours.PILToTensor()])(IMAGE).shape == (3, 8, 9)
    assert ours.Compose([resize, ours.ToPILImage()])(TENSOR).size == (9, 8)
    assert ours.Compose([ours.ToPILImage(), ours.ToPureTensor()])(TENSOR).shape == TENSOR.shape
    assert ours.Compose([])(IMAGE).tobytes() == IMAGE.tobytes()
    normalize = ours.Normalize([0.0], [255.0])
    assert ours.Compose([normalize])(IMAGE).tobytes() == IMAGE.tobytes()


def test_conversion_of_floats_to_bytes_warns() -> None:
    normalize = ours.Compose([ours.Normalize([0.5], [0.2])])
    with pytest.warns(UserWarning, match="Add ToPureTensor"):
        normalize(PIL.Image.new("L", (4, 3)))


def test_alpha_is_preserved() -> None:
    alpha = torch.arange(90 * 120).remainder(256).view(1, 90, 120).to(torch.uint8)
    data = torch.cat([TENSOR, alpha])
    for transform in (ours.ColorJitter(0.5, 0.5, 0.5, 0.5), ours.RandomGrayscale(1)):
        made = ours.Compose([transform])(data)
        assert torch.equal(made[3], data[3]) and not torch.equal(made[:3], data[:3])


def test_each_image_of_a_tensor_draws_its_own_numbers() -> None:
    many = TENSOR.repeat(16, 1, 1, 1)
    for transform in (
        ours.RandomCrop(20), ours.RandomResizedCrop(20), ours.GaussianBlur(7), ours.ColorJitter(0.5),
    ):  # fmt: skip
        made = ours.Compose([transform], seed=1)(many)
        assert len({tuple(each.flatten().tolist()) for each in made}) > 12, transform
    for transform in (ours.RandomHorizontalFlip(), ours.RandomGrayscale(0.5)):
        made = ours.Compose([transform], seed=1)(many)
        assert len({tuple(each.flatten().tolist()) for each in made}) == 2, transform


def test_random_apply_applies_to_some() -> None:
    compose = ours.Compose(
        [ours.RandomApply([ours.Pad(0), ours.RandomHorizontalFlip(1)], 0.5)], seed=3
    )
    results = [torch.equal(compose(TENSOR), TENSOR) for _ in range(20)]
    assert 2 < sum(results) < 18


def test_random_crop_stays_inside_its_padding() -> None:
    ones = torch.full((3, 20, 30), 100, dtype=torch.uint8)
    compose = ours.Compose([ours.RandomCrop(25, pad_if_needed=True, fill=7)], seed=1)
    tops = set()
    for _ in range(40):
        rows = (compose(ones)[0] == 100).any(1).nonzero().flatten()
        assert len(rows) == 20
        tops.add(int(rows[0]))
    assert tops == set(range(6))
    with pytest.raises(RuntimeError, match="pad_if_needed=True"):
        ours.Compose([ours.RandomCrop(25)])(ones)


def test_random_resized_crop_draws_areas_and_ratios() -> None:
    places = torch.stack([
        torch.arange(100).repeat(80, 1), torch.arange(80)[:, None].repeat(1, 100), torch.zeros(80, 100)
    ]).to(torch.uint8)  # fmt: skip
    nearest = ours.InterpolationMode.NEAREST
    crop = ours.RandomResizedCrop(64, scale=(0.3, 0.5), interpolation=nearest)
    made = ours.Compose([crop], seed=1, batch_size=300)(places.expand(300, -1, -1, -1)).float()
    height, width = ((made[:, i].amax((1, 2)) - made[:, i].amin((1, 2)) + 1) for i in (1, 0))
    area = height * width / 8000
    assert 0.38 < area.mean() < 0.42 and area.min() > 0.27 and area.max() < 0.54
    assert abs((width / height).log().mean()) < 0.06


def test_seeds() -> None:
    steps = [ours.RandomResizedCrop(20), ours.RandomHorizontalFlip()]
    first, second = (ours.Compose(steps, seed=5) for _ in "12")
    one = first(TENSOR)
    assert torch.equal(one, second(TENSOR)) and not torch.equal(one, first(TENSOR))
    assert not torch.equal(ours.Compose(steps)(TENSOR), ours.Compose(steps)(TENSOR))


def test_sizes_and_types_may_change_between_calls() -> None:
    compose = ours.Compose([ours.Resize(16)])
    assert compose(TENSOR).shape == (3, 16, 21)
    assert compose(TENSOR[:, ::2].float()).dtype == torch.float32
    assert compose(TENSOR[None]).shape == (1, 3, 16, 21)
    assert compose(TENSOR[:1]).shape == (1, 16, 21)


def test_the_result_is_not_overwritten_by_the_next_call() -> None:
    compose = ours.Compose([ours.CenterCrop(8), ours.ToPureTensor()])
    first = compose(IMAGE)
    kept = first.clone()
    compose(PIL.Image.new("RGB", (50, 50), "white"))
    assert torch.equal(first, kept)


def test_threads_share_a_compose() -> None:
    compose = ours.Compose([ours.Resize([20, 20])])
    expected, wrong = compose(TENSOR), []

    def work() -> None:
        wrong.extend(1 for _ in range(20) if not torch.equal(compose(TENSOR), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not wrong and not any(each.is_alive() for each in threads)


def test_copies_and_pickles() -> None:
    compose = ours.Compose([ours.Resize([20, 20])], seed=2)
    expected = compose(TENSOR)
    assert torch.equal(pickle.loads(pickle.dumps(compose))(TENSOR), expected)
    assert torch.equal(copy.deepcopy(compose)(TENSOR), expected)


# ---------------------------------------------------------------------- applications


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(8):
        place = tmp_path / "ab"[i % 2]
        place.mkdir(exist_ok=True)
        IMAGE.resize((60 + i, 50)).save(place / f"{i}.png")
    return tmp_path


def _training_transform() -> Any:
    return ours.Compose(
        [ours.RandomResizedCrop(16), ours.RandomHorizontalFlip(), ours.ToPureTensor()], seed=4
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_image_folder(folder: Path, workers: int) -> None:
    dataset = ImageFolder(str(folder), transform=_training_transform())
    dataset[0]  # its pipeline has threads in this process; workers create their own
    loader = DataLoader(dataset, batch_size=4, num_workers=workers)
    batches = list(loader)
    assert [images.shape for images, _ in batches] == [(4, 3, 16, 16)] * 2
    again = list(loader)
    if workers:  # workers restart; each draws its own numbers
        assert all(torch.equal(a, b) for (a, _), (b, _) in zip(batches, again, strict=True))
        assert not torch.equal(batches[0][0], batches[1][0])


@pytest.mark.slow
def test_image_folder_in_spawned_workers(folder: Path) -> None:
    dataset = ImageFolder(str(folder), transform=_training_transform())
    dataset[0]
    loader = DataLoader(dataset, batch_size=4, num_workers=1, multiprocessing_context="spawn")
    assert [images.shape for images, _ in loader] == [(4, 3, 16, 16)] * 2


def test_in_a_pipeline() -> None:
    compose = ours.Compose([ours.Resize(20), ours.CenterCrop(16), ours.Normalize([128.0], [60.0])])

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipeline() -> Any:
        images = fn.external_source(name="images", layout="HWC")
        return compose(images)

    made = pipeline()
    with made:
        images = TENSOR.permute(1, 2, 0).contiguous()
        made.feed_input("images", [images, images.flip(0)])
        (result,) = made.run()
    direct = ours.Compose([*compose.op_list, ours.ToPureTensor()])(IMAGE)
    assert torch.equal(result.samples()[0].permute(2, 0, 1), direct)


def test_in_the_proxy(folder: Path) -> None:
    from torchdali.plugin.pytorch.experimental import proxy

    compose = ours.Compose([ours.Resize([16, 16])])

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, prefetch_queue_depth=2)
    def pipeline() -> Any:
        files = fn.external_source(name="images", no_copy=True)
        return compose(fn.decoders.image(files))

    with proxy.DALIServer(pipeline()) as server:
        read = lambda path: torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=torch.uint8)  # noqa: E731
        dataset = ImageFolder(str(folder), transform=server.proxy, loader=read)
        loader = proxy.DataLoader(server, dataset, batch_size=4, num_workers=1)
        assert [images.shape for images, _ in loader] == [(4, 16, 16, 3)] * 2


# ------------------------------------------------------------------ wrong use

T = ours
WRONG: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (ValueError, "positive", lambda: T.Resize(0)),
    (ValueError, "one or two", lambda: T.Resize([1, 2, 3])),
    (ValueError, "int", lambda: T.Resize(1.5)),  # type: ignore[arg-type]
    (ValueError, "max_size must be passed", lambda: T.Resize(None)),
    (ValueError, "must be above 10, the size", lambda: T.Resize(10, max_size=10)),
    (ValueError, "shorter", lambda: T.Resize([10, 12], max_size=50)),
    (ValueError, "Pillow", lambda: T.Resize(10, 7)),
    (NotImplementedError, "BOX", lambda: T.Resize(10, T.InterpolationMode.BOX)),
    (ValueError, "device", lambda: T.Resize(10, device="tpu")),  # type: ignore[arg-type]
    (ValueError, "positive", lambda: T.CenterCrop(-1)),
    (TypeError, "int", lambda: T.CenterCrop("a")),
    (ValueError, "negative", lambda: T.RandomCrop(5, padding=-1)),
    (ValueError, "1, 2 or 4", lambda: T.RandomCrop(5, padding=[1, 2, 3])),
    (TypeError, "fill", lambda: T.RandomCrop(5, fill="a")),
    (TypeError, "bool", lambda: T.RandomCrop(5, pad_if_needed=3)),  # type: ignore[arg-type]
    (TypeError, "scale", lambda: T.RandomResizedCrop(5, scale=0.5)),  # type: ignore[arg-type]
    (ValueError, "min, max", lambda: T.RandomResizedCrop(5, ratio=(2, 1))),
    (ValueError, "positive", lambda: T.RandomResizedCrop(5, scale=(0, 1))),
    (TypeError, "2 or 4", lambda: T.Pad([1, 2, 3])),
    (ValueError, "negative", lambda: T.Pad([-1, 2])),
    (ValueError, "padding_mode", lambda: T.Pad(1, padding_mode="wrap")),  # type: ignore[arg-type]
    (ValueError, "std", lambda: T.Normalize([1.0], [0.0])),
    (TypeError, "sequence", lambda: T.Normalize(1, 1)),  # type: ignore[arg-type]
    (NotImplementedError, "inplace", lambda: T.Normalize([1.0], [1.0], inplace=True)),
    (ValueError, "from 0 to 1", lambda: T.RandomGrayscale(2)),
    (ValueError, "from 0 to 1", lambda: T.RandomHorizontalFlip(-1)),
    (TypeError, "must be a transform", lambda: T.RandomApply([3])),  # type: ignore[list-item]
    (ValueError, "1 or 3", lambda: T.Grayscale(2)),
    (ValueError, "odd", lambda: T.GaussianBlur(4)),
    (ValueError, "positive", lambda: T.GaussianBlur(3, 0)),
    (ValueError, "min, max", lambda: T.GaussianBlur(3, (2, 1))),
    (ValueError, "negative", lambda: T.ColorJitter(-1)),
    (ValueError, "hue", lambda: T.ColorJitter(hue=0.6)),
    (TypeError, "must be a transform", lambda: T.Compose([torch.nn.ReLU()])),
    (TypeError, "nonsense", lambda: T.Compose([], nonsense=3)),
    (ValueError, "batch_size", lambda: T.Compose([], batch_size=0)),
    (TypeError, "list of transforms", lambda: T.Compose(T.Resize(3))),  # type: ignore[arg-type]
    (RuntimeError, "Compose", lambda: T.Resize(10)(IMAGE)),
    (TypeError, "numpy", lambda: T.Compose([])(TENSOR.numpy())),
    (TypeError, "PIL image or a torch", lambda: T.Compose([])([IMAGE])),
    (TypeError, r"\(C, H, W\)", lambda: T.Compose([])(TENSOR[0])),
    (ValueError, "mode CMYK", lambda: T.Compose([])(IMAGE.convert("CMYK"))),
    (RuntimeError, "larger", lambda: T.Compose([], batch_size=2)(TENSOR.repeat(3, 1, 1, 1))),
    (RuntimeError, "at least one image", lambda: T.Compose([])(TENSOR[None][:0])),
    (RuntimeError, "3 channels", lambda: T.Compose([T.Normalize([1.0, 2.0], [1.0])])(TENSOR)),
    (RuntimeError, "channels", lambda: T.Compose([T.Grayscale()])(TENSOR[:2])),
    (TypeError, "top", lambda: F.crop(TENSOR, 1.5, 2, 3, 4)),  # type: ignore[arg-type]
    (ValueError, "positive", lambda: F.crop(TENSOR, 1, 2, 0, 4)),
    (TypeError, "Tensor", lambda: F.normalize(IMAGE, [1.0], [1.0])),
    (TypeError, "numpy", lambda: F.horizontal_flip(TENSOR.numpy())),
    (TypeError, "2 axes", lambda: F.get_size(TENSOR[0, 0])),
    (ValueError, "device", lambda: F.resize(TENSOR, 8, device="tpu")),
    (TypeError, "PIL image", lambda: F.pil_to_tensor(TENSOR)),
    (TypeError, "Tensor", lambda: F.to_pil_image(IMAGE)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("case", WRONG, ids=lambda c: f"{c[0].__name__}-{c[1]}")
def test_wrong_use(case: tuple[type[Exception], str, Callable[[], Any]]) -> None:
    kind, match, call = case
    with pytest.raises(kind, match=match):
        call()


def test_a_missing_name_has_a_hint() -> None:
    for module in (ours, ours.v2):
        with pytest.raises(AttributeError, match="use PILToTensor"):
            module.ToTensor  # noqa: B018
        with pytest.raises(AttributeError, match="call torchvision's own after Compose"):
            module.MixUp  # noqa: B018


@pytest.mark.parametrize("given", [IMAGE, TENSOR, TENSOR / 255])
@pytest.mark.parametrize("factor", [1, 255])
def test_normalizing_bytes_as_if_in_0_to_1_warns(given: Any, factor: int) -> None:
    mean, std = [0.485 * factor, 0.456 * factor, 0.406 * factor], [0.229 * factor] * 3
    compose = T.Compose([T.Resize(8), T.ToPureTensor(), T.Normalize(mean, std)])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        compose(given)
        compose(given)
    is_wrong = factor == 1 and (given is IMAGE or given.dtype == torch.uint8)
    assert [each.filename for each in found] == [__file__] * is_wrong
    assert all("multiply both by 255" in str(each.message) for each in found)


def test_one_kind_of_input() -> None:
    compose = ours.Compose([ours.Resize(8)])
    compose(IMAGE)
    with pytest.raises(TypeError, match="must be called with PIL images"):
        compose(TENSOR)


def test_a_compose_works_after_an_error() -> None:
    compose = ours.Compose([ours.RandomCrop(25)])
    with pytest.raises(RuntimeError):
        compose(TENSOR[:, :20])
    assert compose(TENSOR).shape == (3, 25, 25)


def test_a_random_size_in_a_batch() -> None:
    compose = ours.Compose([ours.RandomApply([ours.Resize(8)])], seed=1)
    with pytest.raises(RuntimeError, match="images of one shape"):
        compose(TENSOR.repeat(12, 1, 1, 1))


def test_torchvisions_interpolation_enum_is_accepted() -> None:
    mode: Any = TheirMode.NEAREST
    assert ours.Resize(8, mode).interpolation is ours.InterpolationMode.NEAREST


@pytest.mark.parametrize("output_layout", ["CHW", "HWC"])
def test_resize_and_normalize_are_fused_on_channels_first_images(output_layout: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline(layout: str) -> Any:
        images = fn.external_source(name="images", layout=layout)
        resized = fn.resize(images, size=[20, 30])
        mean = [100.0, 50.0, 20.0]
        return fn.crop_mirror_normalize(
            resized, crop=[16, 18], mean=mean, std=[2.0], output_layout=output_layout
        )

    planes, pixels = pipeline("CHW"), pipeline("HWC")
    assert "+" in planes.explain()  # the two operators are fused
    (a,), (b,) = planes.run(images=TENSOR[None]), pixels.run(images=TENSOR.permute(1, 2, 0)[None])
    assert a.layout() == output_layout and (a.stack() - b.stack()).abs().max() <= 0.5
