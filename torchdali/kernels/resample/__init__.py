"""Resize: sizes and regions, weights, and the sums, in torch and by OpenCV."""
