"""Conditionals in callables of a pipeline function: objects, methods, partial functions, modules."""

from __future__ import annotations

import pytest
import torch

import torchdali
from tests.helpers.called_things import THINGS, Module, Outer, results
from torchdali.pipeline import do_not_convert


@pytest.mark.parametrize("name", THINGS)
def test_an_if_is_found_in_any_callable(name):
    assert results(torchdali, THINGS[name]) == [2.0, 2.0, 6.0, 4.0]


def test_marked_functions_are_not_rewritten():
    class Marked:
        @do_not_convert
        def __call__(self, x, condition):
            if condition:
                x = x * 2
            return x

    with pytest.raises(TypeError, match="conditional context"):
        results(torchdali, Marked())


def test_modules_are_not_modified():
    module = Outer()
    results(torchdali, module)
    assert "forward" not in vars(module) and "forward" not in vars(module.inner)
    assert module.inner.forward.__func__ is Module.forward


def test_a_module_keeps_its_own_forward():
    module = Module()
    module.forward = lambda x, condition: x + 1
    assert results(torchdali, module) == [2.0, 3.0, 4.0, 5.0]


def test_ifs_on_python_values_are_unchanged():
    class OnNumbers:
        def __call__(self, x, condition):
            return x if isinstance(x, torchdali.DataNode) and not isinstance(x, torch.Tensor) else None

    assert results(torchdali, OnNumbers()) == [1.0, 2.0, 3.0, 4.0]
