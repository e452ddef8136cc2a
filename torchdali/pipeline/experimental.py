"""DALI's other place for `pipeline_def`."""

from __future__ import annotations

from torchdali.pipeline._factory import pipeline_def

__all__ = ["pipeline_def"]
