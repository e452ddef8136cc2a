"""Read numbers from environment variables."""

from __future__ import annotations

import os
from typing import TypeVar

__all__ = ["read_number"]

N = TypeVar("N", int, float)


def read_number(name: str, default: N, least: N, most: N | None = None) -> N:
    """Return the number in an environment variable, or the default if the variable is not set or empty.

    Args:
        default: The default. The result has the same type as the default.
        least: Smallest allowed number.
        most: Largest allowed number; None for no limit.

    Raises:
        ValueError: the value isn't a number, or is out of range. The message names the variable.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    kind = type(default)
    try:
        number = kind(text)
    except ValueError:
        number = None
    if number is None or not (least <= number and (most is None or number <= most)):
        words = "an integer" if kind is int else "a number"
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"the environment variable {name} must be {words} {limits}, got {text!r}")
    return number
