"""readers.file and io.file.read: listings, shuffling, restarts, memory, messages; codecs.files beneath them."""

from __future__ import annotations

import fnmatch
import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from torchdali import fn, pipeline_def, types
from torchdali.codecs import files
from torchdali.codecs.files import read_file
from torchdali.codecs.images import EXTENSIONS, OTHER_EXTENSIONS

file_reader = fn.readers.file.implementation


def make(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())
    return root


def listed(dataset: Any) -> list[tuple[str, int]]:
    (labels,) = dataset.metadata(np.arange(len(dataset)))
    return [(dataset.info(i, output=0), int(label)) for i, label in enumerate(labels)]


def labels(batch_size: int, runs: int, seed: int = 1, **arguments: Any) -> list[list[int]]:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, seed=seed)
    def define() -> Any:
        return fn.readers.file(**arguments)[1]

    pipe = define()
    found = [[label for (label,) in pipe.run()[0].tolist()] for _ in range(runs)]
    pipe.close()
    return found


# ---------------------------------------------------------------- listings


def test_many_folders_keep_their_order(tmp_path: Path) -> None:
    names = [f"class {k:02d}/{i}.png" for k in range(40) for i in (1, 10, 2)]
    dataset = file_reader(file_root=str(make(tmp_path, *names)))
    assert listed(dataset) == [(name, i // 3) for i, name in enumerate(names)]


def test_names_are_sorted_by_their_bytes(tmp_path: Path) -> None:
    names = ["b/1.png", "\U0001f600/1.png", "\uff21/1.png", "ä/1.png", "A/1.png"]
    dataset = file_reader(file_root=str(make(tmp_path, *names)))
    assert [name for name, _ in listed(dataset)] == sorted(names, key=os.fsencode)


def test_a_file_name_that_is_not_utf_8_is_read(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "a")
    os.mkdir(folder)
    try:
        with open(folder + b"/\xff.png", "wb") as file:
            file.write(b"abc")
    except OSError:
        pytest.skip("the file system wants names to be text")
    (data,) = file_reader(file_root=str(tmp_path)).read(0)
    assert bytes(data.tolist()) == b"abc"


@pytest.mark.parametrize("case_sensitive", [False, True])
@pytest.mark.parametrize(
    "patterns", [["*.jpg"], ["*"], ["a*", "*.PNG"], ["[ab].jpg", "*b].jpg"], ["?.jpg"], ["A.jpg"]]
)
def test_filters_are_shell_patterns(patterns: list[str], case_sensitive: bool, tmp_path: Path) -> None:
    fold = str if case_sensitive else str.lower
    names = [f"{i}/{name}" for i, name in enumerate(["a.jpg", "A.JPG", "b.jpg", "x.png", "x.PNG", "ab].jpg", "long.jpg", "jpg", ".jpg"])]
    make(tmp_path, "match all/[.jpg", *names)
    found = file_reader(file_root=str(tmp_path), file_filters=[*patterns, "[[].jpg"], case_sensitive_filter=case_sensitive)
    expected = [each for each in names if any(fnmatch.fnmatchcase(fold(each[2:]), fold(pattern)) for pattern in patterns)]
    assert [name for name, _ in listed(found)] == [*expected, "match all/[.jpg"]


def test_many_threads_may_read_records_concurrently(tmp_path: Path) -> None:
    names = [f"a/{i:03d}.png" for i in range(60)]
    make(tmp_path, *names)

    @pipeline_def(batch_size=30, num_threads=8, device_id=None)
    def define() -> Any:
        return tuple(fn.readers.file(file_root=str(tmp_path)))

    pipe = define()
    found = [
        bytes(sample.tolist()).decode() for _ in range(2) for sample in pipe.run()[0].samples()
    ]
    pipe.close()
    assert found == names


def test_labels_of_a_batch_share_no_memory_with_the_reader(tmp_path: Path) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.file(file_root=str(make(tmp_path, "a/1.png")))[1]

    pipe = define()
    for _ in range(3):
        (label,) = pipe.run()
        assert label.tolist() == [[0]]
        label.samples()[0].fill_(9)
    pipe.close()


# ---------------------------------------------------------------- epochs


@pytest.fixture
def ten(tmp_path: Path) -> list[str]:
    make(tmp_path, *[f"{i}.bin" for i in range(10)])
    return [str(tmp_path / f"{i}.bin") for i in range(10)]


def test_each_epoch_is_reshuffled(ten: list[str]) -> None:
    epochs = labels(10, 4, files=ten, random_shuffle=True)
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len(set(map(tuple, epochs))) == 4
    assert epochs == labels(10, 4, files=ten, random_shuffle=True)
    assert epochs != labels(10, 4, seed=2, files=ten, random_shuffle=True)


def test_an_explicit_seed_orders_the_records(ten: list[str]) -> None:
    def order(pipeline_seed: int, own: int) -> list[int]:
        @pipeline_def(batch_size=10, num_threads=1, device_id=None, seed=pipeline_seed)
        def define() -> Any:
            return fn.readers.file(files=ten, random_shuffle=True, seed=own)[1]

        pipe = define()
        found: list[int] = pipe.run()[0].stack().flatten().tolist()
        pipe.close()
        return found

    assert order(1, 5) == order(2, 5) != order(1, 6)


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "pass file_root, files or file_list"),
        ({"file_root": "/nope"}, "cannot list the folder '/nope': No such file"),
        ({"file_list": "/nope.txt"}, "cannot read the file_list '/nope.txt': No such file"),
        ({"files": ["a"], "labels": [1, 2]}, "1 files and 2 labels"),
        ({"files": ["a"], "num_shards": 2}, "input samples: 1, needs .* requested number of shards: 2"),
        ({"files": ["a"], "labels": [2**31]}, "labels must fit int32"),
    ],
)
def test_errors_name_the_operator_and_the_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message) as caught:
        labels(1, 1, **arguments)
    assert "operator 'readers.file'" in str(caught.value) and __file__ in str(caught.value)
    assert "return fn.readers.file(**arguments)[1]" in str(caught.value)


