"""The random number generators that a loader's sampler may draw from, and the generators' states."""

from __future__ import annotations

import base64
import copy
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "Snapshot", "can_draw_early", "decode_states", "encode_states", "generators_of", "is_shared", "is_torch_sampler",
    "restore", "snapshot",
]  # fmt: skip

Snapshot = Mapping[str, Any]
"""States of random number generators, by the generators' names."""

_TORCH_SAMPLERS = (SequentialSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler, DistributedSampler)


def is_torch_sampler(sampler: Any) -> bool:
    """Return True for PyTorch's own samplers, tuples and ranges.

    The indices of these samplers depend only on the states of their random generators, not on the time of the draw.
    """
    if type(sampler) is BatchSampler:
        return is_torch_sampler(sampler.sampler)
    return type(sampler) in _TORCH_SAMPLERS or type(sampler) in (tuple, range)


def can_draw_early(sampler: Any) -> bool:
    """Return True if a program can't observe that a sampler's indices are drawn earlier than needed."""
    inner = sampler.sampler if type(sampler) is BatchSampler else sampler
    if type(inner) is RandomSampler and inner.generator is not None:
        return not inner.replacement and len(inner) == len(inner.data_source)  # the sampler draws only once per epoch
    return is_torch_sampler(sampler)


def generators_of(loader: Any) -> dict[str, Any]:
    """Return the random number generators that a loader and its samplers may draw from, by name.

    A generator with several names is returned only under its first name.
    """
    generators: dict[str, Any] = {}
    _add(generators, "generator", torch.default_generator if loader.generator is None else loader.generator)
    _add_sampler_generators(generators, "batch_sampler", loader.batch_sampler)
    _add_sampler_generators(generators, "sampler", loader.sampler)
    _add(generators, "torch", torch.default_generator)
    if not is_torch_sampler(loader.sampler if loader.batch_sampler is None else loader.batch_sampler):
        _add(generators, "numpy", _numpy_generator())
        _add(generators, "random", _python_generator())
    return generators


def _add(generators: dict[str, Any], name: str, value: Any) -> None:
    if not any(value is each for each in generators.values()):
        generators[name] = value


def _add_sampler_generators(generators: dict[str, Any], path: str, sampler: Any, depth: int = 4) -> None:
    for name, value in getattr(sampler, "__dict__", {}).items():
        if isinstance(value, (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)):
            _add(generators, f"{path}.{name}", value)
        elif depth and (isinstance(value, Sampler) or "sampler" in name):
            _add_sampler_generators(generators, f"{path}.{name}", value, depth - 1)


def _numpy_generator() -> Any:
    return np.random.mtrand._rand  # the generator of np.random's functions


def _python_generator() -> Any:
    return random._inst  # the generator of random's functions


def is_shared(generator: Any) -> bool:
    """Return True for a global generator of PyTorch, NumPy or Python, which the whole program shares."""
    return any(generator is each for each in (torch.default_generator, _numpy_generator(), _python_generator()))


def snapshot(generators: Mapping[str, Any]) -> Snapshot:
    """Return the current states of generators."""
    return {name: _get_state(generator) for name, generator in generators.items()}


def restore(generators: Mapping[str, Any], states: Snapshot) -> None:
    """Set generators to saved states. Generators without a saved state are unchanged."""
    for name, generator in generators.items():
        if name in states:
            _set_state(generator, states[name])


def _get_state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return copy.deepcopy(generator.bit_generator.state)


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


# ---------------------------------------------------------------- as JSON values


def encode_states(states: Snapshot) -> dict[str, Any]:
    """Convert states of generators to values that JSON can store."""
    return {name: _encode(state) for name, state in states.items()}


def _encode(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return base64.b64encode(value.numpy().tobytes()).decode()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _encode(each) for key, each in value.items()}
    return [_encode(each) for each in value] if isinstance(value, tuple) else value


def decode_states(states: Mapping[str, Any], generators: Mapping[str, Any], field: str) -> Snapshot:
    """Convert values from `encode_states` to states of generators, and check that the generators accept the states.

    Args:
        states: Values from `encode_states`, by the generators' names.
        generators: The generators. Their states are not changed.
        field: Name of the field in the loader's state, for error messages.

    Raises:
        ValueError: a generator is missing or unknown, or a state is invalid.
    """
    if set(states) != set(generators):
        raise ValueError(f"the state's {field} must be of the generators {sorted(generators)}, got {sorted(states)}")
    return {name: _decode(generator, states[name], name) for name, generator in generators.items()}


def _decode(generator: Any, value: Any, name: str) -> Any:
    try:
        if isinstance(generator, torch.Generator):
            state: Any = torch.frombuffer(bytearray(base64.b64decode(value, validate=True)), dtype=torch.uint8)
            _set_state(torch.Generator(generator.device), state)
        elif isinstance(generator, random.Random):
            version, numbers, gauss = value
            state = (version, tuple(numbers), gauss)
            _set_state(random.Random(), state)
        else:
            state = value
            _set_state(copy.deepcopy(generator), state)
    except Exception as error:
        raise ValueError(f"the state's generator {name!r} must be the state of a {type(generator).__name__}") from error
    return state
