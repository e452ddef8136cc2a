"""source_info of readers' outputs, against the real DALI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.helpers.containers import write_tar
from tests.helpers.encoded_audio import speech, wav
from tests.helpers.libraries import library

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sources")
    (root / "images" / "a").mkdir(parents=True)
    for number in range(2):
        PIL.Image.new("RGB", (8, 8), (number, 0, 0)).save(root / "images" / "a" / f"{number}.png")
        np.save(root / f"{number}.npy", np.arange(4.0))
    png = (root / "images" / "a" / "0.png").read_bytes()
    members = [("in/a.png", png), ("in/a.cls", b"1"), ("b.png", png), ("b.cls", b"2")]
    write_tar(root / "a.tar", members)
    (root / "a.wav").write_bytes(wav(speech(80)).tobytes())
    (root / "m.json").write_text(f"{json.dumps({'audio_filepath': str(root / 'a.wav')})}\n" * 2)
    images = [{"id": n, "width": 8, "height": 8, "file_name": f"a/{n}.png"} for n in range(2)]
    boxes = [{"id": n, "image_id": n, "category_id": 1, "bbox": [0, 0, 4, 4], "iscrowd": 0} for n in range(2)]
    coco = {"images": images, "categories": [{"id": 1}], "annotations": boxes}
    (root / "coco.json").write_text(json.dumps(coco))
    return root


Read = Callable[[Any, Path], Any]
READERS: dict[str, Read] = {
    "file": lambda fn, root: fn.readers.file(file_root=str(root / "images")),
    "files": lambda fn, root: fn.readers.file(files=[str(root / "images" / "a" / f"{n}.png") for n in range(2)]),
    "an operator after": lambda fn, root: fn.decoders.image(fn.readers.file(file_root=str(root / "images"))[0]),
    "webdataset": lambda fn, root: fn.readers.webdataset(paths=[str(root / "a.tar")], ext=["png", "cls"]),
    "absent": lambda fn, root: fn.readers.webdataset(paths=[str(root / "a.tar")], ext=["png", "x"]),
    "numpy": lambda fn, root: fn.readers.numpy(file_root=str(root), file_filter="*.npy"),
    "nemo": lambda fn, root: fn.readers.nemo_asr(manifest_filepaths=[str(root / "m.json")]),
    "coco": lambda fn, root: fn.readers.coco(
        file_root=str(root / "images"), annotations_file=str(root / "coco.json")
    ),
}  # fmt: skip


@pytest.mark.parametrize("read", READERS)
def test_source_info(folder: Path, read: str) -> None:
    def properties(name: str) -> list[list[str]]:
        dali = library(name)
        fn = dali.fn

        @dali.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def define() -> Any:
            outputs = READERS[read](fn, folder)
            outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            return tuple(fn.get_property(output, key="source_info") for output in outputs)

        pipe = define()
        pipe.build()
        return [[bytes(np.array(batch.at(i))).decode() for i in range(2)] for batch in pipe.run()]

    assert properties("torchdali") == properties("nvidia.dali")
