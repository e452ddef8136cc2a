"""Lazy images: all operations on them are bit-identical to Pillow."""

from __future__ import annotations

import copy
import io
import linecache
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image, ImageDraw, ImageEnhance, ImageFile, ImageFilter, ImageOps, ImageStat
from PIL.JpegImagePlugin import JpegImageFile
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset, IterableDataset
from torchvision.transforms import functional as F
from torchvision.transforms import v2

from tests.dataloader.data import LAZY, is_lazy
from tests.helpers.inside import lazy_opening, no_lazy_image_before
from torchdali import DataLoader
from torchdali.ops._pictures import ImageSource
from torchdali.pipeline import native_status

pytestmark = pytest.mark.skipif(not native_status().library, reason="decodes by the library")

FLIP, UPSIDE, QUARTER = (Image.Transpose(each) for each in (0, 1, 2))


def write(path: Path, height: int = 57, width: int = 71, mode: str = "RGB", **options: Any) -> str:
    """Write a JPEG of smooth noise."""
    noise = Image.fromarray(np.random.default_rng(height).integers(0, 255, (height, width, 3), np.uint8))
    noise.filter(ImageFilter.GaussianBlur(2)).convert(mode).save(path, "JPEG", **{"quality": 92, **options})
    return str(path)


def exif() -> Image.Exif:
    facts = Image.Exif()
    facts[ExifTags.Base.Orientation], facts[ExifTags.Base.Make] = 6, "a maker"
    return facts


FILES: dict[str, dict[str, Any]] = {
    "color": {}, "narrow": {"height": 90, "width": 13}, "wide": {"height": 13, "width": 90},
    "gray": {"mode": "L"}, "inks": {"mode": "CMYK"}, "progressive": {"progressive": True}, "turned": {"exif": exif()},
    "restarts": {"restart_marker_rows": 1}, "sampled": {"subsampling": 0}, "remark": {"comment": b"hello", "dpi": (72, 36)},
}  # fmt: skip


@pytest.fixture(autouse=True)
def without_habit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test start like a process that has not loaded an image, and make small images lazy."""
    no_lazy_image_before(monkeypatch, smallest=0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("files")
    return {name: write(folder / f"{name}.jpg", **options) for name, options in FILES.items()}


def _seen(value: Any) -> Any:
    """Return a value's description for the comparison."""
    if isinstance(value, Image.Image):
        facts = (value.mode, value.size, value.format, value.__class__, {**value.info}, value.readonly)
        return *facts, value.tobytes(), value.getpalette()
    if isinstance(value, (list, tuple)):
        return [_seen(each) for each in value]
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def outcome(function: Callable[[Any], Any], image: Any) -> Any:
    """Return a function's result or error, and the image after the call."""
    try:
        result = _seen(function(image))
    except Exception as error:
        return type(error), str(error)
    return result, image.mode, image.size


