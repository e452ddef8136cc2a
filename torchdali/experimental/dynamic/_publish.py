"""Add the registry's operators to the dynamic mode's package."""

from __future__ import annotations

import torchdali.ops  # noqa: F401  adds the operators to the registry
from torchdali.calls.namespaces import publish
from torchdali.declaration.registry import Operator
from torchdali.experimental.dynamic._functions import function_of
from torchdali.experimental.dynamic._readers import reader_of

__all__ = ["is_published", "publish_operators"]

# Only pipelines have these operators, which call Python functions while a pipeline runs, or feed data into a pipeline.
_PIPELINE_OPERATORS = (
    "python_function", "torch_python_function", "dl_tensor_python_function", "external_source",
)  # fmt: skip


# Deprecated names that DALI's dynamic mode has; calls with these names issue a warning.
_DEPRECATED_NAMES = (
    "experimental.decoders.image", "experimental.decoders.image_crop", "experimental.decoders.image_random_crop",
    "experimental.decoders.image_slice", "experimental.peek_image_shape",
)  # fmt: skip


def publish_operators(package: str) -> None:
    """Add a function for each operator, and a class for each reader, to a package."""
    publish(package, _name_of, lambda declared: (reader_of if declared.kind == "reader" else function_of)(declared))


def is_published(declared: Operator) -> bool:
    """Return True if the dynamic mode has the operator."""
    return (
        (not declared.replacement or declared.name in _DEPRECATED_NAMES)
        and declared.kind != "source"
        and declared.name not in _PIPELINE_OPERATORS
    )


def _name_of(declared: Operator) -> str | None:
    if not is_published(declared):
        return None
    if declared.kind == "reader":
        return f"{declared.name.rpartition('.')[0]}.{declared.class_name}"
    return declared.name
