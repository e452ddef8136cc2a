"""Ragged batches, and copies into torch tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.helpers.fake_pipeline import ReaderPipeline, SourcePipeline, records_of
from torchdali import types
from torchdali.plugin.pytorch import (
    DALIRaggedIterator,
    LastBatchPolicy,
    feed_ndarray,
    to_torch_type,
)
from torchdali.plugin.pytorch.torch_utils import to_torch_tensor
from torchdali.tensors import TensorCPU, TensorGPU, TensorListCPU

DENSE = DALIRaggedIterator.DENSE_TAG
COO = DALIRaggedIterator.SPARSE_COO_TAG
LIST = DALIRaggedIterator.SPARSE_LIST_TAG

RAGGED = [torch.tensor([[1.0, 2.0]]), torch.zeros(0, 2), torch.tensor([[3.0], [0.0]])]
EQUAL = [torch.tensor([1, 2]), torch.tensor([3, 4])]


def ragged(samples: list[torch.Tensor], kind: str | None, **arguments: Any) -> Any:
    """Return one batch of a ragged iterator."""
    batch = (TensorListCPU.from_samples(samples),)
    types = None if kind is None else [kind]
    pipe = SourcePipeline([batch], len(samples))
    return next(DALIRaggedIterator(pipe, ["a"], output_types=types, **arguments))[0]["a"]


def test_lists_contain_the_samples_themselves() -> None:
    found = ragged(RAGGED, LIST)
    assert isinstance(found, list)
    assert [t.data_ptr() for t in found] == [t.data_ptr() for t in RAGGED]


@pytest.mark.parametrize("kind", [DENSE, None])
def test_dense_outputs_are_one_tensor(kind) -> None:
    assert ragged(EQUAL, kind).tolist() == [[1, 2], [3, 4]]


def test_dense_outputs_need_equal_shapes() -> None:
    with pytest.raises(RuntimeError, match="SPARSE_LIST_TAG"):
        ragged(RAGGED, DENSE)


def test_sparse_outputs_contain_every_element_including_zeros() -> None:
    found = ragged(RAGGED, COO)
    assert found.layout == torch.sparse_coo
    assert found.shape == (3, 2, 2)
    assert found.indices().t().tolist() == [[0, 0, 0], [0, 0, 1], [2, 0, 0], [2, 1, 0]]
    assert found.values().tolist() == [1, 2, 3, 0]


def test_sparse_scalars() -> None:
    assert ragged([torch.tensor(5), torch.tensor(7)], COO).to_dense().tolist() == [5, 7]


def test_each_output_has_its_own_type() -> None:
    batch = (*records_of([1, 2]), *records_of([3, 4]), *records_of([5, 6]))
    it = DALIRaggedIterator(
        SourcePipeline([batch], 2), ["a", "b", "c"], output_types=[DENSE, LIST, COO]
    )
    found = next(it)[0]
    assert found["a"].tolist() == [[1], [2]]
    assert [t.tolist() for t in found["b"]] == [[3], [4]]
    assert found["c"].to_dense().tolist() == [[5], [6]]


@pytest.mark.parametrize("kind", [DENSE, LIST, COO])
def test_partial_batches_of_every_kind(kind) -> None:
    """The second epoch reads the shorter shard, which has no samples for its last batch."""
    pipe = ReaderPipeline(9, 4, shard_id=1, num_shards=2, pad_last_batch=True)
    it = DALIRaggedIterator(
        pipe,
        ["a"],
        reader_name="reader",
        output_types=[kind],
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    lasts = [[batch[0]["a"] for batch in it][-1] for _ in range(2)]
    for last, numbers in zip(lasts, [[[8]], []], strict=True):
        values = last.to_dense() if kind == COO else last
        assert [list(map(int, value)) for value in values] == numbers


@pytest.mark.parametrize(
    ("types", "text"),
    [
        (["dense", "bogus"], "bogus"),
        (["dense", None], "None"),
        ("dense", "must be a list"),
        (["dense"], "one entry for each of the 2 names .*, got 1"),
    ],
)
def test_wrong_output_types(types, text) -> None:
    with pytest.raises(AssertionError, match=text):
        DALIRaggedIterator(SourcePipeline([[1]], 1), ["a", "b"], output_types=types)


# ---------------------------------------------------------------- feed_ndarray


def batch() -> TensorListCPU:
    return TensorListCPU.from_samples([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])])


@pytest.mark.parametrize("source", [batch(), batch().as_tensor()], ids=["batch", "tensor"])
@pytest.mark.parametrize(
    "target",
    [torch.zeros(2, 2), torch.zeros(2, 2).t(), torch.zeros(4, 2)[::2]],
    ids=["plain", "transposed", "strided"],
)
def test_feed_ndarray_copies(source, target) -> None:
    assert feed_ndarray(source, target) is target
    assert target.tolist() == [[1, 2], [3, 4]]


def test_feed_ndarray_copies_one_sample() -> None:
    assert feed_ndarray(batch()[1], torch.zeros(2)).tolist() == [3, 4]


def test_feed_ndarray_accepts_a_stream_and_need_not_wait() -> None:
    target = feed_ndarray(batch(), torch.zeros(2, 2), cuda_stream=5, non_blocking=True)
    assert target.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (torch.zeros(2, 3), r"\[2, 2\].*\[2, 3\]"),
        (torch.zeros(2, 2, dtype=torch.int32), "torch.float32.*torch.int32"),
    ],
)
def test_feed_ndarray_rejects_other_shapes_and_dtypes(target, text) -> None:
    with pytest.raises(AssertionError, match=text):
        feed_ndarray(batch(), target)


def test_to_torch_tensor_shares_or_copies() -> None:
    tensor = TensorCPU(torch.arange(3))
    assert to_torch_tensor(tensor, copy=False).data_ptr() == tensor.data_ptr()
    assert to_torch_tensor(tensor, copy=True).data_ptr() != tensor.data_ptr()
    assert to_torch_tensor(batch(), copy=True).tolist() == [[1, 2], [3, 4]]


def test_torch_types_agree_with_the_table_of_types() -> None:
    for dali_type, torch_type in to_torch_type.items():
        assert types.to_torch_dtype(dali_type) is torch_type


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("to", ["cpu", "cuda"])
def test_feed_ndarray_on_a_stream(to) -> None:
    source = TensorGPU(batch().stack().cuda())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    target = torch.zeros(2, 2, device=to)
    for handle in (stream, stream.cuda_stream):
        feed_ndarray(source, target.zero_(), cuda_stream=handle)
        stream.synchronize()
        assert target.tolist() == [[1, 2], [3, 4]]