def test_the_error_names_a_wrong_entry_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a.png 1\n\nb.png one\n")
    with pytest.raises(RuntimeError, match=r"list.txt', line 3: .* found 'b.png one'"):
        file_reader(file_list=str(tmp_path / "list.txt"))


@pytest.mark.parametrize("encoding, end", [("utf-8-sig", "\n"), ("utf-8", "\r\n"), ("utf-8-sig", "\r\n")])
def test_lists_of_other_systems(tmp_path: Path, encoding: str, end: str) -> None:
    make(tmp_path, "a/é.png", "b/x y.png")
    (tmp_path / "list.txt").write_bytes(f"a/é.png 1{end}b/x y.png 2{end}".encode(encoding))
    arguments = {"file_root": str(tmp_path), "file_list": str(tmp_path / "list.txt")}
    assert labels(2, 1, **arguments) == [[1, 2]]


def test_a_list_in_utf_16_is_named(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a.png 1\n", encoding="utf-16")
    with pytest.raises(RuntimeError, match=r"UTF-16"):
        file_reader(file_list=str(tmp_path / "list.txt"))


def test_folders_in_class_folders_are_skipped_with_a_warning(tmp_path: Path) -> None:
    make(tmp_path, "a/x.png", "a/more/y.png", "b/z.png", "b/deep/er/v.png", "b/even/w.png")
    with pytest.warns(UserWarning, match=r"3 folders are inside class folders, for example 'a/more'") as said:
        assert labels(2, 1, file_root=str(tmp_path)) == [[0, 1]]
    assert len(said) == 1


FOLDERS: dict[str, tuple[list[str], list[str]]] = {  # files; the warnings
    "nothing": (["a/1.png", "b/1.png"], []),
    "an empty class": (["a/1.png", "m/", "z/1.png"], [r"1 of 3 class folders have no readable file, 'm'; the classes keep"]),
    "many empty ones": (["a/1.png", *(f"m{i}/" for i in range(7))], [r"7 of 8 .*, 'm0', 'm1', 'm2', 'm3', 'm4', \.\.\.; the classes keep"]),
    "other files": (["a/1.png", "m/1.txt"], [r"1 of 2 class folders have no readable file"]),
    "hidden": (["a/1.png", ".ipynb_checkpoints/"], [r"the hidden folder '\.ipynb_checkpoints' is read as a class, with label 0,"]),
    "hidden, with files": (["a/1.png", ".x/1.png", ".y/1.png"], [r"the hidden folder '\.x' .*\(2 such folders\); pass dir_filters"]),
    "gif": (["a/1.png", "a/2.gif", "a/3.GIF"], [r"2 decodable files are skipped .* 'a/2\.gif'"]),
    "a class of sounds": (["a/1.wav", "b/1.mp3"], [r"1 of 2 class", r"1 decodable files are skipped .* 'b/1\.mp3'"]),
    "hidden files": (["a/1.png", "a/.1.gif"], []),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_unusual_folders_warn(tmp_path: Path, case: str) -> None:
    """Unusual folders are numbered as in DALI, and cause a warning."""
    names, messages = FOLDERS[case]
    for name in names:
        (tmp_path / name).mkdir(parents=True) if name.endswith("/") else make(tmp_path, name)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = listed(file_reader(file_root=str(tmp_path)))
    folders = sorted({name.partition("/")[0] for name in names})
    assert found == [(n, folders.index(n.partition("/")[0])) for n in sorted(names) if n.endswith((".png", ".wav"))]
    assert len(said) == len(messages)
    for each, message in zip(said, messages, strict=True):
        assert re.search(message, str(each.message)), each.message


def test_user_filters_do_not_warn(tmp_path: Path) -> None:
    make(tmp_path, "a/1.png", "a/2.jpg", "a/3.gif")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(file_reader(file_root=str(tmp_path), file_filters=["*.png"])) == 1
        assert len(file_reader(file_root=str(tmp_path), file_filters=["*"])) == 3


def test_the_default_filters_are_the_extensions_of_decoders() -> None:
    PIL.Image.init()
    known = {ending for ending, name in PIL.Image.registered_extensions().items() if name in PIL.Image.OPEN}
    assert set(OTHER_EXTENSIONS) <= known and not set(OTHER_EXTENSIONS) & set(EXTENSIONS)


def test_the_error_of_an_empty_listing_names_the_reason(tmp_path: Path) -> None:
    make(tmp_path, "a/x.txt", "b/y.txt", "top.png")
    with pytest.raises(RuntimeError, match=r"none of its 2 class folders has a file"):
        file_reader(file_root=str(tmp_path))


# ---------------------------------------------------------------- reading


LARGE = 8 << 20  # bytes; larger files are mapped
WAYS = {
    "mapped": {},
    "read": {"mapped": False},
    "direct": {"mapped": False, "direct": True},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, LARGE - 1, LARGE, LARGE + 1])
def test_all_functions_that_read_agree(tmp_path: Path, way: str, size: int) -> None:
    content = np.random.default_rng(size).bytes(size)
    (tmp_path / "file").write_bytes(content)
    data = read_file(str(tmp_path / "file"), **WAYS[way])
    assert data.dtype == torch.uint8 and data.numpy().tobytes() == content


@pytest.mark.parametrize("way", WAYS)
def test_missing_files_raise_what_open_raises(tmp_path: Path, way: str) -> None:
    with pytest.raises(FileNotFoundError, match="nope"):
        read_file(str(tmp_path / "nope"), **WAYS[way])
    with pytest.raises(IsADirectoryError):
        read_file(str(tmp_path), **WAYS[way])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["ä ö.jpg", "日本.jpg"])
