"""Write the containers from which the reference's examples read."""

from __future__ import annotations

import contextlib
import importlib
import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from torchdali.formats import recordio, tar, tfrecord
from torchdali.formats.protobuf import VARINT, tag, write_bytes, write_varint

__all__ = ["write_containers"]


def write_containers(folder: Path, jpegs: Sequence[bytes]) -> None:
    """Write images and their class indices into a container of each format, and write the examples' other files."""
    with open(folder / "images.tfrecord", "wb") as file:
        for label, data in enumerate(jpegs):
            tfrecord.write_record(file, tfrecord.write_example({"image": data, "label": [label]}))
    with open(folder / "images.tar", "wb") as file:
        for label, data in enumerate(jpegs):
            tar.write_member(file, f"{label}.jpg", data)
            tar.write_member(file, f"{label}.cls", str(label).encode())
        tar.write_end(file)
    with open(folder / "images.rec", "wb") as file:
        for label, data in enumerate(jpegs):
            recordio.write_image(file, data, [float(label)])
    np.save(folder / "numbers.npy", np.array([3, 1, 4, 1, 5], np.float32))
    boxes = [[60, 30, 70, 80], [5, 20, 100, 90]]
    annotations = {
        "images": [{"id": i, "file_name": f"class{i}/image.jpg", "width": 240, "height": 160} for i in (0, 1)],
        "categories": [{"id": 1}],
        "annotations": [{"image_id": i, "category_id": 1, "bbox": box} for i in (0, 1) for box in boxes],
    }
    (folder / "annotations.json").write_text(json.dumps(annotations))
    _write_mds(folder / "mds", jpegs)
    with contextlib.suppress(ImportError):
        parquet = importlib.import_module("pyarrow.parquet")
        table = importlib.import_module("pyarrow").table({"image": list(jpegs), "label": list(range(len(jpegs)))})
        parquet.write_table(table, folder / "images.parquet")
    _write_fits(folder / "stars.fits")
    _write_database(folder / "caffe", [_datum(data, label) for label, data in enumerate(jpegs)])
    _write_database(folder / "caffe2", [_protos(data, label) for label, data in enumerate(jpegs)])


def _write_mds(folder: Path, jpegs: Sequence[bytes]) -> None:
    folder.mkdir(exist_ok=True)
    samples = [struct.pack("<I", len(data)) + data + bytes([label]) for label, data in enumerate(jpegs)]
    ends = np.cumsum([4 * (len(samples) + 2), *map(len, samples)])
    content = struct.pack(f"<{len(ends) + 1}I", len(samples), *ends) + b"".join(samples)
    (folder / "shard.00000.mds").write_bytes(content)
    raw = {"basename": "shard.00000.mds", "bytes": len(content)}
    columns = {"names": ["image", "label"], "encodings": ["jpeg", "uint8"], "sizes": [None, 1]}
    shard = {"raw_data": raw, "samples": len(samples), **{f"column_{name}": value for name, value in columns.items()}}
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [shard]}))


def _write_fits(path: Path) -> None:
    """Write a FITS image of 2 by 3 integers."""
    values = {"SIMPLE": "T", "BITPIX": "16", "NAXIS": "2", "NAXIS1": "3", "NAXIS2": "2"}
    cards = [f"{name:8}= {value:>20}".ljust(80) for name, value in values.items()]
    header = "".join([*cards, "END".ljust(80)]).ljust(2880).encode()
    path.write_bytes(header + np.arange(6, dtype=">i2").tobytes().ljust(2880, b"\0"))


def _datum(data: bytes, label: int) -> bytes:
    return write_bytes(4, data) + tag(5, VARINT) + write_varint(label)


def _protos(data: bytes, label: int) -> bytes:
    image = tag(2, VARINT) + write_varint(4) + write_bytes(6, data)
    number = tag(2, VARINT) + write_varint(2) + tag(4, VARINT) + write_varint(label)
    return write_bytes(1, image) + write_bytes(1, number)


_PAGE = 4096


def _write_database(folder: Path, values: Sequence[bytes]) -> None:
    """Write a few large values as an LMDB database: two meta pages, one leaf page, and the pages of the values."""
    folder.mkdir(exist_ok=True)
    leaf, pages, index = bytearray(_PAGE), bytearray(), b""
    upper = _PAGE
    for number, value in enumerate(values):
        first = 3 + len(pages) // _PAGE
        count = -(-(16 + len(value)) // _PAGE)
        pages += struct.pack("<QHHI", first, 0, 4, count) + value
        pages += bytes(-len(pages) % _PAGE)
        upper -= 24
        node = struct.pack("<HHHH8sQ", len(value) & 0xFFFF, len(value) >> 16, 1, 8, b"%08d" % number, first)
        leaf[upper : upper + 24] = node
        index += struct.pack("<H", upper)
    leaf[: 16 + len(index)] = struct.pack("<QHHHH", 2, 0, 2, 16 + len(index), upper) + index
    last = 2 + len(pages) // _PAGE
    (folder / "data.mdb").write_bytes(_meta(0, len(values), last) + _meta(1, len(values), last) + leaf + pages)


def _meta(number: int, count: int, last: int) -> bytes:
    nothing = 0xFFFFFFFFFFFFFFFF
    free = struct.pack("<IHHQQQQQ", _PAGE, 8, 0, 0, 0, 0, 0, nothing)
    main = struct.pack("<IHHQQQQQ", 0, 0, 1, 0, 1, last - 2, count, 2)
    head = struct.pack("<QHHI", number, 0, 8, 0) + struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, (last + 1) * _PAGE)
    page = head + free + main + struct.pack("<QQ", last, number)
    return page + bytes(_PAGE - len(page))
