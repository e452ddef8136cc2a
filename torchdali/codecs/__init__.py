"""Bytes to tensors and records, one seam a format family."""
