"""Geometry operators against references in NumPy and the real DALI: values, properties, errors and gradients."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from tests import golden
from tests.check import PerSample, Result, check, compare
from tests.helpers.crop_cases import refused_by_both
from tests.helpers.opencv_switch import computing_with
from torchdali import fn, types
from torchdali.kernels.warp import perspective
from torchdali.kernels.warp.affine import rotated_size, rotation, warp_affine
from torchdali.kernels.warp.perspective import BORDERS, sample_at
from torchdali.kernels.warp.sample import sample
from torchdali.tensors import TensorList

NN, LINEAR, CUBIC = types.INTERP_NN, types.INTERP_LINEAR, types.INTERP_CUBIC
RANDOM = np.random.default_rng(5)


def image(*shape: int, dtype: type = np.uint8) -> torch.Tensor:
    return torch.from_numpy((RANDOM.random(shape) * 250).astype(dtype))


# ---------------------------------------------------------------- references


def interpolated(x: np.ndarray, u: float, v: float, fill: float | None) -> np.ndarray:
    """Interpolate linearly, pixel by pixel, with pixel centers at one half."""
    height, width = x.shape[:2]
    u, v = u - 0.5, v - 0.5
    left, top = math.floor(u), math.floor(v)
    total = np.zeros(x.shape[2])
    for row, column in ((r, c) for r in (top, top + 1) for c in (left, left + 1)):
        weight = (1 - abs(u - column)) * (1 - abs(v - row))
        inside = 0 <= row < height and 0 <= column < width
        if inside or fill is None:
            total += weight * x[min(max(row, 0), height - 1), min(max(column, 0), width - 1)]
        else:
            total += weight * fill
    return total


@pytest.mark.parametrize("fill", [None, 0.0, 41.5])
def test_linear_warp_is_interpolation_at_the_map_of_pixel_centres(fill):
    x = image(6, 7, 2, dtype=np.float32)
    matrix = [[0.8, -0.4, 1.5], [0.3, 1.2, -1.0]]
    found = warp_affine(x, matrix, (5, 8), linear=True, fill=fill)
    wanted = np.array(
        [
            [
                interpolated(
                    x.numpy(),
                    0.8 * (i + 0.5) - 0.4 * (j + 0.5) + 1.5,
                    0.3 * (i + 0.5) + 1.2 * (j + 0.5) - 1.0,
                    fill,
                )
                for i in range(8)
            ]
            for j in range(5)
        ]
    )
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float16, np.float64])
def test_identity_keeps_images_and_volumes(dtype):
    flat, solid = image(6, 7, 3, dtype=dtype), image(4, 6, 7, 2, dtype=dtype)
    for linear in (False, True):
        for fill in (None, 3.0):
            same = warp_affine(flat, [[1, 0, 0], [0, 1, 0]], (6, 7), linear=linear, fill=fill)
            torch.testing.assert_close(same, flat, atol=1e-3, rtol=1e-5)
            rows = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
            same = warp_affine(solid, rows, (4, 6, 7), linear=linear, fill=fill)
            torch.testing.assert_close(same, solid, atol=1e-3, rtol=1e-5)


@pytest.mark.parametrize("interp", [NN, LINEAR])
@pytest.mark.parametrize("turns", [0, 1, 2, 3, -1])
def test_quarter_turns_are_exact(turns, interp):
    x = image(6, 9, 3)
    found = fn.rotate(x, angle=90.0 * turns, interp_type=interp)
    assert torch.equal(found, torch.rot90(x, turns, (0, 1)))


def test_frames_and_volumes_equal_their_slices():
    video = image(3, 8, 9, 3)
    batch = TensorList.from_samples([video], "FHWC")
    whole = fn.rotate(batch, angle=33.0).samples()[0]
    parts = [fn.rotate(frame, angle=33.0) for frame in video]
    assert torch.equal(whole, torch.stack(parts))


def test_channels_do_not_mix():
    x = image(8, 9, 5)
    apart = [fn.rotate(x[..., c : c + 1].contiguous(), angle=21.0) for c in range(5)]
    assert torch.equal(fn.rotate(x, angle=21.0), torch.cat(apart, -1))


@pytest.mark.parametrize("size", [(10, 20), (11, 21), (10, 21), (1, 1)])
def test_canvas_contains_the_corners_and_keeps_the_parity(size):
    for angle in range(-180, 181, 15):
        height, width = rotated_size(rotation(float(angle)), size)
        c, s = abs(math.cos(math.radians(angle))), abs(math.sin(math.radians(angle)))
        assert height >= size[0] * c + size[1] * s - 0.011
        assert width >= size[1] * c + size[0] * s - 0.011
        other = size if c > s else size[::-1]
        if abs(c - s) > 1e-6:
            assert (height - other[0]) % 2 == 0 and (width - other[1]) % 2 == 0


@pytest.mark.parametrize("axes", [2, 3])
def test_a_singular_matrix_is_rejected(axes):
    batch = TensorList.from_samples([torch.zeros((4,) * axes + (1,))], "DHWC"[3 - axes :])
    matrix = [1.0] * (axes + 1) * axes
    fn.warp_affine(batch, matrix=matrix)
    with pytest.raises(RuntimeError, match=r"must be invertible|singular"):
        fn.warp_affine(batch, matrix=matrix, inverse_map=False)


def test_inverse_map_undoes_the_matrix():
    x = image(9, 9, 1, dtype=np.float32)
    matrix = [0.0, -1.0, 9.0, 1.0, 0.0, 0.0]
    back = fn.warp_affine(fn.warp_affine(x, matrix=matrix), matrix=matrix, inverse_map=False)
    torch.testing.assert_close(back, x, atol=1e-3, rtol=0)


def test_matrices_of_transforms_fit_warps():
    x = image(9, 9, 1)
    turned = fn.transforms.rotation(torch.tensor([[1.0, 0, 0], [0, 1, 0]]), angle=90.0, center=[4.5, 4.5])
    assert torch.equal(fn.warp_affine(x, turned), fn.rotate(x, angle=90.0))


def test_empty_batch():
    nothing = TensorList.from_samples([], "HWC")
    assert len(fn.rotate(nothing, angle=3.0)) == 0
    assert len(fn.bbox_rotate(TensorList.from_samples([]), angle=3.0, input_shape=[3, 4])) == 0


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_opencv_gives_what_torch_gives(channels, border, mode):
    x = image(20, 30, channels)
    matrix = [[0.9, 0.1, -3.0], [-0.1, 1.1, 0.5], [0.003, -0.002, 1.0]]
    arguments = {"mode": mode, "border": border, "fill": [float(40 * c) for c in range(channels)]}
    with computing_with("opencv"):
        fast = perspective.warp_perspective(x, matrix, (25, 33), **arguments)
    with computing_with("torch", "warp.sample_opencv"):
        slow = perspective.warp_perspective(x, matrix, (25, 33), **arguments)
    assert ((fast.int() - slow.int()).abs() <= 1).float().mean() > 0.995


# ---------------------------------------------------------------- remap, jitter: no oracle on the CPU


@pytest.mark.parametrize("origin", ["corner", "center"])
@pytest.mark.parametrize("interp", [NN, LINEAR])
def test_remap_reads_pixels_at_the_maps(origin, interp):
    x = image(6, 7, 3, dtype=np.float32)
    mapx, mapy = (torch.from_numpy(RANDOM.random((5, 4)).astype(np.float32)) * 9 - 1 for _ in range(2))
    found = fn.experimental.remap(x, mapx, mapy, pixel_origin=origin, interp=interp)
    shift = 0.0 if origin == "corner" else 0.5
    for j in range(5):
        for i in range(4):
            u, v = float(mapx[j, i]) + shift, float(mapy[j, i]) + shift
            if interp == LINEAR:
                wanted = interpolated(x.numpy(), u, v, 0.0)
            else:
                row, column = math.floor(v), math.floor(u)
                wanted = x[row, column] if 0 <= row < 6 and 0 <= column < 7 else np.zeros(3)
            np.testing.assert_allclose(found[j, i], wanted, atol=2e-3)


def test_remap_of_frames_by_one_map_each():
    video = image(2, 6, 7, 3)
    maps = [torch.from_numpy(RANDOM.random((2, 6, 7)).astype(np.float32) * 7) for _ in range(2)]
    batch = TensorList.from_samples([video], "FHWC")
    edges = [TensorList.from_samples([m], "FHW") for m in maps]
    found = fn.experimental.remap(batch, *edges).samples()[0]
    for f in range(2):
        assert torch.equal(found[f], fn.experimental.remap(video[f], maps[0][f], maps[1][f]))


def test_remap_survives_wild_maps():
    x = image(6, 7, 3)
    wild = torch.tensor([[float("nan"), float("inf"), -float("inf"), 1e30]])
    for interp in (NN, LINEAR, CUBIC):
        found = fn.experimental.remap(x, wild, torch.zeros_like(wild) + 3, interp=interp)
        assert not found.any()


@pytest.mark.parametrize("degree", [2, 3, 6])
def test_jitter_moves_pixels_within_its_reach(degree):
    height, width = 40, 50
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    where = torch.stack([rows, columns], -1).to(torch.int32) + 100
    found = fn.jitter(where, nDegree=degree, seed=7)
    inside = found != 0
    moved = (found - where)[degree:-degree, degree:-degree]
    assert inside[degree:-degree, degree:-degree].all()
    reach = degree // 2
    assert sorted(moved.unique().tolist()) == list(range(-reach, reach + 1))
    share = (moved == reach).float().mean()
    assert abs(share - 1 / (2 * reach + 1)) < 0.05
    assert torch.equal(found, fn.jitter(where, nDegree=degree, seed=7))
    assert torch.equal(fn.jitter(where, mask=0), where)


# ---------------------------------------------------------------- masks, pastes


def test_mask_zero_leaves_the_image():
    x = image(9, 8, 3)
    assert torch.equal(fn.water(x, mask=0), x)
    assert torch.equal(fn.sphere(x, mask=0), x)


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "FCHW", "HW"])
def test_grid_mask_in_all_layouts(layout):
    keep = fn.grid_mask(torch.ones(12, 14, 1), tile=5, ratio=0.4)[..., 0].bool()
    lengths = {"H": 12, "W": 14, "C": 3, "F": 2}
    x = image(*(lengths[a] for a in layout)) + 1
    found = fn.grid_mask(TensorList.from_samples([x], layout), tile=5, ratio=0.4).samples()[0]
    shape = [lengths[a] if a in "HW" else 1 for a in layout]
    assert torch.equal(found, torch.where(keep.view(shape), x, torch.zeros_like(x)))


def test_multi_paste_of_frames():
    videos = [image(2, 4, 5, 3), image(2, 4, 5, 3)]
    batch = TensorList.from_samples(videos, "FHWC")
    found = fn.multi_paste(batch, output_size=[6, 7], in_ids=[1]).samples()
    for sample_found in found:
        assert torch.equal(sample_found[:, :4, :5], videos[1])
        assert not sample_found[:, 4:].any() and not sample_found[:, :, 5:].any()


def test_boxes_move_with_their_image():
    x = torch.zeros(20, 30, 1, dtype=torch.uint8)
    x[4:10, 6:15] = 1
    box = torch.tensor([[6 / 30, 4 / 20, 15 / 30, 10 / 20]])
    pasted = fn.paste(x, ratio=2.0, fill_value=[0], n_channels=1, paste_x=0.3, paste_y=0.8)
    (moved,) = fn.bbox_paste(box, ratio=2.0, ltrb=True, paste_x=0.3, paste_y=0.8)
    rows, columns = pasted[..., 0].nonzero().unbind(1)
    edges = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    np.testing.assert_allclose(moved.numpy() * [60, 40, 60, 40], edges, atol=1e-4)
    turned = fn.rotate(x, angle=90.0)
    (corner,) = fn.bbox_rotate(box, angle=90.0, input_shape=[20, 30])
    rows, columns = turned[..., 0].nonzero().unbind(1)
    edges = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    np.testing.assert_allclose(corner.numpy() * [20, 30, 20, 30], edges, atol=1e-3)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: fn.warp_affine(x), RuntimeError, "6 elements"),
        (lambda x: fn.warp_affine(x, matrix=[1.0, 0, 0]), RuntimeError, "6 elements"),
        (lambda x: fn.warp_affine(x, matrix=[1.0, 0, 0, 0, 1, 0], size=[3.0]), RuntimeError, "spatial axes"),
        (lambda x: fn.warp_affine(x, matrix=[1.0, 0, 0, 0, 1, 0], size=[3.0, 0.0]), RuntimeError, "positive"),
        (lambda x: fn.rotate(x), RuntimeError, "angle"),
        (lambda x: fn.rotate(x, angle=3.0, interp_type=CUBIC), RuntimeError, "nearest and linear"),
        (lambda x: fn.rotate(x, angle=3.0, dtype=types.INT16), RuntimeError, "isn't supported for"),
        (lambda x: fn.rotate(x.to(torch.int8), angle=3.0), RuntimeError, "unsupported input type"),
        (lambda x: fn.rotate(TensorList.from_samples([x[None]], "DHWC"), angle=3.0), RuntimeError, "axis"),
        (lambda x: fn.rotate(TensorList.from_samples([x], "CHW"), angle=3.0), ValueError, "CHW"),
        (lambda x: fn.paste(x, ratio=0.5, fill_value=[0]), RuntimeError, "less than 1"),
        (lambda x: fn.paste(x, ratio=1.5, fill_value=[0, 1]), RuntimeError, "fill_value"),
        (lambda x: fn.paste(x, ratio=1.5, fill_value=[0], paste_x=1.5), RuntimeError, "range"),
        (lambda x: fn.multi_paste(x, output_size=[2, 2]), RuntimeError, "must be within"),
        (lambda x: fn.multi_paste(x, shapes=[[-1, 1]]), RuntimeError, "must be within"),
        (lambda x: fn.multi_paste(x, x, in_ids=[0]), RuntimeError, "exactly one input"),
        (lambda x: fn.multi_paste(x, in_ids=[4]), RuntimeError, "range"),
        (lambda x: fn.grid_mask(x, tile=0), RuntimeError, "positive"),
        (lambda x: fn.experimental.warp_perspective(x, matrix=[1.0]), RuntimeError, "9 elements"),
        (lambda x: fn.experimental.warp_perspective(x, matrix=[1.0] * 9, border_mode="no"), ValueError, "border_mode"),
        (lambda x: fn.experimental.warp_perspective(x, matrix=[1.0] * 9, fill_value=[1, 2]), RuntimeError, "fill"),
        (lambda x: fn.experimental.remap(x, x[..., 0], x[:1, :, 0]), RuntimeError, "same shape"),
        (lambda x: fn.tensor_resize(x), RuntimeError, "sizes or scales"),
        (lambda x: fn.tensor_resize(x, sizes=[4.0], axes=[7]), IndexError, "axis index"),
        (lambda x: fn.tensor_resize(x, sizes=[4.0], axes=[1, 1]), ValueError, "duplicate"),
        (lambda x: fn.tensor_resize(x, sizes=[4.0], size_rounding="no"), RuntimeError, "rounding"),
        (lambda x: fn.coord_transform(x, M=[1.0, 2.0]), RuntimeError, "matrix"),
        (lambda x: fn.coord_transform(x, M=2.0, MT=2.0), RuntimeError, "MT"),
        (lambda x: fn.transforms.shear(torch.eye(2, 3), shear=[1.0] * 3), RuntimeError, "2 or 6"),
        (lambda x: fn.transforms.shear(torch.eye(2, 3)), RuntimeError, "one and only one"),
        (lambda x: fn.transforms.rotation(torch.eye(3), angle=1.0), RuntimeError, "n \\+ 1"),
        (lambda x: fn.bbox_rotate(torch.zeros(1, 4), angle=1.0, input_shape=[3]), RuntimeError, "shape_layout"),
        (lambda x: fn.bbox_rotate(torch.zeros(1, 4), angle=1.0, input_shape=[3, 4], mode="x"), RuntimeError, "mode"),
    ],
)  # fmt: skip
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(image(6, 7, 3))


# ---------------------------------------------------------------- gradients


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("fill", [None, 0.3])
def test_gradients_of_affine_warps(fill, linear):
    flat = torch.rand(5, 6, 2, dtype=torch.float64, requires_grad=True)
    solid = torch.rand(3, 4, 5, 1, dtype=torch.float64, requires_grad=True)
    matrix = [[0.8, -0.4, 1.5], [0.3, 1.2, -1.0]]
    assert gradcheck(lambda x: warp_affine(x, matrix, (4, 5), linear=linear, fill=fill), (flat,))
    rows = [[0.8, -0.4, 0.1, 1.5], [0.3, 1.2, 0.2, -1.0], [0.1, 0.1, 0.9, 0.2]]
    assert gradcheck(lambda x: warp_affine(x, rows, (3, 4, 4), linear=linear, fill=fill), (solid,))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("border", BORDERS)
def test_gradients_of_maps(border, mode):
    x = torch.rand(5, 6, 2, dtype=torch.float64, requires_grad=True)
    u, v = torch.rand(2, 4, 4) * 9 - 2
    assert gradcheck(lambda t: sample_at(t, (u, v), mode=mode, border=border, fill=[0.5]), (x,))


@pytest.mark.parametrize("shape", [(30, 2), (1000, 3), (4, 30, 2)])
def test_points_are_bit_identical_alone_and_in_a_batch(shape):
    points = torch.from_numpy(RANDOM.uniform(-100, 250, (5, *shape)).astype(np.float32))
    matrices = torch.from_numpy(RANDOM.uniform(-3, 3, (5, 2, shape[-1])).astype(np.float32))
    batch = fn.coord_transform(TensorList.from_samples(list(points)), M=TensorList.from_samples(list(matrices)))
    for each, matrix, result in zip(points, matrices, batch.samples(), strict=True):
        assert torch.equal(result, fn.coord_transform(each, M=matrix.flatten().tolist()))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: fn.rotate(x, angle=30.0),
        lambda x: fn.warp_affine(x, matrix=[0.8, -0.4, 1.5, 0.3, 1.2, -1.0], fill_value=0.5),
        lambda x: fn.water(x, ampl_x=1.0, interp_type=LINEAR),
        lambda x: fn.sphere(x),
        lambda x: fn.grid_mask(x, tile=3),
        lambda x: fn.experimental.warp_perspective(x, matrix=[0.9, 0.1, 1, -0.1, 1.1, 0.5, 0.003, -0.002, 1.0]),
        lambda x: fn.tensor_resize(x, sizes=[4.0, 9.0], axes=[0, 1]),
        lambda x: fn.coord_transform(x, M=[1.0, 2.0, 3.0, 4.0]),
        lambda x: fn.bb_flip(x.flatten(1)),
    ],
)
def test_operators_pass_gradients(call):
    x = torch.rand(5, 6, 2, requires_grad=True)
    weights = torch.rand(call(x).shape)
    (found,) = torch.autograd.grad((call(x) * weights).sum(), x)
    step = torch.rand(x.shape)
    with torch.no_grad():
        slope = ((call(x + 0.05 * step) - call(x - 0.05 * step)) * weights).sum() / 0.1
    torch.testing.assert_close((found * step).sum(), slope, rtol=1e-3, atol=1e-3)


def test_many_pixels_are_counted_in_integers():
    x = torch.zeros(2, 9_000_000, 1, dtype=torch.uint8)  # more pixels than float32 counts
    x[1, -2] = 7
    positions = torch.tensor([[8_999_998.0]], dtype=torch.float64) + 0.5, torch.tensor([[1.5]])
    assert sample(x, positions, linear=False, fill=0.0).item() == 7


@pytest.mark.parametrize("linear", [False, True])
def test_warps_compile_to_one_graph(linear):
    x, matrix = torch.rand(8, 9, 3), [[0.9, 0.1, 1.0], [0.0, 1.0, 0.5]]
    chain = lambda t: warp_affine(t * 2, matrix, (7, 8), linear=linear, fill=0.5) + 1  # noqa: E731
    compiled = torch.compile(chain, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), chain(x))


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "warp_affine": "INTERP_NN: on the edge between two pixels, float32 rounding selects one of them, which may "
    "differ; a fractional per-sample size is rounded, like a constant size; DALI truncates it",
    "rotate": "INTERP_NN: the same as `warp_affine`",
    "sphere": "the constant `mask=0` leaves images unchanged, as DALI documents; DALI warps them nevertheless",
    "water": "`mask` works as in `sphere`",
    "bbox_rotate": "modes `fixed` and `halfway` at exactly 45 degrees: in DALI, rounding decides whether the sides "
    "are swapped",
    "grid_mask": "supports layouts other than HWC, where DALI masks the wrong axes or crashes",
    "multi_paste": "supports FHWC, where DALI fails",
    "coord_transform": "without points, the output's shape is (0, rows); DALI returns (0, 0)",
    "jitter": "also runs on the CPU; it's random and DALI has it only on the GPU, so it is tested against DALI's "
    "documentation",
    "experimental.remap": "also runs on the CPU; DALI has it only on the GPU, so it is tested against a reference",
}

LEAD = {"HWC": (), "FHWC": (2,), "DHWC": (4,), "FDHWC": (2, 4)}
Arrays = list[np.ndarray]


def images(dtype: str, layout: str, channels: int = 3) -> Arrays:
    """Two samples of different sizes."""
    shapes = [(*LEAD[layout], *size, channels) for size in ((7, 10), (9, 6))]
    return [(RANDOM.random(shape) * 250).astype(dtype) for shape in shapes]


def close(arguments: dict[str, Any], dtype: str) -> dict[str, float]:
    """Return the tolerance: a level of 1 in 99 % of integers; 1e-4 of the range of floats."""
    whole = dtype != "float32" and arguments.get("dtype") != "types.FLOAT"
    return {"level": 1.0, "share": 0.99} if whole else {"level": 0.025}


def matrix(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


M = [0.87, -0.5, 3.0, 0.5, 0.9, -4.0]
M3 = [0.8713, -0.5071, 0.1013, 3.0077, 0.5057, 0.9031, 0.1091, -4.013, 0.1037, 0.2083, 1.1091, 0.5011]
AXIS = [1.0, 0.2, -0.3]

FLAT = [
    ("warp_affine", {"matrix": M}),
    ("warp_affine", {"matrix": M, "fill_value": 42.0}),
    ("warp_affine", {"matrix": M, "interp_type": "types.INTERP_NN"}),
    ("warp_affine", {"matrix": M, "interp_type": "types.INTERP_NN", "fill_value": 7.0}),
    ("warp_affine", {"matrix": M, "inverse_map": False, "size": [25.4, 32.5]}),
    ("warp_affine", {"matrix": M, "dtype": "types.FLOAT", "fill_value": -3.5}),
    ("warp_affine", {"matrix": M, "dtype": "types.FLOAT", "fill_value": 300.0, "interp_type": "types.INTERP_NN"}),
    ("warp_affine", {"matrix": PerSample([matrix([1, 0, 0.5], [0, 1, 0.25]), matrix([0.5, 0.1, 0], [0, 1, 2])])}),
    ("warp_affine", {"matrix": [2.0, 0, 0, 0, 2, 0], "interp_type": "types.INTERP_NN", "fill_value": 0.0}),
    ("warp_affine", {"matrix": M, "size": PerSample([[9.0, 8.0], [20.0, 30.0]])}),
    ("rotate", {"angle": 30.0}),
    ("rotate", {"angle": 90.0}),
    ("rotate", {"angle": -45.0, "fill_value": 0.0}),
    ("rotate", {"angle": 10.0, "keep_size": True}),
    ("rotate", {"angle": 100.0, "size": [40.0, 41.0], "interp_type": "types.INTERP_NN"}),
    ("rotate", {"angle": PerSample([10.0, 200.0]), "fill_value": 255.0}),
    ("rotate", {"angle": 180.0, "interp_type": "types.INTERP_NN"}),
    ("rotate", {"angle": 15.0, "dtype": "types.FLOAT"}),
]
SOLID = [
    ("warp_affine", {"matrix": M3}),
    ("warp_affine", {"matrix": M3, "fill_value": 42.0, "size": [5.0, 9.0, 12.0]}),
    ("warp_affine", {"matrix": M3, "interp_type": "types.INTERP_NN", "fill_value": 3.0}),
    ("warp_affine", {"matrix": M3, "interp_type": "types.INTERP_NN", "inverse_map": False}),
    ("rotate", {"angle": 30.0, "axis": AXIS}),
    ("rotate", {"angle": 90.0, "axis": [0.0, 0.0, 2.0], "interp_type": "types.INTERP_NN"}),
    ("rotate", {"angle": -45.0, "axis": [1.0, 0.0, 0.0], "fill_value": 0.0}),
    ("rotate", {"angle": 170.0, "axis": AXIS, "keep_size": True}),
    ("rotate", {"angle": PerSample([10.0, 200.0]), "axis": PerSample([[1.0, 1, 1], [0, 1.0, 0]])}),
    ("rotate", {"angle": 15.0, "axis": AXIS, "dtype": "types.FLOAT", "size": [4.0, 9.0, 9.0]}),
]


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
@pytest.mark.parametrize(("name", "arguments"), FLAT)
def test_flat_warps(name, arguments, layout, dtype):
    check(name, [images(dtype, layout)], arguments, layout, **close(arguments, dtype))


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("layout", ["DHWC", "FDHWC"])
@pytest.mark.parametrize(("name", "arguments"), SOLID)
def test_warps_of_volumes(name, arguments, layout, dtype):
    check(name, [images(dtype, layout, 2)], arguments, layout, **close(arguments, dtype))


@pytest.mark.golden
@pytest.mark.parametrize("size", [(100, 200), (101, 201), (100, 201), (101, 200), (2, 9), (5, 7), (1, 1)])
def test_canvas_of_rotations(size):
    angles = [0.0, 0.001, 0.003, 10.0, 30.0, 44.9999, 45.0, 90.0, 89.9999, 135.0, 180.0, -45.0, -10.0, 225.0, 315.0]
    samples = [np.zeros((*size, 1), np.uint8)] * len(angles)
    check("rotate", [samples], {"angle": PerSample(angles)}, "HWC")


@pytest.mark.golden
@pytest.mark.parametrize("angle", [0.0, 30.0, 45.0, 90.0, 120.0, 180.0])
def test_canvas_of_turned_volumes(angle):
    axes = [[0.0, 0, 1], [1.0, 0, 0], [0.0, 1, 0], [1.0, 1, 1], [1.0, 2, -3], [0.2, 0.1, 0.9]]
    arguments = {"angle": angle, "axis": PerSample(axes)}
    for size in ((4, 5, 6), (20, 31, 26)):
        check("rotate", [[np.zeros((*size, 1), np.uint8)] * len(axes)], arguments, "DHWC")


@pytest.mark.golden
def test_matrix_as_an_input():
    matrices = [matrix([0.9, 0.1, 1], [0, 1.1, 2]), matrix([1, 0.3, 0], [-0.2, 1, 0.5])]
    check("warp_affine", [images("uint8", "HWC"), matrices], {}, ["HWC", None], level=1, share=0.99)


class Again:
    """Return a source that repeats one batch."""

    def __init__(self, batch: Any) -> None:
        self.batch = [np.array(x, np.float32) for x in batch]

    def __call__(self) -> Any:
        return self.batch


@golden.answered
def frames(library: str, name: str, video: Arrays, constants: dict[str, Any], values: dict[str, Any]) -> Result:
    """Run an operator on videos, with per-frame arguments."""
    package = importlib.import_module(library)
    fn: Any = importlib.import_module(f"{library}.fn")

    @package.pipeline_def(batch_size=len(video), num_threads=1, device_id=None)
    def define() -> Any:
        function = fn
        for part in name.split("."):
            function = getattr(function, part)
        edges = {k: fn.per_frame(fn.external_source(source=Again(v))) for k, v in values.items()}
        inputs = [fn.external_source(source=lambda: video, layout="FHWC")] if video[0].size else []
        return function(*inputs, **constants, **edges)

    pipe = define()
    pipe.build()
    (out,) = pipe.run()
    return Result([np.array(out.at(i)) for i in range(len(video))], out.layout())


PER_FRAME = [
    ("rotate", {}, {"angle": [[0, 30], [90, 45]]}),
    ("rotate", {"keep_size": True, "fill_value": 1.0}, {"angle": [[0, 30], [90, 45]]}),
    ("warp_affine", {}, {"matrix": [[matrix([1, 0, i], [0, 1, j]) for i in range(2)] for j in range(2)]}),
]


@pytest.mark.golden
@pytest.mark.parametrize(("name", "constants", "values"), PER_FRAME)
def test_values_per_frame(name, constants, values):
    video = images("uint8", "FHWC")
    found, wanted = (frames(library, name, video, constants, values) for library in ("torchdali", "nvidia.dali"))
    compare([found], [wanted], level=1, share=0.99)


DISPLACED = [
    ("water", {}),
    ("water", {"freq_x": math.pi / 6, "phase_x": math.pi / 3, "freq_y": math.pi / 12, "ampl_y": 4.0}),
    ("water", {"ampl_x": 3.0, "phase_y": 1.0, "freq_x": 0.2}),
    ("water", {"ampl_y": 2.0, "phase_x": -1.0, "freq_y": 0.5, "fill_value": 30.0}),
    ("water", {"interp_type": "types.INTERP_LINEAR", "fill_value": 9.0}),
    ("water", {"mask": PerSample([0, 1])}),
    ("water", {"mask": PerSample([1, 1])}),
    ("sphere", {}),
    ("sphere", {"fill_value": 200.0}),
    ("sphere", {"interp_type": "types.INTERP_LINEAR"}),
    ("sphere", {"interp_type": "types.INTERP_LINEAR", "fill_value": 77.5}),
    ("sphere", {"mask": PerSample([1, 0])}),
]


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize(("name", "arguments"), DISPLACED)
def test_displacements(name, arguments, channels, dtype):
    check(name, [images(dtype, "HWC", channels)], arguments, "HWC", **close(arguments, dtype))


@pytest.mark.parity
@pytest.mark.parametrize("arguments", [arguments for name, arguments in DISPLACED[:4] if name == "water"])
def test_every_pixel_of_water_comes_from_the_same_place(arguments):
    places = np.stack(np.meshgrid(np.arange(256), np.arange(256)), 2).astype(np.float32)
    check("water", [[places]], arguments, "HWC", level=0)


TRANSLATION = matrix([1, 0.5, 5], [0, 1, 7])
SOLID_TRANSFORM = matrix([1, 0.5, 0, 5], [0, 1, 0.1, 7], [0.2, 0, 1, 1])
TRANSFORMS = [
    ("translation", {"offset": [1.0, 2.0]}),
    ("translation", {"offset": [1.0, 2.0, 3.0]}),
    ("translation", {"offset": PerSample([[1.0, 2.0], [3.0, 4.0]])}),
    ("scale", {"scale": [2.0, 3.0]}),
    ("scale", {"scale": [2.0, 3.0], "center": [1.0, 2.0]}),
    ("scale", {"scale": [2.0, 3.0], "center": [1.0]}),
    ("scale", {"scale": PerSample([[1.0, 2.0], [3.0, 4.0]]), "center": [1.0, 2.0]}),
    ("rotation", {"angle": 30.0}),
    ("rotation", {"angle": -100.0, "center": [1.0, 2.0]}),
    ("rotation", {"angle": PerSample([30.0, 77.0])}),
    ("rotation", {"angle": 30.0, "axis": [1.0, 2.0, 3.0]}),
    ("rotation", {"angle": 30.0, "axis": [1.0, 2.0, 3.0], "center": [4.0, 0.0, 1.0]}),
    ("rotation", {"angle": PerSample([30.0, 77.0]), "axis": PerSample([[1.0, 0, 0], [0, 1.0, 1.0]])}),
    ("shear", {"shear": [1.0, 2.0]}),
    ("shear", {"shear": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "center": [1.0, 2.0, 3.0]}),
    ("shear", {"angles": [30.0, -10.0]}),
    ("shear", {"angles": [30.0, -10.0, 1.0, 2.0, 3.0, 4.0]}),
    ("shear", {"shear": PerSample([[1.0, 2.0], [0.1, 0.2]]), "center": [3.0, 4.0]}),
    ("crop", {"from_start": [0.0, 1.0], "from_end": [2.0, 5.0], "to_start": [1.0, 1.0], "to_end": [3.0, 9.0]}),
    ("crop", {"from_end": [2.0, 5.0], "to_end": 3.0}),
    ("crop", {"from_start": [2.0, 1.0], "from_end": [0.0, 5.0]}),
    ("crop", {"from_start": [2.0, 1.0], "from_end": [0.0, 5.0], "to_start": [1.0, 9.0], "absolute": True}),
    ("crop", {"to_start": PerSample([[1.0, 2.0, 3.0], [0.1, 0.2, 0.3]])}),
]


def vector_length(arguments: dict[str, Any]) -> int:
    values = [v[0] if isinstance(v, PerSample) else v for v in arguments.values()]
    return max([2, *(3 if len(v) == 6 else len(v) for v in values if isinstance(v, list))])


@pytest.mark.golden
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("name", "arguments"), TRANSFORMS)
def test_transforms_of_a_transform(name, arguments, reverse):
    given = [TRANSLATION, TRANSLATION * 2] if vector_length(arguments) == 2 else [SOLID_TRANSFORM] * 2
    arguments = {**arguments, "reverse_order": reverse}
    check(f"transforms.{name}", [given], arguments, relative=1e-5, level=2e-6)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((n, a) for n, a in TRANSFORMS if any(isinstance(v, PerSample) for v in a.values())),
        ("crop", {"from_start": PerSample([[1.0, 1.0], [1.0, 2.0]]), "from_end": [1.0, 5.0]}),
    ],
)
def test_transforms_alone(name, arguments):
    check(f"transforms.{name}", [], arguments, relative=1e-5, level=1e-6)


@pytest.mark.golden
@pytest.mark.parametrize("dims", [1, 3])
def test_scale_by_one_number(dims):
    check("transforms.scale", [], {"scale": PerSample([[2.0], [3.0]]), "ndim": dims})


@pytest.mark.golden
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_combine(count, reverse):
    given = [[RANDOM.random((2, 3)).astype(np.float32) for _ in range(2)] for _ in range(count)]
    check("transforms.combine", given, {"reverse_order": reverse}, relative=1e-5, level=1e-6)


NOTHING = [np.zeros(0), np.zeros(0)]


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "constants", "values"),
    [
        ("transforms.rotation", {}, {"angle": [[0, 30], [90, 45, 10]]}),
        ("transforms.rotation", {"center": [1.0, 2.0]}, {"angle": [[0, 30], [90, 45]]}),
        ("transforms.translation", {}, {"offset": [[[0, 30], [1, 2]], [[90, 45], [3, 4]]]}),
        ("transforms.scale", {}, {"scale": [[[0, 30], [1, 2]], [[90, 45], [3, 4]]], "center": [[[1, 2]] * 2] * 2}),
    ],
)
def test_transforms_per_frame(name, constants, values):
    found, wanted = (frames(library, name, NOTHING, constants, values) for library in ("torchdali", "nvidia.dali"))
    compare([found], [wanted], relative=1e-5, level=1e-6)


POINTS = np.array([[1, 2], [3, 4], [250, 9]])
COORDINATES = [
    {"M": [1.0, 2.0, 3.0, 4.0]},
    {"M": 2.0},
    {"MT": [1.0, 0, 5, 0, 2, 7]},
    {"MT": [1.0, 2.0, 3.0]},
    {"T": [1.0, 2.0]},
    {"T": 1.0},
    {"M": [1.0, 1.0], "T": [1.0]},
    {"M": [1.0, 0, 0, 1, 1, 1], "T": [1.0, 2.0, 3.0]},
    {"M": PerSample([matrix([1, 2], [3, 4]), matrix([0.5, 2], [3, 4])]), "T": PerSample([[1.0, 2.0], [3.0, 4.0]])},
    {"M": PerSample([2.0, 0.5])},
    {},
]


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
@pytest.mark.parametrize("arguments", COORDINATES)
def test_coord_transform(arguments, dtype):
    points = [POINTS.astype(dtype), POINTS[:2].astype(dtype)]
    check("coord_transform", [points], arguments, "NX", relative=1e-5)
    if dtype != "float32":
        check("coord_transform", [points], {**arguments, "dtype": f"types.{dtype.upper()}"}, "NX", level=1, share=0.99)


FLIPS = [
    {},
    {"flip_x": 0, "flip_y": 1},
    {"layout": "yx"},
    {"center_x": 1.5},
    {"flip_x": PerSample([0, 1]), "flip_y": PerSample([1, 0])},
    {"center_y": PerSample([0.1, 0.2]), "flip_y": 1},
    {"flip_z": 1},
]


@pytest.mark.golden
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("arguments", FLIPS)
def test_coord_flip(arguments, dims):
    if dims != 2 and "layout" in arguments:
        arguments = {"layout": "zyx"[-dims:], "flip_z": 1, "center_z": 1.0}
    points = [RANDOM.random((n, dims)).astype(np.float32) for n in (5, 3)]
    check("coord_flip", [points], arguments, level=1e-6)


def boxes(*counts: int, sized: bool = False) -> Arrays:
    """Return boxes in the unit square."""
    made = []
    for count in counts:
        corners = np.sort(RANDOM.random((count, 2, 2)), 1).astype(np.float32)
        corners[:, 1] -= corners[:, 0] * sized
        made.append(corners.reshape(count, 4))
    return made


@pytest.mark.golden
@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"vertical": 1}, {"horizontal": 0}, {"horizontal": 0, "vertical": 1}, {"vertical": PerSample([0, 1])},
     {"horizontal": PerSample([0, 1])}],
)  # fmt: skip
def test_bb_flip(arguments, ltrb):
    check("bb_flip", [boxes(5, 3, sized=not ltrb)], {**arguments, "ltrb": ltrb}, level=1e-6)
    check("bb_flip", [[b[0] for b in boxes(5, 3)]], {**arguments, "ltrb": ltrb}, level=1e-6)


@pytest.mark.golden
@pytest.mark.parametrize("mode", ["expand", "halfway", "fixed"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"angle": 30.0},
        {"angle": PerSample([90.0, -100.0])},
        {"angle": PerSample([46.0, 134.0]), "keep_size": True},
        {"angle": 0.0, "size": [150.0, 150.0]},
        {"angle": 20.0, "bbox_layout": "xyWH"},
        {"angle": 200.0, "keep_size": True, "remove_threshold": 0.6},
        {"angle": 70.0, "keep_size": True, "remove_threshold": 0.0},
        {"angle": 10.0, "input_shape": [3, 80, 60], "shape_layout": "CWH"},
    ],
)
def test_bbox_rotate(arguments, mode):
    arguments = {"input_shape": PerSample([[100, 200], [71, 30]]), "mode": mode, **arguments}
    given = boxes(9, 6, sized=arguments.get("bbox_layout") == "xyWH")
    check("bbox_rotate", [given], arguments, level=2e-6)
    labels = [np.arange(9, dtype=np.int32), np.arange(6, dtype=np.int32)]
    check("bbox_rotate", [given, labels], arguments, level=2e-6)
    check("bbox_rotate", [given, [x[:, None] for x in labels]], arguments, level=2e-6)


@pytest.mark.golden
def test_bbox_rotate_needs_a_label_a_box():
    labels = [np.arange(6, dtype=np.int32), np.arange(9, dtype=np.int32)]
    refused_by_both("bbox_rotate", [boxes(9, 6), labels], {"angle": 5.0, "input_shape": [100, 200]})


@pytest.mark.golden
def test_bbox_rotate_in_pixels():
    given = [b * np.float32([200, 100, 200, 100]) for b in boxes(5, 3)]
    arguments = {"angle": 30.0, "input_shape": [100, 200], "bbox_normalized": False}
    check("bbox_rotate", [given], arguments, level=1e-4)
    check("bbox_rotate", [given], {**arguments, "keep_size": True}, level=1e-4)


PASTED = [
    {"ratio": 2.0, "fill_value": [1, 2, 3]},
    {"ratio": 2.0, "fill_value": [7]},
    {"ratio": 1.5, "fill_value": [0], "paste_x": 0.0, "paste_y": 1.0},
    {"ratio": 1.0, "fill_value": [300], "min_canvas_size": 26.0},
    {"ratio": 1.7, "fill_value": [9], "paste_x": 0.3, "paste_y": 0.7},
    {"ratio": PerSample([1.2, 3.3]), "fill_value": [0], "paste_x": PerSample([0.1, 0.9]), "min_canvas_size": 15.5},
    {"ratio": 1.1, "fill_value": [3], "n_channels": 1},
]


@pytest.mark.golden
@pytest.mark.parametrize("arguments", PASTED)
def test_paste(arguments):
    check("paste", [images("uint8", "HWC")], arguments, "HWC")


@pytest.mark.golden
@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"ratio": 2.0},
        {"ratio": 1.0},
        {"ratio": 1.5, "paste_x": 0.2, "paste_y": 0.9},
        {"ratio": PerSample([1.5, 3.0])},
        {"ratio": 2.5, "paste_x": PerSample([0.0, 1.0])},
        {"ratio": 1.2, "paste_y": PerSample([0.0, 1.0])},
        {"ratio": 0.4},
        {"ratio": PerSample([0.4, 1.5]), "paste_x": PerSample([0.2, -1.0]), "paste_y": PerSample([2.0, 3.0])},
    ],
)
def test_bbox_paste(arguments, ltrb):
    check("bbox_paste", [boxes(5, 3)], {**arguments, "ltrb": ltrb}, level=1e-6)


GRIDS = [
    {},
    {"tile": 4},
    {"tile": 10, "ratio": 0.3},
    {"tile": 5, "ratio": 0.4, "shift_x": 0.5, "shift_y": 1.5},
    {"tile": 7, "angle": 0.3, "shift_x": 2.5},
    {"tile": 6, "angle": -1.7, "ratio": 0.6, "shift_x": -3.3, "shift_y": 2.0},
    {"tile": PerSample([3, 8]), "ratio": PerSample([0.2, 0.8])},
]


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
@pytest.mark.parametrize("layout", ["HWC", None])
@pytest.mark.parametrize("arguments", GRIDS)
def test_grid_mask(arguments, layout, dtype):
    check("grid_mask", [images(dtype, "HWC")], arguments, layout)


def whole(*rows: list[int]) -> np.ndarray:
    return np.array(rows, np.int32)


IDS = PerSample([whole(0, 1), whole(1)])
REGIONS = [
    {"in_ids": IDS},
    {"in_ids": IDS, "out_anchors": PerSample([whole([0, 0], [2, 2]), whole([1, 1])])},
    {
        "in_ids": IDS,
        "in_anchors": PerSample([whole([1, 1], [2, 2]), whole([0, 0])]),
        "out_anchors": PerSample([whole([0, 0], [3, 3]), whole([1, 1])]),
        "shapes": PerSample([whole([2, 2], [2, 3]), whole([1, 1])]),
    },
    {
        "in_ids": IDS,
        "in_anchors_rel": PerSample([matrix([0.3, 0.5], [0.2, 0.15]), matrix([0, 0])]),
        "out_anchors_rel": PerSample([matrix([0, 0], [0.33, 0.19]), matrix([0.1, 0.1])]),
        "shapes_rel": PerSample([matrix([0.5, 0.5], [0.3, 0.35]), matrix([0.7, 1])]),
    },
    {"in_ids": PerSample([whole(1), whole(0)])},
    {"in_ids": IDS, "dtype": "types.FLOAT"},
    {"in_ids": IDS, "dtype": "types.UINT8"},
]


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
@pytest.mark.parametrize("arguments", REGIONS)
def test_multi_paste_of_the_batch(arguments, dtype):
    check("multi_paste", [images(dtype, "HWC")], {"output_size": [20, 26], **arguments}, "HWC")


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_multi_paste_of_inputs(dtype):
    given = [[RANDOM.integers(0, 255, (7, 9, 3)).astype(dtype) for _ in range(2)] for _ in range(3)]
    anchors = PerSample([whole([0, 0], [2, 2], [4, 1])] * 2)
    check("multi_paste", given[:1], {"output_size": [8, 10]}, "HWC")
    check("multi_paste", given, {}, "HWC")
    check("multi_paste", given, {"in_anchors": anchors}, "HWC")
    check("multi_paste", given, {"out_anchors": anchors, "output_size": PerSample([[12, 12], [13, 20]])}, "HWC")
