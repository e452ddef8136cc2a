"""Colors: affine maps, color spaces, tone curves, histograms, Bayer mosaics."""
