"""Process whole batches on an accelerator, with as many kernel launches for a thousand images as for one.

A batch consists of a flat tensor and a table with one row per sample (`tables`). Each operation is a custom PyTorch
operation with Triton kernels for CUDA. The reference implementation for the CPU is in PyTorch.
"""
