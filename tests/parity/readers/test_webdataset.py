"""readers.webdataset against the real DALI."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import write_tar
from tests.helpers.libraries import agree, batches

pytestmark = [pytest.mark.golden, pytest.mark.filterwarnings("ignore:in .* several components")]

EXCEPTIONS = {
    "readers.webdataset": "names from pax headers are used; a missing index is written; a negative size in an index "
    "is an error when the pipeline is built; `random_shuffle` shuffles the whole epoch",
}
MEMBERS = [
    ("a.jpg", b"a1"), ("a.cls", b"0"), ("b.jpg", b"b1"), ("b.png", b"bp"), ("b.cls", b""), ("c.PNG", b"c1"),
    ("dir", None), ("dir/d.jpg", b"d1"), ("dir/d.x.cls", b"dd"), (".hid.jpg", b"h"), ("e.jpg", "a.jpg"),
    ("e.cls", b"7"), ("f", b"noext"), ("f.jpg", b"f1"), ("f.jpg", b"f2"), ("g.d/h.jpg", b"h1" * 400),
]  # fmt: skip
MIXED_CASE = [
    ("a.JPG", b"1"), ("a.cls", b"2"), ("b.jpg", b"3"), ("b.CLS", b"4"), ("c.Jpg", b"5"), ("c.seg.PNG", b"6"),
    ("d.jpg", b"7"), ("d.JPG", b"8"), ("d.cls", b"9"), ("A.jpg", b"10"), ("a.cls", b"11"),
]  # fmt: skip
NUMBERS = [("a.n", np.arange(4, dtype=np.int32).tobytes()), ("b.n", b""), ("c.n", b"12345678")]
TYPES = (
    "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FLOAT16", "FLOAT", "FLOAT64", "BOOL",
    "STRING",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("webdataset")
    write_tar(made / "a.tar", MEMBERS)
    write_tar(made / "n.tar", NUMBERS)
    write_tar(made / "case.tar", MIXED_CASE)
    write_tar(made / "odd.tar", [("a.n", b"123"), ("b.n", b"1234")])
    write_tar(made / "gnu.tar", [("y" * 300 + ".jpg", b"1"), ("y" * 300 + ".cls", b"2")])
    prefix = "p" * 90 + "/" + "q" * 90
    write_tar(made / "ustar.tar", [(prefix + ".jpg", b"1"), (prefix + ".cls", b"2")], tarfile.USTAR_FORMAT)
    kinds = [("a.jpg", (tarfile.AREGTYPE, b"r")), ("b.jpg", (tarfile.CONTTYPE, b"c")), ("c.jpg", (tarfile.LNKTYPE, b""))]
    write_tar(made / "kinds.tar", [*kinds, ("d.jpg", (b"Z", b"zzz")), ("e.jpg", b"e")])
    for size in (300, 512, 513, 1024, 1400, 2048, 19456):
        (made / f"cut{size}.tar").write_bytes((made / "a.tar").read_bytes()[:size])
    (made / "empty.tar").write_bytes(b"")
    (made / "junk.tar").write_bytes(b"hello" * 300)
    return made


A, BOTH = {"paths": "@a.tar"}, {"paths": "@a.tar", "ext": ["jpg", "cls"]}
CASES: dict[str, dict[str, Any]] = {
    "two": BOTH,
    "one": {**A, "ext": "jpg"},
    "read": {**BOTH, "dont_use_mmap": True},
    **{
        f"case {ext} {sensitive} {m}": {
            "paths": "@case.tar", "ext": ext, "case_sensitive_extensions": sensitive, "missing_component_behavior": m,
        }
        for ext in (["jpg", "cls"], ["JPG", "CLS"], ["JPG;jpg", "cls"], ["seg.png", "jpg"], ["Seg.PNG", "JPG"])
        for sensitive in (True, False)
        for m in ("empty", "skip", "error")
    },
    **{f"missing {m}": {**BOTH, "missing_component_behavior": m} for m in ("empty", "skip", "error", "Skip", "ERROR", "fill")},
    "one of two": {**A, "ext": ["jpg;png", "cls"]},
    "the first in the archive": {**A, "ext": ["png;jpg"]},
    "spaces": {**A, "ext": ["jpg; png"]},
    "any case": {**A, "ext": ["png"], "case_sensitive_extensions": False},
    "capitals, any case": {**A, "ext": ["PNG"], "case_sensitive_extensions": False},
    "the same twice": {**A, "ext": ["jpg", "jpg"]},
    "two dots": {**A, "ext": ["x.cls", "d.cls"]},
    "none": {**A, "ext": ["zzz"]},
    "none, skipped": {**A, "ext": ["zzz"], "missing_component_behavior": "skip"},
    "no extension": {**A, "ext": [""]},
    "with its dot": {**A, "ext": [".jpg"]},
    "two archives": {"paths": ["@a.tar", "@gnu.tar"], "ext": ["jpg"]},
    "long names": {"paths": ["@gnu.tar"], "ext": ["jpg", "cls"]},
    "prefixes": {"paths": ["@ustar.tar"], "ext": ["jpg", "cls"]},
    "kinds": {"paths": ["@kinds.tar"], "ext": ["jpg"]},
    **{f"{size} bytes": {"paths": f"@cut{size}.tar", "ext": ["jpg", "cls"]} for size in (300, 512, 513, 1024, 1400, 2048, 19456)},
    "an empty file": {"paths": ["@empty.tar"], "ext": ["jpg"]},
    "no archive": {"paths": ["@junk.tar"], "ext": ["jpg"]},
    "no file": {"paths": ["@none.tar"], "ext": ["jpg"]},
    "no paths": {"paths": [], "ext": ["jpg"]},
    "indices": {**BOTH, "index_paths": ["@a", "@b"]},
    "shards": {**BOTH, "num_shards": 2, "shard_id": 1, "pad_last_batch": True},
    "wrong number of types": {**BOTH, "dtypes": ["INT8"]},
    "a number that does not fit": {"paths": "@odd.tar", "ext": ["n"], "dtypes": ["INT32"]},
    **{f"as {t}": {"paths": "@n.tar", "ext": ["n"], "dtypes": [t]} for t in TYPES},
}  # fmt: skip
INDICES = {
    "v0.1", "v1.0 1\n", "", "v1.1", "v1.1 -1", "v1.1 0", "v1.1 x", "v1.1 1\n", "v1.1 1\njpg", "v1.1 1\njpg 1 0",
    "v1.1 1\njpg 512 2", "v1.1 2\njpg 512 2", "v1.1 1\njpg 51200 1", "v1.2 1\njpg 512 2 a.jpg", "v1.2 1\njpg 512 2",
    "v1.1 1\njpg 512 2\ncls 1536 1\n", "v1.2 1\njpg 512 2 a b.jpg cls 1536 1 a.cls\n", "v1.1 1\njpg 0 2",
    "v1.1 1\njpg 512 -2", "v1.3 1\njpg 512 2 a", "v1.1 1 jpg 512 2",
}  # fmt: skip


def read(lib: Any, folder: Path, arguments: dict[str, Any]) -> Any:
    def placed(value: Any) -> Any:
        if isinstance(value, list):
            return [placed(v) for v in value]
        return f"{folder}/{value[1:]}" if isinstance(value, str) and value.startswith("@") else value

    made = {name: placed(value) for name, value in arguments.items()}
    if "dtypes" in made:
        made["dtypes"] = [getattr(lib.types, name) for name in made["dtypes"]]
    outputs = lib.fn.readers.webdataset(**made)
    return tuple(outputs) if isinstance(outputs, list) else outputs


@pytest.mark.parametrize("case", CASES)
def test_arguments(folder: Path, case: str) -> None:
    agree(lambda lib: read(lib, folder, CASES[case]), batch_size=4)


@pytest.mark.parametrize("text", sorted(INDICES))
def test_indices(folder: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "i").write_text(text)
    agree(lambda lib: read(lib, folder, {**BOTH, "index_paths": str(tmp_path / "i")}))


def test_several_batches(folder: Path) -> None:
    found, wanted = (
        batches(name, lambda lib: read(lib, folder, BOTH), 6, batch_size=3)
        for name in ("torchdali", "nvidia.dali")
    )
    for ours, theirs in zip(found, wanted, strict=True):
        for mine, real in zip(ours, theirs, strict=True):
            assert [s.tobytes() for s in mine.samples] == [s.tobytes() for s in real.samples]
