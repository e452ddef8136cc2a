"""Bad input: error messages, the pipeline's continuation, and the policies for bad samples."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.encoded_images import encoded, smooth_image
from torchdali import Pipeline, fn, pipeline_def
from torchdali.errors import PipelineError

SIZE = 16
GOOD = [encoded(np.full((40, 50, 3), level, np.uint8), "png") for level in range(10)]
JPEG = encoded(smooth_image(60, 80), "jpeg", quality=90)


def huge_png() -> bytes:
    """Return a PNG whose header states 200000 x 200000 pixels, without pixel data."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 200_000, 200_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + header
        + struct.pack(">I", zlib.crc32(header))
    )


def huge_jpeg() -> bytes:
    """Return a JPEG that states 65000 x 65000 pixels."""
    frame = JPEG.index(b"\xff\xc0") + 5
    return JPEG[:frame] + struct.pack(">HH", 65000, 65000) + JPEG[frame + 4 :]


BAD: dict[str, tuple[bytes | None, str, str]] = {
    # content (None: the file is missing), the failing operator, part of the message
    "truncated.jpg": (JPEG[: len(JPEG) // 2], "decoders.image", "truncated"),
    "header only.jpg": (JPEG[:30], "decoders.image", "JPEG"),
    "truncated.png": (GOOD[0][:60], "decoders.image", "PNG"),
    "empty.jpg": (b"", "readers.file", "is empty"),
    "text.jpg": (b"This is not an image.\n" * 5, "decoders.image", "unknown format"),
    "missing.jpg": (None, "readers.file", "No such file"),
    "huge.png": (huge_png(), "decoders.image", "200000"),
    "huge.jpg": (huge_jpeg(), "decoders.image", "65000"),
}


@pytest.fixture(params=BAD)
def bad(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Write ten files, of which the fifth is bad; return its name."""
    for i, content in enumerate(GOOD):
        (tmp_path / f"{i}.png").write_bytes(content)
    content = BAD[request.param][0]
    if content is not None:
        (tmp_path / request.param).write_bytes(content)
    return str(request.param)


def paths(folder: Path, bad: str | list[str]) -> list[str]:
    names = [f"{i}.png" for i in range(10)]
    for i, name in enumerate([bad] if isinstance(bad, str) else bad):
        names[4 + i] = name
    return [str(folder / name) for name in names]


def crops(files: list[str]) -> Any:
    data, label = fn.readers.file(files=files, name="Reader")
    images = fn.decoders.image(data)  # the line of the decoder
    return fn.crop(images, crop=[SIZE, SIZE]), label, data.source_info()


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[Pipeline] = []

    def make(
        files: list[str], batch_size: int = 5, define: Any = crops, **settings: Any
    ) -> Pipeline:
        settings = {"batch_size": batch_size, "num_threads": 2, "device_id": None, **settings}
        made.append(pipeline_def(**settings)(define)(files))
        return made[-1]

    yield make
    for pipe in made:
        pipe.close()


def levels(images: Any) -> list[int]:
    """Return the indices of the good files in the samples."""
    return [int(sample.float().mean().round()) for sample in images.samples()]


# ---------------------------------------------------------------- raise


@pytest.mark.parametrize("depth", [1, 3])
def test_an_error_names_file_operator_and_line(
    make: Any, tmp_path: Path, bad: str, depth: int
) -> None:
    pipe = make(paths(tmp_path, bad), prefetch_queue_depth=depth)
    _, operator, reason = BAD[bad]
    for epoch in range(2):
        with pytest.raises(PipelineError) as caught:
            pipe.run()
        message = str(caught.value)
        assert f"operator {operator!r} failed on sample 4 of batch {2 * epoch}" in message
        assert str(tmp_path / bad) in message and reason in message
        line = (
            "images = fn.decoders.image(data)"
            if operator == "decoders.image"
            else "fn.readers.file(files"
        )
        assert __file__ in message and line in message
        images, labels, _ = pipe.run()  # the pipeline continues
        assert levels(images) == labels.stack().flatten().tolist() == [5, 6, 7, 8, 9]


def test_the_class_follows_the_reason(make: Any, tmp_path: Path) -> None:
    (tmp_path / "0.png").write_bytes(GOOD[0])

    def define(files: list[str]) -> Any:
        return fn.crop(
            fn.decoders.image(fn.readers.file(files=files)[0]), crop_pos_x=7.0, crop=[2, 2]
        )

    with pytest.raises((ValueError, RuntimeError), match=r"crop.* failed on sample \d of batch 0"):
        make([str(tmp_path / "0.png")], define=define).run()


def test_bad_samples_from_python_are_located_too(make: Any) -> None:
    def define(files: list[str]) -> Any:
        data = fn.external_source(lambda: [np.frombuffer(GOOD[0], np.uint8), np.zeros(9, np.uint8)])
        return fn.decoders.image(data)

    pipe = make([], batch_size=2, define=define)
    for batch in range(2):
        with pytest.raises(
            PipelineError, match=rf"'decoders.image' failed on sample 1 of batch {batch}\n"
        ):
            pipe.run()


# ---------------------------------------------------------------- skip, replace


def test_skip_drops_the_sample(make: Any, tmp_path: Path, bad: str) -> None:
    pipe = make(paths(tmp_path, bad), bad_samples="skip")
    seen = []
    for _ in range(2):
        images, labels, infos = pipe.run()
        assert levels(images) == labels.stack().flatten().tolist()
        assert [bytes(info.tolist()).decode() for info in infos.samples()] == [
            str(tmp_path / f"{level}.png") for level in levels(images)
        ]
        seen += levels(images)
    assert seen == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    _reports(pipe, tmp_path / bad)


def test_replace_repeats_a_good_sample(make: Any, tmp_path: Path, bad: str) -> None:
    pipe = make(paths(tmp_path, bad), bad_samples="replace")
    batches = [pipe.run() for _ in range(2)]
    assert [levels(images) for images, _, _ in batches] == [[0, 1, 2, 3, 3], [5, 6, 7, 8, 9]]
    assert [labels.stack().flatten().tolist() for _, labels, _ in batches] == [
        [0, 1, 2, 3, 3],
        [5, 6, 7, 8, 9],
    ]
    _reports(pipe, tmp_path / bad)


def _reports(pipe: Pipeline, path: Path) -> None:
    _, operator, reason = BAD[path.name]
    (found,) = [sample for sample in pipe.bad_sample_report() if sample.batch < 2]
    assert (found.file, found.operator, found.batch, found.sample) == (str(path), operator, 0, 4)
    assert reason in found.reason


@pytest.fixture
def three_bad(tmp_path: Path) -> list[str]:
    """Write ten files, of which the fifth to seventh are bad."""
    for i, content in enumerate(GOOD):
        (tmp_path / f"{i}.png").write_bytes(content)
    for name in ("text.jpg", "truncated.jpg", "empty.jpg"):
        (tmp_path / name).write_bytes(BAD[name][0] or b"")
    return paths(tmp_path, ["text.jpg", "truncated.jpg", "empty.jpg"])


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("skip", [[0, 1, 2], [3], [7, 8], [9, 0, 1]]),
        ("replace", [[0, 1, 2], [3, 3, 3], [7, 7, 8], [9, 0, 1]]),
    ],
)
def test_several_bad_samples(
    make: Any, three_bad: list[str], policy: str, expected: list[list[int]], threads: int
) -> None:
    pipe = make(
        three_bad, batch_size=3, bad_samples=policy, num_threads=threads, prefetch_queue_depth=3
    )
    assert [levels(pipe.run()[0]) for _ in range(4)] == expected
    report = [
        (s.batch, s.sample, Path(s.file).name) for s in pipe.bad_sample_report() if s.batch < 4
    ]
    assert report == [(1, 1, "text.jpg"), (1, 2, "truncated.jpg"), (2, 0, "empty.jpg")]


def test_a_batch_of_bad_samples(make: Any, three_bad: list[str]) -> None:
    def define(files: list[str]) -> Any:
        images, label, _ = crops(files)
        flip = fn.random.coin_flip()
        return fn.crop_mirror_normalize(images, mirror=flip), fn.permute_batch(
            label, indices=fn.batch_permutation()
        )

    pipe = make(three_bad[4:7] + three_bad[:3], batch_size=3, define=define, bad_samples="skip")
    sizes = [tuple(len(output) for output in pipe.run()) for _ in range(4)]
    assert sizes == [(0, 0), (3, 3), (0, 0), (3, 3)]
    pipe = make(three_bad[4:7] + three_bad[:3], batch_size=3, bad_samples="replace")
    with pytest.raises(PipelineError, match=r"text\.jpg"):
        pipe.run()
    assert levels(pipe.run()[0]) == [0, 1, 2]


def test_an_exhausted_budget_is_an_error(make: Any, three_bad: list[str]) -> None:
    pipe = make(three_bad, batch_size=3, bad_samples="skip", max_bad_samples=2)
    assert [levels(pipe.run()[0]) for _ in range(2)] == [[0, 1, 2], [3]]
    with pytest.raises(PipelineError, match=r"empty\.jpg"):
        pipe.run()
    assert levels(pipe.run()[0]) == [9, 0, 1]


def test_later_operators_see_the_remaining_samples(make: Any, three_bad: list[str]) -> None:
    """Steps over the batch and a second chain, with random numbers of the records."""

    def define(files: list[str]) -> Any:
        images, label, _ = crops(files)
        number = fn.random.uniform()
        mean = fn.permute_batch(images, indices=fn.batch_permutation(seed=3))
        return fn.cast(mean, dtype=np.float32), label, number, fn.random.uniform(label, seed=5)

    whole = make(three_bad[:4] + three_bad[7:], batch_size=7, define=define, seed=1)
    parts = make(three_bad, batch_size=10, define=define, seed=1, bad_samples="skip")
    _, labels, numbers, like = parts.run()
    assert labels.stack().flatten().tolist() == [0, 1, 2, 3, 7, 8, 9]
    _, _, others, _ = whole.run()
    assert numbers.stack()[:4].tolist() == others.stack()[:4].tolist()
    assert like.shape() == [(1,)] * 7


def test_an_unknown_policy() -> None:
    with pytest.raises(ValueError, match=r"bad_samples must be .*, got 'ignore'"):
        Pipeline(batch_size=1, num_threads=1, bad_samples="ignore")


BOXES = np.full((2, 4), 0.5, np.float32)
FAILS_ALONE = {
    "bb_flip": (lambda data: fn.bb_flip(data), [BOXES, BOXES, np.ones((2, 3), np.float32)], "boxes must have 4 numbers"),
    "bbox_paste": (
        lambda data: fn.bbox_paste(data, ratio=2.0), [BOXES, BOXES, np.ones((2, 3), np.float32)], "boxes must have 4 numbers",
    ),
    "random_bbox_crop": (
        lambda data: fn.random_bbox_crop(data)[0], [BOXES, BOXES, BOXES + 1], r"boxes must be in \[0, 1\], got \[1.5",
    ),
    "random_crop_generator": (
        lambda data: fn.random_crop_generator(data)[0], [np.ones(2, int), np.ones(3, int), np.ones(4, int)],
        r"2 or 3 values \(HW or HWC\), got \[4\]",
    ),
    "roi_random_crop": (
        lambda data: fn.roi_random_crop(data, crop_shape=[5, 5], roi_start=[0, 0], roi_shape=[6, 6]),
        [np.ones((8, 8)), np.ones((6, 6)), np.ones((8, 4))], "It is 5 of 4 on one axis",
    ),
    "_any_pixel": (
        lambda data: fn.segmentation.random_mask_pixel(data), [np.ones((3, n), np.int32) for n in (2, 1, 0)],
        r"a mask must have at least one pixel, got the shape \(3, 0\)",
    ),
    "segmentation.select_masks": (
        lambda data: fn.segmentation.select_masks(
            data, np.array([[0, 0, 1], [1, 1, 2]], np.int32), np.ones((2, 2), np.float32)
        )[0],
        [np.array(ids, np.int32) for ids in ([0], [1, 0], [1, 1])], r"mask_ids must not repeat, got \[1, 1\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("operator", FAILS_ALONE)
def test_operators_over_the_batch_name_the_failing_sample(operator):
    define, samples, reason = FAILS_ALONE[operator]
    pipe = Pipeline(3, 1, None)
    pipe.set_outputs(define(fn.external_source(lambda: samples)))
    with pytest.raises(RuntimeError, match=rf"'{operator}' failed on sample 2 of batch 0(.|\n)*{reason}"):
        pipe.run()
    pipe.close()


def test_points_of_one_batch_have_equally_many_coordinates():
    points = [np.ones((2, n), np.float32) for n in (2, 2, 3)]
    pipe = Pipeline(3, 1, None)
    pipe.set_outputs(fn.coord_flip(fn.external_source(lambda: points)))
    with pytest.raises(RuntimeError, match="the same length in all samples, got 3 in sample 2 and 2 in sample 0"):
        pipe.run()
    pipe.close()
