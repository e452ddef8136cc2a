"""Work on whole batches on an accelerator: as many launches for a thousand images as for one.

A batch is one flat tensor and a table with a row for each sample (`tables`). Each operation is a
custom one of torch, with a Triton kernel for CUDA and a body in torch for the CPU, which is its reference.
"""
