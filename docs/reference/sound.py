"""The audio of the reference's examples: a chord of one second, as samples and as a WAV file."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RATE", "sound", "wav"]

Array = npt.NDArray[Any]

RATE = 8000
_CHORD = (220.0, 277.2, 329.6)


def sound() -> Array:
    """Return a chord that fades out, ``(RATE,)`` float32."""
    time = np.arange(RATE) / RATE
    waves = sum(np.sin(2 * np.pi * hertz * time) for hertz in _CHORD) / len(_CHORD)
    return np.asarray(0.8 * waves * np.exp(-3 * time), np.float32)


def wav() -> Array:
    """Return the bytes of a 16-bit WAV file of the chord, ``(n,)`` uint8."""
    memory = io.BytesIO()
    with wave.open(memory, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((sound() * 32767).astype("<i2").tobytes())
    return np.frombuffer(memory.getvalue(), np.uint8)
