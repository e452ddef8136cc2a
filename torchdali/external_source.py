"""`external_source` and `ExternalSource` under the module name that DALI has for them."""

from __future__ import annotations

from torchdali.ops._external_source import ExternalSource, external_source

__all__ = ["ExternalSource", "external_source"]
