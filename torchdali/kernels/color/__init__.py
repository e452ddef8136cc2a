"""Functions on colors: affine maps, color spaces, tone curves, histograms, and Bayer mosaics."""
