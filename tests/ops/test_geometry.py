"""Geometry operators: references in NumPy, properties, errors, gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from tests.helpers.opencv_switch import computing_with
from torchdali import fn, types
from torchdali.kernels.warp import perspective
from torchdali.kernels.warp.affine import rotated_size, rotation, warp_affine
from torchdali.kernels.warp.perspective import BORDERS, sample_at
from torchdali.kernels.warp.sample import sample
from torchdali.tensors import TensorList

NN, LINEAR, CUBIC = types.INTERP_NN, types.INTERP_LINEAR, types.INTERP_CUBIC
RANDOM = np.random.default_rng(8)


def image(*shape: int, dtype: type = np.uint8) -> torch.Tensor:
    return torch.from_numpy((RANDOM.random(shape) * 250).astype(dtype))


# ---------------------------------------------------------------- references


def interpolated(x: np.ndarray, u: float, v: float, fill: float | None) -> np.ndarray:
    """Interpolate linearly at a position whose pixel centres are at one half, pixel by pixel."""
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


def test_frames_and_volumes_are_treated_as_their_parts():
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
def test_canvas_holds_the_corners_and_keeps_the_parity(size):
    for angle in range(-180, 181, 15):
        height, width = rotated_size(rotation(float(angle)), size)
        c, s = abs(math.cos(math.radians(angle))), abs(math.sin(math.radians(angle)))
        assert height >= size[0] * c + size[1] * s - 0.011
        assert width >= size[1] * c + size[0] * s - 0.011
        other = size if c > s else size[::-1]
        if abs(c - s) > 1e-6:
            assert (height - other[0]) % 2 == 0 and (width - other[1]) % 2 == 0


@pytest.mark.parametrize("axes", [2, 3])
def test_a_matrix_without_an_inverse_is_refused(axes):
    batch = TensorList.from_samples([torch.zeros((4,) * axes + (1,))], "DHWC"[3 - axes :])
    matrix = [1.0] * (axes + 1) * axes
    fn.warp_affine(batch, matrix=matrix)
    with pytest.raises(RuntimeError, match=r"inverted|singular"):
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
def test_remap_takes_pixels_from_the_maps(origin, interp):
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
        (lambda x: fn.rotate(x, angle=3.0, dtype=types.INT16), RuntimeError, "cannot become"),
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
def test_points_are_the_same_bits_alone_and_in_a_batch(shape):
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
