"""Operators under `torch.compile`: chains become one graph, whose results and gradients equal eager calls."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.calls import FLOATS, calls
from tests.helpers.pages import own_operators
from tests.helpers.ways import VALUES, evaluate, words
from torchdali import fn
from torchdali.calls.decorators import operator
from torchdali.declaration.registry import registry
from torchdali.declaration.schema import Image

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
    pytest.skip("compiled graphs are tested with torch 2.13 and newer", allow_module_level=True)

BACKEND = "aot_eager"  # traces forward and backward; needs no C compiler
Chain = Callable[[torch.Tensor], torch.Tensor]


def _colors(image: torch.Tensor) -> torch.Tensor:
    image = fn.color_twist(image, brightness=1.2, contrast=0.8, hue=20.0, saturation=1.3)
    image = fn.gaussian_blur(image, window_size=5)
    return fn.normalize(image, mean=0.4, stddev=0.3)


def _windows(image: torch.Tensor) -> torch.Tensor:
    image = fn.crop(fn.flip(image), crop=[20, 24])
    image = fn.resize(image, size=[16, 18])
    return fn.crop_mirror_normalize(image, mean=[0.5], std=[0.2], mirror=1, crop=[12, 12])


def _warps(image: torch.Tensor) -> torch.Tensor:
    image = fn.rotate(image, angle=30.0, fill_value=0.0)
    return fn.warp_affine(image, matrix=[1.0, 0.1, 2.0, -0.1, 1.0, 1.0])


CHAINS = [_colors, _windows, _warps]

BREAKS = frozenset((
    "_normalize_batch", "audio_resample", "bb_flip", "bbox_paste", "bbox_rotate", "box_encoder", "coord_flip", "mel_filter_bank", "mfcc", "multi_paste",
    "normalize", "permute_batch", "power_spectrum", "reinterpret", "reshape", "spectrogram", "squeeze",
))  # fmt: skip
"""Operators that break the graph, at least with some arguments: NumPy, threads, and sizes that depend on values."""


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Dynamo detected a call to a `functools.lru_cache`")
        yield


def _images(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Return images of two shapes: the second one is compiled again."""
    made = [
        torch.rand(h, w, 3, generator=torch.Generator().manual_seed(h))
        for h, w in ((24, 32), (28, 40))
    ]
    return made if dtype == torch.float32 else [(image * 255).to(dtype) for image in made]


