"""Resize images: compute sizes and regions, weights, and weighted sums."""
