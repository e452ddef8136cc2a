"""torchdali.containers: indices, packing, checking; and their commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.helpers.containers import datum, write_lmdb, write_recordio, write_tar, write_tfrecord
from torchdali import cli, fn, pipeline_def
from torchdali.containers import PackOptions, check, index, pack
from torchdali.tfrecord import FixedLenFeature, int64, string

COUNT = 12


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Twelve smooth JPEG files of two classes."""
    for number in range(COUNT):
        folder = tmp_path / "images" / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        y, x = np.mgrid[: 40 + number, :60]
        pixels = np.stack([x * 4, y * 3, 255 - x - y], -1).astype(np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number:02}.jpg", quality=95)
    return tmp_path / "images"


def read(container: str, folder: Path) -> list[tuple[bytes, int]]:
    """Read all that was packed, by its readers and indices."""
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
def test_a_folder_as_it_is(images: Path, tmp_path: Path, container: str) -> None:
    seen: list[tuple[int, int]] = []
    options = PackOptions(to=container, shard_size=10000)
    report = pack(str(images), str(tmp_path / "out"), options, jobs=2, progress=lambda *done: seen.append(done))
    assert read(container, tmp_path / "out") == contents(images)
    assert report.samples == COUNT and len(report.shards) > 2 and report.kept == 0 and not report.psnr
    assert seen[-1] == (COUNT, COUNT) and [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(os.path.getsize(path) < 15000 for path in report.shards)
    assert (tmp_path / "out/classes.txt").read_text() == "class0\nclass1\n"


@pytest.mark.parametrize("form, extension", [("jpeg", b"\xff\xd8"), ("webp", b"RIFF"), ("raw", b"\x93NUMPY")])
def test_encoded_anew(images: Path, tmp_path: Path, form: str, extension: bytes) -> None:
    report = pack(str(images), str(tmp_path / "out"), PackOptions(format=form, shorter=24))
    found = read("webdataset", tmp_path / "out")
    assert all(data.startswith(extension) for data, _ in found)
    assert [label for _, label in found] == [label for _, label in contents(images)]
    decode = fn.decoders.numpy if form == "raw" else fn.decoders.image
    sizes = [np.asarray(decode(np.frombuffer(data, np.uint8).copy())).shape[:2] for data, _ in found]
    assert all(min(size) == 24 for size in sizes)
    assert (form == "raw") == (not report.psnr) and all(value > 30 for value in report.psnr)


def test_small_images_stay_as_they_are(images: Path, tmp_path: Path) -> None:
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


def test_what_is_stopped_is_continued(images: Path, tmp_path: Path) -> None:
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
def test_what_is_killed_is_continued(images: Path, tmp_path: Path) -> None:
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
    with pytest.raises(RuntimeError, match="other options"):
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
    assert "left out: class1/03.jpg" in str(report)


@pytest.mark.parametrize(
    ("content", "decoded"),
    [(b"rubbish", False), (b"", False), (b"version https://git-lfs.github.com/spec/v1\n", False), (None, True)],
)
def test_images_that_are_not_encoded_anew_are_looked_at(
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


def test_links_to_nothing(images: Path, tmp_path: Path) -> None:
    (images / "class1/99.jpg").symlink_to(tmp_path / "none.jpg")
    with pytest.raises(RuntimeError, match=r"cannot pack class1/99\.jpg: No such file"):
        pack(str(images), str(tmp_path / "a"))
    report = pack(str(images), str(tmp_path / "b"), PackOptions(skip=True))
    assert report.samples == COUNT and report.skipped == ["class1/99.jpg: No such file or directory"]
    assert [p.message for p in check([str(images)])[0]] == [f"cannot open {images / 'class1/99.jpg'}: No such file or directory"]


def test_sounds_are_packed_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "in/a").mkdir(parents=True)
    (tmp_path / "in/a/x.wav").write_bytes(b"RIFF, of whatever kind")
    assert pack(str(tmp_path / "in"), str(tmp_path / "out"), PackOptions(skip=True)).samples == 1


@pytest.mark.parametrize("to", ["webdataset", "tfrecord"])
def test_check_counts_samples(images: Path, tmp_path: Path, to: str) -> None:
    shards = pack(str(images), str(tmp_path / "out"), PackOptions(to=to, shard_size=20_000)).shards
    assert check([str(tmp_path / "out")]) == ([], {"samples": COUNT, "files": len(shards), "unknown": 0})


@pytest.mark.parametrize("options", [{"to": "zip"}, {"format": "gif"}, {"quality": 0}, {"shard_size": 0}, {"shorter": 0}])
def test_refused_options(options: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError):
        PackOptions(**options)


def test_nothing_to_pack(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no folder or container"):
        pack(str(tmp_path / "none"), str(tmp_path / "out"))
    with pytest.raises(RuntimeError, match="no files found"):
        pack(str(tmp_path), str(tmp_path / "out"))


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
        assert "exists already" in capsys.readouterr().err
        assert index(kind, str(tmp_path / name), force=True)[0] == str(path)
        path.unlink()


# ---------------------------------------------------------------- checking


def test_check_finds_what_is_broken(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert any("check sum of the payload" in p.message and p.offset for p in problems)
    assert any("second member" in p.message for p in problems) and any("leads out" in p.message for p in problems)
    assert len(check([str(images)], decode=False)[0]) == len(problems) - 2
    assert cli.main(["check", str(images)]) == 1
    assert f"{images}/b.tar at 512: " in capsys.readouterr().out
    assert cli.main(["check", str(tmp_path / "none")]) == 1


def test_the_report_of_the_command(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pack", str(images), str(tmp_path / "out"), "--shorter", "20", "--jobs", "2", "--shard-size", "1M"]) == 0
    out = capsys.readouterr().out
    assert f"{COUNT} samples in 1 shards" in out and "dB" in out
    assert json.loads((tmp_path / "out/pack.json").read_text())["starts"] == [0]
    with pytest.raises(SystemExit):
        cli.main(["pack", str(images), str(tmp_path / "out"), "--shard-size", "1X"])
