"""Process whole batches on an accelerator, with as many kernel launches for a thousand images as for one.

A batch is one flat tensor and a table with one row per sample (`tables`). Each operation is a custom torch operation
with a Triton kernel for CUDA, and a torch implementation for the CPU, which is the reference.
"""
