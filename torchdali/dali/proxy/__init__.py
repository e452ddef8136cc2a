"""Pipelines for torch's own `DataLoader`: worker processes read the samples, the pipeline does the rest.

A dataset calls ``server.proxy`` instead of a transform. The call immediately returns a reference (`messages`,
`worker`). The inputs are sent with the batch, packed into one block of shared memory. The main process runs the
pipeline on the inputs, several batches ahead (`server`), and replaces the references by the outputs (`loader`). The
public path of this package is `torchdali.plugin.pytorch.experimental.proxy`.
"""