def test_names_of_any_letters(tmp_path: Path, name: str, way: str) -> None:
    (tmp_path / name).write_bytes(b"abc" + bytes(LARGE))
    assert read_file(str(tmp_path / name), **WAYS[way])[:4].tolist() == list(b"abc\0")


def test_an_empty_file_cannot_be_mapped(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(RuntimeError, match="empty is empty"):
        read_file(str(tmp_path / "empty"))
    assert read_file(str(tmp_path / "empty"), mapped=False).shape == (0,)


def test_without_torchvision_files_are_mapped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"abc" + bytes(LARGE))
    monkeypatch.setattr(files, "image_operator", lambda name: None)
    monkeypatch.setattr(files, "_read_mapped", None)
    data = read_file(str(tmp_path / "file"))
    data[0] = ord("x")  # only in this process
    assert bytes(data[:3].tolist()) == b"xbc" and (tmp_path / "file").read_bytes()[:3] == b"abc"


def test_paths_from_data(tmp_path: Path) -> None:
    make(tmp_path, "a.bin", "ü.bin")
    for name in ("a.bin", "ü.bin"):
        path = torch.tensor(list(os.fsencode(tmp_path / name)), dtype=torch.uint8)
        assert bytes(fn.io.file.read(path).tolist()) == name.encode()
    with pytest.raises(RuntimeError, match="a path must be 1D text, got 2D"):
        fn.io.file.read(path[None])
    with pytest.raises(FileNotFoundError, match="nope"):
        fn.io.file.read(torch.tensor(list(b"nope"), dtype=torch.uint8))


