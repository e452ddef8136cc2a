"""Decoders of bytes to tensors and records, one module per family of formats."""
