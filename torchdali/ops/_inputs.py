"""Inputs of a pipeline."""
