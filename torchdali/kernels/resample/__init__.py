"""Resizing: sizes and regions, weights, and weighted sums."""
