"""readers.file and io.file.read against the real DALI: file lists, labels, epochs, metadata, errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import golden
from tests.helpers.libraries import agree, batches, library, outcome

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "readers.file": "`random_shuffle` shuffles the whole epoch, differently in each epoch: orders differ from DALI's, "
    "the samples of an epoch don't; a label beyond int32 is an error instead of wrapping around",
    "io.file.read": "`use_o_direct` accepts files of any size, and reads without it if the file system refuses direct "
    "reads; s3:// isn't supported",
}
FILES = [
    "t/a/1.jpg", "t/a/10.jpg", "t/a/2.JPG", "t/a/x.txt", "t/a/sub/deep.jpg", "t/b_empty/readme.md", "t/c/z.png",
    "t/c/.hidden.jpg", "t/Dog/d.jpeg", "t/ant/a.jpg", "t/top.jpg", "t/.hid/h.jpg", "only/x.txt", "my file.jpg",
    "t/ünï/ü.wav", "t/a/[1].jpg",
]  # fmt: skip
LISTS = {
    "plain": "a/1.jpg 7\nc/z.png 3\n",
    "blank lines and spaces": "a/1.jpg 7\n\nc/z.png   3  \n",
    "leading space": "  a/1.jpg 7\n",
    "no label": "a/1.jpg\n",
    "a word": "a/1.jpg x\n",
    "empty": "",
    "space in a name": "../my file.jpg 5\n",
    "fraction": "a/1.jpg 1.5\n",
    "negative": "a/1.jpg -1\n",
    "positive sign": "a/1.jpg +5\n",
    "two numbers": "a/1.jpg 1 2\n",
    "comment": "# files\na/1.jpg 1\n",
    "tab": "a/1.jpg\t4\n",
    "carriage returns": "a/1.jpg 1\r\nc/z.png 2\r\n",
    "no end of line": "a/1.jpg 5",
    "missing file": "nope.jpg 1\n",
    "other letters": "ünï/ü.wav 1\n",
}
ROOT = {"file_root": "@t"}
TWO = {"files": ["@t/a/1.jpg", "@t/c/z.png"]}
CASES: dict[str, dict[str, Any]] = {
    "folders": ROOT,
    "folders, slash": {"file_root": "@t/"},
    "case": {**ROOT, "case_sensitive_filter": True},
    "filters": {**ROOT, "file_filters": ["*.png", "1*"]},
    "one filter": {**ROOT, "file_filters": "*.png"},
    "filter in capitals": {**ROOT, "file_filters": ["*.JPG"]},
    "filter in capitals, case": {**ROOT, "file_filters": ["*.JPG"], "case_sensitive_filter": True},
    "set": {**ROOT, "file_filters": ["[12].jpg"]},
    "not in set": {**ROOT, "file_filters": ["[!1].jpg"]},
    "any letter": {**ROOT, "file_filters": ["?.jpg"]},
    "two stars": {**ROOT, "file_filters": ["*.j*g"]},
    "everything": {**ROOT, "file_filters": ["*"]},
    "nothing matches": {**ROOT, "file_filters": ["*.foo"]},
    "no filters": {**ROOT, "file_filters": []},
    "some folders": {**ROOT, "dir_filters": ["[ac]"]},
    "folders, another case": {**ROOT, "dir_filters": ["dog"]},
    "folders, case": {**ROOT, "dir_filters": ["dog"], "case_sensitive_filter": True},
    "no folder matches": {**ROOT, "dir_filters": ["zzz"]},
    "no folder filters": {**ROOT, "dir_filters": []},
    "only files that do not match": {"file_root": "@only"},
    "missing root": {"file_root": "@nope"},
    "root is a file": {"file_root": "@my file.jpg"},
    "files": TWO,
    "files and labels": {**TWO, "labels": [5, -6]},
    "files below a root": {"files": ["a/1.jpg", "c/z.png"], **ROOT},
    "absolute and relative files": {"files": ["@t/a/1.jpg", "c/z.png"], **ROOT},
    "one file": {"files": "@t/a/1.jpg"},
    "files are not filtered": {
        "files": ["@t/a/x.txt"],
        "file_filters": ["*.jpg"],
        "dir_filters": ["z"],
    },
    "too few labels": {**TWO, "labels": [1]},
    "empty list of files": {"files": []},
    "files and a list": {**TWO, "file_list": "@list.txt"},
    "labels alone": {"labels": [1, 2]},
    "labels and folders": {"labels": [1, 2], **ROOT},
    "nothing": {},
    "missing file": {"files": ["@t/a/1.jpg", "@nope.jpg"]},
    "a folder as a file": {"files": ["@t/a"]},
    "missing list": {"file_list": "@nope.txt", **ROOT},
    "too many shards": {**TWO, "num_shards": 3},
    "shard does not exist": {**TWO, "shard_id": 1},
    "shuffles exclude each other": {**TWO, "shuffle_after_epoch": True, "random_shuffle": True},
    "shuffle or stick": {**TWO, "shuffle_after_epoch": True, "stick_to_shard": True},
    "unknown argument": {**TWO, "lables": [1, 2]},
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())
    (root / "t/c/link.jpg").symlink_to(root / "t/a/1.jpg")
    (root / "t/linked").symlink_to(root / "t/a")
    (root / "t/c/dir.jpg").mkdir()
    (root / "t/none").mkdir()
    return root


def placed(root: Path, value: Any) -> Any:
    """Replace ``@`` by the folder."""
    if isinstance(value, list):
        return [placed(root, v) for v in value]
    return f"{root}/{value[1:]}" if isinstance(value, str) and value.startswith("@") else value


def read(root: Path, arguments: dict[str, Any], **settings: Any) -> Any:
    made = {name: placed(root, value) for name, value in arguments.items()}
    return agree(lambda lib: lib.fn.readers.file(**made), **settings)


@pytest.mark.parametrize("case", CASES)
def test_which_files(tree: Path, case: str) -> None:
    read(tree, CASES[case], batch_size=16)


@pytest.mark.parametrize("filters", [{}, {"dir_filters": ["[!.]*"]}, {"file_filters": ["[!.]*.jpg"]}])
def test_hidden_and_empty_folders(tmp_path: Path, filters: dict[str, Any]) -> None:
    for name in (".ipynb_checkpoints/", ".x/1.jpg", "__MACOSX/._1.jpg", "a/1.jpg", "a/.2.jpg", "m/", "z/1.jpg", "z/1.gif"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_bytes(name.encode())
    read(tmp_path, {"file_root": "@", **filters}, batch_size=8)


@pytest.mark.parametrize("text", LISTS)
def test_lists(tree: Path, text: str) -> None:
    (tree / "list.txt").write_text(LISTS[text], encoding="utf-8")
    read(tree, {"file_list": "@list.txt", **ROOT})


def test_a_list_without_a_root_starts_from_its_folder(tree: Path) -> None:
    (tree / "t/list.txt").write_text("a/1.jpg 3\n")
    read(tree, {"file_list": "@t/list.txt"})


@pytest.mark.parametrize("dont_use_mmap", [False, True])
def test_an_empty_file(tmp_path: Path, dont_use_mmap: bool) -> None:
    (tmp_path / "empty.jpg").write_bytes(b"")
    read(tmp_path, {"files": ["@empty.jpg"], "dont_use_mmap": dont_use_mmap})


def test_a_broken_link(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/broken.jpg").symlink_to(tmp_path / "nope")
    assert isinstance(read(tmp_path, {"file_root": "@"}), type)


# ---------------------------------------------------------------- epochs


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    paths = [tmp_path_factory.mktemp("ten") / f"{i}.bin" for i in range(10)]
    for path in paths:
        path.write_bytes(b"x")
    return [str(path) for path in paths]


def labels(
    name: str, files: list[str], runs: int, batch_size: int, **options: Any
) -> list[list[int]]:
    rows = batches(
        name, lambda lib: lib.fn.readers.file(files=files, **options), runs, batch_size=batch_size
    )
    return [[int(label.item()) for label in outputs[1].samples] for outputs in rows]


@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize(
    ("size", "shards", "batch_size"),
    [(10, 1, 4), (10, 3, 2), (10, 3, 3), (10, 4, 3), (9, 2, 4), (9, 4, 3), (5, 4, 4), (3, 1, 8), (6, 3, 4)],
)
def test_epochs(ten: list[str], size: int, shards: int, batch_size: int, pad: bool, stick: bool) -> None:
    """Compare shards of equal and unequal sizes, and shards smaller than a batch."""
    for shard in range(shards):
        options = {
            "num_shards": shards,
            "shard_id": shard,
            "pad_last_batch": pad,
            "stick_to_shard": stick,
        }
        found, wanted = (
            labels(name, ten[:size], 4 * -(-size // batch_size) + 3, batch_size, **options) for name in ("torchdali", "nvidia.dali")
        )
        assert found == wanted


@pytest.mark.parametrize("name", ["torchdali", "nvidia.dali"])
@pytest.mark.parametrize("how", ["random_shuffle", "shuffle_after_epoch"])
def test_shuffled_shards_are_an_epoch_together(ten: list[str], name: str, how: str) -> None:
    shards = [
        labels(name, ten, 2, 5, num_shards=2, shard_id=shard, **{how: True}) for shard in (0, 1)
    ]
    for epoch in range(2):
        assert sorted(shards[0][epoch] + shards[1][epoch]) == list(range(10))
    assert shards[0] != [list(range(5)), list(range(5, 10))], "not shuffled"


META = [
    {}, {"num_shards": 3, "shard_id": 1}, {"num_shards": 3, "pad_last_batch": True},
    {"stick_to_shard": True}, {"num_shards": 4, "stick_to_shard": True, "pad_last_batch": True},
    {"shuffle_after_epoch": True}, {"random_shuffle": True},
]  # fmt: skip


@pytest.mark.parametrize("options", META, ids=str)
def test_metadata(ten: list[str], options: dict[str, Any]) -> None:

    @golden.answered
    def call_read(name: str) -> Any:
        lib = library(name)

        @lib.pipeline_def(batch_size=4, num_threads=1, device_id=None)
        def define() -> Any:
            return tuple(lib.fn.readers.file(files=ten, name="Reader", **options))

        pipe = define()
        pipe.build()
        with pytest.raises(RuntimeError):
            pipe.reader_meta("Other")
        return pipe.reader_meta("Reader"), pipe.reader_meta(), pipe.epoch_size("Reader"), pipe.epoch_size()

    assert call_read("torchdali") == call_read("nvidia.dali")


# ---------------------------------------------------------------- io.file.read


def path_of(text: str | Path) -> np.ndarray:
    return np.frombuffer(os.fsencode(text), np.uint8).copy()


READS: dict[str, Any] = {
    "usual": {},
    "no mapping": {"dont_use_mmap": True},
    "direct without effect": {"use_o_direct": True},
}


@pytest.mark.parametrize("arguments", READS.values(), ids=READS)
@pytest.mark.parametrize("name", ["t/a/1.jpg", "t/ünï/ü.wav", "my file.jpg", "nope", "t", ""])
def test_read(tree: Path, name: str, arguments: dict[str, bool]) -> None:
    paths = [path_of(tree / name) if name else path_of(""), path_of(tree / "t/a/x.txt")]
    agree(lambda lib: lib.fn.io.file.read(lib.source(paths, "X"), **arguments))


@pytest.mark.parametrize("arguments", READS.values(), ids=READS)
def test_read_an_empty_file(tmp_path: Path, arguments: dict[str, bool]) -> None:
    (tmp_path / "empty").write_bytes(b"")
    paths = [path_of(tmp_path / "empty")] * 2
    agree(lambda lib: lib.fn.io.file.read(lib.source(paths), **arguments))


FORMS: dict[str, Any] = {
    "bytes": lambda path: path,
    "int8": lambda path: path.view(np.int8),
    "int32": lambda path: path.astype(np.int32),
    "with a zero": lambda path: np.append(path, np.uint8(0)),
    "2D": lambda path: path[None],
    "URL": lambda path: np.concatenate([path_of("file://"), path]),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_paths(tree: Path, form: str) -> None:
    path = FORMS[form](path_of(tree / "t/a/1.jpg"))
    agree(lambda lib: lib.fn.io.file.read(lib.source([path, path])))


def test_a_constant_path(tree: Path) -> None:
    agree(lambda lib: lib.fn.io.file.read(path_of(tree / "t/a/1.jpg")))
    assert outcome("torchdali", lambda lib: lib.fn.io.file.read(str(tree))) is TypeError
