"""Pipelines for torch's own `DataLoader`: worker processes read the samples, the pipeline does the rest.

A dataset calls ``server.proxy`` where it would call a transform. The call returns a reference at once
(`messages`, `worker`); the inputs travel with the batch, packed into one block of shared memory; the main
process runs the pipeline on them, several batches ahead (`server`), and puts the outputs in the place of
the references (`loader`). Its public path is `torchdali.plugin.pytorch.experimental.proxy`.
"""