def _gradient(chain: Chain, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    image = image.clone().requires_grad_()
    result = chain(image)
    weights = torch.linspace(0.5, 1.5, result.numel()).view(result.shape)
    (gradient,) = torch.autograd.grad((result * weights).sum(), image)
    return result.detach(), gradient


@pytest.mark.parametrize("chain", [pytest.param(_colors, marks=pytest.mark.slow), pytest.param(_windows, marks=pytest.mark.slow), _warps])
def test_a_chain_is_one_graph_with_gradients(chain: Chain) -> None:
    compiled = torch.compile(chain, backend=BACKEND, fullgraph=True, dynamic=False)
    image = _images()[0]
    found, gradient = _gradient(compiled, image)
    wanted, of_eager = _gradient(chain, image)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradient, of_eager, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_each_shape_is_compiled_for_itself() -> None:
    compiled = torch.compile(_warps, backend=BACKEND, fullgraph=True, dynamic=False)
    for image in _images():
        torch.testing.assert_close(compiled(image), _warps(image), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_of_bytes_is_one_graph(chain: Chain) -> None:
    compiled = torch.compile(chain, backend=BACKEND, fullgraph=True, dynamic=False)
    image = _images(torch.uint8)[0]
    found, wanted = compiled(image), chain(image)
    assert found.dtype == wanted.dtype
    level = 1.0 if wanted.dtype == torch.uint8 else 5.0  # a level, divided by the deviation
    assert (found.float() - wanted.float()).abs().max() <= level


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_compiling_in_a_new_thread(dtype: torch.dtype) -> None:
    """Values that kernels cache per thread do not exist yet when the graph is traced."""
    torch.compiler.reset()
    image = _images(dtype)[0]
    compiled = torch.compile(_windows, backend=BACKEND, fullgraph=True, dynamic=False)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(lambda: [compiled(image) for _ in range(2)]).result()
    assert torch.equal(found[0], found[1])


@pytest.mark.slow
def test_codecs_break_the_graph_and_work() -> None:
    image = torch.zeros(20, 30, 3, dtype=torch.uint8)
    compiled = torch.compile(lambda x: fn.jpeg_compression_distortion(x), backend=BACKEND)
    assert torch.equal(compiled(image), fn.jpeg_compression_distortion(image))


def _function(call: str) -> tuple[Callable[..., torch.Tensor], list[torch.Tensor]]:
    """Return a call of `tests.calls` as a function, and its inputs: the first sample of each name."""
    names = words(call)
    return evaluate(f"lambda {', '.join(names)}: {call}", {})[0], [torch.as_tensor(VALUES[name][0][0]) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FLOATS if not registry[name].schema.random])
def test_an_operator_is_one_graph(name: str) -> None:
    compared = 0
    for function, inputs in map(_function, FLOATS[name]):
        try:
            wanted = function(*inputs)
        except (RuntimeError, ValueError):  # it needs a layout, or a batch, which tensors do not have
            continue
        found = torch.compile(function, backend=BACKEND, fullgraph=name not in BREAKS, dynamic=False)(*inputs)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
        compared += 1
    assert compared or name == "permute_batch"


OF_BYTES = (
    "clahe", "color_space_conversion", "debayer", "equalize", "grid_mask", "hsv", "paste", "resize", "experimental.warp_perspective",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_BYTES)
def test_an_operator_on_bytes_is_one_graph(name: str) -> None:
    """Images are large enough for OpenCV, NumPy and vectorized bytes in eager calls."""
    image = torch.arange(96 * 120 * 3).mul(37).remainder(251).view(96, 120, 3).to(torch.uint8)
    function, inputs = _function(calls(name)[0])
    inputs = [image if each.ndim == 3 else image[..., 0] for each in inputs]
    found = torch.compile(function, backend=BACKEND, fullgraph=True, dynamic=False)(*inputs)
    wanted = function(*inputs)
    assert found.dtype == wanted.dtype == torch.uint8
    assert (found.int() - wanted.int()).abs().max() <= 1


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="needs a C++ compiler")
def test_compiled_to_machine_code() -> None:
    image = _images()[0]
    compiled = torch.compile(_colors, fullgraph=True, dynamic=False)
    torch.testing.assert_close(compiled(image), _colors(image), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "random",
    [
        lambda x, **seed: fn.noise.gaussian(x, stddev=0.1, **seed),
        lambda x, **seed: fn.noise.shot(x, factor=0.1, **seed),
        lambda x, **seed: fn.random_resized_crop(x, size=[9, 8], **seed),
        lambda x, **seed: fn.jitter(x, nDegree=6, **seed),
    ],
    ids=["gaussian", "shot", "random_resized_crop", "jitter"],
)
def test_random_operators_run_outside_of_the_graph(random: Callable[..., torch.Tensor]) -> None:
    def chain(image: torch.Tensor, **seed: int) -> torch.Tensor:
        result: torch.Tensor = fn.brightness(random(image, **seed), brightness=2.0)
        return result

    image = _images()[0]
    compiled = torch.compile(chain, backend=BACKEND)
    assert not torch.equal(compiled(image), compiled(image))
    torch.testing.assert_close(compiled(image, seed=3), chain(image, seed=3))
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(chain, backend=BACKEND, fullgraph=True)(image)


@pytest.mark.slow
def test_shapes_that_vary_work_without_fullgraph() -> None:
    def chain(image: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = fn.resize(fn.crop(image, crop=[20, 20]), size=[9, 8])
        return result

    compiled = torch.compile(chain, backend=BACKEND)
    for side in (24, 26, 29):
        image = torch.rand(side, side + 3, 3)
        torch.testing.assert_close(compiled(image), chain(image), rtol=1e-4, atol=1e-4)


def test_user_operators_compile_too() -> None:
    with own_operators():

        @operator
        def solarize_smoothly(image: Image, /, *, sharpness: float = 10.0) -> Image:
            """Darken bright values, with a gradient everywhere."""
            return image + torch.sigmoid(sharpness * (image - 0.5)) * (1 - 2 * image)

        image = _images()[0]
        compiled = torch.compile(
            lambda x: solarize_smoothly(x, sharpness=20.0), backend=BACKEND, fullgraph=True
        )
        torch.testing.assert_close(compiled(image), solarize_smoothly(image, sharpness=20.0))
