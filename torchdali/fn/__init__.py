"""Operators as functions, under DALI's names: ``fn.resize``, ``fn.readers.file``, ``fn.random.uniform`` ...

This module contains all operators of the registry, including operators that a user declares.
"""

from __future__ import annotations

from torchdali.calls.namespaces import add_entry, publish
from torchdali.declaration.registry import lookup
from torchdali.ops._branching import merge, not_, split, validate_logical

publish(__name__, lambda operator: operator.name, lambda operator: operator.function)

_shape = lookup("_shape")
for _function in (merge, not_, split, validate_logical):
    add_entry(__name__, f"_conditional.{_function.__name__}", _function)
del merge, not_, split, validate_logical