def test_labels_are_used_with_files(tmp_path: Path) -> None:
    make(tmp_path, *[f"{folder}/{k}.png" for folder in "ab" for k in range(4)])

    @pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=2, enable_conditionals=True)
    def defined() -> Any:
        data, label = fn.readers.file(file_root=str(tmp_path), random_shuffle=True)
        number = label * 10 + 1
        if label[0] == 1:
            size = fn.cast(data.shape()[0], dtype=types.INT32) + label[0]
        else:
            size = fn.cast(data.shape()[0], dtype=types.INT32) - 1
        return data, label, number, size

    pipe = defined()
    seen = set()
    for _ in range(6):
        data, label, number, size = (list(map(torch.as_tensor, output)) for output in pipe.run())
        for each in zip(data, label, number, size, strict=True):
            found = each[1].item()
            seen.add(found)
            assert each[1].shape == (1,) and each[2].tolist() == [10 * found + 1]
            assert each[3].item() == len(each[0]) + (1 if found else -1)
    pipe.close()
    assert seen == {0, 1}


def test_labels_of_other_kinds_are_rejected_or_warn(tmp_path: Path) -> None:
    make(tmp_path, "x.png")
    path = str(tmp_path / "x.png")
    pairs = r"read pairs: paths, labels = fn\.readers\.dataset\(.*data = fn\.io\.file\.read\(paths\)$"
    with pytest.warns(UserWarning, match=r"0\.7 is cut to 0; for other labels, " + pairs):
        assert labels(1, 1, files=[path], labels=[0.7]) == [[0]]
    assert labels(1, 1, files=[path], labels=np.array([3.0])) == [[3]]
    for wrong in ([1, 0], None):
        with pytest.raises(TypeError, match=r"labels must be numbers, got .*; for other labels, " + pairs):
            labels(1, 1, files=[path], labels=[wrong])
    with pytest.raises(TypeError, match=r"labels must be numbers, got 'cat'; number the names: .*names\.index\(label\)"):
        labels(1, 1, files=[path], labels=["cat"])


@pytest.mark.parametrize("given, expected", [([0.5, 1.5], [0.5, 1.5]), ([[1, 0], [0, 1]], [[1, 0], [0, 1]])])
def test_the_cure_in_the_error_of_labels_works(given: list[Any], expected: list[Any], tmp_path: Path) -> None:
    make(tmp_path, "x.png", "y.png")
    names = [str(tmp_path / name) for name in ("x.png", "y.png")]
    with pytest.raises(TypeError) as raised:
        labels(1, 1, files=names, labels=[None, None])
    first, second = re.search(r"pairs: (.*?), then the files: (.*)", str(raised.value)).groups()  # type: ignore[union-attr]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe() -> Any:
        scope = {"fn": fn, "files": names, "labels": given}
        exec(f"{first}\n{second}", scope)
        return scope["data"], scope["labels"]

    data, found = pipe().run()
    assert [bytes(each.numpy()) for each in data.samples()] == [b"x.png", b"y.png"]
    assert found.as_array().tolist() == expected


def test_the_error_names_a_missing_file_of_a_list_and_its_line(tmp_path: Path) -> None:
    make(tmp_path, "x.png")
    (tmp_path / "list.txt").write_text("x.png 0\n\nnone.png 1\n")
    dataset = file_reader(file_list=str(tmp_path / "list.txt"))
    with pytest.raises(FileNotFoundError, match=r"No such file or directory, of line 3 of .*list\.txt"):
        dataset.read(1)

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe() -> Any:
        return fn.readers.file(file_list=str(tmp_path / "list.txt"))[0]

    with pytest.raises(RuntimeError, match=r"of line 3 of"):
        pipe().run()


def test_errors_of_missing_paths_have_a_cure(tmp_path: Path) -> None:
    make(tmp_path, "images/a/x.png")
    near = rf"No such file or directory; the nearest existing folder is '{re.escape(str(tmp_path))}'; did you mean images\?"
    with pytest.raises(RuntimeError, match=near):
        file_reader(file_root=str(tmp_path / "imagse"))
    with pytest.raises(RuntimeError, match=near):
        file_reader(file_root=str(tmp_path / "imagse" / "train" / "deeper"))
    with pytest.raises(RuntimeError, match=r"os\.path\.expanduser"):
        file_reader(file_root="~/no-such-folder")
    with pytest.raises(RuntimeError, match=r"file_filters with file_root, or files=glob\.glob"):
        file_reader(files=[str(tmp_path / "images/a/*.png")])
