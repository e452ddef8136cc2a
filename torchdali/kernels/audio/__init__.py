"""Audio on plain tensors: resampling, spectra, mel filters, cosine transforms, decibels, silence."""
