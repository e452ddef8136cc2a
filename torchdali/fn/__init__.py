"""Operators as functions, under DALI's names: ``fn.resize``, ``fn.readers.file``, ``fn.random.uniform`` ...

Published from the registry: an operator that a user declares appears here too.
"""

from __future__ import annotations

from torchdali.namespaces import publish

__getattr__ = publish(__name__, lambda operator: (operator.name, operator.function))
