"""Functions on audio signals: resampling, spectra, mel filters, cosine transforms, decibels, and silence."""
