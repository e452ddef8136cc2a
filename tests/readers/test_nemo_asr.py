"""readers.nemo_asr: input that the real DALI does not reject, and manifests in lists of bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.encoded_audio import speech, wav
from tests.helpers.lines import lines_of
from torchdali import fn, pipeline_def


def read(tmp_path: Path, *lines: Any, **arguments: Any) -> list[Any]:
    (tmp_path / "a.wav").write_bytes(wav(speech(80)).tobytes())
    (tmp_path / "m.json").write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return tuple(fn.readers.nemo_asr(manifest_filepaths=str(tmp_path / "m.json"), read_idxs=True, **arguments))

    with define() as pipe:
        return [[sample.tolist() for sample in output.samples()] for output in pipe.run()]


def test_parts_of_a_recording(tmp_path: Path) -> None:
    path = str(tmp_path / "a.wav")
    samples, rates, texts, indices = read(
        tmp_path, {"audio_filepath": path, "text": "a"}, {"audio_filepath": path, "offset": 0.0025, "duration": 0.005}
    )
    assert samples[1] == samples[0][20:60] and len(samples[0]) == 80
    assert rates == [8000.0, 8000.0] and texts == [[97], []] and indices == [[0], [1]]


def test_lines_without_a_path_are_skipped_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"m\.json, line 2 has no audio_filepath") as said:
        found = read(tmp_path, "", "{", {"audio_filepath": str(tmp_path / "a.wav")})
    assert found[3] == [[0], [0]]
    assert all("fn.readers.nemo_asr(" in line for line in lines_of(said))


@pytest.mark.parametrize("line, match", [
    ({"duration": "1"}, "line 1: duration must be a number of seconds, got '1'"),
    ({"offset": True}, "offset must be a number"),
    ({"duration": float("inf")}, "duration must be a number"),
    ({"text": 5}, "text must be a string, got 5"),
    ({"audio_filepath": [1]}, "audio_filepath must be a string"),
])  # fmt: skip
def test_values_of_other_types(tmp_path: Path, line: dict[str, Any], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        read(tmp_path, {"audio_filepath": str(tmp_path / "a.wav"), **line})


def test_damaged_recordings_are_bad_samples(tmp_path: Path) -> None:
    (tmp_path / "bad.wav").write_bytes(b"nothing")
    with pytest.raises(RuntimeError, match=r"bad\.wav"):
        read(tmp_path, {"audio_filepath": str(tmp_path / "bad.wav")})


def test_null_equals_a_missing_value(tmp_path: Path) -> None:
    path = str(tmp_path / "a.wav")
    nulls = read(tmp_path, {"audio_filepath": path, "duration": None, "offset": None, "text": None})
    assert nulls == read(tmp_path, {"audio_filepath": path})


@pytest.mark.parametrize("encoding, end", [("utf-8-sig", "\n"), ("utf-8", "\r\n"), ("utf-8-sig", "\r\n")])
def test_manifests_of_other_systems(tmp_path: Path, encoding: str, end: str) -> None:
    (tmp_path / "a.wav").write_bytes(wav(speech(80)).tobytes())
    line = json.dumps({"audio_filepath": str(tmp_path / "a.wav"), "text": "é"}, ensure_ascii=False)
    (tmp_path / "m.json").write_bytes(f"{line}{end}{line}{end}".encode(encoding))

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.nemo_asr(manifest_filepaths=str(tmp_path / "m.json"), read_text=True)[-1]

    with define() as pipe:
        assert [bytes(text.tolist()).decode() for text in pipe.run()[0].samples()] == ["é", "é"]
