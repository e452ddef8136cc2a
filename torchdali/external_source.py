"""`external_source` and `ExternalSource`, in a module with the same name as DALI's."""

from __future__ import annotations

from torchdali.ops._external_source import ExternalSource, external_source

__all__ = ["ExternalSource", "external_source"]