def _saved(image: Any, form: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def _changed(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that modifies a copy of an image, and returns the copy."""

    def changed(image: Any) -> Any:
        image = image.copy()
        change(image)
        return image

    return changed


def _in_place(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def changed(image: Any) -> Any:
        change(image)
        return image

    return changed


METHODS: dict[str, Callable[[Any], Any]] = {
    "alpha_composite": lambda i: Image.alpha_composite(i.convert("RGBA"), i.convert("RGBA")), "app": lambda i: (i.app, i.applist),
    "apply_transparency": lambda i: i.apply_transparency(), "array": np.asarray, "array_interface": lambda i: i.__array_interface__,
    "bits": lambda i: (i.bits, i.layers, i.layer), "blend": lambda i: Image.blend(i, i.transpose(FLIP), 0.3), "close": lambda i: (i.close(), i.getpixel((0, 0))),
    "close, then size": lambda i: (i.close(), i.size)[1], "composite": lambda i: Image.composite(i, i.transpose(FLIP), i.convert("L")), "convert": lambda i: i.convert(),
    "convert 1": lambda i: i.convert("1"), "convert CMYK": lambda i: i.convert("CMYK"), "convert L": lambda i: i.convert("L"), "convert P": lambda i: i.convert("P", palette=1),
    "convert RGB": lambda i: i.convert("RGB"), "convert RGBA": lambda i: i.convert("RGBA"), "convert YCbCr": lambda i: i.convert("YCbCr"), "convert by a matrix": lambda i: i.convert("L", (0.1, 0.2, 0.3, 0)),
    "convert nothing": lambda i: i.convert("no mode"), "copy": lambda i: i.copy(), "copy.copy": copy.copy, "crop": lambda i: i.crop((3, 4, 20, 25)), "crop all": lambda i: i.crop(),
    "crop floats": lambda i: i.crop((3.5, 4.5, 20.5, 25.2)), "crop list": lambda i: i.crop([3, 4, 20, 25]), "crop nothing": lambda i: i.crop((3, 3, 3, 5)), "crop numpy": lambda i: i.crop(tuple(np.array((3, 4, 20, 25)))),
    "crop outside": lambda i: i.crop((-3, 4, 20, 25)), "crop reversed": lambda i: i.crop((20, 4, 3, 25)), "crop, of a crop": lambda i: i.crop((3, 4, 20, 25)).crop((1, 2, 9, 10)),
    "deepcopy": copy.deepcopy, "draft": lambda i: (i.draft("L", (20, 20)), i.size, i.mode, i),
    "draft after load": lambda i: (i.load() and None, i.draft("L", (20, 20)), i), "draw": _changed(lambda i: ImageDraw.Draw(i).line((0, 0, 9, 9), "red")), "draw in place": _in_place(lambda i: ImageDraw.Draw(i).line((0, 0, 9, 9), 9)),
    "effect_spread": lambda i: i.effect_spread(0), "enhance": lambda i: ImageEnhance.Color(i).enhance(1.4), "entropy": lambda i: i.entropy(), "equal": lambda i: (i == i.copy(), i.copy() == i.copy(), i.copy() == i.crop((0, 0, 2, 2)), i != 3),
    "exif": lambda i: dict(i.getexif()), "_exif": lambda i: i._getexif(), "exif of a copy": lambda i: dict(i.copy().getexif()), "exif_transpose": lambda i: ImageOps.exif_transpose(i), "expand": lambda i: ImageOps.expand(i, 3),
    "filename": lambda i: Path(i.filename).name, "filter": lambda i: i.filter(ImageFilter.BLUR), "fit": lambda i: ImageOps.fit(i, (20, 20)), "flip, crop": lambda i: i.transpose(FLIP).crop((0, 0, 9, 9)), "format": lambda i: (i.format, i.format_description, i.copy().format),
    "fp": lambda i: (i.fp is None, i.load() and None, i.fp is None), "frombytes": _in_place(lambda i: i.frombytes(bytes(len(i.tobytes())))), "getbands": lambda i: i.getbands(), "getbbox": lambda i: i.getbbox(), "getchannel": lambda i: i.getchannel(0), "getcolors": lambda i: i.getcolors(99999),
    "getdata": lambda i: i.getdata()[99], "getextrema": lambda i: i.getextrema(), "getim": lambda i: type(i.getim()), "getpixel": lambda i: i.getpixel((3, 4)), "getpixel outside": lambda i: i.getpixel((999, 4)), "getprojection": lambda i: i.getprojection(), "getxmp": lambda i: i.getxmp(),
    "histogram": lambda i: i.histogram(), "histogram of a mask": lambda i: i.histogram(i.convert("1")), "icclist": lambda i: i.icclist, "im": lambda i: i.im.size, "im of a crop": lambda i: i.crop((0, 0, 9, 9)).im.size, "im after load": lambda i: (i.load() and None, i.im.mode),
    "info": lambda i: i.info, "info of a crop": lambda i: (i.info.update(mine=1), i.crop((0, 0, 9, 9)).info)[1], "info, own lists": lambda i: (i.info.update(mine=[1]), i.copy().info["mine"] is i.info["mine"])[1], "invert": lambda i: ImageOps.invert(i.convert("RGB")),
    "isinstance": lambda i: (isinstance(i, JpegImageFile), isinstance(i, ImageFile.ImageFile), isinstance(i.copy(), ImageFile.ImageFile)), "load": lambda i: i.load()[3, 4], "load, write": lambda i: (i.load().__setitem__((0, 0), (1, 2, 3)), i)[1], "mean": lambda i: ImageStat.Stat(i).mean,
    "merge": lambda i: Image.merge("RGB", i.convert("RGB").split()), "mimetype": lambda i: i.get_format_mimetype(), "n_frames": lambda i: (getattr(i, "n_frames", None), getattr(i, "is_animated", None)), "paste": _changed(lambda i: i.paste(i.crop((0, 0, 5, 5)), (7, 8))),
    "paste in place": _in_place(lambda i: i.paste(i.crop((0, 0, 5, 5)), (7, 8))), "pickle": lambda i: pickle.loads(pickle.dumps(i)), "pickle of a crop": lambda i: pickle.loads(pickle.dumps(i.crop((1, 1, 9, 9)), 2)), "point": lambda i: i.point(lambda level: 255 - level), "putalpha": _changed(lambda i: i.putalpha(9)), "putalpha in place": _in_place(lambda i: i.putalpha(9)),
    "putdata": _changed(lambda i: i.putdata([9] * 40)), "putpixel": _changed(lambda i: i.putpixel((0, 0), 9)), "quantization": lambda i: i.quantization, "quantize": lambda i: i.quantize(9), "readonly": lambda i: (i.readonly, i.load() and None, i.readonly, i.copy().readonly), "reduce": lambda i: i.reduce(3),
    "resize": lambda i: i.resize((20, 10)), "resize a crop": lambda i: i.crop((3, 4, 20, 25)).resize((9, 8), 2), "resize array": lambda i: i.resize(np.array((20, 10))), "resize box": lambda i: i.resize((20, 10), box=(1.5, 2, 20, 30)), "resize gap": lambda i: i.resize((20, 10), reducing_gap=1.0), "resize list": lambda i: i.resize([20, 10]),
    "resize iterator": lambda i: i.resize(iter((20, 10))), "resize nothing": lambda i: i.resize((0, 10)), "resize numpy": lambda i: i.resize((np.int64(20), np.int32(10)), 0), "resize same": lambda i: i.resize(i.size), "resize twice": lambda i: i.resize((20, 10)).resize((9, 30)), "resize unknown": lambda i: i.resize((9, 9), 99), "resize by name": lambda i: i.resize((9, 9), "bilinear"),
    "rotate": lambda i: i.rotate(20, expand=True), "save JPEG": lambda i: _saved(i, "JPEG"), "save keep": lambda i: _saved(i, "JPEG", quality="keep"), "save keep of a copy": lambda i: _saved(i.copy(), "JPEG", quality="keep"), "save PNG": _saved, "seek": lambda i: (i.seek(0), i.tell()), "seek too far": lambda i: i.seek(1),
    "shape": lambda i: np.array(i, copy=True).shape, "split": lambda i: i.split(), "str": lambda i: str(i).partition(" at ")[0], "str of a crop": lambda i: repr(i.crop((0, 0, 5, 6))).partition(" at ")[0], "thumbnail": _in_place(lambda i: i.thumbnail((30, 30))),
    "thumbnail of a copy": _changed(lambda i: i.thumbnail((30, 30))), "thumbnail without a gap": _in_place(lambda i: i.thumbnail((30, 30), reducing_gap=None)), "thumbnail of a copy without a gap": _changed(lambda i: i.thumbnail((30, 30), reducing_gap=None)), "tile": lambda i: (i.tile, i.load() and None, i.tile), "to_tensor": lambda i: v2.functional.pil_to_tensor(i).numpy(),
    "tobitmap": lambda i: i.convert("1").tobitmap(), "tobytes": lambda i: i.tobytes(), "tobytes, twice": lambda i: (i.crop((1, 2, 9, 9)).tobytes(), i.crop((3, 3, 12, 9)).tobytes(), i.tobytes("raw", "RGB")), "transform": lambda i: i.transform((20, 20), 0, (1, 0, 2, 0, 1, 3)), "transparency": lambda i: (i.info.update(transparency=(1, 2, 3)), i.convert("RGBA"))[1],
    "transpose": lambda i: i.transpose(FLIP).transpose(UPSIDE), "transpose a quarter": lambda i: i.transpose(UPSIDE).crop((2, 3, 9, 9)).transpose(QUARTER), "verify": lambda i: (i.verify(), i.fp is None), "verify, load": lambda i: (i.verify(), i.load()), "with": lambda i: (i.__enter__() is i, i.__exit__(None, None, None), i.fp is None), "with, load": lambda i: (i.__exit__(None, None, None), i.getpixel((1, 1))),
    "with, copy": lambda i: (j := i.convert("RGB"), i.__exit__(None, None, None), j.getpixel((1, 1)))[2],
    "brightness": lambda i: [F.adjust_brightness(i, each) for each in FACTORS], "contrast": lambda i: [F.adjust_contrast(i, each) for each in FACTORS],
    "saturation": lambda i: [F.adjust_saturation(i, each) for each in FACTORS], "hue": lambda i: [F.adjust_hue(i, each) for each in (-0.5, -0.1, 0, 0.001, 0.3, 0.5)],
    "hue out of range": lambda i: F.adjust_hue(i, 0.6), "brightness of a text": lambda i: F.adjust_brightness(i, "1.5"), "brightness without a factor": lambda i: F.adjust_brightness(i),
    "v2 brightness": lambda i: v2.functional.adjust_brightness(i, brightness_factor=1.3), "v2 contrast": lambda i: v2.functional.adjust_contrast(i, 0.6), "v2 saturation": lambda i: v2.functional.adjust_saturation(i, 0.6),
    "v2 hue": lambda i: v2.functional.adjust_hue(i, hue_factor=0.2), "gray of 3": lambda i: [F.rgb_to_grayscale(i, 3), v2.functional.rgb_to_grayscale(i, 3), v2.functional.to_grayscale(i, 3)],
    "gray of 1": lambda i: [F.rgb_to_grayscale(i), v2.functional.rgb_to_grayscale(i, num_output_channels=1)], "gray of 2": lambda i: F.rgb_to_grayscale(i, 2),
    "colors, then views": lambda i: F.adjust_hue(F.adjust_contrast(i.crop((3, 4, 20, 25)).resize((9, 8), 2), 1.7), 0.1).transpose(FLIP).resize((20, 30)).crop((1, 1, 9, 9)),
    "colors of one image": lambda i: [F.adjust_brightness(i, 0.4), F.adjust_saturation(i, 1.4), i, F.adjust_brightness(i.crop((1, 2, 8, 9)), 0.4).convert("L")],
}  # fmt: skip
FACTORS = (0, 0.0, 0.25, 1, 1.0, 1.5, 2, 300.0, -0.5, np.float32(0.5), float("nan"))


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", METHODS)
def test_methods_and_attributes_match_pillow(files: dict[str, str], name: str) -> None:
    for path in files.values():
        expected = outcome(METHODS[name], Image.open(path))
        with lazy_opening():
            image = Image.open(path)
            assert outcome(METHODS[name], image) == expected, path


def _chained(image: Image.Image, seed: int) -> Image.Image:
    """Return an image after some calls of a user."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 5)):
        width, height = image.size
        left, top = rng.randint(0, width // 2), rng.randint(0, height // 2)
        right, bottom = rng.randint(left + 1, width + 1), rng.randint(top + 1, height + 1)  # outside, too
        size, filter_ = (rng.randint(1, 200), rng.randint(1, 200)), rng.choice([None, *range(6)])
        call = rng.choice(["crop", "crop", "resize", "resize", "resize_box", "transpose", "copy", "convert", "load"])
        if call == "crop":
            image = image.crop((left, top, right, bottom))
        elif call == "resize":
            image = image.resize(size, filter_)
        elif call == "resize_box":
            image = image.resize(size, 2, (left / 3, top / 3, width, height))
        elif call == "transpose":
            image = image.transpose(Image.Transpose(rng.choice([0, 1, 2])))
        elif call == "load":
            image.load()
        else:
            image = image.copy() if call == "copy" else image.convert("RGB")
    return image


@pytest.mark.parametrize("seed", range(30))
def test_chains_of_methods(files: dict[str, str], seed: int) -> None:
    for path in files.values():
        expected = _seen(_chained(Image.open(path), seed))
        with lazy_opening():
            assert _seen(_chained(Image.open(path), seed)) == expected, path


def test_a_resize_of_a_region_decodes_nothing_until_it_is_used(files: dict[str, str]) -> None:
    with lazy_opening():
        image = Image.open(files["color"])
        assert is_lazy(image)
        part = image.crop((3, 4, 30, 31)).resize((10, 12))
        assert part.size == (10, 12) and part.getbands() == ("R", "G", "B") and is_lazy(part)
        part = F.adjust_hue(v2.functional.adjust_contrast(part, 1.5), 0.1)
    assert part.size == (10, 12) and is_lazy(part)
    assert part.getpixel((0, 0)) and type(part) is Image.Image and is_lazy(image)
    assert image.getpixel((0, 0)) and type(image) is JpegImageFile


def test_several_regions_of_an_image_are_decoded_once(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    views: list[Any] = []
    render = ImageSource.render
    monkeypatch.setattr(ImageSource, "render", lambda self, program: (views.append((self.size, program.size)), render(self, program))[1])
    boxes = ((0, 0, 9, 9), (1, 2, 30, 31), (5, 5, 9, 10))
    plain = Image.open(files["color"])
    for count in (1, 3):  # a region, then the whole image; later images are decoded completely
        with lazy_opening():
            image = Image.open(files["color"])
        views.clear()
        parts = [image.crop(box) for box in boxes]
        assert views.pop(0) == ((57, 71), (1, 1))  # is it valid?
        assert [part.tobytes() for part in parts] == [plain.crop(box).tobytes() for box in boxes]
        assert views == [*[((57, 71), (9, 9))] * (count == 1), ((57, 71), (57, 71)), *[((57, 71), size) for size in ((9, 9), (29, 29), (5, 4))[count == 1 :]]]


# ---------------------------------------------------------------- files


def _positions(path: str, trailer: bytes) -> Iterator[Any]:
    data = Path(path).read_bytes() + trailer
    for opened in (io.BytesIO(b"12345" + data), io.BytesIO(data)):
        yield opened
        image = Image.open(opened)
        yield opened.tell()
        image.crop((1, 2, 3, 4))
        yield opened.tell(), opened.closed, image.fp is None
        yield image.getpixel((2, 2))


def test_files_of_the_user_are_read_as_far_as_by_pillow(files: dict[str, str]) -> None:
    def outcomes(path: str, trailer: bytes) -> list[Any]:
        steps = []
        try:
            steps += [step for step in _positions(path, trailer) if not isinstance(step, io.BytesIO)]
        except Exception as error:
            steps.append(type(error))
        return steps

    for path in files.values():
        for trailer in (b"", b"\0" * 200_000, b"\xff\xd9" * 40_000):
            expected = outcomes(path, trailer)
            with lazy_opening():
                assert outcomes(path, trailer) == expected


def damaged(data: bytes, seed: int) -> bytes:
    """Return bytes with some damage."""
    rng, changed = random.Random(seed), bytearray(data)
    kind = seed % 4
    for _ in range(rng.randint(1, 4) if kind else 0):
        place = rng.randrange(2, 660 if kind == 1 else len(changed))
        if kind == 3:
            changed[place : place + rng.randint(0, 9)] = rng.randbytes(rng.randint(0, 9))
        else:
            changed[place] = rng.choice([0, 255, rng.randrange(256), changed[place] ^ 1 << rng.randrange(8)])
    return bytes(changed if kind else changed[: rng.randrange(len(changed))])


def _decode(data: bytes, steps: int) -> Any:
    """Open a file; return the step that failed, and the pixels."""
    done = 0
    try:
        image: Any = Image.open(io.BytesIO(data))
        done = 1
        image = image.convert("RGB")
        done = 2
        for step in (lambda i: i.crop((1, 2, 60, 50)), lambda i: i.resize((20, 30), 2), lambda i: i.transpose(FLIP))[:steps]:
            image = step(image)
        return done, image.tobytes()
    except Exception as error:
        return done, type(error), str(error).partition(" at 0x")[0]


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 200), marks=pytest.mark.slow)], ids=["100 files", "900 files"])
@pytest.mark.parametrize("truncated", [False, True])
def test_damaged_files_have_pillows_errors_and_pixels(
    files: dict[str, str], truncated: bool, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", truncated)
    for name in ("color", "gray", "restarts", "progressive", "sampled"):
        data = Path(files[name]).read_bytes()
        for seed in seeds:
            bad = damaged(data, seed)
            expected = _decode(bad, seed % 4)
            with lazy_opening():
                assert _decode(bad, seed % 4) == expected, (name, seed)


@pytest.mark.parametrize("most", [None, 100, 2_100, 4_100])
@pytest.mark.filterwarnings("error")
def test_the_decompression_bomb_check_matches_pillow(files: dict[str, str], most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    for steps in range(4):
        data = Path(files["color"]).read_bytes()
        expected = _decode(data, steps)
        with lazy_opening():
            assert _decode(data, steps) == expected


# ---------------------------------------------------------------- loaders


class Own(Dataset[Any]):
    """Images of a user, as in most scripts."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self.transform = v2.Compose([v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True)])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.paths[index]) as image:
            was_lazy = is_lazy(image)
            image = image.convert("RGB")  # type: ignore[assignment]
        return self.transform(image), index, was_lazy


class Streamed(IterableDataset[Any]):
    def __init__(self, dataset: Own) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        number, count = (0, 1) if info is None else (info.id, info.num_workers)
        return (self.dataset[index] for index in range(number, len(self.dataset), count))


def draw_and_seed(worker: int) -> None:
    """A worker_init_fn that draws, and registers nothing."""
    torch.manual_seed(worker + int(torch.randint(9, ())))


LOADERS: list[Any] = [
    (Own, {}), pytest.param(Own, {"num_workers": 2}, marks=pytest.mark.slow), (Own, {"num_workers": 2, "persistent_workers": True}), (Own, {"num_workers": 1, "worker_init_fn": draw_and_seed}),
    pytest.param(Own, {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True, "worker_init_fn": draw_and_seed}, marks=pytest.mark.slow),
    (Streamed, {}), (Streamed, {"num_workers": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), LOADERS, ids=lambda value: value.__name__ if isinstance(value, type) else " ".join(value) or "-")
def test_batches_equal_the_batches_of_torchs_loader(tmp_path: Path, kind: Any, options: Any) -> None:
    paths = [write(tmp_path / f"{i}.jpg", 300, 400 + i, quality=97) for i in range(5)]
    dataset: Any = Own(paths)
    dataset = dataset if kind is Own else Streamed(dataset)

    def epochs(loader: Any) -> list[Any]:
        torch.manual_seed(3)
        return [batch for _ in range(2) for batch in loader]

    loader = DataLoader(dataset, batch_size=2, **options)
    batches, expected = epochs(loader), epochs(TorchLoader(dataset, batch_size=2, **options))
    assert loader.notes[0] == LAZY and len(batches) == len(expected)
    for batch, other in zip(batches, expected, strict=True):
        assert torch.equal(batch[0], other[0]) and torch.equal(batch[1], other[1])
        assert batch[2].all() and not other[2].any()


def _pillow() -> Any:
    return Image.OPEN["JPEG"]


def test_nothing_is_registered_in_the_programs_own_process(files: dict[str, str]) -> None:
    before = (Image.open(files["color"]), _pillow())[1]
    inside: list[Any] = []

    class Watched(Own):
        def __getitem__(self, index: int) -> Any:
            inside.append(_pillow() != before)
            return super().__getitem__(index)

    batches = iter(DataLoader(Watched([files["color"]] * 3)))
    assert next(batches)[2].item() and _pillow() is before and inside == [True]
    assert type(Image.open(files["color"])) is JpegImageFile


def test_hooks_are_removed_for_datasets_without_images(files: dict[str, str]) -> None:
    registered: list[bool] = []
    before = (Image.open(files["color"]), _pillow())[1]

    class Numbers(Dataset[int]):
        def __len__(self) -> int:
            return 9

        def __getitem__(self, index: int) -> int:
            registered.append(_pillow() is not before)
            return index

    assert len(list(DataLoader(Numbers()))) == 9 and registered == [True] * 4 + [False] * 5


def test_errors_restore_pillow(files: dict[str, str]) -> None:
    before = (Image.open(files["color"]), _pillow())[1]
    with pytest.raises(FileNotFoundError):
        list(DataLoader(Own(["missing"])))
    assert _pillow() is before


@pytest.mark.thin(3)
@pytest.mark.parametrize(("method", "step"), [("__enter__", 1), ("__exit__", 1), ("_restore", 23), ("swap", 83)])
def test_an_interrupt_restores_pillow(files: dict[str, str], method: str, step: int) -> None:
    before, left = (Image.open(files["color"]), _pillow())[1], 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        code = frame.f_code
        if Path(code.co_filename).name != "_lazy_opening.py":
            return None
        # Python handles signals at function entries and after calls, not between `try` and the next line.
        if event == "line" and code.co_name == method and linecache.getline(code.co_filename, frame.f_lineno).strip() != "try:":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    for line in range(1, 300, step):
        left, loader = line, iter(DataLoader(Own([files["color"]])))
        sys.settrace(trace)
        try:
            next(loader)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert _pillow() is before
        if left > 0:
            break
    with lazy_opening():
        assert is_lazy(Image.open(files["color"]))
    assert 1 < line < 290


def _patched_method(monkeypatch: pytest.MonkeyPatch) -> None:
    crop = Image.Image.crop
    monkeypatch.setattr(Image.Image, "crop", lambda self, box=None: crop(self, (0, 0, 4, 4)))


def _patched_open(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Image.open
    monkeypatch.setattr(Image, "open", lambda *arguments: plain(*arguments).transpose(FLIP))


def _own_opener(monkeypatch: pytest.MonkeyPatch) -> None:
    opener, accept = Image.OPEN["JPEG"]
    monkeypatch.setitem(Image.OPEN, "JPEG", (lambda fp, name: opener(fp, name), accept))


@pytest.mark.parametrize("change", [_patched_method, _patched_open, _own_opener])
def test_changes_of_pillow_by_the_user_persist(files: dict[str, str], change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.open(files["color"])
    change(monkeypatch)
    with lazy_opening():
        assert not is_lazy(Image.open(files["color"]))


def test_other_threads_get_images_of_pillow(files: dict[str, str]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with lazy_opening(), ThreadPoolExecutor(1) as pool:
        assert type(pool.submit(Image.open, files["color"]).result()) is JpegImageFile
        assert is_lazy(Image.open(files["color"]))


def test_threads_share_a_lazy_image(files: dict[str, str]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    expected = Image.open(files["color"]).convert("RGB").crop((1, 2, 50, 40)).tobytes()
    for _ in range(20):
        with lazy_opening():
            image = Image.open(files["color"]).convert("RGB")
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(lambda each: each.crop((1, 2, 50, 40)).tobytes(), [image] * 8)) == {expected}
