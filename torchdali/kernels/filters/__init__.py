"""Filters along any axes of a tensor: weighted sums (linear filters) and ranks (dilation, erosion, median)."""
