"""decoders.inflate: the real one needs a GPU; lz4 compresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from torchdali import fn, pipeline_def, types

block = pytest.importorskip("lz4.block", reason="the extra `inflate` is not installed")

ARRAYS = [np.random.default_rng(i).integers(0, 9, (3 + i, 4, 2)).astype(np.int16) for i in range(3)]


def compressed(array: Any) -> Any:
    return np.frombuffer(block.compress(np.ascontiguousarray(array).tobytes(), store_size=False), np.uint8)


def chunks(array: Any, gap: int = 0) -> tuple[Any, list[int], list[int]]:
    """Compress the rows of an array; return offsets and sizes, too."""
    parts = [compressed(row) for row in array]
    padded = [np.concatenate([part, np.zeros(gap, np.uint8)]) for part in parts]
    offsets = np.cumsum([0, *map(len, padded)]).tolist()
    return np.concatenate(padded), offsets[:-1], list(map(len, parts))


def run(data: list[Any], layout: str = "", **arguments: Any) -> Any:
    """Run with arguments per sample."""

    @pipeline_def(batch_size=len(data), num_threads=1, device_id=None)
    def define() -> Any:
        def node(values: Any, dtype: Any = None) -> Any:
            return fn.external_source(source=lambda: [np.asarray(value, dtype) for value in values])

        given = {name: node(values, np.int32) for name, values in arguments.items()}
        return fn.decoders.inflate(node(data), dtype=types.INT16, layout=layout, **given)

    with define() as pipe:
        return pipe.run()[0]


def test_whole_samples() -> None:
    found = run([compressed(a) for a in ARRAYS], shape=[a.shape for a in ARRAYS], layout="HWC")
    assert found.layout() == "HWC"
    assert all((sample.numpy() == array).all() for sample, array in zip(found.samples(), ARRAYS, strict=True))


@pytest.mark.parametrize("given", [("chunk_sizes",), ("chunk_offsets",), ("chunk_offsets", "chunk_sizes")])
def test_chunks(given: tuple[str, ...]) -> None:
    made = [chunks(array, gap=3 if len(given) == 2 else 0) for array in ARRAYS]
    values = {"chunk_offsets": [m[1] for m in made], "chunk_sizes": [m[2] for m in made]}
    found = run([m[0] for m in made], shape=[a.shape[1:] for a in ARRAYS], layout="WC", **{name: values[name] for name in given})
    assert found.layout() == "FWC"
    assert all((sample.numpy() == array).all() for sample, array in zip(found.samples(), ARRAYS, strict=True))


def test_the_name_of_the_first_axis_and_eager_calls() -> None:
    data, offsets, _ = chunks(ARRAYS[0])
    found = fn.decoders.inflate(data, chunk_offsets=offsets, shape=[4, 2], dtype=types.INT16, layout="WC", sequence_axis_name="D")
    assert (np.asarray(found) == ARRAYS[0]).all()
    with pytest.warns(DeprecationWarning):
        assert np.asarray(fn.experimental.inflate(compressed(ARRAYS[0]), shape=ARRAYS[0].shape, dtype=types.INT16)).shape == (3, 4, 2)


def test_nothing() -> None:
    data = np.empty(0, np.uint8)
    assert np.asarray(fn.decoders.inflate(data, shape=[2, 0])).shape == (2, 0)
    assert np.asarray(fn.decoders.inflate(data, shape=[2], chunk_sizes=[])).shape == (0, 2)


DATA = compressed(np.arange(9, dtype=np.uint8))


@pytest.mark.parametrize("data, arguments, match", [
    (DATA, {"shape": [10]}, "must have 10 bytes, as its shape says, got 9"),
    (DATA, {"shape": [8]}, "cannot decompress"),
    (DATA[:5], {"shape": [9]}, "cannot decompress"),
    (DATA[None], {"shape": [9]}, "one dimension"),
    (DATA, {"shape": [-1]}, "a chunk of 0 to"),
    (DATA, {"shape": [1 << 30]}, "LZ4 compresses at most"),
    (DATA, {"shape": [9], "algorithm": "ZIP"}, "'ZIP'"),
    (DATA, {"shape": [9], "chunk_sizes": [99]}, "from byte 0 to 99"),
    (DATA, {"shape": [9], "chunk_offsets": [-1]}, "from byte -1"),
    (DATA, {"shape": [9], "chunk_offsets": [0], "chunk_sizes": [1, 2]}, "must have equal lengths, got 1 and 2"),
])  # fmt: skip
def test_refusals(data: Any, arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        fn.decoders.inflate(torch.from_numpy(data.copy()), **arguments)
