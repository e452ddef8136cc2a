"""Masks: connected components, and picking elements of the foreground."""
