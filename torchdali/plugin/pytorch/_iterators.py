"""DALI-compatible iterators that deliver a pipeline's batches as PyTorch tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from torchdali.errors import CLEAN_TRACEBACKS
from torchdali.plugin._arguments import OnBreak
from torchdali.plugin.base_iterator import BaseIterator, LastBatchPolicy

if TYPE_CHECKING:
    from torchdali.pipeline import Pipeline
    from torchdali.tensors import TensorList

__all__ = ["DALIClassificationIterator", "DALIGenericIterator", "DALIRaggedIterator", "stack"]


_RAGGED = "use DALIRaggedIterator with output_types SPARSE_LIST_TAG for this output"


class _NamedOutputs(BaseIterator):
    """Iterator that delivers each batch as ``[{name: value}]``, a list with one dict per pipeline."""

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        *arguments: Any,
        **named: Any,
    ) -> None:
        if isinstance(output_map, str):
            raise AssertionError(f"output_map must be a list of names, got a string. Pass [{output_map!r}].")
        if len(set(output_map)) != len(output_map):
            raise AssertionError(f"The names in output_map must differ, got {list(output_map)}.")
        self.output_map = list(output_map)
        self._output_categories = set(output_map)
        super().__init__(pipelines, *arguments, **named)
        if self._prepare_first_batch:
            self._prepare()

    def _convert(self, outputs: list[tuple[TensorList, ...]], counts: list[int] | None) -> list[dict[str, Any]]:
        names = self.output_map
        if any(len(batch) != len(names) for batch in outputs):
            raise _create_count_error(names, len(outputs[0]))
        limits = [None] * len(outputs) if counts is None else counts
        return [
            {name: self._value(i, batch, count) for i, (name, batch) in enumerate(zip(names, batches, strict=True))}
            for batches, count in zip(outputs, limits, strict=True)
        ]

    def _value(self, output: int, batch: TensorList, count: int | None) -> Any:
        """Convert an output's batch to the value that is delivered.

        Args:
            output: Index of the output.
            count: Number of samples to deliver; None for all samples.
        """
        raise NotImplementedError


def _create_count_error(names: list[str], count: int) -> Exception:
    text = f"output_map has {len(names)} names, {names}, but the pipeline has {count} outputs: pass one name for each."
    return KeyError(text) if len(names) > count else IndexError(text)


class DALIGenericIterator(_NamedOutputs):
    """Deliver batches as ``[{name: tensor}]``, one dict per pipeline.

    Every tensor is ``(batch, ...)``, on the device of the pipeline's output. The tensors are not copied, and no later
    batch overwrites them.

    Args:
        pipelines: One pipeline, or several pipelines whose batches are delivered together.
        output_map: Names of the pipeline's outputs, in order.
        size: Number of samples in an epoch; if -1, the epoch ends when the source ends. You can't pass both `size` and
            `reader_name`.
        reader_name: Name of the reader whose size, shards and padding determine the epoch.
        auto_reset: True or "yes" to begin the next epoch automatically, without a call of `reset`.
        fill_last_batch: Deprecated; use `last_batch_policy`.
        dynamic_shape: Accepted without effect, because shapes may always differ from batch to batch.
        last_batch_padded: True if the pipelines pad their last batch. Pass this argument only together with `size`.
        last_batch_policy: Treatment of a last batch that isn't full; see `LastBatchPolicy`.
        prepare_first_batch: True to request the first batch in the constructor, so that the constructor raises the
            errors of this batch.
        on_break: Behavior of a new loop after a loop that ended in mid-epoch: ``"continue"`` resumes the epoch, as DALI
            does; ``"restart"`` begins the epoch again, with the same samples in the same order; ``"next"`` begins the
            next epoch, as a `DataLoader` does. DALI doesn't have this argument.

    Raises:
        RuntimeError: the samples of a batch differ in shape (use `DALIRaggedIterator`), the reader does not exist, or
            the pipeline has no data.
        AssertionError, ValueError, KeyError, IndexError: arguments are invalid or contradict each other.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        on_break: OnBreak = "continue",
    ) -> None:
        with CLEAN_TRACEBACKS:
            super().__init__(
                pipelines,
                output_map,
                size,
                reader_name,
                auto_reset,
                fill_last_batch,
                last_batch_padded,
                last_batch_policy,
                prepare_first_batch,
                on_break=on_break,
            )

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[list[dict[str, torch.Tensor]]]: ...
        def __next__(self) -> list[dict[str, torch.Tensor]]: ...
        def next(self) -> list[dict[str, torch.Tensor]]: ...

    def _value(self, output: int, batch: TensorList, count: int | None) -> torch.Tensor:
        dense = batch.dense()
        if dense is None:
            dense = stack(batch, self.output_map[output])
        return dense if count is None else dense[:count]


