"""Warp images: compute input positions, and sample images at these positions."""
