"""readers.tfrecord: features beyond DALI's, and damaged files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import torchdali
from tests.helpers.containers import write_tfrecord
from tests.helpers.lines import lines_of
from torchdali import fn, ops, pipeline_def
from torchdali.tfrecord import Features, FixedLenFeature, VarLenFeature, float32, int64, string

EXAMPLES = [{"image": bytes([i]) * (50 + i), "label": [i]} for i in range(5)]
FEATURES = {"image": FixedLenFeature((), string, ""), "label": FixedLenFeature([], int64, -1)}


@pytest.fixture
def records(tmp_path: Path) -> tuple[str, str]:
    return write_tfrecord(tmp_path / "a.tfrecord", EXAMPLES)


def pipe(features: Any = FEATURES, batch_size: int = 5, **options: Any) -> Any:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None)
    def define() -> Any:
        return tuple(fn.readers.tfrecord(features=features, name="Reader", **options).values())

    return define()


def labels(made: Any) -> list[int]:
    try:
        return [int(x) for x in made.run()[1].as_array()]
    finally:
        made.close()


def test_an_index_is_optional(records: tuple[str, str]) -> None:
    assert labels(pipe(path=records[0])) == [0, 1, 2, 3, 4]


def test_a_missing_index_is_written_with_a_warning(records: tuple[str, str]) -> None:
    index = Path(records[1])
    wanted = index.read_text()
    index.unlink()
    with pytest.warns(UserWarning, match="does not exist") as said:
        assert labels(pipe(path=records[0], index_path=records[1])) == [0, 1, 2, 3, 4]
    assert index.read_text() == wanted
    assert ["fn.readers.tfrecord(" in line for line in lines_of(said)] == [True]


def test_saved_and_loaded(records: tuple[str, str]) -> None:
    made = pipe(path=records[0])
    again = torchdali.Pipeline.deserialize(made.serialize())
    assert labels(again) == labels(made)


def test_the_class_and_the_old_names(records: tuple[str, str]) -> None:
    for make in (ops.readers.TFRecord, ops.TFRecordReader):
        made = torchdali.Pipeline(5, 1, None)
        with made, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            outputs = make(path=records[0], features=FEATURES)()
            made.set_outputs(outputs["image"], outputs["label"])
        assert labels(made) == [0, 1, 2, 3, 4]


def test_defaults(records: tuple[str, str]) -> None:
    features = {
        "text": FixedLenFeature((), string, "none"), "more": FixedLenFeature([3], int64, 8),
        "some": VarLenFeature(float32, 0.25), "label": FixedLenFeature([3], int64, 8),
    }  # fmt: skip
    made = pipe(features, batch_size=2, path=records[0])
    text, more, some, label = made.run()
    assert bytes(text.at(1)) == b"none"
    assert more.as_array().tolist() == [8, 8] and some.as_array().shape == (2, 0)
    assert label.as_array().tolist() == [[0, 8, 8], [1, 8, 8]]
    made.close()


@pytest.mark.parametrize("partial", [[], [4]])
@pytest.mark.parametrize("without", [{}, {"box": []}], ids=["left out", "empty"])
@pytest.mark.parametrize("first", [0, 2])
def test_a_missing_feature_of_variable_length_is_empty(
    tmp_path: Path, partial: list[int], without: dict[str, Any], first: int
) -> None:
    examples: list[Any] = [{"label": [i], "box": [float(i)] * 8} for i in range(3)]
    examples[first] = {"label": [first], **without}
    path, index = write_tfrecord(tmp_path / "a.tfrecord", examples)
    features = {"box": VarLenFeature(partial, float32, 0.5) if partial else VarLenFeature(float32, 0.5)}

    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def boxes() -> Any:
        return fn.readers.tfrecord(path=path, index_path=index, features=features)["box"]

    full, none = ((2, 4), (0, 4)) if partial else ((8,), (0,))
    assert boxes().run()[0].shape() == [none if i == first else full for i in range(3)]


@pytest.mark.parametrize("first", [0, 3], ids=["the first record", "the last"])
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("cast", [False, True])
def test_a_record_without_a_feature_that_others_of_its_batch_have(
    tmp_path: Path, first: int, debug: bool, cast: bool
) -> None:
    examples: list[Any] = [{"label": [i], "box": [1.0, 2.0]} for i in range(4)]
    del examples[first]["box"]
    path, index = write_tfrecord(tmp_path / "a.tfrecord", examples)
    features = {"label": FEATURES["label"], "box": FixedLenFeature([2], float32, 0.0)}

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, debug=debug)
    def boxes() -> Any:
        found = fn.readers.tfrecord(path=path, index_path=index, features=features)["box"]
        return fn.cast(found, dtype=torchdali.types.INT32) if cast else found

    place = Path(index).read_text().splitlines()[first].split()[0]
    with pytest.raises(RuntimeError) as caught:
        boxes().run()
    text = str(caught.value)
    assert f"on sample {first} of batch 0 ({path} at index {place})" in text
    assert f"the record {path} at index {place} lacks the feature 'box'" in text


def test_numbers_that_are_not_packed(tmp_path: Path) -> None:
    from torchdali.formats import tfrecord as format
    from torchdali.formats.protobuf import FIXED32, VARINT, tag, write_bytes, write_varint

    integers = b"".join(tag(1, VARINT) + write_varint(v) for v in (3, -4))
    floats = b"".join(tag(1, FIXED32) + b"\0\0\x80?" for _ in range(3))
    entry = [
        write_bytes(2, write_bytes(3, integers)) + write_bytes(1, b"i"),  # the key after the value
        write_bytes(1, b"f") + write_bytes(2, write_bytes(2, floats)),
    ]
    with open(tmp_path / "a", "wb") as file:
        format.write_record(file, write_bytes(1, b"".join(write_bytes(1, e) for e in entry)))
    features = {"i": VarLenFeature(int64, 0), "f": FixedLenFeature([3], float32, 0.0)}
    made = pipe(features, batch_size=1, path=str(tmp_path / "a"))
    i, f = made.run()
    assert i.at(0).tolist() == [3, -4] and f.at(0).tolist() == [1.0] * 3
    made.close()


def test_different_dtypes_are_an_error(records: tuple[str, str]) -> None:
    for feature in (FixedLenFeature([1], float32, 0.0), FixedLenFeature((), string, "")):
        made = pipe({"label": feature}, path=records[0])
        with pytest.raises(RuntimeError, match=r"must be .*, got int64"):
            made.run()
        made.close()


def test_checksums_are_verified_on_request(records: tuple[str, str]) -> None:
    path = Path(records[0])
    data = bytearray(path.read_bytes())
    data[60] ^= 1  # inside the first image
    path.write_bytes(data)
    assert labels(pipe(path=records[0])) == [0, 1, 2, 3, 4]
    made = pipe(path=records[0], verify=True)
    with pytest.raises(RuntimeError, match=r"a\.tfrecord at index 0: the payload doesn't match its checksum"):
        made.run()
    made.close()


@pytest.mark.parametrize("kept", [5, 20, 400])
def test_truncated_files(records: tuple[str, str], kept: int) -> None:
    path = Path(records[0])
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(RuntimeError, match=r"a\.tfrecord: "):
        pipe(path=records[0]).build()
    made = pipe(path=records[0], index_path=records[1])
    with pytest.raises(RuntimeError, match="cannot read"):
        made.run()
    made.close()


def test_damaged_records_can_be_skipped(records: tuple[str, str]) -> None:
    lines = Path(records[1]).read_text().splitlines()
    lines[2] = "3 5"
    Path(records[1]).write_text("\n".join(lines))

    @pipeline_def(batch_size=5, num_threads=2, device_id=None, bad_samples="skip")
    def define() -> Any:
        return tuple(fn.readers.tfrecord(features=FEATURES, path=records[0], index_path=records[1]).values())

    assert labels(define()) == [0, 1, 3, 4]


def test_features_survive_json() -> None:
    made = Features.from_argument({"a": [True, [2], 0, -1]})
    assert made == {"a": FixedLenFeature([2], int64, -1)}


@pytest.mark.parametrize("debug", [False, True])
def test_delivered_samples_may_be_modified(records: tuple[str, str], debug: bool) -> None:
    @pipeline_def(batch_size=5, num_threads=2, device_id=None, debug=debug, prefetch_queue_depth=1)
    def define() -> Any:
        return tuple(fn.readers.tfrecord(features=FEATURES, path=records[0]).values())

    made = define()
    for _ in range(3):
        images, _labels = made.run()
        for i in range(5):
            image = images.samples()[i]
            assert bytes(image.numpy()) == EXAMPLES[i]["image"]
            image.fill_(99)
    made.close()
