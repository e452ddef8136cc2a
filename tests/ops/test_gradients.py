"""Gradients: each call of `tests.calls.FLOATS` passes `torch.autograd.gradcheck`, and an operator that has a gradient has one there.

If DALI's operator rejects float64, or always computes in float32, the check runs in float32; its first
step is then large (0.25), which is exact for operators that are linear in their input, and smaller for other operators.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

from tests.calls import BATCH, FLOATS, calls, small_floats
from tests.helpers.ways import VALUES, evaluate, words
from torchdali import fn
from torchdali.declaration.registry import registry
from torchdali.tensors import TensorList

STEPS = {torch.float32: (0.25, 1e-2, 1e-3), torch.float64: (1e-6,)}
TOLERANCES = {torch.float32: (2e-3, 5e-3), torch.float64: (1e-5, 1e-4)}
FLOAT_NAMES = small_floats().keys()
CALLS = [call for rows in FLOATS.values() for call in rows]

WITHOUT = {
    "dl_tensor_python_function": "the user's function",
    "experimental.resize": "runs on the GPU only; the body is that of resize",
    "per_frame": "passes on what it is given",
    "python_function": "the user's function",
    "torch_python_function": "the user's function",
}
"""Operators that may have a gradient without a row, and why."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Use one thread: waking threads for a hundred numbers takes longer than the sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _floats(call: str) -> list[str]:
    return [word for word in words(call) if word in FLOAT_NAMES]


def _inputs(call: str, size: int = BATCH) -> list[torch.Tensor]:
    """Return the samples of all floats of a call, name by name."""
    return [torch.tensor(sample, requires_grad=True) for word in _floats(call) for sample in VALUES[word][0][:size]]


def _run(call: str, *inputs: torch.Tensor) -> torch.Tensor:
    """Evaluate a call on batches of these samples; return all results as one vector."""
    return torch.cat([sample.flatten() for sample in _results(call, inputs)])


def _results(call: str, inputs: Sequence[torch.Tensor], dense: bool = False) -> list[torch.Tensor]:
    names = _floats(call)
    size = len(inputs) // len(names)
    batches = {word: inputs[k * size : (k + 1) * size] for k, word in enumerate(names)}
    others = {word: [torch.as_tensor(sample) for sample in VALUES[word][0][:size]] for word in words(call) if word not in batches}
    make = _stacked if dense else TensorList.from_samples
    return list(evaluate(call, {word: make(list(x), VALUES[word][1]) for word, x in {**batches, **others}.items()})[0].samples())


def _stacked(samples: list[torch.Tensor], layout: str) -> TensorList:
    return TensorList.from_dense(torch.stack(samples), layout)


def _check(function: Callable[..., torch.Tensor], inputs: Sequence[torch.Tensor], *, fast: bool = False) -> None:
    """Compare gradients with numerical ones for each step; raise if none agrees.

    Args:
        fast: In one direction, instead of by each element.

    Raises:
        GradcheckError: The gradient is wrong.
    """
    dtype = inputs[0].dtype
    atol, rtol = TOLERANCES[dtype]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Input #")  # it is not double precision
        check = functools.partial(
            torch.autograd.gradcheck, function, tuple(inputs), atol=atol, rtol=rtol, nondet_tol=1e-6, fast_mode=fast
        )
        *first, last = STEPS[dtype]
        assert any(check(eps=step, raise_exception=False) for step in first) or check(eps=last)