class DALIClassificationIterator(DALIGenericIterator):
    """Deliver batches as ``[{"data": tensor, "label": tensor}]``; see `DALIGenericIterator`."""

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        on_break: OnBreak = "continue",
    ) -> None:
        with CLEAN_TRACEBACKS:
            super().__init__(
                pipelines,
                ["data", "label"],
                size,
                reader_name,
                auto_reset,
                fill_last_batch,
                dynamic_shape,
                last_batch_padded,
                last_batch_policy,
                prepare_first_batch,
                on_break=on_break,
            )


class DALIRaggedIterator(_NamedOutputs):
    """Deliver batches whose samples may differ in shape as ``[{name: value}]``, one dict per pipeline.

    Args:
        output_types: One tag per output. `DENSE_TAG` (the default) delivers one tensor ``(batch, ...)``; all samples
            must have the same shape. `SPARSE_LIST_TAG` delivers a list with one tensor per sample. `SPARSE_COO_TAG`
            delivers a sparse COO tensor ``(batch, longest, ...)`` that contains every element of every sample,
            including zeros.

    All other arguments are the same as in `DALIGenericIterator`.
    """

    DENSE_TAG = "dense"
    SPARSE_COO_TAG = "sparse_coo"
    SPARSE_LIST_TAG = "sparse_list"

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        on_break: OnBreak = "continue",
    ) -> None:
        self._types = _check_types(output_types, list(output_map))
        with CLEAN_TRACEBACKS:
            super().__init__(
                pipelines,
                output_map,
                size,
                reader_name,
                auto_reset,
                fill_last_batch,
                last_batch_padded,
                last_batch_policy,
                prepare_first_batch,
                on_break=on_break,
            )

    if TYPE_CHECKING:  # `output_types` determines whether a value is a tensor or a list of tensors

        def __iter__(self) -> Iterator[list[dict[str, Any]]]: ...
        def __next__(self) -> list[dict[str, Any]]: ...
        def next(self) -> list[dict[str, Any]]: ...

    def _value(self, output: int, batch: TensorList, count: int | None) -> Any:
        kind = self._types[output]
        if kind == self.DENSE_TAG:
            return stack(batch, self.output_map[output])[:count]
        samples = batch.samples()[:count]
        return list(samples) if kind == self.SPARSE_LIST_TAG else _sparse(samples, batch)


def _check_types(types: Sequence[str] | None, names: list[str]) -> list[str]:
    if types is None:
        return [DALIRaggedIterator.DENSE_TAG] * len(names)
    tags = {getattr(DALIRaggedIterator, f"{tag}_TAG") for tag in ("DENSE", "SPARSE_LIST", "SPARSE_COO")}
    if isinstance(types, str) or not set(types) <= tags:
        raise AssertionError(f"output_types must be a list of {sorted(tags)}, got {types!r}.")
    if len(types) != len(names):
        raise AssertionError(
            f"output_types must have one entry for each of the {len(names)} names {names}, got {len(types)}."
        )
    return list(types)


def stack(batch: TensorList, name: str, cure: str = _RAGGED) -> torch.Tensor:
    """Return a batch as one tensor.

    Args:
        batch: The batch; all samples must have the same shape.
        name: Name of the output, for error messages.
        cure: Advice for the error message if the shapes differ.

    Raises:
        RuntimeError: the samples' shapes differ, or the batch is empty.
    """
    try:
        return batch.stack()
    except RuntimeError as error:
        if not len(batch):
            raise RuntimeError(
                f"All samples of a batch were bad and were skipped, so output {name!r} is empty: "
                "pass bad_samples='replace' to replace them with good ones. `torchdali check DIR` finds broken files."
            ) from error
        shapes = sorted(set(batch.shape()))
        raise RuntimeError(
            f"The samples of output {name!r} must have the same shape to be one tensor, got {shapes[:4]}. Bring them "
            f"to one shape in the pipeline (resize, crop, "
            f"pad), or {cure}."
        ) from error


def _sparse(samples: list[torch.Tensor], batch: TensorList) -> torch.Tensor:
    """Return a sparse COO tensor ``(batch, longest, ...)`` with all elements of all samples."""
    ndim = batch.ndim()
    if not samples:
        return torch.zeros([0] * (ndim + 1), dtype=batch.torch_dtype).to_sparse()
    shape = [max(s.shape[axis] for s in samples) for axis in range(ndim)]
    positions = [torch.ones(sample.shape, dtype=torch.bool, device=sample.device).nonzero() for sample in samples]
    rows = [position.new_full((len(position), 1), i) for i, position in enumerate(positions)]
    indices = torch.cat([torch.cat([r, p], 1) for r, p in zip(rows, positions, strict=True)]).t()
    values = torch.cat([sample.reshape(-1) for sample in samples])
    return torch.sparse_coo_tensor(indices, values, (len(samples), *shape), is_coalesced=True, check_invariants=False)
