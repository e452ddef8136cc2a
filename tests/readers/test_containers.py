"""torchdali.containers: indices, packing, checking; and their commands."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.helpers.containers import (
    SPARSE_FORMS,
    datum,
    link,
    sparse_member,
    write_lmdb,
    write_recordio,
    write_tar,
    write_tfrecord,
)
from tests.helpers.encoded_images import png
from torchdali import cli, fn, pipeline_def, types
from torchdali.containers import PackOptions, check, index, pack
from torchdali.tfrecord import FixedLenFeature, int64, string

COUNT = 12


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Write twelve smooth JPEG files of two classes."""
    for number in range(COUNT):
        folder = tmp_path / "images" / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        y, x = np.mgrid[: 40 + number, :60]
        pixels = np.stack([x * 4, y * 3, 255 - x - y], -1).astype(np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number:02}.jpg", quality=95)
    return tmp_path / "images"


def read(container: str, folder: Path) -> list[tuple[bytes, int]]:
    """Read all packed records, by their readers and indices."""
    ending = "tar" if container == "webdataset" else "tfrecord"
    paths = sorted(map(str, folder.glob(f"*.{ending}")))
    indices = [path.replace(f".{ending}", ".idx") for path in paths]

    @pipeline_def(batch_size=COUNT, num_threads=1, device_id=None)
    def define() -> Any:
        if container == "webdataset":
            return tuple(fn.readers.webdataset(paths=paths, index_paths=indices, ext=["jpg;webp;npy", "cls"]))
        features = {"image": FixedLenFeature((), string, ""), "label": FixedLenFeature([1], int64, -1)}
        return tuple(fn.readers.tfrecord(path=paths, index_path=indices, features=features).values())

    with define() as pipe:
        data, labels = (output.samples() for output in pipe.run())
    numbers = [int(bytes(v.numpy()) if container == "webdataset" else v) for v in labels]
    return [(bytes(d.numpy()), n) for d, n in zip(data, numbers, strict=True)]


def contents(folder: Path) -> list[tuple[bytes, int]]:
    return [(path.read_bytes(), int(path.parent.name[-1])) for path in sorted(folder.rglob("*.jpg"))]


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# ---------------------------------------------------------------- packing


