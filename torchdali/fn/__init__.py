"""Operators as functions, under DALI's names: ``fn.resize``, ``fn.readers.file``, ``fn.random.uniform`` ...

Published from the registry: an operator that a user declares appears here too.
"""

from __future__ import annotations

from torchdali.namespaces import publish, put
from torchdali.ops._branching import merge, not_, split, validate_logical
from torchdali.registry import lookup

publish(__name__, lambda operator: operator.name, lambda operator: operator.function)

_shape = lookup("_shape")
for _function in (merge, not_, split, validate_logical):
    put(__name__, f"_conditional.{_function.__name__}", _function)
del merge, not_, split, validate_logical
