"""Iterators of PyTorch: sizes of epochs, policies for the last batch, several pipelines, ragged outputs."""

import sys

import numpy as np
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    feed_ndarray,
)

data, target = sys.argv[1:]
results = {}


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def files(shard_id=0, num_shards=1, pad=False):
    jpegs, labels = fn.readers.file(
        file_root=f"{data}/images", shard_id=shard_id, num_shards=num_shards, pad_last_batch=pad, stick_to_shard=True, name="Reader",
    )  # fmt: skip
    return fn.crop(fn.decoders.image(jpegs), crop=(8, 8)), labels


for policy in (LastBatchPolicy.FILL, LastBatchPolicy.PARTIAL, LastBatchPolicy.DROP):
    for pad in (False, True):
        for shards in (1, 2):
            pipes = [files(shard, shards, pad) for shard in range(shards)]
            loader = DALIGenericIterator(pipes, ["image", "label"], reader_name="Reader", last_batch_policy=policy, auto_reset=True)
            name = f"{policy.name} {pad} {shards}"
            results[f"{name} length"] = len(loader)
            for epoch in range(2):
                labels = [[part["label"].flatten().tolist() for part in batch] for batch in loader]
                results[f"{name} {epoch} sizes"] = [[len(part) for part in batch] for batch in labels]
                results[f"{name} {epoch} labels"] = [v for batch in labels for part in batch for v in part]

loader = DALIClassificationIterator(files(), size=8)
batches = list(loader)
results["classification"] = batches[1][0]["data"].numpy()
try:
    next(loader)
except StopIteration:
    results["end"] = True
loader.reset()
results["after a reset"] = sum(1 for _ in loader)


@pipeline_def(batch_size=3, num_threads=1, device_id=None)
def lengths():
    return fn.external_source(lambda info: np.full((info.idx_in_batch + 1, 2), info.iteration, np.float32), batch=False)


loader = DALIRaggedIterator(lengths(), ["points"], output_types=[DALIRaggedIterator.SPARSE_LIST_TAG], size=6)
for b, batch in enumerate(loader):
    for i, sample in enumerate(batch[0]["points"]):
        results[f"ragged {b} {i}"] = sample.numpy()

pipe = files()
pipe.build()
(_, labels) = pipe.run()
import torch  # noqa: E402

copied = torch.empty(4, 1, dtype=torch.int32)
feed_ndarray(labels.as_tensor(), copied)
results["fed"] = copied.numpy()
np.savez(target, **results)