@pytest.mark.thin(3)
@pytest.mark.parametrize("call", CALLS)
def test_gradients(call: str) -> None:
    inputs = _inputs(call)
    result = _run(call, *inputs)
    assert result.dtype.is_floating_point and result.requires_grad
    plain = [x.detach().clone() for x in inputs]
    torch.testing.assert_close(result.detach(), _run(call, *plain), rtol=1e-5, atol=1e-5)
    _check(functools.partial(_run, call), inputs, fast=True)
    assert all(map(torch.equal, plain, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_gradients_of_each_element(call: str) -> None:
    _check(functools.partial(_run, call), _inputs(call, BATCH if "indices" in call else 1))  # indices of samples


LARGE = [
    call for call in CALLS
    if words(call) == ["pixels"] and not re.search(r"crop=|size=|roi_start=|shape=|sizes=|reductions|fn\.normalize\(pixels, (axes|batch|mean=0.5)", call)
]  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("call", LARGE)
def test_large_images_have_the_same_gradients(call: str) -> None:
    """Operators that are linear (with an offset): a step along a direction shows its derivative."""
    generator = torch.Generator().manual_seed(7)
    image = (torch.rand(500, 400, 3, generator=generator) * 0.8 + 0.1).requires_grad_()
    step = torch.rand(image.shape, generator=generator) * 0.1
    result = _run(call, image)
    plain, moved = _run(call, image.detach()), _run(call, image.detach() + step)
    far = (result.detach() - plain).abs() > 1e-4 + 1e-4 * plain.abs()
    assert far.float().mean() < 5e-4  # rounding determines which of two pixels is the nearest
    weights = torch.rand(result.shape, generator=generator)
    (gradient,) = torch.autograd.grad((result * weights).sum(), image)
    wanted = ((moved.double() - plain) * weights).sum()
    torch.testing.assert_close((gradient.double() * step).sum(), wanted, rtol=1e-3, atol=1e-2)


@pytest.mark.thin(3, 1)
@pytest.mark.parametrize("name", FLOATS)
def test_batches_that_are_one_tensor_have_the_same_gradients(name: str) -> None:
    for call in FLOATS[name]:
        lists, stacks = _inputs(call), _inputs(call)
        for samples, dense in ((lists, False), (stacks, True)):
            torch.stack(_results(call, samples, dense)).square().sum().backward()
        for one, other in zip(lists, stacks, strict=True):
            unused = torch.zeros_like(one)  # by `permute_batch`
            torch.testing.assert_close(*(unused if each.grad is None else each.grad for each in (one, other)))


def test_plain_tensors_have_gradients_too() -> None:
    image = torch.rand(6, 7, 3, requires_grad=True)
    made = fn.normalize(
        fn.gaussian_blur(fn.rotate(image, angle=20.0), window_size=3), mean=0.5, stddev=0.2
    )
    made.square().sum().backward()
    assert image.grad is not None and image.grad.abs().sum() > 0


def test_batches_have_gradients() -> None:
    images = [torch.rand(5 + i, 6, 3, requires_grad=True) for i in range(3)]
    made = fn.crop_mirror_normalize(TensorList.from_samples(images, "HWC"), crop=[4, 4], std=[0.5])
    torch.stack(made.samples()).sum().backward()
    assert [float(image.grad.sum()) for image in images if image.grad is not None] == [96.0] * 3


def test_a_wrong_gradient_is_detected() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2.1

    with pytest.raises(GradcheckError):
        _check(Doubled.apply, [torch.rand(3, 4, requires_grad=True)])


def _on_floats(name: str) -> Iterator[torch.Tensor]:
    """Yield results of an operator's calls on floats with gradients; bytes are converted if it accepts floats."""
    for call in calls(name):
        given = {}
        for word in words(call):
            samples = [torch.tensor(np.float32(x) if np.ndim(x) > 1 else x) for x in VALUES[word][0]]
            given[word] = TensorList.from_samples([x.requires_grad_(x.is_floating_point()) for x in samples], VALUES[word][1])
        try:
            outputs = evaluate(call, given) if given else []
        except (TypeError, RuntimeError, ValueError):  # bytes only, or arithmetic, which eager batches do not have
            continue
        yield from (sample for output in outputs if isinstance(output, TensorList) for sample in output.samples())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [name for name, o in registry.items() if o.kind in ("sample", "batch") and not (o.hidden or o.replacement or name in FLOATS or name in WITHOUT)],
)
def test_an_operator_without_a_row_has_no_gradient(name: str) -> None:
    if not calls(name) or not calls(name)[0].startswith("fn.") or re.search(r"folder|jpeg|wav|film|\.gpu\(", calls(name)[0]):
        return
    assert not any(sample.requires_grad for sample in _on_floats(name)), "it needs a call on `small_floats` in tests/calls.py"
