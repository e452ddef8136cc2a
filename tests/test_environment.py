"""Bad values in environment variables: the error contains the variable's name, the rule and the value."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import torchdali
from torchdali.environment import read_number
from torchdali.execute.affinity import affinity
from torchdali.execute.workers import placing
from torchdali.experimental.dynamic import get_num_threads
from torchdali.kernels import native
from torchdali.plugin.pytorch import loader


def loaded(module: str) -> Callable[[], Any]:
    """Return a function that runs a module's file, like an import."""
    return lambda: runpy.run_path(str(Path(torchdali.__file__).parent / module))


LIMITS, URLS, BACKEND = loaded("kernels/limits.py"), loaded("formats/urls.py"), loaded("dali/backend.py")
COUNT = "must be an integer of at least 1"
CASES: list[tuple[str, Callable[[], Any], str, tuple[str, ...]]] = [
    ("TORCHDALI_MAX_PIXELS", LIMITS, COUNT, ("many", "0", "-5", "1e9", "1.5")),
    ("DALI_MAX_JPEG_SCANS", LIMITS, COUNT, ("all", "0")),
    ("TORCHDALI_MAX_URL_BYTES", URLS, COUNT, ("256MB", "-1")),
    ("DALI_HOST_BUFFER_GROWTH_FACTOR", BACKEND, "must be a number from 1.0 to 4.0", ("big", "0.5", "nan")),
    ("DALI_BUFFER_GROWTH_FACTOR", BACKEND, "must be a number from 1.0 to 4.0", ("1,5", "5")),
    ("DALI_HOST_BUFFER_SHRINK_THRESHOLD", BACKEND, "must be a number from 0.0 to 1.0", ("half", "2")),
    ("DALI_NUM_THREADS", get_num_threads, COUNT, ("four", "0", "-1")),
    ("TORCHDALI_PROCESSES", placing._requested_processes, COUNT, ("many", "0", "-2")),
    ("TORCHDALI_NATIVE_LEVEL", native.status.__wrapped__, "must be an integer of at least 0", ("avx2", "-1")),
    ("DALI_AFFINITY_MASK", lambda: affinity(None), "must be core numbers", ("all", "0,x")),
    ("WORLD_SIZE", lambda: loader._ProcessRank.here(True), COUNT, ("x", "0")),
    ("RANK", lambda: loader._ProcessRank.here(True), "must be an integer from 0 to 3", ("first", "-1", "4")),
]


@pytest.mark.parametrize(("name", "read", "rule", "values"), CASES, ids=[case[0] for case in CASES])
def test_the_error_names_a_bad_value(name: str, read: Callable[[], Any], rule: str, values: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.delenv(name, raising=False)
    read()
    for value in values:
        monkeypatch.setenv(name, value)
        with pytest.raises(ValueError, match=rf"{name}\b.*{re.escape(rule)}") as caught:
            read()
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize(("text", "expected"), [("", 7), (" ", 7), ("12", 12), (" 12\n", 12), ("1_000", 1000)])
def test_a_number_is_parsed(text: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_NUMBER", text)
    assert read_number("SOME_NUMBER", 7, 1) == expected
