"""Use a pipeline with PyTorch's `DataLoader`: workers load the samples, and the main process runs the pipeline.

A dataset calls ``server.proxy`` with the inputs of a sample, in place of a transform. The call immediately returns a
reference to the result (`messages`, `worker`). The worker sends the inputs with its batch, packed into one block of
shared memory (`packing`, `blocks`). The main process runs the pipeline on the inputs, several batches ahead (`server`),
and replaces the references with the outputs (`loader`).

The public path of this package is `torchdali.plugin.pytorch.experimental.proxy`.
"""
