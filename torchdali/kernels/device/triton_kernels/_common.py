"""Parts of several kernels."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["BLOCK", "number"]

BLOCK = 512  # elements that a program computes


@triton.jit
def number(table, i):
    """Load a float that was stored as its bits."""
    return tl.load(table + i).to(tl.int32).to(tl.float32, bitcast=True)
