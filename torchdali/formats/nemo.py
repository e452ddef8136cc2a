"""NeMo manifests: one recording per line, as a JSON object with path, duration and text.

Format: https://docs.nvidia.com/nemo-framework/user-guide/latest/nemotoolkit/asr/datasets.html
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from torchdali.errors import warn
from torchdali.formats.storage import read_text
from torchdali.formats.urls import redact

__all__ = ["Recording", "read_manifest"]


class Recording(NamedTuple):
    """An audio file, or a part of it.

    Attributes:
        offset: Start of the part in seconds.
        duration: Duration of the part in seconds; -1 if the manifest does not specify it.
        number: Index of the recording, from 0. Skipped recordings aren't counted.
    """

    path: str
    offset: float
    duration: float
    text: str
    number: int


def read_manifest(path: str, min_duration: float, max_duration: float) -> list[Recording]:
    """Return the recordings of a manifest; lines without ``audio_filepath`` are skipped with a warning.

    Args:
        path: Path of the manifest, or its URL.
        min_duration: Minimum duration in seconds; shorter recordings are skipped. 0 for no minimum.
        max_duration: Maximum duration in seconds; longer recordings are skipped. 0 for no maximum.

    Raises:
        RuntimeError: The manifest cannot be read, or a value has a wrong type.
    """
    entries: list[Recording] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            values: Any = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or not values.get("audio_filepath"):
            warn(f"{redact(path)}, line {number} has no audio_filepath, so it is skipped")
            continue
        entry = _parse_entry(values, f"{redact(path)}, line {number}", len(entries))
        if 0 < min_duration > entry.duration or 0 < max_duration < entry.duration:
            continue
        entries.append(entry)
    return entries


def _parse_entry(values: dict[str, Any], location: str, index: int) -> Recording:
    offset, duration = _get_number(values, "offset", 0.0, location), _get_number(values, "duration", -1.0, location)
    return Recording(
        _get_text(values, "audio_filepath", location), offset, duration, _get_text(values, "text", location), index
    )


def _get_number(values: dict[str, Any], name: str, default: float, location: str) -> float:
    value = default if values.get(name) is None else values[name]  # null means the default, as in NeMo's manual
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e9:
        raise RuntimeError(f"{location}: {name} must be a number of seconds, got {value!r}")
    return float(value)


def _get_text(values: dict[str, Any], name: str, location: str) -> str:
    value = "" if values.get(name) is None else values[name]
    if not isinstance(value, str):
        raise RuntimeError(f"{location}: {name} must be a string, got {value!r}")
    return value
