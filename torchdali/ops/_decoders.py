"""Decoders of encoded images."""
