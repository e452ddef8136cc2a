"""Filters on any axes of a tensor: weighted sums and ranks."""
