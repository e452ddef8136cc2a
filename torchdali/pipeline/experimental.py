"""The module from which programs for DALI also import `pipeline_def`."""

from __future__ import annotations

from torchdali.pipeline._factory import pipeline_def

__all__ = ["pipeline_def"]
