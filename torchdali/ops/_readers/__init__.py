"""The readers, one file per format."""