@pytest.mark.parametrize("container", ["webdataset", "tfrecord"])
def test_a_folder_is_packed_unchanged(images: Path, tmp_path: Path, container: str) -> None:
    seen: list[tuple[int, int]] = []
    options = PackOptions(to=container, shard_size=10000)
    report = pack(str(images), str(tmp_path / "out"), options, jobs=2, progress=lambda *done: seen.append(done))
    assert read(container, tmp_path / "out") == contents(images)
    assert report.samples == COUNT and len(report.shards) > 2 and report.kept == 0 and not report.psnr
    assert seen[-1] == (COUNT, COUNT) and [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(os.path.getsize(path) < 15000 for path in report.shards)
    assert (tmp_path / "out/classes.txt").read_text() == "class0\nclass1\n"


@pytest.mark.parametrize("form, extension", [("jpeg", b"\xff\xd8"), ("webp", b"RIFF"), ("raw", b"\x93NUMPY")])
def test_images_are_reencoded(images: Path, tmp_path: Path, form: str, extension: bytes) -> None:
    report = pack(str(images), str(tmp_path / "out"), PackOptions(format=form, shorter=24))
    found = read("webdataset", tmp_path / "out")
    assert all(data.startswith(extension) for data, _ in found)
    assert [label for _, label in found] == [label for _, label in contents(images)]
    decode = fn.decoders.numpy if form == "raw" else fn.decoders.image
    sizes = [np.asarray(decode(np.frombuffer(data, np.uint8).copy())).shape[:2] for data, _ in found]
    assert all(min(size) == 24 for size in sizes)
    assert (form == "raw") == (not report.psnr) and all(value > 30 for value in report.psnr)


def test_small_images_are_packed_unchanged(images: Path, tmp_path: Path) -> None:
    pack(str(images), str(tmp_path / "out"), PackOptions(shorter=1000))
    assert read("webdataset", tmp_path / "out") == contents(images)


@pytest.mark.parametrize("container", ["webdataset", "tfrecord", "mxnet", "caffe"])
def test_containers(images: Path, tmp_path: Path, container: str) -> None:
    samples = contents(images)
    if container == "webdataset":
        source = write_tar(tmp_path / "a.tar", [(f"{i}.{e}", d) for i, (image, n) in enumerate(samples) for e, d in (("jpg", image), ("cls", b"%d" % n))])
    elif container == "tfrecord":
        source = str(tmp_path / "a.tfrecord")
        write_tfrecord(Path(source), [{"image/encoded": image, "image/class/label": [n]} for image, n in samples])
    elif container == "mxnet":
        source = str(tmp_path / "a.rec")
        write_recordio(Path(source), [(image, [float(n)]) for image, n in samples])
    else:
        pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")
        source = str(write_lmdb(tmp_path / "db", [datum(image, n) for image, n in samples]))
    pack(str(source), str(tmp_path / "out"))
    assert read("webdataset", tmp_path / "out") == samples


def test_an_interrupted_run_is_continued(images: Path, tmp_path: Path) -> None:
    options = PackOptions(shard_size=6000, shorter=30)
    pack(str(images), str(tmp_path / "whole"), options)

    def stop(done: int, count: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(str(images), str(tmp_path / "out"), options, progress=stop)
    left = shards(tmp_path / "out")
    assert any(name.endswith(".part") for name in left) and any(name.endswith(".tar") for name in left)
    report = pack(str(images), str(tmp_path / "out"), options, jobs=2)
    assert 0 < report.kept < len(report.shards) and report.samples < COUNT
    assert shards(tmp_path / "out") == shards(tmp_path / "whole")


@pytest.mark.slow
def test_a_killed_run_is_continued(images: Path, tmp_path: Path) -> None:
    arguments = [str(images), str(tmp_path / "out"), "--shard-size", "5K", "--shorter", "30"]
    command = [sys.executable, "-m", "torchdali", "pack", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list((tmp_path).glob("out/*.tar")):
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert cli.main(["pack", *arguments]) == 0
    arguments[1] = str(tmp_path / "whole")
    assert cli.main(["pack", *arguments]) == 0
    assert shards(tmp_path / "out") == shards(tmp_path / "whole")


def test_files_of_a_run_that_was_killed_are_removed(images: Path, tmp_path: Path) -> None:
    out, options = tmp_path / "out", PackOptions(shard_size=5000, shorter=30)
    pack(str(images), str(out), options)
    whole = shards(out)
    for name in ("shard-000001.idx.123.part", "shard-000002.tar.part", "mine.part"):
        (out / name).write_bytes(b"half")
    (out / "shard-000002.tar").unlink()
    pack(str(images), str(out), options)
    assert shards(out) == {**whole, "mine.part": b"half"}


def test_another_pack_in_the_folder(images: Path, tmp_path: Path) -> None:
    pack(str(images), str(tmp_path / "out"))
    with pytest.raises(RuntimeError, match="same source and options"):
        pack(str(images), str(tmp_path / "out"), PackOptions(quality=50))
    (tmp_path / "out/pack.json").write_text("{")
    with pytest.raises(RuntimeError, match=r"pack\.json is damaged"):
        pack(str(images), str(tmp_path / "out"))


def test_damaged_images(images: Path, tmp_path: Path) -> None:
    (images / "class1/03.jpg").write_bytes(b"\xff\xd8\xff nothing")
    with pytest.raises(RuntimeError, match=r"cannot pack .*03\.jpg"):
        pack(str(images), str(tmp_path / "a"), PackOptions(shorter=30))
    report = pack(str(images), str(tmp_path / "b"), PackOptions(shorter=30, skip=True))
    assert report.samples == COUNT - 1 and re.search(r"03\.jpg", report.skipped[0])
    assert "skipped: class1/03.jpg" in str(report)


@pytest.mark.parametrize(
    ("content", "decoded"),
    [(b"rubbish", False), (b"", False), (b"version https://git-lfs.github.com/spec/v1\n", False), (None, True)],
)
def test_images_that_are_not_reencoded_are_checked(
    images: Path, tmp_path: Path, content: bytes | None, decoded: bool
) -> None:
    path = images / "class1/03.jpg"
    path.write_bytes(path.read_bytes()[:200] if content is None else content)
    if not decoded:
        with pytest.raises(RuntimeError, match=r"cannot pack class1/03\.jpg.*--skip"):
            pack(str(images), str(tmp_path / "a"))
    report = pack(str(images), str(tmp_path / "b"), PackOptions(skip=True))
    assert report.samples == COUNT - 1 and len(report.skipped) == 1
    assert not check([str(tmp_path / "b")])[0]


def test_broken_links(images: Path, tmp_path: Path) -> None:
    (images / "class1/99.jpg").symlink_to(tmp_path / "none.jpg")
    with pytest.raises(RuntimeError, match=r"cannot pack class1/99\.jpg: No such file"):
        pack(str(images), str(tmp_path / "a"))
    report = pack(str(images), str(tmp_path / "b"), PackOptions(skip=True))
    assert report.samples == COUNT and report.skipped == ["class1/99.jpg: No such file or directory"]
    assert [p.message for p in check([str(images)])[0]] == [f"cannot open {images / 'class1/99.jpg'}: No such file or directory"]


def test_audio_is_packed_unchanged(tmp_path: Path) -> None:
    (tmp_path / "in/a").mkdir(parents=True)
    (tmp_path / "in/a/x.wav").write_bytes(b"RIFF, of whatever kind")
    assert pack(str(tmp_path / "in"), str(tmp_path / "out"), PackOptions(skip=True)).samples == 1


@pytest.mark.parametrize("to", ["webdataset", "tfrecord"])
def test_check_counts_samples(images: Path, tmp_path: Path, to: str) -> None:
    shards = pack(str(images), str(tmp_path / "out"), PackOptions(to=to, shard_size=20_000)).shards
    assert check([str(tmp_path / "out")]) == ([], {"samples": COUNT, "files": len(shards), "unknown": 0})


@pytest.mark.parametrize("options", [{"to": "zip"}, {"format": "gif"}, {"quality": 0}, {"shard_size": 0}, {"shorter": 0}])
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError):
        PackOptions(**options)


def test_nothing_to_pack(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no such folder or container"):
        pack(str(tmp_path / "none"), str(tmp_path / "out"))
    (tmp_path / "a").mkdir()
    for path in (tmp_path, tmp_path / "a"):
        with pytest.raises(RuntimeError, match=rf"no files found to pack: {path} has neither class folders"):
            pack(str(path), str(tmp_path / "out"))


@pytest.mark.parametrize("to", ["webdataset", "tfrecord"])
def test_nothing_remains_after_errors(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str) -> None:
    contents = {path: path.read_bytes() for path in images.rglob("*.jpg")}
    for path in contents:
        path.write_bytes(b"rubbish")
    command = ["pack", str(images), str(tmp_path / "out"), "--skip", "--to", to]
    assert cli.main(command) == 1
    assert f"no sample of {images} can be packed: all {COUNT} failed. The first error: class0/00.jpg: " in capsys.readouterr().err
    assert os.listdir(tmp_path / "out") == ["classes.txt"]
    for path, content in contents.items():
        path.write_bytes(content)
    assert cli.main(command) == 0


def test_a_shard_without_samples_is_not_written(images: Path, tmp_path: Path) -> None:
    for path in (images / "class0").iterdir():
        path.write_bytes(b"x" * path.stat().st_size)
    report = pack(str(images), str(tmp_path / "out"), PackOptions(skip=True, shard_size=1))
    assert len(report.shards) == report.samples == COUNT // 2 == len(report.skipped)
    assert read("webdataset", tmp_path / "out") == contents(images)[COUNT // 2 :] * 2  # two epochs


# ------------------------------------------------------ images that are not photos


RNG = np.random.default_rng(0)
CLASSES = np.repeat(np.repeat(RNG.integers(0, 5, (16, 16)), 8, 0), 8, 1).astype(np.uint8)
COLORS = RNG.integers(0, 256, (256, 3)).astype(np.uint8)


def with_palette(places: np.ndarray[Any, Any], **more: Any) -> PIL.Image.Image:
    image = PIL.Image.fromarray(places)
    image.putpalette(COLORS.tobytes())
    for name, value in more.items():
        image.info[name] = value
    return image


def blocks(places: np.ndarray[Any, Any], by: int) -> np.ndarray[Any, Any]:
    """Return the pixels of blocks for nearest-neighbor shrinking: all pixels of a block are equal."""
    return places[by // 2 :: by, by // 2 :: by]


MAPS: dict[str, tuple[PIL.Image.Image, str, str]] = {  # image, format of the file, mode of the result
    "palette": (with_palette(CLASSES), "PNG", "P"),
    "palette of noise": (with_palette(RNG.integers(0, 256, (128, 128), dtype=np.uint8)), "PNG", "P"),
    "palette of a BMP": (with_palette(CLASSES), "BMP", "P"),
    "palette of a TIFF": (with_palette(CLASSES), "TIFF", "P"),
    "gray": (PIL.Image.fromarray(CLASSES), "PNG", "L"),
    "gray, noise of a few classes": (PIL.Image.fromarray(RNG.integers(0, 20, (128, 128), dtype=np.uint8)), "PNG", "L"),
    "gray of a BMP": (PIL.Image.fromarray(CLASSES), "BMP", "L"),
    "16 bits": (PIL.Image.fromarray(CLASSES.astype(np.uint16) * 1000 + 7), "PNG", "I;16"),
    "colors": (PIL.Image.fromarray(COLORS[CLASSES]), "PNG", "RGB"),
    "colors of a WebP": (PIL.Image.fromarray(COLORS[CLASSES]), "WEBP", "RGB"),
}


def packed(image: PIL.Image.Image, tmp_path: Path, kind: str = "PNG", **options: Any) -> tuple[PIL.Image.Image, Any]:
    (tmp_path / "in/a").mkdir(parents=True)
    image.save(tmp_path / f"in/a/0.{kind.lower()}", kind, **({"lossless": True} if kind == "WEBP" else {}))
    report = pack(str(tmp_path / "in"), str(tmp_path / "out"), PackOptions(**options))
    with tarfile.open(report.shards[0]) as archive:
        (member,) = (m for m in archive if not m.name.endswith("cls"))
        data = archive.extractfile(member).read()  # type: ignore[union-attr]
    return PIL.Image.open(io.BytesIO(data)), report


@pytest.mark.parametrize("format", [None, "jpeg", "webp"])
@pytest.mark.parametrize("case", MAPS)
def test_label_maps_keep_their_numbers(tmp_path: Path, case: str, format: str | None) -> None:
    image, kind, mode = MAPS[case]
    found, report = packed(image, tmp_path, kind, shorter=16, format=format)
    assert (found.format, found.mode, found.size) == ("PNG", mode, (16, 16)) and report.lossless == 1
    np.testing.assert_array_equal(np.asarray(found), blocks(np.asarray(image), 8))
    if mode == "P":
        assert bytes(found.getpalette("RGB")) == COLORS.tobytes()  # type: ignore[arg-type]


@pytest.mark.parametrize("format", ["jpeg", "webp"])
@pytest.mark.parametrize("case", MAPS)
def test_label_maps_of_the_same_size_are_unchanged(tmp_path: Path, case: str, format: str) -> None:
    image, kind, mode = MAPS[case]
    found, report = packed(image, tmp_path, kind, format=format)
    assert (found.format, found.mode) == (kind, mode) and report.lossless == 0


@pytest.mark.parametrize("alpha", [3, b"\x00\x80\xff"])
def test_transparent_colors_of_a_palette(tmp_path: Path, alpha: int | bytes) -> None:
    image = with_palette(CLASSES, transparency=alpha)
    found, _ = packed(image, tmp_path, shorter=16)
    np.testing.assert_array_equal(np.asarray(found.convert("RGBA")), blocks(np.asarray(image.convert("RGBA")), 8))


PHOTO = (np.add.outer(np.arange(96) * 300, np.arange(128) * 200) % 65536).astype(np.uint16)
BYTES = (PHOTO >> 8).astype(np.uint8)


@pytest.mark.parametrize("format", [None, "jpeg"])
def test_sixteen_bits_are_preserved(tmp_path: Path, format: str | None) -> None:
    found, _ = packed(PIL.Image.fromarray(PHOTO), tmp_path, shorter=48, format=format)
    assert found.mode == "I;16" and found.size == (64, 48)
    wanted = np.asarray(fn.resize(PHOTO[..., None], resize_shorter=48.0))[..., 0]
    np.testing.assert_array_equal(np.asarray(found), wanted)
    assert len(np.unique(np.asarray(found) & 255)) > 100


def test_colors_of_sixteen_bits(tmp_path: Path) -> None:
    pixels = np.stack([PHOTO, PHOTO.T[:96, :96].repeat(2, 1)[:, :128], PHOTO[::-1]], -1)
    (tmp_path / "in/a").mkdir(parents=True)
    (tmp_path / "in/a/0.png").write_bytes(png(pixels, 2, 16))
    report = pack(str(tmp_path / "in"), str(tmp_path / "out"), PackOptions(shorter=48))
    with tarfile.open(report.shards[0]) as archive:
        data = archive.extractfile("000000000.png").read()  # type: ignore[union-attr]
    found = fn.decoders.image(np.frombuffer(data, np.uint8), output_type=types.ANY_DATA, dtype=types.UINT16)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(fn.resize(pixels, resize_shorter=48.0)))


@pytest.mark.parametrize(
    "mode, format, expected",
    [("L", None, ("PNG", "L")), ("L", "jpeg", ("JPEG", "RGB")), ("RGBA", None, ("PNG", "RGBA")), ("LA", None, ("PNG", "LA")),
     ("RGBA", "webp", ("WEBP", "RGB")), ("RGB", None, ("JPEG", "RGB")), ("RGB", "webp", ("WEBP", "RGB"))],
)  # fmt: skip
def test_photos(tmp_path: Path, mode: str, format: str | None, expected: tuple[str, str]) -> None:
    planes = [BYTES, BYTES[::-1], BYTES[:, ::-1], 255 - BYTES][: len(mode)]
    image = PIL.Image.merge(mode, [PIL.Image.fromarray(plane) for plane in planes])
    found, report = packed(image, tmp_path, shorter=48, format=format)
    assert (found.format, found.mode, found.size) == (*expected, (64, 48))
    assert report.lossless == (expected[0] == "PNG")
    if expected[0] == "PNG":
        pixels = np.stack(planes, -1)
        np.testing.assert_array_equal(np.asarray(found).reshape(48, 64, -1), np.asarray(fn.resize(pixels, resize_shorter=48.0)))


@pytest.mark.parametrize("case", ["palette", "gray", "16 bits", "colors"])
def test_raw_pixels_of_label_maps(tmp_path: Path, case: str) -> None:
    image, kind, mode = MAPS[case]
    (tmp_path / "in/a").mkdir(parents=True)
    image.save(tmp_path / f"in/a/0.{kind.lower()}")
    report = pack(str(tmp_path / "in"), str(tmp_path / "out"), PackOptions(shorter=16, format="raw"))
    with tarfile.open(report.shards[0]) as archive:
        found = np.load(io.BytesIO(archive.extractfile("000000000.npy").read()))  # type: ignore[union-attr]
    wanted = np.asarray(image.convert("RGB") if mode == "P" else image)
    np.testing.assert_array_equal(found, blocks(wanted.reshape(128, 128, -1), 8))


def test_floats_are_not_shrunk(tmp_path: Path) -> None:
    found, _ = packed(PIL.Image.fromarray(PHOTO.astype(np.float32)), tmp_path, "TIFF", shorter=48)
    assert found.mode == "F" and found.size == (128, 96)


# ---------------------------------------------------------------- indices


def test_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [{"x": [1]}, {"x": [2, 3]}])
    write_tar(tmp_path / "a.tar", [("a.jpg", b"1"), ("b.jpg", b"2")])
    write_recordio(tmp_path / "a.rec", [(b"abc", [1.0])])
    for kind, name in (("tfrecord", "a.tfrecord"), ("webdataset", "a.tar"), ("mxnet", "a.rec")):
        assert cli.main(["index", kind, str(tmp_path / name), "--output", str(tmp_path)]) == 0
        path = tmp_path / "a.idx"
        assert path.read_text()
        assert cli.main(["index", kind, str(tmp_path / name)]) == 1
        assert "already exists" in capsys.readouterr().err
        assert index(kind, str(tmp_path / name), force=True)[0] == str(path)
        path.unlink()


@pytest.mark.parametrize("kind, pattern", [("tfrecord", r"\*\.tfrecord"), ("webdataset", r"\*\.tar"), ("mxnet", r"\*\.rec")])
def test_an_index_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, pattern: str) -> None:
    assert cli.main(["index", kind, str(tmp_path)]) == 1
    assert re.search(rf"{tmp_path} must be a file, .*: pass the files, for example {tmp_path}/{pattern}$", capsys.readouterr().err.strip())


# ---------------------------------------------------------------- checking


def test_check_finds_broken_files(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(images)]) == 0
    (images / "class0/04.jpg").write_bytes((images / "class0/04.jpg").read_bytes()[:200])
    samples = contents(images)
    write_tfrecord(images / "a.tfrecord", [{"image": image, "label": [n]} for image, n in samples[:2]])
    data = bytearray((images / "a.tfrecord").read_bytes())
    data[len(data) // 2] ^= 1
    (images / "a.tfrecord").write_bytes(data)
    write_tar(images / "a.tar", [("a.jpg", samples[0][0]), ("a.jpg", samples[1][0]), ("../b.cls", b"1")])
    write_tar(images / "b.tar", [("a.jpg", b"nothing")])
    (images / "c.tar").write_bytes((images / "a.tar").read_bytes()[:1000])
    write_recordio(images / "a.rec", [(samples[0][0], [1.0]), (samples[1][0], [2.0])])
    (images / "a.rec").write_bytes((images / "a.rec").read_bytes()[:-100])
    np.save(images / "a.npy", np.ones(3))
    (images / "b.npy").write_bytes((images / "a.npy").read_bytes()[:-4])
    (images / "notes.txt").write_text("x")
    problems, counts = check([str(images)])
    found = {(os.path.basename(p.path), p.offset is None, p.message.split(",")[0][:24]) for p in problems}
    names = sorted(name for name, _, _ in found)
    assert names == ["04.jpg", "a.rec", "a.tar", "a.tar", "a.tfrecord", "b.npy", "b.tar", "c.tar"], problems
    assert counts["unknown"] == 1 and counts["files"] == COUNT + 7
    assert any("payload doesn't match its checksum" in p.message and p.offset for p in problems)
    assert any("second member" in p.message for p in problems) and any("leads out" in p.message for p in problems)
    assert len(check([str(images)], decode=False)[0]) == len(problems) - 2
    assert cli.main(["check", str(images)]) == 1
    assert f"{images}/b.tar at 512: " in capsys.readouterr().out
    assert cli.main(["check", str(tmp_path / "none")]) == 1


def test_check_names_folders_that_are_not_classes(images: Path) -> None:
    for name in ("empty", ".ipynb_checkpoints", ".git/objects", "annotations"):
        (images / name).mkdir(parents=True)
    (images / "annotations/a.txt").write_text("x")
    found = {os.path.basename(p.path): p.message for p in check([str(images)])[0]}
    assert found == {".ipynb_checkpoints": "readers.file reads this hidden folder as a class", "empty": "the folder is empty: a class without samples"}
    assert not check([str(images.parent)])[0]


def test_hidden_names_are_not_packed(images: Path, tmp_path: Path) -> None:
    expected = [(data, 2 * label) for data, label in contents(images)]
    (images / ".ipynb_checkpoints").mkdir()
    (images / "class0/._00.jpg").write_bytes(b"of macOS")
    (images / "class00").mkdir()
    with pytest.warns(UserWarning, match="'class00'; the classes keep their labels"):
        pack(str(images), str(tmp_path / "out"))
    assert read("webdataset", tmp_path / "out") == expected
    assert (tmp_path / "out/classes.txt").read_text() == "class0\nclass00\nclass1\n"


def test_the_report_of_the_command(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pack", str(images), str(tmp_path / "out"), "--shorter", "20", "--jobs", "2", "--shard-size", "1M"]) == 0
    out = capsys.readouterr().out
    assert f"{COUNT} samples in 1 shards" in out and "dB" in out
    assert json.loads((tmp_path / "out/pack.json").read_text())["starts"] == [0]
    with pytest.raises(SystemExit):
        cli.main(["pack", str(images), str(tmp_path / "out"), "--shard-size", "1X"])


# ---------------------------------------------------------------- sparse members and links


@pytest.fixture(params=SPARSE_FORMS)
def sparse(request: pytest.FixtureRequest, images: Path, tmp_path: Path) -> Path:
    """Write an archive of a sparse image, a hard link to it, and a symbolic link."""
    data = (images / "class0/00.jpg").read_bytes()
    half = len(data) // 2
    extents = [(0, half), (half, len(data) - half), (len(data) + 4096, 0)]
    whole = sparse_member(request.param, "a.jpg", len(data) + 4096, extents, data)
    rest = write_tar(tmp_path / "rest.tar", [("b.jpg", link("a.jpg")), ("c.jpg", "a.jpg")])
    (tmp_path / "a.tar").write_bytes(whole + Path(rest).read_bytes())
    return tmp_path / "a.tar"


def test_sparse_members_are_packed_as_whole_files(sparse: Path, images: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="a symbolic link"):
        pack(str(sparse), str(tmp_path / "out"))
    data = (images / "class0/00.jpg").read_bytes() + bytes(4096)
    with tarfile.open(tmp_path / "out/shard-000000.tar") as archive:
        assert [archive.extractfile(m).read() for m in archive] == [data, data]  # type: ignore[union-attr]


def test_check_reads_sparse_members_and_names_links(sparse: Path) -> None:
    problems, counts = check([str(sparse)])
    assert counts["samples"] == 2
    assert [each.message for each in problems] == ["readers skip 'c.jpg', a symbolic link to 'a.jpg'"]


def test_the_index_command_rejects_sparse_members(sparse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["index", "webdataset", str(sparse)]) == 1
    assert "its member 'a.jpg' is sparse" in capsys.readouterr().err
    assert not sparse.with_suffix(".idx").exists()
