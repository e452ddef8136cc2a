"""Debayering against a slow reference and the real DALI, with and without OpenCV, and its mathematical properties."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.check import PerSample, Result, check
from tests.helpers.opencv_switch import LIBRARIES, computing_with
from torchdali import Pipeline, fn
from torchdali.kernels.color import debayer as kernels

RANDOM = np.random.default_rng(9)
CELLS = [(0, 0), (0, 1), (1, 0), (1, 1)]
ALGORITHMS = ["bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv"]


@pytest.fixture(params=LIBRARIES, autouse=True)
def library(request):
    with computing_with(request.param, "color.debayer"):
        yield request.param


def noise(*shape: int, dtype: str = "uint8") -> np.ndarray:
    return RANDOM.integers(0, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)


def colors_at(mosaic: np.ndarray, y: int, x: int, blue: tuple[int, int], edges: bool) -> list[int]:
    """Return first (blue), green and third color of an inner pixel, from the nearest pixels that have them."""

    def mean(*places: tuple[int, int]) -> int:
        return (sum(int(mosaic[y + dy, x + dx]) for dy, dx in places) + len(places) // 2) // len(
            places
        )

    row, column = y % 2 == blue[0], x % 2 == blue[1]
    sides, ends = ((0, -1), (0, 1)), ((-1, 0), (1, 0))
    corners = tuple((dy, dx) for dy in (-1, 1) for dx in (-1, 1))
    nearest = {(True, True): ((0, 0),), (True, False): sides, (False, True): ends}
    green: tuple[tuple[int, int], ...] = ((0, 0),)
    if row == column:
        green = sides + ends
        if edges:
            across = abs(int(mosaic[y, x - 1]) - int(mosaic[y, x + 1]))
            down = abs(int(mosaic[y - 1, x]) - int(mosaic[y + 1, x]))
            green = ends if across > down else sides
    return [
        mean(*nearest.get((row, column), corners)),
        mean(*green),
        mean(*nearest.get((not row, not column), corners)),
    ]


def reference(mosaic: np.ndarray, blue: tuple[int, int], edges: bool = False) -> np.ndarray:
    height, width = mosaic.shape
    inside = [
        [colors_at(mosaic, y, x, blue, edges) for x in range(1, width - 1)]
        for y in range(1, height - 1)
    ]
    return np.pad(np.array(inside), ((1, 1), (1, 1), (0, 0)), mode="edge").astype(mosaic.dtype)


@pytest.mark.thin(5)
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("blue", CELLS)
@pytest.mark.parametrize("algorithm", [None, "bilinear_ocv", "edgeaware_ocv"])
def test_means_of_neighbours(algorithm, blue, dtype):
    samples = [noise(8, 10, dtype=dtype), noise(6, 4, dtype=dtype)]
    wanted = [reference(s, blue, algorithm == "edgeaware_ocv") for s in samples]
    arguments = {"blue_position": list(blue), "algorithm": algorithm}
    check("debayer", [samples], arguments, "HW", expected=[Result(wanted, "HWC")])


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("blue", CELLS)
def test_gray_weighs_the_first_color_as_red(blue, dtype):
    mosaic = noise(8, 10, dtype=dtype)
    colors = reference(mosaic, blue).astype(float)
    found = fn.debayer(
        torch.from_numpy(mosaic), blue_position=list(blue), algorithm="gray_ocv"
    ).numpy()
    assert found.shape == (8, 10, 1)
    assert np.abs(found[..., 0] - colors @ [0.299, 0.587, 0.114]).max() <= 2


@pytest.mark.parametrize("algorithm", ALGORITHMS[:3])
@pytest.mark.parametrize("blue", CELLS)
def test_one_color_everywhere(algorithm, blue):
    mosaic = np.full((12, 14), 60, np.uint8)
    mosaic[blue[0] :: 2, blue[1] :: 2] = 200
    mosaic[1 - blue[0] :: 2, 1 - blue[1] :: 2] = 10
    found = fn.debayer(torch.from_numpy(mosaic), blue_position=list(blue), algorithm=algorithm)
    assert (found == torch.tensor([200, 60, 10])).all()


def test_gradients_keep_an_edge_sharper_than_means():
    picture = np.full((32, 32), 20, np.uint8)
    picture[:, 16:] = 220  # gray, so that every mosaic of it is itself
    mosaic = torch.from_numpy(picture)
    errors = [
        (fn.debayer(mosaic, blue_position=[0, 0], algorithm=name).int() - mosaic[..., None].int())
        .abs()
        .sum()
        for name in ("bilinear_ocv", "vng_ocv")
    ]
    assert errors[1] < 0.7 * errors[0]


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    ("layout", "shape"),
    [("HW", (8, 10)), ("HWC", (8, 10, 1)), ("FHW", (2, 8, 10)), ("FHWC", (2, 8, 10, 1))],
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_layouts(algorithm, layout, shape):
    samples = [noise(*shape), noise(*shape)]
    frames = [[f for f in s.reshape(-1, 8, 10)] for s in samples]

    def alone(frame: np.ndarray) -> np.ndarray:
        return fn.debayer(
            torch.from_numpy(frame), blue_position=[1, 0], algorithm=algorithm
        ).numpy()

    channels = 1 if algorithm == "gray_ocv" else 3
    wanted = [
        np.stack([alone(f) for f in each]).reshape(*shape[: len(shape) - ("C" in layout)], channels)
        for each in frames
    ]
    result = Result(wanted, layout.removesuffix("C") + "C")
    arguments = {"blue_position": [1, 0], "algorithm": algorithm}
    check("debayer", [samples], arguments, layout, expected=[result])


def test_a_position_per_sample():
    samples = [noise(6, 8), noise(6, 8)]
    wanted = [reference(s, b) for s, b in zip(samples, ((0, 1), (1, 1)), strict=True)]
    arguments = {"blue_position": PerSample([np.int32([0, 1]), np.int32([1, 1])])}
    check("debayer", [samples], arguments, "HW", expected=[Result(wanted, "HWC")])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_later_batches_are_written_in_place(algorithm):
    """From the second batch on, results are written into the memory of the batch."""
    batches = [[noise(8, 10) for _ in range(3)] for _ in range(4)]
    source = iter(batches)
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        mosaics = fn.external_source(lambda: next(source), layout="HW")
        pipe.set_outputs(fn.debayer(mosaics, blue_position=[0, 1], algorithm=algorithm))
    pipe.build()
    for batch in batches:
        (found,) = pipe.run()
        for i, sample in enumerate(batch):
            alone = fn.debayer(torch.from_numpy(sample), blue_position=[0, 1], algorithm=algorithm)
            assert np.array_equal(np.array(found.at(i)), alone.numpy())
    pipe.close()


def test_small_images_have_no_colors():
    for algorithm in ALGORITHMS:
        found = fn.debayer(
            torch.full((2, 4), 9, dtype=torch.uint8), blue_position=[0, 0], algorithm=algorithm
        )
        assert (found == 0).all()


def test_the_old_name_warns():
    mosaic = torch.from_numpy(noise(6, 8))
    with pytest.warns(DeprecationWarning, match="debayer"):
        found = fn.experimental.debayer(mosaic, blue_position=[0, 1])
    assert torch.equal(found, fn.debayer(mosaic, blue_position=[0, 1]))


GOOD = torch.zeros(4, 6, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("image", "arguments", "message"),
    [
        (GOOD.to(torch.int16), {}, "type"),
        (GOOD[:3], {}, "even"),
        (GOOD[:, :5], {}, "even"),
        (GOOD[:0], {}, "even and positive"),
        (torch.zeros(4, 6, 3, dtype=torch.uint8), {}, "one channel"),
        (GOOD, {"blue_position": [0, 2]}, "blue_position"),
        (GOOD, {"blue_position": [-1, 0]}, "blue_position"),
        (GOOD, {"blue_position": [0, 0, 0]}, "blue_position"),
        (GOOD, {"algorithm": "nearest"}, "algorithm must be one of"),
        (GOOD, {"algorithm": "default_npp"}, "accelerators"),
        (GOOD.to(torch.uint16), {"algorithm": "vng_ocv"}, "uint8"),
    ],
)
def test_invalid_arguments_are_rejected(image, arguments, message):
    with pytest.raises(RuntimeError, match=message):
        fn.debayer(image, **{"blue_position": [0, 0], **arguments})


def test_needs_a_position():
    with pytest.raises(RuntimeError, match="blue_position"):
        fn.debayer(GOOD)


@pytest.mark.parametrize("shape", [(4, 4), (6, 16), (8, 8), (14, 20)])
def test_gradients_agree_with_opencv(library, shape):
    cv2 = pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
    mosaic = noise(*shape)
    out = torch.empty((*shape, 3), dtype=torch.uint8)
    kernels.debayer(torch.from_numpy(mosaic), (0, 0), "vng", out)
    wanted = cv2.cvtColor(mosaic, cv2.COLOR_BayerBG2RGB_VNG)
    difference = np.abs(out.numpy().astype(int) - wanted)
    assert difference.max() <= 1 and (difference > 0).mean() < 0.01


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "debayer": "`default_npp` (DALI's GPU algorithm) is bilinear, without NPP's correlation of the green values; a "
    "4-D output has no layout if the input has none; accepts uint8 and uint16, as DALI does",
}

SHAPES = {
    "HW": [(10, 14), (8, 10), (2, 4), (4, 6)],
    "HWC": [(10, 14, 1), (6, 16, 1)],
    "FHW": [(2, 10, 14), (3, 10, 8)],
    "FHWC": [(2, 10, 14, 1)],
}


def mosaics(layout: str, dtype: str) -> list[np.ndarray]:
    most = np.iinfo(dtype).max
    return [RANDOM.integers(0, most, s, endpoint=True).astype(dtype) for s in SHAPES[layout]]


CASES = [
    (algorithm, dtype)
    for algorithm in ("bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv", None)
    for dtype in ("uint8", "uint16")
    if (algorithm, dtype) != ("vng_ocv", "uint16")
]


@pytest.mark.golden
@pytest.mark.parametrize(("algorithm", "dtype"), CASES)
@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("blue", [[0, 0], [0, 1], [1, 0], [1, 1], 1])
def test_debayer(library, algorithm, blue, layout, dtype):
    arguments = {"blue_position": blue, **({"algorithm": algorithm} if algorithm else {})}
    rounded = algorithm == "vng_ocv" and library == "torch"
    check("debayer", [mosaics(layout, dtype)], arguments, layout, level=float(rounded))


@pytest.mark.golden
def test_positions_per_sample():
    places = [np.int32(p) for p in ([0, 1], [1, 1], [1, 0], [0, 0])]
    check("debayer", [mosaics("HW", "uint8")], {"blue_position": PerSample(places)}, "HW")


@pytest.mark.golden
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_old_name():
    check("experimental.debayer", [mosaics("HW", "uint8")], {"blue_position": [0, 1]}, "HW")
