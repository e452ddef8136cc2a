"""Contact sheets: pixels at known positions, captions, and the recognition of outputs."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from torchdali import pictures
from torchdali.pictures._roles import role_of
from torchdali.tensors import TensorListCPU

GAP, LINE, WIDTH = 6, 16, 1000  # between images, of a caption, and of a sheet without `columns`
MIDDLE = (188, 55, 97)  # of the colors of spectrograms
RED, GREEN, BLUE, MAGENTA = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 0, 255)


def _flat(color: tuple[int, ...], height: int = 20, width: int = 40) -> npt.NDArray[np.uint8]:
    return np.broadcast_to(np.array(color, np.uint8), (height, width, len(color))).copy()


def _pixels(sheet: Image.Image) -> npt.NDArray[np.uint8]:
    return np.asarray(sheet)


def _same(a: Image.Image, b: Image.Image) -> bool:
    return np.array_equal(_pixels(a), _pixels(b))


def _at(sheet: Image.Image, x: int, y: int) -> Any:
    """Return a pixel of the first image of a sheet."""
    return sheet.getpixel((GAP + x, GAP + y))


def of_class(label: int) -> Any:
    """Return the color of a class in a mask."""
    return _at(pictures.show(torch.full((1, 20, 40, 1), label + 1), size=40), 0, 0)


# ---------------------------------------------------------------- one batch


def test_images_are_side_by_side_and_small_images_are_enlarged() -> None:
    corner = _flat(RED)
    corner[0, 0] = BLUE
    sheet = pictures.show([corner, _flat(GREEN)], size=160)
    assert sheet.size == (2 * 160 + 3 * GAP, 80 + 2 * GAP)  # by a factor of 4
    assert [_at(sheet, x, y) for x, y in ((0, 0), (3, 3), (4, 0), (0, 4))] == [BLUE, BLUE, RED, RED]
    assert _at(sheet, 160 + GAP, 0) == GREEN
    assert _at(sheet, 160, 0) == (255, 255, 255)


def test_large_images_are_shrunk() -> None:
    sheet = pictures.show([_flat(RED, 500, 1000)], size=100)
    assert sheet.size == (100 + 2 * GAP, 50 + 2 * GAP)
    assert _at(sheet, 99, 49) == RED


def test_samples_of_different_shapes() -> None:
    sheet = pictures.show([_flat(RED, 20, 40), _flat(BLUE, 40, 20), np.zeros((0, 4, 3), np.uint8)], size=40)
    assert _at(sheet, 39, 19) == RED
    assert _at(sheet, 40 + GAP + 19, 39) == BLUE
    assert _at(sheet, 40 + 20 + 2 * GAP, 10) == (230, 230, 230)  # a sample without a pixel


def test_columns_and_count() -> None:
    images = torch.zeros(20, 8, 8, 3, dtype=torch.uint8)
    assert pictures.show(images, size=8).size == (16 * (8 + GAP) + GAP, 8 + 2 * GAP)
    assert pictures.show(images, size=8, count=6, columns=2).size == (2 * (8 + GAP) + GAP, 3 * (8 + GAP) + GAP)
    assert pictures.show(images, size=160).width <= WIDTH


@pytest.mark.parametrize("layout", ["CHW", ""])
def test_planes_are_images(layout: str) -> None:
    images = torch.arange(2 * 3 * 20 * 40, dtype=torch.int64).mul(7).fmod(256).byte().reshape(2, 3, 20, 40)
    planes = TensorListCPU(images.numpy(), layout)
    assert _same(planes.show(), pictures.show(images.permute(0, 2, 3, 1).contiguous()))


def test_saves_the_sheet(tmp_path: Path) -> None:
    sheet = pictures.show([_flat(RED)], tmp_path / "sheet.png")
    assert _same(Image.open(tmp_path / "sheet.png"), sheet)


# ---------------------------------------------------------------- numbers


RAMP = np.linspace(0, 255, 3 * 20 * 40).round().astype(np.uint8).reshape(20, 40, 3)


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda x: x / 255, {}),
        (lambda x: x, {}),
        (lambda x: x * 3.7 - 1000, {}),  # stretched
        (lambda x: x / 127.5 - 1, {}),
        (lambda x: (x - np.array([120, 110, 100])) / 58, {"mean": [120, 110, 100], "std": [58, 58, 58]}),
        (lambda x: (x / 255 - 0.5) / 0.25, {"mean": [0.5], "std": [0.25]}),
    ],
    ids=["unit", "bytes", "stretched", "around zero", "normalized", "normalized unit"],
)
def test_floats_are_converted_back_to_bytes(change: Any, options: dict[str, Any]) -> None:
    image = change(RAMP.astype(np.float64)).astype(np.float32)
    assert _same(pictures.show([image], **options), pictures.show([RAMP]))


def test_a_normalization_is_not_stretched() -> None:
    dark = np.full((20, 40, 3), 30, np.float32)
    assert _at(pictures.show([(dark - 120) / 58], mean=[120.0], std=[58.0]), 0, 0) == (30, 30, 30)


def test_nan_is_magenta() -> None:
    image = torch.rand(1, 3, 20, 40)
    image[0, 1, 0, 0] = float("nan")
    image[0, 2, 0, 1] = float("inf")
    sheet = pictures.show(image)
    assert _at(sheet, 0, 0) == _at(sheet, 4, 0) == MAGENTA
    assert _at(sheet, 8, 0) != MAGENTA


@pytest.mark.parametrize(
    ("channels", "color"), [(1, (9, 9, 9)), (4, (9, 10, 11))]
)
def test_numbers_of_channels(channels: int, color: tuple[int, ...]) -> None:
    image = _flat(tuple(range(9, 9 + channels)))
    assert _at(pictures.show([image]), 0, 0) == color
    five = TensorListCPU(_flat(tuple(range(9, 14)))[None], "HWC")
    two = TensorListCPU(_flat((9, 10))[None], "HWC")
    assert (_at(five.show(), 0, 0), _at(two.show(), 0, 0)) == ((9, 10, 11), (9, 10, 0))


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "role"),
    [
        ((20, 40, 3), torch.uint8, "", "image"),
        ((3, 20, 40), torch.float32, "", "image"),
        ((20, 40), torch.uint8, "", "image"),
        ((20, 40), torch.float32, "", "spectrogram"),
        ((20, 40), torch.float32, "HW", "image"),
        ((20, 40), torch.float32, "ft", "spectrogram"),
        ((20, 40, 1), torch.int32, "HWC", "mask"),
        ((20, 40), torch.bool, "", "mask"),
        ((20, 40, 3), torch.int32, "HWC", "image"),
        ((6, 20, 40, 3), torch.uint8, "", "clip"),
        ((6, 3, 20, 40), torch.uint8, "FCHW", "clip"),
        ((3, 6, 20, 40), torch.uint8, "CFHW", "clip"),
        ((6, 20, 40), torch.float32, "DHW", "clip"),
        ((40, 20, 3), torch.uint8, "WHC", "image"),
        ((1000,), torch.float32, "", "sound"),
        ((1000, 2), torch.float32, "", "sound"),
        ((1000,), torch.uint8, "", "none"),  # an encoded file
        ((1,), torch.int32, "", "none"),
        ((5, 4), torch.float32, "", "none"),
        ((0, 40, 3), torch.uint8, "", "none"),
    ],
)
def test_roles(shape: tuple[int, ...], dtype: torch.dtype, layout: str, role: str) -> None:
    assert role_of(torch.zeros(shape, dtype=dtype), layout) == role


# --------------------------------------------------------------------- data with images


@pytest.mark.parametrize(
    ("box", "options"),
    [
        ([10.0, 5.0, 30.0, 15.0], {}),
        ([0.25, 0.25, 0.75, 0.75], {}),
        ([10.0, 5.0, 20.0, 10.0], {"box_format": "xywh"}),
        ([0.25, 0.25, 0.5, 0.5], {"box_format": "xywh"}),
    ],
    ids=["pixels", "shares", "width and height", "shares of width and height"],
)
def test_boxes(box: list[float], options: Any) -> None:
    sheet = pictures.show([_flat((0, 0, 0))], boxes=[np.array([box], np.float32)], size=160, **options)
    color = of_class(0)
    assert [_at(sheet, x, y) for x, y in ((40, 20), (119, 20), (40, 59), (119, 59), (80, 21))] == [color] * 5
    assert [_at(sheet, x, y) for x, y in ((39, 20), (120, 59), (80, 40), (80, 60))] == [(0, 0, 0)] * 4


def test_boxes_have_the_colors_and_names_of_their_labels() -> None:
    boxes = [np.array([[0.0, 0.0, 0.4, 1.0], [0.5, 0.0, 1.0, 1.0]], np.float32)]
    plain = pictures.show([_flat((0, 0, 0))], boxes=boxes, box_labels=[np.array([2, 1], np.int32)])
    named = pictures.show([_flat((0, 0, 0))], boxes=boxes, box_labels=[[2, 1]], classes=["a", "bird", "cat"])
    assert (_at(plain, 0, 70), _at(plain, 80, 70)) == (of_class(2), of_class(1))
    assert not _same(plain, named)


def test_masks_are_drawn_over_the_images() -> None:
    mask = np.zeros((20, 40), np.int32)
    mask[:, 20:] = 2
    sheet = pictures.show([_flat((100, 100, 100))], masks=[mask], size=40)
    assert _at(sheet, 0, 0) == (100, 100, 100)
    assert _at(sheet, 30, 10) == tuple((100 + level) // 2 for level in of_class(1))
    assert _same(sheet, pictures.show([_flat((100, 100, 100))], masks=[mask[::2, ::2, None]], size=40))


def test_a_mask_without_an_image_is_drawn_in_its_colors() -> None:
    mask = torch.zeros(1, 20, 40, 1, dtype=torch.int64)
    mask[:, :, 20:] = 3
    sheet = pictures.show(mask, size=40)
    assert (_at(sheet, 0, 0), _at(sheet, 30, 0)) == ((0, 0, 0), of_class(2))
    assert len({(0, 0, 0), *map(of_class, range(8))}) == 9


def _ink(sheet: Image.Image, line: int, height: int = 80) -> int:
    """Return the number of dark pixels in a line of the caption of the first image."""
    top = GAP + height + 1 + line * LINE
    return int((_pixels(sheet)[top : top + LINE, GAP : GAP + 160].sum(-1) < 300).sum())


def test_captions_are_labels_and_names() -> None:
    image = [_flat((255, 255, 255))]
    bare = pictures.show(image)
    labelled = pictures.show(image, labels=[1], classes=["cat", "dog"])
    both = pictures.show(image, labels=["a label"], names=["/some/where/file.jpg"])
    assert [sheet.height - bare.height for sheet in (labelled, both)] == [LINE, 2 * LINE]
    assert _ink(labelled, 0) > 0 and _ink(both, 0) > 0 and _ink(both, 1) > 0
    assert _same(labelled, pictures.show(image, labels=["dog"]))
    assert _same(both, pictures.show(image, labels=["a label"], names=["file.jpg"]))


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (torch.tensor([0.0, 0.7, 0.3]), "dog 70%, eel 30%"),
        (torch.tensor([0.0, 1.0, 0.0]), "dog 100%"),
        (torch.tensor([0, 2]), "cat, eel"),
        (torch.tensor(2.5), "2.5"),
        (torch.tensor(7), "7"),
    ],
)
def test_labels_of_all_kinds(label: torch.Tensor, text: str) -> None:
    image, classes = [_flat((255, 255, 255))], ["cat", "dog", "eel"]
    assert _same(pictures.show(image, labels=[label], classes=classes), pictures.show(image, labels=[text]))


def test_texts_are_fitted() -> None:
    """File names are truncated at their start, other texts at their end."""
    image, long = [_flat((255, 255, 255))], "a_very_long_name_of_a_file_" * 3

    def captioned(text: str) -> Image.Image:
        return pictures.show(image, labels=[text])

    assert _same(captioned(f"{long}.jpg"), captioned(f"another{long}.jpg")) and not _same(captioned(f"{long}.jpg"), captioned(f"{long}.png"))
    assert _same(captioned(long), captioned(f"{long}another")) and not _same(captioned(long), captioned(f"another{long}"))
    right = _pixels(captioned(long))[GAP + 81 :, GAP + 160 :]
    assert (right == 255).all() and _ink(captioned(long), 0) > 2 * _ink(captioned("short"), 0)


# ----------------------------------------------------------------- clips, spectrograms, audio


def test_clips_are_strips() -> None:
    clip = np.stack([_flat((level, level, level)) for level in range(0, 110, 10)])
    sheet = pictures.show(TensorListCPU(clip[None], "FHWC"), size=40)
    assert sheet.width == 6 * (40 + 2) - 2 + 2 * GAP
    assert [_at(sheet, 42 * k, 0)[0] for k in range(6)] == [0, 20, 40, 60, 80, 100]
    planes = TensorListCPU(np.ascontiguousarray(clip[None].transpose(0, 1, 4, 2, 3)), "FCHW")
    assert _same(planes.show(size=40), sheet)


@pytest.mark.parametrize(("layout", "axes"), [("CFHW", (3, 0, 1, 2)), ("FWHC", (0, 2, 1, 3)), ("HWFC", (1, 2, 0, 3))])
def test_axes_in_any_order(layout: str, axes: tuple[int, ...]) -> None:
    clip = np.random.default_rng(0).integers(0, 256, (6, 20, 40, 3), np.uint8)
    batch = TensorListCPU(np.ascontiguousarray(clip.transpose(axes))[None], layout)
    assert _same(batch.show(), TensorListCPU(clip[None], "FHWC").show())


@pytest.mark.parametrize(("layout", "row"), [("ft", 7), ("tf", 7), ("", 0)])
def test_spectrograms_have_low_frequencies_below(layout: str, row: int) -> None:
    values = np.zeros((8, 8), np.float32)
    values[0] = 1  # the lowest frequency
    sheet = pictures.show(TensorListCPU((values.T if layout == "tf" else values)[None].copy(), layout), size=80)
    brightness = [sum(_at(sheet, 40, 5 + 10 * k)) for k in range(8)]
    assert [each == max(brightness) for each in brightness] == [k == row for k in range(8)] and len(set(brightness)) == 2


def test_powers_are_in_decibels() -> None:
    powers = np.full((20, 40), 1e-9, np.float32)
    powers[0, 0], powers[0, 1] = 1.0, 1e-4  # 40 dB below: in the middle
    sheet = pictures.show(TensorListCPU(powers[None], "ft"), size=80)
    assert _at(sheet, 3, 39) == MIDDLE


def test_audio_is_drawn_as_waves() -> None:
    wave = np.concatenate([np.zeros(500), np.sin(np.arange(500))]).astype(np.float32)
    pixels = _pixels(pictures.show([wave], size=100))[GAP:-GAP, GAP:-GAP]
    ink = (pixels[..., 0] < 100).sum(0)
    assert pixels.shape[:2] == (50, 200)
    assert ink[:99].max() == 1 and ink[101:].min() > 20


# ---------------------------------------------------------------- several batches


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.full((3, 20, 40, 3), 50, dtype=torch.uint8), torch.tensor([0, 1, 2])


def test_related_outputs_are_recognized() -> None:
    images, labels = _batch()
    boxes = [np.array([[0.1, 0.1, 0.5, 0.5]] * k, np.float32).reshape(-1, 4) for k in (2, 0, 1)]
    box_labels = [torch.tensor([1] * k, dtype=torch.int32) for k in (2, 0, 1)]
    masks = torch.zeros(3, 20, 40, 1, dtype=torch.uint8)
    masks[:, :4] = 2
    given = pictures.show(images, labels=labels, boxes=boxes, box_labels=box_labels, masks=masks)
    for order in ((images, labels, boxes, box_labels, masks), (images, masks, boxes, labels, box_labels)):
        assert _same(pictures.show(order), given)


def test_named_batches() -> None:
    images, labels = _batch()
    given = pictures.show(images, labels=labels)
    pair = namedtuple("pair", ["images", "labels"])
    for batch in ((images, labels), pair(images, labels), {"x": images, "y": labels}, [{"x": images, "y": labels}]):
        assert _same(pictures.show(batch), given)
    assert _same(pictures.show([TensorListCPU(images.numpy()), TensorListCPU(labels.int().numpy()[:, None])]), given)


def test_several_images_are_rows() -> None:
    images, labels = _batch()
    sheet = pictures.show({"one": images, "other": 255 - images, "labels": labels}, size=40)
    rows = [LINE + 20 + LINE, LINE + 20]  # heading, image, caption
    assert sheet.height == sum(rows) + 3 * GAP
    top = GAP + rows[0] + GAP + LINE
    assert (sheet.getpixel((GAP, GAP + LINE)), sheet.getpixel((GAP, top))) == ((50,) * 3, (205,) * 3)
    assert _same(pictures.show((torch.zeros(9, 8, 8, 3), torch.zeros(9, 8, 8, 3)), size=8, count=4), pictures.show((torch.zeros(4, 8, 8, 3), torch.zeros(4, 8, 8, 3)), size=8))


@pytest.mark.parametrize(
    ("batch", "options", "message"),
    [
        (torch.zeros(3, 1, dtype=torch.int32), {}, r"spectrograms or audio, got samples \(1,\) torch.int32"),
        ((torch.zeros(3, 1), torch.zeros(3)), {}, r"output 0: samples \(1,\) torch.float32; output 1: samples \(\)"),
        ([], {}, "no samples"),
        (torch.zeros(1, 8, 8, 3), {"box_format": "ltwh"}, "box_format must be 'ltrb' or 'xywh', got 'ltwh'"),
        (torch.zeros(1, 8, 8, 3), {"mean": [1.0]}, "pass both mean and std"),
    ],
)
def test_errors(batch: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pictures.show(batch, **options)


# ---------------------------------------------------------------- notebooks


def test_a_batch_is_drawn_in_a_notebook() -> None:
    batch = TensorListCPU(np.stack([_flat(RED)] * 9), "HWC")
    html = batch._repr_html_()
    assert "TensorListCPU" in html and "(20, 40, 3)" in html and "data:image/png;base64," in html
    png = batch._repr_png_()
    assert png is not None and png.startswith(b"\x89PNG")


def test_numbers_are_printed_in_a_notebook() -> None:
    batch = TensorListCPU(np.arange(4, dtype=np.int32)[:, None])
    assert "<img" not in batch._repr_html_() and "[3]" in batch._repr_html_()
    assert batch._repr_png_() is None


@pytest.mark.parametrize("given", [{"count": 0}, {"size": "big"}, {"columns": -1}])
def test_counts_below_one_are_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be an int of at least 1, got"):
        pictures.show(np.zeros((2, 8, 8, 3), np.uint8), **given)
