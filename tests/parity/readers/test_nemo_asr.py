"""readers.nemo_asr against the real DALI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.encoded_audio import speech, wav
from tests.helpers.libraries import agree

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "readers.nemo_asr": "a duration or text of the wrong type is an error (DALI reads it as 0, or its process ends); "
    "`random_shuffle` shuffles the whole epoch",
}

LINES: dict[str, list[dict[str, Any]]] = {
    "plain": [{"text": "Hello"}, {"text": "ä\"b\\n\n"}, {}],
    "durations": [{"duration": 0.01}, {"duration": 0.02, "text": "a"}, {"duration": 0.03}],
    "parts": [{"offset": 0.0101, "duration": 0.01}, {"offset": 0.01012, "duration": 9}, {"offset": -1, "duration": 0.02006}],
    "rest": [{"offset": 0.01}, {"offset": 0.005, "duration": -1}, {"duration": 0}],
    "other keys": [{"x": {"a": [1, None]}, "y": True}],
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "all": {}, "indices": {"read_idxs": True}, "samples": {"read_sample_rate": False, "read_text": False},
    "channels": {"downmix": False}, "limits": {"min_duration": 0.02, "max_duration": 0.025, "read_idxs": True},
    "longest": {"max_duration": 0.02}, "resampled": {"sample_rate": 11025.0, "quality": 30.0}, "no rate": {"sample_rate": 0.0},
    "shards": {"num_shards": 2, "shard_id": 1, "pad_last_batch": True},
}  # fmt: skip


def manifest(folder: Path, lines: list[dict[str, Any]], name: str = "manifest.json") -> str:
    for channels in (1, 2):
        (folder / f"{channels}.wav").write_bytes(wav(speech(400, channels)).tobytes())
    named = [{"audio_filepath": str(folder / f"{i % 2 + 1}.wav"), **line} for i, line in enumerate(lines)]
    path = folder / name
    path.write_text("\n".join(map(json.dumps, named)) + "\n")
    return str(path)


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("lines", LINES)
def test_nemo_asr(tmp_path: Path, lines: str, arguments: str) -> None:
    paths = [manifest(tmp_path, LINES[lines], f"{i}.json") for i in range(2)]
    agree(lambda lib: lib.fn.readers.nemo_asr(manifest_filepaths=paths, **ARGUMENTS[arguments]), batch_size=4, atol=2e-7)


@pytest.mark.parametrize("dtype", ["INT16", "INT32", "INT8", "FLOAT16"])
def test_types(tmp_path: Path, dtype: str) -> None:
    path = manifest(tmp_path, LINES["parts"])
    agree(lambda lib: lib.fn.readers.nemo_asr(manifest_filepaths=path, dtype=getattr(lib.types, dtype)), batch_size=3)


@pytest.mark.parametrize("text", ["", "{nonsense", "[1]\n", '{"duration": 1}'])
def test_no_recordings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text)
    assert agree(lambda lib: lib.fn.readers.nemo_asr(manifest_filepaths=str(path))) is RuntimeError


@pytest.mark.parametrize("line", [{"audio_filepath": "/nowhere.wav"}, {"offset": 9.0}])
def test_what_cannot_be_read(tmp_path: Path, line: dict[str, Any]) -> None:
    path = manifest(tmp_path, [line])
    assert agree(lambda lib: lib.fn.readers.nemo_asr(manifest_filepaths=path)) is RuntimeError


def test_refused_arguments(tmp_path: Path) -> None:
    path = manifest(tmp_path, LINES["plain"])
    assert agree(lambda lib: lib.fn.readers.nemo_asr(manifest_filepaths=path, quality=120.0)) is RuntimeError
    assert agree(lambda lib: lib.fn.readers.nemo_asr(manifest_filepaths=[])) is RuntimeError
