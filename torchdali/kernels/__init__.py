"""Pure computations on plain tensors, independent of batches, graphs and pipelines."""
