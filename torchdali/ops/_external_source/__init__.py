"""The operator `external_source`, which gets batches from the user's Python code.

- `operator` declares the operator, as a function and as a class.
- `arguments` checks the arguments of a call.
- `sources` has three classes that deliver batches to a running pipeline. They call the user's code in the main process
  or in worker processes, or deliver the data that the user feeds.
- `callbacks` calls the user's code.
- `convert` converts the user's data to batches.
"""

from __future__ import annotations

from torchdali.ops._external_source.operator import ExternalSource, external_source

__all__ = ["ExternalSource", "external_source"]
