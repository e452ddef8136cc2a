"""Pure maths on plain tensors; nothing here knows a batch, a graph or a pipeline."""
