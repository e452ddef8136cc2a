"""Delivery of batches to a framework; `torchdali.plugin.pytorch` holds the iterators."""
