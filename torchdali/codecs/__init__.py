"""Decoders from bytes to tensors, one module per family of formats."""
